#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The main part of tools/demo: an unmodified program under a shipped policy.

usage: demo.py [--recording] [--without-nvcc] [--policy FILE] [--output FOLDER] BUILD_FOLDER

Runs communication.cu as it is, then under the policy, and prints for each launch the attributes before
and after, and the rule behind it. On a GPU, where there is one and nvcc; else on the recording driver,
which executes nothing. Exit status 0 only if launches, attributes and the report agree with each other,
and the policy changed something.
"""

import argparse
import collections
import json
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
PROJECT = HERE.parent.parent
TIME_LIMIT = 300
PAIRS = 5


class Failed(Exception):
    pass


# ---- The program, and where it runs --------------------------------------------------------------

class Place:
    """Where the demo runs: on a GPU, or on the recording driver."""

    def __init__(self, build, output, gpu, nvcc):
        self.build, self.output, self.gpu, self.nvcc = build, output, gpu, nvcc
        self.command = build / "tools/cudapolicy"
        output.mkdir(parents=True, exist_ok=True)

    def environment(self):
        environment = {name: value for name, value in os.environ.items()
                       if not name.startswith(("CUDAPOLICY_", "RECORDING_DRIVER_"))}
        environment.pop("LD_PRELOAD", None)
        if self.gpu is None:
            folders = [str(self.build / "tests/double/driver"), environment.get("LD_LIBRARY_PATH")]
            environment["LD_LIBRARY_PATH"] = ":".join(folder for folder in folders if folder)
        return environment

    def run(self, command, **changes):
        done = subprocess.run([str(word) for word in command], text=True, timeout=TIME_LIMIT,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, check=False,
                              env={**self.environment(), **changes})
        if done.returncode != 0:
            raise Failed(f"{pathlib.Path(command[0]).name} ended with status {done.returncode}\n"
                         f"{done.stderr}")
        return done

    def fresh(self, name):
        path = self.output / name
        path.unlink(missing_ok=True)
        return path


def find_nvcc():
    folders = [f"{os.environ[name]}/bin" for name in ("CUDA_HOME", "CUDA_PATH") if os.environ.get(name)]
    return shutil.which("nvcc", path=":".join(
        [os.environ.get("PATH", ""), *folders, "/usr/local/cuda/bin"]))


def find_gpu(build):
    """(the name of the first GPU or None, why there is none), as the driver has it."""
    said = subprocess.run([build / "tools/cudapolicy", "show", "--json"], text=True, check=False,
                          stdout=subprocess.PIPE, timeout=TIME_LIMIT)
    try:
        shown = json.loads(said.stdout)
    except ValueError:
        return None, "the devices cannot be listed"
    if not shown["devices"]:
        return None, shown["absent"] or "no CUDA device"
    return shown["devices"][0]["name"], None


def headers():
    said = subprocess.run([PROJECT / "src/cuda/find-headers", "", sys.executable, PROJECT / "build-deps"],
                          text=True, stdout=subprocess.PIPE, check=False)
    if said.returncode != 0:
        raise Failed("no CUDA headers")
    return said.stdout.split("\t")[0]


def compile_program(place, source, name):
    program = place.output / name
    archive = place.build / "tests/double/runtime/libcudart_static.a"
    if place.nvcc and place.gpu:
        place.run([place.nvcc, "-arch=native", "-std=c++17", "-o", program, source])
        return program, "nvcc, static CUDA runtime"
    # By its path: a name would be looked for in the toolkit as well.
    libraries = [archive, "-ldl", "-lpthread"]
    if place.nvcc:
        place.run([place.nvcc, "-std=c++17", "-cudart", "none", "-o", program, source, *libraries])
        return program, "nvcc, static recording runtime"
    place.run(["cc", "-x", "c", "-O1", "-isystem", headers(), "-o", program, source, "-x", "none",
               *libraries])
    return program, "cc, static recording runtime"


# ---- What was launched ---------------------------------------------------------------------------

# name: as reports have it; kind: as reports count it; attributes: text by the policy's key
Launch = collections.namedtuple("Launch", "kind call name attributes")

DOMAINS = {"0": "default", "1": "remote"}


def recorded_attributes(text):
    """attributes=CLUSTER_DIMENSION:2/1/1,MEM_SYNC_DOMAIN:1 in the policy's words."""
    attributes = {}
    for attribute in [] if text == "none" else text.split(","):
        name, _, value = attribute.partition(":")
        if name == "MEM_SYNC_DOMAIN":
            attributes["mem_sync_domain"] = DOMAINS[value]
        elif name == "CLUSTER_DIMENSION":
            attributes["cluster_dim"] = value.replace("/", ",")
        else:
            attributes[name.lower()] = value.replace("/", ",")
    return attributes


def read_record(path, names):
    """The launches and added nodes of the recording driver's log, in order; and the replays."""
    launches, nodes, replays = [], {}, []
    for line in path.read_text().splitlines():
        fields = dict(word.split("=", 1) for word in line.split())
        call = fields.get("call", "node")
        if call.startswith(("cuLaunch", "cuGraph")) and fields["result"] != "0":
            raise Failed(f"a call failed: {line}")
        if call.startswith(("cuLaunchKernel", "cuLaunchCooperativeKernel")):
            kind = "captured" if fields["capture"] != "0" else "eager"
            launches.append(Launch(kind, call, names[fields["kernel"]],
                                   recorded_attributes(fields["effective"])))
        elif call.startswith("cuGraphAddKernelNode"):
            nodes[fields["node"]] = len(launches)
            launches.append(Launch("node", call, names[fields["kernel"]],
                                   recorded_attributes(fields["attributes"])))
        elif call == "cuGraphKernelNodeSetAttribute":
            launches[nodes[fields["node"]]].attributes.update(recorded_attributes(fields["attribute"]))
        elif call == "node":
            replays.append((names[fields["kernel"]], recorded_attributes(fields["attributes"])))
    return launches, replays


def read_nodes(output):
    """What the program itself was told by the driver about the nodes of its graph."""
    launches = []
    lines = re.findall(r"(?m)^node (\S+) domain=(\d) map=(\d+),(\d+) cluster=(\d+),(\d+),(\d+)$", output)
    for index, (name, domain, _, remote, *cluster) in enumerate(lines):
        attributes = {"mem_sync_domain": DOMAINS[domain]} if domain != "0" else {}
        if cluster not in (["0"] * 3, ["1"] * 3):
            attributes["cluster_dim"] = ",".join(cluster)
        launches.append(Launch("node" if index == len(lines) - 1 else "captured", "graph node", name,
                               attributes))
    return launches


# ---- What became of them -------------------------------------------------------------------------

SETTING, WANTED = "mem_sync_domain", "remote"


class Report:
    """What the report says became of the setting, handed out launch by launch."""

    def __init__(self, path):
        self.report = json.loads(path.read_text())["processes"][0]
        self.left = {}
        for kernel in self.report["kernels"]:
            for fate in kernel["settings"]:
                for kind, count in fate["launches_by_kind"].items():
                    if fate["setting"] == SETTING and count > 0:
                        self.left.setdefault((kernel["name"], kind), []).append([count, fate])

    def launches(self, kind):
        return sum(kernel["launches_by_kind"][kind] for kernel in self.report["kernels"])

    def take(self, before, after):
        """The report's entry for this launch; None where no rule decided."""
        if before.attributes != after.attributes:
            possible = ["applied"]
        elif before.attributes.get(SETTING) == WANTED:
            possible = ["already so", "kept", "refused"]
        else:
            possible = ["kept", "refused"]
        for entry in self.left.get((after.name, after.kind), []):
            if entry[0] > 0 and entry[1]["outcome"] in possible:
                entry[0] -= 1
                return entry[1]
        if possible == ["applied"]:
            raise Failed(f"{after.name}: launched with other attributes, and no rule says so")
        return None

    def assert_used_up(self, kinds):
        for (name, kind), entries in self.left.items():
            for count, fate in entries:
                if count > 0 and kind in kinds:
                    raise Failed(f"the report has {count} more {kind} launches of {name} as "
                                 f"\"{fate['outcome']}\" than were made")


def others(attributes):
    return {key: value for key, value in attributes.items() if key != SETTING}


def compare(before, after, report):
    """The fate of each launch; fails where policy, launches and report do not agree."""
    if [launch.name for launch in before] != [launch.name for launch in after]:
        raise Failed("other kernels were launched under the policy than without")
    fates = []
    for one, other in zip(before, after):
        if others(one.attributes) != others(other.attributes):
            raise Failed(f"{one.name}: more was changed than {SETTING}")
        fates.append(report.take(one, other))
    kinds = {launch.kind for launch in after}
    report.assert_used_up(kinds)
    for kind in kinds:
        made = sum(launch.kind == kind for launch in after)
        if report.launches(kind) != made:
            raise Failed(f"{made} {kind} launches were made, the report has {report.launches(kind)}")
    return fates


def expected_outcomes(fates):
    """A device with one domain refuses all; else something must have been applied."""
    outcomes = {fate["outcome"] for fate in fates if fate is not None}
    return "applied" in outcomes or any(fate and fate["reason"] == "one domain" for fate in fates)


# ---- What is printed -----------------------------------------------------------------------------

KINDS = {"eager": "eager", "captured": "captured into a graph", "node": "added to the graph"}


def attributes_text(attributes):
    short = {"mem_sync_domain": "domain", "cluster_dim": "cluster"}
    return " ".join(f"{short[key]}={value}" if key in short else key
                    for key, value in attributes.items()) or "-"


def fate_text(fate):
    if fate is None:
        return "-"
    return f"{fate['rule']}: {fate['reason'] if fate['outcome'] == 'refused' else fate['outcome']}"


def print_table(rows):
    """Rows of cells; a text stands for itself."""
    cells = [row for row in rows if not isinstance(row, str)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(cells[0]))]
    for row in rows:
        print(row if isinstance(row, str) else
              "  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip())


def print_launches(before, after, fates, report, policy):
    rows = [("", "call", "kernel", "before", "after", "rule")]
    kind = None
    for one, other, fate in zip(before, after, fates):
        if one.kind != kind:
            kind = one.kind
            rows.append(KINDS[kind])
        rows.append(("", one.call, one.name, attributes_text(one.attributes),
                     attributes_text(other.attributes), fate_text(fate)))
    print_table(rows)
    print("\ndomain is the setting mem_sync_domain, cluster is cluster_dim, - is none.")
    for rule in report.report["rules"]:
        print(f"{rule['name']} is [{rule['section']} {rule['name']}] in {policy.name}, line {rule['line']}.")


# ---- The demo ------------------------------------------------------------------------------------

def run_twice(place, program, policy):
    """(output, record) without the policy and under it; the report; the run's own table."""
    record = [place.fresh("without-policy.calls"), place.fresh("with-policy.calls")]
    report = place.fresh("report.json")
    plain = place.run([program], RECORDING_DRIVER_LOG=str(record[0]))
    policed = place.run([place.command, "run", "-p", policy, "--report", report, "--", program],
                        RECORDING_DRIVER_LOG=str(record[1]))
    if not report.exists():
        raise Failed(f"no report was written\n{policed.stderr}")
    return [(plain.stdout, record[0]), (policed.stdout, record[1])], Report(report), policed.stderr


def recorded_demo(runs, report, policy):
    names = {kernel["mangled"]: kernel["name"] for kernel in report.report["kernels"]}
    (before, _), (after, replays) = [read_record(record, names) for _, record in runs]
    fates = compare(before, after, report)
    print_launches(before, after, fates, report, policy)
    nodes = [(launch.name, launch.attributes) for launch in after if launch.kind != "eager"]
    if not nodes or len(replays) % len(nodes) != 0 or replays != nodes * (len(replays) // len(nodes)):
        raise Failed("the graph was replayed with other attributes than its nodes have")
    if report.launches("replayed") != len(replays):
        raise Failed(f"{len(replays)} replays, the report has {report.launches('replayed')}")
    print("A launch that a rule changes reaches the driver as cuLaunchKernelEx.\n"
          f"{len(replays) // len(nodes)} launches of the graph replayed its {len(nodes)} nodes with the "
          "attributes above.")
    return fates


def gpu_demo(runs, report, policy):
    before, after = [read_nodes(output) for output, _ in runs]
    sums = [re.search(r"(?m)^sum (\d+)$", output)[1] for output, _ in runs]
    fates = compare(before, after, report)
    print_launches(before, after, fates, report, policy)
    print(f"The nodes' attributes are as the driver has them. What the {report.launches('eager')} eager "
          "launches carried cannot\nbe read back; the run's table has them. "
          f"The program's result is {sums[1]}; without the policy it was {sums[0]}.")
    if sums[0] != sums[1] or sums[0] == "0":
        raise Failed("the program's results differ")
    return fates


def measure(place, policy):
    """What a policy gains for short kernels beside a writer of pinned host memory."""
    program, _ = compile_program(place, PROJECT / "tests/gpu/host_writer.cu", "host_writer")
    adapted = place.fresh("host-writer.ini")
    adapted.write_text(policy.read_text().replace("my_peer_writer", "write_host_memory"))
    preload = {"LD_PRELOAD": str(place.build / "src/preload/libcudapolicy.so"),
               "CUDAPOLICY_FILE": str(adapted)}
    times = {"without": [], "with": []}
    for _ in range(PAIRS):
        for name, changes in (("without", {}), ("with", preload)):
            output = place.run([program, "5"], **changes).stdout
            times[name].append(statistics.median(float(line.split()[0])
                                                 for line in output.splitlines()))
    gains = sorted(a / b for a, b in zip(times["without"], times["with"]))
    print("\nWhat it gains: tests/gpu/host_writer.cu, 4,000 short kernels beside a kernel that writes pinned\n"
          f"host memory, under {policy.name} with that kernel's name in it. {PAIRS} pairs of runs in turn:")
    for name, values in times.items():
        print(f"  {name:<7} the policy  {statistics.median(values):8.2f} ms  "
              f"({min(values):.2f} .. {max(values):.2f})")
    print(f"  paired gain        {statistics.median(gains):8.2f}     ({gains[0]:.2f} .. {gains[-1]:.2f})")


def choose_place(arguments):
    build = arguments.build.resolve()
    nvcc = None if arguments.without_nvcc else find_nvcc()
    gpu, why_not = (None, "as you asked") if arguments.recording else find_gpu(build)
    if gpu and not nvcc:
        gpu, why_not = None, f"there is a GPU ({gpu}), but no nvcc to compile a program for it"
    place = Place(build, (arguments.output or build / "demo").resolve(), gpu, nvcc)
    print(f"On the GPU: {gpu}." if gpu else
          f"On the recording driver ({why_not}).\n"
          "It checks and records each call. No kernel is executed, and nothing is computed.")
    return place


def demo(arguments):
    policy = arguments.policy.resolve()
    place = choose_place(arguments)
    program, how = compile_program(place, HERE / "communication.cu", "communication")
    print(f"Program: tests/demo/communication.cu ({how}); it knows nothing of cudapolicy.\n"
          f"Policy:  {policy.name}\n", flush=True)
    runs, report, table = run_twice(place, program, policy)
    fates = (gpu_demo if place.gpu else recorded_demo)(runs, report, policy)
    print(f"\nThe table of cudapolicy run -p {policy.name} -- communication:\n\n{table}", end="", flush=True)
    if not expected_outcomes(fates):
        raise Failed("the policy changed nothing")
    if place.gpu:
        measure(place, policy)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("build", type=pathlib.Path, metavar="BUILD_FOLDER")
    parser.add_argument("--recording", action="store_true",
                        help="on the recording driver, even where there is a GPU")
    parser.add_argument("--without-nvcc", action="store_true", help="as if there were no nvcc")
    parser.add_argument("--policy", type=pathlib.Path, metavar="FILE",
                        default=PROJECT / "policy/communication-to-remote-domain.ini")
    parser.add_argument("--output", type=pathlib.Path, metavar="FOLDER",
                        help="for programs and records (default: demo in BUILD_FOLDER)")
    try:
        demo(parser.parse_args())
    except (Failed, OSError, subprocess.TimeoutExpired) as reason:
        sys.stdout.flush()
        print(f"demo: failed: {reason}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
