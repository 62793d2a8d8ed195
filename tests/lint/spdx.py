# SPDX-License-Identifier: Apache-2.0
"""The licence is named in the first or second line of every file that can have a comment."""

import tree

ENDINGS = (".c", ".h", ".py", ".sh", ".syms", ".scd", ".in", ".conf")
LINE = "SPDX-License-Identifier: Apache-2.0"


def run():
    names = [name for name in tree.sources(*ENDINGS) if not name.startswith("tests/fuzz/corpus/")]
    problems = [f"{name}: no '{LINE}' at the top" for name in names
                if LINE not in "\n".join(tree.read(name).split("\n")[:3])
                and not name.endswith((".scd", ".conf"))]
    return tree.finish(problems, len(names), "spdx")


tree.main(run)
