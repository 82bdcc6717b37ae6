# SPDX-License-Identifier: Apache-2.0
"""cudapolicy tune, end to end: a program on the recording driver whose printed time is made up from the
policy that it runs under, so that what has to be found is known."""

import os
import re
import sys

sys.path.insert(0, os.path.join(os.environ["CUDAPOLICY_TEST_SOURCE"], "tests", "command"))
import support  # noqa: E402
from support import LIBRARY  # noqa: E402

PROGRAM = os.environ["CUDAPOLICY_TEST_PROGRAM"]
DOUBLES = os.environ["CUDAPOLICY_TEST_DOUBLES"]
KERNEL = "ncclDevKernel_AllReduce_Sum_f32_RING_LL"

BASE = """[policy]
version = 1
; the kernels of NCCL
[kernel nccl]
name = nccl*      ; all of it
mem_sync_domain = default
"""

TUNE = """
[tune]
vary = nccl.mem_sync_domain = default, remote
vary = nccl.priority = 0, -1
"""

# Prints a time: 1000 a piece, with a little noise from the number of the run. {folder} is its argument.
APPLICATION = r"""
n=$(cat count 2>/dev/null || echo 0); n=$((n + 1)); echo $n > count
policy=$(cat "$CUDAPOLICY_FILE" 2>/dev/null)
echo "$1" >> folders
time=100
CASES
echo "time: $((time * 1000 + n * 7919 % 101))"
exec PROGRAM launch KERNEL 1 4
"""

REMOTE_HELPS = 'case "$policy" in *"mem_sync_domain = remote"*) time=70;; esac'
# With a seed, since the order of the runs makes the noise.
METRIC = ("-m", "time=time: ([0-9]+)", "--seed", "3")


class Case(support.Case):
    def application(self, *cases):
        text = APPLICATION.replace("CASES", "\n".join(cases))
        return self.write("app.sh", text.replace("PROGRAM", PROGRAM).replace("KERNEL", KERNEL))

    def tune(self, *arguments, cases=(), policy=BASE + TUNE, command=None, env=None, **options):
        path = self.write("p.ini", policy) if policy is not None else None
        command = command or ["sh", self.application(*cases), "{folder}"]
        return self.command("tune", *(["-p", path] if path else []), "--library", LIBRARY,
                            *arguments, "--", *command,
                            env={"LD_LIBRARY_PATH": DOUBLES, "TMPDIR": self.folder, **(env or {})},
                            **options)

    def found(self, *arguments, **options):
        """The result as JSON, after a short search unless the arguments say otherwise."""
        result = self.tune("--json", "-q", *METRIC, "--search-blocks", "3", *arguments, **options)
        return result, support.load_json(result.stdout)

    def read(self, name):
        with open(self.path(name), encoding="utf-8", newline="") as file:
            return file.read()

    def folders(self):
        return self.read("folders").split()


class Winner(Case):
    def test_what_helps_is_found_confirmed_and_written(self):
        result, document = self.found("-o", "best.ini", cases=[REMOTE_HELPS])
        self.assertEqual(result.returncode, 0, result)
        self.assertEqual(document["result"], "confirmed")
        self.assertIn("mem_sync_domain=remote", document["best"])
        self.assertAlmostEqual(document["confirmation"]["ratio"], 0.7, delta=0.001)
        self.assertEqual(document["confirmation"]["verdict"], "better")
        text = self.read("best.ini")
        for fact in ("# Found by cudapolicy tune", "# command: sh ", "# metric: time, less is better",
                     "# confirmed ratio to the baseline: 0.70", "# ratio in the search: 0.70",
                     "# seed of both: 3", "# CUDA version of the driver: "):
            self.assertIn(fact, text)
        # What is not said stays as it was.
        self.assertIn("; the kernels of NCCL\n[kernel nccl]\nname = nccl*      ; all of it\n"
                      "mem_sync_domain = remote\npriority = ", text)
        self.assertNotIn("[tune]", text)
        self.assertEqual(self.command("check", "-q", self.path("best.ini")).returncode, 0)

    def test_the_confirmation_runs_anew_with_another_seed(self):
        _, document = self.found(cases=[REMOTE_HELPS])
        self.assertNotEqual(document["search"]["seed"], document["confirmation"]["seed"])
        folders = self.folders()
        self.assertEqual(len(set(folders)), len(folders))
        search = [folder for folder in folders if "/search/" in folder]
        confirmation = [folder for folder in folders if "/confirmation/" in folder]
        # A block to warm up, and three and ten that count: five arms; the baseline twice, the winner.
        self.assertEqual(len(search), 4 * 5)
        self.assertEqual(len(confirmation), 11 * 3)
        self.assertEqual(folders, search + confirmation)

    def test_the_same_seed_finds_the_same(self):
        _, first = self.found("--seed", "5", cases=[REMOTE_HELPS])
        os.unlink(self.path("count"))
        _, second = self.found("--seed", "5", cases=[REMOTE_HELPS])
        self.assertEqual(first, second)

    def test_more_can_be_better(self):
        result, document = self.found("-m", "+rate=time: ([0-9]+)", "--primary", "rate",
                                      cases=[REMOTE_HELPS.replace("70", "150")])
        self.assertEqual(result.returncode, 0, result)
        self.assertAlmostEqual(document["confirmation"]["ratio"], 1.5, delta=0.001)

    def test_vary_on_the_command_line_adds_to_the_policy_and_beats_it(self):
        result, document = self.found(
            "--vary", "nccl.priority=-3,-4", "--vary", "nccl.graph_nodes = yes, no",
            "--each", cases=['case "$policy" in *"priority = -4"*) time=50;; esac'])
        self.assertEqual(result.returncode, 0, result)
        self.assertEqual(document["best"], "nccl.priority=-4")
        self.assertEqual([candidate["name"] for candidate in document["search"]["candidates"]],
                         ["nccl.mem_sync_domain=remote", "nccl.priority=-3", "nccl.priority=-4",
                          "nccl.graph_nodes=yes"])
        self.assertEqual([left["name"] for left in document["search"]["left_out"]],
                         ["nccl.mem_sync_domain=default", "nccl.graph_nodes=no"])

    def test_halving_leaves_most_runs_to_the_better_ones(self):
        result, document = self.found(
            "--vary", "nccl.priority=-1,-2,-3,-4,-5", "--each", "--halving", "--search-blocks", "6",
            policy=BASE, cases=['case "$policy" in *"priority = -4"*) time=50;; esac'])
        self.assertEqual(result.returncode, 0, result)
        self.assertEqual(document["best"], "nccl.priority=-4")
        blocks = {candidate["name"]: candidate["blocks"]
                  for candidate in document["search"]["candidates"]}
        self.assertEqual(document["search"]["rounds"], 3)
        self.assertEqual(blocks["nccl.priority=-4"], 6)
        self.assertEqual(sorted(blocks.values()), [2, 2, 4, 6, 6])

    def test_the_baseline_can_be_without_the_preload(self):
        result, document = self.found(
            "--baseline", "none",
            cases=['case "$policy" in *"[kernel nccl]"*) time=80;; esac', REMOTE_HELPS])
        self.assertEqual(result.returncode, 0, result)
        self.assertEqual(document["baseline"], "none")
        self.assertEqual(document["search"]["candidates"][0]["name"], "base")
        self.assertAlmostEqual(document["search"]["candidates"][0]["ratio"], 0.8, delta=0.001)
        self.assertAlmostEqual(document["confirmation"]["ratio"], 0.7, delta=0.001)

    def test_the_answer_has_the_figures_and_the_shrinkage(self):
        result = self.tune(*METRIC, "--each", "--search-blocks", "3", cases=[REMOTE_HELPS])
        self.assertEqual(result.returncode, 0, result)
        self.assertRegex(result.stdout, r"^nccl\.mem_sync_domain=remote is better than base: "
                                        r"1\.4\d+ times as good in time \(")
        self.assertRegex(result.stdout, r"\n  search: +ratio 0\.70")
        self.assertRegex(result.stdout, r"\n  confirmation: ratio 0\.70")
        self.assertRegex(result.stdout, r"\n  shrinkage: +from \+42\.\d % in the search to \+42\.\d %\n")
        self.assertIn("Search, ratio of time to base, best first:", result.stderr)

    def test_nothing_is_left_behind(self):
        self.tune("-q", *METRIC, "--search-blocks", "1", "--each", cases=[REMOTE_HELPS])
        self.assertEqual(sorted(os.listdir(self.folder)), ["app.sh", "count", "folders", "p.ini"])

    def test_a_folder_keeps_candidates_and_journals(self):
        result = self.tune("-q", *METRIC, "--folder", "kept", "--search-blocks", "1", "--each",
                           cases=[REMOTE_HELPS])
        self.assertEqual(result.returncode, 0, result)
        self.assertEqual(self.read("kept/candidates/base.ini"), BASE + "\n")
        for stage in ("search", "confirmation"):
            self.assertIn('"seed"', self.read(f"kept/{stage}/journal.jsonl"))
        again = self.tune("-q", *METRIC, "--folder", "kept", "--search-blocks", "1", "--each",
                           cases=[REMOTE_HELPS])
        self.assertEqual(again.returncode, 125)
        self.assertIn("give a folder that no search used yet", again.stderr)


class Nothing(Case):
    def test_where_nothing_helps_nothing_is_written(self):
        result, document = self.found("-o", "best.ini")
        self.assertEqual(result.returncode, 1, result)
        self.assertEqual(document["result"], "nothing better")
        self.assertFalse(os.path.exists(self.path("best.ini")))

    def test_it_is_stated_with_the_interval(self):
        result = self.tune("-q", *METRIC, "--each")
        self.assertEqual(result.returncode, 1)
        self.assertRegex(result.stdout,
                         r"^Nothing beats base by more than 1 %: the search rules it out for every "
                         r"candidate\. The best was .*: ratio [01]\.\d+, 95 % interval "
                         r"0\.9\d+ \.\. [01]\.\d+, 10 blocks\.\n$")

    def test_luck_in_the_search_is_not_confirmed(self):
        # Twenty per cent, as long as it is the search that asks.
        luck = 'case "$1$policy" in */search/*"priority = -1"*) time=80;; esac'
        result, document = self.found("-o", "best.ini", cases=[luck])
        self.assertEqual(result.returncode, 1, result)
        self.assertEqual(document["result"], "nothing better")
        self.assertIn("nccl.priority=-1", document["best"])
        best = [candidate for candidate in document["search"]["candidates"]
                if candidate["name"] == document["best"]][0]
        self.assertAlmostEqual(best["ratio"], 0.8, delta=0.001)
        self.assertAlmostEqual(document["confirmation"]["ratio"], 1, delta=0.001)
        self.assertEqual(document["confirmation"]["verdict"], "no difference")
        self.assertFalse(os.path.exists(self.path("best.ini")))

    def test_the_shrinkage_of_luck_is_said(self):
        luck = 'case "$1$policy" in */search/*"priority = -1"*) time=80;; esac'
        result = self.tune("-q", *METRIC, "--each", "--search-blocks", "3", cases=[luck])
        self.assertEqual(result.returncode, 1)
        self.assertIn("is not better in new runs", result.stdout)
        self.assertRegex(result.stdout, r"shrinkage: +from \+25\.\d % in the search to [+-]0\.0 %")

    def test_a_file_that_was_there_stays_as_it_was(self):
        self.write("best.ini", "kept")
        result = self.tune("-q", *METRIC, "-o", "best.ini", "--force", "--each")
        self.assertEqual(result.returncode, 1)
        self.assertEqual(self.read("best.ini"), "kept")

    def test_noise_is_inconclusive(self):
        # Fast or slow by a half, whatever the policy.
        noise = 'time=$((50 + n * 7919 % 97))'
        result, document = self.found("--seed", "1", "--looks", "10",
                                      "--vary", "nccl.priority=0,-1", "--each", cases=[noise])
        self.assertEqual(result.returncode, 2, result)
        self.assertEqual(document["result"], "inconclusive")
        self.assertEqual(document["confirmation"]["verdict"], "not enough runs")


class Broken(Case):
    def test_a_baseline_that_fails_ends_it(self):
        result = self.tune("-q", *METRIC, "-o", "best.ini", command=["sh", "-c", "echo no; exit 4"])
        self.assertEqual(result.returncode, 125, result)
        self.assertIn("the first run of the baseline, base, failed", result.stderr)
        self.assertIn("The baseline does not work", result.stdout)
        self.assertFalse(os.path.exists(self.path("best.ini")))

    def test_a_metric_that_never_matches_ends_it_after_one_run(self):
        result = self.tune("-q", "-m", "time=never: ([0-9]+)")
        self.assertEqual(result.returncode, 125, result)
        self.assertIn("cannot be read from the first run", result.stderr)
        self.assertEqual(self.read("count"), "1\n")

    def test_a_fast_candidate_that_fails_is_not_the_winner(self):
        result, document = self.found(
            "--each", cases=[REMOTE_HELPS.replace("time=70", "time=10; exit 3"),
                             'case "$policy" in *"priority = -1"*) time=90;; esac'])
        self.assertEqual(result.returncode, 0, result)
        self.assertEqual(document["best"], "nccl.priority=-1")
        broken = {candidate["name"]: candidate["broken"]
                  for candidate in document["search"]["candidates"]}
        self.assertEqual(broken, {"nccl.mem_sync_domain=remote": True, "nccl.priority=0": False,
                                  "nccl.priority=-1": False})

    def test_a_fast_candidate_that_changes_results_is_not_the_winner(self):
        result, document = self.found(
            "--each", "--same-output", "/^result.*/",
            cases=[REMOTE_HELPS.replace("time=70", "time=10; result=wrong"), "echo result $result"])
        self.assertNotEqual(document["best"], "nccl.mem_sync_domain=remote")
        self.assertEqual(result.returncode, 1, result)

    def test_all_candidates_broken_is_no_result(self):
        result, document = self.found(
            cases=['case "$policy" in *"priority ="*) exit 3;; esac'])
        self.assertEqual(result.returncode, 3, result)
        self.assertEqual(document["result"], "broken")
        self.assertIsNone(document["best"])

    def test_an_interruption_ends_with_what_there_is(self):
        self.application('if [ $n = 8 ]; then kill -INT $(cat parent); sleep 30; fi')
        path = self.write("p.ini", BASE + TUNE)
        process = self.start("tune", "-p", path, "--library", LIBRARY, "-o", "best.ini", *METRIC,
                             "--", "sh", "-c", "while [ ! -s parent ]; do :; done; . ./app.sh",
                             "{folder}", env={"LD_LIBRARY_PATH": DOUBLES, "TMPDIR": self.folder})
        self.write("parent", f"{process.pid}\n")
        output, errors = process.communicate(timeout=support.TIME_LIMIT)
        self.assertEqual(process.returncode, 2, errors)
        self.assertIn("ended before anything could be confirmed", output)
        self.assertFalse(os.path.exists(self.path("best.ini")))


class Usage(Case):
    def refused(self, status, text, *arguments, **options):
        result = self.tune(*arguments, **options)
        self.assertEqual(result.returncode, status, result)
        self.assertIn(text, result.stderr)
        self.assertFalse(os.path.exists(self.path("count")), "something was run")

    def test_mistakes_are_found_before_anything_runs(self):
        self.refused(125, "--vary 'nccl.priorit=1,2': unknown key \"priorit\" in [kernel]; did you "
                          "mean \"priority\"?", "--vary", "nccl.priorit=1,2")
        self.refused(125, "--vary 'nccl.mem_sync_domain=remote,x': mem_sync_domain: \"x\" is not ",
                     "--vary", "nccl.mem_sync_domain=remote,x")
        self.refused(125, "there is no rule or partition \"other\"", "--vary", "other.priority=1,2")
        self.refused(125, "control character", "--vary", "nccl.priority=1,2\n[kernel x]")
        self.refused(125, "there is nothing to vary", policy=BASE)
        self.refused(125, "p.ini:8:2: error: unknown section", policy=BASE + "\n[tun]\n")
        self.refused(125, "mode = observe",
                     policy=BASE.replace("version = 1", "version = 1\nmode = observe") + TUNE)
        self.refused(125, "2 x 3 values make 6 candidates, more than 4", "--limit", "4",
                     "--vary", "nccl.priority=0,1,2")

    def test_contradictions_alone_are_an_error(self):
        self.refused(125, "every combination of values is left out; the first, since ",
                     "--vary", "nccl.physical_domain=1,2",
                     policy=BASE + "mem_sync_domain_map = 0 2\n")

    def test_an_output_that_is_there_is_refused_first(self):
        self.write("best.ini", "kept")
        self.refused(125, "'best.ini' is there already", "-o", "best.ini")
        self.assertEqual(self.read("best.ini"), "kept")

    def test_wrong_command_lines_are_usage_errors(self):
        path = self.write("p.ini", BASE + TUNE)
        for arguments, text in (
                (["--", "true"], "no policy"),
                (["-p", path], "no command"),
                (["-p", path, "true"], "no command"),
                (["-p", path, "--limit", "0", "--", "true"], "--limit"),
                (["-p", path, "--baseline", "x", "--", "true"], "--baseline"),
                (["-p", path, "--each=1", "--", "true"], "takes no argument"),
                (["-p", path, "--vary", "--", "true"], "needs an argument"),
                (["-p", path, "--no-such", "--", "true"], "unknown option"),
                (["-p", path, "--resume", "x", "--folder", "y", "--", "true"], "--resume"),
                (["-p", path, "--export", "x.txt", "--", "true"], "--export"),
                (["-p", path, "--live", "--", "true"], "--live takes a step"),
                (["-p", path, "--live=maybe", "--", "true"], "'maybe' is not auto, yes or no"),
                (["-p", path, "--slice", "1", "--", "true"], "--slice"),
                (["-p", path, "--slice", "4", "--drop", "4", "--", "true"], "leaves nothing"),
                (["-p", path, "--live-runs", "0", "--", "true"], "--live-runs"),
                (["-p", path, "--claim", "none", "--", "true"], "claim"),
                (["--suggest", path, "-p", path], "--suggest"),
                (["--suggest", path, "--", "true"], "runs nothing")):
            self.assert_usage_error(self.command("tune", *arguments), text)

    def test_help_is_printed(self):
        result = self.command("tune", "--help")
        self.assertEqual(result.returncode, 0)
        self.assertIn("--suggest", result.stdout)


class Suggest(Case):
    def record(self, *program):
        result = self.command("record", "--library", LIBRARY, "--json", "-o", "record.json", "--",
                              PROGRAM, *program, env={"LD_LIBRARY_PATH": DOUBLES})
        self.assertEqual(result.returncode, 0, result)

    def test_a_record_becomes_a_policy_that_can_be_tuned(self):
        self.record("stream", "0", "launch", KERNEL, "5", "2", "stream", "0",
                    "launch", "ncclDevKernel_AllGather", "5", "32", "launch", "gemm", "9", "500")
        result = self.command("tune", "--suggest", "record.json", "-o", "try.ini")
        self.assertEqual(result.returncode, 0, result)
        text = self.read("try.ini")
        for line in ("[kernel communication]", "grid_blocks = ..2", "[tune]",
                     "vary = communication.mem_sync_domain = leave, remote, default",
                     "vary = small-communication.physical_domain = leave, 1, 2"):
            self.assertIn(line, text)
        check = self.command("check", "try.ini")
        self.assertEqual(check.returncode, 0, check)
        self.assertIn("0 warnings", check.stdout)
        result, document = self.found("--each", policy=text, cases=[REMOTE_HELPS])
        self.assertEqual(result.returncode, 0, result)
        self.assertEqual(document["best"], "communication.mem_sync_domain=remote")

    def test_a_program_without_streams_has_nothing_to_suggest(self):
        self.record("launch", KERNEL, "5", "2", "launch", "gemm", "9", "500")
        result = self.command("tune", "--suggest", "record.json", "-o", "try.ini")
        self.assertEqual(result.returncode, 1, result)
        self.assertIn("nothing to suggest: ", result.stderr)
        self.assertFalse(os.path.exists(self.path("try.ini")))

    def test_a_file_that_is_no_record_is_refused(self):
        self.write("x.json", '{"format": "other"}')
        for name in ("x.json", "missing.json"):
            result = self.command("tune", "--suggest", name)
            self.assertEqual(result.returncode, 125, result)
            self.assertIn(name, result.stderr)
        self.write("y.json", '{"format": "cudapolicy inventory", "schema": 1}')
        self.assertEqual(self.command("tune", "--suggest", "y.json").returncode, 125)


class Language(Case):
    def test_a_program_under_a_policy_with_tune_runs_as_it_stands(self):
        result = self.run_program("-q", "--", PROGRAM, "launch", KERNEL, "1", "4",
                                  policy=BASE + TUNE,
                                  env={"LD_LIBRARY_PATH": DOUBLES,
                                       "RECORDING_DRIVER_LOG": self.path("calls")})
        self.assertEqual(result.returncode, 0, result)
        self.assertIsNotNone(re.search(r"mem_sync_domain", self.read("calls"), re.IGNORECASE))


if __name__ == "__main__":
    support.main()
