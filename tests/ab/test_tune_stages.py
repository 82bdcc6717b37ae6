# SPDX-License-Identifier: Apache-2.0
"""cudapolicy tune: live searches, searches that are continued, what is written about them, and what must not
be called a winner. On the recording driver; how long steps take means nothing here, so that what a live
search has to find is found by which rules do anything at all."""

import os
import re
import sys

sys.path.insert(0, os.path.join(os.environ["CUDAPOLICY_TEST_SOURCE"], "tests", "command"))
import support  # noqa: E402
from support import LIBRARY  # noqa: E402

PROGRAM = os.environ["CUDAPOLICY_TEST_PROGRAM"]
DOUBLES = os.environ["CUDAPOLICY_TEST_DOUBLES"]
NVML = os.environ["CUDAPOLICY_TEST_NVML"]

BASE = """[policy]
version = 1
[kernel steps]
name = nothing
mem_sync_domain = remote
"""

# One of them is about a kernel that is launched.
NAMES = BASE + "\n[tune]\nvary = steps.name = other, step, another\n"

# Live, enough steps for some blocks; where a test looks at step time, enough for it to be seen.
APPLICATION = r"""
n=$(cat count 2>/dev/null || echo 0); n=$((n + 1)); echo $n > count
policy=$(cat "$CUDAPOLICY_FILE" 2>/dev/null)
time=100 kernel=step steps=${LONG:-4}
[ -n "$CUDAPOLICY_LIVE" ] && steps=407
CASES
echo "time: $((time * 1000 + n * 7919 % 101))"
exec PROGRAM launch $kernel $steps 4
"""

STEP_HELPS = 'case "$policy" in *"name = step"*) time=70;; esac'
METRIC = ["-m", "time=time: ([0-9]+)", "--seed", "3", "--looks", "10"]
STEPS = ["--step-kernel", "step", "--slice", "4", "--drop", "1", "--warm-up-steps", "6"]
LIVE = ["--live", *STEPS, "--live-runs", "2", "--no-repeat", "--warm-up", "0"]


class Case(support.Case):
    def setUp(self):
        super().setUp()
        self.environment = {"LD_LIBRARY_PATH": DOUBLES, "TMPDIR": self.folder}

    def application(self, *cases):
        text = APPLICATION.replace("CASES", "\n".join(cases))
        return self.write("app.sh", text.replace("PROGRAM", PROGRAM))

    def words(self, *arguments, cases=(STEP_HELPS,), policy=NAMES, metric=True):
        path = self.write("p.ini", policy)
        return ["tune", "-p", path, "--library", LIBRARY, *(METRIC if metric else []), *arguments, "--",
                "sh", self.application(*cases)]

    def tune(self, *arguments, **options):
        return self.command(*self.words(*arguments, **options), env=self.environment)

    def found(self, *arguments, **options):
        result = self.tune("--json", "-q", "--search-blocks", "2", *arguments, **options)
        return result, support.load_json(result.stdout)

    def read(self, name):
        with open(self.path(name), encoding="utf-8", newline="") as file:
            return file.read()

    def runs(self):
        return int(self.read("count"))


class Live(Case):
    def setUp(self):
        super().setUp()
        self.environment["LONG"] = "80000"

    def test_candidates_alternate_in_the_search_and_fresh_runs_confirm(self):
        result, document = self.found(*LIVE, "-o", "best.ini", "--folder", "kept")
        self.assertEqual(result.returncode, 0, result)
        search = document["search"]
        self.assertEqual((search["live"], search["why_not_live"], search["metric"], search["runs"],
                          search["rounds"]), (True, None, "step time", 2, 1))
        self.assertEqual(document["best"], "steps.name=step")
        self.assertEqual({candidate["name"]: (candidate["idle"], candidate["blocks"])
                          for candidate in search["candidates"]},
                         {"steps.name=other": (True, 50), "steps.name=step": (False, 50),
                          "steps.name=another": (True, 50)})
        self.assertAlmostEqual(document["confirmation"]["ratio"], 0.7, delta=0.001)
        # Two live ones, then blocks of two arms.
        self.assertEqual(self.runs(), 2 + 10 * 2)
        self.assertIn("[kernel steps.name-step/steps]\nname = step\narm = 2\n",
                      self.read("kept/search-live-1/live.ini"))
        self.assertIn("ratio in the search, live, in step time: ", self.read("best.ini"))

    def test_it_is_said_what_was_live(self):
        result = self.tune(*LIVE)
        self.assertEqual(result.returncode, 0, result)
        self.assertIn("search, live: batch 1 of 1, run 2 of 2: 407 steps, 25 blocks, 1 rank\n", result.stderr)
        self.assertIn("Search, live, ratio of step time to base, best first:", result.stderr)
        self.assertIn("The intervals are about the processes of these runs", result.stderr)
        self.assertRegex(result.stderr, r"\n  steps.name-other .* changes nothing\n")
        self.assertIn("; live, in step time)", result.stdout)
        # Two metrics: nothing shrank from one to the other.
        self.assertNotIn("shrinkage", result.stdout)

    def test_more_candidates_than_can_alternate_come_in_batches(self):
        values = ", ".join(f"kernel{number}" for number in range(19))
        result, document = self.found(*LIVE, policy=BASE + f"[tune]\nvary = steps.name = {values}, step\n")
        self.assertEqual(result.returncode, 0, result)
        self.assertEqual((document["search"]["rounds"], document["search"]["runs"]), (2, 4))
        # Ten and the baseline in slices of four, from 401 steps that count.
        self.assertEqual({candidate["blocks"] for candidate in document["search"]["candidates"]}, {18})
        self.assertEqual(document["best"], "steps.name=step")

    def test_where_step_time_decides_it_is_live_by_itself(self):
        result = self.tune("--json", *STEPS, "--live-runs", "1", "--seed", "1", "--looks", "10",
                           "--no-repeat", metric=False)
        self.assertIn(result.returncode, (0, 1, 2), result)
        document = support.load_json(result.stdout)
        self.assertTrue(document["search"]["live"])
        self.assertEqual((document["metric"], document["search"]["metric"]), ("step", "step"))

    def why(self, *arguments, **options):
        """Why a search that would be live is not, without the words around it."""
        result, document = self.found(*arguments, **options)
        self.assertFalse(document["search"]["live"], result)
        self.assertGreater(document["search"]["runs"], 0)
        return document["search"]["why_not_live"]

    def test_where_it_is_not_live_the_reason_is_said(self):
        once = ["--looks", "10", "--warm-up", "0", "--no-repeat"]
        self.assertEqual(self.why(*once), "no step is named (--step-kernel or --graph-steps)")
        self.assertTrue(self.why(*once, *STEPS).startswith("time decides, which is known of whole runs only"))
        result = self.tune(*once, "--search-blocks", "1")
        self.assertIn("cudapolicy: the search is by processes: no step is named (", result.stderr)
        self.assertIsNone(self.why(*once, "--live=no", *STEPS))

    def why_steps(self, *arguments, **options):
        """The same where step time decides; ends after one run."""
        cases = options.pop("cases", ())
        result = self.tune("--json", "-q", *STEPS, "--seed", "1", *arguments, metric=False,
                           cases=[*cases, '[ -n "$CUDAPOLICY_LIVE" ] || exit 5'], **options)
        self.assertEqual(result.returncode, 125, result)
        self.assertEqual(support.load_json(result.stdout)["result"], "no baseline")
        return support.load_json(result.stdout)["search"]["why_not_live"]

    def test_what_cannot_alternate_is_searched_by_processes(self):
        self.assertIn("--check is about what a run leaves", self.why_steps("--check", "true"))
        self.assertIn("--halving drops", self.why_steps("--halving"))
        self.assertEqual(
            self.why_steps(policy=NAMES.replace("[kernel", "[stream s]\npriority = -1\n[kernel")),
            "candidates/base.ini:3:1: a stream gets its settings when it is created, and keeps them in all arms")
        self.assertEqual(
            self.why_steps(policy=BASE + "partition = side\n[partition side]\nsm_count = 8\n"
                                         "[tune]\nvary = side.sm_count = 8, 16\n"),
            "candidates/base.ini:6:1: a partition cannot change while a program runs")

    def test_too_few_steps_and_runs_that_fail_leave_it_to_processes(self):
        self.assertEqual(self.why_steps(cases=["steps=12"]),
                         "12 steps are no whole block: it takes 6 of warm-up and 4 x 4 for each block")
        self.assertEqual(self.why_steps(cases=["exit 3"]), "a run with all of them failed: exit status 3")

    def test_who_insists_gets_an_error(self):
        for arguments, cases, text in (
                (["--baseline", "none"], [], "the baseline is without the library"),
                ([], ["steps=12"], "12 steps are no whole block"),
                ([], ["exit 3"], "a run with all of them failed: exit status 3")):
            result = self.tune("-q", *LIVE, *arguments, cases=cases)
            self.assertEqual(result.returncode, 125, result)
            self.assertIn("--live: the search cannot be live: " + text, result.stderr)
            self.assertEqual(result.stdout, "The search could not be made.\n")


class Noise(Case):
    """Differences that no rule made."""

    def test_candidates_that_change_nothing_are_not_confirmed(self):
        result = self.tune("-q", "--search-blocks", "2", "-o", "best.ini",
                           policy=NAMES.replace("step, ", ""), cases=[
                               'case "$policy" in *"name = other"*) time=70;; esac'])
        self.assertEqual(result.returncode, 1, result)
        self.assertIn("in no run of the search did a rule of a candidate that works change anything",
                      result.stdout)
        self.assertEqual(self.runs(), 3 * 3)
        self.assertFalse(os.path.exists(self.path("best.ini")))

    def test_one_that_does_something_is_preferred_to_a_faster_one_that_does_not(self):
        result, document = self.found(cases=[
            STEP_HELPS, 'case "$policy" in *"name = other"*) time=40;; esac'])
        self.assertEqual(result.returncode, 0, result)
        self.assertEqual(document["best"], "steps.name=step")

    def test_what_changed_nothing_in_the_confirmation_is_no_winner(self):
        # The kernel of the rule is launched as long as it is the search that asks.
        result, document = self.found("-o", "best.ini", cases=[
            STEP_HELPS, 'case "$CUDAPOLICY_REPORT" in */confirmation/*) kernel=x;; esac'])
        self.assertEqual(result.returncode, 1, result)
        self.assertEqual(document["result"], "nothing better")
        self.assertEqual(document["confirmation"]["verdict"], "changed nothing")
        self.assertTrue(document["confirmation"]["changed_nothing"])
        self.assertFalse(os.path.exists(self.path("best.ini")))

    def test_the_reason_is_said(self):
        result = self.tune("-q", "--search-blocks", "2", cases=[
            STEP_HELPS, 'case "$CUDAPOLICY_REPORT" in */confirmation/*) kernel=x;; esac'])
        self.assertEqual(result.returncode, 1, result)
        self.assertIn("in no run did a rule of it change anything, nor one of the baseline", result.stdout)

    def test_to_take_a_setting_away_can_win(self):
        result = self.tune("-q", "--search-blocks", "2", "-o", "best.ini",
                           policy=BASE.replace("nothing", "step") +
                           "[tune]\nvary = steps.mem_sync_domain = remote, leave\n",
                           cases=['case "$policy" in *remote*) ;; *) time=70;; esac'])
        self.assertEqual(result.returncode, 0, result)
        note = "its own rules changed nothing in any run: the gain is what the baseline's rules cost"
        self.assertIn(note, result.stdout)
        self.assertIn(note, self.read("best.ini"))


class Edited(Case):
    def test_a_policy_that_is_edited_meanwhile_is_said_and_does_not_count(self):
        result = self.tune("-q", "--search-blocks", "2", "-o", "best.ini", "--export", "r.json",
                           cases=[STEP_HELPS, '[ $n = 5 ] && echo "[wrong" >p.ini'])
        self.assertEqual(result.returncode, 0, result)
        said = "p.ini' was changed meanwhile"
        self.assertIn(said, result.stdout)
        text = self.read("best.ini")
        self.assertIn(said + "; this is about it as it was at the start", text)
        self.assertRegex(text, r"(?m)^# policy: .*p\.ini, SHA-256 [0-9a-f]{64}$")
        self.assertIn("[kernel steps]\nname = step\nmem_sync_domain = remote\n", text)
        document = support.load_json(self.read("r.json"))
        self.assertIn(said, document["policy_changed"])

    def test_one_that_is_gone_is_said(self):
        result = self.tune("-q", "--search-blocks", "2", cases=[STEP_HELPS, "rm -f p.ini"])
        self.assertEqual(result.returncode, 0, result)
        self.assertIn("p.ini' is no longer there", result.stdout)

    def test_one_that_stayed_is_not_mentioned(self):
        result, document = self.found("-o", "best.ini", cases=[STEP_HELPS])
        self.assertEqual(result.returncode, 0, result)
        self.assertIsNone(document["policy_changed"])
        self.assertNotIn("meanwhile", self.read("best.ini"))


class Resume(Case):
    def interrupted(self, run, *arguments, **options):
        """A search whose n-th run was interrupted."""
        cases = options.pop("cases", [STEP_HELPS])
        words = self.words("--search-blocks", "2", *arguments, **options, cases=[
            *cases, f"if [ $n = {run} ]; then kill -INT $(cat parent); sleep 30; fi"])
        words[-2:] = ["sh", "-c", "while [ ! -s parent ]; do :; done; . ./app.sh"]
        process = self.start(*words, env=self.environment)
        self.write("parent", f"{process.pid}\n")
        _, errors = process.communicate(timeout=support.TIME_LIMIT)
        self.assertEqual(process.returncode, 2, errors)
        return words, errors

    def resumed(self, words, *arguments):
        words = [*words[:1], "--json", *arguments, *words[1:]]
        result = self.command(*words, env=self.environment)
        return result, support.load_json(result.stdout) if result.stdout else None

    def check_continued(self, run, *arguments, search=3 * 4, confirmation=11 * 3):
        words, errors = self.interrupted(run, *arguments)
        folder = re.search(r"--resume (\S+) goes on with this search", errors).group(1)
        result, document = self.resumed(words, "--resume", folder)
        self.assertEqual(result.returncode, 0, result)
        self.assertEqual(document["best"], "steps.name=step")
        self.assertEqual(document["search"]["runs"], search)
        # The run that was interrupted is the only one that was made twice.
        self.assertEqual(self.runs(), search + confirmation + 1)
        self.assertEqual(document["confirmation"]["runs"], confirmation)

    def test_a_search_goes_on_where_it_was_interrupted(self):
        self.check_continued(7)

    def test_so_does_a_confirmation(self):
        self.check_continued(20)

    def test_so_does_a_live_search(self):
        self.environment["LONG"] = "80000"
        self.check_continued(2, *LIVE, search=2, confirmation=10 * 2)

    def test_one_that_had_ended_is_only_read(self):
        words = self.words("-q", "--search-blocks", "2", cases=[STEP_HELPS])
        first, document = self.resumed(words, "--folder", "kept")
        before = self.runs()
        second, again = self.resumed(words, "--resume", "kept", "-o", "best.ini")
        self.assertEqual((first.returncode, second.returncode), (0, 0), second)
        self.assertEqual(document, again)
        self.assertEqual(self.runs(), before)
        self.assertIn("# seed of both: 3\n", self.read("best.ini"))

    def test_only_the_same_search_is_continued(self):
        words = self.words("-q", "--search-blocks", "2", cases=[STEP_HELPS])
        self.assertEqual(self.resumed(words, "--folder", "kept")[0].returncode, 0)
        before = self.runs()

        def refused(text, *arguments, words=words, folder="kept"):
            result, _ = self.resumed(words, "--resume", folder, *arguments)
            self.assertEqual(result.returncode, 125, result)
            self.assertIn(text, result.stderr)
            self.assertEqual(self.runs(), before)

        refused("cannot find the folder", folder="missing")
        os.mkdir(self.path("empty"))
        refused("policy.ini", folder="empty")
        refused("its search is another one", words=["3" if word == "2" else word for word in words])
        refused("it has another baseline", "--baseline", "observe")
        refused("it has other metrics", "--skip", "2")
        refused("it has another seed or plan", "--alpha", "0.1")
        refused("kept/candidates/", "--vary", "steps.name=step,thing")
        refused("it is about another command", words=[*words, "more"])
        for name, value in (("--prepare", "true"), ("--cleanup", "true"), ("--check", "true"),
                            ("--same-output", "/x/"), ("--timeout", "50"), ("--env", "A=1")):
            refused(f"its runs were made with other options: {name} (", name, value)
        self.write("p.ini", NAMES + "; edited\n")
        refused("'" + os.path.realpath(self.path("kept/policy.ini")) + "' is not what the policy")


class Export(Case):
    def test_everything_is_written_in_every_format(self):
        files = ["r.json", "r.md", "r.csv", "r.html"]
        exports = [word for name in files for word in ("--export", name)]
        result = self.tune("-q", "--search-blocks", "2", *exports, cases=[STEP_HELPS])
        self.assertEqual(result.returncode, 0, result)
        document = support.load_json(self.read("r.json"))
        self.assertEqual(document["result"], "confirmed")
        self.assertEqual({name: len(stage["runs"]) for name, stage in document["stages"].items()},
                         {"search": 3 * 4, "confirmation": 11 * 3})
        text = self.read("r.md")
        self.assertIn("steps.name=step is better than base", text)
        self.assertIn("| steps.name=step | 2 | 0.70", text)
        self.assertIn("| steps.name=other | 2 | 1.00", text)
        self.assertIn("## Confirmation", text)
        self.assertEqual(len(self.read("r.csv").splitlines()), 1 + 11 * 3)
        page = self.read("r.html")
        self.assertTrue(page.startswith("<!DOCTYPE html>") and page.rstrip().endswith("</html>"), page[:99])

    def test_without_a_confirmation_the_search_is_shown(self):
        result = self.tune("-q", "--search-blocks", "2", "--export", "r.csv", "--export", "r.json",
                           policy=NAMES.replace("step, ", ""), cases=[])
        self.assertEqual(result.returncode, 1, result)
        self.assertEqual(len(self.read("r.csv").splitlines()), 1 + 3 * 3)
        self.assertIsNone(support.load_json(self.read("r.json"))["stages"]["confirmation"])

    def test_where_there_are_no_runs_there_is_no_page(self):
        result = self.tune("-q", "--export", "r.html", "--export", "r.json", cases=["exit 1"])
        self.assertEqual(result.returncode, 125, result)
        self.assertIn("'r.html' is not written", result.stderr)
        self.assertFalse(os.path.exists(self.path("r.html")))
        self.assertEqual(support.load_json(self.read("r.json"))["result"], "no baseline")

    def test_a_file_that_is_there_is_refused_first(self):
        self.write("r.json", "kept")
        result = self.tune("-q", "--export", "r.json")
        self.assertEqual(result.returncode, 125, result)
        self.assertEqual(self.read("r.json"), "kept")
        self.assertFalse(os.path.exists(self.path("count")))


class Gpus(Case):
    def test_gpus_and_what_was_flagged_are_in_what_is_written(self):
        os.symlink(NVML, self.path("libnvidia-ml.so.1"))
        self.environment["LD_LIBRARY_PATH"] = f"{self.folder}:{DOUBLES}"
        result, document = self.found("-o", "best.ini", "--export", "r.json", cases=[STEP_HELPS])
        self.assertEqual(result.returncode, 0, result)
        self.assertIn("NVIDIA Double", document["gpus"])
        self.assertIn("NVIDIA Double", self.read("best.ini"))
        for stage in support.load_json(self.read("r.json"))["stages"].values():
            self.assertIn("NVIDIA Double", stage["experiment"]["gpus"])
            self.assertTrue(all(run["gpu"] is not None for run in stage["runs"]))
        # It is always too hot.
        self.assertEqual(document["search"]["flagged"], document["search"]["runs"])
        self.assertGreater(document["confirmation"]["flagged"], 0)
        self.assertIn("of the confirmation's runs a GPU was slowed down or shared", self.read("best.ini"))


if __name__ == "__main__":
    support.main()
