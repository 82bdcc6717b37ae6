# SPDX-License-Identifier: Apache-2.0
"""cudapolicy show: how the SMs of devices can be divided, and what a policy's partitions get."""

import os

import support

DOUBLES = os.environ["CUDAPOLICY_TEST_DOUBLES"]

POLICY = """[policy]
version = 1

[partition side]
sm_count = 12

[partition half]
sm_count = 50%

[partition second]
sm_count = 8
device = 1

[partition others]
sm_count = rest

[kernel a]
name = a*
partition = side

[kernel b]
name = b*
partition = half

[kernel c]
name = c*
partition = second

[kernel d]
name = d*
partition = others
"""

DOMAINS = """[policy]
version = 1

[kernel zero]
name = a*
locality_domain = 0

[kernel one]
name = b*
locality_domain = 1

[kernel seven]
name = c*
locality_domain = 7
"""


class Partitions(support.Case):
    def show(self, *arguments, **env):
        result = self.command("show", *arguments, env={"LD_LIBRARY_PATH": DOUBLES, **env})
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        return result.stdout

    def show_policy(self, text, **env):
        path = self.write("policy.ini", text)
        return (self.show("-p", path, **env),
                support.load_json(self.show("--policy", path, "--json", **env))["devices"])

    def test_limits_of_each_device_are_shown_without_a_policy(self):
        text = self.show(RECORDING_DRIVER_DEVICES="2")
        for device in (0, 1):
            self.assertRegex(text, rf"(?m)^ +{device} +132 +8 +8 +none$")
        self.assertNotIn("partitions of the policy", text)
        for device in support.load_json(self.show("--json"))["devices"]:
            self.assertNotIn("partitions", device)
            self.assertEqual(device["partitioning"], {
                "possible": True, "sms": 132, "minimum": 8, "alignment": 8, "split": "count",
                "locality_domains": [], "fake": False, "outside_domains": 0, "failed": None})

    def test_limits_before_13_0_are_those_of_the_architecture(self):
        text = self.show(RECORDING_DRIVER_VERSION="12060",
                         RECORDING_DRIVER_COMPUTE_CAPABILITY="8.0")
        self.assertRegex(text, r"(?m)^ +0 +132 +4 +2 +none$")

    def test_what_partitions_get_is_shown_for_each_device(self):
        text, devices = self.show_policy(POLICY, RECORDING_DRIVER_DEVICES="2")
        for line in (r" +0 +side +sm_count = 12 +12 +16 +8 +yes",
                     r" +0 +half +sm_count = 50% +66 +64 +8 +yes",
                     r" +0 +second +sm_count = 8 +- +- +- +the device has no such partition",
                     r" +0 +others +sm_count = rest +- +52 +8 +yes",
                     r" +1 +second +sm_count = 8 +8 +8 +8 +yes",
                     r" +1 +others +sm_count = rest +- +44 +8 +yes"):
            self.assertRegex(text, f"(?m)^{line}$")
        granted = [[(one["name"], one["requested"], one["granted"], one["reason"])
                    for one in device["partitions"]] for device in devices]
        self.assertEqual(granted, [
            [("side", 12, 16, None), ("half", 66, 64, None),
             ("second", 0, 0, "the device has no such partition"), ("others", 0, 52, None)],
            [("side", 12, 16, None), ("half", 66, 64, None), ("second", 8, 8, None),
             ("others", 0, 44, None)]])

    def test_a_partition_s_device_may_be_named_in_every_form(self):
        for name in ("1", "GPU-7265636f-7264-696e-6700-000000000001", "0000:11:00.0"):
            _, devices = self.show_policy(POLICY.replace("device = 1", f"device = {name}"),
                                          RECORDING_DRIVER_DEVICES="2")
            self.assertEqual([device["partitions"][2]["granted"] for device in devices], [0, 8],
                             name)

    def test_partitions_that_do_not_fit_are_refused_with_the_reason(self):
        text, devices = self.show_policy(POLICY, RECORDING_DRIVER_SMS="16")
        self.assertRegex(text, r"(?m)^ +0 +half +.* not enough SMs left on the device$")
        self.assertEqual(devices[0]["partitions"][1]["reason"],
                         "not enough SMs left on the device")

    def test_a_device_without_domains_refuses_them(self):
        text, devices = self.show_policy(DOMAINS)
        self.assertRegex(text, r"(?m)^ +0 +locality_domain=0 +locality_domain = 0 +- +- +- +"
                               r"the device has no locality domains$")
        self.assertEqual({one["reason"] for one in devices[0]["partitions"]},
                         {"the device has no locality domains"})

    def test_pretended_domains_are_said_to_be_pretended(self):
        text, devices = self.show_policy(DOMAINS, CUDAPOLICY_FAKE_LOCALITY_DOMAINS="2")
        self.assertRegex(text, r"(?m)^ +0 +132 +8 +8 +2 pretended: 64, 68 SMs$")
        self.assertRegex(text, r"(?m)^ +0 +locality_domain=1 .* 68 +8 +yes$")
        self.assertRegex(text, r"(?m)^ +0 +locality_domain=7 .* no such locality domain on the")
        self.assertIn("\npretended: parts of the device ", text)
        self.assertTrue(devices[0]["partitioning"]["fake"])
        self.assertEqual(devices[0]["partitioning"]["locality_domains"],
                         [{"sms": 64}, {"sms": 68}])

    def test_a_domain_of_which_another_partition_has_some_is_said_to_be_smaller(self):
        text, devices = self.show_policy(POLICY + "\n[kernel z]\nname = z*\nlocality_domain = 0\n",
                                         CUDAPOLICY_FAKE_LOCALITY_DOMAINS="4",
                                         RECORDING_DRIVER_SMS="256")
        domain = devices[0]["partitions"][-1]
        self.assertEqual(domain["reason"], "not enough SMs left on the device")
        text, devices = self.show_policy(
            "[policy]\nversion = 1\n[partition a]\nsm_count = 16\n[kernel a]\nname = a*\n"
            "partition = a\n[kernel b]\nname = b*\nlocality_domain = 0\n",
            CUDAPOLICY_FAKE_LOCALITY_DOMAINS="4")
        self.assertRegex(text, r"(?m)^ +0 +locality_domain=0 .* 16 +8 +yes, of the domain's 32$")

    def test_domains_of_the_device_are_shown_with_their_sms(self):
        driver = {"RECORDING_DRIVER_VERSION": "13040", "RECORDING_DRIVER_SMS": "148",
                  "RECORDING_DRIVER_COMPUTE_CAPABILITY": "10.0",
                  "RECORDING_DRIVER_LOCALITY_DOMAINS": "70,70"}
        for default in ("2", "8"):
            text, devices = self.show_policy(DOMAINS, RECORDING_DRIVER_COSCHEDULED_DEFAULT=default,
                                             **driver)
            self.assertRegex(text, r"(?m)^ +0 +148 +8 +8 +2: 70, 70 SMs; 8 in none$")
            self.assertEqual(devices[0]["partitioning"]["locality_domains"],
                             [{"sms": 70}, {"sms": 70}])
            self.assertEqual(devices[0]["partitioning"]["outside_domains"], 8)
            self.assertEqual(devices[0]["partitioning"]["split"], "groups")
            self.assertRegex(text, r"(?m)^ +0 +locality_domain=7 .* no such locality domain on the")
            self.assertEqual([one["granted"] for one in devices[0]["partitions"]],
                             [70, 70, 0] if default == "2" else [64, 64, 0])
            if default == "8":
                self.assertRegex(text, r"(?m)^ +0 +locality_domain=1 .* yes, of the domain's 70$")

    def test_partitions_from_13_1_on_are_groups(self):
        _, devices = self.show_policy(POLICY, RECORDING_DRIVER_VERSION="13010",
                                      RECORDING_DRIVER_DEVICES="2")
        self.assertEqual([[one["granted"] for one in device["partitions"]] for device in devices],
                         [[16, 64, 0, 52], [16, 64, 8, 44]])

    def test_a_wrong_number_of_pretended_domains_is_a_failure(self):
        result = self.command("show", env={"LD_LIBRARY_PATH": DOUBLES,
                                           "CUDAPOLICY_FAKE_LOCALITY_DOMAINS": "1"})
        self.assertEqual((result.returncode, result.stdout), (1, ""))
        self.assertIn("CUDAPOLICY_FAKE_LOCALITY_DOMAINS=1: ", result.stderr)
        # Lists that have nothing to do with devices are shown all the same.
        result = self.command("show", "--reasons", env={"CUDAPOLICY_FAKE_LOCALITY_DOMAINS": "1"})
        self.assertEqual(result.returncode, 0)

    def test_a_driver_that_is_too_old_says_so(self):
        for version in ("12040", "12030", "11080"):
            text, devices = self.show_policy(POLICY, RECORDING_DRIVER_VERSION=version)
            self.assertIn("\nthe driver is too old for partitions: they need CUDA 12.5\n", text)
            self.assertRegex(text, r"(?m)^ +0 +side .* driver too old$")
            self.assertFalse(devices[0]["partitioning"]["possible"])
            self.assertIsNone(devices[0]["partitioning"]["failed"])

    def test_a_question_that_fails_is_named_and_the_rest_shown(self):
        for name in ("cuDeviceGetDevResource", "cuDevSmResourceSplitByCount"):
            text, devices = self.show_policy(POLICY, RECORDING_DRIVER_FAIL=f"{name}:*=999")
            self.assertIn(f"\ndevice 0: {name}: error 999 of the driver\n", text)
            self.assertRegex(text, r"(?m)^ +0 +side .* the driver did not answer \(error 999\)$")
            self.assertEqual(devices[0]["partitioning"]["failed"],
                             {"function": name, "result": 999})
            self.assertEqual(devices[0]["partitions"][0]["result"], 999)

    def test_nothing_is_created(self):
        log = self.path("calls")
        self.show("-p", self.write("policy.ini", POLICY), RECORDING_DRIVER_LOG=log)
        with open(log, encoding="utf-8") as file:
            calls = {line.split()[0] for line in file}
        self.assertIn("call=cuDevSmResourceSplitByCount", calls)
        self.assertFalse([call for call in calls if "Create" in call or "Retain" in call
                          or "GenerateDesc" in call])

    def test_a_policy_without_partitions_says_so(self):
        text, devices = self.show_policy(support.GOOD_POLICY)
        self.assertIn("\nthe policy has no partitions.\n", text)
        self.assertEqual(devices[0]["partitions"], [])

    def test_a_wrong_policy_is_a_failure_with_its_errors(self):
        path = self.write("policy.ini", "[policy]\nversion = 1\n[partition a]\nsm_count = many\n")
        result = self.command("show", "-p", path, env={"LD_LIBRARY_PATH": DOUBLES})
        self.assertEqual((result.returncode, result.stdout), (1, ""))
        self.assertIn("policy.ini:4:", result.stderr)

    def test_without_a_driver_it_says_so_and_succeeds(self):
        path = self.write("policy.ini", POLICY)
        result = self.command("show", "-p", path, env={"LD_LIBRARY_PATH": None})
        if "driver for CUDA" in result.stdout:
            self.skipTest("this machine has a driver")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertRegex(result.stdout, r"(?m)^no CUDA driver: ")

    def test_a_policy_beside_a_list_is_a_usage_error(self):
        path = self.write("policy.ini", POLICY)
        self.assert_usage_error(self.command("show", "--settings", "-p", path), "--policy")
        self.assert_usage_error(self.command("show", "-p"), "")


if __name__ == "__main__":
    support.main()
