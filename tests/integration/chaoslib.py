# SPDX-License-Identifier: Apache-2.0
"""One round of the chaos test: jobs that share a tree, a user who edits it, and roles that are killed.

All that happens follows from the seed of the round, but for the order in which processes run.
"""

import contextlib
import json
import os
import random
import signal
import subprocess
import threading
import time

import lib
from lib import equal, processes, project, wait_for

FILES = {"secret0": "HOST i0\n", "d0/secret1": "HOST i1\n", "d0/keep": "HOST i2\n",
         "d1/keys/f": "HOST i3\n", "d1/keep": "HOST i4\n", "ro0/keep": "HOST i5\n"}
DIRS = ["d0", "d1", "d1/keys", "ro0", "closed"]
PRESENT = ["secret0", "d0/secret1", "d1/keys"]
ABSENT = ["n0", "n1/x", "n2/x/y", "d0/.late", "d1/.z/q", "ro0/late"]

# How long a mask may be off while a guard runs and the machine has other things to do.
WINDOW_MS = 3000
VICTIMS = ("client", "init", "command", "broker", "builder", "leader", "recorder", "guard", "fsboxd")
ROLES = {"fsboxd", "fsbox-broker", "fsbox-recorder", "fsbox-netns", "fsbox-egress", "fsbox-resolver"}

HOST_SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "chaoshost.py")

# Reads what is denied, all the time; says what of the user's it saw.
CANARY = """
import sys, time
print("up", time.monotonic_ns(), flush=True)
end = time.monotonic() + float(sys.argv[1])
while time.monotonic() < end:
    for path in sys.argv[2:]:
        try:
            with open(path) as file:
                said = file.read(100)
        except OSError:
            continue
        if said.startswith("HOST"):
            print("saw", time.monotonic_ns(), path, said.strip(), flush=True)
    time.sleep(0.0005)
print("end", time.monotonic_ns(), flush=True)
sys.exit(int(7))
"""

# Tries to make what is denied, and never takes the place of anything.
WORKER = ('set -C; end=$1; shift; i=0; while [ $i -lt $end ]; do i=$((i+1)); for p; do echo JOB >"$p"; done; '
          'sleep 0.02; done 2>/dev/null; exit 7')


class Job(threading.Thread):
    """A client and its job, from the start of the one to the end of both."""

    def __init__(self, daemon, place, deny, seconds, canary, engine):
        super().__init__(daemon=True)
        self.deny, self.canary, self.engine = deny, canary, engine
        options = [word for path in deny for word in ("--deny", f"{place}/{path}")]
        if any(path.startswith("ro0/") for path in deny):
            options += ["--ro", f"{place}/ro0"]
        if canary:
            looked = [name for path in deny for name in (path, f"{path}/f", f"{path}.moved",
                                                         f"{path}.moved/f")]
            command = ["/usr/bin/python3", "-S", "-c", CANARY, str(seconds), *looked]
        else:
            command = ["/bin/sh", "-c", WORKER, "sh", str(int(seconds / 0.025)), *deny]
        self.client = daemon.user.popen(daemon.command("spawn", "--engine", engine, *options, "--",
                                                       *command),
                                        cwd=place, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.out = self.said = None
        self.start()

    def run(self):
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.out, self.said = self.client.communicate(timeout=60)

    def over(self):
        self.join(60)
        if self.out is None:
            self.client.kill()
            raise AssertionError(f"a job with {self.deny} did not end")
        self.out, self.said = lib.text(self.out), lib.text(self.said)

    def lines(self, word):
        """What a canary said, [time, path, token]."""
        whole = self.out[:self.out.rfind("\n") + 1].split("\n")
        return [[int(line.split(" ")[1]), *line.split(" ", 3)[2:]] for line in whole
                if line.startswith(word + " ")]


# ---- who is killed ---------------------------------------------------------------------------


def parent_of(pid):
    with contextlib.suppress(OSError, IndexError):
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            return int(file.read().rpartition(")")[2].split()[1])
    return None


def candidates(daemon, victim, jobs):
    if victim == "client":
        return [job.client.pid for job in jobs if job.client.poll() is None]
    if victim == "fsboxd":
        return [daemon.process.pid]
    if victim == "leader":  # forked by fsboxd and not yet what it will be
        return [pid for pid in processes("fsboxd") if pid != daemon.process.pid]
    if victim == "command":
        inits = processes("fsbox-init")
        return [pid for pid in processes() if parent_of(pid) in inits]
    return list(processes(f"fsbox-{victim}"))


def state_dir(daemon):
    return "/var/lib/fsbox" if daemon.mode == "system" else f"{daemon.user.home}/.local/state/fsbox"


def stop(daemon, how):
    daemon.process.send_signal(how)
    equal(daemon.process.wait(20), 0 if how == signal.SIGTERM else -how, "fsboxd's end")


def begin(daemon):
    daemon.process = daemon.owner().popen([lib.FSBOXD, "--mode", daemon.mode], cwd="/",
                                          stdout=daemon.log, stderr=daemon.log)
    daemon.wait_until_it_answers()


# ---- a round ---------------------------------------------------------------------------------


class Round:
    def __init__(self, daemon, seed, runtime):
        self.daemon, self.seed, self.runtime = daemon, seed, runtime
        self.dice = random.Random(f"{daemon.mode} {seed}")
        self.place = project(daemon, f"chaos{seed}")
        # bwrap makes mount points that went away meanwhile by itself, and has no guard: with it the user rests.
        self.bwrap = self.dice.random() < 0.15
        self.jobs, self.killed, self.windows = [], [], []
        self.host, self.edits, self.model = None, [], None

    # What happens.

    def prepare(self):
        lines = ["umask 022"]
        lines += [f"mkdir -p {name}" for name in DIRS]
        lines += [f"printf '{token}' >{name}".replace("\n", "\\n") for name, token in FILES.items()]
        self.daemon.user.shell("\n".join(lines) + "\nchmod 0700 closed", cwd=self.place)

    def start_host(self, seconds):
        with open(HOST_SOURCE, encoding="utf-8") as file:
            source = file.read()
        self.host = self.daemon.user.popen(["/usr/bin/python3", "-S", "-c", source], stdin=-1, stdout=-1,
                                           cwd=self.place)
        order = {"place": self.place, "seed": self.dice.random(), "seconds": seconds,
                 "files": FILES, "dirs": DIRS, "denied": PRESENT + ABSENT, "movable": PRESENT}
        self.host.stdin.write(json.dumps(order).encode() + b"\n")
        self.host.stdin.flush()
        equal(self.host.stdout.readline(), b"ready\n")

    def start_job(self, seconds, canary):
        deny = self.dice.sample(PRESENT + ABSENT, self.dice.randint(2, 6))
        engine = "bwrap" if self.bwrap and not canary and self.dice.random() < 0.5 else "native"
        self.jobs.append(Job(self.daemon, self.place, deny, seconds, canary, engine))

    def kill(self, victim):
        found = candidates(self.daemon, victim, self.jobs)
        if not found:
            return
        if victim == "fsboxd":
            how = self.dice.choice((signal.SIGKILL, signal.SIGKILL, signal.SIGTERM))
            self.killed.append((time.monotonic_ns(), victim, how.name))
            stop(self.daemon, how)
            time.sleep(self.dice.choice((0, 0.02, 0.1)))
            begin(self.daemon)
            return
        pid = self.dice.choice(sorted(found))
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
            self.killed.append((time.monotonic_ns(), victim, pid))

    def play(self):
        self.prepare()
        seconds = self.dice.uniform(0.3, 1.0)
        plan = [(0.0, self.start_job, (seconds, True))]
        for _ in range(self.dice.randint(0, 7)):
            plan.append((self.dice.uniform(0, seconds / 2), self.start_job,
                         (self.dice.uniform(0.05, seconds), self.dice.random() < 0.2)))
        for _ in range(self.dice.choice((0, 1, 1, 2, 3, 4))):
            plan.append((self.dice.uniform(0, seconds), self.kill, (self.dice.choice(VICTIMS),)))
        # Half of the rounds begin with the edits, the others when the first jobs are up.
        plan.append((self.dice.choice((0.0, 0.15)), self.start_host, (0 if self.bwrap else seconds,)))
        began = time.monotonic()
        for when, what, arguments in sorted(plan, key=lambda entry: entry[0]):
            time.sleep(max(0, began + when - time.monotonic()))
            what(*arguments)
        self.model = json.loads(self.host.stdout.read())
        self.host.stdin.close()
        self.host.stdout.close()
        equal(self.host.wait(10), 0, "the user's edits")
        self.edits = self.model["edits"]
        for job in self.jobs:
            job.over()

    # What must be so then.

    def check(self):
        stop(self.daemon, self.dice.choice((signal.SIGKILL, signal.SIGTERM)))
        begin(self.daemon)
        wait_for(lambda: not self.daemon.jobs(), 20, "the end of all jobs")
        wait_for(lambda: not self.left_processes(), 10, f"the end of {self.left_processes()}")
        wait_for(lambda: not self.left_files(), 10, f"in the tree: {self.left_files()}")
        equal(self.missing(), [], "what the user wrote and is gone")
        wait_for(lambda: not self.left_at_runtime(), 10, f"runtime files: {self.left_at_runtime()}")
        for job in self.jobs:
            self.check_result(job)
            if job.canary:
                self.check_canary(job)

    def left_processes(self):
        allowed, found = {os.getpid(), self.daemon.process.pid}, {}
        known = processes()
        for pid, name in known.items():
            above = pid
            while above and above not in (self.daemon.process.pid, 1):
                above = parent_of(above)
            if pid not in allowed and (above != self.daemon.process.pid or name not in ROLES):
                found[pid] = name
        return found

    def walk(self):
        """Relative names of directories, and of files with what is in them."""
        dirs, files = set(), {}
        for top, names, leaves in os.walk(self.place):
            where = os.path.relpath(top, self.place)
            where = "" if where == "." else where + "/"
            dirs |= {where + name for name in names}
            for leaf in leaves:
                with open(f"{top}/{leaf}", encoding="utf-8", errors="replace") as file:
                    files[where + leaf] = file.read()
        return dirs, files

    def left_files(self):
        dirs, files = self.walk()
        model = self.model
        needed = set(model["dirs"]) | set(model["loose"])
        for name in files:
            parts = name.split("/")[:-1]
            needed |= {"/".join(parts[:depth + 1]) for depth in range(len(parts))}
        found = [f"{name}/ {self.mode(name)}" for name in dirs - needed
                 if not any(l.endswith("/") and f"{name}/".startswith(l) for l in model["loose"])]
        # A job may have made what is denied to others, or what the user had uncovered.
        found += [f"{name}: {said!r}" for name, said in files.items()
                  if name not in model["files"] and said not in ("JOB\n", "")]
        return sorted(found)

    def mode(self, name):
        with contextlib.suppress(FileNotFoundError):
            return f"{os.stat(f'{self.place}/{name}').st_mode & 0o7777:o}"
        return "gone"

    def missing(self):
        dirs, files = self.walk()
        found = [f"{name}: {token!r}, but {files.get(name)!r} is there"
                 for name, token in self.model["files"].items() if files.get(name) != token]
        return sorted(found + [f"{name}/" for name in set(self.model["dirs"]) - dirs])

    def left_at_runtime(self):
        """Beside files of jobs, which stay for those who ask again, and of brokers that run."""
        top = os.path.dirname(self.daemon.socket)
        return sorted(set(os.listdir(top)) - {"jobs", *self.runtime} |
                      {name for name in os.listdir(f"{top}/jobs")
                       if not name.isdigit() and name != "last" and name[0] != "b"})

    def was_killed(self, *victims):
        return any(victim in victims for _, victim, _ in self.killed)

    def check_result(self, job):
        status = job.client.returncode
        allowed = {7, 125}
        if self.was_killed("client", "init", "command", "guard"):
            allowed |= {-9, 137, 123}
        if not self.killed and not self.edits:
            allowed = {7}
        if status not in allowed:
            raise AssertionError(f"a job with {job.deny} ended with {status}: {job.said}")
        if status == 125 and "internal" in job.said:
            raise AssertionError(f"a job with {job.deny}: {job.said}")

    def check_canary(self, job):
        """Whatever was seen, an edit had just uncovered it; how long each edit did."""
        up, end = job.lines("up"), job.lines("end")
        if not up:
            return
        seen, taken = job.lines("saw"), {}
        for when, path, token in seen:
            denied = next(d for d in job.deny if path in (d, f"{d}/f", f"{d}.moved", f"{d}.moved/f"))
            names = {path, path.removesuffix("/f"), *self.levels(path)}
            edit = next((e for e in reversed(self.edits) if e[0] <= when and names & set(e[5])), None)
            if ".moved" in path and (edit is None or edit[0] < up[0][0]):
                continue  # it was moved before anybody knew it
            if edit is None:
                raise AssertionError(f"{path} ({denied} is denied) was seen with {token!r}, untouched")
            taken[edit[0]] = (max(taken.get(edit[0], (0,))[0], when - max(edit[0], up[0][0])), path)
        last = end[0][0] if end else seen[-1][0] if seen else up[0][0]
        for edit in self.edits:
            if up[0][0] < edit[0] < last and set(edit[5]) & {n for d in job.deny for n in self.levels(d)}:
                self.windows.append(taken.get(edit[0], (0,))[0] / 1e6)
        worst = max(taken.values(), default=(0, ""))
        if worst[0] / 1e6 > WINDOW_MS and not self.was_killed("guard", "fsboxd", "builder", "leader"):
            raise AssertionError(f"{worst[1]} was seen for {worst[0] / 1e6:.0f} ms")

    @staticmethod
    def levels(path):
        parts = path.split("/")
        return {"/".join(parts[:depth + 1]) for depth in range(len(parts))}

    # What is told of a round that failed.

    def story(self):
        entries = [(e[0], f"user: {e[2]} {e[3]} {e[4].strip()}") for e in self.edits]
        entries += [(when, f"killed: {victim} {which}") for when, victim, which in self.killed]
        start = min((when for when, _ in entries), default=0)
        yield f"in {self.place}"
        for job in self.jobs:
            yield (f"job of {job.engine}{', canary' if job.canary else ''}: {job.deny}, "
                   f"status {job.client.poll()}: {job.said!r}, {(job.out or '')[-60:]!r}"[:400])
        for when, what in sorted(entries):
            yield f"{(when - start) / 1e6:8.1f} ms  {what}"
        with contextlib.suppress(OSError), open(f"{state_dir(self.daemon)}/ledger", encoding="ascii") as file:
            yield from (f"ledger: {line.rstrip()}" for line in file if f"{self.place}/" in line)
