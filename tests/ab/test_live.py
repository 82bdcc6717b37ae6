# SPDX-License-Identifier: Apache-2.0
"""cudapolicy ab --live, end to end, on the recording driver: how long steps take means nothing here."""

import json
import os
import sys

sys.path.append(os.path.join(os.environ["CUDAPOLICY_TEST_SOURCE"], "tests", "command"))

import support  # noqa: E402
from support import LIBRARY  # noqa: E402

PROGRAM = os.environ["CUDAPOLICY_TEST_PROGRAM"]
DOUBLES = os.environ["CUDAPOLICY_TEST_DOUBLES"]

POLICY = "[policy]\nversion = 1\n[kernel steps]\nname = step\nmem_sync_domain = remote\n"
PLAN = ["--step-kernel", "step", "--slice", "4", "--drop", "1", "--warm-up", "6", "--seed", "1",
        "--runs", "2"]


class Live(support.Case):
    def setUp(self):
        super().setUp()
        self.write("p.ini", POLICY)

    def live(self, *options, arms=("none", "p.ini"), program=("launch", "step", "207", "4"), env=None):
        return self.command("ab", "--live", "--library", LIBRARY, *PLAN, *options, *arms, "--", PROGRAM,
                            *program, env={"LD_LIBRARY_PATH": DOUBLES, "TMPDIR": self.folder,
                                           **(env or {})})

    def left(self):
        return [name for name in os.listdir(self.folder) if name.startswith("cudapolicy-ab-")]

    def test_steps_of_all_runs_are_compared_by_block(self):
        result = self.live("--json")
        self.assertIn(result.returncode, (0, 1, 2), result)
        found = json.loads(result.stdout)
        self.assertEqual([arm["name"] for arm in found["arms"]], ["none", "p", "none-again"])
        self.assertEqual([arm["role"] for arm in found["arms"]],
                         ["baseline", "candidate", "baseline again"])
        # 201 steps after the warm-up: 50 slices that ended, 16 blocks of three.
        self.assertEqual([len(run["blocks"]) for run in found["runs"]], [16, 16])
        self.assertEqual(found["arms"][1]["blocks"], 32)
        self.assertEqual(found["seed"], "1")
        self.assertTrue(found["arms"][1]["these_processes_only"])
        self.assertGreater(found["arms"][1]["ratio"], 0)
        self.assertEqual(self.left(), [])

    def test_ranks_are_found_by_their_reports(self):
        found = json.loads(self.live("--json", program=("fork", "launch", "step", "207", "4")).stdout)
        self.assertEqual([run["ranks"] for run in found["runs"]], [1, 1])
        found = json.loads(self.live("--json", program=(
            "launch", "step", "107", "4", "fork", "launch", "step", "207", "4")).stdout)
        self.assertEqual([run["ranks"] for run in found["runs"]], [2, 2])
        self.assertEqual([(run["steps"], run["steps_most"]) for run in found["runs"]],
                         [(107, 207), (107, 207)])

    def test_the_table_names_arms_and_method(self):
        result = self.live("--quiet")
        self.assertIn("candidate", result.stdout)
        self.assertIn("32 blocks in 2 runs of 1 rank; slices of 4 steps, the first 1 dropped; seed 1",
                      result.stdout)
        self.assertIn("about the processes of these runs", result.stdout)
        self.assertEqual(result.stderr, "")

    def test_progress_and_unmatched_rules_are_said(self):
        self.write("q.ini", POLICY.replace("name = step", "name = other"))
        result = self.live(arms=("none", "q.ini"))
        self.assertIn("run 2 of 2: 207 steps, 16 blocks, 1 rank\n", result.stderr)
        self.assertIn("cudapolicy: warning: [kernel q/steps] matched no launch\n", result.stderr)

    def test_the_launches_really_alternate(self):
        record = self.path("record")
        self.live("--runs", "1", "--no-repeat", env={"RECORDING_DRIVER_LOG": record})
        with open(record, encoding="utf-8") as file:
            domains = ["MEM_SYNC_DOMAIN:1" in line for line in file if "call=cuLaunch" in line]
        order = [1, 0, 0, 1, 0, 1, 1, 0, 0, 1, 1, 0]
        self.assertEqual(domains[:6], [False] * 6)
        self.assertEqual(domains[6:6 + 48], [arm == 1 for arm in order for _ in range(4)])

    def test_a_folder_that_was_named_keeps_policy_and_reports(self):
        self.live("--folder", "kept")
        with open(self.path("kept/live.ini"), encoding="utf-8") as file:
            self.assertIn("[kernel p/steps]\nname = step\narm = 1\n", file.read())
        self.assertEqual(len(os.listdir(self.path("kept/runs/1-0-live/reports"))), 1)

    def test_the_export_is_what_is_printed_as_json(self):
        result = self.live("--json", "--export", "out.json")
        with open(self.path("out.json"), encoding="utf-8") as file:
            self.assertEqual(file.read(), result.stdout)
        again = self.live("--export", "out.json")
        self.assertEqual(again.returncode, 125)

    def test_what_needs_process_arms_is_refused_before_anything_runs(self):
        self.write("s.ini", "[policy]\nversion = 1\n[stream s]\npriority = -1\n")
        result = self.live(arms=("none", "s.ini"))
        self.assertEqual(result.returncode, 125)
        self.assertIn("s.ini:3:1: a stream gets its settings when it is created, and keeps them in all "
                      "arms; this needs process arms: ab without --live\n", result.stderr)
        self.assertEqual(self.left(), [])

    def test_variables_of_the_environment_need_process_arms(self):
        self.write("e.ini", support.GOOD_POLICY + "[env]\nA = 1\n")
        result = self.live(arms=("none", "e.ini"))
        self.assertEqual(result.returncode, 125)
        self.assertIn("e.ini:8:1: [env] holds from the start of the program on, in all arms; this needs "
                      "process arms: ab without --live\n", result.stderr)

    def test_a_run_that_fails_ends_it(self):
        result = self.live(program=("launch", "step", "5", "4", "exit", "7"))
        self.assertEqual(result.returncode, 125)
        self.assertIn("run 1 failed: exit status 7", result.stderr)

    def test_a_step_kernel_that_never_ran_is_said(self):
        result = self.live("--step-kernel", "nothing")
        self.assertEqual(result.returncode, 125)
        self.assertIn("no process made a step: the kernel nothing was never launched under the library",
                      result.stderr)

    def test_too_few_steps_are_said_with_how_many_it_takes(self):
        result = self.live(program=("launch", "step", "12", "4"))
        self.assertEqual(result.returncode, 125)
        self.assertIn("12 steps are no whole block: it takes 6 of warm-up and 3 x 4 for each block",
                      result.stderr)

    def test_wrong_command_lines(self):
        self.assert_usage_error(self.live("--drop", "4"), "--drop 4 leaves nothing of a slice of 4 steps")
        self.assert_usage_error(self.live("--slice", "1"), "--slice: '1' is not a number of steps")
        self.assert_usage_error(self.live("--blocks", "3"), "unknown option '--blocks'")
        self.assert_usage_error(self.live(arms=()), "no arm is given")
        self.assert_usage_error(self.live("--no-repeat", arms=("none",)), "at least two arms")
        self.assert_usage_error(self.command("ab", "--live", "none", "p.ini"), "no command is given")
        self.assertIn("--step-kernel", self.command("ab", "--live", "--help").stdout)


support.main()
