# SPDX-License-Identifier: Apache-2.0
"""The recording driver's record of the application, and what of it a policy may change.

The application writes a note before and after each of its calls (calls.h). So what stands between two
notes is one call of the application, as it reached the driver, and whatever the preloaded library asked
or did on its own account meanwhile.
"""

import re
from collections import Counter
from functools import lru_cache

# Lines are much the same from run to run.
remembered = lru_cache(maxsize=65536)

EFFECTIVE = re.compile(r" effective=\S+")
NODE_ATTRIBUTES = re.compile(r" attributes=\S+")
ROUTE = re.compile(r" route=\w+| injected=1")

# Results of a changed launch after which the launch is made as it came.
RETRIED = {"1", "701", "720", "801", "912"}

# Results of a change of a node after which the library's cluster is taken back and the call repeated.
GIVEN_BACK = {"701", "720", "912"}

LAUNCHES = {"cuLaunchKernel", "cuLaunchKernelEx", "cuLaunchCooperativeKernel", "cuLaunchKernel_ptsz",
            "cuLaunchKernelEx_ptsz", "cuLaunchCooperativeKernel_ptsz"}
CREATIONS = {"cuStreamCreate", "cuStreamCreateWithPriority", "cuGreenCtxStreamCreate"}
NODE_CHANGES = {"cuGraphKernelNodeSetParams", "cuGraphKernelNodeSetParams_v2", "cuGraphNodeSetParams",
                "cuGraphKernelNodeSetAttribute", "cuGraphKernelNodeCopyAttributes"}

# What a policy sets, as the record names it: by the policy's key.
ATTRIBUTES = {
    "mem_sync_domain": "MEM_SYNC_DOMAIN",
    "mem_sync_domain_map": "MEM_SYNC_DOMAIN_MAP",
    "cluster_dim": "CLUSTER_DIMENSION",
    "preferred_cluster_dim": "PREFERRED_CLUSTER_DIMENSION",
    "cluster_scheduling": "CLUSTER_SCHEDULING_POLICY_PREFERENCE",
    "priority": "PRIORITY",
    "shared_memory_carveout": "PREFERRED_SHARED_MEMORY_CARVEOUT",
    "nvlink_util_centric": "NVLINK_UTIL_CENTRIC_SCHEDULING",
    "programmatic_serialization": "PROGRAMMATIC_STREAM_SERIALIZATION",
}
SET = set(ATTRIBUTES.values())


class Difference(Exception):
    """The driver, or the application, did not see what it should have."""


def expect(condition, text):
    if not condition:
        raise Difference(text)


@remembered
def symbol_of(line):
    return line[5:line.index(" ")] if line.startswith("call=") else None


@remembered
def fields_of(line):
    """The caller must not change them."""
    return dict(field.split("=", 1) for field in line.split() if "=" in field)


def attributes_of(text):
    """A list of attributes as pairs, in order."""
    if text in (None, "none", ""):
        return []
    return [tuple(item.split(":", 1)) for item in text.split(",")]


class Group:
    """One call of the application: its number, its function, the how manieth call of that function it
    is, whether it went through the library, and the lines meanwhile."""

    def __init__(self, number, symbol, place, through):
        self.number, self.symbol, self.place, self.through = number, symbol, place, through
        self.lines = []

    def __str__(self):
        return f"call {self.number}, {self.symbol}:\n" + "\n".join(self.lines)


class Record:
    def __init__(self, text):
        self.groups, self.injected = [], []
        group, places = None, Counter()
        # What a runtime does at the start and at the end of the process.
        self.outside = outside = Group(0, "outside of every call", 0, False)
        for line in text.splitlines():
            if line.startswith("note="):
                kind, number, *call = line[5:line.index(" ")].split(":")
                if kind == "begin":
                    symbol, way = call
                    places[symbol] += 1
                    group = Group(int(number), symbol, places[symbol], way == "through")
                    self.groups.append(group)
                else:
                    expect(group is not None and group.number == int(number), f"unpaired {line}")
                    group = None
                continue
            (group or outside).lines.append(line)
            if " injected=1" in line:
                self.injected.append((group or outside, line))

    def lines(self):
        """All of them, those outside of calls first."""
        return self.outside.lines + [line for group in self.groups for line in group.lines]


@remembered
def plain(line):
    """The call with its arguments and its result: without the way by which it came, what the stream gave
    to a launch, and what a node had before."""
    line = EFFECTIVE.sub("", ROUTE.sub("", line))
    return NODE_ATTRIBUTES.sub("", line) if line.startswith("call=cuGraph") else line


def same_launch(wanted, line):
    """The launch with perhaps other attributes: None, or what else is different."""
    name, made = symbol_of(wanted), symbol_of(line)
    if made != name and made != name.replace("Cooperative", "").replace("Kernel", "KernelEx"):
        return f"{made} in place of {name}"
    want, have = fields_of(wanted), fields_of(line)
    for key in ("kernel", "handle", "stream", "grid", "block", "shared", "arguments", "capture",
                "thread"):
        if want.get(key) != have.get(key):
            return f"another {key}"
    own, all_ = attributes_of(want.get("attributes")), attributes_of(have.get("attributes"))
    if "Cooperative" in name and made != name:
        own.append(("COOPERATIVE", "1"))
    if [item for item in own if item[0] not in SET] != [item for item in all_ if item[0] not in SET]:
        return "an attribute that no policy sets"
    order = [name for name, _ in all_]
    places = [order.index(name) for name, _ in own if name in order and name != "COOPERATIVE"]
    if places != sorted(places):
        return "attributes in another order"
    return None


def is_attempt(wanted, line):
    """Whether the line is the wanted call in another form."""
    want, have = symbol_of(wanted), symbol_of(line)
    for names in (LAUNCHES, CREATIONS):
        if want in names and have in names:
            return True
    return (have == want and want in NODE_CHANGES
            and fields_of(line).get("node") == fields_of(wanted).get("node"))


def same_creation(wanted, line):
    """The stream with perhaps another priority: None, or what else is different."""
    want, have = dict(fields_of(wanted)), dict(fields_of(plain(line)))
    if have["call"] not in (want["call"], "cuStreamCreateWithPriority"):
        return f"{have['call']} in place of {want['call']}"
    for fields in (want, have):
        for key in ("call", "priority", "stream", "result"):
            fields.pop(key, None)
    return None if want == have else "another stream"


def is_final(group, wanted, line):
    """Of a call in another form: true when it stands for the wanted one, false when the wanted one has to
    follow as it came. In another form than a policy can give it, an error."""
    symbol, have = symbol_of(wanted), fields_of(line)
    if symbol in NODE_CHANGES:
        expect(have["result"] in GIVEN_BACK, f"made again without need\n{group}")
        return False
    problem = (same_launch if symbol in LAUNCHES else same_creation)(wanted, line)
    expect(problem is None, f"{problem}\n{group}\nwanted {wanted}")
    if have["result"] in RETRIED if symbol in LAUNCHES else have["result"] != "0":
        return False
    expect(have["result"] == fields_of(wanted)["result"], f"another result\n{group}\nwanted {wanted}")
    expect(have.get("stream") == fields_of(wanted).get("stream"), f"another stream\n{group}")
    return True


def match_nodes(group, nodes, wanted):
    """The kernels that a graph launch runs: the same, but for attributes."""
    expect(len(nodes) == len(wanted), f"{len(nodes)} nodes in place of {len(wanted)}\n{group}")
    wanted = [plain(line) for line in wanted]
    for node, want in zip(nodes, wanted):
        expect(node.split(" attributes=")[0] == want.split(" attributes=")[0],
               f"another node\n{group}\nwanted {want}")
        own, all_ = (attributes_of(fields_of(line).get("attributes")) for line in (want, node))
        expect([item for item in own if item[0] not in SET]
               == [item for item in all_ if item[0] not in SET],
               f"an attribute that no policy sets\n{group}\nwanted {want}")


def match(group, reference, ours):
    """The lines of a call of the application with a policy, beside the same one without. Gives pairs of a
    wanted line and the one that stands for it."""
    expect(group.symbol == reference.symbol, f"{group.symbol} in place of {reference.symbol}")
    pairs = []
    wanted = [plain(line) for line in reference.lines if not line.startswith("node=")]
    for line in group.lines:
        if line.startswith("node="):
            continue
        if len(pairs) < len(wanted):
            next_ = wanted[len(pairs)]
            if plain(line) == next_ or is_attempt(next_, line):
                if plain(line) == next_ or is_final(group, next_, line):
                    pairs.append((next_, line))
                continue
        ours(group, line)
    expect(len(pairs) == len(wanted), f"not all calls arrived\n{group}\nwanted {wanted}")
    match_nodes(group, *([line for line in lines if line.startswith("node=")]
                         for lines in (group.lines, reference.lines)))
    return pairs


def compare(record, reference, allowed, by_symbol):
    """All calls of the application. Those of the library are in allowed, and by its own pointers where
    the application has others. Gives all pairs of match."""
    def ours(group, line):
        expect(symbol_of(line) in allowed, f"not ours to call: {line}\n{group}")
        expect(not by_symbol or " route=resolved" in line, f"by another's pointer: {line}\n{group}")

    expect(len(record.groups) == len(reference.groups),
           f"{len(record.groups)} calls in place of {len(reference.groups)}")
    pairs = match(record.outside, reference.outside, ours)
    for group, other in zip(record.groups, reference.groups):
        pairs += match(group, other, ours)
    return pairs
