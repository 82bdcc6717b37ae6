# SPDX-License-Identifier: Apache-2.0
"""What is ordered with what, by CUDA's documented rules, in a record.

Two relations over the program's operations (work in streams, event records and waits, waits of the host):

- asked: from the program's calls alone, each in the stream that the program named. A call holds from its
  begin to its end; of two calls that overlap, by threads that did not wait for each other, neither is first.
- made: from the lines that reached the driver, those of the preloaded library included.

Rules: work in a stream is done in order; a wait holds for the event's latest record at the time of the call;
what is put in the legacy stream comes after what is in the context's blocking streams, per-thread streams
among them, and before what is put there later; non-blocking streams stand aside; a host thread that waited
puts all that it does afterwards behind what it waited for. While a stream captures, what is put there
becomes a node behind the stream's dependencies, which are then that node; an event carries dependencies to
another stream.
"""

from calls import FUNCTIONS, expect

ALL_THREADS = "all"

# Results of an attempt to end a capture after which it goes on: not this stream's, no capture.
GOES_ON = {903, 401}


class Names:
    """Operations as bits of a number, the same in all relations that share this."""

    def __init__(self):
        self.bits = {}

    def bit(self, name):
        return 1 << self.bits.setdefault(name, len(self.bits))

    def of(self, mask):
        return [name for name, position in self.bits.items() if mask >> position & 1]


class Stream:
    __slots__ = ("name", "device", "blocking", "last", "graph", "tail")

    def __init__(self, name, device, blocking):
        self.name, self.device, self.blocking = name, device, blocking
        self.last = [] # what its next work comes after
        self.graph = None # that it captures into
        self.tail = set()

    @property
    def legacy(self):
        return self.name.startswith("legacy/")


class Relation:
    """before[name]: the operations that are done when the named one begins, as bits, and itself."""

    def __init__(self, names, together):
        self.names, self.together = names, together
        self.before, self.after_nodes, self.nodes_before = {}, {}, {}
        self.marks = [] # of each point: the operations up to it, as bits
        self.points = [] # of each point: the points up to it, as bits
        self.streams, self.events = {}, {}
        self.host, self.locks = {}, {}

    # ---- points in time

    def point(self, earlier, name=None):
        marks, points = 0, 1 << len(self.points)
        for one in earlier:
            marks |= self.marks[one]
            points |= self.points[one]
        if name is not None:
            expect(name not in self.before, f"{name} is done twice")
            marks |= self.names.bit(name)
            self.before[name] = marks
        self.marks.append(marks)
        self.points.append(points)
        return len(self.points) - 1

    def latest(self, points):
        """Without those that another one stands behind."""
        points = list(dict.fromkeys(points))
        return [one for one in points
                if not any(other != one and self.points[other] >> one & 1 for other in points)]

    # ---- streams

    def stream(self, name, device=0, blocking=True):
        if name not in self.streams:
            self.streams[name] = Stream(name, device, blocking)
        return self.streams[name]

    def barrier(self, stream):
        if stream.legacy:
            others = [other for other in self.streams.values()
                      if other.blocking and other.device == stream.device]
        elif stream.blocking:
            others = [self.stream(f"legacy/{stream.device}", stream.device)]
        else:
            others = []
        return [one for other in others for one in other.last]

    def thread(self, thread):
        return ALL_THREADS if self.together else thread

    def known(self, thread):
        return self.host.get(self.thread(thread), [])

    def earlier(self, stream, thread):
        return stream.last + self.barrier(stream) + self.known(thread)

    def put(self, stream, earlier, name):
        """Work that comes after those points; the stream goes on from there with publish()."""
        return self.point(earlier, name)

    def publish(self, stream, point):
        stream.last = self.latest(stream.last + [point])

    # ---- the host

    def waited(self, thread, points, name=None):
        thread = self.thread(thread)
        self.host[thread] = [self.point(self.host.get(thread, []) + points, name)]

    def release(self, thread, lock):
        self.locks[lock] = self.latest(self.locks.get(lock, []) + self.known(thread))

    def acquire(self, thread, lock):
        thread = self.thread(thread)
        self.host[thread] = self.latest(self.host.get(thread, []) + self.locks.get(lock, []))

    def all_of(self, device):
        return [one for stream in self.streams.values() if stream.device == device
                for one in stream.last]

    # ---- captures

    def capture(self, stream, graph):
        if stream.graph != graph:
            stream.graph, stream.tail = graph, set()

    def leave(self, graph):
        for stream in self.streams.values():
            if stream.graph == graph:
                stream.graph, stream.tail = None, set()

    def captured(self, stream, graph, name):
        self.capture(stream, graph)
        self.after_nodes[name] = frozenset(stream.tail)
        before = self.names.bit(name)
        for node in stream.tail:
            before |= self.nodes_before.get(node, 0)
        self.nodes_before[name] = before
        stream.tail = {name}


class World:
    """What the lines say about the driver's objects, followed line by line: whose a stream is, and each
    thread's device."""

    def __init__(self):
        self.contexts = {} # thread: stack of contexts' names
        self.stream_names = {} # ordinal: name
        self.streams = {} # name: (device, blocking)
        self.places = {} # name of a stream: the context that it runs in
        self.device_of_context = {}
        self.context_of_green = {}
        self.sms = {} # of a context
        self.node_names, self.nodes_of_us = {}, set()
        self.event_names = {}

    def device(self, thread):
        stack = self.contexts.get(thread)
        return self.device_of_context.get(stack[-1], 0) if stack else 0

    def context(self, thread):
        stack = self.contexts.get(thread)
        return stack[-1] if stack else None

    def name(self, line):
        """The stream of a line."""
        value = line.fields["stream"]
        if value in ("legacy", "per_thread"):
            name = f"legacy/{self.device(line.thread)}" if value == "legacy" else \
                   f"per_thread/{line.thread}/{self.device(line.thread)}"
            self.streams.setdefault(name, (self.device(line.thread), True))
            self.places.setdefault(name, self.context(line.thread))
            return name
        return self.stream_names.get(value, value)

    def follow(self, line):
        fields, thread = line.fields, line.thread
        if "result" not in fields or not line.succeeded:
            return
        stack = self.contexts.setdefault(thread, [])
        symbol = line.symbol
        context = fields.get("context")
        if context and context.startswith("primary#"):
            self.device_of_context[context] = int(context[8:])
        if symbol == "cuCtxSetCurrent":
            del stack[-1:]
            if context != "null":
                stack.append(context)
        elif symbol.startswith("cuCtxPushCurrent"):
            stack.append(context)
        elif symbol.startswith("cuCtxPopCurrent"):
            stack.pop()
        elif symbol == "cuGreenCtxCreate":
            self.device_of_context[context] = int(fields["device"])
            self.context_of_green[fields["green_context"]] = context
            self.sms[context] = int(fields["sms"])
        elif symbol.startswith(("cuStreamCreate", "cuGreenCtxStreamCreate")):
            self.made_stream(line)
        elif symbol == "cuEventCreate":
            group = line.group
            own = group is not None and group.own is line and group.operation == "event"
            self.event_names[fields["event"]] = f"e{group.number}" if own else \
                "ours:" + fields["event"]
        if "captured" in fields:
            own = line.group is not None and line.group.own is line
            self.node_names[fields["captured"]] = str(line.group.number) if own else \
                "ours:" + fields["captured"]

    def made_stream(self, line):
        fields, group = line.fields, line.group
        own = group is not None and group.operation == "stream" and group.own is line
        name = group.stream if own else "ours:" + fields["stream"]
        context = self.context_of_green.get(fields.get("green_context"), self.context(line.thread))
        self.stream_names[fields["stream"]] = name
        self.streams[name] = (self.device_of_context.get(context, 0), not int(fields["flags"]) & 1)
        self.places[name] = context


def act(relation, world, line, stream, name):
    """One line has its effect, now."""
    fields, symbol, thread = line.fields, line.symbol, line.thread
    if symbol.startswith("cuEventRecord"):
        event = world.event_names.get(fields["event"], fields["event"])
        if "into" in fields:
            relation.capture(stream, fields["into"])
            relation.events[event] = ("captured", fields["into"], frozenset(stream.tail))
            return
        point = relation.put(stream, relation.earlier(stream, thread), name)
        relation.publish(stream, point)
        relation.events[event] = ("done", point)
    elif symbol.startswith("cuStreamWaitEvent"):
        kind, *what = relation.events.get(world.event_names.get(fields["event"]), ("never",))
        if "into" in fields:
            relation.capture(stream, fields["into"])
            if kind == "captured":
                stream.tail |= what[1]
            return
        earlier = relation.earlier(stream, thread) + points_of_event(relation, world, line)
        relation.publish(stream, relation.put(stream, earlier, name))
    elif symbol.startswith("cuStreamUpdateCaptureDependencies"):
        relation.capture(stream, fields["into"])
        stream.tail = {world.node_names[node] for node in line.node_list("dependencies")}
    elif symbol.startswith("cuStreamBegin"):
        relation.capture(stream, fields["into"]) # to a graph of the program's: its nodes, too
        stream.tail = {world.node_names.get(node, node) for node in line.node_list("dependencies")}
    elif "captured" in fields:
        relation.captured(stream, fields["into"], name or "ours:" + fields["captured"])
    else:
        point = relation.put(stream, relation.earlier(stream, thread), name)
        relation.publish(stream, point)
        if FUNCTIONS["copy_now"].match(symbol) and "Async" not in symbol:
            relation.waited(thread, [point])


def points_of_event(relation, world, line):
    kind, *what = relation.events.get(world.event_names.get(line.fields["event"]), ("never",))
    return what if kind == "done" else []


def points_of_wait(relation, world, line):
    """What the host waits for."""
    if line.symbol.startswith("cuStreamSynchronize"):
        name = world.name(line)
        return list(relation.stream(name, *world.streams[name]).last)
    if line.symbol == "cuEventSynchronize":
        return points_of_event(relation, world, line)
    if line.symbol.startswith("cuDevicePrimaryCtxReset"):
        return relation.all_of(int(line.fields["device"]))
    return relation.all_of(world.device(line.thread))


def is_host_wait(symbol):
    return symbol.startswith(("cuStreamSynchronize", "cuEventSynchronize", "cuCtxSynchronize",
                              "cuDevicePrimaryCtxReset"))


STREAM_WORK = tuple("cuEventRecord cuStreamWaitEvent cuStreamUpdateCaptureDependencies cuStreamBegin "
                    "cuLaunchKernel cuLaunchCooperativeKernel cuLaunchHostFunc cuMemcpy cuMemset "
                    "cuGraphLaunch".split())


def made(record, names, together):
    """The relation that the driver was asked for, line by line. Also gives the world at its end, and by
    group the context that a launch ran in."""
    relation, world, ran_in = Relation(names, together), World(), {}
    for kind, item in record.items:
        if kind in ("release", "acquire"):
            getattr(relation, kind)(*item)
        if kind != "line":
            continue
        line = item
        world.follow(line)
        symbol = line.symbol
        if not line.succeeded:
            if symbol.startswith("cuStreamEndCapture") and line.result not in GOES_ON:
                end_capture(relation, world, line)
            continue
        group = line.group
        own = group is not None and group.own is line
        name = str(group.number) if own else None
        if is_host_wait(symbol):
            relation.waited(line.thread, points_of_wait(relation, world, line), name)
        elif symbol.startswith(STREAM_WORK):
            stream_name = world.name(line)
            stream = relation.stream(stream_name, *world.streams[stream_name])
            act(relation, world, line, stream, name)
            check_dependencies(world, line, stream)
            if own and group.operation == "launch":
                ran_in[group.number] = world.places[stream_name]
        elif symbol.startswith("cuStreamEndCapture"):
            end_capture(relation, world, line)
    return relation, world, ran_in


def check_dependencies(world, line, stream):
    """What the driver says of a capturing stream is what the rules give."""
    if "dependencies" in line.fields:
        found = {world.node_names[node] for node in line.node_list("dependencies")}
        expect(found == stream.tail, f"the driver has {sorted(found)}, the rules give "
               f"{sorted(stream.tail)}: {line}")


def end_capture(relation, world, line):
    name = world.name(line)
    graph = relation.stream(name, *world.streams[name]).graph
    if graph is not None:
        relation.leave(graph)


def stream_asked(world, group, threads):
    """The stream that the program named: per-thread streams are those of its thread."""
    name = group.stream
    if name.startswith("per_thread/"):
        name = f"per_thread/{threads[name.split('/')[1]]}/{name.split('/')[2]}"
    world.streams.setdefault(name, (int(name.rsplit("/", 1)[1]), True))
    return name


def asked(record, names, together, threads):
    """The relation that the program asked for: its own calls, in the streams that it named, each from
    its begin to its end. threads: the record's thread by the script's."""
    relation, world = Relation(names, together), World()
    begun = {}
    for kind, item in record.items:
        if kind in ("release", "acquire"):
            getattr(relation, kind)(*item)
        elif kind == "line":
            world.follow(item)
        elif kind == "begin":
            begun[item.number] = begin(relation, world, item, threads)
        elif kind == "end":
            finish(relation, world, item, begun.pop(item.number), threads)
    return relation


def stream_asked(relation, world, group, threads):
    """The stream that the program named: per-thread streams are those of its thread."""
    name = group.stream
    if name.startswith("per_thread/"):
        name = f"per_thread/{threads[name.split('/')[1]]}/{name.split('/')[2]}"
    if name not in world.streams:
        world.streams[name] = (int(name.rsplit("/", 1)[1]), True)
    return relation.stream(name, *world.streams[name])


def effect_of(group):
    """The line by which a call of the program has an effect on the order, if any."""
    line = group.own
    if line is None:
        line = next((one for one in group.lines
                     if one.symbol.startswith("cuDevicePrimaryCtxReset")), None)
    if line is None:
        return None
    if group.operation == "end":
        return line if line.result not in GOES_ON else None
    known = is_host_wait(line.symbol) or line.symbol.startswith(STREAM_WORK)
    return line if known and line.succeeded else None


def begin(relation, world, group, threads):
    """Points that the call comes after, or that it waits for."""
    line = effect_of(group)
    if line is None or group.operation == "end" or "into" in line.fields:
        return []
    if is_host_wait(line.symbol):
        return points_of_wait(relation, world, line)
    earlier = relation.earlier(stream_asked(relation, world, group, threads), group.thread)
    if group.operation == "wait":
        earlier = earlier + points_of_event(relation, world, line)
    return earlier


def finish(relation, world, group, earlier, threads):
    line = effect_of(group)
    if line is None:
        return
    name = str(group.number)
    if is_host_wait(line.symbol):
        relation.waited(group.thread, earlier, name if line is group.own else None)
        return
    stream = stream_asked(relation, world, group, threads)
    if group.operation == "end":
        if stream.graph is not None:
            relation.leave(stream.graph)
    elif "into" in line.fields:
        act(relation, world, line, stream, name)
    else:
        point = relation.put(stream, earlier, name)
        relation.publish(stream, point)
        if group.operation == "record":
            relation.events[world.event_names[line.fields["event"]]] = ("done", point)
        elif group.operation == "copy_now":
            relation.waited(group.thread, [point])


def compare(asked_for, was_made, exactly):
    """The order asked for is contained in the order made; exactly: and nothing is added."""
    names = asked_for.names
    expect(asked_for.before.keys() == was_made.before.keys(),
           "other operations were done: "
           f"{sorted(asked_for.before.keys() ^ was_made.before.keys(), key=int)}")
    for name, before in asked_for.before.items():
        lost = before & ~was_made.before[name]
        expect(not lost, f"no longer before line {name}: {names.of(lost)}")
        added = was_made.before[name] & ~before
        expect(not added or not exactly, f"before line {name} without need: {names.of(added)}")
    compare_nodes(asked_for, was_made, exactly)


def compare_nodes(asked_for, was_made, exactly):
    names = asked_for.names
    for name, after in asked_for.after_nodes.items():
        expect(name in was_made.after_nodes, f"line {name} did not become a node")
        lost = asked_for.nodes_before[name] & ~was_made.nodes_before[name]
        expect(not lost, f"no longer before the node of line {name}: {names.of(lost)}")
        expect(not exactly or after == was_made.after_nodes[name],
               f"the node of line {name} has edges from {sorted(was_made.after_nodes[name])}, not "
               f"{sorted(after)}")
    more = was_made.after_nodes.keys() - asked_for.after_nodes.keys()
    expect(not more, f"nodes that the program did not make: {sorted(more)}")


def check_driver_agrees(record, world, relation):
    """The nodes' dependencies as the driver has them are those that the rules give."""
    for group in record.groups:
        line = group.own
        if line is None or "captured" not in line.fields or not line.succeeded:
            continue
        found = {world.node_names[node] for node in line.node_list("after")}
        expect(found == relation.after_nodes[str(group.number)],
               f"the driver has {sorted(found)} before the node of {group}")


def check(record, threads, together, exactly=True):
    """Everything about order in one process's record. Gives by line of the script the context that a
    launch ran in, and the world."""
    names = Names()
    was_made, world, ran_in = made(record, names, together)
    asked_for = asked(record, names, together, threads)
    compare(asked_for, was_made, exactly)
    check_driver_agrees(record, world, was_made)
    return ran_in, world
