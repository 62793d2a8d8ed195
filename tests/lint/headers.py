# SPDX-License-Identifier: Apache-2.0
"""Every header compiles alone, at the project's own flags.

usage: headers.py BUILD_FOLDER
"""

import concurrent.futures
import json
import os
import shlex
import subprocess
import sys

import tree


def project_flags(build):
    with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as file:
        words = shlex.split(json.load(file)[0]["command"])
    keep = [w for w in words if w.startswith(("-W", "-D", "-std", "-f"))
            and not w.startswith(("-fsanitize", "-fdiagnostics", "-DTEST_DATA"))]
    return words[0], keep


def check(compiler, flags, name):
    # Through a file that includes it twice: a guard that does not guard is found as well.
    text = f'#include "{name}"\n#include "{name}"\ntypedef int unit;\n'
    result = subprocess.run(
        [compiler, "-fsyntax-only", "-Werror", "-I", tree.ROOT, *flags, "-x", "c", "-"],
        input=text, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    return f"{name}: does not compile alone\n{result.stdout}" if result.returncode else None


def guard(name):
    wanted = "FSBOX_" + name[:-2].replace("/", "_").replace("-", "_").upper() + "_H"
    text = tree.read(name)
    if f"#ifndef {wanted}\n#define {wanted}\n" not in text:
        return f"{name}: the include guard is not {wanted}"
    return None


def run():
    compiler, flags = project_flags(sys.argv[1])
    names = [name for name in tree.sources(".h") if not name.startswith("tests/shim/")]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        results = list(pool.map(lambda name: check(compiler, flags, name), names))
    results += [guard(name) for name in names if name != "client/fsbox.h"]
    return tree.finish([r for r in results if r], len(names), "headers")


tree.main(run)
