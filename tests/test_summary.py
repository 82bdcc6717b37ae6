# SPDX-License-Identifier: Apache-2.0
"""The last lines of tools/test: counts, and the tests that failed or were skipped, with the reason."""

import json
import os
import subprocess
import sys
import tempfile

SUMMARY = os.path.join(os.path.dirname(os.path.abspath(__file__)), "summary.py")
TESTS = []


def test(function):
    TESTS.append(function)
    return function


def summary(*entries, arguments=()):
    """Status and lines of the summary of a log with these (name, result, stdout, stderr)."""
    with tempfile.TemporaryDirectory() as folder:
        logs = os.path.join(folder, "build", "meson-logs")
        os.makedirs(logs)
        path = os.path.join(logs, "testlog.json")
        with open(path, "w", encoding="utf-8") as log:
            for name, result, out, *err in entries:
                log.write(json.dumps({"name": f"project:suite / {name}", "result": result,
                                      "stdout": out, "stderr": err[0] if err else ""}) + "\n")
        result = subprocess.run([sys.executable, SUMMARY, *arguments, path], check=False, text=True,
                                stdout=subprocess.PIPE)
    return result.returncode, result.stdout.splitlines()


def expect(got, wanted):
    if got != wanted:
        raise AssertionError(f"{got} instead of {wanted}")


@test
def what_passed_is_counted_and_needs_no_line():
    expect(summary(("a", "OK", "1..2\nok 1 - x\nok 2 - y\n"), ("b", "OK", "")),
           (0, ["3 passed, 0 failed, 0 skipped"]))


@test
def each_skipped_test_has_a_line_with_its_reason():
    expect(summary(
        ("python", "OK", "1..2\nok 1 - T.one # SKIP no groff\nok 2 - T.two\n"),
        ("cmocka", "OK", "1..2\n# skipped: root may read it\nok 1 # SKIP cannot_be_read\nok 2 - z\n"),
        ("cmocka-old", "OK", "1..2\n# skipped: as well\nok 1 # SKIP\nok 2 - z\n"),
        ("bare", "OK", "1..2\nok 1 - T.one # SKIP\nok 2 - z\n"),
        ("whole", "SKIP", "1..0 # SKIP no driver\n"),
        ("shell", "SKIP", "looking\nno compiler for it\n", ""),
        ("silent", "SKIP", "")),
           (0, ["skipped:",
                "  build: python: T.one: no groff",
                "  build: cmocka: cannot_be_read: root may read it",
                "  build: cmocka-old: a test: as well",
                "  build: bare: T.one: no reason given",
                "  build: whole: no driver",
                "  build: shell: no compiler for it",
                "  build: silent: no reason given",
                "4 passed, 0 failed, 7 skipped"]))


@test
def each_failed_test_has_a_line():
    expect(summary(("a", "FAIL", "1..3\nok 1 - x\nnot ok 2 - y\nnot ok 3 - z # SKIP later\n"),
                   ("b", "TIMEOUT", "1..2\nok 1 - x\n"), ("c", "FAIL", "")),
           (1, ["skipped:", "  build: a: z: later", "failed:", "  build: a: y", "  build: b: timeout",
                "  build: c: fail", "2 passed, 3 failed, 1 skipped"]))


@test
def what_was_no_test_of_a_log_is_told_too():
    expect(summary(("a", "OK", ""), arguments=["--passed", "2", "--skipped", "no clang",
                                               "--failed", "the build"]),
           (1, ["skipped:", "  no clang", "failed:", "  the build", "3 passed, 1 failed, 1 skipped"]))


@test
def nothing_passed_is_a_failure():
    expect(summary(("a", "SKIP", "why\n")),
           (1, ["skipped:", "  build: a: why", "0 passed, 0 failed, 1 skipped"]))


def main():
    failed = 0
    print(f"1..{len(TESTS)}")
    for number, function in enumerate(TESTS, 1):
        try:
            function()
            print(f"ok {number} - {function.__name__}")
        except AssertionError as error:
            failed = 1
            print(f"not ok {number} - {function.__name__}\n# {error}")
    return failed


if __name__ == "__main__":
    sys.exit(main())
