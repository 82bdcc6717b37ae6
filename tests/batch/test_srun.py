# SPDX-License-Identifier: Apache-2.0
"""cudapolicy run and ab over srun, on a Slurm with two nodes and without the plugin: the environment is
passed on, and the reports of all tasks come back to one folder.

Other launchers: tests/ab/test_launchers.py."""

import json
import os
import signal
import subprocess

import cluster
import keeper
import slurm_case
from slurm_case import FILES, Case

RANKS = 4
METRIC = r"time[s]=^rank (?<rank>\d+) time (?<value>[0-9.]+)"
RANK = """#!/bin/sh
arm=$1
echo "$arm $SLURM_PROCID $(hostname)" >>calls
{program} launch kernel 2 4 || exit 99
"""


class Srun(Case):
    def setUp(self):
        super().setUp()
        slurm_case.slurm.plugstack("")

    def rank(self, *lines):
        self.write("rank", RANK.format(program=FILES["program"]) + "\n".join(lines) + "\n", 0o755)

    def words(self, *options, arms=("none", "p.ini")):
        return ["ab", "--library", self.library, "-m", METRIC, "--claim", "none", "--blocks", "1",
                "--warm-up", "0", "--seed", "7", "--folder", "f", *options, *arms, "--",
                *self.launch("./rank", "{arm}")]

    @staticmethod
    def launch(*words):
        return [cluster.find("srun"), "--quiet", "-N2", f"-n{RANKS}", *words]

    def start(self, *words):
        environment = slurm_case.slurm.environment(self.program_environment())
        return subprocess.Popen([FILES["command"], *words], cwd=self.folder, env=environment, text=True,
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, preexec_fn=keeper.die_with_parent)

    def finish(self, process):
        try:
            out, errors = process.communicate(timeout=cluster.TIME_LIMIT)
        finally:
            process.kill()
        return out, errors

    def command(self, *words):
        process = self.start(*words)
        out, errors = self.finish(process)
        self.assertEqual(process.returncode, 0, out + errors)
        return out, errors

    def runs(self):
        with open(self.path("f", "journal.jsonl"), encoding="utf-8") as file:
            return [json.loads(line) for line in file][1:]

    def test_run_collects_the_reports_of_all_tasks(self):
        self.rank()
        _, errors = self.command("run", "--library", self.library, "-p", "p.ini", "--report",
                                 "job.json", *self.launch("./rank", "run"))
        self.assertIn(f"{2 * RANKS} launches of 1 kernel in {RANKS} processes", errors)
        with open(self.path("job.json"), encoding="utf-8") as file:
            processes = json.load(file)["processes"]
        self.assertEqual({process["process"]["argv0"] for process in processes}, {FILES["program"]})
        facts = sorted((process["facts"]["job"] for process in processes),
                       key=lambda job: int(job["rank"]))
        self.assertEqual([(job["rank"], job["world_size"], job["rank_source"]) for job in facts],
                         [(str(i), str(RANKS), "SLURM_PROCID") for i in range(RANKS)])
        self.assertEqual(len({job["id"] for job in facts}), 1)

    def test_ab_reads_the_reports_of_all_tasks(self):
        self.rank("echo rank $SLURM_PROCID time 1$SLURM_PROCID")
        self.command(*self.words("--across-ranks", "sum"))
        for run in self.runs():
            self.assertEqual((run["outcome"], run["values"]["time"]["value"]), ("ok", 46), run)
            if run["arm"].startswith("none"):
                self.assertIsNone(run["policy"])
            else:
                self.assertEqual((run["policy"]["processes"], run["policy"]["launches"]),
                                 (RANKS, 2 * RANKS))

    def test_a_task_that_dies_is_a_run_that_failed(self):
        self.rank("[ $arm.$SLURM_PROCID != p.2 ] || kill -KILL $$", "echo rank $SLURM_PROCID time 1")
        self.command(*self.words("--no-repeat", arms=("observe", "p.ini")))
        self.assertEqual({run["arm"]: run["outcome"] for run in self.runs()},
                         {"observe": "ok", "p": "exited"})

    def test_an_interruption_ends_the_step(self):
        os.mkfifo(self.path("waiting"))
        holder = os.open(self.path("waiting"), os.O_RDWR)
        self.addCleanup(os.close, holder)
        self.rank("echo rank $SLURM_PROCID time 1", "[ $arm = p ] || exit 0", "echo $$ >waiting",
                  "exec sleep 1000")
        process = self.start(*self.words("--no-repeat", arms=("observe", "p.ini")))
        pids = []
        with open(self.path("waiting"), encoding="ascii") as file:
            while len(pids) < RANKS:
                pids.append(int(file.readline()))
        process.send_signal(signal.SIGINT)
        self.finish(process)
        slurm_case.slurm.wait_for("the end of all tasks", lambda: not any(
            os.path.exists(f"/proc/{pid}") for pid in pids))
        self.assertEqual({run["arm"] for run in self.runs()} - {"observe"}, set())


if __name__ == "__main__":
    slurm_case.main(needs_plugin=False)
