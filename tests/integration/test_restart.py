# SPDX-License-Identifier: Apache-2.0
"""fsboxd ends in the middle of work, and another one takes its place: jobs go on, and how each of them
ends is told exactly."""

import contextlib
import json
import os
import shutil
import signal
import struct
import subprocess
import tempfile
import time

import lib
from lib import User, case, contains, equal, project, status_is, succeeds, wait_for
from restarting import (MODES, ROLES, begin, detached, end, job_files, jobs_dir, listed,
                        no_job_left, restart, run_dir, run_place, running, twenty, wait)

# struct jobfile_record, as far as it is tampered with here (daemon/spawner/jobfile.h).
PID_AT = 60


# ---- adoption ------------------------------------------------------------------------------


def check_twenty(daemon, how, while_down, programs=None):
    place = project(daemon, "twenty")
    held = daemon.user.write(f"{place}/held")
    ends = twenty(daemon, place, held)
    equal(set(listed(daemon)), set(ends), "jobs")
    end(daemon, how)
    if while_down:
        os.remove(held)
        wait_for(lambda: not lib.processes("fsbox-init"), 20, "the end of the jobs")
    begin(daemon, programs)
    if not while_down:
        equal(set(listed(daemon)), set(ends), "jobs taken over")
        for entry in listed(daemon).values():
            equal((entry["state"], entry["command"], entry["uid"]),
                  ("running", "sh", daemon.user.uid))
        os.remove(held)
    equal({job: wait(daemon, job) for job in ends}, ends, f"{how} {while_down}")
    no_job_left(daemon)


@case(*MODES)
def R24_results_are_exact_after_a_restart(daemon):
    for how in (signal.SIGTERM, signal.SIGKILL):
        for while_down in (False, True):
            check_twenty(daemon, how, while_down)


@case(*MODES)
def R24_results_are_exact_after_an_upgrade(daemon):
    with tempfile.TemporaryDirectory(prefix="upgrade.", dir=run_place(daemon)) as programs:
        os.chmod(programs, 0o755)
        for role in ROLES:
            shutil.copy(os.path.join(lib.BUILD, "daemon", role), programs)
        check_twenty(daemon, signal.SIGTERM, False, programs)
        equal(os.readlink(f"/proc/{daemon.process.pid}/exe"), f"{programs}/fsboxd")
        restart(daemon)


@case(*MODES)
def R13_time_limits_go_on_after_a_restart(daemon):
    place = project(daemon, "limits")
    for how in (signal.SIGTERM, signal.SIGKILL):
        started = time.monotonic()
        job = detached(daemon, place, "sleep 60", "--timeout", "3s")
        stubborn = detached(daemon, place, "trap : TERM; while :; do sleep 1; done", "--timeout", "3s")
        time.sleep(1)
        restart(daemon, how)
        equal(wait(daemon, job), ("timeout", 0))
        took = time.monotonic() - started
        if not 2.5 < took < 15:
            raise AssertionError(f"after {took:.1f} s, not 3")
        equal(wait(daemon, stubborn), ("timeout", 0))
        # A limit that was over while nobody looked.
        job = detached(daemon, place, "sleep 60", "--timeout", "1s")
        end(daemon, how)
        time.sleep(1.5)
        begin(daemon)
        equal(wait(daemon, job), ("timeout", 0))


@case("system", "user")
def R13_jobs_taken_over_count(daemon):
    place = project(daemon, "quota")
    daemon.stop()
    daemon.start(config="max-jobs-per-uid = 2\n")
    try:
        jobs = [detached(daemon, place, "sleep 60") for _ in range(2)]
        restart(daemon, signal.SIGKILL)
        status_is(daemon.spawn("--", "true", cwd=place), 125, "quota-exceeded")
        succeeds(daemon.ctl("signal", str(jobs[0]), "KILL"))
        equal(wait(daemon, jobs[0]), ("signaled", 9))
        succeeds(daemon.spawn("--", "true", cwd=place))
        succeeds(daemon.ctl("signal", str(jobs[1]), "TERM"))
        equal(wait(daemon, jobs[1]), ("signaled", 15))
    finally:
        daemon.stop()
        daemon.start(config="")


@case(*MODES)
def inspect_and_signal_reach_jobs_taken_over(daemon):
    place = project(daemon, "signals")
    job = detached(daemon, place, "trap 'exit 21' USR1; while :; do sleep 0.1; done", "--label",
                   "the one")
    before = json.loads(succeeds(daemon.ctl("inspect", "--json", str(job))))
    restart(daemon, signal.SIGKILL)
    after = json.loads(succeeds(daemon.ctl("inspect", "--json", str(job))))
    for key in ("job", "uid", "pid", "label", "engine", "room", "command", "profile", "detached"):
        equal(after["job"][key] if isinstance(after["job"], dict) else after[key],
              before["job"][key] if isinstance(before["job"], dict) else before[key], key)
    equal(wait_for(lambda: listed(daemon)[job]["state"], 5, "state"), "running")
    succeeds(daemon.ctl("signal", str(job), "USR1"))
    equal(wait(daemon, job), ("exited", 21))


@case(*MODES)
def a_kill_under_way_is_finished_by_the_next(daemon):
    place = project(daemon, "killed")
    for how in (signal.SIGTERM, signal.SIGKILL):
        job = detached(daemon, place, "sleep 60")
        # Stopped, fsboxd has the request in its pipe and does not come to it; it is lost then.
        succeeds(daemon.ctl("signal", str(job), "KILL"))
        end(daemon, how)
        begin(daemon)
        equal(wait(daemon, job), ("signaled", 9))


@case(*MODES)
def R24_pid_1_killed_while_fsboxd_is_down_is_lost(daemon):
    place = project(daemon, "lost")
    job = detached(daemon, place, "sleep 60")
    pid = listed(daemon)[job]["pid"]
    end(daemon, signal.SIGKILL)
    os.kill(pid, signal.SIGKILL)
    wait_for(lambda: not os.path.exists(f"/proc/{pid}") or pid not in lib.processes(), 5, "pid 1")
    begin(daemon)
    equal(wait(daemon, job), ("lost", 0))


# ---- records -------------------------------------------------------------------------------


def tamper(daemon, job, offset, data):
    with open(f"{jobs_dir(daemon)}/{job}", "r+b") as file:
        file.seek(offset)
        file.write(data)


@case(*MODES)
def a_record_of_a_number_used_again_adopts_nobody(daemon):
    """The record names a living process that is not the one it was."""
    place = project(daemon, "reused")
    job = detached(daemon, place, "sleep 60")
    other = detached(daemon, place, "sleep 61")
    pids = {number: entry["pid"] for number, entry in listed(daemon).items()}
    end(daemon, signal.SIGKILL)
    tamper(daemon, job, PID_AT, struct.pack("i", pids[other]))
    begin(daemon)
    equal(wait(daemon, job), ("lost", 0))
    equal(set(listed(daemon)), {other}, "what was taken over")
    equal(pids[job] in lib.processes(), True, "a process nobody was told about")
    os.kill(pids[job], signal.SIGKILL)
    succeeds(daemon.ctl("signal", str(other), "KILL"))
    equal(wait(daemon, other), ("signaled", 9))


@case(*MODES)
def tampered_records_and_pages_harm_nobody(daemon):
    place = project(daemon, "tampered")
    page = os.sysconf("SC_PAGESIZE")
    jobs = [detached(daemon, place, "sleep 60") for _ in range(4)]
    bystander = User("root" if lib.IS_ROOT else daemon.user.name).popen(["sleep", "600"])
    pids = [listed(daemon)[job]["pid"] for job in jobs]
    end(daemon, signal.SIGKILL)
    tamper(daemon, jobs[0], 0, b"\xff" * 64)
    tamper(daemon, jobs[1], PID_AT, struct.pack("i", bystander.pid))
    # An end that is none, beyond what there is, and an end of a job that runs.
    tamper(daemon, jobs[2], page, b"\xff" * 200)
    tamper(daemon, jobs[3], page, struct.pack("IIIIQIiiIQQQQ", 1, 2, 0, 0, 1, 1, 5, 0, 0, 1, 2, 3, 4))
    with open(f"{jobs_dir(daemon)}/12345678", "wb") as file:
        file.write(b"nonsense")
    os.mkdir(f"{jobs_dir(daemon)}/4242")
    begin(daemon)
    equal(bystander.poll(), None, "a process that is none of ours")
    equal(set(listed(daemon)), {jobs[2], jobs[3]}, "what was taken over")
    equal(12345678 in job_files(daemon), False, "nonsense")
    os.rmdir(f"{jobs_dir(daemon)}/4242")
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    equal(wait(daemon, jobs[1]), ("lost", 0))
    equal(wait(daemon, jobs[2]), ("lost", 0))
    # It is the job's own page: only about itself it can say what is not so.
    equal(wait(daemon, jobs[3]), ("exited", 5))
    bystander.kill()
    bystander.wait()


@case(*MODES)
def R25_records_are_out_of_reach(daemon):
    place = project(daemon, "reach")
    result = daemon.spawn("--", "/bin/sh", "-c", f"ls -A {jobs_dir(daemon)}; ls -A {run_dir(daemon)}",
                          cwd=place)
    equal(result.stdout, b"", lib.text(result.stderr))
    equal(os.stat(jobs_dir(daemon)).st_mode & 0o7777, 0o700)
    job = detached(daemon, place, "sleep 60")
    found = os.stat(f"{jobs_dir(daemon)}/{job}")
    equal((found.st_mode & 0o7777, found.st_uid), (0o600, daemon.owner().uid))
    # Neither the job nor what stands beside it holds the file, and its memory is one page of it.
    for pid in set(lib.processes()) - set(lib.processes("fsboxd")):
        with contextlib.suppress(OSError):
            links = [os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")]
            equal([link for link in links if "/jobs/" in link], [], f"process {pid}")
    succeeds(daemon.ctl("signal", str(job), "KILL"))
    wait(daemon, job)


@case(*MODES)
def files_of_jobs_go_with_them(daemon):
    place = project(daemon, "files")
    for _ in range(5):
        succeeds(daemon.spawn("--", "true", cwd=place))
    status_is(daemon.spawn("--", "/nonexistent", cwd=place), 127)
    jobs = [detached(daemon, place, "sleep 0.2") for _ in range(3)]
    restart(daemon, signal.SIGKILL)
    for job in jobs:
        equal(wait(daemon, job), ("exited", 0))
    # Results are kept for ten seconds, in case that somebody asks again.
    wait_for(lambda: not job_files(daemon), 20, "nothing")
    equal(sorted(name for name in os.listdir(jobs_dir(daemon)) if name[0] not in "bg"), ["last"])


@case("system", "user")
def plans_of_jobs_go_with_them(daemon):
    """Also that of a job which was over before a guard could be told again, and had something to remove."""
    place = project(daemon, "plans")
    secret = daemon.user.write(f"{place}/.env", "secret\n")
    for _ in range(4):
        job = detached(daemon, place, "sleep 600", "--deny", secret, "--deny", f"{place}/a/b/c")
        pid = listed(daemon)[job]["pid"]
        end(daemon, signal.SIGKILL)
        os.kill(pid, signal.SIGKILL)
        wait_for(lambda p=pid: p not in lib.processes(), 10, "the end of pid 1")
        begin(daemon)
        equal(wait(daemon, job), ("lost", 0))
        wait_for(lambda: sorted(os.listdir(place)) == [".env"], 10, "placeholders to go")
        wait_for(lambda: not [name for name in os.listdir(jobs_dir(daemon)) if name[0] == "p"], 5,
                 "the plan to go")


@case(root=True)
def R13_no_room_for_records_is_a_clean_failure():
    daemon = lib.make_daemon("system")
    os.makedirs("/run/fsbox", exist_ok=True)
    lib.mount("-t", "tmpfs", "-o", "size=256k,mode=0755", "tmpfs", "/run/fsbox")
    try:
        daemon.start()
        place = project(daemon, "full")
        succeeds(daemon.spawn("--", "true", cwd=place))
        with contextlib.suppress(OSError), open("/run/fsbox/filler", "wb", buffering=0) as file:
            while file.write(b"x" * 4096):
                pass
        succeeds(daemon.spawn("--", "true", cwd=place))  # whose record has had its room since the last one
        result = status_is(daemon.spawn("--", "true", cwd=place), 125)
        contains(result.stderr, "keep a record")
        equal(lib.processes("fsbox-init"), {}, "processes")
        os.remove("/run/fsbox/filler")
        status_is(daemon.spawn("--", "/bin/sh", "-c", "exit 3", cwd=place), 3)
        daemon.stop()
    finally:
        lib.sh("umount", "-l", "/run/fsbox")


# ---- in the middle of a start --------------------------------------------------------------


@case(*MODES)
def a_start_under_way_ends_or_goes_on(daemon):
    """fsboxd dies at any moment of a start: the command ran to its end, or never began."""
    place = project(daemon, "moments")
    outcomes = {}
    for round_number in range(24):
        mark = f"{place}/mark"
        with contextlib.suppress(FileNotFoundError):
            os.remove(mark)
        process = daemon.user.popen(daemon.command("spawn", "--", "/bin/sh", "-c",
                                                   "echo ran >mark; exit 42"),
                                    cwd=place, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        time.sleep(0.0015 * round_number)
        end(daemon, signal.SIGKILL if round_number % 2 else signal.SIGTERM)
        begin(daemon)
        _, errors = process.communicate(timeout=60)
        outcomes[process.returncode] = outcomes.get(process.returncode, 0) + 1
        if process.returncode not in (42, 125):
            raise AssertionError(f"round {round_number}: {process.returncode} {lib.text(errors)}")
        if process.returncode == 42:
            equal(os.path.exists(mark), True, "the command ran")
        no_job_left(daemon)
        wait_for(lambda: not lib.processes("fsbox-init"), 10, "nothing of it")
    print(f"# {daemon.mode}: {outcomes}")


@case(*MODES)
def the_lifeline_holds_while_fsboxd_is_down(daemon):
    place = project(daemon, "lifeline")
    process = daemon.user.popen(daemon.command("spawn", "--", "sleep", "600"), cwd=place)
    wait_for(lambda: any(entry["state"] == "running" for entry in listed(daemon).values()), 10,
             "the job")
    end(daemon, signal.SIGKILL)
    process.kill()
    process.wait()
    wait_for(lambda: not lib.processes("sleep"), 10, "its end without its client")
    begin(daemon)
    equal(listed(daemon), {})


lib.main()
