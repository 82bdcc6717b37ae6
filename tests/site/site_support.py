# SPDX-License-Identifier: Apache-2.0
"""What the tests of a site's file share: programs under a library that looks for it in their folder."""

import glob
import json
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.environ["CUDAPOLICY_TEST_SOURCE"], "tests", "command"))

import support  # noqa: E402  (its folder is known only here)

PROGRAM = os.environ["CUDAPOLICY_TEST_PROGRAM"]
DOUBLES = os.environ["CUDAPOLICY_TEST_DOUBLES"]
SANITIZER = os.environ["CUDAPOLICY_TEST_PRELOAD_FIRST"]

HEAD = "[policy]\nversion = 1\n"


def rule(name, setting="mem_sync_domain = remote", pattern="*", section="kernel"):
    selector = f"name = {pattern}\n" if section == "kernel" else ""
    return f"\n[{section} {name}]\n{selector}{setting}\n"


class Case(support.Case):
    """A folder that has a site's file, and programs that run in it."""

    def site(self, text):
        path = self.write("site.ini", HEAD + text)
        os.chmod(path, 0o644)
        return path

    def variables(self, policy=None, **changes):
        result = {"LD_LIBRARY_PATH": DOUBLES,
                  "RECORDING_DRIVER_LOG": self.path("record")}
        if policy is not None:
            result["CUDAPOLICY_FILE"] = self.write("job.ini", HEAD + policy)
            result["CUDAPOLICY_REPORT"] = self.path("report-%p.json")
        result.update(changes)
        return result

    def launch(self, *arguments, policy=None, program=PROGRAM, **changes):
        """Runs the program under the library."""
        variables = self.variables(policy, **changes)
        variables["LD_PRELOAD"] = f"{SANITIZER} {support.LIBRARY}".strip()
        result = subprocess.run([program, *(arguments or ("launch", "k", "2", "4"))],
                                env=support.environment(**variables), cwd=self.folder, text=True,
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, timeout=support.TIME_LIMIT, check=False)
        self.assertEqual(result.returncode, 0, result)
        return result

    def launches(self):
        """The launches that reached the driver, as they were recorded."""
        with open(self.path("record"), encoding="utf-8") as file:
            return [line for line in file if re.search(r"call=cuLaunchKernel", line)]

    def assert_remote(self, remote):
        launches = self.launches()
        self.assertTrue(launches)
        for line in launches:
            self.assertEqual("MEM_SYNC_DOMAIN:1" in line, remote, line)

    def reports(self, pattern="report-*.json"):
        result = []
        for path in sorted(glob.glob(self.path(pattern))):
            with open(path, encoding="utf-8") as file:
                result.append(json.load(file))
        return result

    def report(self, pattern="report-*.json"):
        reports = self.reports(pattern)
        self.assertEqual(len(reports), 1, os.listdir(self.folder))
        return reports[0]
