# SPDX-License-Identifier: Apache-2.0
"""What benchmarks found: records, and rows of the one table at the end.

Records go to a file, one JSON object a line, so that the program inside the benchmarks' machine and the
one outside can both add to it; `write_json` makes one document of them.
"""

import json
import os

HEAD = ("mode", "measure", "value", "target", "compared to", "")


class Report:
    def __init__(self, path):
        self.path = path

    def add(self, **record):
        with open(self.path, "a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")

    def records(self):
        with open(self.path, encoding="utf-8") as file:
            return [json.loads(line) for line in file]

    def skip(self, what, why):
        """What could not be measured here."""
        print(f"skipped: {what}: {why}", flush=True)
        self.add(bench="skipped", what=what, why=why)

    def row(self, mode, measure, value, unit, compared, at_most=None, at_least=None):
        """A row of the table. With a bound it has a verdict; VALUE None: it is off."""
        bound = at_most if at_most is not None else at_least
        verdict = None
        if value is None:
            verdict = "off"
        elif bound is not None:
            verdict = "ok" if (value <= bound if at_most is not None else value >= bound) else "MISS"
        record = {"bench": "row", "mode": mode, "measure": measure, "value": value, "unit": unit,
                  "compared": compared, "verdict": verdict}
        if bound is not None:
            record["atMost" if at_most is not None else "atLeast"] = bound
        self.add(**record)
        print("  " + "  ".join(cells(record)).rstrip(), flush=True)


def number(value):
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:,.0f}" if value >= 1000 else f"{value:,.1f}" if value >= 100 else f"{value:.3g}"


def cells(row):
    target = ""
    for key, sign in (("atMost", "<="), ("atLeast", ">=")):
        if key in row:
            target = f"{sign} {number(row[key])}"
    value = "off" if row["value"] is None else f"{number(row['value'])} {row['unit']}"
    return (row["mode"], row["measure"], value, target, row["compared"], row["verdict"] or "")


def print_table(records):
    rows = [HEAD] + [cells(record) for record in records if record["bench"] == "row"]
    widths = [max(len(row[i]) for row in rows) for i in range(len(HEAD))]
    print()
    for row in rows:
        print("  ".join(cell.rjust(width) if i == 2 else cell.ljust(width)
                        for i, (cell, width) in enumerate(zip(row, widths))).rstrip())
    skipped = [record for record in records if record["bench"] == "skipped"]
    for record in skipped:
        print(f"skipped: {record['what']}: {record['why']}")
    verdicts = [record["verdict"] for record in records if record["bench"] == "row"]
    print(f"{verdicts.count('ok')} of {verdicts.count('ok') + verdicts.count('MISS')} targets met, "
          f"{verdicts.count('off')} off, {len(skipped)} skipped")


def write_json(records, path):
    with open(path + ".new", "w", encoding="utf-8") as file:
        json.dump(records, file, indent=1)
        file.write("\n")
    os.rename(path + ".new", path)
