# SPDX-License-Identifier: Apache-2.0
"""What the tests of shells, switches of user and containers share: `cudapolicy run` around a command that
starts a program on the recording driver, in a process group of its own of which nothing is left."""

import atexit
import os
import shutil
import signal
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "command"))

import support  # pylint: disable=wrong-import-position

# Library and driver of these tests alone: run looks at who opens them, and other tests do at the same time.
FOLDER = os.path.realpath(tempfile.mkdtemp(prefix="cudapolicy-test-"))
atexit.register(shutil.rmtree, FOLDER)
os.chmod(FOLDER, 0o755)
LIBRARY = shutil.copy(support.LIBRARY, FOLDER)
DOUBLES = os.path.join(FOLDER, "driver")
os.mkdir(DOUBLES)
shutil.copy(os.path.join(os.environ["CUDAPOLICY_TEST_DOUBLES"], "libcuda.so.1"), DOUBLES)

COMMAND = support.COMMAND
PROGRAM = os.environ["CUDAPOLICY_TEST_PROGRAM"]
STATIC = os.environ["CUDAPOLICY_TEST_STATIC"]

LAUNCHES = 3
# The program, as one that is started in a new environment finds its driver.
LAUNCH = [PROGRAM, "launch", "kernel", str(LAUNCHES), "4"]
LAUNCH_ANEW = ["env", f"LD_LIBRARY_PATH={DOUBLES}", *LAUNCH]

POLICY = """[policy]
version = 1

[kernel all]
name = *
mem_sync_domain = default
"""

# What is said where the driver was loaded, and not under the library.
LOST = "LD_PRELOAD was lost on the way to the program"
NOT_SEEN = "no kernel launch of"


def words(*arguments):
    """Arguments as one line for a shell."""
    return " ".join("'" + argument.replace("'", "'\\''") + "'" for argument in arguments)


class Case(support.Case):
    def run_under_policy(self, *command, options=(), env=None, **more):
        """cudapolicy run around the command. The result is that of subprocess.run."""
        policy = self.write("policy.ini", POLICY)
        return self.alone(COMMAND, "run", "-p", policy, "--library", LIBRARY, *options, "--",
                          *command, env=env, **more)

    def alone(self, *command, env=None, **more):
        variables = support.environment(LD_LIBRARY_PATH=DOUBLES, TMPDIR=self.folder, LC_ALL="C",
                                        **(env or {}))
        with subprocess.Popen(command, cwd=self.folder, env=variables, text=True,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, start_new_session=True, **more) as process:
            try:
                out, err = process.communicate(timeout=support.TIME_LIMIT)
            finally:
                try:
                    os.killpg(process.pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
        return subprocess.CompletedProcess(command, process.returncode, out, err)

    def assert_reached(self, result, processes=1, status=0):
        self.assertEqual(result.returncode, status, result)
        count = LAUNCHES * processes
        self.assertIn(f"cudapolicy: {count} launches of 1 kernel in {processes} "
                      f"process{'' if processes == 1 else 'es'} ", result.stderr)
        self.assertRegex(result.stderr, rf"(?m)^kernel all +1 +{count} +")

    def assert_lost(self, result, status=0):
        self.assertEqual(result.returncode, status, result)
        self.assertIn(NOT_SEEN, result.stderr)
        self.assertIn(LOST, result.stderr)


main = support.main
