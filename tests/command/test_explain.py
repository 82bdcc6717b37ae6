# SPDX-License-Identifier: Apache-2.0
"""cudapolicy explain, with names typed in."""

import support

POLICY = """[policy]
version = 1

[stream side]
created_priority = ..-1
mem_sync_domain = default
priority = -1

[kernel small]
name = ncclDevKernel_*
library = libnccl.so*
grid_blocks = 1..4
mem_sync_domain = remote
mem_sync_domain_map = 0 2

[kernel nccl]
name = ncclDevKernel_*
mem_sync_domain = remote
final = yes

[kernel keeper]
name = keep::*
mem_sync_domain = leave
cluster_dim = unset
unsafe_cluster = yes

[kernel signature]
name_form = signature
name = "void at::native::*<float*"
cluster_dim = 2

[kernel rest]
mem_sync_domain = default
"""

NCCL = "ncclDevKernel_AllReduce_Sum_f32_RING_LL"
COPY = "_ZN2at6native4copyIfEEvPT_i"
SIGNATURE = "void at::native::copy<float>(float*, int)"


class Explain(support.Case):
    def setUp(self):
        super().setUp()
        self.policy = self.write("p.ini", POLICY)

    def text(self, *arguments):
        result = self.command("explain", "-p", self.policy, *arguments)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        return result.stdout

    def explained(self, *arguments):
        kernel, = support.load_json(self.text("--json", *arguments))["kernels"]
        return kernel

    def rules(self, *arguments):
        return {r["rule"]: r["matches"] for r in self.explained(*arguments)["rules"]}

    def settings(self, *arguments):
        return {s["setting"]: (s["value"], s["rule"], s["line"])
                for s in self.explained(*arguments)["settings"]}

    def test_rules_settings_and_lines_are_printed(self):
        text = self.text("--kernel", NCCL, "--library", "libnccl.so.2", "--grid", "4")
        self.assertIn(f"kernel {NCCL}\n  library libnccl.so.2, grid_blocks 4\n", text)
        self.assertRegex(text, r"(?m)^  small +9 +yes$")
        self.assertRegex(text, r"(?m)^  mem_sync_domain = remote +.*p\.ini:13 +\[kernel small\] +"
                               r"replaces the program's own$")

    def test_the_first_rule_with_a_setting_of_the_group_decides(self):
        self.assertEqual(self.settings("--kernel", NCCL, "--library", "libnccl.so.2", "--grid", "4"),
                         {"mem_sync_domain": ("remote", "small", 13),
                          "mem_sync_domain_map": ("0 2", "small", 14)})
        self.assertEqual(self.settings("--kernel", NCCL, "--library", "libnccl.so.2", "--grid", "9"),
                         {"mem_sync_domain": ("remote", "nccl", 18)})

    def test_the_first_selector_that_fails_is_named(self):
        rules = self.explained("--kernel", NCCL, "--library", "app", "--grid", "9")["rules"]
        self.assertEqual((rules[0]["selector"], rules[0]["why"]),
                         ("library", "library: app does not match libnccl.so*"))
        rules = self.explained("--kernel", NCCL, "--library", "libnccl.so.2", "--grid", "9")["rules"]
        self.assertEqual((rules[0]["selector"], rules[0]["why"]),
                         ("grid_blocks", "grid_blocks: 9 is not in 1..4"))

    def test_what_is_not_given_makes_a_perhaps_with_its_consequence(self):
        kernel = self.explained("--kernel", NCCL)
        self.assertEqual(kernel["rules"][0]["matches"], "perhaps")
        self.assertEqual([(s["setting"], s["rule"]) for s in kernel["if"]],
                         [("mem_sync_domain", "small"), ("mem_sync_domain_map", "small")])
        text = self.text("--kernel", NCCL)
        self.assertRegex(text, r"if \[kernel small\] matches: mem_sync_domain_map = 0 2 \(.*:14\)")

    def test_a_selector_that_fails_beats_one_that_is_not_known(self):
        self.assertEqual(self.rules("--kernel", NCCL, "--grid", "9")["small"], "no")

    def test_rules_after_a_final_one_are_not_reached(self):
        rules = self.rules("--kernel", NCCL, "--grid", "9")
        self.assertEqual((rules["nccl"], rules["rest"]), ("yes", "not reached"))

    def test_a_final_rule_that_perhaps_matches_is_told(self):
        policy = POLICY.replace("name = ncclDevKernel_*\nmem", "grid_blocks = 1\nmem")
        self.policy = self.write("p.ini", policy)
        text = self.text("--kernel", "f")
        self.assertIn("if [kernel nccl] matches: later rules are not looked at (final)", text)
        self.assertNotIn("later rules", self.text("--kernel", "f", "--grid", "2"))
        rules = self.explained("--kernel", "f")["rules"]
        self.assertEqual([(r["rule"], r["matches"]) for r in rules if r["final"]],
                         [("nccl", "perhaps")])

    def test_leave_and_unset_are_shown(self):
        settings = self.settings("--kernel", "keep::f")
        self.assertEqual(settings["mem_sync_domain"], ("leave", "keeper", 23))
        self.assertEqual(settings["cluster_dim"], ("unset", "keeper", 24))
        text = self.text("--kernel", "keep::f")
        self.assertIn("the program's own stays", text)
        self.assertIn("the program's own is taken away", text)

    def test_the_settings_of_the_stream_hold_where_no_kernel_rule_has_them(self):
        settings = self.settings("--kernel", NCCL, "--grid", "9", "--stream", "side")
        self.assertEqual(settings, {"mem_sync_domain": ("remote", "nccl", 18),
                                    "priority": ("-1", "side", 7)})

    def test_a_partition_is_shown_with_what_it_asks_for(self):
        self.policy = self.write("partitions.ini", '''[policy]
version = 1
[partition side]
sm_count = 25%
[stream far]
locality_domain = 1
[kernel gemm]
name = gemm
partition = side
[kernel maybe]
name = copy
grid_blocks = 1
locality_domain = 0
''')
        text = self.text("--kernel", "gemm")
        self.assertRegex(text, r"(?m)^  partition = side +.*:9 +\[kernel gemm\] +sm_count = 25%$")
        text = self.text("--kernel", "other", "--stream", "far")
        self.assertRegex(text, r"(?m)^  locality_domain = 1 +.*:6 +\[stream far\] +"
                               r"on the stream; an unnamed partition$")
        self.assertIn("  if [kernel maybe] matches: locality_domain = 0 (",
                      self.text("--kernel", "copy"))
        setting, = self.explained("--kernel", "gemm")["settings"]
        self.assertEqual((setting["setting"], setting["value"]), ("partition", "side"))
        self.assertEqual(setting["partition"], {"name": "side", "named": True,
                                                "asks_for": "sm_count = 25%", "line": 3})
        setting, = self.explained("--kernel", "other", "--stream", "far")["settings"]
        self.assertEqual((setting["value"], setting["partition"]["named"]),
                         ("locality_domain=1", False))

    def test_names_are_taken_in_every_form(self):
        for name in (COPY, SIGNATURE):
            self.assertEqual(self.rules("--kernel", name)["signature"], "yes", name)
            self.assertEqual(self.explained("--kernel", name)["name"], "at::native::copy")
        self.assertEqual(self.rules("--kernel", "at::native::copy")["signature"], "perhaps")

    def test_a_form_that_is_not_known_is_told(self):
        rules = self.explained("--kernel", "at::native::copy")["rules"]
        why, = [r["why"] for r in rules if r["rule"] == "signature"]
        self.assertEqual(why, "name: the signature is not known: give the kernel's mangled name")

    def test_dimensions_are_multiplied(self):
        for grid, answer in (("2,2", "yes"), ("2x2x1", "yes"), ("2,2,2", "no"), ("4", "yes")):
            self.assertEqual(self.rules("--kernel", NCCL, "--library", "libnccl.so.2", "--grid",
                                        grid)["small"], answer, grid)

    def test_values_that_are_none_are_usage_errors(self):
        for option, value in (("--grid", "0"), ("--grid", "1,2,3,4"), ("--grid", "x"),
                              ("--grid", "1,"), ("--grid", "-1"), ("--grid", ""),
                              ("--grid", "9999999999"), ("--block", "1.5"),
                              ("--shared-memory", "1,2"), ("--shared-memory", "99999999999999999999"),
                              ("--rank", "-1"), ("--world-size", "0"), ("--device", "a"),
                              ("--local-rank", ""), ("--launch-stream", "one"),
                              ("--captured", "maybe")):
            result = self.command("explain", "-p", self.policy, "--kernel", "f", f"{option}={value}")
            self.assert_usage_error(result, f"is not a value for {option}")

    def test_a_stream_rule_that_is_not_there_is_a_failure(self):
        result = self.command("explain", "-p", self.policy, "--kernel", "f", "--stream", "sdie")
        self.assertEqual(result.returncode, 1)
        self.assertEqual(result.stderr, "cudapolicy: the policy has no [stream sdie]\n")

    def test_every_other_selector_is_weighed(self):
        policy = self.write("q.ini", """[policy]
version = 1
[stream s]
priority = -1
[kernel k]
stream = s
launch_stream = 1
block_threads = 64
shared_memory = 1..
captured = yes
device = 0
rank = 0..3
local_rank = 1
world_size = 8
host = node*
not_library = libx.so*
not_name = g
priority = 0
""")
        good = {"--stream": "s", "--launch-stream": "1", "--block": "8,8", "--shared-memory": "64",
                "--captured": "yes", "--device": "0", "--rank": "2", "--local-rank": "1",
                "--world-size": "8", "--host": "node1", "--library": "app", "--kernel": "f"}
        wrong = {"--stream": "", "--launch-stream": "0", "--block": "65", "--shared-memory": "0",
                 "--captured": "no", "--device": "1", "--rank": "4", "--local-rank": "0",
                 "--world-size": "9", "--host": "other", "--library": "libx.so.1", "--kernel": "g"}

        def answer(values):
            arguments = [word for pair in values.items() for word in pair]
            result = self.command("explain", "-p", policy, "--json", *arguments)
            self.assertEqual(result.returncode, 0, result)
            kernel, = support.load_json(result.stdout)["kernels"]
            return kernel["rules"][0]["matches"], kernel["rules"][0]["selector"]

        keys = {"--stream": "stream", "--block": "block_threads", "--kernel": "not_name",
                "--library": "not_library"}
        self.assertEqual(answer(good), ("yes", None))
        for option, value in wrong.items():
            key = keys.get(option, option[2:].replace("-", "_"))
            self.assertEqual(answer({**good, option: value}), ("no", key))
            if option != "--kernel":
                unknown = {name: text for name, text in good.items() if name != option}
                self.assertEqual(answer(unknown), ("perhaps", key))

    def test_the_arm_of_a_live_comparison_is_weighed(self):
        self.policy = self.write("live.ini", "[policy]\nversion = 1\n"
                                 "[kernel a/k]\nname = k\narm = 1\npriority = -1\n"
                                 "[kernel b/k]\nname = k\narm = 2\npriority = -2\n")
        self.assertEqual(self.rules("--kernel", "k"), {"a/k": "perhaps", "b/k": "perhaps"})
        self.assertEqual(self.rules("--kernel", "k", "--arm", "2"), {"a/k": "no", "b/k": "yes"})
        self.assertEqual(self.settings("--kernel", "k", "--arm", "2")["priority"], ("-2", "b/k", 10))
        self.assertEqual(self.settings("--kernel", "k", "--arm", "0"), {})
        for wrong in ("16", "-1", "x", "1,1"):
            self.assert_usage_error(self.command("explain", "-p", self.policy, "--kernel", "k",
                                                 "--arm", wrong), f"'{wrong}' is not a value for --arm")

    def test_a_policy_without_kernel_rules_is_told(self):
        policy = self.write("q.ini", "[policy]\nversion = 1\n")
        result = self.command("explain", "-p", policy, "--kernel", "f")
        self.assertEqual(result.returncode, 0)
        self.assertIn("has no kernel rule", result.stdout)
        self.assertIn("no setting for certain", result.stdout)

    def test_control_characters_do_not_reach_the_terminal(self):
        text = self.text("--kernel", "\x1b[2Jf", "--library", "\x07")
        self.assertFalse([c for c in text if ord(c) < 32 and c != "\n"], repr(text))

    def test_the_command_line_is_checked(self):
        explain = ("explain", "-p", self.policy)
        self.assert_usage_error(self.command("explain", "--kernel", "f"), "no policy")
        self.assert_usage_error(self.command(*explain), "either --kernel or reports")
        self.assert_usage_error(self.command(*explain, "--kernel", "f", "r.json"),
                                "either --kernel or reports")
        self.assert_usage_error(self.command(*explain, "--grid", "1", "r.json"), "a report says")
        self.assert_usage_error(self.command(*explain, "--kernel", ""), "empty")

    def test_bad_input_is_a_failure(self):
        wrong = self.write("wrong.ini", "[x]\n")
        result = self.command("explain", "-p", wrong, "--kernel", "f")
        self.assertEqual((result.returncode, result.stdout), (1, ""))
        self.assertIn("wrong.ini:1:", result.stderr)
        result = self.command("explain", "-p", self.policy, "none.json")
        self.assertEqual(result.returncode, 1)
        self.assertIn("none.json", result.stderr)


if __name__ == "__main__":
    support.main()
