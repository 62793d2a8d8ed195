# SPDX-License-Identifier: Apache-2.0
"""Jobs that a new fsboxd takes over get a guard of its own, which repairs and tells."""

import contextlib
import os
import signal

import lib
from guardlib import MODES, events, guards, hidden, inside, of_user, own_daemon, restart, stop
from lib import case, contains, equal, project, wait_for


def modes():
    return [mode for mode in MODES if mode == "user" or lib.IS_ROOT]


def save(daemon, place, text="LEAK"):
    """As an editor does."""
    daemon.user.shell(f"echo {text} >n; mv n .env", cwd=place)


def kept(daemon, letter):
    place = f"{os.path.dirname(daemon.socket)}/jobs"
    return sorted(name for name in os.listdir(place) if name[0] == letter)


def replaced(daemon, old):
    """The guard of the fsboxd that runs now; OLD is gone."""
    new = wait_for(lambda: of_user(daemon), 5, "a guard of its own")
    wait_for(lambda: old not in guards(), 5, "the end of the old guard")
    equal(new != old, True)
    return new


@case()
def r27_a_new_fsboxd_guards_the_jobs_it_takes_over():
    for mode in modes():
        for how in (signal.SIGTERM, signal.SIGKILL):
            with own_daemon(mode, None) as daemon:
                place = project(daemon, "taken-over")
                secret = daemon.user.write(f"{place}/.env", "LEAK\n")
                before = len(events(daemon, "mask.repaired"))
                with inside(daemon, "--deny", secret, cwd=place) as job:
                    save(daemon, place)
                    hidden(job, ".env")
                    wait_for(lambda d=daemon, b=before: events(d, "mask.repaired", b), 5, "event")
                    before = len(events(daemon, "mask.repaired"))
                    old = of_user(daemon)
                    restart(daemon, how)
                    replaced(daemon, old)
                    for i in range(3):
                        save(daemon, place)
                        hidden(job, ".env")
                        wait_for(lambda d=daemon, n=before + i + 1:
                                 len(events(d, "mask.repaired")) >= n, 5, "the event")
                    ended = job.end()
                equal((ended["reason"], ended["repaired"] >= 4), ("exited", True), f"{how} {ended}")


@case()
def r27_a_second_restart_and_a_guard_that_dies():
    for mode in modes():
        with own_daemon(mode, None) as daemon:
            place = project(daemon, "twice")
            secret = daemon.user.write(f"{place}/.env", "LEAK\n")
            with inside(daemon, "--deny", secret, cwd=place) as job:
                for how in (signal.SIGKILL, signal.SIGTERM, signal.SIGKILL):
                    old = of_user(daemon)
                    restart(daemon, how)
                    guard = replaced(daemon, old)
                    # fsboxd removes what was the old one's a moment after its end.
                    wait_for(lambda d=daemon: len(kept(d, "g")) == 1, 5, "one file of a guard")
                    equal(len(kept(daemon, "p")), 1, "files of plans")
                # While there is none the mask goes: the next one looks first.
                os.kill(guard, signal.SIGKILL)
                save(daemon, place)
                wait_for(lambda d=daemon, g=guard: of_user(d) not in (None, g), 5, "another guard")
                hidden(job, ".env")
                save(daemon, place)
                hidden(job, ".env")
                ended = job.end()
            equal(ended["reason"], "exited")
            equal(ended["repaired"] >= 2, True, ended)


@case()
def r27_what_happens_while_no_fsboxd_runs():
    """The old guard repairs meanwhile, and goes on until the new one has looked at everything."""
    for mode in modes():
        with own_daemon(mode, None) as daemon:
            place = project(daemon, "meanwhile")
            secret = daemon.user.write(f"{place}/.env", "LEAK\n")
            before = len(events(daemon, "mask.repaired"))
            with contextlib.ExitStack() as stack:
                jobs = [stack.enter_context(inside(daemon, "--deny", secret, cwd=place))
                        for _ in range(5)]
                old = of_user(daemon)
                stop(daemon, signal.SIGKILL)
                save(daemon, place)
                for job in jobs:
                    hidden(job, ".env")
                os.kill(old, signal.SIGSTOP)
                save(daemon, place)  # nobody sees it: the next one must
                restart(daemon, None)
                wait_for(lambda d=daemon: of_user(d), 5, "a guard")
                for job in jobs:
                    hidden(job, ".env")
                os.kill(old, signal.SIGCONT)
                replaced(daemon, old)
                found = wait_for(lambda d=daemon, b=before: events(d, "mask.repaired", b)[4:] and
                                 events(d, "mask.repaired", b), 5, "events")
                equal({event["detail"] for event in found}, {secret})
                for job in jobs:
                    equal(job.end()["reason"], "exited")


@case()
def r24_a_plan_that_was_tampered_with_is_no_plan():
    """The job keeps the guard it has; without that it ends."""
    for mode in modes():
        with own_daemon(mode, None) as daemon:
            place = project(daemon, "tampered")
            secret = daemon.user.write(f"{place}/.env", "LEAK\n")
            with inside(daemon, "--deny", secret, cwd=place) as job:
                old = of_user(daemon)
                stop(daemon, signal.SIGKILL)
                for name in kept(daemon, "p"):
                    with open(f"{os.path.dirname(daemon.socket)}/jobs/{name}", "r+b") as file:
                        file.seek(80)
                        file.write(b"\xff" * 8)
                restart(daemon, None)
                equal(of_user(daemon), None, "guards")
                save(daemon, place)
                hidden(job, ".env")
                os.kill(old, signal.SIGKILL)
                job.process.wait(20)
                ended = job.end()
            equal((ended["reason"], ended["signal"]), ("signaled", 9))
            contains(daemon.logged(), "gets no guard")


lib.main()
