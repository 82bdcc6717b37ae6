# SPDX-License-Identifier: Apache-2.0
"""The TaskProlog for sites without the plugin, on a Slurm with two nodes."""

import os

import slurm_case
from slurm_case import ENV, FILES, POLICY, VARIABLES, WRONG_POLICY, Case

# What a site writes that has settings of its own.
SITE_SCRIPT = """#!/bin/sh
exec {prolog} {arguments}
"""


class TaskProlog(Case):
    def setUp(self):
        super().setUp()
        self.site()

    def site(self, *arguments, library=None):
        text = SITE_SCRIPT.format(prolog=FILES["task-prolog"], arguments=" ".join(
            [f"library={library or self.library}", f"command={FILES['command']}", *arguments]))
        temporary = slurm_case.slurm.write("site-prolog.new", text, 0o755)
        os.rename(temporary, slurm_case.slurm.path("site-prolog"))

    def asked(self, *arguments, env=None):
        """The environment of a task that asks for the policy."""
        return self.variables(*arguments, env={"SLURM_CUDA_POLICY": self.policy, **(env or {})})

    def refused(self, env, text):
        """Slurm writes what a TaskProlog prints to the task's standard output."""
        result = self.srun("echo", "it ran", env=env)
        self.assertNotEqual(result.status, 0, result)
        self.assertNotIn("it ran", result.stdout)
        self.assertIn(f"cudapolicy: {text}", result.stdout, result)


class Tasks(TaskProlog):
    def test_a_task_gets_the_policy_and_the_library(self):
        variables = self.asked()
        self.assertEqual(variables["CUDAPOLICY_FILE"], self.policy)
        self.assertEqual(variables["LD_PRELOAD"], self.library)
        self.assertNotIn("CUDAPOLICY_MODE", variables)
        self.assertNotIn("CUDAPOLICY_REPORT", variables)

    def test_a_task_without_policy_is_left_alone(self):
        self.assert_untouched(self.variables())
        # Names that the script itself uses, too.
        variables = self.variables(env={"LD_PRELOAD": "libm.so.6", "policy": "x", "asked": "1",
                                        "active": "1", "ours": "x", "default_policy": "/x"})
        self.assertEqual(variables["LD_PRELOAD"], "libm.so.6")
        self.assertNotIn("CUDAPOLICY_FILE", variables)

    def test_the_policy_reaches_the_driver_on_both_nodes(self):
        result = self.srun("-N2", "-n2", slurm_case.SHELL, "-c",
                           f"RECORDING_DRIVER_LOG=calls-$SLURM_PROCID {FILES['program']} "
                           "launch kernel 1 4",
                           env=self.program_environment(SLURM_CUDA_POLICY=self.policy))
        self.assertEqual(result.status, 0, result)
        for rank in range(2):
            self.assert_policy_reached_the_driver(f"calls-{rank}")

    def test_the_users_own_preload_stays_first(self):
        for own in ("libm.so.6", "libm.so.6:libdl.so.2", "libm.so.6 libdl.so.2"):
            variables = self.asked(env={"LD_PRELOAD": own})
            self.assertEqual(variables["LD_PRELOAD"], own.replace(" ", ":") + ":" + self.library)

    def test_a_library_that_is_preloaded_already_is_not_added(self):
        variables = self.asked(env={"LD_PRELOAD": f"{self.library}:/elsewhere/libcudapolicy.so"})
        self.assertEqual(variables["LD_PRELOAD"], self.library)

    def test_export_none_loses_nothing(self):
        for export in ("NONE", "A=1"):
            variables = self.asked(f"--export={export}", env={"SLURM_CUDA_POLICY_MODE": "observe"})
            self.assertEqual(variables["CUDAPOLICY_FILE"], self.policy)
            self.assertEqual(variables["CUDAPOLICY_MODE"], "observe")
            self.assertEqual(variables["LD_PRELOAD"], self.library)

    def test_mode_and_report_arrive(self):
        for mode in ("enforce", "observe", "off"):
            variables = self.asked(env={"SLURM_CUDA_POLICY_MODE": mode,
                                        "SLURM_CUDA_POLICY_REPORT": "/r/%h-%p.json"})
            self.assertEqual(variables["CUDAPOLICY_MODE"], mode)
            self.assertEqual(variables["CUDAPOLICY_REPORT"], "/r/%h-%p.json")

    def test_variables_of_the_policy_are_set(self):
        path = self.write("env.ini", POLICY + VARIABLES)
        own = {"NCCL_PROTO": "Simple", "NCCL_MAX_CTAS": "9"}
        for mode, wanted in ((None, ("Simple", "Ring, Tree", "4")), ("observe", ("Simple", None, "9"))):
            variables = self.variables(env={**own, "SLURM_CUDA_POLICY": path, "SLURM_CUDA_POLICY_MODE": mode})
            self.assertEqual(tuple(variables.get(name) for name in
                                   ("NCCL_PROTO", "NCCL_ALGO", "NCCL_MAX_CTAS")), wanted)
        self.site("command=/nowhere/cudapolicy")
        variables = self.variables(env={**own, "SLURM_CUDA_POLICY": path})
        self.assertEqual((variables["CUDAPOLICY_FILE"], variables["NCCL_MAX_CTAS"]), (path, "9"))
        self.site(f"default_policy={path}")
        self.assertEqual(self.variables()["NCCL_PROTO"], "LL")

    def test_every_task_has_its_own_gpu_and_the_policy(self):
        result = self.srun("-N2", "-n4", "--gpus-per-task=1", slurm_case.SHELL, "-c",
                           "echo $SLURMD_NODENAME $CUDA_VISIBLE_DEVICES $CUDAPOLICY_FILE $LD_PRELOAD",
                           env={"SLURM_CUDA_POLICY": self.policy})
        self.assertEqual(sorted(result.stdout.splitlines()),
                         [f"{node} {gpu} {self.policy} {self.library}"
                          for node in ("n1", "n2") for gpu in (0, 1)], result)

    def test_a_path_with_blanks_and_signs(self):
        path = self.write("a b$c'\"*.ini", POLICY)
        self.assertEqual(self.variables(env={"SLURM_CUDA_POLICY": path})["CUDAPOLICY_FILE"], path)

    def test_without_path_and_with_an_odd_one(self):
        for path in (None, "/nowhere"):
            result = slurm_case.slurm.client(
                "srun", ENV, env={"SLURM_CUDA_POLICY": self.policy, "PATH": path})
            self.assertEqual(self.parse(result.stdout)["CUDAPOLICY_FILE"], self.policy, result)


class Jobs(TaskProlog):
    def test_script_and_steps_get_the_policy(self):
        job = self.completed("--export=NONE", script=f"{ENV}\necho next\ncd /\nsrun {ENV}\n",
                             env={"SLURM_CUDA_POLICY": self.policy})
        for text in job.output.split("next\n"):
            variables = self.parse(text)
            self.assertEqual(variables["CUDAPOLICY_FILE"], self.policy)
            self.assertEqual(variables["LD_PRELOAD"], self.library)

    def test_a_step_can_have_its_own_policy_or_none(self):
        other = self.write("other.ini", POLICY)
        job = self.completed(env={"SLURM_CUDA_POLICY": self.policy}, script=(
            f"SLURM_CUDA_POLICY={other} srun {ENV}\necho next\n"
            f"SLURM_CUDA_POLICY= SLURM_NO_CUDA_POLICY=1 srun {ENV}\n"))
        own, none = (self.parse(text) for text in job.output.split("next\n"))
        self.assertEqual(own["CUDAPOLICY_FILE"], other)
        self.assertEqual(own["LD_PRELOAD"], self.library)
        self.assertNotIn("CUDAPOLICY_FILE", none)
        self.assertNotIn("LD_PRELOAD", none)

    def test_no_policy_keeps_the_users_own_preload(self):
        variables = self.variables(env={"SLURM_NO_CUDA_POLICY": "1", "CUDAPOLICY_MODE": "off",
                                        "LD_PRELOAD": f"libm.so.6:{self.library}"})
        self.assertEqual(variables["LD_PRELOAD"], "libm.so.6")
        self.assertNotIn("CUDAPOLICY_MODE", variables)

    def test_each_task_of_an_array_has_the_policy(self):
        jobs = self.wait(self.submit("--array=0-2", script=ENV,
                                     env={"SLURM_CUDA_POLICY": self.policy}))
        self.assertEqual([job.state for job in jobs], ["COMPLETED"] * 3)
        for job in jobs:
            self.assertEqual(self.parse(job.output)["CUDAPOLICY_FILE"], self.policy)

    def failed(self, *texts, env=None):
        job = self.batch(script="echo it ran\n", env={"SLURM_CUDA_POLICY": self.policy, **(env or {})})
        self.assert_failed_and_nodes_well(job, *texts)

    def test_a_missing_policy_fails_the_job(self):
        os.unlink(self.policy)
        self.failed(f"cudapolicy: {self.policy}: no such file")

    def test_an_unreadable_policy_fails_the_job(self):
        if os.getuid() == 0:
            self.skipTest("root can read every file")
        os.chmod(self.policy, 0)
        self.failed(f"cudapolicy: {self.policy}: permission denied")

    def test_a_missing_library_fails_the_job(self):
        self.site(library=self.path("libcudapolicy.so"))
        self.failed("cudapolicy: cannot preload")

    def test_a_wrong_policy_ends_a_program_before_its_first_call(self):
        self.write("p.ini", WRONG_POLICY)
        result = self.srun(FILES["program"], "launch", "kernel", "1", "4",
                           env=self.program_environment(SLURM_CUDA_POLICY=self.policy,
                                                        RECORDING_DRIVER_LOG=self.path("calls")))
        self.assertEqual(result.status, 78, result)
        self.assertIn("p.ini:3:1", result.stderr)


class Mistakes(TaskProlog):
    def test_variables_that_contradict_each_other(self):
        self.refused({"SLURM_CUDA_POLICY": self.policy, "SLURM_NO_CUDA_POLICY": "1"},
                     f"SLURM_CUDA_POLICY={self.policy} and SLURM_NO_CUDA_POLICY are both set")

    def test_a_relative_path(self):
        self.refused({"SLURM_CUDA_POLICY": "p.ini"}, "'p.ini' is not an absolute path")

    def test_an_unknown_mode(self):
        self.refused({"SLURM_CUDA_POLICY": self.policy, "SLURM_CUDA_POLICY_MODE": "fast"},
                     "SLURM_CUDA_POLICY_MODE=fast: the modes are enforce, observe and off")

    def test_a_switch_is_read_by_its_value(self):
        for value in ("0", "no", "false", ""):
            self.assertIn("CUDAPOLICY_FILE", self.asked(env={"SLURM_NO_CUDA_POLICY": value}))
        self.refused({"SLURM_NO_CUDA_POLICY": "maybe"}, "SLURM_NO_CUDA_POLICY=maybe: it is 1 or 0")

    def test_a_line_break_cannot_smuggle_a_variable(self):
        path = self.write("p\nexport STRANGE=1", POLICY)
        self.refused({"SLURM_CUDA_POLICY": path}, "CUDAPOLICY_FILE would have a line break in it")


class Site(TaskProlog):
    def test_the_default_policy_is_for_those_who_ask_for_none(self):
        default = self.write("default.ini", POLICY)
        self.site(f"default_policy={default}")
        self.assertEqual(self.variables()["CUDAPOLICY_FILE"], default)
        self.assertEqual(self.asked()["CUDAPOLICY_FILE"], self.policy)
        self.assertEqual(self.variables(env={"CUDAPOLICY_FILE": "mine"})["CUDAPOLICY_FILE"], "mine")
        self.assert_untouched(self.variables(env={"SLURM_NO_CUDA_POLICY": "1"}))

    def test_a_default_that_cannot_be_had_does_not_end_jobs(self):
        self.site("default_policy=/gone.ini")
        self.assert_untouched(self.variables())

    def test_reports_of_the_site_are_for_those_who_have_none(self):
        self.site("reports=/site/%j/%h-%p.json")
        self.assertEqual(self.asked()["CUDAPOLICY_REPORT"], "/site/%j/%h-%p.json")
        self.assertEqual(self.asked(env={"CUDAPOLICY_REPORT": "mine"})["CUDAPOLICY_REPORT"], "mine")
        self.assert_untouched(self.variables())

    def test_in_a_folder_each_process_has_a_report(self):
        self.site("reports=/site/%j/", "command=/usr/bin/cudapolicy")
        self.assertEqual(self.asked()["CUDAPOLICY_REPORT"], "/site/%j/%j-%h-%p.json")

    def test_the_ceiling_lowers_the_mode_and_never_raises_it(self):
        self.site("mode_ceiling=observe")
        self.assertEqual(self.asked()["CUDAPOLICY_MODE"], "observe")
        for asked, mode in (("enforce", "observe"), ("observe", "observe"), ("off", "off")):
            variables = self.asked(env={"SLURM_CUDA_POLICY_MODE": asked})
            self.assertEqual(variables["CUDAPOLICY_MODE"], mode)
            variables = self.variables(env={"CUDAPOLICY_MODE": asked, "LD_PRELOAD": self.library})
            self.assertEqual(variables["CUDAPOLICY_MODE"], mode)

    def test_a_mistake_in_the_settings_stops_only_those_who_ask_for_a_policy(self):
        self.site("mode_celing=off")
        self.assert_untouched(self.variables())
        self.refused({"SLURM_CUDA_POLICY": self.policy}, "'mode_celing=off' is none of ")


if __name__ == "__main__":
    slurm_case.main(needs_plugin=False, more="TaskProlog={folder}/site-prolog")
