#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts what the tests of one or more build folders said: "N passed, N failed, N skipped".

usage: summary.py [--passed N] [--failed N] [--skipped N] TESTLOG...
TESTLOG is meson-logs/testlog.json. A program that reports tests of its own (TAP) counts each of them;
if it crashed or ran out of time without reporting a failure, that is one.
"""

import argparse
import json
import re
import sys


def count(test):
    """(passed, failed, skipped) of one entry of the log."""
    passed = failed = skipped = 0
    lines = (test.get("stdout") or "").splitlines()
    is_tap = any(re.match(r"1\.\.\d+", line) for line in lines)
    for line in lines if is_tap else ():
        result = re.match(r"(not )?ok\b(.*)", line)
        if not result:
            continue
        if re.search(r"#\s*skip", result.group(2), re.IGNORECASE):
            skipped += 1
        elif result.group(1):
            failed += 1
        else:
            passed += 1
    outcome = test["result"]
    if outcome in ("OK", "EXPECTEDFAIL"):
        passed += passed + failed + skipped == 0
    elif outcome == "SKIP":
        skipped += skipped == 0
    else:
        failed += failed == 0
    return passed, failed, skipped


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("passed", "failed", "skipped"):
        parser.add_argument("--" + name, type=int, default=0, metavar="N",
                            help="to be added to what the logs say")
    parser.add_argument("logs", nargs="*", metavar="TESTLOG")
    arguments = parser.parse_args()
    totals = [arguments.passed, arguments.failed, arguments.skipped]
    for path in arguments.logs:
        with open(path, encoding="utf-8", errors="replace") as log:
            for line in log:
                totals = [total + part for total, part in zip(totals, count(json.loads(line)))]
    print("{} passed, {} failed, {} skipped".format(*totals))
    return 1 if totals[1] or not totals[0] else 0


if __name__ == "__main__":
    sys.exit(main())
