#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The policy against the kernel: random policies, tried from inside a job.

Each round builds a small tree on disk (nested directories, files with their own secret word, links, names
with a newline or bytes that are no UTF-8), draws rules over it (present and absent paths, some through
links), asks the daemon for the rules it would apply (`fsboxctl policy show`), runs the probe program in a
job under the same options, and compares what really worked with policy_access() for every probe.

Runs as the user whose jobs they are. Prints one line for each disagreement with the seed that repeats it.
"""
import argparse
import base64
import json
import os
import random
import shutil
import subprocess
import sys

NAMES = [b'a', b'b', b'ab', b'a.b', b'c', b'dir', b'd', b'x y', b'new\nline', b'caf\xc3\xa9', b'bad\xff\xfe', b'.dot',
         b'-dash', b"q'uote", b'back\\slash', b'star*']
ACCESSES = ['readWrite', 'readOnly', 'deny']
OPTION = {'readWrite': b'--rw', 'readOnly': b'--ro', 'deny': b'--deny'}


class Tree:
    """A random tree on disk. `nodes` maps every path to 'd', 'f' or 'l'."""

    def __init__(self, rng, root):
        self.rng, self.root, self.nodes, self.words = rng, root, {}, {}
        os.mkdir(root, 0o755)
        self.nodes[root] = 'd'
        self.grow(root, 0)
        self.link()

    def grow(self, where, depth):
        for name in self.rng.sample(NAMES, self.rng.randint(1, 3 if depth else 4)):
            path = where + b'/' + name
            if depth < 5 and self.rng.random() < 0.55:
                os.mkdir(path, 0o755)
                self.nodes[path] = 'd'
                self.grow(path, depth + 1)
            else:
                word = 'word%d' % self.rng.getrandbits(48)
                with open(path, 'w') as file:
                    file.write(word + '\n')
                self.nodes[path] = 'f'
                self.words[path] = word

    def link(self):
        for _ in range(self.rng.randint(0, 2)):
            target = self.rng.choice(sorted(self.nodes))
            where = self.rng.choice(sorted(p for p, kind in self.nodes.items() if kind == 'd'))
            path = where + b'/link%d' % self.rng.randint(0, 9)
            if path not in self.nodes and not self.inside(where, target):
                os.symlink(target, path)
                self.nodes[path] = 'l'

    @staticmethod
    def inside(path, other):
        return (path + b'/').startswith(other + b'/')

    def snapshot(self):
        found = {}
        for where, dirs, files in os.walk(self.root):
            for name in dirs + files:
                path = where + b'/' + name
                st = os.lstat(path)
                found[path] = (st.st_mode, st.st_ino, st.st_size)
        return found


def draw_rules(rng, tree):
    """Options for one policy: a grant on the root or on parts of it, and rules below."""
    rules = {}
    paths = sorted(tree.nodes)
    if rng.random() < 0.7:
        rules[tree.root] = rng.choice(['readWrite', 'readWrite', 'readOnly'])
    for _ in range(rng.randint(1, 7)):
        path = rng.choice(paths)
        if rng.random() < 0.25:
            directory = path if tree.nodes[path] == 'd' else os.path.dirname(path)
            path = directory + b'/' + rng.choice([b'absent', b'gone\n', b'gone/deeper', b'missing\xff'])
            rules[path] = 'deny'
            continue
        rules[path] = rng.choice(ACCESSES)
    # A rule below something that is no directory has no meaning; the daemon refuses some of these.
    return {path: access for path, access in rules.items() if not any(
        path != other and Tree.inside(path, other) and tree.nodes.get(other) in ('f', 'l') for other in tree.nodes)}


def option_list(rules):
    options = []
    for path, access in sorted(rules.items()):
        options += [OPTION[access], path]
    return options


def decode(value):
    return base64.b64decode(value['b64']) if isinstance(value, dict) else value.encode()


def probes_for(rng, tree, rules):
    probes = set(tree.nodes)
    for path in list(rules):
        probes.add(path)
        probes.add(path + b'/below')
        probes.add(os.path.dirname(path))
    for path, kind in tree.nodes.items():
        if kind == 'd' and rng.random() < 0.4:
            probes.add(path + b'/fresh')
    # Only inside our own tree, and links are looked at through their real paths.
    return sorted(p for p in probes if Tree.inside(p, tree.root) and not through_link(tree, p))


def through_link(tree, path):
    parts = path.split(b'/')
    return any(tree.nodes.get(b'/'.join(parts[:i])) == 'l' for i in range(1, len(parts) + 1))


class Judge:
    """policy_access() answers, by the helper program."""

    def __init__(self, program, rules):
        self.program, self.rules, self.cache = program, rules, {}

    def ask(self, paths):
        wanted = sorted(set(paths) - set(self.cache))
        head = b''.join(access.encode() + b'\0' + path + b'\0' for path, access in self.rules)
        text = head + b'\0' + b''.join(p + b'\0' for p in wanted)
        out = subprocess.run([self.program], input=text, stdout=subprocess.PIPE, check=True).stdout.decode().split()
        self.cache.update(zip(wanted, out))
        return self.cache

    def __call__(self, path):
        return self.cache[path]


def expectations(tree, rules, judge, path, got, root_user):
    """What is wrong with `got`, the probe's line for `path`: a list of clauses."""
    kind, stat, read, write, listing, create, mkdir, rename, content = got
    access, host, wrong = judge(path), tree.nodes.get(path), []
    rule_paths = [p for p, _ in rules]
    ancestor = any(p != path and Tree.inside(p, path) for p in rule_paths)

    def check(name, ok, value):
        if not ok:
            wrong.append('%s gave %s' % (name, value))

    if host is None and kind == '-':
        below = access == 'readWrite' and judge(os.path.dirname(path)) == 'readWrite'
        parent_there = tree.nodes.get(os.path.dirname(path)) == 'd'
        check('create', (create == '0') == (below and parent_there), create)
        check('mkdir', (mkdir == '0') == (below and parent_there), mkdir)
    elif host is None:
        check('an absent path that is there', access == 'deny' or ancestor, kind)
        if kind == 'd':
            check('create', create != '0', create)
            check('list', root_user or ancestor or listing != '0', listing)
    elif host == 'f':
        readable = access in ('readWrite', 'readOnly')
        check('read', (content == tree.words[path]) == readable, '%s, content %s' % (read, content))
        check('no content', readable or content == '-', content)
        check('write', (write == '0') == (access == 'readWrite'), write)
        check('stat', stat == '0' or access in ('deny', 'none'), stat)
        check('kind', kind in ('f', '-') and (kind == 'f' or not readable), kind)
    elif host == 'd':
        open_ = access in ('readWrite', 'readOnly')
        check('stat', stat == '0' or not open_, stat)
        check('list', listing == '0' if open_ else (root_user or ancestor or listing != '0'), listing)
        inner = judge(path + b'/.probe-file') == 'readWrite' and access == 'readWrite'
        check('create', (create == '0') == inner, create)
        check('mkdir', (mkdir == '0') == inner, mkdir)
    if host in ('d', 'f') and rename not in ('-',):
        parent = judge(os.path.dirname(path))
        stricter = any(p != path and Tree.inside(p, path) and judge(p) != 'readWrite' for p in rule_paths)
        writable = access == parent == judge(path + b'.probe-moved') == 'readWrite'
        if not writable or stricter or path in rule_paths:
            check('rename', rename != '0', rename)
        elif not ancestor:
            check('rename', rename == '0', rename)
    return wrong


def run(command, **more):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **more)


def one_round(args, seed):
    """Returns (number of probes, list of complaints), or None when the policy was refused as nonsense."""
    rng = random.Random(seed)
    work = os.path.join(os.fsencode(args.work), b'round%d' % seed)
    shutil.rmtree(work, ignore_errors=True)
    tree = Tree(rng, work)
    drawn = draw_rules(rng, tree)
    base = [args.ctl] + args.ctl_option
    options = [b'--profile', os.fsencode(args.profile), b'--ro', os.fsencode(os.path.dirname(args.probe)), b'--cwd',
               os.fsencode(os.path.dirname(args.probe))] + option_list(drawn)
    shown = run(base + ['--json', 'policy', 'show'] + options)
    if shown.returncode != 0:
        kind = json.loads(shown.stdout or b'{}').get('error', {}).get('kind') if shown.stdout else None
        shutil.rmtree(work, ignore_errors=True)
        if kind == 'policy-invalid':
            return None
        return 0, ['policy show: exit %d: %s %s' % (shown.returncode, shown.stdout[:300], shown.stderr.decode()[:300])]
    rules = [(decode(rule[0]), rule[1]) for rule in json.loads(shown.stdout)['rules']]
    probes = probes_for(rng, tree, drawn)
    judge = Judge(args.answers, rules)
    ours = [p for p, _ in rules]
    judge.ask(probes + [os.path.dirname(p) for p in probes] + [p + b'/.probe-file' for p in probes] +
              [p + b'.probe-moved' for p in probes] + ours)
    before = tree.snapshot()
    job = run(base + ['spawn'] + options + args.spawn_option + ['--', args.probe], input=b''.join(p + b'\0' for p in probes))
    complaints = []
    lines = job.stdout.decode(errors='replace').splitlines()
    if job.returncode != 0 or len(lines) != len(probes):
        complaints.append('job: exit %d, %d of %d lines: %s' % (job.returncode, len(lines), len(probes),
                                                                 job.stderr.decode(errors='replace')[:400]))
    else:
        for path, line in zip(probes, lines):
            for clause in expectations(tree, rules, judge, path, line.split(' '), os.getuid() == 0):
                complaints.append('%r is %s (%s on disk): %s   [%s]' % (
                    path[len(work):], judge(path), tree.nodes.get(path), clause, line))
    if tree.snapshot() != before:
        changed = set(before.items()) ^ set(tree.snapshot().items())
        complaints.append('the tree on disk changed: %r' % sorted(p for p, _ in changed)[:5])
    if complaints:
        complaints.append('rules: %r' % [(p[len(work):] or b'.', a) for p, a in rules if Tree.inside(p, work)])
    else:
        shutil.rmtree(work, ignore_errors=True)
    return len(probes), complaints


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--rounds', type=int, default=150, help='policies that must have been run')
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--ctl', required=True, help='fsboxctl')
    parser.add_argument('--ctl-option', action='append', default=[], help='options before the command')
    parser.add_argument('--spawn-option', action='append', default=[], help='further options of spawn')
    parser.add_argument('--profile', required=True, help='a profile that grants nothing')
    parser.add_argument('--probe', required=True, help='the static probe program, alone in its directory')
    parser.add_argument('--answers', required=True)
    parser.add_argument('--work', required=True, help='an empty directory of this user')
    args = parser.parse_args()

    ran, refused, probes, bad, seed = 0, 0, 0, 0, args.seed
    while ran < args.rounds and refused < 5 * args.rounds and bad < 10:
        outcome = one_round(args, seed)
        if outcome is None:
            refused += 1
        else:
            ran, probes = ran + 1, probes + outcome[0]
            if outcome[1]:
                bad += 1
                print('seed %d:' % seed)
                print('\n'.join('  ' + line for line in outcome[1]))
        seed += 1
    print('%d policies, %d probes, %d refused as invalid, %d policies with disagreements' % (ran, probes, refused, bad))
    return 1 if bad or ran < args.rounds else 0


if __name__ == '__main__':
    sys.exit(main())
