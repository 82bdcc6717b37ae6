# SPDX-License-Identifier: Apache-2.0
"""cudapolicy ab: one journal has one writer and one set of options; signals that are ignored; names of arms."""

import csv
import json
import os
import signal
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import test_ab  # pylint: disable=wrong-import-position
from test_ab import support  # pylint: disable=wrong-import-position

RESUME = ("--claim", "none", "--blocks", "2", "--resume", "f")


class Experiment(test_ab.Experiment):
    def head(self, change):
        """Changes the first line of the journal."""
        path = self.path("f/journal.jsonl")
        with open(path, encoding="utf-8") as file:
            head, *runs = file.readlines()
        document = json.loads(head)
        change(document)
        with open(path, "w", encoding="utf-8") as file:
            file.write(json.dumps(document) + "\n" + "".join(runs))


class OneWriter(Experiment):
    """Two commands never write one journal."""

    def begin(self, call):
        """An experiment that waits in this call of the script, until its pipe is written to."""
        os.mkfifo(self.path("pipe"))
        os.mkfifo(self.path("said"))
        self.script(f"[ $calls = {call} ] && echo waits >said && cat pipe", "echo time 1")
        process = self.start(*self.arguments("--claim", "none", "--blocks", "2", "--seed", "7",
                                             "--folder", "f"), env=self.environment)
        self.addCleanup(self.release)
        with open(self.path("said"), encoding="ascii") as file:
            file.read()
        return process

    def release(self):
        """What still waits for the pipe, its experiment being over."""
        try:
            os.close(os.open(self.path("pipe"), os.O_WRONLY | os.O_NONBLOCK))
        except OSError:
            pass

    def go_on(self, process):
        with open(self.path("pipe"), "w", encoding="ascii"):
            pass
        _, errors = process.communicate(timeout=support.TIME_LIMIT)
        self.assertEqual(process.returncode, 0, errors)

    def test_a_journal_that_is_written_is_not_continued_by_another(self):
        process = self.begin(3)
        before = len(self.runs())
        result = self.ab(*RESUME)
        self.assertEqual(result.returncode, 125, result)
        self.assertIn(f"/f/journal.jsonl' is in use: process {process.pid} makes the runs of this "
                      "experiment", result.stderr)
        self.assertEqual((len(self.runs()), len(self.calls())), (before, 3))
        self.go_on(process)
        self.assertEqual(len(self.runs()), 3 * 4)

    def test_one_that_is_continued_is_not_continued_by_a_third(self):
        self.script("echo time 1")
        self.few(blocks=2)
        with open(self.path("f/journal.jsonl"), "r+", encoding="utf-8") as file:
            lines = file.readlines()
            file.seek(0)
            file.writelines(lines[:4])
            file.truncate()
        os.unlink(self.path("calls"))
        os.mkfifo(self.path("pipe"))
        os.mkfifo(self.path("said"))
        self.script("[ $calls = 2 ] && echo waits >said && cat pipe", "echo time 1")
        process = self.start(*self.arguments(*RESUME), env=self.environment)
        with open(self.path("said"), encoding="ascii") as file:
            file.read()
        self.assertIn(f"process {process.pid} makes", self.ab(*RESUME).stderr)
        self.go_on(process)
        self.assertEqual(len(self.runs()), 3 * 4)

    def test_what_was_killed_can_be_continued(self):
        process = self.begin(3)
        process.kill()
        process.wait()
        self.script("echo time 1")
        result = self.ab(*RESUME)
        self.assertEqual(result.returncode, 0, result)
        self.assertEqual(len(self.runs()), 3 * 4)


class Options(Experiment):
    """The runs that follow are made as those that are there."""

    def setUp(self):
        super().setUp()
        self.script("echo time 1", "echo sum 3")

    def begin(self, *options):
        self.few(*options, blocks=1)
        os.unlink(self.path("calls"))

    def resume(self, *options, **arguments):
        return self.ab("--claim", "none", "--blocks", "1", "--resume", "f", *options, **arguments)

    def test_every_option_that_is_another_is_named(self):
        self.begin("--env", "A=1", "--timeout", "50", "--prepare", "true")
        result = self.resume("--env", "A=2", "--check", "true", "--cleanup", ":", "--timeout", "50",
                             "--same-output", "/^sum.*/", "--tolerance", "0.5,1")
        self.assert_nothing_ran(result, "its runs were made with other options: ")
        for text in ("--prepare (not given; then: true)", "--env (A=2; then: A=1)",
                     "--check (true; then: not given)", "--cleanup (:; then: not given)",
                     "--same-output (/^sum.*/; then: not given)",
                     "--tolerance (0.5, 1; then: not given)"):
            self.assertIn(text, result.stderr)
        self.assertNotIn("--timeout", result.stderr)

    def test_a_time_limit_and_none_are_not_the_same(self):
        self.begin("--timeout", "0")
        self.assert_nothing_ran(self.resume(), "--timeout (not given; then: 0)")
        self.assertEqual(self.resume("--timeout", "0").returncode, 0)

    def test_the_same_options_go_on(self):
        options = ("--env", "A={arm}", "--env", "B=x y", "--timeout", "50", "--prepare", "true",
                   "--check", "true", "--same-output", "/^sum.*/", "--tolerance", "1e-3")
        self.begin(*options)
        self.assertEqual(self.resume(*options).returncode, 0)

    def test_what_is_shown_and_kept_may_change(self):
        self.begin()
        result = self.resume("--keep-output", "--quiet", "--wide", "--export", "x.json",
                             "--allow-unattached")
        self.assertEqual(result.returncode, 0, result)
        with open(self.path("x.json"), encoding="utf-8") as file:
            self.assertIn("options", file.read())

    def test_a_library_that_was_built_again_is_another_one(self):
        copy = self.path("copy.so")
        support.shutil.copy(support.LIBRARY, copy)
        self.begin()
        self.assertEqual(self.resume("--library", copy).returncode, 0)
        with open(copy, "ab") as file:
            file.write(b"more")
        self.assert_nothing_ran(self.resume("--library", copy), "another libcudapolicy.so")

    def test_another_working_directory_is_told(self):
        self.begin()
        os.mkdir(self.path("d"))
        words = self.arguments("--claim", "none", "--blocks", "1", "--resume", self.path("f"),
                               arms=("none", self.p))
        for name in ("script", "calls"):
            os.symlink(self.path(name), self.path(f"d/{name}"))
        result = self.command(*words, env=self.environment, cwd=self.path("d"))
        self.assert_nothing_ran(result, "another working directory (")

    def test_another_host_is_warned_of(self):
        self.begin()
        self.head(lambda document: document.update(host="far-away"))
        result = self.resume()
        self.assertEqual(result.returncode, 0, result)
        self.assertRegex(result.stderr, "warning: other host than when the experiment began: .*, "
                                        "then far-away")

    def test_a_journal_of_old_says_nothing_about_options(self):
        self.begin()
        self.head(lambda document: document.pop("options"))
        result = self.resume("--env", "A=1")
        self.assertEqual(result.returncode, 0, result)
        self.assertIn("does not say with which options", result.stderr)


class IgnoredSignals(Experiment):
    """What was ignored when the command was started, stays so, as for every program: nohup, and shells for
    the jobs that they start in the background, count on it."""

    def few_ignoring(self, ignored, *lines):
        self.script(*lines, "echo time 1")
        return self.few(blocks=1, preexec_fn=lambda: signal.signal(ignored, signal.SIG_IGN))

    def few(self, *options, blocks=1, preexec_fn=None, **_):
        words = self.arguments("--claim", "none", "--blocks", str(blocks), "--seed", "7",
                               "--folder", "f", *options)
        return self.command(*words, env=self.environment, preexec_fn=preexec_fn)

    def test_an_interrupt_or_hang_up_that_is_ignored_ends_nothing(self):
        for ignored in (signal.SIGINT, signal.SIGHUP):
            result = self.few_ignoring(ignored, f"[ $calls = 3 ] && kill -{int(ignored)} $PPID $$")
            self.assertEqual(result.returncode, 0, result)
            self.assertEqual([run["outcome"] for run in self.runs()], ["ok"] * 8)
            support.shutil.rmtree(self.path("f"))
            os.unlink(self.path("calls"))

    def test_the_other_signals_end_it_all_the_same(self):
        self.few_ignoring(signal.SIGINT, "[ $calls = 6 ] && kill -TERM $PPID && exec sleep 1000")
        self.assertEqual(len(self.runs()), 5)

    def test_a_background_job_of_a_shell_without_job_control(self):
        self.script("[ $calls = 3 ] && kill -INT $PPID", "echo time 1")
        words = self.arguments("--claim", "none", "--blocks", "1", "--seed", "7", "--folder", "f")
        result = subprocess.run(["sh", "-c", '"$@" & wait $!', "sh", support.COMMAND, *words],
                                cwd=self.folder, env=support.environment(**self.environment),
                                stdin=subprocess.DEVNULL, capture_output=True, text=True,
                                timeout=support.TIME_LIMIT, check=False)
        self.assertEqual(result.returncode, 0, result)
        self.assertEqual(len(self.runs()), 8)


class Names(Experiment):
    """Arms are called as their files are, or as the user says."""

    FILES = ("märz für 日本", "a b", "ends with.", "x" * 120)

    def setUp(self):
        super().setUp()
        self.script('echo "$1" >>names', "echo time 1", 'echo "$CACHE" >>caches')
        for number, name in enumerate(self.FILES):
            self.write(f"{name}.ini", support.GOOD_POLICY + f"# {number}\n")

    def names(self):
        return [arm["name"] for arm in self.journal()[0]["arms"]]

    def test_files_names_are_kept_in_all_that_is_written(self):
        result = self.few("--no-repeat", "--keep-output", "--env", "CACHE=c/{arm}", "--check",
                          '[ "$CUDAPOLICY_AB_ARM" = "{arm}" ]', *self.exports(),
                          arms=["p.ini", *[f"{name}.ini" for name in self.FILES]])
        self.assertEqual(result.returncode, 0, result)
        names = ["p", *self.FILES[:3], "x" * 90]
        self.assertEqual(self.names(), names)
        for where in ("names", "caches"):
            with open(self.path(where), encoding="utf-8") as file:
                self.assertEqual({line.rstrip("\n").split("/")[-1] for line in file}, set(names))
        folders = {folder.split("-", 2)[2] for folder in os.listdir(self.path("f/runs"))}
        self.assertEqual(folders, set(names))
        for name in names[:4]:
            self.assertIn(f"\n  {name} ", result.stdout)
        self.assert_exported(names)

    @staticmethod
    def exports():
        return [word for suffix in ("json", "csv", "md", "html")
                for word in ("--export", f"x.{suffix}")]

    def assert_exported(self, names):
        with open(self.path("x.csv"), encoding="utf-8", newline="") as file:
            self.assertEqual({row["arm"] for row in csv.DictReader(file)}, set(names))
        with open(self.path("x.json"), encoding="utf-8") as file:
            document = json.load(file)
        self.assertTrue(all(name in json.dumps(document, ensure_ascii=False) for name in names))
        for suffix in ("md", "html"):
            with open(self.path(f"x.{suffix}"), encoding="utf-8") as file:
                text = file.read()
            for name in names:
                # Markdown escapes a full stop at the end of a word.
                self.assertTrue(name in text or name.replace(".", "\\.") in text, (suffix, name))

    def test_an_experiment_with_such_names_goes_on(self):
        arms = ["none", "märz für 日本.ini", "über uns=a b.ini"]
        self.few(arms=arms)
        result = self.ab("--claim", "none", "--blocks", "1", "--resume", "f", arms=arms)
        self.assertEqual(result.returncode, 0, result)
        self.assertEqual(self.names(), ["none", "märz für 日本", "über uns", "none-again", "observe"])

    def test_rules_of_a_live_comparison_have_names_that_rules_can_have(self):
        for name in ("ä b", "ö b"):
            self.write(f"{name}.ini", support.GOOD_POLICY)
        result = self.command("ab", "--live", "--json", "--library", test_ab.LIBRARY, "--runs", "1",
                              "--step-kernel", "k", "--quiet", "none", "ä b.ini", "ö b.ini", "--",
                              test_ab.PROGRAM, "launch", "k", "1000", "8", env=self.environment)
        self.assertIn(result.returncode, (0, 1, 2), result)
        self.assertEqual([arm["name"] for arm in json.loads(result.stdout)["arms"]][:3],
                         ["none", "ä b", "ö b"])

    def test_what_a_name_cannot_have_is_said(self):
        for word in ("a:b=p.ini", "x;y=none", " a=p.ini", "a =p.ini", "..=p.ini", "'=p.ini",
                     "y" * 101 + "=p.ini", "a\nb=p.ini"):
            result = self.ab(arms=["none", word])
            self.assert_usage_error(result, "is no name for an arm: a name has letters, digits, "
                                            "'.', '_', '+', '-', blanks between these")
            self.assertIn("a file with '=' in its name is given as ./", result.stderr)
        os.rename(self.p, self.path("a:b=c.ini"))
        self.few("--warm-up", "0", arms=["none", "./a:b=c.ini"])
        self.assertEqual(self.names()[1], "a-b-c")

    def test_what_a_file_is_called_and_no_arm_can_be(self):
        for name in (b"\xff\xfea.ini", b" $(x).ini", b"...ini", b"a\x1b[31m.ini"):
            path = os.path.join(os.fsencode(self.folder), name)
            with open(path, "w", encoding="ascii") as file:
                file.write(support.GOOD_POLICY)
        words = [os.fsdecode(name) for name in (b"\xff\xfea.ini", b" $(x).ini", b"...ini",
                                                b"a\x1b[31m.ini")]
        result = self.few("--warm-up", "0", "--no-repeat", arms=["p.ini", *words])
        self.assertEqual(result.returncode, 0, result)
        self.assertEqual(self.names(), ["p", "--a", "---x-", "-.", "a--31m"])


if __name__ == "__main__":
    support.main()
