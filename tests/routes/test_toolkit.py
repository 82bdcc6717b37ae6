# SPDX-License-Identifier: Apache-2.0
"""The table of entry points against the toolkit: every function that matters is in it, or in the list of
exceptions with a reason.

usage: test_toolkit.py INCLUDE READELF TABLE RUNTIME...
INCLUDE has cudaTypedefs.h; TABLE is what tables.h makes of both tables; each RUNTIME is a libcudart.
"""

import os
import re
import subprocess
import sys

import support

# Of the driver: what is about launches, streams, graphs, code, contexts and the look-up itself.
DRIVER = re.compile(r"cu(Init|Launch|Stream|Graph(?!ics)|Module|Library|Kernel|Func|Ctx|GreenCtx|"
                    r"DevicePrimaryCtx|GetProcAddress|GetExportTable)")

# Of the runtime: what leads to a launch, a new stream, or a kernel node.
RUNTIME = re.compile(r"(__)?cuda(Launch\w*|\w*StreamCreate\w*|GraphAdd(Kernel)?Node(_v\d)?|"
                     r"Graph(Exec)?(Kernel)?Node(SetParams|\w*Attributes?)|"
                     r"GraphKernelNode\w*)")

include, readelf, table_path, *runtimes = sys.argv[1:]


def read_table():
    """{(base, version, per_thread): symbol} and runtime names; then the excepted bases and names."""
    rows, runtime, excepted, excepted_runtime = {}, set(), {}, {}
    with open(table_path, encoding="utf-8") as file:
        for line in file:
            kind, _, rest = line.strip().partition(" ")
            if kind == "driver":
                symbol, base, version, variant = rest.split()
                rows[base.strip('"'), int(version), variant == "PTSZ"] = symbol
            elif kind == "runtime":
                runtime.add(rest.strip())
            elif kind in ("driver_exception", "runtime_exception"):
                name, _, reason = rest.partition(" ")
                (excepted if kind == "driver_exception" else excepted_runtime)[name] = reason
    return rows, runtime, excepted, excepted_runtime


def types_of_header():
    """(base, version, per_thread) of each function type in cudaTypedefs.h, and the header's version."""
    with open(os.path.join(include, "cudaTypedefs.h"), encoding="utf-8") as file:
        found = re.findall(r"\*PFN_(cu\w+?)_v(\d+)(_ptsz|_ptds)?\)", file.read())
    with open(os.path.join(include, "cuda.h"), encoding="utf-8", errors="replace") as file:
        version = int(re.search(r"^#define CUDA_VERSION (\d+)", file.read(), re.MULTILINE).group(1))
    return {(base, int(number), bool(variant)) for base, number, variant in found}, version


def exports(path):
    """What a shared library defines; of "name@version" the name."""
    listed = subprocess.run([readelf, "--wide", "--dyn-syms", path], stdout=subprocess.PIPE,
                            text=True, check=True).stdout
    for line in listed.splitlines():
        fields = line.split()
        if len(fields) >= 8 and fields[3] == "FUNC" and fields[6] != "UND":
            yield fields[7].partition("@")[0]


def named_tests(page):
    """Names of tests in a page of the documentation; "NAME_…" stands for all that begin so."""
    with open(page, encoding="utf-8") as file:
        for name in re.findall(r"`([a-z0-9_A-Z]+(?:_…)?)`", file.read()):
            if name.count("_") >= 3 and not name.isupper():
                yield name


def sources(folder):
    for place, _, names in os.walk(folder):
        for name in names:
            if name.endswith((".py", ".c", ".h")):
                with open(os.path.join(place, name), encoding="utf-8", errors="replace") as file:
                    yield file.read()


def undocumented(root):
    """Names in docs/interposition.md that no test has. Names that are put together while a test runs
    end in what differs."""
    text_of_all = "\n".join(sources(os.path.join(root, "tests")))
    for name in named_tests(os.path.join(root, "docs", "interposition.md")):
        stem = re.sub(r"(_…|_13)$", "", name)
        made = re.sub(r"_(before|behind|after)_ours_", "_{where}_ours_", stem)
        made = made.replace("_v1_", "_{form}_").replace("_13000_", "_{version}_")
        made = made.replace("_by_kill_", "_by_{how}_")
        if stem not in text_of_all and made not in text_of_all:
            yield name


def text(entry):
    base, version, per_thread = entry
    return f"{base} {version}{' per-thread' if per_thread else ''}"


def main():
    tap = support.Tap()
    rows, runtime, excepted, excepted_runtime = read_table()
    types, header_version = types_of_header()
    relevant = {entry for entry in types if DRIVER.match(entry[0])}

    missing = sorted(text(entry) for entry in relevant
                     if entry not in rows and entry[0] not in excepted)
    tap.line("every function of the driver that matters is in a table", "\n".join(missing))
    tap.line("the header has functions", "" if len(relevant) > 200 else f"only {len(relevant)}")

    unknown = sorted(text(entry) for entry in rows
                     if entry[1] <= header_version and entry not in types)
    tap.line("every row is a function of the header", "\n".join(unknown))

    both = sorted({base for base, _, _ in rows} & set(excepted))
    tap.line("no function is in both tables", "\n".join(both))

    if header_version >= 13050:
        bases = {base for base, _, _ in types} | {"cuGetExportTable"}
        tap.line("every exception is a function of the header",
                 "\n".join(sorted(set(excepted) - bases)))
    else:
        tap.line("every exception is a function of the header",
                 skip="the newest exceptions need headers of CUDA 13.5")

    no_reason = [name for name, reason in {**excepted, **excepted_runtime}.items()
                 if len(reason.strip('"')) < 5]
    tap.line("every exception has a reason", "\n".join(no_reason))

    wrong = list(undocumented(os.environ["CUDAPOLICY_TEST_SOURCE"]))
    tap.line("every test that docs/interposition.md names is there", "\n".join(wrong))

    for path in runtimes:
        names = {re.sub(r"_ptsz$", "", name) for name in exports(path) if RUNTIME.fullmatch(name)}
        missing = sorted(name for name in names
                         if name not in runtime and name not in excepted_runtime)
        name = "/".join(path.split("/")[-2:])
        tap.line(f"every function of {name} that matters is in a table", "\n".join(missing))
        lacking = sorted(name for name in exports(path) if RUNTIME.fullmatch(name)
                         and re.sub(r"_ptsz$", "", name) in runtime and name not in runtime)
        tap.line(f"each form of a wrapped function of {name} is wrapped", "\n".join(lacking))
    if not any("double" not in path for path in runtimes):
        tap.line("a real libcudart was compared", skip="none is there")
    tap.end()


main()
