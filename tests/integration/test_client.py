# SPDX-License-Identifier: Apache-2.0
"""fsboxctl against a daemon that is not ours: every answer, every abuse, every signal."""

import contextlib
import functools
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time

import lib
from fake_server import HELLO, FakeServer, Gone
from lib import Skip, case, contains, equal, lacks, show, wait_for

LINE = re.compile(rb"^fsboxctl: [^\n]+ \([a-z-]+\)(; [^\n]+)?\n$")


def environment(**more):
    return {"PATH": lib.PATH, "HOME": os.environ.get("HOME", "/"), "LANG": "C.UTF-8", **more}


def ctl(server, *arguments, **options):
    """fsboxctl with the fake daemon; it must end by itself."""
    options.setdefault("env", environment())
    options.setdefault("stdin", subprocess.DEVNULL)
    options.setdefault("stdout", subprocess.PIPE)
    options.setdefault("stderr", subprocess.PIPE)
    return subprocess.run([lib.FSBOXCTL, "--socket", server.path, *arguments], check=False,
                          timeout=20, **options)


def start(server, *arguments, **options):
    options.setdefault("env", environment())
    return subprocess.Popen([lib.FSBOXCTL, "--socket", server.path, *arguments], **options)


def one_line(result, status, kind):
    equal(result.returncode, status, show(result))
    if not LINE.match(result.stderr):
        raise AssertionError(f"not one line of the usual form: {result.stderr!r}")
    contains(result.stderr, f"({kind})")


# ---- abuse -----------------------------------------------------------------------------------


@case()
def a_bad_daemon_is_an_error_never_a_hang():
    def closes(_):
        return

    def garbage(peer):
        peer.request()
        peer.raw(b"\x00\x00\x00\x05HELLO")
        peer.linger()

    def http(peer):
        peer.raw(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        peer.linger()

    def huge(peer):
        peer.request()
        peer.raw(b"\xff\xff\xff\xff" + b"x" * 100)
        peer.linger()

    def cut(peer):
        peer.request()
        peer.raw(b"\x00\x00\x10\x00{")

    def unasked(peer):
        request, _ = peer.request()
        peer.result({"id": request["id"] + 5}, {})
        peer.linger()

    def other_protocol(peer):
        request, _ = peer.request()
        peer.result(request, {**HELLO, "protocol": 2})
        peer.linger()

    def descriptors(peer):
        request, _ = peer.request()
        null = os.open("/dev/null", os.O_RDONLY)
        peer.send({"jsonrpc": "2.0", "id": request["id"],
                   "result": HELLO}, [null] * 16)
        os.close(null)
        peer.linger()

    for serve, kind in ((closes, "daemon-unreachable"), (garbage, "bad-json"),
                        (http, "frame-too-large"), (huge, "frame-too-large"), (cut, "bad-frame"),
                        (unasked, "bad-request"), (other_protocol, "daemon-unreachable"),
                        (descriptors, "bad-frame")):
        with FakeServer(serve) as server:
            for command in (["ps"], ["spawn", "--", "true"]):
                one_line(ctl(server, *command), 125, kind)


@case()
def r5_a_stranger_hears_nothing():
    if not lib.IS_ROOT:
        raise Skip("needs root")
    heard = []

    def serve(peer):
        try:
            while True:
                peer.fill()
        except Gone:
            heard.append(peer.data)

    with FakeServer(serve, uid=54321) as server:
        result = ctl(server, "spawn", "--", "true")
        one_line(result, 125, "daemon-unreachable")
        contains(result.stderr, "served by uid 54321")
        wait_for(lambda: heard, what="the connection")
        equal(heard, [b""])


@case()
def hints_of_the_daemon_are_shown_and_escaped():
    def serve(peer):
        peer.hello()
        request, _ = peer.request()
        peer.error(request, "policy-invalid", "bad \x1b[31m rule\nsecond line", hint="try --ro")

    with FakeServer(serve) as server:
        result = ctl(server, "policy", "check")
        one_line(result, 1, "policy-invalid")
        contains(result.stderr, "bad \\x1b[31m rule\\x0asecond line (policy-invalid); try --ro")


@case()
def a_daemon_that_refuses_is_told_apart():
    def serve(peer):
        request, _ = peer.request()
        peer.error(request, "confined-peer", "NoNewPrivs is set", hint="admit-confined-uid")

    with FakeServer(serve) as server:
        one_line(ctl(server, "ps"), 125, "confined-peer")
        result = ctl(server, "whoami")
        equal(result.returncode, 1, show(result))
        equal(result.stdout.decode(), f"uid {os.getuid()}\nconfined: NoNewPrivs is set\n"
                                      "what to do: admit-confined-uid\n")


@case()
def a_farewell_is_heard_even_when_nothing_can_be_sent():
    def serve(peer):
        peer.send({"jsonrpc": "2.0", "id": None,
                   "error": {"code": -32000, "message": "not you",
                             "data": {"kind": "not-authorized", "hint": "go"}}})

    with FakeServer(serve) as server:
        for _ in range(30):  # hung up before, while or after we speak
            result = ctl(server, "ps")
            one_line(result, 125, "not-authorized")
            contains(result.stderr, "not you (not-authorized); go")


# ---- results ---------------------------------------------------------------------------------


def ends(reason, **more):
    def serve(peer):
        peer.hello()
        request, _ = peer.request()
        peer.started(request)
        peer.exited(7, reason, **more)
        peer.linger()

    return serve


def refuses(kind, **more):
    def serve(peer):
        peer.hello()
        request, _ = peer.request()
        peer.error(request, kind, **more)

    return serve


def with_status(server, *arguments, **options):
    """spawn --status-fd: the result and the parsed line."""
    read_end, write_end = os.pipe()
    result = ctl(server, "spawn", "--status-fd", str(write_end), *arguments, pass_fds=[write_end],
                 **options)
    os.close(write_end)
    with os.fdopen(read_end, "rb") as file:
        said = file.read()
    equal(said.count(b"\n"), 1, f"lines in {said!r}")
    return result, json.loads(said)


@case()
def every_end_has_its_status():
    for status, reason, more in ((0, "exited", {}), (3, "exited", {"code": 3}),
                                 (137, "exited", {"code": 137}),
                                 (137, "signaled", {"signal": 9}), (143, "signaled", {"signal": 15}),
                                 (124, "timeout", {}), (137, "oom", {}), (123, "lost", {})):
        with FakeServer(ends(reason, **more)) as server:
            result, said = with_status(server, "--", "x")
            equal(result.returncode, status, reason)
            equal(result.stderr, b"", "not a terminal: no notes")
            equal({"reason": said["reason"], "code": said["code"], "signal": said["signal"]},
                  {"reason": reason, "code": more.get("code", 0), "signal": more.get("signal", 0)})
            equal(sorted(said), ["code", "coreDumped", "job", "planted", "reason", "repaired",
                                 "signal", "usage", "wallMs"])


@case()
def every_refusal_has_its_status():
    for status, kind in ((127, "command-not-found"), (126, "command-not-executable"),
                         (125, "policy-invalid"), (125, "quota-exceeded"), (125, "setup-failed")):
        with FakeServer(refuses(kind, message="why")) as server:
            result, said = with_status(server, "--", "x")
            one_line(result, status, kind)
            equal(said["error"]["kind"], kind)
            equal(said["error"]["message"], "why")
            result = ctl(server, "spawn", "--json", "--", "x")
            equal(result.returncode, status)
            equal(result.stdout, b"", "standard output is the command's")
            equal(json.loads(result.stderr)["error"]["kind"], kind)


@case()
def an_unknown_kind_is_still_an_error():
    with FakeServer(refuses("brand-new-kind")) as server:
        result = ctl(server, "spawn", "--", "x")
        equal(result.returncode, 125, show(result))
        lacks(result.stderr, "Sanitizer")


@case()
def detached_jobs_are_named_and_left():
    seen = []

    def serve(peer):
        peer.hello()
        request, fds = peer.request()
        seen.append((request["params"].get("detach"), "lifeline" in request["params"], len(fds)))
        peer.started(request)

    with FakeServer(serve) as server:
        result = ctl(server, "spawn", "--detach", "--", "x")
        equal((result.returncode, result.stdout), (0, b"7\n"), show(result))
        equal(ctl(server, "spawn", "--detach", "--json", "--", "x").stdout, b'{"job":7}\n')
        equal(seen, [(True, False, 3)] * 2)
        result = ctl(server, "spawn", "--detach", "--status-fd", "1", "--", "x")
        one_line(result, 125, "usage")


@case()
def a_lost_daemon_is_outlived_by_the_job():
    for told in (True, False):
        read_end, write_end = os.pipe()

        def serve(peer, told=told, read_end=read_end):
            peer.hello()
            request, _ = peer.request()
            peer.started(request, pidfd=read_end)
            if told:
                peer.exited(7, "exited", code=9)  # its last word

        with FakeServer(serve) as server:
            process = start(server, "spawn", "--", "x")
            if not told:
                time.sleep(0.3)
                equal(process.poll(), None, "it waits for pid 1")
            os.close(write_end)  # pid 1 is gone
            # A next daemon that would know is looked for first.
            equal(process.wait(30), 9 if told else 123)
        os.close(read_end)


# ---- what is sent ----------------------------------------------------------------------------


def capture(*arguments, **options):
    """The params and descriptors of the spawn that ARGUMENTS make."""
    caught = []

    def serve(peer):
        peer.hello()
        request, fds = peer.request()
        caught.append((request["params"], [os.readlink(f"/proc/self/fd/{fd}") for fd in fds]))
        peer.started(request)
        peer.exited(7, "exited")
        peer.linger()

    with FakeServer(serve) as server:
        result = ctl(server, "spawn", *arguments, **options)
        equal(result.returncode, 0, show(result))
    return caught[0]


@case()
def bytes_that_are_no_text_are_sent_as_they_are():
    odd = b"a\xff\xfeb"
    params, _ = capture("--rw", b"/tmp/" + odd, "--", b"x", odd, b"\xc3\xa9",
                        env={**environment(), b"ODD": odd})
    wanted = {"b64": "Yf/+Yg=="}
    equal(params["argv"], ["x", wanted, "é"])
    equal(params["env"]["ODD"], wanted)
    equal(params["paths"]["readWrite"], [{"b64": "L3RtcC9h//5i"}])
    params, _ = capture("--", "x", env={**environment(), b"N\xff": b"v"})
    if not isinstance(params["env"], list):
        raise AssertionError(f"a name that is no text needs the other form: {params['env']}")


@case()
def options_become_parameters():
    with tempfile.TemporaryDirectory() as place:
        params, fds = capture(
            "--profile", "generic", "--ro", "a", "--deny", "./b", "--cwd", place, "--net", "none",
            "--env", "A=b=c", "--env-pass", "TOKEN", "--timeout", "2s", "--memory", "1M", "--pids",
            "9", "--cpus", "1.5", "--label", "L", "--allow-home", "--allow-git-config",
            "--socket-allow", "/s", "--", "cmd", "--rw", "x", cwd=place)
        equal(params["argv"], ["cmd", "--rw", "x"])
        equal(params["paths"], {"readOnly": [f"{place}/a"], "deny": [f"{place}/b"]})
        equal(params["cwd"], place)
        equal(params["envSet"], {"PWD": place, "A": "b=c"})
        equal(params["envPass"], ["TOKEN"])
        equal(params["net"], {"mode": "none"})
        equal(params["limits"], {"memoryBytes": 1 << 20, "wallMs": 2000, "pids": 9, "cpus": "1.5"})
        equal([params[k] for k in ("profile", "label", "allowHome", "allowGitConfig", "socketAllow")],
              ["generic", "L", True, True, ["/s"]])
        equal(len(fds), 4, "three of the command's, and the lifeline")
        equal(capture("--egress-only", "--", "x")[0]["profile"], "host")


@case()
def the_umask_and_nothing_else_goes_along():
    params, fds = capture("--", "x", preexec_fn=lambda: os.umask(0o027))
    equal(params["umask"], 0o027)
    # Our own descriptors stay here, whatever is open.
    with open("/etc/passwd", "rb") as file:
        _, fds = capture("--", "x", pass_fds=[file.fileno()])
    equal(len(fds), 4, fds)
    lacks("".join(fds), "passwd")


@case()
def closed_standard_descriptors_are_null():
    params, fds = capture("--", "x", preexec_fn=lambda: (os.close(0), os.close(2)))
    equal(params["stdio"].get("stdin", "null"), "null")
    equal(params["stdio"].get("stderr", "null"), "null")
    equal(len(fds), 2, fds)


# ---- relaying --------------------------------------------------------------------------------


@case()
def r8_regular_files_are_relayed_when_refused():
    kinds = []

    def serve(peer):
        peer.hello()
        request, _ = peer.request()
        peer.error(request, "stdio-relay", indexes=[0, 1])
        request, fds = peer.request()
        kinds.append([os.readlink(f"/proc/self/fd/{fd}").split(":")[0] for fd in fds])
        peer.started(request)
        with os.fdopen(os.dup(fds[0]), "rb") as source, os.fdopen(os.dup(fds[1]), "wb") as target:
            for line in source:
                target.write(line.upper())
            target.write(b"x" * 300000)
        peer.exited(7, "exited", code=4)
        peer.linger()

    with tempfile.TemporaryDirectory() as place, FakeServer(serve) as server:
        with open(f"{place}/in", "wb") as file:
            file.write(b"one\ntwo\n")
        with open(f"{place}/in", "rb") as source, open(f"{place}/out", "ab") as target:
            target.write(b"before\n")
            target.flush()
            result = ctl(server, "spawn", "--", "x", stdin=source, stdout=target)
        equal(result.returncode, 4, show(result))
        with open(f"{place}/out", "rb") as file:
            equal(file.read(), b"before\nONE\nTWO\n" + b"x" * 300000)
        equal(kinds[0][:2], ["pipe", "pipe"])


@case()
def r8_a_daemon_that_never_has_enough_is_not_obeyed_twice():
    def serve(peer):
        peer.hello()
        for _ in range(2):
            request, _ = peer.request()
            peer.error(request, "stdio-relay")

    with FakeServer(serve) as server:
        one_line(ctl(server, "spawn", "--", "x"), 125, "stdio-relay")


# ---- signals ---------------------------------------------------------------------------------


class SignalServer(FakeServer):
    """A job that ends on TERM or KILL, and a list of the signals it was sent."""

    def __init__(self):
        super().__init__(self.serve_signals)
        self.signals = []
        self.delay = 0
        self.asked = False
        self.up = False
        self.lifeline_closed = False

    def serve_signals(self, peer):
        peer.hello()
        request, fds = peer.request()
        lifeline = fds[request["params"]["lifeline"]]
        self.asked = True
        time.sleep(self.delay)
        peer.started(request)
        self.up = True
        while True:
            try:
                request, _ = peer.request()
            except Gone:
                # As the job would see it: only once nobody holds the other end.
                self.lifeline_closed = os.read(lifeline, 1) == b""
                return
            equal(request["method"], "signal")
            self.signals.append(request["params"]["signal"])
            peer.result(request, {})
            if self.signals[-1] in (signal.SIGTERM, signal.SIGKILL):
                peer.exited(7, "signaled", signal=self.signals[-1])
                peer.linger()
                return


@contextlib.contextmanager
def running_job(**options):
    with SignalServer() as server:
        process = start(server, "spawn", "--", "x", **options)
        try:
            wait_for(lambda: server.up, what="the start")
            time.sleep(0.1)
            yield server, process
        finally:
            if process.poll() is None:
                process.kill()
            process.wait()


@case()
def signals_are_passed_on():
    with running_job() as (server, process):
        for number in (signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2, signal.SIGQUIT,
                       signal.SIGWINCH, signal.SIGTERM):
            process.send_signal(number)
            wait_for(lambda n=number: n in server.signals, what=f"signal {number}")
        equal(process.wait(20), 128 + signal.SIGTERM)


@case()
def a_second_interrupt_kills():
    for _ in range(5):  # within a second, if the machine lets us
        with running_job() as (server, process):
            begun = time.monotonic()
            process.send_signal(signal.SIGINT)
            wait_for(lambda s=server: s.signals == [signal.SIGINT], what="the first")
            process.send_signal(signal.SIGINT)
            wait_for(lambda s=server: len(s.signals) == 2, what="the second")
            if time.monotonic() - begun > 1 and server.signals[1] == signal.SIGINT:
                continue
            equal(process.wait(20), 128 + signal.SIGKILL)
            equal(server.signals, [signal.SIGINT, signal.SIGKILL])
            break
    else:
        raise AssertionError("the machine is too slow for two signals in a second")
    with running_job() as (server, process):
        process.send_signal(signal.SIGINT)
        wait_for(lambda: server.signals == [signal.SIGINT], what="the first")
        time.sleep(1.2)
        process.send_signal(signal.SIGINT)
        wait_for(lambda: len(server.signals) == 2, what="the second")
        equal(server.signals, [signal.SIGINT, signal.SIGINT])


@case()
def stopping_stops_the_job_too():
    with running_job() as (server, process):
        process.send_signal(signal.SIGTSTP)
        wait_for(lambda: lib_state(process.pid) == "T", what="being stopped")
        wait_for(lambda: server.signals == [signal.SIGSTOP], what="STOP")
        process.send_signal(signal.SIGCONT)
        wait_for(lambda: server.signals == [signal.SIGSTOP, signal.SIGCONT], what="CONT")
        process.send_signal(signal.SIGTERM)
        equal(process.wait(20), 128 + signal.SIGTERM)


def lib_state(pid):
    with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
        return file.read().rsplit(")", 1)[1].split()[0]


@case()
def ignored_signals_stay_ignored():
    def nohup():
        signal.signal(signal.SIGHUP, signal.SIG_IGN)

    with running_job(preexec_fn=nohup) as (server, process):
        process.send_signal(signal.SIGHUP)
        process.send_signal(signal.SIGTERM)
        equal(process.wait(20), 128 + signal.SIGTERM)
        equal(server.signals, [signal.SIGTERM])


@case()
def the_lifeline_closes_when_fsboxctl_is_killed():
    with running_job() as (server, process):
        process.kill()
        wait_for(lambda: server.lifeline_closed, what="the end of the lifeline")


@case()
def an_early_signal_waits_for_the_start():
    """The command may run, and have said so, before the daemon's answer is here."""
    with SignalServer() as server:
        server.delay = 0.5
        process = start(server, "spawn", "--", "x")
        wait_for(lambda: server.asked, what="the request")
        process.send_signal(signal.SIGTERM)
        equal(process.wait(30), 128 + signal.SIGTERM)
        equal(server.signals, [signal.SIGTERM])


@case()
def an_early_signal_does_not_wait_for_ever():
    for insisting in (False, True):
        asked = []

        def serve(peer, asked=asked):
            peer.hello()
            _, fds = peer.request()
            asked.append(fds)
            equal(os.read(fds[3], 1), b"", "lifeline")

        with FakeServer(serve) as server:
            process = start(server, "spawn", "--", "x")
            wait_for(lambda a=asked: a, what="the request")
            begun = time.monotonic()
            process.send_signal(signal.SIGINT)
            while insisting and process.poll() is None:  # two that are pending at once are one
                time.sleep(0.3)
                process.send_signal(signal.SIGINT)
            equal(process.wait(20), -signal.SIGINT)
            equal(time.monotonic() - begun < 2, insisting, "it waits two seconds, unless one insists")


# ---- starting a daemon -----------------------------------------------------------------------


@contextlib.contextmanager
def build_tree(behaviour):
    """A tree like that of a build, in which fsboxd is the fake."""
    place = tempfile.mkdtemp(prefix="fsbox-tree.")
    os.chmod(place, 0o755)
    try:
        os.makedirs(f"{place}/client")
        os.makedirs(f"{place}/daemon")
        shutil.copy2(lib.FSBOXCTL, f"{place}/client/fsboxctl")
        source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "fake_server.py")
        with open(source, encoding="utf-8") as file:
            program = file.read()
        with open(f"{place}/daemon/fsboxd", "w", encoding="utf-8") as file:
            file.write("#!/usr/bin/python3 -B\n" + program)
        os.chmod(f"{place}/daemon/fsboxd", 0o755)
        with open(f"{place}/daemon/FAKE", "w", encoding="utf-8") as file:
            file.write(behaviour)
        os.makedirs(f"{place}/run", 0o700)
        os.makedirs(f"{place}/state", 0o700)
        yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)
        if os.path.isdir("/run/fsbox-root") and lib.IS_ROOT:
            shutil.rmtree("/run/fsbox-root")


def starts(place):
    with contextlib.suppress(FileNotFoundError):
        with open(f"{place}/daemon/STARTS", encoding="utf-8") as file:
            return [json.loads(line) for line in file]
    return []


def in_tree(place, *arguments, **more):
    return {"args": [f"{place}/client/fsboxctl", *arguments],
            "env": environment(XDG_RUNTIME_DIR=f"{place}/run", XDG_STATE_HOME=f"{place}/state",
                               HOME=place, SECRET="x", **more),
            "stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}


def needs_fresh_run():
    if os.path.exists("/run/fsbox/fsbox.sock") or lib.IS_ROOT and os.path.exists("/run/fsbox-root"):
        raise Skip("a daemon of this machine's is in the way")


@case()
def a_daemon_is_started_once_for_many():
    needs_fresh_run()
    with build_tree("slow") as place:
        processes = [subprocess.Popen(**in_tree(place, "whoami")) for _ in range(8)]
        for process in processes:
            out, errors = process.communicate(timeout=20)
            equal(process.returncode, 0, errors)
            contains(out, "server fake 1\n")
        begun = starts(place)
        equal(len(begun), 1, "starts")
        argv = begun[0]["argv"]
        equal(argv[:2], ["--mode", "root" if lib.IS_ROOT else "user"])
        equal(argv[argv.index("--idle-exit") + 1], "60")
        equal(begun[0]["cwd"], "/")
        equal(begun[0]["session"], True)
        equal(begun[0]["fds"], [0, 1, 2, 3, 4], "with the one that lists them")
        lacks(begun[0]["env"], "SECRET", "environment")


@case()
def why_a_daemon_did_not_start_is_said():
    needs_fresh_run()
    with build_tree("fail") as place:
        result = subprocess.run(check=False, timeout=20, **in_tree(place, "ps"))
        one_line(result, 125, "daemon-unreachable")
        if not lib.IS_ROOT:  # root's log is not in our tree, but its first line is shown all the same
            with open(f"{place}/state/fsbox/fsboxd.log", "rb") as file:
                contains(file.read(), "more of it")
        contains(result.stderr, "the daemon did not start: fsboxd: nothing works?[31m today (")
        lacks(result.stderr, "more of it")


@case()
def no_daemon_is_started_when_that_is_forbidden():
    needs_fresh_run()
    with build_tree("good") as place:
        result = subprocess.run(check=False, timeout=20, **in_tree(place, "--no-autostart", "ps"))
        one_line(result, 125, "daemon-unreachable")
        equal(starts(place), [])
        result = subprocess.run(check=False, timeout=20,
                                **in_tree(place, "ps", FSBOX_SOCKET=f"{place}/run/none.sock"))
        one_line(result, 125, "daemon-unreachable")
        contains(result.stderr, "check --socket and FSBOX_SOCKET")
        equal(starts(place), [])


def without_root(function):
    """The places of an ordinary user are tried as one."""

    @functools.wraps(function)
    def run():
        return lib.as_user(lib.User("fsbxc"), function) if lib.IS_ROOT else function()
    return run


@case()
@without_root
def a_stale_socket_is_replaced():
    needs_fresh_run()
    with build_tree("good") as place:
        os.makedirs(f"{place}/run/fsbox", 0o700)
        import socket  # pylint: disable=import-outside-toplevel
        stale = socket.socket(socket.AF_UNIX)
        stale.bind(f"{place}/run/fsbox/fsbox.sock")
        stale.close()
        equal(subprocess.run(check=False, timeout=20, **in_tree(place, "whoami")).returncode, 0)
        equal(len(starts(place)), 1)


@case()
@without_root
def r5_a_folder_open_to_others_is_refused():
    needs_fresh_run()
    with build_tree("good") as place:
        os.makedirs(f"{place}/run/fsbox")
        os.chmod(f"{place}/run/fsbox", 0o777)
        result = subprocess.run(check=False, timeout=20, **in_tree(place, "ps"))
        one_line(result, 125, "daemon-unreachable")
        contains(result.stderr, "can be written by others")
        equal(starts(place), [])


# ---- text ------------------------------------------------------------------------------------


@case()
def a_full_disk_does_not_look_like_success():
    with open("/dev/full", "wb") as full:
        result = subprocess.run([lib.FSBOXCTL, "--help"], stdout=full, stderr=subprocess.PIPE,
                                check=False, timeout=20)
    equal(result.returncode, 125, show(result))
    contains(result.stderr, "No space left on device (internal)")


@case()
def every_help_page_fits_a_terminal():
    listing = subprocess.run([lib.FSBOXCTL, "--help"], stdout=subprocess.PIPE, check=True).stdout
    commands = re.findall(r"^  ([a-z]+(?: [a-z]+)?)[ ,]", listing.decode().split("Options")[0], re.M)
    equal(len(commands) >= 16, True, commands)
    for command in commands:
        page = subprocess.run([lib.FSBOXCTL, *command.split(), "--help"], stdout=subprocess.PIPE,
                              check=True).stdout.decode()
        if any(len(line) > 90 for line in page.split("\n")):
            raise AssertionError(f"{command}: a line is too long:\n{page}")
        contains(page, f"Usage: fsboxctl {command}")
        contains(page, "Example")


if __name__ == "__main__":
    lib.main()
