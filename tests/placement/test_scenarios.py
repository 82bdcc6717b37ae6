# SPDX-License-Identifier: Apache-2.0
"""What programs do that partitions could disturb. Each script runs without the library, with a policy of no
rules and with partitions, through the driver and through the runtime."""

from checks import POLICY, Script, check_script, expect, main, place_expected, test

KERNELS = ("to_side", "plain", "to_main", "eager_side", "with_domain")

GLOBAL, THREAD_LOCAL, RELAXED = 0, 1, 2

PROGRAMS = ("placement_driver", "placement_runtime")


def start(script, streams=((0, 1), (1, 1)), events=4, devices=1):
    """Contexts, streams as (place, flags), events; on the first device."""
    for device in reversed(range(devices)):
        script("retain", device)
    for place, flags in streams:
        script("stream", f"s{place}", flags)
    for event in range(events):
        script("event", f"e{event}")


def finish(script, streams=((0, 1), (1, 1)), events=4, devices=1):
    for event in range(events):
        script("event_destroy", f"e{event}")
    for place, _ in streams:
        script("destroy", f"s{place}")
    for device in range(devices):
        script("release", device)


def check(script, moved, programs=PROGRAMS, **variables):
    """moved: launches that have to be, one by one and in graphs' captures."""
    for program in programs:
        found, ran = check_script(script, program=program, **variables)
        expect(found == moved, f"{program} moved {found} launches, not {moved}")
    return ran


# ---- Streams and events ---------------------------------------------------------------------------

@test
def one_stream_with_kernels_of_all_rules():
    script = Script()
    start(script)
    for form in ((), ("ex",), ("cooperative",)):
        for kernel in KERNELS:
            script("launch", "s0", kernel, *form)
        script("copy", "s0")
        script("launch", "s0", "to_side", *form)
        script("host", "s0")
        script("launch", "s0", "to_main", *form)
        script("set", "s0")
        script("synchronize", "s0")
    finish(script)
    check(script, 15)


@test
def streams_that_wait_for_each_other_by_events():
    script = Script()
    streams = ((0, 1), (1, 1), (2, 1))
    start(script, streams)
    for _ in range(3):
        script("launch", "s0", "to_side")
        script("record", "s0", "e0")
        script("wait", "s1", "e0")
        script("launch", "s1", "to_main")
        script("launch", "s0", "plain")
        script("record", "s1", "e1")
        script("wait", "s2", "e1")
        script("launch", "s2", "plain")
        script("launch", "s2", "to_side")
        script("record", "s2", "e0") # again, for something else
        script("wait", "s0", "e0")
        script("launch", "s0", "to_side")
        script("synchronize_event", "e0")
        script("copy", "s1")
    script("synchronize_context")
    script("launch", "s1", "to_side")
    finish(script, streams)
    check(script, 13)


@test
def an_event_stands_for_its_latest_record_at_the_wait():
    script = Script()
    start(script)
    script("wait", "s1", "e0") # never recorded
    script("launch", "s0", "to_side")
    script("record", "s0", "e0")
    script("launch", "s0", "to_main")
    script("wait", "s1", "e0")
    script("launch", "s1", "to_side")
    script("record", "s0", "e0")
    script("launch", "s1", "plain")
    script("wait", "s1", "e0")
    script("launch", "s1", "to_main")
    finish(script)
    check(script, 4)


@test
def kernels_of_blocking_streams_and_the_legacy_stream():
    script = Script()
    streams = ((0, 0), (1, 0), (2, 1))
    start(script, streams)
    for stream in ("null", "legacy", "null"):
        script("launch", "s0", "to_side")
        script("launch", "s1", "to_main")
        script("launch", "s2", "to_side")
        script("launch", stream, "plain")
        script("launch", "s0", "plain")
        script("copy", stream)
        script("launch", "s1", "to_side")
        script("launch", "s2", "plain")
        script("launch", stream, "to_side") # the rule allows it
        script("launch", "s1", "plain")
        script("launch", stream, "to_main") # its rule does not
        script("launch", "s0", "to_side")
        script("launch", "s0", "to_main")
        script("record", stream, "e0")
        script("wait", "s2", "e0")
        script("launch", "s2", "to_main")
    script("copy_now", "null")
    script("launch", "s0", "to_side")
    finish(script, streams)
    check(script, 25)


@test
def streams_with_priorities_set_early_and_late():
    script = Script()
    script("retain", 0)
    script("stream", "s0", 1, 3)
    script("launch", "s0", "to_side")
    script("priority", "s0", 1)
    script("launch", "s0", "to_side")
    script("launch", "s0", "to_main")
    script("priority", "per_thread", 2)
    script("launch", "per_thread", "to_main")
    script("destroy", "s0")
    script("release", 0)
    check(script, 4)


@test
def a_stream_is_destroyed_and_its_handle_comes_back():
    script = Script()
    start(script, ((0, 0), (1, 1)))
    for flags in (1, 0, 1):
        script("stream", "s2", flags)
        script("launch", "s2", "to_side")
        script("launch", "s2", "to_main")
        script("record", "s2", "e0")
        script("destroy", "s2")
        script("wait", "s0", "e0")
        script("launch", "s0", "to_side")
        script("launch", "null", "to_side")
    finish(script, ((0, 0), (1, 1)))
    check(script, 12)


@test
def streams_that_are_on_a_partition_themselves():
    """Kernels leave them for the other partition, or for the whole device where they may not be captured."""
    for graph_nodes in ("yes", "no"):
        def expected(kernel, stream, captured, allowed=graph_nodes == "yes"):
            if place_expected(kernel, stream, captured) or not stream.startswith("s0"):
                return place_expected(kernel, stream, captured)
            return "main" if allowed or not captured else None

        policy = POLICY + f"[stream zero]\nindex = 0\npartition = main\ngraph_nodes = {graph_nodes}\n"
        script = Script()
        start(script, ((0, 1), (1, 0)))
        for _ in range(2):
            for kernel in KERNELS + ("plain",):
                script("launch", "s0", kernel)
                script("launch", "s1", kernel)
            script("record", "s0", "e0")
            script("wait", "s1", "e0")
            script("launch", "s1", "to_side")
            script("launch", "null", "plain")
        capture_two_streams(script, "s0", "s1", RELAXED, "g0")
        script("launch", "s0", "plain")
        script("graph_destroy", "g0")
        finish(script, ((0, 1), (1, 0)))
        for program in PROGRAMS:
            moved, _ = check_script(script, policy, program, expected=expected)
            expect(moved > 20, f"{moved} on a partition")


# ---- Threads --------------------------------------------------------------------------------------

@test
def per_thread_default_streams_of_eight_threads():
    script = Script(threads=8)
    start(script, ((0, 0),), 4)
    for thread in range(1, 8):
        script("device", 0, thread=thread)
    for round_ in range(3):
        for thread in range(8):
            stream = "null_ptsz" if round_ % 2 else "per_thread"
            script("launch", stream, KERNELS[(thread + round_) % 5], thread=thread)
            script("launch", stream, "to_side", thread=thread)
            script("copy", stream, thread=thread)
            if thread == 3:
                script("record", stream, "e0", thread=thread)
            if thread == 5:
                script("wait", stream, "e0", thread=thread)
            script("launch", stream, "to_main", thread=thread)
        script("launch", "null", "plain")
        script("launch", "s0", "to_side", thread=2)
        script("launch", "null", "to_side", thread=4)
        script("synchronize", "per_thread", thread=6)
        script("copy_now", "null_ptsz", thread=7)
    finish(script, ((0, 0),), 4)
    check(script, 69)


@test
def threads_that_take_turns_on_one_stream():
    script = Script(threads=4)
    start(script)
    for thread in range(1, 4):
        script("device", 0, thread=thread)
    for i in range(24):
        script("launch", "s0", KERNELS[i % 3], thread=i % 4)
        if i % 5 == 0:
            script("record", "s0", "e0", thread=(i + 1) % 4)
            script("wait", "s1", "e0", thread=(i + 2) % 4)
            script("launch", "s1", "to_main", thread=(i + 3) % 4)
    finish(script)
    check(script, 21)


# ---- Captures -------------------------------------------------------------------------------------

def capture_two_streams(script, origin, other, mode, graph, more=()):
    """Kernels moved on both, one joined in and joined again."""
    script("begin", origin, mode)
    script("launch", origin, "to_side")
    script("record", origin, "e0")
    script("wait", other, "e0")
    script("launch", origin, "plain")
    script("launch", other, "to_main")
    script("launch", other, "plain")
    script("ask", other)
    script("launch", origin, "to_main")
    script("copy", origin)
    script("launch", other, "to_side")
    script("host", other)
    script("launch", origin, "to_side")
    script("ask", origin)
    script("record", other, "e1")
    script("wait", origin, "e1")
    script("ask", origin)
    script("launch", origin, "to_side")
    script("launch", origin, "eager_side")
    for kernel in more:
        script("launch", origin, kernel)
    script("ask", origin)
    script("end", origin, graph)


@test
def captures_of_two_streams_in_every_mode():
    for mode in (GLOBAL, THREAD_LOCAL, RELAXED):
        script = Script()
        start(script)
        script("launch", "s0", "to_side")
        capture_two_streams(script, "s0", "s1", mode, "g0")
        script("instantiate", "x0", "g0")
        for _ in range(2):
            script("graph", "s0", "x0")
            script("launch", "s0", "to_side")
            script("record", "s0", "e2")
            script("wait", "s1", "e2")
            script("graph", "s1", "x0")
            script("launch", "s1", "to_main")
        script("executable_destroy", "x0")
        script("graph_destroy", "g0")
        finish(script)
        check(script, 11)


@test
def captures_before_which_nothing_was_launched():
    """Side streams and events are made while a capture in global mode goes on."""
    for origin, other in (("s0", "s1"), ("s1", "per_thread"), ("per_thread", "s0")):
        script = Script()
        start(script, ((0, 0), (1, 1)))
        capture_two_streams(script, origin, other, GLOBAL, "g0")
        script("instantiate", "x0", "g0")
        script("graph", "s0", "x0")
        script("executable_destroy", "x0")
        script("graph_destroy", "g0")
        finish(script, ((0, 0), (1, 1)))
        check(script, 6)


@test
def streams_are_captured_again_and_graphs_updated():
    script = Script()
    start(script)
    capture_two_streams(script, "s0", "s1", GLOBAL, "g0")
    script("instantiate", "x0", "g0")
    script("graph", "s0", "x0")
    for _ in range(2):
        capture_two_streams(script, "s0", "s1", RELAXED, "g1")
        script("update", "x0", "g1") # the same shape
        script("graph", "s0", "x0")
        script("graph_destroy", "g1")
    capture_two_streams(script, "s1", "s0", GLOBAL, "g1") # from the other end
    script("update", "x0", "g1")
    script("graph", "s1", "x0")
    script("graph_destroy", "g1")
    capture_two_streams(script, "s0", "s1", GLOBAL, "g1", ("to_side",)) # another shape
    script("update", "x0", "g1")
    script("graph", "s0", "x0")
    script("graph_destroy", "g1")
    script("graph_destroy", "g0")
    script("executable_destroy", "x0")
    finish(script)
    check(script, 31)


@test
def programs_that_set_the_dependencies_of_a_capture():
    """Branches by hand: side streams must neither add edges nor be left unjoined."""
    script = Script()
    start(script)
    script("launch", "s0", "to_side")
    script("begin", "s0", RELAXED)
    script("keep", "s0", "k0") # nothing
    script("launch", "s0", "to_side")
    script("keep", "s0", "k1")
    script("launch", "s0", "to_side")
    script("launch", "s0", "to_main")
    script("keep", "s0", "k2")
    script("depend", "s0", "k1", "set") # a second branch from the first kernel
    script("launch", "s0", "plain")
    script("launch", "s0", "to_side")
    script("depend", "s0", "k2", "add")
    script("ask", "s0")
    script("launch", "s0", "to_main")
    script("depend", "s0", "k0", "set") # a branch of its own
    script("launch", "s0", "to_side")
    script("launch", "s0", "plain")
    script("ask", "s0")
    script("end", "s0", "g0") # the kernels before are leaves
    script("instantiate", "x0", "g0")
    script("graph", "s0", "x0")
    script("executable_destroy", "x0")
    script("graph_destroy", "g0")
    finish(script)
    check(script, 7)


@test
def captures_that_go_wrong():
    script = Script()
    start(script, ((0, 1), (1, 1), (2, 0)))
    # a wait of the host: 900, then 901
    script("begin", "s0", GLOBAL)
    script("launch", "s0", "to_side")
    script("synchronize", "s0")
    script("launch", "s0", "to_side")
    script("ask", "s0")
    script("end", "s0", "g0")
    script("launch", "s0", "to_side")
    # a stream that is not joined: 904
    script("begin", "s0", GLOBAL)
    script("launch", "s0", "to_side")
    script("record", "s0", "e0")
    script("wait", "s1", "e0")
    script("launch", "s1", "to_side")
    script("launch", "s1", "plain")
    script("end", "s0", "g0")
    script("launch", "s0", "to_side")
    script("launch", "s1", "to_side")
    # ended at another stream: 903
    script("begin", "s0", GLOBAL)
    script("launch", "s0", "to_main")
    script("record", "s0", "e0")
    script("wait", "s1", "e0")
    script("launch", "s1", "to_main")
    script("end", "s1", "g0")
    script("launch", "s1", "to_side")
    script("record", "s1", "e1")
    script("wait", "s0", "e1")
    script("launch", "s0", "to_side")
    script("end", "s0", "g0")
    script("graph_destroy", "g0")
    # the legacy stream while a blocking stream captures: 906
    script("begin", "s2", RELAXED)
    script("launch", "s2", "to_side")
    script("launch", "null", "to_side")
    script("launch", "s2", "to_side")
    script("end", "s2", "g0")
    script("launch", "null", "to_side")
    script("launch", "s2", "to_side")
    # the legacy stream asked while a non-blocking stream captures
    script("begin", "s0", RELAXED)
    script("launch", "s0", "to_side")
    script("launch", "null", "to_side")
    script("launch", "s0", "to_main")
    script("end", "s0", "g0")
    script("graph_destroy", "g0")
    # two captures merged: 902 or 907
    script("begin", "s0", RELAXED)
    script("begin", "s1", RELAXED)
    script("launch", "s0", "to_side")
    script("launch", "s1", "to_side")
    script("record", "s0", "e0")
    script("wait", "s1", "e0")
    script("launch", "s1", "to_side")
    script("launch", "s0", "to_side")
    script("end", "s0", "g0")
    script("end", "s1", "g0")
    # an event of a capture waited for outside
    script("begin", "s0", RELAXED)
    script("launch", "s0", "to_side")
    script("record", "s0", "e0")
    script("end", "s0", "g0")
    script("wait", "s1", "e0")
    script("synchronize_event", "e0")
    script("launch", "s1", "to_side")
    script("graph_destroy", "g0")
    # uncaptured work waited for inside: 905
    script("launch", "s1", "to_side")
    script("record", "s1", "e2")
    script("begin", "s0", RELAXED)
    script("launch", "s0", "to_side")
    script("wait", "s0", "e2")
    script("launch", "s0", "to_side")
    script("end", "s0", "g0")
    # the capturing stream destroyed
    script("stream", "s3", 1)
    script("begin", "s3", RELAXED)
    script("launch", "s3", "to_side")
    script("destroy", "s3")
    script("launch", "s0", "to_side")
    finish(script, ((0, 1), (1, 1), (2, 0)))
    for program in PROGRAMS:
        check_script(script, program=program)


@test
def captures_by_several_threads():
    script = Script(threads=3)
    start(script, ((0, 1), (1, 1), (2, 1), (3, 0)))
    script("device", 0, thread=1)
    script("device", 0, thread=2)
    script("begin", "s0", THREAD_LOCAL)
    script("begin", "s1", THREAD_LOCAL, thread=1)
    for _ in range(2):
        script("launch", "s0", "to_side")
        script("launch", "s1", "to_side", thread=1)
        script("launch", "s2", "to_side", thread=2)
        script("launch", "s1", "to_main", thread=1)
        script("launch", "per_thread", "to_side", thread=2)
        script("launch", "s3", "to_side", thread=2) # one of them meanwhile
        script("launch", "null", "to_side", thread=2)
    script("launch", "s0", "plain", thread=2) # another thread puts work in
    script("launch", "s0", "to_main", thread=1)
    script("end", "s0", "g0")
    script("end", "s1", "g1", thread=2) # the wrong thread: 908
    script("launch", "s1", "to_side", thread=1)
    # a capture in global mode, while other threads meet the library for the first time
    script("begin", "s0", GLOBAL)
    script("launch", "s0", "to_side")
    script("launch", "s2", "to_main", thread=1)
    script("launch", "per_thread", "to_main", thread=1)
    script("stream", "s4", 1, thread=2)
    script("launch", "s4", "to_side", thread=2)
    script("launch", "s0", "to_side")
    script("end", "s0", "g2")
    script("instantiate", "x0", "g2")
    script("graph", "s2", "x0", thread=2)
    script("executable_destroy", "x0")
    script("graph_destroy", "g0")
    script("graph_destroy", "g2")
    script("destroy", "s4")
    finish(script, ((0, 1), (1, 1), (2, 1), (3, 0)))
    check(script, 21)


# ---- Devices and processes ------------------------------------------------------------------------

@test
def two_devices():
    script = Script()
    script("retain", 1)
    script("stream", "s0", 0)
    script("stream", "s1", 1)
    script("retain", 0)
    script("stream", "s2", 0)
    script("stream", "s3", 1)
    for event in range(2):
        script("event", f"e{event}")
    for _ in range(2):
        script("launch", "s2", "to_side")
        script("record", "s2", "e0")
        script("device", 1)
        script("wait", "s0", "e0")
        script("launch", "s0", "to_side")
        script("launch", "null", "to_side")
        script("launch", "per_thread", "to_main")
        script("launch", "s1", "to_main")
        script("device", 0)
        script("launch", "null", "to_side")
        script("launch", "per_thread", "to_side")
        script("launch", "s3", "to_side")
        script("launch", "s2", "plain")
        script("synchronize_context")
    script("event_destroy", "e0")
    script("event_destroy", "e1")
    for place in range(4):
        script("destroy", f"s{place}")
    script("release", 0)
    script("release", 1)
    check(script, 16, RECORDING_DRIVER_DEVICES="2")


@test
def the_device_is_reset_in_the_middle():
    script = Script()
    for _ in range(3):
        start(script, ((0, 1), (1, 0)), 2)
        script("launch", "s0", "to_side")
        script("launch", "s1", "to_main")
        script("launch", "null", "to_side")
        script("launch", "per_thread", "to_side")
        script("record", "s0", "e0")
        script("wait", "s1", "e0")
        script("launch", "s1", "to_side")
        script("event_destroy", "e0")
        script("event_destroy", "e1")
        script("reset", 0) # with the streams still there
    start(script, ((0, 1), (1, 0)), 2)
    script("launch", "s0", "to_side")
    script("launch", "s1", "to_side")
    finish(script, ((0, 1), (1, 0)), 2)
    check(script, 17)


@test
def the_process_forks():
    script = Script()
    start(script)
    script("launch", "s0", "to_side")
    script("launch", "per_thread", "to_side")
    script("record", "s0", "e0")
    script("fork", 9)
    script("launch", "s0", "to_side")
    script("launch", "s0", "to_main")
    script("wait", "s1", "e0")
    script("launch", "s1", "to_side")
    script("launch", "per_thread", "to_main")
    script("launch", "null", "to_side")
    script("stream", "s5", 1)
    script("launch", "s5", "to_side")
    script("synchronize_context")
    script("launch", "s0", "to_main") # the parent goes on
    script("wait", "s1", "e0")
    script("launch", "s1", "to_side")
    finish(script)
    check(script, 4, programs=("placement_driver",))


if __name__ == "__main__":
    main()
