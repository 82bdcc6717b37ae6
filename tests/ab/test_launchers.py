# SPDX-License-Identifier: Apache-2.0
"""cudapolicy run and ab over launchers: Open MPI's and MPICH's mpirun where they are installed, and one that
starts its ranks as torchrun does. Their ranks launch kernels on the recording driver.

srun: tests/batch/test_srun.py."""

import fcntl
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import termios
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import test_ab  # pylint: disable=wrong-import-position
from test_ab import LIBRARY, PROGRAM, support  # pylint: disable=wrong-import-position

RANKS = 4
METRIC = ["-m", r"time[s]=^rank (?<rank>\d+) time (?<value>[0-9.]+)"]

# What a rank does: it launches, under whatever rank its launcher gave it; then what the test says.
RANK = """#!/bin/sh
arm=$1
rank=${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-$RANK}}
echo "$arm $rank $$" >>calls
"$PROGRAM" launch kernel 2 4 || exit 99
"""

# As torchrun: every rank in a session of its own, told what it is by RANK, LOCAL_RANK and WORLD_SIZE. When
# one fails the others are ended, and so is the launcher; SIGTERM and SIGINT are passed on.
TORCHRUN = """#!{python} -S
import os, signal, subprocess, sys
count = int(sys.argv[1])
ranks = []
def end(number=None, frame=None):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for rank in ranks:
        if rank.poll() is None:
            rank.terminate()
    for rank in ranks:
        rank.wait()
    if number is not None:
        sys.exit(1)
signal.signal(signal.SIGTERM, end)
signal.signal(signal.SIGINT, end)
for rank in range(count):
    own = dict(os.environ, RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(count), MASTER_PORT="1")
    ranks.append(subprocess.Popen(sys.argv[2:], env=own, start_new_session=True))
left = set(range(count))
while left:
    pid, status = os.wait()
    number, = [i for i in left if ranks[i].pid == pid]
    ranks[number].returncode = os.waitstatus_to_exitcode(status) if hasattr(os, "waitstatus_to_exitcode") \\
        else status
    left.discard(number)
    if status != 0:
        end()
        sys.exit(1)
"""

# A rank that speaks MPI: the library is loaded beside the driver, in one process.
MPI_RANK = """
import ctypes, os, sys
kind, library = sys.argv[1:3]
mpi = ctypes.CDLL(library, mode=ctypes.RTLD_GLOBAL)
if kind == "openmpi":
    world = ctypes.c_void_p(ctypes.addressof(ctypes.c_char.in_dll(mpi, "ompi_mpi_comm_world")))
    integer = ctypes.c_void_p(ctypes.addressof(ctypes.c_char.in_dll(mpi, "ompi_mpi_int")))
    add = ctypes.c_void_p(ctypes.addressof(ctypes.c_char.in_dll(mpi, "ompi_mpi_op_sum")))
else:
    world, integer, add = (ctypes.c_int(number) for number in (0x44000000, 0x4c000405, 0x58000003))
assert mpi.MPI_Init(None, None) == 0
rank, mine, total = ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
assert mpi.MPI_Comm_rank(world, ctypes.byref(rank)) == 0
driver = ctypes.CDLL("libcuda.so.1")
def call(name, *arguments):
    assert getattr(driver, name)(*arguments) == 0, name
context, module, function = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
call("cuInit", 0)
call("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
call("cuCtxSetCurrent", context)
call("cuModuleLoadData", ctypes.byref(module), b"any kernel")
call("cuModuleGetFunction", ctypes.byref(function), module, b"kernel")
for _ in range(3):
    call("cuLaunchKernel", function, 4, 1, 1, 128, 1, 1, 0, None, None, None)
mine.value = rank.value
assert mpi.MPI_Allreduce(ctypes.byref(mine), ctypes.byref(total), 1, integer, add, world) == 0
print(f"rank {rank.value} sum {total.value}", flush=True)
assert mpi.MPI_Finalize() == 0
"""


def find(names, word):
    """The first of these programs that says of itself that it is the one meant."""
    for name in names:
        path = shutil.which(name)
        if path is not None and word in subprocess.run([path, "--version"], stdout=subprocess.PIPE,
                                                       stderr=subprocess.STDOUT, check=False,
                                                       encoding="utf-8", errors="replace").stdout:
            return path
    return None


OPEN_MPI = find(("mpirun.openmpi", "mpirun"), "Open MPI")
MPICH = find(("mpirun.mpich", "mpirun"), "HYDRA")


def is_running(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
            return file.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


class Launcher:
    """What holds of every launcher."""

    words, source, killed = (), "", 0

    def setUp(self):
        super().setUp()
        # Open MPI refuses to run as root unless told twice.
        self.environment.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
                                HWLOC_HIDE_ERRORS="2")
        self.prepare()

    def prepare(self):
        pass

    def rank(self, *lines):
        path = self.write("rank", RANK + "\n".join(lines) + "\n")
        os.chmod(path, 0o755)

    def tearDown(self):
        # Of a test that failed.
        for pid in {int(call[2]) for call in self.calls()}:
            if is_running(pid):
                os.kill(pid, signal.SIGKILL)

    def launch(self, *words):
        return [*self.words, str(RANKS), *words]

    def arguments(self, *options, arms=("none", "p.ini"), metric=METRIC):
        return ["ab", "--library", LIBRARY, *metric, *options, *arms, "--",
                *self.launch("./rank", "{arm}")]

    def few(self, *options, **arguments):
        return super().few("--warm-up", "0", *options, **arguments)

    def run_words(self, *options):
        return ["run", "--library", LIBRARY, "-p", "p.ini", *options, *self.launch("./rank", "run")]

    def pids(self):
        return [int(call[2]) for call in self.calls()]

    def assert_nothing_is_left(self):
        self.assertNotEqual(self.pids(), [])
        # A launcher that was killed may leave the end of its ranks to others.
        end = time.monotonic() + support.TIME_LIMIT / 2
        while any(map(is_running, self.pids())) and time.monotonic() < end:
            time.sleep(0.01)
        self.assertEqual([pid for pid in self.pids() if is_running(pid)], [])

    def wait_for_ranks(self, count=RANKS):
        """Until so many have begun to wait."""
        pipe = self.path("waiting")
        with open(pipe, encoding="ascii") as file:
            said = ""
            while said.count("\n") < count:
                said += file.readline()

    def waiting(self):
        """Lines with which a rank says that it waits, and does, for ever."""
        os.mkfifo(self.path("waiting"))
        # Held open for writing too, so that whoever reads sees no end between two ranks.
        holder = os.open(self.path("waiting"), os.O_RDWR)
        self.addCleanup(os.close, holder)
        return ["echo waits >waiting", "exec sleep 1000"]

    interrupted_status_tells = True

    # ---- run ----

    def test_run_collects_the_reports_of_all_ranks(self):
        self.rank()
        result = self.command(*self.run_words("--report", "job.json"), env=self.environment)
        self.assertEqual(result.returncode, 0, result)
        self.assertIn(f"{2 * RANKS} launches of 1 kernel in {RANKS} processes", result.stderr)
        with open(self.path("job.json"), encoding="utf-8") as file:
            processes = json.load(file)["processes"]
        # Of the ranks, and of none of what started them.
        self.assertEqual({process["process"]["argv0"] for process in processes}, {PROGRAM})
        facts = sorted((process["facts"]["job"] for process in processes),
                       key=lambda job: int(job["rank"]))
        self.assertEqual([(job["rank"], job["local_rank"], job["world_size"], job["rank_source"])
                          for job in facts],
                         [(str(i), str(i), str(RANKS), self.source) for i in range(RANKS)])

    def test_rules_can_ask_for_ranks(self):
        self.write("p.ini", "[policy]\nversion = 1\n[kernel first]\nname = *\nrank = 0..1\n"
                            "mem_sync_domain = remote\n")
        self.rank()
        result = self.command(*self.run_words("--report", "job.json"), env=self.environment)
        self.assertEqual(result.returncode, 0, result)
        with open(self.path("job.json"), encoding="utf-8") as file:
            rules = {process["facts"]["job"]["rank"]: [rule["launches"] for rule in process["rules"]]
                     for process in json.load(file)["processes"]}
        self.assertEqual(rules, {"0": [2], "1": [2], "2": [0], "3": [0]})

    def test_run_passes_the_failure_of_a_rank_on(self):
        self.rank("[ $rank != 2 ] || exit 7")
        result = self.command(*self.run_words("--report", "job.json"), env=self.environment)
        self.assertNotEqual(result.returncode, 0, result)
        self.assertGreaterEqual(result.stderr.count(" launches of 1 kernel in "), 1)
        self.assert_nothing_is_left()

    def interrupted_run(self, interrupt, **options):
        self.rank(*self.waiting())
        process = self.start(*self.run_words("-q"), env=self.environment, start_new_session=True,
                             **options)
        self.wait_for_ranks()
        interrupt(process)
        process.wait(timeout=support.TIME_LIMIT)
        if self.interrupted_status_tells:
            self.assertNotEqual(process.returncode, 0)
        self.assert_nothing_is_left()

    def test_a_key_at_the_terminal_ends_run_and_all_ranks(self):
        keyboard, terminal = os.openpty()
        self.addCleanup(os.close, keyboard)
        self.addCleanup(os.close, terminal)
        self.interrupted_run(lambda process: os.write(keyboard, b"\x03"),
                             preexec_fn=lambda: fcntl.ioctl(terminal, termios.TIOCSCTTY, 0))

    def test_a_signal_to_run_alone_ends_all_ranks(self):
        self.interrupted_run(lambda process: process.send_signal(signal.SIGTERM))

    # ---- ab ----

    def test_ab_reads_the_reports_of_all_ranks(self):
        self.rank("echo rank $rank time 1")
        result = self.few()
        self.assertEqual(result.returncode, 0, result)
        for run in self.runs():
            self.assertEqual(run["outcome"], "ok", run)
            if run["arm"].startswith("none"):
                self.assertIsNone(run["policy"])
            else:
                self.assertEqual((run["policy"]["processes"], run["policy"]["launches"]),
                                 (RANKS, 2 * RANKS))
        self.assertEqual(sorted({call[1] for call in self.calls()}), ["0", "1", "2", "3"])

    def test_ranks_become_one_number_as_asked(self):
        self.rank("echo rank $rank time 1$rank")
        for how, wanted in (("max", 13), ("min", 10), ("mean", 11.5), ("median", 11.5), ("sum", 46)):
            result = self.few("--no-repeat", "--across-ranks", how, "--folder", f"f-{how}",
                              arms=["observe", "p.ini"])
            self.assertEqual(result.returncode, 0, result)
            self.assertEqual([run["values"]["time"]["value"] for run in self.runs(f"f-{how}")],
                             [wanted] * 2)

    def test_a_rank_that_dies_is_a_run_that_failed(self):
        for number, line in enumerate(("[ $arm.$rank != p.2 ] || exit 7",
                                       "[ $arm.$rank != p.1 ] || kill -KILL $$")):
            self.rank(line, "echo rank $rank time 1")
            result = self.few("--folder", f"f{number}")
            self.assertEqual(result.returncode, 0, result)
            self.assertEqual(self.outcomes("p", f"f{number}"), ["exited"])
            for arm in ("none", "none-again", "observe"):
                self.assertEqual(self.outcomes(arm, f"f{number}"), ["ok"])
        self.assert_nothing_is_left()

    def test_a_rank_that_hangs_is_ended_with_the_others(self):
        self.rank("[ $arm.$rank != p.3 ] || exec sleep 1000", "echo rank $rank time 1")
        self.few("--timeout", "3", "--no-repeat", arms=["observe", "p.ini"])
        self.assertEqual((self.outcomes("observe"), self.outcomes("p")), (["ok"], ["timed out"]))
        self.assert_nothing_is_left()

    def test_an_interruption_leaves_no_rank_behind(self):
        lines = self.waiting()
        self.rank("echo rank $rank time 1", '[ $arm = p ] || exit 0', *lines)
        words = self.arguments("--claim", "none", "--blocks", "1", "--warm-up", "0", "--seed", "7",
                               "--folder", "f")
        for times in (1, 2):
            process = self.start(*words, env=self.environment, start_new_session=True)
            self.wait_for_ranks()
            for _ in range(times):
                process.send_signal(signal.SIGINT)
            process.communicate(timeout=support.TIME_LIMIT)
            self.assert_nothing_is_left()
            self.assertEqual(self.outcomes("p"), [])
            shutil.rmtree(self.path("f"))


class Mpi(Launcher):
    kind, libraries = "", ()

    def test_ranks_that_speak_mpi_are_ranks_as_any(self):
        library = next((name for name in self.libraries if loads(name)), None)
        if library is None:
            self.skipTest(f"none of {', '.join(self.libraries)} can be loaded")
        self.write("rank.py", MPI_RANK)
        result = self.command("run", "--library", LIBRARY, "-p", "p.ini",
                              *self.launch(sys.executable, "-S", "rank.py", self.kind, library),
                              env=self.environment)
        self.assertEqual(result.returncode, 0, result)
        # Where lines end, launchers do not promise.
        self.assertEqual(sorted(re.findall(r"rank (\d) sum 6", result.stdout)),
                         [str(rank) for rank in range(RANKS)])
        self.assertIn(f"{3 * RANKS} launches of 1 kernel in {RANKS} processes", result.stderr)


def loads(name):
    return subprocess.run([sys.executable, "-S", "-c", "import ctypes, sys; ctypes.CDLL(sys.argv[1])",
                           name], stderr=subprocess.DEVNULL, check=False).returncode == 0


@unittest.skipIf(OPEN_MPI is None, "Open MPI's mpirun is not installed")
class OpenMpi(Mpi, test_ab.Experiment):
    words = (OPEN_MPI, "--oversubscribe", "-n")
    source = "OMPI_COMM_WORLD_RANK"
    kind, libraries = "openmpi", ("libmpi.so.40", "libmpi.so")


@unittest.skipIf(MPICH is None, "MPICH's mpirun is not installed")
class Mpich(Mpi, test_ab.Experiment):
    words = (MPICH, "-n")
    source = "PMI_RANK"
    # MPICH's own status: with SIGINT it is 0 in about one case of ten, without cudapolicy as well.
    interrupted_status_tells = False
    kind, libraries = "mpich", ("libmpich.so.12", "libmpi.so.12")


class Torchrun(Launcher, test_ab.Experiment):
    words = ("./torchrun",)
    source = "RANK"

    def prepare(self):
        os.chmod(self.write("torchrun", TORCHRUN.replace("{python}", sys.executable)), 0o755)


class MemoryHooks(test_ab.Experiment):
    def test_a_report_does_not_need_calls_that_communication_libraries_stand_in_for(self):
        result = self.command("run", "--library", LIBRARY, "-p", "p.ini", PROGRAM, "launch", "k", "3", "4",
                              env={**self.environment,
                                   "LD_PRELOAD": os.environ["CUDAPOLICY_TEST_MEMORY_HOOK"]})
        self.assertEqual(result.returncode, 0, result)
        self.assertIn("3 launches of 1 kernel in 1 process", result.stderr)


if __name__ == "__main__":
    support.main()
