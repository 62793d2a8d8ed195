# SPDX-License-Identifier: Apache-2.0
"""A file system that does not answer when it should."""

import contextlib
import ctypes
import os
import select
import struct
import threading

import lib


class SlowFileSystem:
    """A FUSE directory of empty directories that answers everybody but those that are like fsboxd."""

    def __init__(self, place, user):
        self.place = place
        try:
            self.fd = os.open("/dev/fuse", os.O_RDWR)
        except OSError as error:
            raise lib.Skip(f"no FUSE here: {error}") from None
        os.makedirs(place, exist_ok=True)
        libc = ctypes.CDLL(None, use_errno=True)
        options = f"fd={self.fd},rootmode=40000,user_id={user.uid},group_id={user.gid},allow_other"
        if libc.mount(b"slow", place.encode(), b"fuse", 0, options.encode()) != 0:
            raise lib.Skip(f"no FUSE here: {os.strerror(ctypes.get_errno())}")
        os.set_blocking(self.fd, False)
        self.held = []
        self.hold = True
        self.ended = False
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    @staticmethod
    def is_ours(pid):
        with contextlib.suppress(OSError):
            with open(f"/proc/{pid}/comm", encoding="utf-8") as file:
                return file.read().strip() in ("fsboxd", "fsbox-builder")
        return True  # in a pid namespace that is not known here yet

    def answer(self, unique, opcode, node, name):
        body = b""
        error = 0
        attributes = struct.pack("<QQQQQQIIIIIIIIII", node, 0, 0, 0, 0, 0, 0, 0, 0, 0o40777, 2,
                                 0, 0, 0, 4096, 0)
        if opcode == 26:  # INIT
            body = struct.pack("<IIIIHHIIHHI28x", 7, 31, 1 << 17, 0, 12, 10, 1 << 17, 1, 0, 0, 0)
        elif opcode == 1:  # LOOKUP: each name is a directory; believed for no time at all
            node = 2 + sum(name) * 7 + len(name)
            attributes = struct.pack("<Q", node) + attributes[8:]
            body = struct.pack("<QQQQII", node, 0, 0, 0, 0, 0) + attributes
        elif opcode == 3:  # GETATTR
            body = struct.pack("<QII", 0, 0, 0) + attributes
        elif opcode in (27, 14):  # OPENDIR, OPEN
            body = struct.pack("<QII", 0, 0, 0)
        elif opcode in (2, 42, 36):  # FORGET, BATCH_FORGET, INTERRUPT
            return
        elif opcode not in (28, 29, 18, 25, 34):
            error = -38
        os.write(self.fd, struct.pack("<IiQ", 16 + len(body), error, unique) + body)

    def release(self):
        """From now on everybody is answered, those that wait as well."""
        self.hold = False

    def serve(self):
        try:
            while not self.ended:
                if not self.hold:
                    while self.held:
                        with contextlib.suppress(FileNotFoundError):
                            self.answer(*self.held.pop())
                if not select.select([self.fd], [], [], 0.05)[0]:
                    continue
                try:
                    request = os.read(self.fd, 1 << 18)
                except BlockingIOError:
                    continue  # who asked was killed meanwhile
                _, opcode, unique, node, _, _, pid = struct.unpack("<IIQQIII", request[:36])
                wanted = (unique, opcode, node, request[40:].rstrip(b"\0"))
                if self.hold and opcode in (1, 3) and self.is_ours(pid):
                    self.held.append(wanted)
                else:
                    with contextlib.suppress(FileNotFoundError):
                        self.answer(*wanted)
        except OSError:
            pass

    def close(self):
        lib.sh("umount", "-l", self.place)
        self.ended = True
        self.thread.join()
        os.close(self.fd)


@contextlib.contextmanager
def slow_file_system(daemon, name):
    slow = SlowFileSystem(f"/run/{name}", daemon.user)
    try:
        yield slow
    finally:
        slow.close()
