# SPDX-License-Identifier: Apache-2.0
"""Random trees on disk and random rules over them."""

import os
import shutil

NAMES = [b"a", b"b", b"ab", b"a.b", b"c", b"dir", b"d", b"x y", b"new\nline", b"caf\xc3\xa9",
         b"bad\xff\xfe", b".dot", b"-dash", b"q'uote", b'dou"ble', b"back\\slash", b"star*", b"tab\t",
         b"trailing ", b"%s", b"$HOME"]
ABSENT = [b"absent", b"gone\n", b"gone/deeper", b"gone/deeper/still", b"missing\xff"]
OPTION = {"readWrite": b"--rw", "readOnly": b"--ro", "deny": b"--deny"}
DEPTH = 6


def inside(path, other):
    """Whether PATH is OTHER or lies below it."""
    return path == other or below(path, other)


def below(path, other):
    return path != other and path.startswith(other.rstrip(b"/") + b"/")


def between(path, other):
    """The name in OTHER that leads to PATH, which lies below it."""
    return path[len(other.rstrip(b"/")) + 1:].split(b"/")[0]


class Tree:
    """
    A random tree on disk.

    nodes  every path: "d", "f" or "l"
    words  what each file holds
    links  what each link says, as an absolute path; that may be a link or absent
    """

    def __init__(self, rng, root):
        self.rng, self.root = rng, root
        self.nodes, self.words, self.links = {root: "d"}, {}, {}
        os.mkdir(root, 0o755)
        self.grow(root, 1)
        for _ in range(rng.randint(0, 3)):
            self.link()

    def grow(self, where, depth):
        for name in self.rng.sample(NAMES, self.rng.randint(1, 3 if depth > 1 else 4)):
            path = where + b"/" + name
            if depth < DEPTH and self.rng.random() < 0.55:
                os.mkdir(path, 0o755)
                self.nodes[path] = "d"
                self.grow(path, depth + 1)
                continue
            self.words[path] = f"word{self.rng.getrandbits(48)}"
            with open(path, "w", encoding="ascii") as file:
                file.write(self.words[path] + "\n")
            os.chmod(path, self.rng.choice([0o644, 0o600, 0o755]))
            self.nodes[path] = "f"

    def link(self):
        where = self.rng.choice(self.of_kind("d"))
        path = where + b"/link%d" % self.rng.randint(0, 9)
        target = self.rng.choice(sorted(self.nodes))
        if self.rng.random() < 0.1:
            target = self.rng.choice(self.of_kind("d")) + b"/nothing"
        if path in self.nodes or inside(where, self.real(target)):
            return
        relative = self.rng.random() < 0.5
        os.symlink(os.path.relpath(target, where) if relative else target, path)
        self.nodes[path] = "l"
        self.links[path] = target

    def of_kind(self, kind):
        return sorted(path for path, found in self.nodes.items() if found == kind)

    def real(self, path):
        """Where PATH leads, all links followed."""
        return self.walk(path, [])

    def links_on(self, path):
        """The links, by their own real paths, that a look-up of PATH comes by."""
        passed = []
        self.walk(path, passed)
        return passed

    def walk(self, path, passed):
        for at in prefixes(path, self.root):
            if at in self.links:
                passed.append(at)
                return self.walk(self.links[at] + path[len(at):], passed)
        return path

    def names_in(self, path):
        return {between(p, path) for p in self.nodes if below(p, path)}

    def snapshot(self):
        found = {}
        for where, dirs, files in os.walk(self.root):
            for name in dirs + files:
                st = os.lstat(where + b"/" + name)
                found[where + b"/" + name] = (st.st_mode, st.st_ino, st.st_size, st.st_mtime_ns
                                              if not os.path.isdir(where + b"/" + name) else 0)
        return found

    def remove(self):
        shutil.rmtree(self.root)


def prefixes(path, root):
    """The paths from just below ROOT to PATH."""
    if path == root:
        return []
    parts = path[len(root) + 1:].split(b"/")
    return [root + b"/" + b"/".join(parts[:i + 1]) for i in range(len(parts))]


def draw_path(rng, tree):
    """Mostly something that is there; now and then by a name through a link."""
    links = sorted(path for path in tree.links if tree.nodes.get(tree.real(path)) == "d")
    if links and rng.random() < 0.3:
        link = rng.choice(links)
        target = tree.real(link)
        return link + rng.choice([p for p in sorted(tree.nodes) if inside(p, target)])[len(target):]
    if tree.links and rng.random() < 0.1:
        return rng.choice(sorted(tree.links))
    return rng.choice(sorted(tree.nodes))


def draw_rules(rng, tree):
    """Spelled path: access. A grant on the root or on parts of it, and rules below."""
    rules = {}
    if rng.random() < 0.7:
        rules[tree.root] = rng.choice(["readWrite", "readWrite", "readOnly"])
    if rng.random() < 0.06 and os.getuid() != 0:  # root may not have all of the file system
        rules[b"/"] = rng.choice(["readWrite", "readOnly"])
    for _ in range(rng.randint(1, 8)):
        path = draw_path(rng, tree)
        if rng.random() < 0.25:
            kind = tree.nodes.get(tree.real(path))
            # Mostly in a directory; but a path below a file is absent, too.
            here = kind == "d" or kind == "f" and rng.random() < 0.2
            directory = path if here else os.path.dirname(path)
            rules[directory + b"/" + rng.choice(ABSENT)] = "deny"
            continue
        rules[path] = rng.choice(["readWrite", "readOnly", "deny"])
    return rules


def options_for(rules):
    return [word for path, access in sorted(rules.items()) for word in (OPTION[access], path)]


def draw_probes(rng, tree, rules, shown):
    """
    Everything that is there, what rules speak of and what is around it, new names in directories, and
    names through links.
    """
    probes = set(tree.nodes)
    for path in list(rules) + shown:
        probes |= {path, path + b"/below", os.path.dirname(path), path + b"2"}
    for path in tree.of_kind("d"):
        if rng.random() < 0.4:
            probes.add(path + b"/" + rng.choice([b"fresh", b"fr\xe9sh\n", b"absent", b"gone"]))
    for link in tree.links:
        target = tree.real(link)
        for path in list(tree.nodes) + shown:
            if below(path, target) and rng.random() < 0.5:
                probes.add(link + path[len(target):])
        probes.add(link + b"/new")
    return sorted(path for path in probes if inside(path, tree.root))
