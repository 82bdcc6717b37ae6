# SPDX-License-Identifier: Apache-2.0
"""A whole job on real GPUs: torchrun (python -m torch.distributed.run) under cudapolicy run, with [env] and
[expect], its merged report, and two runs compared."""

import json
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent

POLICY = """[policy]
version = 1

[kernel communication]
name = ncclDevKernel_*
mem_sync_domain = remote

[kernel tanh]
name = *elementwise_kernel
priority = -1

[env]
CUDA_DEVICE_MAX_CONNECTIONS = 8

[expect]
rule communication: launches >= 1, refused = 0
rule tanh: applied >= 20
"""


def run_job(context, name, policy, ranks, *options, statuses=(0,)):
    folder = context.output / f"job-{name}"
    folder.mkdir()
    out, err, status = context.run(
        [context.command, "run", "-p", policy, "--report-folder", folder, "--merge", *options, "--",
         sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", ranks,
         HERE / "job_ranks.py"],
        context.environment(), 240, check=False)
    (context.output / f"job-{name}.txt").write_text(out + "\n---- stderr\n" + err)
    if status not in statuses:
        raise RuntimeError(f"{name}: status {status}\n{out[-1500:]}\n{err[-2500:]}")
    return folder, sorted(re.findall(r"rank (\d+) of \d+: connections (\S+), sum (\S+)", out)), err, status


def job(context, row, ranks):
    """torchrun: every rank has the policy, its variables and a report; the launcher is left alone."""
    policy = context.policy(POLICY)
    wrong = context.policy(POLICY.replace("= *elementwise_kernel", "= no_such_kernel"))
    folder, said, _, _ = run_job(context, "right", policy, ranks, "--strict-expect")
    if [rank for rank, _, _ in said] != [str(rank) for rank in range(ranks)] or \
            {connections for _, connections, _ in said} != {"8"}:
        raise RuntimeError(f"ranks and their variables: {said}")
    row("job", "ranks, connections, sum", said)

    merged = [path for path in folder.rglob("*.json")]
    out, _, _ = context.run([context.command, "report", "--json", *merged], context.environment())
    report = json.loads(out)
    jobs = report if isinstance(report, list) else [report]
    row("job", "files after --merge; processes, launches",
        f"{len(merged)}; {[(j['ranks']['reported'], j['ranks']['missing'], j['launches']) for j in jobs]}")
    if len(merged) != 1 or jobs[0]["ranks"]["reported"] != [[0, ranks - 1]]:
        raise RuntimeError(f"merged reports: {merged}, {jobs[0]['ranks']}")
    document = json.loads(merged[0].read_text())
    sources = {p["facts"]["job"].get("rank_source") for p in document["processes"]}
    row("job", "rank from", sources)

    other, _, err, status = run_job(context, "wrong", wrong, ranks, "--strict-expect", statuses=(3,))
    row("job", "a rule that matches nothing: status; said", f"{status}; " + next(
        (line for line in err.splitlines() if "applied" in line and "tanh" in line), "nothing")[:150])
    out, err, status = context.run(
        [context.command, "diff", *merged, *other.rglob("*.json")], context.environment(), check=False)
    (context.output / "job-diff.txt").write_text(out + err)
    row("job", "diff: status", status)
    print("\n".join("    " + line for line in out.splitlines()[:14]))
    if status != 1:
        raise RuntimeError(f"diff: {out}\n{err}")
