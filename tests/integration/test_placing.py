# SPDX-License-Identifier: Apache-2.0
"""Jobs that come to stand on a placeholder of another job's between fsboxd's count and their own mounts: it stays
as long as they do. A file system that answers when it is told to holds the builder there."""

import contextlib
import os

import lib
from guardlib import events, inside
from lib import case, equal, project, wait_for
from slowfs import slow_file_system

MODES = ("system", "user", "root")
ENGINES = ("native", "bwrap")

# What it says ends with its standard input.
JOB = "echo up; read line; eval \"$line\"; exit 9"


def spawn(daemon, *options, cwd):
    return daemon.user.popen(daemon.command("spawn", *options, "--", "/bin/sh", "-c", JOB), cwd=cwd,
                             stdin=-1, stdout=-1, stderr=-1)


def is_up(job):
    said = job.stdout.readline()
    if said != b"up\n":
        raise AssertionError(f"the job did not begin: {said!r}, {job.stderr.read()!r}")


def end(daemon, job, line="exit 0"):
    """Its status, when all of it is gone."""
    left = len(daemon.jobs()) - 1
    job.communicate(f"{line}\n".encode(), 20)
    wait_for(lambda: len(daemon.jobs()) <= left, 10, "the end of a job")
    return job.returncode


def node(path):
    """Which object is there."""
    with contextlib.suppress(FileNotFoundError):
        st = os.lstat(path)
        return st.st_ino, st.st_mode
    return None


@contextlib.contextmanager
def held(daemon, slow, engine, place, name, *rules):
    """
    The client of a job whose builder hangs: at NAME in the file system SLOW, at which it looks in the order of
    depth. It goes on, and is up, at the end of the block.
    """
    slow.hold = True
    job = spawn(daemon, "--engine", engine, "--ro", slow.place, "--deny", f"{slow.place}/{name}", *rules,
                cwd=place)
    try:
        wait_for(lambda: slow.held or job.poll() is not None, 10, "a builder that hangs")
        if not slow.held:
            raise AssertionError(f"the job ended before it was held: {job.stderr.read()!r}")
        yield job
        slow.release()
        is_up(job)
    except BaseException:
        job.kill()
        raise


BEFORE, AFTER = "x", "a/b/c/d/e/f"


def one_stands_on_anothers(daemon, engine, where, mine="denied", other="denied", prepare="true"):
    """
    The user's directory MINE, which a job is denied, is gone when its builder gets to it, or after that: there is
    another job's placeholder then, made for OTHER.
    """
    place = project(daemon, f"placing-{engine}")
    daemon.user.shell(f"{prepare}; mkdir -m 0700 {mine}", cwd=place)
    with slow_file_system(daemon, f"placing-{daemon.mode}") as slow:
        with held(daemon, slow, engine, place, where, "--deny", f"{place}/{mine}") as job:
            daemon.user.shell(f"rmdir {mine}", cwd=place)
            maker = spawn(daemon, "--deny", f"{place}/{other}", cwd=place)
            is_up(maker)
            made = node(f"{place}/{mine}")
        equal(end(daemon, maker), 0, "its maker")
        equal(node(f"{place}/{mine}"), made, "what the other one stands on")
        equal(end(daemon, job, f"mkdir -p {mine}/d || exit 0"), 0, "it is denied")
    wait_for(lambda: not os.listdir(place), 10, f"nothing in the project: {os.listdir(place)}")


@case(*MODES)
def r26_b13_made_before_its_builder_looks(daemon):
    for engine in ENGINES:
        one_stands_on_anothers(daemon, engine, BEFORE)


@case(*MODES)
def r26_b13_the_same_in_a_set_group_id_directory(daemon):
    """Which hands that bit down."""
    for engine in ENGINES:
        one_stands_on_anothers(daemon, engine, BEFORE, prepare="chmod g+s .")


@case(*MODES)
def r26_b13_a_level_above_anothers(daemon):
    for engine in ENGINES:
        one_stands_on_anothers(daemon, engine, BEFORE, other="denied/a/b")


@case(*MODES)
def r26_b13_made_after_its_builder_looked(daemon):
    for engine in ENGINES:
        one_stands_on_anothers(daemon, engine, AFTER)


@case(*MODES)
def r26_b13_its_maker_ends_before_the_other_is_up(daemon):
    """By bubblewrap the other one may have begun to stand on it; a native job sees that it is gone."""
    for engine in ENGINES:
        place = project(daemon, f"placing-short-{engine}")
        path = f"{place}/denied"
        daemon.user.shell("mkdir -m 0700 denied", cwd=place)
        with slow_file_system(daemon, f"placing-{daemon.mode}") as slow:
            with held(daemon, slow, engine, place, AFTER, "--deny", path) as job:
                daemon.user.shell("rmdir denied", cwd=place)
                maker = spawn(daemon, "--deny", path, cwd=place)
                is_up(maker)
                made = node(path)
                equal(end(daemon, maker), 0, "its maker")
                if engine == "bwrap":
                    equal(node(path), made, "what the other one may stand on")
            equal(end(daemon, job, "mkdir -p denied/d || exit 0"), 0, "it is denied")
        wait_for(lambda: not os.listdir(place), 10, f"nothing in the project: {os.listdir(place)}")


@case(*MODES)
def r26_b13_claims_are_dropped_while_others_make_theirs(daemon):
    """By bubblewrap, each of its own: what is announced and not made yet is not forgotten when one ends."""
    place = project(daemon, "placing-many")
    running = []
    for number in range(40):
        deny = [word for i in range(16) for word in ("--deny", f"{place}/{number}-{i}")]
        running.append(daemon.user.popen(
            daemon.command("spawn", "--engine", "bwrap", *deny, "--", "true"), cwd=place, stderr=-1))
        while len(running) == 6 or (running and number == 39):
            _, said = running[0].communicate(timeout=60)
            equal((running.pop(0).returncode, lib.text(said)), (0, ""))
    wait_for(lambda: not os.listdir(place), 10, f"nothing in the project: {os.listdir(place)}")


# ---- while both run --------------------------------------------------------------------------


@case("system", "user")
def r26_b13_its_guard_masks_anothers(daemon):
    """The user takes away what a job is denied, and there is another job's placeholder in its place."""
    for other in ("denied", "denied/a/b"):
        place = project(daemon, "placing-guard")
        path = f"{place}/denied"
        daemon.user.shell("mkdir -m 0700 denied", cwd=place)
        with inside(daemon, "--deny", path, cwd=place) as job:
            before = len(events(daemon, "mask.repaired", below=path))
            daemon.user.shell("rmdir denied", cwd=place)
            maker = spawn(daemon, "--deny", f"{place}/{other}", cwd=place)
            is_up(maker)
            made = node(path)
            wait_for(lambda: len(events(daemon, "mask.repaired", below=path)) > before, 10,
                     "the guard to have masked it")
            equal(end(daemon, maker), 0, "its maker")
            equal(node(path), made, "what the other one stands on")
            equal(job.run("mkdir -p denied/d")[1] != 0, True, "it is denied")
            job.end()
        wait_for(lambda: not os.listdir(place), 10, f"nothing in the project: {os.listdir(place)}")


# ---- by another name ---------------------------------------------------------------------------


@case(*MODES)
def r26_b13_made_by_another_name(daemon):
    """A directory that is mounted at two places: the other one was denied by its other name."""
    if not lib.IS_ROOT:
        raise lib.Skip("needs root, to mount")
    for engine in ENGINES:
        place, other = project(daemon, f"placing-one-{engine}"), project(daemon, f"placing-two-{engine}")
        lib.mount("--bind", place, other)
        try:
            maker = spawn(daemon, "--deny", f"{place}/denied/a", cwd=place)
            is_up(maker)
            made = node(f"{place}/denied/a")
            jobs = []
            for _ in range(2):  # the second has the same policy
                jobs.append(spawn(daemon, "--engine", engine, "--deny", f"{other}/denied/a", cwd=other))
                is_up(jobs[-1])
            for ended in (maker, jobs[0]):
                equal(end(daemon, ended), 0, "one of them")
                equal(node(f"{place}/denied/a"), made, "what the next one stands on")
            equal(end(daemon, jobs[1], "mkdir -p denied/a/d || exit 0"), 0, "it is denied")
            wait_for(lambda: not os.listdir(place), 10, f"nothing in the project: {os.listdir(place)}")
        finally:
            lib.sh("umount", "-l", other)


lib.main()
