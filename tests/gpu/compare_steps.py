# SPDX-License-Identifier: Apache-2.0
"""Comparisons with cudapolicy ab and tune on real GPUs: whole experiments, as a user makes them.

Each step leaves its experiment (JSON, Markdown and HTML) in the output folder.
"""

import json
import pathlib
import re
import site
import statistics
import sys

COMPUTE = (r"compute[ms]=^rank (?<rank>\d+) iteration \d+ compute (?<value>[\d.]+)")
SHORT = r"short[ms]=^(?<value>[\d.]+) [\d.]+$"

REMOTE = """[policy]
version = 1

[kernel communication]
name = ncclDevKernel_*
name = ncclSymkDevKernel_*
mem_sync_domain = remote
"""
SMALL = """[policy]
version = 1

[kernel small]
name = ncclDevKernel_*
name = ncclSymkDevKernel_*
grid_blocks = 1..4
mem_sync_domain = remote
mem_sync_domain_map = 0 2
"""
WRITER = """[policy]
version = 1

[kernel writer]
name = write_host_memory
mem_sync_domain = remote
"""
TUNED = """[policy]
version = 1

[kernel writer]
name = write_host_memory
mem_sync_domain = leave

[tune]
vary = writer.mem_sync_domain = default, remote
"""


def nccl_library():
    """PyTorch's NCCL where there is one, else what the loader finds."""
    for folder in [*site.getsitepackages(), *sys.path]:
        for path in pathlib.Path(folder or ".").glob("nvidia/nccl/lib/libnccl.so.2"):
            return {"NCCL_LIBRARY": str(path)}
    return {}


def policy(context, name, text):
    path = context.output / f"{name}.ini"
    path.write_text(text)
    return path


def command(context, name, *arguments, limit, statuses=(0, 1, 2)):
    """Runs ab or tune; returns what it prints, and its status."""
    out, err, status = context.run([context.command, *arguments],
                                   dict(context.environment(), **nccl_library()), limit,
                                   check=False)
    (context.output / f"{name}.txt").write_text(out + "\n---- stderr\n" + err)
    if status not in statuses:
        raise RuntimeError(f"{name}: status {status}\n{out[-2000:]}\n{err[-2000:]}")
    return out, status


def show(row, step, name, out, status):
    row(step, f"{name}: status", status)
    print("".join(f"    {line}\n" for line in out.splitlines()), end="", flush=True)


def experiment(context, row, step, name, *arguments, limit, kinds=("json", "md", "html")):
    files = [f"--export={context.output / name}.{kind}" for kind in kinds]
    out, status = command(context, name, "ab", "--force", "--seed=1", *files, *arguments,
                          limit=limit)
    show(row, step, name, out, status)


def ab_nccl(context, row):
    """The NCCL overlap case with NCCL's own setting off: none, observe, the policy."""
    program = context.compile("nccl_ranks.cu", "nccl_ranks")
    experiment(context, row, "ab nccl", "nccl-overlap", "--metric", COMPUTE, "--looks=10,20",
               "--same-output=/sums right/", "none",
               f"remote={policy(context, 'remote', REMOTE)}", "--",
               "env", "NCCL_MEM_SYNC_DOMAIN=0", program, "short", "20", limit=400)


def ab_gemm(context, row):
    """Matrix products beside the same all-reduces: no difference within the margin?"""
    program = context.compile("nccl_ranks.cu", "nccl_ranks")
    experiment(context, row, "ab gemm", "gemm-beside-nccl", "--metric", COMPUTE,
               "--looks=10,20,40", "--margin=2", "--claim=no-difference",
               "--same-output=/sums right/", "observe",
               f"remote={policy(context, 'remote', REMOTE)}", "--",
               "env", "NCCL_MEM_SYNC_DOMAIN=0", program, "gemm", "20", limit=500)


def ab_two(context, row):
    """Two communicators in graphs, the small one in a physical domain of its own."""
    program = context.compile("nccl_ranks.cu", "nccl_ranks")
    experiment(context, row, "ab two", "two-communicators", "--metric", COMPUTE,
               "--looks=10,20,40", "--margin=1", "--same-output=/sums right/", "observe",
               f"small={policy(context, 'small', SMALL)}", "--", program, "two", "40", limit=500)


def writer_command(context, repetitions):
    return [context.compile("host_writer.cu", "host_writer"), str(repetitions), "16", "0", "1000", "4"]


def ab_writer(context, row):
    """Short kernels beside a writer of host memory: an arm a process. About as long as ab_live."""
    experiment(context, row, "ab writer", "writer-processes", "--metric", SHORT, "--blocks=16",
               "observe", f"remote={policy(context, 'writer', WRITER)}", "--",
               *writer_command(context, 5), limit=300)


def ab_live(context, row):
    """The same, arms alternating inside a process."""
    experiment(context, row, "ab live", "writer-live", "--live", "--step-kernel=write_host_memory",
               "--slice=4", "--drop=1", "--runs=5",
               "none",
               f"remote={policy(context, 'writer', WRITER)}", "--",
               *writer_command(context, 96), limit=300)


def printed_by_arm(folder):
    """What nccl_ranks printed of each iteration, by the arm that its second graph was launched
    under: the program's own measurement, beside the time of a step."""
    times = {}
    for run in sorted(folder.glob("runs/*")):
        printed = {}
        for line in (run / "stdout").read_text().splitlines():
            found = re.match(r"rank (\d+) iteration (\d+) compute ([\d.]+)", line)
            if found:
                printed[int(found[1]), int(found[2])] = float(found[3])
        for path in (run / "reports").glob("*.json"):
            report = json.loads(path.read_text())
            rank = int(report["facts"]["job"]["rank"])
            for _, arm, first, steps, _ in report["live"]["slices"]:
                # Two graphs an iteration, and three iterations before the first that is printed.
                for iteration in range((first + 8) // 2 - 3, (first + steps) // 2 - 3):
                    if (rank, iteration) in printed:
                        times.setdefault(arm, []).append(printed[rank, iteration])
    return times


def ab_live_graph(context, row):
    """Two communicators in graphs once more: an executable graph an arm, two graphs a step."""
    program = context.compile("nccl_ranks.cu", "nccl_ranks")
    folder = context.output / "live-graph"
    experiment(context, row, "ab live graph", "two-communicators-live", "--live", "--graph-steps",
               "--slice=40", "--drop=8", "--runs=5", "--folder", folder, "none",
               f"small={policy(context, 'small', SMALL)}", "--", program, "two", "800", limit=300)
    for arm, times in sorted(printed_by_arm(folder).items()):
        row("ab live graph", f"arm {arm}: 100 small all-reduces, ms, mean (of how many)",
            f"{statistics.mean(times):.4f} ({len(times)})")


def ab_live_order(context, row):
    """The driver orders launches of one executable graph in different streams. So must a live
    comparison, whose launches are of an executable an arm: the program counts its launches."""
    program = context.compile("graph_order.cu", "graph_order")
    counter = policy(context, "counter", WRITER.replace("write_host_memory", "count_slowly"))
    for burst in (1, 7, 500):
        out, _, _ = context.run([program, "4000", burst], context.environment(), 60)
        row("ab live order", f"bursts of {burst}, without", out.strip())
        folder = context.output / f"live-order-{burst}"
        experiment(context, row, "ab live order", f"order-{burst}", "--live", "--graph-steps",
                   "--slice=20", "--drop=2", "--runs=3", "--folder", folder, "none",
                   f"remote={counter}", "--", program, "4000", burst, limit=120, kinds=("json",))
        for run in sorted(folder.glob("runs/*")):
            printed = (run / "stdout").read_text().strip()
            row("ab live order", f"bursts of {burst}, {run.name}", printed)
            if not re.match(r"launches (\d+) counted \1 ", printed):
                raise RuntimeError(f"launches were lost: {printed}")


def tune(context, row):
    """Two workloads: one with something to win, and one without."""
    base = policy(context, "tuned", TUNED)
    program = context.compile("host_writer.cu", "host_writer")
    for name, shape in (("tune-writer", ["5", "16", "0", "1000", "4"]),
                        ("tune-nothing", ["5", "1", "1000", "1000", "4"])):
        found = context.output / f"{name}.ini"
        out, status = command(context, name, "tune", "--seed=1", "--metric", SHORT, "--force",
                              "-o", found, "-p", base, "--", program, *shape, limit=400)
        show(row, "tune", name, out, status)
        row("tune", f"{name}: a policy was written", found.exists())


def tune_live(context, row):
    """The search inside running processes, by step; its best is confirmed in new ones."""
    found = context.output / "tune-live.ini"
    out, status = command(context, "tune-live", "tune", "--seed=1", "--live=yes",
                          "--step-kernel=write_host_memory", "--slice=4", "--drop=1",
                          "--warm-up-steps=4", "--live-runs=5", "--looks=10", "--force", "-o", found,
                          "-p", policy(context, "tuned", TUNED), "--",
                          *writer_command(context, 40), limit=400)
    show(row, "tune live", "tune-live", out, status)
    row("tune live", "a policy was written", found.exists())


STEPS = (ab_nccl, ab_gemm, ab_two, ab_writer, ab_live, ab_live_graph, ab_live_order, tune,
         tune_live)
