# SPDX-License-Identifier: Apache-2.0
"""Frames that are wrong, requests that are wrong, and roles that die: each has its answer, the
daemon stays up, and nothing is left over."""

import base64
import json
import os
import signal
import socket
import struct
import time

import lib
from lib import case, contains, equal, project, spawn_status, status_is, succeeds, wait_for
from wire import Closed, Connection, kind_of

MODES = ("system", "user")


def talk(daemon, function, *arguments):
    """Call FUNCTION(connection, ...) as the daemon's user, and see that the daemon still serves."""

    def in_child():
        with Connection(daemon.socket) as connection:
            return function(connection, *arguments)
    answer = lib.as_user(daemon.user, in_child)
    succeeds(daemon.ctl("status"))
    return answer


def closed_or(function):
    """The reply's kind, or "closed"."""
    try:
        return kind_of(function())
    except Closed:
        return "closed"


# ---- frames --------------------------------------------------------------------------------


@case(*MODES)
def oversized_and_empty_frames(daemon):
    def send(connection, size):
        connection.hello()

        def raw():
            connection.send_bytes(struct.pack(">I", size) + b"x")
            return connection.receive()
        kind = closed_or(raw)
        return [kind, connection.is_closed_within(5)]
    for size, kind in (((4 << 20) + 1, "frame-too-large"), (0xffffffff, "frame-too-large"),
                       (0, "bad-frame")):
        found = talk(daemon, send, size)
        if found[0] not in (kind, "closed") or not found[1]:
            raise AssertionError(f"a frame of {size} bytes: {found}")


@case(*MODES)
def a_frame_of_exactly_the_largest_size_is_read(daemon):
    def send(connection):
        connection.hello()
        body = b'{"jsonrpc":"2.0","id":9,"method":"detect","params":{}}'
        connection.send_frame(body + b" " * ((4 << 20) - len(body)))
        return connection.answer(9)
    if "result" not in talk(daemon, send):
        raise AssertionError("refused")


@case(*MODES)
def frames_in_single_bytes_and_glued_together(daemon):
    def send(connection):
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "hello",
                           "params": {"protocol": 1, "client": "slow"}}).encode()
        for byte in struct.pack(">I", len(body)) + body:
            connection.send_bytes(bytes([byte]))
        first = connection.answer(1)
        glued = b""
        for number in range(2, 12):
            body = json.dumps({"jsonrpc": "2.0", "id": number, "method": "detect",
                               "params": {}}).encode()
            glued += struct.pack(">I", len(body)) + body
        connection.send_bytes(glued)
        return [first] + [connection.receive() for _ in range(10)]
    answers = talk(daemon, send)
    equal(sorted(answer["id"] for answer in answers), list(range(1, 12)))
    if any("result" not in answer for answer in answers):
        raise AssertionError(answers)


@case(*MODES)
def truncated_frames_and_sudden_ends(daemon):
    def send(connection):
        connection.hello()
        connection.send_bytes(struct.pack(">I", 1000) + b'{"jsonrpc"')
        connection.socket.shutdown(socket.SHUT_WR)
        return connection.is_closed_within(5)
    equal(talk(daemon, send), True)
    for _ in range(20):
        def leave(connection):
            connection.send_bytes(b"\0\0")
        talk(daemon, leave)


@case(*MODES)
def a_silent_connection_is_closed_and_holds_up_nobody(daemon):
    def silent(connection):
        start = time.monotonic()
        closed = connection.is_closed_within(20)
        return [closed, time.monotonic() - start]
    closed, seconds = talk(daemon, silent)
    if not closed or seconds > 15:
        raise AssertionError(f"closed: {closed}, after {seconds:.1f} s")


GARBAGE = [
    b"\x00", b"\xff\xfe", b"null", b"[]", b"17", b'"text"', b"{", b"{}", b'{"id":1}',
    b'{"jsonrpc":"2.0","id":1,"method":"hello","params":{"protocol":1,"client":"a"}} x',
    b'{"jsonrpc":"2.0","id":1,"id":2,"method":"hello","params":{}}',
    b'{"jsonrpc":"2.0","id":1,"method":"hello","params":{"protocol":1,"client":"\xff"}}',
    b'{"jsonrpc":"2.0","id":1,"method":"hello","params":{"protocol":1,"client":"\\ud800"}}',
    b'{"jsonrpc":"2.0","id":1,"method":"hello","params":{"protocol":1,"client":"a\\u0000b"}}',
    b'{"jsonrpc":"2.0","id":1,"method":"hello","params":{"protocol":1.5,"client":"a"}}',
    b'{"jsonrpc":"2.0","id":1,"method":"hello","params":' + b"[" * 5000 + b"]" * 5000 + b"}",
    b'{"jsonrpc":"1.0","id":1,"method":"hello","params":{"protocol":1,"client":"a"}}',
    b'[{"jsonrpc":"2.0","id":1,"method":"hello","params":{"protocol":1,"client":"a"}}]',
]


@case(*MODES)
def garbage_is_refused_whatever_its_form(daemon):
    def send(connection, body):
        def raw():
            connection.send_frame(base64.b64decode(body))
            return connection.receive()
        return closed_or(raw)
    for body in GARBAGE:
        kind = talk(daemon, send, base64.b64encode(body).decode())
        if kind not in ("closed", "bad-json", "bad-request", "bad-frame"):
            raise AssertionError(f"{body[:80]!r}: {kind}")


@case(*MODES)
def hello_comes_first_and_once(daemon):
    def early(connection):
        return closed_or(lambda: connection.call("status"))
    if talk(daemon, early) not in ("closed", "bad-request", "not-authorized"):
        raise AssertionError("status was answered before hello")

    def other(connection):
        return closed_or(lambda: connection.call("hello", {"protocol": 2, "client": "x"}))
    if talk(daemon, other) is None:
        raise AssertionError("protocol 2 was accepted")

    def unknown(connection):
        connection.hello()
        return [kind_of(connection.call("no-such-method")), kind_of(connection.call("status"))]
    equal(talk(daemon, unknown), ["unknown-method", None])


# ---- requests ------------------------------------------------------------------------------


def spawn_params(place, **more):
    return {"argv": ["/bin/true"], "cwd": place, "env": {"PATH": lib.PATH}, **more}


@case(*MODES)
def wrong_types_unknown_keys_and_forbidden_values(daemon):
    place = project(daemon, "params")
    bad = [
        {"argv": []}, {"argv": "true"}, {"argv": [1]}, {"argv": None}, {"cwd": None},
        {"cwd": 7}, {"cwd": "relative"}, {"cwd": ""}, {"nonsense": 1},
        {"env": {"A": 1}}, {"env": {"": "x"}}, {"env": {"A=B": "x"}}, {"env": ["A"]}, {"env": ["=x"]}, {"env": 7}, {"profile": 3},
        {"profile": "no-such-profile"}, {"profile": "../../etc/passwd"},
        {"paths": {"readWrite": "x"}}, {"paths": {"readWrite": ["relative"]}},
        {"paths": {"readWrite": [f"{place}/../x"]}}, {"paths": {"deny": [{"path": 1}]}},
        {"paths": {"deny": [{"path": place, "absent": "maybe"}]}}, {"paths": {"more": []}},
        {"paths": {"readWrite": ["/" + "x" * 4096]}}, {"net": {"mode": "everything"}},
        {"net": "host"}, {"limits": {"pids": -1}}, {"limits": {"wallMs": 1 << 70}},
        {"engine": "docker"}, {"stdio": {"stdin": "inherit"}}, {"stdio": {"stdin": 0}},
        {"stdio": {"stdin": -1}}, {"lifeline": 99}, {"label": "x" * 4096}, {"detach": "yes"},
        {"argv": [{"b64": "!!!"}]}, {"argv": [{"b64": "AA=="}]}, {"argv": [{"b64": "L2Jpbg==", "x": 1}]},
        {"session": "no-such-session"},
    ]

    def send(connection, params):
        connection.hello()
        return [closed_or(lambda: connection.call("spawn", params)),
                closed_or(lambda: connection.call("status"))]
    for change in bad:
        found = talk(daemon, send, spawn_params(place, **change))
        if found[0] in (None, "internal") or found[0] == "closed":
            raise AssertionError(f"{str(change)[:100]}: {found}")


@case(*MODES)
def descriptors_too_many_too_few_and_twice(daemon):
    place = project(daemon, "fds")

    def send(connection, indexes, count):
        connection.hello()
        fds = [os.open("/dev/null", os.O_RDWR) for _ in range(count)]
        stdio = dict(zip(("stdin", "stdout", "stderr"), indexes))
        return closed_or(lambda: connection.call("spawn", spawn_params(place, stdio=stdio), fds))
    equal(talk(daemon, send, [0, 1, 2], 3), None)
    equal(talk(daemon, send, [2, 0, 1], 3), None)
    for indexes, count in (([0, 1, 2], 2), ([0, 1], 3), ([0, 0, 1], 2), ([0, 1, 16], 3), ([], 1),
                           ([0, 1, 2], 16)):
        kind = talk(daemon, send, indexes, count)
        if kind not in ("bad-request", "bad-frame", "closed"):
            raise AssertionError(f"indexes {indexes} of {count}: {kind}")


@case(*MODES)
def a_vanished_working_directory(daemon):
    place = project(daemon, "vanished")
    os.rmdir(place)

    def send(connection):
        connection.hello()
        return kind_of(connection.call("spawn", spawn_params(place)))
    equal(talk(daemon, send), "path-not-found")
    daemon.user.shell(f"mkdir -p {place}")
    result = daemon.user.run(["/bin/sh", "-c", f'cd {place}; rmdir {place}; exec "$@"', "sh",
                              *daemon.command("spawn", "--", "true")])
    status_is(result, 125)


@case(*MODES)
def job_numbers_of_others_and_of_nobody(daemon):
    def send(connection):
        connection.hello()
        return [kind_of(connection.call("inspect", {"job": 123456789})),
                kind_of(connection.call("signal", {"job": 123456789, "signal": 9})),
                kind_of(connection.call("wait", {"job": 123456789})),
                kind_of(connection.call("inspect", {"job": -1})),
                kind_of(connection.call("inspect", {}))]
    equal(talk(daemon, send), ["job-unknown"] * 3 + ["bad-request"] * 2)


# ---- faults --------------------------------------------------------------------------------


class Running:
    """A command inside that counts until told to end with status 7."""

    def __init__(self, daemon, name, *options, user=None):
        self.daemon = daemon
        self.place = project(daemon, name)
        self.process = daemon.user.popen(
            daemon.command("spawn", *options, "--", "/bin/sh", "-c",
                           "echo up; while [ ! -e stop ]; do date +%N >beat; sleep .05; done; "
                           "exit 7"), cwd=self.place, stdout=-1, stderr=-1)
        equal(self.process.stdout.readline(), b"up\n")

    def beats(self):
        wait_for(lambda: os.path.exists(f"{self.place}/beat"), 10, "the first beat")
        before = os.stat(f"{self.place}/beat").st_mtime_ns
        end = time.monotonic() + 10
        while os.stat(f"{self.place}/beat").st_mtime_ns == before and time.monotonic() < end:
            time.sleep(0.05)
        return os.stat(f"{self.place}/beat").st_mtime_ns != before

    def finish(self):
        self.daemon.user.write(f"{self.place}/stop")
        out, errors = self.process.communicate(timeout=20)
        return self.process.returncode, lib.text(out + errors)


def roles(daemon, name):
    """Pids of the roles called NAME."""
    return sorted(lib.processes(name[:15]))


@case(*MODES)
def the_recorder_killed(daemon):
    running = Running(daemon, "kill-recorder")
    for pid in roles(daemon, "fsbox-recorder"):
        os.kill(pid, signal.SIGKILL)
    if not running.beats():
        raise AssertionError("the command stopped")
    equal(running.finish(), (7, ""))
    wait_for(lambda: roles(daemon, "fsbox-recorder"), 20, "a new recorder")
    succeeds(daemon.sh("true", cwd=running.place))


@case(*MODES)
def the_broker_killed(daemon):
    running = Running(daemon, "kill-broker")
    if not running.beats():  # and its client has had its answer
        raise AssertionError("it does not run")
    for pid in roles(daemon, "fsbox-broker"):
        if lib.status_of(pid)["Uid"].startswith(f"{daemon.user.uid}\t"):
            os.kill(pid, signal.SIGKILL)
    if not running.beats():
        raise AssertionError("the command stopped with its broker")
    # Others are served at once; this client asks the next broker, and gets the exact result.
    succeeds(daemon.sh("true", cwd=running.place))
    equal(running.process.poll(), None)
    status, said = running.finish()
    equal(status, 7, said)
    wait_for(lambda: not daemon.jobs(), 10, "an empty list")


@case(*MODES)
def the_broker_killed_under_a_detached_job(daemon):
    place = project(daemon, "detached")
    succeeds(daemon.detach("--", "/bin/sh", "-c",
                          "while [ ! -e stop ]; do date +%N >beat; sleep .05; done; echo >done",
                          cwd=place))
    wait_for(lambda: os.path.exists(f"{place}/beat"), 10, "the command")
    for pid in roles(daemon, "fsbox-broker"):
        os.kill(pid, signal.SIGKILL)
    time.sleep(0.3)
    before = os.stat(f"{place}/beat").st_mtime_ns
    wait_for(lambda: os.stat(f"{place}/beat").st_mtime_ns != before, 5, "the next beat")
    equal(len(daemon.jobs()), 1, "jobs listed by the new broker")
    daemon.user.write(f"{place}/stop")
    wait_for(lambda: os.path.exists(f"{place}/done"), 10, "the command's own end")
    wait_for(lambda: not daemon.jobs(), 10, "the end of the job")


@case(*MODES)
def fsboxd_killed(daemon):
    running = Running(daemon, "kill-fsboxd")
    daemon.process.kill()
    daemon.process.wait()
    if not running.beats():
        raise AssertionError("the command stopped")
    # The client's broker still lives: the result is exact.
    equal(running.finish(), (7, ""))
    status_is(daemon.ctl("--no-autostart", "status"), 125)
    daemon.start()
    succeeds(daemon.sh("true", cwd=running.place))


@case(*MODES)
def pid_1_of_a_job_killed_is_lost(daemon):
    place = project(daemon, "lost")
    read_end, write_end = os.pipe()
    process = daemon.user.popen(
        daemon.command("spawn", "--status-fd", str(write_end), "--", "/bin/sh", "-c",
                       "echo up; exec sleep 600"), cwd=place, stdout=-1, stderr=-1,
        pass_fds=[write_end])
    os.close(write_end)
    equal(process.stdout.readline(), b"up\n")
    time.sleep(0.5)  # its client has had its answer
    os.kill(daemon.jobs()[0]["pid"], signal.SIGKILL)
    process.communicate(timeout=20)
    equal(process.returncode, 123)
    equal(json.loads(os.read(read_end, 65536))["reason"], "lost")
    os.close(read_end)


@case(*MODES)
def two_hundred_spawns_leak_nothing(daemon):
    place = project(daemon, "leaks")
    for _ in range(5):
        succeeds(daemon.sh("true", cwd=place))
        succeeds(daemon.sh("true", "--deny", f"{place}/absent", cwd=place))
    wait_for(lambda: not daemon.jobs(), 10, "an idle daemon")
    time.sleep(2)  # what is kept ready for the next job is made again

    def counts():
        return lib.descriptors_but_of_templates(daemon.process.pid), \
            [lib.descriptors(pid) for pid in roles(daemon, "fsbox-broker")], \
            len(lib.processes()) - len(lib.processes("fsbox-builder"))

    def listing():
        if not lib.descriptors(daemon.process.pid):
            return []
        return sorted(os.readlink(f"/proc/{daemon.process.pid}/fd/{fd}").split(":[")[0]
                      for fd in os.listdir(f"/proc/{daemon.process.pid}/fd"))
    at_first = listing()
    before = counts()
    script = 'i=0; while [ $i -lt 50 ]; do "$@" -- true || exit 1; ' \
             '"$@" -- /nonexistent 2>/dev/null; "$@" --rw /nonexistent -- true 2>/dev/null; ' \
             '"$@" --deny "$PWD/absent" -- false; i=$((i+1)); done'
    succeeds(daemon.user.run(["/bin/sh", "-c", script, "sh", *daemon.command("spawn")], cwd=place,
                             timeout=120))

    def same():
        return counts() == before
    try:
        wait_for(same, 10)
    except AssertionError:
        equal(listing(), at_first, "descriptors of fsboxd")
        equal(counts(), before, "descriptors and processes")
    equal(os.listdir(place), [])


@case(root=True)
def without_bwrap_and_where_user_namespaces_are_refused():
    place = "/usr/bin/bwrap"
    scripts = {
        "not executable": None,
        "user namespaces": '#!/bin/sh\necho "bwrap: No permissions to create new namespace, likely '
                           'because the kernel does not allow non-privileged user namespaces." >&2\n'
                           'exit 1\n',
    }
    for name, script in scripts.items():
        fake = f"{os.environ['FSBOX_TEST_TOP']}/bwrap"
        with open(fake, "w", encoding="utf-8") as file:
            file.write(script or "")
        os.chmod(fake, 0o755 if script else 0o644)
        lib.mount("--bind", fake, place)
        try:
            for mode in MODES:
                daemon = lib.make_daemon(mode)
                daemon.start()
                try:
                    work = project(daemon, "nobwrap")
                    result, said = spawn_status(daemon, "--engine", "bwrap", "--", "/bin/sh",
                                                "-c", "echo ran >ran",
                                                cwd=work)
                    status_is(result, 125, "engine-unavailable")
                    equal(said["error"]["kind"], "engine-unavailable", name)
                    equal(os.listdir(work), [], "nothing runs unconfined")
                    contains(daemon.ctl("status").stdout, "bwrap", name)
                finally:
                    daemon.stop()
        finally:
            lib.sh("umount", place)


@case(root=True)
def the_environment_can_only_make_it_stricter():
    daemon = lib.make_daemon("system")
    daemon.start(env={"FSBOX_FORCE_UNAVAILABLE": "1"})
    try:
        work = project(daemon, "forced")
        status_is(daemon.sh("echo ran >ran", cwd=work), 125, "engine-unavailable")
        equal(os.listdir(work), [])
    finally:
        daemon.stop()


@case(root=True)
def wrong_configuration_refuses_the_start():
    for text in ("nonsense = 1\n", "max-jobs = many\n", "max-net = some\n", "max-jobs\n",
                 'default-profile = "unfinished\n'):
        os.makedirs("/etc/fsbox", exist_ok=True)
        with open("/etc/fsbox/fsboxd.conf", "w", encoding="utf-8") as file:
            file.write("# first line\n" + text)
        for more in ([], ["--check-config"]):
            result = lib.User("root").run([lib.FSBOXD, "--mode", "system", *more])
            if result.returncode == 0:
                raise AssertionError(f"{text!r} was accepted")
            contains(result.stderr, "fsboxd.conf:2", text)
    os.remove("/etc/fsbox/fsboxd.conf")
    succeeds(lib.User("root").run([lib.FSBOXD, "--mode", "system", "--check-config"]))


lib.main()
