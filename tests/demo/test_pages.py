# SPDX-License-Identifier: Apache-2.0
"""What pages and scripts name is there: pages, headings, files, targets of the build."""

import glob
import json
import os
import re
import sys
import unittest

SOURCE = os.environ["CUDAPOLICY_TEST_SOURCE"]
BUILD = os.environ["CUDAPOLICY_TEST_BUILD"]

sys.path.insert(0, os.path.join(SOURCE, "tests/command"))
import support  # pylint: disable=wrong-import-position


def read(path):
    with open(os.path.join(SOURCE, path), encoding="utf-8") as file:
        return file.read()


def pages():
    found = [os.path.relpath(path, SOURCE) for folder in ("", "docs", "policy")
             for path in glob.glob(os.path.join(SOURCE, folder, "*.md"))]
    return sorted(found)


def prose(page):
    """Without blocks of code, in which brackets are no links."""
    return re.sub(r"(?ms)^```.*?^```$", "", read(page))


def anchors(page):
    """As GitHub makes them of headings."""
    titles = re.findall(r"(?m)^#+ (.*)$", prose(page))
    return [re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles]


def links(page):
    return [link for link in re.findall(r"\]\(([^)\s]+)\)", prose(page)) if "://" not in link]


class Pages(unittest.TestCase):
    def test_each_link_leads_somewhere(self):
        seen = 0
        for page in pages():
            for link in links(page):
                path, _, anchor = link.partition("#")
                target = os.path.normpath(os.path.join(os.path.dirname(page), path)) if path else page
                with self.subTest(page=page, link=link):
                    self.assertTrue(os.path.exists(os.path.join(SOURCE, target)))
                    if anchor:
                        self.assertIn(anchor, anchors(target))
                seen += 1
        self.assertGreater(seen, 50)

    def test_the_page_about_the_source_names_each_folder_of_it(self):
        rows = dict(re.findall(r"(?m)^\| `([\w/]+)` \| (.*) \|$", read("docs/contributing.md")))
        for folder in ("src", "tools", "tests"):
            for name in sorted(os.listdir(os.path.join(SOURCE, folder))):
                if os.path.isdir(os.path.join(SOURCE, folder, name)) and name != "__pycache__":
                    with self.subTest(folder=folder, name=name):
                        self.assertTrue(f"{folder}/{name}" in rows or f"`{name}`" in rows.get(folder, ""))

    def test_the_readme_leads_to_each_page(self):
        linked = links("README.md")
        for page in pages():
            with self.subTest(page=page):
                self.assertTrue(page == "README.md" or page in linked)


class Commands(support.Case):
    def known(self, name):
        """The options of a command; ab has those of its other form, too, and tune all of ab's."""
        helps = [[name, "--help"]] + [["ab", "--help"]] * (name == "tune")
        helps += [["ab", "--live", "--help"]] * (name in ("ab", "tune"))
        return set(re.findall(r"--[a-z][a-z-]+", "".join(self.command(*words).stdout for words in helps)))

    def test_each_option_that_a_page_shows_behind_a_command_is_one_of_it(self):
        names = re.findall(r"(?m)^  ([a-z]+)  ", self.command("--help").stdout.split("\nOptions:")[0])
        known = {name: self.known(name) for name in names}
        seen = 0
        for page in pages():
            text = read(page).replace("\\\n", " ")
            for match in re.finditer(rf"(?:cudapolicy |`)({'|'.join(names)}) ([^`\n]*)", text):
                # Behind the dashes stands another program.
                own = re.split(r"(?<!\S)--(?!\S)", match[2])[0]
                for option in re.findall(r"(?<!\S)--[a-z][a-z-]+", own):
                    with self.subTest(page=page, text=match[0]):
                        self.assertIn(option, known[match[1]])
                    seen += 1
        self.assertGreater(seen, 50)


class Scripts(unittest.TestCase):
    def test_each_target_that_a_script_builds_is_one_of_the_build(self):
        """A name alone is refused by meson as soon as a second target has it."""
        with open(os.path.join(BUILD, "meson-info/intro-targets.json"), encoding="utf-8") as file:
            targets = [(os.path.relpath(os.path.dirname(target["defined_in"]), SOURCE), target["name"],
                        target["type"].replace(" ", "_")) for target in json.load(file)]
        seen = 0
        for script in ("tools/demo", "tests/headers/run"):
            text = read(script).replace("\\\n", " ")
            for arguments in re.findall(r'setup_meson compile -C "\$\w+"([^|>\n]*)', text):
                for argument in arguments.split():
                    path, _, kind = argument.partition(":")
                    folder, name = os.path.split(path)
                    found = [target for target in targets
                             if target[1:] == (name, kind) and folder in ("", target[0])]
                    with self.subTest(script=script, argument=argument):
                        self.assertEqual(len(found), 1, found)
                    seen += 1
        self.assertEqual(seen, 5)


if __name__ == "__main__":
    support.main()
