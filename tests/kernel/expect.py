# SPDX-License-Identifier: Apache-2.0
"""
What a job must find, by the rules of the daemon and policy_access(), at each path of a tree.

Where no rule decides below /tmp and the like, access is "fresh": nothing of the host's, and writable.

The rules' paths are free of links. A path that a job uses may lead through links: those of the tree, as
far as the job sees them, and those that fsbox made because a grant was asked for by such a name.
"""

import errno
import os
import subprocess

from trees import below, between, inside, prefixes

GRANTED = ("readWrite", "readOnly")
REFUSED = {errno.EACCES, errno.EROFS, errno.ENOENT, errno.ENOTDIR, errno.EEXIST, errno.EPERM}
KEEPS = {errno.EBUSY}
FIELDS = ("kind", "stat", "read", "write", "list", "create", "mkdir", "rename", "content", "names")


class Judge:
    """policy_access(), by the helper program."""

    def __init__(self, program, rules):
        self.program, self.cache = program, {}
        self.head = b"".join(access.encode() + b"\0" + path + b"\0" for path, access in rules)

    def learn(self, paths):
        wanted = sorted(set(paths) - set(self.cache))
        text = self.head + b"\0" + b"".join(path + b"\0" for path in wanted)
        said = subprocess.run([self.program], input=text, stdout=subprocess.PIPE, check=True).stdout
        self.cache.update(zip(wanted, said.decode().split()))

    def __call__(self, path):
        if path not in self.cache:
            self.learn([path])
        return self.cache[path]


class World:
    """
    A tree under rules.

    rules   path: access, as the daemon says
    made    links that the job finds where a grant was spelled so: path: where they lead
    strong  whether the engine can mount on a link
    """

    def __init__(self, tree, rules, judge, strong):
        self.tree, self.rules, self.judge = tree, rules, judge
        self.strong, self.made = strong, {}

    def expect_links(self, asked, suppressed):
        """Those for the grants ASKED for (spelled path: access) by a name that nothing shows."""
        for path, access in asked.items():
            real = self.tree.real(path)
            if access == "deny" or path == real or path in suppressed or real not in self.rules:
                continue
            bare = not self.is_fresh(os.path.dirname(self.tree.root)) and not any(
                inside(path, rule) and kind != "deny" or inside(rule, path)
                for rule, kind in self.rules.items())
            if bare:
                self.made[path] = real
        for path in list(self.made):
            if any(below(path, other) for other in self.made):
                del self.made[path]

    def paths_to_judge(self, probes):
        paths = set()
        for path in probes:
            for at in {path, self.tree.real(path)}:
                paths |= {at, os.path.dirname(at), at + b"/.probe-file", at + b".probe-moved"}
        return paths

    # ---- the job's view --------------------------------------------------------------------

    def seen(self, path):
        """Whether a job finds what the host has at PATH, which is free of links."""
        return self.judge(path) in GRANTED

    def leads_through(self, link):
        """Whether the link node at LINK can be followed."""
        if link in self.rules and self.rules[link] == "deny":
            return not self.strong and self.seen(os.path.dirname(link))
        return self.seen(link)

    def place_of(self, path, follow=False):
        """
        Where PATH leads inside, its last name not followed unless FOLLOW: a path free of links, or None
        where a link on the way is not seen.
        """
        for at in prefixes(path, self.tree.root):
            if at == path and not follow:
                return path
            if at in self.made:
                return self.place_of(self.made[at] + path[len(at):], follow)
            if at in self.tree.links:
                if self.leads_through(at):
                    return self.place_of(self.tree.links[at] + path[len(at):], follow)
                if not self.leads_to_made(at):
                    return None
        return path

    def leads_to_made(self, path):
        return any(below(link, path) for link in self.made)

    def grants_below(self, path):
        """Names in PATH that lead to something that is shown; in a fresh directory also masks."""
        fresh = self.judge(path) == "fresh"
        found = {between(p, path) for p, access in self.rules.items()
                 if below(p, path) and (access != "deny" or fresh and self.is_held(p))}
        return found | {between(p, path) for p in self.made if below(p, path)}

    def is_fresh(self, path):
        return self.judge(path) == "fresh"

    def is_held(self, path):
        """Whether the engine can mount at PATH."""
        return self.strong or path not in self.tree.links

    def placeholders_in(self, path):
        """Names in the readWrite directory PATH that stand for denied paths which are absent."""
        if self.judge(path) != "readWrite":
            return set()
        return {between(p, path) for p, access in self.rules.items()
                if below(p, path) and access == "deny" and p not in self.tree.nodes
                and self.judge(os.path.dirname(p)) == "readWrite"
                and not self.on_the_way_is_a_rule(path, p)} - self.tree.names_in(path)

    def on_the_way_is_a_rule(self, path, deny):
        return any(below(rule, path) and below(deny, rule) for rule in self.rules)

    def kind_of(self, path):
        """What is on the disk, with placeholders; in a fresh directory what must be made there."""
        if self.judge(path) == "fresh":
            return "d" if self.grants_below(path) or self.judge(os.path.dirname(path)) != "fresh" \
                else None
        found = self.tree.nodes.get(path)
        if found is None and path != self.tree.root:
            parent = os.path.dirname(path)
            while parent not in self.tree.nodes:
                parent = os.path.dirname(parent)
            if self.tree.nodes[parent] == "f":
                return None
            if any(inside(deny, path) and deny not in self.tree.nodes and access == "deny" and
                   self.judge(os.path.dirname(deny)) == "readWrite"
                   for deny, access in self.rules.items()) and self.judge(parent) == "readWrite":
                return "d"
        return found

    def must_stay(self, path):
        """Whether PATH may not be renamed: a mount stands on it, or something protected below."""
        return any(inside(rule, path) and (rule == path or access != "readWrite")
                   for rule, access in self.rules.items())

    # ---- what is wrong ---------------------------------------------------------------------

    def complaints(self, path, line):
        """What is wrong with LINE, the probe's answer for PATH."""
        got = dict(zip(FIELDS, line.split(" ")))
        if len(got) != len(FIELDS):
            return ["not an answer"]
        check = Checker(got)
        place = self.place_of(path)
        if place is None:
            self.check_nothing(check)
        elif place in self.made:
            check.that(got["kind"] == "l", "kind", "a link that fsbox makes")
            self.check_target(check, self.place_of(place, follow=True))
        elif place in self.tree.links and not self.leads_to_made(place):
            self.check_link(check, place)
        else:
            self.check_place(check, place)
        return check.wrong

    def check_nothing(self, check):
        """Nothing may come through; what is seen of it is up to the mask above."""
        check.refused("read", "write", "create", "mkdir")
        check.that(check.got["content"] == "-", "content", "nothing")
        check.that(check.got["names"] == "-", "names", "nothing")
        check.that(check.got["rename"] != "0", "rename", "an error")

    def check_link(self, check, path):
        exact, access = path in self.rules, self.judge(path)
        if exact and not self.strong and self.leads_through(path):
            check.that(check.got["kind"] == "l", "kind", "the link, which stays")
            self.check_target(check, self.place_of(path, follow=True))
        elif access == "fresh" or not self.is_held(path) and self.is_fresh(os.path.dirname(path)):
            check.that(check.got["kind"] == "-", "kind", "-")
            self.check_creation(check, path, "fresh")
        elif access == "deny" and exact or not self.seen(path):
            check.that(check.got["kind"] in ("-", "f") if exact else check.got["kind"] == "-", "kind",
                       "no link")
            self.check_nothing(check)
        else:
            check.that(check.got["kind"] == "l", "kind", "the link")
            self.check_target(check, self.place_of(path, follow=True))
            self.check_rename(check, path)

    def check_target(self, check, place):
        """What a link's last step leads to, tried through the link."""
        kind = self.kind_of(place) if place else None
        access = self.judge(place) if place else "none"
        if place is None or kind is None:
            self.check_nothing_through(check)
        elif kind == "f":
            self.check_file(check, place, access)
        elif place is not None:
            self.check_directory(check, place, access)

    @staticmethod
    def check_nothing_through(check):
        check.refused("read", "write")
        check.that(check.got["content"] == "-", "content", "nothing")

    def check_place(self, check, place):
        kind, access = self.kind_of(place), self.judge(place)
        shown = access in (*GRANTED, "fresh")
        parent = self.judge(os.path.dirname(place)) in (*GRANTED, "fresh")
        leads = bool(self.grants_below(place))
        if kind == "l":  # on the way to a link that fsbox makes
            kind = "d"
        there = kind if shown or access == "deny" and place in self.rules and parent else "-"
        if leads and not shown:
            there = "d"
        if access == "deny" and place in self.rules and not parent and not leads:
            # Seen or not: by whether anything shown is further up.
            check.that(check.got["kind"] in ("-", kind or "d"), "kind", f"- or {kind}")
        elif access == "deny" and place in self.rules and kind is None and self.is_fresh(
                os.path.dirname(place)):
            check.that(check.got["kind"] == "d", "kind", "a mask")
        elif access == "deny" and place in self.rules and kind is None:
            check.that(check.got["kind"] == "-", "kind", "nothing in a readOnly tree or below a file")
        else:
            check.that(check.got["kind"] == (there or "-"), "kind", there or "-")
        if kind == "f":
            self.check_file(check, place, access)
        elif kind == "d":
            self.check_directory(check, place, access)
        else:
            self.check_creation(check, place, access)
        if check.got["kind"] != "-":
            self.check_rename(check, place)

    def check_creation(self, check, place, access):
        parent = os.path.dirname(place)
        may = access == self.judge(parent) and access in ("readWrite", "fresh") and \
            self.kind_of(parent) == "d"
        if may:
            check.worked("create", "mkdir")
        else:
            check.refused("create", "mkdir")

    def check_file(self, check, place, access):
        if access in GRANTED:
            check.that(check.got["content"] == self.tree.words[place], "content", "what it holds")
            check.worked("read")
        else:
            check.that(check.got["content"] == "-", "content", "nothing")
            check.that(check.got["read"] != "0", "read", "an error")
            if place in self.rules and self.judge(os.path.dirname(place)) in GRANTED:
                check.that(check.got["read"] == str(errno.EACCES), "read", "EACCES")
        if access == "readWrite":
            check.worked("write")
        else:
            check.refused("write")

    def check_directory(self, check, place, access):
        if access in ("readWrite", "fresh"):
            check.worked("create", "mkdir")
        else:
            check.refused("create", "mkdir")
        if access in GRANTED:
            check.worked("list")
            names = self.tree.names_in(place) | self.placeholders_in(place)
            check.that(check.names() == names, "names", sorted(names))
            return
        leads = self.grants_below(place)
        if access == "fresh" or leads and access == "none":
            check.worked("list")
        elif not leads:
            check.that(check.got["list"] != "0", "list", "an error")
        if check.got["list"] == "0":
            check.that(check.names() == leads, "names", sorted(leads))

    def check_rename(self, check, path):
        parent = self.judge(os.path.dirname(path))
        if parent == "fresh":  # what is the job's own may be moved, what is mounted there may not
            check.that(path not in self.rules or check.got["rename"] != "0", "rename", "an error")
            return
        writable = self.judge(path + b".probe-moved") == parent == "readWrite"
        if writable and self.must_stay(path):
            check.that(check.got["rename"] == str(errno.EBUSY), "rename", "EBUSY")
        elif writable and self.judge(path) == "readWrite":
            check.worked("rename")
        else:
            check.that(check.got["rename"] != "0", "rename", "an error")


class Checker:
    def __init__(self, got):
        self.got, self.wrong = got, []

    def that(self, right, name, wanted):
        if not right:
            self.wrong.append(f"{name} is {self.got[name]}, not {wanted}")

    def worked(self, *names):
        for name in names:
            self.that(self.got[name] == "0", name, "0")

    def refused(self, *names):
        """By the policy, not by an accident."""
        for name in names:
            value = self.got[name]
            self.that(value == "-" or int(value) in REFUSED, name, "refused")

    def names(self):
        said = self.got["names"]
        return set() if said == "-" else {bytes.fromhex(name) for name in said.split(",") if name}
