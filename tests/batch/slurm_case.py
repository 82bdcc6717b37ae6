# SPDX-License-Identifier: Apache-2.0
"""What the tests on a Slurm share: one cluster for all tests of a file, and running things on it.

The build gives, by environment variables, what tests/command/support.py takes, and
CUDAPOLICY_TEST_SLURM_PLUGIN, the plugin (empty where it was not built), and
CUDAPOLICY_TEST_TASK_PROLOG. With --ordinary-user a run by root goes on as an ordinary user before
anything is started.
"""

import os
import pwd
import shutil
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "command"))

import cluster  # pylint: disable=wrong-import-position
import support  # pylint: disable=wrong-import-position

ORDINARY_USER = "nobody"
AS_ORDINARY_USER = "--ordinary-user" in sys.argv
if AS_ORDINARY_USER:
    sys.argv.remove("--ordinary-user")  # the others choose tests
# By its path: without PATH, as after --export=NONE, nothing else is found.
ENV = shutil.which("env")
SHELL = "/bin/sh"

POLICY = """[policy]
version = 1

[kernel all]
name = *
mem_sync_domain = remote
"""
WRONG_POLICY = "[policy]\nversion = 1\nmoed = observe\n"

slurm = None    # the cluster, once it runs
FILES = {}      # in the cluster's folder, where every user can read them
SKIP = None


def find_reason_to_skip(needs_plugin):
    if needs_plugin and not os.environ.get("CUDAPOLICY_TEST_SLURM_PLUGIN"):
        return "the Slurm plugin was not built: no <slurm/spank.h>"
    if cluster.missing():
        return cluster.missing()
    if AS_ORDINARY_USER:
        if os.getuid() != 0:
            return "run by an ordinary user, as the other test is"
        try:
            pwd.getpwnam(ORDINARY_USER)
        except KeyError:
            return f"no user '{ORDINARY_USER}'"
    return None


def stage(folder):
    """The build may be where an ordinary user cannot look."""
    def copy(name, source):
        FILES[name] = os.path.join(folder, os.path.basename(source))
        shutil.copy(source, FILES[name])
        os.chmod(FILES[name], 0o755)

    if os.environ.get("CUDAPOLICY_TEST_SLURM_PLUGIN"):
        copy("plugin", os.environ["CUDAPOLICY_TEST_SLURM_PLUGIN"])
    copy("task-prolog", os.environ["CUDAPOLICY_TEST_TASK_PROLOG"])
    copy("command", os.environ["CUDAPOLICY_COMMAND"])
    copy("library", os.environ["CUDAPOLICY_TEST_LIBRARY"])
    copy("program", os.environ["CUDAPOLICY_TEST_PROGRAM"])
    FILES["doubles"] = os.path.join(folder, "doubles")
    os.mkdir(FILES["doubles"])
    for name in os.listdir(os.environ["CUDAPOLICY_TEST_DOUBLES"]):
        source = os.path.join(os.environ["CUDAPOLICY_TEST_DOUBLES"], name)
        if ".so" in name and os.path.isfile(source):
            shutil.copy(source, FILES["doubles"])


def become_ordinary_user(folder):
    user = pwd.getpwnam(ORDINARY_USER)
    for root, folders, files in os.walk(folder):
        for name in [root] + [os.path.join(root, one) for one in folders + files]:
            os.chown(name, user.pw_uid, user.pw_gid)
    os.setgroups([])
    os.setgid(user.pw_gid)
    os.setuid(user.pw_uid)
    os.chdir("/")
    os.environ["HOME"] = "/"


def start(more=""):
    """Starts the cluster; more: further lines of slurm.conf, with {folder}."""
    global slurm
    folder = tempfile.mkdtemp(prefix="cudapolicy-slurm-")
    try:
        os.chmod(folder, 0o755)
        stage(folder)
        if AS_ORDINARY_USER:
            become_ordinary_user(folder)
        slurm = cluster.Cluster(folder, more.format(folder=folder))
        slurm.start()
    except BaseException:
        stop()
        shutil.rmtree(folder, ignore_errors=True)
        raise


def stop():
    if slurm is not None:
        slurm.stop()


def main(needs_plugin, more=""):
    reason = find_reason_to_skip(needs_plugin)
    if reason is not None:
        print(f"1..0 # SKIP {reason}")
        return
    start(more)
    try:
        support.main()
    finally:
        stop()


class Job:
    def __init__(self, record, output):
        self.state, self.record, self.output = record["JobState"], record, output

    def __repr__(self):
        return f"{self.record}\n{self.output}"


class Case(unittest.TestCase):
    """A test with a folder of its own, which every user may write to."""

    maxDiff = None

    def setUp(self):
        self.folder = os.path.realpath(tempfile.mkdtemp(dir=slurm.folder))
        os.chmod(self.folder, 0o777)
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.policy = self.write("p.ini", POLICY)
        self.library = FILES["library"]

    def tearDown(self):
        # A step is told to be over before its node is idle again; a drained node never is.
        slurm.wait_for("two idle nodes after the test", slurm.idle)

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def write(self, name, text, mode=0o644):
        path = self.path(name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(path, mode)
        return path

    def client(self, program, *arguments, **options):
        options.setdefault("cwd", self.folder)
        return slurm.client(program, *arguments, **options)

    def srun(self, *arguments, **options):
        return self.client("srun", *arguments, **options)

    def variables(self, *arguments, env=None, **options):
        """The environment of a task."""
        result = self.srun(*arguments, ENV, env=env, **options)
        self.assertEqual(result.status, 0, result)
        return self.parse(result.stdout)

    @staticmethod
    def parse(text):
        return dict(line.split("=", 1) for line in text.splitlines() if "=" in line)

    def submit(self, *arguments, script, **options):
        """The number of the job."""
        path = self.write("job.sh", f"#!{SHELL}\n{script}", 0o755)
        result = self.client("sbatch", "--parsable", "--output", self.path("output-%a"), *arguments,
                             path, **options)
        self.assertEqual(result.status, 0, result)
        return int(result.stdout)

    def wait(self, number):
        """The job, or the tasks of the array, once ended."""
        jobs = []
        for record in slurm.job(number):
            name = record.get("ArrayTaskId", "4294967294")
            try:
                with open(self.path(f"output-{name}"), encoding="utf-8") as file:
                    output = file.read()
            except FileNotFoundError:
                output = ""
            jobs.append(Job(record, output))
        return jobs

    def batch(self, *arguments, script, **options):
        return self.wait(self.submit(*arguments, script=script, **options))[0]

    def completed(self, *arguments, **options):
        job = self.batch(*arguments, **options)
        self.assertEqual(job.state, "COMPLETED", job)
        return job

    def assert_failed_and_nodes_well(self, job, *texts):
        self.assertEqual(job.state, "FAILED", job)
        for text in texts:
            self.assertIn(text, job.output)
        self.assertNotIn("it ran", job.output)
        slurm.wait_for("two idle nodes", slurm.idle)

    def assert_untouched(self, variables):
        for name in variables:
            self.assertFalse(name.startswith("CUDAPOLICY_"), variables)
        self.assertNotIn("LD_PRELOAD", variables)

    def program_environment(self, **more):
        """For a program that launches kernels, on the recording driver."""
        return {"LD_LIBRARY_PATH": FILES["doubles"], **more}

    def calls(self, name):
        with open(self.path(name), encoding="utf-8") as file:
            return [dict(field.split("=", 1) for field in line.split()) for line in file]

    def assert_policy_reached_the_driver(self, name):
        launch = [call for call in self.calls(name) if call["call"].startswith("cuLaunch")][-1]
        self.assertEqual(launch["call"], "cuLaunchKernelEx")
        self.assertIn("MEM_SYNC_DOMAIN:1", launch["effective"])
