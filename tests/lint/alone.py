# SPDX-License-Identifier: Apache-2.0
"""The repository speaks of fsbox alone: no machine of ours, no notes to ourselves."""

import re

import tree

# Put together from pieces, so that this file does not find itself.
WORDS = ["/wo" + "rk/main", "/wo" + "rk/sha", "/tmp/b" + "rief", "sha" + "red/", "TO" + "DO", "FIX" + "ME", "XX" + "X ",
         "HA" + "CK:", "/tmp/b" + "-", "lorem " + "ipsum"]
# A person's name for a test may well contain one of these words; a reason is then given here.
FINE = {
    # shared-mime and the like are names of packages
    "sha" + "red/": re.compile(r"usr/|var/|local/|__ASAN|-sha" + "red/"),
}
SKIP = ("tests/vectors/", "tests/fuzz/corpus/", "tests/golden/", "LICENSE")


def run():
    names = [name for name in tree.files() if not name.startswith(SKIP)]
    problems = []
    for name in names:
        for number, line in enumerate(tree.read(name).split("\n"), 1):
            for word in WORDS:
                if word in line and not (word in FINE and FINE[word].search(line)):
                    problems.append(f"{name}:{number}: '{word}'")
    return tree.finish(problems, len(names), "alone")


tree.main(run)
