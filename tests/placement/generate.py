# SPDX-License-Identifier: Apache-2.0
"""Scripts by chance: work, events, waits, captures, graphs and updates on several streams and threads."""

import random

from checks import Script

KERNELS = ("to_side", "to_side", "to_main", "to_main", "eager_side", "with_domain", "plain", "plain")

MODES = (0, 1, 2)

EVENTS = 6


class Capture:
    """A capture that goes on: where it began, what is in it, what was recorded in it."""

    def __init__(self, origin, thread, graph, mode):
        self.origin, self.thread, self.graph, self.mode = origin, thread, graph, mode
        self.streams, self.left = [origin], 4


class Maker:
    """Makes one script. wild: calls may fail, and captures be spoiled."""

    def __init__(self, seed, threads=1, wild=False, count=120):
        self.random = random.Random(seed)
        self.script = Script(threads)
        self.threads, self.wild, self.count = threads, wild, count
        self.captures, self.executables = [], []
        self.event_of = {}  # event: the capture that it was recorded in, None outside, "ended"
        self.flags = {}
        self.graphs = 0

    def pick(self, *choices):
        return self.random.choice(choices)

    def thread(self):
        return self.random.randrange(self.threads)

    def add(self, operation, *words, thread=None):
        return self.script(operation, *words, thread=self.thread() if thread is None else thread)

    # ---- streams and events

    def capture_of(self, stream):
        return next((one for one in self.captures if stream in one.streams), None)

    def blocking_captures(self):
        return any(not self.flags.get(stream, 0) for one in self.captures for stream in one.streams)

    def stream(self):
        """Any stream that takes work now, and a thread that names it."""
        thread = self.thread()
        choice = self.random.random()
        if choice < 0.12 and (self.wild or not self.blocking_captures()):
            return self.pick("null", "legacy"), thread
        if choice < 0.24:
            return self.pick("null_ptsz", "per_thread"), thread
        return self.random.choice(list(self.flags)), thread

    def event(self):
        return f"e{self.random.randrange(EVENTS)}"

    def launch(self):
        stream, thread = self.stream()
        form = self.random.choice(([], [], ["ex"], ["cooperative"]))
        self.add("launch", stream, self.random.choice(KERNELS), *form, thread=thread)

    def other_work(self):
        stream, thread = self.stream()
        self.add(self.pick("copy", "set", "host"), stream, thread=thread)

    def record(self):
        stream, thread = self.stream()
        event = self.event()
        self.event_of[event] = self.capture_of(stream)
        self.add("record", stream, event, thread=thread)

    def wait(self):
        stream, thread = self.stream()
        mine, event = self.capture_of(stream), self.event()
        theirs = self.event_of.get(event, "never")
        if not self.wild and theirs != "never":
            if theirs == "ended" or (mine is not None and theirs is not mine):
                return
            if theirs is not None and (theirs.left < 2 or not stream.startswith("s")):
                return
        if theirs not in (None, "ended", "never") and mine is None and stream.startswith("s"):
            theirs.streams.append(stream)
        self.add("wait", stream, event, thread=thread)

    def work_and_event(self):
        """A wait for what was just put in."""
        self.record()
        self.wait()
        self.launch()

    def synchronize(self):
        if self.captures and not self.wild:
            return
        if self.random.random() < 0.2:
            self.add("synchronize_context")
        elif self.random.random() < 0.4:
            event = self.event()
            if self.wild or self.event_of.get(event) is None:
                self.add("synchronize_event", event)
        else:
            stream, thread = self.stream()
            self.add("synchronize", stream, thread=thread)

    def copy_now(self):
        if not self.captures:
            self.add("copy_now", self.pick("null", "null_ptsz"))

    def priority(self):
        stream = self.random.choice(list(self.flags))
        if self.capture_of(stream) is None:
            self.add("priority", stream, self.random.randrange(5))

    def new_stream(self):
        stream = self.random.choice(list(self.flags))
        if self.capture_of(stream) is not None or self.captures:
            return
        self.add("destroy", stream)
        self.flags[stream] = self.random.randrange(2)
        self.add("stream", stream, self.flags[stream], *self.pick([], [3]))

    # ---- captures

    def begin(self):
        if len(self.captures) >= 2:
            return
        stream = self.random.choice(list(self.flags))
        if self.capture_of(stream) is not None:
            return
        thread, mode = self.thread(), self.random.choice(MODES)
        capture = Capture(stream, thread, f"g{self.graphs % 30}", mode)
        self.graphs += 1
        self.captures.append(capture)
        self.add("begin", stream, mode, thread=thread)
        self.fork(capture)

    def fork(self, capture):
        free = [stream for stream in self.flags if self.capture_of(stream) is None]
        if not free or self.random.random() < 0.3:
            return
        other, event = self.random.choice(free), self.event()
        self.event_of[event] = capture
        self.add("launch", capture.origin, self.random.choice(KERNELS))
        self.add("record", capture.origin, event)
        self.add("wait", other, event)
        capture.streams.append(other)

    def in_capture(self):
        """Mostly work of a capture that goes on."""
        capture = self.random.choice(self.captures)
        stream = self.random.choice(capture.streams)
        for _ in range(self.random.randrange(1, 4)):
            self.add("launch", stream, self.random.choice(KERNELS))
        if self.random.random() < 0.3:
            self.add("ask", stream)
        if self.random.random() < 0.15 and stream == capture.origin:
            self.add("keep", stream, "k0")
            self.add("launch", stream, self.random.choice(KERNELS))
            self.add("keep", stream, "k1")
            self.add("depend", stream, "k0", "set")
            self.add("launch", stream, self.random.choice(KERNELS))
            if self.random.random() < 0.7:
                self.add("depend", stream, "k1", "add")
        capture.left -= 1
        if capture.left <= 0:
            self.end(capture)

    def end(self, capture):
        origin = capture.origin
        for stream in capture.streams:
            if stream != origin and not (self.wild and self.random.random() < 0.2):
                self.add("record", stream, "e9")
                self.add("wait", origin, "e9")
        if self.random.random() < 0.5:
            self.add("launch", origin, self.random.choice(KERNELS))
        self.add("end", origin, capture.graph, thread=capture.thread)
        self.captures.remove(capture)
        for event, inside in self.event_of.items():
            if inside is capture:
                self.event_of[event] = "ended"
        number = f"x{len(self.executables)}"
        self.executables.append(number)
        self.add("instantiate", number, capture.graph)

    def graph(self):
        if not self.executables:
            return
        stream, thread = self.stream()
        if self.capture_of(stream) is None or self.wild:
            self.add("graph", stream, self.random.choice(self.executables), thread=thread)

    def capture_twice(self):
        """The same work captured again, and the graph updated with it."""
        stream = self.random.choice(list(self.flags))
        if self.captures:
            return
        kernels = [self.random.choice(KERNELS) for _ in range(4)]
        thread = self.thread()
        executable = f"x{len(self.executables)}"
        for round_ in range(2):
            self.add("begin", stream, self.random.choice(MODES), thread=thread)
            for kernel in kernels:
                self.add("launch", stream, kernel)
            self.add("end", stream, f"g{40 + round_}", thread=thread)
            if round_ == 0:
                self.add("instantiate", executable, "g40")
            else:
                self.add("update", executable, "g41")
            self.add("graph", stream, executable)
        self.executables.append(executable)
        self.add("graph_destroy", "g40")
        self.add("graph_destroy", "g41")

    # ---- all of it

    def make(self):
        self.script("retain", 0)
        for thread in range(1, self.threads):
            self.script("device", 0, thread=thread)
        for place in range(5):
            self.flags[f"s{place}"] = self.random.randrange(2)
            self.script("stream", f"s{place}", self.flags[f"s{place}"])
        for event in list(range(EVENTS)) + [9]:
            self.script("event", f"e{event}")
        steps = ([self.launch] * 40 + [self.other_work] * 8 + [self.record] * 8 + [self.wait] * 8
                 + [self.work_and_event] * 8 + [self.synchronize] * 4 + [self.copy_now] * 2
                 + [self.priority] + [self.new_stream] * 2 + [self.begin] * 3 + [self.graph] * 12
                 + [self.capture_twice] * 3)
        while len(self.script.lines) < self.count:
            if self.captures and self.random.random() < 0.5:
                self.in_capture()
            else:
                self.random.choice(steps)()
        for capture in list(self.captures):
            self.end(capture)
        self.finish()
        return self.script

    def finish(self):
        for executable in self.executables:
            self.script("executable_destroy", executable)
        for event in list(range(EVENTS)) + [9]:
            self.script("event_destroy", f"e{event}")
        for stream in self.flags:
            self.script("destroy", stream)
        self.script("release", 0)


def taking_turns(seed, threads=1, wild=False, count=120):
    return Maker(seed, threads, wild, count).make()


# ---- Threads at once ------------------------------------------------------------------------------

def at_once(seed, threads=4, count=30):
    """Each thread has streams of its own, a blocking and a non-blocking one; two more are everybody's,
    each with a lock and an event, and now and then without the lock. No call of it fails."""
    chance = random.Random(seed)
    script = Script(threads, free=True)
    script("retain", 0)
    for place in range(2 * threads + 2):
        script("stream", f"s{place}", place % 2)
    for event in range(2 * threads + 2):
        script("event", f"e{event}")
    script("together")
    for thread in range(1, threads):
        script("device", 0, thread=thread)
    for thread in range(threads):
        for _ in range(count):
            step_at_once(script, chance, thread, threads)
    script("join")
    script("synchronize_context")
    for event in range(2 * threads + 2):
        script("event_destroy", f"e{event}")
    for place in range(2 * threads + 2):
        script("destroy", f"s{place}")
    script("release", 0)
    return script


def step_at_once(script, chance, thread, threads):
    def add(*words):
        script(*words, thread=thread)

    def kernel():
        return chance.choice(KERNELS)

    blocking, own = f"s{2 * thread}", f"s{2 * thread + 1}"
    shared = chance.randrange(2)
    stream, event = f"s{2 * threads + shared}", f"e{2 * threads + shared}"
    choice = chance.random()
    if choice < 0.3:
        add("launch", chance.choice((blocking, own, "per_thread", "null_ptsz")), kernel())
    elif choice < 0.35:
        add("launch", stream, kernel()) # without having agreed on an order
    elif choice < 0.65:
        add("lock", f"m{shared}")
        for _ in range(chance.randrange(1, 4)):
            add("launch", stream, kernel())
        if chance.random() < 0.5:
            add("wait", own, event)
            add("launch", own, kernel())
            add("record", stream, event)
        add("unlock", f"m{shared}")
    elif choice < 0.72:
        add("launch", "null", kernel())
    elif choice < 0.8:
        add("record", own, f"e{2 * thread}")
        add("wait", blocking, f"e{2 * thread}")
        add("launch", blocking, kernel())
    elif choice < 0.85:
        add("synchronize", chance.choice((own, blocking, "per_thread")))
    elif choice < 0.9:
        add("copy", chance.choice((own, blocking)))
    elif choice < 0.95:
        add("begin", own, chance.choice(MODES))
        for _ in range(3):
            add("launch", own, kernel())
        add("end", own, f"g{thread}")
        add("instantiate", f"x{thread}", f"g{thread}")
        add("graph", blocking, f"x{thread}")
        add("executable_destroy", f"x{thread}")
        add("graph_destroy", f"g{thread}")
    else:
        add("synchronize_event", f"e{2 * thread}")
