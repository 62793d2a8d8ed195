# SPDX-License-Identifier: Apache-2.0
"""fsbox-egress without fsboxd: a small internet of namespaces, a name server, and played roles.

	internet   network namespace with servers on public, private and metadata addresses
	host       the namespace of this program and of fsbox-egress; routes everything to internet
	job N      one for each job: nothing but loopback, and the listeners that the proxy serves

Needs root, and the private machine of lib.py: its /etc is a copy, so that resolv.conf is ours.
"""

import array
import concurrent.futures
import contextlib
import ctypes
import http.client
import json
import os
import re
import select
import signal
import socket
import struct
import subprocess
import threading
import time

import lib

EGRESS = os.path.join(lib.BUILD, "daemon/fsbox-egress")
EGRESS_UID = 61181
HEADER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../proto/wire/egressop.h")
REASONS = ["allowed", "not-listed", "denied", "closed-address", "bad-host", "bad-request",
           "resolve-failed", "resolve-timeout", "connect-failed", "connect-timeout",
           "upstream-failed", "limit"]
CLASSES = ["public", "unspecified", "multicast", "reserved", "metadata", "loopback", "private",
           "unique-local", "cgnat", "link-local", "tunnel", "host"]
KINDS = ["", "ready", "job-refused", "listener-refused", "allowed", "denied", "failed", "closed",
         "stats"]
HTTP, SOCKS, FORWARD = 1, 2, 3
PORTS = {HTTP: 3128, SOCKS: 1080}

HOST = "93.184.215.2"      # this host's, in the range of public addresses
SERVER = "93.184.216.34"   # public
OTHER = "93.184.216.35"
SERVER6 = "2606:2800:220:1::34"
PRIVATE = "10.7.7.7"
METADATA = "169.254.169.254"
NAMESERVER = "127.0.0.53"

LIBC = ctypes.CDLL(None, use_errno=True)
CLONE_NEWNET = 0x40000000
EVENT = struct.Struct("=II QQQ IIIII BB2s 16s Q 6Q 256s 128s")
LISTENER = struct.Struct("=IIII")


# ---- namespaces ----------------------------------------------------------------------------


def enter_network(name):
    with open(f"/run/netns/{name}", "rb") as file:
        if LIBC.setns(file.fileno(), CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), "setns")


def ip(*arguments, net=None):
    lib.sh("ip", *(["-n", net] if net else []), *arguments)


def build_internet():
    """Once: this process moves into a namespace of its own, next to one with the servers."""
    os.makedirs("/run/netns", exist_ok=True)
    if LIBC.unshare(CLONE_NEWNET) != 0:
        raise lib.Skip("no network namespaces")
    ip("netns", "add", "internet")
    ip("link", "set", "lo", "up")
    ip("link", "set", "lo", "up", net="internet")
    ip("link", "add", "up0", "type", "veth", "peer", "name", "down0", "netns", "internet")
    ip("addr", "add", f"{HOST}/24", "dev", "up0")
    ip("addr", "add", "93.184.215.1/24", "dev", "down0", net="internet")
    ip("addr", "add", "2606:2800:220:2::2/64", "dev", "up0", "nodad")
    ip("addr", "add", "2606:2800:220:2::1/64", "dev", "down0", "nodad", net="internet")
    for address in (SERVER, OTHER, PRIVATE, METADATA, "100.64.1.1", "100.100.100.200",
                    "168.63.129.16"):
        ip("addr", "add", f"{address}/32", "dev", "lo", net="internet")
    for address in (SERVER6, "fd00:ec2::254", "fd12:3456::1"):
        ip("addr", "add", f"{address}/128", "dev", "lo", net="internet")
    for net, name in ((None, "up0"), ("internet", "down0")):
        ip("link", "set", name, "up", net=net)
    ip("route", "add", "default", "via", "93.184.215.1")
    ip("-6", "route", "add", "default", "via", "2606:2800:220:2::1")
    for path in ("/etc/resolv.conf", "/etc/nsswitch.conf", "/etc/hosts"):
        with contextlib.suppress(OSError):
            os.remove(path)
    with open("/etc/resolv.conf", "w", encoding="utf-8") as file:
        file.write(f"nameserver {NAMESERVER}\noptions timeout:3 attempts:1\n")
    with open("/etc/nsswitch.conf", "w", encoding="utf-8") as file:
        file.write("hosts: files dns\npasswd: files\ngroup: files\n")
    with open("/etc/hosts", "w", encoding="utf-8") as file:
        file.write("127.0.0.1 localhost\n::1 localhost ip6-localhost\n")


# ---- servers -------------------------------------------------------------------------------


def read_request(conn):
    """The head, and a body of the length it gives; then what else comes within a moment."""
    data = b""
    conn.settimeout(5)
    while b"\r\n\r\n" not in data:
        more = conn.recv(65536)
        if not more:
            return data
        data += more
    head = data.split(b"\r\n\r\n")[0]
    length = re.search(rb"(?i)\ncontent-length: (\d+)", head)
    wanted = len(head) + 4 + (int(length.group(1)) if length else 0)
    while len(data) < wanted:
        more = conn.recv(65536)
        if not more:
            return data
        data += more
    if b"\ntransfer-encoding: chunked" in head.lower():
        while b"\r\n0\r\n\r\n" not in data:
            more = conn.recv(65536)
            if not more:
                return data
            data += more
    conn.settimeout(0.15)
    with contextlib.suppress(socket.timeout):
        data += conn.recv(65536)
    return data


def answer_request(conn, request):
    """What it was asked, and at which address: in JSON."""
    target = request.split(b" ")[1].decode("latin-1") if b" " in request else ""
    query = target.partition("?")[2]
    extra = ""
    status = "200 OK"
    body = json.dumps({"at": conn.getsockname()[0], "request": request.decode("latin-1")}).encode()
    if target.startswith("/redirect"):
        status, extra = "302 Found", f"Location: {query}\r\n"
    if target.startswith("/big"):
        body = b"x" * int(query)
    if target.startswith("/slow"):
        time.sleep(float(query))
    conn.sendall(f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n{extra}"
                 "Connection: close\r\n\r\n".encode() + body)


def serve_http(conn):
    with contextlib.suppress(OSError), conn:
        request = read_request(conn)
        if request:
            answer_request(conn, request)


def serve_echo(conn):
    """Bytes back, to the end of them; then GOODBYE, so that half-closing shows."""
    with contextlib.suppress(OSError), conn:
        while True:
            data = conn.recv(65536)
            if not data:
                break
            conn.sendall(data)
        conn.sendall(b"GOODBYE")


def listen(handler, port, address="::"):
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    server = socket.socket(family, socket.SOCK_STREAM)
    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if family == socket.AF_INET6:
        server.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
    server.bind((address, port))
    server.listen(1024)

    def loop():
        while True:
            conn, _ = server.accept()
            threading.Thread(target=handler, args=(conn,), daemon=True).start()

    threading.Thread(target=loop, daemon=True).start()
    return server


def in_network(net, function):
    """FUNCTION in a process of its own in NET, until we end; waits until it called ready()."""
    read_end, write_end = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(read_end)
            LIBC.prctl(1, signal.SIGKILL)
            if net:
                enter_network(net)
            function(lambda: os.write(write_end, b"!"))
        finally:
            os._exit(1)
    os.close(write_end)
    lib.equal(os.read(read_end, 1), b"!", f"a server in {net}")
    os.close(read_end)
    return pid


def start_servers(ready):
    listen(serve_http, 80)
    listen(serve_http, 8080)
    listen(serve_echo, 7)
    ready()
    while True:
        time.sleep(1000)


class NameServer:
    """UDP on NAMESERVER. @names: name -> addresses, or a function of the count of questions so far."""

    def __init__(self):
        self.names = {}
        self.asked = {}
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind((NAMESERVER, 53))
        threading.Thread(target=self.loop, daemon=True).start()

    def loop(self):
        while True:
            question, peer = self.socket.recvfrom(4096)
            with contextlib.suppress(Exception):
                answer = self.answer(question)
                if answer:
                    self.socket.sendto(answer, peer)

    def answer(self, question):
        labels, at = [], 12
        while question[at]:
            labels.append(question[at + 1:at + 1 + question[at]].decode("latin-1").lower())
            at += 1 + question[at]
        kind = struct.unpack(">H", question[at + 1:at + 3])[0]
        name = ".".join(labels)
        count = self.asked[name] = self.asked.get(name, 0) + 1
        known = self.names.get(name)
        if callable(known):
            known = known(count)
        if known == "silence":
            return None
        wanted = []
        for address in known or []:
            packed = socket.inet_pton(socket.AF_INET6 if ":" in address else socket.AF_INET, address)
            if kind == (28 if len(packed) == 16 else 1):
                wanted.append(packed)
        head = question[:2] + struct.pack(">HHHHH", 0x8180 | (0 if known is not None else 3), 1,
                                          len(wanted), 0, 0)
        body = question[12:at + 5]
        for packed in wanted:
            body += b"\xc0\x0c" + struct.pack(">HHIH", kind, 1, 0, len(packed)) + packed
        return head + body


# ---- the roles around it -------------------------------------------------------------------


def policy_bytes(allow=(), deny=(), forward=()):
    data = b"fsboxnp1" + struct.pack("<III", len(allow), len(deny), len(forward))
    for entry in [*allow, *deny]:
        data += struct.pack("<H", len(entry)) + entry.encode()
    return data + b"".join(struct.pack("<H", port) for port in sorted(forward))


def sealed(data, seals=0xF):
    fd = os.memfd_create("policy", os.MFD_CLOEXEC | 2)
    os.write(fd, data)
    if seals:
        import fcntl  # pylint: disable=import-outside-toplevel
        fcntl.fcntl(fd, 1033, seals)
    return fd


def send_fds(sock, data, fds):
    sock.sendmsg([data], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else [])


class Egress:
    """The process, with us as fsboxd."""

    def __init__(self, upstream=None, required=False, configure=True, uid=EGRESS_UID):
        theirs, self.link = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.events_fd, events = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self.log = open("/run/egress.log", "w+b")
        self.events = []
        self.job = 0
        self.jobs = []
        self.pid = os.fork()
        if self.pid == 0:
            try:
                os.dup2(os.open("/dev/null", os.O_RDWR), 0)
                os.dup2(self.log.fileno(), 1)
                os.dup2(self.log.fileno(), 2)
                high = [os.dup(fd) for fd in (theirs.fileno(), events)]
                for fd, to in zip(high, (103, 104)):
                    os.dup2(fd, to)
                os.closerange(3, 103)
                os.dup2(103, 3)
                os.dup2(104, 4)
                os.chdir("/")
                os.setsid()
                os.setgroups([])
                os.setresgid(uid, uid, uid)
                os.setresuid(uid, uid, uid)
                os.execve(EGRESS, ["fsbox-egress"], {})
            finally:
                os._exit(127)
        theirs.close()
        os.close(events)
        self.link.shutdown(socket.SHUT_RD)
        if configure:
            kind, host, port = upstream or (0, "", 0)
            self.send(1, 0, struct.pack("=IIII256s", 1, int(required), kind, port, host.encode()))
            self.wait("ready")

    def send(self, kind, job, body=b"", fds=()):
        send_fds(self.link, struct.pack("=IIQ272s", 288, kind, job, body), fds)

    def collect(self):
        """Read what there is of records."""
        while True:
            try:
                data = os.read(self.events_fd, EVENT.size)
            except BlockingIOError:
                return
            if not data:
                return
            f = EVENT.unpack(data)
            lib.equal(f[0], EVENT.size, "size of an event")
            family, address = f[10], f[13]
            self.events.append({
                "kind": KINDS[f[1]], "job": f[2], "connection": f[3], "uid": f[5],
                "via": f[6], "port": f[7], "reason": REASONS[f[8]], "unchecked": bool(f[9] & 1),
                "plain": bool(f[9] & 2), "class": CLASSES[f[11]],
                "address": {4: lambda: socket.inet_ntop(socket.AF_INET, address[:4]),
                            6: lambda: socket.inet_ntop(socket.AF_INET6, address)}.get(
                                family, lambda: "")(),
                "sent": f[18], "received": f[19], "stats": f[15:21],
                "host": f[21].rstrip(b"\0").decode("latin-1"),
                "detail": f[22].rstrip(b"\0").decode("latin-1")})

    def wait(self, kind, seconds=5, **wanted):
        """The next record of KIND with these values; it and those before it are taken away."""
        def find():
            self.collect()
            for i, event in enumerate(self.events):
                if event["kind"] == kind and all(event[k] == v for k, v in wanted.items()):
                    del self.events[:i + 1]
                    return event
            if self.poll() is not None:
                raise AssertionError(f"fsbox-egress ended ({self.poll()}): {self.logged()}")
            return None
        return lib.wait_for(find, seconds, f"record {kind} {wanted} among {self.events}")

    def poll(self):
        if self.pid == 0:
            return self.status
        pid, status = os.waitpid(self.pid, os.WNOHANG)
        if pid == 0:
            return None
        self.pid, self.status = 0, os.waitstatus_to_exitcode(status)
        for line in self.logged().splitlines():
            print(f"# fsbox-egress: {line}")
        return self.status

    def logged(self):
        self.log.seek(0)
        return lib.text(self.log.read())

    def stop(self):
        """End of the link: it ends by itself once no job is left."""
        for job in self.jobs:
            job.init.close()
        self.link.close()
        end = time.monotonic() + 5
        while self.poll() is None and time.monotonic() < end:
            time.sleep(0.01)
        if self.poll() is None:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
            self.pid, self.status = 0, "killed"
        os.close(self.events_fd)
        self.log.close()
        return self.status

    def begin(self, allow=(), deny=(), forward=(), **options):
        """A job with its own network, its listeners sent."""
        self.job += 1
        job = Job(self, self.job, allow, deny, forward, **options)
        self.jobs.append(job)
        return job


class Job:
    """We are its init; and programs inside."""

    count = 0

    def __init__(self, egress, number, allow, deny, forward, connections=2048, idle_ms=0,
                 listeners=True):
        Job.count += 1
        self.egress, self.number = egress, number
        self.net = f"job{Job.count}"
        ip("netns", "add", self.net)
        ip("link", "set", "lo", "up", net=self.net)
        self.inside = concurrent.futures.ThreadPoolExecutor(1, "inside", enter_network, (self.net,))
        theirs, self.init = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        fd = sealed(policy_bytes(allow, deny, forward))
        egress.send(2, number, struct.pack("=IIII", 1000, connections, idle_ms, 0),
                    [fd, theirs.fileno()])
        theirs.close()
        os.close(fd)
        if listeners:
            self.add_listener(HTTP, 0)
            self.add_listener(HTTP, 0, "::1")
            self.add_listener(SOCKS, 0)
            for port in forward:
                self.add_listener(FORWARD, port)

    def socket_inside(self, family=socket.AF_INET, kind=socket.SOCK_STREAM):
        """A socket in the job's network: made by a thread that lives there."""
        return self.inside.submit(socket.socket, family, kind).result()

    def send_listener(self, via, port, fds, size=16, reserved=0):
        send_fds(self.init, LISTENER.pack(16, via, port, reserved)[:size], fds)

    def add_listener(self, via, port, address="127.0.0.1"):
        sock = self.socket_inside(socket.AF_INET6 if ":" in address else socket.AF_INET)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((address, PORTS.get(via, port)))
        sock.listen(1024)
        self.send_listener(via, port, [sock.fileno()])
        sock.close()

    def connect(self, port, timeout=10):
        sock = self.socket_inside()
        sock.settimeout(timeout)
        sock.connect(("127.0.0.1", port))
        return sock

    def raw(self, data, port=3128, timeout=10, pieces=None):
        """Send DATA (or its pieces, one after the other), read to the end."""
        with self.connect(port, timeout) as sock:
            for piece in [data] if pieces is None else pieces:
                sock.sendall(piece)
                if pieces is not None:
                    time.sleep(0.01)
            answer = b""
            with contextlib.suppress(ConnectionResetError):
                while True:
                    more = sock.recv(65536)
                    if not more:
                        break
                    answer += more
            return answer

    def http(self, data, **options):
        """Status and body of the first answer to DATA."""
        answer = self.raw(data.encode("latin-1") if isinstance(data, str) else data, **options)
        head, _, body = answer.partition(b"\r\n\r\n")
        if not head.startswith(b"HTTP/1."):
            return 0, answer.decode("latin-1")
        return int(head.split(b" ")[1]), body.decode("latin-1")

    def get(self, url, host=None, extra="", **options):
        authority = url.split("/")[2] if host is None else host
        return self.http(f"GET {url} HTTP/1.1\r\nHost: {authority}\r\n{extra}\r\n", **options)

    def connect_to(self, target):
        """CONNECT, and GET / through it: the status of CONNECT, and what the server saw."""
        with self.connect(3128) as sock:
            sock.sendall(f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n".encode("latin-1"))
            head = b""
            while b"\r\n\r\n" not in head:
                more = sock.recv(65536)
                if not more:
                    break
                head += more
            status = int(head.split(b" ")[1]) if head.startswith(b"HTTP/1.") else 0
            if status != 200:
                return status, head.decode("latin-1")
            sock.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            answer = http.client.HTTPResponse(sock)
            answer.begin()
            return status, json.loads(answer.read())

    def socks(self, address, port, payload=b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"):
        """SOCKS5 with ADDRESS as its bytes with type: the reply code, and the server's answer."""
        request = b"\x05\x01\x00" + b"\x05\x01\x00" + address + struct.pack(">H", port)
        answer = self.raw(request + payload, port=1080)
        if len(answer) < 4:
            return -1, answer
        return answer[3], answer[12:]

    def command(self, user, *command):
        """COMMAND as USER inside the job's network."""
        return ["nsenter", f"--net=/run/netns/{self.net}", "setpriv", f"--reuid={user.uid}",
                f"--regid={user.gid}", "--clear-groups", "--no-new-privs", *command]

    def run(self, *command, env=None, timeout=60, cwd=None):
        user = lib.User("fsbxa")
        environment = {**user.environment(), **(env or {})}
        return subprocess.run(self.command(user, *command), env=environment, cwd=cwd or user.home,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, timeout=timeout, check=False)

    def proxy_environment(self):
        http_proxy = "http://127.0.0.1:3128"
        return {"http_proxy": http_proxy, "https_proxy": http_proxy, "HTTP_PROXY": http_proxy,
                "HTTPS_PROXY": http_proxy, "ALL_PROXY": "socks5h://127.0.0.1:1080"}

    def end(self):
        self.init.close()


def name_type(name):
    data = name.encode("latin-1")
    return bytes([3, len(data)]) + data


def v4_type(address):
    return b"\x01" + socket.inet_aton(address)


def v6_type(address):
    return b"\x04" + socket.inet_pton(socket.AF_INET6, address)


def pss_kib(pids):
    total = 0
    for pid in pids:
        with open(f"/proc/{pid}/smaps_rollup", encoding="utf-8") as file:
            total += int(re.search(r"^Pss:\s+(\d+)", file.read(), re.M).group(1))
    return total


def readable(sock, seconds):
    return bool(select.select([sock], [], [], seconds)[0])


NAMES = None


def reachable(address):
    try:
        socket.create_connection((address, 80), 1).close()
    except OSError:
        return False
    return True


def prepare():
    """The small internet; called once, before the cases."""
    global NAMES  # pylint: disable=global-statement
    if NAMES:
        return NAMES
    build_internet()
    in_network("internet", start_servers)
    in_network(None, start_servers)
    # The first packets over a fresh link may be lost, and an address that is slow is not taken.
    for address in (SERVER, SERVER6):
        lib.wait_for(lambda a=address: reachable(a), 20, f"the way to {address}")
    NAMES = NameServer()
    NAMES.names.update({
        "good.test": [SERVER],
        "other.test": [OTHER],
        "six.test": [SERVER6],
        "both.test": [SERVER6, SERVER],
        "dead6.test": ["2606:2800:dead::1", SERVER],
        "sub.wild.test": [SERVER],
        "wild.test": [SERVER],
        "loop.test": ["127.0.0.1"],
        "loop6.test": ["::1"],
        "mapped.test": ["::ffff:127.0.0.1"],
        "nat64.test": ["64:ff9b::7f00:1"],
        "sixtofour.test": ["2002:7f00:1::1"],
        "teredo.test": ["2001:0:7f00:1::1"],
        "private.test": [PRIVATE],
        "ula.test": ["fd12:3456::1"],
        "cgnat.test": ["100.64.1.1"],
        "metadata.test": [METADATA],
        "azure.test": ["168.63.129.16"],
        "ec2six.test": ["fd00:ec2::254"],
        "zero.test": ["0.0.0.0"],
        "host.test": [HOST],
        "mixed.test": ["127.0.0.1", PRIVATE, SERVER],
        "silent.test": "silence",
    })
    return NAMES
