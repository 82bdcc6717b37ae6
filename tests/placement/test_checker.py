# SPDX-License-Identifier: Apache-2.0
"""The checker itself: what it takes for ordered, and that it sees an order that is lost."""

import re
from types import SimpleNamespace

import order
from calls import Fault, processes
from checks import POLICY, Run, Script, expect, main, test
from generate import taking_turns


# ---- The rules ------------------------------------------------------------------------------------

class Asked:
    """The relation of a script that ran without the library: before(a, b) says whether line a is done
    when line b begins, by the program's calls and by the driver's alike."""

    def __init__(self, script):
        ran = Run(script, None)
        record, together = ran.records[0], not script.free
        self.names = order.Names()
        self.relations = [order.made(record, self.names, together)[0],
                          order.asked(record, self.names, together, ran.threads(record))]

    def before(self, one, other):
        bit = self.names.bit(str(one))
        answers = {bool(relation.before[str(other)] & bit) for relation in self.relations}
        expect(len(answers) == 1, f"the relations disagree about {one} and {other}")
        return answers.pop()

    def node_before(self, one, other):
        return all(relation.nodes_before[str(other)] & self.names.bit(str(one))
                   for relation in self.relations)


def streams(script, *flags):
    script("retain", 0)
    for place, one in enumerate(flags):
        script("stream", f"s{place}", one)
    for event in range(3):
        script("event", f"e{event}")


@test
def work_in_one_stream_is_in_order_and_in_two_is_not():
    script = Script()
    streams(script, 1, 1)
    first, second = script("launch", "s0", "plain"), script("copy", "s0")
    other = script("launch", "s1", "plain")
    asked = Asked(script)
    expect(asked.before(first, second) and not asked.before(second, first), "one stream")
    expect(not asked.before(first, other) and not asked.before(other, first), "two streams")


@test
def event_is_its_latest_record():
    script = Script()
    streams(script, 1, 1)
    first = script("launch", "s0", "plain")
    script("record", "s0", "e0")
    second = script("launch", "s0", "plain")
    script("wait", "s1", "e0")
    waiting = script("launch", "s1", "plain")
    script("record", "s0", "e0") # too late for the wait
    asked = Asked(script)
    expect(asked.before(first, waiting), "the record before the wait")
    expect(not asked.before(second, waiting), "what came after the record")


@test
def legacy_stream_is_a_barrier_for_blocking_streams_both_ways():
    script = Script(threads=2)
    streams(script, 0, 1, 0)
    script("device", 0, thread=1)
    blocking, aside = script("launch", "s0", "plain"), script("launch", "s1", "plain")
    per_thread = script("launch", "per_thread", "plain", thread=1)
    legacy = script("launch", "null", "plain")
    later = script("launch", "s2", "plain")
    later_per_thread = script("launch", "null_ptsz", "plain")
    later_aside = script("launch", "s1", "plain")
    asked = Asked(script)
    expect(asked.before(blocking, legacy) and asked.before(per_thread, legacy), "before")
    expect(asked.before(legacy, later) and asked.before(legacy, later_per_thread), "after")
    expect(asked.before(blocking, later), "through it")
    expect(not asked.before(aside, legacy) and not asked.before(legacy, later_aside), "aside")


@test
def host_that_waited_is_behind_what_it_waited_for():
    for wait in (("synchronize", "s0"), ("synchronize_event", "e0"), ("synchronize_context",)):
        script = Script()
        streams(script, 1, 1)
        first = script("launch", "s0", "plain")
        script("record", "s0", "e0")
        between = script("launch", "s1", "plain")
        script(*wait)
        last = script("launch", "s1", "plain")
        asked = Asked(script)
        expect(asked.before(first, last), f"{wait}")
        expect(not asked.before(first, between), "before the wait")
    script = Script()
    streams(script, 1)
    first, last = script("copy_now", "null"), script("launch", "s0", "plain")
    expect(Asked(script).before(first, last), "a synchronous copy")


@test
def threads_are_ordered_where_they_wait_for_each_other():
    for locked in (True, False):
        script = Script(threads=2, free=True)
        streams(script, 1, 1)
        first = script("launch", "s0", "plain")
        if locked:
            script("synchronize", "s0")
        script("together")
        script("device", 0, thread=1)
        other = script("launch", "s1", "plain", thread=1)
        if not locked:
            script("synchronize", "s1", thread=1)
        script("join")
        last = script("launch", "s0", "plain")
        asked = Asked(script)
        expect(asked.before(first, other) == locked, "at the start")
        expect(asked.before(other, last) != locked, "at the end")


@test
def nodes_depend_on_their_streams_dependencies():
    script = Script()
    streams(script, 1, 1)
    script("begin", "s0", 0)
    first = script("launch", "s0", "plain")
    script("record", "s0", "e0")
    second = script("launch", "s0", "plain")
    script("wait", "s1", "e0")
    branch = script("copy", "s1")
    script("record", "s1", "e1")
    script("wait", "s0", "e1")
    last = script("launch", "s0", "plain")
    script("end", "s0", "g0")
    asked = Asked(script)
    expect(asked.node_before(first, branch) and not asked.node_before(second, branch), "fork")
    expect(asked.node_before(branch, last) and asked.node_before(second, last), "join")


# ---- Faults that have to be seen ------------------------------------------------------------------

def script_with_moved_launches():
    """Every moved launch has work before it and after it, in its stream and by what follows from it."""
    script = Script()
    streams(script, 0, 1)
    script("launch", "s0", "plain")
    script("launch", "s1", "plain")
    for _ in range(2):
        script("launch", "s0", "to_side")
        script("launch", "s0", "plain")
        script("launch", "s1", "to_main")
        script("record", "s1", "e0")
        script("wait", "s0", "e0")
        script("launch", "null", "to_side")
        script("launch", "s0", "to_main")
        script("launch", "null", "plain")
    script("launch", "s1", "plain")
    script("begin", "s1", 0)
    script("launch", "s1", "plain")
    for kernel in ("to_side", "plain", "to_main", "to_side", "plain"):
        script("launch", "s1", kernel)
    script("end", "s1", "g0")
    return script


def moves(record, captured=False):
    """The launches between a fork and a join, and the lines of these."""
    for group in record.groups:
        if group.operation != "launch" or group.own is None:
            continue
        if ("captured" in group.own.fields) != captured:
            continue
        ours = [line for line in group.lines
                if line.symbol.startswith(("cuEventRecord", "cuStreamWaitEvent"))]
        if ours:
            yield group, ours


def is_seen(script, text):
    ran = SimpleNamespace(script=script)
    try:
        for record in processes(text):
            order.check(record, Run.threads(ran, record), not script.free)
    except Fault:
        return True
    return False


def without(text, *gone):
    places = {line.place for line in gone}
    return "\n".join(line for place, line in enumerate(text.splitlines()) if place not in places)


def changed(text, line, new):
    lines = text.splitlines()
    lines[line.place] = new
    return "\n".join(lines)


@test
def fork_or_join_that_is_missing_is_seen():
    script = script_with_moved_launches()
    ran = Run(script, POLICY)
    expect(not is_seen(script, ran.text), "a fault where there is none")
    count = 0
    for group, ours in moves(ran.records[0]):
        expect(len(ours) == 4, f"not fork and join\n{group}")
        for line in ours:
            expect(is_seen(script, without(ran.text, line)), f"not seen without {line}\n{group}")
            count += 1
    expect(count == 32, f"{count} lines")


@test
def fork_or_join_that_is_missing_in_a_capture_is_seen():
    script = script_with_moved_launches()
    ran = Run(script, POLICY)
    count = 0
    for group, ours in moves(ran.records[0], captured=True):
        set_ = next(line for line in group.lines
                    if line.symbol.startswith("cuStreamUpdateCaptureDependencies"))
        for gone in ([ours[0]], [ours[1]], [ours[2]], [ours[3], set_], ours + [set_]):
            expect(is_seen(script, without(ran.text, *gone)), f"not seen without {gone}\n{group}")
            count += 1
        # The nodes that the stream depends on are set anyway.
        expect(not is_seen(script, without(ran.text, ours[3])), f"a fault where is none\n{group}")
    expect(count == 15, f"{count} times")


@test
def join_of_something_else_is_seen():
    script = script_with_moved_launches()
    ran = Run(script, POLICY)
    for group, ours in moves(ran.records[0]):
        fork, join = ours[0].fields["event"], ours[2].fields["event"]
        text = changed(ran.text, ours[3], ours[3].text.replace(join, fork))
        expect(is_seen(script, text), f"the join waits for the fork\n{group}")
        text = changed(ran.text, ours[2],
                       ours[2].text.replace(ours[2].fields["stream"], ours[0].fields["stream"]))
        expect(is_seen(script, text), f"the join is recorded in the program's stream\n{group}")


@test
def join_before_the_launch_is_seen():
    script = script_with_moved_launches()
    ran = Run(script, POLICY)
    for group, ours in moves(ran.records[0]):
        lines = ran.text.splitlines()
        lines.insert(group.own.place, lines.pop(ours[2].place))
        expect(is_seen(script, "\n".join(lines)), f"recorded too early\n{group}")


@test
def launch_made_twice_is_seen():
    script = script_with_moved_launches()
    ran = Run(script, POLICY)
    for group, _ in moves(ran.records[0]):
        lines = ran.text.splitlines()
        lines.insert(group.own.place, lines[group.own.place])
        expect(is_seen(script, "\n".join(lines)), f"twice\n{group}")


@test
def order_that_was_not_asked_for_is_seen():
    """Two streams that share a side stream."""
    script = Script()
    streams(script, 1, 1)
    for _ in range(2):
        script("launch", "s0", "to_side")
        script("launch", "s1", "to_side")
    ran = Run(script, POLICY)
    sides = [group.own.fields["stream"] for group, _ in moves(ran.records[0])]
    text = re.sub(re.escape(sides[1]) + r"\b", sides[0], ran.text)
    lines = [line for line in text.splitlines()]
    creation = [i for i, line in enumerate(lines)
                if line.startswith("call=cuGreenCtxStreamCreate") and f"stream={sides[0]} " in line]
    del lines[creation[-1]]
    expect(is_seen(script, "\n".join(lines)), "not seen")


@test
def edges_of_nodes_that_differ_are_seen():
    script = script_with_moved_launches()
    ran = Run(script, POLICY)
    count = 0
    for group in ran.records[0].groups:
        after = group.own.fields.get("after", "none") if group.own else "none"
        if after != "none":
            text = changed(ran.text, group.own, group.own.text.replace(f"after={after}", "after=none"))
            expect(is_seen(script, text), f"an edge less\n{group}")
            count += 1
    expect(count == 5, f"{count} nodes")


@test
def most_forks_and_joins_of_scripts_by_chance_matter():
    """Others order nothing: a kernel with nothing before it, or nothing after it."""
    seen = count = 0
    for seed in range(3):
        script = taking_turns(seed)
        ran = Run(script, POLICY)
        for _, ours in list(moves(ran.records[0]))[::3]:
            for line in ours[1::2]:
                seen += is_seen(script, without(ran.text, line))
                count += 1
    expect(seen > count / 2, f"{seen} of {count}")


if __name__ == "__main__":
    main()
