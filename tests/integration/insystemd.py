# SPDX-License-Identifier: Apache-2.0
"""Runs as a unit inside the machine that test_systemd.py boots: the installed fsbox under the real systemd.

Prints one line of JSON for each case: its name, and null or what was wrong.
"""

import contextlib
import json
import os
import pwd
import shutil
import signal
import subprocess
import time
import traceback

USER = "fsbxs"
HOME = f"/home/{USER}"


def run(*command, check=True, **options):
    result = subprocess.run(command, check=False, capture_output=True, text=True, timeout=40, **options)
    if check and result.returncode != 0:
        raise AssertionError(f"{command}: {result.returncode}, {result.stdout}{result.stderr}")
    return result.stdout


def equal(found, wanted, what):
    if found != wanted:
        raise AssertionError(f"{what}: found {found!r}, wanted {wanted!r}")


def wait_for(condition, seconds, what):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(f"{what}: not within {seconds} s")
        time.sleep(0.02)


def show(name):
    return run("systemctl", "show", "--value", "-p", name, "fsboxd.service").strip()


def as_user(*command, **options):
    who = pwd.getpwnam(USER)
    return subprocess.Popen(command, cwd=f"{HOME}/p", user=who.pw_uid, group=who.pw_gid,
                            extra_groups=os.getgrouplist(USER, who.pw_gid), text=True,
                            env={"HOME": HOME, "PATH": "/usr/local/bin:/usr/bin:/bin"},
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, **options)


def jobs():
    process = as_user("fsboxctl", "ps", "--json")
    out, errors = process.communicate(timeout=30)
    equal(process.returncode, 0, errors)
    return {job["job"]: job["pid"] for job in json.loads(out)["jobs"]}


def processes(name):
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError), open(f"/proc/{pid}/comm", encoding="utf-8") as file:
            if file.read().strip() == name:
                found.append(int(pid))
    return found


class Waiting:
    """A client that waits for a job, which waits for a file to go."""

    def __init__(self, deny=()):
        self.held = f"{HOME}/p/held"
        with open(self.held, "w", encoding="ascii"):
            pass
        script = "echo before; while [ -e held ]; do sleep 0.05; done; echo after; exit 37"
        self.process = as_user("fsboxctl", "spawn", *deny, "--", "/bin/sh", "-c", script)
        said = self.process.stdout.readline()
        if said != "before\n":
            raise AssertionError(f"{said!r}: {self.process.communicate(timeout=10)}")

    def settle(self):
        """Until its descriptor is in the store, where jobs come that run for a second."""
        wait_for(lambda: show("NFileDescriptorStore") == "1", 5, "the descriptor in the store")

    def let_go(self):
        os.remove(self.held)

    def check(self):
        out, errors = self.process.communicate(timeout=30)
        equal((self.process.returncode, out, errors), (37, "after\n", ""), "the job's end")


def names_passed():
    """What the manager gave the running fsboxd, by name."""
    with open(f"/proc/{show('MainPID')}/environ", "rb") as file:
        for entry in file.read().split(b"\0"):
            if entry.startswith(b"LISTEN_FDNAMES="):
                return entry.decode().split("=", 1)[1].split(":")
    return []


def survives(how, while_down=False):
    """A job and its waiting client go on while HOW() makes another fsboxd of this one."""
    run("systemctl", "start", "fsboxd.socket")
    client = Waiting()
    client.settle()
    before, main = jobs(), show("MainPID")
    equal(len(before), 1, "jobs")
    how()
    if while_down:  # for a second: RestartSec=
        client.let_go()
    wait_for(lambda: show("MainPID") not in ("0", main) and show("ActiveState") == "active", 20,
             "another fsboxd")
    equal(len(names_passed()), 2, f"{names_passed()}: the socket, and the job from the store")
    if not while_down:
        equal(jobs(), before, "the job is the same")
        # The store is empty after they were passed, and is filled again.
        wait_for(lambda: show("NFileDescriptorStore") == "1", 10, "the store to be filled")
        client.let_go()
    client.check()
    wait_for(lambda: not jobs(), 10, "the end of all jobs")


# ---- cases ---------------------------------------------------------------------------------


def restart_ends_no_job():
    survives(lambda: run("systemctl", "restart", "fsboxd.service"))


def kill_ends_no_job():
    survives(lambda: run("systemctl", "kill", "-s", "KILL", "--kill-who=main", "fsboxd.service"))


def results_of_jobs_that_end_meanwhile_are_exact():
    survives(lambda: run("systemctl", "kill", "-s", "KILL", "--kill-who=main", "fsboxd.service"),
             while_down=True)


def an_upgrade_ends_no_job():
    """The programs are replaced as packages do it, then the service is restarted."""
    def upgrade():
        roles = "/usr/local/libexec/fsbox"
        programs = ["/usr/local/sbin/fsboxd", *(f"{roles}/{name}" for name in os.listdir(roles))]
        for path in programs:
            shutil.copy2(path, f"{path}.new")
            os.rename(f"{path}.new", path)
        run("systemctl", "restart", "fsboxd.service")
    survives(upgrade)


def stop_ends_all_jobs():
    run("systemctl", "start", "fsboxd.socket")
    with open(f"{HOME}/p/secret", "w", encoding="ascii") as file:
        file.write("x\n")
    client = Waiting(deny=("--deny", f"{HOME}/p/absent", "--deny", f"{HOME}/p/secret"))
    client.settle()
    os.remove(f"{HOME}/p/secret")
    wait_for(lambda: os.path.exists(f"{HOME}/p/secret"), 5, "what takes its place")
    run("systemctl", "stop", "fsboxd.socket", "fsboxd.service")
    wait_for(lambda: not processes("fsbox-init"), 10, "the end of the job")
    client.process.send_signal(signal.SIGKILL)  # it looks for another fsboxd, which there is none of
    client.process.communicate(timeout=10)
    for name in ("fsboxd", "fsbox-broker", "fsbox-recorder", "fsbox-guard", "sh"):
        wait_for(lambda name=name: not [p for p in processes(name) if parent_comm(p) != "driver"], 15,
                 f"the end of {name}")
    equal(show("NFileDescriptorStore"), "0", "descriptors in the store")
    # What stood on the host goes with the next one.
    run("systemctl", "start", "fsboxd.service")
    wait_for(lambda: sorted(os.listdir(f"{HOME}/p")) == ["held"], 10, "placeholders to go")


def parent_comm(pid):
    with contextlib.suppress(OSError, IndexError):
        with open(f"/proc/{pid}/cgroup", encoding="utf-8") as file:
            return "driver" if "fsbox-test.service" in file.read() else ""
    return "driver"


def main():
    run("systemd-sysusers")
    run("useradd", "-m", "-s", "/bin/sh", "-G", "fsbox", USER)
    os.mkdir(f"{HOME}/p")
    shutil.chown(f"{HOME}/p", USER, USER)
    for case in (restart_ends_no_job, kill_ends_no_job, results_of_jobs_that_end_meanwhile_are_exact,
                 an_upgrade_ends_no_job, stop_ends_all_jobs):
        wrong = None
        begun = time.monotonic()
        try:
            case()
        except Exception:  # pylint: disable=broad-except
            wrong = traceback.format_exc()[-1500:]
            for pid in processes("fsbox-init"):
                os.kill(pid, signal.SIGKILL)
            wrong += run("journalctl", "-u", "fsboxd.service", "-n", "25", "--no-pager", check=False)
        print(json.dumps([case.__name__, wrong, round(time.monotonic() - begun, 1)]), flush=True)


main()
