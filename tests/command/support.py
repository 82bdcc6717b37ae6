# SPDX-License-Identifier: Apache-2.0
"""What the tests of the command share: running it, and reporting in the Test Anything Protocol.

A test program is a file of unittest.TestCase classes that ends with `support.main()`. It gets from the
build, by environment variables: CUDAPOLICY_COMMAND, the command; CUDAPOLICY_TEST_LIBRARY, the library
to preload; CUDAPOLICY_TEST_SOURCE, the source tree; and where they were built, CUDAPOLICY_TEST_DOUBLES,
the folder of the recording driver, and CUDAPOLICY_TEST_PROGRAM, a program that launches kernels.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

COMMAND = os.environ["CUDAPOLICY_COMMAND"]
LIBRARY = os.environ["CUDAPOLICY_TEST_LIBRARY"]
SOURCE = os.environ["CUDAPOLICY_TEST_SOURCE"]

# A test that hangs fails here, long before the build's own limit.
TIME_LIMIT = 60

GOOD_POLICY = """[policy]
version = 1

[kernel everything]
name = *
priority = 0
"""


def environment(**changes):
    """The test's environment without what would steer the command; changes of None are removed."""
    result = {name: value for name, value in os.environ.items()
              if not name.startswith("CUDAPOLICY_") and name not in ("LD_PRELOAD", "COLUMNS")}
    # The build puts the recording driver's folder there; tests that want it say so.
    folders = [folder for folder in result.pop("LD_LIBRARY_PATH", "").split(":")
               if folder and folder != os.environ.get("CUDAPOLICY_TEST_DOUBLES")]
    if folders:
        result["LD_LIBRARY_PATH"] = ":".join(folders)
    for name, value in changes.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = value
    return result


class Case(unittest.TestCase):
    """A test with a folder of its own."""

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="cudapolicy-test-")
        self.addCleanup(shutil.rmtree, self.folder)

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, text):
        path = self.path(name)
        mode = "wb" if isinstance(text, bytes) else "w"
        with open(path, mode) as file:
            file.write(text)
        return path

    def command(self, *arguments, env=None, **options):
        """Runs the command to its end; the result has returncode, stdout and stderr."""
        options.setdefault("cwd", self.folder)
        options.setdefault("stdout", subprocess.PIPE)
        options.setdefault("stderr", subprocess.PIPE)
        if "input" not in options:
            options.setdefault("stdin", subprocess.DEVNULL)
        result = subprocess.run([COMMAND, *arguments], env=environment(**(env or {})), text=True,
                                timeout=TIME_LIMIT, check=False, **options)
        if result.stderr:
            # A notice about the stack on which names are demangled; no finding.
            result.stderr = re.sub(r"(?m)^==\d+==WARNING: ASan doesn't fully support makecontext.*\n",
                                   "", result.stderr)
        return result

    def start(self, *arguments, env=None, **options):
        """Starts the command; the test waits for it."""
        options.setdefault("cwd", self.folder)
        process = subprocess.Popen([COMMAND, *arguments], env=environment(**(env or {})), text=True,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, **options)
        self.addCleanup(self.stop, process)
        return process

    @staticmethod
    def stop(process):
        if process.poll() is None:
            process.kill()
        process.communicate()

    def run_program(self, *arguments, policy=GOOD_POLICY, env=None, **options):
        """`cudapolicy run` with a policy of this text and this build's library."""
        path = self.write("policy.ini", policy)
        return self.command("run", "-p", path, "--library", LIBRARY, *arguments, env=env, **options)

    def assert_usage_error(self, result, text):
        self.assertEqual(result.returncode, 64, result)
        self.assertEqual(result.stdout, "")
        self.assertTrue(result.stderr.startswith("cudapolicy: "), result.stderr)
        self.assertIn(text, result.stderr)
        self.assertIn("--help'", result.stderr)


def python(*lines):
    """A child program: Python statements."""
    return [sys.executable, "-S", "-c", "\n".join(lines)]


def load_json(text):
    return json.loads(text)


class TapResult(unittest.TestResult):
    """Prints one line a test, in the Test Anything Protocol."""

    def __init__(self):
        super().__init__()
        self.number = 0

    def line(self, verdict, test, note=""):
        self.number += 1
        name = test.id().split(".", 1)[1] if "." in test.id() else test.id()
        print(f"{verdict} {self.number} - {name}{note}", flush=True)

    def addSuccess(self, test):
        super().addSuccess(test)
        self.line("ok", test)

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.line("ok", test, f" # SKIP {reason}")

    def addFailure(self, test, error):
        super().addFailure(test, error)
        self.line("not ok", test)
        print(self.failures[-1][1], file=sys.stderr, flush=True)

    def addError(self, test, error):
        super().addError(test, error)
        self.line("not ok", test)
        print(self.errors[-1][1], file=sys.stderr, flush=True)


def main():
    """Runs the tests of the calling file; with arguments, only those whose name contains one."""
    suite = unittest.TestSuite()
    for test in unittest.defaultTestLoader.loadTestsFromModule(sys.modules["__main__"]):
        for case in test:
            if len(sys.argv) == 1 or any(word in case.id() for word in sys.argv[1:]):
                suite.addTest(case)
    print(f"1..{suite.countTestCases()}", flush=True)
    result = TapResult()
    suite.run(result)
    sys.exit(0 if result.wasSuccessful() else 1)
