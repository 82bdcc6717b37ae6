#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The driver's functions that the library looks up for itself (driver.def) are those that it calls.

usage: driver_table.py SOURCE
SOURCE is the project's folder. Prints TAP.
"""

import pathlib
import re
import sys

# Looked up ahead of their use.
EXPECTED_UNUSED = {"cuStreamGetFlags"}

source = pathlib.Path(sys.argv[1], "src")
table = (source / "cuda" / "driver.def").read_text(encoding="utf-8")
listed = re.findall(r"(?m)^DRIVER\((\w+), \"(\w+)\"", table)
code = "".join(path.read_text(encoding="utf-8") for path in sorted(source.rglob("*.[ch]")))
used = set(re.findall(r"\bcuda_driver(?:\.|->)(\w+)", code))

unused = sorted({member for member, _ in listed} - used - EXPECTED_UNUSED)
twice = sorted({symbol for _, symbol in listed if sum(symbol == s for _, s in listed) > 1})
checks = [("every_function_of_the_table_is_called", unused if listed else ["the table is empty"]),
          ("no_function_stands_in_the_table_twice", twice)]

print(f"1..{len(checks)}")
for number, (name, wrong) in enumerate(checks, 1):
    print(f"{'not ok' if wrong else 'ok'} {number} - {name}")
    if wrong:
        print(f"# {' '.join(wrong)}")
sys.exit(any(wrong for _, wrong in checks))
