# SPDX-License-Identifier: Apache-2.0
"""The version: said by the command, the library, the manual, reports and CHANGELOG.md, written in one place."""

import json
import os
import re
import subprocess

import support

BUILD = os.environ["CUDAPOLICY_TEST_BUILD"]
DOUBLES = os.environ["CUDAPOLICY_TEST_DOUBLES"]
PROGRAM = os.environ["CUDAPOLICY_TEST_PROGRAM"]


def read(*names):
    with open(os.path.join(support.SOURCE, *names), encoding="utf-8") as file:
        return file.read()


class Version(support.Case):
    @classmethod
    def setUpClass(cls):
        with open(os.path.join(BUILD, "meson-info", "intro-projectinfo.json"), encoding="utf-8") as file:
            cls.version = json.load(file)["version"]

    def test_the_command_says_it(self):
        self.assertEqual(self.command("--version").stdout, f"cudapolicy {self.version}\n")

    def test_the_library_says_it_to_strings(self):
        result = subprocess.run(["strings", "-a", support.LIBRARY], check=True, stdout=subprocess.PIPE, text=True)
        line, = [line for line in result.stdout.splitlines() if re.match(r"@\(#\)cudapolicy ", line)]
        self.assertRegex(line, rf"^@\(#\)cudapolicy {re.escape(self.version)} \((x86-64|aarch64), CUDA_VERSION 1\d0\d0\)$")

    def test_show_says_it_of_the_command_and_of_the_library(self):
        env = {"LD_LIBRARY_PATH": DOUBLES}
        text = self.command("show", env=env).stdout
        self.assertTrue(text.startswith(f"cudapolicy {self.version}\nlibrary: {support.LIBRARY}: "
                                        f"cudapolicy {self.version} ("), text)
        shown = support.load_json(self.command("show", "--json", env=env).stdout)
        self.assertEqual(shown["version"], self.version)
        self.assertEqual(shown["library"]["path"], support.LIBRARY)

    def test_show_says_it_of_another_library(self):
        with open(support.LIBRARY, "rb") as file:
            text = file.read()
        older = text.replace(f"@(#)cudapolicy {self.version} ".encode(),
                             f"@(#)cudapolicy {'9' * len(self.version)} ".encode())
        self.assertNotEqual(older, text)
        path = self.write("libcudapolicy.so", older)
        shown = support.load_json(self.command("show", "--json", env={"CUDAPOLICY_LIBRARY": path}).stdout)
        self.assertEqual(shown["library"]["path"], path)
        self.assertIn(f"cudapolicy {'9' * len(self.version)} (", shown["library"]["version"])

    def test_show_says_when_a_file_is_no_library_of_ours(self):
        for content in (b"", b"@(#)cudapolicy", b"@(#)cudapolicy 1" + b"x" * 1000, b"\x7fELF"):
            path = self.write("libcudapolicy.so", content)
            text = self.command("show", env={"CUDAPOLICY_LIBRARY": path}).stdout
            self.assertIn(f"library: {path}: not one of cudapolicy\n", text)
        text = self.command("show", env={"CUDAPOLICY_LIBRARY": self.folder}).stdout
        self.assertIn(f"library: {self.folder}: not one of cudapolicy\n", text)

    def test_a_report_has_it(self):
        report = self.path("report.json")
        result = self.run_program("--report", report, "--", PROGRAM, "launch", "kernel", "1", "4",
                                  env={"LD_LIBRARY_PATH": DOUBLES})
        self.assertEqual(result.returncode, 0, result)
        with open(report, encoding="utf-8") as file:
            process, = json.load(file)["processes"]
        self.assertEqual(process["facts"]["cudapolicy"], {"version": self.version})

    def test_the_changelog_begins_with_it(self):
        first = re.search(r"(?m)^## (\S+)( \((?:not released|20\d\d-\d\d-\d\d)\))?$", read("CHANGELOG.md"))
        self.assertEqual(first.group(1), self.version)
        self.assertIsNotNone(first.group(2))

    def test_it_is_written_in_one_place_besides_the_changelog(self):
        found = []
        for top, folders, files in os.walk(support.SOURCE):
            folders[:] = [name for name in folders if not name.startswith((".git", "build", "b")) or
                          name in ("batch", "bench", "baseline")]
            for name in files:
                path = os.path.relpath(os.path.join(top, name), support.SOURCE)
                if not name.endswith((".c", ".h", ".in", ".md", ".build", ".py", ".def", ".ini")) and \
                        not path.startswith(("tools/", "debian/")):
                    continue
                if re.search(rf"(?<![\d.]){re.escape(self.version)}(?![\d.])", read(path)):
                    found.append(path)
        self.assertEqual(sorted(found), ["CHANGELOG.md", "meson.build"])


if __name__ == "__main__":
    support.main()
