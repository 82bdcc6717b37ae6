# SPDX-License-Identifier: Apache-2.0
"""The manual pages: complete, and clean for the programs that print them."""

import os
import re
import shutil
import subprocess

import support

FOLDER = os.environ["CUDAPOLICY_TEST_MANUALS"]
PAGES = ("cudapolicy.1", "cudapolicy.ini.5", "libcudapolicy.7")

# Variables of the tests' own programs, and what is no variable.
OTHER_NAMES = {"CUDAPOLICY_TEST", "CUDAPOLICY_VERSION"}


def page_text(page):
    with open(os.path.join(FOLDER, page), encoding="utf-8") as file:
        return file.read()


def as_read(page):
    """As a reader sees hyphens and quotes; fonts taken out."""
    text = re.sub(r"\\f[BIR]|\\%|\\&", "", page_text(page))
    return text.replace("\\-", "-").replace("\\(aq", "'").replace("\\e", "\\")


class Pages(support.Case):
    """What holds for each of them."""

    def each(self):
        for page in PAGES:
            with self.subTest(page=page):
                yield page

    def test_no_mark_of_the_source_is_left(self):
        for page in self.each():
            self.assertNotRegex(page_text(page), r"(?m)^@|@[a-z]+@")

    def test_each_refers_to_the_others(self):
        names = [page.rsplit(".", 1) for page in PAGES]
        for page in self.each():
            others = as_read(page).split("\n.SH SEE ALSO\n")[1]
            for name, section in names:
                self.assertEqual(f"{name} ({section})" in others, page != f"{name}.{section}")

    def test_each_has_the_version_and_the_parts_that_readers_expect(self):
        version = self.command("--version").stdout.strip()
        for page in self.each():
            self.assertRegex(page_text(page), rf'(?m)^\.TH [A-Z.]+ \d "20\d\d-\d\d-\d\d" "{version}" "')
            for part in ("NAME", "SYNOPSIS", "DESCRIPTION"):
                self.assertIn(f"\n.SH {part}\n", page_text(page))

    def clean(self, *command, env=None):
        """That a program which prints manual pages has nothing to say to any."""
        if shutil.which(command[0]) is None:
            self.skipTest(f"no {command[0]}")
        for page in self.each():
            result = subprocess.run([*command, os.path.join(FOLDER, page)], check=False,
                                    stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                    env=support.environment(**(env or {})))
            said = result.stderr + (result.stdout if command[0] == "mandoc" else b"")
            self.assertEqual((result.returncode, said), (0, b""))

    def test_groff_has_nothing_to_say(self):
        self.clean("groff", "-man", "-Tutf8", "-ww", "-z")

    def test_mandoc_has_nothing_to_say(self):
        self.clean("mandoc", "-T", "lint", "-W", "warning")

    def test_man_has_nothing_to_say(self):
        self.clean("man", "--warnings", "-E", "UTF-8", "-l", "-Tutf8", "-Z",
                   env={"LC_ALL": "C.UTF-8", "MANROFFSEQ": ""})


class Command(support.Case):
    """cudapolicy(1)."""

    @classmethod
    def setUpClass(cls):
        cls.text = page_text("cudapolicy.1")
        cls.plain = as_read("cudapolicy.1")

    def names(self):
        listed = self.command("--help").stdout.split("\nCommands:\n")[1].split("\n\n")[0]
        return re.findall(r"(?m)^  ([a-z-]+) ", listed)

    def test_every_command_and_long_option_is_described(self):
        for name in self.names():
            self.assertTrue(f"\n.SS {name}\n" in self.text, name)
            options = self.command(name, "--help").stdout.split("Examples:")[0]
            for option in re.findall(r"--[a-z][a-z-]+", options):
                self.assertTrue(option in self.plain, f"{name} {option}")

    def test_no_option_runs_on_in_the_paragraph_of_another(self):
        self.assertNotRegex(self.plain, r"(?m)^[^.'].*\.\n\.B[IR]? .*--[a-z-]+.*\n[A-Z]")

    def test_every_option_of_a_command_has_an_entry_of_its_own(self):
        for name in self.names():
            part = self.plain.split(f"\n.SS {name}\n")[1].split("\n.S")[0]
            options = self.command(name, "--help").stdout.split("Examples:")[0]
            entries = " ".join(re.findall(r"\n\.TP\n(.*)", part))
            for option in re.findall(r"(?m)^ {2,6}(?:-\w, )?(--[a-z-]+)", options):
                self.assertTrue(option in entries or option == "--help", f"{name} {option}")

    def test_every_option_of_the_page_exists(self):
        helps = "".join(self.command(name, "--help").stdout for name in self.names())
        for option in set(re.findall(r"--[a-z][a-z-]+", self.plain)):
            self.assertTrue(option in helps, option)

    def test_every_outcome_is_listed(self):
        for entry in support.load_json(self.command("show", "--reasons", "--json").stdout)["outcomes"]:
            self.assertIn(f"\n.TP\n{entry['outcome']}\n{entry['meaning']}\n", self.plain)

    def test_the_folder_of_the_installed_policies_is_named(self):
        self.assertRegex(self.plain, r"installed in\n\.IR /\S+/share/cudapolicy ,\n")

    def test_the_limits_come_before_the_commands(self):
        sections = re.findall(r"(?m)^\.SH (.+)$", self.text)
        self.assertLess(sections.index("LIMITS"), sections.index("COMMANDS"))


class Language(support.Case):
    """cudapolicy.ini(5)."""

    @classmethod
    def setUpClass(cls):
        cls.plain = as_read("cudapolicy.ini.5")

    def test_every_section_key_and_word_is_listed(self):
        vocabulary = support.load_json(self.command("show", "--settings", "--json").stdout)
        for section in vocabulary["sections"]:
            title = section["section"] + (" NAME" if section["named"] else "")
            self.assertIn(f'\n.SS "[{title}]"\n', self.plain)
            part = self.plain.split(f'\n.SS "[{title}]"\n')[1].split("\n.S")[0]
            for entry in vocabulary["settings"]:
                if entry["section"] != section["section"]:
                    continue
                self.assertIn(f"\n.TP\n{entry['key']} = {entry['values'] or 'leave'}\n{entry['help']} (", part)
                for word in entry["words"]:
                    if word["help"]:
                        self.assertIn(f"\n.TP\n{word['word']}\n{word['help']}\n", part)
                if entry["when_set"]:
                    self.assertRegex(part, rf"\n{entry['key']} = .*\n.*; when_set = {entry['when_set']} unless")

    def test_every_key_and_section_says_what_it_is(self):
        """When this fails: the help column of src/policy/vocabulary.def is empty there."""
        vocabulary = support.load_json(self.command("show", "--settings", "--json").stdout)
        for entry in vocabulary["sections"] + vocabulary["settings"]:
            self.assertNotEqual(entry["help"], "", entry)

    def test_its_example_is_a_policy_without_mistakes(self):
        example = self.plain.split(".SH SYNOPSIS\n.nf\n.RS 4\n")[1].split("\n.RE\n")[0]
        result = self.command("check", "-q", self.write("example.ini", example + "\n"))
        self.assertEqual((result.returncode, result.stdout, result.stderr), (0, "", ""))


class Library(support.Case):
    """libcudapolicy(7)."""

    @classmethod
    def setUpClass(cls):
        cls.plain = as_read("libcudapolicy.7")

    def test_every_outcome_and_reason_is_listed(self):
        lists = support.load_json(self.command("show", "--reasons", "--json").stdout)
        for key in ("outcome", "reason"):
            for entry in lists[key + "s"]:
                self.assertIn(f"\n.TP\n{entry[key]}\n{entry['meaning']}\n", self.plain)

    def test_every_wrapped_function_and_every_exception_is_listed(self):
        wrapped, others = self.plain.split("\n.SS Functions that are not wrapped\n")
        for entry in support.load_json(self.command("show", "--entry-points", "--json").stdout)["entry_points"]:
            self.assertRegex(wrapped, rf"\b{entry['symbol']}\b(?!_)")
        for entry in support.load_json(self.command("show", "--exceptions", "--json").stdout)["exceptions"]:
            self.assertRegex(others, rf"\n{entry['function']},?\n")
            self.assertIn(f"\n.TP\n{entry['reason']}\n", others)


class Variables(support.Case):
    """Environment variables stand once, in tools/variables.def; the source has no others."""

    def table(self):
        return support.load_json(self.command("show", "--variables", "--json").stdout)["variables"]

    def source_names(self):
        """Names that stand as strings in the sources of the library, the command and the plugin."""
        names = set()
        for top in ("src", "tools"):
            for folder, _, files in os.walk(os.path.join(support.SOURCE, top)):
                for file in files:
                    if file.endswith((".c", ".h")) or file == "task-prolog.in":
                        with open(os.path.join(folder, file), encoding="utf-8") as source:
                            text = source.read()
                        pattern = r'"((?:SLURM_(?:NO_)?CUDA_POLICY|CUDAPOLICY)(?:_[A-Z_]+)?)"'
                        if file == "task-prolog.in":
                            pattern = r"\b((?:SLURM_(?:NO_)?CUDA_POLICY|CUDAPOLICY_)[A-Z_]*)\b"
                        names.update(re.findall(pattern, text))
        return names - OTHER_NAMES

    def test_the_table_has_every_name_of_the_source(self):
        """When this fails: give the variable a line in tools/variables.def."""
        known = {entry["variable"] for entry in self.table()}
        self.assertEqual(sorted(self.source_names() - known), [])

    def test_the_source_has_every_name_of_the_table(self):
        others = {"COLUMNS", "TMPDIR"}
        known = {entry["variable"] for entry in self.table()} - others
        self.assertEqual(sorted(known - self.source_names()), [])

    def test_every_one_is_in_the_page_of_who_reads_it(self):
        pages = {"command": "cudapolicy.1", "shell": "cudapolicy.1"}
        for entry in self.table():
            self.assertNotEqual(entry["meaning"], "")
            text = as_read(pages.get(entry["read_by"], "libcudapolicy.7"))
            value = f" = {entry['values']}" if entry["values"] else ""
            self.assertIn(f"\n.TP\n{entry['variable']}{value}\n{entry['meaning']}\n", text)

    def test_the_list_is_for_people_and_leaves_out_what_is_not(self):
        text = self.command("show", "--variables").stdout
        for entry in self.table():
            self.assertEqual(f"{entry['variable']} " in text, entry["read_by"] != "internal")


if __name__ == "__main__":
    support.main()
