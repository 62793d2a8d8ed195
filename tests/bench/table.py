# SPDX-License-Identifier: Apache-2.0
"""Print JSON lines of benchmarks as tables: one for each `bench`, a column for each number.

usage: table.py FILE
"""

import json
import sys


def shown(value):
    if isinstance(value, float):
        return f"{value:,.3f}"
    if isinstance(value, int):
        return f"{value:,}"
    return str(value)


def table(name, records):
    columns = list(dict.fromkeys(key for record in records for key in record if key != "bench"))
    rows = [columns] + [[shown(record.get(key, "-")) for key in columns] for record in records]
    widths = [max(len(row[i]) for row in rows) for i in range(len(columns))]
    print(f"{name}:")
    for row in rows:
        print("  " + "  ".join(cell.rjust(width) for cell, width in zip(row, widths)))


def main():
    tables = {}
    with open(sys.argv[1], encoding="utf-8") as file:
        for line in file:
            record = json.loads(line)
            tables.setdefault(record["bench"], []).append(record)
    for name, records in tables.items():
        table(name, records)


main()
