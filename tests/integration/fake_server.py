# SPDX-License-Identifier: Apache-2.0
"""A daemon for tests of the client: answers by script, well or badly, and says what it was sent.

It listens on a socket in a directory of its own and serves each connection in a thread with a
function of the test's. Run as a program it stands in for fsboxd: see main().
"""

import array
import contextlib
import json
import os
import shutil
import socket
import struct
import sys
import tempfile
import threading
import time


class Gone(Exception):
    """The client closed the connection."""


class Peer:
    """One connection of a client's, from the daemon's end."""

    def __init__(self, connection):
        self.socket = connection
        self.socket.settimeout(15)
        self.data = b""
        self.fds = []
        self.kept = []

    def close(self):
        """Let go of the connection and of every descriptor that came over it."""
        self.socket.close()
        for fd in self.kept + self.fds:
            with contextlib.suppress(OSError):
                os.close(fd)

    def linger(self):
        """Until the client hangs up."""
        with contextlib.suppress(Gone):
            while True:
                self.fill()

    def fill(self):
        try:
            data, control, _, _ = self.socket.recvmsg(1 << 16, socket.CMSG_SPACE(16 * 4))
        except ConnectionResetError:
            raise Gone from None
        for level, kind, content in control:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                fds = array.array("i")
                fds.frombytes(content[:len(content) - len(content) % fds.itemsize])
                self.fds += fds
        if not data:
            raise Gone
        self.data += data

    def request(self):
        """The next request, and the descriptors that came with it; they are closed at the end."""
        while len(self.data) < 4:
            self.fill()
        size = struct.unpack(">I", self.data[:4])[0]
        while len(self.data) < 4 + size:
            self.fill()
        body, self.data = self.data[4:4 + size], self.data[4 + size:]
        fds, self.fds = self.fds, []
        self.kept += fds
        return json.loads(body), fds

    def drop(self, fd):
        """Close FD now."""
        self.kept.remove(fd)
        os.close(fd)

    def raw(self, data, fds=()):
        control = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            sent = self.socket.sendmsg([data[:1]], control)
            self.socket.sendall(data[sent:])

    def send(self, body, fds=()):
        if not isinstance(body, bytes):
            body = json.dumps(body).encode()
        self.raw(struct.pack(">I", len(body)) + body, fds)

    def result(self, request, value, fds=()):
        self.send({"jsonrpc": "2.0", "id": request["id"], "result": value}, fds)

    def error(self, request, kind, message="because", **more):
        self.send({"jsonrpc": "2.0", "id": request["id"],
                   "error": {"code": -32000, "message": message, "data": {"kind": kind, **more}}})

    def hello(self):
        """Answer the first request as it should be."""
        request, _ = self.request()
        assert request["method"] == "hello", request
        self.result(request, HELLO)

    def exited(self, job, reason, code=0, signal=0, **more):
        self.send({"jsonrpc": "2.0", "method": "exited", "params": {
            "job": job, "reason": reason, "code": code, "signal": signal, "coreDumped": False,
            "wallMs": 5, "usage": {"userMs": 1, "sysMs": 2, "maxRssKiB": 300}, "planted": [],
            "repaired": 0, **more}})

    def started(self, request, job=7, pidfd=None, **more):
        """Answer a spawn; PIDFD (a descriptor) rides along."""
        value = {"job": job, "cookie": "0123456789abcdef" * 2, "pid": 4242, "engine": "bwrap",
                 "room": "egress-denied", "policyDigest": "0" * 64, "rules": 3, "suppressed": [],
                 "withheld": [], "warnings": [], "limits": {"unenforced": []}, **more}
        if pidfd is not None:
            value["pidfd"] = 0
        self.result(request, value, [pidfd] if pidfd is not None else [])


HELLO = {"protocol": 1, "server": "fake 1", "mode": "user", "uid": os.getuid(), "engines": [],
         "features": [],
         "limits": {"frameBytes": 4194304, "paramsBytes": 67108864, "frameFds": 16, "requests": 256}}


class FakeServer:
    """@serve  called with a Peer for each connection; the connection is closed when it returns"""

    def __init__(self, serve, uid=None):
        self.directory = tempfile.mkdtemp(prefix="fsbox-fake.")
        os.chmod(self.directory, 0o755)
        self.path = os.path.join(self.directory, "fsbox.sock")
        self.serve = serve
        self.problem = None
        self.listener = listen(self.path, uid)
        self.connections = 0
        self.thread = threading.Thread(target=self.run, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, kind, *_):
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.thread.join(15)
        shutil.rmtree(self.directory, ignore_errors=True)
        if self.problem and kind is None:
            raise AssertionError(f"the fake daemon: {self.problem!r}") from self.problem

    def run(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            self.connections += 1
            peer = Peer(connection)
            try:
                self.serve(peer)
            except Gone:
                pass
            except Exception as problem:  # pylint: disable=broad-except
                self.problem = problem
            peer.close()


def listen(path, uid=None):
    """A listening socket; of user UID's, as the kernel will say, when that is given."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
    listener.bind(path)
    os.chmod(path, 0o666)
    listener.listen(16)
    if uid is not None:  # who called listen(2) last owns it
        pid = os.fork()
        if pid == 0:
            os.setresuid(uid, uid, uid)
            listener.listen(16)
            os._exit(0)
        os.waitpid(pid, 0)
    return listener


def main():
    """Stand in for fsboxd, as fsboxctl starts it; FAKE beside this program says how to behave.

    Each start appends its arguments to STARTS; "slow" waits before it listens, "fail" complains and
    ends, otherwise it answers hello until nobody has come for a while.
    """
    here = os.path.dirname(os.path.abspath(sys.argv[0]))
    arguments = sys.argv[1:]
    start = {"argv": arguments, "env": sorted(os.environ), "cwd": os.getcwd(),
             "fds": sorted(int(n) for n in os.listdir("/proc/self/fd")),
             "session": os.getsid(0) == os.getpid()}
    with open(os.path.join(here, "STARTS"), "a", encoding="utf-8") as file:
        file.write(json.dumps(start) + "\n")
    with open(os.path.join(here, "FAKE"), encoding="utf-8") as file:
        behaviour = file.read().strip()
    if behaviour == "fail":
        sys.exit("fsboxd: nothing works\x1b[31m today\nmore of it")
    if behaviour == "slow":
        time.sleep(0.5)
    path = arguments[arguments.index("--socket") + 1]
    with contextlib.suppress(FileNotFoundError):
        os.remove(path)
    listener = listen(path)
    os.write(int(arguments[arguments.index("--ready-fd") + 1]), b"1")
    listener.settimeout(5)
    with contextlib.suppress(socket.timeout):
        while True:
            connection, _ = listener.accept()
            with contextlib.suppress(Gone, AssertionError):
                Peer(connection).hello()
            connection.close()


if __name__ == "__main__":
    main()
