# SPDX-License-Identifier: Apache-2.0
"""What fsbox.h declares, what fsbox.syms exports and what libfsbox(3) names is the same.

usage: check_symbols.py SOURCE_FOLDER
"""

import os
import re
import sys


def read(*parts):
    with open(os.path.join(sys.argv[1], *parts), encoding="utf-8") as file:
        return file.read()


def main():
    header = set(re.findall(r"\b(fsbox_\w+)\(", "".join(
        re.findall(r"^FSBOX_API [^;]*;", read("client", "fsbox.h"), re.M))))
    symbols = re.findall(r"^\t(fsbox_\w+);$", read("client", "fsbox.syms"), re.M)
    manual = set(re.findall(r"\*(fsbox_\w+)\*\(\)", read("docs", "libfsbox.3.scd")))
    problems = []
    for name, other in (("fsbox.syms", set(symbols)), ("libfsbox(3)", manual)):
        problems += [f"{name} lacks {symbol}()" for symbol in sorted(header - other)]
        problems += [f"{name} has {symbol}(), which fsbox.h does not declare"
                     for symbol in sorted(other - header)]
    if symbols != sorted(symbols):
        problems.append("fsbox.syms is not sorted")
    for problem in problems:
        print(problem)
    print(f"symbols: {len(header)} checked, {len(problems)} problems")
    sys.exit(1 if problems else 0)


main()
