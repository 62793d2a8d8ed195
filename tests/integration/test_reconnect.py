# SPDX-License-Identifier: Apache-2.0
"""Clients, brokers, the recorder and the service manager when fsboxd or a broker is followed by another
one."""

import contextlib
import json
import os
import random
import signal
import socket
import subprocess
import time

import lib
import wire
from lib import User, case, equal, lacks, project, status_is, succeeds, wait_for
from restarting import (MODES, begin, detached, end, listed, no_job_left, restart, run_place,
                        running, twenty, wait)


# ---- clients -------------------------------------------------------------------------------


class Foreground:
    """`fsboxctl spawn` that prints, waits for a file to go, prints again and ends with a status."""

    def __init__(self, daemon, place, held, number):
        self.number = number
        self.path = f"{place}/relayed.{number}"
        script = (f"echo before {number}; while [ -e {held} ]; do sleep 0.05; done; "
                  f"echo after {number}; exit {number}")
        # Every other one writes to a file that the job may not open: its client copies.
        self.relayed = number % 2 == 1
        # pylint: disable-next=consider-using-with
        out = os.open(daemon.user.write(f"{daemon.user.home}/out.{number}"), os.O_RDWR) \
            if self.relayed else subprocess.PIPE
        self.process = daemon.user.popen(daemon.command("spawn", "--", "/bin/sh", "-c", script),
                                         cwd=place, stdout=out, stderr=subprocess.PIPE)
        self.out = out

    def check(self):
        out, errors = self.process.communicate(timeout=60)
        if self.relayed:
            out = os.pread(self.out, 4096, 0)
            os.close(self.out)
        equal((self.process.returncode, out, errors),
              (self.number, f"before {self.number}\nafter {self.number}\n".encode(), b""))


@case(*MODES)
def clients_find_their_jobs_again(daemon):
    place = project(daemon, "clients")
    for how in (signal.SIGTERM, signal.SIGKILL):
        for while_down in (False, True):
            held = daemon.user.write(f"{place}/held")
            clients = [Foreground(daemon, place, held, number) for number in range(8)]
            wait_for(lambda: len(running(daemon)) == 8, 20, "eight jobs")
            end(daemon, how)
            if while_down:
                os.remove(held)
                time.sleep(0.3)
            begin(daemon)
            if not while_down:
                os.remove(held)
            for client in clients:
                client.check()
            no_job_left(daemon)


def brokers(daemon):
    path = f"/proc/{daemon.process.pid}/task/{daemon.process.pid}/children"
    with open(path, encoding="ascii") as file:
        return [int(pid) for pid in file.read().split() if int(pid) in lib.processes("fsbox-broker")]


@case(*MODES)
def R24_results_are_exact_when_the_broker_dies(daemon):
    place = project(daemon, "broker")
    for while_dead in (False, True):
        held = daemon.user.write(f"{place}/held")
        ends = twenty(daemon, place, held)
        clients = [Foreground(daemon, place, held, number) for number in range(6)]
        wait_for(lambda: len(running(daemon)) == 26, 20, "the jobs")
        if while_dead:
            # Clients that were stopped ask only when all is over.
            for client in clients:
                client.process.send_signal(signal.SIGSTOP)
        for pid in brokers(daemon):
            os.kill(pid, signal.SIGKILL)
        os.remove(held)
        if while_dead:
            wait_for(lambda: not lib.processes("fsbox-init"), 20, "the end of the jobs")
            for client in clients:
                client.process.send_signal(signal.SIGCONT)
        for client in clients:
            client.check()
        equal({job: wait(daemon, job) for job in ends}, ends)
        no_job_left(daemon)


def kill_brokers(daemon):
    for pid in brokers(daemon):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


class Short:
    """A client with a job that takes SECONDS and ends with 7."""

    def __init__(self, daemon, place, seconds, *options):
        self.process = daemon.user.popen(
            daemon.command("spawn", *options, "--", "/bin/sh", "-c", f"sleep {seconds}; exit 7"),
            cwd=place, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)

    def check(self):
        """It was never told that its job began, or how that ended."""
        _, said = self.process.communicate(timeout=60)
        if self.process.returncode == 125:
            lib.contains(said, "(daemon-unreachable)")
        else:
            equal((self.process.returncode, said), (7, b""))


@case(*MODES)
def R24_results_are_exact_when_broker_and_fsboxd_die(daemon):
    """The one right before or after the other, while jobs begin, run and end; and often, so that results of
    many restarts lie there."""
    place = project(daemon, "both")
    dice = random.Random(1)
    for _ in range(6):
        clients = []
        for number in range(6):
            deny = ("--deny", f"{place}/n{number}/x") if number % 2 else ()
            clients.append(Short(daemon, place, dice.choice((0, 0.01, 0.05, 0.2, 0.5)), *deny))
            time.sleep(dice.choice((0, 0.01, 0.02)))
        for fsboxd in dice.choice(((False, True), (True, False), (False, True, True), (False, True, False))):
            time.sleep(dice.choice((0, 0.003, 0.03, 0.1)))
            if fsboxd:
                restart(daemon, dice.choice((signal.SIGKILL, signal.SIGKILL, signal.SIGTERM)))
            else:
                kill_brokers(daemon)
        for client in clients:
            client.check()
    no_job_left(daemon)
    lacks(daemon.logged(), "gets no guard")


@case("system", "user")
def R24_the_newest_results_outlive_restarts(daemon):
    """However many results of before there are, and however often fsboxd was started since."""
    place = project(daemon, "newest")
    for _ in range(12):
        held = daemon.user.write(f"{place}/held")
        clients = [Short(daemon, place, f"0; while [ -e {held} ]; do sleep 0.05; done")
                   for _ in range(12)]
        wait_for(lambda: len(running(daemon)) == 12, 20, "the jobs")
        for client in clients:
            client.process.send_signal(signal.SIGSTOP)
        kill_brokers(daemon)
        os.remove(held)
        wait_for(lambda: not lib.processes("fsbox-init"), 20, "the end of the jobs")
        restart(daemon, signal.SIGKILL)
        for client in clients:
            client.process.send_signal(signal.SIGCONT)
        for client in clients:
            client.check()
            equal(client.process.returncode, 7)
    no_job_left(daemon)


@case("system", "user")
def R13_a_cookie_is_needed_to_be_right(daemon):
    """What a new broker knows of a job is enough to refuse a wrong cookie."""
    place = project(daemon, "cookie")
    job = detached(daemon, place, "sleep 60")
    restart(daemon, signal.SIGKILL)

    def ask(path, number):
        with wire.Connection(path) as connection:
            connection.hello()
            return [wire.kind_of(connection.call(method, {"job": number, "cookie": cookie, **more}))
                    for method, more in (("wait", {}), ("inspect", {}), ("signal", {"signal": 9}))
                    for cookie in ("0" * 32, "f" * 32)]

    equal(lib.as_user(daemon.user, ask, daemon.socket, job), ["job-unknown"] * 6)
    other = User("fsbxb") if lib.IS_ROOT and daemon.mode == "system" else None
    if other:
        status_is(daemon.ctl("wait", str(job), user=other), 1, "job-unknown")
        status_is(daemon.ctl("signal", str(job), "KILL", user=other), 1)
    succeeds(daemon.ctl("signal", str(job), "KILL"))
    equal(wait(daemon, job), ("signaled", 9))


def events(daemon):
    path = {"system": "/var/log/fsbox", "root": "/var/lib/fsbox-root",
            "user": f"{daemon.user.home}/.local/state/fsbox"}[daemon.mode]
    return lib.records(f"{path}/events.jsonl")


def check_events(daemon, jobs):
    """Each of JOBS has one start and one end."""
    wanted = {(job, kind): 1 for job in jobs for kind in ("execution.started", "execution.finished")}

    def count():
        found = {}
        for event in events(daemon):
            key = (event.get("job"), event.get("event"))
            if key in wanted:
                found[key] = found.get(key, 0) + 1
        return found

    end_at = time.monotonic() + 10
    while count() != wanted and time.monotonic() < end_at:
        time.sleep(0.1)
    equal(count(), wanted, "records")


@case(*MODES)
def R30_no_record_is_lost(daemon):
    place = project(daemon, "records")
    jobs = [detached(daemon, place, "sleep 1.5") for _ in range(4)]
    restart(daemon, signal.SIGTERM)
    jobs += [detached(daemon, place, "sleep 1.5") for _ in range(4)]
    for pid in lib.processes("fsbox-recorder"):
        os.kill(pid, signal.SIGKILL)
    jobs += [detached(daemon, place, "true") for _ in range(4)]
    for job in jobs:
        equal(wait(daemon, job), ("exited", 0))
    check_events(daemon, jobs)


@case(*MODES)
def R30_what_a_killed_recorder_did_not_read_is_for_the_next(daemon):
    place = project(daemon, "unread")
    jobs = [detached(daemon, place, "true")]
    recorders = [pid for pid in lib.processes("fsbox-recorder")]
    for pid in recorders:
        os.kill(pid, signal.SIGSTOP)
    jobs += [detached(daemon, place, "true") for _ in range(3)]
    for job in jobs:
        equal(wait(daemon, job), ("exited", 0))
    for pid in recorders:
        os.kill(pid, signal.SIGKILL)
    check_events(daemon, jobs)


# ---- with a service manager ----------------------------------------------------------------

# Execs fsboxd with descriptors from 3 on, as a service manager does (LISTEN_PID must be its own).
EXEC = """
import os, sys
fds = [int(fd) for fd in sys.argv[1].split(",") if fd]
high = [os.dup2(fd, 200 + index, inheritable=False) for index, fd in enumerate(fds)]
for index, fd in enumerate(high):
    os.dup2(fd, 3 + index, inheritable=True)
os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS=str(len(fds)), LISTEN_FDNAMES=sys.argv[2])
os.execv(sys.argv[3], sys.argv[3:])
"""


class Manager:
    """A service manager's notify socket and descriptor store."""

    def __init__(self, daemon):
        self.daemon = daemon
        self.path = f"{run_place(daemon)}/notify"
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(self.path)
        os.chmod(self.path, 0o666)
        self.store = []  # (name, fd)
        self.said = ""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()
        os.remove(self.path)
        for _, fd in self.store:
            os.close(fd)

    def hear(self, until="", seconds=10):
        """Everything that was said, up to UNTIL."""
        end_at = time.monotonic() + seconds
        self.said = ""
        while until not in self.said or not until:
            self.socket.settimeout(max(0.01, end_at - time.monotonic()) if until else 0.05)
            try:
                text, fds, _, _ = socket.recv_fds(self.socket, 4096, 4)
            except (TimeoutError, socket.timeout):
                if until:
                    raise AssertionError(f"{until!r} was not said, but {self.said!r}") from None
                break
            self.said += text.decode() + "\n"
            self.take(text.decode(), fds)
        return self.said

    def take(self, text, fds):
        values = dict(line.split("=", 1) for line in text.split("\n"))
        if values.get("FDSTORE") == "1":
            equal((len(fds), values.get("FDPOLL")), (1, "0"), text)
            self.store.append((values["FDNAME"], fds[0]))
        elif values.get("FDSTOREREMOVE") == "1":
            gone = [item for item in self.store if item[0] == values["FDNAME"]]
            for item in gone:
                self.store.remove(item)
                os.close(item[1])

    def names(self):
        return sorted({name for name, _ in self.store})

    def start(self):
        """With what is in the store, which is empty then."""
        fds, self.store = self.store, []
        command = ["/usr/bin/python3", "-c", EXEC, ",".join(str(fd) for _, fd in fds),
                   ":".join(name for name, _ in fds), lib.FSBOXD, "--mode", self.daemon.mode]
        self.daemon.process = self.daemon.owner().popen(
            command, cwd="/", env={"NOTIFY_SOCKET": self.path}, stdout=self.daemon.log,
            stderr=self.daemon.log, pass_fds=[fd for _, fd in fds])
        for _, fd in fds:
            os.close(fd)
        self.hear("READY=1")
        self.hear()


@case(*MODES)
def the_descriptor_store_is_filled_and_read(daemon):
    place = project(daemon, "store")
    daemon.stop()
    with Manager(daemon) as manager:
        manager.start()
        equal(manager.names(), ["listen"])
        # What is over soon is none of the manager's business.
        succeeds(daemon.spawn("--", "true", cwd=place))
        job = detached(daemon, place, "sleep 60")
        manager.hear("FDSTORE=1")
        equal(manager.names(), [f"job-{job}", "listen"])
        young = detached(daemon, place, "sleep 60")
        for how in (signal.SIGTERM, signal.SIGKILL):
            daemon.process.send_signal(how)
            daemon.process.wait(30)
            manager.hear()
            wanted = {f"job-{job}", "listen"} | ({f"job-{young}"} if how == signal.SIGTERM else set())
            equal(wanted <= set(manager.names()), True, f"{how}: {manager.names()}")
            # A client that comes now waits for the next fsboxd.
            client = daemon.user.popen(daemon.command("ps", "--json"), stdout=subprocess.PIPE)
            time.sleep(0.2)
            equal(client.poll(), None, "the client waits")
            manager.start()
            out, _ = client.communicate(timeout=20)
            equal({entry["job"] for entry in json.loads(out)["jobs"]}, {job, young})
            # The store was emptied: everything is stored anew.
            manager.hear()
            equal(manager.names(), sorted([f"job-{job}", f"job-{young}", "listen"]))
        for number in (job, young):
            succeeds(daemon.ctl("signal", str(number), "KILL"))
            equal(wait(daemon, number), ("signaled", 9))
        manager.hear()
        equal(manager.names(), ["listen"])
        # A process of that name that is dead is no job's, whatever lives under its number.
        daemon.process.send_signal(signal.SIGTERM)
        daemon.process.wait(30)
    os.remove(daemon.socket)
    daemon.start(config="root-peers = serve\n" if daemon.mode == "root" else "")


@case(*MODES)
def end_jobs_leaves_nothing(daemon):
    place = project(daemon, "stop")
    jobs = [detached(daemon, place, "trap : TERM; while :; do sleep 1; done") for _ in range(5)]
    process = daemon.user.popen(daemon.command("spawn", "--", "sleep", "600"), cwd=place,
                                stderr=subprocess.DEVNULL)
    wait_for(lambda: len(running(daemon)) == 6, 10, "the jobs")
    its_brokers = set(brokers(daemon))
    end(daemon, signal.SIGKILL)
    result = daemon.owner().run([lib.FSBOXD, "--mode", daemon.mode, "--end-jobs"], cwd="/")
    equal((result.returncode, lib.processes("fsbox-init")), (0, {}), lib.show(result))
    equal(os.path.exists(daemon.socket), False, "the socket")
    wait_for(lambda: not its_brokers & set(lib.processes("fsbox-broker")), 10, "the brokers")
    process.kill()
    process.wait()
    begin(daemon)
    equal(listed(daemon), {})
    for job in jobs:
        equal(wait(daemon, job), ("signaled", 9))
    # While one serves, it is the one to be asked.
    result = daemon.owner().run([lib.FSBOXD, "--mode", daemon.mode, "--end-jobs"], cwd="/")
    equal(result.returncode, 2, lib.show(result))
    succeeds(daemon.spawn("--", "true", cwd=place))




lib.main()
