#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiled Seatbelt text against the policy it came from, in a model of Seatbelt.

    test_agree.py AGREE_CASES GOLDEN [COUNT SEED] [--update]

AGREE_CASES (agree_cases.c) prints random policies with both texts. The hardened text must mean what
policy_access() says, under both readings of a profile, let nothing be carried out of a stricter rule
by renaming or linking, and lint clean. The plain text does not; in which ways it departs is listed in
GOLDEN, with how often each way was met, and a change there is a failure until --update is given.
"""
import collections
import json
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import sbpl_eval  # noqa: E402

COUNT, SEED = 300, 20261130


def departures(text, rules):
    profile = sbpl_eval.Profile(text)
    return (sbpl_eval.agree(profile, rules) + sbpl_eval.rename_escapes(profile, rules)
            + sbpl_eval.link_escapes(profile, rules))


def probe_departures(text, probes):
    """Reading and writing of the probes against what policy_access() said."""
    profile = sbpl_eval.Profile(text)
    bad = []
    for path, access in probes.items():
        reads, writes = access in ("readWrite", "readOnly"), access == "readWrite"
        for op, want in (("file-read-data", reads), ("file-write-data", writes),
                         ("file-write-create", writes), ("file-map-executable", reads),
                         ("process-exec*", reads), ("file-test-existence", reads or None),
                         ("file-link", False), ("file-clone", False)):
            if want is not None and profile.allowed(op, path) != want:
                bad.append(f"{op} {path}: policy_access() says {access}")
    return bad


def way(departure):
    """A departure without its paths: what kind it is."""
    match = re.match(r"([a-z*-]+) .*: policy says (\w+), profile says (\w+) by", departure)
    if match:
        return f"{match.group(1)}: {match.group(3)} where the policy says {match.group(2)}"
    match = re.match(r"rename .* makes .* (readable|writable) as ", departure)
    if match:
        return f"rename: a stricter rule's file becomes {match.group(1)}"
    return re.sub(r" /.*", "", departure)


def golden_text(ways):
    return "".join(f"{count:6} {name}\n" for name, count in sorted(ways.items()))


def main():
    args = [a for a in sys.argv[1:] if a != "--update"]
    count, seed = (int(args[2]), int(args[3])) if len(args) == 4 else (COUNT, SEED)
    lines = subprocess.run([args[0], str(count), str(seed)], check=True,
                           stdout=subprocess.PIPE).stdout.decode().splitlines()
    failed = 0
    ways = collections.Counter()
    for line in lines:
        case = json.loads(line)
        bad = departures(case["hard"], case["rules"])
        bad += probe_departures(case["hard"], case["probes"])
        bad += [str(f) for f in sbpl_eval.lint(sbpl_eval.Profile(case["hard"]))
                if f.severity != "note"]
        if bad:
            failed += 1
            print(f"FAILED {json.dumps(case['rules'])}")
            for each in bad[:5]:
                print(f"  {each}")
        ways.update(way(d) for d in departures(case["plain"], case["rules"]))

    got = golden_text(ways)
    if "--update" in sys.argv:
        with open(args[1], "w", encoding="utf-8") as file:
            file.write(got)
    with open(args[1], encoding="utf-8") as file:
        want = file.read()
    if len(args) != 4 and got != want:
        failed += 1
        print(f"FAILED the plain text departs in other ways than {args[1]} says:\n{got}")
    if len(lines) != count:
        failed += 1
        print(f"FAILED {len(lines)} policies instead of {count}")
    print(f"{len(lines)} policies, {failed} failed")
    return 1 if failed else 0


sys.exit(main())
