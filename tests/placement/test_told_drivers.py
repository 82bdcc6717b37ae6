# SPDX-License-Identifier: Apache-2.0
"""Partitions on drivers and devices of every kind, and what the report and the command say of them."""

import os
import subprocess
import tempfile

from told import BEGIN, END, KERNELS, PARTITIONS, SIDE, WHOLE, Ran, equal, expect, main, on_streams, same, test
from support import SANITIZER, Skip

POLICY = KERNELS + "[stream placed]\nflags = non_blocking\npartition = side\ngraph_nodes = yes\n"

LINES = BEGIN + """
stream s0 1
stream s1 0
launch s0 plain
launch s1 to_side
launch s1 to_main
launch null to_side
about s0
graph g0
node n0 g0 to_side form=kernel
about_node n0
instantiate x0 g0
replay x0 s1
executable_destroy x0
graph_destroy g0
destroy s0
destroy s1
""" + END


def facts(ran, name, device=0):
    found = ran.report["facts"][f"partition.{name}.{device}"]
    return found["requested"], found["granted"], found["reason"]


# ---- Drivers ---------------------------------------------------------------------------------------

@test
def every_driver_from_12_5_on_makes_partitions():
    for version in ("12050", "12080", "13000", "13010", "13020", "13040"):
        ran = same(LINES, POLICY, RECORDING_DRIVER_VERSION=version)
        equal([sms for _, sms in ran.launches], [SIDE, SIDE, 116, SIDE], version)
        equal(ran.replayed, [("to_side", SIDE)], version)
        equal((facts(ran, "side"), facts(ran, "main")), (("16", "16", ""), ("rest", "116", "")), version)
        new = int(version) >= 13010
        equal(len(ran.calls("cuDevSmResourceSplit")) > 0, new, version)
        equal(len(ran.calls("cuDevSmResourceSplitByCount")) > 0, not new, version)


@test
def drivers_before_12_5_refuse_and_say_so():
    for version in ("12000", "12040"):
        ran = same(LINES, POLICY, quiet=False, RECORDING_DRIVER_VERSION=version)
        equal({sms for _, sms in ran.launches + ran.replayed}, {WHOLE}, version)
        ran.fate("to_side", "refused", "driver too old")
        expect(("refused", "driver too old") in ran.stream_fates(), ran.stream_fates())
        expect(ran.err.count("\n") <= 2, f"more than a line for each partition\n{ran.err}")


@test
def a_driver_that_lacks_one_of_the_functions_refuses():
    for name in ("cuGreenCtxStreamCreate", "cuCtxFromGreenCtx", "cuDevResourceGenerateDesc", "cuGreenCtxCreate",
                 "cuGreenCtxDestroy", "cuDeviceGetDevResource"):
        ran = same(LINES, POLICY, quiet=False, RECORDING_DRIVER_HIDE=name)
        equal({sms for _, sms in ran.launches + ran.replayed}, {WHOLE}, name)
        ran.fate("to_side", "refused", "driver too old")


# ---- Devices ---------------------------------------------------------------------------------------

@test
def processes_with_fewer_sms_share_those():
    half = POLICY.replace("sm_count = 16", "sm_count = 50%")
    ran = same(LINES, half, RECORDING_DRIVER_USABLE_SMS="66")
    equal(facts(ran, "side"), ("50% (33)", "32", ""))
    equal(facts(ran, "main"), ("rest", "34", ""))
    equal([sms for _, sms in ran.launches], [32, 32, 34, 32])
    for version in ("13000", "13040"):
        ran = same(LINES, POLICY, quiet=False, RECORDING_DRIVER_SMS="14", RECORDING_DRIVER_VERSION=version)
        equal(facts(ran, "side"), ("16", "0", "not enough SMs left on the device"))
        expect("not enough SMs left" in ran.err, ran.err)
        ran = same(LINES, POLICY.replace("= 16", "= 8"), quiet=False, RECORDING_DRIVER_SMS="14",
                   RECORDING_DRIVER_VERSION=version)
        equal(facts(ran, "side"), ("8", "8", ""))
        equal(ran.launches[:2], [("plain", 8), ("to_side", 8)])


DOMAINS = """[policy]
version = 1
[partition first]
locality_domain = 0
coscheduled_sm_count = 2
[partition second]
locality_domain = 1
coscheduled_sm_count = 2
[partition others]
sm_count = rest
[kernel a]
name = to_side
partition = first
[kernel b]
name = to_main
partition = second
[kernel c]
name = plain
partition = others
[stream s]
index = 0
locality_domain = 1
"""

IN_DOMAINS = BEGIN + """
stream s0 1
stream s1 1
launch s1 to_side
launch s1 to_main
launch s0 eager
launch s0 to_side
about s0
destroy s0
destroy s1
""" + END


def sets(ran):
    return [line["sm_set"] for line in ran.record if line.symbol.startswith("cuLaunchK")]


@test
def locality_domains_are_partitions_on_drivers_that_have_them():
    domains = DOMAINS.replace("[stream s]\nindex = 0\nlocality_domain = 1\n",
                              "[stream s]\nindex = 0\npartition = second\n")
    ran = same(IN_DOMAINS, domains, quiet=False, RECORDING_DRIVER_VERSION="13040", RECORDING_DRIVER_SMS="148",
               RECORDING_DRIVER_LOCALITY_DOMAINS="70,70")
    equal(sets(ran), ["0-69", "70-139", "70-139", "0-69"])
    equal(facts(ran, "first"), ("locality domain 0", "70", ""))
    equal(facts(ran, "others")[1], "8")
    ran = same(IN_DOMAINS, domains, quiet=False, RECORDING_DRIVER_VERSION="13040", RECORDING_DRIVER_SMS="148",
               RECORDING_DRIVER_LOCALITY_DOMAINS="72,64", RECORDING_DRIVER_LOCALITY_DOMAIN_SMS="64")
    equal(sets(ran)[1:3], ["72-135"] * 2)
    expect(set(sets(ran)[0].split("-")) <= {"0", "63", "71"}, sets(ran))


@test
def the_short_form_of_a_domain_is_a_partition_too():
    short = "[policy]\nversion = 1\n[kernel a]\nname = to_side\nlocality_domain = 1\n" \
        "[stream s]\nindex = 0\nlocality_domain = 0\n"
    ran = same(IN_DOMAINS, short, quiet=False, RECORDING_DRIVER_VERSION="13040", RECORDING_DRIVER_SMS="144",
               RECORDING_DRIVER_LOCALITY_DOMAINS="72,72")
    equal(sets(ran), ["72-143", "0-143", "0-71", "72-143"])


@test
def a_domain_that_the_device_does_not_have_is_refused():
    short = "[policy]\nversion = 1\n[kernel a]\nname = to_side\nlocality_domain = 2\n"
    ran = same(IN_DOMAINS, short, quiet=False, RECORDING_DRIVER_VERSION="13040", RECORDING_DRIVER_SMS="144",
               RECORDING_DRIVER_LOCALITY_DOMAINS="72,72")
    ran.fate("to_side", "refused", "no such locality domain on the device")


@test
def a_locality_rule_elsewhere_is_refused_with_one_line():
    for variables in ({"RECORDING_DRIVER_VERSION": "13000"}, {"RECORDING_DRIVER_VERSION": "13040"},
                      {"RECORDING_DRIVER_VERSION": "12050"}):
        ran = same(IN_DOMAINS, DOMAINS, quiet=False, **variables)
        ran.fate("to_side", "refused", "the device has no locality domains")
        lines = [line for line in ran.err.splitlines() if "domain" in line]
        equal(len(lines), 1, ran.err)
        expect("device 0 has no locality domains" in lines[0], lines)


@test
def locality_domains_are_rehearsed():
    ran = same(IN_DOMAINS, DOMAINS, quiet=False, CUDAPOLICY_FAKE_LOCALITY_DOMAINS="2")
    ran.fate("to_side", "applied")
    equal(ran.report["facts"]["partitions"]["fake_locality_domains"], "2")
    equal(ran.err.count("rehearsal"), 1, ran.err)
    first, second = sets(ran)[:2]
    expect(first != second and first != "0-131", sets(ran))


@test
def several_devices_have_facts_of_their_own():
    ran = same("retain c1 1\ncurrent c1\nload\nlaunch null to_side\n" + LINES.replace(
        "live", "release 1\nlive"), POLICY,
               RECORDING_DRIVER_DEVICES="2")
    equal(facts(ran, "side", 1), facts(ran, "side", 0))


# ---- The report and the command --------------------------------------------------------------------

def command(*arguments, **variables):
    environment = dict({name: value for name, value in os.environ.items() if not name.startswith("CUDAPOLICY_")},
                       LD_LIBRARY_PATH=os.environ["CUDAPOLICY_TEST_DRIVER"],
                       CUDAPOLICY_LIBRARY=os.environ["CUDAPOLICY_TEST_LIBRARY"], LC_ALL="C", **variables)
    done = subprocess.run([os.environ["CUDAPOLICY_TEST_COMMAND"], *arguments], env=environment, check=False,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          timeout=60)
    return done.returncode, done.stdout, done.stderr


@test
def the_table_of_run_counts_what_became_of_partitions():
    if SANITIZER:
        raise Skip("the command cannot load a sanitizer's run-time library before the library")
    with tempfile.TemporaryDirectory() as folder:
        policy, script = os.path.join(folder, "p.ini"), os.path.join(folder, "script")
        with open(policy, "w", encoding="utf-8") as file:
            file.write(POLICY)
        with open(script, "w", encoding="utf-8") as file:
            file.write("\n".join(line for line in LINES.splitlines() if line)
                       .replace("launch s1 to_main", "launch s1 to_main\nlaunch s1 to_side grid=600") + "\n")
        status, out, err = command("run", "-p", policy, "--", os.path.join(os.environ["CUDAPOLICY_TEST_STRESS"],
                                                                        "placement_told"),
                                   script, os.path.join(folder, "results"))
        equal((status, out), (0, ""), err)
        rows = {line[:14].strip(): line.split() for line in err.splitlines()}
        expect("kernel side" in rows, err)
        expect("1 (would not be co-resident)" in err, err)
        expect(any(line.startswith("stream placed") and "1 stream " in line for line in err.splitlines()), err)
        status, out, err = command("explain", "-p", policy, "--kernel", "to_side")
        equal(status, 0, err)
        expect("partition = side" in out and "sm_count = 16" in out, out)


@test
def counts_by_reason_add_up():
    ran = same(BEGIN + "stream s0 1\nstream s1 0\n" + "launch s1 to_side\n" * 5 + "launch s1 to_side grid=600\n" * 3
               + "launch null to_main\n" * 2 + "launch s1 to_main\n" * 4 + "launch s0 plain\n" * 6
               + "launch s0 plain grid=600\n" * 2 + "destroy s0\ndestroy s1\n" + END, POLICY)
    rules = {rule["name"]: rule for rule in ran.report["rules"]}
    equal((rules["side"]["launches"], rules["side"]["applied"], rules["side"]["refused"]),
          (8, 5, {"would not be co-resident": 3}))
    equal((rules["main"]["launches"], rules["main"]["applied"], rules["main"]["refused"]),
          (6, 4, {"legacy stream": 2}))
    equal(rules["placed"]["on_streams"]["applied"], 1)
    fates = {(fate["outcome"], fate["reason"]): fate["launches"] for one in ran.report["kernels"]
             if one["name"] == "plain" for fate in one["settings"]}
    equal(fates, {("applied", ""): 6, ("refused", "would not be co-resident"): 2})


if __name__ == "__main__":
    main()
