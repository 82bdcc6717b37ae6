# SPDX-License-Identifier: Apache-2.0
"""Each call that moves a launch fails once: the program gets its launch as it came or an error, what runs is
in order, and nothing is left over."""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor

from checks import POLICY, Run, Script, check_order, expect, main, test

# What the library calls to make partitions and side streams, and what it calls for each moved launch.
MAKING = ("cuGreenCtxCreate", "cuGreenCtxStreamCreate", "cuCtxFromGreenCtx", "cuEventCreate",
          "cuDevSmResourceSplitByCount", "cuDevResourceGenerateDesc", "cuDeviceGetDevResource",
          "cuDevicePrimaryCtxRetain", "cuDevicePrimaryCtxGetState", "cuStreamGetPriority",
          "cuStreamGetAttribute", "cuStreamSetAttribute", "cuThreadExchangeStreamCaptureMode",
          "cuStreamCreateWithPriority", "cuOccupancyMaxActiveBlocksPerMultiprocessor",
          "cuCtxGetCurrent", "cuCtxGetDevice")
MOVING = ("cuEventRecord", "cuStreamWaitEvent", "cuLaunchKernelEx", "cuStreamIsCapturing",
          "cuStreamGetCaptureInfo_v2", "cuStreamUpdateCaptureDependencies")


def script_with_launches():
    script = Script()
    script("retain", 0)
    for place, flags in enumerate((1, 0)):
        script("stream", f"s{place}", flags)
    script("event", "e0")
    for _ in range(2):
        script("launch", "s0", "plain")
        script("launch", "s0", "to_side")
        script("launch", "s0", "to_main")
        script("record", "s0", "e0")
        script("wait", "s1", "e0")
        script("launch", "s1", "to_side")
        script("launch", "null", "to_side")
        script("launch", "null", "plain")
        script("launch", "per_thread", "to_main")
        script("launch", "s0", "plain")
    script("begin", "s0", 2)
    script("launch", "s0", "plain")
    script("launch", "s0", "to_side")
    script("launch", "s0", "to_side")
    script("launch", "s0", "to_main")
    script("copy", "s0")
    script("end", "s0", "g0")
    script("instantiate", "x0", "g0")
    script("graph", "s1", "x0")
    script("launch", "s1", "to_side")
    script("executable_destroy", "x0")
    script("graph_destroy", "g0")
    script("event_destroy", "e0")
    script("destroy", "s0")
    script("destroy", "s1")
    script("release", 0)
    return script


SCRIPT = script_with_launches()


def results_of(ran):
    """By line of the script; and what is left over."""
    results, live = {}, []
    for line in ran.results[0]:
        words = line.split()
        if words[0] == "live":
            live.append(line)
        elif words[0] != "host":
            results[int(words[0])] = int(words[2])
    return results, live


def check_launches(ran, results):
    """One launch each, or an error where the call failed for the library."""
    for group in ran.records[0].groups:
        if group.operation != "launch":
            continue
        failed = any(" injected=1" in line.text for line in group.lines)
        made = group.own is not None and group.own.succeeded
        if results[group.number] == 0:
            expect(made, f"no launch, and no error\n{group}")
        elif not failed:
            # What broke a capture earlier is an error later.
            expect("capture=1" in group.own.text, f"an error without a reason\n{group}")


def injected(ran):
    return sum(" injected=1" in line.text for line in all_lines(ran))


def all_lines(ran):
    record = ran.records[0]
    return record.outside + [line for group in record.groups for line in group.lines]


def check_fault(fault, live, last):
    try:
        ran = Run(SCRIPT, POLICY, said=True, RECORDING_DRIVER_FAIL=fault)
        results, left = results_of(ran)
        check_launches(ran, results)
        check_order(ran, exactly=False)
        expect(left == live, "left over: " + ", ".join(
            f"{one} (was {other})" for one, other in zip(left, live) if one != other))
        expect(len(results) == last, "not all calls were made")
    except Exception as fault_found:
        raise AssertionError(f"{fault}: {fault_found}") from fault_found
    return injected(ran)


def check_faults(names, codes):
    plain = Run(SCRIPT, POLICY)
    results, _ = results_of(plain)
    _, live = results_of(Run(SCRIPT, None))
    calls = Counter(line.symbol for line in all_lines(plain) if " route=resolved" in line.text)
    faults = []
    for name in names:
        for number in range(1, calls[name] + 1):
            for code in codes:
                faults.append(f"{name}@resolved:{number}={code}")
        if calls[name]:
            faults += [f"{name}@resolved:{number}+={code}" for code in codes
                       for number in (1, calls[name] // 2) if number]
    with ThreadPoolExecutor(2) as pool:
        happened = list(pool.map(lambda fault: check_fault(fault, live, len(results)), faults))
    expect(all(happened), "a fault that did not happen")
    return len(faults)


@test
def each_call_of_a_moved_launch_fails():
    count = check_faults(MOVING, (1, 719))
    expect(count >= 150, f"{count} faults")


@test
def each_call_that_makes_partitions_fails():
    check_faults(MAKING, (2,))


@test
def launch_that_cannot_be_joined_is_an_error_and_not_made_again():
    """Neither by events nor by a wait of the host, or of a capture by its dependencies."""
    script = Script()
    script("retain", 0)
    script("stream", "s0", 1)
    script("launch", "s0", "plain")
    eager = script("launch", "s0", "to_side")
    script("begin", "s0", 2)
    captured = script("launch", "s0", "to_side")
    end = script("end", "s0", "g0")
    for code in (1, 719, 912):
        for name in ("cuEventRecord", "cuStreamWaitEvent"):
            fault = (f"{name}@resolved:2={code};{name}@resolved:4={code};"
                     "cuStreamSynchronize@resolved:*=719;"
                     "cuStreamUpdateCaptureDependencies@resolved:*=801")
            ran = Run(script, POLICY, said=True, RECORDING_DRIVER_FAIL=fault)
            results, _ = results_of(ran)
            expect(results[eager] == results[captured] == code, f"{fault}: {results}")
            expect(results[end] == 904, f"the capture ends with {results[end]}")


if __name__ == "__main__":
    main()
