# SPDX-License-Identifier: Apache-2.0
"""File systems that do not answer, processes that are stopped: whoever needs them waits, nobody else."""

import os
import signal
import time

import lib
from lib import User, case, contains, equal, project, status_is, succeeds, wait_for
from slowfs import slow_file_system
from templates import counters, hurried, popen_spawn


@case("system", "root")
def r9_a_builder_that_hangs_holds_up_its_own_requests_alone(daemon):
    place = project(daemon, "builder")
    with slow_file_system(daemon, f"slow-{daemon.mode}") as slow:
        started = time.monotonic()
        waiting = [popen_spawn(daemon, "--ro", f"{slow.place}/{n % 2}", "--", "true", cwd=place)
                   for n in range(4)]
        wait_for(lambda: len(slow.held) >= 2, 10, "builders that hang")
        # Meanwhile: this user's other requests, and others.
        for _ in range(3):
            status_is(daemon.sh("exit 3", cwd=place, timeout=8), 3)
        if daemon.mode == "system":
            other = User("fsbxb")
            other.shell("mkdir -p src/calm")
            status_is(daemon.sh("exit 4", user=other, cwd=f"{other.home}/src/calm", timeout=8), 4)
        for process in waiting:
            _, errors = process.communicate(timeout=40)
            equal(process.returncode, 125, lib.text(errors))
            contains(errors, "timeout")
        if time.monotonic() - started > 30:
            raise AssertionError("the requests took too long to give up")
        slow.release()
        succeeds(daemon.sh("true", "--engine", "native", "--ro", f"{slow.place}/0", cwd=place))
    wait_for(lambda: not daemon.jobs(), 10, "the end of the jobs")


@case("system")
def r9_a_fifth_that_would_hang_is_told_so(daemon):
    place = project(daemon, "fifth")
    with slow_file_system(daemon, "slow-fifth") as slow:
        waiting = [popen_spawn(daemon, "--ro", f"{slow.place}/{n}", "--", "true", cwd=place)
                   for n in range(4)]
        for process in waiting:
            process.communicate(timeout=40)
            equal(process.returncode, 125)
        # They cannot be killed: the file system has their requests.
        wait_for(lambda: counters(daemon)["stuck"] >= 4, 15, "four that are stuck")
        result = daemon.sh("true", cwd=place, timeout=8)
        status_is(result, 125, "resolver-busy")
        slow.release()
    wait_for(lambda: daemon.sh("true", cwd=place).returncode == 0, 20, "service again")
    equal(counters(daemon)["stuck"], 0)


@case("system", "root")
def one_that_waits_for_a_template_may_go(daemon):
    place = project(daemon, "waits")
    with slow_file_system(daemon, f"slow-waits-{daemon.mode}") as slow:
        options = ("--ro", f"{slow.place}/x", "--deny", f"{place}/absent", "--deny",
                   f"{place}/zz")
        # A policy that is known: jobs are there before the first look at what hangs is over.
        slow.hold = False
        succeeds(daemon.sh("true", "--engine", "native", *options, cwd=place))
        slow.hold = True
        jobs = [popen_spawn(daemon, *options, "--", "/bin/sh", "-c", "ls -A; exit 5", cwd=place)
                for _ in range(3)]
        wait_for(lambda: slow.held and len(daemon.jobs()) == 3, 8, "three that wait")
        # The first of them is whose template it is, and whose the placeholders are.
        first = min(job["job"] for job in daemon.jobs())
        succeeds(daemon.ctl("signal", str(first), "KILL"))
        wait_for(lambda: len(daemon.jobs()) == 2, 5, "the first to go")
        slow.release()
        ended = [(job.communicate(timeout=40), job.returncode) for job in jobs]
        equal(sorted(status for _, status in ended), [5, 5, 125], str(ended))
        for (out, _), status in ended:
            equal(out, b"absent\nzz\n" if status == 5 else b"")
        wait_for(lambda: not os.listdir(place), 10, "removal of the placeholders")


# ---- while a job looks whether its template still fits ------------------------------------------


def leaders(daemon):
    """Processes of fsboxd's that are the user's already."""
    found = []
    for pid in lib.processes("fsboxd"):
        status = lib.status_of(pid)
        if status["PPid"] == str(daemon.process.pid) and status["Uid"].startswith(f"{daemon.user.uid}\t"):
            found.append((pid, status["State"][0]))
    return found


def others_are_served(daemon, place):
    for _ in range(3):
        status_is(daemon.sh("exit 3", cwd=place, timeout=8), 3)
    other = User("fsbxb")
    other.shell("mkdir -p src/calm")
    status_is(daemon.sh("exit 4", user=other, cwd=f"{other.home}/src/calm", timeout=8), 4)


@case(root=True)
def r9_a_job_that_hangs_before_it_begins_holds_up_itself_alone():
    with hurried("system") as daemon, slow_file_system(daemon, "slow-validation") as slow:
        place = project(daemon, "validation")
        spawn = ("--engine", "native", "--ro", f"{slow.place}/0")
        slow.hold = False
        for _ in range(2):
            succeeds(daemon.sh("true", *spawn, cwd=place))
        slow.hold = True
        waiting = [popen_spawn(daemon, *spawn[2:], "--", "true", cwd=place) for _ in range(4)]
        wait_for(lambda: len(slow.held) == 4 and len(leaders(daemon)) == 4, 10, "jobs that hang")
        started = time.monotonic()
        others_are_served(daemon, place)
        for process in waiting:
            # To the end of its pipes: what hangs has not got them, or does not keep them.
            _, errors = process.communicate(timeout=25)
            equal(process.returncode, 125, lib.text(errors))
            contains(errors, "timeout")
        if time.monotonic() - started > 30:
            raise AssertionError("the requests took too long to give up")
        # They cannot be killed: the file system has their requests.
        wait_for(lambda: counters(daemon)["stuck"] >= 4, 15, "four that are stuck")
        status_is(daemon.sh("true", cwd=place, timeout=8), 125, "resolver-busy")
        slow.release()
        wait_for(lambda: daemon.sh("true", cwd=place).returncode == 0, 20, "service again")
        succeeds(daemon.sh("true", *spawn, cwd=place))
        equal(counters(daemon)["stuck"], 0)
        wait_for(lambda: not daemon.jobs(), 10, "the end of the jobs")


@case(root=True)
def r14_a_job_that_its_user_stops_before_it_begins():
    with hurried("system") as daemon, slow_file_system(daemon, "slow-stopped") as slow:
        place = project(daemon, "stopped")
        rules = ("--ro", f"{slow.place}/0")
        slow.hold = False
        succeeds(daemon.sh("true", "--engine", "native", *rules, cwd=place))
        slow.hold = True
        waiting = popen_spawn(daemon, *rules, "--", "true", cwd=place)
        wait_for(lambda: slow.held and leaders(daemon), 10, "a job that hangs")
        lib.as_user(daemon.user, os.kill, leaders(daemon)[0][0], signal.SIGSTOP)
        slow.release()
        wait_for(lambda: leaders(daemon)[0][1] == "T", 5, "it to stop")
        others_are_served(daemon, place)
        _, errors = waiting.communicate(timeout=25)
        equal(waiting.returncode, 125, lib.text(errors))
        contains(errors, "timeout")
        wait_for(lambda: not leaders(daemon), 5, "the stopped one to go")
        equal(counters(daemon)["stuck"], 0)
        succeeds(daemon.sh("true", "--engine", "native", *rules, cwd=place))


lib.main()
