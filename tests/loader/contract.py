#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the loader, and every process that has the built library in LD_PRELOAD, can rely on.

usage: contract.py LIBRARY TABLE READELF LIBC
TABLE is entries.def with its rows reduced to "driver NAME" and "runtime NAME"; LIBC the C library that
the build machine has. Prints TAP.
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile

BASELINE = (2, 31)
RUNTIME_NODES = {"libcudart.so.11.0", "libcudart.so.12", "libcudart.so.13"}
DLSYM_VERSIONS = {"X86-64": {"GLIBC_2.2.5", "GLIBC_2.34"}, "AArch64": {"GLIBC_2.17", "GLIBC_2.34"}}
LIBDL = {"dladdr", "dladdr1", "dlclose", "dlerror", "dlinfo", "dlmopen", "dlopen", "dlsym", "dlvsym"}
# References that every shared object of gcc and clang has; nobody need define them.
OF_THE_COMPILER = {"__gmon_start__", "_ITM_deregisterTMCloneTable", "_ITM_registerTMCloneTable"}
STATIC_TLS_LIMIT = 256  # bytes; the loader keeps some 1,600 for all libraries loaded late

library, table_path, readelf_path, libc_path = sys.argv[1:]


def readelf(*options, path=library):
    return subprocess.run([readelf_path, "--wide", *options, path], check=True,
                          stdout=subprocess.PIPE, text=True).stdout


def symbols(path=library):
    """(name, version or "", is_defined) of each dynamic symbol; not the names of the versions."""
    for line in readelf("--dyn-syms", path=path).splitlines():
        fields = line.split()
        if (len(fields) < 8 or not fields[0].rstrip(":").isdigit() or fields[4] == "LOCAL"
                or "ABS" in fields[6:8]):
            continue
        name = next((field for field in fields[7:] if "@" in field), fields[7])
        name, _, version = name.replace("@@", "@").partition("@")
        yield name, version, "UND" not in fields[6:8]


def glibc_number(version):
    match = re.fullmatch(r"GLIBC_([\d.]+)", version)
    return tuple(map(int, match.group(1).split("."))) if match else None


dynamic = readelf("--dynamic")
segments = readelf("--program-headers")
machine = re.search(r"Machine:.*(X86-64|AArch64)", readelf("--file-header")).group(1)
all_symbols = list(symbols())
undefined = {(name, version) for name, version, defined in all_symbols if not defined}
exported = {(name, version) for name, version, defined in all_symbols if defined}
entries = [line.split() for line in open(table_path) if line.strip()]
driver_names = {name for kind, name in entries if kind == "driver"}
runtime_names = {name for kind, name in entries if kind == "runtime"}


def dynamic_values(tag):
    return re.findall(rf"\({tag}\).*\[(.*)\]", dynamic)


def run(command, preload, **variables):
    environment = {"PATH": os.environ.get("PATH", "/bin:/usr/bin"), "LC_ALL": "C", **variables}
    if preload:
        environment["LD_PRELOAD"] = os.path.abspath(library)
    return subprocess.run(command, env=environment, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60)


def difference(is_set, should_be):
    return "; ".join(f"{word}: {' '.join(sorted(map(str, items)))}" for word, items in
                     (("missing", should_be - is_set), ("too many", is_set - should_be)) if items)


checks = []


def check(function):
    """Marks a check: it returns what is wrong, nothing when all is well."""
    checks.append(function)
    return function


@check
def only_libc_and_libdl_are_needed():
    return difference(set(dynamic_values("NEEDED")), {"libc.so.6", "libdl.so.2"})


@check
def no_search_path_is_set():
    return " ".join(dynamic_values("RPATH") + dynamic_values("RUNPATH"))


@check
def no_cuda_function_is_undefined():
    return " ".join(sorted(name for name, _ in undefined if re.match(r"(cu|__cu|nv)", name)))


@check
def every_undefined_symbol_is_in_glibc_2_31():
    return " ".join(sorted(f"{name}@{version}" for name, version in undefined
                           if name not in OF_THE_COMPILER
                           and (glibc_number(version) or (99,)) > BASELINE))


@check
def no_undefined_symbol_was_in_another_library_before_glibc_2_34():
    # Those have a second version, that of the merge into libc.
    merged = {name for name, version, _ in symbols(libc_path)
              if glibc_number(version) and BASELINE < glibc_number(version) <= (2, 34)}
    return " ".join(sorted(name for name, _ in undefined if name in merged - LIBDL))


@check
def dlsym_is_exported_at_its_glibc_versions():
    return difference({version for name, version in exported if name == "dlsym"},
                      DLSYM_VERSIONS[machine])


@check
def the_driver_functions_of_the_table_are_exported():
    return difference({name for name, _ in exported if re.match(r"cu[A-Z]", name)}, driver_names)


@check
def the_runtime_functions_of_the_table_are_exported_for_each_libcudart():
    return difference({(name, version) for name, version in exported
                       if re.match(r"(__)?cuda", name)},
                      {(name, node) for name in runtime_names for node in RUNTIME_NODES})


@check
def nothing_else_is_exported():
    return " ".join(sorted(f"{name}@{version}" for name, version in exported
                           if name not in driver_names | runtime_names | {"dlsym"}))


@check
def text_is_not_relocated():
    return "TEXTREL" if "TEXTREL" in dynamic else ""


@check
def the_stack_is_not_executable():
    stack = re.search(r"GNU_STACK.*", segments)
    return "" if stack and "E" not in stack.group(0).split()[-2] else "executable stack"


@check
def relocations_are_done_at_start_and_then_read_only():
    return " ".join(word for word, there in (("no BIND_NOW", "NOW" in dynamic),
                                             ("no RELRO", "GNU_RELRO" in segments)) if not there)


@check
def static_thread_local_storage_is_small():
    tls = re.search(r"^\s+TLS\s+(.*)", segments, re.MULTILINE)
    size = int(tls.group(1).split()[4], 16) if tls else 0
    return f"{size} bytes" if size > STATIC_TLS_LIMIT else ""


@check
def a_program_without_cuda_runs_silently_and_reads_no_policy():
    with tempfile.TemporaryDirectory() as folder:
        policy = pathlib.Path(folder, "broken.ini")
        policy.write_text("[no such section]\n")
        before = set(os.listdir(folder))
        result = run(["/bin/true"], True, CUDAPOLICY_FILE=str(policy), CUDAPOLICY_STRICT="1",
                     CUDAPOLICY_LOG="debug", CUDAPOLICY_LOG_FILE=f"{folder}/log",
                     CUDAPOLICY_REPORT=f"{folder}/report.json")
        made = set(os.listdir(folder)) - before
    return " ".join([f"status {result.returncode}"] * (result.returncode != 0)
                    + [(result.stdout + result.stderr).decode(errors="replace").strip()]
                    + sorted(made)).strip()


@check
def a_program_without_cuda_has_the_same_threads_and_open_files():
    command = ["/bin/sh", "-c", 
               "ls /proc/self/task | wc -l | sed 's/^/threads /'; ls /proc/self/fd | sed 's/^/file /'"]
    return difference(set(run(command, True).stdout.decode().splitlines()),
                      set(run(command, False).stdout.decode().splitlines()))


def main():
    print(f"1..{len(checks)}")
    failed = False
    for number, function in enumerate(checks, 1):
        wrong = function()
        failed = failed or bool(wrong)
        print(f"{'not ok' if wrong else 'ok'} {number} - {function.__name__}")
        if wrong:
            print(f"# {wrong}")
    return failed


sys.exit(main())
