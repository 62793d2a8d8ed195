# SPDX-License-Identifier: Apache-2.0
"""clang-tidy with the checks of .clang-tidy, every finding an error.

usage: tidy.py CLANG_TIDY BUILD_FOLDER

Files run in parallel. Tests and fuzz targets are left to the compiler: they are not what ships.
"""

import concurrent.futures
import json
import os
import re
import subprocess
import sys

import tree


def units(build):
    with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as file:
        commands = json.load(file)
    found = {}
    for entry in commands:
        path = os.path.normpath(os.path.join(entry["directory"], entry["file"]))
        name = os.path.relpath(path, tree.ROOT)
        if name.startswith(("..", "tests/")) or os.path.basename(name).startswith("test_"):
            continue
        found.setdefault(name, path)
    return found


def check(tool, build, path):
    # Flags of gcc that clang does not know are no finding of ours.
    result = subprocess.run(
        [tool, "--quiet", "-p", build, "--extra-arg=-Wno-unknown-warning-option", path],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False)
    findings = [line for line in result.stdout.split("\n")
                if re.search(r": (warning|error): ", line)]
    if result.returncode != 0 and not findings:
        findings = [f"{path}: clang-tidy failed\n{result.stdout[-2000:]}"]
    return findings


def run():
    tool, build = sys.argv[1], os.path.abspath(sys.argv[2])
    found = units(build)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 2) as pool:
        results = pool.map(lambda path: check(tool, build, path), found.values())
        problems = sorted({line for lines in results for line in lines})
    return tree.finish(problems, len(found), "tidy")


tree.main(run)
