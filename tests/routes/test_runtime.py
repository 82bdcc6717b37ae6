# SPDX-License-Identifier: Apache-2.0
"""Every runtime function of the table of entry points: through each route, applied by each layer."""

import sys

import support

# What the doubles of these versions do not have; everything else of the table must be called.
ABSENT = {
    "13": {"cudaExecutionCtxStreamCreate", "cudaGraphAddNode_v2"},
    "12": {"cudaExecutionCtxStreamCreate", "cudaGraphAddNode", "cudaGraphAddNode_v2",
           "cudaGraphNodeSetParams"},
}
if support.CUDA_VERSION < 13000:
    ABSENT["13"] |= ABSENT["12"]
ABSENT["static"] = ABSENT["13"]

# (route, runtime, in a library that the program loads)
ROUTES = [
    ("linked", "13", False),
    ("linked", "12", False),
    ("linked", "static", False),
    ("linked", "13", True),
    ("linked", "12", True),
    ("linked", "static", True),
    ("dlsym-local", "13", False),
    ("dlsym-local", "12", False),
    ("dlsym-default", "13", False),
    ("dlsym-default", "12", False),
]


def run(route, runtime, plugin, how, layer, **options):
    soname = f"libcudart.so.{runtime}"
    environment = {"RECORDING_DRIVER_KEEP": "1", **options.pop("env", {})}
    if layer == "runtime":
        environment["RECORDING_RUNTIME_BYPASS"] = "1"
    name = runtime if route == "linked" else "plain"
    if plugin:
        library = support.program(f"libroutes_runtime_plugin_{name}.so")
        command = ["routes_host", "local", library]
    else:
        command = [f"routes_runtime_{name}"]
    return support.run(*command, route, soname, how, layer, policy=support.REMOTE_STREAMS,
                       env=environment, **options)


def check(tap, title, result, runtime):
    for line in result.out.splitlines():
        symbol, _, outcome = line.partition("\t")
        if symbol in ABSENT[runtime] and (outcome == "absent" or
                                          outcome == "missing" and support.CUDA_VERSION < 13000):
            continue
        tap.line(f"{title}: {symbol}", "" if outcome == "ok" else outcome)
    tap.line(f"{title}: all rows", "" if result.status == 0 else result)


def title_of(route, runtime, plugin):
    return f"{runtime} {'plugin ' if plugin else ''}{route}"


def main():
    tap = support.Tap()
    for route, runtime, plugin in ROUTES:
        title = title_of(route, runtime, plugin)
        # A static runtime has no wrapper of ours in front: the driver's layer is alone. A shared one
        # has both.
        layers = "driver" if runtime == "static" else "both layers"
        check(tap, f"{layers} {title}", run(route, runtime, plugin, "enforced", "driver"), runtime)
        if runtime != "static":
            result = run(route, runtime, plugin, "enforced", "runtime")
            check(tap, f"runtime layer {title}", result, runtime)
            said = any("do not pass through the driver functions" in note
                       for note in result.notes())
            tap.line(f"runtime layer {title}: the report says so", "" if said else result)
        check(tap, f"observe {title}",
              run(route, runtime, plugin, "untouched", "driver",
                  env={"CUDAPOLICY_MODE": "observe"}), runtime)
        check(tap, f"off {title}",
              run(route, runtime, plugin, "untouched", "driver",
                  env={"CUDAPOLICY_MODE": "off"}), runtime)
    for route, runtime, plugin in ROUTES[:2] + ROUTES[6:8]:
        check(tap, f"without preload {title_of(route, runtime, plugin)}",
              run(route, runtime, plugin, "untouched", "driver", preload=()), runtime)
        check(tap, f"distinct pointers {title_of(route, runtime, plugin)}",
              run(route, runtime, plugin, "enforced", "driver",
                  env={"RECORDING_DRIVER_DISTINCT_POINTERS": "1"}), runtime)
    tap.end()


if __name__ == "__main__":
    sys.exit(main())
