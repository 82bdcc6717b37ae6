# SPDX-License-Identifier: Apache-2.0
"""cudapolicy show."""

import os
import re

import support

DOUBLES = os.environ["CUDAPOLICY_TEST_DOUBLES"]


class Devices(support.Case):
    def show(self, *arguments, **env):
        result = self.command("show", *arguments, env={"LD_LIBRARY_PATH": DOUBLES, **env})
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        return result.stdout

    def test_devices_have_name_sms_domains_and_clusters(self):
        text = self.show(RECORDING_DRIVER_DEVICES="2", RECORDING_DRIVER_SMS="78")
        self.assertIn("driver for CUDA 13.0\n", text)
        for device in (0, 1):
            self.assertRegex(text, rf"(?m)^ +{device} +Recording device {device} +9\.0 +78 +4 +"
                                   r"up to 8 +[0-9A-Fa-f:.]+ +GPU-[0-9a-f-]{36}$")

    def test_a_device_without_clusters_and_with_one_domain_says_so(self):
        text = self.show(RECORDING_DRIVER_COMPUTE_CAPABILITY="8.0",
                         RECORDING_DRIVER_MEM_SYNC_DOMAINS="1")
        self.assertRegex(text, r"(?m)^ +0 .* 8\.0 +132 +1 +no ")

    def test_json_has_the_same(self):
        document = support.load_json(self.show("--devices", "--json"))
        self.assertEqual((document["driver_version"], document["absent"]), (13000, None))
        device, = document["devices"]
        self.assertEqual((device["multiprocessors"], device["mem_sync_domains"],
                          device["clusters"], device["compute_capability"]),
                         (132, 4, True, [9, 0]))

    def test_without_a_driver_it_says_so_and_succeeds(self):
        result = self.command("show", env={"LD_LIBRARY_PATH": None})
        if "driver for CUDA" in result.stdout:
            self.skipTest("this machine has a driver")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertRegex(result.stdout, r"(?m)^no CUDA driver: libcuda\.so\.1: ")
        document = support.load_json(self.command("show", "--json").stdout)
        self.assertEqual((document["devices"], document["driver_version"]), ([], 0))
        self.assertIn("no CUDA driver", document["absent"])

    def test_a_driver_without_devices_says_so_and_succeeds(self):
        text = self.show(RECORDING_DRIVER_FAIL="cuInit:*=100")
        self.assertIn("no GPU: ", text)
        self.assertIn("(error 100 of the driver)", text)

    def test_queries_that_fail_leave_the_rest(self):
        text = self.show(RECORDING_DRIVER_FAIL="cuDeviceGetAttribute:*=1")
        self.assertRegex(text, r"(?m)^ +0 +Recording device 0 +0\.0 +0 +1 +no ")

    def test_an_old_driver_without_newer_functions_is_shown(self):
        text = self.show(RECORDING_DRIVER_VERSION="11080")
        self.assertIn("driver for CUDA 11.8\n", text)


class Lists(support.Case):
    def test_policies_are_those_of_the_source_tree_each_with_what_it_does(self):
        folder = os.path.join(support.SOURCE, "policy")
        names = sorted(name for name in os.listdir(folder) if name.endswith(".ini"))
        result = self.command("show", "--policies", "--wide")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        for name in names:
            self.assertRegex(result.stdout, rf"(?m)^/\S+/{name} +[A-Z0-9].*\.$")
        listed = support.load_json(self.command("show", "--policies", "--json").stdout)["policies"]
        self.assertEqual([os.path.basename(entry["path"]) for entry in listed], names)
        with open(os.path.join(folder, names[0]), encoding="utf-8") as file:
            self.assertTrue(listed[0]["title"].startswith(file.readline().strip("# \n")))

    def test_variables_are_those_of_their_table(self):
        path = os.path.join(support.SOURCE, "tools", "variables.def")
        with open(path, encoding="utf-8") as file:
            names = re.findall(r'(?m)^VARIABLE\("(\w+)"', file.read())
        entries = support.load_json(self.command("show", "--variables", "--json").stdout)["variables"]
        self.assertEqual([entry["variable"] for entry in entries], names)
        text = self.command("show", "--variables", "--wide").stdout
        self.assertRegex(text, r"(?m)^CUDAPOLICY_MODE +library +enforce\|observe\|off +beats the policy")
        self.assertIn("%h stands for the host", text)

    def test_sections_are_in_json_too(self):
        entries = support.load_json(self.command("show", "--settings", "--json").stdout)["sections"]
        self.assertIn({"section": "kernel", "named": True, "help": "a rule for kernel launches"}, entries)

    def test_settings_are_those_of_the_vocabulary(self):
        result = self.command("show", "--settings")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        for text in ("[policy]", "[partition NAME]", "[stream NAME]", "[kernel NAME]", "[tune]",
                     "[site]"):
            self.assertIn(f"\n{text}" if text != "[policy]" else text, result.stdout)
        path = os.path.join(support.SOURCE, "src", "policy", "vocabulary.def")
        with open(path, encoding="utf-8") as file:
            keys = re.findall(r'^POLICY_(?:PROPERTY|PARTITION_KEY|TUNE_KEY|SITE_KEY|SELECTOR|'
                              r'SETTING_ENTRY|MODIFIER)'
                              r'\(\w+, "(\w+)"',
                              file.read(), re.MULTILINE)
        self.assertGreater(len(keys), 20)
        document = support.load_json(self.command("show", "--settings", "--json").stdout)
        listed = {entry["key"] for entry in document["settings"]}
        self.assertEqual(listed, set(keys))
        for key in keys:
            self.assertRegex(result.stdout, rf"(?m)^  {key} ")

    def test_only_sections_that_have_lines_show_some(self):
        parts = self.command("show", "--settings").stdout.split("\n\n")
        for part in parts[:-1]:
            name = part.split("]")[0].lstrip("[")
            lines = part.splitlines()[1:]
            self.assertEqual(len(lines) == 0, name in ("locked", "defaults"), part)
            self.assertEqual("[env replace]" in part, name == "env", part)

    def test_words_of_a_key_are_in_the_json(self):
        document = support.load_json(self.command("show", "--settings", "--json").stdout)
        domain, = [entry for entry in document["settings"]
                   if (entry["section"], entry["key"]) == ("kernel", "mem_sync_domain")]
        self.assertEqual([word["word"] for word in domain["words"]], ["default", "remote"])

    def test_entry_points_are_those_of_the_table(self):
        result = self.command("show", "--entry-points")
        self.assertRegex(result.stdout,
                         r"(?m)^cuLaunchKernel_ptsz +cuLaunchKernel +7\.0 +driver, per-thread")
        self.assertRegex(result.stdout, r"(?m)^cudaLaunchKernel +- +- +runtime$")
        document = support.load_json(self.command("show", "--entry-points", "--json").stdout)
        symbols = [entry["symbol"] for entry in document["entry_points"]]
        self.assertEqual(len(symbols), len(set(symbols)))
        self.assertEqual(len(symbols) + 1, len(result.stdout.splitlines()))

    def test_reasons_are_those_of_the_list(self):
        path = os.path.join(support.SOURCE, "src", "report", "outcome.def")
        with open(path, encoding="utf-8") as file:
            reasons = re.findall(r'^REASON\(\w+, "([^"]+)",', file.read(), re.MULTILINE)
        document = support.load_json(self.command("show", "--reasons", "--json").stdout)
        self.assertGreater(len(reasons), 20)
        self.assertEqual([entry["reason"] for entry in document["reasons"]], reasons)
        self.assertEqual([entry["outcome"] for entry in document["outcomes"]],
                         ["applied", "already so", "kept", "refused"])
        for entry in document["reasons"] + document["outcomes"]:
            self.assertGreater(len(entry["meaning"].split()), 2, entry)
        text = self.command("show", "--reasons").stdout
        for reason in reasons:
            self.assertRegex(text, rf"(?m)^  {re.escape(reason)}\n      \S")

    def test_reasons_are_explained_among_the_limits(self):
        with open(os.path.join(support.SOURCE, "docs", "limits.md"), encoding="utf-8") as file:
            limits = file.read()
        document = support.load_json(self.command("show", "--reasons", "--json").stdout)
        for entry in document["reasons"]:
            self.assertTrue(f"`{entry['reason']}`" in limits, entry["reason"])

    def test_exceptions_are_those_of_the_list(self):
        path = os.path.join(support.SOURCE, "src", "preload", "exceptions.def")
        with open(path, encoding="utf-8") as file:
            listed = re.findall(r'^(DRIVER|RUNTIME)_EXCEPTION\((\w+), "(.+)"\)$', file.read(),
                                re.MULTILINE)
        self.assertGreater(len(listed), 100)
        document = support.load_json(self.command("show", "--exceptions", "--json").stdout)
        self.assertEqual([(e["layer"], e["function"], e["reason"]) for e in document["exceptions"]],
                         [(layer.lower(), name, reason) for layer, name, reason in listed])
        lines = self.command("show", "--exceptions", "--wide").stdout.splitlines()
        self.assertEqual(len(lines), len(listed) + 1)
        for line, (layer, name, reason) in zip(lines[1:], listed):
            self.assertRegex(line, rf"^{name} +{layer.lower()} +{re.escape(reason)}$")

    def test_no_function_is_wrapped_and_an_exception(self):
        wrapped = support.load_json(self.command("show", "--entry-points", "--json").stdout)
        excepted = support.load_json(self.command("show", "--exceptions", "--json").stdout)
        names = {entry["function"] for entry in excepted["exceptions"]}
        for entry in wrapped["entry_points"]:
            self.assertNotIn(entry["base"] or entry["symbol"], names)

    def test_defaults_of_when_set_are_those_of_the_vocabulary(self):
        document = support.load_json(self.command("show", "--settings", "--json").stdout)
        defaults = {entry["key"]: entry["when_set"] for entry in document["settings"]}
        self.assertEqual({key for key, value in defaults.items() if value == "keep"},
                         {"cluster_dim", "preferred_cluster_dim"})
        self.assertIsNone(defaults["programmatic_serialization"])
        for entry in document["settings"]:
            self.assertEqual(entry["when_set"] is not None,
                             entry["role"] == "setting" and entry["values"] != "" and
                             entry["key"] not in ("partition", "locality_domain"), entry["key"])
        text = self.command("show", "--settings", "--wide").stdout
        self.assertRegex(text, r"(?m)^  cluster_dim +setting +\S+ +keep +blocks")
        self.assertRegex(text, r"(?m)^  priority +setting +N +replace +priority")

    def test_two_lists_at_a_time_are_a_usage_error(self):
        self.assert_usage_error(self.command("show", "--settings", "--reasons"), "one list")
        self.assertEqual(self.command("show", "--reasons", "--reasons").returncode, 0)

    def test_an_argument_is_a_usage_error(self):
        self.assert_usage_error(self.command("show", "devices"), "'devices' is not expected")


if __name__ == "__main__":
    support.main()
