# SPDX-License-Identifier: Apache-2.0
"""Whatever the driver answers to the library's own calls, the application sees what it saw without.

The application (application.c) runs once without the library: that is the reference. Then it runs under
it, with a policy that uses everything, while one driver function fails for the library. Its results, and
its calls as they reach the driver, must be those of the reference; only attributes of launches may differ,
as the policy says. The report's counts must be right.
"""

import os
from collections import Counter
from concurrent.futures import ProcessPoolExecutor

import counts
import record
from record import Difference, Record, expect
from support import LONG, SANITIZER, driver_symbols, main, run, test

# invalid value, no device, invalid context, invalid handle, resources, launch failed, cooperative too
# large, not supported, capture unsupported, capture invalid, wrong thread, cluster, unknown
CODES = (1, 100, 201, 400, 701, 719, 720, 801, 900, 901, 908, 912, 999)

POLICY_FILE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "everything.ini")
with open(POLICY_FILE, encoding="utf-8") as file:
    POLICY = file.read()

# Kernels on whose every launch a rule of that policy decides.
FULL = {
    "alpha": tuple(record.ATTRIBUTES)[:3] + tuple(record.ATTRIBUTES)[4:],
    "beta": ("mem_sync_domain_map", "cluster_dim", "priority"),
    "gamma": ("mem_sync_domain", "cluster_dim", "priority"),
}

# Without their answers a function's name is not known, ...
NAMES = {"cuFuncGetName", "cuKernelGetName", "cuFuncGetModule", "cuKernelGetLibrary", "cuCtxGetCurrent"}
# whether a launch is captured, ...
KINDS = {"cuStreamIsCapturing"}
# or what is in a graph.
REPLAYS = {"cuGraphGetNodes", "cuGraphNodeGetType", "cuGraphChildGraphNodeGetGraph",
           "cuGraphNodeFindInClone", "cuGraphKernelNodeGetParams", "cuStreamGetCaptureInfo"}


# What makes the library ask otherwise than with one device of the kind that the double has by itself.
MACHINES = {
    "two devices": {"DEVICES": "2"},
    "driver 12.0": {"VERSION": "12000"},
    "driver 12.4": {"VERSION": "12040"},
    "no clusters": {"COMPUTE_CAPABILITY": "8.0"},
    "preferred clusters": {"COMPUTE_CAPABILITY": "10.0"},
}
LACKING = {"driver 12.0": NAMES}

# How the application reaches the driver: by dlsym, by cuGetProcAddress, or through the runtime.
ROUTES = ("symbols", "resolver", "runtime")


def exported_names():
    """By name for cuGetProcAddress: the symbols that it can stand for."""
    forms = ("", "_v2", "_v3", "_ptsz", "_v2_ptsz", "_v3_ptsz")
    return {name: [name + form for form in forms] for name in driver_symbols()}


EXPORTED = exported_names()
ALLOWED = {symbol for symbols in EXPORTED.values() for symbol in symbols}
# Called in place of cuStreamCreate where a rule gives a priority.
EXPORTED["cuStreamCreateWithPriority"] = ["cuStreamCreateWithPriority"]


class Run:
    """One run of the application."""

    def __init__(self, route="symbols", policy=None, fail="", **variables):
        program = ["stress_application", route]
        if route == "runtime":
            program = ["stress_runtime_application"]
        result = run(*program, "@FOLDER@/results", policy=policy,
                     RECORDING_DRIVER_LOG="@FOLDER@/record", RECORDING_DRIVER_DISTINCT_POINTERS="1",
                     RECORDING_DRIVER_SKIP="cuGetProcAddress,cuGetProcAddress_v2",
                     RECORDING_DRIVER_FAIL=fail, CUDAPOLICY_LOG="error", **variables)
        expect(result.status == 0, f"status {result.status}\n{result.err}")
        self.err = result.err
        lines = result.files["results"].splitlines()
        self.results = [line for line in lines if not line.startswith("#")]
        self.remarks = [line for line in lines if line.startswith("#")]
        self.record = Record(result.files["record"])
        self.report = result.report
        self.route = route


_references = {}


def reference(route="symbols", fail="", **variables):
    key = (route, fail, tuple(sorted(variables.items())))
    if key not in _references:
        _references[key] = Run(route, fail=fail, **variables)
    return _references[key]


def check(found, wanted, failed=(), gate=0):
    """failed: the functions that did not answer the library always."""
    for line, other in zip(found.results, wanted.results):
        expect(line == other, f"the application got {line!r}, not {other!r}")
    expect(len(found.results) == len(wanted.results), "the application did not run to its end")
    pairs = record.compare(found.record, wanted.record, ALLOWED, found.route == "symbols")
    expect(found.remarks == [f"# gate {gate}"], f"the gate is left as {found.remarks}")
    expect(found.err == "", f"on stderr: {found.err}")
    expect(found.report is not None, "no report")
    names, kinds, replays = (not group.intersection(failed) for group in (NAMES, KINDS, REPLAYS))
    counts.check_sums(found.report, FULL if names else {})
    if found.route != "runtime":
        counts.check_routes(found.report, wanted.record)
    counts.check_launches(found.report, wanted.record, names, kinds, kinds and replays and names)
    if kinds:
        counts.check_applied(found.report, pairs)
    counts.check_replayed(found.report, found.record, wanted.record)
    counts.check_streams(found.report, found.record)


# ---- faults ---------------------------------------------------------------------------------------

def earned(found, code):
    """The failures of the reference that belong to those that the application saw: a changed launch that
    fails for a reason of its own is the application's launch, and is not made again."""
    if str(code) in record.RETRIED:
        return ""
    return ";".join(f"{group.symbol}:{group.place}={code}" for group, line in found.record.injected
                    if record.symbol_of(line) in record.LAUNCHES)


def fault(name, calls, code, route="symbols", lacking=(), **variables):
    """Runs with a fault, checks; what is wrong, or None. lacking: what the driver has not."""
    only_ours = "@resolved" if route == "symbols" else ""
    rules = ";".join(f"{symbol}{only_ours}:{calls}={code}" for symbol in EXPORTED[name])
    try:
        found = Run(route, policy=POLICY, fail=rules, **variables)
        check(found, reference(route, earned(found, code), **variables), {name, *lacking})
    except (Difference, AssertionError) as difference:
        return f"{name}, call {calls}, result {code}: {difference}"
    return None


def called(function, case):
    return function(*case)


def all_of(function, cases):
    """Runs the cases, two at a time; fails with the first few things that are wrong."""
    reference()
    with ProcessPoolExecutor(max_workers=2) as pool:
        found = pool.map(called, [function] * len(cases), cases, chunksize=8)
        wrong = [text for text in found if text]
    print(f"# {len(cases)} runs, {len(wrong)} of them wrong", flush=True)
    expect(not wrong, f"{len(wrong)} of {len(cases)}:\n" + "\n".join(wrong[:400 if LONG else 4]))


def symbols_of_names():
    return {symbol: name for name, symbols in EXPORTED.items() for symbol in symbols}


def numbers_of_calls(**variables):
    """How often the library calls each of its functions when nothing fails."""
    found, of_symbol = {name: 0 for name in EXPORTED}, symbols_of_names()
    for line in Run(policy=POLICY, **variables).record.lines():
        symbol = record.symbol_of(line)
        if symbol in of_symbol and " route=resolved" in line:
            found[of_symbol[symbol]] += 1
    return found


def places_by_reason(**variables):
    """For each function of the library: the calls that are the first ones of their kind, made on
    behalf of another function of the application each."""
    found = {name: {} for name in EXPORTED}
    counts_, of_symbol = Counter(), symbols_of_names()
    run_ = Run(policy=POLICY, **variables).record
    for group in [run_.outside, *run_.groups]:
        for line in group.lines:
            name = of_symbol.get(record.symbol_of(line))
            if name and " route=resolved" in line:
                counts_[name] += 1
                found[name].setdefault(group.symbol, counts_[name])
    return {name: set(calls.values()) for name, calls in found.items()}


def places(count, first=()):
    """Which calls fail in turn: all in the long run, else the first ones, and some of the rest."""
    if LONG:
        return range(1, count + 1)
    chosen = {1, 2, 3, count, *first}
    step = 5
    while step <= count:
        chosen.add(step)
        step = step * 8 // 5
    return sorted(place for place in chosen if 0 < place <= count)


@test
def a_policy_changes_attributes_of_launches_and_nothing_else():
    for route in ROUTES:
        check(Run(route, policy=POLICY), reference(route))


@test
def a_policy_that_only_observes_changes_nothing():
    for route in ROUTES:
        found, wanted = Run(route, policy=POLICY, CUDAPOLICY_MODE="observe"), reference(route)
        check(found, wanted, gate=1)  # while observing every launch is looked at
        for group, other in zip(found.record.groups, wanted.record.groups):
            if group.symbol in record.LAUNCHES | record.CREATIONS and other.lines:
                lines = [record.plain(line) for line in group.lines]
                expect(record.plain(other.lines[0]) in lines, f"changed\n{group}")
            writes = [line for line in group.lines if " route=resolved" in line
                      and record.symbol_of(line) in ("cuStreamSetAttribute",
                                                     "cuGraphKernelNodeSetAttribute")]
            expect(route != "symbols" or not writes, f"a write\n{group}")


@test
def a_function_that_always_fails_is_not_seen_by_the_application():
    cases = [(name, "*", code) for name in EXPORTED for code in CODES]
    all_of(fault, cases[::3] if SANITIZER else cases)


@test
def a_call_that_fails_once_is_not_seen_by_the_application():
    numbers = numbers_of_calls()
    unused = [name for name, count in numbers.items() if count == 0]
    print(f"# not called by this application: {', '.join(unused) or 'none'}")
    cases, first = [], places_by_reason()
    for name, count in numbers.items():
        for index, place in enumerate(places(count, first[name])):
            codes = CODES if LONG else (CODES[(index * 5) % len(CODES)],)
            cases += [(name, place, code) for code in codes]
    all_of(fault, cases)


@test
def calls_that_fail_from_some_point_on_are_not_seen_by_the_application():
    cases = []
    for name, count in numbers_of_calls().items():
        for index, place in enumerate((2, count // 2)):
            if 1 < place <= count:
                cases.append((name, f"{place}+", CODES[(index * 3 + len(cases)) % len(CODES)]))
    all_of(fault, cases)


def absence(names):
    hidden = {"RECORDING_DRIVER_HIDE": ",".join(names)}
    try:
        check(Run(policy=POLICY, **hidden), reference(**hidden), names)
    except (Difference, AssertionError) as difference:
        return f"without {', '.join(names)}: {difference}"
    return None


def fault_on(machine, name, calls, code):
    variables = {"RECORDING_DRIVER_" + key: value for key, value in MACHINES[machine].items()}
    problem = fault(name, calls, code, lacking=LACKING.get(machine, ()), **variables)
    return problem and f"{machine}: {problem}"


@test
def faults_on_other_machines_are_not_seen_by_the_application():
    """Of each function that is called another number of times there; in the long run, of all."""
    cases, usual = [], numbers_of_calls()
    for machine, keys in MACHINES.items():
        variables = {"RECORDING_DRIVER_" + key: value for key, value in keys.items()}
        check(Run(policy=POLICY, **variables), reference(**variables), LACKING.get(machine, ()))
        for name, count in numbers_of_calls(**variables).items():
            if count and (LONG or count != usual[name]):
                single = places(count) if LONG else [(count + 1) // 2]
                for index, calls in enumerate(["*", f"{count // 3 + 1}+", *single]):
                    cases.append((machine, name, calls, CODES[(index * 5 + len(cases)) % len(CODES)]))
    all_of(fault_on, cases)


def fault_by_resolver(route, name, calls, code):
    return fault(name, calls, code, route)


@test
def faults_beside_an_application_that_has_the_same_pointers_are_not_seen_by_it():
    """With cuGetProcAddress the library's pointers are the application's: so only functions that the
    application does not call."""
    cases = []
    for route in ROUTES[1:]:
        used = {record.symbol_of(line) for line in reference(route).record.lines()}
        names = [name for name, symbols in EXPORTED.items() if not used & set(symbols)]
        cases += [(route, name, calls, code) for name in names
                  for calls, code in (("*", 801), ("1", 1), ("2+", 912))]
    all_of(fault_by_resolver, cases)


@test
def functions_that_the_driver_lacks_are_not_missed_by_the_application():
    # Without cuStreamDestroy the application itself takes another way: a capture that it wants to
    # end by destroying its stream goes on.
    cases = [([name],) for name in EXPORTED if name not in ("cuDriverGetVersion", "cuStreamDestroy")]
    cases.append((["cuFuncGetName", "cuKernelGetName"],))
    all_of(absence, cases)


if __name__ == "__main__":
    main()
