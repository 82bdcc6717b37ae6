#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How long `cudapolicy report` takes for a large job, and how much memory.

    tests/bench/job_reports.py COMMAND [RANKS [KERNELS]]

Writes reports of that many ranks (512), 8 a node, each with that many kernels (200), into a temporary
folder; prints the time and the largest memory of the command for the processes' reports, for merging
them into a file a node, for those files, and for one file made of them.
"""

import json
import os
import resource
import subprocess
import sys
import tempfile
import time

RANKS_OF_A_NODE = 8


def kinds(launches):
    return {"eager": launches, "captured": 0, "node": 0, "replayed": 0}


def kernel(number, launches):
    name = f"void library::kernel_{number}<float, {number}>(float const*, float*, int)"
    setting = {"setting": "mem_sync_domain", "rule_section": "kernel", "rule": "fourth",
               "outcome": "applied", "reason": "", "detail": 0, "launches": launches,
               "launches_by_kind": kinds(launches)}
    return {"name": f"library::kernel_{number}", "signature": name,
            "mangled": f"_ZN7library{len(str(number)) + 7}kernel_{number}IfLi{number}EEvPKfPfi",
            "library": "libtraining.so.1", "demangled": True, "launches": launches,
            "launches_by_kind": kinds(launches), "shapes": None,
            "settings": [setting] if number % 4 == 0 else []}


def report(rank, ranks, kernels):
    host = f"node{rank // RANKS_OF_A_NODE}"
    listed = [kernel(number, 1000 + number) for number in range(kernels)]
    matched = sum(one["launches"] for one in listed if one["settings"])
    rule = {"section": "kernel", "name": "fourth", "line": 4, "matched": True,
            "kernels": kernels // 4, "launches": matched, "launches_by_kind": kinds(matched),
            "applied": matched, "already_so": 0, "kept": 0, "refused": {},
            "on_streams": {"streams": 0, "applied": 0, "already_so": 0, "kept": 0, "refused": {}}}
    return {"format": "cudapolicy report", "schema": 1, "complete": True, "partial": False,
            "process": {"host": host, "pid": 4711 + rank, "argv0": "train", "start_ticks": 100,
                        "image": 1, "start": "2026-01-01T00:00:00.000Z",
                        "end": "2026-01-01T01:00:00.000Z", "running": False},
            "mode": "enforce", "routes": [], "streams": [], "notes": [], "overflow": {},
            "facts": {"job": {"id": "42", "step": "0", "rank": str(rank), "rank_source": "RANK",
                              "local_rank": str(rank % RANKS_OF_A_NODE), "world_size": str(ranks)},
                      "driver": {"version": "13000"}, "process": {"ancestors": "1000@50"},
                      "environment": {f"NCCL_SETTING_{i}": "1" for i in range(10)}},
            "launches": sum(one["launches"] for one in listed), "rules": [rule], "kernels": listed,
            "unmatched": [{"name": one["name"], "library": one["library"],
                           "launches": one["launches"]} for one in listed if not one["settings"]]}


def measure(what, commands):
    """The time of all commands together, and the largest memory of any command so far."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    begin = time.monotonic()
    for command in commands:
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    elapsed = time.monotonic() - begin
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    processor = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    print(f"{what:<36} {elapsed:6.2f} s, {processor:5.2f} s of processors; at most "
          f"{after.ru_maxrss / 1024:.1f} MiB so far", flush=True)


def main():
    command = os.path.abspath(sys.argv[1])
    ranks, kernels = (int(word) for word in (sys.argv[2:] + ["512", "200"][len(sys.argv) - 2:]))
    with tempfile.TemporaryDirectory() as folder:
        for name in ("reports", "nodes"):
            os.mkdir(os.path.join(folder, name))
        nodes = {}
        for rank in range(ranks):
            path = os.path.join(folder, "reports", f"{rank}.json")
            with open(path, "w", encoding="utf-8") as file:
                json.dump(report(rank, ranks, kernels), file, indent=1)
            nodes.setdefault(rank // RANKS_OF_A_NODE, []).append(path)
        measure(f"report, {ranks} files", [[command, "report", f"{folder}/reports"]])
        measure(f"report --merge, {len(nodes)} times {RANKS_OF_A_NODE} files",
                [[command, "report", "--merge", f"{folder}/nodes/{node}.json", *paths]
                 for node, paths in nodes.items()])
        measure(f"report, {len(nodes)} files", [[command, "report", f"{folder}/nodes"]])
        measure(f"report --merge, {len(nodes)} files",
                [[command, "report", "--merge", f"{folder}/all.json", f"{folder}/nodes"]])
        measure("report, 1 file", [[command, "report", f"{folder}/all.json"]])


if __name__ == "__main__":
    main()
