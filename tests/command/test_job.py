# SPDX-License-Identifier: Apache-2.0
"""run, record, report and explain, end to end: a program on the recording driver under the library."""

import os
import signal
import unittest

import support
from support import LIBRARY, python

PROGRAM = os.environ["CUDAPOLICY_TEST_PROGRAM"]
NAME = os.path.basename(PROGRAM)
DOUBLES = os.environ["CUDAPOLICY_TEST_DOUBLES"]

ALL_REDUCE = "ncclDevKernel_AllReduce_Sum_f32_RING_LL"
COPY = "_ZN2at6native4copyIfEEvPT_i"

POLICY = f"""[policy]
version = 1

[stream high]
created_priority = ..-1
priority = -2

[kernel small]
name = ncclDevKernel_*
grid_blocks = 1..4
mem_sync_domain = remote
cluster_dim = 2
"""


class Job(support.Case):
    def job(self, *arguments, env=None, policy=POLICY, program=(), **options):
        path = self.write("policy.ini", policy)
        return self.command("run", "-p", path, "--library", LIBRARY, *arguments, "--", PROGRAM,
                            *program, env={"LD_LIBRARY_PATH": DOUBLES, **(env or {})}, **options)

    def record(self, *arguments, program=(), env=None):
        return self.command("record", "--library", LIBRARY, *arguments, "--", PROGRAM, *program,
                            env={"LD_LIBRARY_PATH": DOUBLES, **(env or {})})

    def summary(self, *arguments, **options):
        """The summary of a run as JSON. It goes to a file, since standard error is the program's."""
        self.job("-q", "--report", self.path("job.json"), *arguments, **options)
        with open(self.path("job.json"), encoding="utf-8") as file:
            return support.load_json(file.read())["summary"]

    def calls(self):
        with open(self.path("calls"), encoding="ascii") as file:
            return [dict(field.split("=", 1) for field in line.split()) for line in file]


class Run(Job):
    def test_the_policy_reaches_the_driver(self):
        result = self.job("-q", program=["stream", "-1", "launch", ALL_REDUCE, "1", "4"],
                          env={"RECORDING_DRIVER_LOG": self.path("calls")})
        self.assertEqual(result.returncode, 0, result)
        launch = [call for call in self.calls() if call["call"].startswith("cuLaunch")][-1]
        self.assertEqual(launch["call"], "cuLaunchKernelEx")
        self.assertIn("MEM_SYNC_DOMAIN:1", launch["effective"])
        self.assertIn("CLUSTER_DIMENSION:2/1/1", launch["effective"])

    def test_the_table_says_what_became_of_each_rule(self):
        result = self.job(program=["stream", "-1", "launch", ALL_REDUCE, "5", "4",
                                   "launch", ALL_REDUCE, "3", "3", "launch", COPY, "2", "16"])
        self.assertEqual((result.returncode, result.stdout), (0, ""), result)
        self.assertIn("cudapolicy: 10 launches of 2 kernels in 1 process (10 eager)\n",
                      result.stderr)
        self.assertRegex(result.stderr, r"(?m)^stream high +- +1 stream +1 +0 +0 +0$")
        self.assertRegex(result.stderr, r"(?m)^kernel small +1 +8 +8 +0 +0 +"
                                        r"3 \(grid not divisible by the cluster\)$")
        self.assertIn("no rule had a setting for 2 launches of 1 kernel\n", result.stderr)

    def executed(self, images, end=()):
        """The program in so many images, one after the other: the nth launches n kernels."""
        program = []
        for number in range(1, images + 1):
            program += ["exec"] * (number > 1) + ["launch", COPY, str(number), "1"]
        return program + list(end)

    def test_shapes_that_enforce_mode_does_not_note_are_told(self):
        program = ["launch", ALL_REDUCE, "1", "6"]
        footnote = "-: shapes are not noted in enforce mode; --mode observe and record note them\n"
        enforced = self.job("--kernels", "-r", self.path("enforced.json"), program=program)
        self.assertRegex(enforced.stderr, rf"(?m)^{ALL_REDUCE} .* 1 +- +- +-$")
        self.assertIn(footnote, enforced.stderr)
        self.assertIn(footnote, self.command("report", "--kernels", self.path("enforced.json")).stdout)
        observed = self.job("--kernels", "--mode", "observe", "-r", self.path("observed.json"),
                            program=program)
        self.assertRegex(observed.stderr, rf"(?m)^{ALL_REDUCE} .* 1 +6 +128 +0$")
        self.assertNotIn("not noted", observed.stderr)

        def explain(name):
            return self.command("explain", "-w", "-p", self.path("policy.ini"), self.path(name)).stdout
        text = explain("enforced.json")
        self.assertIn("; shapes not noted (observe mode and record note them)\n", text)
        self.assertRegex(text, r"small +\d+ +perhaps +grid_blocks: not noted \(reports have it from "
                               r"observe mode and record only\), the rule asks for 1\.\.4")
        text = explain("observed.json")
        self.assertIn("grid_blocks 6", text)
        self.assertNotIn("not noted", text)
        # And where the rule came to nothing for it.
        self.assertIn(f"[kernel small] in line 8 matched nothing: it names {ALL_REDUCE}, but "
                      "grid_blocks did not hold (not noted", enforced.stderr)
        self.assertIn("grid_blocks: 6 is not in 1..4", observed.stderr)

    def test_launches_before_exec_are_counted(self):
        for images in (2, 3, 5):
            total = images * (images + 1) // 2
            result = self.job(program=self.executed(images))
            self.assertEqual(result.returncode, 0, result)
            self.assertIn(f"cudapolicy: {total} launches of 1 kernel in 1 process ({total} eager)\n",
                          result.stderr)
            self.assertEqual(result.stderr.count("went on as another program"), images - 1)
            self.assertNotIn("still runs", result.stderr)
            self.assertNotIn("in good order", result.stderr)

    def test_the_report_has_each_program_that_a_process_executed(self):
        summary = self.summary(program=self.executed(3, ["fork", "launch", COPY, "4", "1"]))
        processes = sorted(summary["processes"], key=lambda process: process["image"])
        self.assertEqual(summary["launches"], 10)
        self.assertEqual(len({process["pid"] for process in processes}), 2)
        self.assertEqual(len({process["image"] for process in processes}), 4)
        self.assertEqual([(process["complete"], process["replaced"], process["running"])
                          for process in processes],
                         [(False, True, False)] * 2 + [(True, False, False)] * 2)

    def test_a_program_that_was_executed_and_killed_is_complete_up_to_its_end(self):
        result = self.job(program=self.executed(2, ["abort"]))
        self.assertEqual(result.returncode, 128 + signal.SIGABRT)
        self.assertIn("cudapolicy: 3 launches of 1 kernel in 1 process", result.stderr)
        self.assertEqual(result.stderr.count("went on as another program"), 1)
        self.assertEqual(result.stderr.count("did not end in good order"), 1)

    def test_warnings_of_the_policy_are_printed_once_whatever_the_number_of_processes(self):
        result = self.job(program=["launch", ALL_REDUCE, "1", "4", "fork",
                                   "launch", ALL_REDUCE, "1", "4"])
        self.assertIn("in 2 processes", result.stderr)
        self.assertEqual(result.stderr.count("warning"), 1, result.stderr)

    def test_rules_that_matched_nothing_name_the_nearest_kernels(self):
        policy = POLICY + "\n[kernel typo]\nname = ncclDevKernal_AllReduce_*\npriority = -1\n" \
                          "\n[kernel form]\nname = *copy<float>*\npriority = -1\n"
        result = self.job(policy=policy, program=["launch", ALL_REDUCE, "1", "4",
                                                  "launch", COPY, "1", "1"])
        self.assertIn("[kernel typo] in line 14 matched nothing: no kernel's name matches it\n"
                      f"  near: {ALL_REDUCE}\n", result.stderr)
        self.assertIn("[kernel form] in line 18 matched nothing: no kernel's name matches it\n"
                      "  with name_form = signature it would match "
                      "void at::native::copy<float>(float*, int)\n", result.stderr)

    @unittest.skipUnless(os.path.exists("/dev/full"), "no /dev/full")
    def test_a_report_that_cannot_be_written_is_a_failure_unless_the_program_failed(self):
        launch = ["launch", ALL_REDUCE, "1", "4"]
        for program, status in ((launch, 125), ([*launch, "exit", "5"], 5)):
            for result in (self.job("--report", "/dev/full", program=program),
                           self.record("--output", "/dev/full", program=program)):
                self.assertEqual(result.returncode, status, result)
                self.assertIn("cannot write '/dev/full'", result.stderr)

    def test_observe_changes_nothing_and_says_what_it_would_do(self):
        result = self.job("--mode", "observe", program=["launch", ALL_REDUCE, "2", "4"],
                          env={"RECORDING_DRIVER_LOG": self.path("calls")})
        self.assertIn("observed, nothing was changed", result.stderr)
        self.assertRegex(result.stderr, r"(?m)^kernel small +1 +2 +2 +0 +0 +0$")
        for call in self.calls():
            if call["call"].startswith("cuLaunch"):
                self.assertEqual((call["call"], call["attributes"]), ("cuLaunchKernel", "none"))

    def test_off_leaves_no_report(self):
        result = self.job("--mode", "off", program=["launch", ALL_REDUCE, "2", "4"])
        self.assertEqual(result.returncode, 0, result)
        self.assertEqual(result.stderr.splitlines()[-1],
                         "cudapolicy: the mode is off: nothing was seen or changed")

    def test_a_process_that_was_killed_is_counted_up_to_its_death(self):
        result = self.job(program=["launch", ALL_REDUCE, "7", "4", "abort"])
        self.assertEqual(result.returncode, 128 + signal.SIGABRT)
        self.assertIn("7 launches of 1 kernel in 1 process", result.stderr)
        self.assertIn("did not end in good order", result.stderr)

    def test_children_are_counted_as_processes_of_their_own(self):
        result = self.job(program=["launch", ALL_REDUCE, "2", "4", "fork",
                                   "launch", ALL_REDUCE, "3", "4", "exit", "9"])
        self.assertEqual(result.returncode, 9, result)
        self.assertIn("5 launches of 1 kernel in 2 processes", result.stderr)

    def test_a_process_that_outlives_the_program_is_told_and_keeps_its_folder(self):
        reading, writing = os.pipe()
        self.addCleanup(os.close, reading)
        closing = os.fdopen(writing, "wb")
        self.addCleanup(closing.close)
        # Files, not pipes: whoever reads a pipe would wait for the process that goes on.
        with open(self.path("out"), "w+", encoding="utf-8") as out, \
                open(self.path("err"), "w+", encoding="utf-8") as err:
            result = self.job(program=["launch", ALL_REDUCE, "2", "4", "detach", "launch",
                                       ALL_REDUCE, "3", "4", "release", "wait"],
                              env={"TMPDIR": self.folder}, stdin=reading, stdout=out, stderr=err)
            err.seek(0)
            text = err.read()
        self.assertEqual(result.returncode, 0, text)
        self.assertIn("5 launches of 1 kernel in 2 processes", text)
        self.assertRegex(text, rf"process \d+ \(.*{NAME}\) still runs")
        folder, = [name for name in os.listdir(self.folder) if name.startswith("cudapolicy-")]
        self.assertIn(os.path.join(self.folder, folder), text)
        self.assertTrue([name for name in os.listdir(self.path(folder)) if "counters" in name])

    def test_programs_under_a_shell_and_python_are_reached(self):
        path = self.write("policy.ini", POLICY)
        code = ["import subprocess, sys",
                f"subprocess.run([{PROGRAM!r}, 'launch', {ALL_REDUCE!r}, '4', '4'], check=True)"]
        result = self.command("run", "-p", path, "--library", LIBRARY, "--", *python(*code),
                              env={"LD_LIBRARY_PATH": DOUBLES})
        self.assertEqual(result.returncode, 0, result)
        self.assertIn("4 launches of 1 kernel in 1 process ", result.stderr)

    def test_the_kernels_are_listed_on_request(self):
        result = self.job("--kernels", program=["launch", COPY, "2", "16"])
        self.assertRegex(result.stderr, rf"(?m)^at::native::copy +{NAME} +2 ")

    def test_the_report_is_read_back_as_it_was_shown(self):
        shown = self.job("--report", self.path("job.json"), "-q",
                         program=["launch", ALL_REDUCE, "2", "4", "fork",
                                  "launch", ALL_REDUCE, "3", "4"])
        self.assertEqual(shown.stderr, "")
        result = self.command("report", self.path("job.json"))
        self.assertEqual(result.returncode, 0, result)
        self.assertIn("5 launches of 1 kernel in 2 processes", result.stdout)
        with open(self.path("job.json"), encoding="utf-8") as file:
            document = support.load_json(file.read())
        self.assertEqual(document["format"], "cudapolicy job")
        self.assertEqual(document["summary"]["launches"], 5)
        self.assertEqual(sorted(p["launches"] for p in document["processes"]), [2, 3])

    def test_json_on_standard_error_is_the_summary(self):
        result = self.job("--json", program=["launch", ALL_REDUCE, "2", "4"],
                          env={"CUDAPOLICY_LOG": "error"})
        document = support.load_json(result.stderr[result.stderr.index("\n{\n"):]
                                     if not result.stderr.startswith("{") else result.stderr)
        self.assertEqual((document["format"], document["launches"]), ("cudapolicy summary", 2))

    def test_a_report_folder_holds_each_processs_report(self):
        self.job("-q", "--report-folder", self.path("reports"),
                 program=["launch", ALL_REDUCE, "2", "4", "fork",
                          "launch", ALL_REDUCE, "3", "4", "abort"])
        folder, = os.listdir(self.path("reports"))
        names = sorted(os.listdir(os.path.join(self.path("reports"), folder)))
        self.assertEqual([name.endswith(".json") for name in names].count(True), 1, names)
        self.assertEqual([name.endswith(".json.counters") for name in names].count(True), 1, names)
        result = self.command("report", self.path("reports"))
        self.assertIn("5 launches of 1 kernel in 2 processes", result.stdout)

    def test_the_policy_of_the_report_explains_what_matched_nothing(self):
        self.job("-q", "--report", self.path("job.json"),
                 policy=POLICY + "[kernel typo]\nname = ncclDevKernal_*\npriority = -1\n",
                 program=["launch", ALL_REDUCE, "1", "4"])
        self.assertIn(f"  near: {ALL_REDUCE}",
                      self.command("report", self.path("job.json")).stdout)

    def test_a_program_that_fails_keeps_its_status_and_its_summary(self):
        result = self.job(program=["launch", ALL_REDUCE, "1", "4", "exit", "3"])
        self.assertEqual(result.returncode, 3)
        self.assertIn("1 launch of 1 kernel", result.stderr)


class Record(Job):
    PROGRAM = ["stream", "-1", "stream", "-1", "launch", ALL_REDUCE, "5", "4",
               "launch", ALL_REDUCE, "1", "8", "launch", COPY, "2", "16"]

    def test_the_program_is_left_as_it_is(self):
        result = self.record(program=[*self.PROGRAM, "say", "hello", "exit", "5"],
                             env={"RECORDING_DRIVER_LOG": self.path("calls")})
        self.assertEqual((result.returncode, result.stdout), (5, "hello\n"), result)
        for call in self.calls():
            if call["call"].startswith("cuLaunch"):
                self.assertEqual((call["call"], call["attributes"]), ("cuLaunchKernel", "none"))

    def test_kernels_libraries_and_streams_are_listed(self):
        text = self.record(program=self.PROGRAM).stderr
        self.assertIn("cudapolicy: 8 launches of 2 kernels in 1 process", text)
        self.assertRegex(text, rf"(?m)^{ALL_REDUCE} +{NAME} +6 ")
        self.assertRegex(text, rf"(?m)^at::native::copy +{NAME} +2 ")
        self.assertRegex(text, rf"(?m)^{NAME} +2 +8$")
        self.assertRegex(text, rf"(?m)^ +2 +{NAME} +created +0 +-1 +non_blocking$")

    def test_shapes_are_recorded(self):
        result = self.record("--json", "-o", "-", program=self.PROGRAM)
        kernels = support.load_json(result.stdout)["kernels"]
        self.assertEqual([(k["mangled"], k["grid_blocks"], k["block_threads"], k["shared_memory"])
                          for k in kernels],
                         [(ALL_REDUCE, [4, 8], [128, 128], [0, 0]),
                          (COPY, [16, 16], [128, 128], [0, 0])])

    def test_a_mode_in_the_environment_does_not_hide_kernels(self):
        text = self.record(program=self.PROGRAM, env={"CUDAPOLICY_MODE": "off"}).stderr
        self.assertIn("8 launches", text)

    def test_json_goes_to_a_file(self):
        result = self.record("--json", "--output", self.path("out.json"), program=self.PROGRAM)
        self.assertEqual(result.stdout, "")
        with open(self.path("out.json"), encoding="utf-8") as file:
            document = support.load_json(file.read())
        self.assertEqual((document["format"], document["launches"]), ("cudapolicy inventory", 8))
        self.assertEqual(document["libraries"],
                         [{"library": NAME, "kernels": 2, "launches": 8}])
        self.assertEqual([(s["count"], s["priority"], s["kind"]) for s in document["streams"]],
                         [(2, -1, "created")])

    def test_the_starting_policy_is_right_and_matches(self):
        odd = "_ZN1aL1fIXadL_Z1gvEEEEvv"
        result = self.record("--policy", "-o", self.path("start.ini"),
                             program=[*self.PROGRAM, "launch", "all_reduce[x]*\\", "1", "1",
                                      "launch", odd, "1", "1"])
        self.assertEqual(result.returncode, 0, result)
        check = self.command("check", self.path("start.ini"))
        self.assertEqual(check.returncode, 0, check)
        with open(self.path("start.ini"), encoding="utf-8") as file:
            text = file.read()
        self.assertEqual(text.count("\n[kernel "), 2)
        self.assertIn(f"# at::native::copy: 2 launches by {NAME}", text)
        for name in (ALL_REDUCE, "all_reduce[x]*\\"):
            explained = self.command("explain", "-p", self.path("start.ini"), "--json", "--kernel",
                                     name)
            kernel, = support.load_json(explained.stdout)["kernels"]
            self.assertEqual([s["setting"] for s in kernel["settings"]], ["mem_sync_domain"])

    def test_an_output_that_cannot_be_written_is_refused_before_the_run(self):
        result = self.record("-o", "/none/out", program=["say", "started"])
        self.assertEqual((result.returncode, result.stdout), (125, ""))
        self.assertIn("cannot write '/none/out'", result.stderr)

    def test_two_kinds_of_output_are_a_usage_error(self):
        self.assert_usage_error(self.record("--json", "--policy"), "--json and --policy")

    def test_no_program_is_a_usage_error(self):
        self.assert_usage_error(self.command("record"), "no program given")

    def test_a_program_without_kernels_is_told(self):
        result = self.record(program=["say", "hello"])
        self.assertEqual((result.returncode, result.stdout), (0, "hello\n"))
        self.assertIn("no kernel launch of", result.stderr)


class Explain(Job):
    def test_the_kernels_of_a_run_are_explained(self):
        self.job("-q", "--report", self.path("job.json"),
                 policy=POLICY.replace("grid_blocks = 1..4\n", ""),
                 program=["launch", ALL_REDUCE, "1", "4", "launch", COPY, "2", "16"])
        result = self.command("explain", "-p", self.path("policy.ini"), "--json",
                              self.path("job.json"))
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        copy, reduce = support.load_json(result.stdout)["kernels"]
        self.assertEqual((copy["name"], copy["library"]), ("at::native::copy", NAME))
        self.assertEqual((copy["rules"][0]["matches"], copy["rules"][0]["selector"]), ("no", "name"))
        self.assertEqual((reduce["rules"][0]["matches"], reduce["settings"][0]["value"]),
                         ("yes", "remote"))


class Output(Job):
    """The file that run and record write at their end."""

    def both(self, path, *options, program=("launch", ALL_REDUCE, "1", "4")):
        for write in (lambda: self.job("-q", "--report", path, *options, program=program),
                      lambda: self.record("--json", "-o", path, *options, program=program)):
            yield write()

    def content(self, name):
        with open(self.path(name), encoding="utf-8") as file:
            return file.read()

    def test_a_file_that_is_there_is_refused_before_the_run(self):
        self.write("old", "mine\n")
        self.write("empty", "")
        os.symlink("old", self.path("link"))
        os.symlink("nowhere", self.path("dangling"))
        for name in ("old", "empty", "link", "dangling"):
            for result in self.both(self.path(name), program=["say", "started"]):
                self.assertEqual((result.returncode, result.stdout), (125, ""), (name, result))
                self.assertIn(f"cudapolicy: '{self.path(name)}' is there already: give another "
                              "name, or --force to overwrite it\n", result.stderr)
        self.assertEqual(self.content("old"), "mine\n")
        self.assertFalse(os.path.exists(self.path("nowhere")))

    def test_with_force_it_is_overwritten(self):
        for option in ("--force", "-f"):
            self.write("old", "mine\n" * 100000)
            for result in self.both(self.path("old"), option):
                self.assertEqual(result.returncode, 0, result)
                self.assertTrue(support.load_json(self.content("old"))["format"])

    def test_a_program_that_does_not_start_costs_no_file(self):
        self.write("old", "mine\n")
        path = self.write("policy.ini", POLICY)
        for arguments in (("run", "-p", path, "--report"), ("record", "-o")):
            for name in ("old", "new"):
                result = self.command(*arguments, self.path(name), "-f", "--library", LIBRARY, "--",
                                      "/none/program")
                self.assertEqual(result.returncode, 127, result)
                self.assertEqual(self.content("old"), "mine\n")
                self.assertFalse(os.path.exists(self.path("new")))

    def test_what_is_no_regular_file_is_written_to(self):
        for result in self.both("/dev/null"):
            self.assertEqual((result.returncode, result.stderr), (0, ""), result)

    def test_a_folder_is_refused(self):
        for option in ([], ["--force"]):
            for result in self.both(self.folder, *option):
                self.assertEqual(result.returncode, 125, result)
                self.assertIn("Is a directory", result.stderr)


if __name__ == "__main__":
    support.main()
