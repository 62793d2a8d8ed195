# SPDX-License-Identifier: Apache-2.0
"""Each security requirement is held by at least one test that carries its number.

A test carries Rn when its name has Rn as a word of its own: `R13_quota_is_exact` in cmocka, r13_... in
the integration tests. Prints the table that docs/SECURITY.md refers to.
"""

import re

import tree

# The ones whose subject exists; a number is added here together with its subject.
HELD = [*range(1, 23), 24, 25, 28, 29, 30, 33, 34]

CMOCKA = re.compile(r"static void (\w+)\(void \*\*state\)")
PYTHON = re.compile(r"^def (\w+)\(", re.M)
SHELL = re.compile(r"^(?:ok|check|case_\w+) (\w+)", re.M)


def tests():
    for name in tree.files():
        leaf = name.rsplit("/", 1)[-1]
        if leaf.startswith("test_") and leaf.endswith(".c") or \
                name.startswith("tests/integration/") and leaf.endswith(".c"):
            pattern = CMOCKA
        elif name.startswith("tests/integration/") and leaf.endswith(".py"):
            pattern = PYTHON
        else:
            continue
        for function in pattern.findall(tree.read(name)):
            yield name, function


def run():
    held = {number: [] for number in HELD}
    for name, function in tests():
        for number in re.findall(r"(?:^|_)[rR](\d+)(?=_|$)", function):
            if int(number) in held:
                held[int(number)].append(f"{name}: {function}")
    for number, names in held.items():
        for name in names:
            print(f"R{number}\t{name}")
    problems = [f"R{number}: no test carries its number" for number in HELD if not held[number]]
    return tree.finish(problems, len(HELD), "requirements")


tree.main(run)
