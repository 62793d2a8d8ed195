# SPDX-License-Identifier: Apache-2.0
"""Builds and runs the suites for run.sh and counts what happened, case by case.

Two builds: with AddressSanitizer and UndefinedBehaviorSanitizer for the suites that run code in
their own process and for the hostile ones of those that run the programs; as it ships for all that run
the programs. Warnings are errors in both.
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SUITES = ["unit", "golden", "fuzz", "lint", "integration", "root"]
SANITIZED = {"unit", "golden", "fuzz"}

# Integration tests that run against both builds: whoever feeds garbage to a role wants its sanitizers.
HOSTILE = ["bad_input", "egress", "hostile_client", "hostile_broker", "broker_jobs", "broker_wire", "netproxy"]
MUST_WORK = os.environ.get("FSBOX_MUST_WORK", "") not in ("", "0")

ORDINARY_UID = 61599  # nobody's

# What no machine of ours can run, and what one engine is not for; everything else must work where
# MUST_WORK is set.
MAY_SKIP = re.compile(r"macOS|what bwrap cannot do|, and optional$")

CMOCKA = re.compile(r"^\[\s+(OK|FAILED|SKIPPED)\s+\] (?:\w+: )?([A-Za-z_]\w*)\s*$", re.M)
TAP = re.compile(r"^(ok|not ok)\b\s*\d*\s*-?\s*(.*?)(?:\s*# (SKIP)\b\s*(.*))?$", re.M)

# Folders of other runs at the same time; ours have our process number in their names.
OTHERS = re.compile(rf"fsbox-(tests|it)\.(?!{os.getpid()}\.)")

BUILDS = {
    "sanitized": ["-Db_sanitize=address,undefined", "-Db_lundef=false", "-Dbuildtype=debug",
                  "-Dc_args=-fno-sanitize-recover=all"],
    "plain": ["-Dbuildtype=debugoptimized"],
}


class Results:
    """Counts, and one line for each case as it is known."""

    def __init__(self):
        self.passed = 0
        self.failed = 0
        self.skipped = 0
        self.failures = []

    def add(self, name, outcome, note=""):
        if outcome == "skip" and MUST_WORK and not MAY_SKIP.search(note):
            outcome, note = "fail", f"must work here, but was skipped: {note}"
        if outcome == "pass":
            self.passed += 1
        elif outcome == "skip":
            self.skipped += 1
        else:
            self.failed += 1
            self.failures.append(name)
        print(f"{outcome.upper()}  {name}" + (f"  ({note})" if note else ""), flush=True)

    def finish(self):
        if self.failures:
            print("\nfailed:\n  " + "\n  ".join(self.failures))
        line = f"{self.passed} passed, {self.failed} failed"
        print(line + (f", {self.skipped} skipped" if self.skipped else ""), flush=True)
        return 1 if self.failed or not self.passed else 0


def cases_of(output):
    """(name, outcome, note) of each case that a test program told of, cmocka's or TAP."""
    cases = {}
    for outcome, name in CMOCKA.findall(output):
        known = {"OK": "pass", "FAILED": "fail", "SKIPPED": "skip"}[outcome]
        if cases.get(name, ("",))[0] != "fail":
            cases[name] = (known, "")
    for outcome, name, directive, note in TAP.findall(output):
        if directive == "SKIP":
            cases[name] = ("skip", note)
        else:
            cases[name] = ("pass" if outcome == "ok" else "fail", "")
    return [(name, outcome, note) for name, (outcome, note) in cases.items()]


def retry_without_root(command, environment, cases):
    """What root cannot see, somebody else may: run skipped cases of a test program once more."""
    try:
        process = subprocess.run(
            command, env={**os.environ, **environment, "HOME": "/"}, cwd="/", check=False, timeout=120,
            user=ORDINARY_UID, group=ORDINARY_UID, extra_groups=[], stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    except (OSError, subprocess.TimeoutExpired):
        return cases
    again = {case: (outcome, note) for case, outcome, note
             in cases_of(process.stdout.decode("utf-8", "replace"))}
    return [(case, *again.get(case, (outcome, note))) if outcome == "skip" else (case, outcome, note)
            for case, outcome, note in cases]


def record(results, entry, label):
    """One line of testlog.json."""
    suites, _, name = entry["name"].split(":", 1)[-1].partition(" / ")
    name = f"{label}{suites.split('+')[0]}/{name.strip()}"
    output = (entry.get("stdout") or "") + "\n" + (entry.get("stderr") or "")
    result = entry["result"]
    failed = result not in ("OK", "SKIP", "EXPECTEDFAIL")
    cases = cases_of(output)
    if os.geteuid() == 0 and name.startswith("unit/") and any(c[1] == "skip" for c in cases):
        cases = retry_without_root(entry["command"], entry.get("env") or {}, cases)
    for case, outcome, note in cases:
        results.add(f"{name}: {case}", outcome, note)
    if failed and not any(outcome == "fail" for _, outcome, _ in cases):
        results.add(name, "fail", f"{result.lower()}, exit status {entry.get('returncode')}")
    elif not cases:
        note = ""
        if result == "SKIP":
            note = next((line for line in output.split("\n") if line.strip()), "no reason given")
        results.add(name, "skip" if result == "SKIP" else "pass", note)
    if failed:
        print("  | " + "\n  | ".join(output.strip().split("\n")[-80:]), flush=True)


def follow(results, log_path, position, label):
    """Record the complete lines of the log behind POSITION; the new position."""
    try:
        with open(log_path, encoding="utf-8") as file:
            file.seek(position)
            while True:
                line = file.readline()
                if not line.endswith("\n"):
                    return position
                position = file.tell()
                record(results, json.loads(line), label)
    except FileNotFoundError:
        return position


def build(results, name, folder):
    """Set up and compile; whether it worked."""
    log_name = folder + ".log"
    start = time.monotonic()
    setup = ["meson", "setup", folder, ROOT, "-Dwerror=true", "--fatal-meson-warnings",
             *BUILDS[name]]
    if os.path.exists(os.path.join(folder, "build.ninja")):
        setup.append("--reconfigure")
    with open(log_name, "w", encoding="utf-8") as log:
        for command in (setup, ["ninja", "-C", folder, "-k", "0"]):
            if subprocess.run(command, stdin=subprocess.DEVNULL, stdout=log,
                              stderr=subprocess.STDOUT, check=False).returncode != 0:
                break
        else:
            results.add(f"build/{name}", "pass", f"{time.monotonic() - start:.0f} s")
            return True
    with open(log_name, encoding="utf-8") as log:
        lines = [line for line in log.read().split("\n") if not re.match(r"\[\d+/\d+\]|cc ", line)]
        print("  | " + "\n  | ".join(lines[-120:]))
    results.add(f"build/{name}", "fail", "does not build without warnings")
    return False


def run_tests(results, folder, what, label=""):
    """meson test WHAT, its results told as they come under names that begin with LABEL."""
    environment = dict(
        os.environ, LC_ALL="C.UTF-8", PYTHONDONTWRITEBYTECODE="1", FSBOX_TEST_RUN=str(os.getpid()),
        ASAN_OPTIONS="abort_on_error=1:detect_stack_use_after_return=1",
        UBSAN_OPTIONS="halt_on_error=1:abort_on_error=1:print_stacktrace=1")
    # Of those that run the programs two at a time, however many processors there are.
    two = min(2, os.cpu_count() or 1)
    command = ["meson", "test", "-C", folder, "--no-rebuild", "--logbase", "suites",
               "--num-processes", str(two), *what]
    log_path = os.path.join(folder, "meson-logs", "suites.json")
    if os.path.exists(log_path):
        os.remove(log_path)
    before = results.passed + results.failed + results.skipped
    position = 0
    with open(os.path.join(folder, "meson-test.log"), "w", encoding="utf-8") as log:
        process = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=log,
                                   stderr=subprocess.STDOUT)
        while process.poll() is None:
            time.sleep(0.3)
            position = follow(results, log_path, position, label)
    follow(results, log_path, position, label)
    if results.passed + results.failed + results.skipped == before:
        with open(os.path.join(folder, "meson-test.log"), encoding="utf-8") as log:
            print(log.read()[-2000:])
        results.add("meson test " + " ".join(what), "fail", "not one test ran")


def footprint(top):
    """What a run must leave as it found it: name -> state. Processes: those of builds below TOP."""
    state = {}
    for path in ("/etc/passwd", "/etc/group", "/etc/shadow", "/etc/gshadow"):
        try:
            with open(path, "rb") as file:
                state[path] = hashlib.sha256(file.read()).hexdigest()
        except OSError:
            state[path] = "unreadable"
    for folder in ("/tmp", "/var/tmp", "/dev/shm", "/run", "/etc", "/var/lib", "/var/log", "/run/user"):
        try:
            for leaf in os.listdir(folder):
                path = os.path.join(folder, leaf)
                if leaf.startswith("fsbox") and path != top and not OTHERS.match(leaf):
                    state[path] = "there"
        except OSError:
            pass
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.readlink(f"/proc/{pid}/exe").startswith(top + "/"):
                state[f"process {pid}"] = "runs"
        except OSError:
            pass
    status = subprocess.run(["git", "-c", "safe.directory=*", "status", "--porcelain", "--ignored"],
                            cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                            check=False)
    for line in status.stdout.split("\n"):
        if line:
            state["in the tree: " + line[3:]] = line[:2]
    return state


def check_footprint(results, before, top):
    after = footprint(top)
    problems = [key for key in {**before, **after} if before.get(key) != after.get(key)]
    problems = [key for key in problems if key in after]  # what went away is not ours to keep
    results.add("leaves nothing behind", "fail" if problems else "pass", ", ".join(sorted(problems)))


def main():
    wanted = sys.argv[1:] or SUITES
    unknown = [suite for suite in wanted if suite not in SUITES]
    if unknown:
        print(f"no such suite: {' '.join(unknown)}; there are: {' '.join(SUITES)}", file=sys.stderr)
        return 2
    results = Results()
    keep = os.environ.get("FSBOX_TEST_BUILD")
    top = os.path.abspath(keep) if keep else tempfile.mkdtemp(prefix=f"fsbox-tests.{os.getpid()}.")
    before = footprint(top)
    os.makedirs(top, exist_ok=True)
    os.chmod(top, 0o755)  # the tests' own users run the programs in it
    os.umask(0o022)
    try:
        for name in BUILDS:
            suites = [s for s in SUITES if s in wanted and (s in SANITIZED) == (name == "sanitized")]
            hostile = HOSTILE if name == "sanitized" and "integration" in wanted else []
            folder = os.path.join(top, name)
            if not (suites or hostile) or not build(results, name, folder):
                continue
            if suites:
                run_tests(results, folder, [f"--suite={suite}" for suite in suites])
            if hostile:
                run_tests(results, folder, hostile, "sanitized/")
    finally:
        if not keep:
            shutil.rmtree(top, ignore_errors=True)
    check_footprint(results, before, top)
    return results.finish()


sys.exit(main())
