# SPDX-License-Identifier: Apache-2.0
"""Other sandboxes to be compared with, where they can be had.

bubblewrap is always measured, with the same binds (bench_rules.c); firejail gets the same rules as far
as it has them. codex and srt come from npm and run with the policy they have by themselves:

    npm install @openai/codex && node_modules/.bin/codex sandbox -- /usr/bin/true
    npm install @anthropic-ai/sandbox-runtime && node_modules/.bin/srt /usr/bin/true
"""

import json
import os
import shutil
import signal
import subprocess

# name: package, words before the command
NPM = {
    "codex": ("@openai/codex", ["sandbox", "--"]),
    "srt": ("@anthropic-ai/sandbox-runtime", []),
}
NPM_SECONDS = 150
SRT_NEEDS = {"rg": "ripgrep", "socat": "socat"}


def temporary():
    """Where peers put what they leave behind: srt a socket for each run."""
    return {"TMPDIR": os.path.join(os.environ["FSBOX_BENCH_TOP"], "tmp")}


def version_of(place, package):
    try:
        with open(os.path.join(place, "node_modules", package, "package.json"), encoding="utf-8") as file:
            return json.load(file)["version"]
    except (OSError, ValueError, KeyError):
        return "?"


def install_one(report, folder, name):
    """The command that runs true under this peer, or None."""
    package, words = NPM[name]
    if not shutil.which("npm"):
        report.skip(name, "npm is not installed")
        return None
    if name == "srt":
        for program, debian in SRT_NEEDS.items():
            if not shutil.which(program):
                report.skip(name, f"it needs {debian}, which is not installed")
                return None
    place = os.path.join(folder, name)
    os.mkdir(place)
    try:
        result = subprocess.run(["npm", "install", "--no-audit", "--no-fund", "--cache",
                                 os.path.join(folder, "cache"), "--prefix", place, package],
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, check=False, timeout=NPM_SECONDS, cwd=place)
    except subprocess.TimeoutExpired:
        report.skip(name, f"npm install {package}: not within {NPM_SECONDS} s")
        return None
    program = os.path.join(place, "node_modules/.bin", name)
    if result.returncode != 0 or not os.path.exists(program):
        said = result.stdout.decode("utf-8", "replace").strip()
        report.skip(name, f"npm install {package}: {said[-200:]}")
        return None
    report.add(bench="peer", what=name, package=package, version=version_of(place, package))
    return [program, *words, "/usr/bin/true"]


def install(report, folder):
    """npm's into FOLDER, readable for all. {name: command}."""
    found = {name: install_one(report, folder, name) for name in NPM}
    subprocess.run(["chmod", "-R", "a+rX", folder], check=False)
    return {name: command for name, command in found.items() if command}


def working(report, mode, user, commands):
    """Those that run here as this user; the others are skipped with what they said."""
    found = {}
    for name, command in commands.items():
        try:
            result = user.run(command, timeout=60, env=temporary())
        except AssertionError as error:
            report.skip(f"{name} ({mode})", str(error)[:200])
            continue
        if result.returncode == 0:
            found[name] = command
        else:
            said = (result.stderr + result.stdout).decode("utf-8", "replace").strip()
            report.skip(f"{name} ({mode})", said.splitlines()[0] if said else f"it exits with {result.returncode}")
    return found


def firejail_confines(report, mode, user):
    """Whether firejail is here and does its work: it runs things unconfined where it thinks it cannot."""
    if not shutil.which("firejail"):
        report.skip(f"firejail ({mode})", "not installed")
        return False
    result = user.run(["firejail", "--quiet", "--noprofile", "--net=none", "--", "/bin/readlink",
                       "/proc/self/ns/mnt"], timeout=60)
    if result.returncode != 0 or result.stdout.decode().strip() == os.readlink("/proc/self/ns/mnt"):
        report.skip(f"firejail ({mode})", "it does not confine here: "
                    + result.stderr.decode("utf-8", "replace").strip()[-200:])
        return False
    return True


def pretend_kernel_threads():
    """A process that firejail takes for the kernel's; to be called before anything else is started.

    In a process namespace without any, it believes itself in a sandbox already and confines nothing.
    """
    if os.fork() == 0:
        with open("/proc/self/comm", "w", encoding="ascii") as file:
            file.write("kthreadd")
        os.closerange(0, 64)
        while True:
            signal.pause()
