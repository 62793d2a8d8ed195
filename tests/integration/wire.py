# SPDX-License-Identifier: Apache-2.0
"""The protocol by hand, for tests that say what libfsbox never would."""

import array
import json
import os
import socket
import struct
import time


class Closed(Exception):
    """The daemon closed the connection."""


class Connection:
    def __init__(self, path, timeout=15):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
        self.socket.settimeout(timeout)
        self.socket.connect(path)
        self.data = b""
        self.fds = []
        self.next_id = 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.socket.close()
        for fd in self.fds:
            os.close(fd)
        self.fds = []

    def send_bytes(self, data, fds=()):
        """DATA as it is; FDS with its first byte. A daemon that hung up may have said why."""
        control = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
        try:
            if control:
                sent = self.socket.sendmsg([data[:1]], control)
                data = data[sent:]
            self.socket.sendall(data)
        except (BrokenPipeError, ConnectionResetError):
            pass

    def send_frame(self, body, fds=()):
        if not isinstance(body, bytes):
            body = json.dumps(body).encode()
        self.send_bytes(struct.pack(">I", len(body)) + body, fds)

    def send(self, method, params=None, fds=()):
        """A request; its id."""
        self.next_id += 1
        self.send_frame({"jsonrpc": "2.0", "id": self.next_id, "method": method,
                         "params": params if params is not None else {}}, fds)
        return self.next_id

    def fill(self):
        try:
            data, control, flags, _ = self.socket.recvmsg(1 << 16, socket.CMSG_SPACE(16 * 4))
        except ConnectionResetError:
            raise Closed from None
        for level, kind, content in control:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                fds = array.array("i")
                fds.frombytes(content[:len(content) - len(content) % fds.itemsize])
                self.fds += fds
        if not data:
            raise Closed
        self.data += data

    def receive(self):
        """The next message of the daemon's."""
        while len(self.data) < 4:
            self.fill()
        size = struct.unpack(">I", self.data[:4])[0]
        while len(self.data) < 4 + size:
            self.fill()
        body, self.data = self.data[4:4 + size], self.data[4 + size:]
        return json.loads(body)

    def answer(self, number):
        """The reply to request NUMBER; what comes in between is dropped."""
        while True:
            message = self.receive()
            if message.get("id") == number or (message.get("id") is None and "error" in message):
                return message

    def call(self, method, params=None, fds=()):
        return self.answer(self.send(method, params, fds))

    def hello(self):
        return self.call("hello", {"protocol": 1, "client": "test"})

    def is_closed_within(self, seconds):
        """Whether the daemon hangs up; what it still says is dropped."""
        end = time.monotonic() + seconds
        try:
            while time.monotonic() < end:
                self.socket.settimeout(max(0.05, end - time.monotonic()))
                self.fill()
        except Closed:
            return True
        except (TimeoutError, socket.timeout):
            return False
        return False


def kind_of(reply):
    """The error kind of a reply, or None for a result."""
    return reply.get("error", {}).get("data", {}).get("kind") if "error" in reply else None
