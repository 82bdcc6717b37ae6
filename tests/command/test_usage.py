# SPDX-License-Identifier: Apache-2.0
"""The command line as such: help, version, mistakes."""

import os
import re
import unittest

import support

COMMANDS = ("run", "check", "explain", "record", "report", "show", "ab", "tune", "ctl", "diff")


class Usage(support.Case):
    def test_help_lists_every_command(self):
        result = self.command("--help")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        for name in COMMANDS:
            self.assertRegex(result.stdout, rf"(?m)^  {name} +\w")

    def test_short_help_and_the_word_help_say_the_same(self):
        self.assertEqual(self.command("-h").stdout, self.command("--help").stdout)
        self.assertEqual(self.command("help").stdout, self.command("--help").stdout)

    def test_each_command_has_help_with_examples(self):
        for name in COMMANDS:
            result = self.command(name, "--help")
            self.assertEqual((result.returncode, result.stderr), (0, ""), name)
            self.assertTrue(result.stdout.startswith(f"Usage: cudapolicy {name} "), name)
            self.assertIn("Options:", result.stdout)
            self.assertIn("Exit status:", result.stdout)
            self.assertRegex(result.stdout, rf"Examples:\n(  cudapolicy .*\n)*  cudapolicy {name}")
            self.assertEqual(self.command("help", name).stdout, result.stdout)
            self.assertEqual(self.command(name, "-h").stdout, result.stdout)

    def test_the_other_form_of_ab_has_help_of_the_same_kind(self):
        text = self.command("ab", "--live", "--help").stdout
        for part in ("Usage: cudapolicy ab --live ", "\nOptions: ", "\nExit status: ", "\nExamples:\n"):
            self.assertIn(part, text)

    def test_help_fits_eighty_to_a_hundred_columns(self):
        for arguments in [["--help"], *[[name, "--help"] for name in COMMANDS]]:
            for line in self.command(*arguments).stdout.splitlines():
                self.assertLessEqual(len(line), 100, line)

    def test_every_long_option_of_help_is_taken(self):
        """A name in the help that the command does not know is a usage error that names it."""
        for name in COMMANDS:
            text = self.command(name, "--help").stdout
            options = re.findall(r"(?m)^ {2,6}(?:-\w, )?(--[a-z-]+)", text)
            self.assertGreater(len(options), 2, name)
            for option in set(options) - {"--help"}:
                result = self.command(name, option)
                self.assertNotIn("unknown option", result.stderr, f"{name} {option}")

    def test_version_is_printed(self):
        for option in ("--version", "-V"):
            result = self.command(option)
            self.assertEqual((result.returncode, result.stderr), (0, ""))
            self.assertRegex(result.stdout, r"^cudapolicy \d+\.\d+\.\d+\n$")

    def test_no_command_is_a_usage_error(self):
        self.assert_usage_error(self.command(), "no command given")

    def test_an_unknown_command_is_a_usage_error(self):
        self.assert_usage_error(self.command("rnu"), "unknown command 'rnu'")
        self.assert_usage_error(self.command("help", "rnu"), "unknown command 'rnu'")

    def test_an_unknown_global_option_is_a_usage_error(self):
        self.assert_usage_error(self.command("--frobnicate"), "unknown option '--frobnicate'")

    def test_unknown_options_of_commands_are_usage_errors_that_name_them(self):
        for name in COMMANDS:
            self.assert_usage_error(self.command(name, "--frobnicate"),
                                    f"{name}: unknown option '--frobnicate'")
            self.assert_usage_error(self.command(name, "-Z"), f"{name}: unknown option '-Z'")

    def test_an_option_without_its_argument_is_a_usage_error(self):
        self.assert_usage_error(self.command("run", "--policy"), "'--policy' needs an argument")
        self.assert_usage_error(self.command("run", "-p"), "'-p' needs an argument")

    def test_an_argument_that_an_option_does_not_take_is_a_usage_error(self):
        self.assert_usage_error(self.command("run", "--strict=1"), "'--strict=1' takes no argument")
        self.assert_usage_error(self.command("run", "--quiet=1"), "'--quiet=1' takes no argument")

    @unittest.skipUnless(os.path.exists("/dev/full"), "no /dev/full")
    def test_output_that_cannot_be_written_is_a_failure(self):
        for arguments in (["--help"], ["--version"], ["show"], ["show", "--json"]):
            with open("/dev/full", "w", encoding="ascii") as full:
                result = self.command(*arguments, stdout=full)
            self.assertEqual(result.returncode, 1, arguments)
            self.assertIn("cannot write to standard output", result.stderr)


if __name__ == "__main__":
    support.main()
