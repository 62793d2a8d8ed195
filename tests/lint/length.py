# SPDX-License-Identifier: Apache-2.0
"""Files of at most 600 lines, functions of at most 60 (clang-format keeps the columns).

What must be longer has a line in length.allow that says why.
"""

import os
import re

import tree

FILE_LINES = 600
FUNCTION_LINES = 60


def allowed():
    """NAME or NAME:FUNCTION, then the reason."""
    path = os.path.join(tree.ROOT, "tests/lint/length.allow")
    result = {}
    with open(path, encoding="utf-8") as file:
        for line in file:
            if line.strip() and not line.startswith("#"):
                name, _, reason = line.strip().partition(" ")
                result[name] = reason.strip()
    return result


def functions(lines):
    """(name, first line, length) of each function: our style opens and closes in column one."""
    start = None
    name = None
    for number, line in enumerate(lines, 1):
        if line == "{":
            start = number
            back = number - 2
            while back >= 0 and lines[back] and not re.match(r"[A-Za-z_].*\(", lines[back]):
                back -= 1
            match = re.search(r"(\w+)\(", lines[back]) if back >= 0 else None
            name = match.group(1) if match else "?"
        elif line == "}" and start is not None:
            yield name, start, number - start - 1
            start = None


def run():
    exceptions = allowed()
    used = set()
    problems = []
    names = tree.sources()
    for name in names:
        lines = tree.read(name).split("\n")
        if len(lines) - 1 > FILE_LINES:
            used.add(name)
            if not exceptions.get(name):
                problems.append(f"{name}: {len(lines) - 1} lines")
        for function, first, length in functions(lines):
            key = f"{name}:{function}"
            if length > FUNCTION_LINES:
                used.add(key)
                if not exceptions.get(key):
                    problems.append(f"{name}:{first}: {function}() has {length} lines")
    problems += [f"length.allow: '{name}' is not needed" for name in exceptions if name not in used]
    return tree.finish(problems, len(names), "length")


tree.main(run)
