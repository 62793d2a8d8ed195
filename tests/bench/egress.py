# SPDX-License-Identifier: Apache-2.0
"""fsbox-egress beside no proxy and beside others: throughput, and memory with many connections.

All in one small internet of namespaces (tests/integration/egresslib.py), in turns. As tunnels (CONNECT),
which is what nearly all traffic of programs is.
"""

import contextlib
import os
import resource
import shutil
import socket
import statistics
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "integration"))
import egresslib  # noqa: E402  pylint: disable=wrong-import-position
import lib  # noqa: E402  pylint: disable=wrong-import-position

PORT = 9001
CHUNK = 1 << 20
CONNECTIONS = 1000

TINYPROXY = """Port 8888
Listen 127.0.0.1
Timeout 600
MaxClients 2000
ConnectPort 9001
LogLevel Critical
"""

SQUID = """http_port 127.0.0.1:3129
http_access allow all
cache deny all
cache_log /dev/null
access_log none
pid_filename none
cache_effective_user proxy
shutdown_lifetime 0 seconds
coredump_dir /run
"""


def send_for_ever(conn):
    data = memoryview(bytearray(CHUNK))
    with contextlib.suppress(OSError), conn:
        while True:
            conn.sendall(data)


def serve(ready):
    egresslib.listen(send_for_ever, PORT, "127.0.0.1")
    ready()
    while True:
        time.sleep(1000)


def receive(sock, size):
    """Bytes a second, after a start that is not counted."""
    data = bytearray(CHUNK)
    for _ in range(32):
        sock.recv_into(data)
    start, got = time.monotonic(), 0
    while got < size:
        got += sock.recv_into(data)
    seconds = time.monotonic() - start
    sock.close()
    return got / seconds


def through(sock):
    sock.sendall(f"CONNECT 127.0.0.1:{PORT} HTTP/1.1\r\nHost: 127.0.0.1:{PORT}\r\n\r\n".encode())
    head = b""
    while b"\r\n\r\n" not in head:
        byte = sock.recv(1)
        if not byte:
            raise AssertionError(f"the proxy said {head!r}")
        head += byte
    if b" 200" not in head:
        raise AssertionError(f"the proxy said {head!r}")
    return sock


@contextlib.contextmanager
def other(report, name, config, *arguments):
    """A foreign proxy on the host's loopback; None where it is not installed or does not serve."""
    program = shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/bin")
    if program is None:
        report.skip(name, "not installed")
        yield None
        return
    path = f"/run/{name}.conf"
    with open(path, "w", encoding="utf-8") as file:
        file.write(config)
    port = 8888 if name == "tinyproxy" else 3129
    process = subprocess.Popen([program, *arguments, path], stdin=subprocess.DEVNULL,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def answers():
        with contextlib.suppress(OSError):
            socket.create_connection(("127.0.0.1", port)).close()
            return True
        if process.poll() is not None:
            raise AssertionError(f"ended with {process.returncode}")
        return False

    way = None
    try:
        try:
            lib.wait_for(answers, 20, name)
            way = lambda: through(socket.create_connection(("127.0.0.1", port)))  # noqa: E731
        except AssertionError as error:
            report.skip(name, str(error))
        yield way
    finally:
        process.kill()
        process.wait()


def measure_rates(report, job, quick):
    size = (64 if quick else 768) << 20
    ways = {"direct": lambda: socket.create_connection(("127.0.0.1", PORT)),
            "fsbox-egress": lambda: through(job.connect(3128))}
    with other(report, "tinyproxy", TINYPROXY, "-d", "-c") as tinyproxy, \
            other(report, "squid", SQUID, "-N", "-f") as squid:
        ways.update({name: way for name, way in (("tinyproxy", tinyproxy), ("squid", squid)) if way})
        rates = {name: [] for name in ways}
        for _ in range(3 if quick else 7):
            for name, way in ways.items():
                rates[name].append(receive(way(), size))
    median = {name: statistics.median(found) for name, found in rates.items()}
    report.add(bench="egress-rates", **{name: round(rate) for name, rate in median.items()})
    gib = {name: f"{rate / (1 << 30):.2f} GiB/s" for name, rate in median.items()}
    for name, target in (("direct", 0.5), ("tinyproxy", 2), ("squid", None)):
        if name in rates:
            # Of each round by itself: those who are compared ran one after the other.
            ratios = [ours / theirs for ours, theirs in zip(rates["fsbox-egress"], rates[name])]
            report.row("proxy", f"throughput of a tunnel / {name}", statistics.median(ratios), "x",
                       f"{name} {gib[name]}, ours {gib['fsbox-egress']}", at_least=target)


def measure_connections(report, proxy, job):
    """CONNECTIONS tunnels at once that have all just moved bytes."""
    held = []
    for _ in range(CONNECTIONS):
        sock = job.connect(3128)
        sock.sendall(b"CONNECT 127.0.0.1:7 HTTP/1.1\r\nHost: 127.0.0.1:7\r\n\r\n")
        held.append(sock)
    for sock in held:
        received = b""
        while not received.endswith(b"\r\n\r\n"):
            received += sock.recv(4096)
        sock.sendall(b"x" * 1000)
    for sock in held:
        got = 0
        while got < 1000:
            got += len(sock.recv(4096))
    pids = [proxy.pid, *lib.processes("fsbox-names")]
    report.row("proxy", f"memory with {CONNECTIONS:,} connections",
               egresslib.pss_kib(pids) / 1024, "MiB", "PSS of both processes", at_most=64)
    for sock in held:
        sock.close()


def measure(report, quick):
    """Rows of REPORT. Moves this process into a network of its own."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    egresslib.prepare()
    lib.mount("-t", "tmpfs", "tmpfs", "/dev/shm")  # squid leaves things there
    egresslib.in_network(None, serve)
    proxy = egresslib.Egress()
    job = proxy.begin(allow=["127.0.0.1"])
    measure_connections(report, proxy, job)
    measure_rates(report, job, quick)
    proxy.stop()


def measure_apart(report, quick):
    """measure() in a process of its own, since it moves to another network."""
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            measure(report, quick)
            status = 0
        except (AssertionError, OSError, lib.Skip) as error:
            report.skip("fsbox-egress", str(error))
            status = 0
        finally:
            os._exit(status)
    lib.equal(os.waitpid(pid, 0)[1], 0, "benchmark of fsbox-egress")


def main():
    """Alone: egress.py OUTPUT [--quick], as root, with FSBOX_BUILD."""
    from report import Report, print_table  # pylint: disable=import-outside-toplevel
    lib.enter_private_machine()
    report = Report(sys.argv[1])
    measure(report, "--quick" in sys.argv)
    print_table(report.records())


if __name__ == "__main__":
    main()
