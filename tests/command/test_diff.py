# SPDX-License-Identifier: Apache-2.0
"""cudapolicy diff, on reports written here."""

import hashlib
import json
import os

import support
from test_report import kernel, report, rule


class Diff(support.Case):
    def put(self, name, rules=(), kernels=(), **members):
        return self.write(name, json.dumps(report(rules=rules, kernels=kernels, **members)))

    def compare(self, old, new, *arguments, status=1):
        """Each of both: (rules, kernels), or with further members of the report."""
        def path(name, run):
            return self.put(name, run[0], run[1], **(run[2] if len(run) > 2 else {}))
        result = self.command("diff", *arguments, path("old.json", old), path("new.json", new))
        self.assertEqual((result.returncode, result.stderr), (status, ""), result)
        return result.stdout

    def differences(self, old, new, *arguments, status=1):
        return support.load_json(self.compare(old, new, "--json", *arguments, status=status))


class Kernels(Diff):
    def test_runs_that_differ_in_counts_alone_are_the_same(self):
        text = self.compare(([rule("k", 5, 5)], [kernel("f", 5, ["k"])]),
                            ([rule("k", 900, 900)], [kernel("f", 900, ["k"])]), status=0)
        self.assertEqual(text, "")

    def test_kernels_that_are_gone_or_new_are_listed(self):
        text = self.compare(([], [kernel("alpha", 5), kernel("both", 1)]),
                            ([], [kernel("both", 1), kernel("omega_kernel", 1)]))
        self.assertEqual(text, "- kernel alpha (app, 5 launches)\n"
                               "+ kernel omega_kernel (app, 1 launch)\n")

    def near(self, old, *new):
        document = self.differences(([], [old]), ([], list(new)))
        vanished, = document["vanished"]
        return [(one["signature"], one["how"]) for one in vanished["nearest"]]

    def test_other_template_arguments_are_nearest(self):
        def instance(argument):
            return dict(kernel("ns::gemm", 1), mangled=f"_Z{argument}",
                        signature=f"void ns::gemm<{argument}>(float*)")
        self.assertEqual(self.near(instance("tile<128, 64>"), kernel("ns::gemn", 9),
                                   instance("tile<256, 128>"), instance("tile<128, 32>")),
                         [("void ns::gemm<tile<128, 32>>(float*)",
                           "other template arguments or parameters"),
                          ("void ns::gemm<tile<256, 128>>(float*)",
                           "other template arguments or parameters"),
                          ("ns::gemn", "a similar name")])

    def test_another_version_is_nearest(self):
        for old, new in (("sgemm_v2", "sgemm_v3"), ("sgemm", "sgemm_v2"), ("sgemm_2", "sgemm_13"),
                         ("cutlass_80_tensorop_s16816gemm", "cutlass_90_tensorop_s64128gemm")):
            self.assertEqual(self.near(kernel(old, 1), kernel("copy", 1), kernel(new, 1)),
                             [(new, "other numbers in the name")])

    def test_another_namespace_is_near(self):
        self.assertEqual(self.near(kernel("at::native::copy_kernel", 1),
                                   kernel("torch::headers_only::detail::copy_kernel", 1)),
                         [("torch::headers_only::detail::copy_kernel", "another namespace")])

    def test_a_similar_name_is_near_and_a_strange_one_is_not(self):
        self.assertEqual(self.near(kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL", 1),
                                   kernel("gemm", 1),
                                   kernel("ncclDevKernel_AllReduce_Sum_f32_TREE_LL", 1)),
                         [("ncclDevKernel_AllReduce_Sum_f32_TREE_LL", "a similar name")])

    def test_where_no_new_kernel_is_near_one_of_both_runs_may_be(self):
        document = self.differences(([], [kernel("reduce_a", 1), kernel("reduce_b", 1)]),
                                    ([], [kernel("reduce_b", 1), kernel("gemm", 1)]))
        self.assertEqual([one["name"] for one in document["vanished"][0]["nearest"]], ["reduce_b"])

    def test_a_kernel_in_another_library_has_moved(self):
        document = self.differences(
            ([rule("k", 1, 1)], [kernel("f", 1, ["k"], library="liba.so.1")]),
            ([rule("k", 1, 1)], [kernel("f", 1, ["k"], library="liba.so.2")]))
        self.assertEqual((document["vanished"], document["appeared"], document["rules"]),
                         ([], [], []))
        self.assertEqual(document["moved"], [{"name": "f", "mangled": "f",
                                              "old_library": "liba.so.1",
                                              "new_library": "liba.so.2"}])

    def test_many_long_names_take_no_time_to_speak_of(self):
        def kernels(word):
            return [kernel(f"{word}{'x' * 300}{chr(97 + i % 26)}{chr(97 + i // 26 % 26)}", 1)
                    for i in range(600)]
        document = self.differences(([], kernels("a")), ([], kernels("b")))
        self.assertEqual(len(document["vanished"]), 600)


class Rules(Diff):
    def test_a_rule_that_stopped_or_began_to_match_is_told(self):
        gone, here = [rule("a", 5, 5), rule("b")], [rule("a"), rule("b", 5, 5)]
        text = self.compare((gone, [kernel("f", 5, ["a"])]), (here, [kernel("f", 5, ["b"])]))
        self.assertIn("- rule kernel a matched before, and nothing now\n", text)
        self.assertIn("+ rule kernel b matched nothing before, and does now\n", text)
        self.assertIn("rule kernel a no longer decides on f\n", text)
        self.assertIn("rule kernel b now decides on f\n", text)

    def test_kernels_of_one_name_are_counted(self):
        def twice(*rules):
            return [dict(kernel("twice", 5, rules), mangled=f"_Z5twiceI{letter}EvPT_") for letter in "dfi"]
        before = [*twice("a"), kernel("g", 5, ["a"]), kernel("h", 5, ["a"])]
        after = [*twice(), kernel("g", 5), kernel("h", 5, ["a"])]
        text = self.compare(([rule("a", 25, 25)], before), ([rule("a", 5, 5)], after))
        self.assertRegex(text, r"rule kernel a no longer decides on (g, )?twice \(3 kernels of that name\)(, g)?\n")

    def test_rules_of_one_policy_alone_are_told(self):
        document = self.differences(([rule("a")], [kernel("f", 1)]), ([rule("b")], [kernel("f", 1)]))
        self.assertEqual([(r["name"], r["change"]) for r in document["rules"]],
                         [("a", "removed"), ("b", "added")])

    def test_rules_of_one_name_in_two_layers_are_told_apart(self):
        def run(launches):
            return ([{**rule("k", launches, launches), "layer": "site locked"}, rule("k", 5, 5)],
                    [kernel("f", 5, ["k"])])
        text = self.compare(run(5), run(0))
        self.assertIn("- rule kernel k (site locked) matched before, and nothing now\n", text)
        self.assertNotIn("rule kernel k matched", text)
        document = self.differences(run(5), run(0))
        self.assertEqual([(one["name"], one.get("layer"), one["change"]) for one in document["rules"]],
                         [("k", "site locked", "stopped")])

    def test_what_to_paste_says_that_it_is_the_sites(self):
        def run(name):
            count = 5 if name == "gemm_v2" else 0
            rules = [{**rule("k", count, count), "layer": "site locked"}]
            return rules, [kernel(name, 5, ["k"] if count else [])]
        old, new = run("gemm_v2"), run("gemm_v3")
        for one in old[1][0]["settings"]:
            one["rule_layer"] = "site locked"
        self.assertTrue(self.compare(old, new).endswith(
            "\n# for what is near the kernels that rule kernel k (site locked) lost, in the site's file:\n"
            "[kernel k]\nname = gemm_v3\n"))

    def test_other_outcomes_and_reasons_are_told(self):
        text = self.compare(([rule("k", 10, 10)], [kernel("f", 10, ["k"])]),
                            ([rule("k", 20, 15, {"graph": 5})], [kernel("f", 20, ["k"])]))
        self.assertEqual(text, "rule kernel k: applied: 10 of 10 launches before, 15 of 20 now\n"
                               "rule kernel k: refused (graph): 0 of 10 launches before, 5 of 20 "
                               "now\n")

    def test_a_reason_that_only_one_run_has_is_told_however_rare(self):
        text = self.compare(([rule("k", 100, 100)], [kernel("f", 100, ["k"])]),
                            ([rule("k", 100, 99, {"graph": 1})], [kernel("f", 100, ["k"])]))
        self.assertEqual(text, "rule kernel k: refused (graph): 0 of 100 launches before, 1 of 100 "
                               "now\n")

    def test_a_share_that_hardly_moved_is_no_difference(self):
        self.compare(([rule("k", 100, 50, {"graph": 50})], [kernel("f", 100, ["k"])]),
                     ([rule("k", 100, 55, {"graph": 45})], [kernel("f", 100, ["k"])]), status=0)

    def test_streams_have_outcomes_too(self):
        def streams(applied, refused):
            return [rule("s", section="stream", streams={
                "streams": 2, "applied": applied, "already_so": 0, "kept": 0, "refused": refused})]
        text = self.compare((streams(2, {}), []), (streams(0, {"one domain": 2}), []))
        self.assertIn("rule stream s: applied: 2 of 2 streams before, 0 of 2 now\n", text)

    def test_the_driver_explains_and_is_no_difference(self):
        def run(version):
            return ([], [kernel("f", 1)], {"facts": {"driver": {"version": version}}})
        text = self.compare(run("12080"), run("13000"), status=0)
        self.assertEqual(text, "driver: 12080 before, 13000 now\n")


class Suggestions(Diff):
    POLICY = """[policy]
version = 1

[kernel k]
name = reduce_v1
grid_blocks = 1..4
mem_sync_domain = remote
"""
    OLD = ([rule("k", 5, 5)], [kernel("reduce_v1", 5, ["k"])])
    NEW = ([rule("k")], [kernel("reduce_v2", 5)])

    def test_without_the_policy_the_lines_to_add_are_printed(self):
        document = self.differences(self.OLD, self.NEW)
        self.assertEqual(document["rules"][0]["suggestion"], "[kernel k]\nname = reduce_v2\n")
        self.assertIn("\n[kernel k]\nname = reduce_v2\n", self.compare(self.OLD, self.NEW))

    def test_with_the_policy_the_whole_rule_is_printed_and_right(self):
        policy = self.write("p.ini", self.POLICY)
        text = self.differences(self.OLD, self.NEW, "-p", policy)["rules"][0]["suggestion"]
        self.assertIn("name = reduce_v1\nname = reduce_v2\ngrid_blocks = 1..4\n", text)
        fixed = self.write("fixed.ini", "[policy]\nversion = 1\n" + text)
        result = self.command("explain", "-p", fixed, "--kernel", "reduce_v2")
        self.assertEqual(result.returncode, 0, result)
        self.assertIn("[kernel k]", result.stdout)

    def test_the_policy_that_the_report_names_is_taken(self):
        policy = self.write("p.ini", self.POLICY)
        digest = hashlib.sha256(self.POLICY.encode()).hexdigest()
        facts = {"facts": {"policy": {"path": policy, "sha256": digest}}}
        document = self.differences((*self.OLD, facts), (*self.NEW, facts))
        self.assertIn("grid_blocks = 1..4", document["rules"][0]["suggestion"])

    def test_two_runs_of_a_program_are_compared(self):
        for version in (1, 2):
            result = self.run_program(
                "-q", "--report", f"{version}.json", "--", os.environ["CUDAPOLICY_TEST_PROGRAM"],
                "launch", "same", "3", "1", "launch", f"reduce_v{version}", "3", "1",
                policy=self.POLICY,
                env={"LD_LIBRARY_PATH": os.environ["CUDAPOLICY_TEST_DOUBLES"]})
            self.assertEqual((result.returncode, result.stderr), (0, ""))
        result = self.command("diff", "1.json", "2.json")
        self.assertEqual((result.returncode, result.stderr), (1, ""))
        self.assertEqual(result.stdout.splitlines()[:3], [
            "- kernel reduce_v1 (command_program, 3 launches)",
            "    near: reduce_v2 (other numbers in the name)",
            "+ kernel reduce_v2 (command_program, 3 launches)"])
        self.assertIn("\n[kernel k]\nname = reduce_v1\nname = reduce_v2\ngrid_blocks = 1..4\n",
                      result.stdout)
        self.assertEqual(self.command("diff", "1.json", "1.json").returncode, 0)

    def test_the_form_of_the_name_is_the_rules(self):
        def instance(argument, rules=()):
            return dict(kernel("gemm", 1, rules), mangled=f"_Z4gemmI{argument}EvPT_",
                        signature=f"void gemm<{argument}>({argument}*)")
        policy = self.write("p.ini", "[policy]\nversion = 1\n[kernel k]\nname = *gemm<float>*\n"
                                     "name_form = signature\npriority = 0\n")
        document = self.differences(([rule("k", 1, 1)], [instance("f", ["k"])]),
                                    ([rule("k")], [instance("d")]), "-p", policy)
        self.assertIn("name = void gemm<d>(d\\*)\n", document["rules"][0]["suggestion"])

    def test_a_name_that_the_rule_has_already_is_not_suggested(self):
        policy = self.write("p.ini", self.POLICY.replace("reduce_v1", "reduce_*"))
        self.assertIsNone(self.differences(self.OLD, self.NEW, "-p", policy)["rules"][0]["suggestion"])

    def test_a_name_that_the_rule_excludes_is_not_suggested(self):
        policy = self.write("p.ini", self.POLICY.replace("grid_blocks = 1..4",
                                                         "not_name = reduce_v2"))
        self.assertIsNone(self.differences(self.OLD, self.NEW, "-p", policy)["rules"][0]["suggestion"])

    def test_control_characters_do_not_reach_the_terminal(self):
        text = self.compare(([rule("\x1b[2Jr", 1, 1)], [kernel("\x1b[2Jf", 1, ["\x1b[2Jr"])]),
                            ([rule("\x1b[2Jr")], [kernel("\x1b[3Jf", 1)]))
        self.assertFalse([c for c in text if ord(c) < 32 and c != "\n"], repr(text))


class Input(Diff):
    def test_two_reports_are_needed(self):
        path = self.put("a.json", kernels=[kernel("f", 1)])
        for arguments in ((), (path,), (path, path, path)):
            self.assert_usage_error(self.command("diff", *arguments), "two reports are needed")

    def test_trouble_has_a_status_of_its_own(self):
        path = self.put("a.json", kernels=[kernel("f", 1)])
        os.mkdir(self.path("empty"))
        wrong = self.write("wrong.ini", "[policy]\n")
        for arguments, text in (((path, "none.json"), "none.json"), (("none.json", path), "none.json"),
                                ((path, "empty"), "no report in 'empty'"),
                                (("-p", wrong, path, path), "version"),
                                (("-p", "none.ini", path, path), "none.ini")):
            result = self.command("diff", *arguments)
            self.assertEqual((result.returncode, result.stdout), (2, ""), result)
            self.assertIn(text, result.stderr)

    def test_a_full_disk_is_trouble(self):
        old = self.put("a.json", kernels=[kernel("f", 1)])
        new = self.put("b.json", kernels=[kernel("g", 1)])
        with open("/dev/full", "w", encoding="utf-8") as full:
            self.assertEqual(self.command("diff", old, new, stdout=full).returncode, 2)

    def test_folders_and_jobs_are_compared(self):
        os.mkdir(self.path("old"))
        self.put("old/a.json", kernels=[kernel("f", 1)])
        self.assertEqual(self.command("report", "--merge", "new.json", "old").returncode, 0)
        result = self.command("diff", "old", "new.json")
        self.assertEqual((result.returncode, result.stdout, result.stderr), (0, "", ""))


if __name__ == "__main__":
    support.main()
