# SPDX-License-Identifier: Apache-2.0
"""Every driver function of the table of entry points, through every route that leads to it."""

import sys

import support

PLUGIN = support.program("libroutes_matrix_plugin.so")

# (route, program, arguments before the route)
ROUTES = [
    ("dlsym-local", "plain"),
    ("dlsym-global", "plain"),
    ("dlsym-default", "plain"),
    ("resolver-v1", "plain"),
    ("resolver-v2", "plain"),
    ("resolver-legacy-flag", "plain"),
    ("resolver-of-resolver-v1", "plain"),
    ("resolver-of-resolver-v2", "plain"),
    ("linked", "linked"),
    ("linked-resolver", "linked"),
    ("linked", "plugin"),
    ("dlsym-default", "plugin"),
    ("entry-point", "runtime_13"),
    ("entry-point-by-version", "runtime_13"),
    ("entry-point", "runtime_12"),
    ("entry-point-by-version", "runtime_12"),
    ("entry-point", "runtime_static"),
    ("entry-point-by-version", "runtime_static"),
]

# Exercises need functions, streams and nodes that the library knows, and make them by these; a runtime
# calls cuInit itself.
MADE_FOR_OTHERS = {"cuInit", "cuStreamCreate", "cuGraphAddKernelNode_v2", "cuModuleGetFunction",
                   "cuLibraryGetKernel", "cuGetProcAddress", "cuGetProcAddress_v2"}


# What a recording driver built with older headers does not have.
ABSENT = {"cuGreenCtxStreamCreate"} if support.CUDA_VERSION < 12050 else set()
if support.CUDA_VERSION < 12050:  # nor has the runtime's interface the function behind the route
    ROUTES = [route for route in ROUTES if route[0] != "entry-point-by-version"]

# A driver that has every function of the table.
NEWEST = "13050"


def run(route, way, how, **options):
    environment = {"RECORDING_DRIVER_KEEP": "1", "RECORDING_DRIVER_VERSION": NEWEST,
                   **options.pop("env", {})}
    if way == "plugin":
        return support.run("routes_host", "local", PLUGIN, route, how,
                           policy=support.REMOTE_STREAMS, env=environment, **options)
    return support.run("routes_matrix_" + way, route, how, policy=support.REMOTE_STREAMS,
                       env=environment, **options)


def counted_wrong(result, symbol):
    calls = result.route_calls(symbol)
    if calls == 1 or calls > 1 and symbol in MADE_FOR_OTHERS:
        return ""
    return f"the report has {calls} calls"


def check(tap, title, result, counted=True, old_driver=False):
    """One line a row, and one for the program as a whole."""
    for line in result.out.splitlines():
        symbol, _, outcome = line.partition("\t")
        if outcome == "elsewhere" or outcome == "absent" and (old_driver or symbol in ABSENT):
            continue
        wrong = "" if outcome == "ok" else outcome
        if not wrong and counted:
            wrong = counted_wrong(result, symbol)
        tap.line(f"{title}: {symbol}", wrong)
    tap.line(f"{title}: all rows", "" if result.status == 0 else result)


def main():
    tap = support.Tap()
    for route, way in ROUTES:
        check(tap, f"{way} {route}", run(route, way, "enforced"))
    # Two addresses for one function.
    for route, way in (("dlsym-local", "plain"), ("resolver-v2", "plain"), ("linked", "linked"),
                       ("entry-point", "runtime_static")):
        check(tap, f"distinct pointers {way} {route}",
              run(route, way, "enforced", env={"RECORDING_DRIVER_DISTINCT_POINTERS": "1"}))
    for version in ("12000", "12040", "13000"):
        for route, way in (("dlsym-local", "plain"), ("resolver-v2", "plain"),
                           ("linked", "linked")):
            check(tap, f"driver {version} {way} {route}",
                  run(route, way, "enforced", env={"RECORDING_DRIVER_VERSION": version}),
                  old_driver=True)
    # Nothing is changed: by observe, which still counts; by off; and without us, which shows that the
    # exercises are right.
    for route, way in (("dlsym-local", "plain"), ("resolver-v2", "plain"), ("linked", "linked"),
                       ("linked", "plugin"), ("entry-point", "runtime_13")):
        check(tap, f"observe {way} {route}",
              run(route, way, "untouched", env={"CUDAPOLICY_MODE": "observe"}))
        check(tap, f"off {way} {route}",
              run(route, way, "untouched", env={"CUDAPOLICY_MODE": "off"}), counted=False)
        check(tap, f"without preload {way} {route}",
              run(route, way, "untouched", preload=()), counted=False)
    tap.end()


if __name__ == "__main__":
    sys.exit(main())
