# SPDX-License-Identifier: Apache-2.0
"""Every command that the pages for newcomers show can be run, on the recording driver, from the project's
folder. What the commands print is not compared: a figure is not the same twice."""

import os
import re
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.environ["CUDAPOLICY_TEST_SOURCE"], "tests/command"))
import support  # pylint: disable=wrong-import-position

DEMO = os.path.join(support.SOURCE, "tests/demo/demo.py")
BUILD = os.environ["CUDAPOLICY_TEST_BUILD"]
PAGES = ("getting-started", "ab", "tune")

# What an experiment shows is its own affair, as long as it shows something.
EXPERIMENT = (0, 1, 2)


def blocks(page):
    """(kind, text before, text) of each block of code."""
    with open(os.path.join(support.SOURCE, "docs", f"{page}.md"), encoding="utf-8") as file:
        text = file.read()
    for match in re.finditer(r"(?ms)^```(\w*)\n(.*?)^```$", text):
        yield match[1], text[:match.start()], match[2]


def commands(text):
    """Lines after a prompt, or all where none has one; each as a shell is to have it."""
    text = text.replace("\\\n", " ")
    lines = [line[2:] for line in text.splitlines() if line.startswith("$ ")]
    return lines or [line for line in text.splitlines() if line.startswith("cudapolicy ")]


def shorter(command):
    """The same in less time: fewer steps, and no more blocks than are needed."""
    command = re.sub(r"(build/demo/communication) 500\b", r"\1 20", command)
    command = re.sub(r"(build/demo/communication) 20000000\b", r"\1 500000", command)
    return command.replace("--looks 20,40,80", "--looks 10,11,12")


class Documents(support.Case):
    def setUp(self):
        super().setUp()
        os.symlink(os.path.join(support.SOURCE, "policy"), self.path("policy"))
        os.mkdir(self.path("build"))
        for name in ("tools", "src", "tests"):
            os.symlink(os.path.join(BUILD, name), self.path(f"build/{name}"))
        subprocess.run([sys.executable, DEMO, "--recording", "--output", self.path("build/demo"), BUILD],
                       env=support.environment(), stdout=subprocess.PIPE, check=True, timeout=200)

    def run_page(self, page):
        ran = 0
        for kind, before, text in blocks(page):
            if kind == "ini":
                names = re.findall(r"[Ii]n a file `(\S+\.ini)`", before)
                # One that is wrong on purpose is put right in the next block.
                name = names[-1] if names else "p.ini"
                text = text.replace("custom::", "ours::")
                if not text.startswith("[policy]"):
                    # Sections to add.
                    with open(self.path(name), encoding="utf-8") as file:
                        text = file.read() + "\n" + text
                self.write(name, text)
                continue
            # A block is one session: what is started in the background is there for the lines below.
            lines = [shorter(line) for line in commands(text)]
            if lines and not any("…" in line or "[OPTION]" in line for line in lines):
                self.run_lines(lines)
                ran += len(lines)
        self.assertGreater(ran, 2)

    def run_lines(self, lines):
        script = ""
        for line in lines:
            if line.startswith("echo $?"):
                continue
            script += f"{line}\n"
            if line.endswith("&"):
                # Until it can be reached: it is there when it has launched.
                script += "until cudapolicy ctl $! status >/dev/null 2>&1; do kill -0 $! || exit; done\n"
            elif " ctl " not in line:
                script += "status=$?; echo \"status $status of: $0\" >&2; [ $status -le 2 ] || exit 9\n"
        script += "wait\n"
        environment = support.environment(
            LD_LIBRARY_PATH=self.path("build/tests/double/driver"), TMPDIR=self.folder,
            PATH=os.path.dirname(support.COMMAND) + ":" + os.environ["PATH"])
        done = subprocess.run(["sh", "-c", script, lines[0]], cwd=self.folder, env=environment,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, timeout=200, check=False)
        said = f"{script}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
        self.assertEqual(done.returncode, 0, said)
        for trouble in ("Try 'cudapolicy", "not found", "no launch of"):
            self.assertNotIn(trouble, done.stderr, said)


for name in PAGES:
    setattr(Documents, f"test_{name.replace('-', '_')}", lambda self, name=name: self.run_page(name))


if __name__ == "__main__":
    support.main()
