# SPDX-License-Identifier: Apache-2.0
"""Seeing what fsboxd has prepared: templates, each of which has a builder that makes copies of it."""

import contextlib
import os

import lib
from lib import equal, parent_of, succeeds


def templates(daemon):
    """Their builders."""
    return {pid for pid in lib.processes("fsbox-builder") if parent_of(pid) == daemon.process.pid}


def spawn_in_template(daemon, script, *options, cwd):
    """What the script printed, and which templates there are afterwards that were not before."""
    before = templates(daemon)
    out = succeeds(daemon.sh(script, "--engine", "native", *options, cwd=cwd))
    return out, templates(daemon) - before


def rebuilds(daemon, script, *options, cwd):
    """The same, when a new template must have been made."""
    out, new = spawn_in_template(daemon, script, *options, cwd=cwd)
    equal(len(new), 1, "new templates")
    return out


def reuses(daemon, script, *options, cwd):
    out, new = spawn_in_template(daemon, script, *options, cwd=cwd)
    equal(new, set(), "new templates")
    return out


def reuses_or_not(daemon, *arguments, **options):
    first = succeeds(daemon.sh(*arguments, **options))
    equal(succeeds(daemon.sh(*arguments, **options)), first, "with the template again")
    return first


def counters(daemon):
    return daemon.json("status")["counters"]


def memory_of(pid):
    """Every byte that the process has mapped and can read, file or not."""
    with open(f"/proc/{pid}/maps", encoding="utf-8") as maps, \
            open(f"/proc/{pid}/mem", "rb", buffering=0) as mem:
        for line in maps:
            span, rights = line.split()[:2]
            if "r" not in rights or "[v" in line:
                continue
            start, end = (int(word, 16) for word in span.split("-"))
            if end - start > 1 << 32:
                raise lib.Skip("a sanitizer's shadow is too much to read")
            with contextlib.suppress(OSError, ValueError, OverflowError):
                mem.seek(start)
                yield mem.read(end - start)


def popen_spawn(daemon, *arguments, cwd):
    return daemon.user.popen(daemon.command("spawn", "--engine", "native", *arguments), cwd=cwd,
                             stdin=-1, stdout=-1, stderr=-1)


# ---- a fsboxd with less patience -----------------------------------------------------------

HURRIED = os.path.join(lib.BUILD, "tests/integration/hurried/fsboxd")


@contextlib.contextmanager
def hurried(mode):
    """One that keeps what nobody uses for 1.5 seconds, and gives jobs 3 to begin."""
    if mode == "user" and lib.no_user_namespaces():
        raise lib.Skip(f"user namespaces are blocked: {lib.no_user_namespaces()}")
    daemon = lib.make_daemon(mode)
    daemon.start("--exec-dir", os.path.join(lib.BUILD, "daemon"), program=HURRIED,
                 config="root-peers = serve\n" if mode == "root" else None)
    try:
        yield daemon
    finally:
        daemon.stop()
