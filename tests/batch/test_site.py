# SPDX-License-Identifier: Apache-2.0
"""What the plugin and the TaskProlog do with the site's file, which they find in the task's folder."""

import os

import slurm_case
from slurm_case import FILES, Case

HEAD = "[policy]\nversion = 1\n"
RULES = HEAD + "\n[locked]\n[kernel site]\nname = *\nmem_sync_domain = remote\n"


def decoded(text):
    parts = text.split("%")
    return parts[0] + "".join(chr(int(part[:2], 16)) + part[2:] for part in parts[1:])


class SiteCase(Case):
    def setUp(self):
        super().setUp()
        os.chmod(self.folder, 0o755)  # one that everybody may write to is no place for the file
        self.plugins(plugin=False, prolog=False)

    def plugins(self, plugin, prolog, library=None, settings=""):
        settings = f"library={library or self.library} {settings}"
        slurm_case.slurm.plugstack(f"required {FILES['plugin']} {settings}\n" if plugin else "# none\n")
        text = f"#!/bin/sh\nexec {FILES['task-prolog']} {settings}\n" if prolog else "#!/bin/sh\n"
        temporary = slurm_case.slurm.write("site-prolog.new", text, 0o755)
        os.rename(temporary, slurm_case.slurm.path("site-prolog"))

    def asked(self):
        return {"SLURM_CUDA_POLICY": self.policy}


class Both:
    """Of the plugin and of the TaskProlog alike."""

    def test_a_task_gets_the_sites_file_to_take_along(self):
        for text in (RULES, HEAD + "[site]\n\treports = /r/%j-%%.json ; 100 % of them\n# no line end"):
            self.write("site.ini", text)
            variables = self.variables(env=self.asked())
            self.assertNotIn("\n", variables["CUDAPOLICY_SITE"])
            self.assertEqual(decoded(variables["CUDAPOLICY_SITE"]), text)

    def test_without_a_file_there_is_no_variable(self):
        self.assertNotIn("CUDAPOLICY_SITE", self.variables(env=self.asked()))
        self.assert_untouched(self.variables())

    def test_a_site_with_rules_or_reports_has_all_tasks_under_the_library(self):
        for text in (RULES, HEAD + "[site]\nreports = /r/%p.json\n"):
            self.write("site.ini", text)
            variables = self.variables()
            self.assertEqual(variables["LD_PRELOAD"], self.library)
            self.assertNotIn("CUDAPOLICY_FILE", variables)
            self.assertEqual(decoded(variables["CUDAPOLICY_SITE"]), text)
        self.assert_untouched(self.variables(env={"SLURM_NO_CUDA_POLICY": "1"}))
        self.write("site.ini", HEAD + "[site]\nmode = observe\n")
        self.assert_untouched(self.variables())

    def test_variables_of_a_policy_are_set_in_the_mode_that_the_site_leaves_it(self):
        silent = self.write("silent.ini", HEAD + "[env]\nNCCL_PROTO = LL\n")
        saying = self.write("saying.ini", HEAD + "mode = enforce\n[env]\nNCCL_PROTO = LL\n")
        for site, policy, value in (("mode_ceiling = observe", saying, None), ("mode = observe", silent, None),
                                    ("mode = off", silent, None), ("mode = observe", saying, "LL"),
                                    ("mode = enforce", silent, "LL")):
            self.write("site.ini", HEAD + f"[site]\n{site}\n")
            variables = self.variables(env={"SLURM_CUDA_POLICY": policy})
            self.assertEqual(variables.get("NCCL_PROTO"), value, (site, policy))
            self.assertNotIn("CUDAPOLICY_MODE", variables)

    def test_values_of_variables_arrive_as_they_stand(self):
        values = {"A_QUOTES": "say \"hi\" 'x' \\x", "A_SIGNS": "* $HOME `id` 100% %41 a=b=c", "A_WORD": "häß",
                  "A_BLANKS": "a  b", "A_EMPTY": "", "A_SPACE": "  around  "}
        lines = "".join(f'{name} = "{value}"\n' if '"' not in value else f"{name} = {value}\n"
                        for name, value in values.items())
        policy = self.write("odd.ini", HEAD + "[env]\n" + lines)
        variables = self.variables(env={"SLURM_CUDA_POLICY": policy})
        self.assertEqual({name: variables.get(name) for name in values}, values)

    def test_a_policy_that_does_not_fit_the_sites_sets_no_variable(self):
        rest = "[partition rest]\nsm_count = rest\n"
        self.write("site.ini", HEAD + "[locked]\n" + rest)
        policy = self.write("rest.ini", HEAD + rest + "[env]\nNCCL_PROTO = LL\n")
        variables = self.variables(env={"SLURM_CUDA_POLICY": policy})
        self.assertEqual((variables["CUDAPOLICY_FILE"], variables.get("NCCL_PROTO")), (policy, None))

    def test_the_ceiling_of_the_settings_raises_no_mode_that_the_site_or_the_policy_has(self):
        self.install(settings="mode_ceiling=observe")
        enforced = self.write("enforced.ini", HEAD + "mode = enforce\n")
        for site, policy, mode in (("mode = off", self.policy, "off"), ("mode = off", enforced, "observe"),
                                   ("mode_ceiling = off", enforced, "off"),
                                   ("mode = enforce", self.policy, "observe")):
            self.write("site.ini", HEAD + f"[site]\n{site}\n")
            variables = self.variables(env={"SLURM_CUDA_POLICY": policy})
            self.assertEqual(variables["CUDAPOLICY_MODE"], mode, (site, policy))

    def test_a_large_file_is_not_taken_along(self):
        self.write("site.ini", RULES + "; comment\n" * 7000)
        variables = self.variables(env=self.asked())
        self.assertNotIn("CUDAPOLICY_SITE", variables)
        self.assertEqual(variables["CUDAPOLICY_FILE"], self.policy)

    def test_the_rules_reach_a_task_that_does_not_see_the_file(self):
        self.write("site.ini", RULES)
        # In another folder, as in a container, there is no such file.
        os.mkdir(self.path("container"))
        result = self.srun(slurm_case.SHELL, "-c",
                           f"cd container && RECORDING_DRIVER_LOG={self.path('calls')} "
                           f"{FILES['program']} launch kernel 1 4", env=self.program_environment())
        self.assertEqual(result.status, 0, result)
        self.assert_policy_reached_the_driver("calls")

    def test_a_library_that_is_not_there_ends_no_job_of_those_who_did_not_ask(self):
        self.write("site.ini", RULES)
        self.install("/gone/libcudapolicy.so")
        self.assert_untouched(self.variables())


class ThePlugin(Both, SiteCase):
    def setUp(self):
        super().setUp()
        self.install()

    def install(self, library=None, settings=""):
        self.plugins(plugin=True, prolog=False, library=library, settings=settings)

    def test_a_file_that_is_refused_is_complained_of_and_stops_nobody(self):
        os.chmod(self.write("site.ini", RULES), 0o666)
        result = self.srun(slurm_case.ENV)
        self.assertEqual(result.status, 0, result)
        self.assertIn("may be written to by others", result.stderr)
        self.assertIn("the site's file is not applied", result.stderr)
        self.assert_untouched(self.parse(result.stdout))
        self.write("site.ini", "[locked]\n")
        result = self.srun(slurm_case.ENV, env=self.asked())
        self.assertEqual(result.status, 0, result)
        self.assertRegex(result.stderr, r"cudapolicy: site \S+/site\.ini: ")
        self.assertNotIn("CUDAPOLICY_SITE", self.parse(result.stdout))

    def test_one_task_of_a_node_speaks(self):
        self.write("site.ini", RULES + "; comment\n" * 7000)
        result = self.srun("-n2", "-N1", slurm_case.SHELL, "-c", "true", env=self.asked())
        self.assertEqual(result.stderr.count("containers do without it"), 1, result)


class TheTaskProlog(Both, SiteCase):
    def setUp(self):
        super().setUp()
        self.install()

    def install(self, library=None, settings=""):
        self.plugins(plugin=False, prolog=True, library=library, settings=settings)


if __name__ == "__main__":
    slurm_case.main(needs_plugin=True, more="TaskProlog={folder}/site-prolog")
