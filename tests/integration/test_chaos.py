# SPDX-License-Identifier: Apache-2.0
"""
Random jobs, edits and kills; afterwards nothing of fsbox's is left and nothing of the user's is gone.

    FSBOX_CHAOS_ROUNDS   how many in each mode; default 25
    FSBOX_CHAOS_SEED     of the first round; default 1
    FSBOX_CHAOS_SECONDS  but no longer than this in each mode; default 0: no limit
    FSBOX_CHAOS_STOP     after how many failed rounds it stops; default 1

tests/soak/chaos.sh runs it for long.
"""

import contextlib
import os
import re
import shutil
import signal
import time
import traceback

import lib
from chaoslib import Round, begin, stop
from guardlib import events, own_daemon, quantile
from lib import case, equal, succeeds, wait_for

ROUNDS = int(os.environ.get("FSBOX_CHAOS_ROUNDS", "25"))
SEED = int(os.environ.get("FSBOX_CHAOS_SEED", "1"))
SECONDS = float(os.environ.get("FSBOX_CHAOS_SECONDS", "0")) or float("inf")
STOP = int(os.environ.get("FSBOX_CHAOS_STOP", "1"))

# Results are kept for those who ask again: ten seconds (ended.h), and a little.
KEPT_SECONDS = 15

CONFIG = "max-spawns-per-second = 1000\n"


def mounts():
    with open("/proc/self/mountinfo", encoding="utf-8") as file:
        return sum(1 for _ in file)


def footprint(daemon):
    """What fsboxd holds right after its start, and what the host has of mounts and runtime files."""
    stop(daemon, signal.SIGTERM)
    begin(daemon)
    succeeds(daemon.ctl("status"))
    top = os.path.dirname(daemon.socket)
    return {"descriptors": lib.settled(lambda: lib.descriptors(daemon.process.pid)), "mounts": mounts(),
            "runtime": sorted(name for name in os.listdir(top) if name != "jobs")}


def fell_over(daemon, this):
    """Tell of a round that failed, and take away what it left."""
    mode = daemon.mode
    print(f"# {mode}: the round with seed {this.seed} failed; to repeat it: "
          f"tests/soak/chaos.sh BUILD 1 {this.seed} {mode}")
    for line in [*traceback.format_exc().rstrip().split("\n"), *this.story(),
                 *daemon.logged().rstrip().split("\n")[-12:]]:
        print(f"#   {line}", flush=True)
    if daemon.process.poll() is None:
        daemon.process.kill()
        daemon.process.wait()
    for pid in lib.processes():
        with contextlib.suppress(ProcessLookupError):
            if pid != os.getpid():
                os.kill(pid, signal.SIGKILL)
    begin(daemon)


def tell(daemon, what, values):
    if values:
        print(f"# {daemon.mode}: {what}: median {quantile(values, 0.5):.2f} ms, "
              f"p99 {quantile(values, 0.99):.2f} ms, max {max(values):.2f} ms, {len(values)} times")


def rounds(daemon, runtime):
    """How many were played, failed, and ran; windows."""
    failed, statuses, windows, kills, reasons = [], {}, [], {}, {}
    began = time.monotonic()
    for seed in range(SEED, SEED + ROUNDS):
        if time.monotonic() - began > SECONDS:
            break
        this = Round(daemon, seed, runtime)
        try:
            this.play()
            this.check()
        except Exception:  # pylint: disable=broad-except
            fell_over(daemon, this)
            failed.append(seed)
            if len(failed) >= STOP:
                break
        windows += this.windows
        for job in this.jobs:
            statuses[job.client.poll()] = statuses.get(job.client.poll(), 0) + 1
            if job.client.poll() == 125:
                why = (bool(this.killed) and "killed: ") or "edited: "
                why += (re.findall(r"(?:\[\w*\] )?\(([a-z-]+)\)", job.said or "") or ["?"])[0]
                reasons[why] = reasons.get(why, 0) + 1
                # The user's edits alone are seldom a reason.
                if not this.killed:
                    print(f"# {daemon.mode}: seed {seed}: {(job.said or '').strip()}", flush=True)
        for _, victim, _ in this.killed:
            kills[victim] = kills.get(victim, 0) + 1
        shutil.rmtree(this.place, True)
    print(f"# {daemon.mode}: {seed - SEED + 1} rounds from seed {SEED} in {time.monotonic() - began:.0f} s; "
          f"ends of clients {statuses}; refused {reasons}; killed {kills}")
    tell(daemon, "seen by canaries after an edit", windows)
    equal(failed, [], "seeds of rounds that failed")
    return statuses


def chaos(mode):
    with own_daemon(mode, CONFIG) as daemon:
        before = footprint(daemon)
        told = len(events(daemon, "mask.repaired"))
        statuses = rounds(daemon, before["runtime"])
        tell(daemon, "told by mask.repaired",
             [event["exposureUs"] / 1000 for event in events(daemon, "mask.repaired", told)])
        jobs = f"{os.path.dirname(daemon.socket)}/jobs"
        wait_for(lambda: not [name for name in os.listdir(jobs) if name.isdigit()], KEPT_SECONDS,
                 "the files of jobs to go")
        equal(footprint(daemon), before, "left behind")
        # It was a test of jobs that ran, not of refusals. One round alone may have killed who starts them.
        if ROUNDS >= 10:
            equal(statuses.get(7, 0) * 3 > sum(statuses.values()), True, f"most jobs ran: {statuses}")


@case(root=True)
def r26_r27_chaos_in_system_mode():
    chaos("system")


@case()
def r26_r27_chaos_in_user_mode():
    if lib.no_user_namespaces():
        raise lib.Skip(f"user namespaces are blocked: {lib.no_user_namespaces()}")
    chaos("user")


lib.main()
