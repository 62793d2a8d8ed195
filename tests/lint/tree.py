# SPDX-License-Identifier: Apache-2.0
"""What the lints share: the files of this tree, and one way to report."""

import os
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def files():
    """Paths of all files that belong to the repository, relative to its top, sorted."""
    try:
        listed = subprocess.run(
            ["git", "-c", "safe.directory=*", "ls-files", "-z", "--cached", "--others",
             "--exclude-standard"],
            cwd=ROOT, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
        names = [os.fsdecode(name) for name in listed.split(b"\0") if name]
    except (OSError, subprocess.CalledProcessError):  # a release tarball
        names = []
        for folder, folders, leaves in os.walk(ROOT):
            folders[:] = [f for f in folders if not f.startswith(("build", ".git", "__pycache__"))]
            names += [os.path.relpath(os.path.join(folder, leaf), ROOT) for leaf in leaves]
    return sorted(name for name in set(names) if os.path.isfile(os.path.join(ROOT, name)))


def sources(*endings):
    return [name for name in files() if name.endswith(endings or (".c", ".h"))]


def read(name):
    with open(os.path.join(ROOT, name), encoding="utf-8", errors="surrogateescape") as file:
        return file.read()


def finish(problems, checked, what):
    """Print the problems; the exit status of a lint."""
    for problem in problems:
        print(problem)
    print(f"{what}: {checked} checked, {len(problems)} problems")
    if checked == 0:
        print("nothing was checked: the lint looks in the wrong place")
        return 1
    return 1 if problems else 0


def main(function):
    sys.exit(function())
