# SPDX-License-Identifier: Apache-2.0
"""fsbox-egress attacked from inside a job: only what the list allows gets out, all is recorded."""

import json
import os
import socket
import struct
import threading
import time

import egresslib as e
from lib import case, contains, equal, lacks, main, status_of, wait_for

EGRESS = None


def egress():
    """One process for all cases that do not need their own."""
    global EGRESS  # pylint: disable=global-statement
    e.prepare()
    if EGRESS is None or EGRESS.poll() is not None:
        EGRESS = e.Egress()
    return EGRESS


def denied(status_and_body, record_of, status=403, **wanted):
    """The answer is a refusal and the record says why."""
    equal(status_and_body[0], status, status_and_body[1])
    return record_of.wait("denied", **wanted)


@case(root=True)
def r34_allowed_hosts_are_reached():
    proxy = egress()
    job = proxy.begin(allow=["good.test", "six.test:80"])
    status, seen = job.connect_to("good.test:80")
    equal((status, seen["at"].replace("::ffff:", "")), (200, e.SERVER), seen)
    record = proxy.wait("allowed", host="good.test", port=80, via=e.HTTP)
    equal((record["address"], record["uid"], record["unchecked"]), (e.SERVER, 1000, False), record)
    closed = proxy.wait("closed", connection=record["connection"])
    equal(closed["sent"] > 20 and closed["received"] > 50, True, closed)
    equal(job.connect_to("six.test:80")[1]["at"], e.SERVER6)
    status, body = job.get("http://good.test/a?b=c")
    equal(status, 200, body)
    request = json.loads(body)["request"]
    equal(request.startswith("GET /a?b=c HTTP/1.1\r\nHost: good.test\r\n"), True, request)
    contains(request, "\r\nConnection: close\r\n\r\n")
    equal(proxy.wait("allowed", host="good.test", plain=True)["port"], 80)
    reply, answer = job.socks(e.name_type("good.test"), 80)
    equal(reply, 0)
    contains(answer, '"at"')
    job.end()
    stats = proxy.wait("stats", job=job.number)["stats"]
    equal(stats[:3], (4, 0, 0), "allowed, denied, failed")


@case(root=True)
def r34_the_rest_is_refused_with_the_fix():
    proxy = egress()
    job = proxy.begin(allow=["good.test:443", "*.wild.test"], deny=["no.wild.test", e.OTHER])
    status, body = job.get("http://other.test/")
    equal(status, 403, body)
    contains(body, "--allow-host other.test:80")
    proxy.wait("denied", host="other.test", port=80, reason="not-listed")
    denied(job.get("http://good.test/"), proxy, host="good.test", port=80, reason="not-listed")
    denied(job.connect_to("no.wild.test:443"), proxy, host="no.wild.test", reason="denied")
    denied(job.connect_to("NO.Wild.Test.:443"), proxy, host="no.wild.test", reason="denied")
    denied(job.connect_to("wild.test:443"), proxy, host="wild.test", reason="not-listed")
    denied(job.connect_to("notwild.test:443"), proxy, reason="not-listed")
    denied(job.connect_to("sub.wild.test.evil.test:443"), proxy, reason="not-listed")
    equal(job.connect_to("sub.wild.test:80")[0], 200)
    equal(job.socks(e.name_type("other.test"), 80)[0], 2)
    proxy.wait("denied", via=e.SOCKS, host="other.test", reason="not-listed")
    # A deny entry for an address holds for whatever name leads there.
    e.NAMES.names["sneaky.wild.test"] = [e.OTHER]
    denied(job.connect_to("sneaky.wild.test:80"), proxy, reason="denied", address=e.OTHER)
    job.end()


@case(root=True)
def r34_names_that_lead_inside_are_refused():
    proxy = egress()
    names = {"loop.test": "loopback", "loop6.test": "loopback", "mapped.test": "loopback",
             "nat64.test": "loopback", "sixtofour.test": "loopback", "teredo.test": "tunnel",
             "private.test": "private", "ula.test": "unique-local", "cgnat.test": "cgnat",
             "metadata.test": "metadata", "azure.test": "metadata", "ec2six.test": "metadata",
             "zero.test": "unspecified", "host.test": "host", "localhost": "loopback"}
    job = proxy.begin(allow=[*names, "mixed.test"])
    for name, kind in names.items():
        status, said = job.connect_to(f"{name}:80")
        equal(status, 403, (name, said))
        record = proxy.wait("denied", host=name)
        equal((record["reason"], record["class"]), ("closed-address", kind), name)
        equal(job.socks(e.name_type(name), 80)[0], 2, name)
        proxy.wait("denied", host=name, via=e.SOCKS, reason="closed-address")
    # Of several addresses only the public one is dialled.
    status, seen = job.connect_to("mixed.test:80")
    equal((status, seen["at"].replace("::ffff:", "")), (200, e.SERVER))
    job.end()


@case(root=True)
def r34_marks_and_literals_open_exactly_what_they_name():
    proxy = egress()
    job = proxy.begin(allow=["private.test:80+private", "metadata.test+private", "host.test+private",
                             f"{e.PRIVATE}:8080", f"{e.METADATA}:80", "[fd12:3456::1]:80"])
    equal(job.connect_to("private.test:80")[0], 200)
    denied(job.connect_to("private.test:8080"), proxy, reason="not-listed")
    denied(job.connect_to("metadata.test:80"), proxy, reason="closed-address")
    equal(job.connect_to("host.test:80")[1]["at"].replace("::ffff:", ""), e.HOST)
    equal(job.connect_to(f"{e.PRIVATE}:8080")[0], 200)
    denied(job.connect_to(f"{e.PRIVATE}:80"), proxy, reason="not-listed")
    equal(job.connect_to(f"{e.METADATA}:80")[0], 200)
    equal(job.connect_to("[fd12:3456::1]:80")[0], 200)
    equal(job.connect_to(f"[::ffff:{e.PRIVATE}]:8080")[0], 200)
    denied(job.connect_to(f"[64:ff9b::{e.PRIVATE}]:8080"), proxy, reason="not-listed")
    job.end()


@case(root=True)
def r34_addresses_are_not_names():
    proxy = egress()
    job = proxy.begin(allow=["good.test", "*.test", "1.example", "*.0.0.example"])
    for target in (f"{e.SERVER}:80", "127.0.0.1:80", f"[{e.SERVER6}]:80", "[::1]:80", "0.0.0.0:80",
                   "[::]:80", "[::ffff:127.0.0.1]:80", f"{e.METADATA}:80"):
        denied(job.connect_to(target), proxy, reason="not-listed")
    for address in (e.v4_type(e.SERVER), e.v4_type("127.0.0.1"), e.v6_type("::1"),
                    e.v6_type("::ffff:127.0.0.1"), e.v6_type("64:ff9b::7f00:1"), e.name_type("127.0.0.1"),
                    e.name_type("::1"), e.name_type(e.SERVER)):
        equal(job.socks(address, 80)[0], 2, address)
        proxy.wait("denied", via=e.SOCKS, reason="not-listed")
    job.end()


@case(root=True)
def r34_odd_spellings_are_refused():
    proxy = egress()
    job = proxy.begin(allow=["127.0.0.1", "good.test", "[::1]"])
    odd = ["127.1:80", "127.0.1:80", "0x7f.1:80", "0x7f000001:80", "2130706433:80", "0177.0.0.1:80",
           "017700000001:80", "127.0.0.1.:80", "0:80", "localhost%00.good.test:80",
           "good.test%2e:80", "user@good.test:80", "user:pw@good.test:80", "good.test@127.0.0.1:80",
           "good.test:80@127.0.0.1:80", "g\xf6\xf6d.test:80", "good.test\x7f:80", "good.test..:80",
           ".good.test:80", "[::1%25lo]:80", "[::1%lo]:80", "::1:80", "[::1:80", "good.test:0",
           "good.test:65536", "good.test:080", "good.test:", "good.test", "good.test:80:80",
           "good_test\\:80", "good.test/:80", "*.test:80", ":80", "-good.test:80"]
    for target in odd:
        status, said = job.connect_to(target)
        equal(status in (400, 403), True, (target, said))
        record = proxy.wait("denied", job=job.number)
        equal(record["reason"] in ("bad-host", "bad-request"), True, (target, record))
    for name in ("0x7f.1", "127.1", "2130706433", "0177.0.0.1", "127.0.0.1.", "good.test\0.evil",
                 "user@good.test", "[::1]", "g\xf6d.test", "", " good.test", "good.test "):
        equal(job.socks(e.name_type(name), 80)[0], 2, name)
        proxy.wait("denied", via=e.SOCKS, reason="bad-host")
    # One trailing dot and capitals are the same name.
    equal(job.connect_to("GOOD.test.:80")[0], 200)
    equal(proxy.wait("allowed")["host"], "good.test")
    job.end()


@case(root=True)
def r34_rebinding_between_check_and_dial_changes_nothing():
    proxy = egress()
    job = proxy.begin(allow=["rebind.test"])
    # Each question another answer: what was checked must be what is dialled.
    e.NAMES.names["rebind.test"] = lambda count: [e.SERVER] if count <= 2 else ["127.0.0.1"]
    e.NAMES.asked.pop("rebind.test", None)
    status, seen = job.connect_to("rebind.test:80")
    equal((status, seen["at"].replace("::ffff:", "")), (200, e.SERVER))
    equal(e.NAMES.asked["rebind.test"], 2, "one question for A, one for AAAA, no second look")
    denied(job.connect_to("rebind.test:80"), proxy, reason="closed-address", address="127.0.0.1")
    turns = [[e.SERVER], ["127.0.0.1"]]
    e.NAMES.names["rebind.test"] = lambda count: turns[count % 2]
    for _ in range(20):
        status, seen = job.connect_to("rebind.test:80")
        if status == 200:
            equal(seen["at"].replace("::ffff:", ""), e.SERVER)
    job.end()


@case(root=True)
def r34_host_must_be_the_urls():
    proxy = egress()
    job = proxy.begin(allow=["good.test", "*.wild.test"])
    for host in ("other.test", "good.test:8080", "127.0.0.1", "good.test, other.test", "", "good.test x",
                 "other.test\r\nHost: good.test", "good.test\r\nHost: good.test"):
        status, body = job.get("http://good.test/", host=host)
        equal(status, 400, (host, body))
        proxy.wait("denied", reason="bad-request")
    status, _ = job.http("CONNECT good.test:80 HTTP/1.1\r\nHost: other.test:80\r\n\r\n")
    equal(status, 400)
    for host in ("good.test", "GOOD.TEST.", "good.test:80"):
        status, body = job.get("http://good.test/", host=host)
        equal(status, 200, body)
        contains(json.loads(body)["request"], "\r\nHost: good.test\r\n")
    status, body = job.http("GET http://good.test/ HTTP/1.1\r\n\r\n")
    equal(status, 400, body)
    status, body = job.http("GET http://good.test/ HTTP/1.0\r\n\r\n")
    equal(status, 200, body)
    job.end()


@case(root=True)
def r34_what_is_no_proxy_request_is_refused():
    proxy = egress()
    job = proxy.begin(allow=["good.test"])
    for line in ("GET / HTTP/1.1", "OPTIONS * HTTP/1.1", "GET good.test HTTP/1.1",
                 "GET //good.test/ HTTP/1.1", "GET https://good.test/ HTTP/1.1",
                 "GET ftp://good.test/ HTTP/1.1", "GET file:///etc/passwd HTTP/1.1",
                 "GET http:good.test/ HTTP/1.1", "GET http:///good.test/ HTTP/1.1",
                 "GET http://good.test/#x HTTP/1.1", "GET http://user@good.test/ HTTP/1.1",
                 "GET http://good.test:80@127.0.0.1/ HTTP/1.1", "GET http://good.test\\@127.0.0.1/ HTTP/1.1",
                 "GET http://good.test/ HTTP/2.0", "GET http://good.test/ HTTP/1.2",
                 "GET http://good.test/", "GET  http://good.test/ HTTP/1.1",
                 "GET http://good.test/ x HTTP/1.1", "GET\thttp://good.test/ HTTP/1.1",
                 "connect good.test:80 HTTP/1.1", "CONNECT http://good.test:80 HTTP/1.1",
                 "CONNECT good.test:80/ HTTP/1.1", "PRI * HTTP/2.0", "G(T http://good.test/ HTTP/1.1"):
        status, body = job.http(f"{line}\r\nHost: good.test\r\n\r\n")
        equal(status, 400, (line, body))
        proxy.wait("denied")
    equal(job.http(b"\x16\x03\x01\x02\x00\x01\x00")[0], 400)
    equal(job.http(b"\r\nGET http://good.test/ HTTP/1.1\r\nHost: good.test\r\n\r\n")[0], 400)
    equal(job.raw(b"\x04\x01\x00\x50\x7f\x00\x00\x01\x00", port=1080)[:2], b"\x05\xff")
    proxy.wait("denied", via=e.SOCKS, reason="bad-request")
    for command in (2, 3, 0, 255):
        answer = job.raw(b"\x05\x01\x00\x05" + bytes([command, 0]) + e.v4_type(e.SERVER) + b"\0\x50",
                         port=1080)
        equal(answer[3], 7, command)
    equal(job.raw(b"\x05\x01\x02", port=1080), b"\x05\xff")
    equal(job.raw(b"\x05\x01\x00\x05\x01\x00\x05abcdef", port=1080)[3], 8)
    job.end()


def smuggled():
    """(what, head and body) that two readers could take for two different requests."""
    tail = "GET /second HTTP/1.1\r\nHost: other.test\r\n\r\n"
    post = "POST http://good.test/ HTTP/1.1\r\nHost: good.test\r\n"
    return {
        "CL and TE": post + "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + tail,
        "TE and CL": post + "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n" + tail,
        "two CL": post + "Content-Length: 0\r\nContent-Length: 44\r\n\r\n" + tail,
        "equal CL": post + "Content-Length: 4\r\nContent-Length: 4\r\n\r\nabcd",
        "CL list": post + "Content-Length: 4, 4\r\n\r\nabcd",
        "CL sign": post + "Content-Length: +4\r\n\r\nabcd",
        "CL hex": post + "Content-Length: 0x4\r\n\r\nabcd",
        "CL huge": post + "Content-Length: 99999999999999999999\r\n\r\nabcd",
        "CL empty": post + "Content-Length: \r\n\r\n",
        "TE twice": post + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "TE other": post + "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
        "TE list": post + "Transfer-Encoding: identity, chunked\r\n\r\n0\r\n\r\n",
        "TE tab": post + "Transfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n",
        "TE blank": post + "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n" + tail,
        "TE in 1.0": post.replace("1.1", "1.0") + "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "folded": post + "X: a\r\n Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "folded tab": post + "X: a\r\n\tb\r\n\r\n",
        "first folded": "GET http://good.test/ HTTP/1.1\r\n Host: good.test\r\n\r\n",
        "bare LF": post.replace("\r\n", "\n") + "\n",
        "one bare LF": post + "X: a\nTransfer-Encoding: chunked\r\n\r\n",
        "bare CR": post + "X: a\rTransfer-Encoding: chunked\r\n\r\n",
        "NUL": post + "X: a\0b\r\n\r\n",
        "NUL in a name": post + "X\0: a\r\n\r\n",
        "no colon": post + "Transfer-Encoding chunked\r\n\r\n",
        "no name": post + ": chunked\r\n\r\n",
        "Connection names CL": post + "Connection: Content-Length\r\nContent-Length: 4\r\n\r\nabcd",
        "Connection names Host": post + "Connection: close, Host\r\n\r\n",
        "CONNECT with body": "CONNECT good.test:80 HTTP/1.1\r\nHost: good.test:80\r\n"
                             "Content-Length: 4\r\n\r\nabcd",
    }


@case(root=True)
def r34_smuggling_is_refused():
    proxy = egress()
    job = proxy.begin(allow=["good.test"])
    for what, request in smuggled().items():
        status, body = job.http(request)
        equal(status, 400, (what, body))
        record = proxy.wait("denied", job=job.number)
        equal(record["reason"], "bad-request", what)
    job.end()


@case(root=True)
def r34_nothing_follows_a_request():
    proxy = egress()
    job = proxy.begin(allow=["good.test"])
    tail = "GET /second HTTP/1.1\r\nHost: other.test\r\n\r\n"
    head = "http://good.test/first HTTP/1.1\r\nHost: good.test\r\n"
    for what, request, body_seen in (
            ("no body", f"GET {head}\r\n{tail}", ""),
            ("counted", f"POST {head}Content-Length: 4\r\n\r\nabcd{tail}", "abcd"),
            ("chunked", f"POST {head}Transfer-Encoding: chunked\r\n\r\n4\r\nabcd\r\n0\r\n\r\n{tail}",
             "4\r\nabcd\r\n0\r\n\r\n")):
        data = request.encode()
        for pieces in ([data], [data[i:i + 1] for i in range(len(data))], [data[:-10], data[-10:]]):
            status, body = job.http(b"", pieces=pieces)
            equal(status, 200, (what, body))
            seen = json.loads(body)["request"]
            lacks(seen, "second", what)
            equal(seen.split("\r\n\r\n", 1)[1], body_seen, what)
    # A body that leaves its form ends the connection; what came before is no whole body.
    for body in ("4;ext=1\r\nabcd\r\n0\r\n\r\n", "4\nabcd\n0\n\n", "4\r\nabcde\r\n0\r\n\r\n",
                 "0\r\nTrailer: x\r\n\r\n", "ffffffffffffffffff\r\n", "-4\r\n", "\r\n",
                 "0x4\r\nabcd\r\n0\r\n\r\n", " 4\r\nabcd\r\n0\r\n\r\n"):
        status, said = job.http(f"POST {head}Transfer-Encoding: chunked\r\n\r\n{body}{tail}")
        equal(status in (0, 400), True, (body, status, said))
    job.end()


@case(root=True)
def r34_fields_between_us_and_the_client_stay_here():
    proxy = egress()
    job = proxy.begin(allow=["good.test"])
    status, body = job.get("http://good.test/", extra=(
        "Proxy-Authorization: Basic c2VjcmV0\r\nProxy-Connection: keep-alive\r\nConnection: X-Mine, close\r\n"
        "X-Mine: 1\r\nX-Kept: yes \r\nTE: trailers\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMA\r\n"
        "Keep-Alive: 5\r\n"))
    equal(status, 200, body)
    request = json.loads(body)["request"]
    equal(request, "GET / HTTP/1.1\r\nHost: good.test\r\nX-Kept: yes\r\nConnection: close\r\n\r\n")
    job.end()


@case(root=True)
def r34_redirects_are_asked_again():
    proxy = egress()
    job = proxy.begin(allow=["good.test"])
    result = job.run("curl", "-sS", "-L", "--max-time", "10", "-o", "/dev/null", "-w", "%{http_code}",
                     "http://good.test/redirect?http://127.0.0.1/", env=job.proxy_environment())
    equal(result.stdout.decode(), "403", result)
    proxy.wait("denied", host="127.0.0.1", reason="not-listed")
    result = job.run("curl", "-sS", "-L", "--max-time", "10", "-o", "/dev/null", "-w", "%{http_code}",
                     "http://good.test/redirect?http://other.test/", env=job.proxy_environment())
    equal(result.stdout.decode(), "403", result)
    job.end()


@case(root=True)
def r34_jobs_do_not_share():
    proxy = egress()
    first = proxy.begin(allow=["good.test"])
    second = proxy.begin(allow=["other.test"])
    equal(first.connect_to("good.test:80")[0], 200)
    denied(second.connect_to("good.test:80"), proxy, job=second.number, reason="not-listed")
    equal(second.connect_to("other.test:80")[0], 200)
    denied(first.connect_to("other.test:80"), proxy, job=first.number, reason="not-listed")
    first.end()
    second.end()


@case(root=True)
def forwarded_ports_reach_the_host_and_no_others():
    proxy = egress()
    job = proxy.begin(forward=[8080])
    status, body = job.http("GET / HTTP/1.1\r\nHost: x\r\n\r\n", port=8080)
    equal((status, json.loads(body)["at"].replace("::ffff:", "")), (200, "127.0.0.1"), body)
    equal(proxy.wait("allowed", via=e.FORWARD)["port"], 8080)
    job.end()
    job = proxy.begin(forward=[9999])
    equal(job.raw(b"x", port=9999), b"")
    proxy.wait("failed", via=e.FORWARD, reason="connect-failed")
    job.end()


# ---- hostile init --------------------------------------------------------------------------


def refused_listener(via, port, make, why, **options):
    proxy = egress()
    job = proxy.begin(allow=["good.test"], forward=[8080], listeners=False)
    job.add_listener(e.HTTP, 0)
    equal(job.connect_to("good.test:80")[0], 200)
    fds = make(job)
    job.send_listener(via, port, [getattr(fd, "fileno", lambda f=fd: f)() for fd in fds], **options)
    record = proxy.wait("listener-refused", job=job.number)
    contains(record["detail"], why)
    proxy.wait("stats", job=job.number)
    # The whole job is closed, the listener that was good as well.
    with job.socket_inside() as sock:
        equal(sock.connect_ex(("127.0.0.1", 3128)) != 0, True, "its listener is closed")
    equal(proxy.poll(), None, "and fsbox-egress lives")


def listening(sock):
    sock.bind(("127.0.0.1", 0))
    sock.listen(5)
    return sock


@case(root=True)
def r33_only_listeners_of_the_jobs_network_are_taken():
    outside = listening(socket.socket())
    refused_listener(e.SOCKS, 0, lambda job: [outside], "the host's own network")
    refused_listener(e.SOCKS, 0, lambda job: [job.socket_inside()], "does not listen")
    refused_listener(e.SOCKS, 0, lambda job: [job.socket_inside(kind=socket.SOCK_DGRAM)],
                     "no TCP socket")
    refused_listener(e.SOCKS, 0, lambda job: list(os.pipe()[:1]), "no TCP socket")
    refused_listener(e.SOCKS, 0, lambda job: [os.open("/etc/passwd", os.O_RDONLY)], "no TCP socket")
    unix = socket.socket(socket.AF_UNIX)
    unix.bind("/run/unix")
    unix.listen()
    refused_listener(e.SOCKS, 0, lambda job: [unix], "no TCP socket")
    refused_listener(e.HTTP, 0, lambda job: [listening(job.socket_inside())], "twice")
    refused_listener(e.FORWARD, 22, lambda job: [listening(job.socket_inside())], "not forwarded")
    refused_listener(e.SOCKS, 0, lambda job: [], "makes no sense")
    refused_listener(e.SOCKS, 0, lambda job: [listening(job.socket_inside()) for _ in range(2)],
                     "makes no sense")
    refused_listener(e.SOCKS, 0, lambda job: [job.init] * 30, "makes no sense")
    refused_listener(e.SOCKS, 1, lambda job: [listening(job.socket_inside())], "makes no sense")
    refused_listener(77, 0, lambda job: [listening(job.socket_inside())], "makes no sense")
    refused_listener(e.SOCKS, 0, lambda job: [listening(job.socket_inside())], "makes no sense", size=7)
    refused_listener(e.SOCKS, 0, lambda job: [listening(job.socket_inside())], "makes no sense",
                     reserved=1)


@case(root=True)
def r33_a_listener_made_blocking_does_not_hold_the_proxy():
    proxy = egress()
    job = proxy.begin(listeners=False)
    other = proxy.begin(allow=["good.test"])
    sock = job.socket_inside()
    sock.bind(("127.0.0.1", 3128))
    sock.listen(100)
    sock.settimeout(0.001)
    job.send_listener(e.HTTP, 0, [sock.fileno()])
    stop = threading.Event()

    def race():
        while not stop.is_set():
            os.set_blocking(sock.fileno(), True)
            try:
                conn = job.socket_inside()
                conn.connect(("127.0.0.1", 3128))
                conn.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                conn.close()
                os.set_blocking(sock.fileno(), True)
                sock.settimeout(0.0005)
                taken, _ = sock.accept()
                taken.close()
            except (OSError, RuntimeError):
                pass
    threads = [threading.Thread(target=race) for _ in range(2)]
    for thread in threads:
        thread.start()
    slowest = 0
    for _ in range(30):
        start = time.monotonic()
        equal(other.connect_to("good.test:80")[0], 200)
        slowest = max(slowest, time.monotonic() - start)
    stop.set()
    for thread in threads:
        thread.join()
    equal(slowest < 2, True, f"{slowest} s")
    equal(proxy.poll(), None)
    job.end()
    other.end()


@case(root=True)
def r33_the_end_of_init_or_of_the_job_closes_everything():
    proxy = egress()
    for how in ("eof", "message"):
        job = proxy.begin(allow=["good.test"])
        sock = job.connect(3128)
        sock.sendall(b"CONNECT good.test:7 HTTP/1.1\r\nHost: good.test:7\r\n\r\n")
        contains(sock.recv(100), "200")
        if how == "eof":
            job.end()
        else:
            proxy.send(3, job.number)
        proxy.wait("closed", job=job.number)
        proxy.wait("stats", job=job.number)
        equal(sock.recv(10), b"", "the connection is closed")
        with job.socket_inside() as late:
            equal(late.connect_ex(("127.0.0.1", 3128)) != 0, True, "nothing listens")


@case(root=True)
def r33_bad_jobs_are_refused():
    proxy = egress()
    bad = {
        "no sealed memfd": e.sealed(e.policy_bytes(["good.test"]), seals=0),
        "canonical": e.sealed(e.policy_bytes(["GOOD.test"])),
        "end early": e.sealed(e.policy_bytes(["good.test"])[:-1]),
        "behind the end": e.sealed(e.policy_bytes(["good.test"]) + b"x"),
        "empty or too large": e.sealed(b""),
    }
    for why, fd in bad.items():
        pair = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        proxy.send(2, 4242, struct.pack("=IIII", 1000, 10, 0, 0), [fd, pair[0].fileno()])
        contains(proxy.wait("job-refused", job=4242)["detail"], why)
        pair[0].close()
        equal(pair[1].recv(1), b"", "and init's socket is closed")
        pair[1].close()
        os.close(fd)


@case(root=True)
def r33_garbage_from_fsboxd_ends_it():
    e.prepare()
    for kind, body, fds in ((9, b"", []), (2, b"", []), (1, struct.pack("=I", 7), []),
                            (3, b"", [0])):
        proxy = e.Egress()
        proxy.send(kind, 0 if kind == 1 else 5, body, fds)
        equal(wait_for(lambda p=proxy: p.poll(), 5, "its end"), 1)
        contains(proxy.logged(), "fsboxd's link")
        proxy.stop()
    proxy = e.Egress(configure=False)
    pair = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    fd = e.sealed(e.policy_bytes())
    proxy.send(2, 1, struct.pack("=IIII", 1, 1, 0, 0), [fd, pair[0].fileno()])
    equal(wait_for(proxy.poll, 5, "its end"), 1)
    proxy.stop()


# ---- confinement ---------------------------------------------------------------------------


@case(root=True)
def r33_it_is_confined_from_the_start():
    proxy = egress()
    resolvers = [p for p in e.lib.processes("fsbox-names") if status_of(p)["PPid"] == str(proxy.pid)]
    equal(len(resolvers), 1, "the resolver is there")
    for pid in (proxy.pid, resolvers[-1]):
        status = status_of(pid)
        equal(status["Uid"].split(), [str(e.EGRESS_UID)] * 4)
        equal(status["Gid"].split(), [str(e.EGRESS_UID)] * 4)
        equal(status["Groups"].strip(), "")
        for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
            if name != "CapBnd":
                equal(int(status[name], 16), 0, name)
        equal((status["NoNewPrivs"], status["Seccomp"]), ("1", "2"))
        with open(f"/proc/{pid}/environ", "rb") as file:
            equal(file.read(), b"", "environment")
        equal(os.stat(f"/proc/{pid}/environ").st_uid, 0, "not dumpable")
        equal(os.getsid(pid) != os.getsid(0), True, "session")
    held = sorted(os.readlink(f"/proc/{resolvers[-1]}/fd/{fd}").split(":")[0]
                  for fd in os.listdir(f"/proc/{resolvers[-1]}/fd"))
    equal(held.count("socket"), 1, f"the resolver holds its socket and nothing else: {held}")


# ---- behaviour under load and failure ------------------------------------------------------


@case(root=True)
def bytes_and_half_closing_come_through():
    proxy = egress()
    job = proxy.begin(allow=["good.test"])
    data = os.urandom(3 << 20)
    with job.connect(3128) as sock:
        sock.sendall(b"CONNECT good.test:7 HTTP/1.1\r\nHost: good.test:7\r\n\r\n" + data[:1000])
        received = b""

        def read():
            nonlocal received
            while True:
                more = sock.recv(1 << 16)
                if not more:
                    return
                received += more
        thread = threading.Thread(target=read)
        thread.start()
        sock.sendall(data[1000:])
        sock.shutdown(socket.SHUT_WR)
        thread.join(20)
    head, _, body = received.partition(b"\r\n\r\n")
    contains(head, "200")
    equal(body[-7:], b"GOODBYE", "the end of one way leaves the other open")
    equal(body[:-7] == data, True, "every byte, in order")
    closed = proxy.wait("closed", job=job.number)
    equal((closed["sent"], closed["received"]), (len(data), len(data) + 7))
    job.end()


@case(root=True)
def the_next_address_is_tried():
    proxy = egress()
    job = proxy.begin(allow=["dead6.test", "both.test", "nowhere.test", "good.test"])
    start = time.monotonic()
    equal(job.connect_to("dead6.test:80")[0], 200)
    equal(time.monotonic() - start < 10, True, "not after the 20 s of one attempt")
    equal(job.connect_to("both.test:80")[1]["at"], e.SERVER6)
    status, body = job.connect_to("nowhere.test:80")
    equal(status, 502, body)
    proxy.wait("failed", host="nowhere.test", reason="resolve-failed")
    equal(job.connect_to("good.test:81")[0], 502)
    proxy.wait("failed", host="good.test", reason="connect-failed")
    equal(job.socks(e.name_type("good.test"), 81)[0], 5)
    equal(job.socks(e.name_type("nowhere.test"), 81)[0], 4)
    job.end()


@case(root=True)
def r13_hanging_lookups_hold_up_nobody_else():
    proxy = egress()
    e.NAMES.names["*"] = None
    for i in range(40):
        e.NAMES.names[f"s{i}.silent.test"] = "silence"
    job = proxy.begin(allow=["*.silent.test"])
    other = proxy.begin(allow=["good.test"])
    socks = []
    for i in range(40):
        sock = job.connect(3128)
        sock.sendall(f"CONNECT s{i}.silent.test:80 HTTP/1.1\r\nHost: s{i}.silent.test:80\r\n\r\n"
                     .encode())
        socks.append(sock)
    start = time.monotonic()
    equal(other.connect_to("good.test:80")[0], 200)
    # Behind all of the 40 it would be ten times as long: each takes more than a second, four at a time.
    equal(time.monotonic() - start < 4, True, f"{time.monotonic() - start} s")
    children = [p for p in e.lib.processes("fsbox-names")]
    equal(len(children) <= 2 + 4, True, f"at most four at a time: {children}")
    contains(socks[0].recv(100), "HTTP/1.1 50")
    for sock in socks:
        sock.close()
    job.end()
    other.end()


@case(root=True)
def r13_connections_of_a_job_are_bounded():
    proxy = egress()
    job = proxy.begin(allow=["good.test"], connections=5)
    held = []
    for _ in range(5):
        sock = job.connect(3128)
        sock.sendall(b"CONNECT good.test:7 HTTP/1.1\r\nHost: good.test:7\r\n\r\n")
        contains(sock.recv(100), "200")
        held.append(sock)
    late = job.connect(3128)
    late.sendall(b"CONNECT good.test:7 HTTP/1.1\r\nHost: good.test:7\r\n\r\n")
    equal(e.readable(late, 0.5), False, "the sixth waits")
    held.pop().close()
    equal(e.readable(late, 10), True, "until one has ended")
    contains(late.recv(100), "200")
    for sock in [*held, late]:
        sock.close()
    job.end()


@case(root=True)
def r13_idle_connections_end():
    proxy = egress()
    job = proxy.begin(allow=["good.test"], idle_ms=1500)
    with job.connect(3128) as sock:
        sock.sendall(b"CONNECT good.test:7 HTTP/1.1\r\nHost: good.test:7\r\n\r\n")
        contains(sock.recv(100), "200")
        for _ in range(4):
            time.sleep(0.5)
            sock.sendall(b"x")
            equal(sock.recv(1), b"x", "not idle")
        start = time.monotonic()
        equal(sock.recv(1), b"")
        equal(1 < time.monotonic() - start < 8, True, "after the time given")
    job.end()


@case(root=True)
def r13_long_heads_are_refused():
    proxy = egress()
    job = proxy.begin(allow=["good.test"])
    equal(job.get("http://good.test/", extra="X: " + "a" * 15000 + "\r\n")[0], 200)
    equal(job.get("http://good.test/", extra="X: " + "a" * 17000 + "\r\n")[0], 400)
    proxy.wait("denied", reason="bad-request")
    equal(job.get("http://good.test/", extra="X: a\r\n" * 127)[0], 200)
    equal(job.get("http://good.test/", extra="X: a\r\n" * 128)[0], 400)
    job.end()


@case(root=True)
def r30_no_decision_goes_unrecorded():
    e.prepare()
    proxy = e.Egress()
    job = proxy.begin(allow=["good.test"])
    count = 0
    # Nobody reads the records: sooner or later nothing new is served.
    for count in range(8000):
        with job.connect(3128, 3) as sock:
            sock.sendall(b"CONNECT other.test:80 HTTP/1.1\r\nHost: other.test:80\r\n\r\n")
            try:
                if not sock.recv(10):
                    break
            except TimeoutError:
                break
    equal(1000 < count < 7999, True, f"{count} were served")
    seen = []

    def collect():
        proxy.collect()
        seen.extend(ev for ev in proxy.events if ev["kind"] == "denied")
        proxy.events.clear()
        return len(seen) >= count
    wait_for(collect, 10, "all records")
    equal([ev["connection"] for ev in seen[:count]], list(range(1, count + 1)), "none is missing")
    equal(job.connect_to("good.test:80")[0], 200)
    equal(proxy.stop(), 0)


@case(root=True)
def jobs_outlive_fsboxd_unless_records_are_required():
    e.prepare()
    for required in (False, True):
        proxy = e.Egress(required=required)
        job = proxy.begin(allow=["good.test"])
        sock = job.connect(3128)
        sock.sendall(b"CONNECT good.test:7 HTTP/1.1\r\nHost: good.test:7\r\n\r\n")
        contains(sock.recv(100), "200")
        proxy.link.close()
        time.sleep(0.2)
        sock.sendall(b"still")
        equal(sock.recv(10), b"still", "what runs goes on")
        with job.connect(3128) as late:
            late.sendall(b"CONNECT good.test:7 HTTP/1.1\r\nHost: good.test:7\r\n\r\n")
            equal(e.readable(late, 0.7 if required else 10), not required, "new ones")
        sock.close()
        equal(proxy.poll(), None, "it lives as long as its jobs")
        job.end()
        equal(wait_for(lambda p=proxy: p.poll() is not None and [p.status], 5, "its end"), [0])
        proxy.stop()


# ---- the host's own proxy ------------------------------------------------------------------


class Upstream:
    """A proxy on the host's loopback that says what it was asked, and goes there."""

    def __init__(self, port, speaks_socks=False, answer=b"HTTP/1.1 200 OK\r\n\r\n"):
        self.asked = []
        self.speaks_socks, self.answer = speaks_socks, answer
        self.server = e.listen(self.serve, port, "127.0.0.1")

    def serve(self, conn):
        with conn:
            if self.speaks_socks:
                data = conn.recv(300)
                while len(data) < 3 + 7:
                    data += conn.recv(300)
                self.asked.append(data[3:])
                conn.sendall(self.answer)
            else:
                data = b""
                while b"\r\n\r\n" not in data:
                    data += conn.recv(300)
                self.asked.append(data.split(b"\r\n\r\n")[0] + b"\r\n\r\n")
                if not data.startswith(b"CONNECT"):
                    conn.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nupstream")
                    return
                for byte in self.answer:
                    conn.sendall(bytes([byte]))
            e.serve_echo(conn)


@case(root=True)
def r33_an_upstream_proxy_is_used_and_recorded():
    e.prepare()
    upstream = Upstream(3130)
    proxy = e.Egress(upstream=(1, "127.0.0.1", 3130))
    job = proxy.begin(allow=["good.test", "unknown.test", "private.test+private", e.PRIVATE], forward=[8080])
    with job.connect(3128) as sock:
        sock.sendall(b"CONNECT unknown.test:443 HTTP/1.1\r\nHost: unknown.test:443\r\n\r\nhello")
        received = b""
        while b"hello" not in received:
            received += sock.recv(100)
    equal(upstream.asked.pop(), b"CONNECT unknown.test:443 HTTP/1.1\r\nHost: unknown.test:443\r\n\r\n")
    record = proxy.wait("allowed", host="unknown.test")
    equal((record["unchecked"], record["address"]), (True, ""), record)
    status, body = job.get("http://good.test/x?y")
    equal((status, body), (200, "upstream"))
    contains(upstream.asked.pop(), "GET http://good.test/x?y HTTP/1.1\r\nHost: good.test\r\n")
    equal(proxy.wait("allowed", host="good.test", plain=True)["unchecked"], True)
    denied(job.connect_to("other.test:443"), proxy, reason="not-listed")
    # What is inside is not asked of it.
    equal(job.connect_to("private.test:80")[0], 200)
    equal(proxy.wait("allowed", host="private.test")["unchecked"], False)
    equal(job.connect_to(f"{e.PRIVATE}:80")[0], 200)
    equal(job.http("GET / HTTP/1.1\r\nHost: x\r\n\r\n", port=8080)[0], 200)
    equal(upstream.asked, [])
    upstream.answer = b"HTTP/1.1 407 Proxy Authentication Required\r\nX: y\r\n\r\n"
    status, body = job.connect_to("good.test:443")
    equal(status, 502, body)
    contains(proxy.wait("failed", reason="upstream-failed")["detail"], "407")
    equal(proxy.stop(), 0)


@case(root=True)
def r33_an_upstream_socks_proxy_likewise():
    e.prepare()
    upstream = Upstream(3131, True, b"\x05\x00" + b"\x05\x00\x00\x01" + b"\0" * 6)
    proxy = e.Egress(upstream=(2, "127.0.0.1", 3131))
    job = proxy.begin(allow=["unknown.test", e.SERVER])
    with job.connect(1080) as sock:
        sock.sendall(b"\x05\x01\x00\x05\x01\x00" + e.name_type("unknown.test") + b"\x01\xbb" + b"hello")
        received = b""
        while b"hello" not in received:
            received += sock.recv(100)
    equal(upstream.asked.pop(), b"\x05\x01\x00" + e.name_type("unknown.test") + b"\x01\xbb")
    equal(proxy.wait("allowed", host="unknown.test")["unchecked"], True)
    upstream.answer = b"\x05\x00\x05\x02\x00\x01" + b"\0" * 6
    equal(job.socks(e.v4_type(e.SERVER), 443)[0], 1)
    proxy.wait("failed", reason="upstream-failed")
    equal(proxy.stop(), 0)


@case(root=True)
def r33_it_ends_without_jobs_and_without_fsboxd():
    e.prepare()
    proxy = e.Egress()
    equal(proxy.stop(), 0)
    equal(e.lib.wait_for(lambda: EGRESS is not None or not e.lib.processes("fsbox-names"), 5), True)



main()
