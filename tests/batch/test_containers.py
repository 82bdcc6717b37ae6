# SPDX-License-Identifier: Apache-2.0
"""Containers, as far as bubblewrap makes them from this machine's own files: what has to be mounted, which
variables have to be passed, and what users see where something is missing. docs/containers.md has the
recipes for the usual tools."""

import glob
import os
import shutil
import subprocess
import sys
import unittest

import launch_case
from launch_case import COMMAND, DOUBLES, LAUNCH, LIBRARY, LOST, NOT_SEEN, PROGRAM

BWRAP = shutil.which("bwrap")
MUSL = shutil.which("musl-gcc")


def can_contain():
    if BWRAP is None:
        return False
    return subprocess.run([BWRAP, "--ro-bind", "/", "/", "true"], stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL, timeout=60, check=False).returncode == 0


class Container(launch_case.Case):
    """A root with this machine's programs, the program under test and its driver: no more."""

    # Where things are inside.
    INSIDE = ["/image/program", *LAUNCH[1:]]

    def setUp(self):
        super().setUp()
        # The paths of the loader and of the C library, also where /lib is no link.
        self.image = [BWRAP, "--die-with-parent", "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp",
                      "--ro-bind", "/usr", "/usr", "--ro-bind", PROGRAM, "/image/program",
                      "--ro-bind", DOUBLES, "/image/driver"]
        for path in ("/bin", "/lib", "/lib64"):
            if os.path.islink(path):
                self.image += ["--symlink", os.readlink(path), path]
            elif os.path.isdir(path):
                self.image += ["--ro-bind", path, path]
        self.image += ["--setenv", "LD_LIBRARY_PATH", "/image/driver"]
        os.mkdir(self.path("reports"))
        # As they are named in variables of the job.
        self.policy = os.path.join(os.path.realpath(self.folder), "policy.ini")
        self.reports = os.path.join(os.path.realpath(self.folder), "reports")
        self.library = os.path.realpath(LIBRARY)

    def contained(self, *mounts, inside=None, **options):
        """run around a container that has these paths of the host in their places."""
        image = list(self.image)
        for path in mounts:
            image += ["--bind" if path == self.reports else "--ro-bind", path, path]
        return self.run_under_policy(*image, *(inside or self.INSIDE),
                                     options=["--report-folder", self.reports], **options)

    def all_mounts(self):
        return self.library, self.policy, self.reports


@unittest.skipUnless(can_contain(), "bubblewrap is not installed, or may make no containers here")
class Mounts(Container):
    def test_library_policy_and_report_folder_are_enough(self):
        result = self.contained(*self.all_mounts())
        self.assert_reached(result)
        self.assertEqual(len(glob.glob(self.reports + "/*/*.json")), 1)

    def test_numbers_of_a_process_that_dies_in_a_container_are_there(self):
        result = self.contained(*self.all_mounts(), inside=[*self.INSIDE, "abort"])
        self.assertIn("did not end in good order", result.stderr)
        self.assertRegex(result.stderr, r"(?m)^kernel all +1 +3 +")

    def test_a_library_that_is_not_mounted_is_told_by_the_loader_and_by_run(self):
        result = self.contained(self.policy, self.reports)
        self.assert_lost(result)
        self.assertIn(f"object '{self.library}' from LD_PRELOAD cannot be preloaded", result.stderr)

    def test_a_policy_that_is_not_mounted_is_told_by_the_library(self):
        result = self.contained(self.library, self.reports)
        self.assertIn("cannot open the policy: no such file", result.stderr)
        self.assertIn("the program runs without a policy", result.stderr)
        strict = self.run_under_policy(*self.image, "--ro-bind", self.library, self.library, *self.INSIDE,
                                       options=["--strict"])
        self.assertEqual(strict.returncode, 78, strict)

    def test_a_report_folder_that_is_not_mounted_is_told_by_the_library(self):
        result = self.contained(self.library, self.policy)
        self.assertEqual(result.returncode, 0, result)
        self.assertIn("cannot be written: No such file or directory", result.stderr)
        self.assertIn(NOT_SEEN, result.stderr)

    def test_variables_that_a_container_does_not_take_over_are_missed(self):
        self.image += ["--unsetenv", "LD_PRELOAD"]
        self.assert_lost(self.contained(*self.all_mounts()))

    def test_variables_can_be_set_for_the_container_alone(self):
        """Without run: the recipe for whoever writes the container's command line."""
        self.write("policy.ini", launch_case.POLICY)
        mounts = []
        for path in self.all_mounts():
            mounts += ["--bind", path, path]
        result = self.alone(*self.image, *mounts, "--setenv", "LD_PRELOAD", self.library,
                            "--setenv", "CUDAPOLICY_FILE", self.policy,
                            "--setenv", "CUDAPOLICY_REPORT", self.reports + "/%h-%p.json", *self.INSIDE)
        self.assertEqual((result.returncode, result.stderr), (0, ""), result)
        report = self.command("report", *glob.glob(self.reports + "/*.json"))
        self.assertIn("3 launches of 1 kernel in 1 process", report.stdout)

    def test_run_inside_needs_nothing_from_outside(self):
        policy = self.write("policy.ini", launch_case.POLICY)
        inside = [*self.image, "--ro-bind", os.path.realpath(COMMAND), "/image/cudapolicy",
                  "--ro-bind", self.library, "/image/libcudapolicy.so", "--ro-bind", policy, "/image/policy.ini",
                  "--setenv", "TMPDIR", "/tmp"]
        self.assert_reached(self.alone(*inside, "/image/cudapolicy", "run", "-p", "/image/policy.ini",
                                       "--library", "/image/libcudapolicy.so", "--", *self.INSIDE))

    def test_a_container_of_its_own_processes_is_told_apart_from_another(self):
        """Both have a process 2 of one host's name."""
        self.image += ["--unshare-pid"]
        result = self.contained(*self.all_mounts(), inside=["sh", "-c", '"$@"', "sh", *self.INSIDE])
        self.assert_reached(result)
        again = self.run_under_policy("sh", "-c", '"$@"; "$@"', "sh", *self.image, "--bind", self.folder,
                                      self.folder, "--ro-bind", self.library, self.library, *self.INSIDE)
        self.assert_reached(again, 2)


@unittest.skipUnless(can_contain() and MUSL, "bubblewrap or musl-gcc is not installed, or bubblewrap may make "
                                             "no containers here")
class Musl(Container):
    """An image of musl: nothing starts in it under the preload."""

    def setUp(self):
        super().setUp()
        source = self.write("hello.c", '#include <stdio.h>\nint main(void) { return puts("hello") < 0; }\n')
        subprocess.run([MUSL, "-o", self.path("hello"), source], check=True, timeout=60)
        loader, = glob.glob("/lib/ld-musl-*.so.1")
        self.image = [BWRAP, "--die-with-parent", "--ro-bind", os.path.realpath(loader), loader,
                      "--ro-bind", self.path("hello"), "/hello"]

    def test_its_programs_run_without_the_preload(self):
        self.assertEqual(self.alone(*self.image, "/hello").stdout, "hello\n")

    def test_its_programs_fail_with_the_preload(self):
        result = self.contained(*self.all_mounts(), inside=["/hello"])
        self.assertEqual((result.returncode, result.stdout), (127, ""), result)
        self.assertIn("Error relocating", result.stderr)
        self.assertIn("symbol not found", result.stderr)

    def test_its_programs_run_where_the_library_is_not_mounted(self):
        """musl's loader passes over what it cannot find, and says nothing."""
        result = self.contained(self.policy, self.reports, inside=["/hello"])
        self.assertEqual((result.returncode, result.stdout), (0, "hello\n"), result)
        self.assertNotIn("LD_PRELOAD", result.stderr.split("cudapolicy: ")[0])
        self.assertIn(NOT_SEEN, result.stderr)


class OldLibc(launch_case.Case):
    """A C library without a version that a preload needs, as one before 2.28 is for ours; here the library is
    one that needs a version of the future."""

    def test_nothing_starts_and_the_loader_names_the_version(self):
        compiler = shutil.which("cc")
        if compiler is None:
            self.skipTest("no compiler")
        self.write("libc.c", "int newer(void); int newer(void) { return 0; }\n")
        self.write("libc.map", "GLIBC_2.99 { global: newer; local: *; };\n")
        self.write("needs.c", "int newer(void); int needs(void); int needs(void) { return newer(); }\n")
        for command in (["-Wl,-soname,libc.so.6", "-Wl,--version-script=libc.map", "-o", "libc.so", "libc.c"],
                        ["-o", "needs.so", "needs.c", "libc.so"]):
            subprocess.run([compiler, "-shared", "-fPIC", "-nostdlib", *command], cwd=self.folder, check=True,
                           timeout=60)
        result = self.alone("/usr/bin/env", f"LD_PRELOAD={self.path('needs.so')}", "true")
        self.assertEqual(result.returncode, 1, result)
        self.assertRegex(result.stderr, r"version `GLIBC_2\.99' not found \(required by .*needs\.so\)")


if __name__ == "__main__":
    sys.exit(launch_case.main())
