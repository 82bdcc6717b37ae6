# SPDX-License-Identifier: Apache-2.0
"""The Slurm plugin, on a Slurm with two nodes."""

import glob
import os
import pwd
import shutil
import subprocess
import unittest

import slurm_case
from slurm_case import ENV, FILES, POLICY, VARIABLES, WRONG_POLICY, Case

SHOW = f"{ENV} | grep -e LD_PRELOAD -e CUDA\n"


class Plugin(Case):
    """With the library, and nothing else, given in plugstack.conf."""

    def setUp(self):
        super().setUp()
        self.plugstack()

    def plugstack(self, *arguments, word="required", library=None):
        slurm_case.slurm.plugstack(" ".join(
            [word, FILES["plugin"], f"library={library or self.library}", *arguments]) + "\n")

    def assert_refused(self, result, *texts):
        self.assertNotEqual(result.status, 0, result)
        self.assertEqual(result.stdout, "", result)
        self.assertRegex(result.stderr, r"(?m)^(srun|sbatch|salloc): error: cudapolicy: ")
        for text in texts:
            self.assertIn(text, result.stderr)


class TheFile(unittest.TestCase):
    def readelf(self, *arguments):
        return subprocess.run(["readelf", "-W", *arguments, FILES["plugin"]], check=True,
                              stdout=subprocess.PIPE, text=True).stdout

    def test_needs_libc_alone(self):
        needed = [line.split("[")[1].rstrip("]\n") for line in self.readelf("-d").splitlines()
                  if "(NEEDED)" in line]
        self.assertEqual([name for name in needed if not name.startswith("libc.so.")], [])

    def test_exports_what_slurm_calls_and_no_more(self):
        exported = [line.split()[7] for line in self.readelf("--dyn-syms").splitlines()
                    if len(line.split()) == 8 and line.split()[4] in ("GLOBAL", "WEAK") and
                    line.split()[6] != "UND"]
        for name in exported:
            self.assertRegex(name, "^(slurm_spank_|plugin_|spank_plugin_version$)")
        self.assertIn("slurm_spank_task_init", exported)


class Srun(Plugin):
    def test_the_options_are_in_the_help_of_every_client(self):
        for program in ("srun", "sbatch", "salloc"):
            text = self.client(program, "--help").stdout
            for option in ("--cuda-policy=FILE", "--no-cuda-policy", "--cuda-policy-mode=MODE",
                           "--cuda-policy-report=TEMPLATE"):
                self.assertIn(option, text)

    def test_a_task_gets_the_policy_and_the_library(self):
        variables = self.variables(f"--cuda-policy={self.policy}")
        self.assertEqual(variables["CUDAPOLICY_FILE"], self.policy)
        self.assertEqual(variables["LD_PRELOAD"], self.library)
        self.assertNotIn("CUDAPOLICY_MODE", variables)
        self.assertNotIn("CUDAPOLICY_REPORT", variables)

    def test_without_a_library_argument_it_is_the_one_installed_with_the_plugin(self):
        """Wherever that tree is: the path of the build is not there."""
        tree = slurm_case.slurm.path("moved/lib")
        os.makedirs(os.path.join(tree, "slurm"))
        self.addCleanup(shutil.rmtree, os.path.dirname(tree))
        plugin = shutil.copy(FILES["plugin"], os.path.join(tree, "slurm"))
        library = shutil.copy(self.library, tree)
        slurm_case.slurm.plugstack(f"required {plugin}\n")
        variables = self.variables(f"--cuda-policy={self.policy}")
        self.assertEqual(variables["LD_PRELOAD"], library)

    def test_a_task_without_policy_is_left_alone(self):
        self.assert_untouched(self.variables())
        variables = self.variables(env={"LD_PRELOAD": "libm.so.6", "CUDAPOLICY_FILE": "mine"})
        self.assertEqual(variables["LD_PRELOAD"], "libm.so.6")
        self.assertEqual(variables["CUDAPOLICY_FILE"], "mine")

    def test_the_policy_reaches_the_driver_on_both_nodes(self):
        result = self.srun("-N2", "-n2", "--cuda-policy=p.ini", slurm_case.SHELL, "-c",
                           f"RECORDING_DRIVER_LOG=calls-$SLURM_PROCID {FILES['program']} "
                           "launch kernel 1 4", env=self.program_environment())
        self.assertEqual(result.status, 0, result)
        for rank in range(2):
            self.assert_policy_reached_the_driver(f"calls-{rank}")

    def test_the_users_own_preload_stays_first(self):
        for own in ("libm.so.6", "libm.so.6:libdl.so.2", "libm.so.6 libdl.so.2"):
            variables = self.variables("--cuda-policy=p.ini", env={"LD_PRELOAD": own})
            self.assertEqual(variables["LD_PRELOAD"], own.replace(" ", ":") + ":" + self.library)

    def test_a_library_that_is_preloaded_already_is_not_added(self):
        own = f"{self.library}:libm.so.6"
        variables = self.variables("--cuda-policy=p.ini", env={"LD_PRELOAD": own})
        self.assertEqual(variables["LD_PRELOAD"], own)
        twice = f"{self.library}:libm.so.6:/elsewhere/libcudapolicy.so"
        variables = self.variables("--cuda-policy=p.ini", env={"LD_PRELOAD": twice})
        self.assertEqual(variables["LD_PRELOAD"], own)

    def test_a_relative_path_is_seen_from_the_folder_of_submission(self):
        os.mkdir(self.path("elsewhere"))
        os.mkdir(self.path("with % sign"))
        variables = self.variables("--cuda-policy=p.ini", "--cuda-policy-report=%h-%p.json",
                                   f"--chdir={self.path('elsewhere')}")
        self.assertEqual(variables["CUDAPOLICY_FILE"], self.policy)
        self.assertEqual(variables["CUDAPOLICY_REPORT"], self.path("%h-%p.json"))
        variables = self.variables("--cuda-policy=../p.ini", "--cuda-policy-report=%h.json",
                                   cwd=self.path("with % sign"))
        self.assertEqual(os.path.realpath(variables["CUDAPOLICY_FILE"]), self.policy)
        self.assertEqual(variables["CUDAPOLICY_REPORT"], self.path("with %% sign", "%h.json"))

    def test_export_none_loses_nothing(self):
        for export in ("NONE", "A=1"):
            variables = self.variables(f"--export={export}", "--cuda-policy=p.ini",
                                       "--cuda-policy-mode=observe", "--cuda-policy-report=r")
            self.assertEqual(variables["CUDAPOLICY_FILE"], self.policy)
            self.assertEqual(variables["CUDAPOLICY_MODE"], "observe")
            self.assertEqual(variables["CUDAPOLICY_REPORT"], self.path("r"))
            self.assertEqual(variables["LD_PRELOAD"], self.library)

    def test_each_mode_arrives(self):
        for mode in ("enforce", "observe", "off"):
            variables = self.variables("--cuda-policy=p.ini", f"--cuda-policy-mode={mode}",
                                       env={"CUDAPOLICY_MODE": "observe"})
            self.assertEqual(variables["CUDAPOLICY_MODE"], mode)

    def test_variables_of_the_policy_are_set(self):
        self.write("env.ini", POLICY + VARIABLES)
        own = {"NCCL_PROTO": "Simple", "NCCL_MAX_CTAS": "9"}
        names = ("NCCL_PROTO", "NCCL_ALGO", "NCCL_MAX_CTAS")
        for mode, wanted in ((None, ("Simple", "Ring, Tree", "4")), ("observe", ("Simple", None, "9"))):
            variables = self.variables("--cuda-policy=env.ini", env={**own, "SLURM_CUDA_POLICY_MODE": mode})
            self.assertEqual(tuple(variables.get(name) for name in names), wanted)
        self.plugstack("mode_ceiling=observe")
        variables = self.variables("--cuda-policy=env.ini", env=own)
        self.assertEqual(tuple(variables.get(name) for name in names), ("Simple", None, "9"))
        self.plugstack(f"default_policy={self.path('env.ini')}")
        self.assertEqual(tuple(self.variables().get(name) for name in names), ("LL", "Ring, Tree", "4"))

    def test_a_report_can_be_had_without_a_policy(self):
        variables = self.variables("--cuda-policy-report=/r/%h-%p.json")
        self.assertEqual(variables["CUDAPOLICY_REPORT"], "/r/%h-%p.json")
        self.assertEqual(variables["LD_PRELOAD"], self.library)
        self.assertNotIn("CUDAPOLICY_FILE", variables)

    def test_reports_of_a_job_name_it(self):
        result = self.srun("-n2", "--cuda-policy=p.ini", "--cuda-policy-report=%j-%r.json",
                           FILES["program"], "launch", "kernel", "1", "4",
                           env=self.program_environment())
        self.assertEqual(result.status, 0, result)
        ranks = sorted(os.path.basename(path).split("-")[1]
                       for path in glob.glob(self.path("*.json")))
        self.assertEqual(ranks, ["0.json", "1.json"])

    def test_every_task_has_its_own_gpu_and_the_policy(self):
        result = self.srun("-N2", "-n4", "--gpus-per-task=1", "--cuda-policy=p.ini",
                           slurm_case.SHELL, "-c",
                           "echo $SLURMD_NODENAME $CUDA_VISIBLE_DEVICES $CUDAPOLICY_FILE $LD_PRELOAD")
        self.assertEqual(sorted(result.stdout.splitlines()),
                         [f"{node} {gpu} {self.policy} {self.library}"
                          for node in ("n1", "n2") for gpu in (0, 1)], result)


class Variables(Plugin):
    def test_variables_do_what_the_options_do(self):
        variables = self.variables(env={"SLURM_CUDA_POLICY": "p.ini",
                                        "SLURM_CUDA_POLICY_MODE": "observe",
                                        "SLURM_CUDA_POLICY_REPORT": "r-%p"})
        self.assertEqual(variables["CUDAPOLICY_FILE"], self.policy)
        self.assertEqual(variables["CUDAPOLICY_MODE"], "observe")
        self.assertEqual(variables["CUDAPOLICY_REPORT"], self.path("r-%p"))
        own = {"CUDAPOLICY_FILE": "mine", "LD_PRELOAD": self.library}
        self.assert_untouched(self.variables(env={"SLURM_NO_CUDA_POLICY": "1", **own}))

    def test_sbatch_takes_the_variables(self):
        job = self.completed(script=SHOW, env={"SLURM_CUDA_POLICY": "p.ini"})
        self.assertEqual(self.parse(job.output)["CUDAPOLICY_FILE"], self.policy)

    def test_a_switch_is_read_by_its_value(self):
        for value in ("0", "no", "false", ""):
            variables = self.variables(env={"SLURM_CUDA_POLICY": "p.ini",
                                            "SLURM_NO_CUDA_POLICY": value})
            self.assertEqual(variables["CUDAPOLICY_FILE"], self.policy)
        self.assert_refused(self.srun(ENV, env={"SLURM_NO_CUDA_POLICY": "maybe"}),
                            "SLURM_NO_CUDA_POLICY=maybe: it is 1 or 0")

    def test_an_option_beats_the_variables(self):
        other = self.write("other.ini", POLICY)
        variables = self.variables("--cuda-policy=other.ini", "--cuda-policy-mode=off",
                                   env={"SLURM_CUDA_POLICY": "gone.ini",
                                        "SLURM_CUDA_POLICY_MODE": "observe"})
        self.assertEqual(variables["CUDAPOLICY_FILE"], other)
        self.assertEqual(variables["CUDAPOLICY_MODE"], "off")
        both = {"SLURM_CUDA_POLICY": "p.ini", "SLURM_NO_CUDA_POLICY": "1"}
        self.assert_untouched(self.variables("--no-cuda-policy", env=both))
        variables = self.variables("--cuda-policy=other.ini", env=both)
        self.assertEqual(variables["CUDAPOLICY_FILE"], other)

    def test_variables_that_contradict_each_other_are_refused(self):
        for program in ("srun", "salloc"):
            self.assert_refused(self.client(program, ENV, env={"SLURM_CUDA_POLICY": "p.ini",
                                                               "SLURM_NO_CUDA_POLICY": "1"}),
                                "SLURM_CUDA_POLICY=p.ini and SLURM_NO_CUDA_POLICY are both set")

    def test_an_unknown_mode_is_refused(self):
        for options, env in ((["--cuda-policy-mode=fast"], {}),
                             ([], {"SLURM_CUDA_POLICY_MODE": "fast"})):
            self.assert_refused(self.srun("--cuda-policy=p.ini", *options, ENV, env=env),
                                "=fast: the modes are enforce, observe and off")

    def test_the_options_win_over_the_librarys_own_variables(self):
        variables = self.variables("--cuda-policy=p.ini", "--cuda-policy-report=/r",
                                   env={"CUDAPOLICY_FILE": "mine", "CUDAPOLICY_REPORT": "mine"})
        self.assertEqual(variables["CUDAPOLICY_FILE"], self.policy)
        self.assertEqual(variables["CUDAPOLICY_REPORT"], "/r")


class Refused(Plugin):
    def refused(self, policy, *texts, **options):
        for program, rest in (("srun", [ENV]), ("salloc", [ENV]), ("sbatch", ["--wrap", ENV])):
            self.assert_refused(self.client(program, f"--cuda-policy={policy}", *rest, **options),
                                *texts)

    def test_a_missing_policy(self):
        self.refused("gone.ini", "gone.ini: cannot open the policy")

    def test_a_folder(self):
        self.refused(self.folder, "cudapolicy: ")

    def test_a_policy_with_mistakes_which_are_all_named(self):
        self.write("wrong.ini", WRONG_POLICY + "[kernel k]\nnaem = x\n")
        self.refused("wrong.ini", 'wrong.ini:3:1: unknown key "moed"', "wrong.ini:5:1: unknown key")

    def test_an_empty_name(self):
        self.refused("", "cudapolicy: --cuda-policy: no value given")

    def test_a_directive_of_the_script(self):
        path = self.write("job.sh", "#!/bin/sh\n#SBATCH --cuda-policy=gone.ini\n", 0o755)
        self.assert_refused(self.client("sbatch", path), "gone.ini: cannot open the policy")

    def test_a_wrong_report_template(self):
        self.assert_refused(self.srun("--cuda-policy=p.ini", "--cuda-policy-report=%x", ENV), "%x")

    def test_two_values_for_one_option_of_srun(self):
        self.write("q.ini", POLICY)
        self.assert_refused(self.srun("--cuda-policy=p.ini", "--cuda-policy=q.ini", ENV),
                            "--cuda-policy given twice: 'p.ini' and 'q.ini'")
        for pair in (("--cuda-policy=p.ini", "--no-cuda-policy"),
                     ("--no-cuda-policy", "--cuda-policy=p.ini")):
            self.assert_refused(self.srun(*pair, ENV), "--cuda-policy and --no-cuda-policy together")
        self.variables("--cuda-policy=p.ini", "--cuda-policy=p.ini")

    def test_an_option_without_effect(self):
        self.assert_refused(self.srun("--cuda-policy-mode=observe", ENV),
                            "--cuda-policy-mode has no effect without a policy")
        self.assert_refused(self.srun("--cuda-policy-mode=observe", ENV,
                                      env={"CUDAPOLICY_FILE": self.policy}), "has no effect")
        variables = self.variables("--cuda-policy-mode=observe", env={"LD_PRELOAD": self.library})
        self.assertEqual(variables["CUDAPOLICY_MODE"], "observe")
        self.assert_refused(self.srun("--no-cuda-policy", "--cuda-policy-report=r", ENV),
                            "--cuda-policy-report has no effect")

    def test_an_unreadable_policy(self):
        if os.getuid() == 0:
            self.skipTest("root can read every file")
        self.write("secret.ini", POLICY, 0o000)
        self.refused("secret.ini", "secret.ini: cannot open the policy: permission denied")


class Batch(Plugin):
    def test_directives_reach_the_script_and_its_steps(self):
        job = self.completed(script="#SBATCH --cuda-policy=p.ini\n#SBATCH --cuda-policy-mode=observe\n"
                                    f"cd /\n{SHOW}\necho in a step\nsrun {ENV} | grep -e PRE -e CUDA\n")
        script, step = (self.parse(text) for text in job.output.split("in a step"))
        for variables in (script, step):
            self.assertEqual(variables["CUDAPOLICY_FILE"], self.policy)
            self.assertEqual(variables["CUDAPOLICY_MODE"], "observe")
            self.assertEqual(variables["LD_PRELOAD"], self.library)

    def test_the_command_line_beats_a_directive(self):
        other = self.write("other.ini", POLICY)
        script = "#SBATCH --cuda-policy=p.ini\n" + SHOW
        job = self.completed("--cuda-policy=other.ini", script=script)
        self.assertEqual(self.parse(job.output)["CUDAPOLICY_FILE"], other)
        job = self.completed("--no-cuda-policy", script=script + "true\n")
        self.assert_untouched(self.parse(job.output))
        job = self.completed("--cuda-policy=other.ini", script="#SBATCH --no-cuda-policy\n" + SHOW)
        self.assertEqual(self.parse(job.output)["CUDAPOLICY_FILE"], other)

    def test_a_step_can_have_its_own_policy_or_none(self):
        other = self.write("other.ini", POLICY)
        job = self.completed("--cuda-policy=p.ini", script=(
            f"srun --cuda-policy=other.ini --cuda-policy-mode=off {ENV}; echo next\n"
            f"srun --no-cuda-policy {ENV}; echo next\n"
            f"srun {ENV}\n"))
        own, none, inherited = (self.parse(text) for text in job.output.split("next\n"))
        self.assertEqual(own["CUDAPOLICY_FILE"], other)
        self.assertEqual(own["CUDAPOLICY_MODE"], "off")
        self.assertEqual(own["LD_PRELOAD"], self.library)
        self.assert_untouched(none)
        self.assertEqual(inherited["CUDAPOLICY_FILE"], self.policy)
        self.assertEqual(inherited["LD_PRELOAD"], self.library)

    def test_a_step_can_have_a_policy_where_the_job_has_none(self):
        job = self.completed("--no-cuda-policy",
                             script=f"{SHOW}\necho next\nsrun --cuda-policy=p.ini {ENV}\n")
        script, step = (self.parse(text) for text in job.output.split("next\n"))
        self.assert_untouched(script)
        self.assertEqual(step["CUDAPOLICY_FILE"], self.policy)

    def test_export_none_loses_nothing(self):
        for export in ("NONE", "A=1"):
            job = self.completed(f"--export={export}", "--cuda-policy=p.ini",
                                 script=f"{ENV}\necho next\nsrun {ENV}\n")
            for text in job.output.split("next\n"):
                variables = self.parse(text)
                self.assertEqual(variables["CUDAPOLICY_FILE"], self.policy)
                self.assertEqual(variables["LD_PRELOAD"], self.library)

    def test_chdir_does_not_move_the_policy(self):
        os.mkdir(self.path("elsewhere"))
        job = self.completed("--cuda-policy=p.ini", f"--chdir={self.path('elsewhere')}",
                             script=f"pwd; {SHOW}\n")
        self.assertTrue(job.output.startswith(self.path("elsewhere")), job)
        self.assertEqual(self.parse(job.output)["CUDAPOLICY_FILE"], self.policy)

    def test_each_task_of_an_array_has_the_policy(self):
        jobs = self.wait(self.submit("--array=0-2", "--cuda-policy=p.ini", script=SHOW))
        self.assertEqual([job.state for job in jobs], ["COMPLETED"] * 3)
        for job in jobs:
            self.assertEqual(self.parse(job.output)["CUDAPOLICY_FILE"], self.policy)

    def test_salloc_leaves_its_command_alone_and_hands_on_to_steps(self):
        result = self.client("salloc", "--cuda-policy=p.ini", slurm_case.SHELL, "-c",
                             f"{ENV}; echo next; srun {ENV}")
        command, step = (self.parse(text) for text in result.stdout.split("next\n"))
        self.assert_untouched(command)
        self.assertEqual(step["CUDAPOLICY_FILE"], self.policy)
        self.assertEqual(step["LD_PRELOAD"], self.library)

    def test_the_policy_reaches_the_driver(self):
        job = self.completed("--cuda-policy=p.ini", script=(
            f"srun {FILES['program']} launch kernel 1 4\n"),
            env=self.program_environment(RECORDING_DRIVER_LOG=self.path("calls")))
        self.assert_policy_reached_the_driver("calls")
        self.assertEqual(job.output, "")


class Failed(Plugin):
    """What goes wrong between submission and start ends the job, and leaves the nodes well."""

    def after_submission(self, change, *arguments, script="echo it ran\n", **options):
        number = self.submit("--hold", "--cuda-policy=p.ini", *arguments, script=script, **options)
        change()
        result = self.client("scontrol", "release", str(number))
        self.assertEqual(result.status, 0, result)
        return self.wait(number)[0]

    def test_a_policy_that_disappears(self):
        job = self.after_submission(lambda: os.unlink(self.policy))
        self.assert_failed_and_nodes_well(job, f"cudapolicy: {self.policy}: cannot open the policy")

    def test_a_policy_that_becomes_wrong(self):
        job = self.after_submission(lambda: self.write("p.ini", WRONG_POLICY))
        self.assert_failed_and_nodes_well(job, f"{self.policy}:3:1: unknown key")

    def test_a_policy_that_a_step_does_not_find(self):
        job = self.batch("--cuda-policy=p.ini",
                         script=f"rm {self.policy}\nsrun echo it ran\n")
        self.assert_failed_and_nodes_well(job, f"srun: error: cudapolicy: {self.policy}")

    def test_a_missing_library(self):
        self.plugstack(library=self.path("libcudapolicy.so"))
        result = self.srun("-N2", "--cuda-policy=p.ini", "echo", "it ran")
        self.assertNotEqual(result.status, 0, result)
        self.assertNotIn("it ran", result.stdout)
        self.assertIn(f"cudapolicy: cannot preload '{self.path('libcudapolicy.so')}': No such file",
                      result.stderr)
        job = self.batch("--cuda-policy=p.ini", script="echo it ran\n")
        self.assert_failed_and_nodes_well(job, "cudapolicy: cannot preload")

    def test_a_file_that_is_no_library(self):
        self.plugstack(library=self.write("libcudapolicy.so", "text"))
        job = self.batch("--cuda-policy=p.ini", script="echo it ran\n")
        self.assert_failed_and_nodes_well(job, "not a shared library")

    def test_the_users_own_copy_of_the_library_that_is_missing(self):
        result = self.srun("--cuda-policy=p.ini", "echo", "it ran",
                           env={"LD_PRELOAD": "/gone/libcudapolicy.so"})
        self.assertNotEqual(result.status, 0, result)
        self.assertIn("cannot preload '/gone/libcudapolicy.so'", result.stderr)

    def test_the_node_says_it_once_for_all_its_tasks(self):
        self.plugstack(library=self.path("libcudapolicy.so"))
        result = self.srun("-N1", "-n3", "--cuda-policy=p.ini", "echo", "it ran")
        self.assertEqual(result.stderr.count("cannot preload"), 1, result)
        self.assertEqual(result.stdout, "")


class Site(Plugin):
    def setUp(self):
        super().setUp()
        self.default = self.write("default.ini", POLICY)

    def test_the_default_policy_is_for_those_who_ask_for_none(self):
        self.plugstack(f"default_policy={self.default}")
        variables = self.variables()
        self.assertEqual(variables["CUDAPOLICY_FILE"], self.default)
        self.assertEqual(variables["LD_PRELOAD"], self.library)
        self.assertEqual(self.variables("--cuda-policy=p.ini")["CUDAPOLICY_FILE"], self.policy)
        variables = self.variables(env={"CUDAPOLICY_FILE": "mine"})
        self.assertEqual(variables["CUDAPOLICY_FILE"], "mine")
        self.assert_untouched(self.variables("--no-cuda-policy"))
        self.assertEqual(self.variables("--cuda-policy-mode=observe")["CUDAPOLICY_MODE"], "observe")

    def test_a_default_that_cannot_be_had_does_not_end_jobs(self):
        self.plugstack("default_policy=/gone.ini")
        result = self.srun(ENV)
        self.assertEqual(result.status, 0, result)
        self.assert_untouched(self.parse(result.stdout))
        self.assertIn("cudapolicy: /gone.ini: cannot open the policy", result.stderr)
        self.plugstack(f"default_policy={self.default}", library="/gone.so")
        result = self.srun(ENV)
        self.assertEqual(result.status, 0, result)
        self.assert_untouched(self.parse(result.stdout))
        self.assertIn("the site's default policy is not applied", result.stderr)

    def test_reports_of_the_site_are_for_those_who_have_none(self):
        self.plugstack("reports=/site/%j/%h-%p.json")
        variables = self.variables("--cuda-policy=p.ini")
        self.assertEqual(variables["CUDAPOLICY_REPORT"], "/site/%j/%h-%p.json")
        variables = self.variables("--cuda-policy=p.ini", "--cuda-policy-report=/r")
        self.assertEqual(variables["CUDAPOLICY_REPORT"], "/r")
        variables = self.variables("--cuda-policy=p.ini", env={"CUDAPOLICY_REPORT": "mine"})
        self.assertEqual(variables["CUDAPOLICY_REPORT"], "mine")
        self.assert_untouched(self.variables())

    def test_the_ceiling_lowers_the_mode_and_never_raises_it(self):
        self.plugstack("mode_ceiling=observe")
        self.assertEqual(self.variables("--cuda-policy=p.ini")["CUDAPOLICY_MODE"], "observe")
        for asked, mode in (("enforce", "observe"), ("observe", "observe"), ("off", "off")):
            variables = self.variables("--cuda-policy=p.ini", f"--cuda-policy-mode={asked}")
            self.assertEqual(variables["CUDAPOLICY_MODE"], mode)
            variables = self.variables(env={"CUDAPOLICY_MODE": asked, "LD_PRELOAD": self.library})
            self.assertEqual(variables["CUDAPOLICY_MODE"], mode)

    def test_who_asks_for_more_than_the_ceiling_is_told(self):
        self.plugstack("mode_ceiling=observe")
        result = self.srun("--cuda-policy=p.ini", "--cuda-policy-mode=enforce", ENV)
        self.assertIn("cudapolicy: the mode will be observe instead of enforce", result.stderr)

    def test_a_mistake_in_the_settings_stops_only_those_who_ask_for_a_policy(self):
        for mistake in ("mode_celing=off", "mode_ceiling=low", "default_policy=p.ini", "reports=/%x"):
            self.plugstack(mistake)
            result = self.srun(ENV)
            self.assertEqual(result.status, 0, result)
            self.assert_untouched(self.parse(result.stdout))
            self.assertIn("srun: error: cudapolicy: plugstack.conf: ", result.stderr)
        self.assert_refused(self.srun("--cuda-policy=p.ini", ENV), "plugstack.conf: ")

    def test_an_optional_plugin_never_stops_a_job(self):
        self.plugstack(word="optional")
        # Slurm hands on to the task what was refused; it is refused there as well.
        for policy in ("gone.ini", "/gone.ini"):
            result = self.srun(f"--cuda-policy={policy}", ENV)
            self.assertEqual(result.status, 0, result)
            self.assert_untouched(self.parse(result.stdout))
            self.assertIn(f"srun: error: cudapolicy: {policy}: cannot open", result.stderr)
        self.assertEqual(self.variables("--cuda-policy=p.ini")["CUDAPOLICY_FILE"], self.policy)

    def test_an_optional_plugin_lets_a_job_run_whose_policy_disappeared(self):
        self.plugstack(word="optional")
        number = self.submit("--hold", "--cuda-policy=p.ini", script=SHOW)
        os.unlink(self.policy)
        self.client("scontrol", "release", str(number))
        job = self.wait(number)[0]
        self.assertEqual(job.state, "COMPLETED", job)
        self.assertIn(f"cudapolicy: {self.policy}: cannot open the policy", job.output)
        self.assert_untouched(self.parse(job.output))

    def test_a_plugin_that_is_not_there_stops_every_job_only_where_it_is_required(self):
        slurm_case.slurm.plugstack("required /gone/spank_cudapolicy.so\n")
        self.assertNotEqual(self.srun(ENV).status, 0)
        slurm_case.slurm.plugstack("optional /gone/spank_cudapolicy.so\n")
        self.assert_untouched(self.variables())

    def test_a_site_switches_it_off_by_its_line(self):
        slurm_case.slurm.plugstack("")
        result = self.srun("--cuda-policy=p.ini", ENV)
        self.assertIn("unrecognized option '--cuda-policy=p.ini'", result.stderr)
        self.assert_untouched(self.variables(env={"SLURM_CUDA_POLICY": self.policy}))


class OtherUser(Plugin):
    """Daemons of root, jobs of an ordinary user."""

    def setUp(self):
        super().setUp()
        if os.getuid() != 0:
            self.skipTest("only root can submit as somebody else")
        try:
            entry = pwd.getpwnam(slurm_case.ORDINARY_USER)
        except KeyError:
            self.skipTest(f"no user '{slurm_case.ORDINARY_USER}'")
        self.user = (entry.pw_uid, entry.pw_gid)

    def test_an_unreadable_policy_is_refused(self):
        self.write("secret.ini", POLICY, 0o600)
        for program, rest in (("srun", [ENV]), ("sbatch", ["--wrap", ENV])):
            self.assert_refused(self.client(program, "--cuda-policy=secret.ini", *rest,
                                            user=self.user),
                                "secret.ini: cannot open the policy: permission denied")

    def test_a_policy_that_becomes_unreadable_fails_the_job(self):
        number = self.submit("--hold", "--cuda-policy=p.ini", script="echo it ran\n", user=self.user)
        os.chmod(self.policy, 0o600)
        self.client("scontrol", "release", str(number))
        self.assert_failed_and_nodes_well(self.wait(number)[0], "permission denied")

    def test_an_unreadable_library_fails_the_job(self):
        self.plugstack(library=self.write("libcudapolicy.so", "", 0o600))
        job = self.batch("--cuda-policy=p.ini", script="echo it ran\n", user=self.user)
        self.assert_failed_and_nodes_well(job, "cannot preload", "Permission denied")

    def test_the_policy_reaches_the_driver(self):
        result = self.srun("--cuda-policy=p.ini", FILES["program"], "launch", "kernel", "1", "4",
                           env=self.program_environment(RECORDING_DRIVER_LOG=self.path("calls")),
                           user=self.user)
        self.assertEqual(result.status, 0, result)
        self.assert_policy_reached_the_driver("calls")


if __name__ == "__main__":
    slurm_case.main(needs_plugin=True)
