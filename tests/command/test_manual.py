# SPDX-License-Identifier: Apache-2.0
"""The manual page: complete, and clean for the programs that print it."""

import os
import re
import shutil
import subprocess

import support

PAGE = os.environ["CUDAPOLICY_TEST_MANUAL"]
COMMANDS = ("run", "check", "explain", "record", "report", "show", "ab", "tune", "ctl", "diff")


class Manual(support.Case):
    @classmethod
    def setUpClass(cls):
        with open(PAGE, encoding="utf-8") as file:
            cls.text = file.read()
        # As a reader sees hyphens; fonts taken out.
        cls.plain = re.sub(r"\\f[BIR]", "", cls.text).replace("\\-", "-")

    def test_no_mark_of_the_source_is_left(self):
        self.assertNotRegex(self.text, r"(?m)^@")
        self.assertNotIn("@version@", self.text)

    def test_every_command_and_long_option_is_described(self):
        for name in COMMANDS:
            self.assertTrue(f"\n.SS {name}\n" in self.text, name)
            options = self.command(name, "--help").stdout.split("Examples:")[0]
            for option in re.findall(r"--[a-z][a-z-]+", options):
                self.assertTrue(option in self.plain, f"{name} {option}")

    def test_every_option_of_the_page_exists(self):
        helps = "".join(self.command(name, "--help").stdout for name in COMMANDS)
        for option in set(re.findall(r"--[a-z][a-z-]+", self.plain)):
            self.assertTrue(option in helps, option)

    def test_every_key_and_reason_is_listed(self):
        keys = support.load_json(self.command("show", "--settings", "--json").stdout)["settings"]
        for entry in keys:
            self.assertTrue(f"\n{entry['key']} = " in self.plain, entry["key"])
        plain = self.plain.replace("\\(aq", "'")
        lists = support.load_json(self.command("show", "--reasons", "--json").stdout)
        for key in ("outcome", "reason"):
            for entry in lists[key + "s"]:
                self.assertTrue(f"\n.TP\n{entry[key]}\n{entry['meaning']}\n" in plain, entry)
        for entry in keys:
            if entry["when_set"]:
                line = rf"\n{entry['key']} = .*\n.*; when_set = {entry['when_set']} unless"
                self.assertRegex(plain, line)

    def test_the_folder_of_the_installed_policies_is_named(self):
        self.assertRegex(self.plain, r"installed in\n\.IR /\S+/share/cudapolicy ,\n")

    def test_the_limits_come_before_the_commands(self):
        sections = re.findall(r"(?m)^\.SH (.+)$", self.text)
        self.assertLess(sections.index("LIMITS"), sections.index("COMMANDS"))

    def test_groff_has_nothing_to_say(self):
        if shutil.which("groff") is None:
            self.skipTest("no groff")
        result = subprocess.run(["groff", "-man", "-Tutf8", "-ww", "-z", PAGE], check=False,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.assertEqual((result.returncode, result.stderr), (0, ""))


if __name__ == "__main__":
    support.main()
