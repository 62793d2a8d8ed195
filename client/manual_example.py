# SPDX-License-Identifier: Apache-2.0
"""The program among the examples of a manual page, without scdoc's escapes."""

import sys

with open(sys.argv[1], encoding="utf-8") as file:
    print(file.read().split("\n```\n")[1].replace("\\\\", "\\"))
