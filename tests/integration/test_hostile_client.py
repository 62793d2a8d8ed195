# SPDX-License-Identifier: Apache-2.0
"""Somebody who may connect and wants more: another's identity, another's jobs, fsboxd itself.

Named after the requirements of docs/SECURITY.md that the cases hold.
"""

import array
import ctypes
import glob
import os
import re
import select
import signal
import socket
import stat
import struct
import threading
import time

import lib
from lib import User, as_user, case, contains, equal, lacks, project, status_is, status_of, succeeds, wait_for
from wire import Closed, Connection, kind_of

MODES = ("system", "user")
ALL = ("system", "user", "root")


def brokers(user):
    return [pid for pid in lib.processes("fsbox-broker")
            if status_of(pid)["Uid"].startswith(f"{user.uid}\t")]


def spawn_params(place, **more):
    return {"argv": ["/bin/true"], "cwd": place, "env": {"PATH": lib.PATH}, **more}


def closed_or(function):
    try:
        return kind_of(function())
    except Closed:
        return "closed"


# ---- who is asking -------------------------------------------------------------------------


@case("system")
def r1_each_peer_is_who_the_kernel_says(daemon):
    for name in ("fsbxa", "fsbxb", "fsbxadm"):
        def ask():
            with Connection(daemon.socket) as connection:
                return connection.hello()["result"]["uid"]
        equal(as_user(User(name), ask), User(name).uid)
    # Connected as one user, used as another: who connected counts, and the other may not speak.

    connection = Connection(daemon.socket)  # of root, refused or served as root

    def speak():
        return closed_or(connection.hello)
    found = as_user(User("fsbxa"), speak)
    if found is None:
        raise AssertionError("a connection of root's was served to somebody else")
    connection.close()


@case("system")
def r1_the_socket_is_for_members_of_the_group(daemon):
    outsider = User("fsbxc")
    result = daemon.ctl("status", user=outsider)
    status_is(result, 125)
    mode = os.stat(daemon.socket)
    equal((stat.S_IMODE(mode.st_mode), mode.st_uid, mode.st_gid), (0o660, 0, lib.GROUPS["fsbox"]))
    # Without naming a socket the refusal is said, with the way out; there is no silent fallback.
    result = outsider.run([lib.FSBOXCTL, "status"])
    status_is(result, 125)
    contains(result.stderr, "fsbox")
    contains(result.stderr, "--user")
    with open("/proc/net/unix", encoding="utf-8") as file:
        lacks(file.read(), "@fsbox", "abstract sockets")


@case("user")
def r1_user_mode_serves_its_user_alone(daemon):
    if not lib.IS_ROOT:
        raise lib.Skip("needs root to be somebody else")
    other = User("fsbxb")
    status_is(daemon.ctl("status", user=other), 125)
    # Even where the files would let them in.
    folder = os.path.dirname(daemon.socket)
    os.chmod(f"/run/user/{daemon.user.uid}", 0o711)
    os.chmod(folder, 0o711)
    os.chmod(daemon.socket, 0o666)
    try:
        def ask():
            with Connection(daemon.socket) as connection:
                return closed_or(connection.hello)
        if as_user(other, ask) is None:
            raise AssertionError("another user was served")
        # Root owns everything anyway, and is not this user either.
        with Connection(daemon.socket) as connection:
            if closed_or(connection.hello) is None:
                raise AssertionError("root was served by a user's daemon")
    finally:
        os.chmod(daemon.socket, 0o600)
        os.chmod(folder, 0o700)
        os.chmod(f"/run/user/{daemon.user.uid}", 0o700)


@case(*MODES)
def r2_a_frame_of_another_process_ends_the_connection(daemon):
    def leak():
        connection = Connection(daemon.socket)
        connection.hello()
        pid = os.fork()
        if pid == 0:
            code = 9
            try:
                connection.send("status")
                code = 0
            finally:
                os._exit(code)
        os.waitpid(pid, 0)
        try:
            return connection.receive()
        except Closed:
            return "closed"
    answer = as_user(daemon.user, leak)
    if answer != "closed" and kind_of(answer) is None:
        raise AssertionError(f"a child's frame was served: {answer}")
    succeeds(daemon.ctl("status"))


@case(*MODES)
def r2_a_connection_in_a_sandbox_is_useless(daemon):
    place = project(daemon, "leak")

    def leak():
        """Hand a working connection to a job as its standard input."""
        inner = Connection(daemon.socket)
        inner.hello()
        with Connection(daemon.socket) as outer:
            outer.hello()
            return kind_of(outer.call("spawn", spawn_params(place, stdio={"stdin": 0}),
                                      [inner.socket.fileno()]))
    equal(as_user(daemon.user, leak), "descriptor-refused")
    # A socket pair of the client's is none of fsbox's and may pass: the case above is no accident.

    def fine():
        left, right = socket.socketpair()
        with Connection(daemon.socket) as outer, left, right:
            outer.hello()
            return kind_of(outer.call("spawn", spawn_params(place, stdio={"stdin": 0}),
                                      [left.fileno()]))
    equal(as_user(daemon.user, fine), None)


@case(*MODES)
def r3_the_broker_is_the_peer_and_nothing_more(daemon):
    succeeds(daemon.ctl("status"))
    user = daemon.user
    for pid in brokers(user):
        status = status_of(pid)
        equal(status["Uid"].split(), [str(user.uid)] * 4)
        equal(status["Gid"].split(), [str(user.gid)] * 4)
        if lib.IS_ROOT:
            equal(sorted(map(int, status["Groups"].split())), sorted(user.groups))
        for name in ("CapInh", "CapPrm", "CapEff", "CapAmb"):
            equal(int(status[name], 16), 0, name)
        equal(status["NoNewPrivs"], "1")
        if user.uid != 0 and os.stat(f"/proc/{pid}/environ").st_uid == user.uid:
            raise AssertionError("a broker is dumpable")
        if lib.IS_ROOT:
            with open(f"/proc/{pid}/environ", "rb") as file:
                equal(file.read(), b"", "environment")
            equal(os.readlink(f"/proc/{pid}/cwd"), "/")
            equal([os.readlink(f"/proc/{pid}/fd/{fd}") for fd in (0, 1)], ["/dev/null"] * 2)
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
            equal(file.read().rsplit(")", 1)[1].split()[3], str(pid), "session")

    def peek():
        """What the user can learn from the memory of a broker of his own."""
        found = []
        for pid in brokers(user):
            for name in ("mem", "environ", "maps", "fd/3"):
                try:
                    os.close(os.open(f"/proc/{pid}/{name}", os.O_RDONLY))
                    found.append(name)
                except OSError:
                    pass
            if ctypes.CDLL(None).ptrace(16, pid, 0, 0) == 0:  # PTRACE_ATTACH
                found.append("ptrace")
        return found
    equal(as_user(user, peek), [])


@case("system")
def r3_role_uids_are_never_peers(daemon):
    class Role:
        name, home = "role", "/"
        groups = [lib.GROUPS["fsbox"]]

        def __init__(self, uid):
            self.uid = self.gid = uid

        def environment(self):
            return {}

    def ask():
        with Connection(daemon.socket) as connection:
            return closed_or(connection.hello)
    for uid in (61180, 61181):
        if as_user(Role(uid), ask) is None:
            raise AssertionError(f"uid {uid} was served")
    recorders = [status_of(pid) for pid in lib.processes("fsbox-recorder")]
    equal([r["Uid"].split() for r in recorders if r["PPid"] == str(daemon.process.pid)],
          [["61180"] * 4])


@case(*MODES)
def r4_home_is_the_password_files(daemon):
    lib.needs_throwaway_home()
    place = project(daemon, "home")
    result = daemon.spawn("--", "/bin/sh", "-c", "echo $HOME", cwd=place, env={"HOME": "/tmp/other"})
    succeeds(result, f"{daemon.user.home}\n")
    with open(f"/proc/{daemon.process.pid}/maps", encoding="utf-8") as file:
        lacks(file.read(), "libnss", "name services in fsboxd")


@case("system")
def r5_a_false_server_hears_nothing(daemon):
    """fsboxctl of one user meets a socket that another one made."""
    heard = []
    folder = "/run/false"
    os.makedirs(folder, exist_ok=True)
    path = f"{folder}/fsbox.sock"

    def serve():
        """As fsbxb: accept once, count what comes."""
        server = socket.socket(socket.AF_UNIX)
        server.bind(path)
        os.chmod(path, 0o666)
        server.listen()
        server.settimeout(15)
        connection, _ = server.accept()
        connection.settimeout(3)
        try:
            return len(connection.recv(4096))
        except (TimeoutError, ConnectionResetError):
            return 0
    os.chmod(folder, 0o777)
    thread = threading.Thread(target=lambda: heard.append(as_user(User("fsbxb"), serve)))
    thread.start()
    wait_for(lambda: os.path.exists(path) and stat.S_IMODE(os.stat(path).st_mode) == 0o666, 10,
             "the false server")
    for command in (["spawn", "--", "true"],):
        result = User("fsbxa").run([lib.FSBOXCTL, "--socket", path, *command])
        status_is(result, 125)
    thread.join()
    equal(heard, [0], "bytes that the false server got")
    os.remove(path)
    os.rmdir(folder)
    succeeds(daemon.ctl("status"))


def unshare(flags):
    def prepare():
        if ctypes.CDLL(None, use_errno=True).unshare(flags) != 0:
            raise OSError(ctypes.get_errno(), "unshare")
    return prepare


CLONE_NEWNS, CLONE_NEWUSER, CLONE_NEWPID = 0x20000, 0x10000000, 0x20000000


def ask_hello(daemon):
    def ask():
        with Connection(daemon.socket) as connection:
            return connection.hello()
    return ask


def refused(daemon, prepare, word, function=None):
    answer = as_user(daemon.user, function or ask_hello(daemon), prepare=prepare)
    equal(kind_of(answer), "confined-peer", word)
    contains(answer["error"]["message"], word, "the message says which")


@case(*MODES, root=True)
def r6_peers_in_other_namespaces_are_refused(daemon):
    refused(daemon, unshare(CLONE_NEWNS), "mount")

    def other_pid_namespace():
        unshare(CLONE_NEWPID)()
        pid = os.fork()
        if pid:
            _, status = os.waitpid(pid, 0)
            os._exit(os.waitstatus_to_exitcode(status))
    refused(daemon, other_pid_namespace, "pid")

    def in_user_namespace():
        unshare(CLONE_NEWUSER)()
        return ask_hello(daemon)()
    refused(daemon, None, "user", in_user_namespace)

    folder = "/run/root"
    os.makedirs(folder, exist_ok=True)
    lib.mount("--rbind", "/", folder)
    try:
        def chroot():
            os.chroot(folder)
            os.chdir("/")
        refused(daemon, chroot, "root")
    finally:
        lib.sh("umount", "-l", folder)


@case(*MODES)
def r6_peers_without_new_privileges_or_filtered_are_refused(daemon):
    libc = ctypes.CDLL(None, use_errno=True)

    def no_new_privs():
        libc.prctl(38, 1, 0, 0, 0)
        return ask_hello(daemon)()
    refused(daemon, None, "no-new-privs", no_new_privs)
    # fsboxctl says the same to people.
    result = daemon.user.run(["setpriv", "--no-new-privs", *daemon.command("status")])
    status_is(result, 125, "confined-peer")

    def filtered():
        libc.prctl(38, 1, 0, 0, 0)
        # BPF_RET | BPF_K, SECCOMP_RET_ALLOW
        code = ctypes.create_string_buffer(struct.pack("HBBI", 6, 0, 0, 0x7fff0000))
        program = struct.pack("HxxxxxxP", 1, ctypes.addressof(code))
        if libc.prctl(22, 2, ctypes.c_char_p(program), 0, 0) != 0:
            raise OSError(ctypes.get_errno(), "seccomp")
        return ask_hello(daemon)()
    equal(kind_of(as_user(daemon.user, filtered)), "confined-peer")


@case(*MODES)
def r6_a_client_inside_another_sandbox_is_refused(daemon):
    if lib.no_user_namespaces():
        raise lib.Skip(f"user namespaces are blocked: {lib.no_user_namespaces()}")
    result = daemon.user.run(["bwrap", "--bind", "/", "/", "--dev", "/dev", *daemon.command("status")])
    status_is(result, 125)
    # Where the namespace hides who serves, the client does not even ask.
    if b"confined-peer" not in result.stderr and b"nothing was sent" not in result.stderr:
        raise AssertionError(lib.show(result))
    # Inside fsbox's own the socket is not even there.
    place = project(daemon, "nested")
    result = daemon.spawn("--ro", lib.BUILD, "--", *daemon.command("--no-autostart", "status"),
                          cwd=place)
    status_is(result, 125)


@case(root=True)
def r6_configuration_may_admit_a_uid_but_never_a_namespace():
    daemon = lib.make_daemon("system")
    daemon.start(config=f"admit-confined-uid = {daemon.user.uid}\n")
    try:
        def no_new_privs():
            ctypes.CDLL(None).prctl(38, 1, 0, 0, 0)
            return ask_hello(daemon)()
        answer = as_user(daemon.user, no_new_privs)
        equal(kind_of(answer), None, str(answer))
        equal(kind_of(as_user(User("fsbxb"), no_new_privs)), "confined-peer")
        refused(daemon, unshare(CLONE_NEWNS), "mount")
    finally:
        daemon.stop()


# ---- what fsboxd touches -------------------------------------------------------------------


@case(*MODES)
def r7_descriptors_that_may_not_enter_a_sandbox(daemon):
    place = project(daemon, "kinds")

    def kinds():
        found = {}
        listening = socket.socket(socket.AF_UNIX)
        listening.bind(f"{place}/listening")
        listening.listen()
        pair = socket.socketpair()
        makers = {
            "directory": lambda: os.open(place, os.O_RDONLY),
            "O_PATH": lambda: os.open("/bin/true", os.O_PATH),
            "O_PATH directory": lambda: os.open("/", os.O_PATH),
            "pidfd": lambda: os.pidfd_open(os.getpid()),
            "namespace": lambda: os.open("/proc/self/ns/net", os.O_RDONLY),
            "listening socket": lambda: os.dup(listening.fileno()),
            "pipe": lambda: os.pipe()[0],
            "null": lambda: os.open("/dev/null", os.O_RDWR),
            "socket pair": lambda: os.dup(pair[0].fileno()),
        }
        for name, make in makers.items():
            with Connection(daemon.socket) as connection:
                connection.hello()
                fd = make()
                found[name] = closed_or(lambda c=connection, f=fd: c.call(
                    "spawn", spawn_params(place, stdio={"stdin": 0}), [f]))
                os.close(fd)
        return found
    found = as_user(daemon.user, kinds)
    for name in ("pipe", "null", "socket pair"):
        equal(found.pop(name), None, name)
    for name, kind in found.items():
        equal(kind, "descriptor-refused", name)
    # fsboxd itself holds nothing that anybody passed.
    if lib.IS_ROOT:
        for fd in os.listdir(f"/proc/{daemon.process.pid}/fd"):
            try:
                lacks(os.readlink(f"/proc/{daemon.process.pid}/fd/{fd}"), place)
            except FileNotFoundError:  # closed meanwhile
                pass


@case(*MODES, root=True)
def r7_block_devices_are_refused(daemon):
    place = project(daemon, "block")
    node = f"{os.environ['FSBOX_TEST_TOP']}/block"
    os.mknod(node, 0o666 | stat.S_IFBLK, os.makedev(7, 199))
    try:
        fd = os.open(node, os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        os.remove(node)
        fd = next((os.open(path, os.O_RDONLY) for path in glob.glob("/dev/vd?")
                   + glob.glob("/dev/sd?") + glob.glob("/dev/loop?")), None)
        if fd is None:
            raise lib.Skip("there is no block device") from None

    def send():
        with Connection(daemon.socket) as connection:
            connection.hello()
            return closed_or(lambda: connection.call(
                "spawn", spawn_params(place, stdio={"stdin": 0}), [fd]))
    try:
        equal(as_user(daemon.user, send), "descriptor-refused")
    finally:
        os.close(fd)
        if os.path.exists(node):
            os.remove(node)


@case(*MODES)
def r8_a_file_outside_the_grants_is_relayed_not_passed(daemon):
    place = project(daemon, "relay")
    outside = project(daemon, "relay-outside")

    def send(path):
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        with Connection(daemon.socket) as connection:
            connection.hello()
            return closed_or(lambda: connection.call(
                "spawn", spawn_params(place, stdio={"stdout": 0}), [fd]))
    equal(as_user(daemon.user, send, f"{outside}/log"), "stdio-relay")
    equal(as_user(daemon.user, send, f"{place}/log"), None)
    # fsboxctl does the relaying: the output arrives, reopening does not.
    script = f'exec "$@" >{outside}/out'
    result = daemon.user.run(["/bin/sh", "-c", script, "sh", *daemon.command(
        "spawn", "--", "/bin/sh", "-c", "echo through; ls -l /proc/self/fd/1")], cwd=place)
    succeeds(result)
    daemon.user.write(f"{outside}/kept", "SECRET\n")
    with open(f"{outside}/out", encoding="utf-8") as file:
        said = file.read()
    contains(said, "through\n")
    contains(said, "pipe:", "what standard output is inside")
    result = daemon.user.run(["/bin/sh", "-c", f'exec "$@" >>{outside}/kept', "sh", *daemon.command(
        "spawn", "--", "/bin/sh", "-c", "timeout 1 cat </proc/self/fd/1 >&2; true")], cwd=place,
        timeout=20)
    lacks(result.stderr, "SECRET", "a file that was passed for writing")


class HungFileSystem:
    """A FUSE mount whose server reads every request and never answers."""

    def __init__(self, place, user):
        self.place = place
        try:
            self.fd = os.open("/dev/fuse", os.O_RDWR)
        except OSError as error:
            raise lib.Skip(f"no FUSE here: {error}") from None
        os.makedirs(place, exist_ok=True)
        libc = ctypes.CDLL(None, use_errno=True)
        options = f"fd={self.fd},rootmode=40000,user_id={user.uid},group_id={user.gid},allow_other"
        if libc.mount(b"hung", place.encode(), b"fuse", 0, options.encode()) != 0:
            raise lib.Skip(f"no FUSE here: {os.strerror(ctypes.get_errno())}")
        os.set_blocking(self.fd, False)
        self.ended = False
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def serve(self):
        try:
            while not self.ended:
                if not select.select([self.fd], [], [], 0.2)[0]:
                    continue
                request = os.read(self.fd, 1 << 18)
                _, opcode, unique = struct.unpack("<IIQ", request[:16])
                if opcode == 26:  # INIT
                    major, minor = struct.unpack("<II", request[40:48])
                    body = struct.pack("<IIIIHHIIHHI28x", major, min(minor, 31), 1 << 17, 0, 12, 10,
                                       1 << 17, 1, 0, 0, 0)
                    os.write(self.fd, struct.pack("<IiQ", 16 + len(body), 0, unique) + body)
        except OSError:
            pass

    def close(self):
        lib.sh("umount", "-l", self.place)
        self.ended = True
        self.thread.join()
        os.close(self.fd)  # the last one: the kernel fails everything that waits


@case("system", root=True)
def r9_hung_paths_hang_nobody_but_their_own_request(daemon):
    place = project(daemon, "hung")
    hung = HungFileSystem("/run/hung", daemon.user)
    try:
        started = time.monotonic()
        waiting = [daemon.user.popen(daemon.command("spawn", "--ro", f"/run/hung/{n}", "--", "true"),
                                     cwd=place, stdout=-1, stderr=-1) for n in range(4)]
        time.sleep(1)
        # Others, and this user's other requests, are served meanwhile.
        succeeds(daemon.ctl("status", user=User("fsbxb"), timeout=5))
        other = project(daemon, "other")
        status_is(daemon.sh("exit 3", cwd=other, timeout=30), 3)
        for process in waiting:
            _, errors = process.communicate(timeout=60)
            equal(process.returncode, 125, lib.text(errors))
        if time.monotonic() - started > 58:
            raise AssertionError("the requests took too long to give up")
        # Four hang for good; a fifth is told so at once, as long as they do.
        started = time.monotonic()
        result = daemon.spawn("--ro", "/run/hung/5", "--", "true", cwd=place, timeout=40)
        status_is(result, 125)
        if b"resolver-busy" not in result.stderr and b"timeout" not in result.stderr:
            raise AssertionError(lib.show(result))
        # With a policy that is known the sandbox is begun before that is seen: nothing runs, nothing stays.
        status_is(daemon.sh("touch ran", cwd=other, timeout=40), 125, "resolver-busy")
        wait_for(lambda: not daemon.jobs(), 10, "the end of what was begun")
        equal(os.listdir(other), [])
        succeeds(daemon.ctl("status", user=User("fsbxb"), timeout=5))
    finally:
        hung.close()
    wait_for(lambda: daemon.spawn("--", "true", cwd=place).returncode == 0, 30,
             "service after the file system is gone")


@case(root=True)
def r13_the_quota_of_jobs_is_exact():
    daemon = lib.make_daemon("system")
    daemon.start(config="max-jobs-per-uid = 3\nmax-jobs = 5\n")
    try:
        place = project(daemon, "quota")

        def start(user, home):
            return user.popen(daemon.command("spawn", "--", "/bin/sh", "-c", "echo up; read x"),
                              cwd=home, stdin=-1, stdout=-1, stderr=-1)
        running = []
        for _ in range(3):
            running.append(start(daemon.user, place))
            equal(running[-1].stdout.readline(), b"up\n")
        status_is(daemon.spawn("--", "true", cwd=place), 125, "quota-exceeded")
        other = User("fsbxb")
        other.shell(f"mkdir -p {other.home}/p")
        for _ in range(2):
            running.append(start(other, f"{other.home}/p"))
            equal(running[-1].stdout.readline(), b"up\n")
        status_is(daemon.spawn("--", "true", user=other, cwd=f"{other.home}/p"), 125,
                  "quota-exceeded")
        running.pop().communicate(b"\n", 30)
        wait_for(lambda: daemon.spawn("--", "true", user=other,
                                      cwd=f"{other.home}/p").returncode == 0, 10, "a free place")
        for process in running:
            process.communicate(b"\n", 30)
    finally:
        daemon.stop()


@case(*MODES)
def r13_a_timeout_holds_without_a_broker(daemon):
    place = project(daemon, "r13")
    succeeds(daemon.detach("--timeout", "4s", "--", "/bin/sh", "-c",
                          "while :; do date +%N >beat; sleep .05; done", cwd=place))
    wait_for(lambda: os.path.exists(f"{place}/beat"), 10, "the command")
    for pid in brokers(daemon.user):
        os.kill(pid, signal.SIGKILL)

    def stopped():
        before = os.stat(f"{place}/beat").st_mtime_ns
        time.sleep(0.3)
        return os.stat(f"{place}/beat").st_mtime_ns == before
    wait_for(lambda: not stopped(), 1, "the command not to die with its broker")
    wait_for(stopped, 8, "the timeout")


@case("system")
def r14_what_a_user_does_to_his_own_roles_harms_nobody_else(daemon):
    victim, other = daemon.user, User("fsbxb")
    other.shell(f"mkdir -p {other.home}/p")
    bystander = other.popen(daemon.command("spawn", "--", "/bin/sh", "-c", "echo up; read x; exit 9"),
                            cwd=f"{other.home}/p", stdin=-1, stdout=-1, stderr=-1)
    equal(bystander.stdout.readline(), b"up\n")
    succeeds(daemon.ctl("status"))

    def attack():
        done = 0
        for pid in filter(str.isdigit, os.listdir("/proc")):
            for number in (signal.SIGSTOP, signal.SIGKILL):
                try:
                    if int(pid) != os.getpid():
                        os.kill(int(pid), number)
                        done += 1
                except OSError:
                    pass
        return done
    if as_user(victim, attack) == 0:
        raise AssertionError("the attack reached nothing at all: is the broker there?")
    start = time.monotonic()
    succeeds(daemon.ctl("status", user=other, timeout=10))
    if time.monotonic() - start > 8:
        raise AssertionError("another user had to wait")
    bystander.communicate(b"\n", 30)
    equal(bystander.returncode, 9)
    place = project(daemon, "r14")
    succeeds(daemon.sh("true", cwd=place, timeout=30))

    # Stopped, not killed: his own requests may wait, others' not.
    def stop():
        for pid in brokers(victim):
            os.kill(pid, signal.SIGSTOP)
    as_user(victim, stop)
    succeeds(daemon.ctl("status", user=other, timeout=10))
    succeeds(daemon.sh("true", cwd=f"{other.home}/p", user=other, timeout=20))
    for pid in brokers(victim):
        os.kill(pid, signal.SIGKILL)


@case("system")
def r14_jobs_of_others_can_be_neither_seen_nor_signalled(daemon):
    place = project(daemon, "r14jobs")
    process = daemon.user.popen(daemon.command("spawn", "--label", "mine", "--", "/bin/sh", "-c",
                                               "echo up; read x"), cwd=place, stdin=-1, stdout=-1)
    equal(process.stdout.readline(), b"up\n")
    job = str(daemon.jobs()[0]["job"])
    other, admin = User("fsbxb"), User("fsbxadm")
    lacks(daemon.ctl("--json", "ps", user=other).stdout, '"mine"')
    for command in (["inspect", job], ["signal", job, "KILL"], ["wait", job]):
        result = daemon.ctl(*command, user=other, timeout=10)
        if result.returncode == 0:
            raise AssertionError(f"{command} of another's job: {lib.show(result)}")
        contains(result.stderr, "job-unknown")
    equal(process.poll(), None)
    succeeds(daemon.ctl("inspect", job, user=admin))
    succeeds(daemon.ctl("signal", job, "KILL", user=admin))
    process.communicate(timeout=30)
    equal(process.returncode, 137)


@case(*ALL)
def r15_no_secret_in_arguments_environments_or_records(daemon):
    place = project(daemon, "r15")
    process = daemon.user.popen(
        daemon.command("spawn", "--env", "INSIDE=SECRETVALUE", "--", "/bin/sh", "-c",
                       "echo up; read x; : SECRETARGUMENT"), cwd=place, stdin=-1, stdout=-1)
    equal(process.stdout.readline(), b"up\n")
    inside = {}
    for pid, name in lib.processes().items():
        for leaf in ("cmdline", "environ"):
            try:
                with open(f"/proc/{pid}/{leaf}", "rb") as file:
                    data = file.read()
            except OSError:
                continue
            if b"SECRETVALUE" in data or b"SECRETARGUMENT" in data:
                inside.setdefault(name, set()).add(leaf)
    process.communicate(b"\n", 30)
    # The caller's own command line and the command itself; nobody between them.
    equal(set(inside) - {"fsboxctl", "sh"}, set(), f"{inside}")
    events = {"system": "/var/log/fsbox/events.jsonl",
              "user": f"{daemon.user.home}/.local/state/fsbox/events.jsonl",
              "root": "/var/lib/fsbox-root/events.jsonl"}[daemon.mode]
    if lib.IS_ROOT:
        with open(events, encoding="utf-8") as file:
            data = file.read()
        contains(data, '"execution.started"', events)
        lacks(data, "SECRET", events)
    lacks(daemon.logged(), "SECRET", "fsboxd's log")


@case("system")
def r15_the_records_are_for_the_administrators(daemon):
    found = os.stat("/var/log/fsbox/events.jsonl")
    equal((stat.S_IMODE(found.st_mode), found.st_uid, found.st_gid),
          (0o640, 61180, lib.GROUPS["fsbox-admin"]))

    def read():
        try:
            with open("/var/log/fsbox/events.jsonl", "rb") as file:
                return len(file.read())
        except PermissionError:
            return -1
    equal(as_user(User("fsbxa"), read), -1)
    if as_user(User("fsbxadm"), read) <= 0:
        raise AssertionError("an administrator cannot read the events")
    if not daemon.process:
        raise AssertionError("no daemon")


@case(*ALL)
def r16_everything_is_given_up_inside(daemon):
    place = project(daemon, "r16")
    out = succeeds(daemon.sh("cat /proc/1/status; echo ==; cat /proc/self/status; echo ==; "
                             "cat /proc/1/mem 2>&1 | head -c 1; cat /proc/1/environ; "
                             "ls -l /proc/1/exe /proc/1/fd 2>/dev/null; echo ==; "
                             "cat /proc/self/uid_map; echo ==; ls /proc", cwd=place))
    first, own, peek, _, listing = out.split("==\n")
    for status in (first, own):
        fields = dict(line.split(":\t", 1) for line in status.strip().split("\n") if ":\t" in line)
        for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
            equal(int(fields[name], 16), 0, name)
        equal(fields["NoNewPrivs"], "1")
        equal(fields["Seccomp"], "2")
    lacks(peek, "exe ->", "pid 1's program")
    pids = [word for word in listing.split() if word.isdigit()]
    if len(pids) > 4:
        raise AssertionError(f"processes seen inside: {pids}")
    # Things that the filter and the dropped capabilities stop.
    script = "unshare -U true; unshare -m true; mount -t tmpfs x /tmp; chroot / true; hostname x"
    for command in script.split("; "):
        if daemon.sh(f"PATH=$PATH:/usr/sbin:/sbin; {command}", cwd=place).returncode == 0:
            raise AssertionError(f"{command}: worked inside")


@case("system")
def r20_groups_and_priorities_are_the_peers_without_the_dangerous(daemon):
    place = project(daemon, "r20")
    groups = succeeds(daemon.sh("id -G", cwd=place)).split()
    for name, gid in lib.GROUPS.items():
        if str(gid) in groups:
            raise AssertionError(f"group {name} inside: {groups}")
    out = succeeds(daemon.user.run(
        ["/bin/sh", "-c", 'ulimit -n 300; ulimit -c 0; umask 027; exec nice -n 5 "$@"', "sh",
         *daemon.command("spawn", "--", "/bin/sh", "-c",
                         "nice; ulimit -n; ulimit -c; umask; cat /proc/self/oom_score_adj; id -u")],
        cwd=place)).split("\n")
    equal(out[0], "5", "nice")
    equal(out[1], "300", "open files")
    if out[2] not in ("0", "1"):  # blocks: one byte is none
        raise AssertionError(f"core files: {out[2]}")
    equal(out[3], "0027", "umask")
    with open("/proc/self/oom_score_adj", encoding="utf-8") as file:
        equal(out[4], file.read().strip(), "oom_score_adj")
    equal(out[5], str(daemon.user.uid))
    out = succeeds(daemon.user.run(["taskset", "1", *daemon.command(
        "spawn", "--", "grep", "Cpus_allowed_list", "/proc/self/status")], cwd=place))
    equal(out.split()[1], "0", "affinity")


@case(*ALL)
def r25_what_is_fsboxs_own_is_closed_inside(daemon):
    lib.needs_throwaway_home()
    place = project(daemon, "r25")
    home = daemon.user.home
    own = {"system": ["/run/fsbox", "/var/lib/fsbox", "/var/log/fsbox", "/etc/fsbox"],
           "user": [os.path.dirname(daemon.socket), f"{home}/.local/state/fsbox",
                    f"{home}/.config/fsbox"],
           "root": ["/run/fsbox-root", "/var/lib/fsbox-root", "/etc/fsbox"]}[daemon.mode]
    if lib.IS_ROOT:
        os.makedirs("/etc/fsbox", exist_ok=True)
    if daemon.mode == "user":
        daemon.user.write(f"{home}/.config/fsbox/profiles/x.json", "{}\n")
    profiles = [[], ["--rw", "/"], ["--rw", home]]
    if daemon.mode != "root":
        profiles += [["--profile", "host"], ["--allow-home", "--cwd", home]]
    for options in profiles:
        for path in own:
            options_for = options + ["--rw", path]
            result = daemon.sh(f"ls '{path}' 2>/dev/null && echo LISTED; "
                               f"echo x >'{path}/planted' && echo WRITTEN; "
                               f"mkdir -p '{path}/planted.d' && echo MADE; "
                               f"ls '{path}'/* 2>/dev/null | head -1", *options_for, cwd=place)
            for word in ("LISTED", "WRITTEN", "MADE"):
                lacks(result.stdout, word, f"{options_for}: {path}")
            for name in ("planted", "planted.d"):
                if os.path.lexists(f"{path}/{name}"):
                    raise AssertionError(f"{options_for}: {path}/{name} on the host")
        # The programs may be read, never changed.
        binaries = os.path.join(lib.BUILD, "daemon")
        result = daemon.sh(f"echo x >>'{binaries}/fsbox-broker' && echo WRITTEN; "
                           f"echo x >'{binaries}/planted' && echo WRITTEN",
                           *options, "--rw", lib.BUILD, cwd=place)
        lacks(result.stdout, "WRITTEN", f"{options}: {binaries}")


@case("system")
def one_client_does_not_starve_another(daemon):
    """Many connections, many requests, nothing read: others are served, memory stays bounded."""
    def flood():
        greedy = []
        for _ in range(200):
            try:
                connection = Connection(daemon.socket, timeout=2)
                connection.hello()
                greedy.append(connection)
            except (Closed, OSError):
                break
        for connection in greedy[:20]:
            connection.socket.setblocking(False)
            try:
                for _ in range(3000):
                    connection.send("status")
            except (BlockingIOError, Closed):
                pass
        time.sleep(2)  # all stay open while the others ask
        return len(greedy)
    thread = threading.Thread(target=lambda: as_user(daemon.user, flood))
    thread.start()
    time.sleep(1)
    start = time.monotonic()
    succeeds(daemon.ctl("status", user=User("fsbxb"), timeout=10))
    if time.monotonic() - start > 8:
        raise AssertionError(f"another user waited {time.monotonic() - start:.1f} s")
    thread.join()
    for pid in brokers(daemon.user):
        resident = int(re.match(r"\d+", status_of(pid)["VmRSS"].strip()).group(0))
        if resident > 200 << 10:
            raise AssertionError(f"the broker holds {resident} KiB")


@case(*MODES)
def descriptors_by_the_thousand_are_not_kept(daemon):
    def send():
        with Connection(daemon.socket) as connection:
            connection.hello()
            null = os.open("/dev/null", os.O_RDWR)
            for _ in range(50):
                try:
                    body = b'{"jsonrpc":"2.0","id":1,"method":"detect","params":{}}'
                    ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS,
                                  array.array("i", [null] * 200))]
                    connection.socket.sendmsg([struct.pack(">I", len(body)) + body], ancillary)
                except OSError:
                    break
            return connection.is_closed_within(5)
    equal(as_user(daemon.user, send), True)
    if lib.IS_ROOT:
        for pid in brokers(daemon.user):
            if lib.descriptors(pid) > 60:
                raise AssertionError(f"the broker holds {lib.descriptors(pid)} descriptors")
    succeeds(daemon.ctl("status"))


lib.main()
