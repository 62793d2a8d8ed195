# SPDX-License-Identifier: Apache-2.0
"""Placeholders and the ledger: what is made on the host goes again, whoever dies; nothing else does."""

import contextlib
import ctypes
import errno
import hashlib
import json
import os
import random
import signal
import struct
import subprocess
import time

import lib
from lib import case, contains, equal, project, status_is, succeeds, wait_for

MODES = ("system", "user", "root")
HEADER = "fsbox ledger 1\n"
STATE = {"system": "/var/lib/fsbox", "root": "/var/lib/fsbox-root"}


def state_dir(daemon):
    return STATE.get(daemon.mode) or f"{daemon.user.home}/.local/state/fsbox"


def ledger_lines(daemon):
    with open(f"{state_dir(daemon)}/ledger", encoding="ascii") as file:
        return file.read().splitlines()[1:]


def write_ledger(daemon, data):
    path = f"{state_dir(daemon)}/ledger"
    with open(path, "wb") as file:  # the same file: owner and mode stay
        file.write(data if isinstance(data, bytes) else data.encode())


def events(daemon):
    directory = "/var/log/fsbox" if daemon.mode == "system" else state_dir(daemon)
    return lib.records(f"{directory}/events.jsonl")


def begin(daemon, place, *options, script="echo up; exec sleep 600", user=None):
    """A job that runs, its client, and pid 1."""
    known = {job["job"] for job in daemon.jobs()}
    client = (user or daemon.user).popen(
        daemon.command("spawn", *options, "--", "/bin/sh", "-c", script), cwd=place, stdin=-1,
        stdout=-1)
    said = client.stdout.readline()
    if said[:-1].isdigit():  # of one that is detached, perhaps first
        said = client.stdout.readline()
    if said != b"up\n":
        raise AssertionError(f"the job did not begin: {said!r}; log: {daemon.logged()}")
    pids = [job["pid"] for job in daemon.jobs() if job["job"] not in known]
    return client, pids[0] if pids else None


def end(client):
    client.kill()
    client.wait()
    client.stdout.close()
    client.stdin.close()


def kill_daemon(daemon):
    daemon.process.kill()
    daemon.process.wait()


def kill_job(pid):
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    wait_for(lambda: pid not in lib.processes(), 10, "the end of pid 1")


def restart(daemon, **options):
    daemon.start(config="root-peers = serve\n" if daemon.mode == "root" else None, **options)


def gone(place, wanted=()):
    wait_for(lambda: sorted(os.listdir(place)) == sorted(wanted), 10,
             f"{place} to hold {list(wanted)}, not {os.listdir(place)}")


# ---- what dies -------------------------------------------------------------------------------


@case(*MODES)
def r26_b2_fsboxd_and_the_job_are_killed(daemon):
    place = project(daemon, "killed")
    daemon.user.shell("mkdir mine; echo keep >mine/f", cwd=place)
    client, pid = begin(daemon, place, "--deny", f"{place}/.agents", "--deny",
                        f"{place}/a/b/c", "--deny", f"{place}/mine/.x/y")
    equal(sorted(os.listdir(place)), [".agents", "a", "mine"], "while it runs")
    kill_daemon(daemon)
    kill_job(pid)
    end(client)
    equal(sorted(os.listdir(place)), [".agents", "a", "mine"], "nobody is left to remove them")
    restart(daemon)
    gone(place, ["mine"])
    equal(os.listdir(f"{place}/mine"), ["f"])
    said = [event for event in events(daemon) if event["event"] == "ledger.replayed"]
    contains(said[-1]["detail"], "6 placeholders")


@case(*MODES)
def r26_fsboxd_is_killed_while_placeholders_are_made(daemon):
    place = project(daemon, "midway")
    dice = random.Random(26)
    daemon.user.shell("mkdir mine empty; mkdir -m 0700 closed; echo keep >mine/f", cwd=place)
    for number in range(12):
        deny = [word for i in range(8) for word in ("--deny", f"{place}/n{i}/{i % 3}/x")]
        client = daemon.user.popen(daemon.command("spawn", *deny, "--", "sleep", "600"),
                                   cwd=place, stdout=-3, stderr=-3)
        time.sleep(dice.random() * 0.06)
        kill_daemon(daemon)
        client.kill()
        client.wait()
        for pid, name in lib.processes().items():
            if name in ("fsboxd", "sleep", "fsbox-init", "bwrap") and pid != os.getpid():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        wait_for(lambda: not lib.processes("sleep"), 10, f"round {number}: the job's end")
        restart(daemon)
        gone(place, ["mine", "empty", "closed"])
    equal(os.listdir(f"{place}/mine"), ["f"])


@case(*MODES)
def r26_what_is_the_users_stays_after_a_kill(daemon):
    place = project(daemon, "theirs")
    names = ["filled", "replaced", "file", "link", "moved"]
    deny = [word for name in names for word in ("--deny", f"{place}/{name}")]
    client, pid = begin(daemon, place, *deny)
    equal(sorted(os.listdir(place)), sorted(names))
    kill_daemon(daemon)
    daemon.user.shell("echo mine >filled/f; rmdir replaced file link; sleep 0.1; "
                      "mkdir -m 0700 replaced; echo mine >file; ln -s filled link; mv moved other",
                      cwd=place)
    kill_job(pid)
    end(client)
    restart(daemon)
    time.sleep(0.5)
    gone(place, ["filled", "replaced", "file", "link", "other"])
    equal(daemon.user.shell("cat filled/f file", cwd=place), "mine\nmine\n")
    left = [event["detail"] for event in events(daemon) if event["event"] == "placeholder.left"]
    for name in ("filled", "replaced", "file", "link"):
        if f"{place}/{name}" not in left:
            raise AssertionError(f"{name} is not among {left}")


@case(*MODES)
def r26_b49_a_job_that_runs_on_keeps_its_placeholders(daemon):
    place = project(daemon, "kept")
    client, pid = begin(daemon, place, "--deny", f"{place}/.agents", "--deny", f"{place}/a/b",
                        "--detach", script="echo up; read x; sleep 600")
    end(client)
    for kill in (kill_daemon, lambda which: which.stop()):
        kill(daemon)
        restart(daemon)
        equal([job["pid"] for job in daemon.jobs()], [pid])
        time.sleep(0.3)
        equal(sorted(os.listdir(place)), [".agents", "a"])
        # Others share them as before.
        succeeds(daemon.sh("! mkdir .agents/x && ! mkdir -p a/b/c", "--deny", f"{place}/.agents",
                           "--deny", f"{place}/a/b", cwd=place))
        equal(sorted(os.listdir(place)), [".agents", "a"])
    kill_job(pid)
    gone(place)


# ---- a ledger that somebody wrote -------------------------------------------------------------


def resummed(text):
    return f"{text} {hashlib.sha256(text.encode()).hexdigest()[:16]}\n"


@case(*MODES)
def r26_a_tampered_ledger_harms_nothing(daemon):
    place = project(daemon, "tampered")
    daemon.user.shell("mkdir -m 0700 closed; mkdir open full; echo keep >full/f; echo keep >file",
                      cwd=place)
    client, pid = begin(daemon, place, "--deny", f"{place}/.agents")
    kill_daemon(daemon)
    kill_job(pid)
    end(client)
    good = ledger_lines(daemon)
    made, intent = ([line.rsplit(" ", 1)[0] for line in good
                     if line.startswith(act) and f" {place}/" in line] for act in ("made", "intent"))
    equal((len(made), len(intent)), (1, 1))
    lies = []
    for target in ("closed", "open", "full", "file", "full/f", "no/such"):
        for line in made + intent:
            lies.append(resummed(line.replace("/.agents", f"/{target}")))
    # A user that is none of ours; nonsense; a sum that is wrong.
    lies += [resummed(made[0].replace(f" {daemon.user.uid} ", " 4242 ", 1)), "nonsense\n",
             good[0][:-1] + "\n", resummed(made[0] + " x")]
    kept = HEADER + "".join(lies) + "\n".join(good) + "\n" + good[0][:40]
    before = len(events(daemon))
    write_ledger(daemon, kept)
    restart(daemon)
    gone(place, ["closed", "open", "full", "file"])
    equal(daemon.user.shell("cat full/f file", cwd=place), "keep\nkeep\n")
    said = [event for event in events(daemon)[before:] if event["event"] == "ledger.replayed"]
    contains(said[0]["detail"], "damaged lines")
    lib.lacks(said[0]["detail"], " 0 damaged")
    with open(f"{state_dir(daemon)}/ledger.damaged", encoding="ascii") as file:
        equal(file.read(), kept)
    succeeds(daemon.sh("true", "--deny", f"{place}/.agents", cwd=place))
    gone(place, ["closed", "open", "full", "file"])


@case(*MODES)
def r26_garbage_in_place_of_the_ledger(daemon):
    place = project(daemon, "garbage")
    client, pid = begin(daemon, place, "--deny", f"{place}/.agents")
    kill_daemon(daemon)
    kill_job(pid)
    end(client)
    path = f"{state_dir(daemon)}/ledger"
    with open(path, "rb") as file:
        good = file.read()
    dice = random.Random(4)
    for garbage in (b"", b"\0" * 5000, b"\n" * 5000, bytes(dice.randrange(256) for _ in range(9000)),
                    good[:len(good) // 2], b"x" * 100000):
        write_ledger(daemon, garbage)
        restart(daemon)
        succeeds(daemon.sh("true", "--deny", f"{place}/new/x", cwd=place))
        gone(place, [".agents"])
        kill_daemon(daemon)
    # As it was: nothing was lost by all that.
    write_ledger(daemon, good)
    restart(daemon)
    gone(place)


# ---- no room ------------------------------------------------------------------------------------


def unwritable(daemon, place, what):
    """A job that needs a placeholder is refused, cleanly; one that needs none runs."""
    result = daemon.sh("true", "--deny", f"{place}/a/b", "--deny", f"{place}/c", cwd=place)
    contains(status_is(result, 125).stderr, "ledger-failed", what)
    gone(place)
    succeeds(daemon.sh("true", cwd=place))
    wait_for(lambda: not daemon.jobs(), 10, f"{what}: the end of jobs")


@case(*MODES)
def r26_no_room_for_the_ledger(daemon):
    if not lib.IS_ROOT:
        raise lib.Skip("needs root, to mount")
    place = project(daemon, "noroom")
    daemon.stop()
    small = f"{os.environ['FSBOX_TEST_TOP']}/small-{daemon.mode}"
    os.mkdir(small)
    owner = daemon.owner()
    lib.mount("-t", "tmpfs", "-o", f"size=64k,mode=0700,uid={owner.uid},gid={owner.gid}", "tmpfs",
              small)
    try:
        restart_in(daemon, small)
        with open(f"{small}/filler", "wb", buffering=0) as file:
            with contextlib.suppress(OSError):
                while True:
                    file.write(b"x" * 4096)
        # What is left in the last page of the file is room as well.
        for number in range(20):
            result = daemon.sh("true", "--deny", f"{place}/{number}", cwd=place)
            if result.returncode != 0:
                break
        unwritable(daemon, place, "ENOSPC")
        os.remove(f"{small}/filler")
        succeeds(daemon.sh("true", "--deny", f"{place}/a/b", cwd=place))
        gone(place)

        # Nobody can make it so while it is open to be written.
        daemon.stop()
        wait_for(lambda: subprocess.run(["mount", "-o", "remount,ro", small], check=False,
                                        stderr=subprocess.DEVNULL).returncode == 0, 10,
                 "the recorder to have closed its file")
        restart_in(daemon, small)
        unwritable(daemon, place, "EROFS")
        lib.mount("-o", "remount,rw", small)
        succeeds(daemon.sh("true", "--deny", f"{place}/a/b", cwd=place))
        gone(place)
    finally:
        daemon.stop()
        lib.sh("umount", "-l", small)
    restart(daemon)


def restart_in(daemon, state):
    daemon.start("--state-dir", state, "--log-dir", state_dir(daemon),
                 config="root-peers = serve\n" if daemon.mode == "root" else None)


def failing(number, error):
    """For preexec_fn: system call NUMBER fails with ERROR, here and in all that comes of it."""
    load, jump, give = 0x20, 0x15, 0x06  # BPF_LD|W|ABS, JMP|JEQ|K, RET|K
    code = b"".join(struct.pack("HBBI", *one) for one in (
        (load, 0, 0, 0), (jump, 0, 1, number), (give, 0, 0, 0x00050000 | error),
        (give, 0, 0, 0x7fff0000)))

    def install():
        libc = ctypes.CDLL(None, use_errno=True)
        program = ctypes.create_string_buffer(code)
        header = struct.pack("HxxxxxxQ", 4, ctypes.addressof(program))
        if not lib.IS_ROOT or os.geteuid() != 0:
            libc.prctl(38, 1, 0, 0, 0)  # PR_SET_NO_NEW_PRIVS
        if libc.prctl(22, 2, header, 0, 0) != 0:  # PR_SET_SECCOMP, a filter
            os._exit(99)

    return install


FDATASYNC, MKDIRAT = 75, 258  # of x86-64


@case(*MODES)
def r26_errors_while_journaling_and_creating(daemon):
    if os.uname().machine != "x86_64":
        raise lib.Skip("the numbers are those of x86-64")
    place = project(daemon, "errors")
    for call, what in ((FDATASYNC, "journaling"), (MKDIRAT, "creating")):
        for error in (errno.ENOSPC, errno.EROFS, errno.EMFILE, errno.ENFILE, errno.EDQUOT):
            daemon.stop()
            restart(daemon, preexec_fn=failing(call, error))
            result = daemon.sh("true", "--deny", f"{place}/a/b", cwd=place)
            said = lib.text(status_is(result, 125).stderr)
            contains(said, "ledger-failed", f"{what}: {errno.errorcode[error]}")
            gone(place)
            wait_for(lambda: not daemon.jobs(), 10, "the end of jobs")
    daemon.stop()
    restart(daemon)
    succeeds(daemon.sh("true", "--deny", f"{place}/a/b", cwd=place))
    gone(place)


# ---- many at once ---------------------------------------------------------------------------------


@case(*MODES)
def r26_b13_one_ends_while_another_starts(daemon):
    place = project(daemon, "overlap")
    deny = ["--deny", f"{place}/.agents", "--deny", f"{place}/a/b"]
    # It must not be able to make what is denied, at any time.
    script = ("mkdir .agents 2>/dev/null; for i in 1 2 3; do echo x >.agents/f && exit 9;"
              " mkdir -p a/b/c && exit 9; sleep 0.0$1; done 2>/dev/null; exit 0")
    running = []
    dice = random.Random(13)
    for number in range(60):
        running.append(daemon.user.popen(
            daemon.command("spawn", *deny, "--", "/bin/sh", "-c", script, "sh",
                           str(dice.randrange(10))), cwd=place, stdout=-3, stderr=-1))
        if len(running) == 6 or number == 59:
            for client in running if number == 59 else [running.pop(0)]:
                _, said = client.communicate(timeout=60)
                equal((client.returncode, lib.text(said)), (0, ""))
    gone(place)
    wait_for(lambda: not daemon.jobs(), 10, "the end of jobs")


@case("system")
def r26_b13_two_users_share_a_tree(daemon):
    other = lib.User("fsbxb")
    place = "/home/shared-tree"
    os.mkdir(place)
    os.chmod(place, 0o777)
    deny = ["--deny", f"{place}/.agents", "--rw", place]
    try:
        for first, second in ((daemon.user, other), (other, daemon.user)):
            client, _ = begin(daemon, place, *deny, user=first)
            equal(os.stat(f"{place}/.agents").st_uid, first.uid)
            script = "echo up; read x; mkdir -p .agents/x || rmdir .agents || echo held"
            late = second.popen(daemon.command("spawn", *deny, "--", "/bin/sh", "-c", script),
                                cwd=place, stdin=-1, stdout=-1, stderr=-3)
            equal(late.stdout.readline(), b"up\n")
            end(client)
            wait_for(lambda: not daemon.json("ps", user=first)["jobs"], 10, "the first one's end")
            equal(os.listdir(place), [".agents"], "the second stands on it")
            out, _ = late.communicate(b"\n", 20)
            equal(out, b"held\n")
            gone(place)
    finally:
        os.rmdir(place)


@case(*MODES)
def r26_what_the_host_does_meanwhile(daemon):
    place = project(daemon, "host")
    daemon.user.shell("mkdir p", cwd=place)
    client, _ = begin(daemon, place, "--deny", f"{place}/p/.a", "--deny", f"{place}/p/b/c",
                      "--deny", f"{place}/.d")
    daemon.user.shell("echo mine >p/b/f; echo mine >.d/f; rmdir p/.a; echo mine >p/.a", cwd=place)
    client.stdin.close()
    end_quietly(client)
    wait_for(lambda: not daemon.jobs(), 10, "the end")
    equal(daemon.user.shell("cat p/b/f .d/f p/.a; ls -A p p/b", cwd=place),
          "mine\nmine\nmine\np:\n.a\nb\n\np/b:\nf\n")


@case(*MODES)
def r26_the_host_renames_what_is_above(daemon):
    place = project(daemon, "renamed")
    daemon.user.shell("mkdir -p p/q", cwd=place)
    client, _ = begin(daemon, place, "--deny", f"{place}/p/q/.a", "--deny", f"{place}/p/x/y")
    daemon.user.shell("mv p moved; mkdir -p p/q; mkdir -m 0700 p/q/.a", cwd=place)
    end(client)
    wait_for(lambda: not daemon.jobs(), 10, "the end")
    equal(daemon.user.shell("find . | sort", cwd=place),
          ".\n./moved\n./moved/q\n./p\n./p/q\n./p/q/.a\n")


def end_quietly(client):
    client.kill()
    client.wait()
    client.stdout.close()


# ---- doctor -------------------------------------------------------------------------------------------


def doctor(daemon, *options):
    result = daemon.ctl("--json", "doctor", *options)
    return [check for check in json.loads(result.stdout)["checks"]
            if check["name"] == "placeholders"][0]


@case(*MODES)
def r26_doctor_shows_and_repairs(daemon):
    if not lib.IS_ROOT:
        raise lib.Skip("needs root, to mount")
    place = project(daemon, "doctor")
    wait_for(lambda: doctor(daemon)["detail"] == "0 on the host", 15, "those of other cases to go")
    client, pid = begin(daemon, place, "--deny", f"{place}/m/a")
    contains(doctor(daemon)["detail"], "2 on the host")
    end(client)
    wait_for(lambda: doctor(daemon)["detail"] == "0 on the host", 15, "the end")

    # The file system that it is on goes away while the job runs.
    os.mkdir(f"{place}/m")
    lib.mount("-t", "tmpfs", "-o", f"mode=0700,uid={daemon.user.uid}", "tmpfs", f"{place}/m")
    hidden = f"{os.environ['FSBOX_TEST_TOP']}/hidden-{daemon.mode}"
    os.mkdir(hidden)
    client, pid = begin(daemon, place, "--deny", f"{place}/m/a")
    lib.mount("--bind", f"{place}/m", hidden)
    lib.sh("umount", "-l", f"{place}/m")
    end(client)
    kill_job(pid)
    try:
        wait_for(lambda: doctor(daemon)["finding"] == "warn", 10, "a finding")
        contains(doctor(daemon)["detail"], f"1 left behind: {place}/m/a")
        equal(os.listdir(hidden), ["a"])
        other = lib.User("fsbxb")
        if daemon.mode == "system":
            said = json.loads(daemon.ctl("--json", "doctor", user=other).stdout)["checks"]
            lib.lacks(json.dumps(said), place, "another user's")
            status_is(daemon.ctl("doctor", "--all", user=other), 1)
            said = daemon.ctl("--json", "doctor", "--all", user=lib.User("fsbxadm")).stdout
            contains(said, f"{place}/m/a")
        doctor(daemon, "--repair")
        contains(doctor(daemon)["detail"], "1 left behind")
        lib.mount("--bind", hidden, f"{place}/m")
        equal(doctor(daemon, "--repair"), {"name": "placeholders", "finding": "ok",
                                           "detail": "0 on the host"})
        equal(os.listdir(hidden), [])
    finally:
        lib.sh("umount", "-l", f"{place}/m")
        lib.sh("umount", "-l", hidden)


@case(*MODES)
def r26_what_was_not_mounted_goes_when_it_is(daemon):
    if not lib.IS_ROOT:
        raise lib.Skip("needs root, to mount")
    place = project(daemon, "unmounted")
    os.mkdir(f"{place}/m")
    hidden = f"{os.environ['FSBOX_TEST_TOP']}/away-{daemon.mode}"
    os.mkdir(hidden)
    lib.mount("-t", "tmpfs", "-o", f"mode=0700,uid={daemon.user.uid}", "tmpfs", f"{place}/m")
    client, pid = begin(daemon, place, "--deny", f"{place}/m/a")
    lib.mount("--bind", f"{place}/m", hidden)
    lib.sh("umount", "-l", f"{place}/m")
    kill_daemon(daemon)
    end(client)
    kill_job(pid)
    try:
        restart(daemon)
        wait_for(lambda: doctor(daemon)["finding"] == "warn", 10, "a finding")
        lib.mount("--bind", hidden, f"{place}/m")
        gone(hidden)
    finally:
        lib.sh("umount", "-l", f"{place}/m")
        lib.sh("umount", "-l", hidden)


# ---- modes ------------------------------------------------------------------------------------------


@case(*MODES)
def absent_modes_of_a_profile(daemon):
    place = project(daemon, "modes")
    profile = daemon.user.write(f"{daemon.user.home}/modes.json", json.dumps({
        "extends": "generic",
        "paths": {"deny": [{"path": f"{place}/made", "absent": "placeholder"},
                           {"path": f"{place}/watched", "absent": "watch"},
                           {"path": f"{place}/reported", "absent": "report"},
                           {"path": f"{place}/ignored", "absent": "ignore"}]}}))
    client, _ = begin(daemon, place, "--profile", profile)
    equal(os.listdir(place), ["made"])
    end(client)
    gone(place)
    client, _ = begin(daemon, place, "--deny", f"{place}/.agents", "--absent", "watch")
    equal(os.listdir(place), [])
    end(client)
    plan = daemon.json("spawn", "--profile", profile, "--dry-run", "--", "true", cwd=place)
    said = json.dumps(plan)
    contains(said, f"{place}/reported")


@case(*MODES)
def absent_deny_of_the_configuration(daemon):
    place = project(daemon, "default")
    more = "root-peers = serve\n" if daemon.mode == "root" else ""
    for mode, there in (("watch", []), ("report", []), ("ignore", []), ("placeholder", [".agents"])):
        daemon.stop()
        daemon.start(config=f"{more}absent-deny = {mode}\n")
        client, _ = begin(daemon, place, "--deny", f"{place}/.agents")
        equal(os.listdir(place), there, mode)
        end(client)
        gone(place)
    daemon.stop()
    restart(daemon)
    if daemon.mode == "user":
        os.remove(f"{daemon.user.home}/.config/fsbox/fsboxd.conf")


@case(*MODES)
def b1_no_placeholder_for_protected_names(daemon):
    place = project(daemon, "names")
    daemon.user.shell("git init -q r; mkdir plain", cwd=place)
    before = daemon.user.shell("find . | sort", cwd=place)
    for where in ("r", "plain"):
        client, _ = begin(daemon, f"{place}/{where}", "--rw", f"{place}/r")
        equal(daemon.user.shell("find . | sort", cwd=place), before, f"while one runs in {where}")
        end(client)
    equal(daemon.user.shell("find . | sort", cwd=place), before)
    lib.lacks("".join(ledger_lines(daemon)), f"{place}/r/")


if __name__ == "__main__":
    lib.main()
