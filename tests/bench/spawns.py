# SPDX-License-Identifier: Apache-2.0
"""What spawns cost: by bench_spawn and bench_throughput, which see the report's JSON printed."""

import json
import os
import subprocess

import lib
import peers

RULES = 43  # of the policy that all targets are about


def run_program(report, user, mode, program, *arguments, timeout=280):
    """The records that one of our programs prints, also in the report."""
    command = [os.path.join(lib.BUILD, "tests/bench", program), *arguments]
    result = user.run(command, timeout=timeout, env={"PATH": lib.PATH, **peers.temporary()})
    if result.returncode != 0:
        raise AssertionError(f"{' '.join(command)}: {lib.show(result)}")
    records = [json.loads(line) for line in lib.text(result.stdout).splitlines()]
    for record in records:
        report.add(**{**record, "mode": mode})
    return records


def spawn_times(report, daemon, mode, name, rules, rounds, seconds, *more):
    """{(what, rules): median in us} of one run of bench_spawn."""
    work = lib.project(daemon, name)
    records = run_program(report, daemon.user, mode, "bench_spawn", "--json", "--name", name, "--mode", mode,
                          "--work", work, "--rules", ",".join(map(str, rules)), "--rounds", str(rounds),
                          "--seconds", str(seconds), "--daemon", lib.FSBOXD, *more)
    return {(record["what"], record["rules"]): record["p50_us"] for record in records}


def shown(us):
    return f"{us / 1000:.2f} ms"


def measure_spawn(report, daemon, mode, commands, quick):
    """The policy of 43 rules, beside all others."""
    words = ["--ctl", lib.FSBOXCTL]
    for name, command in peers.working(report, mode, daemon.user, commands).items():
        words += ["--peer", name, " ".join(command)]
    if peers.firejail_confines(report, mode, daemon.user):
        words.append("--firejail")
    times = spawn_times(report, daemon, mode, "spawn", [RULES], 20 if quick else 200, 2 if quick else 8, *words)
    bare, bwrap = times["fork+exec", 0], times["bwrap", RULES]
    library, ctl = times["library", RULES], times["fsboxctl", RULES]
    report.row(mode, "spawn to status, library", library / bare, "x",
               f"bare fork+exec ({shown(library)} : {shown(bare)})", at_most=1.6)
    report.row(mode, "spawn to status, library", library / bwrap, "x",
               f"bwrap, the same binds ({shown(bwrap)})", at_most=0.20)
    report.row(mode, "fsboxctl spawn, whole process", ctl / bwrap, "x",
               f"bwrap, the same binds ({shown(ctl)} : {shown(bwrap)})", at_most=0.33)
    for name, rules, bound in (("codex", 0, 0.10), ("firejail", RULES, 0.10), ("srt", 0, None)):
        if (name, rules) in times:
            report.row(mode, "fsboxctl spawn, whole process", ctl / times[name, rules], "x",
                       f"{name} ({shown(times[name, rules])})", at_most=bound)
    report.row(mode, "first spawn of a policy (cold)", times["library, cold", RULES] / 1000, "ms",
               f"warm: {shown(library)}")
    report.row(mode, "from the status until nothing is left", times["after status", RULES] / 1000, "ms", "")


def measure_guard(report, daemon, mode, quick):
    """Guarded jobs beside those with as many mounts of which none can be undone from outside."""
    times = spawn_times(report, daemon, mode, "guard", [RULES], 50 if quick else 600, 2 if quick else 10,
                        "--no-cold", "--no-bwrap", "--unguarded")
    guarded, free = times["library", RULES], times["no guard", RULES]
    report.row(mode, "warm spawn with a guard", guarded / free, "x",
               f"without one ({shown(guarded)} : {shown(free)})", at_most=1.03)


def measure_ledger(report, daemon, mode, quick):
    """Jobs that stand on nothing, alone and while another job stands on many placeholders, in turns; and one that
    stands on one."""
    place = lib.project(daemon, "holder")
    deny = [word for number in range(100) for word in ("--deny", f"{place}/absent{number}")]
    rounds, seconds = (20, 1) if quick else (200, 4)
    alone, beside, absent = [], [], []
    for _ in range(1 if quick else 3):
        times = spawn_times(report, daemon, mode, "ledger", [RULES], rounds, seconds, "--no-cold", "--no-bwrap",
                            "--absent")
        alone.append(times["library", RULES])
        absent.append(times["absent deny", RULES])
        lib.succeeds(daemon.detach(*deny, "--", "/bin/sleep", "600", cwd=place))
        times = spawn_times(report, daemon, mode, "ledger-held", [RULES], rounds, seconds, "--no-cold",
                            "--no-bwrap")
        beside.append(times["library", RULES])
        for job in daemon.jobs():
            daemon.ctl("signal", str(job["job"]), "KILL")
        lib.wait_for(lambda: not daemon.jobs() and not os.listdir(place), 20, "the other job's end")
    report.row(mode, "warm spawn beside 100 placeholders of another job", min(beside) / min(alone), "x",
               f"without ({shown(min(beside))} : {shown(min(alone))})", at_most=1.03)
    report.row(mode, "spawn with one absent denied path", min(absent) / 1000, "ms",
               f"without it: {shown(min(alone))}")


def measure_networks(report, daemon, mode, quick):
    """A network of its own beside the host's; fewer in a turn than the pool keeps."""
    times = spawn_times(report, daemon, mode, "network", [RULES], 50 if quick else 600, 2 if quick else 10,
                        "--no-cold", "--no-bwrap", "--nets")
    none, proxy, host = (times[what, RULES] for what in ("library", "network proxy", "network host"))
    report.row(mode, "warm spawn with network none", none / host, "x",
               f"network host ({shown(none)} : {shown(host)})", at_most=1.05)
    report.row(mode, "warm spawn with network proxy", proxy / host, "x", f"network host ({shown(proxy)})")


def measure_zygotes(report, daemon, mode, quick):
    """The daemon was started with enough of them for one turn of bench_spawn; the next are made in its pause."""
    times = spawn_times(report, daemon, mode, "zygotes", [RULES], 20 if quick else 200, 2 if quick else 8,
                        "--no-cold")
    counters = daemon.json("status")["counters"]
    used = counters["zygotesUsed"] / counters["spawns"]
    library, bare, bwrap = times["library", RULES], times["fork+exec", 0], times["bwrap", RULES]
    report.add(bench="zygotes, used", mode=mode, share=used, refused=counters["zygotesRefused"])
    report.row(mode, "with zygotes: spawn to status, library", library / bare, "x",
               f"bare fork+exec ({shown(library)} : {shown(bare)}; {used:.0%} in one)", at_most=1.35)
    report.row(mode, "with zygotes: spawn to status, library", library / bwrap, "x",
               f"bwrap, the same binds ({shown(bwrap)})", at_most=0.17)


def measure_growth(report, daemon, mode, quick):
    """The same spawn by its number of rules."""
    sizes = [10, RULES, 1000] if quick else [10, RULES, 100, 1000, 10000]
    times = spawn_times(report, daemon, mode, "growth", sizes, 10 if quick else 60, 2 if quick else 10)
    few = times["library", RULES]
    report.row(mode, "spawn, 1,000 rules, warm", times["library", 1000] / few, "x",
               f"the one with {RULES} rules ({shown(times['library', 1000])} : {shown(few)})", at_most=2.0)
    for size in sizes:
        bwrap = times.get(("bwrap", size))
        compared = f"cold: {shown(times['library, cold', size])}; bwrap: "
        compared += shown(bwrap) if bwrap else "not above 3,000"
        report.row(mode, f"spawn by rules: {size:,}", times["library", size] / 1000, "ms", compared)


def measure_throughput(report, daemon, mode, quick):
    """Turns of both at each number, so that what else the machine does hits both."""
    for inflight in (1, 8, 64):
        rates = {"library": [], "bwrap": []}
        for turn in range(1 if quick else 2):
            for name, more in (("library", ()), ("bwrap", ("--bwrap",))):
                work = lib.project(daemon, f"throughput{turn}")
                records = run_program(report, daemon.user, mode, "bench_throughput", "--work", work, "--inflight",
                                      str(inflight), "--seconds", "2" if quick else "4", *more)
                rates[name].append(records[0]["spawns_per_second"])
        ours, theirs = (sum(rates[name]) / len(rates[name]) for name in ("library", "bwrap"))
        report.row(mode, f"spawns per second, {inflight} in flight", ours / theirs, "x",
                   f"bwrap, the same binds ({ours:.0f} : {theirs:.0f})", at_least=6.0 if inflight == 64 else None)


def measure_policy(report, _quick):
    """No daemon, no user: arithmetic."""
    result = subprocess.run([os.path.join(lib.BUILD, "tests/bench/bench_policy"), "--json"],
                            stdout=subprocess.PIPE, check=True)
    for line in lib.text(result.stdout).splitlines():
        record = json.loads(line)
        report.add(**record)
        if record["candidates"] == 10000:
            report.row("", "policy build + compile, 10,000 rules", record["totalMs"], "ms", "", at_most=20)
            report.row("", "access lookups, 10,000 rules", record["lookupsPerSecond"] / 1e6, "M/s",
                       f"rule after rule: {record['flatLookupsPerSecond'] / 1e6:.4f} M/s", at_least=3)
