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

    def live(self, *options, arms=("none", "p.ini"), program=("launch", "step", "207", "4"), env=None,
             plan=PLAN, script=None):
        command = [PROGRAM, *program] if script is None else ["sh", "-c", script, "sh", "{run}", "{arm}"]
        return self.command("ab", "--live", "--library", LIBRARY, *plan, *options, *arms, "--", *command,
                            env={"LD_LIBRARY_PATH": DOUBLES, "TMPDIR": self.folder, "PROGRAM": PROGRAM,
                                 **(env or {})})

    def text(self, name):
        with open(self.path(name), encoding="utf-8", newline="") as file:
            return file.read()

    def journal(self, folder="f"):
        return [json.loads(line) for line in self.text(f"{folder}/journal.jsonl").splitlines()]

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

    def test_a_process_that_only_waits_for_another_is_no_rank(self):
        found = json.loads(self.live("--json", program=("fork", "launch", "step", "207", "4")).stdout)
        self.assertEqual([(run["ranks"], run["parts"]) for run in found["runs"]], [(1, 1)] * 2)

    def test_a_parent_and_the_child_that_it_waits_for_come_one_after_the_other(self):
        result = self.live("--json", program=("launch", "step", "107", "4", "fork", "launch", "step", "207",
                                              "4"))
        found = json.loads(result.stdout)
        self.assertEqual([(run["ranks"], run["parts"]) for run in found["runs"]], [(1, 2)] * 2)
        self.assertEqual([(run["steps"], run["steps_most"]) for run in found["runs"]], [(314, 314)] * 2)
        # 8 whole blocks in 101 steps after the warm-up, 16 in 201.
        self.assertEqual([run["places"] for run in found["runs"]],
                         [[[0, n] for n in range(8)] + [[1, n] for n in range(16)]] * 2)
        self.assertIn("24 blocks, 1 rank, 2 sequences of steps one after the other", result.stderr)

    def test_a_process_goes_on_after_exec(self):
        found = json.loads(self.live("--json", program=(
            "launch", "step", "107", "4", "exec", "launch", "step", "207", "4")).stdout)
        self.assertEqual([(run["ranks"], run["parts"], run["steps"], len(run["blocks"]))
                          for run in found["runs"]], [(1, 2, 314, 24)] * 2)

    def test_the_table_names_arms_and_method(self):
        result = self.live()
        self.assertIn("candidate", self.live("--export", "a.md").stdout + self.text("a.md"))
        self.assertIn("  Steps    slices of 4, the first 1 dropped, after 6 to warm up; kernel step\n",
                      result.stdout)
        self.assertIn("  Runs     2 of 1 rank; 32 blocks; what is said is about the processes of these "
                      "runs\n", result.stdout)
        self.assertIn("  Seed     1\n", result.stdout)
        self.assertRegex(result.stdout, r"(?m)^  p +32 ")

    def test_quiet_prints_the_answer_alone(self):
        result = self.live("--quiet")
        self.assertEqual(result.stderr, "")
        self.assertEqual(len(result.stdout.splitlines()), 1)
        self.assertIn("32 blocks, in the processes of 2 runs only", result.stdout)

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
        self.assertEqual(self.text("out.json"), result.stdout)
        again = self.live("--export", "out.json")
        self.assertEqual(again.returncode, 125)
        self.assertEqual(self.left(), [])

    def test_every_format_has_slices_intervals_and_the_answer(self):
        names = ["out.json", "out.csv", "out.md", "out.html"]
        answer = self.live("--quiet", *[f"--export={name}" for name in names]).stdout.strip()
        found = json.loads(self.text("out.json"))
        self.assertEqual(found["answer"], answer)
        self.assertEqual(found["experiment"]["live"], {"step_kernel": "step", "slice": 4, "drop": 1, "warm_up": 6,
                                                       "runs": 2})
        rows = [line.split(",") for line in self.text("out.csv").split("\r\n")[:-1]]
        self.assertEqual(len(rows), 1 + 2 * 16 * 3)
        column = {name: place for place, name in enumerate(rows[0])}
        self.assertEqual([row[column["live_run"]] for row in rows[1:]], ["0"] * 48 + ["1"] * 48)
        # The first block of the seed 1, and its times as in the JSON.
        blocks = found["runs"][0]["blocks"]
        for row in rows[1:4]:
            arm = ["none", "p", "none-again"].index(row[column["arm"]])
            self.assertEqual(float(row[column["step"]]), blocks[0][arm])
        self.assertIn(f"**{answer.replace('<', '&lt;')}.**", self.text("out.md"))
        page = self.text("out.html")
        self.assertIn("<h2 id=\"h-runs\">Slices in order</h2>", page)
        self.assertEqual(page.count('class="dot '), 2 * 16 * 3)
        self.assertIn("alternated inside each run", page)

    def test_commands_around_the_runs(self):
        result = self.live("--prepare", "echo prepare $CUDAPOLICY_AB_RUN >>said",
                           "--cleanup", "echo cleanup $CUDAPOLICY_AB_ARM >>said",
                           "--check", "test -s $CUDAPOLICY_AB_OUTPUT && echo check >>said",
                           program=("say", "done", "launch", "step", "207", "4"))
        self.assertIn(result.returncode, (0, 1, 2), result)
        self.assertEqual(self.text("said").splitlines(),
                         ["prepare 0-0", "check", "cleanup live", "prepare 1-0", "check", "cleanup live"])
        self.assertEqual(self.left(), [])

    def test_a_gpu_that_is_held_back_is_said(self):
        os.symlink(os.environ["CUDAPOLICY_TEST_NVML"], self.path("libnvidia-ml.so.1"))
        result = self.live("--export", "out.csv", "--export", "out.json", env={
            "LD_LIBRARY_PATH": f"{DOUBLES}:{self.folder}"})
        self.assertIn(result.returncode, (0, 1, 2), result)
        self.assertIn("NVIDIA Double", result.stderr)
        self.assertIn("none: in 32 of 32 slices the GPU was not as it should be: throttled by temperature in 32\n",
                      result.stdout)
        self.assertIn("GPUs     ", result.stdout)
        self.assertNotIn("no NVML", result.stdout)
        rows = [line.split(",") for line in self.text("out.csv").split("\r\n")[:-1]]
        self.assertEqual({row[rows[0].index("throttled_thermal")] for row in rows[1:]}, {"1"})
        self.assertEqual([run["gpu"]["flags"] for run in json.loads(self.text("out.json"))["runs"]], [1, 1])

    def test_a_check_that_fails_says_that_no_arm_can_be_told(self):
        result = self.live("--check", "echo wrong; exit 1", "--folder", "f", "--export", "out.csv")
        self.assertEqual((result.returncode, result.stdout), (3, ""), result)
        self.assertIn("run 1 is broken: --check: exit status 1: wrong; its files are in", result.stderr)
        self.assertIn("which one cannot be told where all are in one run, ab without --live tells",
                      result.stderr)
        self.assertFalse(os.path.exists(self.path("out.csv")))
        # Nor is it forgotten.
        result = self.live("--check", "echo wrong; exit 1", "--resume", "f")
        self.assertEqual(result.returncode, 3, result)
        self.assertIn("a run that was made before is broken", result.stderr)

    def test_output_is_compared_with_that_of_the_baseline_alone(self):
        script = 'echo "$2 $1" >>calls; echo loss ${CUDAPOLICY_LIVE:+%s}1.5; "$PROGRAM" launch step 207 4'
        result = self.live("--same-output", "/loss .*/", script=script % "")
        self.assertIn(result.returncode, (0, 1, 2), result)
        self.assertEqual(self.text("calls").splitlines(), ["none w0-0", "live 0-0", "live 1-0"])
        self.assertIn("a run of the baseline alone was made", result.stderr)
        result = self.live("--same-output", "/loss .*/", script=script % "-")
        self.assertEqual(result.returncode, 3, result)
        self.assertIn("run 1 is broken: --same-output: ", result.stderr)
        self.assertIn("An arm may change results", result.stderr)
        result = self.live("--same-output", "/loss .*/", "--tolerance", "0,3", script=script % "-")
        self.assertIn(result.returncode, (0, 1, 2), result)

    def test_where_the_baseline_alone_has_no_output_no_arm_is_suspected(self):
        result = self.live("--same-output", "nofile")
        self.assertEqual(result.returncode, 125, result)
        self.assertIn("the run of the baseline alone is broken: --same-output: ", result.stderr)
        self.assertNotIn("An arm may change results", result.stderr)

    def values(self, count=207):
        """A script whose values depend on the arm alone, by the order that the launches show."""
        if not os.path.exists(self.path("order")):
            self.live("--runs", "1", "--folder", "order")
        report = os.path.join(self.folder, "order/runs/0-0-live/reports")
        with open(os.path.join(report, os.listdir(report)[0]), encoding="utf-8") as file:
            slices = json.load(file)["live"]["slices"]
        arms = [0] * 6 + [arm for _, arm, _, steps, _ in slices for _ in range(steps)]
        lines = [f"rate {(100, 200, 100)[arm] + step % 7 / 10}" for step, arm in enumerate(arms[:count])]
        self.write("values", "\n".join(lines) + "\n")
        self.write("values.json", json.dumps({"rates": [float(line.split()[1]) for line in lines]}))
        return 'cat values; "$PROGRAM" launch step 207 4'

    def test_a_metric_with_a_value_for_each_step_is_of_the_arm_of_the_step(self):
        script = self.values()
        for options in (["-m", "+rate[img/s]=rate (.*)"], ["--metric-json", "+rate[img/s]=values.json:rates"]):
            result = self.live("--json", *options, script=script)
            self.assertEqual(result.returncode, 0, result)
            found = json.loads(result.stdout)
            self.assertAlmostEqual(found["arms"][1]["ratio"], 2, delta=0.02)
            self.assertAlmostEqual(found["arms"][2]["ratio"], 1, delta=0.02)
            self.assertEqual((found["winner"], found["arms"][1]["verdict"]), ("p", "better"))
            self.assertIn("the rate of none, where more is better", found["answer"])
            self.assertEqual(found["experiment"]["metrics"][0]["name"], "rate")
        self.assertEqual(self.left(), [])
        self.assertEqual(self.live("-m", "rate=rate (.*)", script=script).returncode, 1)

    def test_a_metric_without_a_value_for_each_step_is_refused(self):
        result = self.live("-m", "rate=rate (.*)", script=self.values(count=206))
        self.assertEqual(result.returncode, 125, result)
        self.assertIn("rate: 206 values and 207 steps; only with one value for each step is it known of "
                      "which arm it is", result.stderr)
        result = self.live("-m", "rate=other (.*)", script=self.values())
        self.assertEqual(result.returncode, 125, result)
        self.assertIn("rate: ", result.stderr)
        result = self.live("-m", "rate=rate (.*)", script='cat values; "$PROGRAM" launch step 107 4 exec '
                           "launch step 100 4")
        self.assertIn("rate: steps were made in 2 sequences one after the other", result.stderr)

    def test_resume_makes_the_runs_that_are_missing(self):
        script = ('echo $1 >>calls; test -e stop && rm stop && kill -INT $PPID && sleep 60; '
                  '"$PROGRAM" launch step 207 4')
        whole = json.loads(self.live("--json", "--folder", "whole", script=script).stdout)
        os.unlink(self.path("calls"))
        stopping = script.replace("test -e stop", "test $1 = 1-0 && test -e stop")
        self.write("stop", "")
        # The same words, so that it is the same command.
        result = self.live("--folder", "f", script=stopping)
        self.assertIn(result.returncode, (0, 1, 2), result)
        self.assertIn("1 of 1 rank; 16 blocks;", result.stdout)
        self.assertIn("; interrupted\n", result.stdout)
        self.assertEqual(len(self.journal()), 2)
        result = self.live("--json", "--resume", "f", script=stopping)
        self.assertIn(result.returncode, (0, 1, 2), result)
        self.assertIn("cudapolicy: 1 runs are there already\n", result.stderr)
        self.assertEqual(self.text("calls").splitlines(), ["0-0", "1-0", "1-0"])
        found = json.loads(result.stdout)
        self.assertEqual([len(run["blocks"]) for run in found["runs"]],
                         [len(run["blocks"]) for run in whole["runs"]])
        self.assertEqual(found["runs"][0], {**self.journal()[1]["live"], "gpu": found["runs"][0]["gpu"]})
        # And then nothing is missing.
        again = self.live("--json", "--resume", "f", script=stopping)
        self.assertEqual(json.loads(again.stdout), found)
        self.assertEqual(len(self.text("calls").splitlines()), 3)

    def test_only_the_same_comparison_is_continued(self):
        self.live("--folder", "f")
        for options, reason in ((["--slice", "5"], "it has other steps, slices or runs"),
                                (["--runs", "3"], "it has other steps, slices or runs"),
                                (["--seed", "2"], "it has another (seed|plan)"),
                                (["--across-ranks", "min"], "it has other metrics"),
                                (["--alpha", "0.1"], "it has another plan")):
            result = self.live("--resume", "f", *options)
            self.assertEqual(result.returncode, 125, result)
            self.assertRegex(result.stderr, reason)
        self.write("p.ini", POLICY + "priority = -1\n")
        self.assertIn("a policy was changed since", self.live("--resume", "f").stderr)
        other = self.command("ab", "--resume", "f", "none", "p.ini", "--library", LIBRARY, "--", PROGRAM,
                             "launch", "step", "207", "4")
        self.assertEqual(other.returncode, 125, other)
        self.assertIn("it was made with --live", other.stderr)

    def test_a_run_that_failed_is_made_again_and_counted(self):
        script = 'test -e failed || { touch failed; exit 7; }; "$PROGRAM" launch step 207 4'
        result = self.live("--folder", "f", script=script)
        self.assertEqual(result.returncode, 125, result)
        self.assertIn("run 1 failed: exit status 7", result.stderr)
        result = self.live("--resume", "f", script=script)
        self.assertIn(result.returncode, (0, 1, 2), result)
        self.assertIn("2 of 1 rank; 32 blocks; what is said is about the processes of these runs; 1 more "
                      "failed\n", result.stdout)

    def test_what_is_claimed_decides_the_exit_status(self):
        self.assertEqual(self.live("--claim", "none").returncode, 0)
        self.assertEqual(self.live("--claim", "no-difference", "--margin", "100", "--runs", "1").returncode,
                         0)

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
        result = self.live(plan=["--step-kernel", "nothing", *PLAN[2:]])
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
        self.assert_usage_error(self.live("--step-kernel", "other"),
                                "--step-kernel: given twice, 'step' and 'other'")
        self.assert_usage_error(self.live(plan=["--step-kernel", "a[b"]), "--step-kernel: 'a[b': ")
        self.assert_usage_error(self.live("--graph-steps"), "--step-kernel and --graph-steps: give one of them")
        self.assert_usage_error(self.live("--folder", "a", "--resume", "b"),
                                "--folder and --resume: give one of them")
        self.assert_usage_error(self.live("--tolerance", "1"), "--tolerance is of --same-output")
        result = self.live("--same-output", "/(/")
        self.assertEqual(result.returncode, 64, result)
        self.assertIn("--same-output: the expression '(' is wrong", result.stderr)
        self.assert_usage_error(self.live("--export", "out.txt"), "a file that ends with .json, .csv")
        self.assert_usage_error(self.live("-m", "a=b", "--metric-json", "c=d"), "--live takes one metric: 'c=d'")
        self.assert_usage_error(self.live("-m", "a=("), "missing closing parenthesis")
        for option, reason in (("--blocks=3", "how many blocks a run has follows from its steps"),
                               ("--looks=10", "there is one look, after all runs"),
                               ("--primary=a", "there is one metric"), ("--skip=3", "--warm-up"),
                               ("--allow-unattached", "there are no steps to compare")):
            self.assert_usage_error(self.live(option), f"--live takes no {option.split('=')[0]}")
            self.assert_usage_error(self.live(option), reason)
        self.assert_usage_error(self.live(arms=()), "no arm is given")
        self.assert_usage_error(self.live("--no-repeat", arms=("none",)), "at least two arms")
        self.assert_usage_error(self.command("ab", "--live", "none", "p.ini"), "no command is given")
        self.assertIn("--step-kernel", self.command("ab", "--live", "--help").stdout)


support.main()
