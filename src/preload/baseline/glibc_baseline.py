#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes libc.so and libdl.so to link against: glibc as it was at the baseline version.

A library linked against the C library at hand asks for the newest version of each symbol, and then
no older system can load it. The libraries written here have no code. They offer each symbol once, at
its newest version that the baseline had, and nothing that came later; so everything that is linked
against them, static libraries of the distribution included, works from the baseline on, and a
function that the baseline lacks is an error at link time.

glibc 2.32 to 2.34 merged libpthread, libdl, librt and others into libc. Those functions exist twice in
the merged library, at their old version and at the version of the merge. Before it, the old one was
not in libc.so.6, so they are left out; those of libdl go to libdl.so.
"""

import argparse
import pathlib
import re
import subprocess

# The loader's: it is in every process, as what libc.so.6 needs, so it counts as part of libc.
LOADER = {"__stack_chk_guard"}
LIBDL = {"dladdr", "dladdr1", "dlclose", "dlerror", "dlinfo", "dlmopen", "dlopen", "dlsym", "dlvsym"}


def version_number(version):
    """(2, 17) of GLIBC_2.17; None for GLIBC_PRIVATE and markers of the binary interface."""
    match = re.fullmatch(r"GLIBC_(\d+(?:\.\d+)+)", version)
    return tuple(int(part) for part in match.group(1).split(".")) if match else None


def defined_symbols(readelf, library):
    """{name: {version: (is_data, size)}} of the versioned symbols that a library defines."""
    listing = subprocess.run([readelf, "--dyn-syms", "--wide", library], check=True,
                             stdout=subprocess.PIPE, text=True).stdout
    symbols = {}
    for line in listing.splitlines():
        fields = line.split()
        names = [field for field in fields[7:] if "@" in field]
        if len(fields) < 8 or not names or "UND" in fields[6:8] or fields[3] == "TLS":
            continue
        name, version = re.split("@@?", names[0])
        if name != version and version_number(version) and re.fullmatch(r"\w+", name):
            symbols.setdefault(name, {})[version] = (fields[3] == "OBJECT", int(fields[2], 0))
    return symbols


def at_baseline(symbols, baseline, keep_merged):
    """{version: [(name, is_data, size)]}: each symbol at its newest version up to the baseline."""
    older = {name: [version for version in versions if version_number(version) <= baseline]
             for name, versions in symbols.items()}
    merged = {name for name, versions in symbols.items() if 0 < len(older[name]) < len(versions)}
    nodes = {}
    for name, versions in sorted(symbols.items()):
        # __pthread_once came with pthread_once, but did not get a new version.
        if not older[name] or (not keep_merged and {name, name.lstrip("_")} & merged):
            continue
        newest = max(older[name], key=version_number)
        nodes.setdefault(newest, []).append((name, *versions[newest]))
    return nodes


def write_library(compiler, folder, name, soname, nodes):
    assembly, script = [], []
    for version in sorted(nodes, key=version_number):
        script.append(f"{version} {{")
        for symbol, is_data, size in nodes[version]:
            section, kind, body = ((".data", "object", f".zero {max(size, 1)}") if is_data else
                                   (".text", "function", ".byte 0"))
            assembly.append(f"{section}\n.globl {symbol}\n.type {symbol}, %{kind}\n"
                            f"{symbol}: {body}\n.size {symbol}, .-{symbol}")
            script.append(f"    {symbol};")
        script.append("};")
    assembly.append('.section .note.GNU-stack, "", %progbits')
    source, map_file = folder / f"{name}.s", folder / f"{name}.map"
    source.write_text("\n".join(assembly) + "\n")
    map_file.write_text("\n".join(script) + "\n")
    subprocess.run([*compiler, "-shared", "-nostdlib", f"-Wl,-soname,{soname}",
                    f"-Wl,--version-script={map_file}", "-o", folder / f"{name}.so", source],
                   check=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--baseline", required=True, help="such as 2.31")
    parser.add_argument("--readelf", required=True)
    parser.add_argument("--libc", required=True, help="the libc.so.6 at hand")
    parser.add_argument("--libdl", required=True, help="the libdl.so.2 at hand")
    parser.add_argument("--loader", help="ld.so, where it has symbols that compilers refer to")
    parser.add_argument("--folder", required=True, type=pathlib.Path)
    parser.add_argument("compiler", nargs="+")
    arguments = parser.parse_args()

    baseline = tuple(int(part) for part in arguments.baseline.split("."))
    libc = defined_symbols(arguments.readelf, arguments.libc)
    libdl = defined_symbols(arguments.readelf, arguments.libdl)
    if arguments.loader:
        loader = defined_symbols(arguments.readelf, arguments.loader)
        libc.update({name: loader[name] for name in LOADER & loader.keys()})
    for name in LIBDL & libc.keys():
        libdl.setdefault(name, {}).update(libc.pop(name))
    libdl = {name: versions for name, versions in libdl.items() if name in LIBDL}

    write_library(arguments.compiler, arguments.folder, "libc", "libc.so.6",
                  at_baseline(libc, baseline, keep_merged=False))
    write_library(arguments.compiler, arguments.folder, "libdl", "libdl.so.2",
                  at_baseline(libdl, baseline, keep_merged=True))


if __name__ == "__main__":
    main()
