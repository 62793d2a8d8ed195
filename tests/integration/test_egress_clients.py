# SPDX-License-Identifier: Apache-2.0
"""Programs that people run, through fsbox-egress: what they want is there, the rest fails at once."""

import functools
import hashlib
import base64
import http.server
import io
import json
import os
import shutil
import socket
import ssl
import struct
import subprocess
import tarfile
import time

import egresslib as e
from lib import Skip, case, contains, equal, main, text

TOP = "/run/files"
CA = f"{TOP}/ca.pem"
PROXY = None


def openssl(*arguments):
    subprocess.run(["openssl", *arguments], check=True, stdin=subprocess.DEVNULL,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def make_certificates():
    openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=test ca",
            "-keyout", f"{TOP}/ca.key", "-out", CA)
    openssl("req", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=files.test",
            "-keyout", f"{TOP}/key.pem", "-out", f"{TOP}/req.pem")
    with open(f"{TOP}/ext", "w", encoding="utf-8") as file:
        file.write("subjectAltName=DNS:files.test,DNS:other.test\n")
    openssl("x509", "-req", "-in", f"{TOP}/req.pem", "-CA", CA, "-CAkey", f"{TOP}/ca.key", "-days", "2",
            "-CAcreateserial", "-extfile", f"{TOP}/ext", "-out", f"{TOP}/cert.pem")


def make_repository():
    git = ["git", "-c", "user.name=t", "-c", "user.email=t@t", "-c", "init.defaultBranch=main"]
    run = functools.partial(subprocess.run, check=True, stdin=subprocess.DEVNULL,
                            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=TOP)
    run([*git, "init", "work"])
    with open(f"{TOP}/work/file", "w", encoding="utf-8") as file:
        file.write("content\n" * 10000)
    run([*git, "-C", "work", "add", "file"])
    run([*git, "-C", "work", "commit", "-m", "x"])
    run([*git, "clone", "--bare", "work", "www/repo.git"])
    run([*git, "-C", "www/repo.git", "update-server-info"])


def make_package():
    """What a registry says about one package, and the package."""
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w:gz") as tar:
        for name, content in (("package.json", b'{"name":"tiny","version":"1.0.0","main":"index.js"}'),
                              ("index.js", b"module.exports = 'tiny works';\n")):
            info = tarfile.TarInfo(f"package/{name}")
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    os.makedirs(f"{TOP}/www/-")
    with open(f"{TOP}/www/-/tiny-1.0.0.tgz", "wb") as file:
        file.write(data.getvalue())
    integrity = "sha512-" + base64.b64encode(hashlib.sha512(data.getvalue()).digest()).decode()
    with open(f"{TOP}/www/tiny", "w", encoding="utf-8") as file:
        json.dump({"name": "tiny", "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": {
            "name": "tiny", "version": "1.0.0", "main": "index.js",
            "dist": {"tarball": "http://files.test:8000/-/tiny-1.0.0.tgz", "integrity": integrity}}}},
                  file)


class Quiet(http.server.SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):  # pylint: disable=arguments-differ
        pass


def serve_ssh(conn):
    """As far as a client goes without a real server: both banners, and its offer of algorithms."""
    with conn:
        conn.sendall(b"SSH-2.0-test\r\n")
        said = b""
        while b"curve25519" not in said:
            more = conn.recv(4096)
            if not more:
                return
            said += more
        with open(f"{TOP}/ssh", "wb") as file:
            file.write(said)


def serve_rudely(conn):
    """An answer as long as the connection lasts, which may be reset before the request was read."""
    request = conn.recv(1000)
    conn.sendall(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" + b"x" * 100)
    if b"/whole" in request:
        conn.shutdown(socket.SHUT_WR)
    else:
        conn.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    conn.close()


def start_files(ready):
    handler = functools.partial(Quiet, directory=f"{TOP}/www")
    plain = http.server.ThreadingHTTPServer(("0.0.0.0", 8000), handler)
    secure = http.server.ThreadingHTTPServer(("0.0.0.0", 443), handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(f"{TOP}/cert.pem", f"{TOP}/key.pem")
    secure.socket = context.wrap_socket(secure.socket, server_side=True)
    e.listen(serve_ssh, 22)
    e.listen(serve_rudely, 8001)
    import threading  # pylint: disable=import-outside-toplevel
    threading.Thread(target=plain.serve_forever, daemon=True).start()
    ready()
    secure.serve_forever()


def job(*allow):
    """A job that may go to files.test, and what ALLOW says."""
    global PROXY  # pylint: disable=global-statement
    if PROXY is None:
        for program in ("openssl", "git", "curl"):
            if shutil.which(program) is None:
                raise Skip(f"{program} is not installed")
        names = e.prepare()
        names.names["files.test"] = [e.SERVER]
        os.makedirs(f"{TOP}/www")
        make_certificates()
        make_repository()
        make_package()
        os.chmod(TOP, 0o755)
        e.in_network("internet", start_files)
        PROXY = e.Egress()
    return PROXY.begin(allow=["files.test", *allow])


def ok(result, stdout=None):
    equal(result.returncode, 0, (text(result.stdout), text(result.stderr)))
    if stdout is not None:
        equal(text(result.stdout), stdout)


@case(root=True)
def r34_curl():
    inside = job()
    environment = inside.proxy_environment()
    for url, extra in (("http://files.test:8000/tiny", ()), ("https://files.test/tiny", ("--cacert", CA)),
                       ("http://files.test:8000/tiny", ("--proxytunnel",)),
                       ("https://files.test/tiny", ("--cacert", CA, "-x", "socks5h://127.0.0.1:1080"))):
        ok(inside.run("curl", "-sSf", "--max-time", "20", *extra, url, "-o", "/dev/null",
                      env=environment))
    result = inside.run("curl", "-sS", "--max-time", "20", "https://other.test/", env=environment)
    equal(result.returncode != 0, True)
    contains(result.stderr, "403")
    result = inside.run("curl", "-sS", "--max-time", "20", "http://other.test/", env=environment)
    contains(result.stdout, "--allow-host other.test:80")
    result = inside.run("curl", "-sS", "--max-time", "20", "-x", "socks5h://127.0.0.1:1080",
                        "http://other.test/")
    equal(result.returncode, 97, text(result.stderr))
    start = time.monotonic()
    result = inside.run("curl", "-sS", "--max-time", "20", "http://files.test:8000/")
    equal(result.returncode != 0 and time.monotonic() - start < 6, True, "without a proxy: fails fast")
    # Two requests, a body, and one that is sent in chunks.
    with open("/run/upload", "w", encoding="utf-8") as file:
        file.write("x" * 300000)
    for extra in ((), ("-H", "Transfer-Encoding: chunked")):
        result = inside.run("curl", "-sS", "--max-time", "20", *extra, "-T", "/run/upload", "-o", "/dev/null",
                            "-w", "%{http_code}", "http://files.test:8000/up", env=environment)
        equal(text(result.stdout), "501", "the server's own answer to PUT")
    ok(inside.run("curl", "-sSf", "--max-time", "20", "http://files.test:8000/tiny",
                  "http://files.test:8000/tiny", "-o", "/dev/null", "-o", "/dev/null", env=environment))
    inside.end()


@case(root=True)
def r34_an_answer_before_the_upload_was_read():
    """The server says no and resets the connection; the client sees the answer all the same."""
    inside = job()
    environment = inside.proxy_environment()
    with open("/run/upload", "wb") as file:
        file.truncate(900000)
    for _ in range(20):
        result = inside.run("curl", "-sS", "--max-time", "20", "-T", "/run/upload", "-H", "Expect:", "-o",
                            "/dev/null", "-w", "%{http_code}", "http://files.test:8000/up", env=environment)
        equal((result.returncode, text(result.stdout)), (0, "501"), text(result.stderr))
    # One that has no length is cut off by a reset: that is no end.
    for path, whole, extra in (("/whole", True, ()), ("/cut", False, ("-T", "/run/upload", "-H", "Expect:"))):
        result = inside.run("curl", "-sS", "--max-time", "20", *extra, "-o", "/dev/null",
                            f"http://files.test:8001{path}", env=environment)
        equal(result.returncode == 0, whole, (path, text(result.stderr)))
    inside.end()


@case(root=True)
def r34_git():
    inside = job()
    environment = {**inside.proxy_environment(), "GIT_SSL_CAINFO": CA, "GIT_TERMINAL_PROMPT": "0"}
    for name, url in (("a", "http://files.test:8000/repo.git"), ("b", "https://files.test/repo.git")):
        ok(inside.run("git", "clone", "-q", url, name, env=environment))
        ok(inside.run("git", "-C", name, "log", "--format=%s", env=environment), "x\n")
    result = inside.run("git", "clone", "-q", "https://other.test/repo.git", "c", env=environment)
    equal(result.returncode, 128)
    contains(result.stderr, "403")
    inside.end()


@case(root=True)
def r34_npm():
    if shutil.which("npm") is None:
        raise Skip("npm is not installed")
    inside = job()
    environment = {**inside.proxy_environment(), "npm_config_registry": "http://files.test:8000/",
                   "npm_config_update_notifier": "false", "npm_config_audit": "false"}
    ok(inside.run("sh", "-c", "mkdir -p npm && cd npm && npm init -y && npm install tiny", env=environment))
    ok(inside.run("node", "-p", "require('./npm/node_modules/tiny')"), "tiny works\n")
    environment["npm_config_registry"] = "http://other.test:8000/"
    environment["npm_config_fetch_retries"] = "0"
    result = inside.run("sh", "-c", "cd npm && npm install --prefer-online tiny2", env=environment)
    equal(result.returncode != 0, True)
    contains(result.stderr, "403")
    inside.end()


@case(root=True)
def r34_python():
    inside = job()
    program = ("import sys, ssl, urllib.request as r\n"
               "c = ssl.create_default_context(cafile=sys.argv[2])\n"
               "print(r.urlopen(sys.argv[1], context=c, timeout=20).status)")
    for url in ("http://files.test:8000/tiny", "https://files.test/tiny"):
        ok(inside.run("/usr/bin/python3", "-c", program, url, CA, env=inside.proxy_environment()), "200\n")
    for url in ("http://other.test/", "https://other.test/"):
        result = inside.run("/usr/bin/python3", "-c", program, url, CA, env=inside.proxy_environment())
        contains(result.stderr, "403")
    inside.end()


@case(root=True)
def r34_node():
    if shutil.which("node") is None:
        raise Skip("node is not installed")
    inside = job()
    fetch = ("fetch(process.argv[1]).then(async r => console.log(r.status))"
             ".catch(e => { console.log('failed'); process.exit(3) })")
    version = int(text(subprocess.run(["node", "-p", "process.versions.node.split('.')[0]"], check=True,
                                      stdout=subprocess.PIPE).stdout))
    environment = {**inside.proxy_environment(), "NODE_USE_ENV_PROXY": "1"}
    start = time.monotonic()
    result = inside.run("node", "-e", fetch, "http://files.test:8000/tiny", env=environment)
    if version >= 24:
        ok(result, "200\n")
    else:
        # fetch() of older versions knows no proxy: it fails, and at once.
        equal((result.returncode, text(result.stdout)), (3, "failed\n"))
        equal(time.monotonic() - start < 6, True)
    # The http module does as it is told.
    get = ("require('http').get({host: '127.0.0.1', port: 3128, path: process.argv[1],"
           " headers: {Host: new URL(process.argv[1]).host}}, r => console.log(r.statusCode))")
    ok(inside.run("node", "-e", get, "http://files.test:8000/tiny"), "200\n")
    ok(inside.run("node", "-e", get, "http://other.test/"), "403\n")
    inside.end()


SOCKS_COMMAND = """
import os, socket, sys, threading
s = socket.create_connection(("127.0.0.1", 1080))
host = sys.argv[1].encode()
s.sendall(b"\\5\\1\\0"); assert s.recv(2) == b"\\5\\0"
s.sendall(b"\\5\\1\\0\\3" + bytes([len(host)]) + host + int(sys.argv[2]).to_bytes(2, "big"))
reply = s.recv(10)
if reply[1]: sys.exit(f"socks: refused ({reply[1]})")
def out():
    while data := s.recv(4096): os.write(1, data)
    os._exit(0)
threading.Thread(target=out, daemon=True).start()
while data := os.read(0, 4096): s.sendall(data)
"""


@case(root=True)
def r34_ssh():
    if shutil.which("ssh") is None:
        raise Skip("ssh is not installed")
    inside = job()
    script = "/run/socks.py"
    with open(script, "w", encoding="utf-8") as file:
        file.write(SOCKS_COMMAND)
    commands = [f"/usr/bin/python3 {script} %h %p"]
    if shutil.which("socat"):
        commands.append("socat - PROXY:127.0.0.1:%h:%p,proxyport=3128")
    for command in commands:
        options = ["-o", f"ProxyCommand={command}", "-o", "StrictHostKeyChecking=no", "-o",
                   "UserKnownHostsFile=/dev/null", "-o", "ConnectTimeout=10"]
        result = inside.run("ssh", *options, "git@files.test", "true")
        equal(result.returncode, 255, "the server is none")
        with open(f"{TOP}/ssh", "rb") as file:
            said = file.read()
        equal(said.startswith(b"SSH-2.0-OpenSSH"), True, said)
        os.remove(f"{TOP}/ssh")
        result = inside.run("ssh", *options, "git@other.test", "true")
        equal((result.returncode, os.path.exists(f"{TOP}/ssh")), (255, False))
        PROXY.wait("denied", host="other.test", port=22, reason="not-listed")
    inside.end()


@case(root=True)
def r34_nothing_gets_out_beside_the_proxy():
    inside = job()
    for family, kind, address in ((socket.AF_INET, socket.SOCK_STREAM, (e.SERVER, 80)),
                                  (socket.AF_INET, socket.SOCK_DGRAM, (e.SERVER, 53)),
                                  (socket.AF_INET6, socket.SOCK_STREAM, (e.SERVER6, 80)),
                                  (socket.AF_INET, socket.SOCK_STREAM, (e.HOST, 80)),
                                  (socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", 80)),
                                  (socket.AF_INET, socket.SOCK_DGRAM, (e.NAMESERVER, 53))):
        sock = inside.socket_inside(family, kind)
        try:
            if kind == socket.SOCK_DGRAM:
                sock.connect(address)
                sock.send(b"x")
                sock.settimeout(1)
                sock.recv(1)
            else:
                sock.connect(address)
            raise AssertionError(f"{address} was reached")
        except OSError:
            pass
        finally:
            sock.close()
    inside.end()


main()
