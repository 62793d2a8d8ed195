# SPDX-License-Identifier: Apache-2.0
"""Measure fsbox beside what else there is; print one table, write bench.json.

usage: bench.py [--quick] [--only WORD[,WORD]] [OUTPUT]     (run.sh installs what it needs, then runs this)

Builds an optimised fsbox in a folder of its own (FSBOX_BENCH_BUILD names one to use and keep), and peers
from npm beside it. As root all three modes are measured, in a machine of our own (tests/integration/lib.py:
own users, homes, /run, processes); else user mode alone. Nothing of it is left, also after SIGTERM.

Every ratio is of medians of one run, in turns of ten, so that what else the machine does hits all alike.
--quick: fewer rounds, to see whether it works. --only: some benchmarks (policy spawn throughput growth many
egress zygotes exposure guard ledger network idle) or modes (system user root).
"""

import argparse
import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
STAGE = os.environ.get("FSBOX_TEST_STAGE", "")
if not STAGE and "FSBOX_BENCH_TOP" not in os.environ:
    os.umask(0o022)
    os.environ["FSBOX_BENCH_TOP"] = tempfile.mkdtemp(prefix="fsbox-bench.")
TOP = os.environ["FSBOX_BENCH_TOP"]
os.environ.setdefault("FSBOX_BUILD", os.path.abspath(os.environ.get("FSBOX_BENCH_BUILD") or TOP + "/build"))
sys.path[:0] = [HERE, os.path.join(ROOT, "tests/integration")]

import egress  # noqa: E402  pylint: disable=wrong-import-position
import lib  # noqa: E402  pylint: disable=wrong-import-position
import peers  # noqa: E402  pylint: disable=wrong-import-position
import rest  # noqa: E402  pylint: disable=wrong-import-position
import spawns  # noqa: E402  pylint: disable=wrong-import-position
from report import Report, print_table, write_json  # noqa: E402  pylint: disable=wrong-import-position

MODES = ("system", "user", "root")
BENCHMARKS = ("policy", "spawn", "throughput", "growth", "many", "egress", "zygotes", "exposure",
              "guard", "ledger", "network", "idle")
RECORDS = os.path.join(TOP, "records")
TARGETS = ["daemon/fsboxd", "daemon/fsbox-broker", "daemon/fsbox-init", "daemon/fsbox-recorder",
           "daemon/fsbox-egress", "client/fsboxctl", "tests/bench/bench_policy", "tests/bench/bench_spawn",
           "tests/bench/bench_throughput"]


# ---- inside --------------------------------------------------------------------------------


def start(mode, more=""):
    daemon = lib.make_daemon(mode)
    config = {
        # How fast one user may spawn is not what is measured, nor is what he may keep.
        "system": "max-spawns-per-second = 100000\ntemplate-cache-mounts = 200000\n",
        "root": "root-peers = serve\nmax-spawns-per-second = 100000\n",
        "user": "",
    }[mode]
    return daemon.start(config=config + more)


def attempt(report, mode, name, function, *arguments):
    """If it is wanted. A benchmark that does not work is told of; the others go on."""
    what = f"{name} ({mode})" if mode else name
    if name not in OPTIONS.benchmarks:
        return
    try:
        function(report, *arguments, OPTIONS.quick)
    except (AssertionError, OSError, KeyError, subprocess.SubprocessError) as error:
        print(f"FAILED: {what}: {error}", flush=True)
        report.add(bench="failed", what=what, why=str(error))


def measure(report, mode, commands):
    """Each with a daemon that has done nothing before: what it then holds is of this benchmark."""
    print(f"{mode} mode:", flush=True)
    steps = [("spawn", spawns.measure_spawn, "", [commands]), ("throughput", spawns.measure_throughput, "", [])]
    if mode == "system" or not lib.IS_ROOT:
        steps += [("growth", spawns.measure_growth, "", []), ("many", rest.measure_many, "", [])]
    if mode != "root":
        steps += [("exposure", rest.measure_exposure, "", []),
                  ("guard", spawns.measure_guard, "", []),
                  ("ledger", spawns.measure_ledger, "", []),
                  ("network", spawns.measure_networks, "", [])]
    if mode != "user":
        steps += [("zygotes", spawns.measure_zygotes, "zygotes = 12\n", [])]
    for name, function, config, more in steps:
        if name not in OPTIONS.benchmarks:
            continue
        daemon = start(mode, config)
        try:
            attempt(report, mode, name, function, daemon, mode, *more)
        finally:
            daemon.stop()


def inside():
    report = Report(RECORDS)
    with open(os.path.join(TOP, "peers.json"), encoding="utf-8") as file:
        commands = json.load(file)
    modes = [mode for mode in OPTIONS.modes if lib.IS_ROOT or mode == "user"]
    if "user" in modes and lib.no_user_namespaces():
        report.skip("user mode", lib.no_user_namespaces())
        modes.remove("user")
    for mode in modes:
        measure(report, mode, commands)
    if lib.IS_ROOT:
        attempt(report, "", "egress", egress.measure_apart)
    daemons = {mode: start(mode) for mode in modes}
    try:
        attempt(report, "", "idle", rest.measure_idle, daemons)
    finally:
        for daemon in daemons.values():
            daemon.stop()


# ---- outside -------------------------------------------------------------------------------


def build():
    """Quietly, unless it fails."""
    commands = [["ninja", "-C", lib.BUILD, *TARGETS]]
    if not os.path.exists(os.path.join(lib.BUILD, "build.ninja")):
        commands.insert(0, ["meson", "setup", "--buildtype=release", "-Db_lto=true", lib.BUILD, ROOT])
    for command in commands:
        result = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, check=False)
        if result.returncode != 0:
            sys.exit(result.stdout.decode("utf-8", "replace") + "fsbox does not build")
    if lib.IS_ROOT:
        os.chmod(lib.BUILD, 0o755)  # our users run what lies in it


def describe(report):
    commit = subprocess.run(["git", "-c", "safe.directory=*", "-C", ROOT, "describe", "--always", "--dirty"],
                            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False).stdout
    load = os.getloadavg()[0]
    report.add(bench="machine", kernel=platform.release(), cpus=os.cpu_count(), load=load,
               commit=commit.decode().strip(), quick=OPTIONS.quick)
    print(f"Linux {platform.release()}, {os.cpu_count()} processors, load {load:.1f}"
          + (": other work disturbs this" if load > 1 else ""), flush=True)


def outside(output):
    os.chmod(TOP, 0o755)
    status = 1
    report = Report(RECORDS)
    with open(RECORDS, "w", encoding="utf-8"):
        os.chmod(RECORDS, 0o644)
    try:
        build()
        describe(report)
        attempt(report, "", "policy", spawns.measure_policy)
        os.mkdir(peers.temporary()["TMPDIR"])
        os.chmod(peers.temporary()["TMPDIR"], 0o1777)
        folder = os.path.join(TOP, "npm")
        os.mkdir(folder)
        with open(os.path.join(TOP, "peers.json"), "w", encoding="utf-8") as file:
            json.dump(peers.install(report, folder) if "spawn" in OPTIONS.benchmarks else {}, file)
        try:
            lib.enter_private_machine()
            inside()  # without namespaces to enter
            status = 0
        except SystemExit as end:
            status = end.code
        records = report.records()
        if status == 0:
            print_table(records)
            write_json(records, output)
        for record in records:
            if record["bench"] == "failed":
                print(f"FAILED: {record['what']}: {record['why']}")
                status = 1
    finally:
        shutil.rmtree(TOP, ignore_errors=True)
    sys.exit(status)


def parse():
    parser = argparse.ArgumentParser(prog="run.sh", description="Measure fsbox beside what else there is.")
    parser.add_argument("--quick", action="store_true", help="fewer rounds")
    parser.add_argument("--only", default="", metavar="WORD[,WORD]",
                        help="of " + " ".join(BENCHMARKS) + "; of " + " ".join(MODES))
    parser.add_argument("output", nargs="?", default="bench.json")
    options = parser.parse_args()
    words = set(filter(None, options.only.split(",")))
    if words - {*BENCHMARKS, *MODES}:
        parser.error("--only: no such benchmark or mode")
    options.benchmarks = [name for name in BENCHMARKS if name in words] or BENCHMARKS
    options.modes = [name for name in MODES if name in words] or MODES
    return options


def main():
    if STAGE == "root":
        peers.pretend_kernel_threads()
    if STAGE:
        lib.enter_private_machine()
        inside()
        return
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        # What we started is killed and removed on the way out.
        signal.signal(number, lambda number, _: sys.exit(128 + number))
    outside(os.path.abspath(OPTIONS.output))


OPTIONS = parse()
main()
