# SPDX-License-Identifier: Apache-2.0
"""The completion for bash: keys are typed into a bash on a terminal, and what it makes of the line is read."""

import os
import pty
import re
import select
import shutil
import subprocess
import time
import unittest

import support

COMPLETION = os.environ["CUDAPOLICY_TEST_COMPLETION"]
BASH = shutil.which("bash")

POLICY = """[policy]
version = 1

[partition side]
sm_count = 16

[stream background]
priority = 0

[kernel nccl]
name = ncclDevKernel_*
mem_sync_domain = remote
"""

# The command is a function that tells its arguments.
SETTINGS = r"""
bind 'set enable-bracketed-paste off'
bind 'set completion-query-items 0'
bind '"\C-x": insert-completions'
cudapolicy() { printf '%s\n' "$@" '<end>' > "$TOLD"; }
. "$COMPLETION"
"""


class Bash:
    """An interactive bash, with the completion and nothing else of the machine."""

    def __init__(self, folder, more=""):
        self.told = os.path.join(folder, "told")
        os.mkfifo(self.told)
        self.reader = os.open(self.told, os.O_RDWR | os.O_NONBLOCK)
        settings = os.path.join(folder, "settings")
        with open(settings, "w", encoding="utf-8") as file:
            file.write(SETTINGS + more + "\n")
        self.work = os.path.join(folder, "work")
        os.mkdir(self.work)
        self.terminal, other = pty.openpty()
        environment = support.environment(TOLD=self.told, COMPLETION=COMPLETION, TERM="dumb",
                                          INPUTRC="/dev/null", HOME=folder, HISTFILE=None)
        self.process = subprocess.Popen(
            [BASH, "--noprofile", "--rcfile", settings, "-i"], stdin=other, stdout=other, stderr=other,
            cwd=self.work, env=environment, start_new_session=True)
        os.close(other)
        self.shown = b""

    def type(self, keys):
        """The words with which the command is called when these keys and then Enter are pressed."""
        os.write(self.terminal, keys.encode() + b"\n")
        said = b""
        limit = time.monotonic() + support.TIME_LIMIT
        while not said.endswith(b"<end>\n"):
            ready, _, _ = select.select([self.reader, self.terminal], [], [],
                                        max(0, limit - time.monotonic()))
            if not ready:
                raise AssertionError(f"no answer to {keys!r}: {said!r}, {self.shown[-2000:]!r}")
            if self.terminal in ready:
                self.shown += os.read(self.terminal, 65536)
            if self.reader in ready:
                said += os.read(self.reader, 65536)
        return said.decode().splitlines()[:-1]

    def close(self):
        self.process.kill()
        self.process.wait()
        os.close(self.terminal)
        os.close(self.reader)


@unittest.skipIf(BASH is None, "no bash")
class Completion(support.Case):
    more = ""

    def setUp(self):
        super().setUp()
        self.bash = Bash(self.folder, self.more)
        self.addCleanup(self.bash.close)

    def file(self, name, text=""):
        path = os.path.join(self.bash.work, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)

    def all(self, line):
        """Every completion of the line's last word, where the words before it stay."""
        return self.bash.type(line + "\x18")[len(line.split()) - (not line.endswith(" ")) - 1:]

    def test_subcommands(self):
        help_lines = self.command("--help").stdout.split("Commands:")[1].split("Options:")[0]
        names = re.findall(r"(?m)^  ([a-z]+) ", help_lines)
        self.assertEqual(self.all("cudapolicy "), sorted([*names, "help", "--help", "--version"],
                                                         key=lambda word: word.encode()))
        self.assertEqual(self.bash.type("cudapolicy rec\t"), ["record"])
        self.assertEqual(set(self.all("cudapolicy help ")), set(names))

    def test_every_long_option_of_the_help_of_every_subcommand(self):
        help_lines = self.command("--help").stdout.split("Commands:")[1].split("Options:")[0]
        for name in [*re.findall(r"(?m)^  ([a-z]+) ", help_lines), "ab --live"]:
            text = self.command(*name.split(), "--help").stdout.split("Exit status:")[0]
            offered = set(self.all(f"cudapolicy {name} --"))
            for option in re.findall(r"(?m)^ +(?:-\w, )?(--[a-z][a-z-]+)", text):
                self.assertIn(option, offered, name)
            self.assertIn("--help", offered)
        self.assertEqual(self.bash.type("cudapolicy tune --search\t7"), ["tune", "--search-blocks", "7"])

    def test_words_of_an_option_behind_a_blank_and_behind_an_equals_sign(self):
        self.assertEqual(self.all("cudapolicy run --mode "), ["enforce", "observe", "off"])
        self.assertEqual(self.bash.type("cudapolicy run --mode=ob\t"), ["run", "--mode=observe"])
        self.assertEqual(self.bash.type("cudapolicy run -m en\t"), ["run", "-m", "enforce"])
        self.assertEqual(self.all("cudapolicy ab --live --across-ranks m"),
                         ["max", "mean", "median", "min"])

    def test_policies_are_files_that_end_in_ini_and_folders(self):
        for name in ("one.ini", "two words.ini", "notes.txt", "more/three.ini"):
            self.file(name)
        for line in ("cudapolicy run -p ", "cudapolicy check ", "cudapolicy explain --policy "):
            self.assertEqual(self.all(line), ["more", "one.ini", "two words.ini"], line)
        self.assertEqual(self.bash.type("cudapolicy run --policy=mo\tth\t"),
                         ["run", "--policy=more/three.ini"])
        self.assertEqual(self.all("cudapolicy ab "),
                         ["more", "none", "observe", "one.ini", "two words.ini"])
        self.assertEqual(self.bash.type("cudapolicy ab fast=on\t"), ["ab", "fast=one.ini"])

    def test_reports(self):
        for name in ("job.json", "job.json.counters", "notes.txt"):
            self.file(name)
        self.assertEqual(self.all("cudapolicy report "), ["job.json", "job.json.counters"])

    def test_what_ctl_does(self):
        self.assertEqual(self.all("cudapolicy ctl 4711 "), ["enforce", "observe", "off", "reload", "status"])
        self.assertEqual(self.bash.type("cudapolicy ctl job:4\\ 1 re\t"), ["ctl", "job:4 1", "reload"])

    def test_vary_goes_from_the_policys_sections_to_keys_and_their_words(self):
        self.file("p.ini", POLICY)
        line = "cudapolicy tune -p p.ini --vary "
        before = ["tune", "-p", "p.ini", "--vary"]
        self.assertEqual(self.all(line), ["background.", "nccl.", "side."])
        self.assertEqual(self.bash.type(line + "nc\tmem_sync_domain=re\t"),
                         [*before, "nccl.mem_sync_domain=remote"])
        self.assertEqual(self.bash.type(line + "nccl.mem_sync_domain=default,re\t"),
                         [*before, "nccl.mem_sync_domain=default,remote"])
        self.assertEqual(self.bash.type("cudapolicy tune --policy=p.ini --vary=side.loc\t1"),
                         ["tune", "--policy=p.ini", "--vary=side.locality_domain=1"])
        keys = self.all(line + "nccl.")
        self.assertIn("nccl.cluster_dim=", keys)
        self.assertNotIn("nccl.sm_count=", keys)
        self.assertEqual(self.all("cudapolicy explain -p p.ini --stream "), ["background"])

    def test_every_key_of_named_sections_is_offered(self):
        self.file("p.ini", POLICY)
        names = {"partition": "side", "stream": "background", "kernel": "nccl"}
        entries = support.load_json(self.command("show", "--settings", "--json").stdout)["settings"]
        for section, name in names.items():
            keys = {f"{name}.{entry['key']}=" for entry in entries if entry["section"] == section}
            self.assertEqual(set(self.all(f"cudapolicy tune -p p.ini --vary {name}.")), keys)

    def test_the_program_behind_run_is_completed_as_a_program(self):
        self.file("data.txt")
        self.assertIn("sort", self.all("cudapolicy run -p x.ini -- sor"))
        self.assertEqual(self.bash.type("cudapolicy run -q cat da\t"), ["run", "-q", "cat", "data.txt"])
        self.assertEqual(self.bash.type("cudapolicy ab none -- cat da\t"),
                         ["ab", "none", "--", "cat", "data.txt"])

    def test_nothing_is_offered_for_a_number(self):
        self.file("data.txt")
        self.assertEqual(self.all("cudapolicy ab --alpha "), [])

    def test_it_says_nothing(self):
        self.bash.type("cudapolicy run --policy=nowhere/\tx")
        self.bash.type("cudapolicy tune -p nowhere --vary \tx")
        self.assertNotIn(b"rror", self.bash.shown)
        self.assertNotIn(b"cudapolicy:", self.bash.shown)


class InAFunction(Completion):
    """As bash-completion loads it: from inside a function."""
    more = 'unset -f _cudapolicy; loader() { . "$COMPLETION"; }; loader'


class WithoutBreaks(Completion):
    """Some users take '=' and ':' out of the characters at which words break."""
    more = "COMP_WORDBREAKS=${COMP_WORDBREAKS//[=:]/}"


LIBRARY_OF_COMPLETIONS = "/usr/share/bash-completion/bash_completion"


@unittest.skipUnless(os.path.exists(LIBRARY_OF_COMPLETIONS), "no bash-completion")
class WithBashCompletion(Completion):
    more = f". {LIBRARY_OF_COMPLETIONS}; . \"$COMPLETION\""


class Tables(support.Case):
    """What stands in the generator and not in the command."""

    @classmethod
    def setUpClass(cls):
        path = os.path.join(support.SOURCE, "tools", "completion", "make-completion")
        cls.generator = {"__name__": "make_completion"}
        with open(path, encoding="utf-8") as file:
            exec(compile(file.read(), path, "exec"), cls.generator)  # pylint: disable=exec-used
        cls.kinds = [*cls.generator["subcommands"](support.COMMAND), "ab --live"]

    def test_every_option_with_an_argument_has_a_line(self):
        """When this fails: say in ARGUMENTS of make-completion what the option takes."""
        for kind in self.kinds:
            for name, _, argument in self.generator["options"](support.COMMAND, kind):
                if argument:
                    self.assertTrue(name in self.generator["ARGUMENTS"] or
                                    f"{kind} {name}" in self.generator["ARGUMENTS"], f"{kind} --{name}")

    def test_every_line_is_of_an_option(self):
        names = {name for kind in self.kinds
                 for name, _, argument in self.generator["options"](support.COMMAND, kind) if argument}
        for name in self.generator["ARGUMENTS"]:
            self.assertIn(name.split()[-1], names)

    def test_the_command_takes_every_word_and_no_other(self):
        policy = self.write("p.ini", POLICY)
        words_before = {"run": ["-p", policy], "explain": ["-p", policy], "tune": ["-p", policy]}
        words_behind = {"tune": ["--blocks=0", "--", "true"]}  # refused, when all before was right
        for kind in self.kinds:
            for name, _, argument in self.generator["options"](support.COMMAND, kind):
                entry = self.generator["argument_of"](kind, name)
                if not argument or not entry.startswith("words "):
                    continue
                for word in [*entry.split()[1:], "nonsense"]:
                    subcommand = kind.split()
                    result = self.command(*subcommand, *words_before.get(subcommand[0], []),
                                          f"--{name}={word}", *words_behind.get(subcommand[0], []))
                    refused = result.returncode == 64 and f"'{word}'" in result.stderr
                    self.assertEqual(refused, word == "nonsense", f"{kind} --{name}={word}: {result}")

    def test_the_actions_of_ctl(self):
        for action in [*self.generator["CTL_ACTIONS"].split(), "nonsense"]:
            result = self.command("ctl", "pid:999999999", action)
            self.assertEqual(result.returncode, 64 if action == "nonsense" else 1, result)


if __name__ == "__main__":
    support.main()
