# SPDX-License-Identifier: Apache-2.0
"""[env] and [expect]: what run, the library, check and explain make of them."""

import json
import os
import subprocess

import support
from support import LIBRARY, python

PROGRAM = os.environ["CUDAPOLICY_TEST_PROGRAM"]
DOUBLES = os.environ["CUDAPOLICY_TEST_DOUBLES"]

RULES = """[policy]
version = 1

[kernel small]
name = small*
priority = -1

[kernel second]
name = other*
rank = 1
priority = -1

[stream small]
created_priority = ..-1
priority = -2
"""
ENV = RULES + """
[env]
NCCL_DEBUG = "a ; b"
NCCL_PROTO = LL

[env replace]
NCCL_MAX_CTAS = 4
"""
NAMES = ("NCCL_DEBUG", "NCCL_PROTO", "NCCL_MAX_CTAS")
OWN = {"NCCL_DEBUG": "", "NCCL_MAX_CTAS": "9"}  # the user's
SHOW = python("import os", f"print([os.environ.get(name) for name in {NAMES}])")


class Case(support.Case):
    def environment(self, env):
        return {**dict.fromkeys(NAMES), "LD_LIBRARY_PATH": DOUBLES, **(env or {})}

    def run_under(self, policy, *arguments, program, env=None):
        return self.run_program(*arguments, "--", *program, policy=policy,
                                env=self.environment(env))

    def bare(self, policy, *program, env=None):
        """The program with the library alone: what it says, and its report."""
        report = self.path("report.json")
        variables = {"LD_PRELOAD": LIBRARY, "CUDAPOLICY_FILE": self.write("bare.ini", policy),
                     "CUDAPOLICY_REPORT": report, **self.environment(env)}
        result = subprocess.run([PROGRAM, *program], env=support.environment(**variables),
                                stderr=subprocess.PIPE, text=True, check=False,
                                timeout=support.TIME_LIMIT)
        with open(report, encoding="utf-8") as file:
            document = json.load(file)
        os.unlink(report)
        return result, document


class Environment(Case):
    def shown(self, *arguments, env=None, policy=ENV):
        result = self.run_under(policy, "-q", *arguments, program=SHOW, env=env)
        self.assertEqual(result.returncode, 0, result)
        return result.stdout.strip()

    def test_variables_are_set_where_the_user_did_not(self):
        self.assertEqual(self.shown(), "['a ; b', 'LL', '4']")
        self.assertEqual(self.shown(env=OWN), "['', 'LL', '4']")
        self.assertEqual(self.shown(env={"NCCL_DEBUG": "x", "NCCL_PROTO": "y"}), "['x', 'y', '4']")

    def test_where_only_observed_nothing_is_set(self):
        own = "['', None, '9']"
        self.assertEqual(self.shown("--mode", "observe", env=OWN), own)
        self.assertEqual(self.shown("--mode", "off", env=OWN), own)
        self.assertEqual(self.shown(env={**OWN, "CUDAPOLICY_MODE": "observe"}), own)
        observing = ENV.replace("version = 1", "version = 1\nmode = observe")
        self.assertEqual(self.shown(policy=observing, env=OWN), own)
        self.assertEqual(self.shown("--mode", "enforce", policy=observing), "['a ; b', 'LL', '4']")

    def test_the_library_alone_says_once_that_it_was_not_applied(self):
        result, report = self.bare(ENV, "launch", "small1", "2", "4", "launch", "x", "1", "1", env=OWN)
        self.assertEqual(result.stderr.count("[env] of the policy was not applied: NCCL_PROTO, "
                                             "NCCL_MAX_CTAS are not as it says."), 1, result.stderr)
        self.assertEqual(len(result.stderr.splitlines()), 1)
        self.assertEqual(report["facts"]["env"], {"NCCL_DEBUG": "kept: ", "NCCL_PROTO": "missing",
                                                  "NCCL_MAX_CTAS": "not replaced: 9"})
        self.assertEqual([(note["severity"], note["text"]) for note in report["notes"]],
                         [("warning", "[env] of the policy was not applied: NCCL_PROTO, NCCL_MAX_CTAS")])

    def test_what_is_as_it_should_be_is_no_matter(self):
        result, report = self.bare(ENV, "launch", "small1", "1", "4",
                                   env={"NCCL_DEBUG": "mine", "NCCL_PROTO": "LL", "NCCL_MAX_CTAS": "4"})
        self.assertEqual((result.stderr, report["notes"]), ("", []))
        self.assertEqual(report["facts"]["env"], {"NCCL_DEBUG": "kept: mine", "NCCL_PROTO": "applied",
                                                  "NCCL_MAX_CTAS": "applied"})

    def test_under_run_the_report_has_what_was_applied(self):
        self.run_under(ENV, "-q", "--report", self.path("job.json"),
                       program=[PROGRAM, "launch", "small1", "1", "4"], env=OWN)
        with open(self.path("job.json"), encoding="utf-8") as file:
            process = json.load(file)["processes"][0]
        self.assertEqual(process["facts"]["env"], {"NCCL_DEBUG": "kept: ", "NCCL_PROTO": "applied",
                                                   "NCCL_MAX_CTAS": "applied"})
        self.assertEqual(process["notes"], [])

    def test_a_library_that_observes_has_nothing_to_say(self):
        result, report = self.bare(ENV, "launch", "small1", "1", "4",
                                   env={**OWN, "CUDAPOLICY_MODE": "observe"})
        self.assertEqual(result.stderr, "")
        self.assertEqual(report["facts"]["env"]["NCCL_PROTO"], "missing, since observing")
        self.assertEqual(report["facts"]["env"]["NCCL_MAX_CTAS"], "not replaced, since observing: 9")

    def test_of_several_ranks_the_first_one_speaks(self):
        for rank, said in (("0", True), ("1", False)):
            result, report = self.bare(ENV, "launch", "small1", "1", "4",
                                       env={"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": "2"})
            self.assertEqual("was not applied" in result.stderr, said, result.stderr)
            self.assertEqual(report["facts"]["env"]["NCCL_PROTO"], "missing")

    def test_a_forked_child_has_the_facts_and_says_nothing_again(self):
        result, report = self.bare(ENV, "launch", "small1", "1", "4", "fork", "launch", "small1", "1", "4")
        self.assertEqual(result.stderr.count("was not applied"), 1, result.stderr)
        with open(self.path("report.json.1"), encoding="utf-8") as file:
            other = json.load(file)
        self.assertEqual(report["facts"]["env"], other["facts"]["env"])

    def test_check_prints_what_would_be_set(self):
        path = self.write("p.ini", ENV)
        for env, lines in (({}, ["NCCL_DEBUG=a ; b", "NCCL_PROTO=LL", "NCCL_MAX_CTAS=4"]),
                           (OWN, ["NCCL_PROTO=LL", "NCCL_MAX_CTAS=4"]),
                           ({"CUDAPOLICY_MODE": "observe"}, [])):
            result = self.command("check", "--print-env", path, env=self.environment(env))
            self.assertEqual((result.returncode, result.stdout.splitlines()), (0, lines), result)
        wrong = self.write("w.ini", RULES + "[env]\nLD_PRELOAD = x\n")
        result = self.command("check", "--print-env", wrong)
        self.assertEqual((result.returncode, result.stdout), (1, ""), result)
        self.assertIn("w.ini:17:1: error: LD_PRELOAD cannot be set here", result.stderr)
        self.assert_usage_error(self.command("check", "--print-env", path, path), "one policy file")
        self.assert_usage_error(self.command("check", "--print-env", "-q", path), "no other option")


EXPECT = RULES + "\n[expect]\nkernel small: launches >= 3, refused = 0\n"
LINE = EXPECT.count("\n")


class Expectations(Case):
    def ranks(self, *counts, then=""):
        """A job: rank n launches so many kernels."""
        lines = [f"RANK={rank} LOCAL_RANK={rank} WORLD_SIZE={len(counts)} {PROGRAM} launch small1 {count} 4 "
                 f"launch x 1 1\n" for rank, count in enumerate(counts)]
        return ["sh", "-c", "".join(lines) + then]

    def strict(self, policy, *arguments, program, env=None):
        return self.run_under(policy, "--strict-expect", *arguments, program=program, env=env)

    def test_what_holds_is_said_and_changes_nothing(self):
        result = self.strict(EXPECT, program=[PROGRAM, "launch", "small1", "3", "4"])
        self.assertEqual(result.returncode, 0, result)
        self.assertIn("\nwhat the policy expects was so (2 conditions)\n", result.stderr)
        self.assertNotIn("broken", result.stderr)

    def test_what_is_broken_is_said_and_strict_ends_with_3(self):
        program = [PROGRAM, "launch", "small1", "2", "4"]
        result = self.strict(EXPECT, program=program)
        self.assertEqual(result.returncode, 3, result)
        self.assertRegex(result.stderr, r"(?m)^cudapolicy\(\d+\): warning: expectation broken: kernel "
                                        rf"small: launches >= 3, and it was 2 \(.*policy.ini:{LINE}\)$")
        self.assertIn(f"\nexpectation broken: kernel small: launches >= 3, in line {LINE}: it was 2\n",
                      result.stderr)
        self.assertEqual(self.run_under(EXPECT, program=program).returncode, 0)
        quiet = self.strict(EXPECT, "-q", "--log", "error", program=program)
        self.assertEqual((quiet.returncode, len(quiet.stderr.splitlines())), (3, 1), quiet)

    def test_the_programs_own_failure_wins(self):
        for end, status in ((["exit", "7"], 7), (["abort"], 134)):
            result = self.strict(EXPECT, program=[PROGRAM, "launch", "small1", "2", "4", *end])
            self.assertEqual(result.returncode, status, result)
            self.assertIn("expectation broken", result.stderr)

    def test_a_killed_process_is_judged_by_what_it_counted(self):
        program = ["sh", "-c", f"{PROGRAM} launch small1 3 4 abort 2>&-; exit 0"]
        result = self.strict(EXPECT, program=program)
        self.assertEqual(result.returncode, 0, result)
        program = ["sh", "-c", f"{PROGRAM} launch small1 2 4 abort 2>&-; exit 0"]
        result = self.strict(EXPECT, program=program)
        self.assertEqual(result.returncode, 3, result)
        self.assertIn("did not end in good order", result.stderr)

    def test_each_process_is_asked_and_only_those_at_fault_are_named(self):
        result = self.strict(EXPECT, program=self.ranks(3, 1, 5, 0))
        self.assertEqual(result.returncode, 3, result)
        self.assertIn("launches >= 3, in line 18: in 2 of 4 processes it was not so (rank 1: 1, rank 3: 0)\n",
                      result.stderr)
        own = [line for line in result.stderr.splitlines() if line.startswith("cudapolicy(")]
        self.assertEqual(["rank 1: " in line or "rank 3: " in line for line in own], [True, True], own)

    def test_processes_that_a_rule_leaves_out_are_not_asked(self):
        policy = RULES + "\n[expect]\nrule second: launches = 0\nkernel small: launches >= 1\n"
        self.assertEqual(self.strict(policy, program=self.ranks(1, 2)).returncode, 0)
        policy = policy.replace("launches = 0", "launches >= 1")
        result = self.strict(policy, program=self.ranks(1, 2))
        self.assertEqual(result.returncode, 3)
        self.assertIn("in 1 of 1 process it was not so (rank 1: 0)", result.stderr)

    def test_ranks_without_a_report_are_told(self):
        program = [*self.ranks(3)[:2], self.ranks(3, 3, 3)[2].replace(f"{PROGRAM} launch small1 3 4 launch x 1 1",
                                                                     "true", 1)]
        result = self.strict(EXPECT, program=program)
        self.assertEqual(result.returncode, 0, result)
        self.assertIn("\n1 of 3 ranks left no report here: nothing was expected of them. ", result.stderr)
        inside = self.strict(EXPECT, program=program, env={"RANK": "0"})
        self.assertNotIn("left no report", inside.stderr)
        self.assertNotIn("left no report", self.strict(EXPECT, program=self.ranks(3, 3)).stderr)

    def test_without_any_launch_everything_is_0(self):
        result = self.strict(EXPECT, program=python("pass"))
        self.assertEqual(result.returncode, 3, result)
        self.assertIn("kernel small: launches >= 3, in line 18: it is 0, since no process that this is "
                      "about launched a kernel\n", result.stderr)
        none = RULES + "\n[expect]\nkernel small: launches = 0\n"
        self.assertEqual(self.strict(none, program=python("pass")).returncode, 0)

    def test_with_the_mode_off_nothing_can_be_judged(self):
        result = self.strict(EXPECT, "--mode", "off", program=python("pass"))
        self.assertEqual(result.returncode, 3)
        self.assertIn("what the policy expects cannot be judged: the mode is off", result.stderr)
        self.assertEqual(self.strict(RULES, "--mode", "off", program=python("pass")).returncode, 0)
        result = self.strict(EXPECT, "--mode", "off", "--json", program=python("pass"))
        self.assertEqual((result.returncode, json.loads(result.stderr)["expectations_not_judged"]),
                         (3, "the mode is off, so nothing was counted"))

    def test_a_process_that_still_runs_cannot_be_judged(self):
        # The child holds no end of our pipes, so it goes on until its standard input is closed.
        reading, writing = os.pipe()
        path = self.write("policy.ini", EXPECT)
        with open(self.path("errors"), "wb") as errors:
            result = self.command(
                "run", "--strict-expect", "-p", path, "--library", LIBRARY, "--", PROGRAM, "launch",
                "small1", "3", "4", "detach", "launch", "small1", "3", "4", "release", "wait",
                env=self.environment(None), stdin=reading, stderr=errors, stdout=subprocess.DEVNULL)
        os.close(reading)
        os.close(writing)
        with open(self.path("errors"), encoding="utf-8") as file:
            text = file.read()
        self.assertEqual(result.returncode, 3, text)
        self.assertIn("cannot be judged: some counts are lost, or still go on", text)

    def test_in_observe_mode_what_would_be_applied_counts(self):
        policy = RULES + "\n[expect]\nkernel small: launches = 3, applied = 3, refused = 0\n"
        for mode in ("enforce", "observe"):
            result = self.strict(policy, "--mode", mode, program=[PROGRAM, "launch", "small1", "3", "4"])
            self.assertEqual(result.returncode, 0, result)

    def test_streams_are_counted(self):
        policy = RULES + "\n[expect]\nstream small: streams = 2, applied = 1, already_so = 1\n"
        program = [PROGRAM, "stream", "-1", "stream", "-2", "stream", "0", "launch", "x", "1", "1"]
        self.assertEqual(self.strict(policy, program=program).returncode, 0)
        self.assertEqual(self.strict(policy, program=[PROGRAM, *program[3:]]).returncode, 3)

    def test_images_of_one_process_count_together(self):
        program = [PROGRAM, "launch", "small1", "2", "4", "exec", "launch", "small1", "1", "4"]
        result = self.strict(EXPECT, program=program)
        self.assertEqual(result.returncode, 0, result)

    def test_the_report_of_a_process_has_its_judgement(self):
        result, report = self.bare(EXPECT, "launch", "small1", "2", "4")
        self.assertIn("expectation broken", result.stderr)
        self.assertEqual(report["expectations"], [
            {"rule_section": "kernel", "rule": "small", "quantity": "launches", "comparison": ">=",
             "number": 3, "line": LINE, "asked": True, "count": 2, "held": False},
            {"rule_section": "kernel", "rule": "small", "quantity": "refused", "comparison": "=",
             "number": 0, "line": LINE, "asked": True, "count": 0, "held": True}])
        _, report = self.bare(RULES, "launch", "small1", "2", "4")
        self.assertNotIn("expectations", report)

    def test_without_a_report_the_library_judges_too(self):
        variables = {"LD_PRELOAD": LIBRARY, "CUDAPOLICY_FILE": self.write("bare.ini", EXPECT),
                     **self.environment(None)}
        for name, lines in (("small1", 1), ("x", 1)):
            result = subprocess.run([PROGRAM, "launch", name, "2", "4"],
                                    env=support.environment(**variables), stderr=subprocess.PIPE,
                                    text=True, check=False, timeout=support.TIME_LIMIT)
            self.assertEqual(result.stderr.count("expectation broken"), lines, result.stderr)
        result = subprocess.run([PROGRAM, "stream", "0"], env=support.environment(**variables),
                                stderr=subprocess.PIPE, text=True, check=False,
                                timeout=support.TIME_LIMIT)
        self.assertEqual(result.stderr, "")  # it launched nothing

    def test_json_has_what_was_expected(self):
        self.run_under(EXPECT, "-q", "--report", self.path("job.json"), program=self.ranks(3, 1))
        with open(self.path("job.json"), encoding="utf-8") as file:
            first, second = json.load(file)["summary"]["expectations"]
        self.assertEqual((first["processes"], first["held"], second["held"], second["broken"]),
                         (2, False, True, []))
        self.assertEqual([(one["rank"], one["count"]) for one in first["broken"]], [("1", 1)])
        result = self.strict(EXPECT, "--json", "--log", "error", program=python("pass"))
        self.assertEqual(json.loads(result.stderr)["expectations"][0]["held"], False)


class Said(Case):
    POLICY = ENV + "\n[expect]\nkernel small: launches >= 1\n"

    def test_check_counts_them(self):
        result = self.command("check", self.write("p.ini", self.POLICY))
        self.assertIn("ok: 2 kernel and 1 stream rules, 3 variables, 1 expectation, ", result.stdout)
        document = json.loads(self.command("check", "--json", self.path("p.ini")).stdout)
        self.assertEqual([document["files"][0][key] for key in ("variables", "expectations")], [3, 1])

    def test_explain_shows_them(self):
        path = self.write("p.ini", self.POLICY)
        result = self.command("explain", "-p", path, "--kernel", "small1")
        self.assertIn(f"  NCCL_DEBUG = a ; b, where the user did not set it ({path}:18)\n", result.stdout)
        self.assertIn(f"  NCCL_MAX_CTAS = 4, whatever the user set ({path}:22)\n", result.stdout)
        self.assertIn(f"  kernel small: launches >= 1 ({path}:25)\n", result.stdout)
        document = json.loads(self.command("explain", "-p", path, "-k", "small1", "--json").stdout)
        self.assertEqual(document["environment"][0], {"name": "NCCL_DEBUG", "value": "a ; b",
                                                      "replace": False, "line": 18})
        self.assertEqual(document["expectations"][0]["quantity"], "launches")


if __name__ == "__main__":
    support.main()
