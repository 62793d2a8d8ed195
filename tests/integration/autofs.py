# SPDX-License-Identifier: Apache-2.0
"""A directory whose names are mounted when somebody looks: what automount(8) does, small."""

import contextlib
import fcntl
import os
import struct

import lib

READY, FAIL = 0x9360, 0x9361  # AUTOFS_IOC_*
MISSING = 3  # autofs_ptype_missing_indirect
PACKET_BYTES = 304


def serve(place, pipe, answer):
    """For every name but those that begin with "no": a tmpfs with a file that has it."""
    root = os.open(place, os.O_RDONLY | os.O_DIRECTORY)
    while True:
        packet = os.read(pipe, PACKET_BYTES)
        if len(packet) < PACKET_BYTES:
            return
        kind, token = struct.unpack_from("<iI", packet, 4)
        length = struct.unpack_from("<I", packet, 40)[0]
        name = packet[44:44 + length].decode()
        if kind != MISSING or name.startswith("no"):
            fcntl.ioctl(root, FAIL, token)
            continue
        if not answer:
            continue
        with contextlib.suppress(FileExistsError):
            os.mkdir(f"{place}/{name}")
        lib.mount("-t", "tmpfs", "-o", "mode=0777", "tmpfs", f"{place}/{name}")
        with open(f"{place}/{name}/name", "w", encoding="utf-8") as file:
            file.write(name + "\n")
        fcntl.ioctl(root, READY, token)


@contextlib.contextmanager
def automounted(place, answer=True):
    """@answer: False: it takes every request and never does anything."""
    os.makedirs(place, exist_ok=True)
    reader, writer = os.pipe()
    ready_read, ready_write = os.pipe()
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            os.setpgid(0, 0)  # this group sees the directory as it is
            options = f"fd={writer},pgrp={os.getpgrp()},minproto=5,maxproto=5,indirect"
            lib.mount("-i", "-t", "autofs", "-o", options, "test", place, pass_fds=[writer])
            os.close(writer)
            os.write(ready_write, b"+")
            serve(place, reader, answer)
            status = 0
        finally:
            os._exit(status)
    os.close(writer)
    os.close(reader)
    os.close(ready_write)
    mounted = os.read(ready_read, 1)
    os.close(ready_read)
    try:
        if not mounted:
            raise lib.Skip("this kernel has no autofs")
        yield
    finally:
        # With its server gone nothing hangs any more.
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, 9)
        os.waitpid(pid, 0)
        if mounted:
            lib.sh("umount", "-l", place)
