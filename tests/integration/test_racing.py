# SPDX-License-Identifier: Apache-2.0
"""A user who turns links and renames directories below his own rules while his jobs are set up.

FSBOX_SOAK_SECONDS (5) and FSBOX_SOAK_SPAWNS (so many must have run; 1) make it longer: tests/soak/racing.sh.
"""

import contextlib
import ctypes
import os
import re
import signal
import threading
import time

import lib
from guardlib import events
from lib import User, case, equal, project, succeeds, wait_for

SECONDS = int(os.environ.get("FSBOX_SOAK_SECONDS", "5"))
SPAWNS = int(os.environ.get("FSBOX_SOAK_SPAWNS", "1"))
CLIENTS = 8
RENAME_EXCHANGE = 2
AT_FDCWD = -100

# Why a request may fail while its paths are turned: said, never anything else.
REASONS = ("path-not-found", "setup-failed", "policy-invalid")


def exchange(one, other):
    ctypes.CDLL(None).renameat2(AT_FDCWD, one.encode(), AT_FDCWD, other.encode(), RENAME_EXCHANGE)


def swap(place, targets):
    """Until killed: below PLACE everything that rules name is turned or renamed."""
    turn = 0
    while True:
        turn += 1
        time.sleep(turn % 7 / 1000)  # jobs are to get somewhere, too
        with contextlib.suppress(OSError):
            os.symlink(targets[turn % len(targets)], f"{place}/new")
            os.rename(f"{place}/new", f"{place}/at")
        exchange(f"{place}/d", f"{place}/e")
        exchange(f"{place}/d/work", f"{place}/d/other")
        # A directory that is a link to what nobody may reach, for a moment.
        with contextlib.suppress(OSError):
            os.symlink(targets[-1 - turn % 2], f"{place}/trap")
        exchange(f"{place}/x", f"{place}/trap")
        exchange(f"{place}/x", f"{place}/trap")
        with contextlib.suppress(OSError):
            os.unlink(f"{place}/trap")
        with contextlib.suppress(OSError), open(f"{place}/n", "w", encoding="utf-8") as file:
            file.write("new\n")
        with contextlib.suppress(OSError):
            os.rename(f"{place}/n", f"{place}/.npmrc")


def start_swapper(user, place, targets):
    """A process of USER's; its number."""
    pid = os.fork()
    if pid:
        return pid
    try:
        if lib.IS_ROOT:
            os.setgroups(user.groups)
            os.setresgid(user.gid, user.gid, user.gid)
            os.setresuid(user.uid, user.uid, user.uid)
        swap(place, targets)
    finally:
        os._exit(1)


def prepare(daemon, place):
    daemon.user.shell(f"""
        for d in d e; do mkdir -p {place}/$d/work {place}/$d/other
            echo inside >{place}/$d/work/f; echo denied >{place}/$d/secret; done
        mkdir -p {place}/good {place}/x/y; echo good >{place}/good/f; echo x >{place}/x/y/f
        echo old >{place}/.npmrc; ln -s good {place}/at""")
    return ["--ro", f"{place}/at", "--deny", f"{place}/d/secret", "--rw", f"{place}/d/work", "--ro",
            f"{place}/x/y", "--deny", f"{place}/.npmrc", "--deny", f"{place}/absent", "--rw",
            f"{place}/x"]


def check_mounts(daemon, place, text):
    """Every mount of a job is below something that its policy names, and of something it may name."""
    for line in text.splitlines():
        fields = line.split(" ")
        root, where = fields[3], fields[4]
        fstype, source = fields[fields.index("-") + 1:][:2]
        if re.search(r"/unreachable|/fsbxb", root) or "unreachable" in where:
            raise AssertionError(f"{place}: mounted from out of reach: {line}")
        own = where.startswith((place, "/proc", "/dev", "/tmp", "/run", "/var/tmp", "/sys")) or \
            where == "/"
        if fstype in ("tmpfs", "proc", "devpts") and source in ("fsbox", "proc", "devpts"):
            continue
        if not own and "rw" in fields[5].split(",") and not where.startswith(daemon.user.home + "/."):
            raise AssertionError(f"{place}: writable outside of the policy: {line}")


def given_up(daemon):
    """The jobs that a guard ended, since it could not put back what was taken off them."""
    return {event["job"] for event in events(daemon, "mask.lost")}


class Spawner(threading.Thread):
    def __init__(self, daemon, place, rules, until):
        super().__init__(daemon=True)
        self.daemon_, self.place, self.rules, self.until = daemon, place, rules, until
        self.ran = self.refused = self.killed = 0
        self.slowest = (0, None)
        self.reasons = {}
        self.failure = None

    def run(self):
        try:
            while not self.until():
                self.one()
        except BaseException as failure:  # pylint: disable=broad-except
            self.failure = failure

    def one(self):
        started = time.monotonic()
        result = self.daemon_.sh(
            "cat at/* d/* d/work/* x/* x/y/* 2>&-; echo; echo mounts; cat /proc/self/mountinfo",
            "--engine", "native", *self.rules, cwd=self.place, timeout=60)
        out = lib.text(result.stdout)
        self.slowest = max(self.slowest, (time.monotonic() - started, lib.show(result)[-300:]))
        why = re.sub(r"'[^']*'", "P", lib.text(result.stderr))
        self.reasons[why] = self.reasons.get(why, 0) + 1
        if "OUT OF REACH" in out:
            raise AssertionError(f"{self.place}: {out}")
        if result.returncode == 0:
            self.ran += 1
            check_mounts(self.daemon_, self.place, out.partition("\nmounts\n")[2])
            return
        self.refused += 1
        if result.returncode == 137:
            self.killed += 1  # by its guard, as the records must say
            return
        if result.returncode != 125 or not any(f"({why})" in lib.text(result.stderr)
                                               for why in REASONS):
            raise AssertionError(f"{self.place}: {lib.show(result)}")


def mounts():
    with open("/proc/self/mountinfo", encoding="utf-8") as file:
        return sum(1 for _ in file)


def out_of_reach(daemon):
    """A directory that the user may not reach, and one of another user's."""
    found = []
    if lib.IS_ROOT:
        hidden = "/run/unreachable"
        os.makedirs(f"{hidden}/d", exist_ok=True)
        for path in (f"{hidden}/f", f"{hidden}/d/f"):
            with open(path, "w", encoding="utf-8") as file:
                file.write("OUT OF REACH\n")
        os.chmod(hidden, 0o700)
        User("fsbxb").shell("mkdir -p private/y; echo OUT OF REACH >private/y/f; chmod 700 .")
        found = [f"{hidden}/d", "/home/fsbxb/private"]
    return found or ["/etc/ssl/private", "/proc/1/root"]


@case("system", "user")
def racing_clients_get_nothing_that_is_not_theirs(daemon):
    targets = ["good", "/usr/share", *out_of_reach(daemon)]
    places = [project(daemon, f"race{n}") for n in range(CLIENTS)]
    rules = [prepare(daemon, place) for place in places]
    succeeds(daemon.sh("true", cwd=places[0]))
    time.sleep(1.5)
    before = lib.descriptors_but_of_templates(daemon.process.pid), mounts()
    swappers = [start_swapper(daemon.user, place, targets) for place in places]
    begun = time.monotonic()
    spawners = []

    def done():
        return time.monotonic() - begun > SECONDS and sum(s.ran for s in spawners) >= SPAWNS
    spawners += [Spawner(daemon, place, rule, done) for place, rule in zip(places, rules)]
    for each in spawners:
        each.start()
    for each in spawners:
        each.join()
    for pid in swappers:
        os.kill(pid, signal.SIGKILL)
        _, status = os.waitpid(pid, 0)
        equal(status, signal.SIGKILL, "a swapper ended by itself")
    for each in spawners:
        if each.failure:
            raise each.failure
    ran, refused = sum(s.ran for s in spawners), sum(s.refused for s in spawners)
    slowest = max(s.slowest for s in spawners)
    if os.environ.get("FSBOX_SOAK_WHY"):
        print(slowest, {w: n for s in spawners for w, n in s.reasons.items()})
    if slowest[0] > 15:
        raise AssertionError(f"a request took {slowest[0]:.1f} s: {slowest[1]}")
    print(f"# {daemon.mode}: {ran} ran, {refused} were refused in {time.monotonic() - begun:.0f} s")
    killed = sum(s.killed for s in spawners)
    wait_for(lambda: len(given_up(daemon)) >= killed, 10, f"records of {killed} that guards ended")

    # Nothing is left of all that.
    wait_for(lambda: not daemon.jobs(), 20, "the end of the jobs")
    wait_for(lambda: not lib.processes("fsbox-init"), 10, "every pid 1 to go")
    equal(mounts(), before[1], "mounts of the host")
    for place in places:
        wait_for(lambda at=place: not os.path.lexists(f"{at}/absent"), 10, "placeholders to go")
    succeeds(daemon.sh("true", cwd=places[0]))
    wait_for(lambda: lib.descriptors_but_of_templates(daemon.process.pid) <= before[0], 10,
             f"descriptors to go; {before[0]} before")


lib.main()
