#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts what the tests of one or more build folders said: "N passed, N failed, N skipped".

usage: summary.py [--passed N] [--failed WHAT] [--skipped WHY] TESTLOG...
TESTLOG is meson-logs/testlog.json. A program that reports tests of its own (TAP) counts each of them;
if it crashed or ran out of time without reporting a failure, that is one. The last line is the counts;
before it, the tests that failed are named, and those that were skipped, with the reason.
"""

import argparse
import json
import os
import re
import sys


class Totals:
    def __init__(self):
        self.passed = 0
        self.failed = []  # lines
        self.skipped = []

    def print(self):
        for title, lines in (("skipped", self.skipped), ("failed", self.failed)):
            if lines:
                print(f"{title}:")
            for line in lines:
                print(f"  {line}")
        print(f"{self.passed} passed, {len(self.failed)} failed, {len(self.skipped)} skipped")


def result_of(line):
    """(good, name, reason for a skip or None) of a line of the Test Anything Protocol, or None."""
    match = re.match(r"(not )?ok\b\s*\d*\s*(?:-\s*)?(.*)", line)
    if not match:
        return None
    name, mark, reason = match.group(2), None, None
    mark = re.search(r"#\s*skip\S*[:\s]*(.*)", name, re.IGNORECASE)
    if mark:
        name, reason = name[:mark.start()], mark.group(1)
    return not match.group(1), name.strip(), reason.strip() if mark else None


def last_line(test):
    """What a program that is no TAP program said last: why it was skipped."""
    lines = ((test.get("stdout") or "") + "\n" + (test.get("stderr") or "")).split("\n")
    return ([line.strip() for line in lines if line.strip()] or ["no reason given"])[-1]


def add_results(test, place, totals):
    """Adds each test of a TAP program; false when it had none."""
    found = False
    announced = None  # a reason that stands in a line of its own before the result
    for line in (test.get("stdout") or "").splitlines():
        whole = re.match(r"1\.\.0\s*#\s*skip\S*[:\s]*(.*)", line, re.IGNORECASE)
        comment = re.match(r"#\s*skipped:\s*(.*)", line)
        if whole:
            announced = whole.group(1).strip()
        if comment:
            announced = comment.group(1).strip()
        result = result_of(line)
        if result is None:
            continue
        found = True
        good, name, reason = result
        if reason is None and good:
            totals.passed += 1
        elif reason is None:
            totals.failed.append(f"{place}: {name}")
        else:
            # Of cmocka's, what stands behind the mark is the test's name.
            told = announced or reason or "no reason given"
            what = name or (reason if announced else "") or "a test"
            totals.skipped.append(f"{place}: {what}: {told}")
        announced = None
    if not found and announced is not None and test["result"] == "SKIP":
        totals.skipped.append(f"{place}: {announced or 'no reason given'}")
        found = True
    return found


def add(test, folder, totals):
    """Adds one entry of the log."""
    place = f"{folder}: {test['name'].split(' / ')[-1]}"
    lines = (test.get("stdout") or "").splitlines()
    is_tap = any(re.match(r"1\.\.\d+", line) for line in lines)
    failed_before = len(totals.failed)
    found = is_tap and add_results(test, place, totals)
    if test["result"] in ("OK", "EXPECTEDFAIL"):
        totals.passed += not found
    elif test["result"] == "SKIP":
        if not found:
            totals.skipped.append(f"{place}: {last_line(test)}")
    elif len(totals.failed) == failed_before:
        totals.failed.append(f"{place}: {test['result'].lower()}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--passed", type=int, default=0, metavar="N",
                        help="to be added to what the logs say")
    for name, value in (("failed", "WHAT"), ("skipped", "WHY")):
        parser.add_argument("--" + name, action="append", default=[], metavar=value,
                            help="one more, and what is to be said of it")
    parser.add_argument("logs", nargs="*", metavar="TESTLOG")
    arguments = parser.parse_args()
    totals = Totals()
    totals.passed = arguments.passed
    for path in arguments.logs:
        folder = os.path.basename(os.path.dirname(os.path.dirname(os.path.abspath(path))))
        with open(path, encoding="utf-8", errors="replace") as log:
            for line in log:
                add(json.loads(line), folder, totals)
    totals.failed += arguments.failed
    totals.skipped += arguments.skipped
    totals.print()
    return 1 if totals.failed or not totals.passed else 0


if __name__ == "__main__":
    sys.exit(main())
