# SPDX-License-Identifier: Apache-2.0
"""The command where a site has a file."""

import json
import os
import shutil
import unittest

import site_support
from site_support import HEAD, PROGRAM, rule, support

LOCKED, DEFAULTS = "\n[locked]\n", "\n[defaults]\n"
REMOTE, DEFAULT = "mem_sync_domain = remote", "mem_sync_domain = default"


class Command(site_support.Case):
    def policy(self, text, name="job.ini"):
        return self.write(name, HEAD + text)

    def run_job(self, policy, *arguments, program=PROGRAM, **options):
        """`cudapolicy run` on the recording driver."""
        return self.command("run", "-p", self.policy(policy), "--library", support.LIBRARY,
                            *options.pop("options", ()), program,
                            *(arguments or ("launch", "k", "2", "4")),
                            env=self.variables(**options))


class Check(Command):
    def test_variables_are_printed_as_the_sites_mode_has_it(self):
        path = self.policy("[env]\nNCCL_PROTO = LL\n")
        for site, printed in (("mode = enforce", "NCCL_PROTO=LL\n"), ("mode = observe", ""),
                              ("mode_ceiling = observe", "")):
            self.site(f"[site]\n{site}\n")
            result = self.command("check", "--print-env", path)
            self.assertEqual((result.returncode, result.stdout), (0, printed))
        for arguments in ((), (path,)):
            self.assert_usage_error(self.command("check", "--site", "--print-env", *arguments),
                                    "--print-env takes no other option")

    def test_a_sites_file_is_checked(self):
        path = self.write("draft.ini", HEAD + DEFAULTS + rule("a", "priority = 0"))
        result = self.command("check", "--site", path)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertEqual(result.stdout, f"{path}: ok: 1 kernel and 0 stream rules, 0 warnings\n")

    def test_mistakes_have_their_place(self):
        path = self.write("draft.ini", HEAD + "[site]\nmode_ceilling = off\nreports = /r/%q\n"
                          "[kernel k]\n")
        result = self.command("check", "--site", path)
        self.assertEqual(result.returncode, 1)
        self.assertRegex(result.stdout, r"draft\.ini:4:1: error: unknown key .* \"mode_ceiling\"\?")
        self.assertRegex(result.stdout, r"draft\.ini:6:1: error: \[kernel\] stands before")

    def test_a_template_is_looked_at_as_a_whole(self):
        path = self.write("draft.ini", HEAD + "[site]\nreports = /r/%q\n")
        self.assertIn("4:11: error: reports: ", self.command("check", "--site", path).stdout)
        path = self.write("draft.ini", HEAD + "[site]\nreports = /r/%j.json\n")
        result = self.command("check", "--site", path)
        self.assertIn("4:11: warning: reports: without %p", result.stdout)
        self.assertEqual(result.returncode, 0)

    def test_without_a_file_this_machines_is_looked_at_as_programs_do(self):
        path = self.site(DEFAULTS + rule("a", "priority = 0"))
        self.assertEqual(self.command("check", "--site").returncode, 0)
        os.chmod(path, 0o666)
        result = self.command("check", "--site")
        self.assertEqual(result.returncode, 1)
        self.assertIn("error: refused: ", result.stdout)

    def test_a_machine_without_the_file_is_told_from_a_file_that_cannot_be_read(self):
        result = self.command("check", "--site")
        self.assertEqual((result.returncode, result.stderr), (1, ""))
        self.assertRegex(result.stdout, r"^\S+: error: this machine has no site's file: .*\n$")
        result = self.command("check", "--site", self.path("gone.ini"))
        self.assertIn("gone.ini: error: cannot open the policy", result.stdout)

    def test_a_policy_of_a_job_is_none_of_a_site(self):
        path = self.policy(rule("k", "priority = 0"))
        self.assertIn("[kernel] stands before [locked]", self.command("check", "--site", path).stdout)
        document = json.loads(self.command("check", "--site", "--json", path).stdout)
        self.assertFalse(document["valid"])


class Explain(Command):
    def effective(self, *arguments, **variables):
        result = self.command("explain", "--effective", "--json", *arguments, env=variables)
        document = json.loads(result.stdout)
        values = {}
        for entry in document["values"]:
            values.setdefault(entry["value"], []).append((entry["is"], entry["from"]))
        return document, values, result

    def test_rules_of_the_site_stand_around_the_policys(self):
        self.site(LOCKED + rule("first", "priority = 0\nfinal = yes", "nccl*"))
        path = self.policy(rule("all", REMOTE))
        result = self.command("explain", "-p", path, "--kernel", "ncclX")
        self.assertRegex(result.stdout, r"first +site locked:6 +yes")
        self.assertRegex(result.stdout, r"all +4 +not reached")
        self.assertRegex(result.stdout, r"priority = 0 +/proc/self/cwd/site.ini:8 ")
        document = json.loads(self.command("explain", "--json", "-p", path, "--kernel",
                                           "ncclX").stdout)
        rules = document["kernels"][0]["rules"]
        self.assertEqual([entry.get("layer") for entry in rules], ["site locked", None])

    def test_another_sites_file_or_none_can_be_tried(self):
        self.site(LOCKED + rule("first", "priority = 0"))
        path = self.policy(rule("all", REMOTE))
        draft = self.write("draft.ini", HEAD + LOCKED + rule("drafted", "priority = 1"))
        arguments = ("explain", "-p", path, "--kernel", "k")
        self.assertNotIn("first", self.command(*arguments, "--no-site").stdout)
        self.assertIn("drafted", self.command(*arguments, "--site", draft).stdout)
        result = self.command(*arguments, "--site", self.path("none"))
        self.assertEqual((result.returncode, result.stdout), (1, ""))
        self.assert_usage_error(self.command(*arguments, "--site", draft, "--no-site"), "together")

    def test_every_value_has_its_source(self):
        self.site("[site]\nmode = observe\nmode_ceiling = observe\nreports = /r/%p.json\n"
                  "exclude = my-*\nexclude_defaults = no\n" + LOCKED
                  + rule("a", "priority = 0") + "\n[partition p]\nsm_count = 8\n")
        path = self.policy("mode = enforce\n" + rule("b", REMOTE))
        document, values, result = self.effective("-p", path, CUDAPOLICY_LOG="info",
                                                  CUDAPOLICY_REPORT="r.json")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        site = "site /proc/self/cwd/site.ini:"
        self.assertEqual(values["mode"], [("observe", f"{site}5: mode_ceiling, below enforce "
                                           f"(job {path}:3)")])
        self.assertEqual(values["policy"], [(path, "-p")])
        self.assertEqual(values["log"], [("info", "CUDAPOLICY_LOG")])
        self.assertEqual(values["log file"], [("standard error", "built in")])
        self.assertEqual(values["report"], [("r.json", "CUDAPOLICY_REPORT")])
        self.assertEqual(values["report, the site's"], [("/r/%p.json", site + "6")])
        self.assertEqual(values["exclude"], [("my-*", site + "7")])
        self.assertEqual(values["exclude_defaults"], [("no", site + "8")])
        self.assertEqual(values["strict"], [("0", "built in")])
        self.assertEqual([(entry["layer"], entry["line"]) for entry in document["rules"]],
                         [("site locked", 12), ("job", 5)])
        self.assertEqual(document["rules"][1]["settings"],
                         [{"setting": "mem_sync_domain", "value": "remote", "line": 7}])
        self.assertEqual(document["partitions"][0]["asks_for"], "sm_count = 8")

    def test_variables_and_conditions_of_the_policy_are_shown_as_they_will_be(self):
        path = self.policy(rule("k", REMOTE) + "\n[env]\nNCCL_PROTO = LL\nNCCL_ALGO = Ring\n"
                           "[env replace]\nNCCL_MAX_CTAS = 4\n[expect]\nrule k: launches >= 1\n")
        for site, expected in (
                ("enforce", [("NCCL_PROTO", "LL", f"{path}:9"),
                             ("NCCL_ALGO", "Tree", f"the environment, before {path}:10"),
                             ("NCCL_MAX_CTAS", "4", f"{path}:12, before the environment")]),
                ("observe", [("NCCL_PROTO", None, f"{path}:9 is not set, since the mode is observe"),
                             ("NCCL_ALGO", "Tree", f"the environment, before {path}:10"),
                             ("NCCL_MAX_CTAS", "9", f"the environment; {path}:12 is not set, since the "
                                                    "mode is observe")])):
            self.site(f"[site]\nmode = {site}\n" + LOCKED + rule("k", "priority = 0"))
            document = self.effective("-p", path, NCCL_ALGO="Tree", NCCL_MAX_CTAS="9")[0]
            self.assertEqual([tuple(one.values()) for one in document["variables"]], expected)
            self.assertEqual([(one["rule"], one["line"]) for one in document["expectations"]], [("k", 14)])
        text = self.command("explain", "--effective", "-p", path).stdout
        self.assertRegex(text, r"\n  NCCL_PROTO +- +\S+:9 is not set, since the mode is observe\n")
        self.assertRegex(text, r"\n  kernel k: launches >= 1 +\S+:14\n")

    def test_the_mode_is_found_as_programs_find_it(self):
        self.site("[site]\nmode = observe\n")
        path = self.policy(rule("b", REMOTE))
        said = self.policy("mode = enforce\n", "said.ini")
        mode = "mode"
        self.assertEqual(self.effective()[1][mode][0], ("observe",
                                                        "site /proc/self/cwd/site.ini:4"))
        self.assertEqual(self.effective("-p", path)[1][mode][0][0], "observe")
        self.assertEqual(self.effective("-p", said)[1][mode][0], ("enforce", f"job {said}:3"))
        self.assertEqual(self.effective("-p", said, CUDAPOLICY_MODE="off")[1][mode][0],
                         ("off", "CUDAPOLICY_MODE"))
        self.assertEqual(self.effective("--no-site")[1][mode][0], ("enforce", "built in"))

    def test_mistakes_are_said_and_the_rest_is_shown(self):
        self.site(LOCKED + rule("a", "priority = 0"))
        path = self.policy("[kernel k]\nnmae = k\n")
        document, values, result = self.effective("-p", path, CUDAPOLICY_MODE="fast")
        self.assertEqual(result.returncode, 1)
        self.assertIn("unknown key", result.stderr)
        self.assertIn("'fast' is no mode", result.stderr)
        self.assertEqual(values["policy"], [(None, "-p")])
        self.assertEqual([entry["rule"] for entry in document["rules"]], ["a"])

    def test_the_variable_is_a_source(self):
        text = (HEAD + "[site]\nmode = observe\n").replace("\n", "%0A")
        values = self.effective(CUDAPOLICY_SITE=text)[1]
        self.assertEqual(values["site's file"], [("site (from CUDAPOLICY_SITE)",
                                                  "CUDAPOLICY_SITE")])

    def test_it_is_not_about_a_kernel(self):
        self.assert_usage_error(self.command("explain", "--effective", "--kernel", "k"),
                                "--effective is not about a kernel")


class Run(Command):
    def test_the_summary_names_the_layer(self):
        self.site(LOCKED + rule("site-rule", REMOTE) + rule("unused", REMOTE, "unused"))
        result = self.run_job(rule("all", "priority = 0"))
        self.assertEqual(result.returncode, 0)
        self.assertRegex(result.stderr, r"kernel site-rule \(site locked\) +1 +2 ")
        self.assertNotIn("unused", result.stderr)
        self.assert_remote(True)

    def test_rules_of_one_name_are_counted_apart(self):
        self.site(LOCKED + rule("all", REMOTE))
        result = self.run_job(rule("all", "priority = 0"), options=("--json",))
        rules = {(entry["name"], entry.get("layer")): entry["launches"]
                 for entry in json.loads(result.stderr)["rules"]}
        self.assertEqual(rules, {("all", None): 2, ("all", "site locked"): 2})

    def test_an_executable_on_the_list_is_named(self):
        self.site("[site]\nexclude = my-*\n")
        shutil.copy(PROGRAM, self.path("my-tool"))
        result = self.run_job(rule("all", REMOTE), program=self.path("my-tool"))
        self.assertEqual(result.returncode, 0)
        self.assertIn("this site leaves 'my-tool' alone (exclude = my-*, /proc/self/cwd/site.ini:4)",
                      result.stderr)
        self.assert_remote(False)

    def test_the_ceiling_is_known(self):
        self.site("[site]\nmode_ceiling = off\n")
        result = self.run_job(rule("all", REMOTE), options=("--mode", "enforce"))
        self.assertIn("the mode is off: nothing was seen or changed", result.stderr)

    def test_a_policy_that_does_not_fit_is_not_run(self):
        rest = "\n[partition rest]\nsm_count = rest\n"
        self.site(LOCKED + rest)
        result = self.run_job(rest)
        self.assertEqual(result.returncode, 125)
        self.assertIn("line 6 of the site's file", result.stderr)
        self.assertIn("the policy does not fit the site's", result.stderr)
        self.assertFalse(os.path.exists(self.path("record")))

    def test_a_bad_site_file_stops_nobody(self):
        self.site("[site]\nmode = fast\n")
        result = self.run_job(rule("all", REMOTE))
        self.assertEqual(result.returncode, 0)
        self.assertIn("the site's file is not used", result.stderr)
        self.assert_remote(True)

    def test_recording_changes_nothing_under_a_site_either(self):
        self.site(LOCKED + rule("all", REMOTE))
        result = self.command("record", "--library", support.LIBRARY, PROGRAM, "launch", "k", "1",
                              "1", env=self.variables())
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assert_remote(False)

    def test_what_a_site_keeps_from_being_recorded_is_said(self):
        for site, reason in (("mode_ceiling = off", "this site allows no mode but off"),
                             ("exclude = command_*", "this site leaves 'command_program' alone")):
            self.site(f"[site]\n{site}\n")
            result = self.command("record", "--library", support.LIBRARY, PROGRAM, "launch", "k",
                                  "1", "1", env=self.variables())
            self.assertIn(reason, result.stderr)

    def test_what_is_expected_of_a_program_that_the_site_leaves_alone_cannot_be_judged(self):
        self.site("[site]\nexclude = command_*\n")
        policy = self.policy(rule("all", REMOTE) + "[expect]\nrule all: launches >= 1\n")
        for strict, status in ((("--strict-expect",), 3), ((), 0)):
            result = self.command("run", "--library", support.LIBRARY, "-p", policy, *strict, PROGRAM,
                                  "launch", "k", "1", "1", env=self.variables())
            self.assertEqual(result.returncode, status, result.stderr)
            self.assertIn("cannot be judged: the site leaves the program alone", result.stderr)

    def test_the_site_gets_its_report_of_a_run_too(self):
        os.mkdir(self.path("all"))
        self.site(f"[site]\nreports = {self.folder}/all/%p.json\n")
        self.run_job(rule("all", REMOTE))
        self.assertEqual(self.report("all/*.json")["launches"], 2)


class Compare(Command):
    def compare(self, policy, program=(PROGRAM, "launch", "k", "1", "1"), folder="--folder"):
        return self.command("ab", "--library", support.LIBRARY, "--claim", "none", "--blocks", "2",
                            "--seed", "7", folder, self.path("compared"), "none",
                            self.policy(policy), "--", *program, env=self.variables())

    def test_arms_are_under_the_site_but_for_none(self):
        self.site(LOCKED + rule("site-rule", REMOTE))
        result = self.compare(rule("all", "priority = 0"))
        remote = ["MEM_SYNC_DOMAIN:1" in line for line in self.launches()]
        self.assertEqual((remote.count(True), remote.count(False)), (3, 9),
                         result.stderr + result.stdout)

    def test_an_experiment_does_not_go_on_under_another_site(self):
        def says(site):
            if site is None:
                os.remove(self.path("site.ini"))
            else:
                self.site(LOCKED + rule("site-rule", site))
            result = self.compare(rule("all", "priority = 0"), folder="--resume")
            self.assertEqual("another file of the site's" in result.stderr, result.returncode == 125, result)
            return result.returncode == 125
        self.site(LOCKED + rule("site-rule", REMOTE))
        self.compare(rule("all", "priority = 0"))
        self.assertEqual([says(site) for site in (REMOTE, DEFAULT, None)], [False, True, True])

    def test_variables_of_an_arm_are_set_in_the_mode_that_the_site_leaves_it(self):
        script = f'echo "$NCCL_PROTO" >> {self.path("seen")}; exec {PROGRAM} launch k 1 1'
        for site, values in (("mode_ceiling = observe", {""}), ("mode = observe", {""}),
                             ("mode = enforce", {"", "LL"})):
            self.site(f"[site]\n{site}\n")
            result = self.compare("[env]\nNCCL_PROTO = LL\n" + rule("all", REMOTE),
                                  ("sh", "-c", script))
            with open(self.path("seen"), encoding="utf-8") as file:
                self.assertEqual(set(file.read().splitlines()), values, result)
            self.assertEqual("the mode is observe by the site's file" in result.stderr, len(values) == 1, result)
            self.assertNotIn("only observes", result.stderr)
            os.remove(self.path("seen"))
            shutil.rmtree(self.path("compared"))

    def test_a_policy_that_does_not_fit_is_no_arm(self):
        rest = "\n[partition rest]\nsm_count = rest\n"
        self.site(LOCKED + rest)
        result = self.compare(rest)
        self.assertIn("line 6 of the site's file", result.stderr)
        self.assertFalse(os.path.exists(self.path("record")))


class Show(Command):
    def test_the_settings_of_a_site_are_shown(self):
        result = self.command("show", "--settings")
        self.assertIn("mode_ceiling", result.stdout)


class Production(unittest.TestCase):
    def test_no_variable_changes_the_place(self):
        # What the library is linked with is all that says where the file is.
        with open(os.environ["CUDAPOLICY_TEST_INSTALLED_LIBRARY"], "rb") as file:
            text = file.read()
        for name in (b"CUDAPOLICY_SITE_FILE", b"CUDAPOLICY_SITE_PATH", b"/proc/self/cwd"):
            self.assertNotIn(name, text)
        self.assertIn(os.environ["CUDAPOLICY_TEST_SITE_FILE"].encode() + b"\0", text)


support.main()
