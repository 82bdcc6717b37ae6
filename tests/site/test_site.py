# SPDX-License-Identifier: Apache-2.0
"""Programs under the library where a site has a file."""

import hashlib
import os
import shutil
import unittest

import site_support
from site_support import HEAD, rule, support

LOCKED, DEFAULTS = "\n[locked]\n", "\n[defaults]\n"
REMOTE, DEFAULT = "mem_sync_domain = remote", "mem_sync_domain = default"


class Rules(site_support.Case):
    def test_a_locked_rule_comes_before_the_jobs(self):
        self.site(LOCKED + rule("all", REMOTE))
        self.launch(policy=rule("all", DEFAULT))
        self.assert_remote(True)

    def test_a_default_rule_comes_after_the_jobs(self):
        self.site(DEFAULTS + rule("all", REMOTE))
        self.launch(policy=rule("all", DEFAULT))
        self.assert_remote(False)

    def test_a_default_rule_holds_where_the_job_says_nothing(self):
        self.site(DEFAULTS + rule("all", REMOTE))
        self.launch(policy=rule("other", DEFAULT, "other"))
        self.assert_remote(True)

    def test_final_of_a_locked_rule_ends_the_search(self):
        self.site(LOCKED + rule("all", "priority = 0\nfinal = yes"))
        self.launch(policy=rule("all", REMOTE))
        self.assert_remote(False)

    def test_final_of_the_jobs_rule_ends_the_search_before_the_defaults(self):
        self.site(DEFAULTS + rule("all", REMOTE))
        self.launch(policy=rule("all", "priority = 0\nfinal = yes"))
        self.assert_remote(False)

    def test_without_a_policy_of_its_own_a_job_is_under_the_sites_rules(self):
        self.site(DEFAULTS + rule("all", REMOTE))
        result = self.launch()
        self.assert_remote(True)
        self.assertEqual(result.stderr, "")

    def test_without_rules_and_reports_of_the_site_a_job_without_a_policy_is_left_alone(self):
        self.site("\n[site]\nmode = observe\n")
        result = self.launch(CUDAPOLICY_LOG="debug", CUDAPOLICY_LOG_FILE=self.path("log"))
        self.assert_remote(False)
        self.assertEqual(result.stderr, "")
        self.assertFalse(os.path.exists(self.path("log")))

    def test_a_name_stands_for_the_rule_of_its_own_file(self):
        # Both have a [stream s]; the site's matches nothing.
        self.site(LOCKED + "\n[stream s]\nindex = 7\n"
                  "\n[kernel of-s]\nstream = s\nmem_sync_domain = default\n")
        self.launch("stream", "0", "launch", "k", "1", "1",
                    policy="\n[stream s]\nindex = 0\n"
                    "\n[kernel of-s]\nstream = s\nmem_sync_domain = remote\n")
        self.assert_remote(True)

    def test_the_report_says_of_each_rule_where_it_stands(self):
        site = self.site(LOCKED + rule("a", "priority = 0") + DEFAULTS + rule("b", REMOTE))
        self.launch(policy=rule("a", "cluster_scheduling = spread"))
        report = self.report()
        rules = [(entry.get("layer"), entry["name"], entry["line"], entry["matched"])
                 for entry in report["rules"]]
        self.assertEqual(rules, [("site locked", "a", 6, True), (None, "a", 4, True),
                                 ("site defaults", "b", 12, True)])
        files = [entry["file"] for entry in report["rules"]]
        self.assertEqual(files[0], files[2])
        self.assertEqual(files[1], self.path("job.ini"))
        layers = {setting.get("rule_layer") for kernel in report["kernels"]
                  for setting in kernel["settings"]}
        self.assertLessEqual({"site locked", "site defaults"}, layers)
        for section, path in (("site", site), ("policy", self.path("job.ini"))):
            with open(path, "rb") as file:
                digest = hashlib.sha256(file.read()).hexdigest()
            self.assertEqual(report["facts"][section]["sha256"], digest)

    def test_a_process_that_never_asks_for_cuda_reads_nothing(self):
        self.site("not a policy\n")
        result = self.launch("-c", "exit 0", program="/bin/sh", CUDAPOLICY_LOG="debug")
        self.assertEqual(result.stderr, "")


class Partitions(site_support.Case):
    SIDE = "\n[partition side]\nsm_count = 16\n\n[stream on-side]\npartition = side\n"

    def test_partitions_of_both_share_the_device(self):
        self.site(LOCKED + self.SIDE.replace("16", "8").replace("[stream on-side]",
                                                                "[stream on-side]\nindex = 1"))
        result = self.launch("stream", "0", "launch", "k", "1", "1", policy=self.SIDE)
        facts = self.report()["facts"]
        self.assertIn("partition.side.0", facts, result.stderr)
        self.assertIn("partition.site side.0", facts)
        self.assertEqual(facts["partition.side.0"]["requested"], "16")
        self.assertEqual(facts["partition.site side.0"]["requested"], "8")

    def test_partitions_that_cannot_be_together_are_the_jobs_mistake(self):
        rest = "\n[partition rest]\nsm_count = rest\n\n[kernel k]\npartition = rest\n"
        self.site(LOCKED + rule("all", REMOTE) + rest)
        result = self.launch(policy=rest)
        self.assertRegex(result.stderr, r"job\.ini:4:\d+: sm_count = rest is also \[partition rest\], "
                         r"line 10 of the site's file")
        self.assertIn("runs under the site's rules alone", result.stderr)
        self.assert_remote(True)


class Mistakes(site_support.Case):
    def test_a_bad_site_file_is_named_and_the_job_goes_on_without_it(self):
        self.site(LOCKED + "\n[kernel all]\nnmae = *\n")
        result = self.launch(policy=rule("all", REMOTE), CUDAPOLICY_STRICT="1")
        self.assertRegex(result.stderr, r"error: site \S*site\.ini:7:1: unknown key \"nmae\"")
        self.assert_remote(True)

    def test_a_bad_policy_of_the_job_leaves_the_sites_rules(self):
        self.site(LOCKED + rule("all", REMOTE))
        result = self.launch(policy="\n[kernel all]\nnmae = *\n")
        self.assertIn("job.ini:5:1: unknown key", result.stderr)
        self.assertIn("the program runs under the site's rules alone", result.stderr)
        self.assert_remote(True)
        notes = [note["text"] for note in self.report()["notes"]]
        self.assertTrue(any("the job's policy is not applied: " in note for note in notes), notes)

    def test_a_file_that_others_may_write_to_is_refused(self):
        os.chmod(self.site(LOCKED + rule("all", REMOTE)), 0o664)
        result = self.launch(policy=rule("other", DEFAULT, "other"))
        self.assertRegex(result.stderr, r"error: site \S+site\.ini: refused: \S+site\.ini may be "
                         "written to by others")
        self.assert_remote(False)

    def test_sections_of_a_site_belong_into_its_file(self):
        result = self.launch(policy="\n[site]\nmode = off\n" + LOCKED + rule("all", REMOTE))
        for section in ("site", "locked"):
            self.assertIn(f"[{section}] belongs into the site's file", result.stderr)
        self.assert_remote(False)


class Modes(site_support.Case):
    def mode(self, site, policy=None, **variables):
        """The mode that holds, and what is said."""
        self.site(site + LOCKED + rule("all", REMOTE))
        result = self.launch(policy=policy if policy is not None else rule("other", DEFAULT, "other"),
                             **variables)
        reports = self.reports()
        remote = any("MEM_SYNC_DOMAIN:1" in line for line in self.launches())
        shutil.rmtree(self.folder)
        os.mkdir(self.folder)
        mode = reports[0]["mode"] if reports else "off"
        self.assertEqual(remote, mode == "enforce")
        return mode, result.stderr

    def test_the_environment_beats_the_job_and_the_job_the_site(self):
        site = "\n[site]\nmode = observe\n"
        job = rule("other", DEFAULT, "other")
        self.assertEqual(self.mode(site), ("observe", ""))
        # [policy] is the first section of what the test writes, so the key goes to its head.
        said = "mode = enforce\n" + job
        self.assertEqual(self.mode(site, said), ("enforce", ""))
        self.assertEqual(self.mode(site, said, CUDAPOLICY_MODE="observe"), ("observe", ""))
        self.assertEqual(self.mode(site, CUDAPOLICY_MODE="enforce"), ("enforce", ""))
        self.assertEqual(self.mode("\n[site]\nmode = off\n"), ("off", ""))
        self.assertEqual(self.mode("\n[site]\nmode = off\n", said), ("enforce", ""))

    def test_nothing_is_above_the_ceiling(self):
        site = "\n[site]\nmode_ceiling = observe\n"
        self.assertEqual(self.mode(site), ("observe", ""))
        mode, said = self.mode(site, CUDAPOLICY_MODE="enforce")
        self.assertEqual(mode, "observe")
        self.assertRegex(said, r"warning: the mode is observe instead of enforce: mode_ceiling in "
                         r"\S+site\.ini:5")
        self.assertEqual(self.mode(site, CUDAPOLICY_MODE="off")[0], "off")
        self.assertEqual(self.mode("\n[site]\nmode_ceiling = off\n")[0], "off")

    def test_one_rank_tells_of_the_ceiling(self):
        rank = {"RANK": "1", "LOCAL_RANK": "1", "WORLD_SIZE": "2"}
        said = self.mode("\n[site]\nmode_ceiling = observe\n", CUDAPOLICY_MODE="enforce", **rank)[1]
        self.assertEqual(said, "")


class Reports(site_support.Case):
    def folder_of_site(self):
        os.mkdir(self.path("all"))
        return f"\n[site]\nreports = {self.folder}/all/%h-%p.json\n"

    def test_every_process_writes_a_report_for_the_site(self):
        self.site(self.folder_of_site())
        result = self.launch()
        self.assertEqual(result.stderr, "")
        self.assertEqual(self.report("all/*.json")["launches"], 2)

    def test_the_users_own_report_is_written_besides(self):
        self.site(self.folder_of_site())
        self.launch("launch", "k", "2", "4", policy=rule("all", REMOTE))
        self.assertEqual(self.report("all/*.json"), self.report())

    def test_a_child_writes_its_own(self):
        self.site(self.folder_of_site())
        self.launch("launch", "a", "1", "1", "fork", "launch", "b", "2", "1",
                    policy=rule("all", REMOTE))
        # The parent waits, and ends by exit: it has a report as well.
        counts = sorted(report["launches"] for report in self.reports("all/*.json"))
        self.assertEqual(counts, [1, 2])

    def test_one_place_gets_one_report(self):
        self.site(self.folder_of_site())
        self.launch(policy=rule("all", REMOTE), CUDAPOLICY_REPORT=f"{self.folder}/all/%h-%p.json")
        self.assertEqual(len(os.listdir(self.path("all"))), 1)

    @unittest.skipUnless(os.geteuid() == 0, "only root can be another user")
    def test_users_leave_reports_in_a_folder_that_they_cannot_read(self):
        self.site(self.folder_of_site())
        os.chmod(self.path("all"), 0o1733)
        os.chmod(self.folder, 0o755)
        # The build may be where others cannot look.
        for source in (support.LIBRARY, site_support.PROGRAM):
            shutil.copy(source, self.folder)
        shutil.copytree(site_support.DOUBLES, self.path("doubles"))
        variables = self.variables(LD_LIBRARY_PATH=self.path("doubles"), RECORDING_DRIVER_LOG=None,
                                   LD_PRELOAD=f"{site_support.SANITIZER} "
                                   f"{self.path(os.path.basename(support.LIBRARY))}".strip())
        result = support.subprocess.run(
            [self.path(os.path.basename(site_support.PROGRAM)), "launch", "k", "2", "1"],
            env=support.environment(**variables), cwd=self.folder, user=65534, group=65534,
            extra_groups=[], stderr=support.subprocess.PIPE, text=True, check=False,
            timeout=support.TIME_LIMIT)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertEqual(self.report("all/*.json")["launches"], 2)
        status = os.stat(os.path.join(self.path("all"), os.listdir(self.path("all"))[0]))
        self.assertEqual((status.st_uid, status.st_mode & 0o777), (65534, 0o600))

    def test_a_folder_that_is_not_there_disturbs_nobody(self):
        self.site(f"\n[site]\nreports = {self.folder}/none/%p.json\n")
        self.assertEqual(self.launch().stderr, "")
        self.assertEqual(self.launch(policy=rule("all", REMOTE)).stderr, "")
        self.assertEqual(self.report()["launches"], 2)
        said = self.launch(policy=rule("all", REMOTE), CUDAPOLICY_LOG="info").stderr
        self.assertIn("copy of the report", said)

    def test_a_bad_template_is_the_sites_mistake_alone(self):
        self.site("\n[site]\nreports = /tmp/%q.json\n" + LOCKED + rule("all", REMOTE))
        result = self.launch(policy=rule("other", DEFAULT, "other"), CUDAPOLICY_STRICT="1")
        self.assertIn("reports in the site's file: ", result.stderr)
        self.assert_remote(True)


class Excluded(site_support.Case):
    def copy(self, name):
        path = self.path(name)
        shutil.copy(site_support.PROGRAM, path)
        return path

    def test_an_executable_on_the_list_is_left_alone(self):
        self.site("\n[site]\nexclude = other\nexclude = my-*\n" + LOCKED + rule("all", REMOTE))
        self.launch(program=self.copy("my-tool"), policy=rule("all", REMOTE), CUDAPOLICY_STRICT="1")
        self.assert_remote(False)
        self.assertEqual(self.reports(), [])
        said = self.launch(program=self.path("my-tool"), CUDAPOLICY_LOG="info").stderr
        self.assertRegex(said, r"my-tool is left alone: exclude = my-\* in \S+site\.ini:6")

    def test_a_link_of_that_name_is_not_the_executable(self):
        self.site("\n[site]\nexclude = my-tool\n" + LOCKED + rule("all", REMOTE))
        os.symlink(site_support.PROGRAM, self.path("my-tool"))
        self.launch(program=self.path("my-tool"))
        self.assert_remote(True)

    def test_shells_and_common_tools_are_on_it_unless_the_site_says_no(self):
        for default, remote in (("", False), ("exclude_defaults = no\n", True)):
            self.site("\n[site]\n" + default + LOCKED + rule("all", REMOTE))
            self.launch(program=self.copy("bash"))
            self.assert_remote(remote)
            os.unlink(self.path("record"))


class Carried(site_support.Case):
    TEXT = HEAD + LOCKED + rule("all", REMOTE)

    @staticmethod
    def encoded(text):
        return "".join(f"%{ord(c):02X}" if c < " " or c == "%" else c for c in text)

    def test_the_variable_holds_where_there_is_no_file(self):
        self.launch(CUDAPOLICY_SITE=self.encoded(self.TEXT), policy=rule("other", DEFAULT, "other"))
        self.assert_remote(True)
        report = self.report()
        self.assertEqual(report["facts"]["site"]["path"], "site (from CUDAPOLICY_SITE)")
        self.assertEqual(report["facts"]["site"]["sha256"],
                         hashlib.sha256(self.TEXT.encode()).hexdigest())
        self.assertNotIn("CUDAPOLICY_SITE", report["facts"]["environment"])

    def test_a_file_beats_the_variable_even_one_that_is_refused(self):
        path = self.site(DEFAULTS + rule("all", "priority = 0"))
        self.launch(CUDAPOLICY_SITE=self.encoded(self.TEXT))
        self.assert_remote(False)
        os.chmod(path, 0o666)
        os.unlink(self.path("record"))
        self.launch(CUDAPOLICY_SITE=self.encoded(self.TEXT))
        self.assert_remote(False)

    def test_mistakes_name_the_variable(self):
        for value, wrong in ((self.encoded(HEAD + "[kernel k]\n"), r":3:1: \[kernel\] stands before"),
                             ("[policy]%0", r": refused: the value has a % without"),
                             ("x" * 70000, r": refused: the value has more than 64 KiB")):
            said = self.launch(CUDAPOLICY_SITE=value).stderr
            self.assertRegex(said, r"error: site \(from CUDAPOLICY_SITE\)" + wrong)


class Reloads(site_support.Case):
    def reload(self, change, *arguments, **options):
        """Two launches with a reload in between, for which the files are changed."""
        process = support.subprocess.Popen(
            [site_support.PROGRAM, "launch", "k", "1", "1", "say", "ready", "wait", "launch", "k",
             "1", "1"], cwd=self.folder, text=True, stdin=support.subprocess.PIPE,
            stdout=support.subprocess.PIPE, stderr=support.subprocess.PIPE,
            env=support.environment(**self.variables(**options), LD_PRELOAD=(
                f"{site_support.SANITIZER} {support.LIBRARY}".strip())))
        self.addCleanup(self.stop, process)
        self.assertEqual(process.stdout.readline(), "ready\n")
        self.process = str(process.pid)
        change()
        told = self.command("ctl", str(process.pid), *(arguments or ("reload", "--timeout", "0")))
        _, said = process.communicate("\n")
        return told, said

    def domains(self):
        return ["MEM_SYNC_DOMAIN:1" in line for line in self.launches()]

    def test_both_files_are_read_again(self):
        self.site(LOCKED + rule("all", DEFAULT))
        _, said = self.reload(lambda: self.site(LOCKED + rule("all", REMOTE)),
                              policy=rule("other", DEFAULT, "other"))
        self.assertEqual(self.domains(), [False, True], said)

    def test_conditions_stay_with_the_jobs_rules_when_the_site_has_more_of_them(self):
        self.site(LOCKED + rule("all", DEFAULT))
        more = LOCKED + rule("first", "priority = 0") + rule("other", "priority = 0") + rule("all", REMOTE)
        _, said = self.reload(lambda: self.site(more), policy=rule("other", DEFAULT, "other")
                              + rule("all", "priority = 0") + "\n[expect]\nrule all: launches >= 3\n"
                              "rule other: launches = 0\n")
        self.assertEqual(self.domains(), [False, True], said)
        self.assertEqual(said.count("expectation broken: kernel all: launches >= 3, and it was "), 1, said)
        self.assertNotIn("kernel other", said)
        self.assertEqual([(one["rule"], one["held"]) for one in self.report()["expectations"]],
                         [("all", False), ("other", True)])

    def test_a_site_file_that_has_become_wrong_is_refused(self):
        self.site(LOCKED + rule("all", REMOTE))
        _, said = self.reload(lambda: self.site("[locked]\nx = 1\n"),
                              policy=rule("other", DEFAULT, "other"))
        self.assertIn("the policy is not read again: site ", said)
        self.assertEqual(self.domains(), [True, True])

    def test_ctl_does_not_ask_for_a_mode_above_the_ceiling(self):
        self.site("[site]\nmode_ceiling = observe\n" + LOCKED + rule("all", REMOTE))
        told, _ = self.reload(lambda: None, "enforce", policy=rule("other", DEFAULT, "other"))
        self.assertEqual(told.returncode, 1)
        self.assertIn("above the mode_ceiling of the site; it stays observe", told.stderr)
        self.assertEqual(self.domains(), [False, False])

    def test_a_ceiling_that_was_lowered_holds_whoever_set_the_mode(self):
        self.site(LOCKED + rule("all", REMOTE))

        def change():
            self.assertEqual(self.command("ctl", self.process, "enforce").returncode, 0)
            self.site("[site]\nmode_ceiling = observe\n" + LOCKED + rule("all", REMOTE))

        _, said = self.reload(change, policy="mode = observe\n" + rule("other", DEFAULT, "other"))
        self.assertEqual(self.domains(), [False, False])
        self.assertIn("the mode stays observe: mode_ceiling in ", said)
        self.assertEqual(self.report()["mode"], "observe")

    def test_without_a_policy_of_the_job_the_sites_file_is_read_again(self):
        self.site(LOCKED + rule("all", DEFAULT))
        _, said = self.reload(lambda: self.site(LOCKED + rule("all", REMOTE)),
                              CUDAPOLICY_REPORT=self.path("report-%p.json"))
        self.assertEqual(self.domains(), [False, True], said)


class Owners(site_support.Case):
    @unittest.skipUnless(os.geteuid() == 0, "another user's files take root to make")
    def test_another_users_file_is_refused(self):
        os.chown(self.site(LOCKED + rule("all", REMOTE)), 12345, -1)
        said = self.launch(policy=rule("other", DEFAULT, "other")).stderr
        self.assertIn("belongs to user 12345, not to root", said)
        self.assert_remote(False)

    def test_a_folder_that_others_may_write_to_is_refused(self):
        self.site(LOCKED + rule("all", REMOTE))
        os.chmod(self.folder, 0o777)
        said = self.launch(policy=rule("other", DEFAULT, "other")).stderr
        self.assertIn("is a folder that others than its owner may write to", said)
        self.assert_remote(False)


support.main()
