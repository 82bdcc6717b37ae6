# SPDX-License-Identifier: Apache-2.0
"""Steps of tests/gpu/run about partitions: where kernels ran, in which order, what it costs."""

import json
import re
import statistics

PLACEMENT = """[policy]
version = 1

[partition side]
sm_count = 16

[partition main]
sm_count = rest

[stream zero]
index = 0, 4
partition = main
graph_nodes = yes

[kernel moved]
name = place::moved*
partition = side
graph_nodes = yes
allow_legacy = yes
"""

FAKE = """[policy]
version = 1

[stream zero]
index = 0, 4
locality_domain = 0

[kernel moved]
name = place::moved*
locality_domain = 1
graph_nodes = yes
allow_legacy = yes
"""

# Phases and the partition in which their kernels have to run; None: the whole device.
EXPECTED = {
    "stream 0": "main", "stream 1": None, "blocking stream": None, "stream with priority": None,
    "legacy stream": None, "moved from stream 1": "side", "moved from the blocking stream": "side",
    "moved from stream 0": "side", "moved from the legacy stream": "side",
    "moved from the per-thread stream": "side", "moved with a cluster": "side",
    "cooperative, fits the partition": "side", "cooperative, fits the device only": None,
    "cooperative on stream 0, fits the device only": None,
    "captured moved": "side", "captured moved, updated": "side", "explicit node": "side",
    "explicit node, set in the executable": "side", "explicit node, set in the graph": "side",
}


def numbers(text):
    found = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        found.update(range(int(first), int(last or first) + 1))
    return found


def read(out):
    phases, order = {}, []
    for line in out.splitlines():
        match = re.fullmatch(r"phase (.*) blocks (\d+) sms (\d+) set (.*)", line)
        if match:
            phases.setdefault(match[1], []).append((int(match[2]), numbers(match[4])))
        elif line.startswith("value "):
            *_, got, wanted = line.split()
            order.append((line, got == wanted))
    return phases, order


def check(context, row, failed, what, out, sizes):
    """sizes: how many SMs each partition has at most."""
    phases, values = read(out)
    seen = {name: set() for name in sizes}
    wrong = []
    for name, partition in EXPECTED.items():
        for blocks, sms in phases.get(name, []):
            if partition is not None:
                seen[partition] |= sms
            limit = sizes[partition] if partition else 132
            fits = len(sms) <= limit and (blocks < 1000 or partition or len(sms) > 120)
            row("placement", f"{what}: {name}", f"{len(sms)} SMs" + ("" if fits else "  WRONG"))
            if not fits:
                wrong.append(name)
        if name not in phases:
            wrong.append(f"{name}: missing")
    both = set.intersection(*seen.values()) if len(seen) > 1 else set()
    row("placement", f"{what}: SMs of the partitions, common ones",
        f"{', '.join(f'{name} {len(sms)}' for name, sms in seen.items())}; {len(both)}")
    wrong += [line for line, right in values if not right]
    row("placement", f"{what}: orders and values right", f"{sum(r for _, r in values)} of {len(values)}")
    if both:
        wrong.append(f"common SMs {sorted(both)}")
    if "told end" not in out:
        wrong.append("the program did not reach its end")
    if wrong:
        raise failed(f"{what}: " + "; ".join(wrong))


def placement(context, row, failed):
    program = context.compile("placement.cu", "placement", "-lcuda")
    plain, _, _ = context.run([program], context.environment())
    (context.output / "placement-plain.txt").write_text(plain)
    values = read(plain)[1]
    row("placement", "without the library: orders and values right",
        f"{sum(r for _, r in values)} of {len(values)}")
    told = {name: [line for line in plain.splitlines() if line.startswith("told")]
            for name in ("plain",)}
    variants = {
        "16 SMs and the rest": (PLACEMENT, {}, {"main": 116, "side": 16}),
        "2 pretended domains": (FAKE, {"CUDAPOLICY_FAKE_LOCALITY_DOMAINS": "2"},
                                {"main": 76, "side": 76}),
    }
    problems = []
    for what, (text, extra, sizes) in variants.items():
        report = context.path(".json")
        out, err, status = context.run(
            [program], context.environment(context.policy(text), report=report, **extra), 120,
            check=False)
        (context.output / f"placement-{what.replace(' ', '-')}.txt").write_text(out + err)
        for line in out.splitlines():
            if line.startswith("told") and line not in told["plain"]:
                row("placement", f"{what}: told otherwise than without", line)
        if report.exists():
            for rule in context.report(report)["rules"]:
                row("placement", f"{what}: rule {rule['name']}",
                    f"applied {rule['applied']} already {rule.get('already_so')} "
                    f"refused {rule['refused']}")
        try:
            if status != 0:
                raise failed(f"{what}: status {status}: {out[-300:]} {err[-600:]}")
            check(context, row, failed, what, out, sizes)
        except failed as reason:
            problems.append(str(reason))
    out, err, _ = context.run([program], context.environment(
        context.policy(FAKE), report=context.path(".json")), 120)
    lines = [line for line in err.splitlines() if "locality" in line]
    row("placement", "a locality rule without domains: lines on stderr", f"{len(lines)}: {lines[:1]}")
    if len(lines) != 1:
        problems.append("not one line about locality domains")
    if problems:
        raise failed("\n".join(problems))


def placement_cost(context, row):
    program = context.compile("placement.cu", "placement", "-lcuda")
    variants = {"without": context.environment(),
                "partitions": context.environment(context.policy(PLACEMENT))}
    times = {}
    for _ in range(3 if context.quick else 7):
        for name, environment in variants.items():
            out, _, _ = context.run([program, "cost"], environment)
            for kind, value in re.findall(r"cost (\w+) (\d+)", out):
                times.setdefault((name, kind), []).append(float(value))
    for (name, kind), values in times.items():
        row("placement cost", f"{name}: kernel that {kind}, ns a launch, median of {len(values)}",
            f"{statistics.median(values):.0f}")
    policy = context.policy("""[policy]
version = 1

[partition main]
sm_count = 116

[stream pool]
partition = main
""")
    for name, environment in (("without", context.environment()),
                              ("on a partition", context.environment(policy))):
        made = [context.run([program, "streams"], environment)[0].split()[1:] for _ in range(5)]
        row("placement cost", f"128 streams {name}: ms to create, MiB of the device, medians of 5",
            f"{statistics.median(float(time) for time, _ in made):.2f}  "
            f"{statistics.median(int(size) for _, size in made) / 2**20:.1f}")


def nccl_policy(count, compute):
    text = f"""[policy]
version = 1

[partition communication]
sm_count = {count}

[kernel nccl]
name = ncclDevKernel_*
name = ncclSymkDevKernel_*
partition = communication
"""
    return text if not compute else text + """
[partition compute]
sm_count = rest

[stream pools]
library = libc10_cuda.so*
partition = compute
unsafe_residency = yes
"""


def nccl_partition(context, row, failed, python, here):
    """Matrix products beside NCCL, for partitions of several sizes and for NCCL's own limit."""
    variants = {"no partition": ({}, None)}
    for count in (8, 16):
        variants[f"NCCL_MAX_CTAS={count}"] = ({"NCCL_MAX_CTAS": str(count)}, None)
    for count in (8, 16, 32):
        variants[f"partition of {count} and the rest, MAX_CTAS={count}"] = (
            {"NCCL_MAX_CTAS": str(count)}, nccl_policy(count, True))
    variants["partition of 16 for NCCL alone, MAX_CTAS=16"] = ({"NCCL_MAX_CTAS": "16"},
                                                               nccl_policy(16, False))
    variants["partition of 16 and the rest"] = ({}, nccl_policy(16, True))
    times = {name: [] for name in variants}
    counts, problems = {}, []
    for repetition in range(1 if context.quick else 2):
        for name, (extra, text) in variants.items():
            context.serial += 1
            label = f"report-{context.serial}-"
            report = context.programs / f"{label}%p.json"
            environment = context.environment(context.policy(text) if text else None,
                                              report=report if text else None, **extra)
            try:
                out, err, _ = context.run([python, here / "nccl_partition.py", "--port",
                                           29200 + context.serial % 300], environment, 90)
            except failed as reason:
                problems.append(f"{name}: {reason}")
                continue
            times[name].append(json.loads(out.splitlines()[-1]))
            # A rank may end without going through its exit: then its counters are still there.
            for path in context.programs.glob(f"{label}*"):
                out, _, _ = context.run([context.command, "report", "--json", path],
                                        context.environment())
                for rule in json.loads(out)["rules"]:
                    fates = rule.get("launch_outcomes", rule)
                    if rule["launches"]:
                        counts[name, rule["name"]] = (f"applied {fates['applied']}, refused "
                                                      f"{fates['refused']}")
    columns = ("compute", "communication", "both", "compute_alone", "communication_alone")
    row("nccl partition", f"medians of {1 if context.quick else 2} runs, ms", "  ".join(columns))
    for name, runs in times.items():
        if runs:
            row("nccl partition", name, "  ".join(
                f"{statistics.median(run[column] for run in runs):.2f}" for column in columns))
    for (name, rule), text in counts.items():
        row("nccl partition", f"{name}: rule {rule}, a process", text)
    if problems:
        raise failed("\n".join(problems))


TORCH = """[policy]
version = 1

[partition side]
sm_count = 32

[partition main]
sm_count = rest

[stream pools]
library = libc10_cuda.so*
partition = main
graph_nodes = yes
unsafe_residency = yes

[kernel elementwise]
name = *elementwise*
partition = side
graph_nodes = yes
allow_legacy = yes
unsafe_residency = yes
"""


def torch_partition(context, row, failed, python, here):
    """PyTorch, Triton and CUDA graphs under partitions: bit-identical results."""
    plain, _, _ = context.run([python, here / "torch_identity.py"], context.environment(), 240)
    report = context.path(".json")
    out, _, _ = context.run([python, here / "torch_identity.py"],
                            context.environment(context.policy(TORCH), report=report), 240)
    data = context.report(report)
    for rule in data["rules"]:
        row("torch partition", f"rule {rule['name']}",
            f"applied {rule['applied']}, refused {rule['refused']}, streams {rule['on_streams']['streams']}")
    row("torch partition", "results", "identical" if out == plain else "DIFFERENT")
    if out != plain or data["rules"][-1]["applied"] == 0:
        raise failed(f"{plain}\n{out}")
