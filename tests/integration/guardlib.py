# SPDX-License-Identifier: Apache-2.0
"""What the tests of guards share: a job that does what it is told, events, daemons of one's own."""

import contextlib
import json
import os
import signal
import subprocess
import time

import lib
from lib import equal, processes, project, wait_for

MODES = ("system", "user")
NATIVE = ("--engine", "native")


class Inside:
    """A shell in a sandbox, one line at a time; its result from --status-fd at the end."""

    LOOP = ('echo up; while read -r line; do eval "$line"; s=$?; echo; echo "#$s"; done '
            '2>/dev/null')

    def __init__(self, daemon, *options, cwd, user=None):
        self.status_fd, theirs = os.pipe()
        command = daemon.command("spawn", *NATIVE, "--status-fd", str(theirs), *options, "--",
                                 "/bin/sh", "-c", self.LOOP)
        self.user = user or daemon.user
        self.process = self.user.popen(command, cwd=cwd, stdin=-1, stdout=-1, stderr=-1,
                                       pass_fds=[theirs])
        os.close(theirs)
        first = self.process.stdout.readline()
        if first != b"up\n":
            raise AssertionError(f"{first!r}, {self.process.stderr.read()!r}")

    def tell(self, line):
        self.process.stdin.write(f"{line}\n".encode())
        self.process.stdin.flush()

    def run(self, line):
        """What LINE printed and its status."""
        self.tell(line)
        out = b""
        while True:
            got = self.process.stdout.readline()
            if not got:
                raise AssertionError(f"the job is gone: {self.process.stderr.read()!r}")
            if got.startswith(b"#"):
                return lib.text(out[:-1]), int(got[1:])
            out += got

    def end(self):
        """The `exited` object."""
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        self.process.wait(20)
        said = b""
        while True:
            data = os.read(self.status_fd, 65536)
            if not data:
                break
            said += data
        os.close(self.status_fd)
        for stream in (self.process.stdout, self.process.stderr):
            stream.close()
        return json.loads(said)


@contextlib.contextmanager
def inside(daemon, *options, cwd, user=None):
    job = Inside(daemon, *options, cwd=cwd, user=user)
    try:
        yield job
    finally:
        if job.process.poll() is None:
            job.process.kill()
            job.process.wait()


def hidden(job, path):
    """Nothing of PATH can be read, now or after a moment for the guard."""
    def closed():
        out, _ = job.run(f"cat {path} 2>&1 | grep -c LEAK")
        return out.strip() == "0"
    wait_for(closed, 5, f"{path} closed")


def events_path(daemon):
    if daemon.mode == "system":
        return "/var/log/fsbox/events.jsonl"
    state = daemon.user.environment().get("XDG_STATE_HOME", f"{daemon.user.home}/.local/state")
    return f"{state}/fsbox/events.jsonl"


def events(daemon, kind, since=0, below=""):
    """Those of KIND behind the first SINCE; about what lies in the folder BELOW."""
    with contextlib.suppress(FileNotFoundError):
        found = lib.records(events_path(daemon))
        return [event for event in found if event["event"] == kind and
                event.get("detail", "").startswith(below)][since:]
    return []


def guards():
    return processes("fsbox-guard")


@contextlib.contextmanager
def own_daemon(mode, config, **options):
    if mode == "system" and not lib.IS_ROOT:
        raise lib.Skip("needs root")
    daemon = lib.make_daemon(mode)
    daemon.start(config=config, **options)
    try:
        yield daemon
    finally:
        daemon.stop()
        daemon.write_config(None if mode == "system" else "")


def stop(daemon, how):
    """fsboxd ends by SIGTERM or SIGKILL; its children are left."""
    daemon.process.send_signal(how)
    equal(daemon.process.wait(30), 0 if how == signal.SIGTERM else -how, "fsboxd's end")


def restart(daemon, how):
    """Another fsboxd takes the place of this one, which ends by HOW; None: it has ended."""
    if how:
        stop(daemon, how)
    daemon.process = daemon.owner().popen([lib.FSBOXD, "--mode", daemon.mode], cwd="/",
                                          stdout=daemon.log, stderr=daemon.log)
    daemon.wait_until_it_answers()


def repository(daemon, name):
    place = project(daemon, name)
    daemon.user.shell("git init -q .; git -c user.name=t -c user.email=t@t commit -q --allow-empty "
                      "-m x; rm -rf .git/hooks; mkdir -p .git/modules/known", cwd=place)
    return place


def of_user(daemon):
    """The guard of the daemon's user."""
    for pid in guards():
        status = lib.status_of(pid)
        if status["Uid"].startswith(f"{daemon.user.uid}\t") and status["PPid"] == str(daemon.process.pid):
            return pid
    return None


def quantile(values, share):
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


CANARY = """
import sys, time
seen = []
end = time.monotonic() + float(sys.argv[2])
while time.monotonic() < end:
    try:
        with open(sys.argv[1]) as file:
            if file.read():
                seen.append(time.monotonic_ns())
    except OSError:
        pass
print(*seen)
"""


def canary(daemon, saves, pause):
    """A job reads a masked file all the time while it is saved over.

    How often it was seen before that; for how long of each save, and what the events say, in ms.
    """
    place = project(daemon, "canary")
    secret = daemon.user.write(f"{place}/.env", "first\n")
    before = len(events(daemon, "mask.repaired"))
    command = daemon.command("spawn", *NATIVE, "--deny", secret, "--", "/usr/bin/python3", "-c", CANARY,
                             secret, str(saves * pause * 1.5 + 2))
    job = daemon.user.popen(command, cwd=place, stdout=subprocess.PIPE)
    time.sleep(0.5)
    saved = []
    for i in range(saves):
        with open(f"{place}/new", "w", encoding="utf-8") as file:
            file.write(f"save{i}\n")
        os.chmod(f"{place}/new", 0o644)
        saved.append(time.monotonic_ns())
        os.rename(f"{place}/new", secret)
        time.sleep(pause)
    out, _ = job.communicate(timeout=60)
    seen = [int(when) for when in out.split()]
    windows = []
    for i, start in enumerate(saved):
        end = saved[i + 1] if i + 1 < saves else start + 10**12
        windows.append(max((when - start for when in seen if start <= when < end), default=0) / 1e6)
    told = [event["exposureUs"] / 1000 for event in
            wait_for(lambda: len(events(daemon, "mask.repaired", before)) >= saves // 10 and
                     events(daemon, "mask.repaired", before), 5, "events")]
    return len([when for when in seen if when < saved[0]]), windows, told
