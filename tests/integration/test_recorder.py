# SPDX-License-Identifier: Apache-2.0
"""fsbox-recorder alone: what it writes is JSON that others can read, whatever came in."""

import json
import os
import re
import socket
import subprocess
import tempfile

import lib
from lib import case, equal

RECORDER = os.path.join(lib.BUILD, "daemon/fsbox-recorder")
FEED = os.path.join(lib.BUILD, "tests/integration/event_feed")


def record(folder, *feed, arguments=(), timeout=30, journal=False):
    """Feed the recorder; its exit status, stderr, and the parsed lines."""
    path = os.path.join(folder, "events.jsonl")
    with subprocess.Popen([FEED, *feed], stdout=subprocess.PIPE) as feeder:
        result = subprocess.run(
            ["/bin/sh", "-c", 'exec 3<&0 </dev/null; exec "$0" "$@"', RECORDER, "--events", path,
             *([] if journal else ["--no-journal"]), *arguments],
            stdin=feeder.stdout, stderr=subprocess.PIPE, env={}, timeout=timeout, check=False)
        feeder.stdout.close()
    lines = []
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            lines = [json.loads(line) for line in file]
    return result.returncode, result.stderr.decode(), lines


@case()
def each_kind_of_event_is_a_line_of_json():
    with tempfile.TemporaryDirectory() as folder:
        status, errors, lines = record(folder, "each")
    equal((status, errors), (0, ""))
    equal([line["event"] for line in lines],
          ["daemon.started", "daemon.stopped", "execution.started", "execution.finished",
           "execution.failed", "peer.refused", "role.died", "placeholder.left", "helper.stuck",
           "egress.allowed", "egress.denied", "egress.failed", "egress.closed", "mask.repaired",
           "mask.lost", "name.planted", "guard.down", "ledger.replayed", "mount.held",
           "policy.suppressed", "grant.created", "grant.used", "grant.refused", "grant.revoked"])
    for line in lines:
        if not re.fullmatch(r"2023-11-14T22:13:20\.123Z", line["time"]):
            raise AssertionError(line)
        equal(line["uid"], 61501)
    finished = lines[3]
    equal(finished["exited"]["code"], 7)
    equal(finished["argsHash"], "11" * 32)
    equal(lines[4]["error"], "setup-failed")
    equal(lines[5]["detail"], 'why "6"\n')


@case()
def foreign_bytes_stay_one_line():
    with tempfile.TemporaryDirectory() as folder:
        status, _, lines = record(folder, "1", b"a\xff\n\x1b[2J\\")
    equal(status, 0)
    equal([line["command"] for line in lines], ["a\\xff\n\x1b[2J\\x5c"])


@case()
def ten_thousand_events_are_all_there_in_order():
    with tempfile.TemporaryDirectory() as folder:
        status, _, lines = record(folder, "10000")
    equal(status, 0)
    equal([line["job"] for line in lines], list(range(1, 10001)))


@case()
def rotation_loses_nothing_at_the_seam():
    with tempfile.TemporaryDirectory() as folder:
        status, _, lines = record(folder, "400", arguments=["--max-bytes", "100000"])
        sizes = {leaf: os.path.getsize(os.path.join(folder, leaf)) for leaf in os.listdir(folder)}
        with open(os.path.join(folder, "events.jsonl.1"), encoding="utf-8") as file:
            older = [json.loads(line)["job"] for line in file]
    equal(status, 0)
    equal(sorted(sizes), ["events.jsonl", "events.jsonl.1"])
    if max(sizes.values()) > 100000:
        raise AssertionError(sizes)
    jobs = older + [line["job"] for line in lines]
    equal(jobs, list(range(jobs[0], 401)))


@case(root=True)
def journald_hears_of_each_event():
    """A socket of ours where journald's would be."""
    os.makedirs("/run/systemd/journal", exist_ok=True)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as journal, \
            tempfile.TemporaryDirectory() as folder:
        journal.bind("/run/systemd/journal/socket")
        journal.settimeout(10)
        status, errors, lines = record(folder, "2", b"ma\nke", journal=True)
        heard = [journal.recv(65536) for _ in lines]
    os.remove("/run/systemd/journal/socket")
    equal((status, errors, len(lines)), (0, "", 2))
    for message, line in zip(heard, lines):
        for field in (b"SYSLOG_IDENTIFIER=fsbox\n", b"FSBOX_EVENT=execution.started\n",
                      b"FSBOX_JOB=%d\n" % line["job"], b"FSBOX_UID=61501\n", b"PRIORITY=6\n"):
            if field not in message:
                raise AssertionError(f"{field} is not in {message}")
        # The line as in the file, and nothing that a foreign newline could have added.
        text = message[message.index(b"MESSAGE=") + 8:].split(b"\n")[0]
        equal(json.loads(text), line)


@case()
def bad_options_are_said():
    for arguments in ([], ["--events", "relative"], ["--events", "/nonexistent-fsbox/x"],
                      ["--events", "/tmp/x", "--max-bytes", "-1"], ["--events", "/tmp/x", "more"]):
        result = subprocess.run([RECORDER, *arguments], stdin=subprocess.DEVNULL,
                                stderr=subprocess.PIPE, timeout=10, check=False)
        equal(result.returncode, 1, f"{arguments}")
        lib.contains(result.stderr, "fsbox-recorder: ")


lib.main()
