# SPDX-License-Identifier: Apache-2.0
"""Many threads under the preload (load.c): the report counts what they did, exactly.

Threads launch on several devices and streams while others load and unload modules, make streams and
graphs, one forks, and another process changes the mode and has the policy read again. CUDAPOLICY_TEST_SCALE, in percent, makes all of it
shorter, for builds with sanitizers.
"""

import os
import subprocess
from collections import Counter

import counts
from record import expect
from support import LONG, PROGRAMS, SANITIZER, main, run, test

with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "load.ini"),
          encoding="utf-8") as file:
    POLICY = file.read()

SCALE = int(os.environ.get("CUDAPOLICY_TEST_SCALE", "100"))

# What an allocator may keep beside what is in use.
GROWTH_KIB = 1024

LIMIT_S = 1200 if LONG or SANITIZER else 300

# Kernels on whose every launch a rule decides.
FULL = {"work_domain": ("mem_sync_domain", "mem_sync_domain_map"),
        "work_cluster": ("mem_sync_domain", "cluster_dim"), "work_priority": ("priority",)}
FULL.update({f"churn_{i}_ruled": ("mem_sync_domain", "cluster_dim") for i in range(8)})


def scaled(number):
    return str(max(number * SCALE * (10 if LONG else 1) // 100, 20))


def load(launchers, launches, loads, streams, graphs, fork=0, **variables):
    return run("stress_load", "@FOLDER@", str(launchers), *(scaled(number) if number else "0" for number in
               (launches, loads, streams, graphs)), str(fork), policy=POLICY, limit=LIMIT_S,
               RECORDING_DRIVER_DEVICES="4", CUDAPOLICY_REPORT="@FOLDER@/report-%p.json", **variables)


def expected(text):
    found = Counter()
    for line in text.splitlines():
        kernel, kind, count = line.split()
        if int(count):
            found[kernel, kind] = int(count)
    return found


def check_report(result, report, full):
    """The report of one process against what it wrote down itself."""
    wanted = expected(result.files[f"expected-{report['process']['pid']}"])
    found = Counter({key: count for key, count in counts.reported(report).items() if count})
    for key in sorted(set(wanted) | set(found)):
        expect(found[key] == wanted[key], f"{key}: {found[key]} launches, {wanted[key]} were made")
    counts.check_sums(report, full)
    expect(report["complete"] and not report["partial"], "the report is not complete")
    expect(not any(report["overflow"].values()), f"overflow: {report['overflow']}")


def check(result, processes=1, full=None):
    expect(result.status == 0, f"status {result.status}\n{result.err}")
    expect(result.err == "", result.err)
    expect(len(result.reports) == processes, f"{len(result.reports)} reports of {processes} processes")
    for report in result.reports:
        check_report(result, report, FULL if full is None else full)


@test
def launches_of_64_threads_beside_modules_streams_and_graphs_are_all_counted():
    check(load(64, 10000, 100000, 3000, 1500))


@test
def modules_that_come_and_go_leave_no_memory_behind():
    result = load(0, 0, 100000, 0, 0)
    check(result)
    early, late = (int(text) for text in result.files["memory"].split())
    print(f"# {early} KiB, later {late} KiB")
    expect(SANITIZER or late - early <= GROWTH_KIB, f"memory grew from {early} to {late} KiB")


@test
def a_child_forked_in_the_middle_has_a_report_of_its_own():
    # A sanitizer's run-time library has locks that fork does not take.
    check(load(16, 10000, 40000, 1000, 500, fork=2 if SANITIZER else 1), processes=2)


@test
def counts_stay_right_while_mode_and_policy_change():
    control = []

    def start(folder):
        control.append(subprocess.Popen(
            [os.path.join(PROGRAMS, "stress_control"), os.path.join(folder, "report.json.counters")],
            stdout=subprocess.PIPE, text=True))

    try:
        result = run("stress_load", "@FOLDER@", "16", scaled(20000), scaled(80000), scaled(2000), scaled(1000),
                     "0", policy=POLICY, limit=LIMIT_S, started=start, RECORDING_DRIVER_DEVICES="4")
        changes, _ = control[0].communicate(timeout=60)
    finally:
        control[0].kill()
    changes, reloads = (int(number) for number in changes.split())
    print(f"# {changes} changes, {reloads} reloads")
    expect(changes > 0, "the mode was never changed")
    expect(reloads > 0, "the policy was never read again")
    check(result, full={})


if __name__ == "__main__":
    main()
