# SPDX-License-Identifier: Apache-2.0
"""The user in the chaos test: edits files where jobs run, and keeps a model of what must be there.

Run as that user with one JSON object from stdin: {place, seed, seconds, denied[], movable[], files{},
dirs[]}. Says one when it is through: {edits[], files{}, dirs[], loose[]}; paths are relative to the place.
An edit is [begun, done, what, path, token, taken[]]; of what is in `taken` it may have taken a mask away.
"""

import json
import os
import random
import sys
import time


class Host:
    """What the user wrote: @files and @dirs must be there, what is in @loose may."""

    def __init__(self, order):
        self.dice = random.Random(order["seed"])
        self.files, self.dirs = dict(order["files"]), set(order["dirs"])
        self.denied, self.movable = order["denied"], set(order["movable"])
        self.loose, self.edits, self.count = set(), [], 0

    def token(self):
        self.count += 1
        return f"HOST {self.count}\n"

    def above(self, path):
        """Make what is missing above PATH. What is there already may be a placeholder: it may stay or go."""
        parts = path.split("/")[:-1]
        for depth in range(len(parts)):
            level = "/".join(parts[:depth + 1])
            try:
                os.mkdir(level, self.dice.choice((0o700, 0o755)))
                self.dirs.add(level)
            except FileExistsError:
                self.loose.add(level)

    def put(self, path, flags):
        """A new token in PATH."""
        fd = os.open(path, os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC | flags, 0o644)
        token = self.token()
        os.write(fd, token.encode())
        os.close(fd)
        self.files[path] = token
        return token

    def forget(self, path):
        for known in (self.files, self.dirs):
            for name in [n for n in known if n == path or n.startswith(path + "/")]:
                known.pop(name) if isinstance(known, dict) else known.discard(name)

    def renamed(self, old, new):
        self.files = {new + n[len(old):] if n == old or n.startswith(old + "/") else n: token
                      for n, token in self.files.items()}
        for known in (self.dirs, self.loose):
            moved = {n for n in known if n == old or n.startswith(old + "/")}
            known -= moved
            known |= {new + n[len(old):] for n in moved}

    # Each edit: the token that is there now, and what it may have uncovered.

    def create(self, path):
        """As an editor does: what stands in the way and is empty goes."""
        self.above(path)
        if os.path.isdir(path):
            if self.dice.random() < 0.4:
                self.loose.add(path)
                return self.put(f"{path}/f", os.O_CREAT | os.O_TRUNC), []
            self.rmdir(path)
        return self.put(path, os.O_CREAT | os.O_EXCL), [path]

    def write(self, path):
        return self.put(path, os.O_TRUNC), []

    def save(self, path):
        self.above(path)
        if os.path.isdir(path):
            self.rmdir(path)
        token = self.put(f"{path}.tmp", os.O_CREAT | os.O_TRUNC)
        os.rename(f"{path}.tmp", path)
        self.forget(path)
        self.renamed(f"{path}.tmp", path)
        return token, [path]

    def rmdir(self, path):
        os.rmdir(path)
        self.forget(path)

    def delete(self, path):
        if os.path.isdir(path):
            self.rmdir(path)
        else:
            os.unlink(path)
            self.forget(path)
        return "", [path]

    def make(self, path):
        self.above(path)
        os.mkdir(path, self.dice.choice((0o700, 0o755)))
        self.dirs.add(path)
        return "", []

    def away(self, path):
        """What is denied goes elsewhere; known before the jobs began, it must not be seen there either."""
        if path not in self.movable:
            raise FileNotFoundError(path)
        os.rename(path, f"{path}.moved")
        self.movable.discard(path)
        self.renamed(path, f"{path}.moved")
        self.loose.add(f"{path}.moved/")  # a placeholder that got another name is the user's
        return "", [path, f"{path}.moved"]

    def above_away(self, path):
        """A directory above goes elsewhere; placeholders in it are nobody's to find."""
        top = path.split("/")[0]
        if top == path or os.path.lexists(f"{top}.old"):
            raise FileNotFoundError(path)
        os.rename(top, f"{top}.old")
        self.movable = {n for n in self.movable if not n.startswith(top + "/")}
        self.renamed(top, f"{top}.old")
        self.loose.add(f"{top}.old/")
        return "", [top]

    def beside(self, path):
        """A neighbour of what is denied."""
        return self.create(f"{path}.beside")[0], []

    EDITS = ((create, 6), (write, 3), (save, 6), (delete, 5), (make, 2), (away, 1), (above_away, 1),
             (beside, 3))

    def one(self):
        edit = self.dice.choices([e for e, _ in self.EDITS], [w for _, w in self.EDITS])[0]
        path = self.dice.choice(self.denied)
        if edit in (Host.create, Host.save) and os.path.isdir(path) and os.listdir(path):
            path += "/f"
        begun = time.monotonic_ns()
        before = set(self.dirs)
        try:
            token, taken = edit(self, path)
        except OSError as failure:
            # It may have got half way: what it made above stays, what it was to replace may be gone.
            token, taken = f"failed: {failure.strerror}", [path]
        self.edits.append([begun, time.monotonic_ns(), edit.__name__, path, token,
                           taken + sorted(self.dirs - before)])


def main():
    order = json.loads(sys.stdin.readline())
    os.chdir(order["place"])
    host = Host(order)
    print("ready", flush=True)
    end = time.monotonic() + order["seconds"]
    while time.monotonic() < end:
        host.one()
        time.sleep(host.dice.choice((0, 0, 0.002, 0.01, 0.05, 0.1)))
    json.dump({"edits": host.edits, "files": host.files, "dirs": sorted(host.dirs),
               "loose": sorted(host.loose)}, sys.stdout)


main()
