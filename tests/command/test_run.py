# SPDX-License-Identifier: Apache-2.0
"""cudapolicy run: starting a program and standing in for it. No CUDA here: see test_job.py."""

import fcntl
import os
import pty
import signal
import subprocess
import termios

import support
from support import LIBRARY, python

PRINT_ENVIRONMENT = python("import os", "print(os.environ.get('LD_PRELOAD'))",
                           "print(os.environ.get('CUDAPOLICY_FILE'))",
                           "print(os.environ.get('CUDAPOLICY_MODE'))",
                           "print(os.environ.get('CUDAPOLICY_LOG'))",
                           "print(os.environ.get('CUDAPOLICY_STRICT'))",
                           "print(os.environ.get('CUDAPOLICY_REPORT'))")


class Status(support.Case):
    def test_the_status_is_the_programs(self):
        for status in (0, 1, 64, 125, 255):
            result = self.run_program("--", *python(f"import os; os._exit({status})"))
            self.assertEqual(result.returncode, status)

    def test_a_signal_that_ended_the_program_is_128_and_its_number(self):
        for number in (signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV):
            result = self.run_program(
                "--", *python("import os", f"os.kill(os.getpid(), {int(number)})"))
            self.assertEqual(result.returncode, 128 + number)

    def test_a_program_that_is_not_there_is_127(self):
        for program in ("no-such-program", "./no-such-program", "/none/such"):
            result = self.run_program(program)
            self.assertEqual(result.returncode, 127)
            self.assertEqual(result.stderr,
                             f"cudapolicy: cannot run '{program}': No such file or directory\n")

    def test_a_file_that_cannot_be_executed_is_126(self):
        path = self.write("data", "no program")
        os.chmod(path, 0o644)
        for program in (path, self.folder):
            result = self.run_program(program)
            self.assertEqual(result.returncode, 126, result)
            self.assertIn(f"cannot run '{program}'", result.stderr)

    def test_an_inherited_ignored_sigchld_does_not_lose_the_status(self):
        result = self.run_program(
            "--", *python("import os, signal",
                          "assert signal.getsignal(signal.SIGCHLD) == signal.SIG_IGN",
                          "os._exit(7)"),
            preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN))
        self.assertEqual(result.returncode, 7, result)

    def test_a_summary_that_nobody_reads_does_not_change_the_status(self):
        reading, writing = os.pipe()
        os.close(reading)
        result = self.run_program("--", *python("import os; os._exit(7)"), stderr=writing)
        os.close(writing)
        self.assertEqual(result.returncode, 7)


class Refusal(support.Case):
    """What keeps the program from being started. Each test sees that it was not."""

    PROGRAM = python("open('started', 'w')")

    def assert_refused(self, result, status, text):
        self.assertEqual(result.returncode, status, result)
        self.assertIn(text, result.stderr)
        self.assertEqual(result.stdout, "")
        self.assertFalse(os.path.exists(self.path("started")))

    def test_a_wrong_policy_is_not_run_and_all_its_mistakes_are_shown(self):
        result = self.run_program(*self.PROGRAM,
                                  policy="[policy]\nversion = 1\n[kernel k]\nx = 1\ny = 2\n")
        self.assert_refused(result, 125, "policy.ini:4:1: error:")
        self.assertIn("policy.ini:5:1: error:", result.stderr)
        self.assertIn("cudapolicy: the policy is wrong; ", result.stderr)
        self.assertIn("was not started", result.stderr)

    def test_a_missing_policy_file_is_not_run(self):
        result = self.command("run", "-p", "none.ini", "--library", LIBRARY, *self.PROGRAM)
        self.assert_refused(result, 125, "none.ini: error: cannot open the policy: no such file")
        self.assertIn("cudapolicy: the policy cannot be read; ", result.stderr)
        self.assertNotIn("is wrong", result.stderr)

    def test_what_is_no_policy_file_cannot_be_read(self):
        os.mkfifo(self.path("fifo"))
        with open(self.path("large.ini"), "wb") as file:
            file.truncate(17 << 20)
        for name in (self.folder, self.path("fifo"), "/dev/null", self.path("large.ini")):
            result = self.command("run", "-p", name, "--library", LIBRARY, *self.PROGRAM)
            self.assert_refused(result, 125, "cudapolicy: the policy cannot be read; ")

    def test_no_policy_at_all_is_a_usage_error(self):
        result = self.command("run", "--library", LIBRARY, *self.PROGRAM)
        self.assert_usage_error(result, "no policy")
        self.assert_refused(result, 64, "CUDAPOLICY_FILE")

    def test_a_policy_from_standard_input_is_a_usage_error(self):
        result = self.command("run", "-p", "-", "--library", LIBRARY, *self.PROGRAM)
        self.assert_refused(result, 64, "standard input")

    def test_no_program_is_a_usage_error(self):
        self.assert_usage_error(self.run_program(), "no program given")
        self.assert_usage_error(self.run_program("--"), "no program given")

    def test_a_mode_or_level_that_does_not_exist_is_a_usage_error(self):
        self.assert_usage_error(self.run_program("--mode", "on", *self.PROGRAM), "'on' is no mode")
        self.assert_usage_error(self.run_program("--log", "loud", *self.PROGRAM), "'loud' is no level")

    def test_a_mode_in_the_environment_that_does_not_exist_is_refused(self):
        result = self.run_program(*self.PROGRAM, env={"CUDAPOLICY_MODE": "on"})
        self.assert_refused(result, 125, "CUDAPOLICY_MODE")

    def test_a_library_that_is_not_there_is_refused(self):
        path = self.write("policy.ini", support.GOOD_POLICY)
        result = self.command("run", "-p", path, "--library", "none.so", *self.PROGRAM)
        self.assert_refused(result, 125, "--library: cannot use 'none.so': No such file")

    def test_a_library_of_the_environment_that_is_not_there_is_refused(self):
        path = self.write("policy.ini", support.GOOD_POLICY)
        result = self.command("run", "-p", path, *self.PROGRAM,
                              env={"CUDAPOLICY_LIBRARY": "/none.so"})
        self.assert_refused(result, 125, "CUDAPOLICY_LIBRARY: cannot use '/none.so'")

    def test_a_library_that_is_none_is_refused(self):
        path = self.write("policy.ini", support.GOOD_POLICY)
        for name in (self.write("text.so", "not a library"), self.write("empty.so", "")):
            result = self.command("run", "-p", path, "--library", name, *self.PROGRAM)
            self.assert_refused(result, 125, "not a shared library")

    def test_a_library_whose_path_the_loader_cannot_take_is_refused(self):
        path = self.write("policy.ini", support.GOOD_POLICY)
        for folder in ("a b", "a:b", "$LIB"):
            os.mkdir(self.path(folder))
            library = os.path.join(self.path(folder), "libcudapolicy.so")
            with open(LIBRARY, "rb") as source, open(library, "wb") as copy:
                copy.write(source.read(4096))
            result = self.command("run", "-p", path, "--library", library, *self.PROGRAM)
            self.assert_refused(result, 125, "LD_PRELOAD cannot carry")

    def test_a_report_that_cannot_be_written_is_refused_before_the_run(self):
        result = self.run_program("--report", "/none/report.json", *self.PROGRAM)
        self.assert_refused(result, 125, "cannot write '/none/report.json'")

    def test_a_folder_for_reports_that_cannot_be_made_is_refused(self):
        result = self.run_program(*self.PROGRAM, env={"TMPDIR": "/none"})
        self.assert_refused(result, 125, "cannot make a folder for reports in '/none'")
        result = self.run_program("--report-folder", "/none/such", *self.PROGRAM)
        self.assert_refused(result, 125, "cannot make the folder '/none/such'")


class ChildEnvironment(support.Case):
    def values(self, *options, env=None, **settings):
        result = self.run_program(*options, "--", *PRINT_ENVIRONMENT, env=env, **settings)
        self.assertEqual(result.returncode, 0, result)
        names = ("preload", "file", "mode", "log", "strict", "report")
        return dict(zip(names, result.stdout.splitlines()))

    def test_the_library_and_the_policy_are_given_by_absolute_paths(self):
        self.write("policy.ini", support.GOOD_POLICY)
        result = self.command("run", "-p", "policy.ini", "--library",
                              os.path.relpath(LIBRARY, self.folder), *PRINT_ENVIRONMENT)
        preload, file = result.stdout.splitlines()[:2]
        self.assertEqual(preload, os.path.realpath(LIBRARY))
        self.assertEqual(file, os.path.realpath(self.path("policy.ini")))

    def test_what_is_not_asked_for_is_not_set(self):
        values = self.values()
        self.assertEqual((values["mode"], values["log"], values["strict"]), ("None",) * 3)

    def test_options_become_variables(self):
        values = self.values("--mode", "observe", "--log", "debug", "--strict")
        self.assertEqual((values["mode"], values["log"], values["strict"]), ("observe", "debug", "1"))

    def test_other_preloads_stay_before_the_library(self):
        other = self.write("other.so", b"")
        for separator in (":", " "):
            values = self.values(env={"LD_PRELOAD": f"{other}{separator}{other}2"},
                                 stderr=subprocess.DEVNULL)
            self.assertEqual(values["preload"], f"{other}:{other}2:{os.path.realpath(LIBRARY)}")

    def test_another_copy_of_the_library_is_replaced(self):
        # In a folder of its own, so that the command itself, which inherits it, still runs.
        values = self.values(env={"LD_PRELOAD": f"/none/libcudapolicy.so:{LIBRARY}"},
                             stderr=subprocess.DEVNULL)
        self.assertEqual(values["preload"], os.path.realpath(LIBRARY))

    def test_the_policy_of_the_environment_is_the_default(self):
        path = self.write("other.ini", support.GOOD_POLICY)
        result = self.command("run", "--library", LIBRARY, *PRINT_ENVIRONMENT,
                              env={"CUDAPOLICY_FILE": path})
        self.assertEqual(result.stdout.splitlines()[1], os.path.realpath(path))

    def test_the_library_of_the_environment_is_the_default(self):
        path = self.write("policy.ini", support.GOOD_POLICY)
        result = self.command("run", "-p", path, *PRINT_ENVIRONMENT,
                              env={"CUDAPOLICY_LIBRARY": LIBRARY})
        self.assertEqual(result.stdout.splitlines()[0], os.path.realpath(LIBRARY))

    def test_the_library_of_the_build_tree_is_found(self):
        path = self.write("policy.ini", support.GOOD_POLICY)
        built = os.path.join(os.path.dirname(support.COMMAND), "..", "src", "preload",
                             "libcudapolicy.so")
        if not os.path.exists(built):
            self.skipTest("the command does not stand in a build tree")
        result = self.command("run", "-p", path, *PRINT_ENVIRONMENT)
        self.assertEqual(result.stdout.splitlines()[0], os.path.realpath(built))

    def test_reports_go_to_a_private_folder_that_is_removed(self):
        values = self.values(env={"TMPDIR": self.folder})
        folder = os.path.dirname(values["report"])
        self.assertEqual(os.path.dirname(folder), os.path.realpath(self.folder))
        self.assertFalse(os.path.exists(folder))

    def test_a_percent_sign_in_the_folder_is_no_template(self):
        os.mkdir(self.path("50%h"))
        values = self.values(env={"TMPDIR": self.path("50%h")})
        self.assertIn("/50%%h/cudapolicy-", values["report"])
        self.assertTrue(values["report"].endswith("/%h-%p.json"))

    def test_a_report_folder_stays_with_a_new_folder_in_it(self):
        values = self.values("--report-folder", "reports")
        folder = os.path.dirname(values["report"])
        self.assertEqual(os.path.dirname(folder), os.path.realpath(self.path("reports")))
        self.assertTrue(os.path.isdir(folder))


class Streams(support.Case):
    def test_standard_output_is_the_programs_alone(self):
        result = self.run_program("--", *python("print('out')"))
        self.assertEqual(result.stdout, "out\n")

    def test_standard_input_is_the_programs(self):
        result = self.run_program("--", *python("print(input()[::-1])"), input="abc\n")
        self.assertEqual(result.stdout, "cba\n")

    def test_arguments_arrive_as_they_are(self):
        arguments = ["-x", "--", "a b", "", "--help"]
        result = self.run_program("--", *python("import sys", "print(sys.argv[1:])"), *arguments)
        self.assertEqual(result.stdout, f"{arguments}\n")

    def test_options_end_at_the_program(self):
        result = self.run_program(*python("import sys", "print(sys.argv[1:])"), "--mode", "none")
        self.assertEqual(result.stdout, "['--mode', 'none']\n")

    def test_quiet_prints_nothing(self):
        result = self.run_program("--quiet", "--", *python("pass"))
        self.assertEqual((result.stdout, result.stderr), ("", ""))


class Nothing(support.Case):
    """Programs that launch no kernel get one line that says why."""

    def test_one_line_says_that_no_launch_was_seen(self):
        result = self.run_program("--", *python("pass"))
        lines = result.stderr.splitlines()
        self.assertEqual(len(lines), 1, result)
        self.assertRegex(lines[0], r"^cudapolicy: no kernel launch of '.*' was seen: \w")

    def test_a_program_without_an_interpreter_is_said_to_be_static(self):
        result = self.run_program(os.environ["CUDAPOLICY_TEST_STATIC"])
        self.assertEqual(result.returncode, 0, result)
        self.assertIn("is linked statically", result.stderr)

    def test_a_set_user_id_program_is_said_to_be_one(self):
        program = self.path("raised")
        with open(os.environ["CUDAPOLICY_TEST_STATIC"], "rb") as source, open(program, "wb") as copy:
            copy.write(source.read())
        if os.getuid() == 0:
            os.chown(program, 65534, -1)  # one's own raises nothing
        else:
            self.skipTest("only root can make a program of another user")
        if os.statvfs(self.folder).f_flag & os.ST_NOSUID:
            self.skipTest("set-user-ID has no meaning in this folder")
        os.chmod(program, 0o4755)
        result = self.run_program(program)
        self.assertIn("is set-user-ID or set-group-ID", result.stderr)

    def test_mode_off_is_said(self):
        for options, env in ((["--mode", "off"], {}), ([], {"CUDAPOLICY_MODE": "off"})):
            result = self.run_program(*options, "--", *python("pass"), env=env)
            self.assertIn("the mode is off: nothing was seen or changed", result.stderr)

    def test_json_without_any_process_is_a_document_all_the_same(self):
        result = self.run_program("--json", "--", *python("pass"))
        document = support.load_json(result.stderr)
        self.assertEqual((document["processes"], document["launches"]), ([], 0))

    def test_a_report_without_any_process_is_a_document_all_the_same(self):
        self.run_program("--report", self.path("job.json"), "--", *python("pass"))
        with open(self.path("job.json"), encoding="utf-8") as file:
            document = support.load_json(file.read())
        self.assertEqual((document["format"], document["processes"]), ("cudapolicy job", []))


# Takes its signals one by one: a handler and pause() could miss one that comes in between.
WAITING = python(
    "import signal",
    "signals = {1, 2, 3, 10, 12, 15}",
    "signal.pthread_sigmask(signal.SIG_BLOCK, signals)",
    "print('ready', flush=True)",
    "number = 0",
    "while number != signal.SIGTERM:",
    "    number = signal.sigwait(signals)",
    "    print(signal.Signals(number).name, flush=True)",
    "raise SystemExit(42)")


class Signals(support.Case):
    def start_waiting(self, **options):
        path = self.write("policy.ini", support.GOOD_POLICY)
        process = self.start("run", "-q", "-p", path, "--library", LIBRARY, "--", *WAITING,
                             **options)
        self.assertEqual(process.stdout.readline(), "ready\n")
        return process

    def test_signals_are_passed_on(self):
        process = self.start_waiting()
        for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGUSR1,
                       signal.SIGUSR2):
            process.send_signal(number)
            self.assertEqual(process.stdout.readline(), number.name + "\n")
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.stdout.readline(), "SIGTERM\n")
        self.assertEqual(process.wait(support.TIME_LIMIT), 42)

    def test_the_program_is_in_the_process_group_of_the_command(self):
        result = self.run_program("--", *python("import os", "print(os.getpgrp() == os.getppid())"),
                                  start_new_session=True)
        self.assertEqual(result.stdout, "True\n")

    def test_signals_that_were_ignored_stay_ignored_and_none_is_blocked(self):
        result = self.run_program(
            "--", *python("import signal",
                          "print(signal.getsignal(signal.SIGHUP) == signal.SIG_IGN)",
                          "print(sorted(signal.pthread_sigmask(signal.SIG_BLOCK, [])))"),
            preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
        self.assertEqual(result.stdout, "True\n[]\n")

    def test_a_key_at_the_terminal_reaches_the_program_once(self):
        controller, terminal = pty.openpty()
        self.addCleanup(os.close, controller)

        def take_terminal():
            os.setsid()
            fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)
            attributes = termios.tcgetattr(terminal)
            attributes[3] |= termios.ISIG
            termios.tcsetattr(terminal, termios.TCSANOW, attributes)

        process = self.start_waiting(preexec_fn=take_terminal)
        os.close(terminal)
        # Two pending signals of a kind count as one: the command gets to its own only after the
        # program has taken the first.
        process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, process.pid, os.WSTOPPED)
        os.write(controller, b"\x03")
        self.assertEqual(process.stdout.readline(), "SIGINT\n")
        process.send_signal(signal.SIGTERM)
        process.send_signal(signal.SIGCONT)
        self.assertEqual(process.stdout.readline(), "SIGTERM\n")
        self.assertEqual(process.wait(support.TIME_LIMIT), 42)


if __name__ == "__main__":
    support.main()
