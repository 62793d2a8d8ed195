# SPDX-License-Identifier: Apache-2.0
"""A denied object that its user takes away while a job runs: the job cannot make that path instead, and
nothing stays of what keeps it from that."""

import os
import signal
import subprocess
import time

import lib
from guardlib import NATIVE, inside, own_daemon, restart
from lib import case, equal, project, wait_for

MODES = ("system", "user", "root")


def gone(path):
    return not os.path.lexists(path)


def stands(path):
    """An empty file of mode 0600 took the place of PATH."""
    def there():
        try:
            st = os.lstat(path)
        except FileNotFoundError:
            return False
        return (st.st_size, st.st_mode) == (0, 0o100600)
    wait_for(there, 5, f"something in place of {path}")


def refused(job, path):
    """Once it is masked, which takes a moment more."""
    wait_for(lambda: job.run(f"cat {path} 2>&-")[1] != 0, 5, f"{path} closed")
    _, status = job.run(f"(echo evil >{path}) 2>&-")
    equal(status != 0, True, f"writing {path} fails")
    _, status = job.run(f"mkdir {path} 2>&-")
    equal(status != 0, True, f"making {path} fails")


@case(*MODES)
def b13_what_is_removed_outside_cannot_be_made_inside(daemon):
    """As it was reported: touch, deny, remove after a moment, and write from inside a moment later."""
    place = project(daemon, "b13gone")
    path = daemon.user.write(f"{place}/.env", "")
    process = daemon.user.popen(
        daemon.command("spawn", *NATIVE, "--deny", path, "--", "/bin/sh", "-c",
                       f"echo up; sleep 1; echo evil >{path}; echo write rc=$?"),
        cwd=place, stdout=-1, stderr=subprocess.DEVNULL)
    equal(process.stdout.readline(), b"up\n")
    os.remove(path)
    out, _ = process.communicate(timeout=30)
    equal(out.startswith(b"write rc=") and out != b"write rc=0\n", True, out)
    wait_for(lambda: gone(path), 5, "the file to be gone again")


@case(*MODES)
def r27_again_and_by_many(daemon):
    """As often as it is removed; a file, and what stood for an absent path; for all jobs until the last one."""
    place = project(daemon, "gone")
    secret = daemon.user.write(f"{place}/secret", "LEAK\n")
    absent = f"{place}/absent"
    deny = ("--deny", secret, "--deny", absent)
    with inside(daemon, *deny, cwd=place) as first:
        with inside(daemon, *deny, cwd=place) as second:
            for _ in range(3):
                daemon.user.shell("rm -f secret; rmdir absent 2>&- || rm -f absent", cwd=place)
                stands(secret)
                stands(absent)
                for job in (first, second):
                    refused(job, "secret")
                    refused(job, "absent")
            second.end()
        wait_for(lambda: len(daemon.jobs()) == 1, 10, "its end")
        time.sleep(0.3)
        stands(secret)
        stands(absent)
        refused(first, "secret")
        first.end()
    wait_for(lambda: not os.listdir(place), 10, f"nothing in the project: {os.listdir(place)}")


@case(*MODES)
def r27_many_at_once(daemon):
    """All denied files of a project; also when more are gone that nobody could make now."""
    place = project(daemon, "atonce")
    below = [daemon.user.write(f"{place}/sub/s{i:02}", "x") for i in range(70)]
    paths = [daemon.user.write(f"{place}/s{i:02}", "x") for i in range(40)]
    deny = [word for path in below + paths for word in ("--deny", path)]
    with inside(daemon, *deny, cwd=place) as job:
        daemon.user.shell("rm -rf sub s*", cwd=place)

        def all_stand():
            return all(os.path.exists(path) for path in paths)
        # One each two seconds, as is told again what is still gone, would take far longer.
        wait_for(all_stand, 8, "something in place of each")
        equal(os.path.exists(f"{place}/sub"), False)
        # What cannot be made now may be a moment later.
        daemon.user.shell("mkdir sub", cwd=place)
        wait_for(lambda: len(os.listdir(f"{place}/sub")) == 70, 12, "and in place of the others")
        job.end()
    wait_for(lambda: os.listdir(place) == ["sub"] and not os.listdir(f"{place}/sub"), 10,
             f"only the folder in the project: {os.listdir(place)}")


@case("system")
def b13_what_stands_for_two_users_stands_until_the_last(daemon):
    """Whose it is goes first: the other's job, which tries all the time, cannot make it in that moment."""
    place = "/home/b13"
    os.makedirs(place)
    os.chmod(place, 0o777)
    path = f"{place}/.env"
    options = ("--rw", place, "--deny", path)
    attempt = ("i=0; while [ ! -e stop ] && [ $i -lt 300000 ]; do "
               "(echo evil >.env) 2>/dev/null; i=$((i+1)); done")
    for _ in range(4):
        with open(path, "w", encoding="utf-8") as file:
            file.write("x")
        with inside(daemon, *options, cwd=place, user=lib.User("fsbxa")) as one, \
                inside(daemon, *options, cwd=place, user=lib.User("fsbxb")) as two:
            os.remove(path)
            stands(path)
            time.sleep(0.3)
            if os.stat(path).st_uid != one.user.uid:
                one, two = two, one
            ino = os.stat(path).st_ino
            two.tell(attempt)
            time.sleep(0.2)
            one.end()
            time.sleep(0.7)
            stands(path)
            equal(os.stat(path).st_ino, ino, "the same as before")
            with open(f"{place}/stop", "w", encoding="utf-8"):
                pass
            two.end()
        os.remove(f"{place}/stop")
        wait_for(lambda: not os.listdir(place), 10, "nothing after the last")
    os.rmdir(place)


@case(*MODES)
def r26_the_user_may_put_what_he_likes_there(daemon):
    """By a rename, by writing into it, by removing it first as git does: it works, stays, and is masked."""
    place = project(daemon, "putback")
    path = daemon.user.write(f"{place}/secret", "LEAK 0\n")
    ways = ["echo LEAK 1 >t; mv t secret", "echo LEAK 2 >secret",
            "rm -f secret; (set -C; echo LEAK 3 >secret)", "rm -f secret; mkdir secret; echo LEAK 4 >secret/f"]
    for number, way in enumerate(ways):
        with inside(daemon, "--deny", path, cwd=place) as job:
            os.remove(path)
            stands(path)
            daemon.user.shell(way, cwd=place)

            def closed(job=job):
                out, _ = job.run("cat secret secret/f 2>&1 | grep -c LEAK")
                return out.strip() == "0"
            wait_for(closed, 5, f"closed after {way}")
            job.end()
        wait_for(lambda: not daemon.jobs(), 10, "its end")
        time.sleep(0.2)
        name = f"{path}/f" if os.path.isdir(path) else path
        with open(name, encoding="utf-8") as file:
            equal(file.read(), f"LEAK {number + 1}\n", way)


@case(*MODES)
def r26_what_is_being_written_outlives_the_job(daemon):
    """Its user has it open, and wrote nothing yet, when the job ends."""
    place = project(daemon, "slowly")
    path = daemon.user.write(f"{place}/secret", "old\n")
    with inside(daemon, "--deny", path, cwd=place) as job:
        os.remove(path)
        stands(path)
        writer = daemon.user.popen(["/bin/sh", "-c", "exec >secret; echo open >&2; read x; echo new"],
                                   cwd=place, stdin=-1, stderr=-1)
        equal(writer.stderr.readline(), b"open\n")
        job.end()
    wait_for(lambda: not daemon.jobs(), 10, "its end")
    time.sleep(0.5)
    writer.communicate(b"\n", 10)
    with open(path, encoding="utf-8") as file:
        equal(file.read(), "new\n")


@case(*MODES)
def nothing_stands_in_where_that_is_not_wanted(daemon):
    """For one that is only watched, one in a readOnly tree, and a directory, whose place a file is none for."""
    place = project(daemon, "letgo")
    daemon.user.shell("mkdir ro keys; echo x >watched; echo x >ro/f; echo x >keys/f", cwd=place)
    with inside(daemon, "--absent", "watch", "--deny", f"{place}/watched", "--ro", f"{place}/ro",
                "--deny", f"{place}/ro/f", "--deny", f"{place}/keys", cwd=place) as job:
        daemon.user.shell("rm -r watched ro/f keys", cwd=place)
        time.sleep(0.6)
        equal(sorted(os.listdir(place)), ["ro"])
        equal(os.listdir(f"{place}/ro"), [])
        job.end()


@case(*MODES)
def b2_nothing_stays_after_any_death(daemon):
    place = project(daemon, "deaths")
    path = f"{place}/secret"
    for victim in ("init", "client", "fsboxd"):
        daemon.user.write(path, "x")
        with inside(daemon, "--deny", path, cwd=place) as job:
            os.remove(path)
            stands(path)
            if victim == "client":
                job.process.kill()
            elif victim == "init":
                for pid in lib.processes("fsbox-init"):
                    os.kill(pid, signal.SIGKILL)
            else:
                restart(daemon, signal.SIGKILL)
                refused(job, "secret")
                # Who takes over knows it too.
                os.remove(path)
                stands(path)
                refused(job, "secret")
                job.end()
            wait_for(lambda: gone(path), 15, f"nothing after the death of {victim}")
        job.process.wait(20)


@case()
def absent_deny_of_the_configuration_counts():
    with own_daemon("user", "absent-deny = watch\n") as daemon:
        place = project(daemon, "configured")
        path = daemon.user.write(f"{place}/secret", "x")
        with inside(daemon, "--deny", path, cwd=place) as job:
            os.remove(path)
            time.sleep(0.5)
            equal(os.listdir(place), [])
            job.end()


lib.main()
