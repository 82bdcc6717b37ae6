# SPDX-License-Identifier: Apache-2.0
"""What becomes of launches that kernel rules send to a partition, and why some stay; modes."""

from told import BEGIN, END, KERNELS, MAIN, PARTITIONS, SIDE, WHOLE, equal, expect, main, on_streams, same, test

STREAMS = "stream s0 1\nstream s1 0\n"
DESTROY = "destroy s0\ndestroy s1\n"


def launches(lines, policy=KERNELS, streams=STREAMS, **variables):
    """Launches into two streams, of which neither has a partition of its own."""
    return same(BEGIN + streams + lines + "\n" + DESTROY + END, policy, **variables)


def where(ran):
    return [sms for _, sms in ran.launches]


# ---- Reasons ---------------------------------------------------------------------------------------

@test
def launches_in_every_form_are_moved():
    ran = launches("""
        launch s0 to_side
        launch s0 to_side form=ex
        launch s0 to_side form=cooperative
        launch s0 to_side form=kernel
        launch s1 to_side ptsz=1
        launch null to_side
        launch null to_side ptsz=1
        launch legacy to_side form=ex
        launch per_thread to_side
        launch s1 to_main cluster=2
        launch s1 to_main form=cooperative ptsz=1
        """)
    equal(where(ran), [SIDE] * 9 + [MAIN] * 2)
    ran.fate("to_side", "applied")
    ran.fate("to_main", "applied")


@test
def a_grid_that_would_no_longer_be_resident_at_once_stays():
    ran = launches("""
        launch s0 to_side grid=512
        launch s0 to_side grid=513
        launch s0 to_side grid=4224
        launch s0 to_side grid=4225
        """)
    equal(where(ran), [SIDE, WHOLE, WHOLE, SIDE])
    equal(ran.fates("to_side"), [("applied", ""), ("refused", "would not be co-resident")])
    unsafe = KERNELS.replace("allow_legacy = yes", "allow_legacy = yes\nunsafe_residency = yes")
    equal(where(launches("launch s0 to_side grid=513", unsafe)), [SIDE])


@test
def a_cooperative_grid_that_does_not_fit_stays():
    lines = """
        launch s0 to_side grid=513 form=cooperative
        launch s0 to_side grid=513 cooperative=1
        launch s0 to_side grid=4225 cooperative=1
        launch s0 to_side grid=512 cooperative=1
        launch s0 to_side grid=513 cooperative=0
        """
    ran = launches(lines)
    equal(where(ran), [WHOLE, WHOLE, SIDE, WHOLE])
    expect(("refused", "cooperative capacity") in ran.fates("to_side"), ran.fates("to_side"))
    unsafe = KERNELS.replace("allow_legacy = yes", "allow_legacy = yes\nunsafe_residency = yes")
    equal(where(launches(lines, unsafe)), [WHOLE, WHOLE, SIDE, SIDE])


@test
def a_cluster_that_fits_nowhere_on_the_partition_stays():
    policy = """[policy]
        version = 1
        [partition most]
        sm_count = 120
        [partition small]
        sm_count = rest
        [kernel all]
        name = *
        partition = small
        """
    ran = launches("""
        launch s0 plain cluster=2
        launch s0 plain cluster=4
        launch s0 wide
        launch s0 plain cluster=2/2
        """, policy)
    equal(where(ran), [12, WHOLE, WHOLE, WHOLE][:len(where(ran))])
    equal(ran.fates("plain"), [("applied", ""), ("refused", "no cluster fits")])
    ran.fate("wide", "refused", "no cluster fits")


@test
def clusters_of_the_same_rules_are_measured_against_the_partition():
    policy = """[policy]
        version = 1
        [partition most]
        sm_count = 120
        [partition small]
        sm_count = rest
        [kernel c]
        name = clustered
        cluster_dim = 4
        partition = small
        [kernel s]
        name = spread
        cluster_dim = 2
        partition = small
        """
    ran = launches("""
        launch s0 clustered grid=16
        launch s0 spread grid=16
        launch s0 spread grid=15
        """, policy)
    equal(where(ran), [12] * 3)
    equal(ran.fates("clustered", "cluster_dim"), [("refused", "cluster too large")])
    equal(ran.fates("spread", "cluster_dim"),
          [("applied", ""), ("refused", "grid not divisible by the cluster")])


@test
def the_legacy_stream_stays_without_allow_legacy():
    ran = launches("""
        launch null to_main
        launch legacy to_main form=ex
        launch per_thread to_main
        launch null eager
        launch null to_main ptsz=1
        """)
    equal(where(ran), [WHOLE, WHOLE, MAIN, WHOLE, MAIN])
    equal(ran.fates("to_main"), [("applied", ""), ("refused", "legacy stream")])
    ran.fate("eager", "refused", "legacy stream")


@test
def captured_launches_stay_without_graph_nodes():
    ran = launches("""
        begin s0
        launch s0 eager
        launch s0 to_side
        launch s0 plain
        end s0 g0
        instantiate x0 g0
        replay x0 s0
        executable_destroy x0
        graph_destroy g0
        launch s0 eager
        """)
    equal(ran.replayed, [("eager", WHOLE), ("to_side", SIDE), ("plain", WHOLE)])
    equal(where(ran), [SIDE])
    equal(ran.fates("eager"), [("applied", ""), ("refused", "graph")])


@test
def a_cluster_that_was_launched_on_the_stream_s_partition_may_be_captured_there():
    policy = PARTITIONS + """
        [stream first]
        index = 0
        partition = main
        graph_nodes = yes
        """
    captured = """
        begin s0
        launch s0 plain cluster=2
        end s0 g0
        instantiate x0 g0
        replay x0 s0
        executable_destroy x0
        graph_destroy g0
        """
    equal(launches(captured, policy).replayed, [("plain", WHOLE)])
    equal(launches("launch s0 plain cluster=2\n" + captured, policy).replayed, [("plain", MAIN)])


@test
def a_kernel_that_was_first_launched_without_a_context_is_moved_later():
    ran = launches("""
        launch s0 to_side handle=kernel
        current none
        launch s0 fresh handle=kernel
        current c0
        launch s0 fresh handle=kernel
        """.replace("fresh", "to_main"))
    equal(where(ran)[-1], MAIN)


@test
def launches_that_others_may_overlap_stay():
    """Programmatic serialization that is allowed, events of a completed launch; 0 is none of it."""
    ran = launches("""
        launch s0 to_side serialization=0
        launch s0 to_side serialization=1
        launch s0 to_side completion=1
        begin s0
        launch s0 to_main updatable=1
        launch s0 to_main updatable=0
        end s0 g0
        graph_destroy g0
        """)
    equal(where(ran), [SIDE, WHOLE, WHOLE])
    equal(ran.fates("to_side"), [("applied", ""), ("refused", "programmatic launch or completion event")])
    ran.fate("to_main", "refused", "programmatic launch or completion event")
    rule = KERNELS.replace("name = to_side\n", "name = to_side\nprogrammatic_serialization = unset\n")
    ran = launches("launch s0 to_side serialization=1", rule)
    equal(where(ran), [SIDE])


@test
def launches_in_other_contexts_stay():
    ran = launches("""
        create_context c1 0
        load
        stream s2 1
        launch s2 to_side
        launch null to_side
        launch null to_main ptsz=1
        launch per_thread to_main
        destroy s2
        unload
        destroy_context c1
        current c0
        launch null to_side
        """)
    equal(where(ran), [WHOLE] * 4 + [SIDE])
    equal(ran.fates("to_side"), [("applied", ""), ("refused", "not in the primary context")])


@test
def partitions_that_a_device_does_not_have_are_refused_by_what_is_in_the_way():
    policy = """[policy]
        version = 1
        [partition elsewhere]
        sm_count = 8
        device = 1
        [partition most]
        sm_count = 128
        [partition more]
        sm_count = 64
        [partition domain]
        locality_domain = 1
        [kernel a]
        name = to_side
        partition = elsewhere
        [kernel b]
        name = to_main
        partition = more
        [kernel c]
        name = eager
        partition = domain
        [kernel d]
        name = plain
        partition = most
        """
    ran = launches("""
        launch s0 to_side
        launch s0 to_main
        launch s0 eager
        launch s0 plain
        """, policy, quiet=False)
    ran.fate("to_side", "refused", "the device has no such partition")
    ran.fate("eager", "refused", "the device has no locality domains")
    ran.fate("plain", "refused", "not enough SMs left on the device")
    ran.fate("to_main", "applied") # what is left is for who can do with it
    equal(where(ran), [WHOLE, 64, WHOLE, WHOLE])


@test
def a_runtime_that_only_the_runtime_layer_sees_is_told_so():
    ran = same(BEGIN + "runtime_stream s0 1\nlaunch s0 plain\ndestroy s0\n", on_streams(), quiet=False,
               RECORDING_RUNTIME_BYPASS="1")
    expect("not attached" in ran.err, ran.err)


@test
def a_stream_that_is_on_the_rule_s_partition_already_is_left():
    policy = on_streams(index="0") + "[kernel k]\nname = to_side\npartition = side\n" \
        "[kernel m]\nname = to_main\npartition = main\n"
    ran = launches("""
        launch s0 to_side
        launch s1 to_side
        launch s0 to_main
        launch s0 plain
        """, policy)
    equal(where(ran), [SIDE, SIDE, MAIN, SIDE])
    equal(ran.fates("to_side"), [("already so", ""), ("applied", "")])
    equal(len(ran.calls("cuEventRecord", ours=True)), 4) # of the two that were moved


@test
def kernels_that_may_not_stay_on_their_stream_s_partition_leave_it_whatever_a_kernel_rule_says():
    policy = on_streams() + """
        [kernel k]
        name = to_side
        partition = side
        [kernel l]
        name = to_main
        partition = leave
        [kernel e]
        name = eager
        partition = main
        """
    ran = launches("""
        launch s0 to_side grid=600 cooperative=1
        launch s0 to_side grid=4
        launch s0 to_main grid=600 cooperative=1
        launch s0 to_main grid=600
        launch s0 to_main grid=4
        launch s0 eager grid=4000 cooperative=1
        launch s0 eager grid=4
        """, policy)
    equal(where(ran), [WHOLE, SIDE, WHOLE, WHOLE, SIDE, WHOLE, MAIN])


@test
def several_partitions_get_several_kernels():
    policy = """[policy]
        version = 1
        [partition a]
        sm_count = 8
        [partition b]
        sm_count = 25%
        [partition c]
        sm_count = 16
        [partition d]
        sm_count = rest
        [kernel a]
        name = to_side
        partition = a
        [kernel b]
        name = to_main
        partition = b
        [kernel c]
        name = eager
        partition = c
        [kernel d]
        name = plain
        partition = d
        """
    ran = launches("\n".join(f"launch s{i % 2} {kernel}" for i in range(3) for kernel in
                             ("to_side", "to_main", "eager", "plain")), policy)
    equal(where(ran), [8, 32, 16, 76] * 3)
    sets = {line["sm_set"] for line in ran.record if line.symbol == "cuLaunchKernelEx"}
    equal(len(sets), 4)
    numbers = [number for text in sets for part in text.split(",") for first, _, last in [part.partition("-")]
               for number in range(int(first), int(last or first) + 1)]
    equal(sorted(numbers), list(range(132)), "the partitions overlap")


@test
def a_refusal_of_the_driver_is_remembered():
    ran = launches("launch s0 to_side\n" * 3, RECORDING_DRIVER_FAIL="cuLaunchKernelEx:1=1")
    equal(where(ran), [WHOLE] * 3)
    ran.fate("to_side", "refused", "refused by the driver")


# ---- Modes -----------------------------------------------------------------------------------------

MADE = "cuGreenCtx.*|cuDevSmResourceSplit.*|cuDevResourceGenerateDesc|cuEvent.*"

SAMPLE = """
launch s0 to_side
launch s1 to_main
launch null to_side
launch s0 to_side grid=600
begin s0
launch s0 to_side
latest s0 n0
about_node n0
end s0 g0
graph g1
node n1 g1 to_side form=kernel
about_node n1
instantiate x0 g0
instantiate x1 g1
replay x0 s0
replay x1 s0
about s0
"""


@test
def observing_makes_no_green_context_and_changes_nothing():
    policy = KERNELS + "[stream placed]\nindex = 0\npartition = side\n"
    ran = launches(SAMPLE, policy, CUDAPOLICY_MODE="observe")
    equal(ran.calls("cuGreenCtx.*", ours=True), [])
    equal(ran.calls("cuEvent.*|cuStreamCreate.*|cuStreamWaitEvent", ours=True), [])
    equal({sms for _, sms in ran.launches + ran.replayed}, {WHOLE})
    equal(ran.fates("to_side"), [("applied", "observing"), ("refused", "would not be co-resident")])
    ran.fate("to_main", "applied", "observing")
    equal(ran.stream_fates(), [("applied", "observing")])
    equal(ran.report["facts"]["partition.side.0"]["granted"], "16")


@test
def off_asks_nothing():
    policy = KERNELS + "[stream placed]\nindex = 0\npartition = side\n"
    ran = launches(SAMPLE, policy, CUDAPOLICY_MODE="off")
    equal(ran.calls(MADE, ours=True), [])
    equal({sms for _, sms in ran.launches + ran.replayed}, {WHOLE})


@test
def the_mode_is_changed_while_the_program_runs():
    lines = """
        launch s0 to_side
        mode observe
        launch s0 to_side
        stream s2 1
        launch s2 plain
        mode enforce
        launch s0 to_side
        stream s3 1
        launch s3 plain
        mode off
        launch s0 to_side
        stream s4 1
        launch s4 plain
        launch s3 plain
        about s3
        about s4
        launch s3 plain grid=600 cooperative=1
        launch s3 plain grid=600
        mode observe
        launch s3 plain grid=600 cooperative=1
        launch s3 plain grid=600
        mode enforce
        launch s3 plain grid=600 cooperative=1
        launch s0 to_side
        destroy s2
        destroy s3
        destroy s4
        """
    policy = KERNELS + "[stream placed]\nindex = 2..\npartition = side\n"
    ran = launches(lines, policy)
    equal(ran.launches, [("to_side", SIDE), ("to_side", WHOLE), ("plain", WHOLE), ("to_side", SIDE),
                         ("plain", SIDE), ("to_side", WHOLE), ("plain", WHOLE), ("plain", SIDE)]
          + [("plain", WHOLE)] * 5 + [("to_side", SIDE)])
    # Begun while observing, partitions are made when they are first to be used.
    ran = launches(lines.replace("        launch s0 to_side\n        mode observe\n",
                                 "        launch s0 to_side\n", 1),
                   policy, CUDAPOLICY_MODE="observe")
    equal(ran.launches[:5], [("to_side", WHOLE), ("to_side", WHOLE), ("plain", WHOLE), ("to_side", SIDE),
                             ("plain", SIDE)])


if __name__ == "__main__":
    main()
