# SPDX-License-Identifier: Apache-2.0
"""What the route tests share: programs run under the preload on the recording driver, and what they left.

The build gives, by environment variables: CUDAPOLICY_TEST_LIBRARY, the library to preload;
CUDAPOLICY_TEST_ROUTES, the folder of the programs; CUDAPOLICY_TEST_DRIVER, CUDAPOLICY_TEST_RUNTIME_13
and CUDAPOLICY_TEST_RUNTIME_12, the folders of the doubles. Results are printed in the Test Anything
Protocol.
"""

import difflib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import traceback

LIBRARY = os.environ["CUDAPOLICY_TEST_LIBRARY"]
ROUTES = os.environ["CUDAPOLICY_TEST_ROUTES"]
DRIVER = os.environ["CUDAPOLICY_TEST_DRIVER"]
RUNTIME_13 = os.environ["CUDAPOLICY_TEST_RUNTIME_13"]
RUNTIME_12 = os.environ["CUDAPOLICY_TEST_RUNTIME_12"]
# Of the headers: doubles built with older ones lack some functions.
CUDA_VERSION = int(os.environ["CUDAPOLICY_TEST_CUDA_VERSION"])

# What the build is sanitized with, "" for nothing, and that run-time library, which has to come first.
SANITIZER = os.environ["CUDAPOLICY_TEST_SANITIZER"]
PRELOAD_FIRST = os.environ["CUDAPOLICY_TEST_PRELOAD_FIRST"]

# For each program; one that hangs is ended with all its children.
TIME_LIMIT = 60

# Every kernel goes to the remote domain.
REMOTE = """[policy]
version = 1

[kernel all]
name = *
mem_sync_domain = remote
"""

# Streams too, and they get a priority.
REMOTE_STREAMS = REMOTE + """
[stream all]
mem_sync_domain = remote
priority = -1
"""


def program(name):
    return os.path.join(ROUTES, name)


class Call(dict):
    """One line of the recording driver's log: its fields, and under "line" the whole of it."""

    def __init__(self, line):
        super().__init__(field.split("=", 1) for field in line.split() if "=" in field)
        self["line"] = line

    @property
    def name(self):
        return self.get("call", "")

    def attribute(self, name, which="attributes"):
        """The value of a launch attribute as text, or None."""
        for item in self.get(which, "").split(","):
            key, _, value = item.partition(":")
            if key == name:
                return value
        return None


class Result:
    """What a program left: its status and output, the driver's record, the report, the log file."""

    def __init__(self, status, out, err, folder, with_counters=False):
        self.status, self.out, self.err = status, out, err
        self.files, self.modes, self.counters = {}, {}, []
        for name in sorted(os.listdir(folder)):
            path = os.path.join(folder, name)
            self.modes[name] = os.stat(path).st_mode
            if ".counters" in name:  # large, and for the command to read
                self.files[name] = b""
                if with_counters:
                    self.counters.append(report_from_counters(path))
                continue
            with open(path, "rb") as file:
                self.files[name] = file.read()
        self.calls = [Call(line) for line in self.read("record").splitlines()]
        self.reports = [json.loads(self.read(name)) for name in self.files
                        if name.startswith("report") and name.endswith(".json")]

    def read(self, name):
        return self.files.get(name, b"").decode(errors="replace")

    @property
    def report(self):
        return self.reports[0] if len(self.reports) == 1 else None

    def launches(self):
        return [call for call in self.calls if call.name.startswith("cuLaunch")]

    def named(self, name):
        return [call for call in self.calls if call.name == name]

    def route_calls(self, symbol):
        """How often an entry point was called, by the report."""
        for route in self.report["routes"] if self.report else ():
            if route["entry"] == symbol:
                return route["calls"]
        return 0

    def libraries(self):
        """Of the kernels in the report: name to the libraries that launched it."""
        found = {}
        for kernel in self.report["kernels"] if self.report else ():
            found.setdefault(kernel["name"], set()).add(kernel["library"])
        return found

    def notes(self):
        return [note["text"] for report in self.reports for note in report["notes"]]

    def __str__(self):
        return (f"status {self.status}\n--- stdout\n{self.out}\n--- stderr\n{self.err}\n--- record\n"
                + "\n".join(call["line"] for call in self.calls
                            if not call.name.startswith("cuGetProcAddress")))


def report_from_counters(path):
    """The report that `cudapolicy report` makes of the counters that a process left."""
    made = subprocess.run([os.environ["CUDAPOLICY_TEST_COMMAND"], "report", "--json", path],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=TIME_LIMIT,
                          check=False)
    expect(made.returncode == 0, f"cudapolicy report: {made.stderr.decode(errors='replace')}")
    return json.loads(made.stdout)


class Folder:
    """A place for one program's files."""

    def __enter__(self):
        self.path = tempfile.mkdtemp(prefix="cudapolicy-routes-")
        return self.path

    def __exit__(self, *_):
        shutil.rmtree(self.path, ignore_errors=True)


def environment(folder, policy, preload, variables):
    """The environment of a program: nothing of ours is inherited."""
    result = {name: value for name, value in os.environ.items()
              if not name.startswith(("CUDAPOLICY_", "RECORDING_", "LD_", "CUDA_", "SLURM_", "OMPI_",
                                      "PMI", "MALLOC_"))}
    result["LD_LIBRARY_PATH"] = ":".join((DRIVER, RUNTIME_13, RUNTIME_12))
    result["LC_ALL"] = "C"
    result["RECORDING_DRIVER_LOG"] = os.path.join(folder, "record")
    if policy is not None:
        path = os.path.join(folder, "policy.ini")
        with open(path, "w", encoding="utf-8") as file:
            file.write(policy)
        result["CUDAPOLICY_FILE"] = path
        result["CUDAPOLICY_REPORT"] = os.path.join(folder, "report.json")
    if preload or PRELOAD_FIRST:
        result["LD_PRELOAD"] = " ".join([PRELOAD_FIRST, *preload]).strip()
    for name, value in variables.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = value.replace("@FOLDER@", folder)
    return result


def run(command, *arguments, policy=REMOTE, preload=(LIBRARY,), env=None, limit=TIME_LIMIT,
        raw_path=False, bad_policy=False, counters=False, argv0=None):
    """Runs a program of this folder (with raw_path: any program) to its end. It has its own process
    group, of which nothing is left afterwards. bad_policy: the policy has mistakes on purpose.
    argv0: what the program is called, where that is not its path. counters: reports are made of what processes left that could not write one."""
    path = command if raw_path else program(command)
    with Folder() as folder:
        variables = environment(folder, policy, preload, env or {})
        with subprocess.Popen([argv0 or path, *arguments], executable=path, cwd=folder, env=variables,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, start_new_session=True) as process:
            try:
                out, err = process.communicate(timeout=limit)
            except subprocess.TimeoutExpired:
                end_group(process)
                out, err = process.communicate()
                raise AssertionError(f"{command} {' '.join(arguments)} ran longer than {limit} s\n"
                                     + err.decode(errors="replace")) from None
            finally:
                end_group(process)
        result = Result(process.returncode, out.decode(errors="replace"),
                        err.decode(errors="replace"), folder, counters)
        # A test that expects nothing to happen must not rest on a policy that was not there.
        expect(bad_policy or "runs without a policy" not in result.err, "a bad policy", result)
        return result


def end_group(process):
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


# ---- reporting ------------------------------------------------------------------------------------

class Skip(Exception):
    """This machine cannot show what the test is about."""


def not_with(sanitizer, reason):
    if sanitizer in (SANITIZER, "any") and SANITIZER:
        raise Skip(f"{SANITIZER} sanitizer: {reason}")


class Tap:
    """Prints results as they come, and their number at the end."""

    def __init__(self):
        self.number = 0
        self.failed = False

    def line(self, name, wrong="", skip=""):
        self.number += 1
        print(f"{'not ok' if wrong else 'ok'} {self.number} - {name}"
              + (f" # SKIP {skip}" if skip else ""), flush=True)
        if wrong:
            self.failed = True
            print("\n".join("# " + line for line in str(wrong).splitlines()), flush=True)

    def run(self, function):
        name = function.__name__
        try:
            function()
        except Skip as reason:
            self.line(name, skip=str(reason))
        except AssertionError as wrong:
            self.line(name, str(wrong) or traceback.format_exc())
        except Exception:  # a fault of the test itself
            self.line(name, traceback.format_exc())
        else:
            self.line(name)

    def end(self):
        print(f"1..{self.number}")
        sys.exit(1 if self.failed else 0)


tests = []


def test(function):
    """Marks a test: its name says what must hold; it fails by an assertion."""
    tests.append(function)
    return function


def main():
    """Runs the marked tests; with arguments, only those whose name contains one."""
    tap = Tap()
    for function in tests:
        if len(sys.argv) == 1 or any(word in function.__name__ for word in sys.argv[1:]):
            tap.run(function)
    tap.end()


def expect(condition, text, result=None):
    if not condition:
        raise AssertionError(f"{text}\n{result}" if result is not None else text)


def expect_equal(found, wanted, result=None):
    if isinstance(found, list) and isinstance(wanted, list):
        difference = "\n".join(difflib.unified_diff(wanted, found, "wanted", "found", "", "", 0, "")) \
            if all(isinstance(item, str) for item in found + wanted) else f"{found}, not {wanted}"
        expect(found == wanted, difference, result)
    expect(found == wanted, f"found {found!r}, wanted {wanted!r}", result)
