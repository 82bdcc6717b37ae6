# SPDX-License-Identifier: Apache-2.0
"""cudapolicy ab, end to end: runs of a shell script that launches on the recording driver, and prints a
metric that depends on nothing but the arm and the run."""

import json
import os
import re
import signal
import sys

sys.path.insert(0, os.path.join(os.environ["CUDAPOLICY_TEST_SOURCE"], "tests", "command"))
import support
from support import LIBRARY

PROGRAM = os.environ["CUDAPOLICY_TEST_PROGRAM"]
DOUBLES = os.environ["CUDAPOLICY_TEST_DOUBLES"]
METRIC = ["-m", "time[s]=^time ([0-9.]+)"]

# What every script begins with: which run it is, the count of calls, and a launch, without which an arm with
# a policy would not be one.
SCRIPT = """#!/bin/sh
arm=$1 run=$2
echo "$arm $run" >>calls
calls=$(wc -l <calls)
"$PROGRAM" launch kernel 2 4 || exit 99
"""

OTHER_POLICY = support.GOOD_POLICY + "\n[kernel more]\nname = other*\npriority = -1\n"


class Experiment(support.Case):
    def setUp(self):
        super().setUp()
        self.p = self.write("p.ini", support.GOOD_POLICY)
        self.environment = {"LD_LIBRARY_PATH": DOUBLES, "PROGRAM": PROGRAM, "TMPDIR": self.folder}

    def script(self, *lines):
        path = self.write("script", SCRIPT + "\n".join(lines) + "\n")
        os.chmod(path, 0o755)

    def arguments(self, *options, arms=("none", "p.ini"), metric=METRIC):
        return ["ab", "--library", LIBRARY, *metric, *options, *arms, "--", "./script", "{arm}",
                "{run}"]

    def ab(self, *options, env=None, **arguments):
        return self.command(*self.arguments(*options, **arguments),
                            env={**self.environment, **(env or {})})

    def few(self, *options, blocks=1, **arguments):
        """So many blocks, whatever they show."""
        return self.ab("--claim", "none", "--blocks", str(blocks), "--seed", "7", "--folder", "f",
                       *options, **arguments)

    def calls(self):
        try:
            with open(self.path("calls"), encoding="ascii") as file:
                return [tuple(line.split()) for line in file]
        except FileNotFoundError:
            return []

    def journal(self, folder="f"):
        with open(self.path(f"{folder}/journal.jsonl"), encoding="utf-8") as file:
            return [json.loads(line) for line in file]

    def runs(self, folder="f"):
        return self.journal(folder)[1:]

    def outcomes(self, arm, folder="f"):
        return [run["outcome"] for run in self.runs(folder) if run["arm"] == arm]

    def assert_nothing_ran(self, result, text, status=125):
        self.assertEqual(result.returncode, status, result)
        self.assertIn(text, result.stderr)
        self.assertEqual(self.calls(), [])


class Answer(Experiment):
    """The exit status is what the runs show. With the seed, order and values are always the same."""

    def ab(self, *options, **arguments):
        return super().ab("--seed", "7", *options, **arguments)

    def test_a_better_arm_is_found(self):
        self.script('case $arm in p) echo time 1.0$((calls % 7));; *) echo time 2.0$((calls % 9));; esac')
        result = self.ab()
        self.assertEqual(result.returncode, 0, result)
        self.assertRegex(result.stdout, r"(?m)^ *p\b.*better")

    def test_more_can_be_better(self):
        self.script('case $arm in p) echo time 1.0$((calls % 7));; *) echo time 2.0$((calls % 9));; esac')
        result = self.ab(metric=["-m", "+time=^time ([0-9.]+)"])
        self.assertEqual(result.returncode, 1, result)

    def test_an_arm_that_changes_nothing_is_not_better(self):
        self.script('echo time 2.000$((calls % 9))')
        result = self.ab()
        self.assertIn(result.returncode, (1, 2), result)
        os.unlink(self.path("calls"))
        result = self.ab("--claim", "no-difference")
        self.assertEqual(result.returncode, 0, result)

    def test_noise_larger_than_any_effect_is_inconclusive(self):
        self.script('echo time $((1 + calls * calls * 31 % 97))')
        result = self.ab("--looks", "10,11")
        self.assertEqual(result.returncode, 2, result)

    def test_an_arm_that_changes_results_is_broken_however_fast(self):
        self.script('case $arm in p) echo sum 4; echo time 1;; *) echo sum 3; echo time 2;; esac')
        result = self.ab("--same-output", "/^sum .*/", "--folder", "f")
        self.assertEqual(result.returncode, 3, result)
        self.assertEqual(set(self.outcomes("p")), {"output differs"})
        self.assertEqual(set(self.outcomes("observe")), {"ok"})

    def test_a_tolerance_lets_numbers_differ(self):
        self.script('case $arm in p) echo sum 3.001; echo time 1;; *) echo sum 3; echo time 2;; esac')
        result = self.ab("--same-output", "/^sum .*/", "--tolerance", "1e-2")
        self.assertEqual(result.returncode, 0, result)

    def test_an_arm_that_fails_is_never_the_winner(self):
        self.script('case $arm in p) [ $((calls % 3)) = 0 ] || exit 4; echo time 1;; *) echo time 2;; esac')
        result = self.ab()
        self.assertEqual(result.returncode, 3, result)

    def test_fewer_than_ten_blocks_decide_nothing_and_say_so(self):
        self.script('case $arm in p) echo time 1;; *) echo time 2;; esac')
        result = self.ab("--blocks", "9")
        self.assertEqual(result.returncode, 2, result)
        self.assertIn("not enough runs for an interval", result.stderr)
        self.assertIn("not enough runs", result.stdout)

    def test_quiet_is_one_line_and_json_is_the_analysis(self):
        self.script('case $arm in p) echo time 1;; *) echo time 2;; esac')
        result = self.ab("--quiet")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertEqual(result.stdout.count("\n"), 1)
        document = support.load_json(self.ab("--json").stdout)
        self.assertIsInstance(document, dict)


class Schedule(Experiment):
    """Which runs are made, and in which order."""

    def setUp(self):
        super().setUp()
        self.script("echo time 1")

    def test_each_block_has_each_arm_once(self):
        self.few("--warm-up", "2", blocks=3)
        runs = self.runs()
        self.assertEqual(len(runs), 5 * 4)
        for start in range(0, len(runs), 4):
            block = runs[start:start + 4]
            self.assertEqual({run["arm"] for run in block}, {"none", "none-again", "observe", "p"})
            self.assertEqual([run["position"] for run in block], [0, 1, 2, 3])
        self.assertEqual([(run["warm_up"], run["block"]) for run in runs[::4]],
                         [(True, 0), (True, 1), (False, 0), (False, 1), (False, 2)])
        self.assertEqual([run["arm"] for run in runs], [arm for arm, _ in self.calls()])

    def test_the_baseline_is_the_very_first_run(self):
        for seed in ("1", "2", "3"):
            os.path.exists(self.path("calls")) and os.unlink(self.path("calls"))
            self.ab("--blocks", "1", "--seed", seed)
            self.assertEqual(self.calls()[0][0], "none")

    def test_a_seed_gives_its_order_and_another_one_another(self):
        orders = []
        for folder, seed in (("a", "5"), ("b", "5"), ("c", "6")):
            self.ab("--blocks", "6", "--seed", seed, "--folder", folder)
            orders.append([run["arm"] for run in self.runs(folder)])
        self.assertEqual(orders[0], orders[1])
        self.assertNotEqual(orders[0], orders[2])

    def test_a_seed_that_was_drawn_is_printed_and_gives_the_same_order(self):
        result = self.ab("--blocks", "4", "--folder", "a")
        seed = re.search(r"seed (\d+)", result.stderr).group(1)
        self.ab("--blocks", "4", "--folder", "b", "--seed", seed)
        self.assertEqual([run["arm"] for run in self.runs("a")],
                         [run["arm"] for run in self.runs("b")])

    def roles(self, *options, arms):
        self.few("--warm-up", "0", *options, arms=arms)
        roles = {arm["name"]: arm["role"] for arm in self.journal()[0]["arms"]}
        support.shutil.rmtree(self.path("f"))
        return roles

    def test_arms_are_added_where_they_tell_more(self):
        self.assertEqual(self.roles(arms=["none", "p.ini"]),
                         {"none": "baseline", "p": "candidate", "none-again": "repeat",
                          "observe": "cost"})
        self.assertEqual(self.roles("--no-repeat", arms=["p.ini", "none"]),
                         {"p": "baseline", "none": "candidate", "observe": "cost"})
        self.assertEqual(self.roles("--no-repeat", arms=["none", "observe"]),
                         {"none": "baseline", "observe": "candidate"})
        self.assertEqual(self.roles(arms=["observe", "p.ini"]),
                         {"observe": "baseline", "p": "candidate", "observe-again": "repeat"})

    def test_arms_have_names_of_their_own(self):
        os.mkdir(self.path("d"))
        self.write("d/p.ini", OTHER_POLICY)
        self.write("odd name.ini", OTHER_POLICY + "# other\n")
        self.assertEqual(list(self.roles("--no-repeat", arms=["p.ini", "d/p.ini", "x=p.ini",
                                                              "odd name.ini"])),
                         ["p", "p-2", "x", "odd name"])

    def test_one_arm_alone_shows_how_much_it_differs_from_itself(self):
        result = self.ab("--blocks", "10", arms=["p.ini"])
        self.assertEqual(result.returncode, 0, result)
        self.assertEqual(len(self.calls()), 22)


class Environment(Experiment):
    """What a run gets."""

    def variables(self, arm):
        with open(self.path(f"env-{arm}"), encoding="utf-8") as file:
            return dict(line.rstrip("\n").split("=", 1) for line in file if "=" in line)

    def dump(self, *options, env=None, **arguments):
        self.script("echo time 1", "env >env-$arm")
        result = self.few("--warm-up", "0", *options, env=env, **arguments)
        self.assertEqual(result.returncode, 0, result)

    def test_none_is_really_without_the_library(self):
        self.dump(env={"LD_PRELOAD": LIBRARY, "CUDAPOLICY_FILE": self.p, "CUDAPOLICY_LOG": "error"})
        for arm in ("none", "none-again"):
            variables = self.variables(arm)
            self.assertNotIn("LD_PRELOAD", variables)
            self.assertEqual([name for name in variables if name.startswith("CUDAPOLICY_")], [])
        self.assertEqual([run["policy"] for run in self.runs() if run["arm"] == "none"], [None])

    def test_an_arm_with_a_policy_has_it_and_no_mode_from_outside(self):
        self.dump(env={"CUDAPOLICY_MODE": "off", "CUDAPOLICY_LOG": "error"})
        variables = self.variables("p")
        self.assertEqual(variables["LD_PRELOAD"], os.path.realpath(LIBRARY))
        self.assertEqual(variables["CUDAPOLICY_FILE"], os.path.realpath(self.path("f/policies/p.ini")))
        self.assertEqual(variables["CUDAPOLICY_LOG"], "error")
        self.assertNotIn("CUDAPOLICY_MODE", variables)
        run, = [run for run in self.runs() if run["arm"] == "p"]
        self.assertEqual((run["policy"]["launches"], run["policy"]["rules"]), (2, 1))
        self.assertEqual(run["policy"]["rules_matched"], 1)

    def test_each_arm_has_the_variables_of_its_own_policy(self):
        self.write("p.ini", support.GOOD_POLICY + "[env]\nA = p\nB = p\n[env replace]\nC = p\n")
        self.dump(env={"B": "mine", "C": "mine"})
        self.assertEqual([self.variables("p").get(name) for name in "ABC"], ["p", "mine", "p"])
        self.assertEqual([self.variables("none").get(name) for name in "ABC"], [None, "mine", "mine"])

    def test_a_variable_that_is_given_for_the_runs_is_the_users(self):
        self.write("p.ini", support.GOOD_POLICY + "[env]\nA = of the policy\nB = p\n")
        self.dump("--env", "A=of {arm}")
        self.assertEqual([self.variables("p")[name] for name in "AB"], ["of p", "p"])

    def test_what_makes_the_arm_cannot_be_given_for_all_runs(self):
        for name in ("CUDAPOLICY_FILE", "CUDAPOLICY_LIVE", "CUDAPOLICY_MODE", "CUDAPOLICY_REPORT", "LD_PRELOAD"):
            for form in ([], ["--live"]):
                result = self.command("ab", *form, "--env", name + "=observe", "none", "p.ini", "--", "true",
                                      env=self.environment)
                self.assert_usage_error(result, f"--env: '{name}=observe' is not a variable that can be given")
        self.dump("--env", "CUDAPOLICY_MODES=x", env={"CUDAPOLICY_LIVE": "slice=10"})
        self.assertEqual(self.variables("p")["CUDAPOLICY_MODES"], "x")
        self.assertNotIn("CUDAPOLICY_LIVE", self.variables("p"))

    def test_observe_has_the_library_and_no_rule(self):
        self.dump()
        run, = [run for run in self.runs() if run["arm"] == "observe"]
        self.assertEqual((run["policy"]["launches"], run["policy"]["rules"]), (2, 0))

    def test_another_preload_stays(self):
        other = self.write("libother.so", "")
        self.dump(env={"LD_PRELOAD": other, "CUDAPOLICY_LOG": "error"})
        self.assertEqual(self.variables("none")["LD_PRELOAD"], other)
        self.assertEqual(self.variables("p")["LD_PRELOAD"], f"{other}:{os.path.realpath(LIBRARY)}")

    def test_names_in_braces_are_replaced_in_arguments_and_variables(self):
        self.script("echo time 1", 'echo "$CACHE $arm $run $3 $4" >>words')
        self.command(*self.arguments("--env", "CACHE=/c/{arm}/{block}-{position}", "--blocks", "1",
                                     "--warm-up", "0", "--seed", "7", "--folder", "f"),
                     "{{arm}}", '{"a":{"b":{}}}{other}', env=self.environment)
        with open(self.path("words"), encoding="ascii") as file:
            lines = file.read().splitlines()
        for position, run in enumerate(self.runs()):
            self.assertEqual(lines[position],
                             f"/c/{run['arm']}/0-{position} {run['arm']} 0-{position} "
                             '{arm} {"a":{"b":{}}}{other}')

    def test_standard_input_is_empty(self):
        self.script("cat >input", "echo time 1")
        self.few()
        self.assertEqual(os.path.getsize(self.path("input")), 0)

    def test_the_time_of_a_step_is_read_while_a_run_goes_on(self):
        self.script('"$PROGRAM" launch setup 10 4 launch step 300000 4')
        self.few("--warm-up", "0", "--step-kernel", "st*p", arms=["observe", "p.ini"], metric=[])
        for run in self.runs():
            self.assertGreater(run["values"]["step"]["value"], 0)
            self.assertLess(run["values"]["step"]["value"], run["seconds"] / 1000)

    def test_ranks_that_a_launcher_starts_are_collected(self):
        self.script('for rank in 0 1 2; do', '  RANK=$rank LOCAL_RANK=$rank WORLD_SIZE=3 "$PROGRAM" '
                    'launch kernel 5 4 & done', "wait", "echo time 1")
        self.few("--warm-up", "0")
        run, = [run for run in self.runs() if run["arm"] == "p"]
        self.assertEqual((run["policy"]["processes"], run["policy"]["launches"]), (4, 17))

    def test_shell_commands_around_a_run_know_which_it_is_and_are_without_the_library(self):
        self.script("echo time 1")
        words = ('"$CUDAPOLICY_AB_ARM $CUDAPOLICY_AB_RUN ${LD_PRELOAD:-no} ${CUDAPOLICY_FILE:-no} '
                 '$(cat $CUDAPOLICY_AB_OUTPUT 2>/dev/null)"')
        self.few("--warm-up", "0", "--prepare", f"echo prepare {words} >>hooks",
                 "--check", f"echo check {words} >>hooks",
                 "--cleanup", f"echo cleanup {words} >>hooks")
        with open(self.path("hooks"), encoding="ascii") as file:
            lines = [line.split() for line in file]
        runs = self.runs()
        self.assertEqual(len(lines), 3 * len(runs))
        for number, run in enumerate(runs):
            name = [run["arm"], f"0-{run['position']}", "no", "no"]
            self.assertEqual(lines[3 * number:3 * number + 3],
                             [["prepare", *name], ["check", *name, "time", "1"],
                              ["cleanup", *name, "time", "1"]])


class Failures(Experiment):
    """Runs that do not end well are recorded; a baseline that does not work ends everything."""

    def one(self, *options, **arguments):
        result = self.few("--no-repeat", *options, arms=["observe", "p.ini"], **arguments)
        return result, [run for run in self.runs() if run["arm"] == "p"]

    def test_an_exit_status_and_a_signal_are_recorded(self):
        self.script('[ $arm = p ] && [ ${run#w} = $run ] && kill -9 $$', '[ $arm = p ] && exit 6',
                    "echo time 1")
        result, runs = self.one()
        self.assertEqual(result.returncode, 0, result)
        self.assertEqual([(run["outcome"], run["status"]) for run in runs],
                         [("exited", 6), ("signalled", 9)])
        self.assertIn("a run of p failed: exit status 6", result.stderr)

    def test_a_run_that_failed_keeps_its_output_and_others_do_not(self):
        self.script('echo these words', '[ $arm = p ] && exit 6', "echo time 1")
        self.one()
        folders = sorted(os.listdir(self.path("f/runs")))
        self.assertEqual(len(folders), 2, folders)
        for folder in folders:
            self.assertTrue(folder.endswith("-p"))
            with open(self.path(f"f/runs/{folder}/stdout"), encoding="ascii") as file:
                self.assertEqual(file.read(), "these words\n")

    def test_output_and_reports_are_kept_on_request(self):
        self.script("echo time 1")
        self.one("--keep-output", "--keep-reports", "--warm-up", "0")
        folders = os.listdir(self.path("f/runs"))
        self.assertEqual(len(folders), 2)
        for folder in folders:
            self.assertTrue(os.path.getsize(self.path(f"f/runs/{folder}/stdout")))
            self.assertEqual(len(os.listdir(self.path(f"f/runs/{folder}/reports"))), 1)

    def test_a_run_that_hangs_is_ended_after_the_time_limit(self):
        self.script('[ $arm = p ] && exec sleep 1000', "echo time 1")
        _, runs = self.one("--timeout", "0.5", "--warm-up", "0")
        self.assertEqual([run["outcome"] for run in runs], ["timed out"])

    def test_a_run_that_ignores_sigterm_is_killed(self):
        self.script("trap '' TERM", '[ $arm = p ] && while :; do sleep 1000; done', "echo time 1")
        _, runs = self.one("--timeout", "0.2", "--warm-up", "0")
        self.assertEqual([run["outcome"] for run in runs], ["timed out"])

    def test_nothing_of_a_run_is_left(self):
        self.script("sleep 1000 & echo $! >>left", "setsid sleep 1000 & echo $! >>left",
                    "echo time 1")
        self.one("--warm-up", "0")
        with open(self.path("left"), encoding="ascii") as file:
            for pid in file:
                self.assertFalse(os.path.exists(f"/proc/{pid.strip()}"), pid)

    def test_what_prepare_starts_outlives_the_runs(self):
        self.script('kill -0 $(cat server) && echo time 1')
        _, runs = self.one("--warm-up", "0", "--prepare",
                           "[ -e server ] || { setsid sleep 1000 & echo $! >server; }")
        with open(self.path("server"), encoding="ascii") as file:
            os.kill(int(file.read()), signal.SIGKILL)
        self.assertEqual([run["outcome"] for run in runs], ["ok"])

    def unattached(self, *lines):
        path = self.write("script", '#!/bin/sh\narm=$1 run=$2\necho "$arm $run" >>calls\n'
                                    + "\n".join(lines) + "\necho time 1\n")
        os.chmod(path, 0o755)

    def test_an_arm_whose_policy_reaches_nothing_is_not_compared(self):
        self.unattached('[ $arm = p ] || "$PROGRAM" launch kernel 1 4')
        for number, warm_up in enumerate(("0", "1", "2")):
            result = self.few("--warm-up", warm_up, "--folder", f"f{number}", blocks=9)
            self.assertEqual(result.returncode, 125, result)
            self.assertIn("did not reach the first run of p", result.stderr)
            self.assertIn("no kernel launch", result.stderr)
            self.assertIn("--allow-unattached", result.stderr)
            # The block is ended, so that all such arms are named; then nothing more is run.
            runs = self.runs(f"f{number}")
            self.assertEqual(len(runs), 4)
            self.assertEqual([run["outcome"] for run in runs if run["arm"] == "p"], ["not attached"])

    def test_all_arms_that_are_not_reached_are_named(self):
        self.write("q.ini", OTHER_POLICY)
        self.unattached('case $arm in p|q) ;; *) "$PROGRAM" launch kernel 1 4;; esac')
        result = self.few(arms=["none", "p.ini", "q.ini"])
        self.assertEqual(result.returncode, 125, result)
        for arm in ("p", "q"):
            self.assertIn(f"did not reach the first run of {arm}:", result.stderr)
        self.assertNotIn("first run of observe", result.stderr)

    def test_what_is_reached_at_first_and_not_later_goes_on(self):
        self.unattached('[ $arm.$run = p.0-1 ] || [ $arm.$run = p.0-0 ] || "$PROGRAM" launch kernel 1 4')
        result, runs = self.one(blocks=2)
        self.assertEqual(len(runs), 3)
        self.assertNotEqual(result.returncode, 125, result)
        self.assertEqual([run["outcome"] for run in runs], ["ok", "not attached", "ok"])

    def test_an_arm_that_is_not_reached_is_gone_on_with_on_request_alone(self):
        self.unattached('[ $arm = p ] || "$PROGRAM" launch kernel 1 4')
        _, runs = self.one("--allow-unattached", blocks=2)
        self.assertEqual([run["outcome"] for run in runs], ["not attached"] * 3)

    def test_a_resumed_experiment_does_not_go_on_with_it_either(self):
        self.unattached('[ $arm = p ] || "$PROGRAM" launch kernel 1 4')
        self.few(blocks=2)
        before = len(self.calls())
        result = self.ab("--claim", "none", "--blocks", "2", "--resume", "f")
        self.assertEqual(result.returncode, 125, result)
        self.assertEqual(len(self.calls()), before)

    def test_a_metric_of_which_there_are_no_ratios_ends_the_experiment_after_its_first_run(self):
        for value in ("0", "-3", "0.000"):
            self.script(f"echo time {value}")
            result = self.ab(metric=["-m", "time=^time ([-0-9.]+)"])
            self.assertEqual(result.returncode, 125, result)
            self.assertEqual(len(self.calls()), 1)
            self.assertIn("values above 0", result.stderr)
            os.unlink(self.path("calls"))

    def test_a_check_that_says_no_is_a_failed_run(self):
        self.script("echo time 1")
        _, runs = self.one("--warm-up", "0", "--check",
                           "echo wrong sum; [ $CUDAPOLICY_AB_ARM != p ]")
        self.assertEqual([(run["outcome"], run["message"]) for run in runs],
                         [("check failed", "--check: exit status 1: wrong sum")])

    def test_shell_commands_that_hang_are_ended_after_the_time_limit_that_was_given(self):
        self.script("echo time 1")
        _, runs = self.one("--warm-up", "0", "--timeout", "2",
                           "--check", "[ $CUDAPOLICY_AB_ARM != p ] || sleep 1000")
        self.assertEqual([(run["outcome"], run["message"]) for run in runs],
                         [("check failed", "--check: no end after 2 s")])
        for number, option in enumerate(("--prepare", "--cleanup")):
            result = self.few("--timeout", "1", option, "sleep 1000", "--folder", f"g{number}")
            self.assertEqual(result.returncode, 125, result)
            self.assertIn(f"{option}: no end after 1 s", result.stderr)

    def test_prepare_that_fails_ends_the_experiment(self):
        self.script("echo time 1")
        result = self.few("--prepare", "echo no disk; exit 3")
        self.assert_nothing_ran(result, "--prepare: exit status 3: no disk")

    def test_a_baseline_that_fails_ends_the_experiment_after_its_first_run(self):
        self.script("echo first line", "echo 'cannot find the data' >&2", "exit 5")
        result = self.few()
        self.assertEqual(result.returncode, 125, result)
        self.assertEqual(len(self.calls()), 1)
        self.assertIn("the first run of the baseline, none, failed: exit status 5", result.stderr)
        self.assertIn("  cannot find the data\n", result.stderr)
        self.assertIn("  first line\n", result.stderr)

    def test_a_metric_that_never_matches_ends_the_experiment_after_its_first_run(self):
        self.script("echo 'Time: 7 s'")
        for options in ([], ["--metric", "good=Time: ([0-9]+)", "--primary", "good"]):
            result = self.ab(*options)
            self.assertEqual(result.returncode, 125, result)
            self.assertEqual(len(self.calls()), 1)
            self.assertIn("^time ([0-9.]+)", result.stderr)
            self.assertIn("  Time: 7 s\n", result.stderr)
            os.unlink(self.path("calls"))

    def test_a_policy_that_is_edited_meanwhile_does_not_change_the_experiment(self):
        self.script("[ $calls = 6 ] && echo '[wrong' >>p.ini", 'grep -c wrong "${CUDAPOLICY_FILE:-/dev/null}" >>seen',
                    "echo time 1")
        result = self.few(blocks=4)
        self.assertEqual(result.returncode, 0, result)
        self.assertIn("p.ini' of p was changed or removed meanwhile; all runs were made under it as it was at "
                      "the start", result.stderr)
        self.assertIn(len(self.calls()), range(16, 40))
        with open(self.path("seen"), encoding="ascii") as file:
            self.assertEqual(set(file.read().split()), {"0"})

    def test_nor_does_it_where_its_variables_are_edited(self):
        self.write("p.ini", support.GOOD_POLICY + "[env]\nA = first\n")
        self.script("[ $calls = 6 ] && sed -i 's/first/second/' p.ini", '[ $arm = p ] && echo "$A" >>seen',
                    "echo time 1")
        self.assertEqual(self.few(blocks=4).returncode, 0)
        with open(self.path("seen"), encoding="ascii") as file:
            self.assertEqual(file.read().split(), ["first"] * 5)

    def test_an_edited_copy_of_a_policy_ends_the_experiment(self):
        self.script("[ $calls = 6 ] && for copy in */policies/p.ini; do echo '# more' >>$copy; done",
                    "echo time 1")
        result = self.few(blocks=4)
        self.assertEqual(result.returncode, 125, result)
        self.assertIn("was changed since the experiment began", result.stderr)

    def test_standard_descriptors_may_be_closed(self):
        self.script('[ -e /proc/self/fd/1 ] && [ -e /proc/self/fd/2 ] && echo time 1; echo more >&2')
        command = " ".join(f"'{word}'" for word in
                           [support.COMMAND, *self.arguments("--claim", "none", "--blocks", "1",
                                                             "--export", "x.json", "--folder", "f")])
        for closed in ("<&-", ">&-", "2>&-", "<&- >&- 2>&-"):
            for name in ("x.json", "f/journal.jsonl"):
                if os.path.exists(self.path(name)):
                    os.unlink(self.path(name))
            status = support.subprocess.run(["sh", "-c", f"{command} {closed}"], cwd=self.folder,
                                            env=support.environment(**self.environment),
                                            stdout=support.subprocess.DEVNULL, timeout=60,
                                            stderr=support.subprocess.DEVNULL, check=False).returncode
            # What cannot be printed is told, as ever.
            self.assertEqual(status, 125 if ">&- " in closed + " " and "2>&-" != closed else 0, closed)
            self.assertEqual({run["outcome"] for run in self.runs()}, {"ok"}, closed)
            with open(self.path("x.json"), encoding="utf-8") as file:
                json.load(file)

    def test_output_may_be_huge(self):
        self.script("head -c 30000000 /dev/zero | tr '\\0' 'x'", "echo", "yes | head -n 1000000",
                    "echo time 1")
        _, runs = self.one("--warm-up", "0")
        self.assertEqual([(run["outcome"], run["values"]["time"]["value"]) for run in runs],
                         [("ok", 1.0)])


class Interruption(Experiment):
    """Ctrl-C ends with what there is, and --resume goes on."""

    def sequence(self, folder):
        return [(run["warm_up"], run["block"], run["position"], run["arm"])
                for run in self.runs(folder)]

    def interrupted_at(self, call, *options, **arguments):
        self.script(f"[ $calls = {call} ] && kill -INT $PPID && exec sleep 1000", "echo time 1")
        return self.few(*options, blocks=3, **arguments)

    def test_the_first_signal_ends_the_run_and_what_there_is_is_shown(self):
        result = self.interrupted_at(11)
        self.assertEqual(len(self.runs()), 10)
        self.assertEqual(result.returncode, 0, result)
        self.assertIn("none-again", result.stdout)

    def test_an_experiment_that_claims_something_is_inconclusive_then(self):
        self.script("[ $calls = 14 ] && kill -TERM $PPID && exec sleep 1000", "echo time 1")
        result = self.ab()
        self.assertEqual(result.returncode, 2, result)
        self.assertRegex(result.stderr, r"--resume \S+ goes on with this experiment")

    def test_the_second_signal_kills_at_once(self):
        # After the first one it had five seconds.
        self.script("[ $calls = 6 ] && {", "trap 'kill -INT $PPID; sleep 3; touch survived' TERM",
                    "kill -INT $PPID", "while :; do sleep 1000 & wait $!; done", "}", "echo time 1")
        self.few(blocks=3)
        self.assertEqual(len(self.runs()), 5)
        self.assertFalse(os.path.exists(self.path("survived")))

    def test_resume_makes_the_runs_of_an_uninterrupted_experiment(self):
        self.script("echo time 1")
        self.few(blocks=3)
        os.rename(self.path("f"), self.path("whole"))
        for call in (2, 7, 11):
            os.unlink(self.path("calls"))
            self.interrupted_at(call)
            self.assertEqual(len(self.runs()), call - 1)
            self.script("echo time 1")
            result = self.ab("--claim", "none", "--blocks", "3", "--resume", "f")
            self.assertEqual(result.returncode, 0, result)
            self.assertEqual(self.sequence("f"), self.sequence("whole"))
            support.shutil.rmtree(self.path("f"))

    def test_a_line_of_the_journal_that_was_cut_short_is_made_again(self):
        self.script("echo time 1")
        self.few(blocks=2)
        whole = self.sequence("f")
        os.truncate(self.path("f/journal.jsonl"), os.path.getsize(self.path("f/journal.jsonl")) - 9)
        self.ab("--claim", "none", "--blocks", "2", "--resume", "f")
        self.assertEqual(self.sequence("f"), whole)

    def test_only_the_same_experiment_is_continued(self):
        self.script("echo time 1")
        self.few(blocks=2)
        os.unlink(self.path("calls"))
        resume = ["--claim", "none", "--resume", "f"]
        self.assert_nothing_ran(self.ab(*resume, "--blocks", "3"), "another plan")
        for options, text in ((("--blocks", "3"), ": looks (3; then: 2)"),
                              (("--blocks", "2", "--seed", "8"), ": seed (8; then: 7)"),
                              (("--blocks", "2", "--margin", "5"), ": margin (0.05; then: 0.01)")):
            self.assert_nothing_ran(self.ab(*resume, *options), text)
        self.assert_nothing_ran(self.ab(*resume, "--blocks", "2", metric=[]),
                                "other metrics: wall: name (wall; then: time), source")
        self.assert_nothing_ran(self.ab(*resume, "--blocks", "2", "--skip", "3"),
                                "other metrics: time: skip (3; then: -1)")
        self.assert_nothing_ran(self.ab(*resume, "--blocks", "2", arms=["none", "q=p.ini"]),
                                "since: q: name (q; then: p)")
        os.mkdir(self.path("elsewhere"))
        self.write("elsewhere/p.ini", support.GOOD_POLICY)
        self.assert_nothing_ran(self.ab(*resume, "--blocks", "2", arms=["none", "elsewhere/p.ini",
                                                                        "more=p.ini"]),
                                "since: more: name (more; then: none-again)")
        self.assert_nothing_ran(self.command(*self.arguments(*resume, "--blocks", "2"), "more",
                                             env=self.environment),
                                "another command: ./script, {arm}, {run}, more; then: ./script, {arm}")
        self.write("p.ini", OTHER_POLICY)
        self.assert_nothing_ran(self.ab(*resume, "--blocks", "2"), "a policy was changed since: p: policy_sha256 (")
        self.assert_nothing_ran(self.ab("--resume", "none-such"), "cannot find the folder")
        self.write("f/journal.jsonl", "words\n")
        self.assert_nothing_ran(self.ab(*resume, "--blocks", "2"), "its first line is no JSON")

    def test_an_experiment_is_not_begun_over_another(self):
        self.script("echo time 1")
        self.few()
        os.unlink(self.path("calls"))
        self.assert_nothing_ran(self.few(), "continue that experiment with --resume")

    def test_a_run_that_was_suspended_is_made_again(self):
        self.script("[ $calls = 3 ] && kill -TSTP $PPID && exec sleep 1000", "echo time 1")
        process = self.start(*self.arguments("--claim", "none", "--blocks", "1", "--seed", "7",
                                             "--folder", "f"), env=self.environment)
        _, status = os.waitpid(process.pid, os.WUNTRACED)
        self.assertTrue(os.WIFSTOPPED(status))
        process.send_signal(signal.SIGCONT)
        _, errors = process.communicate(timeout=support.TIME_LIMIT)
        self.assertEqual(process.returncode, 0, errors)
        self.assertIn("the run was suspended; it is made again", errors)
        self.assertEqual((len(self.runs()), len(self.calls())), (8, 9))


class BeforeAnythingRuns(Experiment):
    """Mistakes cost no run."""

    def setUp(self):
        super().setUp()
        self.script("echo time 1")

    def test_an_arm_that_does_not_load(self):
        self.write("bad.ini", "[policy]\nversion = 1\n[kernel k]\nname = *\nprioritty = 1\n")
        result = self.ab(arms=["none", "p.ini", "bad.ini"])
        self.assert_nothing_ran(result, "bad.ini:5:1: error: unknown key \"prioritty\"")
        self.assertIn("the policy of the arm 'bad' is wrong; nothing was run", result.stderr)
        self.assert_nothing_ran(self.ab(arms=["none", "absent.ini"]), "cannot be read")

    def test_a_missing_program_or_library(self):
        for program in ("no-such-program", "./absent", "./p.ini"):
            result = self.command("ab", "--library", LIBRARY, "none", "p.ini", "--", program)
            self.assert_nothing_ran(result, f"cannot run '{program}'")
        result = self.command("ab", "--library", "/none.so", "none", "p.ini", "--", "./script")
        self.assert_nothing_ran(result, "--library: cannot use '/none.so'")

    def test_a_folder_that_cannot_be_made(self):
        self.assert_nothing_ran(self.ab("--folder", "p.ini/f"), "cannot make the folder")
        self.assert_nothing_ran(self.ab("--folder", "p.ini"), "p.ini")
        self.assert_nothing_ran(self.ab(env={"TMPDIR": "/none/such"}), "cannot make the folder")

    def test_exports_are_claimed(self):
        there = self.write("there.json", "words")
        self.assert_nothing_ran(self.ab("--export", "new.csv", "--export", there),
                                "is there already")
        self.assertFalse(os.path.exists(self.path("new.csv")))
        self.assert_nothing_ran(self.ab("--export", "none/such.json"), "cannot write")
        with open(there, encoding="ascii") as file:
            self.assertEqual(file.read(), "words")
        self.assertEqual([name for name in os.listdir(self.folder)
                          if name.startswith("cudapolicy-ab-")], [])

    def test_exports_are_written_over_old_files_only_on_request(self):
        there = self.write("there.json", "words")
        result = self.few("--force", "--export", there, "--export", "new.md")
        self.assertEqual(result.returncode, 0, result)
        with open(there, encoding="utf-8") as file:
            self.assertIsInstance(json.load(file), dict)
        self.assertTrue(os.path.getsize(self.path("new.md")))

    def test_arms_that_are_almost_surely_a_mistake_are_warned_of(self):
        self.write("o.ini", support.GOOD_POLICY.replace("version = 1", "version = 1\nmode = observe"))
        self.write("q.ini", support.GOOD_POLICY)
        result = self.few(arms=["p.ini", "o.ini", "q.ini"])
        self.assertIn("'o.ini' only observes: the arm 'o' changes nothing", result.stderr)
        self.assertIn("the arms 'p' and 'q' have the same policy", result.stderr)

    def test_step_time_needs_the_library(self):
        result = self.ab("--step-kernel", "kernel", metric=[])
        self.assertEqual(result.returncode, 64, result)
        self.assertIn("step time is counted by the library", result.stderr)
        self.assertEqual(self.calls(), [])

    def test_command_lines_that_are_wrong(self):
        for options, text in ((["--blocks", "0"], "--blocks: '0' is not a number from 1 to 100000"),
                              (["--looks", "5,10"], "--looks: '5,10' is not"),
                              (["--looks", "20,10"], "--looks: '20,10' is not"),
                              (["--blocks", "10", "--looks", "10"], "give one of them"),
                              (["--margin", "x"], "--margin: 'x' is not a percentage"),
                              (["--alpha", "2"], "--alpha: '2' is not"),
                              (["--claim", "fast"], "--claim: 'fast' is not"),
                              (["--seed", "0"], "--seed: '0' is not"),
                              (["--primary", "speed"], "there is no metric 'speed'; there are: time"),
                              (["--metric", "time=x"], "two metrics are called 'time'"),
                              (["--metric", "words=(("], "missing closing parenthesis"),
                              (["--across-ranks", "best"], "--across-ranks: 'best' is not"),
                              (["--tolerance", "0.1"], "--tolerance is of --same-output"),
                              (["--env", "x"], "--env: 'x' is not NAME=VALUE"),
                              (["--export", "x.pdf"], "--export: 'x.pdf' is not a file that ends"),
                              (["--timeout", "-1"], "--timeout: '-1' is not"),
                              (["--graph-steps", "--step-kernel", "k"], "give one of them"),
                              (["--step-kernel", "k", "--step-kernel", "l"],
                               "--step-kernel: given twice, 'k' and 'l'"),
                              (["--folder", "f", "--resume", "f"], "give one of them")):
            result = self.ab(*options)
            self.assert_usage_error(result, text)
        self.assert_usage_error(self.ab(arms=[]), "no arm given")
        self.assert_usage_error(self.ab(arms=["x=none", "x=p.ini"]), "two arms are called 'x'")
        self.assert_usage_error(self.ab("--no-repeat", arms=["p.ini"]), "nothing to compare")
        self.assert_usage_error(self.command("ab", "none", "p.ini"), "no command given")
        self.assert_usage_error(self.command("ab", "none", "p.ini", "--"), "no command given")
        self.assertEqual(self.calls(), [])


if __name__ == "__main__":
    support.main()
