# SPDX-License-Identifier: Apache-2.0
"""cudapolicy report on the ranks of jobs: compared, told apart, merged into files and read again."""

import json
import os
import shutil
import stat

import support
from test_report import kernel, report, rule


def rank_report(rank, size=4, pid=None, host=None, rules=(), kernels=None, job=None, process=None,
                ancestors="", facts=None, **members):
    pid = pid or 100 + rank
    document = report(pid=pid, rules=list(rules), kernels=kernels or [kernel("f", 100, ["k"])],
                      **members)
    document["process"].update({"host": host or f"node{rank // 2}", "start_ticks": pid,
                                **(process or {})})
    document["facts"] = {"job": {"id": "42", "step": "0", "rank": str(rank),
                                 "world_size": str(size), **(job or {})},
                         "process": {"ancestors": ancestors}, **(facts or {})}
    if ancestors is None:
        del document["facts"]["process"]
    return document


class Ranks(support.Case):
    def put(self, *documents, folder="r"):
        """The folder, which holds these reports and nothing else."""
        shutil.rmtree(self.path(folder), ignore_errors=True)
        os.makedirs(self.path(folder))
        for i, document in enumerate(documents):
            self.write(f"{folder}/{i}.json", json.dumps(document))
        return self.path(folder)

    def summary(self, *arguments):
        result = self.command("report", "--json", *arguments)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        return support.load_json(result.stdout)

    def differences(self, *documents):
        return [(one["kind"], one["text"], one["ranks"])
                for one in self.summary(self.put(*documents))["ranks"]["differences"]]


class Comparing(Ranks):
    def test_ranks_that_are_alike_have_a_row_and_no_difference(self):
        folder = self.put(*(rank_report(i, rules=[rule("k", 100, 100)]) for i in range(4)))
        text = self.command("report", folder).stdout
        self.assertIn("reports of 4 of 4 ranks on 2 hosts\n", text)
        self.assertRegex(text, r"(?m)^kernel k +4 +100 +100 +100 +100$")
        ranks = self.summary(folder)["ranks"]
        self.assertEqual((ranks["reported"], ranks["missing"], ranks["incomplete"],
                          ranks["differences"]), ([[0, 3]], [], [], []))

    def test_ranks_without_a_report_are_named(self):
        folder = self.put(rank_report(0, 9), rank_report(3, 9), rank_report(4, 9))
        self.assertIn("no report of ranks 1-2,5-8: ", self.command("report", folder).stdout)
        self.assertEqual(self.summary(folder)["ranks"]["missing"], [[1, 2], [5, 8]])

    def test_a_world_size_that_somebody_made_up_costs_nothing(self):
        folder = self.put(rank_report(0, 2 ** 62), rank_report(2 ** 61, 2 ** 62))
        self.assertEqual(self.summary(folder)["ranks"]["missing"],
                         [[1, 2 ** 61 - 1], [2 ** 61 + 1, 2 ** 62 - 1]])

    def test_incomplete_ranks_are_named(self):
        folder = self.put(rank_report(0), rank_report(1, complete=False, process={"end": None}))
        self.assertIn("did not end in good order: rank 1\n", self.command("report", folder).stdout)
        self.assertEqual(self.summary(folder)["ranks"]["incomplete"], [[1, 1]])

    def test_rules_of_one_name_in_two_layers_are_told_apart(self):
        def run(i):
            site = {**rule("k", *([5, 5] if i == 1 else [0, 0])), "layer": "site locked"}
            return rank_report(i, rules=[site, rule("k", 7, 7)])
        folder = self.put(*(run(i) for i in range(4)))
        text = self.command("report", folder).stdout
        self.assertRegex(text, r"(?m)^kernel k \(site locked\) +1 +5 +5 +5 +5$")
        self.assertRegex(text, r"(?m)^kernel k +4 +7 +7 +7 +7$")
        self.assertIn("\nrule kernel k (site locked) matched on rank 1 only\n", text)
        ranks = self.summary(folder)["ranks"]
        self.assertEqual([(one["name"], one.get("layer"), one["ranks"]) for one in ranks["rules"]],
                         [("k", "site locked", [[1, 1]]), ("k", None, [[0, 3]])])

    def test_counts_that_nobody_can_have_had_end_at_a_limit(self):
        most = 2 ** 63 - 1
        streams = {"streams": most, "applied": most, "already_so": most, "kept": most,
                   "refused": {"graph": most}}
        def run(i, count):
            return rank_report(i, rules=[rule("k", count, count, {"graph": count}, streams)],
                               kernels=[kernel("f", count, ["k"])])
        summary = self.summary(self.put(*(run(i % 2, most) for i in range(6)), run(2, -5)))
        self.assertEqual((summary["rules"][0]["launches"], summary["kernels"][0]["launches"]),
                         (2 ** 53, 2 ** 53))
        row, = summary["ranks"]["rules"]
        self.assertEqual((row["least"], row["most"], row["applied"]), (2 ** 53, 2 ** 53, [2 ** 53] * 2))

    def test_a_rule_that_matched_on_some_ranks_only_is_told(self):
        def run(i, matched):
            return rank_report(i, rules=[rule("k", *([5, 5] if matched else [0, 0]))])
        self.assertEqual(self.differences(*(run(i, i == 2) for i in range(4))),
                         [("rule on some ranks", "rule kernel k matched on rank 2 only", [[2, 2]])])
        self.assertEqual(self.differences(*(run(i, i != 2) for i in range(4))),
                         [("rule on some ranks", "rule kernel k matched nothing on rank 2",
                           [[2, 2]])])

    def test_a_kernel_of_some_ranks_only_is_told(self):
        both = [kernel("f", 5), kernel("g", 5)]
        self.assertEqual(
            self.differences(rank_report(0, kernels=both), *(
                rank_report(i, kernels=both[:1]) for i in (1, 2, 3))),
            [("kernel on some ranks", "kernel g ran on rank 0 only", [[0, 0]])])

    def test_counts_far_from_the_others_are_told(self):
        def run(*counts):
            return self.differences(*(rank_report(i, len(counts), kernels=[kernel("f", count)])
                                      for i, count in enumerate(counts)))
        self.assertEqual(run(100, 100, 20, 100),
                         [("kernel far", "kernel f: 20 on rank 2, against a median of 100",
                           [[2, 2]])])
        self.assertEqual(run(1000, 1000, 990, 1010), [])
        self.assertEqual(run(1, 1, 9, 1), [])          # few launches
        self.assertEqual(run(100, 900), [])            # which one is far?
        self.assertEqual(run(100, 400, 900, 1600), [])  # all differ

    def test_processes_of_a_rank_count_together(self):
        folder = self.put(rank_report(0), rank_report(1), rank_report(2),
                          rank_report(2, pid=200, ancestors="102@102"))
        row, = self.summary(folder)["ranks"]["kernels"]
        self.assertEqual((row["least"], row["median"], row["most"]), (100, 100, 200))

    def test_policy_driver_library_and_settings_that_differ_are_told(self):
        def run(i, odd):
            return rank_report(i, facts={
                "policy": {"sha256": "b" if odd else "a"}, "driver": {"version": "2" if odd else "1"},
                "libraries": {f"/lib{i}/libnccl.so.2": "id2" if odd else "id1"},
                "environment": {"CUDA_VISIBLE_DEVICES": str(i), "CUDAPOLICY_REPORT": str(i),
                                **({"NCCL_ALGO": "Ring"} if odd else {})}})
        found = self.differences(*(run(i, i == 1) for i in range(4)))
        self.assertEqual([kind for kind, _, _ in found], ["fact"] * 4)
        self.assertEqual([text for _, text, _ in found], [
            "driver version differs: 1 on ranks 0,2-3, 2 on rank 1",
            "environment NCCL_ALGO differs: Ring on rank 1, (none) on ranks 0,2-3",
            "library libnccl.so.2 differs: id1 on ranks 0,2-3, id2 on rank 1",
            "policy sha256 differs: a on ranks 0,2-3, b on rank 1"])
        self.assertEqual({str(ranks) for _, _, ranks in found}, {"[[1, 1]]"})

    def test_ranks_that_were_told_different_numbers_of_ranks_are_told(self):
        found = self.differences(rank_report(0, 2), rank_report(1, 4))
        self.assertEqual(found[0][0], "number of ranks")


class OneRankTwice(Ranks):
    TIMES = [f"2026-01-01T00:00:{second:02}.000Z" for second in range(60)]

    def kinds(self, *documents):
        return [kind for kind, _, _ in self.differences(*documents)]

    def process(self, start, end, pid, **more):
        process = {"start": self.TIMES[start], "end": None if end is None else self.TIMES[end]}
        return rank_report(0, 1, pid=pid, process={**process, **more.pop("process", {})},
                           complete=end is not None, **more)

    def test_at_the_same_time_is_a_warning(self):
        documents = self.process(0, 9, 100), self.process(1, 9, 200)
        self.assertEqual(self.kinds(*documents), ["duplicate rank"])
        self.assertIn("warning: processes 100 (app) on node0 and 200 (app) on node0, at the same "
                      "time, are both rank 0\n", self.command("report", self.put(*documents)).stdout)

    def test_one_after_the_other_is_none(self):
        self.assertEqual(self.kinds(self.process(0, 5, 100), self.process(5, 9, 200)), [])

    def test_a_child_or_grandchild_is_none(self):
        self.assertEqual(self.kinds(self.process(0, 9, 100),
                                    self.process(1, 9, 200, ancestors="150@150 100@100"),
                                    self.process(2, 9, 300, ancestors="100@100 1@1")), [])

    def test_a_child_of_an_earlier_process_of_that_number_is_one(self):
        self.assertEqual(self.kinds(self.process(0, 9, 100),
                                    self.process(1, 9, 200, ancestors="100@99")),
                         ["duplicate rank"])

    def test_a_child_of_that_number_on_another_host_is_one(self):
        self.assertEqual(self.kinds(self.process(0, 9, 100),
                                    self.process(1, 9, 200, ancestors="100@100", host="other")),
                         ["duplicate rank"])

    def test_a_program_that_it_executed_is_none(self):
        self.assertEqual(self.kinds(self.process(0, None, 100, process={"image": 1}),
                                    self.process(0, 9, 100, process={"image": 2})), [])

    def test_an_end_that_is_not_known_warns_only_across_hosts(self):
        self.assertEqual(self.kinds(self.process(0, None, 100), self.process(1, 9, 200)), [])
        self.assertEqual(self.kinds(self.process(0, None, 100),
                                    self.process(1, 9, 200, host="other")), ["duplicate rank"])
        self.assertEqual(self.kinds(self.process(0, None, 100, process={"running": True}),
                                    self.process(1, 9, 200)), ["duplicate rank"])

    def test_reports_that_tell_no_ancestors_are_none(self):
        self.assertEqual(self.kinds(self.process(0, 9, 100, ancestors=None),
                                    self.process(1, 9, 200, ancestors=None)), [])


class Jobs(Ranks):
    def test_jobs_steps_launches_and_restarts_are_told_apart(self):
        places = [{"id": "9"}, {"id": "10"}, {"id": "10", "step": "1"},
                  {"id": "10", "step": "1", "launch": "b"}, {"id": "10", "step": "1", "restart": "1"}]
        folder = self.put(*(rank_report(0, 1, pid=100 + i, job=place)
                            for i, place in enumerate(places)))
        document = self.summary(folder)
        self.assertEqual(document["format"], "cudapolicy summaries")
        self.assertEqual([job["job"] for job in document["jobs"]],
                         [{"id": "9", "step": "0"}, {"id": "10", "step": "0"},
                          {"id": "10", "step": "1"}, {"id": "10", "step": "1", "restart": "1"},
                          {"id": "10", "step": "1", "launch": "b"}])
        text = self.command("report", folder).stdout
        headings = [line for line in text.splitlines() if line.startswith("job ")]
        self.assertEqual(headings, ["job 9, step 0", "job 10, step 0", "job 10, step 1",
                                    "job 10, step 1, restart 1", "job 10, step 1, launch b"])
        self.assertEqual(text.count("100 launches"), 5)

    def test_one_job_needs_no_heading(self):
        folder = self.put(rank_report(0, 2), rank_report(1, 2))
        self.assertTrue(self.command("report", folder).stdout.startswith("cudapolicy: 200 launches"))
        self.assertEqual(self.summary(folder)["job"], {"id": "42", "step": "0"})

    def test_reports_outside_of_jobs_are_one(self):
        folder = self.put(report(1, kernels=[kernel("f", 1)]), report(2, kernels=[kernel("f", 2)]))
        summary = self.summary(folder)
        self.assertEqual((summary["launches"], summary["job"], summary["ranks"]), (3, {}, None))


class Merging(Ranks):
    def merge(self, *arguments, status=0, stderr=""):
        result = self.command("report", "--merge", *arguments)
        self.assertEqual((result.returncode, result.stdout, result.stderr), (status, "", stderr))

    def test_files_of_nodes_make_the_same_job_as_their_reports(self):
        reports = [rank_report(i, rules=[rule("k", 100, 100)]) for i in range(4)]
        whole = self.put(*reports)
        os.mkdir(self.path("m"))
        for node in range(2):
            self.merge(f"m/node{node}.json",
                       self.put(*reports[2 * node:2 * node + 2], folder=f"n{node}"))
        self.assertEqual(self.summary("m"), self.summary(whole))
        self.merge("all.json", "m")
        self.assertEqual(self.summary("all.json"), self.summary(whole))
        self.assertEqual(sorted(os.listdir(self.path("m"))), ["node0.json", "node1.json"])

    def test_the_file_is_the_document_of_a_job_for_its_owner_alone(self):
        self.merge("all.json", self.put(rank_report(0), rank_report(1)))
        with open(self.path("all.json"), encoding="utf-8") as file:
            document = json.load(file)
        self.assertEqual((document["format"], document["schema"], len(document["processes"]),
                          document["summary"]["launches"]), ("cudapolicy job", 1, 2, 200))
        self.assertEqual(stat.S_IMODE(os.stat(self.path("all.json")).st_mode), 0o600)

    def test_a_name_that_is_taken_gets_a_suffix(self):
        folder = self.put(rank_report(0))
        self.write("all.json", "mine")
        self.merge("all.json", folder, stderr="cudapolicy: 'all.json' is there already: the reports "
                                              "are in 'all.json.1'\n")
        with open(self.path("all.json"), encoding="utf-8") as file:
            self.assertEqual(file.read(), "mine")

    def test_what_was_merged_is_removed_on_request_and_nothing_else(self):
        folder = self.put(rank_report(0), rank_report(1))
        self.write("r/notes.txt", "mine")
        self.merge("all.json", "--remove", folder)
        self.assertEqual(os.listdir(folder), ["notes.txt"])
        os.unlink(self.path("r/notes.txt"))
        self.merge("more.json", "--remove", self.put(rank_report(2)))
        self.assertFalse(os.path.exists(folder))

    def test_reports_of_processes_that_still_run_stay(self):
        folder = self.put(rank_report(0), rank_report(1, complete=False,
                                                      process={"end": None, "running": True}))
        self.merge("all.json", "--remove", folder)
        self.assertEqual(os.listdir(folder), ["1.json"])

    def test_nothing_is_removed_when_something_went_wrong(self):
        folder = self.put(rank_report(0))
        self.write("r/broken.json", '{"format": "cudapolicy report"')
        result = self.command("report", "--merge", "all.json", "--remove", folder)
        self.assertEqual(result.returncode, 1)
        self.assertEqual(len(os.listdir(folder)), 2)
        self.assertEqual(self.summary("all.json")["launches"], 100)
        result = self.command("report", "--merge", "gone/all.json", "--remove", folder)
        self.assertEqual(result.returncode, 1)
        self.assertIn("cannot write 'gone/all.json'", result.stderr)
        self.assertEqual(len(os.listdir(folder)), 2)

    def test_an_empty_folder_is_removed_and_told(self):
        os.mkdir(self.path("empty"))
        self.merge("all.json", "--remove", "empty", status=1, stderr="cudapolicy: no report there\n")
        self.assertEqual(os.listdir(self.folder), [])

    def test_remove_alone_is_a_usage_error(self):
        self.assert_usage_error(self.command("report", "--remove", self.folder),
                                "--remove goes with --merge")

    def test_documents_of_jobs_are_read_however_they_are_written(self):
        self.merge("all.json", self.put(rank_report(0), rank_report(1)))
        with open(self.path("all.json"), encoding="utf-8") as file:
            document = json.load(file)
        wanted = self.summary("all.json")
        document["x\\\"{[processes"] = {"processes": [1, {"a": "]}"}]}
        for text in (json.dumps(document), json.dumps(document, indent=3),
                     json.dumps(document, sort_keys=True), "\n" + json.dumps(document)):
            self.write("other.json", text)
            self.assertEqual(self.summary("other.json"), wanted)

    def test_documents_of_jobs_that_are_not_whole_are_failures(self):
        self.merge("all.json", self.put(rank_report(0), rank_report(1)))
        with open(self.path("all.json"), encoding="utf-8") as file:
            text = file.read()
        for broken in (text[:-3], text + "}", text.replace('"complete"', '"complete', 1),
                       text.replace("[\n", "[1,", 1), text.replace("[\n", "[[],", 1),
                       text.replace('"schema"', '"processes": [], "schema"', 1)):
            self.write("broken.json", broken)
            result = self.command("report", "broken.json")
            self.assertEqual(result.returncode, 1, broken[:300])
            self.assertIn("broken.json", result.stderr)


class RunMerge(Ranks):
    def test_a_folder_of_a_run_has_one_file_a_host(self):
        program = os.environ["CUDAPOLICY_TEST_PROGRAM"]
        result = self.run_program("-q", "--report-folder", "reports", "--merge", "--", program,
                                  "launch", "kernel", "2", "1", "fork", "launch", "kernel", "3", "1",
                                  env={"LD_LIBRARY_PATH": os.environ["CUDAPOLICY_TEST_DOUBLES"]})
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        job, = os.listdir(self.path("reports"))
        name, = os.listdir(self.path(f"reports/{job}"))
        self.assertEqual(name, os.uname().nodename + ".json")
        summary = self.summary("reports")
        self.assertEqual((summary["launches"], len(summary["processes"])), (5, 2))

    def test_the_summary_of_a_run_tells_what_differs_among_its_ranks(self):
        program = os.environ["CUDAPOLICY_TEST_PROGRAM"]
        one = "{} RANK={} LOCAL_RANK={} WORLD_SIZE=3 {} launch kernel {} 1"
        ranks = "; ".join(one.format(shutil.which("env"), rank, rank, program, count)
                          for rank, count in ((0, 100), (1, 100), (2, 10)))
        result = self.run_program("--", "sh", "-c", ranks,
                                  env={"LD_LIBRARY_PATH": os.environ["CUDAPOLICY_TEST_DOUBLES"]})
        self.assertIn("\nkernel kernel: 10 on rank 2, against a median of 100\n", result.stderr)

    def test_a_run_without_ranks_says_nothing_of_them(self):
        result = self.run_program("--", os.environ["CUDAPOLICY_TEST_PROGRAM"], "launch", "kernel",
                                  "1", "1",
                                  env={"LD_LIBRARY_PATH": os.environ["CUDAPOLICY_TEST_DOUBLES"]})
        self.assertNotIn("rank", result.stderr)

    def test_merge_alone_is_a_usage_error(self):
        self.assert_usage_error(self.run_program("--merge", "--", "true"),
                                "--merge goes with --report-folder")


if __name__ == "__main__":
    support.main()
