# SPDX-License-Identifier: Apache-2.0
"""Jobs that may reach some hosts and no others, as a whole: fsboxctl, broker, fsboxd, pid 1, fsbox-egress.

The proxy's parsers, look-ups and relays are attacked by test_egress.py; here is what only the whole can
get wrong: whose list is asked, what is left beside the proxy, what happens when one of them dies. The
servers stand on loopback addresses of this machine under names of our own /etc/hosts.
"""

import contextlib
import json
import os
import signal
import socket
import time

import lib
from fakebroker import Spawner
from lib import User, case, contains, equal, project, status_is, status_of, succeeds, wait_for
from netlib import (ALL, ENGINES, HOSTS, MODES, NO_WAY, Server, all_in, at_one_port, both, egress_of, events,
                    inside, last_job, our_hosts)

EGRESS_UID = 61181
# At the start of scripts: ways to ask the proxies for something, told as what came of it.
PROXY = r'''
def exchange(port, data, more=b"", wait=3):
    s = socket.create_connection(("127.0.0.1", port), 3)
    s.settimeout(wait)
    s.sendall(data)
    got = b""
    try:
        while more is not None:
            piece = s.recv(4096)
            if not piece: break
            got += piece
            if more and b"\r\n\r\n" in got:
                s.sendall(more); more = b""
    except (TimeoutError, ConnectionResetError): pass
    return got
def told(got):
    if b"hello from" in got: return "reached"
    line = got.split(b"\r\n")[0].decode("latin-1")
    return line.split(" ")[1] if line.startswith("HTTP/") else "nothing" if not got else got[:40].hex()
def connect(authority, host=None):
    head = "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n" % (authority, host or authority)
    return told(exchange(3128, head.encode("latin-1")))
def get(url, host):
    return told(exchange(3128, ("GET %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n" % (url, host)).encode()))
def socks(kind, address, port, command=1, version=5):
    s = socket.create_connection(("127.0.0.1", 1080), 3)
    s.settimeout(3)
    try:
        if version == 4:
            s.sendall(struct.pack("!BBH", 4, 1, port) + socket.inet_aton(address) + b"u\0")
            answer = s.recv(64)
            return "nothing" if not answer else "4:%d" % answer[1]
        s.sendall(b"\5\1\0")
        if s.recv(2) != b"\5\0": return "no method"
        data = {1: lambda: socket.inet_aton(address), 4: lambda: socket.inet_pton(socket.AF_INET6, address),
                3: lambda: bytes([len(address)]) + address.encode("latin-1")}[kind]()
        s.sendall(bytes([5, command, 0, kind]) + data + struct.pack("!H", port))
        answer = s.recv(64)
        if not answer: return "nothing"
        if answer[1] != 0: return "5:%d" % answer[1]
        return told(answer[10:] + s.recv(64))
    except (TimeoutError, ConnectionResetError):
        return "nothing"
'''


# ---- only what the list allows -----------------------------------------------------------------


@case(*ALL)
@both
def r34_only_what_the_list_allows(daemon, engine):
    our_hosts()
    with contextlib.ExitStack() as stack:
        good, wild, *rest = at_one_port(stack, *(f"127.0.0.{n}" for n in (2, 5, 1, 3, 4)))
        other = stack.enter_context(Server("127.0.0.2"))
        port = good.port
        said = inside(daemon, engine, PROXY + r'''
port, other = int(sys.argv[1]), int(sys.argv[2])
for host in ("good.test", "GOOD.test", "good.test.", "a.wild.test", "a.b.wild.test"):
    t("+ connect " + host, lambda: connect("%s:%d" % (host, port)))
    t("+ get " + host, lambda: get("http://%s:%d/" % (host, port), "%s:%d" % (host, port)))
for host in ("good.test", "a.wild.test"):
    t("+ socks " + host, lambda: socks(3, host, port))
for host in ("bad.test", "local.test", "plain.test", "wild.test", "xwild.test", "no.wild.test", "meta.test",
             "private.test", "zero.test", "localhost", "127.0.0.1", "127.0.0.2", "127.2", "0x7f000002",
             "2130706434", "0177.0.0.2", "127.0.0.02", "[::ffff:127.0.0.2]", "[::ffff:7f00:2]", "[::1]", "0",
             "0.0.0.0", "169.254.169.254", "10.99.99.99", "good.test@bad.test", "x:y@good.test",
             "good.test%00.bad.test", "good.test..", ".good.test", "good..test", "good.test:80@bad.test",
             "g\xf6\xf6d.test", "xn--good.test", "*.wild.test", "good.test,bad.test", "good.test/bad.test",
             "198.18.0.2"):
    t("- connect " + host, lambda: connect("%s:%d" % (host, port)))
    t("- get " + host, lambda: get("http://%s:%d/" % (host, port), "%s:%d" % (host, port)))
    if len(host) < 64:
        t("- socks " + host, lambda: socks(3, host, port))
for p in (other, 22, 0, 65536, -1):
    t("- connect port %d" % p, lambda: connect("good.test:%d" % p))
t("- connect without port", lambda: connect("good.test"))
for host in ("127.0.0.2", "127.0.0.1", "10.99.99.99", "169.254.169.254"):
    t("- socks 4 " + host, lambda: socks(1, host, port))
    t("- socks version 4 " + host, lambda: socks(1, host, port, version=4))
for host in ("::ffff:127.0.0.2", "::1"):
    t("- socks 6 " + host, lambda: socks(4, host, port))
t("- socks bind", lambda: socks(3, "good.test", port, command=2))
t("- socks udp", lambda: socks(3, "good.test", port, command=3))
t("- get, other Host", lambda: get("http://good.test:%d/" % port, "bad.test:%d" % port))
t("- connect, other Host", lambda: connect("good.test:%d" % port, "bad.test:%d" % port))
t("- origin form", lambda: get("/", "good.test:%d" % port))
t("- https url", lambda: get("https://good.test:%d/" % port, "good.test:%d" % port))
t("- file url", lambda: get("file:///etc/passwd", "good.test"))
''', project(daemon, "list"), "--net", "proxy", "--allow-host", f"good.test:{port}+private",
                      "--allow-host", "*.wild.test+private", "--deny-host", "no.wild.test",
                      "--allow-host", "plain.test", "--allow-host", "meta.test+private",
                      "--allow-host", "zero.test+private", arguments=[port, other.port], timeout=120)
        all_in({n: v for n, v in said.items() if n[0] == "+"}, {"reached"}, "allowed")
        all_in({n: v for n, v in said.items() if n[0] == "-"},
               {"403", "400", "405", "501", "5:2", "5:7", "5:8", "4:255"}, "refused")
        equal([s.visits for s in (other, *rest)], [0] * 4, "servers that nobody may reach")
        equal((good.visits > 0, wild.visits > 0), (True, True))


@case(*MODES)
@both
def r34_smuggled_requests_reach_nobody(daemon, engine):
    our_hosts()
    with contextlib.ExitStack() as stack:
        good, bad = at_one_port(stack, "127.0.0.2", "127.0.0.3")
        inside(daemon, engine, PROXY + r'''
port = sys.argv[1]
second = "GET http://bad.test:%s/ HTTP/1.1\r\nHost: bad.test:%s\r\n\r\n" % (port, port)
for fields in ("Content-Length: 0\r\n", "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n",
               "Content-Length: 0\r\nContent-Length: 5\r\n", "Transfer-Encoding: xchunked\r\n",
               "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n", " Content-Length: 4\r\n",
               "Connection: keep-alive\r\n", "Expect: 100-continue\r\nContent-Length: 4\r\n",
               "X: a\nHost: bad.test:%s\r\n" % port, "Host: bad.test:%s\r\n" % port,
               "Upgrade: h2c\r\nConnection: Upgrade\r\n"):
    head = "POST http://good.test:%s/ HTTP/1.1\r\nHost: good.test:%s\r\n%s\r\n" % (port, port, fields)
    exchange(3128, (head + "0\r\n\r\n" + second).encode(), wait=0.5)
    exchange(3128, (head + second).encode(), wait=0.5)
''', project(daemon, "smuggle"), "--allow-host", f"good.test:{good.port}+private", arguments=[good.port],
               timeout=120)
        equal(bad.visits, 0)


@case(*ALL)
@both
def r34_each_refusal_is_an_event(daemon, engine):
    our_hosts()
    with Server("127.0.0.2") as good:
        port = good.port
        inside(daemon, engine, PROXY + r'''
port = int(sys.argv[1])
connect("good.test:%d" % port)
connect("bad.test:%d" % port)
get("http://plain.test:%d/" % port, "plain.test:%d" % port)
socks(3, "no.wild.test", port)
connect("0x7f000002:%d" % port)
''', project(daemon, "events"), "--allow-host", "*.wild.test", "--deny-host", "no.wild.test",
               "--allow-host", "plain.test", "--allow-host", f"good.test:{port}+private", arguments=[port])
    job = last_job(daemon)

    def of_job():
        found = [e for e in events(daemon) if e.get("job") == job and e["event"].startswith("egress.")]
        return found if len(found) >= 6 else None
    found = wait_for(of_job, 10, "six events")
    # What is no host is told in words.
    equal({(e["event"], e["host"] if e.get("reason") != "bad-host" else "", e["via"], e.get("reason"))
           for e in found},
          {("egress.allowed", "good.test", "http", None), ("egress.closed", "good.test", "http", None),
           ("egress.denied", "bad.test", "http", "not-listed"),
           ("egress.denied", "plain.test", "http", "closed-address"),
           ("egress.denied", "no.wild.test", "socks", "denied"),
           ("egress.denied", "", "http", "bad-host")})
    equal({e["uid"] for e in found}, {daemon.user.uid})


@case(*ALL)
@both
def r34_nothing_leads_out_beside_the_proxy(daemon, engine):
    our_hosts()
    with Server("127.0.0.2") as good, Server("0.0.0.0") as every:
        said = inside(daemon, engine, r'''
good, every = int(sys.argv[1]), int(sys.argv[2])
for host in ("127.0.0.1", "127.0.0.2", "198.18.0.2", "10.0.0.1", "169.254.169.254", "192.0.2.1", "1.1.1.1"):
    for port in (good, every, 53, 80):
        t("tcp %s %d" % (host, port), lambda: tcp(host, port))
for host in ("192.0.2.1", "1.1.1.1", "10.0.0.1"):
    t("udp " + host, lambda: udp(host, 53))
for port in (3128, 1080):
    for host in ("198.18.0.2", "127.0.0.2"):
        t("proxy at %s %d" % (host, port), lambda: tcp(host, port))
''', project(daemon, "beside"), "--allow-host", f"good.test:{good.port}+private",
                      arguments=[good.port, every.port])
        all_in(said, NO_WAY, "beside the proxy")
        equal([good.visits, every.visits], [0, 0])


@case(*ALL)
@both
def r34_programs_that_ignore_the_proxy_fail_at_once(daemon, engine):
    our_hosts()
    with Server("127.0.0.2") as good:
        start = time.monotonic()
        for command in ("curl -sS --noproxy '*' http://good.test:%d/", "env -i /usr/bin/curl -sS http://good.test:%d/",
                        "python3 -c 'import socket; socket.create_connection((\"good.test\", %d))'"):
            result = daemon.sh(command % good.port, "--engine", engine, "--allow-host",
                               f"good.test:{good.port}+private", "--timeout", "20s",
                               cwd=project(daemon, "ignore"))
            if result.returncode in (0, 124):
                raise AssertionError(f"{command}: {lib.show(result)}")
        if time.monotonic() - start > 10:
            raise AssertionError(f"took {time.monotonic() - start:.1f} s")
        equal(good.visits, 0)


# ---- ports of the host --------------------------------------------------------------------------


@case(*ALL)
@both
def r34_a_forwarded_port_is_that_port_alone(daemon, engine):
    place = project(daemon, "forward")
    with contextlib.ExitStack() as stack, Server() as other, Server("::1") as six:
        server, second = at_one_port(stack, "127.0.0.1", "127.0.0.2")
        script = r'''
for host, port in [a.rsplit(" ", 1) for a in sys.argv[1:]]:
    def go():
        s = socket.create_connection((host, int(port)), 3)
        return s.recv(99).decode() or "closed"
    t("%s %s" % (host, port), go)
'''
        ways = [f"{h} {p}" for h, p in (("127.0.0.1", server.port), ("localhost", server.port),
                                        ("127.0.0.1", other.port), ("127.0.0.2", server.port),
                                        ("198.18.0.2", server.port), ("::1", six.port))]
        for options in (["--net", "none"], ["--net", "proxy"], []):
            said = inside(daemon, engine, script, place, *options, "--forward", str(server.port),
                          arguments=ways)
            for way in ways[:2]:
                equal(said.pop(way), "hello from the host", f"{options}: {way}")
            all_in(said, NO_WAY, f"{options}")
        # Forwarded, and nobody listens there outside.
        said = inside(daemon, engine, script, place, "--forward", str(six.port), arguments=[ways[-1]])
        all_in(said, NO_WAY | {"closed"}, "only on [::1]")
        equal([other.visits, second.visits, six.visits], [0, 0, 0])
    job = last_job(daemon)
    for ports in (["3128"], ["1080"]):
        status_is(daemon.sh("true", "--forward", *ports, cwd=place), 125, "own proxy")
    for port in ("0", "65536", "x", "-1", ""):
        status_is(daemon.sh("true", f"--forward={port}", cwd=place), 125, "port")
    equal(last_job(daemon), job, "refused requests start nothing")


@case(*MODES)
def r13_forwarded_ports_and_entries_are_bounded(daemon):
    place = project(daemon, "bounds")
    many = [x for n in range(64) for x in ("--forward", str(20000 + n))]
    succeeds(daemon.sh("echo ran", *many, cwd=place), "ran\n")
    status_is(daemon.sh("true", *many, "--forward", "30000", cwd=place), 125)
    status_is(daemon.sh("true", "--allow-host", "x" * 400, cwd=place), 125)
    status_is(daemon.sh("true", "--allow-host", "*", cwd=place), 125, "params.net.allow")
    profile = daemon.user.write(f"{place}/many.json", json.dumps(
        {"extends": "generic", "net": {"allow": [f"h{n}.example.org" for n in range(4096)]}}))
    succeeds(daemon.sh("echo ran", "--profile", profile, cwd=place), "ran\n")
    status_is(daemon.sh("true", "--profile", profile, "--allow-host", "one.more", cwd=place), 125)


# ---- whose list is asked ------------------------------------------------------------------------


@case("system")
def r33_nobody_uses_the_proxy_of_another(daemon):
    our_hosts()
    with Server("127.0.0.2") as good:
        entry = f"good.test:{good.port}+private"
        first = daemon.user.popen(
            daemon.command("spawn", "--allow-host", entry, "--", "/bin/sh", "-c", "echo up; read x"),
            cwd=project(daemon, "first"), stdin=-1, stdout=-1)
        try:
            equal(first.stdout.readline(), b"up\n")
            script = PROXY + 't("connect", lambda: connect("good.test:%s" % sys.argv[1]))\n' \
                             't("socks", lambda: socks(3, "good.test", int(sys.argv[1])))\n'
            second = User("fsbxb")
            place = lib.project(lib.Daemon("system", second), "second")
            for options, wanted in ((["--net", "none"], {"ECONNREFUSED"}),
                                    (["--net", "proxy"], {"403", "5:2"}),
                                    (["--allow-host", "other.test"], {"403", "5:2"})):
                for engine in ENGINES:
                    all_in(inside(daemon, engine, script, place, *options, arguments=[good.port],
                                  user=second), wanted, f"{engine} {options}")
            equal(good.visits, 0)
        finally:
            first.communicate(b"\n", 30)


@case(*MODES)
@both
def r33_the_command_gets_no_descriptor_of_the_proxy(daemon, engine):
    said = inside(daemon, engine, r'''
said["own"] = sorted(map(int, os.listdir("/proc/self/fd")))[:-1]
t("pid 1", lambda: os.listdir("/proc/1/fd"))
def again(port):
    return socket.create_server(("127.0.0.1", port)) and "mine"
for port in (3128, 1080):
    t("port %d" % port, lambda: again(port))
''', project(daemon, "fds"), "--allow-host", "example.org")
    equal(said, {"own": [0, 1, 2], "pid 1": "EACCES", "port 3128": "EADDRINUSE",
                 "port 1080": "EADDRINUSE"})


@case(*MODES)
def why_names_the_entry(daemon):
    place = project(daemon, "why")
    profile = daemon.user.write(f"{place}/p.json", '{"extends": "generic", "net": {"allow": ["*.example.org"]}}')
    options = ["--profile", profile, "--deny-host", "bad.example.org"]
    for host, status, words in (
            ("www.example.org", 0, ["allowed", "*.example.org", "profile"]),
            ("https://www.example.org/a/b", 0, ["allowed", "*.example.org"]),
            ("bad.example.org:80", 1, ["denied", "bad.example.org", "request"]),
            ("example.net", 1, ["denied", "--allow-host 'example.net'"]),
            ("127.0.0.1:80", 1, ["--forward 80"])):
        result = daemon.ctl("why", *options, host, cwd=place)
        equal(result.returncode, status, lib.show(result))
        for word in words:
            contains(result.stdout, word, host)
    contains(daemon.ctl("why", "example.org", cwd=place).stdout, "no network")
    contains(daemon.ctl("why", "--net", "host", "example.org", cwd=place).stdout, "every host")
    # About a job that runs, and paths as before.
    job = text_of(daemon.detach("--allow-host", "here.example", "--", "sleep", "60", cwd=place), daemon)
    try:
        contains(daemon.ctl("why", job, "here.example", cwd=place).stdout, "allowed")
        equal(daemon.ctl("why", job, "there.example", cwd=place).returncode, 1)
    finally:
        daemon.ctl("signal", job, "KILL")
    daemon.user.write(f"{place}/a.file", "")
    contains(daemon.ctl("why", "a.file", cwd=place).stdout, "readWrite")
    contains(daemon.ctl("why", "./no.such", cwd=place).stdout, "readWrite")


def text_of(result, daemon):
    succeeds(result)
    return str(wait_for(daemon.jobs, 10, "a job")[-1]["job"])


# ---- a broker that wants more -----------------------------------------------------------------


@case(root=True)
def r11_what_a_broker_asks_for_is_checked_by_fsboxd():
    fsboxd = Spawner("system", User("fsbxa"), "net_broker")
    fsboxd.start(config="max-net = proxy\n")
    try:
        lines = fsboxd.ask("", timeout=120).strip().split("\n")
        said = {line.split(": ")[0]: line.split(": ")[1].split(" ")[0] for line in lines}
        bent = [line for line in lines if line.startswith("bent: ")]
        wrong = [line for line in bent if not line.startswith(("bent: bad-frame ", "bent: ran"))]
        equal(wrong, [], "bent policies")
        del said["bent"]
        equal(said, {"good": "ran", "none with a policy": "policy-invalid",
                     "host with a policy": "not-authorized", "host": "not-authorized",
                     "proxy without": "policy-invalid", "called denied": "policy-invalid",
                     "cut": "bad-frame", "announced longer": "bad-frame",
                     "announced shorter": "bad-frame", "noise": "bad-frame"})
        equal((lines[0], lines[-1], fsboxd.process.poll()), ("good: ran", "good: ran", None))
    finally:
        fsboxd.stop()


# ---- the process --------------------------------------------------------------------------------


@case(*ALL)
def r33_fsbox_egress_is_nobody_with_nothing(daemon):
    succeeds(daemon.sh("true", "--net", "proxy", cwd=project(daemon, "role")))
    pid = wait_for(lambda: egress_of(daemon), 10, "fsbox-egress")[0]
    status = status_of(pid)
    uid = daemon.user.uid if daemon.mode == "user" else EGRESS_UID
    equal(status["Uid"].split(), [str(uid)] * 4)
    if daemon.mode != "user":
        equal((status["Gid"].split(), status["Groups"].split()), ([str(EGRESS_UID)] * 4, []))
    equal([status[f"Cap{s}"] for s in ("Inh", "Prm", "Eff", "Amb")], ["0" * 16] * 4)
    equal((status["NoNewPrivs"], status["Seccomp"]), ("1", "2"))
    with open(f"/proc/{pid}/environ", "rb") as file:
        equal(file.read().strip(b"\0"), b"", "environment")


@case(*MODES)
@both
def r33_killed_it_fails_closed_and_comes_back(daemon, engine):
    our_hosts()
    with Server("127.0.0.2") as good:
        options = ["--engine", engine, "--allow-host", f"good.test:{good.port}+private"]
        script = r'''
import socket, sys, time
def ask():
    try:
        s = socket.create_connection(("127.0.0.1", 3128), 3)
        s.settimeout(3)
        s.sendall(b"CONNECT good.test:%d HTTP/1.1\r\nHost: good.test\r\n\r\n" % int(sys.argv[1]))
        return s.recv(12)[9:12].decode() or "closed"
    except OSError as e:
        return type(e).__name__
print(ask(), flush=True)
sys.stdin.readline()
start = time.monotonic()
print(ask(), time.monotonic() - start < 2, flush=True)
'''
        place = project(daemon, "killed")
        job = daemon.user.popen(daemon.command("spawn", *options, "--", "/usr/bin/python3", "-c", script,
                                               str(good.port)), cwd=place, stdin=-1, stdout=-1)
        try:
            equal(job.stdout.readline(), b"200\n")
            before = wait_for(lambda: egress_of(daemon), 10, "fsbox-egress")
            equal(len(before), 1, "one for all")
            os.kill(before[0], signal.SIGKILL)
            wait_for(lambda: not egress_of(daemon), 10, "its end")
            job.stdin.write(b"\n")
            job.stdin.flush()
            equal(job.stdout.readline(), b"ConnectionRefusedError True\n")
        finally:
            job.communicate(timeout=30)
        died = [e["detail"] for e in events(daemon) if e["event"] == "role.died"]
        contains(" ".join(died), "fsbox-egress")

        def works():
            result = daemon.spawn(*options, "--", "/usr/bin/curl", "-sS", "-p", "--http0.9",
                                  f"http://good.test:{good.port}/", cwd=place)
            return result.stdout == b"hello from the host"
        wait_for(works, 10, "another one")
        wait_for(lambda: len(egress_of(daemon)) == 1, 10, "one again")


@case(*MODES)
@both
def where_a_job_may_go_is_shown(daemon, engine):
    place = project(daemon, "shown")
    options = ["--engine", engine, "--allow-host", "Good.TEST:80", "--allow-host", "*.wild.test", "--deny-host",
               "bad.wild.test", "--forward", "5432"]
    hosts = {"allow": ["good.test:80", "*.wild.test"], "deny": ["bad.wild.test"], "forward": [5432]}
    told = json.loads(succeeds(daemon.ctl("--json", "policy", "show", *options, cwd=place)))
    equal((told["net"], told["hosts"]), ("proxy", hosts))
    told = succeeds(daemon.ctl("policy", "show", *options, cwd=place)).splitlines()
    for line in ("allow      good.test:80", "allow      *.wild.test", "deny       bad.wild.test", "forward    5432"):
        contains(told, line)
    equal("hosts" in json.loads(succeeds(daemon.ctl("--json", "policy", "show", "--net", "none", cwd=place))),
          False, "without a way out")
    job = daemon.user.popen(daemon.command("spawn", *options, "--", "/bin/cat"), cwd=place, stdin=-1, stdout=-1)
    try:
        job.stdin.write(b"up\n")
        job.stdin.flush()
        equal(job.stdout.readline(), b"up\n")
        running = json.loads(succeeds(daemon.ctl("--json", "ps")))["jobs"]
        number = str(max(job["job"] for job in running))
        equal(json.loads(succeeds(daemon.ctl("--json", "inspect", number)))["hosts"], hosts)
        told = succeeds(daemon.ctl("inspect", number)).splitlines()
        for line in ("allowed host   good.test:80", "denied host    bad.wild.test", "forwarded      5432"):
            contains(told, line)
    finally:
        job.communicate(timeout=30)


def jobs_descriptors(pid):
    """How many of those that jobs and their links are made of."""
    names = []
    for fd in os.listdir(f"/proc/{pid}/fd"):
        with contextlib.suppress(FileNotFoundError):
            names.append(os.readlink(f"/proc/{pid}/fd/{fd}"))
    return len([n for n in names if n.startswith(("socket:", "pipe:", "/memfd:"))])


@case(*MODES)
def r13_jobs_leave_nothing_with_it(daemon):
    """Descriptors of ended jobs are gone, and with them their networks."""
    place = project(daemon, "ended")
    succeeds(daemon.sh("true", "--net", "proxy", cwd=place))
    pid = wait_for(lambda: egress_of(daemon), 10, "fsbox-egress")[0]
    if not lib.descriptors(pid):
        raise lib.Skip("needs root: descriptors of a role")
    before = wait_for(lambda: lib.descriptors(pid), 5, "descriptors")
    fsboxd = jobs_descriptors(daemon.process.pid)
    for _ in range(20):
        succeeds(daemon.sh("true", "--net", "proxy", "--forward", "8080", cwd=place))
    wait_for(lambda: lib.descriptors(pid) <= before, 5, "closing")
    wait_for(lambda: jobs_descriptors(daemon.process.pid) <= fsboxd, 5, "closing in fsboxd")


if __name__ == "__main__":
    lib.main()
