# SPDX-License-Identifier: Apache-2.0
"""What is held: by a thousand jobs, after them, and while nothing happens."""

import contextlib
import os
import subprocess
import sys
import time

import guardlib
import lib

# Idle: all that is kept for a while after the last job is gone.
SETTLE_SECONDS = 63
KERNEL_MEMORY = ("Slab", "KernelStack", "PageTables", "Percpu")


def parents():
    """{pid: parent} of all live processes."""
    found = {}
    for pid in lib.processes():
        try:
            with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
                line = file.read()
            found[pid] = int(line[line.rindex(")") + 2:].split()[1])
        except OSError:
            pass
    return found


def roles_of(daemon):
    """{pid: name} of fsboxd and the roles it started: no job's process and no pid 1 of a job."""
    found, above = lib.processes(), parents()
    family = {daemon.process.pid}
    while True:
        more = {pid for pid, parent in above.items() if parent in family
                and pid not in family and found.get(pid) not in (None, "fsbox-init")}
        if not more:
            return {pid: found[pid] for pid in family if pid in found}
        family |= more


def pss_kib(pid):
    """PermissionError: roles are not dumpable, so that only root may look."""
    try:
        with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as file:
            for line in file:
                if line.startswith("Pss:"):
                    return int(line.split()[1])
    except (FileNotFoundError, ProcessLookupError):
        pass
    return 0


def memory_row(report, mode, measure, roles, at_most):
    """The PSS of ROLES ({pid: name}), together and one by one."""
    try:
        found = pss_by_role(roles)
    except PermissionError:
        report.skip(f"{measure} ({mode})", "only root may read it")
        return
    report.row(mode, measure, sum(found.values()), "MiB", listed(found), at_most=at_most)


def pss_by_role(pids):
    """{name: MiB}, the largest first."""
    total = {}
    for pid, name in pids.items():
        total[name] = total.get(name, 0) + pss_kib(pid) / 1024
    return dict(sorted(total.items(), key=lambda item: -item[1]))


def listed(roles):
    return ", ".join(f"{name} {mib:.1f}" for name, mib in roles.items())


def kernel_kib():
    with open("/proc/meminfo", encoding="ascii") as file:
        values = {line.split(":")[0]: int(line.split()[1]) for line in file}
    return sum(values.get(name, 0) for name in KERNEL_MEMORY)


def wakeups(pids):
    """Times that these were switched away from, thus had run."""
    total = 0
    for pid in pids:
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/status", encoding="ascii", errors="replace") as file:
                total += sum(int(line.split()[1]) for line in file if "ctxt_switches" in line)
    return total


# ---- a thousand jobs -----------------------------------------------------------------------


def footprint(place):
    """What is there beside the roles: mounts, files of the daemon's and the project's."""
    with open("/proc/self/mountinfo", encoding="utf-8") as file:
        found = {"mount " + line.split()[4] for line in file}
    for top in ("/run", "/var/lib", place):
        for folder, _, files in os.walk(top):
            found |= {folder} | {os.path.join(folder, name) for name in files}
    return found


def wait_for_jobs(command, count):
    """The processes that run COMMAND, when there are COUNT of them."""
    lib.wait_for(lambda: len(lib.processes(command)) >= count, 60, f"{count} jobs")
    return lib.processes(command)


def start_jobs(daemon, place, count):
    """Detached, one after the other; all share a placeholder."""
    script = 'n=$1; shift; i=0; while [ $i -lt "$n" ]; do "$@" >/dev/null 2>/dev/null || exit 1; i=$((i + 1)); done'
    command = daemon.command("spawn", "--detach", "--rw", place, "--deny", f"{place}/absent", "--",
                             "/usr/bin/sleep", "3600")
    result = daemon.user.run(["/bin/sh", "-c", script, "sh", str(count), *command], cwd=place, timeout=200)
    if result.returncode != 0:
        again = daemon.user.run(command, cwd=place, stdout=subprocess.DEVNULL)
        raise AssertionError(f"only {len(lib.processes('sleep'))} jobs: {lib.show(again)}")


def measure_many(report, daemon, mode, quick):
    count = 100 if quick else 1000
    place = lib.project(daemon, "many")
    lib.succeeds(daemon.spawn("--rw", place, "--", "/usr/bin/true", cwd=place))  # the roles are up
    time.sleep(1)
    before, kernel_before = footprint(place), kernel_kib()
    start_jobs(daemon, place, count)
    commands, inits = wait_for_jobs("sleep", count), wait_for_jobs("fsbox-init", count)
    time.sleep(1)
    kernel = (kernel_kib() - kernel_before) / count
    report.row(mode, f"{count:,} jobs at once, that run", len(commands), "jobs", "", at_least=count)
    memory_row(report, mode, f"{count:,} jobs at once, PSS of all roles", roles_of(daemon), 30)
    if lib.IS_ROOT:
        per_init = sum(map(pss_kib, inits)) / len(inits)
        report.row(mode, "memory per job: its pid 1, PSS", per_init, "KiB", "")
    report.row(mode, "memory per job: the kernel's, estimated", kernel, "KiB", " + ".join(KERNEL_MEMORY))
    lib.equal(os.path.isdir(f"{place}/absent"), True, "the placeholder is there while they run")
    begin = time.monotonic()
    for pid in commands:
        os.kill(pid, 9)
    lib.wait_for(lambda: not lib.processes("fsbox-init"), 60, "the end of all jobs")
    took = time.monotonic() - begin

    def left():
        return footprint(place) - before

    with contextlib.suppress(AssertionError):
        lib.wait_for(lambda: not left(), 30, "placeholders to go")
    all_took = time.monotonic() - begin
    report.row(mode, f"{count:,} jobs at once, left after them", len(left()), "objects",
               f"processes gone in {took:.1f} s, placeholders in {all_took:.1f} s "
               + " ".join(sorted(left())[:5]), at_most=0)


# ---- nothing happens -----------------------------------------------------------------------

HOLD = """
import sys, time
sys.path.insert(0, sys.argv[1])
import wire
connection = wire.Connection(sys.argv[2], 1000000)
connection.hello()
print("connected", flush=True)
connection.receive()
"""


def measure_exposure(report, daemon, mode, quick):
    """For how long a job that reads all the time sees what is saved over a file that it must not see."""
    before, seen, told = guardlib.canary(daemon, 50 if quick else 400, 0.02)
    if before:
        raise AssertionError("it was seen before anybody saved")
    compared = f"{len(seen)} saves; by the events median {guardlib.quantile(told, 0.5):.2f}, " \
               f"p99 {guardlib.quantile(told, 0.99):.2f}, max {max(told):.2f} ms"
    report.row(mode, "a mask saved over, until it is back: median", guardlib.quantile(seen, 0.5), "ms", compared)
    report.row(mode, "a mask saved over, until it is back: p99", guardlib.quantile(seen, 0.99), "ms",
               f"max {max(seen):.2f} ms", at_most=5)


def connect(daemon):
    """A client that is connected and asks for nothing."""
    client = daemon.user.popen([sys.executable, "-B", "-c", HOLD, os.path.dirname(lib.__file__), daemon.socket],
                               stdout=subprocess.PIPE)
    client.stdout.readline()
    return client


def measure_idle(report, daemons, quick):
    """All modes at once: they do nothing. Each has had a job, and has a client."""
    clients = [connect(daemon) for daemon in daemons.values()]
    for daemon in daemons.values():
        lib.succeeds(daemon.spawn("--ro", "/usr", "--", "/usr/bin/true", cwd="/usr"))
    time.sleep(3)
    for mode, daemon in daemons.items():
        memory_row(report, mode, "idle, PSS of all roles", roles_of(daemon), 8)
    time.sleep(3 if quick else SETTLE_SECONDS)
    seconds = 5 if quick else 30
    roles = {mode: roles_of(daemon) for mode, daemon in daemons.items()}
    before = {mode: wakeups(pids) for mode, pids in roles.items()}
    time.sleep(seconds)
    for mode, pids in roles.items():
        report.row(mode, "idle, wake-ups", wakeups(pids) - before[mode], f"in {seconds} s", "", at_most=0)
    for client in clients:
        client.kill()
        client.wait()
