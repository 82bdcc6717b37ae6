# SPDX-License-Identifier: Apache-2.0
"""Programs run under the preload on the recording driver, and results in the Test Anything Protocol.

The build gives by environment variables: CUDAPOLICY_TEST_LIBRARY, the library to preload;
CUDAPOLICY_TEST_STRESS, the folder of the programs; CUDAPOLICY_TEST_DRIVER, the folder of the recording
driver; CUDAPOLICY_TEST_RUNTIME, that of the recording runtime; CUDAPOLICY_TEST_SOURCE, the sources.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import traceback

LIBRARY = os.environ["CUDAPOLICY_TEST_LIBRARY"]
PROGRAMS = os.environ["CUDAPOLICY_TEST_STRESS"]
DRIVER = os.environ["CUDAPOLICY_TEST_DRIVER"]
RUNTIME = os.environ["CUDAPOLICY_TEST_RUNTIME"]
SOURCE = os.environ["CUDAPOLICY_TEST_SOURCE"]

# Longer variants of everything.
LONG = os.environ.get("CUDAPOLICY_TEST_LONG", "0") not in ("", "0")

# What the build is sanitized with, "" for nothing, and that run-time library, which has to come first.
SANITIZER = os.environ.get("CUDAPOLICY_TEST_SANITIZER", "")
PRELOAD_FIRST = os.environ.get("CUDAPOLICY_TEST_PRELOAD_FIRST", "")

INHERITED_NOT = ("CUDAPOLICY_", "RECORDING_", "LD_", "CUDA_", "SLURM_", "OMPI_", "PMI", "MALLOC_")


class Result:
    """What a program left: status, output, and the files in its folder."""

    def __init__(self, status, out, err, folder):
        self.status, self.out, self.err = status, out, err
        self.files = {}
        for name in sorted(os.listdir(folder)):
            with open(os.path.join(folder, name), encoding="utf-8", errors="replace") as file:
                self.files[name] = file.read()

    @property
    def reports(self):
        return [json.loads(text) for name, text in self.files.items()
                if name.startswith("report") and ".counters" not in name]

    @property
    def report(self):
        reports = self.reports
        return reports[0] if len(reports) == 1 else None


def environment(folder, policy, variables):
    result = {name: value for name, value in os.environ.items()
              if not name.startswith(INHERITED_NOT)}
    result["LD_LIBRARY_PATH"] = DRIVER + ":" + RUNTIME
    result["LC_ALL"] = "C"
    if policy is not None:
        path = os.path.join(folder, "policy.ini")
        with open(path, "w", encoding="utf-8") as file:
            file.write(policy)
        result["CUDAPOLICY_FILE"] = path
        result["CUDAPOLICY_REPORT"] = os.path.join(folder, "report.json")
        result["LD_PRELOAD"] = f"{PRELOAD_FIRST} {LIBRARY}".strip()
    for name, value in variables.items():
        result[name] = value.replace("@FOLDER@", folder)
    return result


def end_group(process):
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def run(program, *arguments, policy=None, limit=60, started=None, **variables):
    """Runs a program of this folder to its end, with a policy under the preload. "@FOLDER@" in
    arguments and variables is the folder whose files the result has; started is called with it."""
    folder = tempfile.mkdtemp(prefix="cudapolicy-stress-")
    try:
        command = [os.path.join(PROGRAMS, program)]
        command += [argument.replace("@FOLDER@", folder) for argument in arguments]
        with subprocess.Popen(command, cwd=folder, env=environment(folder, policy, variables),
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, start_new_session=True) as process:
            try:
                if started is not None:
                    started(folder)
                out, err = process.communicate(timeout=limit)
            except subprocess.TimeoutExpired:
                end_group(process)
                out, err = process.communicate()
                raise AssertionError(f"{program} ran longer than {limit} s\n"
                                     + err.decode(errors="replace")) from None
            finally:
                end_group(process)
        return Result(process.returncode, out.decode(errors="replace"),
                      err.decode(errors="replace"), folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def driver_symbols():
    """The driver's functions that the library calls on its own account, under every exported name."""
    names = []
    with open(os.path.join(SOURCE, "src/cuda/driver.def"), encoding="utf-8") as file:
        for line in file:
            if line.startswith("DRIVER("):
                names.append(line.split('"')[1])
    return names


# ---- reporting ------------------------------------------------------------------------------------

class Skip(Exception):
    """Cannot be shown here."""


tests = []


def test(function):
    """Marks a test: its name says what must hold; it fails by an exception."""
    tests.append(function)
    return function


def main():
    """Runs the marked tests; with arguments, only those whose name contains one."""
    failed = False
    chosen = [function for function in tests
              if len(sys.argv) == 1 or any(word in function.__name__ for word in sys.argv[1:])]
    print(f"1..{len(chosen)}", flush=True)
    for number, function in enumerate(chosen, 1):
        try:
            function()
            print(f"ok {number} - {function.__name__}", flush=True)
        except Skip as reason:
            print(f"ok {number} - {function.__name__} # SKIP {reason}", flush=True)
        except Exception:
            failed = True
            print(f"not ok {number} - {function.__name__}", flush=True)
            for line in traceback.format_exc().splitlines():
                print("# " + line, flush=True)
    sys.exit(1 if failed else 0)
