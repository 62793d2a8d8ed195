# SPDX-License-Identifier: Apache-2.0
"""A broker in the hands of an attacker, as an ordinary user in system mode: fsboxd neither crashes
nor hangs nor leaks, and gives neither root nor another user."""

import os
import signal
import time

import lib
from fakebroker import Spawner
from lib import User, case, contains, equal, lacks, wait_for

CONFIG = "max-net = none\nmandatory-deny = /srv/secret\nmax-jobs-per-uid = 20\n"
STATE = {}


def hostile():
    """One fsboxd for all cases, and what it holds when nothing is going on."""
    if "fsboxd" not in STATE:
        os.makedirs("/srv/secret", exist_ok=True)
        fsboxd = Spawner("system", User("fsbxa"), "hostile_broker")
        fsboxd.start(config=CONFIG)
        fsboxd.ask("bytewise")  # starts the recorder, too
        STATE["fsboxd"] = fsboxd
        STATE["pid"] = fsboxd.process.pid
    return STATE["fsboxd"]


def is_as_before(fsboxd):
    """Alive, serving, with nothing left of what the attack made."""
    equal(fsboxd.process.poll(), None, f"fsboxd ended; its log: {fsboxd.logged()}")
    contains(fsboxd.ask("bytewise"), "status: kind 10")
    # One broker and the recorder; a broker that was thrown out is gone.
    wait_for(lambda: len(fsboxd.children()) <= 3, 15, f"children {fsboxd.children()}")
    if "descriptors" not in STATE:
        STATE["descriptors"] = settled(fsboxd)
    wait_for(lambda: fsboxd.descriptors() <= STATE["descriptors"] + 4, 15,
             f"{STATE['descriptors']} descriptors before, {fsboxd.descriptors()} now")


def settled(fsboxd):
    return lib.settled(fsboxd.descriptors)


def attack(line, **options):
    fsboxd = hostile()
    said = fsboxd.ask(line, **options)
    is_as_before(fsboxd)
    return said


@case(root=True)
def R3_the_broker_is_the_user_and_nothing_more():
    fsboxd = hostile()
    user = fsboxd.user
    said = fsboxd.ask("self")
    contains(said, f"Uid:\t{user.uid}\t{user.uid}\t{user.uid}\t{user.uid}\n")
    contains(said, f"Gid:\t{user.gid}\t{user.gid}\t{user.gid}\t{user.gid}\n")
    contains(said, f"Groups:\t{' '.join(str(g) for g in sorted(user.groups))}")
    contains(said, "CapPrm:\t0000000000000000")
    contains(said, "CapEff:\t0000000000000000")
    contains(said, "SigBlk:\t0000000000000000")
    contains(said, "environ 0\n")
    contains(said, "session 1\n")
    contains(said, "cwd /\n")
    for number in range(3):
        contains(said, f"fd {number} /dev/null\n")
    contains(said, "fd 3 socket:")
    contains(said, "fd 4 pipe:")
    lacks(said, "fd 5 ")
    contains(said, "setuid Operation not permitted\n")
    contains(said, "kill Operation not permitted\n")
    contains(said, "memory Permission denied\n")


@case(root=True)
def R7_no_descriptor_reaches_fsboxd():
    said = attack("push")
    contains(said, "link: Broken pipe\n")
    contains(said, "pipe: Socket operation on non-socket\n")
    contains(said, "abandoned: kind 10")


@case(root=True)
def R13_garbage_ends_the_broker_alone():
    for line in ("garbage", "huge", "zero", "kinds", "strings", "announced"):
        lacks(attack(line), "still linked", line)
    contains(attack("truncated"), "sent half")


@case(root=True)
def R1_numbers_that_are_not_its_own():
    said = attack("numbers")
    for what in ("open for connection 0", "open for the next connection",
                 "open for the last connection", "start of job 0", "start of the last job",
                 "list for connection 0"):
        contains(said, f"{what}: not-authorized" if "job" not in what else f"{what}: job-unknown")
    contains(said, "signal to the last job: job-unknown")
    contains(said, "status: kind 10")


@case(root=True)
def R14_jobs_of_others_are_out_of_reach():
    fsboxd = hostile()
    other = User("fsbxb")
    for _ in range(5):
        begun = time.monotonic()
        contains(fsboxd.ask("leave sleep 60", user=other), "report 5")
        said = fsboxd.ask("others")
        running = len(lib.processes("sleep"))
        contains(said, "allowed 0, listed 0\n")
        if time.monotonic() - begun < 3:
            break
        wait_for(lambda: not lib.processes("sleep"), 10, "the end of the job")
    # It still runs, and its limit of three seconds is fsboxd's, whose broker is long gone.
    equal(running, 1, "jobs of the other user")
    wait_for(lambda: not lib.processes("sleep"), 10, "the end of the job")
    is_as_before(fsboxd)


@case(root=True)
def R11_plans_that_are_none():
    said = attack("plans", timeout=120)
    for what in ("empty", "unsealed", "noise", "cut", "announced shorter", "announced longer",
                 "one past the limit"):
        contains(said, f"{what}: bad-frame")
    lacks(said, "bent: kind 6\n")


@case(root=True)
def R11_a_plan_that_shrinks():
    said = attack("shrink", timeout=60)
    equal(said.count("shrunk: bad-frame"), 20, said)
    lacks(said, "could be sealed")


@case(root=True)
def R11_plans_that_ask_for_too_much():
    hostile()
    os.mkdir("/run/alias")
    lib.mount("--bind", "/srv/secret", "/run/alias")  # fsboxd runs already
    said = attack("greedy", timeout=60)
    contains(said, "/run/alias: policy-invalid")
    lacks(said, "kind ")  # nothing ran
    equal(said.count("not unshared: policy-invalid"), 6, said)
    for what in ("network above the cap", "/etc", "/var/lib/fsbox", "/run", "/proc",
                 "/srv/secret"):
        contains(said, f"{what}: ")


@case(root=True)
def engines_that_are_not_there():
    said = attack("engines")
    contains(said, "seatbelt: engine-unavailable")


@case(root=True)
def R13_who_does_not_read_is_not_waited_for():
    lacks(attack("deaf", timeout=60), "still listens")


@case(root=True)
def R13_quotas_hold_for_a_broker_that_ignores_them():
    fsboxd = hostile()
    said = fsboxd.ask("flood", timeout=60)
    opened, refused = (int(word) for word in said.replace(",", "").split() if word.isdigit())
    equal((opened <= 20, opened + refused), (True, 3000), said)
    # What it only opened goes with it.
    fsboxd.ask("garbage")
    is_as_before(fsboxd)


@case(root=True)
def R13_time_limits_hold_without_a_broker():
    fsboxd = hostile()
    contains(fsboxd.ask("leave trap : TERM; while :; do sleep 1; done"), "report 5")
    wait_for(lambda: lib.processes("fsbox-init") or lib.processes("sleep"), 5, "the job")
    wait_for(lambda: not lib.processes("sleep") and not lib.processes("bwrap"), 20,
             "the end of the job after three seconds and the grace of two")
    is_as_before(fsboxd)


@case(root=True)
def a_job_without_orders_ends_by_itself():
    said = attack("silent", timeout=60)
    contains(said, "channel closed: ")
    lacks(said, "channel closed: kind")
    equal(lib.processes("bwrap"), {}, "left over")


@case(root=True)
def children_of_a_broker_do_not_keep_anything():
    contains(attack("children"), "left 20")
    wait_for(lambda: len(lib.processes("fsbox-broker")) <= 1, 10, "the end of its children")
    # They were reaped by fsboxd, which is their parent by then.
    zombies = [pid for pid in os.listdir("/proc") if pid.isdigit() and is_zombie(pid)]
    equal(zombies, [], "zombies")


def is_zombie(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            line = file.read()
    except OSError:
        return False
    return line[line.rindex(")") + 2] == "Z"


@case(root=True)
def R13_killed_brokers_come_back():
    fsboxd = hostile()
    for _ in range(3):
        for pid in lib.processes("fsbox-broker"):
            os.kill(pid, signal.SIGKILL)
        # After a pause that grows, the client just waits for it.
        contains(fsboxd.ask("bytewise"), "status: kind 10")
    is_as_before(fsboxd)


@case(root=True)
def fsboxd_is_still_the_one_that_was_started():
    fsboxd = hostile()
    equal(fsboxd.process.pid, STATE["pid"])
    equal(fsboxd.stop(), 0, "status")
    lacks(fsboxd.logged(), "ERROR: AddressSanitizer")
    lacks(fsboxd.logged(), "runtime error")


lib.main()
