# SPDX-License-Identifier: Apache-2.0
"""Every C file is as clang-format-14 leaves it; text files have no trailing blanks.

usage: format.py CLANG_FORMAT
"""

import concurrent.futures
import os
import subprocess
import sys

import tree

TEXT = (".c", ".h", ".py", ".sh", ".md", ".scd", ".build", ".in", ".txt", ".syms")


def formatted(tool, name):
    result = subprocess.run([tool, "--dry-run", "--Werror", name], cwd=tree.ROOT,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if result.returncode == 0:
        return None
    return "\n".join(result.stdout.split("\n")[:3])


def blanks(name):
    for number, line in enumerate(tree.read(name).split("\n"), 1):
        if line != line.rstrip():
            return f"{name}:{number}: blanks at the end of the line"
    return None if tree.read(name).endswith("\n") else f"{name}: no newline at the end"


def run():
    names = tree.sources()
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 2) as pool:
        problems = list(pool.map(lambda name: formatted(sys.argv[1], name), names))
    problems += [blanks(name) for name in tree.sources(*TEXT)
                 if not name.startswith(("tests/vectors/", "tests/golden/", "tests/fuzz/corpus/"))
                 and tree.read(name)]
    return tree.finish([p for p in problems if p], len(names), "format")


tree.main(run)
