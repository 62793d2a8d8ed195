# SPDX-License-Identifier: Apache-2.0
"""shellcheck over every shell script; python files compile.

usage: shell.py SHELLCHECK
"""

import ast
import subprocess
import sys

import tree


def run():
    scripts = [name for name in tree.files()
               if name.endswith(".sh") or tree.read(name).startswith(("#!/bin/sh", "#!/bin/bash"))]
    problems = []
    result = subprocess.run([sys.argv[1], "-x", "-f", "gcc", *scripts], cwd=tree.ROOT, text=True,
                            stdout=subprocess.PIPE, check=False)
    problems += [line for line in result.stdout.split("\n") if line]
    pythons = tree.sources(".py")
    for name in pythons:
        try:
            ast.parse(tree.read(name), name)
        except SyntaxError as error:
            problems.append(f"{name}:{error.lineno}: {error.msg}")
    return tree.finish(problems, len(scripts) + len(pythons), "shell")


tree.main(run)
