# SPDX-License-Identifier: Apache-2.0
"""Live comparisons: what reaches the driver as arms alternate, in launches and in executable graphs."""

import support
from support import expect, expect_equal, test

PROGRAM = "routes_live"

# Arm 0 changes nothing.
POLICY = """[policy]
version = 1

[kernel one/work]
name = work
arm = 1
mem_sync_domain = remote
"""

# The order of two arms that follows from the seed 1, by slice.
ORDER = [1, 0, 0, 1, 0, 1, 1, 0, 0, 1, 1, 0]


def live(step="kernel:step", slice_steps=3, **more):
    words = {"arms": 2, "seed": 1, "slice": slice_steps, "drop": 1, **more}
    return " ".join(f"{key}={value}" for key, value in words.items()) + f" step={step}"


def run(script, policy=POLICY, text=None, **options):
    env = {"CUDAPOLICY_LIVE": live() if text is None else text, **options.pop("env", {})}
    result = support.run(PROGRAM, *script.split(), policy=policy, env=env, **options)
    expect_equal(result.status, 0, result)
    return result


def domains(calls):
    return [int(call.attribute("MEM_SYNC_DOMAIN") or 0) for call in calls]


def work(result):
    return [call for call in result.launches() if call["kernel"] == "work"]


def replayed(result):
    """The nodes that ran."""
    return [call for call in result.calls if call["line"].startswith("node=")]


def by_slice(each):
    """What each launch's arm has to be, with so many launches in a slice."""
    return [arm for arm in ORDER for _ in range(each)]


def facts(result):
    return result.report["live"]


def graph_run(script, slice_steps=3, policy=POLICY, **options):
    return run(script, policy=policy, text=live("graph", slice_steps), **options)


# ---- launches --------------------------------------------------------------------------------------

@test
def launches_change_with_the_slice_and_at_nothing_else():
    result = run("repeat 36 step work 2 work 3 end")
    expect_equal(domains(work(result)), by_slice(6), result)
    expect_equal(domains([call for call in result.launches() if call["kernel"] == "step"]),
                 [0] * 36, result)


@test
def every_process_with_the_same_seed_makes_the_same_steps():
    first, second = (run("repeat 30 step work 2 end", env={"RANK": rank, "LOCAL_RANK": rank,
                                                           "WORLD_SIZE": "2"})
                     for rank in ("0", "1"))
    expect_equal(domains(work(first)), domains(work(second)))
    expect_equal([slice_[:4] for slice_ in facts(first)["slices"]],
                 [slice_[:4] for slice_ in facts(second)["slices"]])


@test
def the_report_has_the_slices_and_their_times():
    result = run("repeat 10 step work 2 end")
    found = facts(result)
    expect_equal([found[key] for key in ("arms", "seed", "slice", "drop", "warm_up", "steps")],
                 [2, "1", 3, 1, 0, 10], result)
    expect_equal([slice_[:4] for slice_ in found["slices"]],
                 [[0, 1, 0, 3], [1, 0, 3, 3], [2, 0, 6, 3], [3, 1, 9, 1]], result)
    expect_equal([slice_[4] is not None for slice_ in found["slices"]],
                 [True, True, True, False], result)
    expect_equal(found["arm_steps"], [6, 4], result)
    expect_equal(result.report["facts"]["live"]["step"], "kernel:step", result)


@test
def the_warm_up_is_in_arm_0():
    result = run("repeat 8 step work 2 end", text=live(warmup=5))
    expect_equal(domains(work(result)), [0] * 5 + [1] * 3, result)
    expect_equal(facts(result)["warm_up_steps"], 5, result)


@test
def without_the_variable_rules_with_an_arm_do_not_match():
    result = support.run(PROGRAM, *"repeat 6 step work 2 end".split(), policy=POLICY)
    expect_equal(result.status, 0, result)
    expect_equal(domains(work(result)), [0] * 6, result)
    expect("live" not in result.report, "a live comparison", result)


@test
def a_malformed_variable_is_said_once_and_nothing_alternates():
    result = run("repeat 6 step work 2 end", text="arms=2 seed=1 slice=x step=graph")
    expect_equal(domains(work(result)), [0] * 6, result)
    expect_equal(result.err.count('CUDAPOLICY_LIVE: "slice=x": from 2 to 2147483647 steps'), 1, result)
    result = support.run(PROGRAM, "step", policy=POLICY, env={
        "CUDAPOLICY_LIVE": "arms=2", "CUDAPOLICY_STRICT": "1"})
    expect_equal(result.status, 78, result)


@test
def threads_that_launch_meanwhile_go_by_one_arm_or_the_other():
    result = run("threads 2 repeat 36 step work 2 end")
    expect_equal(domains([call for call in work(result) if call["grid"] == "2,1,1"]), by_slice(3),
                 result)
    others = [call for call in work(result) if call["grid"] != "2,1,1"]
    expect(all(call.attribute("MEM_SYNC_DOMAIN") in ("1", None) for call in others),
           "another domain", result)


@test
def a_kernel_with_a_rule_of_every_arm_has_that_arm_s_setting():
    result = run("repeat 36 step work 2 end", policy=POLICY + """
[kernel zero/work]
name = work
arm = 0
priority = -1
""")
    expect_equal([call.attribute("PRIORITY") for call in work(result)],
                 [None if arm else "-1" for arm in by_slice(3)], result)
    expect_equal(domains(work(result)), by_slice(3), result)


@test
def a_launch_that_the_driver_refuses_in_an_arm_is_made_as_it_came():
    result = run("repeat 12 step work 2 end", env={"RECORDING_DRIVER_FAIL": "cuLaunchKernelEx:*=1"})
    made = [call for call in work(result) if call["result"] == "0"]
    expect_equal([call.name for call in made], ["cuLaunchKernel"] * 12, result)


# ---- executable graphs -----------------------------------------------------------------------------

@test
def a_graph_launch_goes_to_the_executable_of_its_arm():
    for how in ("flags", "log", "params"):
        result = graph_run(f"node 4 node 5 instantiate {how} domain repeat 36 launch end domain")
        nodes = replayed(result)
        expect_equal(domains(nodes), by_slice(6), result)
        # The program's own executable is that of the arm without rules, and its graph is as it was.
        expect_equal(len({call["executable"] for call in nodes}), 2, result)
        expect_equal(result.out, "domain 0\ndomain 0\n", result)
        expect_equal(result.notes(), ["live: an executable graph for each arm"], result)


@test
def captured_launches_are_in_the_arm_of_the_graph_s_launch():
    result = graph_run("capture 4 domain instantiate flags repeat 36 launch end domain")
    expect_equal(domains(replayed(result)), by_slice(3), result)
    expect_equal(result.out, "domain 0\ndomain 0\n", result)
    captured = [call for call in work(result) if call["capture"] == "1"]
    expect_equal(domains(captured), [0], result)


@test
def graphs_inside_graphs_are_in_the_arm_too():
    result = graph_run("child 4 instantiate flags repeat 12 launch end")
    expect_equal(domains(replayed(result)), by_slice(3)[:12], result)


@test
def replays_are_counted_for_the_rules_of_their_arm():
    result = graph_run("node 4 instantiate flags repeat 36 launch end")
    rule = next(rule for rule in result.report["rules"] if rule["name"] == "one/work")
    expect_equal(rule["launches_by_kind"]["replayed"], 18, result)


@test
def a_graph_without_such_kernels_has_one_executable():
    result = graph_run("node 4 instantiate flags repeat 12 launch end count",
                       policy=POLICY.replace("name = work", "name = other"))
    expect_equal(result.out, "executables 1\n", result)
    expect_equal(len(result.notes()), 0, result)


@test
def arms_whose_rules_make_no_difference_share_the_program_s_executable():
    result = graph_run("node 4 instantiate flags count")
    expect_equal(result.out, "executables 2\n", result)


@test
def destroying_an_executable_leaves_none_behind():
    result = graph_run("node 4 instantiate flags count repeat 9 launch end destroy count")
    expect_equal(result.out, "executables 2\nexecutables 0\n", result)


@test
def updates_reach_every_executable():
    result = graph_run("node 4 instantiate flags repeat 9 launch end update 6 repeat 27 launch end")
    nodes = replayed(result)
    expect_equal(domains(nodes), by_slice(3), result)
    expect_equal([call["grid"] for call in nodes], ["4,1,1"] * 9 + ["6,1,1"] * 27, result)


@test
def changed_parameters_reach_every_executable():
    result = graph_run("node 4 instantiate flags repeat 9 launch end set 6 repeat 9 launch end "
                       "enable 0 repeat 9 launch end enable 1 repeat 9 launch end")
    nodes = replayed(result)
    expect_equal([call["grid"] for call in nodes], ["4,1,1"] * 9 + ["6,1,1"] * 18, result)
    expect_equal(domains(nodes), by_slice(3)[:18] + by_slice(3)[27:], result)


@test
def uploads_are_made_for_every_executable():
    result = graph_run("node 4 instantiate flags upload")
    expect_equal(sorted(call["executable"] for call in result.named("cuGraphUpload")),
                 ["executable#1", "executable#2"], result)


@test
def a_change_that_the_program_s_executable_refuses_reaches_no_other():
    result = graph_run("node 4 instantiate flags fail cuGraphExecKernelNodeSetParams_v2:1=1 "
                       "set 6 expect 1 repeat 9 launch end")
    expect_equal(len(result.named("cuGraphExecKernelNodeSetParams_v2")), 1, result)
    expect_equal([call["grid"] for call in replayed(result)], ["4,1,1"] * 9, result)


@test
def a_change_that_another_executable_refuses_leaves_the_program_s_alone():
    result = graph_run("node 4 instantiate flags repeat 4 launch end "
                       "fail cuGraphExecKernelNodeSetParams_v2:2=1 set 6 count "
                       "repeat 32 launch end destroy count")
    nodes = replayed(result)
    expect_equal(domains(nodes), [1, 1, 1, 0] + [0] * 32, result)
    expect_equal([call["grid"] for call in nodes], ["4,1,1"] * 4 + ["6,1,1"] * 32, result)
    expect_equal(result.out, "executables 1\nexecutables 0\n", result)
    expect("live: one executable graph for all arms, in none of them: a change of it was refused in "
           "an arm" in result.notes(), "no word about it", result)


@test
def launches_into_another_stream_stay_with_the_executable():
    result = graph_run("node 4 instantiate flags stream 1 repeat 5 launch end stream 2 "
                       "repeat 12 launch end stream 1 repeat 12 launch end destroy count")
    nodes = replayed(result)
    # The sixth launch is in the slice of arm 0, as the fifth was; the executable stays that one.
    expect_equal(domains(nodes), [1, 1, 1, 0, 0] + [0] * 24, result)
    expect_equal(len({call["executable"] for call in nodes[3:]}), 1, result)
    expect_equal(result.out, "executables 0\n", result)
    expect("live: an executable graph stays in one arm: it is launched into more than one stream"
           in result.notes(), "no word about it", result)


@test
def it_may_stay_in_an_arm_with_rules_and_is_changed_there():
    result = graph_run("node 4 instantiate flags stream 1 repeat 2 launch end stream 2 "
                       "repeat 9 launch end set 6 repeat 3 launch end")
    nodes = replayed(result)
    expect_equal(domains(nodes), [1] * 14, result)
    expect_equal([call["grid"] for call in nodes], ["4,1,1"] * 11 + ["6,1,1"] * 3, result)


@test
def a_stream_with_the_handle_of_one_that_is_gone_is_another():
    result = graph_run("node 4 instantiate flags stream 1 launch no_stream 1 stream 1 "
                       "repeat 9 launch end")
    expect_equal(domains(replayed(result)), [1] * 10, result)


@test
def default_streams_are_told_apart():
    result = graph_run("node 4 instantiate flags repeat 2 launch end stream -1 repeat 9 launch end")
    expect_equal(domains(replayed(result)), [1] * 11, result)
    result = graph_run("node 4 instantiate flags stream -1 repeat 12 launch end")
    expect_equal(domains(replayed(result)), by_slice(3)[:12], result)


def expect_order(result, last, takes_over, stream):
    """The launch `takes_over` waits for an event recorded behind the launch `last`."""
    launches = result.named("cuGraphLaunch")
    calls = result.calls
    records = [call for call in result.named("cuEventRecord") if calls.index(call) < calls.index(launches[takes_over])]
    waits = result.named("cuStreamWaitEvent")
    expect_equal(len(waits), 1, result)
    expect_equal(waits[0]["event"], records[-1]["event"], result)
    expect_equal(records[-1]["stream"], launches[last]["stream"], result)
    expect_equal(waits[0]["stream"], stream or launches[takes_over]["stream"], result)
    expect(calls.index(launches[last]) < calls.index(records[-1]) < calls.index(waits[0])
           < calls.index(launches[takes_over]), "another order", result)


REFUSED = "fail cuGraphExecKernelNodeSetParams_v2:2=1 set 6"


@test
def after_it_lost_its_executables_the_next_launch_waits_for_the_last():
    result = graph_run(f"node 4 instantiate flags stream 1 repeat 2 launch end {REFUSED} "
                       "stream 2 launch launch destroy")
    expect_order(result, 1, 2, None)
    expect_equal(len(result.named("cuEventDestroy_v2") + result.named("cuEventDestroy")), 1, result)


@test
def it_waits_also_where_the_last_stream_is_gone():
    result = graph_run(f"node 4 instantiate flags stream 1 repeat 2 launch end {REFUSED} "
                       "no_stream 1 stream 2 launch launch")
    expect_order(result, 1, 2, None)


@test
def it_waits_also_for_a_launch_into_a_default_stream():
    result = graph_run(f"node 4 instantiate flags repeat 2 launch end {REFUSED} stream 2 launch launch")
    launches, waits = result.named("cuGraphLaunch"), result.named("cuStreamWaitEvent")
    expect_equal([wait["stream"] for wait in waits], [launches[2]["stream"]], result)


@test
def it_waits_also_where_the_launch_of_another_executable_is_refused():
    result = graph_run("node 4 instantiate flags stream 1 repeat 2 launch end stream 2 "
                       "fail cuGraphLaunch:1=1 launch launch")
    launches = result.named("cuGraphLaunch")
    expect(launches[2]["executable"] != launches[3]["executable"], "no other executable", result)
    expect_order(result, 1, 3, None)


@test
def graphs_that_can_have_one_executable_only_are_in_no_arm():
    for script, reason in (
            ("conditional node 4 instantiate flags", "it has a conditional node"),
            ("node 4 instantiate device", "it can be launched by the device"),
            ("fail cuGraphInstantiateWithFlags:2=2 node 4 instantiate flags",
             "the driver refused another executable")):
        result = graph_run(script + " repeat 12 launch end count destroy count")
        expect_equal(domains(replayed(result)), [0] * 12, result)
        expect_equal(result.out, "executables 1\nexecutables 0\n", result)
        expect_equal(result.notes(),
                     [f"live: one executable graph for all arms, in none of them: {reason}"], result)


@test
def a_rule_that_asks_about_the_stream_leaves_a_graph_in_no_arm():
    result = graph_run("node 4 instantiate flags repeat 12 launch end",
                       policy=POLICY + "launch_stream = 0\n")
    expect_equal(domains(replayed(result)), [0] * 12, result)
    expect_equal(result.notes(), ["live: one executable graph for all arms, in none of them: a rule "
                                  "asks about the stream that a launch was captured from"], result)


@test
def an_instantiation_that_fails_fails_as_ever():
    result = graph_run("fail cuGraphInstantiateWithFlags:1=2 node 4 instantiate flags expect 2 count")
    expect_equal(result.out, "executables 0\n", result)
    expect_equal(len(result.named("cuGraphInstantiateWithFlags")), 1, result)


@test
def a_launch_that_another_executable_refuses_is_made_by_the_program_s():
    result = graph_run("node 4 instantiate flags fail cuGraphLaunch:1=2 repeat 12 launch end count")
    expect_equal(domains(replayed(result)), [0] * 12, result)
    expect_equal(result.out, "executables 1\n", result)


@test
def a_launch_that_fails_fails_as_ever():
    result = graph_run("node 4 instantiate flags fail cuGraphLaunch:*=700 launch expect 700 launch "
                       "expect 700 count")
    expect_equal(result.out, "executables 2\n", result)


@test
def clusters_in_nodes_need_graph_nodes():
    cluster = POLICY.replace("mem_sync_domain = remote", "cluster_dim = 2\n{}")
    script = "stream 1 repeat 3 work 4 end stream 0 node 4 instantiate flags repeat 12 launch end"
    # The warm-up, in which the shape is accepted by launches, needs the arm; so both have it.
    both = cluster.replace("arm = 1", "arm = 0..1")
    result = graph_run(script, policy=both.format("graph_nodes = yes"))
    expect_equal([call.attribute("CLUSTER_DIMENSION") for call in replayed(result)],
                 ["2/1/1"] * 12, result)
    result = graph_run(script, policy=both.format(""))
    expect_equal([call.attribute("CLUSTER_DIMENSION") for call in replayed(result)], [None] * 12,
                 result)


@test
def a_step_kernel_that_a_graph_launches_begins_no_step_and_that_is_said():
    result = run("capture 4 instantiate flags repeat 9 launch end", text=live("kernel:work"))
    expect_equal(facts(result)["steps"], 0, result)
    expect("live: the step kernel is launched by a graph, where it begins no step: count graph "
           "launches" in result.notes(), "no word about it", result)


@test
def graph_launches_begin_no_step_where_a_kernel_does():
    result = run("node 4 instantiate flags repeat 36 step launch launch end")
    expect_equal(domains(replayed(result)), by_slice(6), result)


support.main()
