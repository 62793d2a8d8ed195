# SPDX-License-Identifier: Apache-2.0
"""fsboxd.conf(5) against the table of keys that the parser is made of.

usage: defaults.py HOSTCONF_KEYS   (a program that prints "key TAB form TAB default")

The manual has, for each key in the table's order, a line '*key* = _form_' and somewhere before the
next key 'Default: value.' ('Default: none.' for an empty one).
"""

import re
import subprocess
import sys

import tree

MANUAL = "docs/fsboxd.conf.5.scd"


def plain(text):
    """scdoc text without its marks."""
    return re.sub(r"\\(.)", r"\1", text.replace("*", "").replace("_", "")).strip()


def documented():
    found = {}
    key = None
    for line in tree.read(MANUAL).split("\n"):
        match = re.match(r"\*([a-z-]+)\*\s*=\s*(.*)$", line)
        if match:
            key = match.group(1)
            found[key] = {"form": plain(match.group(2)), "default": None}
        match = re.search(r"Default: (.*?)\.(?:\s|$)", line)
        if match and key:
            found[key]["default"] = plain(match.group(1))
    return found


def run():
    output = subprocess.run([sys.argv[1]], check=True, stdout=subprocess.PIPE, text=True).stdout
    table = [line.split("\t") for line in output.rstrip("\n").split("\n")]
    manual = documented()
    problems = []
    for key, form, default in table:
        if key not in manual:
            problems.append(f"{MANUAL}: key '{key}' is not described")
            continue
        if re.sub(r"[\s_]", "", manual[key]["form"]) != re.sub(r"[\s_]", "", form):
            problems.append(f"{MANUAL}: '{key}' has the form '{form}', not '{manual[key]['form']}'")
        if manual[key]["default"] != (default or "none"):
            problems.append(f"{MANUAL}: '{key}' defaults to '{default or 'none'}', "
                            f"not '{manual[key]['default']}'")
    known = {key for key, _, _ in table}
    problems += [f"{MANUAL}: key '{key}' does not exist" for key in manual if key not in known]
    return tree.finish(problems, len(table), "defaults")


tree.main(run)
