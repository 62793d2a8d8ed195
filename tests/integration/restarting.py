# SPDX-License-Identifier: Apache-2.0
"""A fsboxd that ends and another one that begins, and jobs to be asked about by both."""

import json
import os
import signal
import subprocess

import lib
from lib import equal, succeeds, wait_for

MODES = ("system", "user", "root")
ROLES = ("fsboxd", "fsbox-broker", "fsbox-init", "fsbox-recorder")


def run_dir(daemon):
    return os.path.dirname(daemon.socket)


def jobs_dir(daemon):
    return f"{run_dir(daemon)}/jobs"


def job_files(daemon):
    return sorted(int(name) for name in os.listdir(jobs_dir(daemon)) if name.isdigit())


def end(daemon, how):
    """fsboxd ends by SIGTERM or SIGKILL; its children are left."""
    daemon.process.send_signal(how)
    equal(daemon.process.wait(30), 0 if how == signal.SIGTERM else -how, "fsboxd's end")


def begin(daemon, programs=None, **options):
    """Another fsboxd, with the configuration as it is; PROGRAMS: a folder of other binaries."""
    arguments = [f"{programs}/fsboxd", "--exec-dir", programs] if programs else [lib.FSBOXD]
    daemon.process = daemon.owner().popen([*arguments, "--mode", daemon.mode], cwd="/",
                                          stdout=daemon.log, stderr=daemon.log, **options)
    daemon.wait_until_it_answers()


def restart(daemon, how=signal.SIGTERM, programs=None):
    end(daemon, how)
    begin(daemon, programs)


def detached(daemon, place, script, *options):
    """A job that stays behind; its number."""
    read_end, write_end = os.pipe()
    process = daemon.user.popen(daemon.command("spawn", "--detach", "--json", *options, "--",
                                               "/bin/sh", "-c", script),
                                cwd=place, stdout=write_end, stderr=subprocess.DEVNULL)
    os.close(write_end)
    equal(process.wait(30), 0, f"spawn --detach {script!r}")
    with os.fdopen(read_end, "rb") as file:
        os.set_blocking(read_end, False)
        return json.loads(file.read().split(b"\n")[0])["job"]


def wait(daemon, job, seconds=30):
    """(reason, code or signal) of a job."""
    result = daemon.ctl("wait", "--json", "--timeout", f"{seconds}s", str(job), timeout=seconds + 30)
    if result.returncode not in (0, 1) or not result.stdout:
        raise AssertionError(f"wait {job}: {lib.show(result)}")
    end_of = json.loads(result.stdout)
    return end_of["reason"], end_of["signal"] if end_of["reason"] == "signaled" else end_of["code"]


def listed(daemon):
    return {job["job"]: job for job in
            json.loads(succeeds(daemon.ctl("ps", "--json")))["jobs"]}


def no_job_left(daemon):
    wait_for(lambda: not listed(daemon), 15, "the end of all jobs")


def running(daemon):
    return [job for job in listed(daemon).values() if job["state"] == "running"]


def run_place(daemon):
    return "/run" if lib.IS_ROOT else os.path.dirname(run_dir(daemon))


def twenty(daemon, place, held):
    """Twenty jobs, each with an end of its own; HELD is a file: they end when it is gone."""
    ends = {}
    for number in range(20):
        hold = f"while [ -e {held} ]; do sleep 0.05; done; "
        if number % 4 == 3:
            wanted = ("signaled", (15, 9, 10, 6, 1)[number // 4])
            script = f"{hold}kill -{wanted[1]} $$; sleep 60"
        else:
            wanted = ("exited", 7 * number)
            script = f"{hold}exit {wanted[1]}"
        ends[detached(daemon, place, script)] = wanted
    return ends
