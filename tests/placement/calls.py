# SPDX-License-Identifier: Apache-2.0
"""The recording driver's record of a script that program.c ran, as calls of the program.

What stands between the two notes of a call is that call as it reached the driver, and what the preloaded
library did meanwhile. Which line is the program's own is told by the function; objects are the library's
when no call of the program made them.
"""

import re


class Fault(Exception):
    """Something is not as it has to be."""


def expect(condition, text):
    if not condition:
        raise Fault(text)


LAUNCHES = re.compile(r"cuLaunch(Kernel|KernelEx|CooperativeKernel)(_ptsz)?$")

ORDERING = re.compile(r"cuEventRecord|cuStreamWaitEvent|cuStreamUpdateCapture|cuLaunch|cu\w*Synchronize")

# The driver's function of each operation. Where the library calls it too, the program's own call is the
# last one, but for "priority".
FUNCTIONS = {
    "launch": LAUNCHES,
    "stream": re.compile(r"cuStreamCreate|cuGreenCtxStreamCreate"),
    "destroy": re.compile(r"cuStreamDestroy"),
    "priority": re.compile(r"cuStreamSetAttribute"),
    "event": re.compile(r"cuEventCreate"),
    "event_destroy": re.compile(r"cuEventDestroy"),
    "copy": re.compile(r"cuMemcpy"),
    "copy_now": re.compile(r"cuMemcpy"),
    "set": re.compile(r"cuMemset"),
    "host": re.compile(r"cuLaunchHostFunc"),
    "record": re.compile(r"cuEventRecord"),
    "wait": re.compile(r"cuStreamWaitEvent"),
    "synchronize": re.compile(r"cuStreamSynchronize"),
    "synchronize_event": re.compile(r"cuEventSynchronize"),
    "synchronize_context": re.compile(r"cuCtxSynchronize"),
    "begin": re.compile(r"cuStreamBeginCapture"),
    "end": re.compile(r"cuStreamEndCapture"),
    "mode": re.compile(r"cuThreadExchangeStreamCaptureMode"),
    "ask": re.compile(r"cuStreamGetCaptureInfo|cuStreamIsCapturing"),
    "keep": re.compile(r"cuStreamGetCaptureInfo|cuStreamIsCapturing"),
    "depend": re.compile(r"cuStreamUpdateCaptureDependencies"),
    "instantiate": re.compile(r"cuGraphInstantiate"),
    "update": re.compile(r"cuGraphExecUpdate"),
    "graph": re.compile(r"cuGraphLaunch"),
    "graph_destroy": re.compile(r"cuGraphDestroy"),
    "executable_destroy": re.compile(r"cuGraphExecDestroy"),
}

# What loads kernels and makes contexts: of the program's calls in there none has to do with order.
PREPARING = {"retain", "release", "device", "reset"}


class Line:
    """One line of the record."""

    __slots__ = ("place", "text", "symbol", "fields", "thread", "group", "nodes")

    def __init__(self, place, text):
        self.place, self.text = place, text
        self.fields = dict(field.split("=", 1) for field in text.split(" ") if "=" in field)
        self.symbol = self.fields.get("call")
        self.thread = self.fields.get("thread")
        self.group = None
        self.nodes = [] # of a graph launch: the lines of the kernels that ran

    @property
    def result(self):
        return int(self.fields["result"])

    @property
    def succeeded(self):
        return self.result == 0

    def node_list(self, key):
        value = self.fields[key]
        return [] if value == "none" else value.split(",")

    def __str__(self):
        return self.text


class Group:
    """One call of the program: its line in the script, its operation, the stream it names."""

    def __init__(self, number, operation, stream, thread, begin):
        self.number, self.operation, self.stream, self.thread = number, operation, stream, thread
        self.begin, self.end = begin, None
        self.lines = []
        self.own = None # the program's own line, where the operation has one

    def settle(self):
        """Once all lines are there."""
        pattern = FUNCTIONS.get(self.operation)
        if pattern is None:
            return
        found = [line for line in self.lines if line.symbol and pattern.match(line.symbol)]
        if found:
            self.own = found[0] if self.operation == "priority" else found[-1]
        if self.operation == "launch":
            made = [line for line in found if line.succeeded]
            expect(len(made) <= 1, f"launched {len(made)} times\n{self}")
            if made:
                self.own = made[0]

    def __str__(self):
        return (f"line {self.number}, {self.operation} {self.stream}:\n"
                + "\n".join(f"  {line}" for line in self.lines
                            if line is self.own or ORDERING.match(line.symbol)))


class Record:
    """One process's record. items: notes and lines in order."""

    def __init__(self, texts):
        self.groups, self.items = [], []
        self.outside = []
        current = {}
        last = None
        for place, text in enumerate(texts):
            line = Line(place, text)
            if text.startswith("node="):
                last.nodes.append(line)
                continue
            if not text.startswith("note="):
                last = line
                line.group = current.get(line.thread)
                (line.group.lines if line.group else self.outside).append(line)
                self.items.append(("line", line))
                continue
            kind, *rest = line.fields["note"].split(":")
            if kind == "begin":
                group = Group(int(rest[0]), rest[1], rest[2], line.thread, place)
                current[line.thread] = group
                self.groups.append(group)
                self.items.append(("begin", group))
            elif kind == "end":
                group = current.pop(line.thread)
                expect(group.number == int(rest[0]), f"unpaired {line}")
                group.end = place
                group.settle()
                self.items.append(("end", group))
            else:
                self.items.append((kind, (line.thread, rest[0])))
        expect(not current, "calls without an end")


def processes(text):
    """The records of the process and, where it forked, of its child, with all that came before it."""
    lines = text.splitlines()
    child = [i for i, line in enumerate(lines) if " process=child" in line]
    if not child:
        return [Record(lines)]
    parent = [line for line in lines if " process=child" not in line]
    before = lines[:child[0]]
    return [Record(parent), Record(before + [lines[i] for i in child])]
