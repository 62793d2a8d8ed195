# SPDX-License-Identifier: Apache-2.0
"""The network of a job, attacked from inside, in each of its modes and under both engines.

What is inside is Python, so that system calls can be made as they are; it prints one JSON object, which
the case judges. Outside stand servers on loopback addresses of this machine.
"""

import os
import socket
import time

import lib
from lib import case, equal, project, status_is, succeeds
from netlib import ALL, ENGINES, MODES, NO_WAY, PRELUDE, Server, all_in, both, inside

# ---- none: every way that there might be -----------------------------------------------------


NONE = r'''
port, path, own_path = int(sys.argv[1]), sys.argv[2], sys.argv[3]
for host in ("127.0.0.1", "127.0.0.2", "127.1.2.3", "198.18.0.2", "169.254.169.254", "10.0.0.1",
             "192.168.1.1", "100.64.0.1", "1.1.1.1", "198.18.0.1", "198.18.0.3", "224.0.0.1",
             "255.255.255.255", "0.0.0.0"):
    t("tcp " + host, lambda: tcp(host, port))
    t("udp " + host, lambda: udp(host, port))
for host in ("::1", "fe80::1%lo", "::ffff:1.1.1.1", "::ffff:10.0.0.1", "2606:4700:4700::1111",
             "fd00:ec2::254", "64:ff9b::1.1.1.1", "ff02::1"):
    t("tcp " + host, lambda: tcp(host, port, socket.AF_INET6))
    t("udp " + host, lambda: udp(host, port, socket.AF_INET6))
'''

RAW = r'''
for name, arguments in (
    ("icmp", (2, 3, 1)), ("ping", (2, 2, 1)), ("raw", (2, 3, 255)), ("raw 6", (10, 3, 58)),
    ("ping 6", (10, 2, 58)), ("packet", (17, 3, 0x300)), ("packet dgram", (17, 2, 8)),
    ("vsock", (40, 1, 0)), ("vsock dgram", (40, 2, 0)), ("vsock, high bits", (40 | 1 << 32, 1, 0)),
    ("bluetooth", (31, 3, 0)), ("can", (29, 3, 1)), ("alg", (38, 5, 0)), ("tipc", (30, 1, 0)),
    ("rds", (21, 5, 0)), ("smc", (43, 1, 0)), ("xdp", (44, 3, 0)), ("qipcrtr", (42, 2, 0)),
    ("key", (15, 3, 2)), ("nfc", (39, 1, 0)), ("sctp", (2, 1, 132)), ("mptcp", (2, 1, 262)),
    ("dccp", (2, 6, 33)), ("udplite", (2, 2, 136)), ("kcm", (41, 2, 0)), ("caif", (37, 1, 0)),
    ("ieee802154", (36, 3, 0)), ("phonet", (35, 2, 0)), ("pppox", (24, 1, 0)), ("llc", (26, 1, 0)),
    ("ax25", (3, 5, 0)), ("ipx", (4, 2, 0)), ("appletalk", (5, 2, 0)), ("x25", (9, 5, 0)),
    ("iucv", (32, 1, 0)), ("mctp", (45, 2, 0))):
    def go():
        number = sc(41, *arguments)
        if isinstance(number, str):
            return number
        if arguments[0] != 2 or arguments[1] == 3:
            return "made"
        # Of the internet families some are harmless: they end where all others do.
        s = socket.socket(fileno=number)
        try:
            s.settimeout(3)
            s.connect(("1.1.1.1", 53))
            s.send(b"out")
        except OSError as e:
            return errno.errorcode.get(e.errno, str(e))
        return "connected"
    t(name, go)
for protocol in range(32):
    t("netlink %d" % protocol, lambda: sc(41, 16, 3, protocol) if protocol else "EPERM")
t("io_uring_setup", lambda: sc(425, 8, b"\0" * 120))
t("io_uring_enter", lambda: sc(426, 3, 1, 0, 0, 0, 0))
t("io_uring_register", lambda: sc(427, 3, 0, 0, 0))
t("socketpair vsock", lambda: sc(53, 40, 1, 0, b"\0" * 8))
for path in ("/dev/vsock", "/dev/net/tun", "/dev/vhost-net", "/dev/vhost-vsock", "/dev/ppp"):
    t(path, lambda: os.open(path, os.O_RDWR))
'''

ROUTES = r'''
def netlink(kind, flags, body):
    s = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
    s.bind((0, 0))
    s.settimeout(3)
    s.send(struct.pack("=LHHLL", 16 + len(body), kind, flags | 1 | 4, 1, 0) + body)
    answer = s.recv(8192)
    code = struct.unpack("=i", answer[16:20])[0]
    return errno.errorcode.get(-code, "done")
def attribute(kind, data):
    return struct.pack("=HH", 4 + len(data), kind) + data + b"\0" * (-len(data) % 4)
t("new dummy", lambda: netlink(16, 0x600, struct.pack("=BxHiII", 0, 0, 0, 1, 1) + attribute(3, b"d0\0") +
                               attribute(18, attribute(1, b"dummy"))))
t("new veth", lambda: netlink(16, 0x600, struct.pack("=BxHiII", 0, 0, 0, 1, 1) +
                              attribute(18, attribute(1, b"veth"))))
t("address", lambda: netlink(20, 0x600, struct.pack("=BBBBI", 2, 8, 0, 0, 1) +
                             attribute(2, socket.inet_aton("10.0.0.9"))))
t("route", lambda: netlink(24, 0x600, struct.pack("=BBBBBBBBI", 2, 0, 0, 0, 254, 3, 253, 1, 0) +
                           attribute(4, struct.pack("=I", 1))))
t("move lo to pid 1", lambda: netlink(16, 0, struct.pack("=BxHiII", 0, 0, 1, 0, 0) +
                                      attribute(19, struct.pack("=I", 1))))
'''


@case(*ALL)
@both
def r17_none_leads_nowhere(daemon, engine):
    place = project(daemon, "none")
    with Server("0.0.0.0") as server, Server("::") as other:
        for options in ([], ["--net", "none"], ["--profile", "host"]):
            if daemon.mode == "root" and "--profile" in options:
                continue
            for port in (server.port, other.port):
                said = inside(daemon, engine, NONE, place, *options, arguments=[port, "", ""])
                # A datagram to a port of one's own loopback goes, and nobody is there.
                own = {name for name in said if name.startswith("udp") and said[name] == "sent"}
                for name in own:
                    if not name.split()[1].startswith(("127.", "198.18.0.2", "0.0.0.0", "::1")):
                        raise AssertionError(f"{options}: {name} was sent")
                    del said[name]
                all_in(said, NO_WAY, f"{options}")
        equal([server.visits, other.visits, server.received(), other.received()], [0, 0, b"", b""])


@case(*ALL)
@both
def r17_sockets_that_know_no_namespaces(daemon, engine):
    if os.uname().machine != "x86_64":
        raise lib.Skip("numbers are those of x86_64")
    for options in ([], ["--net", "host"]):
        if options and daemon.mode == "root":
            continue
        said = inside(daemon, engine, RAW, project(daemon, "raw"), *options)
        if options:  # internet sockets are the host's; nothing is said of where they lead
            for name in ("ping", "sctp", "mptcp", "dccp", "udplite"):
                said.pop(name)
        all_in(said, NO_WAY | {"EOPNOTSUPP", "ENOTSUP"}, f"{options}")


@case(*ALL)
@both
def r17_nothing_inside_changes_the_network(daemon, engine):
    said = inside(daemon, engine, ROUTES, project(daemon, "routes"))
    all_in(said, NO_WAY | {"EOPNOTSUPP"}, "netlink")
    said = inside(daemon, engine, r'''
said["names"] = sorted(n for _, n in socket.if_nameindex() if not n.startswith(("tunl", "sit", "ip")))
for name in ("ip_forward", "ip_unprivileged_port_start", "ping_group_range", "conf/all/forwarding"):
    t(name, lambda: os.open("/proc/sys/net/ipv4/" + name, os.O_WRONLY))
''', project(daemon, "routes"))
    equal(said.pop("names"), ["lo"])
    all_in(said, {"EACCES", "EROFS", "ENOENT", "EPERM"}, "sysctls")


@case(*ALL)
@both
def r34_programs_that_want_out_fail_at_once(daemon, engine):
    """No time-out of a resolver, of a connection: whoever waits believes in a slow network."""
    place = project(daemon, "fast")
    said = inside(daemon, engine, r'''
for host in ("example.org", "no-such-host.invalid", "localhost.", "1.1.1.1"):
    t(host, lambda: socket.getaddrinfo(host, 80) and "found")
t("connect", lambda: tcp("192.0.2.1", 80))
t("udp", lambda: udp("192.0.2.1", 53))
''', place)
    lacks_hung = [name for name, value in said.items() if value == "hung"]
    equal(lacks_hung, [], "hanging")
    equal(said["connect"], "ENETUNREACH")
    for command in (["curl", "-sS", "https://example.org/"], ["git", "ls-remote", "https://example.org/x"],
                    ["python3", "-c", "import urllib.request as r; r.urlopen('https://example.org')"]):
        start = time.monotonic()
        result = daemon.spawn("--engine", engine, "--timeout", "20s", "--", *command, cwd=place)
        if result.returncode in (0, 124) or time.monotonic() - start > 10:
            raise AssertionError(f"{command}: {time.monotonic() - start:.1f} s, {lib.show(result)}")


@case(*ALL)
@both
def r17_the_loopback_is_a_whole_network(daemon, engine):
    """Servers inside work, also those that ask for addresses in use."""
    said = inside(daemon, engine, r'''
for name in ("localhost", "127.0.0.1"):
    t(name, lambda: sorted({a[4][0] for a in socket.getaddrinfo(
        name, 80, socket.AF_INET, socket.SOCK_STREAM, 0, socket.AI_ADDRCONFIG)}))
for port in (80, 8080):
    def go():
        s = socket.create_server(("127.0.0.1", port))
        c = socket.create_connection(("localhost", port), 2)
        s.accept()[0].send(b"inside")
        return c.recv(9).decode()
    t("serve %d" % port, go)
t("alias", lambda: (socket.create_server(("198.18.0.2", 8081)), tcp("198.18.0.2", 8081))[1])
''', project(daemon, "loopback"))
    wanted = {"localhost": ["127.0.0.1"], "127.0.0.1": ["127.0.0.1"], "serve 80": "inside",
              "serve 8080": "inside", "alias": "connected"}
    if engine == "bwrap" and daemon.mode == "user":  # bwrap's own network is as bwrap makes it
        wanted = {"serve 8080": "inside"}
        said = {"serve 8080": said["serve 8080"]}
    equal(said, wanted)


@case(*MODES)
def r17_loopbacks_of_two_jobs_are_two(daemon):
    place = project(daemon, "two")
    first = daemon.user.popen(
        daemon.command("spawn", "--", "/usr/bin/python3", "-c", PRELUDE + r'''
servers = [socket.create_server((h, 18080)) for h in ("127.0.0.1", "198.18.0.2")]
print("up", flush=True)
sys.stdin.read()
'''), cwd=place, stdin=-1, stdout=-1)
    try:
        equal(first.stdout.readline(), b"up\n")
        for engine in ENGINES:
            said = inside(daemon, engine, r'''
for host in ("127.0.0.1", "198.18.0.2"):
    t(host, lambda: tcp(host, 18080))
''', place)
            all_in(said, NO_WAY, engine)
    finally:
        first.communicate(b"", 10)


# ---- descriptors that belong to another network -----------------------------------------------


@case(*MODES)
@both
def r34_no_socket_of_another_network_as_stdio(daemon, engine):
    """connect() and accept() on an inherited socket happen in the network it was made in."""
    place = project(daemon, "stdio")
    with Server() as server:
        listening = socket.create_server(("127.0.0.1", 0))
        unconnected = socket.socket()
        connected = socket.create_connection(("127.0.0.1", server.port))
        datagram = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        six = socket.socket(socket.AF_INET6)
        unix = socket.socket(socket.AF_UNIX)
        unix_datagram = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        netlink = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
        made = (listening, unconnected, connected, datagram, six, unix, unix_datagram, netlink)
        for number, passed in enumerate(made):
            for place_of in ("stdin", "stdout", "stderr"):
                options = {"stdin": None} if place_of != "stdin" else {}
                result = daemon.spawn("--engine", engine, "--", "/bin/echo", "ran", cwd=place,
                                      **{**options, place_of: passed}) \
                    if place_of != "stderr" else \
                    daemon.user.run(["/bin/sh", "-c", 'exec 3>&2 2>&0; exec "$@" 0</dev/null', "sh",
                                     *daemon.command("spawn", "--engine", engine, "--json", "--",
                                                     "/bin/echo", "ran")], cwd=place, stdin=passed)
                if b"ran" in (result.stdout or b""):
                    raise AssertionError(f"socket {number} as {place_of} went in")
        for one in made:
            one.close()
    # A connection that was set up outside on purpose is a pipe of two directions.
    ours, theirs = socket.socketpair()
    with ours, theirs:
        result = daemon.spawn("--engine", engine, "--", "/bin/cat", cwd=place, stdin=theirs) \
            if not (ours.sendall(b"through"), ours.shutdown(socket.SHUT_WR))[0] else None
        succeeds(result, "through")


# ---- host -------------------------------------------------------------------------------------


@case(*MODES)
@both
def r17_host_shares_the_network_and_no_more(daemon, engine):
    place = project(daemon, "host")
    abstract = socket.socket(socket.AF_UNIX)
    abstract.bind("\0fsbox-network-test")
    abstract.listen()
    with Server() as server, abstract:
        said = inside(daemon, engine, r'''
t("loopback", lambda: socket.create_connection(("127.0.0.1", int(sys.argv[1])), 3).recv(99).decode())
t("abstract", lambda: socket.socket(socket.AF_UNIX).connect("\0fsbox-network-test"))
t("abstract datagram", lambda: socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(
    b"x", "\0fsbox-network-test"))
def own():
    s = socket.socket(socket.AF_UNIX); s.bind("\0fsbox-inside"); s.listen()
    socket.socket(socket.AF_UNIX).connect("\0fsbox-inside")
    return "connected"
t("abstract of its own", own)
for pid in (int(sys.argv[2]), 1):
    t("signal %s" % ("outside" if pid != 1 else 1), lambda: os.kill(pid, 0) if pid != 1 else None)
''', place, "--net", "host", arguments=[server.port, os.getpid()])
        equal(said.pop("loopback"), "hello from the host")
        equal(said.pop("abstract of its own"), "connected")
        equal(said.pop("signal 1"), None)
        all_in(said, {"EPERM", "EACCES", "ESRCH", "ECONNREFUSED"}, "besides the network")
        equal(server.visits, 1)


@case("root")
@both
def r11_root_has_no_network_of_the_host(daemon, engine):
    status_is(daemon.sh("true", "--engine", engine, "--net", "host", cwd=project(daemon, "rooted")), 125,
              "not for jobs of root")


# ---- the cap ----------------------------------------------------------------------------------


@case()
def r11_max_net_caps_what_is_asked_for(_=None):
    for mode in MODES:
        if mode == "system" and not lib.IS_ROOT or mode == "user" and lib.no_user_namespaces():
            continue
        for cap, allowed in (("none", ["none"]), ("proxy", ["none", "proxy"]),
                             ("host", ["none", "proxy", "host"])):
            daemon = lib.make_daemon(mode)
            daemon.start(config=f"max-net = {cap}\n")
            try:
                place = project(daemon, "cap")
                for net in ("none", "proxy", "host"):
                    result = daemon.sh("echo ran", "--net", net, cwd=place)
                    if net in allowed:
                        succeeds(result, "ran\n")
                    else:
                        status_is(result, 125, "max-net")
                if cap == "none":
                    status_is(daemon.sh("true", "--forward", "8080", cwd=place), 125, "max-net")
                    status_is(daemon.sh("true", "--allow-host", "example.org", cwd=place), 125,
                              "max-net")
            finally:
                daemon.stop()


if __name__ == "__main__":
    lib.main()
