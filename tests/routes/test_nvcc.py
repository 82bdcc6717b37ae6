# SPDX-License-Identifier: Apache-2.0
"""Programs compiled by the real nvcc, shared and static runtime, legacy and per-thread default stream, on the
doubles under the preload: tests/double/program.cu says what they launch.

usage: test_nvcc.py NAME=PROGRAM...
"""

import sys

import support
from support import expect, expect_equal

# Kernel, stream, blocks of each launch and node, in order; {null} is what NULL means.
AXPY, SCALE = "_Z4axpyPff", "_Z5scaleIfEvPT_S0_"
LAUNCHES = [(AXPY, "{null}", "1"), (SCALE, "stream#1", "2"), (AXPY, "stream#2", "3"),
            (AXPY, "stream#2", "4"), (AXPY, "stream#3", "5"), (AXPY, "stream#2", "7"),
            (AXPY, "{null}", "0")]
NODES = ["7", "7", "8"]
# Without a policy: by which function each launch arrives.
FUNCTIONS = ["cuLaunchKernel", "cuLaunchKernel", "cuLaunchKernel", "cuLaunchKernelEx",
             "cuLaunchCooperativeKernel", "cuLaunchKernel", "cuLaunchKernel"]


def run(program, **options):
    return support.run(program, raw_path=True, policy=support.REMOTE_STREAMS, **options)


def launches(result):
    return [(call["kernel"], call["stream"], call["grid"].split(",")[0])
            for call in result.launches()]


def nodes(result):
    """Of the graph launches: the nodes that ran."""
    return [(call["grid"].split(",")[0], "MEM_SYNC_DOMAIN:1" in call["line"])
            for call in result.calls if call["line"].startswith("node")]


def repeated_without_change(result):
    """A launch that the driver refused is made again as it came: the last one, of no block."""
    return [call for call in result.launches() if call["result"] != "0"]


def check_launches(result, per_thread, attributes):
    null = "per_thread" if per_thread else "legacy"
    wanted = [(kernel, stream.format(null=null), blocks) for kernel, stream, blocks in LAUNCHES]
    found = launches(result)
    if attributes and found[-1:] == found[-2:-1]:
        found.pop()
    expect(found == wanted, f"{found}", result)
    ending = "_ptsz" if per_thread else ""
    for call in result.launches():
        expect(call.name.endswith("_ptsz") == per_thread, call.name, result)
    if not attributes:
        expect_equal([call.name for call in result.launches()],
                     [name + ending for name in FUNCTIONS], result)


def enforced(program, per_thread):
    result = run(program)
    expect_equal(result.status, 0, result)
    check_launches(result, per_thread, True)
    for call in result.launches()[:6]:
        expect(call.name.startswith("cuLaunchKernelEx"), call.name, result)
        expect(call.attribute("MEM_SYNC_DOMAIN") == "1", call["line"], result)
    expect_equal(nodes(result), [(blocks, True) for blocks in NODES], result)
    for name in ("cuStreamCreateWithPriority", "cuStreamSetAttribute"):
        expect_equal(len(result.named(name)), 3, result)
    expect_equal(result.report["complete"], True, result)


def as_it_came(program, per_thread, mode):
    result = run(program, env={"CUDAPOLICY_MODE": mode} if mode else {},
                 preload=() if mode is None else (support.LIBRARY,))
    expect_equal(result.status, 0, result)
    check_launches(result, per_thread, False)
    expect_equal(nodes(result), [(blocks, False) for blocks in NODES], result)


def by_runtime(program, per_thread):
    result = run(program, env={"RECORDING_RUNTIME_BYPASS": "1"})
    expect_equal(result.status, 0, result)
    check_launches(result, per_thread, True)
    for call in result.launches()[:6]:
        expect(call.attribute("MEM_SYNC_DOMAIN") == "1", call["line"], result)
    # The captured launch carries the setting into its graph; a node added by hand is not reached.
    expect_equal(nodes(result), [("7", True), ("7", True), ("8", False)], result)


def library(program, name):
    result = run(program)
    expect_equal({lib for libs in result.libraries().values() for lib in libs}, {name}, result)


def main():
    tap = support.Tap()
    for argument in sys.argv[1:]:
        name, _, program = argument.partition("=")
        per_thread = "per-thread" in name
        cases = [("the policy is applied", lambda: enforced(program, per_thread)),
                 ("observe changes nothing", lambda: as_it_came(program, per_thread, "observe")),
                 ("off changes nothing", lambda: as_it_came(program, per_thread, "off")),
                 ("without preload", lambda: as_it_came(program, per_thread, None)),
                 ("the library is the program", lambda: library(program, program.split("/")[-1]))]
        if name.startswith("shared"):
            cases.append(("the runtime's layer alone", lambda: by_runtime(program, per_thread)))
        for title, case in cases:
            case.__name__ = f"{name}: {title}"
            tap.run(case)
    if len(sys.argv) == 1:
        tap.line("programs of nvcc", skip="no nvcc")
    tap.end()


main()
