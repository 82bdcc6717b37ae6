# SPDX-License-Identifier: Apache-2.0
"""Runs program.cu's executable on the doubles and compares its launches with what they must be."""

import argparse
import os
import subprocess
import sys
import tempfile

KERNEL = "_Z4axpyPff"

# Function, kernel, kind of handle, stream, blocks; {z} is the per-thread ending, {null} what NULL means.
# In code compiled by nvcc cudaGraphLaunch_ptsz is an inline function of cuda_device_runtime_api.h that
# calls cudaGraphLaunch with the per-thread stream's handle.
LAUNCHES = """\
cuLaunchKernel{z} {k} kernel {null} 1
cuLaunchKernel{z} _Z5scaleIfEvPT_S0_ kernel stream#1 2
cuLaunchKernel{z} {k} kernel stream#2 3
cuLaunchKernelEx{z} {k} kernel stream#2 4
cuLaunchCooperativeKernel{z} {k} kernel stream#3 5
cuLaunchKernel{z} {k} kernel stream#2 7
cuGraphLaunch - - stream#2 -
node {k} kernel - 7
cuGraphLaunch - - {null} -
node {k} kernel - 7
cuGraphLaunch - - {null} -
node {k} function - 8
cuLaunchKernel{z} {k} kernel {null} 0
"""


def parse(lines):
    """Each line of a log as a dictionary."""
    for line in lines:
        yield dict(field.split("=", 1) for field in line.split())


def questions(lines):
    """What was asked of cuGetProcAddress, in the form of the lists in data/."""
    for fields in parse(lines):
        if fields.get("call", "").startswith("cuGetProcAddress"):
            yield "\t".join([fields["symbol"], fields["version"], fields["flags"]])


def launches(lines):
    """The launches of a log, in the form of LAUNCHES."""
    for fields in parse(lines):
        name = fields.get("call", "node")
        if name == "node" or "Launch" in name:
            yield " ".join([name, fields.get("kernel", "-"), fields.get("handle", "-"),
                            fields.get("stream", "-"), fields.get("grid", "-").split(",")[0]])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--per-thread", action="store_true")
    parser.add_argument("--libraries", required=True, help="folders of the doubles, with colons")
    parser.add_argument("--lookups", required=True, help="list of what the runtime asks for")
    parser.add_argument("program")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        log = os.path.join(folder, "log")
        environment = dict(os.environ, LD_LIBRARY_PATH=arguments.libraries,
                           RECORDING_DRIVER_LOG=log)
        done = subprocess.run([arguments.program], env=environment, check=False)
        with open(log, encoding="ascii") as file:
            lines = file.read().splitlines()
    z, null = ("_ptsz", "per_thread") if arguments.per_thread else ("", "legacy")
    wanted = LAUNCHES.format(z=z, null=null, k=KERNEL).splitlines()
    found = list(launches(lines))
    for line in found:
        print(line)
    if found != wanted:
        print("wanted:", *wanted, sep="\n")
        return 1
    with open(arguments.lookups, encoding="ascii") as file:
        listed = [line for line in file.read().splitlines() if not line.startswith("#")]
    if list(questions(lines)) != listed:
        print("the questions differ from", arguments.lookups)
        return 1
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
