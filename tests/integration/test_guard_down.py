# SPDX-License-Identifier: Apache-2.0
"""Guards that die, kernels that tell less, queues that overflow; and the figures."""

import contextlib
import os
import signal
import time

import lib
from guardlib import (MODES, NATIVE, canary, events, guards, hidden, inside, of_user, own_daemon,
                      quantile, repository)
from lib import case, contains, equal, project, succeeds, wait_for


@case()
def r27_on_unmask_kill():
    for mode in MODES:
        with own_daemon(mode, "on-unmask = kill\n") as daemon:
            place = project(daemon, "unmask")
            secret = daemon.user.write(f"{place}/.env", "LEAK\n")
            before = len(events(daemon, "mask.lost"))
            with inside(daemon, "--deny", secret, cwd=place) as job:
                daemon.user.shell("echo LEAK >n; mv n .env", cwd=place)
                job.process.wait(30)
                ended = job.end()
            equal((ended["reason"], ended["signal"]), ("signaled", 9))
            wait_for(lambda d=daemon, b=before: events(d, "mask.lost", b), 5, "the event")


# ---- a guard that is down ------------------------------------------------------------------------


@case(*MODES)
def r14_a_guard_is_the_users_and_nobody_looks_in(daemon):
    place = project(daemon, "whose")
    secret = daemon.user.write(f"{place}/.env", "LEAK\n")
    with inside(daemon, "--deny", secret, cwd=place) as job:
        pid = of_user(daemon)
        with open(f"/proc/{pid}/status", encoding="utf-8") as file:
            status = file.read()
        if daemon.mode == "system":
            uid = daemon.user.uid
            contains(status, f"Uid:\t{uid}\t{uid}\t{uid}\t{uid}")
            contains(status, "CapEff:\t0000000000240100")  # SYS_ADMIN, SYS_CHROOT, SETPCAP
        equal(daemon.user.run(["cat", f"/proc/{pid}/mem"]).returncode != 0, True)
        equal(daemon.user.run(["ls", f"/proc/{pid}/fd/"]).returncode != 0, True)
        # Nor does the job see it: its processes are its own.
        equal(job.run("grep -l guard /proc/*/comm")[0].strip(), "")
        job.end()


@case(*MODES)
def r27_a_guard_that_is_killed_or_stopped_is_replaced(daemon):
    place = project(daemon, "down")
    secret = daemon.user.write(f"{place}/.env", "LEAK\n")
    before = len(events(daemon, "guard.down"))
    with inside(daemon, "--deny", secret, cwd=place) as job:
        for count, number in ((1, signal.SIGKILL), (2, signal.SIGSTOP)):
            pid = of_user(daemon)
            # While there is none the mask goes: the next one looks first.
            daemon.user.run(["kill", f"-{int(number)}", str(pid)])
            daemon.user.shell("echo LEAK >n; mv n .env", cwd=place)
            wait_for(lambda p=pid: of_user(daemon) not in (None, p), 5, "another guard")
            hidden(job, ".env")
            daemon.user.shell("echo LEAK >n; mv n .env", cwd=place)
            hidden(job, ".env")
            wait_for(lambda n=count: len(events(daemon, "guard.down", before)) == n, 5, "the event")
        succeeds(daemon.sh("true", "--deny", secret, *NATIVE, cwd=place))
        ended = job.end()
    equal(ended["reason"], "exited")


@case()
def r27_guards_go_on_without_fsboxd():
    for mode in MODES:
        with own_daemon(mode, None) as daemon:
            place = project(daemon, "alone")
            secret = daemon.user.write(f"{place}/.env", "LEAK\n")
            with inside(daemon, "--deny", secret, cwd=place) as job:
                pid = of_user(daemon)
                daemon.process.kill()
                daemon.process.wait()
                for i in range(3):
                    daemon.user.shell(f"echo LEAK {i} >n; mv n .env", cwd=place)
                    hidden(job, ".env")
                equal(pid in guards(), True, "it is still there")
                job.end()
            wait_for(lambda p=pid: p not in guards(), 5, "its end with the last job")


@case()
def r27_who_does_not_want_to_be_guarded_is_not_served():
    with own_daemon("system" if lib.IS_ROOT else "user", None) as daemon:
        place = project(daemon, "unwilling")
        secret = daemon.user.write(f"{place}/.env", "LEAK\n")
        with inside(daemon, "--deny", secret, cwd=place) as job:
            for _ in range(6):
                pid = wait_for(lambda: of_user(daemon), 5, "a guard")
                os.kill(pid, signal.SIGKILL)
                wait_for(lambda p=pid: p not in guards(), 5, "its end")
                time.sleep(0.1)
            job.process.wait(30)
            ended = job.end()
        equal((ended["reason"], ended["signal"]), ("signaled", 9))


@case("system")
def r14_what_one_user_does_to_his_guard_harms_nobody_else(daemon):
    other = lib.User("fsbxb")
    place = project(daemon, "mine")
    secret = daemon.user.write(f"{place}/.env", "LEAK\n")
    with inside(daemon, "--deny", secret, cwd=place) as job:
        pid = of_user(daemon)
        equal(other.run(["kill", "-9", str(pid)]).returncode != 0, True)
        other.shell("mkdir -p src/x; echo LEAK >src/x/.env")
        command = daemon.command("spawn", *NATIVE, "--deny", "/home/fsbxb/src/x/.env", "--",
                                 "/bin/sleep", "2")
        process = other.popen(command, cwd="/home/fsbxb/src/x")
        theirs = wait_for(lambda: [p for p in guards() if p != pid], 5, "a guard of his own")
        other.run(["kill", "-9", *map(str, theirs)])
        equal(process.wait(20), 0)
        equal(of_user(daemon), pid)
        job.end()


# ---- kernels, queues -----------------------------------------------------------------------------


SHIM = os.path.join(lib.BUILD, "tests/integration/libold_kernel.so")


def save_and_look(daemon, name):
    place = project(daemon, name)
    secret = daemon.user.write(f"{place}/.env", "LEAK\n")
    with inside(daemon, "--deny", secret, cwd=place) as job:
        for i in range(3):
            daemon.user.shell(f"echo LEAK {i} >n; mv n .env", cwd=place)
            hidden(job, ".env")
            daemon.user.shell(f"mv .env moved{i}; echo LEAK >.env", cwd=place)
            hidden(job, ".env")
            hidden(job, f"moved{i}")
        ended = job.end()
    equal(ended["reason"], "exited")
    equal(ended["repaired"] >= 6, True, ended)


@case()
def r27_without_mount_events_mountinfo_tells():
    for mode in MODES:
        user = lib.make_daemon(mode).user
        log = user.write(f"{user.home}/shim")  # the guard, too, writes there
        with own_daemon(mode, None, env={"LD_PRELOAD": SHIM, "FSBOX_SHIM_LOG": log}) as daemon:
            save_and_look(daemon, "old")
        with open(log, encoding="utf-8") as file:
            contains(file.read(), "fanotify")
        os.remove(log)


@case()
def r27_lost_events_make_it_look_at_everything():
    for mode in MODES:
        with own_daemon(mode, None, env={"LD_PRELOAD": SHIM, "FSBOX_SHIM_OVERFLOW": "1"}) as daemon:
            save_and_look(daemon, "overflow")
            place = repository(daemon, "overflow-plant")
            _, ended = lib.spawn_status(daemon, *NATIVE, "--", "/bin/sh", "-c",
                                        "mkdir .git/hooks; sleep 0.3", cwd=place)
            contains(str(ended["planted"]), "hooks (quarantined")


# ---- figures -------------------------------------------------------------------------------------


@case(*MODES)
def r27_a_canary_sees_nothing_after_the_repair(daemon):
    """What it saw of each save, for how long; beside what the events say."""
    before, windows, told = canary(daemon, 100, 0.03)
    for what, values in (("seen", windows), ("told", told)):
        print(f"# {daemon.mode}: {what}: median {quantile(values, 0.5):.2f} ms, "
              f"p99 {quantile(values, 0.99):.2f} ms, max {max(values):.2f} ms, {len(values)} saves")
    equal(before, 0, "seen before the first save")
    equal(windows[-1] < 1000, True, f"the last save is hidden: {windows[-1]} ms")


@case(*MODES)
def r27_links_and_swaps_under_the_repair(daemon):
    """Whatever is put at the path while it is repaired, it leads nowhere that was hidden."""
    place = project(daemon, "swaps")
    secret = daemon.user.write(f"{place}/d/.env", "LEAK\n")
    daemon.user.write(f"{place}/e/.env", "LEAK\n")
    with inside(daemon, "--deny", secret, "--deny", f"{place}/e", cwd=place) as job:
        daemon.user.shell("i=0; while [ $i -lt 60 ]; do i=$((i+1)); rm -f d/.env; ln -s ../e/.env d/.env; "
                          "echo LEAK >n; mv n d/.env; done; ln -sf /etc/shadow d/.env; "
                          "rm d/.env; echo LEAK >d/.env", cwd=place)
        held = False
        with contextlib.suppress(AssertionError):  # one that was killed does not answer
            hidden(job, "d/.env")
            hidden(job, "e/.env")
            held = True
        ended = job.end()
    # Held, or given up: never open and running.
    if ended["reason"] == "signaled":
        equal(ended["signal"], 9)
    else:
        equal((ended["reason"], held), ("exited", True))
        with inside(daemon, "--deny", secret, "--deny", f"{place}/e", cwd=place) as job:
            hidden(job, "d/.env")
            job.end()


lib.main()
