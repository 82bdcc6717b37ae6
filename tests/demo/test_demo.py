# SPDX-License-Identifier: Apache-2.0
"""The main part of tools/demo, on the recording driver."""

import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.environ["CUDAPOLICY_TEST_SOURCE"], "tests/command"))
import support  # pylint: disable=wrong-import-position

DEMO = os.path.join(support.SOURCE, "tests/demo/demo.py")
SCRIPT = os.path.join(support.SOURCE, "tools/demo")
BUILD = os.environ["CUDAPOLICY_TEST_BUILD"]

CHANGED = 11  # of the 17 launches that make the table


class Demo(support.Case):
    def demo(self, *options, **changes):
        return subprocess.run([sys.executable, DEMO, "--recording", "--output", self.folder, *options, BUILD],
                              env=support.environment(**changes), text=True, check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=200)

    def rows(self, text, outcome):
        return len(re.findall(rf"(?m)  communication: {outcome}$", text))

    def assert_table(self, result):
        self.assertEqual(result.returncode, 0, result)
        self.assertIn("nothing is computed", result.stdout)
        self.assertEqual(self.rows(result.stdout, "applied"), CHANGED, result.stdout)
        self.assertEqual(self.rows(result.stdout, "already so"), 2)
        self.assertEqual(self.rows(result.stdout, "kept"), 2)
        self.assertEqual(len(re.findall(r"(?m) compute +- +- +-$", result.stdout)), 2)
        self.assertRegex(result.stdout, r"(?m)^cudapolicy: 44 launches of 4 kernels in 1 process")

    def test_each_launch_is_shown_with_the_rule_that_changed_it(self):
        self.assert_table(self.demo())

    def test_without_nvcc_the_program_is_compiled_by_cc_and_launches_the_same(self):
        result = self.demo("--without-nvcc")
        self.assertIn("communication.cu (cc, ", result.stdout)
        self.assert_table(result)

    def test_the_program_goes_on_for_as_many_steps_as_it_is_told(self):
        self.demo()
        program = self.path("communication")
        double = os.path.join(BUILD, "tests/double/driver")
        result = self.command("run", "-p", os.path.join(support.SOURCE, "policy",
                                                        "communication-to-remote-domain.ini"),
                              "--library", support.LIBRARY, program, "7", env={"LD_LIBRARY_PATH": double})
        self.assertEqual(result.returncode, 0, result)
        self.assertEqual(len(re.findall(r"(?m)^step time: [0-9]+\.[0-9]{3} us$", result.stdout)), 7)
        # In each step one launch, and nine nodes of a graph.
        self.assertIn(f"{44 + 7 * 10} launches of 4 kernels in 1 process", result.stderr)

    def test_what_the_environment_says_of_policies_does_not_reach_it(self):
        self.assert_table(self.demo("--without-nvcc", CUDAPOLICY_MODE="off", CUDAPOLICY_FILE="/none",
                                    RECORDING_DRIVER_FAIL="cuLaunch*:*=1"))

    def test_it_can_be_repeated_in_the_same_folder(self):
        self.assert_table(self.demo("--without-nvcc"))
        self.assert_table(self.demo("--without-nvcc"))

    def test_a_policy_that_reaches_no_launch_is_a_failure(self):
        policy = self.write("none.ini", "[policy]\nversion = 1\n[kernel k]\nname = none\n"
                                        "mem_sync_domain = remote\n")
        result = self.demo("--without-nvcc", "--policy", policy)
        self.assertEqual(result.returncode, 1, result)
        self.assertIn("demo: failed: the policy changed nothing", result.stderr)

    def test_a_policy_that_changes_something_else_is_a_failure(self):
        policy = self.write("other.ini", "[policy]\nversion = 1\n[kernel k]\nname = compute\n"
                                         "cluster_dim = 2\n")
        result = self.demo("--without-nvcc", "--policy", policy)
        self.assertEqual(result.returncode, 1, result)
        self.assertIn("more was changed than mem_sync_domain", result.stderr)

    def test_a_program_that_cannot_be_run_is_a_failure(self):
        result = self.demo("--without-nvcc", PATH="/nonexistent")
        self.assertEqual(result.returncode, 1, result)
        self.assertIn("demo: failed:", result.stderr)


class Script(support.Case):
    def script(self, *arguments):
        return subprocess.run([SCRIPT, *arguments], env=support.environment(), text=True, check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=200)

    def test_a_built_folder_is_used_as_it_is(self):
        result = self.script("--recording", "--no-build", BUILD)
        self.assertEqual(result.returncode, 0, result)
        self.assertIn("communication: applied", result.stdout)

    def test_a_folder_that_was_not_built_is_a_failure(self):
        result = self.script("--recording", "--no-build", self.folder)
        self.assertEqual(result.returncode, 1, result)
        self.assertIn("demo: failed:", result.stderr)

    def test_an_unknown_option_is_a_usage_error(self):
        result = self.script("--fast")
        self.assertEqual(result.returncode, 64, result)
        self.assertIn("unknown option --fast", result.stderr)

    def test_help_says_what_is_installed(self):
        result = self.script("--help")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertIn("What is installed", result.stdout)
        with open(os.path.join(support.SOURCE, "tools/setup"), encoding="utf-8") as file:
            needs = file.read().split("<<'NEEDS'\n")[1].split("\nNEEDS")[0]
        for line in needs.splitlines():
            self.assertIn(f" {line.split('|')[0]},", result.stdout.replace("\n", " ").replace(";", ","))


if __name__ == "__main__":
    support.main()
