# SPDX-License-Identifier: Apache-2.0
"""What the tests of the network share: scripts that run inside, and servers outside for them to look for."""

import contextlib
import json
import os
import socket
import threading

import lib
from lib import succeeds

ENGINES = ("native", "bwrap")
MODES = ("system", "user")
ALL = ("system", "user", "root")
ALIAS = "198.18.0.2"

# At the start of every script: t(name, function) notes a result or the name of an errno.
PRELUDE = r'''
import array, ctypes, errno, json, os, select, socket, struct, sys, time
libc = ctypes.CDLL(None, use_errno=True)
said = {}
def t(name, function):
    start = time.monotonic()
    try:
        said[name] = function()
    except socket.gaierror as e:
        said[name] = "EAI %d" % e.errno
    except OSError as e:
        said[name] = errno.errorcode.get(e.errno, str(e) or str(e.errno))
    if time.monotonic() - start > 2:
        said[name] = "hung"
def sc(*arguments):
    ctypes.set_errno(0)
    r = libc.syscall(*[ctypes.c_long(a) if isinstance(a, int) else a for a in arguments])
    return r if r >= 0 else errno.errorcode[ctypes.get_errno()]
def tcp(host, port, family=socket.AF_INET):
    s = socket.socket(family)
    s.settimeout(4)
    s.connect((host, port))
    return "connected"
def udp(host, port, family=socket.AF_INET):
    s = socket.socket(family, socket.SOCK_DGRAM)
    s.sendto(b"out", (host, port))
    return "sent"
'''

# What the kernel says where there is no way.
NO_WAY = {"ENETUNREACH", "EHOSTUNREACH", "ECONNREFUSED", "EPERM", "EACCES", "ENOSYS", "EADDRNOTAVAIL",
          "EINVAL", "EAFNOSUPPORT", "EPROTONOSUPPORT", "ESOCKTNOSUPPORT", "ENODEV", "ENXIO", "ENOENT"}


def inside(daemon, engine, script, place, *options, arguments=(), **more):
    """What SCRIPT said in a job in PLACE."""
    result = daemon.spawn("--engine", engine, *options, "--", "/usr/bin/python3", "-c",
                          PRELUDE + script + "\nprint(json.dumps(said))", *map(str, arguments),
                          cwd=place, **more)
    return json.loads(succeeds(result))


def all_in(said, allowed, what):
    """Every value is one of ALLOWED."""
    wrong = {name: value for name, value in said.items() if value not in allowed}
    if wrong:
        raise AssertionError(f"{what}: {wrong}")


def both(function):
    """The case once for each engine."""
    def run(daemon):
        for engine in ENGINES:
            try:
                function(daemon, engine)
            except Exception as e:
                raise AssertionError(f"engine {engine}: {e}") from e
    run.__name__ = function.__name__
    return run


class Server:
    """Greets everybody who comes, and remembers how many came; also by datagrams."""

    def __init__(self, host="127.0.0.1", port=0, greeting=b"hello from the host"):
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self.listener = socket.create_server((host, port), family=family)
        self.host, self.port = host, self.listener.getsockname()[1]
        self.datagrams = socket.socket(family, socket.SOCK_DGRAM)
        try:
            self.datagrams.bind((host, self.port))
        except OSError:
            self.__exit__()
            raise
        self.greeting, self.visits = greeting, 0
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self.listener.accept()
                self.visits += 1
                with connection, contextlib.suppress(OSError):  # one that left is no reason to serve nobody else
                    connection.sendall(self.greeting)
                    connection.shutdown(socket.SHUT_WR)  # an end, before the reset for what was not read

    def received(self):
        self.datagrams.setblocking(False)
        try:
            return self.datagrams.recv(64)
        except BlockingIOError:
            return b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.listener.close()
        self.datagrams.close()


def at_one_port(stack, *hosts):
    """Servers on all of HOSTS at the same port, which must be free on each."""
    for _ in range(50):
        servers = [Server(hosts[0])]
        try:
            servers += [Server(host, servers[0].port) for host in hosts[1:]]
        except OSError:
            for server in servers:
                server.__exit__()
            continue
        return [stack.enter_context(server) for server in servers]
    raise AssertionError("no port is free everywhere")


# ---- with fsboxd and its proxy -----------------------------------------------------------------

HOSTS = {
    "good.test": "127.0.0.2", "bad.test": "127.0.0.3", "plain.test": "127.0.0.4",
    "wild.test": "127.0.0.5", "a.wild.test": "127.0.0.5", "a.b.wild.test": "127.0.0.5",
    "no.wild.test": "127.0.0.5", "xwild.test": "127.0.0.5", "meta.test": "169.254.169.254",
    "private.test": "10.99.99.99", "local.test": "127.0.0.1", "zero.test": "0.0.0.0",
}


def our_hosts():
    """Names for the servers; only where /etc is a copy of ours."""
    if not lib.IS_ROOT:
        raise lib.Skip("needs root: names come from /etc/hosts")
    with open("/etc/hosts", encoding="utf-8") as file:
        known = file.read()
    missing = [f"{address} {name}\n" for name, address in HOSTS.items() if f" {name}\n" not in known]
    with open("/etc/hosts", "a", encoding="utf-8") as file:
        file.writelines(missing)


def events(daemon):
    """All that was recorded, by daemons of this mode."""
    home = daemon.user.home
    path = {"system": "/var/log/fsbox/events.jsonl", "user": f"{home}/.local/state/fsbox/events.jsonl",
            "root": "/var/log/fsbox-root/events.jsonl"}[daemon.mode]
    if not os.path.exists(path) and daemon.mode == "root":
        path = "/var/lib/fsbox-root/events.jsonl"
    return lib.records(path)


def last_job(daemon):
    return max(e["job"] for e in events(daemon) if e["event"] == "execution.started")


def egress_of(daemon):
    """The processes of fsbox-egress that DAEMON started, its helpers not among them."""
    return [pid for pid in lib.processes("fsbox-egress") if parent(pid) == daemon.process.pid]


def parent(pid):
    with contextlib.suppress(OSError), open(f"/proc/{pid}/stat", encoding="utf-8") as file:
        return int(file.read().rsplit(")", 1)[1].split()[1])
    return 0
