# SPDX-License-Identifier: Apache-2.0
"""cudapolicy ctl: running processes on the recording driver are told another mode or policy."""

import json
import os
import shutil
import signal
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.environ["CUDAPOLICY_TEST_SOURCE"], "tests", "command"))

import support  # noqa: E402 (the folder has to be known first)

PROGRAM = os.environ["CUDAPOLICY_TEST_PROGRAM"]
DOUBLES = os.environ["CUDAPOLICY_TEST_DOUBLES"]
NOBODY = 65534
CAN_UNSHARE = os.getuid() == 0 and shutil.which("unshare") is not None and subprocess.run(
    ["unshare", "-m", "true"], stderr=subprocess.DEVNULL, check=False).returncode == 0


def policy(domain, name="a", more=""):
    return f"[policy]\nversion = 1\n\n{more}[kernel {name}]\nname = k*\nmem_sync_domain = {domain}\n"


ROUND = ["launch", "kernel1", "3", "8", "say", "launched", "wait"]


class Process:
    """The test program: it launches kernel1 and waits, again and again."""

    def __init__(self, case, rounds=6, launcher=(), first=(), popen=None, **changes):
        self.case = case
        self.calls = case.path(f"calls{len(case.processes)}")
        environment = {"LD_LIBRARY_PATH": DOUBLES, "LD_PRELOAD": support.LIBRARY,
                       "CUDAPOLICY_FILE": case.path("policy.ini"),
                       "CUDAPOLICY_REPORT": case.path("%p.json"),
                       "RECORDING_DRIVER_LOG": self.calls, **changes}
        steps = [*first, *ROUND * rounds]
        settings = [f"{name}={value}" for name, value in environment.items() if value is not None]
        self.process = subprocess.Popen(
            [*launcher, "env", *settings, PROGRAM, *steps], env=support.environment(), text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=1,
            **(popen or {}))
        case.processes.append(self)
        self.pid = self.process.pid
        self.launched = 0
        self.wait()

    def wait(self):
        """Until a round of launches is over."""
        line = self.process.stdout.readline()
        self.case.assertEqual(line, "launched\n", line or self.process.stderr)

    def launch(self):
        """Another round; gives the attributes of each of its launches."""
        self.settings()
        self.process.stdin.write("x")
        self.process.stdin.flush()
        self.wait()
        return self.settings()

    def settings(self):
        """Attributes of the launches that were not yet asked about."""
        with open(self.calls, encoding="ascii") as file:
            calls = [dict(field.split("=", 1) for field in line.split()) for line in file
                     if line.startswith(("call=cuLaunchKernel ", "call=cuLaunchKernelEx "))]
        fresh = [call["attributes"] for call in calls[self.launched:]]
        self.launched = len(calls)
        return fresh

    def counters(self):
        return self.case.path(f"{self.pid}.json.counters")

    def end(self):
        self.process.stdin.close()
        self.process.stdin = None
        _, errors = self.process.communicate(timeout=support.TIME_LIMIT)
        return errors

    def stop(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            if stream:
                stream.close()


REMOTE, DEFAULT, NONE = ["MEM_SYNC_DOMAIN:1"] * 3, ["MEM_SYNC_DOMAIN:0"] * 3, ["none"] * 3


class Control(support.Case):
    def setUp(self):
        super().setUp()
        self.processes = []
        self.write("policy.ini", policy("remote"))
        self.addCleanup(lambda: [process.stop() for process in self.processes])

    def ctl(self, target, *words, status=0, **options):
        result = self.command("ctl", str(target), *words, **options)
        self.assertEqual(result.returncode, status, result)
        return result

    def ask(self, target, *words, status=0):
        return json.loads(self.ctl(target, *words, "--json", status=status).stdout)

    def reload(self, process, status=0):
        """Sends a reload, lets the process launch, and gives the settings of that."""
        self.ctl(process.pid, "reload", "--timeout", "0", status=status)
        return process.launch()


class Modes(Control):
    def test_off_observe_and_enforce_hold_from_the_next_launch_on(self):
        process = Process(self)
        self.assertEqual(process.settings(), REMOTE)
        result = self.ctl(process.pid, "off")
        self.assertRegex(result.stdout, rf"^process {process.pid} \(.*\): mode off, which was enforce, ")
        self.assertEqual(process.launch(), NONE)
        self.ctl(process.pid, "enforce")
        self.assertEqual(process.launch(), REMOTE)
        self.ctl(process.pid, "observe")
        self.assertEqual(process.launch(), NONE)
        self.ctl(process.pid, "enforce")
        self.assertEqual(process.launch(), REMOTE)

    def test_a_process_that_began_by_observing_may_enforce(self):
        process = Process(self, CUDAPOLICY_MODE="observe")
        self.assertEqual(process.settings(), NONE)
        self.ctl(process.pid, "enforce")
        self.assertEqual(process.launch(), REMOTE)

    def test_the_report_says_since_when(self):
        process = Process(self)
        self.ctl(process.pid, "observe")
        process.launch()
        process.end()
        with open(self.path(f"{process.pid}.json"), encoding="utf-8") as file:
            report = json.load(file)
        self.assertEqual(report["mode"], "observe")
        self.assertRegex(report["notes"][0]["text"], r"^mode observe since \d{4}-.*Z: ")

    def test_a_process_that_was_started_off_stays_off(self):
        process = Process(self, CUDAPOLICY_MODE="off")
        result = self.ctl(process.pid, "enforce", status=1)
        self.assertIn("was started with CUDAPOLICY_MODE=off", result.stderr)
        self.assertEqual(process.launch(), NONE)

    def test_status_changes_nothing_and_tells_what_is(self):
        process = Process(self)
        before = self.ask(process.pid, "status")["processes"][0]
        self.assertEqual((before["mode"], before["launches"], before["generation"],
                          before["last_reload"]), ("enforce", 3, 0, None))
        self.assertEqual(before["policy"], self.path("policy.ini"))
        self.assertRegex(before["sha256"], "^[0-9a-f]{64}$")
        self.assertEqual([(rule["name"], rule["launches"]) for rule in before["rules"]], [("a", 3)])
        self.ctl(process.pid, "observe")
        after = self.ask(process.pid, "status")["processes"][0]
        self.assertEqual((after["mode"], after["generation"], after["acted_on"]), ("observe", 1, 0))
        process.launch()
        self.assertEqual(self.ask(process.pid, "status")["processes"][0]["acted_on"], 1)

    def test_status_as_a_table(self):
        process = Process(self)
        result = self.ctl(process.pid, "status", "--wide")
        self.assertRegex(result.stdout, rf"(?m)^ *{process.pid}  .*command_program +enforce +3 ")
        self.assertRegex(result.stdout, r"(?m)^kernel a +3 +3 +0$")


class Reload(Control):
    def test_a_changed_policy_reaches_the_driver(self):
        process = Process(self)
        self.assertEqual(process.settings(), REMOTE)
        self.write("policy.ini", policy("default"))
        self.assertEqual(self.reload(process), DEFAULT)
        self.assertEqual(process.launch(), DEFAULT)
        self.write("policy.ini", policy("remote", "other", more="[kernel b]\nname = kernel2\n"
                                                                "priority = 0\n\n"))
        self.assertEqual(self.reload(process), REMOTE)

    def test_the_command_waits_for_the_answer(self):
        process = Process(self)
        self.write("policy.ini", policy("default"))
        waiting = self.start("ctl", str(process.pid), "reload", "--json", "--timeout", "50")
        while self.ask(process.pid, "status")["processes"][0]["generation"] == 0:
            pass
        self.assertEqual(process.launch(), DEFAULT)
        answer = json.loads(waiting.communicate(timeout=support.TIME_LIMIT)[0])
        self.assertEqual(waiting.returncode, 0)
        self.assertEqual((answer["all"], answer["processes"][0]["outcome"]), (True, "done"))
        self.assertRegex(answer["processes"][0]["last_reload"], "^done at ")

    def told(self, process, more):
        """What the command says of a reload of a policy with these sections."""
        self.write("policy.ini", policy("default", more=more))
        waiting = self.start("ctl", str(process.pid), "reload", "--timeout", "50")
        generation = self.ask(process.pid, "status")["processes"][0]["acted_on"]
        while self.ask(process.pid, "status")["processes"][0]["generation"] == generation:
            pass
        process.launch()
        return waiting.communicate(timeout=support.TIME_LIMIT)[0]

    def test_other_variables_need_a_new_start_and_are_told(self):
        self.write("policy.ini", policy("remote", more="[env]\nA = 1\n"))
        process = Process(self, A="1")
        self.assertIn("; its [env] differs, and needs a new start of the program\n",
                      self.told(process, "[env]\nA = 2\n"))
        self.assertNotIn("[env]", self.told(process, "[env]\nA = 1\n"))
        self.assertIn("its [env] differs", self.told(process, ""))
        self.assertIn("but for its [env], which needs a new start of the program", process.end())
        with open(self.path(f"{process.pid}.json"), encoding="utf-8") as file:
            facts = json.load(file)["facts"]
        self.assertEqual(facts["policy"]["needs_restart"],
                         "[env] is not as it was when the program was started")
        self.assertEqual(facts["env"], {"A": "applied"})

    def test_what_the_last_policy_expects_is_judged_by_all_that_was_counted(self):
        self.write("policy.ini", policy("remote", more="[expect]\nrule a: launches = 0\n"))
        process = Process(self, rounds=2)
        self.told(process, "[expect]\nrule a: launches = 6\n")
        self.assertNotIn("broken", process.end())
        process = Process(self, rounds=2)
        self.told(process, "[expect]\nrule a: launches != 6\n")
        self.assertIn("expectation broken: kernel a: launches != 6, and it was 6", process.end())

    def test_a_process_that_launches_nothing_is_named(self):
        process = Process(self)
        result = self.ctl(process.pid, "reload", "--timeout", "0.05", status=1)
        self.assertIn("it launched nothing meanwhile, and reads the policy again at its next launch",
                      result.stderr)

    def test_the_report_tells_old_rules_from_new_ones(self):
        process = Process(self, rounds=3)
        self.write("policy.ini", policy("default", "b"))
        self.reload(process)
        self.write("policy.ini", policy("remote", "a"))
        self.reload(process)
        process.end()
        with open(self.path(f"{process.pid}.json"), encoding="utf-8") as file:
            report = json.load(file)
        self.assertEqual([(rule["name"], rule["launches"]) for rule in report["rules"]],
                         [("a", 6), ("b", 3)])
        self.assertEqual(report["facts"]["policy"]["reloads"], "2")
        self.assertEqual(len(report["kernels"]), 1)
        self.assertTrue(all(note["text"].startswith("policy reloaded at ")
                            for note in report["notes"]), report["notes"])

    def test_the_reports_digest_is_that_of_the_new_policy(self):
        process = Process(self)
        before = self.ask(process.pid, "status")["processes"][0]["sha256"]
        self.write("policy.ini", policy("default"))
        self.reload(process)
        self.assertNotEqual(self.ask(process.pid, "status")["processes"][0]["sha256"], before)

    def test_a_policy_with_errors_is_not_sent(self):
        process = Process(self)
        self.write("policy.ini", policy("nowhere"))
        result = self.ctl(process.pid, "reload", status=1)
        self.assertIn(f"{self.path('policy.ini')}:6:19: error: ", result.stderr)
        self.assertIn("was not asked to read it", result.stderr)
        self.assertEqual(self.ask(process.pid, "status")["processes"][0]["generation"], 0)
        self.assertEqual(process.launch(), REMOTE)

    def test_a_policy_that_goes_wrong_on_the_way_leaves_the_old_one(self):
        process = Process(self)
        self.ctl(process.pid, "reload", "--timeout", "0")
        self.write("policy.ini", policy("nowhere"))
        self.assertEqual(process.launch(), REMOTE)
        status = self.ask(process.pid, "status")["processes"][0]
        self.assertRegex(status["last_reload"], r"^refused at .*policy\.ini:6:19: ")
        self.assertIn("the policy is not read again: ", process.end())
        with open(self.path(f"{process.pid}.json"), encoding="utf-8") as file:
            self.assertEqual(json.load(file)["notes"][0]["severity"], "error")

    def test_other_partitions_are_refused(self):
        process = Process(self)
        self.write("policy.ini", policy("default", more="[partition side]\nsm_count = 16\n\n[kernel p]\n"
                                                        "name = x\npartition = side\n\n"))
        self.assertEqual(self.reload(process), REMOTE)
        status = self.ask(process.pid, "status")["processes"][0]
        self.assertIn("partition side is not as it was", status["last_reload"])

    def test_a_policy_that_is_gone_is_refused(self):
        process = Process(self)
        os.unlink(self.path("policy.ini"))
        self.assertEqual(self.reload(process), REMOTE)
        self.assertRegex(self.ask(process.pid, "status")["processes"][0]["last_reload"],
                         "^refused at ")

    def test_what_is_no_file_any_more_is_not_sent(self):
        process = Process(self)
        path = self.path("policy.ini")
        for make, text in ((os.mkdir, "it is a directory, not a policy file"),
                           (os.mkfifo, "it is a FIFO, not a policy file")):
            os.rmdir(path) if os.path.isdir(path) else os.unlink(path)
            make(path)
            result = self.ctl(process.pid, "reload", status=1)
            self.assertIn(text, result.stderr)
            self.assertIn("the policy cannot be read, so it was not asked to read it", result.stderr)
        self.assertEqual(self.ask(process.pid, "status")["processes"][0]["generation"], 0)
        self.assertEqual(process.launch(), REMOTE)

    def test_a_policy_that_came_through_a_pipe_is_not_sent(self):
        reading, writing = os.pipe()
        with os.fdopen(writing, "w") as file:
            file.write(policy("remote"))
        launcher = ["sh", "-c", f'exec 9<&{reading}; exec "$0" "$@"']
        process = Process(self, launcher=launcher, popen={"pass_fds": (reading,)},
                          CUDAPOLICY_FILE="/dev/fd/9")
        os.close(reading)
        self.assertEqual(process.settings(), REMOTE)
        result = self.ctl(process.pid, "reload", status=1)
        self.assertIn("its policy came through '/dev/fd/9', which cannot be read again", result.stderr)
        self.assertEqual(process.launch(), REMOTE)

    def test_what_was_sent_and_not_waited_for_went_well(self):
        process = Process(self)
        result = self.ctl(process.pid, "reload", "--timeout", "0")
        self.assertIn("sent: it reads the policy again at its next launch", result.stdout)
        self.assertEqual(result.stderr, "")

    def test_a_hundred_times_and_no_more(self):
        process = Process(self, rounds=103)
        for number in range(100):
            self.write("policy.ini", policy("default" if number % 2 else "remote"))
            self.assertEqual(self.reload(process), DEFAULT if number % 2 else REMOTE)
        self.assertEqual(self.reload(process), DEFAULT)
        self.assertIn("that is the limit",
                      self.ask(process.pid, "status")["processes"][0]["last_reload"])

    def test_the_mode_of_the_file_holds_where_nobody_said_another(self):
        observed = policy("remote").replace("version = 1", "version = 1\nmode = observe")
        process = Process(self)
        self.write("policy.ini", observed)
        self.assertEqual(self.reload(process), NONE)
        told = Process(self, CUDAPOLICY_MODE="enforce")
        self.assertEqual(self.reload(told), REMOTE)
        self.write("policy.ini", policy("remote"))
        controlled = Process(self)
        self.ctl(controlled.pid, "enforce")
        self.write("policy.ini", observed)
        self.assertEqual(self.reload(controlled), REMOTE)

    def test_a_relative_path_is_that_of_the_start(self):
        launcher = ["sh", "-c", f'cd {self.folder} && exec "$0" "$@"']
        process = Process(self, launcher=launcher, CUDAPOLICY_FILE="policy.ini")
        self.write("policy.ini", policy("default"))
        self.assertEqual(self.reload(process), DEFAULT)


class Targets(Control):
    def two(self, **changes):
        first, second = Process(self, **changes), Process(self, **changes)
        first.settings(), second.settings()
        return first, second

    def test_a_counters_file(self):
        process = Process(self)
        process.settings()
        self.ctl(process.counters(), "off")
        self.assertEqual(process.launch(), NONE)

    def test_a_folder_of_reports(self):
        processes = self.two()
        ended = Process(self)
        ended.end()
        answer = self.ask(self.folder, "off")
        self.assertEqual(sorted(process["pid"] for process in answer["processes"]),
                         sorted(process.pid for process in processes))
        for process in processes:
            self.assertEqual(process.launch(), NONE)

    def test_a_job(self):
        processes = self.two(SLURM_JOB_ID="test-job-17", SLURM_PROCID="0")
        other = Process(self, SLURM_JOB_ID="test-job-18", SLURM_PROCID="0")
        other.settings()
        for target in ("test-job-17", "job:test-job-17"):
            self.assertEqual(len(self.ask(target, "off")["processes"]), 2)
        for process in processes:
            self.assertEqual(process.launch(), NONE)
        self.assertEqual(other.launch(), REMOTE)

    def test_a_launcher_stands_for_the_processes_below_it(self):
        log = self.path("calls")
        reading, writing = os.pipe()
        rank = f"{PROGRAM} launch k 1 8 say launched wait launch k 1 8 <&{reading} &"
        launcher = subprocess.Popen(
            ["sh", "-c", f"{rank} {rank} wait"], pass_fds=(reading,), stdout=subprocess.PIPE, text=True,
            env=support.environment(LD_LIBRARY_PATH=DOUBLES, LD_PRELOAD=support.LIBRARY,
                                    CUDAPOLICY_FILE=self.path("policy.ini"),
                                    CUDAPOLICY_REPORT=self.path("%p.json"),
                                    RECORDING_DRIVER_LOG=log))
        self.addCleanup(lambda: (launcher.kill(), launcher.wait(), launcher.stdout.close()))
        os.close(reading)
        for _ in range(2):
            self.assertEqual(launcher.stdout.readline(), "launched\n")
        answer = self.ask(launcher.pid, "off")
        self.assertEqual(len(answer["processes"]), 2)
        os.close(writing)
        launcher.wait(timeout=support.TIME_LIMIT)
        with open(log, encoding="ascii") as file:
            calls = [line.split()[0] for line in file
                     if line.startswith(("call=cuLaunchKernel ", "call=cuLaunchKernelEx "))]
        self.assertEqual(sorted(calls), ["call=cuLaunchKernel"] * 2 + ["call=cuLaunchKernelEx"] * 2)

    def test_a_process_that_has_ended(self):
        process = Process(self)
        process.process.send_signal(signal.SIGKILL)
        process.process.wait()
        self.assertIn("neither a process nor a file", self.ctl(process.pid, "off", status=1).stderr)
        self.assertIn("there is no process", self.ctl(f"pid:{process.pid}", "off", status=1).stderr)
        self.assertIn("is no longer running", self.ctl(process.counters(), "off", status=1).stderr)
        self.assertIn("no counters of a running process",
                      self.ctl(self.folder, "off", status=1).stderr)

    def test_a_launcher_whose_processes_launched_nothing_is_told_so(self):
        reading, writing = os.pipe()
        self.addCleanup(os.close, writing)
        launcher = subprocess.Popen(
            [support.COMMAND, "run", "--library", support.LIBRARY, "-p", self.path("policy.ini"), PROGRAM,
             "say", "started", "wait"], stdin=reading, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, text=True, env=support.environment(TMPDIR=self.folder))
        self.addCleanup(lambda: (launcher.terminate(), launcher.wait(), launcher.stdout.close()))
        os.close(reading)
        self.assertEqual(launcher.stdout.readline(), "started\n")
        result = self.ctl(launcher.pid, "status", status=1)
        self.assertIn("it launched no kernel yet", result.stderr)

    def test_a_target_that_is_none_is_a_json_document_too(self):
        for target in ("no-such-job", self.path("none")):
            self.assertEqual(self.ask(target, "status", status=1),
                             {"action": "status", "all": False, "processes": []})

    def test_a_target_without_a_name_is_a_mistake(self):
        for target in ("", "pid:", "job:"):
            self.assert_usage_error(self.ctl(target, "status", status=64),
                                    f"'{target}' names no process")

    def test_a_zombie_is_said_to_have_ended(self):
        process = Process(self)
        process.process.send_signal(signal.SIGKILL)
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        for action in ("status", "off", "reload"):
            result = self.ctl(process.pid, action, status=1)
            self.assertIn("it has ended, and its parent did not ask for its status yet (a zombie)",
                          result.stderr)

    def test_a_process_whose_first_thread_has_ended_is_none(self):
        process = Process(self, first=[*ROUND, "thread"])
        process.settings()
        process.process.stdin.write("x")
        process.process.stdin.flush()
        process.wait()
        while open(f"/proc/{process.pid}/stat", encoding="utf-8").read().split(") ")[1][0] != "Z":
            pass
        self.assertEqual(process.settings(), REMOTE)
        self.ctl(process.pid, "off")
        self.assertEqual(process.launch(), NONE)

    def start_reload(self, process):
        """The command, when it has sent its request and waits for the answer."""
        before = self.ask(process.pid, "status")["processes"][0]["generation"]
        waiting = self.start("ctl", str(process.pid), "reload", "--timeout", "1000")
        while self.ask(process.pid, "status")["processes"][0]["generation"] == before:
            self.assertIsNone(waiting.poll())
        return waiting

    def test_a_process_that_nobody_asked_for_its_status_has_ended(self):
        process = Process(self)
        waiting = self.start_reload(process)
        process.process.send_signal(signal.SIGKILL)
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        said = "".join(waiting.communicate(timeout=support.TIME_LIMIT))
        self.assertIn("it ended before it read the policy again", said)
        self.assertIn("is no longer running", self.ctl(process.counters(), "off", status=1).stderr)
        self.assertIn("no counters of a running process",
                      self.ctl(self.folder, "off", status=1).stderr)

    def test_counters_of_a_program_that_executed_another_are_no_target(self):
        process = Process(self, first=[*ROUND, "exec"])
        first = process.counters()
        process.launch()
        self.assertIn("is no longer running", self.ctl(first, "off", status=1).stderr)
        self.assertEqual(len(self.ask(self.folder, "off")["processes"]), 1)
        self.assertEqual(process.launch(), NONE)

    def test_who_waits_is_told_of_a_program_that_executed_another(self):
        process = Process(self, first=[*ROUND, "exec"])
        waiting = self.start_reload(process)
        process.launch()
        said = "".join(waiting.communicate(timeout=support.TIME_LIMIT))
        self.assertIn("it ended before it read the policy again", said)

    def test_a_copy_of_counters_is_no_target(self):
        process = Process(self)
        process.settings()
        os.mkdir(self.path("copies"))
        shutil.copy(process.counters(), self.path("copies"))
        copy = os.path.join(self.path("copies"), os.path.basename(process.counters()))
        self.assertIn("is no longer running", self.ctl(copy, "off", status=1).stderr)
        self.ctl(self.path("copies"), "off", status=1)
        self.assertEqual(process.launch(), REMOTE)

    def test_a_report_is_not_the_counters_of_a_process(self):
        process = Process(self)
        process.end()
        result = self.ctl(self.path(f"{process.pid}.json"), "off", status=1)
        self.assertIn("not a counters' file", result.stderr)

    def test_a_process_without_a_report_cannot_be_reached(self):
        process = Process(self, CUDAPOLICY_REPORT=None)
        result = self.ctl(process.pid, "off", status=1)
        self.assertIn("start it with CUDAPOLICY_REPORT=", result.stderr)
        self.assertEqual(self.ask(process.pid, "off", status=1)["processes"][0]["outcome"], "failed")

    def test_a_process_that_is_under_no_policy(self):
        child = subprocess.Popen(support.python("import sys", "print(flush=True)",
                                                "sys.stdin.read()"),
                                 stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.addCleanup(lambda: (child.communicate(), child.wait()))
        child.stdout.readline()
        self.assertIn("does not run under a policy", self.ctl(child.pid, "status", status=1).stderr)

    @unittest.skipUnless(os.getuid() == 0, "only root can become another user")
    def test_another_users_process_is_refused(self):
        process = Process(self)
        process.settings()
        os.chmod(self.folder, 0o755)
        as_nobody = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
        # The command lies where only its owner may look, so it is taken from a descriptor.
        result = self.as_nobody("ctl", str(process.pid), "off", **as_nobody)
        self.assertEqual(result.returncode, 1, result)
        self.assertIn("it is another user's process, of root: only that user, or root",
                      result.stderr)
        result = self.as_nobody("ctl", process.counters(), "off", **as_nobody)
        self.assertEqual(result.returncode, 1, result)
        self.assertIn("Permission denied", result.stderr)
        self.assertEqual(process.launch(), REMOTE)

    def as_nobody(self, *arguments, **options):
        command = os.open(support.COMMAND, os.O_RDONLY)
        try:
            return subprocess.run([f"/proc/self/fd/{command}", *arguments], cwd="/", text=True,
                                  env=support.environment(), stdin=subprocess.DEVNULL,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False,
                                  pass_fds=(command,), timeout=support.TIME_LIMIT, **options)
        finally:
            os.close(command)

    @unittest.skipUnless(CAN_UNSHARE, "mount namespaces cannot be made here")
    def test_a_process_that_sees_other_files_than_we_do(self):
        hidden = self.path("hidden")
        os.mkdir(hidden)
        launcher = ["unshare", "-m", "sh", "-c",
                    f'mount -t tmpfs none {hidden} && cp {self.path("policy.ini")} {hidden} && exec "$0" "$@"']
        process = Process(self, launcher=launcher, CUDAPOLICY_FILE=f"{hidden}/policy.ini",
                          CUDAPOLICY_REPORT=f"{hidden}/%p.json")
        process.settings()
        self.assertEqual(os.listdir(hidden), [])
        seen = f"/proc/{process.pid}/root{hidden}/policy.ini"
        with open(seen, "w", encoding="ascii") as file:
            file.write(policy("nowhere"))
        result = self.ctl(process.pid, "reload", status=1)
        self.assertIn(f"{seen}:6:19: error: ", result.stderr)
        with open(seen, "w", encoding="ascii") as file:
            file.write(policy("default"))
        self.assertEqual(self.reload(process), DEFAULT)

    def test_garbage_is_refused(self):
        process = Process(self)
        with open(process.counters(), "rb") as file:
            whole = file.read(1 << 20)
        for name, content in (("empty.counters", b""), ("noise.counters", os.urandom(1 << 20)),
                              ("zeros.counters", bytes(1 << 20)), ("half.counters", whole[:4096]),
                              ("text.counters", b"hello\n" * 4000)):
            path = self.write(name, content)
            before = open(path, "rb").read()
            self.assertRegex(self.ctl(path, "off", status=1).stderr, "^cudapolicy: ")
            self.ctl(path, "reload", "--timeout", "0", status=1)
            self.assertEqual(open(path, "rb").read(), before)


class Fork(Control):
    def test_a_child_goes_on_with_the_policy_that_its_parent_had_then(self):
        log = self.path("forked")
        parent = subprocess.Popen(
            [PROGRAM, "launch", "k", "1", "8", "say", "launched", "wait", "launch", "k", "1", "8",
             "fork", "launch", "k", "1", "8", "say", "launched", "wait", "launch", "k", "1", "8"],
            env=support.environment(LD_LIBRARY_PATH=DOUBLES, LD_PRELOAD=support.LIBRARY,
                                    CUDAPOLICY_FILE=self.path("policy.ini"),
                                    CUDAPOLICY_REPORT=self.path("%p.json"),
                                    RECORDING_DRIVER_LOG=log),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.addCleanup(lambda: (parent.kill(), parent.communicate()))
        self.assertEqual(parent.stdout.readline(), "launched\n")
        self.write("policy.ini", policy("default"))
        self.ctl(parent.pid, "reload", "--timeout", "0")
        parent.stdin.write("x")
        parent.stdin.flush()
        self.assertEqual(parent.stdout.readline(), "launched\n")
        self.write("policy.ini", policy("remote", "third"))
        answer = self.ask(parent.pid, "reload", "--children", "--timeout", "0")
        self.assertEqual(len(answer["processes"]), 2)
        parent.communicate("x", timeout=support.TIME_LIMIT)
        with open(log, encoding="ascii") as file:
            domains = [line.split("attributes=")[1].split()[0] for line in file
                       if line.startswith("call=cuLaunchKernelEx ")]
        self.assertEqual(domains, ["MEM_SYNC_DOMAIN:1", "MEM_SYNC_DOMAIN:0", "MEM_SYNC_DOMAIN:0",
                                   "MEM_SYNC_DOMAIN:1"])


class Usage(Control):
    def test_the_command_line(self):
        self.assert_usage_error(self.command("ctl"), "no process given")
        self.assert_usage_error(self.command("ctl", "1"), "nothing given that is to be done")
        self.assert_usage_error(self.command("ctl", "1", "on"), "'on' is none of off, ")
        self.assert_usage_error(self.command("ctl", "1", "off", "2"), "one word too many")
        self.assert_usage_error(self.command("ctl", "1", "reload", "--timeout", "-1"), "seconds")
        self.assert_usage_error(self.command("ctl", "--all", "1", "off"), "unknown option '--all'")

    def test_a_target_that_is_nothing(self):
        self.assertIn("cannot read", self.ctl("./nothing", "off", status=1).stderr)
        self.assertIn("neither a process nor a file", self.ctl("nothing", "off", status=1).stderr)
        self.assertIn("no process of that job", self.ctl("job:nothing", "off", status=1).stderr)


if __name__ == "__main__":
    support.main()
