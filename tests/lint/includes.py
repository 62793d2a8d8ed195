# SPDX-License-Identifier: Apache-2.0
"""Which folder may include which, and each file's own header first.

The edges are what privilege separation looks like in source form: fsboxd (daemon/spawner) cannot
see the JSON code, no role can see another's, common/ sees nothing.
"""

import os
import re

import tree

ALLOWED = {
    "common": set(),
    "proto/wire": {"common"},
    "proto/json": {"common", "proto/wire"},
    "daemon": {"common"},
    "daemon/spawner": {"common", "proto/wire", "daemon"},
    "daemon/broker": {"common", "proto/wire", "proto/json", "daemon"},
    "daemon/recorder": {"common", "proto/wire", "daemon"},
    "daemon/egress": {"common", "proto/wire", "daemon"},
    "client": {"common", "proto/wire", "proto/json"},
    "client/ctl": {"common", "proto/wire", "proto/json", "client"},
}
INCLUDE = re.compile(r'^\s*#\s*include\s+(?:"([^"]+)"|<([^>]+)>)', re.M)

# The only file that may see a library's header, by the first part of what it includes.
ONLY = {
    "yajl": ("proto/json/json.c", "proto/json/json.h"),
    "systemd": ("daemon/recorder/journal.c",),
    "event2": ("daemon/broker/", "daemon/egress/"),
    "seccomp.h": ("daemon/", "tests/", "tools/"),
}


def folder_of(name):
    return os.path.dirname(name)


def is_test(name):
    leaf = os.path.basename(name)
    return name.startswith("tests/") or leaf.startswith("test_")


def is_made(quoted):
    """Whether the build makes this header: the meson.build of its folder names it."""
    made_by = os.path.join(folder_of(quoted), "meson.build")
    return os.path.isfile(os.path.join(tree.ROOT, made_by)) and \
        os.path.basename(quoted) in tree.read(made_by)


def check(name):
    own = folder_of(name)
    text = tree.read(name)
    includes = INCLUDE.findall(text)
    for quoted, system in includes:
        top = system.split("/")[0]
        if top in ONLY and not name.startswith(ONLY[top]):
            yield f"{name}: may not see <{system}>"
        if not quoted:
            continue
        if not os.path.isfile(os.path.join(tree.ROOT, quoted)):
            if not is_made(quoted):
                yield f'{name}: "{quoted}" is not a file, written from the top of the tree'
                continue
        to = folder_of(quoted)
        if to == own or is_test(name):
            continue
        if to.startswith("tests"):
            yield f"{name}: tests/ is included by nothing but tests"
        elif own not in ALLOWED:
            yield f"{name}: folder {own} has no line in this lint"
        elif to not in ALLOWED[own]:
            yield f"{name}: {own} may not include {to} ({quoted})"
    header = name[:-2] + ".h"
    if os.path.basename(name).startswith("test_"):
        header = os.path.join(own, os.path.basename(name)[5:-2] + ".h")
    if name.endswith(".c") and os.path.isfile(os.path.join(tree.ROOT, header)):
        first = next((quoted or system for quoted, system in includes), None)
        if first != header:
            yield f"{name}: the first include must be {header}"


def run():
    names = tree.sources()
    problems = [problem for name in names for problem in check(name)]
    return tree.finish(problems, len(names), "includes")


tree.main(run)
