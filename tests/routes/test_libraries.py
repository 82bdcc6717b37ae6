# SPDX-License-Identifier: Apache-2.0
"""Whose launch it is: the selector `library` and the report, for every way to a runtime and a driver."""

import os

import support
from support import expect, expect_equal, test


def kernels(way, copy=None):
    return support.program(f"libroutes_kernels_{way}_{copy}.so" if copy else f"routes_kernels_{way}")


def policy_for(library):
    """Kernels and streams of one library go to the remote domain."""
    return f"""[policy]
version = 1

[kernel of-that-library]
library = {library}
mem_sync_domain = remote

[stream of-that-library]
library = {library}
mem_sync_domain = remote
"""


NODE_CALLS = ("cuGraphAddKernelNode_v2", "cuGraphKernelNodeSetParams_v2")


def domains(result, kernel):
    """Of the three launches of a kernel, in the order they were made."""
    return [call.attribute("MEM_SYNC_DOMAIN") for call in result.launches()
            if call.get("kernel") == kernel]


def expect_covered(result, kernel, covered):
    wanted = ["1"] * 3 if covered else [None] * 3
    expect_equal(result.status, 0, result)
    expect(domains(result, kernel) == wanted, f"{kernel}: {domains(result, kernel)}", result)


def expect_library(result, kernel, library):
    """In the report: of the launches and nodes of the kernel."""
    expect_equal(result.libraries().get(kernel), {library}, result)


def expect_streams_and_nodes(result, streams, nodes):
    """How many streams and nodes were put into the remote domain."""
    expect_equal(len([call for call in result.named("cuStreamSetAttribute")
                      if "MEM_SYNC_DOMAIN:1" in call["line"]]), streams, result)
    expect_equal(len([call for call in result.named("cuGraphKernelNodeSetAttribute")
                      if "MEM_SYNC_DOMAIN:1" in call["line"]]), nodes, result)


def run(way, library, plugin, **environment):
    """A program or a library with kernels of its own, under a policy for that library."""
    variables = {"KERNELS_RUNTIME": "libcudart.so.13", **environment}
    if plugin:
        return support.run("routes_host", "local", kernels(way, "a"), "kernel",
                           policy=policy_for(library), env=variables)
    return support.run(kernels(way), "kernel", policy=policy_for(library), env=variables)


for way in ("13", "12", "static", "loaded"):
    def of_program(way=way):
        result = run(way, f"routes_kernels_{way}", False)
        expect_covered(result, "kernel", True)
        expect_library(result, "kernel", f"routes_kernels_{way}")
        expect_streams_and_nodes(result, 1, 1)
    of_program.__name__ = f"a_launch_of_a_program_is_the_programs_own_{way}"
    test(of_program)

    def of_plugin(way=way):
        result = run(way, f"libroutes_kernels_{way}_a.so", True)
        expect_covered(result, "kernel", True)
        expect_library(result, "kernel", f"libroutes_kernels_{way}_a.so")
        expect_streams_and_nodes(result, 1, 1)
    of_plugin.__name__ = f"a_launch_of_a_loaded_library_is_that_librarys_{way}"
    test(of_plugin)

    def of_nobody_else(way=way):
        result = run(way, "lib*cudart*", True)
        expect_covered(result, "kernel", False)
        expect_streams_and_nodes(result, 0, 0)
    of_nobody_else.__name__ = f"no_launch_is_the_runtimes_own_{way}"
    test(of_nobody_else)


@test
def a_runtime_that_a_wheel_renamed_is_a_runtime():
    with support.Folder() as folder:
        path = os.path.join(folder, "libcudart-0123abcd.so.13")
        os.symlink(os.path.join(support.RUNTIME_13, "libcudart.so.13"), path)
        result = run("loaded", "libroutes_kernels_loaded_a.so", True, KERNELS_RUNTIME=path)
    expect_covered(result, "kernel", True)
    expect_library(result, "kernel", "libroutes_kernels_loaded_a.so")


@test
def a_runtime_that_a_wheel_renamed_serves_the_library_that_is_linked_with_it():
    result = run("renamed", "libroutes_kernels_renamed_a.so", True)
    expect_covered(result, "kernel", True)
    expect_streams_and_nodes(result, 1, 1)


@test
def two_versions_of_the_runtime_in_the_global_scope_are_told_apart():
    # Each kernel is known to its own runtime only.
    for version in ("12", "13"):
        result = support.run("routes_both", policy=policy_for(f"libroutes_kernels_on_{version}.so"))
        expect_covered(result, "first", version == "12")
        expect_covered(result, "second", version == "13")


def several(mode, libraries, library, **environment):
    arguments = [argument for path, kernel in libraries for argument in (path, kernel)]
    return support.run("routes_several", mode, *arguments, policy=policy_for(library),
                       env={"KERNELS_RUNTIME": "libcudart.so.13", **environment})


@test
def two_libraries_on_one_runtime_are_told_apart():
    result = several("keep", [(kernels("13", "a"), "first"), (kernels("13", "b"), "second")],
                     "libroutes_kernels_13_b.so")
    expect_covered(result, "first", False)
    expect_covered(result, "second", True)
    expect_library(result, "first", "libroutes_kernels_13_a.so")
    expect_library(result, "second", "libroutes_kernels_13_b.so")


@test
def several_static_runtimes_are_told_apart():
    result = several("keep", [(kernels("static", "a"), "first"), (kernels("static", "b"), "second")],
                     "libroutes_kernels_static_b.so")
    expect_covered(result, "first", False)
    expect_covered(result, "second", True)


@test
def two_versions_of_the_runtime_in_one_process_are_told_apart():
    for first, second in (("12", "13"), ("13", "12")):
        result = several("keep", [(kernels(first, "a"), "first"), (kernels(second, "b"), "second")],
                         f"libroutes_kernels_{second}_b.so")
        expect_covered(result, "first", False)
        expect_covered(result, "second", True)
        expect_library(result, "first", f"libroutes_kernels_{first}_a.so")
        expect_library(result, "second", f"libroutes_kernels_{second}_b.so")


@test
def every_runtime_of_a_process_is_attached():
    result = several("keep", [(kernels("12", "a"), "k1"), (kernels("13", "a"), "k2"),
                              (kernels("static", "a"), "k3"), (kernels("static", "b"), "k4"),
                              (kernels("loaded", "a"), "k5")], "libroutes_kernels_*")
    for kernel in ("k1", "k2", "k3", "k4", "k5"):
        expect_covered(result, kernel, True)


@test
def a_library_in_the_place_of_one_that_was_unloaded_is_not_taken_for_it():
    for way in ("13", "static"):
        result = several("close", [(kernels(way, "a"), "first"), (kernels(way, "b"), "second"),
                                   (kernels(way, "a"), "third")], f"libroutes_kernels_{way}_b.so")
        expect_covered(result, "first", False)
        expect_covered(result, "second", True)
        expect_covered(result, "third", False)


@test
def a_runtime_that_was_unloaded_and_comes_back_is_reached():
    for way in ("13", "12", "loaded"):
        libraries = [(kernels(way, "ab"[i % 2]), f"k{i}") for i in range(6)]
        result = several("close", libraries, "libroutes_kernels_*")
        for _, kernel in libraries:
            expect_covered(result, kernel, True)
        plain = support.run("routes_several", "close", *[argument for pair in libraries
                                                         for argument in pair],
                            policy=None, env={"KERNELS_RUNTIME": "libcudart.so.13"})
        expect_equal(plain.status, 0, plain)


@test
def a_library_is_known_when_only_the_runtime_sees_its_launches():
    result = several("keep", [(kernels("13", "a"), "first"), (kernels("13", "b"), "second")],
                     "libroutes_kernels_13_b.so", RECORDING_RUNTIME_BYPASS="1")
    expect_equal(result.status, 0, result)
    expect_equal(domains(result, "first"), [None] * 3, result)
    expect_equal(domains(result, "second"), ["1"] * 3, result)


@test
def a_program_started_by_way_of_the_loader_keeps_its_name():
    loaders = [path for path in ("/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1")
               if os.path.exists(path)]
    if not loaders:
        raise support.Skip("no loader at the usual place")
    result = support.run(loaders[0], kernels("13"), "kernel", raw_path=True,
                         policy=policy_for("routes_kernels_13"))
    expect_covered(result, "kernel", True)


@test
def a_program_with_another_argv0_keeps_the_name_of_its_file():
    result = support.run(kernels("13"), "kernel", raw_path=True, argv0="lib-of-another",
                         policy=policy_for("routes_kernels_13"))
    expect_covered(result, "kernel", True)


@test
def a_launch_on_the_drivers_interface_is_its_callers():
    for program in ("routes_program", "routes_program_linked"):
        result = support.run(program, "launch", "2", policy=policy_for(program))
        expect_equal([call.attribute("MEM_SYNC_DOMAIN") for call in result.launches()], ["1", "1"],
                     result)
        expect_library(result, "program", program)


if __name__ == "__main__":
    support.main()
