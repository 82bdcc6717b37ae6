# SPDX-License-Identifier: Apache-2.0
"""Contexts that end with streams, graphs and events still there, made again, forked; and driver calls of the
library that fail: the program is told what it is told without the library, and nothing is left over."""

import itertools
from concurrent.futures import ThreadPoolExecutor

from told import BEGIN, KERNELS, SIDE, WHOLE, equal, expect, main, same, test

POLICY = KERNELS + "[stream placed]\nflags = non_blocking\npartition = side\ngraph_nodes = yes\n"

# Everything that has a partition: a stream, moved launches of each kind of stream, nodes.
USE = """
stream s0 1
stream s1 0
launch s0 plain
launch s1 to_side
launch s1 to_main form=kernel
launch null to_side
launch per_thread to_main
launch s0 to_main
begin s1
launch s1 to_side form=kernel
launch s1 plain
end s1 g0
graph g1
node n1 g1 to_side form=kernel
node n2 g1 to_main
instantiate x0 g0
instantiate x1 g1
replay x0 s1
replay x1 s0
about s0
about_node n1
"""

SMS = [SIDE, SIDE, 116, SIDE, 116, 116]


def used(ran, times=1):
    equal([sms for _, sms in ran.launches], SMS * times)
    equal([sms for _, sms in ran.replayed], [SIDE, WHOLE, SIDE, 116] * times)


CLEAN = ("destroy s0\ndestroy s1", "executable_destroy x0\nexecutable_destroy x1",
         "graph_destroy g0\ngraph_destroy g1", "unload\nunload_library")


@test
def a_context_is_released_after_and_before_what_is_in_it():
    for order in itertools.permutations(CLEAN):
        ran = same(BEGIN + USE + "\n".join(order) + "\nrelease 0\nstate 0\nlive\n" + BEGIN + USE
                   + "\n".join(order) + "\nrelease 0\nstate 0\nlive\n", POLICY)
        used(ran, 2)
    for order in itertools.permutations(CLEAN[:3]):
        for place in range(3):
            lines = order[:place] + ("unload\nunload_library\nrelease 0\nstate 0",) + order[place:]
            used(same(BEGIN + USE + "\n".join(lines) + "\nlive\n", POLICY))


@test
def a_context_that_is_held_twice_keeps_its_partitions():
    ran = same(BEGIN + "retain c1 0\n" + USE + "release 0\nlaunch s0 plain\nlaunch s1 to_side\nstate 0\n"
               + "\n".join(CLEAN) + "\nrelease 0\nstate 0\nlive\n", POLICY)
    equal([sms for _, sms in ran.launches], SMS + [SIDE, SIDE])
    equal(len(ran.calls("cuGreenCtxCreate")), 2)
    equal(len(ran.calls("cuGreenCtxDestroy")), 2)


@test
def a_reset_with_everything_there():
    again = "reset 0\nstate 0\nrelease 0\nstate 0\n"
    for times in (1, 2, 3):
        ran = same((BEGIN + USE + again) * times + BEGIN + USE + "\n".join(CLEAN) + "\nrelease 0\nlive\n", POLICY)
        used(ran, times + 1)
        equal(len(ran.calls("cuGreenCtxCreate")), 2 * (times + 1))


@test
def graphs_outlive_the_partitions_of_their_nodes():
    ran = same(BEGIN + USE + """
        reset 0
        about_node n1
        instantiate x2 g1
        release 0
        """, POLICY)
    equal({line["sms"] for line in ran.calls("cuGraphKernelNodeSetParams_v2", ours=True)}, {"16", "116", "132"})


@test
def a_device_is_reset_while_another_one_goes_on():
    """It is the other one's streams that are asked about afterwards."""
    script = """
        retain c1 1
        current c1
        load
        stream s5 1
        launch s5 plain
        """ + BEGIN + USE + """
        reset 1
        reset 9
        release 9
        about s0
        about_node n1
        launch s0 plain grid=600 cooperative=1
        launch s0 plain
        launch s1 to_side
        release 1
        state 1
        about s0
        """ + "\n".join(CLEAN) + "\nrelease 0\nlive\n"
    ran = same(script, POLICY, RECORDING_DRIVER_DEVICES="2")
    equal([sms for _, sms in ran.launches], [SIDE] + SMS + [WHOLE, SIDE, SIDE])


@test
def other_contexts_end_and_partitions_stay():
    for which, current in itertools.product(("c1", "c2"), repeat=2):
        other = "c2" if which == "c1" else "c1"
        ran = same(BEGIN + USE + f"""
            create_context c1 0
            load
            stream s2 1
            launch s2 to_side
            create_context c2 0
            load
            stream s3 1
            launch s3 to_side
            current {current}
            destroy_context {which}
            current c0
            launch s0 plain
            launch s1 to_side
            destroy_context {other}
            current c0
            launch s0 plain
            launch null to_side
            about s0
            """ + "\n".join(CLEAN) + "\nrelease 0\nlive\n", POLICY)
        equal([sms for _, sms in ran.launches], SMS + [WHOLE] * 2 + [SIDE] * 4)


@test
def launches_with_another_context_current_are_moved_within_their_own():
    """What is made for them then goes with the stream's context, not with that one."""
    others = (("create_context c1 0\nload", "destroy_context c1"),
              ("retain c1 1\ncurrent c1\nload", "release 1"))
    launches = """
        launch s0 huge grid=64 form=kernel
        launch s1 to_side form=kernel
        launch s0 to_main form=kernel
        """
    for (begin, end), warm in itertools.product(others, ("", "launch s1 to_main form=kernel\n")):
        ran = same(BEGIN + "stream s0 1\nstream s1 0\n" + warm + begin + launches + "current c0" + launches
                   + "current c1\nunload\n" + end + "\ncurrent c0" + launches
                   + "destroy s0\ndestroy s1\nunload\nunload_library\nrelease 0\nlive\n", POLICY,
                   RECORDING_DRIVER_DEVICES="2")
        equal([sms for _, sms in ran.launches], [116] * bool(warm) + [WHOLE, SIDE, 116] * 3)
        expect({line["context"] for line in ran.calls("cuLaunchKernelEx") if line["kernel"] == "huge"}
               == {"primary#0"}, "launched on another device")


@test
def a_context_with_a_green_one_of_the_program_does_not_end():
    """A reset and the last release are refused, and what is on partitions stays as well."""
    launches = "launch s0 plain\nlaunch s1 to_side\nlaunch s0 to_main\n"
    for end in ("reset 0", "release 0"):
        ran = same(BEGIN + "stream s0 1\nstream s1 0\ngreen_stream s5 32\n" + launches + end + """
            state 0
            """ + launches + """
            about s0
            launch s5 plain
            destroy s0
            destroy s1
            destroy s5
            unload
            unload_library
            green_destroy
            state 0
            release 0
            state 0
            live
            """ + BEGIN + "stream s0 1\nstream s1 0\n" + launches
                   + "destroy s0\ndestroy s1\nunload\nunload_library\nrelease 0\nstate 0\nlive\n", POLICY)
        equal([sms for _, sms in ran.launches], [SIDE, SIDE, 116] * 2 + [32] + [SIDE, SIDE, 116])


@test
def wrong_ends_end_nothing():
    ran = same(BEGIN + USE + """
        release 7
        reset 7
        launch s0 plain
        launch s1 to_side
        """ + "\n".join(CLEAN) + "\nrelease 0\nrelease 0\nstate 0\nlive\n", POLICY)
    equal([sms for _, sms in ran.launches], SMS + [SIDE, SIDE])


@test
def a_program_ends_without_cleaning_up():
    for lines in ("", "release 0\n", "begin s1\nlaunch s1 to_side\n"):
        ran = same(BEGIN + USE + lines, POLICY)
        used(ran)
        expect(ran.report["complete"], "the report is not complete")


@test
def a_program_forks():
    child = """
        launch s0 plain
        launch s1 to_side
        launch null to_side
        stream s2 1
        launch s2 to_main
        replay x1 s1
        destroy s2
        who
        """
    count = len(child.split("\n")) - 2
    after = BEGIN + USE + f"fork {count}" + child + "launch s0 plain\nlaunch s1 to_side\n"
    for variables in ({}, {"RECORDING_DRIVER_FORK_REFUSED": "1"}):
        ran = same(after, POLICY, **variables)
        parent = [line for line in ran.record if "process" not in line.fields]
        equal([line["sms"] for line in parent if line.symbol.startswith("cuLaunchK")][-2:], [str(SIDE)] * 2)
    # Before the driver is used for anything else, each process makes partitions of its own.
    body = BEGIN + USE
    count = len([line for line in body.splitlines() if line.strip()])
    ran = same(f"fork {count}\n" + body + body + "\n".join(CLEAN) + "\nrelease 0\n", POLICY)
    equal([sms for _, sms in ran.launches], SMS * 2)


# ---- Failures --------------------------------------------------------------------------------------

FAULTY = BEGIN + USE + """
copy_attributes s1 s0
set s0 8 -1
get s0 8
set_node n1 to_side form=kernel grid=6
set_node_attribute n1 8 -2
set_executable x1 n1 to_side form=kernel grid=6
set_executable x1 n2 to_main grid=6
replay x1 s1
launch s0 plain grid=600 cooperative=1
launch s0 plain grid=600
clone g2 g1
instantiate x2 g2
replay x2 s0
latest s1 n5
stream s2 1
about s2
graph_destroy g2
executable_destroy x2
destroy s2
""" + "\n".join(CLEAN) + """
release 0
state 0
live
""" + BEGIN + """
stream s0 1
launch s0 to_side
launch null to_side
destroy s0
reset 0
release 0
"""

# What the library calls for partitions. Joins that fail are test_faults.py's; without the means to make
# another context current for a moment, or the one before again, there is nothing else that could be done.
FUNCTIONS = """cuDeviceGetAttribute cuDeviceGetCount cuDevicePrimaryCtxGetState cuDevicePrimaryCtxRetain
cuDeviceGetDevResource cuDevSmResourceSplit cuDevSmResourceSplitByCount cuDevResourceGenerateDesc cuGreenCtxCreate
cuCtxFromGreenCtx cuGreenCtxStreamCreate cuCtxGetCurrent cuCtxGetDevice cuStreamGetPriority
cuStreamGetAttribute cuStreamSetAttribute cuStreamGetCaptureInfo_v2 cuStreamIsCapturing cuStreamCreateWithPriority
cuThreadExchangeStreamCaptureMode cuEventCreate cuGraphKernelNodeGetParams_v2
cuGraphKernelNodeSetParams_v2 cuGraphKernelNodeGetAttribute cuGraphKernelNodeSetAttribute cuFuncGetAttribute
cuKernelGetFunction cuGraphNodeFindInClone cuOccupancyMaxActiveBlocksPerMultiprocessor""".split()


# A launch leaves its stream's partition by these.
LEAVING = ("cuStreamCreateWithPriority", "cuEventCreate")


def failing(case):
    name, calls, code, version = case
    script = FAULTY.replace(" cooperative=1", "") if name in LEAVING else FAULTY
    try:
        same(script, POLICY, quiet=False, RECORDING_DRIVER_VERSION=version,
             RECORDING_DRIVER_FAIL=f"{name}@resolved:{calls}={code}")
    except AssertionError as error:
        return f"{name}, call {calls}, result {code}, driver {version}: {error}"
    return None


@test
def calls_of_the_library_that_fail_are_not_seen_by_the_program():
    for version in ("13000", "13010"):
        ran = same(FAULTY, POLICY, RECORDING_DRIVER_VERSION=version)
        made = {name: len(ran.calls(name, ours=True)) for name in FUNCTIONS}
        cases = []
        for name, count in made.items():
            places = {1, 2, count // 2, count - 1, count} & set(range(1, count + 1))
            if name == "cuDeviceGetDevResource": # later it is asked what the program asked of a stream
                places = {1}
            cases += [(name, place, (1, 2, 201, 801, 900)[(place + len(cases)) % 5], version)
                      for place in sorted(places)]
            cases += [(name, "*", code, version) for code in (2, 801)] if count else []
        with ThreadPoolExecutor(max_workers=2) as pool:
            wrong = [text for text in pool.map(failing, cases) if text]
        print(f"# {len(cases)} runs; not called: "
              f"{' '.join(name for name, count in made.items() if count == 0)}")
        expect(not wrong, f"{len(wrong)} of {len(cases)}:\n" + "\n".join(wrong[:6]))


if __name__ == "__main__":
    main()
