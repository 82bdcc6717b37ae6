# SPDX-License-Identifier: Apache-2.0
"""What `meson install` puts where; that the tree can be moved; that nothing of it is left afterwards."""

import json
import os
import shlex
import shutil
import subprocess

import support

BUILD = os.environ["CUDAPOLICY_TEST_BUILD"]
DOUBLES = os.environ["CUDAPOLICY_TEST_DOUBLES"]
PROGRAM = os.environ["CUDAPOLICY_TEST_PROGRAM"]
MESON = shlex.split(os.environ["CUDAPOLICY_TEST_MESON"])
LOG = os.path.join(BUILD, "meson-logs", "install-log.txt")

POLICY = """[policy]
version = 1

[kernel everything]
name = *
mem_sync_domain = remote
"""


def information(what):
    with open(os.path.join(BUILD, "meson-info", f"intro-{what}.json"), encoding="utf-8") as file:
        return json.load(file)


def option(name):
    return next(entry["value"] for entry in information("buildoptions") if entry["name"] == name)


PREFIX = option("prefix")


def tree(folder):
    """Everything below a folder, with what files hold."""
    found = {}
    for top, folders, files in os.walk(folder):
        for name in folders:
            found[os.path.relpath(os.path.join(top, name), folder)] = "folder"
        for name in files:
            path = os.path.join(top, name)
            with open(path, "rb") as file:
                found[os.path.relpath(path, folder)] = file.read()
    return found


class Installation(support.Case):
    def setUp(self):
        super().setUp()
        self.stage = self.path("stage")
        # The user's own `ninja uninstall` goes by this file.
        if os.path.exists(LOG):
            shutil.copy(LOG, self.path("log"))
            self.addCleanup(shutil.copy, self.path("log"), LOG)

    def install(self):
        self.succeeds(*MESON, "install", "-C", BUILD, "--no-rebuild", "--quiet", "--destdir", self.stage)
        return self.stage + PREFIX

    def succeeds(self, *command, **changes):
        result = subprocess.run(command, check=False, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True, timeout=support.TIME_LIMIT,
                                cwd=self.folder, env=support.environment(**changes))
        self.assertEqual(result.returncode, 0, result)
        return result

    def uninstall(self):
        return self.succeeds(os.path.join(support.SOURCE, "tools", "uninstall"), "--destdir", self.stage,
                             BUILD).stdout


class Contents(Installation):
    def test_everything_that_a_user_needs_is_there_and_nothing_else(self):
        prefix = self.install()
        policies = [os.path.join("share/cudapolicy", name)
                    for name in os.listdir(os.path.join(support.SOURCE, "policy"))
                    if name.endswith((".ini", ".md"))]
        wanted = ["bin/cudapolicy", f"{option('libdir')}/libcudapolicy.so",
                  f"{option('libexecdir')}/cudapolicy/task-prolog",
                  "share/bash-completion/completions/cudapolicy", "share/man/man1/cudapolicy.1",
                  "share/man/man5/cudapolicy.ini.5", "share/man/man7/libcudapolicy.7", *policies]
        plugin = f"{option('libdir')}/slurm/spank_cudapolicy.so"
        files = sorted(name for name, what in tree(prefix).items() if what != "folder")
        self.assertEqual([name for name in files if name != plugin], sorted(wanted))

    def test_modes_are_those_of_programs_and_of_files(self):
        prefix = self.install()
        for top, _, files in os.walk(prefix):
            for name in files:
                runs = name in ("cudapolicy", "task-prolog") and "completions" not in top
                mode = os.stat(os.path.join(top, name)).st_mode & 0o777
                if not name.endswith(".so"):
                    self.assertEqual(mode, 0o755 if runs else 0o644, name)

    def test_no_path_of_the_build_is_in_it(self):
        prefix = self.install()
        for name in ("bin/cudapolicy", f"{option('libdir')}/libcudapolicy.so"):
            text = self.succeeds("readelf", "-Wd", os.path.join(prefix, name)).stdout
            self.assertNotRegex(text, r"\((RPATH|RUNPATH)\)")


class Moved(Installation):
    """The installed tree at a place that the build has never heard of."""

    def setUp(self):
        super().setUp()
        prefix = self.install()
        self.moved = self.path("elsewhere")
        os.rename(prefix, self.moved)
        self.cudapolicy = os.path.join(self.moved, "bin", "cudapolicy")
        self.library = os.path.join(self.moved, option("libdir"), "libcudapolicy.so")

    def test_the_command_finds_the_library_beside_it(self):
        shown = json.loads(self.succeeds(self.cudapolicy, "show", "--json").stdout)
        self.assertEqual(shown["library"]["path"], self.library)
        self.assertTrue(shown["library"]["version"].startswith(f"cudapolicy {shown['version']} ("))

    def test_it_does_so_by_way_of_a_link(self):
        os.symlink(self.cudapolicy, self.path("link"))
        shown = json.loads(self.succeeds(self.path("link"), "show", "--json").stdout)
        self.assertEqual(shown["library"]["path"], self.library)

    def test_the_command_finds_the_policies_beside_it_and_they_are_right(self):
        shown = json.loads(self.succeeds(self.cudapolicy, "show", "--policies", "--json").stdout)["policies"]
        names = [name for name in os.listdir(os.path.join(support.SOURCE, "policy")) if name.endswith(".ini")]
        self.assertEqual([entry["path"] for entry in shown],
                         [os.path.join(self.moved, "share", "cudapolicy", name) for name in sorted(names)])
        for entry in shown:
            self.assertRegex(entry["title"], r"^[A-Z0-9].*\.$")
            self.succeeds(self.cudapolicy, "check", "-q", entry["path"])

    def test_a_program_runs_under_a_policy(self):
        policy = self.write("p.ini", POLICY)
        report = self.path("job.json")
        self.succeeds(self.cudapolicy, "run", "-p", policy, "--report", report, "--", PROGRAM, "launch",
                      "kernel", "1", "4", LD_LIBRARY_PATH=DOUBLES)
        with open(report, encoding="utf-8") as file:
            job = json.load(file)
        rule, = job["summary"]["rules"]
        self.assertEqual(rule["launch_outcomes"]["applied"], 1)
        version = job["processes"][0]["facts"]["cudapolicy"]["version"]
        self.assertEqual(self.succeeds(self.cudapolicy, "--version").stdout, f"cudapolicy {version}\n")

    def test_the_task_prolog_preloads_the_library_of_its_own_tree(self):
        policy = self.write("p.ini", POLICY)
        prolog = os.path.join(self.moved, option("libexecdir"), "cudapolicy", "task-prolog")
        said = self.succeeds(prolog, SLURM_CUDA_POLICY=policy, LD_PRELOAD=None).stdout
        self.assertIn(f"export LD_PRELOAD={self.library}\n", said)

    def test_the_completion_does_not_depend_on_the_place(self):
        path = os.path.join(self.moved, "share", "bash-completion", "completions", "cudapolicy")
        with open(path, encoding="utf-8") as file:
            text = file.read()
        self.assertNotIn(BUILD, text)
        self.assertNotIn(PREFIX + "/", text)


class Uninstall(Installation):
    def test_nothing_is_left(self):
        self.install()
        self.assertRegex(self.uninstall(), r"^\d\d files removed\n$")
        self.assertFalse(os.path.exists(self.stage), tree(self.stage))

    def test_nothing_is_left_after_several_installations(self):
        self.install()
        self.install()
        self.uninstall()
        self.assertFalse(os.path.exists(self.stage), tree(self.stage))

    def test_what_others_put_there_stays(self):
        prefix = self.stage + PREFIX
        for name in ("bin/other", "share/cudapolicy/site.ini", "share/man/man1/other.1"):
            os.makedirs(os.path.dirname(os.path.join(prefix, name)), exist_ok=True)
            with open(os.path.join(prefix, name), "w", encoding="ascii") as file:
                file.write(name)
        before = tree(self.stage)
        self.install()
        self.assertNotEqual(tree(self.stage), before)
        self.uninstall()
        self.assertEqual(tree(self.stage), before)

    def test_mesons_own_way_leaves_nothing_after_one_installation(self):
        self.install()
        subprocess.run([*MESON, "--internal", "uninstall"], cwd=BUILD, check=True,
                       stdout=subprocess.DEVNULL, timeout=support.TIME_LIMIT)
        self.assertFalse(os.path.exists(self.stage), tree(self.stage))

    def test_a_folder_that_is_no_build_is_a_mistake(self):
        result = subprocess.run([os.path.join(support.SOURCE, "tools", "uninstall"), self.folder],
                                check=False, stderr=subprocess.PIPE, text=True)
        self.assertEqual(result.returncode, 1)
        self.assertIn("is no build folder", result.stderr)


if __name__ == "__main__":
    support.main()
