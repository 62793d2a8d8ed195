#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
The policy against the kernel: random policies, tried from inside jobs.

Each round builds a small tree on disk (nested directories, files with their own secret word, links, names
with a newline or bytes that are no UTF-8), draws rules over it (present and absent paths, some through
links), asks the daemon for the rules it would apply (`fsboxctl policy show`), runs the probe program
under the same options in a job of each engine, and holds every answer against policy_access(). The
engines must agree with one another, and the tree must afterwards be as it was.

Runs as the user whose jobs they are. Prints what disagrees with the seed that repeats it, and at the end
one line of counts.
"""

import argparse
import base64
import collections
import json
import os
import random
import re
import subprocess
import sys
import time

import expect
import trees

# Policies that are no policies; see fsbox-policy(5), "Nonsense", "Absent grants", "Links".
NONSENSE = re.compile(
    r"above it is denied and no directory|there is no such file or directory|"
    r"it is no directory, so nothing below it can be granted")


class Failure(Exception):
    pass


def decode(value):
    return base64.b64decode(value["b64"]) if isinstance(value, dict) else value.encode()


class Round:
    """One policy."""

    def __init__(self, args, seed):
        self.args = args
        self.rng = random.Random(seed)
        self.tree = trees.Tree(self.rng, os.path.join(os.fsencode(args.work), b"tree"))
        self.asked = trees.draw_rules(self.rng, self.tree)
        place = os.path.dirname(args.probe)
        self.options = ["--profile", args.profile, "--ro", place, "--cwd", place,
                        *trees.options_for(self.asked)]
        self.rules = self.suppressed = None
        self.job_options = self.options if not args.spoil else [
            *self.options[:6], *trees.options_for(self.spoilt())]

    def spoilt(self):
        """What was asked, but for one rule."""
        left_out = self.rng.choice(sorted(self.asked))
        return {path: access for path, access in self.asked.items() if path != left_out}

    def ctl(self, *arguments, **options):
        return subprocess.run([self.args.ctl, *self.args.ctl_option, *arguments], check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)

    def settle(self):
        """The rules as the daemon sees them; or why it refuses, when that is right."""
        shown = self.ctl("--json", "policy", "show", *self.options)
        try:
            answer = json.loads(shown.stdout)
        except ValueError:
            raise Failure(f"policy show: exit {shown.returncode}: {shown.stderr!r}") from None
        if shown.returncode != 0:
            message = answer["error"]["message"]
            if not NONSENSE.search(message):
                raise Failure(f"policy show: {answer['error']}")
            return NONSENSE.search(message).group()
        self.rules = {decode(rule[0]): rule[1] for rule in answer["rules"]}
        self.suppressed = {decode(path) for path in answer.get("suppressedAuthorityPaths", [])}
        return None

    def try_probes(self, engine, probes):
        job = self.ctl("spawn", "--engine", engine, *self.job_options, *self.args.spawn_option, "--",
                       self.args.probe, input=b"".join(path + b"\0" for path in probes))
        lines = job.stdout.decode(errors="replace").splitlines()
        if job.returncode != 0 or len(lines) != len(probes):
            raise Failure(f"{engine}: exit {job.returncode}, {len(lines)} of {len(probes)} answers: "
                          f"{job.stderr.decode(errors='replace')[:400]}")
        return lines

    def disagreements(self, engine, probes, lines):
        judge = expect.Judge(self.args.answers, list(self.rules.items()))
        world = expect.World(self.tree, self.rules, judge, engine == "native")
        world.expect_links(self.asked, self.suppressed)
        judge.learn(world.paths_to_judge(probes))
        for path, line in zip(probes, lines):
            for clause in world.complaints(path, line):
                yield (f"{engine}: {self.short(path)} is {judge(path)} "
                       f"({self.tree.nodes.get(path, 'not')} on disk): {clause}   [{line}]")

    def short(self, path):
        return repr(path[len(self.tree.root):] or b".")[1:]

    def differences(self, probes, lines):
        """Between engines, but for links with a rule of their own, which bwrap cannot hold."""
        ruled = {link for link in self.tree.links if link in self.rules}
        around = {os.path.dirname(link) for link in ruled}

        def in_order(line):
            fields, _, names = line.rpartition(" ")
            return fields + " " + ",".join(sorted(names.split(",")))

        first, second = sorted(lines)[:2]
        for path, one, other in zip(probes, map(in_order, lines[first]), map(in_order, lines[second])):
            apart = self.tree.real(path) in around or ruled.intersection(self.tree.links_on(path))
            if one != other and not apart:
                yield f"{self.short(path)}: {first} [{one}], {second} [{other}]"

    def unchanged(self, before):
        for _ in range(100):
            after = self.tree.snapshot()
            if after == before:
                return
            time.sleep(0.05)
        changed = {path for path, _ in set(before.items()) ^ set(after.items())}
        raise Failure(f"the tree on disk changed: {sorted(changed)[:5]}")

    def run(self):
        """(number of probes, complaints)"""
        probes = trees.draw_probes(self.rng, self.tree, self.asked, sorted(self.rules))
        before = self.tree.snapshot()
        complaints, lines = [], {}
        try:
            for engine in self.args.engine:
                lines[engine] = self.try_probes(engine, probes)
                complaints += self.disagreements(engine, probes, lines[engine])
                self.unchanged(before)
                if self.rng.random() < 0.2:  # what is prepared for later jobs is the same
                    complaints += self.differences(probes, {
                        engine: lines[engine], f"{engine} again": self.try_probes(engine, probes)})
                    self.unchanged(before)
            if len(lines) > 1:
                complaints += self.differences(probes, lines)
        except Failure as failure:
            complaints.append(str(failure))
        return len(probes) * len(lines), complaints

    def explain(self):
        yield f"asked: {[(self.short(p), a) for p, a in self.asked.items()]}"
        yield f"links: {[(self.short(p), self.short(t)) for p, t in self.tree.links.items()]}"
        if self.rules:
            rules = [(self.short(p), a) for p, a in self.rules.items()
                     if trees.inside(p, self.tree.root)]
            yield f"rules: {rules}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("--rounds", type=int, default=150, help="policies that must have been run")
    parser.add_argument("--seconds", type=float, default=0, help="but no longer than this; 0: so long")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--spoil", action="store_true",
                        help="leave one rule out in the jobs: that must often be noticed")
    parser.add_argument("--engine", action="append", required=True)
    parser.add_argument("--ctl", required=True, help="fsboxctl")
    parser.add_argument("--ctl-option", action="append", default=[], help="before the command")
    parser.add_argument("--spawn-option", action="append", default=[])
    parser.add_argument("--profile", required=True, help="a profile that grants nothing")
    parser.add_argument("--probe", required=True, help="the static program, alone in its directory")
    parser.add_argument("--answers", required=True)
    parser.add_argument("--work", required=True, help="an empty directory of this user")
    args = parser.parse_args()

    start, seed = time.monotonic(), args.seed
    count, reasons = collections.Counter(), collections.Counter()
    while count["policies"] < args.rounds and (args.spoil or count["bad"] < 10):
        if args.seconds and time.monotonic() - start > args.seconds:
            break
        this, complaints = Round(args, seed), []
        try:
            refusal = this.settle()
            if refusal:
                count["refused"] += 1
                reasons[refusal] += 1
            else:
                probes, complaints = this.run()
                count["policies"] += 1
                count["probes"] += probes
        except Failure as failure:
            complaints = [str(failure)]
        count["bad"] += bool(complaints)
        if complaints and not args.spoil:
            print(f"seed {seed}:")
            for line in complaints[:12] + list(this.explain()):
                print(f"  {line}")
        this.tree.remove()
        seed += 1
    for reason, times in reasons.items():
        print(f"refused {times}: {reason}")
    print(f"{count['policies']} policies, {count['probes']} probes, {count['refused']} refused as "
          f"nonsense, {count['bad']} policies with disagreements, "
          f"{time.monotonic() - start:.0f} s ({', '.join(args.engine)})", flush=True)
    if args.spoil:
        return 0 if count["bad"] > count["policies"] / 3 else 1
    return 1 if count["bad"] or count["policies"] < args.rounds and not args.seconds else 0


if __name__ == "__main__":
    sys.exit(main())
