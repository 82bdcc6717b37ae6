# SPDX-License-Identifier: Apache-2.0
"""Scripts by chance, always the same: the order that they ask for is the order that there is.

CUDAPOLICY_TEST_SCALE: how many, in percent. CUDAPOLICY_TEST_SEED: one of them, whose script is shown.
"""

import os
from concurrent.futures import ThreadPoolExecutor

from checks import (EMPTY, POLICY, Run, check_order, check_places, check_script, expect, main, test)
from generate import at_once, taking_turns

SCALE = int(os.environ.get("CUDAPOLICY_TEST_SCALE", "100"))
ONE = os.environ.get("CUDAPOLICY_TEST_SEED")


def for_each(count, work):
    """Gives the sum of what work(seed) gives."""
    def one(seed):
        try:
            return work(seed)
        except Exception as fault:
            raise AssertionError(f"seed {seed}: {fault}") from fault

    if ONE is not None:
        return work(int(ONE))
    with ThreadPoolExecutor(2) as pool:
        return sum(pool.map(one, range(max(1, count * SCALE // 100))))


def taking_turns_with(threads, wild, program="placement_driver"):
    def work(seed):
        script = taking_turns(seed, threads, wild)
        if ONE is not None:
            print(script.numbered().replace("\n", "\n# "))
        moved, _ = check_script(script, program=program)
        return moved

    return work


@test
def one_thread():
    moved = for_each(60, taking_turns_with(1, False))
    expect(moved > 1000 or SCALE != 100, f"moved {moved}")


@test
def one_thread_through_the_runtime():
    for_each(20, taking_turns_with(1, False, "placement_runtime"))


@test
def four_threads_that_take_turns():
    for_each(40, taking_turns_with(4, False))


@test
def calls_that_fail_and_captures_that_are_spoiled():
    for_each(40, taking_turns_with(2, True))


@test
def four_threads_at_once():
    def work(seed):
        script = at_once(seed)
        moved = 0
        for policy in (None, EMPTY, POLICY):
            ran = Run(script, policy, RECORDING_DRIVER_IN_TURN=str(seed % 2))
            found = check_order(ran, exactly=False)
            for line in ran.results[0]:
                words = line.split()
                expect(words[0] in ("live", "host") or words[2] == "0", line)
                expect(words[0] != "live" or words[2] == "0", f"left over: {line}")
            if policy is POLICY:
                ran_in, world = found[0]
                moved += check_places(ran.records[0], world, ran_in)
        return moved

    moved = for_each(40, work)
    expect(moved > 1000 or SCALE != 100, f"moved {moved}")


if __name__ == "__main__":
    main()
