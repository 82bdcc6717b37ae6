# SPDX-License-Identifier: Apache-2.0
"""The policies that are shipped: right, documented, and doing what they say."""

import os
import re

import support

FOLDER = os.path.join(support.SOURCE, "policy")
SEPARATION = "may put kernels into another physical domain than others"

# The warnings that each policy is expected to have; its own comments and the catalogue state them.
WARNINGS = {
    "cluster-for-one-kernel.ini": [],
    "communication-on-16-sms.ini": [],
    "communication-priority.ini": [],
    "communication-to-remote-domain.ini": [SEPARATION],
    "prefill-decode-split.ini": [],
    "small-communicator-own-domain.ini": [SEPARATION],
    "two-locality-domains.ini": [],
}


class Policies(support.Case):
    def explain(self, name, kernel, *arguments):
        result = self.command("explain", "-p", os.path.join(FOLDER, name), "--json", "--kernel",
                              kernel, *arguments)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        explained, = support.load_json(result.stdout)["kernels"]
        return {s["setting"]: s["value"] for s in explained["settings"]}

    def test_every_policy_is_known_here(self):
        names = sorted(name for name in os.listdir(FOLDER) if name.endswith(".ini"))
        self.assertEqual(names, sorted(WARNINGS))

    def test_every_policy_is_right_with_only_the_stated_warnings(self):
        for name, expected in WARNINGS.items():
            result = self.command("check", "--json", os.path.join(FOLDER, name))
            self.assertEqual(result.returncode, 0, name)
            file, = support.load_json(result.stdout)["files"]
            messages = [d["message"] for d in file["diagnostics"]]
            self.assertEqual(len(messages), len(expected), messages)
            for message, text in zip(messages, expected):
                self.assertIn(text, message)

    def test_every_policy_tells_its_story_before_its_first_section(self):
        for name in WARNINGS:
            with open(os.path.join(FOLDER, name), encoding="utf-8") as file:
                head = file.read().split("[policy]")[0]
            for part in ("When: ", "What to expect", "What can go wrong: "):
                self.assertIn(f"\n# {part}", head, name)

    def test_the_catalogue_lists_every_policy(self):
        with open(os.path.join(FOLDER, "README.md"), encoding="utf-8") as file:
            text = file.read()
        self.assertEqual(sorted(set(re.findall(r"\]\(([a-z0-9-]+\.ini)\)", text))), sorted(WARNINGS))

    def figures(self):
        """(where, its text) for each paragraph or row of a table that has a measured figure."""
        for name in sorted([*WARNINGS, "README.md"]):
            with open(os.path.join(FOLDER, name), encoding="utf-8") as file:
                text = file.read()
            pieces = text.splitlines() if name == "README.md" else re.split(r"\n#?\n", text)
            for piece in pieces:
                plain = re.sub(r"\s+#?\s*", " ", piece)
                if re.search(r"\d (ms|us|µs|ns|s|%|times|×)(?![\w/])|\d×", plain):
                    yield name, plain

    def test_every_figure_stands_beside_the_command_that_repeats_it(self):
        def read(*path):
            with open(os.path.join(support.SOURCE, *path), encoding="utf-8") as file:
                return file.read()

        results = read("docs", "results.md")
        measured = [float(n.replace(",", "")) for n in re.findall(r"\d[\d,]*(?:\.\d+)?", results)]
        steps = [step for file in ("run", "compare_steps.py")
                 for step in re.findall(r"(?m)^def (\w+)\(", read("tests", "gpu", file))]
        count = 0
        for name, text in self.figures():
            commands = re.findall(r"tests/gpu/run BUILD --only (\w+)", text)
            self.assertTrue(commands, (name, text))
            for step in commands:
                self.assertIn(step, steps)
                self.assertIn(f"--only {step}", results)
            for figure in re.findall(r"(\d+(?:\.\d+)?)(?= ms| to \d+ ms)", text):
                half = 0.5 * 10.0 ** -len(figure.partition(".")[2]) + 1e-9
                self.assertTrue(any(abs(n - float(figure)) <= half for n in measured),
                                (name, figure))
                count += 1
        self.assertGreater(count, 4)

    def test_communication_kernels_go_to_the_remote_domain(self):
        name = "communication-to-remote-domain.ini"
        for kernel in ("void vllm::cross_device_reduce_1stage<__nv_bfloat16, 8>(vllm::RankData*, "
                       "vllm::RankSignals, vllm::Signal*, __nv_bfloat16*, int, int)",
                       "void (anonymous namespace)::one_shot_all_reduce_kernel<float, 16, 8>"
                       "(float*, unsigned long)", "my_peer_writer"):
            self.assertEqual(self.explain(name, kernel), {"mem_sync_domain": "remote"}, kernel)
        self.assertEqual(self.explain(name, "ncclDevKernel_AllReduce_Sum_f32_RING_LL"), {})

    def test_the_small_communicator_is_told_by_its_grid(self):
        name = "small-communicator-own-domain.ini"
        kernel = "ncclDevKernel_AllReduce_Sum_f32_RING_LL"
        self.assertEqual(self.explain(name, kernel, "--grid", "2"),
                         {"mem_sync_domain": "remote", "mem_sync_domain_map": "0 2"})
        self.assertEqual(self.explain(name, kernel, "--grid", "24"), {})

    def test_one_kernel_gets_a_cluster(self):
        name = "cluster-for-one-kernel.ini"
        self.assertEqual(self.explain(name, "my_tiled_product", "--grid", "1024"),
                         {"cluster_dim": "2"})
        self.assertEqual(self.explain(name, "my_tiled_product", "--grid", "8"), {})
        self.assertEqual(self.explain(name, "another", "--grid", "1024"), {})

    def test_communication_gets_priority(self):
        name = "communication-priority.ini"
        self.assertEqual(self.explain(name, "ncclSymkDevKernel_AllGather_STMC"),
                         {"priority": "-5"})
        self.assertEqual(self.explain(name, "another", "--stream", "communication"),
                         {"priority": "-5"})

    def test_collectives_and_pools_are_on_disjoint_partitions(self):
        name = "communication-on-16-sms.ini"
        self.assertEqual(self.explain(name, "ncclDevKernel_AllReduce_Sum_f32_RING_LL"),
                         {"partition": "communication"})
        self.assertEqual(self.explain(name, "another"), {})

    def test_the_files_of_partitions_send_streams_only(self):
        for name in ("prefill-decode-split.ini", "two-locality-domains.ini"):
            self.assertEqual(self.explain(name, "any"), {}, name)


if __name__ == "__main__":
    support.main()
