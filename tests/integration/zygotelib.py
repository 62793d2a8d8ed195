# SPDX-License-Identifier: Apache-2.0
"""Tests with zygotes: daemons that have some, and jobs that surely begin in one.

With FSBOX_TEST_ZYGOTES=N in the environment every daemon of a test program that is not in user mode has N, and
each `fsboxctl spawn` of a case waits until there is one that fits (lib.Daemon.spawn()).
"""

import contextlib
import os
import time

import lib
from lib import equal, wait_for

MODES = ("system", "root")
COUNT = os.environ.get("FSBOX_TEST_ZYGOTES")

# Of the jobs that a zygote was ready for; (that began in one, all).
TALLY = [0, 0]


def counts(daemon):
    """{ready, used, refused, expired}"""
    prefix = "zygotes"
    return {name[len(prefix):].lower(): count for name, count in daemon.json("status")["counters"].items()
            if name.startswith(prefix)}


@contextlib.contextmanager
def with_zygotes(mode, config="", count=2, **options):
    daemon = lib.make_daemon(mode)
    peers = "root-peers = serve\n" if mode == "root" else ""
    daemon.start(config=f"zygotes = {count}\n{peers}{config}", **options)
    try:
        yield daemon
    finally:
        daemon.stop()


def zygotes():
    return lib.processes("fsbox-zygote")


def warm(daemon, *options, cwd, count=1, **more):
    """Until COUNT zygotes wait for the policy of OPTIONS in CWD."""
    for _ in range(3):
        lib.succeeds(daemon.spawn(*options, "--", "/bin/true", cwd=cwd, **more))
    wait_for(lambda: counts(daemon)["ready"] >= count, 10, "zygotes")


def served(daemon, *arguments, **options):
    """daemon.spawn() for what warm() has prepared: begun in a zygote."""
    before = counts(daemon)
    result = daemon.spawn(*arguments, **options)
    after = counts(daemon)
    equal((after["used"] - before["used"], after["refused"] - before["refused"]), (1, 0),
          "zygotes used and refused")
    return result


def refuses(daemon, *arguments, **options):
    """The same where none fits any more."""
    before = counts(daemon)
    result = daemon.spawn(*arguments, **options)
    after = counts(daemon)
    equal(after["used"], before["used"], "zygotes used")
    return result, after["refused"] - before["refused"]


# ---- every spawn of a test program -------------------------------------------------------------


def config_with(daemon, config):
    if daemon.mode == "user" or "zygotes" in (config or ""):
        return config
    return f"zygotes = {COUNT}\n{config or ''}"


def before_spawn(daemon, arguments, options):
    """Have a zygote made for what is about to be spawned, if it can have one."""
    if daemon.mode == "user" or "--" not in arguments or "bwrap" in arguments or "host" in arguments:
        return None
    its = list(arguments[:arguments.index("--")])
    if any(word in its for word in ("--detach", "--session", "--dry-run", "--grant-fd")):
        return None
    if "--status-fd" in its:
        at = its.index("--status-fd")
        del its[at:at + 2]
    try:
        quiet = {name: options[name] for name in ("user", "cwd", "env") if name in options}
        for _ in range(2):
            if daemon.ctl("spawn", *its, "--", "/bin/true", timeout=30, **quiet).returncode != 0:
                return None
        end = time.monotonic() + 2
        while counts(daemon)["ready"] == 0:
            if time.monotonic() > end:
                return None
            time.sleep(0.01)
        return counts(daemon)["used"]
    except (AssertionError, KeyError):
        return None


def after_spawn(daemon, before):
    if before is None:
        return
    with contextlib.suppress(AssertionError, KeyError):
        TALLY[0] += counts(daemon)["used"] > before
        TALLY[1] += 1


def report():
    """False: the cases had nothing to do with zygotes."""
    print(f"# in zygotes: {TALLY[0]} of {TALLY[1]} jobs that could")
    return TALLY[0] > 0 and TALLY[0] >= TALLY[1] / 5  # how many are ready in time is the machine's matter
