# SPDX-License-Identifier: Apache-2.0
"""What a program is told about its streams on partitions, and what becomes of its launches there."""

from told import (BEGIN, END, KERNELS, MAIN, PARTITIONS, SIDE, WHOLE, Ran, equal, expect, main, on_streams,
                  same, test)

APPLIED = ("applied", "")


def created(ran):
    """How the program's streams were created, in order: by which function, with which flags and priority."""
    return [(line.symbol, line["flags"], line["priority"]) for line in
            ran.calls("cuGreenCtxStreamCreate|cuStreamCreate|cuStreamCreateWithPriority")
            if line["result"] == "0"]


# ---- Streams: answers ------------------------------------------------------------------------------

ABOUT = BEGIN + """
stream s0 1
stream s1 1 priority=-2
stream s2 0
stream s3 0 priority=-9
about s0 runtime=1
about s1 runtime=1
about s2 runtime=1
about s3 runtime=1
about legacy runtime=1
ask_nothing s0
launch s0 plain
launch s1 plain
about s0
destroy s0
about s0
stream s0 1
about s0
destroy s0
destroy s1
destroy s2
destroy s3
""" + END


@test
def streams_on_partitions_answer_as_the_program_asked_for_them():
    for version in ("12050", "12080", "13000", "13010", "13040"):
        ran = same(ABOUT, on_streams(), RECORDING_DRIVER_VERSION=version)
        equal(ran.launches, [("plain", SIDE)] * 2)
        ran = same(ABOUT, on_streams("allow_blocking = yes"), RECORDING_DRIVER_VERSION=version)
        equal(ran.launches, [("plain", SIDE)] * 2)
        equal(ran.stream_fates(), [APPLIED] * 5)


@test
def streams_that_capture_answer_as_without_the_library():
    """Some questions are errors then, and end the capture."""
    ran = same(BEGIN + """
        stream s0 1
        begin s0
        launch s0 plain
        about s0
        end s0 g0
        launch s0 plain
        begin s0
        launch s0 plain
        latest s0 n0
        end s0 g0
        graph_destroy g0
        destroy s0
        """ + END, on_streams("graph_nodes = yes"))
    equal(ran.launches, [("plain", SIDE)])


@test
def streams_of_the_runtime_answer_as_the_program_asked_for_them():
    script = BEGIN + """
        runtime_stream s0 1
        runtime_stream s1 0
        about s0 runtime=1
        about s1 runtime=1
        launch s0 plain
        launch s1 plain
        destroy s0
        destroy s1
        """
    ran = same(script, on_streams())
    equal(ran.launches, [("plain", SIDE), ("plain", WHOLE)])
    equal(ran.stream_fates(), [APPLIED, ("refused", "blocking stream")])


@test
def streams_of_a_runtime_that_only_the_runtime_layer_sees_are_not_placed():
    ran = same(BEGIN + """
        runtime_stream s0 1
        about s0 runtime=1
        launch s0 plain
        destroy s0
        """, on_streams(), quiet=False, RECORDING_RUNTIME_BYPASS="1")
    equal(ran.launches, [("plain", WHOLE)])
    expect("a libcudart is not attached" in ran.err, ran.err)


@test
def a_stream_that_the_driver_would_refuse_is_refused():
    ran = same(BEGIN + """
        no_stream
        stream s0 2
        stream s0 3
        stream s0 5 priority=-1
        stream s0 1
        launch s0 plain
        destroy s0
        """ + END, on_streams("allow_blocking = yes"))
    equal(ran.launches, [("plain", SIDE)])
    equal(ran.stream_fates(), [APPLIED])


# ---- Streams: which of them ------------------------------------------------------------------------

FIVE = BEGIN + """
stream s0 1
stream s1 1 priority=-2
stream s2 0
stream s3 1 priority=-5
stream s4 1
launch s0 plain
launch s1 plain
launch s2 plain
launch s3 plain
launch s4 plain
destroy s0
destroy s1
destroy s2
destroy s3
destroy s4
""" + END


def placed(ran):
    return "".join("s" if sms == SIDE else "-" for _, sms in ran.launches)


@test
def rules_select_streams_by_index_library_priority_flags_and_device():
    for selectors, wanted in ((dict(index="1"), "-s---"), (dict(index="0..1"), "ss---"),
                              (dict(index="3.."), "---ss"),
                              (dict(library="placement_told"), "ss-ss"),
                              (dict(not_library="placement_told"), "-----"),
                              (dict(library="libcudart*"), "-----"),
                              (dict(created_priority="..-1"), "-s-s-"),
                              (dict(created_priority="0"), "s---s"),
                              (dict(created_priority="-3..-1"), "-s---"),
                              (dict(flags="non_blocking"), "ss-ss"),
                              (dict(device="0"), "ss-ss"), (dict(device="1"), "-----")):
        equal(placed(same(FIVE, on_streams(**selectors))), wanted, selectors)
    equal(placed(same(FIVE, on_streams("allow_blocking = yes", flags="blocking"))), "--s--")


@test
def indices_count_streams_that_were_made_wherever_they_are():
    """A creation that fails draws no index; one that is refused a partition does."""
    script = BEGIN + """
        stream s9 9
        stream s0 1
        stream s9 9 priority=-1
        stream s1 0
        no_stream
        stream s2 1
        destroy s2
        stream s2 1
        launch s0 plain
        launch s1 plain
        launch s2 plain
        destroy s0
        destroy s1
        destroy s2
        """ + END
    for index, wanted in (("0", "s--"), ("1", "---"), ("2", "---"), ("3", "--s")):
        equal(placed(same(script, on_streams(index=index))), wanted, index)


@test
def a_priority_rule_and_a_partition_rule_hold_together():
    both = on_streams("priority = -3")
    ran = Ran(FIVE, both)
    equal(placed(ran), "ss-ss")
    equal([symbol for symbol, _, priority in created(ran) if priority == "-3"],
          ["cuGreenCtxStreamCreate"] * 2 + ["cuStreamCreateWithPriority"]
          + ["cuGreenCtxStreamCreate"] * 2)
    equal(ran.stream_fates("priority"), [APPLIED] * 5)
    of_two = PARTITIONS + "[stream one]\nindex = 0..1\npriority = -4\n[stream two]\nindex = 1..2\n" \
        "allow_blocking = yes\npartition = side\n"
    ran = Ran(FIVE, of_two)
    equal(placed(ran), "-ss--")
    equal([(symbol, priority) for symbol, _, priority in created(ran)][-5:],
          [("cuStreamCreateWithPriority", "-4"), ("cuGreenCtxStreamCreate", "-4"),
           ("cuGreenCtxStreamCreate", "0"), ("cuStreamCreateWithPriority", "-5"), ("cuStreamCreate", "0")])


@test
def streams_on_two_devices_go_to_their_own_partitions():
    script = """
        retain c0 0
        retain c1 1
        current c0
        load
        stream s0 1
        current c1
        load
        stream s1 1
        stream s2 1
        launch s1 plain
        about s0
        about s1
        launch s2 to_side
        current c0
        launch s0 plain
        about s1
        destroy s0
        destroy s1
        destroy s2
        unload
        current c1
        unload
        unload_library
        release 0
        state 0
        release 1
        live
        """
    policy = on_streams(index="0") + "[kernel k]\nname = to_side\npartition = main\n"
    ran = same(script, policy, RECORDING_DRIVER_DEVICES="2")
    equal(ran.launches, [("plain", SIDE), ("to_side", MAIN), ("plain", SIDE)])
    expect({"partition.side.0", "partition.side.1"} <= ran.report["facts"].keys(), "facts")
    second = policy.replace("sm_count = 16", "sm_count = 16\ndevice = 1")
    ran = same(script, second, RECORDING_DRIVER_DEVICES="2")
    equal([sms for _, sms in ran.launches], [SIDE, MAIN, WHOLE])
    equal(ran.stream_fates(), [APPLIED, ("refused", "the device has no such partition")])


# ---- Streams: refused ------------------------------------------------------------------------------

@test
def a_stream_made_with_another_context_current_stays_there():
    ran = same(BEGIN + """
        create_context c1 0
        load
        stream s0 1
        about s0
        launch s0 plain
        launch s0 to_side
        destroy s0
        current c0
        stream s1 1
        launch s1 plain
        destroy s1
        current c1
        unload
        destroy_context c1
        current c0
        """ + END, on_streams() + "[kernel k]\nname = to_side\npartition = main\n")
    equal(ran.launches, [("plain", WHOLE), ("to_side", WHOLE), ("plain", SIDE)])
    equal(ran.stream_fates(), [APPLIED, ("refused", "not in the primary context")])
    ran.fate("to_side", "refused", "not in the primary context")


@test
def a_stream_of_the_program_s_own_green_context_is_left_alone():
    ran = same(BEGIN + """
        green_stream s0 32
        about s0
        launch s0 plain
        launch s0 to_side
        destroy s0
        """, on_streams() + "[kernel k]\nname = to_side\npartition = main\n")
    equal(ran.launches, [("plain", 32), ("to_side", 32)])
    equal(ran.stream_fates(), [("refused", "not in the primary context")])
    expect(ran.fates("to_side")[0][0] == "refused", "moved out of the program's own green context")


@test
def launches_that_may_begin_early_leave_their_stream_s_partition_too():
    for attribute in ("", "serialization=0", "serialization=1"):
        for launch, reason in (("plain grid=600 cooperative=1", "cooperative capacity"),
                               ("plain grid=600", "would not be co-resident")):
            ran = same(BEGIN + f"stream s0 1\nlaunch s0 {launch} {attribute}\ndestroy s0\n" + END, on_streams())
            equal(ran.launches, [("plain", WHOLE)])
            equal(ran.fates("plain"), [("refused", reason)])
        ran = same(BEGIN + f"stream s0 1\nlaunch s0 wide grid=16 {attribute}\ndestroy s0\n" + END,
                   on_streams().replace("= 16", "= 16\ncoscheduled_sm_count = 2\nbackfill = yes"))
        equal(ran.launches, [("wide", WHOLE)])
        equal(ran.fates("wide"), [("refused", "no cluster fits")])


@test
def a_stream_that_cannot_be_made_on_its_partition_is_made_as_asked():
    for code in ("1", "2", "801", "900", "999"):
        ran = same(FIVE, on_streams(), RECORDING_DRIVER_FAIL=f"cuGreenCtxStreamCreate:4={code}")
        equal(placed(ran), "s--ss", code)
        equal(ran.stream_fates(), [APPLIED] * 3 + [("refused", "blocking stream"),
                                                   ("refused", "refused by the driver")])


# ---- Streams: attributes ---------------------------------------------------------------------------

@test
def attributes_are_set_and_copied_as_without_the_library():
    script = BEGIN + """
        stream s0 1
        stream s1 1
        stream s2 0
        set s0 8 -2
        set s0 10 1
        set s0 9 0x0201
        set s0 3 2
        get s0 8
        get s0 10
        get s0 9
        get s0 3
        copy_attributes s1 s0
        get s1 8
        get s1 10
        get s1 9
        get s1 3
        copy_attributes s2 s0
        get s2 8
        get s2 10
        get s2 9
        set s2 8 -4
        set s2 10 0
        copy_attributes s0 s2 ptsz=1
        get s0 8
        get s0 10
        copy_attributes s0 s0
        copy_attributes legacy s0
        get legacy 10
        copy_attributes s0 legacy
        get s0 10
        set s0 99 1
        get s0 99
        about s0
        about s1
        about s2
        destroy s1
        copy_attributes s1 s0
        copy_attributes s0 s1
        launch s0 plain
        destroy s0
        destroy s2
        """ + END
    ran = same(script, on_streams())
    equal(ran.stream_fates(), [APPLIED] * 2 + [("refused", "blocking stream")])


# ---- Launches on streams with a partition ----------------------------------------------------------

def placed_launches(lines, rule="graph_nodes = yes", more="", **variables):
    return same(BEGIN + "stream s0 1\n" + lines + "\ndestroy s0\n" + END, on_streams(rule) + more,
                **variables)


@test
def a_cooperative_grid_stays_where_it_fits_and_leaves_where_it_does_not():
    # 2048 threads an SM: 32 blocks of 64, on 16 SMs 512
    ran = placed_launches("""
        launch s0 plain grid=512 form=cooperative
        launch s0 plain grid=513 form=cooperative
        launch s0 plain grid=512 cooperative=1
        launch s0 plain grid=4224 cooperative=1
        launch s0 plain grid=4225 cooperative=1
        launch s0 plain grid=4 cooperative=1
        """)
    equal([sms for _, sms in ran.launches], [SIDE, WHOLE, SIDE, WHOLE, SIDE])
    expect(("refused", "cooperative capacity") in ran.fates("plain"), ran.fates("plain"))
    unsafe = placed_launches("launch s0 plain grid=513 cooperative=1", "unsafe_residency = yes")
    equal([sms for _, sms in unsafe.launches], [WHOLE])


@test
def a_grid_that_would_no_longer_be_resident_at_once_leaves():
    lines = """
        launch s0 plain grid=512
        launch s0 plain grid=513
        launch s0 plain grid=4224
        launch s0 plain grid=4225
        launch s0 huge grid=16
        launch s0 huge grid=17
        launch s0 huge grid=200
        """
    ran = placed_launches(lines)
    equal([sms for _, sms in ran.launches], [SIDE, WHOLE, WHOLE, SIDE, SIDE, WHOLE, SIDE])
    equal(ran.fates("plain"), [APPLIED, ("refused", "would not be co-resident")])
    ran = placed_launches(lines, "unsafe_residency = yes")
    equal({sms for _, sms in ran.launches}, {SIDE})


@test
def clusters_are_measured_against_the_partition():
    ran = placed_launches("""
        launch s0 plain grid=16 cluster=2
        launch s0 plain grid=16 cluster=8
        launch s0 wide grid=16
        launch s0 wide grid=400
        launch s0 plain grid=16 cluster=3
        launch s0 plain grid=16 cluster=16
        """)
    equal([sms for _, sms in ran.launches], [SIDE, SIDE, SIDE, WHOLE])
    equal(ran.fates("wide"), [APPLIED, ("refused", "would not be co-resident")])
    rest = same(BEGIN + """
        stream s0 1
        launch s0 plain grid=16 cluster=2
        launch s0 plain grid=16 cluster=4
        launch s0 wide grid=16
        destroy s0
        """ + END, """[policy]
        version = 1
        [partition most]
        sm_count = 120
        [partition side]
        sm_count = rest
        [stream all]
        partition = side
        """)
    equal([sms for _, sms in rest.launches], [12, WHOLE, WHOLE])
    equal(rest.fates("wide"), [("refused", "no cluster fits")])


@test
def clusters_of_a_kernel_rule_are_measured_against_the_stream_s_partition():
    policy = """[policy]
        version = 1
        [partition most]
        sm_count = 120
        [partition side]
        sm_count = rest
        [stream all]
        index = 0
        partition = side
        [kernel c]
        name = clustered
        cluster_dim = 4
        """
    ran = same(BEGIN + """
        stream s0 1
        stream s1 1
        launch s0 clustered grid=16
        launch s1 clustered grid=16
        destroy s0
        destroy s1
        """ + END, policy)
    equal([sms for _, sms in ran.launches], [12, WHOLE])
    equal(ran.fates("clustered", "cluster_dim"), [APPLIED, ("refused", "cluster too large")])


@test
def captured_launches_stay_with_graph_nodes_and_leave_without():
    script = """
        begin s0
        launch s0 plain
        latest s0 n0
        about_node n0
        launch s0 plain grid=513
        launch s0 plain grid=4
        end s0 g0
        first g0 n1
        about_node n1
        instantiate x0 g0
        replay x0 s0
        executable_destroy x0
        graph_destroy g0
        launch s0 plain
        """
    ran = placed_launches(script)
    equal([sms for _, sms in ran.replayed], [SIDE, WHOLE, SIDE])
    ran = placed_launches(script, "")
    equal([sms for _, sms in ran.replayed], [WHOLE] * 3)
    equal([sms for _, sms in ran.launches], [SIDE])
    expect(("refused", "graph") in ran.fates("plain"), ran.fates("plain"))


@test
def executables_of_captures_on_a_partition_are_changed_as_without_the_library():
    ran = placed_launches("""
        begin s0
        launch s0 plain
        latest s0 n0
        end s0 g0
        instantiate x0 g0
        set_executable x0 n0 plain grid=5
        replay x0 s0
        set_executable x0 n0 plain grid=6 form=function_v1
        replay x0 s0
        set_executable x0 n0 plain grid=7 form=function_generic
        replay x0 s0
        set_executable_again x0 n0 grid=8
        replay x0 s0
        set_executable_again x0 n0 grid=9 form=function_v1
        replay x0 s0
        set_node n0 plain grid=10
        about_node n0
        executable_destroy x0
        graph_destroy g0
        """)
    equal([sms for _, sms in ran.replayed], [SIDE] * 5)


if __name__ == "__main__":
    main()
