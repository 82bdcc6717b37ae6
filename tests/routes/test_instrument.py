# SPDX-License-Identifier: Apache-2.0
"""A preload of another kind beside ours, before and behind it: one that watches files, MPI and launches,
as Darshan does in many batch jobs."""

import os

import support
from support import expect, expect_equal, test

INSTRUMENT = support.program("libroutes_instrument.so")
LAUNCHES = 3


def watched(program, *preload, policy=support.REMOTE):
    """The result, and what the instrument noted: paths, reads, launches."""
    result = support.run(program, support.LIBRARY, str(LAUNCHES),
                         policy=policy, preload=preload, env={"INSTRUMENT_LOG": "@FOLDER@/watched"})
    expect_equal((result.status, result.out), (0, "finalized\n"), result)
    expect_equal(len(result.launches()), LAUNCHES, result)
    notes = [line.split(" ", 1) for line in result.read("watched").splitlines()]
    paths = [value for key, value in notes if key == "open"]
    counts = {key: int(value) for key, value in notes if key != "open"}
    return result, paths, counts


def of_the_program(paths):
    return [path for path in paths if path == support.LIBRARY]


def in_remote_domain(result):
    for call in result.launches():
        expect_equal(call.attribute("MEM_SYNC_DOMAIN"), "1", result)


@test
def the_instrument_alone_sees_what_the_program_does():
    for program, launches in (("routes_instrumented", 0), ("routes_instrumented_linked", LAUNCHES)):
        result, paths, counts = watched(program, INSTRUMENT, policy=None)
        expect_equal(of_the_program(paths), [support.LIBRARY] * LAUNCHES, result)
        expect_equal(counts["launches"], launches, result)
        expect(counts["reads"] >= 2 * LAUNCHES, "reads are missing", result)


def beside(program, preload, launches):
    def works():
        result, paths, counts = watched(program, *preload)
        in_remote_domain(result)
        expect_equal(result.report["launches"], LAUNCHES, result)
        expect_equal(of_the_program(paths), [support.LIBRARY] * LAUNCHES, result)
        expect(counts["reads"] >= 2 * LAUNCHES, "reads are missing", result)
        if launches is not None:
            expect_equal(counts["launches"], launches, result)
        # What the library reads itself passes the instrument, too: it stands in the log.
        expect("policy.ini" in [os.path.basename(path) for path in paths],
               "the instrument did not see the policy being read", result)
    return works


# Behind ours it sees no launch: a changed one goes from ours to the driver.
for where, order, seen in (("before", (INSTRUMENT, support.LIBRARY), LAUNCHES),
                           ("behind", (support.LIBRARY, INSTRUMENT), 0)):
    for kind, program, launches in (("loads", "routes_instrumented", 0),
                                    ("is_linked_with", "routes_instrumented_linked", seen)):
        check = beside(program, order, launches)
        check.__name__ = f"an_instrument_{where}_ours_goes_on_in_a_program_that_{kind}_the_driver"
        test(check)


@test
def a_process_without_cuda_is_the_same_for_the_instrument_with_ours():
    alone = support.run("/bin/cat", support.LIBRARY, raw_path=True, preload=(INSTRUMENT,))
    both = support.run("/bin/cat", support.LIBRARY, raw_path=True,
                       preload=(INSTRUMENT, support.LIBRARY))
    expect_equal((both.status, both.out, both.err), (alone.status, alone.out, alone.err))
    expect_equal(alone.status, 0)


if __name__ == "__main__":
    support.main()
