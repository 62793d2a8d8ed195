# SPDX-License-Identifier: Apache-2.0
"""fsboxd alone: a broker of ours takes fsbox-broker's place, so that every part of a job that fsboxd
is responsible for shows by itself."""

import json
import os
import signal
import struct
import subprocess
import time

import lib
from fakebroker import TALK, spawner
from lib import User, case, contains, equal, wait_for

MODES = ("system", "user", "root")

# Connects, puts descriptors into the queue before anything is accepted, and shows what comes back.
PUSH = """
import array, os, socket, sys
client = socket.socket(socket.AF_UNIX)
client.connect(sys.argv[1])
reads, writes = os.pipe()
rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [writes]))]
try:
    client.sendmsg([b"x"], rights)
except BrokenPipeError:
    print("refused already", file=sys.stderr)
os.close(writes)
data = b""
while True:
    try:
        more = client.recv(65536)
    except ConnectionResetError:
        break
    if not more:
        break
    data += more
sys.stdout.buffer.write(data)
client.close()
# Nobody holds the writing end any more.
os.set_blocking(reads, True)
assert os.read(reads, 1) == b""
"""

# As many connections as the argument says, then one more, whose answer is shown.
CROWD = """
import resource, socket, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (4096, 4096))
held = []
for _ in range(int(sys.argv[2])):
    client = socket.socket(socket.AF_UNIX)
    client.connect(sys.argv[1])
    held.append(client)
client = socket.socket(socket.AF_UNIX)
client.connect(sys.argv[1])
client.settimeout(5)
sys.stdout.buffer.write(client.recv(65536))
"""


def python(fsboxd, program, *arguments, user=None, before=()):
    return (user or fsboxd.user).run([*before, "/usr/bin/python3", "-c", program, fsboxd.socket,
                                      *arguments])


def ticks(pid):
    """Processor time so far, in hundredths of a second."""
    with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return int(fields[11]) + int(fields[12])


def refusal(data):
    """The error object of a single frame."""
    (length,) = struct.unpack(">I", data[:4])
    equal(length, len(data) - 4, "frame")
    message = json.loads(data[4:])
    equal((message["jsonrpc"], message["id"]), ("2.0", None))
    return message["error"]


# ---- results -------------------------------------------------------------------------------


@case(root=True)
def a_job_runs_and_its_status_is_exact():
    for mode in MODES:
        with spawner(mode) as fsboxd:
            for engine in ("", "native "):
                equal(fsboxd.ask(f"{engine}/bin/true"), "ended exited 0 0\n", mode)
                equal(fsboxd.ask(f"{engine}echo hello; exit 137"), "hello\nended exited 137 0\n",
                      mode)
                equal(fsboxd.ask(f"{engine}kill -KILL $$"), "ended signaled 0 9\n", mode)
                equal(fsboxd.ask(f"{engine}id -u"), f"{fsboxd.user.uid}\nended exited 0 0\n", mode)


@case(root=True)
def R13_time_limits():
    for mode in MODES:
        with spawner(mode) as fsboxd:
            for engine in ("", "native "):
                start = time.monotonic()
                equal(fsboxd.ask(f"{engine}wall=300 sleep 60"), "ended timeout 0 0\n", mode)
                equal(fsboxd.ask(f"{engine}wall=300 exec 2>/dev/null; trap : TERM; while :; do sleep 60; done"),
                      "ended timeout 0 0\n", mode)
                if time.monotonic() - start > 20:
                    raise AssertionError(f"{mode}: it took {time.monotonic() - start} s")
            equal(lib.processes("sleep"), {}, "left over")


@case(root=True)
def signals_reach_the_command():
    with spawner("system") as fsboxd:
        for engine in ("", "native "):
            for number in (signal.SIGKILL, signal.SIGTERM, signal.SIGUSR1):
                equal(fsboxd.ask(f"{engine}signal={int(number)} exec sleep 60"),
                      f"ended signaled 0 {int(number)}\n")


def pid_1_of_the_job():
    for pid in lib.processes():
        numbers = lib.status_of(pid)["NSpid"].split()
        if len(numbers) > 1 and numbers[-1] == "1":
            return pid
    return None


@case(root=True)
def R24_pid_1_killed_is_lost():
    with spawner("system") as fsboxd:
        for engine in ("", "native "):
            client = fsboxd.start_asking(f"{engine}exec sleep 60")
            wait_for(lambda: lib.processes("sleep"), 10, "the command")
            os.kill(wait_for(pid_1_of_the_job, 5, "pid 1"), signal.SIGKILL)
            equal(fsboxd.answer_of(client), "ended lost 0 0\n")
            equal(lib.processes("sleep"), {}, "left over")


@case(root=True)
def the_leader_killed_changes_nothing():
    with spawner("system") as fsboxd:
        client = fsboxd.start_asking("sleep 1; exit 9")
        wait_for(lambda: lib.processes("sleep"), 10, "the command")
        for pid in lib.processes("bwrap"):
            os.kill(pid, signal.SIGKILL)
        equal(fsboxd.answer_of(client), "ended exited 9 0\n")


# ---- the end of fsboxd ---------------------------------------------------------------------


@case(root=True)
def jobs_go_on_when_fsboxd_ends():
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGKILL):
        with spawner("system") as fsboxd:
            client = fsboxd.start_asking("sleep 600")
            command = wait_for(lambda: lib.processes("sleep"), 10, "the command")
            fsboxd.process.send_signal(number)
            equal(fsboxd.process.wait(30), -number if number == signal.SIGKILL else 0)
            time.sleep(0.3)
            equal(lib.processes("sleep"), command, "jobs")
            equal(os.path.exists(fsboxd.socket), number == signal.SIGKILL, "socket")
            for pid in command:
                os.kill(pid, signal.SIGTERM)
            fsboxd.answer_of(client)
            wait_for(lambda: not lib.processes("sleep"), 10, "the end of the job")


@case(root=True)
def it_ends_by_itself_when_nobody_needs_it():
    fsboxd = spawner("user")
    start = time.monotonic()
    fsboxd.start("--idle-exit", "1")
    equal(fsboxd.ask("sleep 1.5; exit 3"), "ended exited 3 0\n")
    equal(fsboxd.process.wait(30), 0)
    if time.monotonic() - start < 2.4:
        raise AssertionError("it did not wait for the job and a second more")
    equal(os.path.exists(fsboxd.socket), False, "socket")
    fsboxd.forget()


@case(root=True)
def readiness_is_a_byte():
    fsboxd = spawner("user")
    reads, writes = os.pipe()
    process = fsboxd.user.popen([lib.FSBOXD, "--mode", "user", "--exec-dir", fsboxd.place,
                                 "--ready-fd", str(writes)], pass_fds=[writes],
                                stderr=subprocess.DEVNULL)
    os.close(writes)
    equal(os.read(reads, 16), b"R")
    equal(os.read(reads, 16), b"")
    os.close(reads)
    process.terminate()
    equal(process.wait(30), 0)
    fsboxd.forget()


# ---- configuration -------------------------------------------------------------------------


@case(root=True)
def the_configuration_is_read_again_on_SIGHUP():
    with spawner("system") as fsboxd:
        before = refusal(python(fsboxd, PUSH, user=User("root")).stdout)
        equal(before["data"]["kind"], "not-authorized")
        fsboxd.write_config("no-such-key = 1\n")
        fsboxd.process.send_signal(signal.SIGHUP)
        wait_for(lambda: "stays as it was" in fsboxd.logged(), 5, "the complaint")
        contains(fsboxd.logged(), "fsboxd.conf:1")
        fsboxd.write_config("root-peers = serve\n")
        fsboxd.process.send_signal(signal.SIGHUP)
        wait_for(lambda: "read again" in fsboxd.logged(), 5, "the new configuration")
        equal(fsboxd.ask("exit 4", user=User("root")), "ended exited 4 0\n")
        fsboxd.write_config(None)


@case(root=True)
def a_bad_configuration_is_no_start():
    fsboxd = spawner("system")
    fsboxd.write_config("max-jobs = many\n")
    for more in ([], ["--check-config"]):
        result = User("root").run([lib.FSBOXD, "--mode", "system", *more])
        equal(result.returncode, 2, lib.show(result))
        contains(result.stderr, "fsboxd.conf:1")
    fsboxd.write_config("max-jobs = 7\n")
    result = User("root").run([lib.FSBOXD, "--mode", "system", "--check-config"])
    equal((result.returncode, result.stdout), (0, b"configuration is fine\n"))
    fsboxd.write_config(None)
    fsboxd.forget()


@case(root=True)
def the_environment_only_makes_stricter():
    fsboxd = spawner("user")
    fsboxd.start(env={"FSBOX_FORCE_UNAVAILABLE": "1"})
    contains(fsboxd.ask("true"), "failed engine-unavailable verify ")
    fsboxd.stop()
    result = fsboxd.user.run([lib.FSBOXD, "--mode", "user", "--exec-dir", fsboxd.place],
                             env={"FSBOX_FORCE_UNAVAILABLE": "1", "FSBOX_SANDBOX_REQUIRED": "1"})
    equal(result.returncode, 1)
    contains(result.stderr, "engine-unavailable")
    fsboxd.forget()


# ---- who is served -------------------------------------------------------------------------


@case(root=True)
def R7_descriptors_of_the_refused_are_closed_by_nobody_who_matters():
    with spawner("system") as fsboxd:
        fsboxd.ask("true")  # starts broker and recorder
        before = lib.settled(fsboxd.descriptors)
        for _ in range(20):
            result = python(fsboxd, PUSH, user=User("root"))
            equal(result.returncode, 0, lib.show(result))
            error = refusal(result.stdout)
            equal(error["data"]["kind"], "not-authorized")
            contains(error["data"]["hint"], "root-peers")
        wait_for(lambda: fsboxd.descriptors() <= before, 5, "the closers' end")
        equal(fsboxd.ask("true"), "ended exited 0 0\n")


@case(root=True)
def R6_confined_peers_are_refused_and_told_why():
    confined = {
        "no-new-privs": ["setpriv", "--no-new-privs"],
        "user-namespace": ["unshare", "--user"],
        "mount-namespace": ["unshare", "--mount"],
        "pid-namespace": ["unshare", "--pid", "--fork"],
    }
    with spawner("system") as fsboxd:
        uid = fsboxd.user.uid
        for admitted in (False, True):
            fsboxd.write_config(f"admit-confined-uid = {uid}\n" if admitted else None)
            read = fsboxd.logged().count("read again")
            fsboxd.process.send_signal(signal.SIGHUP)
            wait_for(lambda r=read: fsboxd.logged().count("read again") > r, 5, "the new configuration")
            for name, before in confined.items():
                if name in ("mount-namespace", "pid-namespace"):
                    before = [*before, "setpriv", f"--reuid={uid}", f"--regid={uid}",
                              f"--groups={lib.GROUPS['fsbox']}"]
                    result = python(fsboxd, PUSH, user=User("root"), before=before)
                elif name == "no-new-privs" and admitted:
                    result = python(fsboxd, TALK, "true", before=before)
                    equal(result.stdout, b"ended exited 0 0\n")
                    continue
                else:
                    result = python(fsboxd, PUSH, before=before)
                error = refusal(result.stdout)
                equal((error["data"]["kind"], error["data"]["stage"]), ("confined-peer", name))
                contains(error["data"]["hint"],
                         f"admit-confined-uid = {uid}" if name == "no-new-privs" else "outside")
        fsboxd.write_config(None)


@case(root=True)
def only_members_of_the_group_can_connect():
    with spawner("system") as fsboxd:
        found = os.stat(fsboxd.socket)
        equal((found.st_mode & 0o7777, found.st_uid, found.st_gid),
              (0o660, 0, lib.GROUPS["fsbox"]))
        result = python(fsboxd, PUSH, user=User("fsbxc"))
        contains(result.stderr, "PermissionError")
    with spawner("user") as fsboxd:
        equal(os.stat(fsboxd.socket).st_mode & 0o7777, 0o600)
        error = refusal(python(fsboxd, PUSH, user=User("root")).stdout)
        equal(error["data"]["kind"], "not-authorized")


@case(root=True)
def R13_connections_are_bounded():
    with spawner("system") as fsboxd:
        error = refusal(python(fsboxd, CROWD, "1024").stdout)
        equal(error["data"]["kind"], "quota-exceeded")
        # Somebody else is served all the while.
        equal(fsboxd.ask("true", user=User("fsbxb")), "ended exited 0 0\n")


@case(root=True)
def R13_out_of_descriptors_is_no_end():
    # Room for itself and a few connections; then it can neither accept nor start anything.
    fsboxd = spawner("system").start(before=["prlimit", "--nofile=96:96"])
    try:
        before = ticks(fsboxd.process.pid)
        python(fsboxd, CROWD, "100")
        wait_for(lambda: "ended exited 6 0" in fsboxd.ask("exit 6"), 60, "service")
        if ticks(fsboxd.process.pid) - before > 500:
            raise AssertionError("it was busy while it could do nothing")
    finally:
        fsboxd.stop()
        fsboxd.forget()


@case(root=True)
def records_that_are_required_and_cannot_be_made():
    fsboxd = spawner("system", "hostile_broker")
    os.remove(f"{fsboxd.place}/fsbox-recorder")
    fsboxd.start(config="audit = required\n")
    contains(fsboxd.logged(), "nothing will be recorded")
    contains(fsboxd.ask("engines"), "open: audit-unavailable")
    fsboxd.stop()
    fsboxd.forget()


@case(root=True)
def r10_a_provisional_start_makes_nothing():
    with spawner("system") as fsboxd:
        # No template: not before the policy is known to be right.
        equal(fsboxd.ask("native provisional=1000 exit 6"), "held\nended exited 6 0\n")
        # What is there already may be used; by bwrap nothing is.
        equal(fsboxd.ask("native provisional=10000 exit 6"), "early\nended exited 6 0\n")
        equal(fsboxd.ask("provisional=1000 exit 6"), "held\nended exited 6 0\n")


# ---- idle ----------------------------------------------------------------------------------


@case(root=True)
def idle_means_asleep():
    with spawner("system") as fsboxd:
        fsboxd.ask("true")
        fsboxd.ask("native true")
        time.sleep(1)

        def switches():
            with open(f"/proc/{fsboxd.process.pid}/status", encoding="ascii") as file:
                return [line for line in file if "ctxt_switches" in line]

        for turn in range(4):  # what the jobs left to do may take a slow machine longer than a second
            before = switches()
            time.sleep(3)
            if switches() == before:
                break
            equal(turn < 3, True, f"wake-ups: {before} became {switches()}")
        with open(f"/proc/{fsboxd.process.pid}/smaps_rollup", encoding="ascii") as file:
            print("#", *[line.strip() for line in file if line.startswith("Pss:")])


@case(root=True)
def R13_a_job_opened_ahead_is_a_job_like_others():
    """Fsboxd opens the next one before the broker asks: that gives it nothing it could not have asked for."""
    fsboxd = spawner("system", "ahead_broker")
    fsboxd.start(config="max-jobs-per-uid = 20\n")
    try:
        said = fsboxd.ask("m").splitlines()
        equal(said, ["one ahead", "of a connection that is not ours: not-authorized",
                     "of ours, after that: not-authorized", "abandoned: job-unknown",
                     "without a plan: bad-frame", "again: job-unknown"])
        equal(fsboxd.ask("crowd"), "one too many: quota-exceeded\n")
        equal(fsboxd.process.poll(), None, "fsboxd's end")
    finally:
        fsboxd.stop()


lib.main()
