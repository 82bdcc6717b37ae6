# SPDX-License-Identifier: Apache-2.0
"""Looking names up: what dlsym and cuGetProcAddress answer, to whom, and that other preloads still do."""

import os
import re

import support
from support import expect, expect_equal, test

PROGRAM = "routes_program"


def library(name):
    return support.program(f"libroutes_{name}.so")


def ends_well(result, launches=None):
    expect_equal(result.status, 0, result)
    if launches is not None:
        expect_equal(len(result.launches()), launches, result)
    return result


def in_remote_domain(result):
    for call in result.launches():
        expect_equal(call.attribute("MEM_SYNC_DOMAIN"), "1", result)


# ---- RTLD_NEXT, RTLD_DEFAULT, handles --------------------------------------------------------------

def scope(mode, **options):
    result = support.run("routes_scope", mode, library("scope_library"), **options)
    expect_equal(result.status, 0, result)
    return result.out.splitlines()


def without_next_of_cuda(lines):
    """RTLD_NEXT for a name of the table reaches the preloaded definition: a limit, see its test. An
    error names the object that asked, which in the program's case is the preloaded library."""
    return [re.sub(r"^(program default (?:__)?cu.*: )/.*: undefined", r"\1undefined", line)
            for line in lines if not re.match(r"\w+ next (cu[A-Z]|cuda|__cuda)", line)]


@test
def next_and_default_are_relative_to_the_program_and_to_a_local_library():
    expect_equal(without_next_of_cuda(scope("local")),
                 without_next_of_cuda(scope("local", preload=())))


@test
def next_and_default_are_relative_to_the_program_and_to_a_global_library():
    expect_equal(without_next_of_cuda(scope("global")),
                 without_next_of_cuda(scope("global", preload=())))


@test
def next_and_default_are_the_same_when_switched_off():
    found = scope("local", env={"CUDAPOLICY_MODE": "off"})
    expect_equal(without_next_of_cuda(found), without_next_of_cuda(scope("local", preload=())))


@test
def a_tool_is_looked_for_behind_the_library_that_asks():
    lines = scope("local")
    expect("library next tool_start: libroutes_scope_needed.so" in lines, "\n".join(lines))


@test
def a_function_of_the_driver_is_not_visible_where_no_driver_is():
    for mode in ("local", "global"):
        for line in scope(mode):
            if re.match(r"\w+ (default|handle) (cu[A-Z]|cuda|__cuda)", line):
                expect("undefined symbol" in line, line)


@test
def limit_next_finds_the_preloaded_definition_of_a_name_of_the_table():
    expect("program next cuLaunchKernel: libcudapolicy.so" in scope("local"), "not any more")


@test
def limit_a_weak_reference_is_bound_to_the_preloaded_definition():
    expect_equal(support.run(PROGRAM, "weak", preload=()).out.split(), ["not", "there"])
    result = support.run(PROGRAM, "weak")
    # CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND, not a call through NULL or into ourselves.
    expect_equal(result.out.split(), ["there", "302"], result)
    expect("cuLaunchKernel was called, but no loaded library has it" in result.err, "said", result)


@test
def dlsym_answers_the_same_under_each_of_its_versions():
    result = ends_well(support.run(PROGRAM, "versions"))
    expect(int(result.out) >= 1, "no version at all", result)


@test
def dlerror_tells_of_failures_and_only_of_those():
    ends_well(support.run(PROGRAM, "dlerror"))
    ends_well(support.run(PROGRAM, "dlerror", policy=None))
    ends_well(support.run(PROGRAM, "dlerror", preload=()))


@test
def dlerror_does_not_tell_of_what_the_library_looked_up_in_vain():
    ends_well(support.run(PROGRAM, "dlerror-hidden", env={
        "RECORDING_DRIVER_HIDE": "cuGetProcAddress,cuGetProcAddress_v2"}))


@test
def a_driver_that_was_closed_and_loaded_again_is_reached():
    for policy in (support.REMOTE, None):
        result = ends_well(support.run(PROGRAM, "reload", policy=policy), launches=1)
        if policy:
            in_remote_domain(result)
    ends_well(support.run(PROGRAM, "reload", preload=()), launches=1)


@test
def names_that_are_like_those_of_the_table_are_left_alone():
    ends_well(support.run(PROGRAM, "lookalike", library("lookalike")))


@test
def a_program_with_its_own_cuLaunchKernel_gets_its_own():
    ends_well(support.run("routes_own_launch"))
    ends_well(support.run("routes_own_launch", env={"CUDAPOLICY_STRICT": "1"}))


@test
def functions_of_the_program_under_our_names_are_not_called():
    result = ends_well(support.run("routes_own_symbols"), launches=1)
    in_remote_domain(result)
    expect(result.report is not None, "no report", result)


# ---- cuGetProcAddress ------------------------------------------------------------------------------

def resolver_test(form, **variables):
    result = support.run("routes_resolver", form, env={"RECORDING_DRIVER_SKIP": "cuGetProcAddress,"
                                                       "cuGetProcAddress_v2", **variables})
    expect_equal(result.status, 0, result)


for form in ("v1", "v2"):
    for version in ("11040", "12000", "12040", "13000", "13050"):
        if (form, version) == ("v2", "11040"):
            continue  # there is none yet

        def check(form=form, version=version):
            resolver_test(form, RECORDING_DRIVER_VERSION=version)
        check.__name__ = f"cuGetProcAddress_{form}_answers_as_the_driver_{version}_does"
        test(check)


@test
def an_unknown_variant_is_passed_on_and_reported():
    result = ends_well(support.run(PROGRAM, "future", preload=(support.LIBRARY, library("future"))),
                       launches=1)
    in_remote_domain(result)
    expect("the unknown variant was called" in result.err, "passed on", result)
    for name in ("cuLaunchKernel", "cuStreamCreate"):
        expect(any(f"{name}, version 13060" in note for note in result.notes()), name, result)


# ---- the driver asks, too --------------------------------------------------------------------------

@test
def what_the_driver_looks_up_for_itself_is_its_own():
    for program in (PROGRAM, "routes_program_linked"):
        result = ends_well(support.run(program, "launch", "2",
                                       env={"RECORDING_DRIVER_CALL_OUT": "1"}), launches=2)
        in_remote_domain(result)
        expect_equal(len(result.named("cuInit")), 2, result)


@test
def the_loader_part_of_wsls_driver_gets_the_drivers_own_functions():
    for asker in (library("asker"), library("asker_linked")):
        with support.Folder() as folder:
            path = os.path.join(folder, "libcuda_loader.so")
            os.symlink(asker, path)
            expect_equal(support.run("routes_host", "local", path).out, "the driver's\n")
        expect_equal(support.run("routes_host", "local", asker).out, "a wrapper\n")


# ---- other preloads --------------------------------------------------------------------------------

def said_by_interposer(result):
    match = re.search(r"interposer: (\d+) requests, (\d+) launches", result.err)
    expect(match is not None, "the interposer says nothing", result)
    return int(match.group(1)), int(match.group(2))


for where, order in (("before", 1), ("after", 0)):
    for kind in ("interpose", "interpose_versioned"):
        def chain(order=order, kind=kind):
            preload = (library(kind), support.LIBRARY) if order else (support.LIBRARY, library(kind))
            result = ends_well(support.run(PROGRAM, "launch", "3", preload=preload), launches=3)
            in_remote_domain(result)
            requests, _ = said_by_interposer(result)
            expect(requests > 0, "the other dlsym saw no request", result)
        chain.__name__ = f"a_second_dlsym_{where}_ours_stays_in_the_chain_{kind}"
        test(chain)

        def wraps(order=order, kind=kind):
            preload = (library(kind), support.LIBRARY) if order else (support.LIBRARY, library(kind))
            result = ends_well(support.run(PROGRAM, "launch", "3", preload=preload,
                                           policy=None, env={"INTERPOSE_LAUNCHES": "1"}), launches=3)
            expect_equal(said_by_interposer(result)[1], 3, result)
            result = ends_well(support.run(PROGRAM, "launch", "3", preload=preload,
                                           env={"INTERPOSE_LAUNCHES": "1"}), launches=3)
            in_remote_domain(result)
            expect_equal(result.route_calls("cuLaunchKernel"), 3, result)
        wraps.__name__ = f"a_second_preload_{where}_ours_wraps_launches_{kind}"
        test(wraps)


def metered(program, scenario, order, **environment):
    meter = library("meter")
    preload = (meter, support.LIBRARY) if order else (support.LIBRARY, meter)
    result = ends_well(support.run(program, *scenario, preload=preload, env=environment), launches=3)
    in_remote_domain(result)
    return int(re.search(r"meter: (\d+) launches", result.err).group(1))


@test
def a_preload_before_ours_that_exports_launches_sees_each_and_so_do_we():
    for way in ({"METER_NEXT": "1"}, {}):
        expect_equal(metered("routes_program_linked", ("launch", "3"), 1, **way), 3)
        expect_equal(metered("routes_program_linked", ("default",), 1, **way), 3)


@test
def a_preload_behind_ours_that_exports_launches_does_no_harm():
    # Changed launches go to the driver itself, so how many it sees is not our promise.
    for way in ({"METER_NEXT": "1"}, {}):
        metered("routes_program_linked", ("launch", "3"), 0, **way)
        metered("routes_program_linked", ("default",), 0, **way)


@test
def next_and_default_stay_relative_to_the_caller_with_another_dlsym_behind_ours():
    # A C function in between changes who the caller is: that one's fault is not made worse.
    both = scope("local", preload=(support.LIBRARY, library("interpose")))
    alone = scope("local", preload=(library("interpose"),))
    expect_equal([line for line in both if re.search(r"(tool_start|malloc|no_such)", line)
                  and "handle" in line],
                 [line for line in alone if re.search(r"(tool_start|malloc|no_such)", line)
                  and "handle" in line])


@test
def an_allocator_that_calls_dlsym_inside_malloc_works_before_and_after_ours():
    for preload in ((library("malloc_dlsym"), support.LIBRARY),
                    (support.LIBRARY, library("malloc_dlsym"))):
        for program in (PROGRAM, "routes_program_linked"):
            result = ends_well(support.run(program, "launch", "2", preload=preload), launches=2)
            in_remote_domain(result)


if __name__ == "__main__":
    support.main()
