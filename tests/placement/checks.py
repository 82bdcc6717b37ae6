# SPDX-License-Identifier: Apache-2.0
"""Scripts run without the library, with a policy of no rules, and with one that moves launches; and what has
to hold of the three."""

import os
import re
import sys
import tempfile

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "stress"))

import order # noqa: E402
from calls import PREPARING, expect, processes # noqa: E402
from support import main, run, test # noqa: E402,F401

EMPTY = "[policy]\nversion = 1\n"

SIDE_SMS = 16

POLICY = f"""[policy]
version = 1

[partition side]
sm_count = {SIDE_SMS}

[partition main]
sm_count = rest

[kernel side]
name = to_side
partition = side
graph_nodes = yes
allow_legacy = yes

[kernel main]
name = to_main
partition = main
graph_nodes = yes

[kernel eager]
name = eager_side
partition = side

[kernel domain]
name = with_domain
mem_sync_domain = remote
"""


def place_expected(kernel, stream, captured):
    """The partition that POLICY gives a launch."""
    if kernel == "to_side":
        return "side"
    if kernel == "to_main":
        return None if stream.startswith("legacy") else "main"
    if kernel == "eager_side":
        return None if captured or stream.startswith("legacy") else "side"
    return None


class Script:
    """Lines of a script; each call adds one and gives its number."""

    def __init__(self, threads=1, free=False):
        self.free, self.count = free, threads
        self.lines = [f"{'free' if free else 'turns'} {threads}"]

    def __call__(self, operation, *words, thread=0):
        self.lines.append(" ".join([str(thread), operation, *map(str, words)]))
        return len(self.lines)

    def __str__(self):
        return "\n".join(self.lines) + "\n"

    def numbered(self):
        return "\n".join(f"{number}: {line}" for number, line in enumerate(self.lines, 1))


class Run:
    """A script that ran: results and the record of each process."""

    def __init__(self, script, policy, program="placement_driver", said=False, **variables):
        variables.setdefault("RECORDING_DRIVER_DISTINCT_POINTERS", "1")
        with tempfile.NamedTemporaryFile("w", suffix=".script", encoding="utf-8") as file:
            file.write(str(script))
            file.flush()
            self.result = run(program, file.name, "@FOLDER@/results", policy=policy, limit=60,
                              RECORDING_DRIVER_LOG="@FOLDER@/record",
                              RECORDING_DRIVER_SKIP="cuGetProcAddress_v2,cuGetProcAddress",
                              **variables)
        self.script = script
        expect(self.result.status == 0,
               f"status {self.result.status}\n{self.result.err}\n{script.numbered()}")
        expect(said or self.result.err == "", f"said\n{self.result.err}")
        self.text = self.result.files["record"]
        self.results = [self.result.files[name].splitlines()
                        for name in ("results", "results-child") if name in self.result.files]
        self.records = processes(self.text)

    def threads(self, record):
        """The record's thread by the script's."""
        found = {}
        for group in record.groups:
            found.setdefault(self.script.lines[group.number - 1].split()[0], group.thread)
        return found


# ---- Order and places -----------------------------------------------------------------------------

def partition_of(world, context):
    if context not in world.sms:
        return None
    return "side" if world.sms[context] == SIDE_SMS else "main"


def is_cooperative(line):
    """Such a node is on no partition."""
    return "COOPERATIVE:1" in line.text or line.symbol == "cuLaunchCooperativeKernel"


def check_places(record, world, ran_in, expected=place_expected):
    """Launches, and kernels of graphs, ran where the policy says. Gives how many were on a partition."""
    moved = 0
    for group in record.groups:
        line = group.own
        if line is None or not line.succeeded:
            continue
        if group.operation == "launch":
            captured = "captured" in line.fields
            wanted = expected(line.fields["kernel"], group.stream, captured)
            if captured and is_cooperative(line):
                wanted = None
            found = partition_of(world, ran_in[group.number])
            expect(found == wanted, f"on {found}, not on {wanted}: {group}")
            moved += wanted is not None
        elif group.operation == "graph":
            for node in line.nodes:
                wanted = None if is_cooperative(node) else expected(node.fields["kernel"], "", True)
                found = partition_of(world, node.fields["context"])
                expect(found == wanted, f"on {found}, not on {wanted}: {node}\n{group}")
    return moved


def check_order(ran, exactly=True):
    """By process: the world at its end and where launches ran."""
    return [order.check(record, ran.threads(record), not ran.script.free, exactly)
            for record in ran.records]


# ---- The same calls and results -------------------------------------------------------------------

HANDLE = re.compile(r"\b(stream|event|node|graph|executable|context|green_context)#\d+")
LEFT_OUT = {"thread", "route", "attributes", "effective", "context", "green_context", "sms", "sm_set",
            "process"}


class Normal:
    """The program's own lines with names in place of handles, which differ between runs."""

    def __init__(self, world):
        self.world, self.seen = world, {}

    def handle(self, match):
        handle, kind = match.group(0), match.group(1)
        if kind == "stream":
            return self.world.stream_names.get(handle, handle)
        if kind == "event":
            return self.world.event_names.get(handle, handle)
        if kind == "node":
            return "node:" + self.world.node_names.get(handle, handle)
        return self.seen.setdefault(handle, f"{kind}:{len(self.seen)}")

    def __call__(self, line, launch):
        fields = {key: HANDLE.sub(self.handle, value) for key, value in line.fields.items()
                  if key not in LEFT_OUT}
        for key in ("after", "dependencies"):
            if key in fields:
                fields[key] = ",".join(sorted(fields[key].split(",")))
        if launch:
            del fields["call"], fields["stream"]
        for key in ("executable", "node"):
            if line.symbol is None:
                fields.pop(key, None)
        return fields


def match(ran, reference):
    """The program saw the same results, and the driver the same calls of the program."""
    for results, others, child in zip(ran.results, reference.results, (False, True)):
        if child: # it has its parent's objects, those of the library too
            results, others = ([one for one in lines if not one.startswith("live")]
                               for lines in (results, others))
        expect(results == others, "other results:\n" + "\n".join(
            f"{one} in place of {other}" for one, other in zip(results, others) if one != other))
    for record, other in zip(ran.records, reference.records):
        worlds = [order.made(one, order.Names(), True)[1] for one in (record, other)]
        normal, normal_other = map(Normal, worlds)
        expect(len(record.groups) == len(other.groups), "another number of calls")
        for group, wanted in zip(record.groups, other.groups):
            match_group(group, wanted, normal, normal_other)


def match_group(group, wanted, normal, normal_other):
    expect((group.number, group.operation) == (wanted.number, wanted.operation), "other calls")
    expect((group.own is None) == (wanted.own is None), f"not the same call\n{group}\n{wanted}")
    if group.own is None or group.operation in PREPARING:
        return
    launch = group.operation == "launch"
    one, other = normal(group.own, launch), normal_other(wanted.own, launch)
    if group.operation == "stream":
        for fields in (one, other): # on a partition it is another function
            for key in ("call", "priority", "green_context", "flags"):
                fields.pop(key, None)
    expect(one == other, f"{one}\nin place of\n{other}\n{group}")
    nodes = [[now(line, False) for line in lines] for now, lines in
             ((normal, group.own.nodes), (normal_other, wanted.own.nodes))]
    expect(nodes[0] == nodes[1], f"other kernels in the graph\n{group}")


def check_calls(ran):
    """What the program called reached the driver from the program, and it called nothing else: for
    programs that do not get their functions where the library does."""
    for record in ran.records:
        for group in record.groups:
            if group.operation in PREPARING or group.operation in ("launch", "stream"):
                continue # these the library may make in its own way
            for line in group.lines:
                own = line is group.own
                expect(own == (line.fields.get("route") == "exported"),
                       f"not the call that the program made: {line}\n{group}")


def check_script(script, policy=POLICY, program="placement_driver", exactly=True,
                 expected=place_expected, **variables):
    """All of it. Gives how many launches were on a partition, and the run."""
    reference = Run(script, None, program, **variables)
    check_order(reference, exactly)
    empty = Run(script, EMPTY, program, **variables)
    check_order(empty, exactly)
    match(empty, reference)
    ran = Run(script, policy, program, **variables)
    found = check_order(ran, exactly)
    match(ran, reference)
    if program == "placement_driver":
        check_calls(ran)
    ran_in, world = found[0] # a child of fork does not know its parent's streams
    return check_places(ran.records[0], world, ran_in, expected) if expected else 0, ran
