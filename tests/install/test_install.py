# SPDX-License-Identifier: Apache-2.0
"""What `meson install` puts where; that the tree can be moved; that nothing of it is left afterwards."""

import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile

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


def succeeds(*command, cwd=None, **changes):
    result = subprocess.run(command, check=False, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True, timeout=support.TIME_LIMIT,
                            cwd=cwd, env=support.environment(**changes))
    if result.returncode != 0:
        raise AssertionError(result)
    return result


def install(stage, kept_log=None):
    """Installs into this folder; the folder there that stands for the prefix. kept_log: where meson's record
    of it goes."""
    log = None
    if os.path.exists(LOG):
        with open(LOG, "rb") as file:
            log = file.read()
    try:
        succeeds(*MESON, "install", "-C", BUILD, "--no-rebuild", "--quiet", "--destdir", stage)
        if kept_log is not None:
            shutil.copy(LOG, kept_log)
    finally:
        # `ninja uninstall` goes by this file, and is about the user's own installation.
        if log is not None:
            with open(LOG, "wb") as file:
                file.write(log)
        elif os.path.exists(LOG):
            os.unlink(LOG)
    return stage + PREFIX


class Installation(support.Case):
    def setUp(self):
        super().setUp()
        self.stage = self.path("stage")

    def uninstall(self):
        return succeeds(os.path.join(support.SOURCE, "tools", "uninstall"), "--destdir", self.stage,
                        BUILD).stdout


class Contents(support.Case):
    @classmethod
    def setUpClass(cls):
        cls.top = tempfile.mkdtemp(prefix="cudapolicy-install-")
        cls.addClassCleanup(shutil.rmtree, cls.top)
        cls.prefix = install(os.path.join(cls.top, "stage"))

    def test_everything_that_a_user_needs_is_there_and_nothing_else(self):
        policies = [os.path.join("share/cudapolicy", name)
                    for name in os.listdir(os.path.join(support.SOURCE, "policy"))
                    if name.endswith((".ini", ".md"))]
        wanted = ["bin/cudapolicy", f"{option('libdir')}/libcudapolicy.so",
                  f"{option('libexecdir')}/cudapolicy/task-prolog",
                  "share/bash-completion/completions/cudapolicy", "share/man/man1/cudapolicy.1",
                  "share/man/man5/cudapolicy.ini.5", "share/man/man7/libcudapolicy.7", *policies]
        plugin = f"{option('libdir')}/slurm/spank_cudapolicy.so"
        files = sorted(name for name, what in tree(self.prefix).items() if what != "folder")
        self.assertEqual([name for name in files if name != plugin], sorted(wanted))

    def test_modes_are_those_of_programs_and_of_files(self):
        for top, _, files in os.walk(self.prefix):
            for name in files:
                runs = name in ("cudapolicy", "task-prolog") and "completions" not in top
                mode = os.stat(os.path.join(top, name)).st_mode & 0o777
                if not name.endswith(".so"):
                    self.assertEqual(mode, 0o755 if runs else 0o644, name)

    def test_no_path_of_the_build_is_in_it(self):
        for name in ("bin/cudapolicy", f"{option('libdir')}/libcudapolicy.so"):
            text = succeeds("readelf", "-Wd", os.path.join(self.prefix, name)).stdout
            self.assertNotRegex(text, r"\((RPATH|RUNPATH)\)")


class Moved(support.Case):
    """The installed tree at a place that the build has never heard of."""

    @classmethod
    def setUpClass(cls):
        cls.top = tempfile.mkdtemp(prefix="cudapolicy-install-")
        cls.addClassCleanup(shutil.rmtree, cls.top)
        cls.moved = os.path.join(cls.top, "elsewhere")
        os.rename(install(os.path.join(cls.top, "stage")), cls.moved)
        cls.cudapolicy = os.path.join(cls.moved, "bin", "cudapolicy")
        cls.library = os.path.join(cls.moved, option("libdir"), "libcudapolicy.so")

    def test_the_command_finds_the_library_beside_it(self):
        shown = json.loads(succeeds(self.cudapolicy, "show", "--json").stdout)
        self.assertEqual(shown["library"]["path"], self.library)
        self.assertTrue(shown["library"]["version"].startswith(f"cudapolicy {shown['version']} ("))

    def test_it_does_so_by_way_of_a_link(self):
        os.symlink(self.cudapolicy, self.path("link"))
        shown = json.loads(succeeds(self.path("link"), "show", "--json").stdout)
        self.assertEqual(shown["library"]["path"], self.library)

    def test_the_command_finds_the_policies_beside_it_and_they_are_right(self):
        shown = json.loads(succeeds(self.cudapolicy, "show", "--policies", "--json").stdout)["policies"]
        names = [name for name in os.listdir(os.path.join(support.SOURCE, "policy")) if name.endswith(".ini")]
        self.assertEqual([entry["path"] for entry in shown],
                         [os.path.join(self.moved, "share", "cudapolicy", name) for name in sorted(names)])
        for entry in shown:
            self.assertRegex(entry["title"], r"^[A-Z0-9].*\.$")
            succeeds(self.cudapolicy, "check", "-q", entry["path"])

    def test_a_program_runs_under_a_policy(self):
        policy = self.write("p.ini", POLICY)
        report = self.path("job.json")
        succeeds(self.cudapolicy, "run", "-p", policy, "--report", report, "--", PROGRAM, "launch",
                      "kernel", "1", "4", LD_LIBRARY_PATH=DOUBLES)
        with open(report, encoding="utf-8") as file:
            job = json.load(file)
        rule, = job["summary"]["rules"]
        self.assertEqual(rule["launch_outcomes"]["applied"], 1)
        version = job["processes"][0]["facts"]["cudapolicy"]["version"]
        self.assertEqual(succeeds(self.cudapolicy, "--version").stdout, f"cudapolicy {version}\n")

    def test_the_task_prolog_preloads_the_library_of_its_own_tree(self):
        policy = self.write("p.ini", POLICY)
        prolog = os.path.join(self.moved, option("libexecdir"), "cudapolicy", "task-prolog")
        said = succeeds(prolog, SLURM_CUDA_POLICY=policy, LD_PRELOAD=None).stdout
        self.assertIn(f"export LD_PRELOAD={self.library}\n", said)

    def test_the_task_prolog_asks_the_command_of_its_own_tree_for_variables(self):
        policy = self.write("p.ini", POLICY + "[env]\nNCCL_PROTO = LL\n")
        prolog = os.path.join(self.moved, option("libexecdir"), "cudapolicy", "task-prolog")
        said = succeeds(prolog, SLURM_CUDA_POLICY=policy, LD_PRELOAD=None, NCCL_PROTO=None).stdout
        self.assertIn("export NCCL_PROTO=LL\n", said)

    def test_the_plugin_finds_library_and_command_of_its_own_tree_by_way_of_a_link_too(self):
        # The plugin itself needs Slurm to be loaded; this is the part of it that looks.
        folder = os.path.join(self.moved, option("libdir"), "slurm")
        os.makedirs(folder, exist_ok=True)
        part = os.path.join(folder, "beside.so")
        shutil.copy(os.environ["CUDAPOLICY_TEST_BESIDE"], part)
        os.symlink(part, self.path("linked.so"))
        script = ("import ctypes, sys; part = ctypes.CDLL(sys.argv[1])\n"
                  "for look in (part.slurm_own_library, part.slurm_own_command):\n"
                  "    look.restype = ctypes.c_char_p; print(look().decode())\n")
        for path in (part, self.path("linked.so")):
            self.assertEqual(succeeds(sys.executable, "-c", script, path).stdout.splitlines(),
                             [self.library, self.cudapolicy])
        # Where nothing lies beside it, the places of the build are taken.
        os.makedirs(self.path("a/b"))
        alone = shutil.copy(part, self.path("a/b/alone.so"))
        self.assertEqual(succeeds(sys.executable, "-c", script, alone).stdout.splitlines(),
                         [os.path.join(PREFIX, option("libdir"), "libcudapolicy.so"),
                          os.path.join(PREFIX, option("bindir"), "cudapolicy")])
        os.unlink(part)

    def test_the_completion_does_not_depend_on_the_place(self):
        path = os.path.join(self.moved, "share", "bash-completion", "completions", "cudapolicy")
        with open(path, encoding="utf-8") as file:
            text = file.read()
        self.assertNotIn(BUILD, text)
        self.assertNotIn(PREFIX + "/", text)


class Uninstall(Installation):
    def test_nothing_is_left(self):
        install(self.stage)
        self.assertRegex(self.uninstall(), r"^\d\d files removed\n$")
        self.assertFalse(os.path.exists(self.stage), tree(self.stage))

    def test_nothing_is_left_after_several_installations(self):
        install(self.stage)
        install(self.stage)
        self.uninstall()
        self.assertFalse(os.path.exists(self.stage), tree(self.stage))

    def test_what_others_put_there_stays(self):
        prefix = self.stage + PREFIX
        for name in ("bin/other", "share/cudapolicy/site.ini", "share/man/man1/other.1"):
            os.makedirs(os.path.dirname(os.path.join(prefix, name)), exist_ok=True)
            with open(os.path.join(prefix, name), "w", encoding="ascii") as file:
                file.write(name)
        before = tree(self.stage)
        install(self.stage)
        self.assertNotEqual(tree(self.stage), before)
        self.uninstall()
        self.assertEqual(tree(self.stage), before)

    def test_mesons_own_way_leaves_nothing_after_one_installation(self):
        log = os.path.join(self.folder, "meson-logs", "install-log.txt")
        os.mkdir(os.path.dirname(log))
        install(self.stage, kept_log=log)
        succeeds(*MESON, "--internal", "uninstall", cwd=self.folder)
        self.assertFalse(os.path.exists(self.stage), tree(self.stage))

    def test_folders_that_a_system_has_anyhow_stay_though_empty(self):
        path = os.path.join(support.SOURCE, "tools", "uninstall")
        program = {"__name__": "uninstall"}
        with open(path, encoding="utf-8") as file:
            exec(compile(file.read(), path, "exec"), program)  # pylint: disable=exec-used
        keep = program["kept"]("/usr/local", "lib/x86_64-linux-gnu", "")
        self.assertLessEqual({"/", "/usr/local", "/usr/local/bin", "/usr/local/lib/x86_64-linux-gnu",
                              "/usr/local/share/man/man5"}, keep)
        self.assertNotIn("/usr/local/share/cudapolicy", keep)
        self.assertEqual(program["kept"]("/opt/cudapolicy", "lib", ""), {"/", "/opt"})
        folder = self.path("opt/one/two")
        os.makedirs(folder)
        program["remove_empty"](folder, {self.path("opt")})
        self.assertEqual(os.listdir(self.folder), ["opt"])
        self.assertEqual(os.listdir(self.path("opt")), [])

    def test_a_folder_that_is_no_build_is_a_mistake(self):
        result = subprocess.run([os.path.join(support.SOURCE, "tools", "uninstall"), self.folder],
                                check=False, stderr=subprocess.PIPE, text=True)
        self.assertEqual(result.returncode, 1)
        self.assertIn("is no build folder", result.stderr)


if __name__ == "__main__":
    support.main()
