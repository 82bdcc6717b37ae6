# SPDX-License-Identifier: Apache-2.0
"""The Debian packages: built from the source tree, installed in a root of their own with what they depend on
and nothing else, used there, and purged.

The root is made of packages that this machine has, so that no network is needed: their files are copied, and
their entries of dpkg's database. That takes root, and the machine to be a Debian.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile

import support

DOUBLES = os.environ["CUDAPOLICY_TEST_DOUBLES"]
PROGRAM = os.environ["CUDAPOLICY_TEST_PROGRAM"]
COMPLETION = "usr/share/bash-completion/completions/cudapolicy"

# What dpkg itself and a shell take, besides what the packages depend on.
BASE = ("base-files", "base-passwd", "coreutils", "dash", "dpkg", "tar", "sed", "grep", "libc-bin", "diffutils")

POLICY = "/usr/share/cudapolicy/communication-to-remote-domain.ini"

built = None  # the folder of the packages


def missing():
    """Why nothing can be built here, or None."""
    for program, package in (("dpkg-buildpackage", "dpkg-dev"), ("dh", "debhelper")):
        if shutil.which(program) is None:
            return f"no {program} (package {package})"
    if not os.path.exists("/usr/include/slurm/spank.h"):
        return "no headers of Slurm"
    meson = shutil.which("meson")
    if meson is None or subprocess.run([meson, "--version"], check=True, stdout=subprocess.PIPE,
                                       text=True).stdout.startswith("0."):
        return "no meson 1.0 in the PATH, where debhelper looks for it"
    return None


def build():
    global built
    if built is None:
        built = tempfile.mkdtemp(prefix="cudapolicy-package-")
        with open(os.path.join(built, "log"), "w", encoding="utf-8") as log:
            status = subprocess.run(
                [os.path.join(support.SOURCE, "tools", "package"), built], check=False, stdin=subprocess.DEVNULL,
                stdout=log, stderr=subprocess.STDOUT, timeout=360,
                env=support.environment(CUDA_INCLUDE=os.environ["CUDAPOLICY_TEST_CUDA_INCLUDE"],
                                        LD_LIBRARY_PATH=None, PYTHONPATH=None, MALLOC_PERTURB_=None,
                                        DEB_BUILD_OPTIONS="noautodbgsym")).returncode
        if status != 0:
            with open(os.path.join(built, "log"), encoding="utf-8") as log:
                sys.stderr.write("".join(log.readlines()[-60:]))
            raise AssertionError("tools/package failed")
    return built


def package(name):
    file, = [file for file in os.listdir(build()) if file.startswith(name + "_") and file.endswith(".deb")]
    return os.path.join(built, file)


def field(name, what):
    return subprocess.run(["dpkg-deb", "-f", package(name), what], check=True, stdout=subprocess.PIPE,
                          text=True).stdout.strip()


class Package(support.Case):
    def setUp(self):
        super().setUp()
        reason = missing()
        if reason is not None:
            self.skipTest(reason)
        build()

    def unpacked(self, name):
        folder = self.path(name)
        subprocess.run(["dpkg-deb", "-x", package(name), folder], check=True)
        return folder

    def library(self):
        folder = os.path.join(self.unpacked("cudapolicy"), "usr", "lib")
        path, = [os.path.join(top, "libcudapolicy.so") for top, _, files in os.walk(folder)
                 if "libcudapolicy.so" in files]
        return path


class Built(Package):
    def test_command_and_plugin_are_packages_of_their_own(self):
        files = [os.path.join(top, name)[len(self.folder):] for package_name in ("cudapolicy", "cudapolicy-slurm")
                 for top, _, names in os.walk(self.unpacked(package_name)) for name in names]
        for path in ("usr/bin/cudapolicy", COMPLETION, "usr/libexec/cudapolicy/task-prolog",
                     "usr/share/man/man1/cudapolicy.1.gz", "usr/share/man/man5/cudapolicy.ini.5.gz",
                     "usr/share/man/man7/libcudapolicy.7.gz", POLICY[1:]):
            self.assertIn(f"/cudapolicy/{path}", files)
        plugins = [path for path in files if path.endswith("/slurm-wlm/spank_cudapolicy.so")]
        self.assertEqual([path.split("/")[1] for path in plugins], ["cudapolicy-slurm"])

    def test_the_plugin_asks_for_the_slurm_it_was_built_for(self):
        release = re.search(r"slurm-wlm-basic-plugins \(>= (\d\d\.\d\d)\)", field("cudapolicy-slurm", "Depends"))
        with open("/usr/include/slurm/slurm_version.h", encoding="ascii") as file:
            number = int(re.search(r"SLURM_VERSION_NUMBER 0x(\w+)", file.read()).group(1), 16)
        self.assertEqual(release.group(1), f"{number >> 16}.{number >> 8 & 255:02}")
        self.assertIn("cudapolicy (= ", field("cudapolicy-slurm", "Depends"))

    def test_the_version_is_that_of_the_command(self):
        version = self.command("--version").stdout.split()[1]
        for name in ("cudapolicy", "cudapolicy-slurm"):
            self.assertEqual(field(name, "Version"), version + "-1")

    def test_the_library_still_needs_an_old_c_library_alone(self):
        """The distribution's own compiler flags must not undo that."""
        symbols = subprocess.run(["readelf", "-W", "--dyn-syms", self.library()], check=True,
                                 stdout=subprocess.PIPE, text=True).stdout
        needed = re.findall(r" UND \S+@GLIBC_(\d+)\.(\d+)", symbols)
        self.assertNotEqual(needed, [])
        self.assertLessEqual(max((int(major), int(minor)) for major, minor in needed), (2, 31))

    def test_the_license_of_the_command_as_a_binary_is_said(self):
        path = os.path.join(self.unpacked("cudapolicy"), "usr/share/doc/cudapolicy/copyright")
        with open(path, encoding="utf-8") as file:
            text = file.read()
        self.assertIn("License: GPL-3+", text)
        self.assertIn("GNU Scientific Library", text)
        for source in ("libinih", "libiberty", "jansson", "libmd"):
            self.assertIn(f"{source} (= ", field("cudapolicy", "Built-Using"))

    def test_lintian_has_nothing_to_say(self):
        if shutil.which("lintian") is None:
            self.skipTest("no lintian")
        changes, = [name for name in os.listdir(build()) if name.endswith(".changes")]
        result = subprocess.run(["lintian", "--fail-on", "error,warning", "--allow-root",
                                 # It is not made for Debian's own archive.
                                 "--suppress-tags", "initial-upload-closes-no-bugs", changes], cwd=built,
                                check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.assertEqual((result.returncode, result.stdout), (0, ""))


class Root:
    """A file system with the packages on which these depend, as dpkg's database knows them."""

    def __init__(self, folder):
        self.folder = folder
        os.makedirs(folder)
        self.merge_folders()
        names = self.closure([[name] for name in BASE] + self.wanted(field("cudapolicy", "Depends")))
        self.copy(names)
        self.enter(names)
        for path in ("proc", "dev", "tmp", "root", "var/lib/dpkg/updates", "var/lib/dpkg/triggers", "var/log"):
            os.makedirs(os.path.join(folder, path), exist_ok=True)
        with open(os.path.join(folder, "dev", "null"), "wb"):
            pass
        subprocess.run(["mknod", "-m", "666", os.path.join(folder, "dev", "zero"), "c", "1", "5"], check=False,
                       stderr=subprocess.DEVNULL)

    def merge_folders(self):
        """/bin is a link where it is one here."""
        for name in ("bin", "sbin", "lib", "lib32", "lib64", "libx32"):
            if os.path.islink("/" + name):
                os.symlink(os.readlink("/" + name), os.path.join(self.folder, name))
                os.makedirs(os.path.join(self.folder, os.readlink("/" + name)), exist_ok=True)

    @staticmethod
    def wanted(text):
        """The dependencies of a field, each with its alternatives."""
        groups = [group.strip() for group in text.split(",") if group.strip()]
        return [[re.split(r"[ (:]", choice.strip())[0] for choice in group.split("|")] for group in groups]

    @staticmethod
    def query(name, *fields):
        """Fields of an installed package; None: it is not installed."""
        form = "${db:Status-Abbrev}\n" + "".join("${" + one + "}\n" for one in fields)
        result = subprocess.run(["dpkg-query", "-W", "-f", form, name], check=False, stdout=subprocess.PIPE,
                                stderr=subprocess.DEVNULL, text=True)
        lines = result.stdout.split("\n")
        return lines[1:] if lines[0].startswith("ii") else None

    def closure(self, choices):
        """dpkg's names of these packages, the first alternative of each that is here, and of all that they
        depend on."""
        seen, found = set(), set()
        queue = list(choices)
        while queue:
            for name in queue.pop():
                fields = self.query(name, "binary:Package", "Depends", "Pre-Depends")
                if fields is not None:
                    break
            else:
                continue  # provided by another package; dpkg will say when it is not
            if name not in seen:
                seen.add(name)
                found.add(fields[0])
                queue += self.wanted(fields[1]) + self.wanted(fields[2])
        return sorted(found)

    def copy(self, names):
        listed = subprocess.run(["dpkg-query", "-L", *names], check=True, stdout=subprocess.PIPE, text=True).stdout
        files = sorted({line for line in listed.splitlines()
                        if line.startswith("/") and (os.path.islink(line) or not os.path.isdir(line)) and
                        os.path.lexists(line) and not line.startswith("/usr/share/")})
        archive = subprocess.Popen(["tar", "-C", "/", "--no-recursion", "-cf", "-", "-T", "-"],
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        unpack = subprocess.Popen(["tar", "-C", self.folder, "--keep-directory-symlink", "-xf", "-"],
                                  stdin=archive.stdout)
        archive.stdout.close()
        archive.stdin.write("\n".join(name.lstrip("/") for name in files).encode())
        archive.stdin.close()
        if unpack.wait() != 0:
            raise AssertionError("tar failed")
        archive.wait()
        # dpkg wants these two to be there for every root.
        for name in ("/etc/passwd", "/etc/group"):
            shutil.copy(name, self.folder + name)

    def enter(self, names):
        info = os.path.join(self.folder, "var/lib/dpkg/info")
        os.makedirs(info)
        with open(os.path.join(self.folder, "var/lib/dpkg/status"), "w", encoding="utf-8") as status:
            for name in names:
                status.write(subprocess.run(["dpkg-query", "-s", name], check=True, stdout=subprocess.PIPE,
                                            text=True).stdout + "\n")
                with open(os.path.join(info, f"{name}.list"), "w", encoding="utf-8") as file:
                    file.write("/.\n")

    def run(self, *command, **environment):
        return subprocess.run(["chroot", self.folder, *command], check=False, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60,
                              env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", **environment})

    def tree(self):
        """Everything but what dpkg and ldconfig write of themselves."""
        found = {}
        for top, folders, files in os.walk(self.folder):
            for name in folders + files:
                path = os.path.join(top, name)
                short = path[len(self.folder):]
                if short.startswith(("/var/log/", "/etc/ld.so.cache", "/var/cache/ldconfig", "/tmp/",
                                     "/var/lib/dpkg/status", "/var/lib/dpkg/lock", "/var/lib/dpkg/triggers",
                                     "/var/lib/dpkg/info/format")):
                    continue
                status = os.lstat(path)
                found[short] = (oct(status.st_mode), status.st_size if name in files else None)
        return found


class Installed(Package):
    def setUp(self):
        super().setUp()
        if os.getuid() != 0:
            self.skipTest("only root can make a root of its own")
        self.root = Root(self.path("root"))
        if self.root.run("true").returncode != 0:
            self.skipTest(f"cannot chroot: {self.root.run('true').stderr.strip()}")
        shutil.copy(package("cudapolicy"), self.path("root/tmp/cudapolicy.deb"))
        for name in os.listdir(DOUBLES):
            if name.startswith("libcuda.so") and os.path.isfile(os.path.join(DOUBLES, name)):
                shutil.copy(os.path.join(DOUBLES, name), self.path(f"root/tmp/{name}"))
        shutil.copy(PROGRAM, self.path("root/tmp/program"))
        self.write("root/tmp/p.ini", support.GOOD_POLICY.replace("priority = 0", "priority = -1"))

    def succeeds(self, *command, **environment):
        result = self.root.run(*command, **environment)
        self.assertEqual(result.returncode, 0, result)
        return result

    def test_it_installs_with_what_it_depends_on_works_and_goes_without_a_trace(self):
        before = self.root.tree()
        self.succeeds("dpkg", "-i", "/tmp/cudapolicy.deb")
        version = self.command("--version").stdout
        self.assertEqual(self.succeeds("cudapolicy", "--version").stdout, version)
        self.succeeds("cudapolicy", "check", "-q", POLICY)
        result = self.succeeds("cudapolicy", "run", "-p", "/tmp/p.ini", "--json", "--", "/tmp/program", "launch",
                               "kernel", "1", "4", LD_LIBRARY_PATH="/tmp", TMPDIR="/tmp")
        rule, = support.load_json(result.stderr)["rules"]
        self.assertEqual(rule["launch_outcomes"]["applied"], 1, result)
        self.assertIn("libcudapolicy.so: " + version.strip(), self.succeeds("cudapolicy", "show").stdout)
        # By its bare name too.
        self.succeeds("/tmp/program", "launch", "kernel", "1", "4", LD_PRELOAD="libcudapolicy.so",
                      LD_LIBRARY_PATH="/tmp", CUDAPOLICY_FILE=POLICY, CUDAPOLICY_STRICT="1")
        self.succeeds("dpkg", "--purge", "cudapolicy")
        self.assertEqual(self.root.tree(), before)

    def test_it_does_not_install_without_what_it_depends_on(self):
        status = self.path("root/var/lib/dpkg/status")
        with open(status, encoding="utf-8") as file:
            entries = file.read().split("\n\n")
        kept = [entry for entry in entries if not entry.startswith("Package: libgsl")]
        self.assertLess(len(kept), len(entries))
        with open(status, "w", encoding="utf-8") as file:
            file.write("\n\n".join(kept))
        result = self.root.run("dpkg", "-i", "/tmp/cudapolicy.deb")
        self.assertNotEqual(result.returncode, 0)
        self.assertIn("libgsl", result.stderr)

    def test_the_plugin_does_not_install_without_slurm(self):
        self.succeeds("dpkg", "-i", "/tmp/cudapolicy.deb")
        shutil.copy(package("cudapolicy-slurm"), self.path("root/tmp/plugin.deb"))
        result = self.root.run("dpkg", "-i", "/tmp/plugin.deb")
        self.assertNotEqual(result.returncode, 0)
        self.assertIn("slurm-wlm-basic-plugins", result.stderr)


if __name__ == "__main__":
    try:
        support.main()
    finally:
        if built is not None:
            shutil.rmtree(built)
