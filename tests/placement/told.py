# SPDX-License-Identifier: Apache-2.0
"""Scripts for told.c: what a program is told with partitions is what it is told without the library; where its
kernels ran; and what the report says became of the rules."""

import functools
import os
import re
import sys
import tempfile

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "stress"))

from support import main, run, test # noqa: E402,F401

SIDE, MAIN, WHOLE = 16, 116, 132

PARTITIONS = """[policy]
version = 1

[partition side]
sm_count = 16

[partition main]
sm_count = rest
"""

# One rule for each of told.c's kernels, but for "plain", "huge" and "wide".
KERNELS = PARTITIONS + """
[kernel side]
name = to_side
partition = side
graph_nodes = yes
allow_legacy = yes

[kernel main]
name = to_main
partition = main
graph_nodes = yes

[kernel eager]
name = eager
partition = side
"""


def expect(condition, text):
    if not condition:
        raise AssertionError(text)


def equal(found, wanted, what=""):
    expect(found == wanted, f"{what}\nfound  {found}\nwanted {wanted}")


class Ran:
    """A script that ran."""

    def __init__(self, script, policy, quiet=True, **variables):
        lines = [line.strip() for line in script.strip().splitlines() if line.strip()]
        with tempfile.NamedTemporaryFile("w", suffix=".script", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")
            file.flush()
            self.result = run("placement_told", file.name, "@FOLDER@/results", policy=policy,
                              RECORDING_DRIVER_LOG="@FOLDER@/record",
                              RECORDING_DRIVER_SKIP="cuGetProcAddress_v2,cuGetProcAddress",
                              RECORDING_DRIVER_DISTINCT_POINTERS="1", **variables)
        expect(self.result.status == 0, f"status {self.result.status}\n{self.result.err}")
        self.err = self.result.err
        expect(not quiet or self.err == "", f"said\n{self.err}")
        self.results = self.result.files["results"].splitlines()
        self.record = [Line(line) for line in self.result.files["record"].splitlines()]
        self.report = self.result.report

    # ---- Where kernels ran --------------------------------------------------------------------

    @property
    def launches(self):
        """(kernel, SMs) of each launch that the driver made and that no capture took."""
        return [(line["kernel"], int(line["sms"])) for line in self.record
                if line.symbol.startswith(("cuLaunchK", "cuLaunchC")) and line["result"] == "0"
                and "captured" not in line.fields]

    @property
    def replayed(self):
        """(kernel, SMs) of each kernel that a graph launch ran."""
        return [(line["kernel"], int(line["sms"])) for line in self.record if line.symbol == ""]

    def calls(self, symbol, ours=None):
        """The calls of a function; ours: those of the library, or those of the program."""
        return [line for line in self.record if re.fullmatch(symbol, line.symbol)
                and (ours is None or ours == (line.fields.get("route") == "resolved"))]

    # ---- The report ---------------------------------------------------------------------------

    def fates(self, kernel, setting="partition"):
        """[(outcome, reason)] of a kernel's setting."""
        return sorted((fate["outcome"], fate["reason"])
                      for one in self.report["kernels"] if one["name"] == kernel
                      for fate in one["settings"] if fate["setting"] == setting)

    def fate(self, kernel, outcome, reason=""):
        equal(self.fates(kernel), [(outcome, reason)], kernel)

    def stream_fates(self, setting="partition"):
        return sorted((fate["outcome"], fate["reason"]) for one in self.report["streams"]
                      for fate in one["settings"] if fate["setting"] == setting
                      for _ in range(one["count"]))


class Line:
    """A line of the record."""

    def __init__(self, text):
        self.text = text
        self.fields = dict(field.split("=", 1) for field in text.split(" ") if "=" in field)
        self.symbol = self.fields.get("call", "")

    def __getitem__(self, key):
        return self.fields[key]

    def __str__(self):
        return self.text


def same(script, policy, quiet=True, **variables):
    """Runs the script with the policy; what the program is told is what it is told without the library."""
    wanted = reference(script, **{name: value for name, value in variables.items()
                                  if not name.startswith("CUDAPOLICY_")
                                  and name != "RECORDING_DRIVER_FAIL"})
    ran = Ran(script, policy, quiet, **variables)
    if ran.results != wanted:
        raise AssertionError("the program was told\n" + "\n".join(
            f"  {one}\nin place of\n  {other}" for one, other in zip(ran.results, wanted) if one != other))
    return ran


@functools.lru_cache(maxsize=None)
def reference(script, **variables):
    """What the program is told without the library."""
    return Ran(script, None, **variables).results


def on_streams(rule="", **selectors):
    """A policy that makes streams on "side"."""
    selected = "".join(f"{key} = {value}\n" for key, value in selectors.items())
    return PARTITIONS + f"\n[stream placed]\n{selected}partition = side\n{rule}\n"


BEGIN = """
retain c0 0
current c0
load
"""

END = """
unload
unload_library
release 0
live
"""
