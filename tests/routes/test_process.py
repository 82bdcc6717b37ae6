# SPDX-License-Identifier: Apache-2.0
"""Processes: those that never ask for CUDA, how others begin and end, threads, fork, the switches."""

import os
import re
import signal
import stat

import support
from support import expect, expect_equal, test

PROGRAM = "routes_program"
PROGRAMS = (PROGRAM, "routes_program_linked")

BAD_POLICY = """[policy]
version = 1

[kernel all]
nmae = *
mem_sync_domain = romote
"""


def library(name):
    return support.program(f"lib{name}.so")


def grids(result):
    """The blocks of each launch that reached the driver: which launch of the program it was."""
    return sorted(int(call["grid"].split(",")[0]) for call in result.launches())


def in_remote_domain(result):
    for call in result.launches():
        expect_equal(call.attribute("MEM_SYNC_DOMAIN"), "1", result)


def untouched(result, count):
    """The launches are as the program made them."""
    expect_equal(len(result.launches()), count, result)
    for call in result.launches():
        expect_equal(call.name, "cuLaunchKernel", result)


def launches_in(report):
    return report["launches"]


def counted(result):
    """What the counting library saw."""
    return dict(re.findall(r"^count: (\S+) (\d+)$", result.err, re.MULTILINE))


# ---- nothing asked, nothing done -------------------------------------------------------------------

@test
def a_process_that_never_asks_for_cuda_is_untouched():
    support.not_with("any", "calls the C library itself")
    result = support.run(PROGRAM, "nothing", preload=(support.LIBRARY, library("routes_count")),
                         env={"CUDAPOLICY_STRICT": "1", "CUDAPOLICY_LOG": "debug",
                              "CUDAPOLICY_LOG_FILE": "@FOLDER@/log"}, policy=BAD_POLICY)
    expect_equal(result.status, 0, result)
    # At the end: is there a driver that nobody asked?
    expect_equal(counted(result), {"dl_iterate_phdr": "1"}, result)
    expect_equal(result.reports, [], result)
    expect_equal(result.err, "count: dl_iterate_phdr 1\n", result)
    expect_equal(result.read("log"), "", result)


@test
def the_counting_library_sees_what_a_cuda_process_does():
    support.not_with("any", "calls the C library itself")
    result = support.run(PROGRAM, "launch", preload=(support.LIBRARY, library("routes_count")))
    for name in ("secure_getenv", "__register_atfork", "dladdr1", "mmap64", "calloc"):
        expect(name in counted(result), name, result)


@test
def no_process_waits_for_another():
    result = support.run(PROGRAM, "launch", preload=(support.LIBRARY, library("routes_count")))
    locks = {"flock", "lockf", "lockf64"} & set(counted(result))
    expect_equal(locks, set(), result)


@test
def a_process_that_asks_for_cuda_but_launches_nothing_leaves_no_file():
    result = support.run(PROGRAM, "init")
    expect_equal(result.status, 0, result)
    expect_equal(result.reports, [], result)
    expect_equal(result.err, "", result)


@test
def no_cuda_call_is_made_before_the_programs_own():
    for program in PROGRAMS:
        result = support.run(program, "init")
        before = [call.name for call in result.calls]
        before = before[:before.index("cuInit")]
        expect(set(before) <= {"cuGetProcAddress", "cuGetProcAddress_v2"}, str(before), result)


@test
def the_library_opens_nothing_that_an_executed_program_inherits():
    result = support.run(PROGRAM, "descriptors")
    expect_equal(result.status, 0, result)
    for line in result.out.splitlines():
        expect(line.endswith("cloexec"), line, result)


@test
def without_a_policy_or_a_report_launches_go_straight_to_the_driver():
    for program in PROGRAMS:
        result = support.run(program, "launch", "3", policy=None)
        untouched(result, 3)
        plain = support.run(program, "launch", "3", policy=None, preload=())
        expect_equal([call["line"] for call in result.calls],
                     [call["line"] for call in plain.calls], result)
        expect_equal(result.err, "", result)


# ---- the launch path -------------------------------------------------------------------------------

@test
def a_known_launch_asks_the_c_library_for_nothing():
    support.not_with("any", "calls the C library itself")
    for policy in (support.REMOTE, "[policy]\nversion = 1\n[kernel one]\nname = other\npriority = 1\n",
                   "[policy]\nversion = 1\n[kernel one]\nlibrary = routes_*\npriority = 1\n"):
        result = support.run(PROGRAM, "sites", preload=(support.LIBRARY, library("routes_count")),
                             policy=policy)
        expect_equal(result.status, 0, result)
        expect_equal(len(result.launches()), 8192)
        expect_equal(counted(result), {}, result)


@test
def a_known_launch_asks_the_driver_for_nothing():
    result = support.run(PROGRAM, "launch", "10")
    names = [call.name for call in result.calls]
    last = len(names) - 1 - names[::-1].index("cuLaunchKernelEx")
    expect_equal(names[last - 8:last + 1], ["cuLaunchKernelEx"] * 9, result)


@test
def errno_is_the_programs_own():
    for program in PROGRAMS:
        expect_equal(support.run(program, "errno").status, 0)


@test
def the_programs_attributes_are_copied_and_never_written():
    result = support.run(PROGRAM, "attributes")
    expect_equal(result.status, 0, result)
    call, = result.launches()
    expect_equal(call["attributes"],
                 "CLUSTER_DIMENSION:2/1/1,CLUSTER_SCHEDULING_POLICY_PREFERENCE:1,MEM_SYNC_DOMAIN:1,"
                 "MEM_SYNC_DOMAIN_MAP:0/1,PROGRAMMATIC_STREAM_SERIALIZATION:0,PRIORITY:0", result)
    expect("arguments=extra" in call["line"], "arguments", result)


@test
def a_policy_whose_rule_sets_nothing_changes_nothing():
    result = support.run(PROGRAM, "attributes",
                         policy="[policy]\nversion = 1\n[kernel all]\nname = *\n", bad_policy=True)
    plain = support.run(PROGRAM, "attributes", preload=())
    expect_equal([call["line"] for call in result.launches()],
                 [call["line"] for call in plain.launches()], result)


@test
def wrong_calls_get_the_drivers_answers():
    for program in PROGRAMS:
        with_policy = support.run(program, "null", policy=support.REMOTE_STREAMS)
        plain = support.run(program, "null", preload=())
        expect_equal(with_policy.status, 0, with_policy)
        expect_equal(with_policy.out.splitlines(), plain.out.splitlines(), with_policy)


@test
def calls_before_cuInit_fail_as_they_do_and_spoil_nothing():
    for program in PROGRAMS:
        result = support.run(program, "early", policy=support.REMOTE_STREAMS)
        plain = support.run(program, "early", preload=())
        expect_equal(result.out, plain.out, result)
        expect_equal(result.status, 0, result)
        last = result.launches()[-1]
        expect_equal((last["result"], last.attribute("MEM_SYNC_DOMAIN")), ("0", "1"), result)
        expect("gpu0" in result.report["facts"], "the devices are in the report", result)


@test
def a_capture_sees_only_calls_that_are_legal_in_it():
    result = support.run(PROGRAM, "capture", policy=support.REMOTE_STREAMS)
    expect_equal(result.status, 0, result)
    inside, found = False, set()
    for call in result.calls:
        if call.name == "cuStreamBeginCapture_v2":
            inside = True
        elif call.name == "cuStreamEndCapture":
            inside = False
        elif inside:
            found.add(call.name)
    expect(found <= {"cuLaunchKernelEx", "cuStreamIsCapturing", "cuStreamGetCaptureInfo_v2",
                     "cuStreamGetCaptureInfo_v3", "cuFuncGetName", "cuFuncGetModule",
                     "cuKernelGetName", "cuFuncGetAttribute", "cuGetProcAddress_v2",
                     "cuDriverGetVersion", "cuCtxGetDevice", "cuDeviceGetAttribute",
                     "cuCtxGetCurrent"}, str(found), result)
    in_remote_domain(result)


@test
def the_current_context_is_never_changed():
    for program in PROGRAMS:
        result = support.run(program, "context", policy=support.REMOTE_STREAMS)
        expect_equal(result.status, 0, result)
        changes = [call.name for call in result.calls
                   if re.match(r"cuCtx(Set|Push|Pop|Create|Destroy)", call.name)]
        expect_equal(changes, ["cuCtxSetCurrent"], result)


@test
def a_handle_that_comes_back_for_another_kernel_is_decided_anew():
    policy = "[policy]\nversion = 1\n[kernel one]\nname = other\npriority = -1\n"
    for version in ("13000", "12000", "11080"):
        result = support.run(PROGRAM, "modules", "20", policy=policy,
                             env={"RECORDING_DRIVER_VERSION": version})
        expect_equal(result.status, 0, result)
        for call in result.launches():
            expect_equal(call.attribute("PRIORITY"), "-1" if call["kernel"] == "other" else None,
                         result)
        expect_equal(len(result.launches()), 20, result)


@test
def names_are_known_on_drivers_that_do_not_tell_them():
    for version in ("12000", "11080"):
        result = support.run(PROGRAM, "launch", "2",
                             policy="[policy]\nversion = 1\n[kernel one]\nname = program\n"
                                    "priority = -1\n",
                             env={"RECORDING_DRIVER_VERSION": version})
        expect_equal(result.status, 0, result)
        expect_equal([call.attribute("PRIORITY") for call in result.launches()], ["-1", "-1"], result)
        expect_equal(result.named("cuFuncGetName"), [], result)


# ---- old drivers, no driver ------------------------------------------------------------------------

@test
def a_driver_before_11_8_cannot_take_attributes_and_the_report_says_so():
    result = support.run(PROGRAM, "launch", "2", env={"RECORDING_DRIVER_VERSION": "11040"})
    expect_equal(result.status, 0, result)
    untouched(result, 2)
    expect(result.report is not None, "no report", result)


@test
def a_driver_without_cuGetProcAddress_is_not_attached():
    for program in PROGRAMS:
        hidden = {"RECORDING_DRIVER_HIDE": "cuGetProcAddress,cuGetProcAddress_v2"}
        result = support.run(program, "launch", "2", env=hidden)
        untouched(result, 2)
        expect("not attached: the driver's functions cannot be looked up" in result.err, "", result)
        strict = support.run(program, "launch", "2", env={"CUDAPOLICY_STRICT": "1", **hidden})
        expect_equal(strict.status, 78, strict)
        expect_equal([call.name for call in strict.calls], [], strict)


@test
def without_a_driver_a_program_fails_as_it_does():
    nowhere = {"LD_LIBRARY_PATH": "/nonexistent"}
    result = support.run(PROGRAM, "launch", env=nowhere)
    plain = support.run(PROGRAM, "launch", env=nowhere, preload=())
    expect_equal((result.status, result.out, result.err), (plain.status, plain.out, plain.err),
                 result)


# ---- ends ------------------------------------------------------------------------------------------

def complete_report(result, launches):
    expect(result.report is not None, "no report", result)
    expect_equal(launches_in(result.report), launches, result)
    expect_equal(result.report["complete"], True, result)


def counters_of(result):
    """The counters' files that were left."""
    return [name for name in result.files if ".counters" in name]


@test
def a_program_that_returns_from_main_leaves_a_complete_report():
    for program in PROGRAMS:
        result = support.run(program, "end", "return")
        complete_report(result, 3)
        expect_equal(counters_of(result), [], result)


@test
def launches_in_handlers_and_destructors_at_exit_are_made():
    for program in PROGRAMS:
        result = support.run(program, "end", "destructor")
        expect_equal(result.status, 0, result)
        expect_equal(grids(result), [1, 2, 3, 8, 9], result)
        in_remote_domain(result)
        complete_report(result, 5)


@test
def launches_in_a_librarys_destructor_after_ours_do_no_harm():
    result = support.run("routes_host", "local", library("routes_late"))
    expect_equal(result.status, 0, result)
    expect_equal(grids(result), [1, 9], result)
    in_remote_domain(result)
    expect(result.report is not None, "no report", result)


for how, status in (("_exit", 0), ("quick_exit", 0), ("abort", -signal.SIGABRT),
                    ("kill", -signal.SIGKILL)):
    def end(how=how, status=status):
        for program in PROGRAMS:
            result = support.run(program, "end", how, counters=True)
            expect_equal(result.status, status, result)
            expect_equal(grids(result), [1, 2, 3], result)
            report = result.report
            if report is None:
                report = result.counters[0]
            expect_equal(launches_in(report), 3, result)
    end.__name__ = f"the_counters_of_a_process_that_ends_by_{how}_are_all_there"
    test(end)


@test
def an_executed_program_has_a_report_of_its_own():
    for program in PROGRAMS:
        result = support.run(program, "end", "exec", counters=True)
        expect_equal(result.status, 0, result)
        expect_equal(sorted(grids(result)), [1, 1, 2, 2, 3], result)
        in_remote_domain(result)
        totals = sorted([launches_in(report) for report in result.reports]
                        + [launches_in(report) for report in result.counters])
        expect_equal(totals, [2, 3], result)


@test
def spawned_programs_have_reports_of_their_own():
    for program in PROGRAMS:
        result = support.run(program, "spawn", env={"CUDAPOLICY_REPORT": "@FOLDER@/report-%p.json"})
        expect_equal(result.status, 0, result)
        expect_equal(grids(result), [1, 1, 1, 2, 2], result)
        in_remote_domain(result)
        expect_equal(sorted(launches_in(report) for report in result.reports), [1, 2, 2], result)


@test
def parent_and_child_report_their_own_launches():
    for program in PROGRAMS:
        for when in ("before", "after"):
            result = support.run(program, "fork", when,
                                 env={"CUDAPOLICY_REPORT": "@FOLDER@/report-%p.json"})
            expect_equal(result.status, 0, result)
            expect_equal(grids(result), [1, 2, 3, 4], result)
            in_remote_domain(result)
            expect_equal([launches_in(report) for report in result.reports], [2, 2], result)
            expect_equal(counters_of(result), [], result)


@test
def a_fork_before_cuInit_leaves_both_able_to_use_cuda():
    for program in PROGRAMS:
        result = support.run(program, "fork", "before",
                             env={"RECORDING_DRIVER_FORK_REFUSED": "1"})
        expect_equal(result.status, 0, result)
        expect_equal(grids(result), [1, 2, 3, 4], result)


@test
def a_child_that_launches_nothing_leaves_no_report():
    for program in PROGRAMS:
        result = support.run(program, "fork-idle",
                             env={"CUDAPOLICY_REPORT": "@FOLDER@/report-%p.json"})
        expect_equal(result.status, 0, result)
        expect_equal([launches_in(report) for report in result.reports], [1], result)


# ---- threads ---------------------------------------------------------------------------------------

@test
def the_first_calls_of_64_threads_at_once_are_all_decided():
    for program in PROGRAMS:
        result = support.run(program, "first")
        expect_equal(result.status, 0, result)
        expect_equal(len(result.launches()), 64, result)
        in_remote_domain(result)
        complete_report(result, 64)


@test
def a_process_may_end_while_threads_launch():
    for program in PROGRAMS:
        for _ in range(3):
            result = support.run(program, "exit", env={"RECORDING_DRIVER_LOG": ""})
            expect_equal(result.status, 0, result)
            expect(result.report is not None, "no report", result)


@test
def a_process_may_fork_while_threads_launch():
    for program in PROGRAMS:
        result = support.run(program, "fork-amid", "20", env={"RECORDING_DRIVER_LOG": ""})
        expect_equal(result.status, 0, result)


def constructor(where, linked):
    plugin = library("routes_constructor_linked" if linked else "routes_constructor")
    result = support.run(PROGRAMS[linked], "constructor", plugin, limit=20,
                         preload=(support.LIBRARY, library("routes_threads")),
                         env={"THREADS_HOLD": where})
    expect_equal(result.status, 0, result)
    expect_equal(grids(result), [1, 5], result)
    in_remote_domain(result)
    complete_report(result, 2)


@test
def a_constructor_under_dlopen_can_use_cuda_while_a_thread_looks_up():
    constructor("dlsym", False)
    constructor("dlsym", True)


@test
def a_constructor_under_dlopen_can_use_cuda_while_a_thread_reads_the_policy():
    constructor("gethostname", False)
    constructor("gethostname", True)


@test
def a_child_forked_while_a_thread_reads_the_policy_does_not_hang():
    result = support.run(PROGRAM, "fork-in-start", limit=20,
                         preload=(support.LIBRARY, library("routes_threads")),
                         env={"THREADS_HOLD": "gethostname",
                              "CUDAPOLICY_REPORT": "@FOLDER@/report-%p.json"})
    expect_equal(result.status, 0, result)
    expect_equal(grids(result), [1, 2], result)
    in_remote_domain(result)
    expect_equal([launches_in(report) for report in result.reports], [1, 1], result)


# ---- the switches ----------------------------------------------------------------------------------

def switched(value, **variables):
    return support.run(PROGRAM, "launch", "2", bad_policy=True,
                       env={"CUDAPOLICY_MODE": value, **variables})


@test
def off_is_as_if_not_preloaded():
    for program in PROGRAMS:
        plain = support.run(program, "launch", "2", preload=())
        result = support.run(program, "launch", "2", env={"CUDAPOLICY_MODE": "off"})
        expect_equal([call["line"] for call in result.calls],
                     [call["line"] for call in plain.calls], result)
        expect_equal((result.status, result.out, result.err), (0, "", ""), result)
        expect_equal(result.reports, [], result)


@test
def off_reads_no_policy_and_complains_of_none():
    result = support.run(PROGRAM, "launch", "2", policy=BAD_POLICY,
                         env={"CUDAPOLICY_MODE": "off", "CUDAPOLICY_STRICT": "1"})
    expect_equal((result.status, result.err), (0, ""), result)
    untouched(result, 2)


@test
def the_mode_is_read_by_value():
    in_remote_domain(switched("enforce"))
    in_remote_domain(switched(""))
    untouched(switched("observe"), 2)
    untouched(switched("off"), 2)
    for value in ("OFF", "0", "no", "offf"):
        result = switched(value)
        expect_equal(result.status, 0, result)
        expect(f"CUDAPOLICY_MODE={value}: the modes are enforce, observe and off" in result.err,
               "said", result)
        in_remote_domain(result)
        strict = switched(value, CUDAPOLICY_STRICT="1")
        expect_equal(strict.status, 78, strict)
        expect_equal(strict.launches(), [], strict)


@test
def what_the_program_does_to_its_environment_later_changes_nothing():
    result = support.run(PROGRAM, "environment")
    expect_equal(result.status, 0, result)
    in_remote_domain(result)


@test
def a_policy_with_mistakes_is_complained_of_once_and_the_program_runs():
    for program in PROGRAMS:
        result = support.run(program, "launch", "2", policy=BAD_POLICY, bad_policy=True)
        expect_equal(result.status, 0, result)
        untouched(result, 2)
        expect_equal(len(re.findall(r"(?m)^cudapolicy\(\d+\): error: \S*policy.ini:5:1: "
                                    "(?!error)", result.err)), 1, result)
        expect_equal(len(re.findall("policy.ini:6:", result.err)), 1, result)
        expect_equal(result.err.count("the program runs without a policy"), 1, result)
        expect_equal(result.out, "", result)


@test
def strict_ends_the_process_before_its_first_cuda_call():
    for program in PROGRAMS:
        for policy, environment in ((BAD_POLICY, {}),
                                    (support.REMOTE, {"CUDAPOLICY_FILE": "/nonexistent.ini"}),
                                    (support.REMOTE, {"CUDAPOLICY_LOG": "loud"}),
                                    (support.REMOTE, {"CUDAPOLICY_REPORT": "@FOLDER@/%x"})):
            result = support.run(program, "launch", "2", policy=policy, bad_policy=True,
                                 env={"CUDAPOLICY_STRICT": "1", **environment})
            expect_equal(result.status, 78, result)
            expect("cudapolicy(" in result.err, "said", result)
            made = [call.name for call in result.calls if "GetProcAddress" not in call.name]
            expect_equal(made, [], result)


@test
def a_missing_policy_is_complained_of_and_the_program_runs():
    result = support.run(PROGRAM, "launch", "2", bad_policy=True,
                         env={"CUDAPOLICY_FILE": "/nonexistent.ini"})
    expect_equal(result.status, 0, result)
    untouched(result, 2)
    expect("/nonexistent.ini" in result.err, "said", result)


@test
def strict_means_1_and_nothing_else():
    for value, status in (("0", 0), ("", 0), ("1", 78), ("yes", 78)):
        result = support.run(PROGRAM, "launch", "2", policy=BAD_POLICY, bad_policy=True,
                             env={"CUDAPOLICY_STRICT": value})
        expect_equal(result.status, status, result)


@test
def the_log_goes_to_its_file_and_its_level_is_heeded():
    result = support.run(PROGRAM, "launch", "2", policy=BAD_POLICY, bad_policy=True,
                         env={"CUDAPOLICY_LOG_FILE": "@FOLDER@/log-%p"})
    names = [name for name in result.files if name.startswith("log-")]
    expect_equal(len(names), 1, result)
    expect("error: " in result.read(names[0]), result.read(names[0]), result)
    expect_equal(result.err, "", result)
    expect_equal(stat.S_IMODE(result.modes[names[0]]), 0o600, result)
    debug = support.run("routes_kernels_static", "kernel", env={"CUDAPOLICY_LOG": "debug"})
    expect("debug: " in debug.err, "nothing at level debug", debug)
    expect_equal(support.run(PROGRAM, "launch", "2").err, "")


@test
def nothing_is_ever_written_to_stdout():
    for level in ("error", "debug"):
        for mode in ("enforce", "observe"):
            result = support.run(PROGRAM, "launch", "2", env={"CUDAPOLICY_LOG": level,
                                                             "CUDAPOLICY_MODE": mode})
            expect_equal(result.out, "", result)


# ---- what is not reached ---------------------------------------------------------------------------

@test
def a_driver_found_by_the_programs_own_search_path_is_reached():
    # As built, the program has the driver's folder in its RUNPATH.
    result = support.run("routes_program_linked", "launch", "2", env={"LD_LIBRARY_PATH": None})
    expect_equal(result.status, 0, result)
    expect_equal(grids(result), [1, 2], result)
    in_remote_domain(result)


@test
def limit_a_deeply_bound_library_is_not_reached_and_runs():
    support.not_with("any", "refuses RTLD_DEEPBIND")
    result = support.run("routes_host", "deep", support.program("libroutes_kernels_13_a.so"), "kernel",
                         env={"CUDAPOLICY_LOG": "info"})
    expect_equal(result.status, 0, result)
    expect_equal(len(result.launches()), 3, result)
    for call in result.launches():
        expect_equal(call.attribute("MEM_SYNC_DOMAIN"), None, result)
    expect_equal(result.reports, [], result)
    expect("libcuda is loaded, but none of its functions was asked for here" in result.err, "said",
           result)


@test
def limit_a_driver_in_a_namespace_of_its_own_is_not_reached_and_works():
    support.not_with("any", "its run-time library cannot be in another namespace")
    result = support.run(PROGRAM, "namespace")
    expect_equal(result.status, 0, result)


@test
def a_set_user_id_program_sees_none_of_our_environment():
    support.not_with("address", "its options cannot be read by such a program")
    if os.geteuid() != 0:
        raise support.Skip("needs root to make a set-user-ID program")
    with support.Folder() as folder:
        path = os.path.join(folder, "program")
        with open(support.program(PROGRAM), "rb") as source, open(path, "wb") as target:
            target.write(source.read())
        os.chown(path, 65534, 65534)
        os.chmod(path, 0o6755)
        os.chmod(folder, 0o755)
        if os.statvfs(folder).f_flag & os.ST_NOSUID:
            raise support.Skip("the file system has no set-user-ID programs")
        # The loader itself passes over a preload with a slash in its name, and LD_LIBRARY_PATH.
        result = support.run(path, "nothing", raw_path=True, policy=BAD_POLICY, bad_policy=True,
                             env={"CUDAPOLICY_STRICT": "1", "CUDAPOLICY_LOG": "debug"})
    expect_equal((result.status, result.err), (0, ""), result)


if __name__ == "__main__":
    support.main()
