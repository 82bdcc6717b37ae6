# SPDX-License-Identifier: Apache-2.0
"""What a report must say after the application ran: its counts against the driver's record."""

from collections import Counter

from record import ATTRIBUTES, CREATIONS, LAUNCHES, attributes_of, expect, fields_of, symbol_of

NODE_CALLS = {"cuGraphAddKernelNode", "cuGraphAddKernelNode_v2", "cuGraphAddNode", "cuGraphAddNode_v2",
              "cuGraphKernelNodeSetParams", "cuGraphKernelNodeSetParams_v2", "cuGraphNodeSetParams"}
KINDS = ("eager", "captured", "node", "replayed")


def kind_of(fields):
    return "captured" if fields.get("capture") == "1" else "eager"


def launches_of(reference):
    """From the record without a policy: launches by (kernel, kind). None is a handle of no kernel."""
    found = Counter()
    graph_ran = False
    for line in reference.lines():
        symbol, fields = symbol_of(line), fields_of(line)
        kernel = fields.get("kernel")
        if symbol is None:
            if graph_ran:
                found[kernel, "replayed"] += 1
            continue
        graph_ran = symbol.startswith("cuGraphLaunch") and fields["result"] == "0"
        if symbol in LAUNCHES and "grid" in fields:
            found[kernel, kind_of(fields)] += 1
        elif symbol in NODE_CALLS and fields["result"] == "0" and kernel is not None:
            found[kernel, "node"] += 1
    return found


def reported(report):
    found = Counter()
    for kernel in report["kernels"]:
        for kind, count in kernel["launches_by_kind"].items():
            found[kernel["name"], kind] += count
    return found


def applied_of(pairs):
    """Launches by (setting, kind) whose attribute is another than without the policy."""
    found = Counter()
    for wanted, line in pairs:
        if symbol_of(wanted) not in LAUNCHES:
            continue
        fields = fields_of(line)
        own = dict(attributes_of(fields_of(wanted).get("attributes")))
        made = dict(attributes_of(fields.get("attributes")))
        for setting, attribute in ATTRIBUTES.items():
            if own.get(attribute) != made.get(attribute):
                found[setting, kind_of(fields)] += 1
    return found


def reported_applied(report):
    found = Counter()
    for kernel in report["kernels"]:
        for entry in kernel["settings"]:
            if entry["outcome"] == "applied" and entry["reason"] == "":
                for kind, count in entry["launches_by_kind"].items():
                    found[entry["setting"], kind] += count
    return found


def check_sums(report, full):
    """Parts add up. full: kernels to the settings that a rule decides on at each of their launches."""
    expect(report["launches"] == sum(kernel["launches"] for kernel in report["kernels"]),
           "the launches of all kernels are not the launches")
    for kernel in report["kernels"]:
        expect(kernel["launches"] == sum(kernel["launches_by_kind"].values()),
               f"{kernel['name']}: kinds do not add up")
        sums = Counter()
        for entry in kernel["settings"]:
            expect(entry["launches"] == sum(entry["launches_by_kind"].values()),
                   f"{kernel['name']}: kinds of {entry['setting']} do not add up")
            for kind, count in entry["launches_by_kind"].items():
                sums[entry["setting"], kind] += count
        for (setting, kind), count in sums.items():
            expect(count <= kernel["launches_by_kind"][kind],
                   f"{kernel['name']}: more outcomes of {setting} than launches")
        for setting in full.get(kernel["name"], ()):
            for kind in ("eager", "captured", "node"):
                expect(sums[setting, kind] == kernel["launches_by_kind"][kind],
                       f"{kernel['name']}: {sums[setting, kind]} outcomes of {setting}, "
                       f"{kernel['launches_by_kind'][kind]} launches ({kind})")


def check_routes(report, reference):
    """Entry points were called as often as the application called them."""
    calls = Counter(group.symbol for group in reference.groups
                    if group.lines and group.through)
    for route in report["routes"]:
        if not route["entry"].startswith("cuGetProcAddress"):
            expect(route["calls"] == calls[route["entry"]],
                   f"{route['entry']}: {route['calls']} calls, not {calls[route['entry']]}")
    seen = {route["entry"] for route in report["routes"]}
    missing = [name for name in LAUNCHES if calls[name] and name not in seen]
    expect(not missing, f"not reported: {missing}")


def check_launches(report, reference, names_known=True, kinds_known=True, replays_known=True):
    """Every launch is counted, under its kernel and kind as far as the driver told them. Launches of what
    is no function may be counted under no name, or not at all."""
    wanted, found = launches_of(reference), reported(report)
    kinds = [("eager",), ("captured",), ("node",)] if kinds_known else [("eager", "captured"), ("node",)]
    if replays_known:
        kinds.append(("replayed",))
    for group in kinds:
        least = sum(wanted[kernel, kind] for kernel, kind in wanted if kind in group and kernel)
        most = least + sum(wanted[None, kind] for kind in group)
        count = sum(found[kernel, kind] for kernel, kind in found if kind in group)
        expect(least <= count <= most, f"{count} launches {group}, not {least} to {most}")
    if not names_known or not kinds_known:
        return
    for (kernel, kind), count in wanted.items():
        if kernel is not None and (kind,) in kinds:
            expect(found[kernel, kind] == count,
                   f"{kernel}: {found[kernel, kind]} launches {kind}, not {count}")


def check_applied(report, pairs):
    """What is said to be applied is what the driver was given."""
    wanted, found = applied_of(pairs), reported_applied(report)
    for setting in ATTRIBUTES:
        for kind in ("eager", "captured"):
            expect(wanted[setting, kind] == found[setting, kind],
                   f"{setting}: applied to {found[setting, kind]} launches {kind}, "
                   f"the driver saw {wanted[setting, kind]}")


# Settings that no stream rule has: where a node has them, its kernel's rule gave them.
KERNELS_ALONE = ("cluster_dim", "preferred_cluster_dim", "cluster_scheduling", "shared_memory_carveout")


def check_replayed(report, record, reference):
    """Nothing is said to be applied to nodes that were run without it."""
    found, claimed = Counter(), reported_applied(report)
    lines, others = ([line for line in of.lines() if line.startswith("node=")]
                     for of in (record, reference))
    for line, other in zip(lines, others):
        made, own = (dict(attributes_of(fields_of(text).get("attributes"))) for text in (line, other))
        for setting in KERNELS_ALONE:
            found[setting] += made.get(ATTRIBUTES[setting]) != own.get(ATTRIBUTES[setting])
    for setting in KERNELS_ALONE:
        expect(claimed[setting, "replayed"] <= found[setting],
               f"{setting}: applied to {claimed[setting, 'replayed']} replayed launches, "
               f"{found[setting]} ran with it")


def check_streams(report, record):
    """What is said of streams at their creation is what became of the library's calls."""
    wanted, found = Counter(), Counter()
    keys = {attribute: setting for setting, attribute in ATTRIBUTES.items()}
    for group in record.groups:
        if not CREATIONS.intersection(map(symbol_of, group.lines)) or not group.through:
            continue
        for line in group.lines:
            if symbol_of(line) == "cuStreamSetAttribute":
                fields = fields_of(line)
                outcome = "applied" if fields["result"] == "0" else "refused"
                wanted[keys[fields["attribute"].split(":")[0]], outcome] += 1
    for stream in report["streams"]:
        for entry in stream["settings"]:
            if stream["kind"] == "created" and entry["setting"] != "priority" \
                    and entry["reason"] in ("", "refused by the driver"):
                found[entry["setting"], entry["outcome"]] += stream["count"]
    for key in set(wanted) | set(found):
        expect(wanted[key] == found[key],
               f"{key}: {found[key]} streams, the driver was asked for {wanted[key]}")
