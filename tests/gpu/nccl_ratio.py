# SPDX-License-Identifier: Apache-2.0
"""Runs nccl_overlap.py in several configurations, in turn, and compares them.

A time differs from communicator to communicator, and even from one replay to the next, by more than
the two per cent that are asked about. So each process takes many rounds, its time is the mean over
these, there are many processes, and a ratio comes with the interval that the spread of the processes
allows.
"""

import json
import os
import pathlib
import random
import select
import signal
import statistics
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
LOWEST, HIGHEST = 0.98, 1.02
RESAMPLINGS = 10000
START_LIMIT, RUN_LIMIT = 120, 90  # seconds; a run's ranks have a limit of their own before


class Runner:
    """A process that has PyTorch loaded, and runs pairs of ranks when asked."""

    def __init__(self, environment, errors):
        self.errors = errors
        self.asked = 0
        with open(errors, "w") as stream:
            self.process = subprocess.Popen([sys.executable, HERE / "nccl_overlap.py"],
                                            env=environment, text=True, stdin=subprocess.PIPE,
                                            stdout=subprocess.PIPE, stderr=stream,
                                            start_new_session=True)

    def run(self, command):
        """The answers of the two ranks; RuntimeError when there are none."""
        limit = RUN_LIMIT + (0 if self.asked else START_LIMIT)
        self.asked += 1
        print(json.dumps(command), file=self.process.stdin, flush=True)
        line = ""
        if select.select([self.process.stdout], [], [], limit)[0]:
            line = self.process.stdout.readline()
        answer = json.loads(line) if line else {"error": f"no answer within {limit} s"}
        if "error" in answer:
            said = self.errors.read_text(errors="replace")[-1500:]
            raise RuntimeError(f"domain {command['domain']}: {answer['error']}\n{said}")
        return answer["ranks"]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()


def time_of(ranks):
    """Milliseconds of a run: the mean over its ranks and rounds of a round's median."""
    return statistics.mean(statistics.median(times) for rank in ranks for times in rank["rounds"])


def in_turn(configurations, repetitions, log, command):
    """Runs each configuration once a repetition, in an order that is shuffled anew (but always
    the same way). `configurations` is name → (runner, domain, check), where check is called with
    the ranks' answers, or None. Returns name → answers of the runs; every answer goes to `log`."""
    order, shuffle = list(configurations), random.Random(1)
    runs = {name: [] for name in order}
    begin = time.monotonic()
    with open(log, "w") as stream:
        for repetition in range(repetitions):
            shuffle.shuffle(order)
            for name in order:
                runner, domain, check = configurations[name]
                ranks = runner.run(dict(command, domain=domain))
                if check is not None:
                    check(ranks)
                runs[name].append(ranks)
                print(json.dumps({"name": name, "repetition": repetition,
                                  "at": round(time.monotonic() - begin, 2), "ranks": ranks}),
                      file=stream, flush=True)
    return runs


def ratio(numerator, denominator, middle):
    """The ratio of the middles (a function: mean, median) of two lists of runs' times, and its
    95 % interval by resampling the runs."""
    draw = random.Random(2)
    ratios = sorted(middle(draw.choices(numerator, k=len(numerator))) /
                    middle(draw.choices(denominator, k=len(denominator)))
                    for _ in range(RESAMPLINGS))
    return (middle(numerator) / middle(denominator), ratios[int(0.025 * RESAMPLINGS)],
            ratios[int(0.975 * RESAMPLINGS) - 1])


def verdict(low, high):
    if LOWEST <= low and high <= HIGHEST:
        return "within"
    return "outside" if high < LOWEST or low > HIGHEST else "undecided"


def jumps(runner, domain, parts, processes, rounds, replays, threshold):
    """What changes a time: in each process, blocks of rounds that renew one of `parts` only, in
    shuffled order. Returns part → how many of its rounds differ from the round before by more
    than `threshold`, of how many."""
    order, shuffle = list(parts), random.Random(3)
    counts = {part: [0, 0] for part in order}
    for _ in range(processes):
        shuffle.shuffle(order)
        ranks = runner.run({"domain": domain, "replays": replays,
                            "rounds": [parts[part] for part in order for _ in range(rounds)]})
        for rank in ranks:
            medians = [statistics.median(times) for times in rank["rounds"]]
            for block, part in enumerate(order):
                # A block's first round is left out: it follows a round of another kind.
                for number in range(block * rounds + 1, (block + 1) * rounds):
                    change = abs(medians[number] / medians[number - 1] - 1)
                    counts[part][0] += change > threshold
                    counts[part][1] += 1
    return counts
