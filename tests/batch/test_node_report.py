# SPDX-License-Identifier: Apache-2.0
"""Reports of a job on a Slurm with two nodes: one file a node, made by the plugin at the end of each
step, and what `cudapolicy report` makes of them."""

import json
import os
import pwd
import subprocess

import slurm_case
from slurm_case import FILES, Case


class NodeReport(Case):
    def setUp(self):
        super().setUp()
        self.plugstack()

    def plugstack(self, *arguments, command=None):
        slurm_case.slurm.plugstack(" ".join(
            ["required", FILES["plugin"], f"library={self.library}",
             f"command={command or FILES['command']}", *arguments]) + "\n")

    def wait_for_files(self, folder, count):
        """A step is over for its client before its last call on the node is."""
        def there():
            names = os.listdir(self.path(folder)) if os.path.isdir(self.path(folder)) else []
            return len(names) == count and all(name.endswith(".json") for name in names)
        try:
            slurm_case.slurm.wait_for(f"{count} reports", there)
        except RuntimeError as error:
            found = [os.path.join(root, name) for root, _, names in os.walk(self.path(folder))
                     for name in names]
            raise RuntimeError(f"there: {found}") from error
        return sorted(os.path.join(folder, name) for name in os.listdir(self.path(folder)))

    def launch(self, *arguments, **options):
        return self.srun(*arguments, FILES["program"], "launch", "kernel", "1", "1",
                         env=self.program_environment(), **options)

    def report(self, *arguments):
        result = subprocess.run([FILES["command"], "report", "--json", *arguments], check=False,
                                cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                text=True)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        return json.loads(result.stdout)

    def test_a_step_leaves_one_file_a_node_and_they_make_one_job(self):
        result = self.launch("-N2", "-n4", "--ntasks-per-node=2", "--cuda-policy=p.ini", "--cuda-policy-report=reports/")
        self.assertEqual(result.status, 0, result)
        files = self.wait_for_files("reports", 2)
        for file in files:
            with open(self.path(file), encoding="utf-8") as stream:
                document = json.load(stream)
            self.assertEqual((document["format"], len(document["processes"])),
                             ("cudapolicy job", 2))
            self.assertEqual(os.stat(self.path(file)).st_mode & 0o777, 0o600)
        summary = self.report("reports")
        self.assertEqual(len(summary["processes"]), 4)
        ranks = summary["ranks"]
        self.assertEqual((ranks["world_size"], ranks["reported"], ranks["missing"]),
                         (4, [[0, 3]], []))
        self.assertEqual(ranks["differences"], [])
        self.assertEqual(summary["job"]["step"], "0")

    def test_the_report_names_job_step_node_and_local_rank(self):
        self.launch("-N2", "-n4", "--ntasks-per-node=2", "--cuda-policy-report=reports/")
        jobs = []
        for file in self.wait_for_files("reports", 2):
            with open(self.path(file), encoding="utf-8") as stream:
                jobs += [process["facts"]["job"] for process in json.load(stream)["processes"]]
        self.assertEqual(sorted((job["rank"], job["local_rank"], job["node"], job["world_size"],
                                 job["rank_source"], job["step"], job["id_source"])
                                for job in jobs),
                         [(str(2 * node + local), str(local), f"n{node + 1}", "4", "SLURM_PROCID",
                           "0", "SLURM_JOB_ID") for node in range(2) for local in range(2)])

    def test_a_rank_that_differs_or_has_no_report_is_found(self):
        script = (f'case $SLURM_PROCID in 3) exit 0;; 2) n=40;; *) n=1;; esac; '
                  f'exec {FILES["program"]} launch kernel $n 1')
        self.srun("-N2", "-n4", "--ntasks-per-node=2", "--cuda-policy=p.ini", "--cuda-policy-report=reports/",
                  slurm_case.SHELL, "-c", script, env=self.program_environment())
        self.wait_for_files("reports", 2)
        ranks = self.report("reports")["ranks"]
        self.assertEqual(ranks["missing"], [[3, 3]])
        self.assertIn([[2, 2]], [one["ranks"] for one in ranks["differences"]])

    def test_steps_and_the_batch_script_are_told_apart(self):
        program = f"{FILES['program']} launch kernel 2 1"
        self.completed("-N2", "-n2", "--cuda-policy=p.ini", "--cuda-policy-report=reports/",
                       script=f"export LD_LIBRARY_PATH={FILES['doubles']}\n{program}\n"
                              f"srun -n2 {program}\nsrun -n2 {program}\n")
        self.wait_for_files("reports", 5)
        jobs = self.report("reports")["jobs"]
        self.assertEqual([(job["job"].get("step"), job["ranks"]["world_size"],
                           job["ranks"]["missing"], job["launches"]) for job in jobs],
                         [(None, 1, [], 2), ("0", 2, [], 4), ("1", 2, [], 4)])
        self.assertEqual([one["kind"] for job in jobs for one in job["ranks"]["differences"]], [])

    def test_the_tasks_of_an_array_are_told_apart(self):
        number = self.submit("--array=3,5", "--cuda-policy=p.ini", "--cuda-policy-report=reports/",
                             script=f"export LD_LIBRARY_PATH={FILES['doubles']}\n"
                                    f"{FILES['program']} launch kernel 2 1\n")
        self.wait(number)
        self.wait_for_files("reports", 2)
        self.assertEqual(sorted((job["job"]["array_job"], job["job"]["array_task"])
                                for job in self.report("reports")["jobs"]),
                         [(str(number), "3"), (str(number), "5")])

    def test_two_processes_at_once_with_one_rank_are_a_warning(self):
        # The first waits until the second has ended, and has begun before it could.
        together = ("mkfifo a; {0} launch kernel 2 1 wait <a & {0} launch kernel 2 1 >a; wait"
                    .format(FILES["program"]))
        result = self.srun("-n1", "--cuda-policy=p.ini", "--cuda-policy-report=reports/",
                           slurm_case.SHELL, "-c", together, env=self.program_environment())
        self.assertEqual(result.status, 0, result)
        self.wait_for_files("reports", 1)
        kinds = [one["kind"] for one in self.report("reports")["ranks"]["differences"]]
        self.assertEqual(kinds, ["duplicate rank"])

    def test_programs_one_after_the_other_and_children_are_no_second_rank(self):
        program = f"{FILES['program']} launch kernel 2 1"
        result = self.srun("-n1", "--cuda-policy=p.ini", "--cuda-policy-report=reports/",
                           slurm_case.SHELL, "-c", f"{program}; {program}; "
                           f"exec {FILES['program']} launch kernel 2 1 fork launch kernel 1 1 "
                           "exec launch kernel 1 1", env=self.program_environment())
        self.assertEqual(result.status, 0, result)
        self.wait_for_files("reports", 1)
        summary = self.report("reports")
        self.assertGreater(len(summary["processes"]), 2)
        self.assertEqual(summary["ranks"]["differences"], [])

    def test_a_step_without_launches_leaves_nothing(self):
        self.assertEqual(self.srun("--cuda-policy=p.ini", "--cuda-policy-report=reports/",
                                   "true").status, 0)
        slurm_case.slurm.wait_for("an empty folder", lambda: os.listdir(self.path("reports")) == [])

    def test_a_killed_job_has_its_numbers_in_the_file(self):
        number = self.submit("--cuda-policy=p.ini", "--cuda-policy-report=reports/",
                             script=f"export LD_LIBRARY_PATH={FILES['doubles']}\n"
                                    f"mkfifo f; exec {FILES['program']} launch kernel 2 1 wait <>f\n")
        slurm_case.slurm.wait_for("counters", lambda: any(
            name.endswith(".counters") for _, _, names in os.walk(self.path("reports"))
            for name in names))
        self.client("scancel", "--signal=KILL", "--full", str(number))
        self.wait(number)
        self.wait_for_files("reports", 1)
        process, = self.report("reports")["processes"]
        self.assertFalse(process["complete"])

    def test_the_merge_never_fails_a_job_and_the_reports_stay(self):
        for command in ("/gone", "/bin/false"):
            self.plugstack(command=command)
            folder = "reports-" + os.path.basename(command)
            job = self.completed("--cuda-policy=p.ini", f"--cuda-policy-report={folder}/",
                                 script=f"export LD_LIBRARY_PATH={FILES['doubles']}\n"
                                        f"{FILES['program']} launch kernel 2 1\n")
            self.assertEqual(job.state, "COMPLETED")
            slurm_case.slurm.wait_for("two idle nodes", slurm_case.slurm.idle)
            self.assertEqual(self.report(folder)["launches"], 2)

    def test_a_folder_that_cannot_be_made_fails_only_those_who_asked_for_it(self):
        self.write("file", "")
        result = self.launch("--cuda-policy=p.ini", "--cuda-policy-report=file/sub/")
        self.assertNotEqual(result.status, 0)
        self.assertIn("cannot make the folder", result.stderr)
        self.plugstack(f"reports={self.path('file')}/sub/")
        result = self.launch("--cuda-policy=p.ini")
        self.assertEqual(result.status, 0, result)
        self.assertIn("cannot make the folder", result.stderr)

    def test_a_folder_of_the_site_holds_for_the_script_and_each_step(self):
        self.plugstack(f"reports={self.path('site')}/%j/")
        program = f"{FILES['program']} launch kernel 2 1"
        self.completed("-N2", "-n2", "--cuda-policy=p.ini",
                       script=f"export LD_LIBRARY_PATH={FILES['doubles']}\n{program}\n"
                              f"srun -n2 {program}\n")
        number, = os.listdir(self.path("site"))
        self.wait_for_files(f"site/{number}", 3)
        self.assertEqual([job["launches"] for job in self.report(f"site/{number}")["jobs"]], [2, 4])

    def test_the_merge_is_made_by_the_jobs_user_and_not_by_root(self):
        if os.getuid() != 0:
            self.skipTest("run by an ordinary user")
        user = pwd.getpwnam(slurm_case.ORDINARY_USER)
        owners = self.write("owners", "", 0o666)
        command = self.write("command", f"#!/bin/sh\nexec >>{owners}; grep -E '^(Uid|Gid|Groups|Cap"
                             f"Eff)' /proc/self/status\nexec {FILES['command']} \"$@\"\n", 0o755)
        self.plugstack(command=command)
        result = self.launch("--cuda-policy=p.ini", "--cuda-policy-report=reports/",
                             user=(user.pw_uid, user.pw_gid))
        self.assertEqual(result.status, 0, result)
        file, = self.wait_for_files("reports", 1)
        status = os.stat(self.path(file))
        self.assertEqual((status.st_uid, status.st_gid), (user.pw_uid, user.pw_gid))
        with open(owners, encoding="utf-8") as stream:
            lines = dict(line.split(":\t") for line in stream.read().splitlines())
        self.assertEqual(lines["Uid"].split(), [str(user.pw_uid)] * 4)
        self.assertEqual(lines["Gid"].split(), [str(user.pw_gid)] * 4)
        self.assertNotIn("0", lines["Groups"].split())
        self.assertEqual(int(lines["CapEff"], 16), 0)

    def test_what_differs_by_process_is_no_folder_of_a_node(self):
        for template in ("r/%p/", "r/%r/"):
            result = self.srun("--cuda-policy=p.ini", f"--cuda-policy-report={template}", "true")
            self.assertNotEqual(result.status, 0)
            self.assertIn("a folder for all processes of a node", result.stderr)


if __name__ == "__main__":
    slurm_case.main(needs_plugin=True)
