# SPDX-License-Identifier: Apache-2.0
"""In which room a command ran, what it was told of its environment, and that all of it is on record."""

import contextlib
import json
import os
import signal
import time

import lib
from lib import User, case, contains, equal, lacks, status_is, succeeds, text, wait_for

STATE = {}


def daemon(config="max-net = host\nadmin-group = fsbox-admin\n", **options):
    """One for each configuration in turn."""
    key = (config, str(options))
    if STATE.get("key") != key:
        stop()
        STATE["daemon"] = lib.make_daemon("system").start(config=config, **options)
        STATE["key"] = key
        STATE["place"] = lib.project(STATE["daemon"], "posture")
        os.chown(STATE["place"], STATE["daemon"].user.uid, STATE["daemon"].user.gid)
    return STATE["daemon"]


def stop():
    if STATE.pop("key", None):
        STATE.pop("daemon").stop()


def spawn(*options, command=("true",), **more):
    return daemon().spawn(*options, "--", *command, cwd=STATE["place"], **more)


def events(*arguments, user=None):
    result = STATE["daemon"].ctl("events", "--json", *arguments, user=user)
    return [json.loads(line) for line in succeeds(result).splitlines()]


def last(kind, **more):
    return [line for line in events(**more) if line["event"] == kind][-1]


@case(root=True)
def every_start_says_in_which_room():
    profile = daemon().user.write(f"{STATE['daemon'].user.home}/open.json",
                                  '{"extends": "generic", "net": {"mode": "host"}}')
    os.makedirs("/etc/fsbox/profiles", exist_ok=True)
    with open("/etc/fsbox/profiles/open.json", "w", encoding="ascii") as file:
        file.write('{"extends": "generic", "net": {"mode": "host"}}')
    for options, room in (([], "egress-denied"), (["--net", "none"], "egress-denied"),
                          (["--egress-only"], "egress-denied"), (["--net", "host"], "opted-out"),
                          (["--profile", "open"], "egress-open"),
                          (["--profile", profile], "opted-out")):
        result = spawn(*options)
        succeeds(result)
        for kind in ("execution.started", "execution.finished"):
            wait_for(lambda kind=kind, room=room: last(kind)["room"] == room, 5,
                     f"{kind} {options} {room}")
        # Loud where there is no terminal, too; and only then.
        equal("opted-out" in text(result.stderr), room == "opted-out", f"{options}")
    lacks(spawn("--net", "host", "--label", "quiet").stdout, "opted-out")


@case(root=True)
def hooks_ask_by_a_dry_run():
    for options, status in (([], 0), (["--egress-only"], 0), (["--net", "host"], 1),
                            (["--profile", "nonexistent"], 125)):
        status_is(spawn("--dry-run", *options), status)
    daemon("max-net = none\n")
    result = STATE["daemon"].spawn("--dry-run", "--net", "host", "--", "true", cwd=STATE["place"])
    status_is(result, 125, "max-net")


@case(root=True)
def switches_refuse_everybody():
    forced = daemon(env={"FSBOX_FORCE_UNAVAILABLE": "1"})
    for options in ([], ["--net", "host"], ["--egress-only"]):
        status_is(forced.spawn(*options, "--", "true", cwd=STATE["place"]), 125,
                  "FSBOX_FORCE_UNAVAILABLE")
    # A client's environment is nobody's: only the daemon's own counts.
    daemon()
    succeeds(spawn(env={"FSBOX_FORCE_UNAVAILABLE": "1", "FSBOX_SANDBOX_REQUIRED": "1"}))


@case(root=True)
def R15_the_environment_is_scrubbed_and_records_have_counts():
    secrets = {"VAULT_TOKEN": "s3cret", "AWS_SECRET_ACCESS_KEY": "s3cret", "APPROVAL_HOME": "/h",
               "PLAIN": "p"}
    inside = succeeds(spawn(command=("env",), env=secrets))
    lacks(inside, "s3cret")
    contains(inside, "APPROVAL_HOME=/h\n")
    contains(inside, "PLAIN=p\n")
    for line in ("HOME=", "PATH=", "TMPDIR=/tmp\n", "LANG="):
        contains(inside, line)
    started = last("execution.started")
    equal(started["withheld"], 2)
    lacks(json.dumps(started), "VAULT")
    inside = succeeds(spawn("--env-pass", "VAULT_TOKEN", command=("env",), env=secrets))
    contains(inside, "VAULT_TOKEN=s3cret\n")
    equal(last("execution.started")["withheld"], 1)
    # Whole families only, where programs are trusted with the rest.
    inside = succeeds(spawn("--egress-only", command=("env",), env=secrets))
    contains(inside, "AWS_SECRET_ACCESS_KEY=")
    lacks(inside, "VAULT_TOKEN")


@case(root=True)
def R30_events_are_filtered_by_user():
    other, admin = User("fsbxb"), User("fsbxadm")
    succeeds(spawn())
    succeeds(daemon().spawn("--", "true", user=other, cwd="/tmp"))
    for user in (daemon().user, other):
        equal({line.get("uid") for line in events(user=user)}, {user.uid}, user.name)
        status_is(daemon().ctl("events", "--all", user=user), 1, "administrators")
    seen = {line.get("uid") for line in events("--all", user=admin)}
    equal({daemon().user.uid, other.uid} <= seen, True, f"{seen}")
    started = last("execution.started")
    equal({line["job"] for line in events("--job", str(started["job"]))}, {started["job"]})


@case(root=True)
def R30_following_sees_what_comes_and_ends_with_the_reader():
    follower = daemon().user.popen(daemon().command("events", "-f", "--json"), stdout=-1)
    try:
        succeeds(spawn("--label", "followed"))
        for line in follower.stdout:
            if b"followed" in line and b"execution.finished" in line:
                break
    finally:
        follower.kill()
        follower.wait()
    succeeds(spawn())


def recorder():
    pids = list(lib.processes("fsbox-recorder"))
    equal(len(pids), 1, "recorders")
    return pids[0]


def required():
    return daemon("audit = required\n")


@case(root=True)
def R30_required_records_are_there_before_the_command_runs():
    fsboxd = required()
    log = "/var/log/fsbox/events.jsonl"
    with open(log, "rb") as file:
        before = len(file.read())
    # What the command can do first is after its record.
    succeeds(fsboxd.spawn("--label", "durable", "--", "true", cwd=STATE["place"]))
    with open(log, encoding="utf-8") as file:
        file.seek(before)
        lines = [json.loads(line) for line in file]
    kinds = [line["event"] for line in lines if line.get("label") == "durable"]
    equal(kinds[0], "execution.started")
    equal(kinds.count("execution.started"), 1)


@case(root=True)
def R30_a_stopped_recorder_starts_nothing():
    fsboxd = required()
    succeeds(fsboxd.spawn("--", "true", cwd=STATE["place"]))
    pid = recorder()
    os.kill(pid, signal.SIGSTOP)
    mark = os.path.join(STATE["place"], "ran")
    try:
        begun = time.monotonic()
        status_is(fsboxd.spawn("--", "touch", mark, cwd=STATE["place"]), 125, "audit-unavailable")
        equal(time.monotonic() - begun < 20, True, "time")
    finally:
        os.kill(pid, signal.SIGCONT)
    equal(os.path.exists(mark), False, "it ran")
    wait_for(lambda: fsboxd.spawn("--", "true", cwd=STATE["place"]).returncode == 0, 10)


@case(root=True)
def R30_a_killed_recorder_fails_who_waits_and_comes_back():
    fsboxd = required()
    pid = recorder()
    os.kill(pid, signal.SIGSTOP)
    waiting = fsboxd.user.popen(fsboxd.command("spawn", "--", "true"), cwd=STATE["place"],
                                stderr=-1)
    time.sleep(1)
    os.kill(pid, signal.SIGKILL)
    _, errors = waiting.communicate(timeout=20)
    equal(waiting.returncode, 125, text(errors))
    contains(errors, "audit-unavailable")
    wait_for(lambda: fsboxd.spawn("--", "true", cwd=STATE["place"]).returncode == 0, 20)


@case(root=True)
def R30_a_full_disk_starts_nothing():
    stop()
    os.makedirs("/run/small", exist_ok=True)
    lib.mount("-t", "tmpfs", "-o", "size=128k,mode=755", "tmpfs", "/run/small")
    fsboxd = lib.make_daemon("system")
    fsboxd.start("--log-dir", "/run/small/log", config="audit = required\n")
    place = lib.project(fsboxd, "full")
    try:
        succeeds(fsboxd.spawn("--", "true", cwd=place))
        filler = os.open("/run/small/filler", os.O_WRONLY | os.O_CREAT)
        with contextlib.suppress(OSError):
            while True:
                os.write(filler, b"x" * 512)
        os.close(filler)
        # What is left of the last page takes some records.
        wait_for(lambda: fsboxd.spawn("--", "true", cwd=place).returncode == 125, 30,
                 "a start that is refused")
        status_is(fsboxd.spawn("--", "true", cwd=place), 125, "audit-unavailable")
        os.remove("/run/small/filler")
        wait_for(lambda: fsboxd.spawn("--", "true", cwd=place).returncode == 0, 20)
    finally:
        fsboxd.stop()


lib.main()
