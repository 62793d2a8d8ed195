# SPDX-License-Identifier: Apache-2.0
"""Measure a built fsbox beside what else there is, print a table and write the numbers.

usage: bench.py BUILD OUTPUT [--quick]

BUILD is an optimised build folder. As root, all three modes are measured in a machine of our own
(tests/integration/lib.py): its own users, homes, /run, processes; nothing of it is left. Without
root, user mode alone.

Every ratio is of medians that come from one run, in turns of ten, so that what else the machine does
hits all alike. OUTPUT gets one JSON object a line; "bench":"target" are the rows of the last table.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "integration"))
os.environ.setdefault("FSBOX_BUILD", os.path.abspath(sys.argv[1]))
import lib  # noqa: E402  pylint: disable=wrong-import-position

PACKAGES = {"codex": "@openai/codex", "srt": "@anthropic-ai/sandbox-runtime"}
ROLES = ("fsboxd", "fsbox-broker", "fsbox-resolver", "fsbox-recorder", "fsbox-netns", "fsbox-egress")


class Report:
    def __init__(self, path):
        self.path = path
        self.records = []

    def add(self, **record):
        self.records.append(record)
        with open(self.path, "a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")

    def note(self, what, why):
        print(f"skipped: {what}: {why}", flush=True)
        self.add(bench="skipped", what=what, why=why)

    def target(self, mode, measure, value, limit, compared, at_most=True):
        """One row of the last table."""
        met = value <= limit if at_most else value >= limit
        self.add(bench="target", mode=mode, measure=measure, value=round(value, 3), limit=limit,
                 bound="at most" if at_most else "at least", compared=compared, met=met)

    def table(self):
        rows = [r for r in self.records if r["bench"] == "target"]
        print("\ntargets:")
        for row in rows:
            sign = "<=" if row["bound"] == "at most" else ">="
            print(f"  {'ok  ' if row['met'] else 'MISS'} {row['mode']:7} {row['measure']:42} "
                  f"{row['value']:>10.3f} {sign} {row['limit']:<6} {row['compared']}")


# ---- peers ---------------------------------------------------------------------------------


def install_peers(report, folder):
    """npm's into FOLDER, for all to read. {name: command that runs true its way}."""
    found = {}
    if shutil.which("firejail"):
        found["firejail"] = "firejail --quiet --noprofile -- /usr/bin/true"
    else:
        report.note("firejail", "not installed")
    if not shutil.which("npm"):
        for name in PACKAGES:
            report.note(name, "npm is not installed")
        return found
    for name, package in PACKAGES.items():
        place = os.path.join(folder, name)
        os.mkdir(place)
        result = subprocess.run(["npm", "install", "--no-audit", "--no-fund", "--cache",
                                 os.path.join(folder, "cache"), "--prefix", place, package],
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, check=False, timeout=280)
        program = os.path.join(place, "node_modules/.bin", name)
        if result.returncode != 0 or not os.path.exists(program):
            report.note(name, f"npm install {package}: {lib.text(result.stdout).strip()[-200:]}")
        elif name == "codex":
            found[name] = f"{program} sandbox -- /usr/bin/true"
        else:
            found[name] = f"{program} /usr/bin/true"
    subprocess.run(["chmod", "-R", "a+rX", folder], check=False)
    return found


def working_peers(report, user, peers):
    """Those that run true here as this user; the others are skipped with what they said."""
    found = {}
    for name, command in peers.items():
        try:
            result = user.run(command.split(), timeout=60)
        except AssertionError as error:
            report.note(name, str(error)[:200])
            continue
        if result.returncode == 0:
            found[name] = command
        else:
            said = (lib.text(result.stderr) + lib.text(result.stdout)).strip()
            report.note(name, f"{command}: {said.splitlines()[0] if said else result.returncode}")
    return found


# ---- spawns --------------------------------------------------------------------------------


def bench_json(report, user, mode, program, *arguments, timeout=280):
    """The records a benchmark prints, also in the report."""
    command = [os.path.join(lib.BUILD, "tests/bench", program), *arguments]
    result = user.run(command, timeout=timeout, env={"PATH": lib.PATH})
    if result.returncode != 0:
        report.note(f"{program} {' '.join(arguments)} ({mode})", lib.text(result.stderr).strip()[-200:])
        return []
    records = [json.loads(line) for line in lib.text(result.stdout).splitlines()]
    for record in records:
        report.add(**{**record, "mode": mode})
    return records


def measure_spawns(report, daemon, mode, rules, rounds, *more):
    work = lib.project(daemon, f"spawn{rules}")
    records = bench_json(report, daemon.user, mode, "bench_spawn", "--json", "--mode", mode, "--work", work,
                         "--rules", str(rules), "--rounds", str(rounds), "--daemon", lib.FSBOXD, *more)
    found = {record["what"]: record for record in records}
    for name, record in found.items():
        print(f"  {mode:7} {rules:6} rules  {name:20} p50 {record['p50_us']:10.0f} us  "
              f"{record['x_bare']:8.2f} x bare  {record['x_bwrap']:7.3f} x bwrap", flush=True)
    return found


def spawn_targets(report, mode, found, peers):
    if not found:
        return
    library, ctl = found["fsbox library"], found["fsboxctl spawn"]
    report.target(mode, "spawn to status, library", library["x_bare"], 1.6, "x bare fork+exec")
    report.target(mode, "spawn to status, library", library["x_bwrap"], 0.20, "x bwrap, same 43 binds")
    report.target(mode, "fsboxctl spawn, whole process", ctl["x_bwrap"], 0.33, "x bwrap, same 43 binds")
    for name in ("codex", "firejail"):
        if name in peers and name in found:
            report.target(mode, "fsboxctl spawn, whole process", ctl["p50_us"] / found[name]["p50_us"],
                          0.10, f"x {name}")


def measure_growth(report, daemon, mode, quick):
    """The same spawn by its number of rules; bwrap does not do 10,000."""
    library = {}
    for rules, rounds, more in ((10, 100, ()), (43, 100, ()), (1000, 20, ()), (10000, 5, ("--no-bwrap",))):
        if quick and rules > 1000:
            continue
        found = measure_spawns(report, daemon, mode, rules, 10 if quick else rounds, *more)
        if found:
            library[rules] = found["fsbox library"]["p50_us"]
    if 43 in library and 1000 in library:
        report.target(mode, "spawn, 1,000 rules, warm", library[1000] / library[43], 2.0,
                      "x the one with 43 rules")


def measure_throughput(report, daemon, mode, quick):
    work = lib.project(daemon, "throughput")
    rates = {}
    for inflight in (1, 8, 64):
        for more in ((), ("--bwrap",)):
            records = bench_json(report, daemon.user, mode, "bench_throughput", "--work", work, "--inflight",
                                 str(inflight), "--seconds", "2" if quick else "8", *more)
            for record in records:
                rates[record["what"], inflight] = record["spawns_per_second"]
                print(f"  {mode:7} {inflight:3} in flight  {record['what']:14} "
                      f"{record['spawns_per_second']:8.1f} spawns/s", flush=True)
    if rates.get(("bwrap", 64)) and ("fsbox library", 64) in rates:
        report.target(mode, "spawns per second, 64 in flight",
                      rates["fsbox library", 64] / rates["bwrap", 64], 6.0, "x bwrap", at_most=False)


# ---- memory and rest -----------------------------------------------------------------------


def pss_kib(pid):
    with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as file:
        for line in file:
            if line.startswith("Pss:"):
                return int(line.split()[1])
    return 0


def role_pids():
    return [pid for pid, name in lib.processes().items() if name in ROLES or name[:15] in ROLES]


def pss_of(pids):
    total = 0
    for pid in pids:
        try:
            total += pss_kib(pid)
        except OSError:
            pass
    return total / 1024


def wakeups(pids):
    total = 0
    for pid in pids:
        with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as file:
            total += sum(int(line.split()[1]) for line in file if "ctxt_switches" in line)
    return total


def measure_rest(report, daemon, mode, quick):
    """Nothing runs: what do the roles hold, and do they sleep?"""
    lib.succeeds(daemon.spawn("--ro", "/usr", "--", "/usr/bin/true", cwd="/usr"))
    time.sleep(2)
    pids = role_pids()
    pss = pss_of(pids)
    before = wakeups(pids)
    time.sleep(5 if quick else 20)
    report.add(bench="rest", mode=mode, roles=len(pids), pss_mib=round(pss, 2))
    report.target(mode, "idle, PSS of all roles", pss, 8, "MiB")
    report.target(mode, "idle, wake-ups", wakeups(pids) - before, 0, f"in {5 if quick else 20} s")


def measure_many(report, daemon, mode, count):
    """COUNT jobs at once."""
    spawn = ["spawn", "--detach", "--profile", "host", "--", "/usr/bin/sleep", "600"]
    if mode == "root":
        spawn = ["spawn", "--detach", "--ro", "/usr", "--", "/usr/bin/sleep", "600"]
    script = f'i=0; while [ $i -lt {count} ]; do "$@" >/dev/null || exit 1; i=$((i + 1)); done'
    result = daemon.user.run(["/bin/sh", "-c", script, "sh", *daemon.command(*spawn)], cwd="/usr",
                             timeout=280)
    if result.returncode != 0:
        report.note(f"{count} jobs at once ({mode})", lib.text(result.stderr).strip()[-200:])
        return
    found = lib.processes()
    inits = [pid for pid, name in found.items() if name == "fsbox-init"]
    roles = pss_of(role_pids())
    per_job = pss_of(inits) * 1024 / max(len(inits), 1)
    report.add(bench="many", mode=mode, jobs=len(inits), roles_pss_mib=round(roles, 2),
               init_pss_kib=round(per_job, 1))
    report.target(mode, f"{count} jobs at once, that run", len(inits), count, "jobs", at_most=False)
    report.target(mode, f"{count} jobs at once, PSS of all roles", roles, 30, "MiB")
    print(f"  {mode:7} {len(inits)} jobs: roles {roles:.1f} MiB, init {per_job:.0f} KiB each", flush=True)
    for pid in inits:
        os.kill(pid, 9)
    lib.wait_for(lambda: "fsbox-init" not in lib.processes().values(), 60, "the end of all jobs")


# ---- all of it -----------------------------------------------------------------------------


def measure(report, mode, peers, quick):
    if mode == "user" and lib.no_user_namespaces():
        report.note("user mode", lib.no_user_namespaces())
        return
    daemon = lib.make_daemon(mode)
    # Limits of how fast one user may spawn are not what is measured.
    config = "max-spawns-per-second = 100000\n"
    if mode == "root":
        config += "root-peers = serve\n"
    if mode == "user":
        config = None  # nobody can raise his own
    daemon.start(config=config)
    try:
        working = working_peers(report, daemon.user, peers)
        options = [word for name, command in working.items() for word in ("--peer", name, command)]
        spawn_targets(report, mode, measure_spawns(report, daemon, mode, 43, 30 if quick else 200, "--ctl",
                                                   lib.FSBOXCTL, *options), working)
        measure_throughput(report, daemon, mode, quick)
        if mode == "system":
            measure_growth(report, daemon, mode, quick)
            measure_many(report, daemon, mode, 100 if quick else 1000)
        measure_rest(report, daemon, mode, quick)
    finally:
        daemon.stop()


def main():
    output, quick = os.path.abspath(sys.argv[2]), "--quick" in sys.argv
    stage = os.environ.get("FSBOX_TEST_STAGE", "")
    folder = os.environ.get("FSBOX_BENCH_PEERS", "")
    if not stage:
        # Outside of the machine still: there is no network of npm's inside a home that is not there.
        report = Report(output)
        folder = tempfile.mkdtemp(prefix="fsbox-bench-peers.")
        os.chmod(folder, 0o755)
        os.environ["FSBOX_BENCH_PEERS"] = folder
        status = 1
        try:
            with open(os.path.join(folder, "peers.json"), "w", encoding="utf-8") as file:
                json.dump(install_peers(report, folder), file)
            os.chmod(file.name, 0o644)
            lib.enter_private_machine()
        except SystemExit as end:
            status = end.code
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        sys.exit(status)
    lib.enter_private_machine()
    with open(os.path.join(folder, "peers.json"), encoding="utf-8") as file:
        peers = json.load(file)
    report = Report(output)
    for mode in ("system", "user", "root") if lib.IS_ROOT else ("user",):
        measure(report, mode, peers, quick)
    report.table()


main()
