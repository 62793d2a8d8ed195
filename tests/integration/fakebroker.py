# SPDX-License-Identifier: Apache-2.0
"""fsboxd with a broker of ours in fsbox-broker's place (--exec-dir), and clients for that broker."""

import os
import select
import shutil
import subprocess
import tempfile

import lib
from lib import User, equal, wait_for

# A client in a process of its own: one that merely changed its ids could not be looked at by a
# daemon without privilege.
TALK = """
import socket, sys
client = socket.socket(socket.AF_UNIX)
client.connect(sys.argv[1])
client.sendall(sys.argv[2].encode() + b"\\n")
while True:
    try:
        data = client.recv(65536)
    except ConnectionResetError:
        break
    if not data:
        break
    sys.stdout.buffer.write(data)
"""

ROLES = ("fsbox-init", "fsbox-recorder", "fsbox-egress")


def exec_dir(broker):
    """A directory with the roles, and BROKER as fsbox-broker."""
    place = tempfile.mkdtemp(prefix="roles.", dir="/run")
    os.chmod(place, 0o755)
    for role in ROLES:
        shutil.copy(os.path.join(lib.BUILD, "daemon", role), place)
    shutil.copy(os.path.join(lib.BUILD, "tests/integration", broker), f"{place}/fsbox-broker")
    return place


class Spawner(lib.Daemon):
    """fsboxd with a broker of ours."""

    def __init__(self, mode, user, broker="mini_broker"):
        super().__init__(mode, user)
        self.place = exec_dir(broker)
        self.ready = -1

    def start(self, *arguments, before=(), **options):
        """@before  words of a command that starts fsboxd in turn"""
        program = f"{self.place}/start"
        with open(program, "w", encoding="ascii") as file:
            file.write(f'#!/bin/sh\nexec {" ".join(before)} {lib.FSBOXD} "$@"\n')
        os.chmod(program, 0o755)
        self.ready, writes = os.pipe()
        try:
            return super().start("--exec-dir", self.place, "--ready-fd", str(writes), *arguments,
                                 program=program, pass_fds=[writes], **options)
        finally:
            os.close(writes)
            os.close(self.ready)

    def wait_until_it_answers(self):
        wait_for(lambda: select.select([self.ready], [], [], 0)[0] or
                 self.process.poll() is not None, 20, "readiness")
        if self.process.poll() is not None:
            raise AssertionError(f"fsboxd ended with {self.process.returncode}: {self.logged()}")

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        try:
            self.stop()
        finally:
            self.forget()

    def forget(self):
        shutil.rmtree(self.place)

    def descriptors(self):
        return lib.descriptors(self.process.pid)

    def children(self):
        path = f"/proc/{self.process.pid}/task/{self.process.pid}/children"
        with open(path, encoding="ascii") as file:
            return [int(pid) for pid in file.read().split()]

    def ask(self, line, user=None, timeout=40):
        """What the broker answers to LINE."""
        return self.answer_of(self.start_asking(line, user), timeout)

    def start_asking(self, line, user=None):
        return (user or self.user).popen(["/usr/bin/python3", "-c", TALK, self.socket, line],
                                         stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    @staticmethod
    def answer_of(client, timeout=40):
        try:
            out, errors = client.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            client.kill()
            raise
        equal(client.returncode, 0, lib.text(errors))
        return lib.text(out)


def spawner(mode, broker="mini_broker"):
    return Spawner(mode, User("root" if mode == "root" else "fsbxa"), broker)
