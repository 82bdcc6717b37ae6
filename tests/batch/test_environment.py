# SPDX-License-Identifier: Apache-2.0
"""Shells, other users, other hosts, modules and nested runs: where the preload goes on, where it is lost,
and that `cudapolicy run` notices. Nothing listens on a port: ssh talks to its server through a pipe."""

import os
import shutil
import struct
import subprocess
import sys
import unittest

import launch_case
from launch_case import COMMAND, DOUBLES, LAUNCH, LAUNCH_ANEW, LIBRARY, LOST, NOT_SEEN, PROGRAM, words

# Some library that does no harm in LD_PRELOAD.
OTHER_LIBRARY = "libdl.so.2"
MODULES = next((path for path in ("/usr/share/modules/init/sh", "/usr/share/lmod/lmod/init/sh")
                if os.path.exists(path)), None)
SSHD = shutil.which("sshd", path="/usr/sbin:/usr/local/sbin:" + os.environ.get("PATH", ""))


class Shells(launch_case.Case):
    def test_what_a_shell_starts_is_reached(self):
        for shell in ("sh", "bash"):
            self.assert_reached(self.run_under_policy(shell, "-c", f"{words(*LAUNCH)}; {words(*LAUNCH)}"), 2)
            self.assert_reached(self.run_under_policy(shell, "-c", f"exec {words(*LAUNCH)}"))
            self.assert_reached(self.run_under_policy(shell, "-c", f"{words(*LAUNCH)} & wait"))

    def test_a_login_shell_and_its_script_are_reached(self):
        script = self.write("script", f"#!/bin/sh\n{words(*LAUNCH)}\n")
        os.chmod(script, 0o755)
        self.assert_reached(self.run_under_policy(script))
        self.assert_reached(self.run_under_policy("bash", "-l", "-c", words(*LAUNCH_ANEW),
                                                  env={"HOME": self.folder}))

    def test_programs_that_start_others_change_nothing(self):
        for starter in (["env", "OTHER=1"], ["nice", "-n", "1"], ["nohup"], ["setsid", "-w"],
                        ["timeout", "60"], ["sh", "-c", 'echo x | xargs -I{} "$@"', "sh"]):
            self.assert_reached(self.run_under_policy(*starter, *LAUNCH))

    def test_an_environment_made_anew_is_noticed(self):
        self.assert_lost(self.run_under_policy("env", "-i", "/usr/bin/" + LAUNCH_ANEW[0], *LAUNCH_ANEW[1:]))
        self.assert_lost(self.run_under_policy("sh", "-c", f"unset LD_PRELOAD; {words(*LAUNCH)}"))

    def test_a_preload_that_a_script_sets_in_the_place_of_ours_is_noticed(self):
        self.assert_lost(self.run_under_policy("env", f"LD_PRELOAD={OTHER_LIBRARY}", *LAUNCH))

    def test_a_preload_that_a_script_adds_to_ours_is_not_in_the_way(self):
        for value in (f"{OTHER_LIBRARY}:$LD_PRELOAD", f"$LD_PRELOAD:{OTHER_LIBRARY}",
                      f"$LD_PRELOAD {OTHER_LIBRARY}"):
            self.assert_reached(self.run_under_policy(
                "sh", "-c", f'LD_PRELOAD="{value}" {words(*LAUNCH)}'))

    def test_where_one_process_is_reached_the_others_that_are_not_are_not_noticed(self):
        """A limit: what one process loads the driver for cannot be told from another."""
        result = self.run_under_policy("sh", "-c", f"{words(*LAUNCH)}; unset LD_PRELOAD; {words(*LAUNCH)}")
        self.assert_reached(result)
        self.assertNotIn(LOST, result.stderr)

    def test_programs_that_do_not_use_cuda_are_not_said_to_have_lost_the_preload(self):
        for command in (["true"], ["sh", "-c", "env -i true"], [PROGRAM, "launch", "kernel", "0", "1"]):
            result = self.run_under_policy(*command)
            self.assertIn(NOT_SEEN, result.stderr)
            self.assertNotIn(LOST, result.stderr)

    def test_the_status_stays_the_programs_where_the_preload_is_lost(self):
        self.assert_lost(self.run_under_policy("sh", "-c", f"unset LD_PRELOAD; {words(*LAUNCH)}; exit 7"), 7)

    def test_record_notices_as_well(self):
        result = self.alone(COMMAND, "record", "--library", LIBRARY, "--", "sh", "-c",
                            f"unset LD_PRELOAD; {words(*LAUNCH)}")
        self.assert_lost(result)


class Nested(launch_case.Case):
    def inner(self, *options):
        policy = self.write("inner.ini", launch_case.POLICY.replace("all", "inner"))
        return [COMMAND, "run", "-p", policy, "--library", LIBRARY, *options, "--", *LAUNCH]

    def test_the_inner_runs_policy_holds_and_the_outer_one_says_so(self):
        result = self.run_under_policy(*self.inner())
        self.assertEqual(result.returncode, 0, result)
        self.assertRegex(result.stderr, r"(?m)^kernel inner +1 +3 +")
        self.assertNotIn("kernel all", result.stderr)
        self.assertIn("cudapolicy run was started again inside", result.stderr)

    def test_the_library_is_preloaded_once(self):
        inner = self.inner("-q")
        result = self.run_under_policy(*inner[:inner.index("--") + 1], "sh", "-c", "echo $LD_PRELOAD")
        self.assertEqual(result.stdout, f"{os.path.realpath(LIBRARY)}\n")

    def test_the_outer_run_has_what_is_launched_outside_of_the_inner_one(self):
        result = self.run_under_policy("sh", "-c", f"{words(*self.inner('-q'))}; {words(*LAUNCH)}")
        self.assert_reached(result)


@unittest.skipUnless(shutil.which("sudo"), "sudo is not installed")
class Sudo(launch_case.Case):
    def setUp(self):
        super().setUp()
        if self.alone("sudo", "-n", "true").returncode != 0:
            self.skipTest("sudo asks for a password here")

    def test_what_sudo_starts_is_not_reached_and_that_is_noticed(self):
        result = self.run_under_policy("sudo", "-n", *LAUNCH_ANEW)
        self.assertEqual(result.returncode, 0, result)
        self.assertIn(NOT_SEEN, result.stderr)
        if os.getuid() == 0:  # otherwise it raises its privileges, and that is said
            self.assertIn(LOST, result.stderr)
        else:
            self.assertIn("is set-user-ID", result.stderr)

    def test_run_behind_sudo_reaches(self):
        policy = self.write("policy.ini", launch_case.POLICY)
        self.assert_reached(self.alone("sudo", "-n", "env", f"LD_LIBRARY_PATH={DOUBLES}", COMMAND, "run",
                                       "-p", policy, "--library", LIBRARY, "--", *LAUNCH))


@unittest.skipUnless(os.getuid() == 0 and shutil.which("su"), "only root becomes another user without a password")
class Su(launch_case.Case):
    def test_what_root_starts_by_su_is_reached_unless_it_is_a_login(self):
        self.assert_reached(self.run_under_policy("su", "-s", "/bin/sh", "root", "-c", words(*LAUNCH_ANEW)))
        self.assert_lost(self.run_under_policy("su", "-s", "/bin/sh", "-", "root", "-c", words(*LAUNCH_ANEW)))


class Privileged(launch_case.Case):
    def raised(self, mode, owner=0, group=0):
        if os.getuid() != 0:
            self.skipTest("only root can make a program of another user")
        if os.statvfs(self.folder).f_flag & os.ST_NOSUID:
            self.skipTest("set-user-ID has no meaning in this folder")
        path = self.path("raised")
        shutil.copy(PROGRAM, path)
        os.chown(path, owner, group)
        os.chmod(path, mode)
        return path

    def assert_said_before(self, result, text):
        """Said twice: before the program runs, and as the reason afterwards."""
        self.assertEqual(result.stderr.count(text), 2, result)
        self.assertLess(result.stderr.index(text), result.stderr.index(NOT_SEEN))

    def test_a_program_of_another_user_or_group_is_told_before_it_starts(self):
        for owner, group, mode in ((65534, 0, 0o4755), (0, 65534, 0o2755)):
            program = self.raised(mode, owner, group)
            self.assert_said_before(self.run_under_policy(program, "say", "hello"),
                                    "is set-user-ID or set-group-ID, or has capabilities")
            os.unlink(program)

    def test_the_users_own_set_user_id_program_is_reached(self):
        result = self.run_under_policy(self.raised(0o6755), *LAUNCH[1:])
        self.assert_reached(result)
        self.assertNotIn("set-user-ID", result.stderr)

    def test_what_a_set_user_id_program_starts_has_no_preload(self):
        if os.getuid() != 0 or not shutil.which("env"):
            self.skipTest("only root can make a program of another user")
        path = self.path("env")
        shutil.copy(shutil.which("env"), path)
        os.chown(path, 65534, 0)
        os.chmod(path, 0o4755)
        if os.statvfs(self.folder).f_flag & os.ST_NOSUID:
            self.skipTest("set-user-ID has no meaning in this folder")
        result = self.run_under_policy(path)
        self.assertNotIn("LD_PRELOAD", result.stdout)
        self.assertIn("CUDAPOLICY_FILE", result.stdout)

    def test_a_program_with_capabilities_is_told_to_an_ordinary_user(self):
        if os.getuid() != 0:
            self.skipTest("only root can give a file capabilities")
        # Version 2: effective, cap_net_raw.
        value = struct.pack("<5I", 0x02000001, 1 << 13, 0, 0, 0)
        path = self.path("capable")
        shutil.copy(shutil.which("true"), path)
        try:
            os.setxattr(path, "security.capability", value)
        except OSError as error:
            self.skipTest(f"no capabilities in this folder: {error.strerror}")
        self.assertNotIn("has capabilities", self.run_under_policy(path).stderr)
        os.chmod(self.folder, 0o777)

        def become_nobody():
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)
        try:
            result = self.run_under_policy(path, preexec_fn=become_nobody)
        except PermissionError:
            self.skipTest("an ordinary user cannot reach the build")
        if result.returncode not in (0,):
            self.skipTest("an ordinary user cannot reach the build")
        self.assert_said_before(result, "has capabilities")


class OtherPrograms(launch_case.Case):
    def test_a_static_program_is_told_before_it_starts_and_what_it_starts_is_reached(self):
        result = self.run_under_policy(launch_case.STATIC)
        self.assertEqual(result.stderr.count("is linked statically"), 2, result)
        result = self.run_under_policy(launch_case.STATIC, *LAUNCH)
        self.assertEqual(result.stderr.count("is linked statically"), 1, result)
        self.assert_reached(result)
        # What it starts without the preload is noticed, as with any other launcher.
        self.assert_lost(self.run_under_policy(launch_case.STATIC, shutil.which("env"), "-i",
                                               shutil.which("env"), *LAUNCH_ANEW[1:]))

    def test_quiet_does_not_tell(self):
        result = self.run_under_policy(launch_case.STATIC, options=["-q"])
        self.assertEqual((result.returncode, result.stderr), (0, ""), result)

    def test_a_script_is_judged_by_its_interpreter(self):
        script = self.write("script", f"#!{launch_case.STATIC} {shutil.which('true')}\n")
        os.chmod(script, 0o755)
        result = self.run_under_policy(script)
        self.assertIn(f"'{launch_case.STATIC}' is linked statically", result.stderr)

    def test_a_loader_that_is_run_as_a_program_preloads(self):
        with open(PROGRAM, "rb") as file:
            text = file.read(1 << 16)
        start = text.index(b"/lib")
        loader = text[start:text.index(b"\0", start)].decode()
        result = self.run_under_policy(loader, *LAUNCH)
        self.assert_reached(result)
        self.assertNotIn("statically", result.stderr)

    def test_a_program_for_another_machine_is_told(self):
        with open(PROGRAM, "rb") as file:
            bytes_of_program = bytearray(file.read())
        bytes_of_program[18:20] = struct.pack("<H", 0xF3)  # RISC-V
        path = self.write("other", bytes(bytes_of_program))
        os.chmod(path, 0o755)
        self.assertIn("is for another machine than libcudapolicy.so",
                      self.run_under_policy(path).stderr)

    @unittest.skipUnless(shutil.which("musl-gcc"), "musl-gcc is not installed")
    def test_a_musl_program_is_refused_before_it_starts(self):
        source = self.write("hello.c", '#include <stdio.h>\nint main(void) { return puts("hello") < 0; }\n')
        path = self.path("hello")
        subprocess.run(["musl-gcc", "-o", path, source], check=True, timeout=60)
        for command in (["run", "-p", self.write("policy.ini", launch_case.POLICY)], ["record"]):
            result = self.alone(COMMAND, *command, "--library", LIBRARY, "--", path)
            self.assertEqual((result.returncode, result.stdout), (126, ""), result)
            self.assertRegex(result.stderr, r"'.*/hello' is for musl \(/lib/ld-musl-.*\), and cannot start "
                                            r"with libcudapolicy\.so, which is for glibc; it was not started\n")
        # This is what would become of it, and becomes of one that another program starts.
        result = self.run_under_policy("sh", "-c", "./hello")
        self.assertEqual((result.returncode, result.stdout), (127, ""), result)
        self.assertIn(f"Error relocating {os.path.realpath(LIBRARY)}: ", result.stderr)


@unittest.skipUnless(MODULES, "no environment modules are installed (environment-modules or Lmod)")
class Modules(launch_case.Case):
    """`module purge` takes back what modules did, and nothing else."""

    def module(self, text, commands):
        os.makedirs(self.path("modules"), exist_ok=True)
        self.write("modules/some", "#%Module1.0\n" + text + "\n")
        return self.run_under_policy("sh", "-c", f". {MODULES}; module use {self.path('modules')}; "
                                                 f"module load some; {commands} {words(*LAUNCH_ANEW)}")

    def test_modules_that_leave_the_variable_alone_leave_ours(self):
        for commands in ("", "module purge;"):
            self.assert_reached(self.module("setenv OTHER 1", commands))

    def test_a_module_that_adds_a_preload_leaves_ours(self):
        for word in ("prepend-path", "append-path"):
            for commands in ("", "module purge;"):
                self.assert_reached(self.module(f"{word} LD_PRELOAD {OTHER_LIBRARY}", commands))

    def test_a_module_that_sets_a_preload_replaces_ours_and_that_is_noticed(self):
        for commands in ("", "module purge;"):
            self.assert_lost(self.module(f"setenv LD_PRELOAD {OTHER_LIBRARY}", commands))

    def test_a_purge_takes_a_preload_that_a_module_set(self):
        """Of a site whose module has the library: what was loaded by module goes by purge."""
        os.makedirs(self.path("modules"))
        self.write("modules/policy", f"#%Module1.0\nprepend-path LD_PRELOAD {LIBRARY}\n")
        shown = "echo purged:$LD_PRELOAD"
        result = self.alone("sh", "-c", f". {MODULES}; module use {self.path('modules')}; "
                                        f"module load policy; echo loaded:$LD_PRELOAD; module purge; {shown}")
        self.assertEqual(result.stdout, f"loaded:{LIBRARY}\npurged:\n", result)


@unittest.skipUnless(SSHD and shutil.which("ssh") and shutil.which("ssh-keygen"),
                     "ssh, its server or ssh-keygen is not installed")
class Ssh(launch_case.Case):
    def ssh(self, *command):
        """ssh to a server that is started for it, on a pipe, as the user who runs the test."""
        for name in ("host", "user"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", self.path(name)],
                           check=True, timeout=60)
        os.rename(self.path("user.pub"), self.path("authorized"))
        configuration = self.write("sshd", f"HostKey {self.path('host')}\nStrictModes no\nUsePAM no\n"
                                           f"AuthorizedKeysFile {self.path('authorized')}\nPidFile none\n")
        server = words(SSHD, "-i", "-f", configuration)
        if os.getuid() == 0 and not os.path.isdir("/run/sshd"):
            # The server of root wants a folder that only a running one has made.
            server = "unshare -m sh -c " + words(
                f"mount -t tmpfs none /run && mkdir -m 755 /run/sshd && exec {server}")
        return ["ssh", "-F", "none", "-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null",
                "-o", "LogLevel=ERROR", "-o", "BatchMode=yes", "-o", "IdentitiesOnly=yes",
                "-i", self.path("user"), "-o", f"ProxyCommand={server}", "host", words(*command)]

    def works(self):
        result = self.alone(*self.ssh("true"))
        if result.returncode != 0:
            self.skipTest(f"ssh does not work here: {result.stderr.strip()}")
        for name in ("host", "user", "host.pub", "authorized"):
            os.unlink(self.path(name))

    def test_what_ssh_starts_is_not_reached_and_that_is_noticed(self):
        self.works()
        self.assert_lost(self.run_under_policy(*self.ssh(*LAUNCH_ANEW)))

    def test_run_behind_ssh_reaches(self):
        self.works()
        policy = self.write("policy.ini", launch_case.POLICY)
        self.assert_reached(self.alone(*self.ssh(
            "env", f"LD_LIBRARY_PATH={DOUBLES}", COMMAND, "run", "-p", policy, "--library", LIBRARY, "--",
            *LAUNCH)))


if __name__ == "__main__":
    sys.exit(launch_case.main())
