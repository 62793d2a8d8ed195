# SPDX-License-Identifier: Apache-2.0
"""What runs inside, and wants out: each way that was tried, so that it stays closed.

Every case runs under both engines. What is inside is Python, so that system calls can be made as they
are; it prints one JSON object, which the case judges. Named after the requirements of docs/SECURITY.md.
"""

import json
import os
import pty
import select
import shutil
import signal
import socket
import time
import zlib

import lib
from lib import User, case, contains, equal, lacks, project, status_is, succeeds, wait_for

# For processes without end: the kernel counts a user's on the whole host, so that he is nobody else's,
# also not that of another run of these tests.
lib.USERS["fsbxbomb"] = (61600 + zlib.crc32(os.environ.get("FSBOX_TEST_TOP", "").encode()) % 300, ["fsbox"])

ENGINES = ("native", "bwrap")
MODES = ("system", "user")
ALL = ("system", "user", "root")

# At the start of every script: t(name, function) notes a result or the name of an errno.
PRELUDE = r'''
import ctypes, errno, fcntl, json, os, signal, socket, sys, time
libc = ctypes.CDLL(None, use_errno=True)
said = {}
def t(name, function):
    try:
        said[name] = function()
    except OSError as e:
        said[name] = errno.errorcode.get(e.errno, str(e.errno))
def sc(*arguments):
    ctypes.set_errno(0)
    r = libc.syscall(*[ctypes.c_long(a) if isinstance(a, int) else a for a in arguments])
    return r if r >= 0 else errno.errorcode[ctypes.get_errno()]
def read(path):
    with open(path, "rb") as file:
        return file.read(4096).decode("latin-1")
def opens(path, flags):
    os.close(os.open(path, flags | os.O_NONBLOCK))
    return "opened"
'''


def inside(daemon, engine, script, place, *options, arguments=(), **more):
    """What SCRIPT said in a job in PLACE."""
    result = daemon.spawn("--engine", engine, *options, "--", "/usr/bin/python3", "-c",
                          PRELUDE + script + "\nprint(json.dumps(said))", *arguments, cwd=place, **more)
    return json.loads(succeeds(result))


def shell(daemon, engine, script, place, *options, **more):
    return daemon.sh(script, "--engine", engine, *options, cwd=place, **more)


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


# ---- pid 1 and the kernel --------------------------------------------------------------------

PID_1 = r'''
for name in ("environ", "maps", "mem", "auxv", "io", "stack", "syscall", "personality", "pagemap",
             "smaps", "ns/mnt", "ns/user"):
    t("read " + name, lambda: opens("/proc/1/" + name, os.O_RDONLY) and os.read(
        os.open("/proc/1/" + name, os.O_RDONLY), 1).hex())
t("list map_files", lambda: os.listdir("/proc/1/map_files"))
for name in ("exe", "root", "cwd", "fd/0", "fd/3", "ns/mnt", "ns/pid"):
    t("link " + name, lambda: os.readlink("/proc/1/" + name))
    t("through " + name, lambda: opens("/proc/1/" + name, os.O_RDONLY))
for name in ("mem", "comm", "oom_score_adj", "coredump_filter", "clear_refs", "uid_map", "setgroups",
             "sched", "autogroup", "loginuid"):
    t("write " + name, lambda: opens("/proc/1/" + name, os.O_WRONLY))
t("attach", lambda: sc(101, 16, 1, 0, 0))
t("seize", lambda: sc(101, 0x4206, 1, 0, 0))
t("vm_readv", lambda: sc(310, 1, 0, 0, 0, 0, 0))
t("vm_writev", lambda: sc(311, 1, 0, 0, 0, 0, 0))
t("getfd", lambda: sc(438, os.pidfd_open(1), 0, 0))
t("kcmp", lambda: sc(312, 1, os.getpid(), 0, 0, 0))
t("prlimit", lambda: sc(302, 1, 7, 0, 0))
t("prlimit, high bits", lambda: sc(302, 1 | 1 << 40, 7, 0, 0))
t("setpgid", lambda: sc(109, 0, 1))
t("nice group 1", lambda: sc(141, 1, 1, 19))
t("nice user", lambda: sc(141, 2, 0, 19))
t("affinity", lambda: os.sched_setaffinity(1, {0}))
t("scheduler", lambda: os.sched_setscheduler(1, os.SCHED_IDLE, os.sched_param(0)))
'''

REFUSED = {"EPERM", "EACCES", "ENOSYS", "EROFS", "ENOENT", "ESRCH", "ENXIO", "ENOTDIR"}


@case(*ALL)
@both
def r16_pid_1_is_out_of_reach(daemon, engine):
    place = project(daemon, "pid1")
    all_in(inside(daemon, engine, PID_1, place), REFUSED, "pid 1")
    said = inside(daemon, engine, r'''
pid_1 = os.pidfd_open(1)
for number in range(1, 65):
    try:
        os.kill(1, number)
        signal.pidfd_send_signal(pid_1, number)
    except OSError as e:
        if e.errno != errno.EINVAL: raise
os.close(pid_1)
said["alive"] = os.path.exists("/proc/1/stat")
said["descriptors"] = sorted(map(int, os.listdir("/proc/self/fd")))[:-1]
said["processes"] = sorted(int(p) for p in os.listdir("/proc") if p.isdigit())
said["groups"] = [os.getsid(0), os.getpgrp(), os.getpid()]
said["caps"] = [l.split()[1] for l in open("/proc/self/status") if l.startswith("Cap")]
said["flags"] = [l.split()[1] for l in open("/proc/self/status")
                 if l.startswith(("NoNewPrivs", "Seccomp:"))]
''', place)
    equal(said, {"alive": True, "descriptors": [0, 1, 2], "processes": [1, 2], "groups": [2, 2, 2],
                 "caps": ["0" * 16] * 5, "flags": ["1", "2"]})


@case(*ALL)
@both
def r17_r18_system_calls_that_lead_out(daemon, engine):
    if os.uname().machine != "x86_64":
        raise lib.Skip("numbers are those of x86_64")
    said = inside(daemon, engine, r'''
for name, number, arguments in (
    ("mount", 165, (b"none", b"/tmp", b"tmpfs", 0, 0)), ("umount2", 166, (b"/proc", 2)),
    ("pivot_root", 155, (b"/tmp", b"/tmp")), ("chroot", 161, (b"/tmp",)),
    ("open_tree", 428, (-100, b"/", 0x8001)), ("open_tree_attr", 467, (-100, b"/", 1, 0, 0)),
    ("move_mount", 429, (-100, b"/tmp", -100, b"/tmp", 0)), ("fsopen", 430, (b"tmpfs", 0)),
    ("fsmount", 432, (0, 0, 0)), ("fspick", 433, (-100, b"/tmp", 0)),
    ("mount_setattr", 442, (-100, b"/", 0, 0, 0)), ("setns", 308, (0, 0)),
    ("unshare", 272, (0x10000000,)), ("unshare mount", 272, (0x20000,)),
    ("unshare, high bits", 272, (0x10000000 | 1 << 32,)),
    ("clone", 56, (0x10000000 | 17, 0, 0, 0, 0)), ("clone pid", 56, (0x20000000 | 17, 0, 0, 0, 0)),
    ("clone3", 435, (0, 0)), ("bpf", 321, (0, 0, 0)), ("perf", 298, (0, 0, 0, 0, 0)),
    ("userfaultfd", 323, (1,)), ("io_uring", 425, (1, 0)), ("keyctl", 250, (0, -3)),
    ("add_key", 248, (b"user", b"x", b"y", 1, -3)), ("request_key", 249, (b"user", b"x", 0, -3)),
    ("by handle", 304, (0, 0, 0)), ("fanotify", 300, (0, 0)), ("quotactl", 179, (0, 0, 0, 0)),
    ("swapon", 167, (b"/x", 0)), ("reboot", 169, (0, 0, 0, 0)), ("syslog", 103, (3, 0, 0)),
    ("sethostname", 170, (b"x", 1)), ("module", 313, (0, b"", 0)), ("ioperm", 173, (0, 1, 1)),
    ("ldt", 154, (0, 0, 0)), ("unreviewed", 470, ()), ("far", 5000, ()),
    ("mknod", 133, (b"/tmp/b", 0o60666, 0x100)), ("core", 160, (4, b"\xff" * 16))):
    t(name, lambda: sc(number, *arguments))
for family, kind, protocol in ((40, 1, 0), (38, 5, 0), (17, 3, 0), (16, 3, 2), (16, 3, 9), (16, 3, 15),
                               (16, 3, 16), (16, 3, 4), (2, 3, 1), (44, 3, 0), (31, 3, 0), (29, 3, 0),
                               (15, 3, 2), (39, 1, 0)):
    t("socket %d" % family, lambda: sc(41, family, kind, protocol))
''', project(daemon, "calls"))
    all_in(said, REFUSED, "system calls")
    for script in ("libc.syscall(ctypes.c_long(0x40000000 | 39))",  # x32
                   "import mmap; m = mmap.mmap(-1, 4096, prot=7);"  # getpid by int 0x80
                   "m.write(bytes.fromhex('b814000000cd80c3'));"
                   "ctypes.CFUNCTYPE(ctypes.c_int)("
                   "ctypes.addressof(ctypes.c_char.from_buffer(m)))()"):
        result = daemon.spawn("--engine", engine, "--", "/usr/bin/python3", "-c",
                              "import ctypes; libc = ctypes.CDLL(None);" + script,
                              cwd=project(daemon, "calls"))
        if result.returncode == 0:
            raise AssertionError(f"{script}: went through")


@case(*ALL)
@both
def r19_proc_dev_and_sys_are_not_the_hosts(daemon, engine):
    said = inside(daemon, engine, r'''
for path in ("/proc/kcore", "/proc/kallsyms", "/proc/keys", "/proc/kmsg", "/proc/timer_list",
             "/proc/sysrq-trigger", "/proc/sys/kernel/core_pattern", "/proc/sys/vm/drop_caches",
             "/dev/kmsg", "/dev/mem", "/dev/fuse", "/dev/net/tun", "/dev/kvm", "/dev/vsock", "/dev/vda",
             "/dev/x", "/x", "/sys/x", "/sys/kernel/mm/transparent_hugepage/enabled", "/etc/x", "/usr/x",
             "/dev/.fsbox-stage/x", "/dev/.fsbox-pins/0", "/home/x"):
    t(path, lambda: opens(path, os.O_WRONLY | os.O_CREAT))
for path in ("/proc/self/root/etc/shadow", "/etc/../etc/shadow", "/etc/shadow", "/sys/fs/cgroup/x",
             "/dev/.fsbox-pins", "/proc/1/root/etc/passwd"):
    t("read " + path, lambda: opens(path, os.O_RDONLY))
''', project(daemon, "places"))
    all_in(said, REFUSED, "files of the kernel")


@case(*MODES)
@both
def r20_priorities_and_limits_do_not_rise(daemon, engine):
    said = inside(daemon, engine, r'''
import resource
said["core"] = resource.getrlimit(resource.RLIMIT_CORE)
try:
    resource.setrlimit(resource.RLIMIT_CORE, (1 << 20, 1 << 20))
    said["raise"] = "ok"
except ValueError:
    said["raise"] = "refused"
t("oom", lambda: os.write(os.open("/proc/self/oom_score_adj", os.O_WRONLY), b"-500"))
t("nice", lambda: os.nice(-5))
t("realtime", lambda: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1)))
''', project(daemon, "limits"))
    equal(said, {"core": [1, 1], "raise": "refused", "oom": "EACCES", "nice": "EPERM",
                 "realtime": "EPERM"})


# ---- the terminal ----------------------------------------------------------------------------

TERMINAL = r'''
import termios
for fd in (0, 1, 2):
    t("sti %d" % fd, lambda: fcntl.ioctl(fd, termios.TIOCSTI, b"x"))
    t("linux %d" % fd, lambda: fcntl.ioctl(fd, termios.TIOCLINUX, b"\3"))
t("setd", lambda: fcntl.ioctl(0, termios.TIOCSETD, b"\0\0\0\0"))
t("high bits", lambda: sc(16, 0, termios.TIOCSTI | 1 << 32, b"x"))
t("controlling", lambda: sc(16, 0, termios.TIOCSCTTY, 1))
t("dev/tty", lambda: opens("/dev/tty", os.O_RDWR))
t("group", lambda: fcntl.ioctl(0, termios.TIOCSPGRP, b"\2\0\0\0"))
t("console", lambda: sc(16, 0, 0x541d, 0))
t("hangup", lambda: sc(16, 0, 0x5437, 0))
t("signal", lambda: sc(16, 0, 0x40045436, 2))
said["is"] = [os.isatty(fd) for fd in range(3)]
'''


def on_terminal(daemon, command, place, typed=b"", until=b"DONE", seconds=10):
    """What was to be seen on a terminal of COMMAND's own; TYPED is typed once READY is seen."""
    pid, master = pty.fork()
    if pid == 0:
        try:
            if lib.IS_ROOT:
                os.setgroups(daemon.user.groups)
                os.setresgid(*[daemon.user.gid] * 3)
                os.setresuid(*[daemon.user.uid] * 3)
            os.chdir(place)
            os.execve("/bin/sh", ["sh", "-c", command], daemon.user.environment())
        finally:
            os._exit(127)
    seen, end = b"", time.monotonic() + seconds
    try:
        while time.monotonic() < end and until not in seen:
            if not select.select([master], [], [], 0.1)[0]:
                continue
            try:
                data = os.read(master, 65536)
            except OSError:
                break
            seen += data
            if typed and b"READY" in seen:
                os.write(master, typed)
                typed = b""
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(master)
    return seen.decode("utf-8", "replace")


@case(*MODES)
@both
def r17_nobody_types_into_the_clients_terminal(daemon, engine):
    place = project(daemon, "tty")
    daemon.user.write(f"{place}/t.py", PRELUDE + TERMINAL + "print(json.dumps(said))\nprint('DO' 'NE')")
    command = " ".join(daemon.command("spawn", "--engine", engine, "--", "/usr/bin/python3", "t.py"))
    seen = on_terminal(daemon, command, place)
    said = json.loads(seen[seen.index("{"):seen.index("}") + 1])
    equal(said.pop("is"), [True] * 3)
    all_in(said, {"EPERM", "ENXIO", "ENOTTY", "EIO"}, "terminal")


@case(*MODES)
@both
def r17_a_detached_job_does_not_read_what_is_typed_later(daemon, engine):
    place = project(daemon, "ttydetach")
    daemon.user.write(f"{place}/t.py", PRELUDE + r'''
said["is"] = [os.isatty(fd) for fd in range(3)]
def steal(fd):
    import select
    fd = os.open("/proc/self/fd/%d" % fd, os.O_RDWR)
    return os.read(fd, 100).decode() if select.select([fd], [], [], 1)[0] else ""
for fd in range(3):
    t("read %d" % fd, lambda: steal(fd))
open("said", "w").write(json.dumps(said))
''')
    spawn = " ".join(daemon.command("spawn", "--engine", engine, "--detach", "--",
                                    "/usr/bin/python3", "t.py"))
    on_terminal(daemon, f"{spawn}; echo RE''ADY; sleep 3; echo DO''NE", place, b"password\n")
    said = json.loads(wait_for(lambda: os.path.exists(f"{place}/said") and
                               open(f"{place}/said", encoding="utf-8").read(), 5, "answer"))
    equal(said, {"is": [False] * 3, "read 0": "", "read 1": "", "read 2": ""})


# ---- sockets, shared memory ---------------------------------------------------------------------


@case(*MODES)
@both
def r21_r22_no_way_to_sockets_of_the_host(daemon, engine):
    place = project(daemon, "sockets")
    abstract = socket.socket(socket.AF_UNIX)
    name = "fsbox-escape" + os.environ.get("FSBOX_TEST_TOP", "")  # the host's: of this run alone
    abstract.bind("\0" + name)
    abstract.listen()
    loopback = socket.create_server(("127.0.0.1", 0))
    script = r'''
def connect(name):
    s = socket.socket(socket.AF_UNIX)
    s.connect(name)
    return "connected"
for name in sys.argv[1:-1]:
    t(name, lambda: connect(name))
t("abstract", lambda: connect("\0NAME"))
if sys.argv[-1]:
    t("loopback", lambda: socket.create_connection(("127.0.0.1", int(sys.argv[-1])), 2) and "connected")
'''.replace("NAME", name)
    paths = [daemon.socket, "/run/fsbox/fsbox.sock", "/run/dbus/system_bus_socket", "/run/docker.sock"]
    refused = REFUSED | {"ECONNREFUSED"}
    with abstract, loopback:
        port = str(loopback.getsockname()[1])
        for options in ([], ["--profile", "host"]):
            all_in(inside(daemon, engine, script, place, *options, arguments=[*paths, port]), refused,
                   f"{options}")
        # The network is the host's: its abstract names are not.
        said = inside(daemon, engine, script, place, "--net", "host", arguments=[*paths, ""])
        all_in(said, refused, "--net host")


@case(*MODES)
@both
def r21_dangerous_sockets_below_a_grant(daemon, engine):
    lib.needs_throwaway_home()
    runtime = f"/run/user/{daemon.user.uid}"

    def serve():
        os.makedirs(f"{runtime}/systemd", exist_ok=True)
        for name in ("bus", "systemd/private"):
            if not os.path.exists(f"{runtime}/{name}"):
                socket.socket(socket.AF_UNIX).bind(f"{runtime}/{name}")
    lib.as_user(daemon.user, serve)
    script = r'''
for path in sys.argv[1:]:
    t(path, lambda: socket.socket(socket.AF_UNIX).connect(path))
'''
    paths = [f"{runtime}/bus", f"{runtime}/systemd/private"]
    for options in (["--ro", "/run"], ["--rw", runtime], ["--ro", "/var/run"]):
        said = inside(daemon, engine, script, project(daemon, "bus"), *options, arguments=paths)
        equal(said, dict.fromkeys(paths, "EACCES"), f"{options}")
    # Nobody listens, but what was named by its path is there.
    said = inside(daemon, engine, script, project(daemon, "bus"), "--ro", "/run", "--rw", paths[0],
                  arguments=paths)
    equal(said, {paths[0]: "ECONNREFUSED", paths[1]: "EACCES"})


@case(*MODES)
@both
def r21_nothing_is_shared_between_jobs(daemon, engine):
    place = project(daemon, "shared")
    options = ["--engine", engine]
    first = daemon.user.popen(
        daemon.command("spawn", *options, "--", "/usr/bin/python3", "-c", PRELUDE + r'''
libc.shmget(0x1234, 4096, 0o1666)
for path in ("/tmp/x", "/run/x", "/dev/shm/x", "/var/tmp/x"):
    open(path, "w").close()
a = socket.socket(socket.AF_UNIX); a.bind("\0job"); a.listen()
print("up", flush=True)
sys.stdin.read()
'''), cwd=place, stdin=-1, stdout=-1)
    try:
        equal(first.stdout.readline(), b"up\n")
        said = inside(daemon, engine, r'''
said["shm"] = len(open("/proc/sysvipc/shm").readlines()) - 1
for path in ("/tmp/x", "/run/x", "/dev/shm/x", "/var/tmp/x"):
    said[path] = os.path.exists(path)
t("abstract", lambda: socket.socket(socket.AF_UNIX).connect("\0job"))
said["processes"] = len([p for p in os.listdir("/proc") if p.isdigit()])
''', place)
    finally:
        first.communicate(b"", 10)
    equal(said, {"shm": 0, "/tmp/x": False, "/run/x": False, "/dev/shm/x": False, "/var/tmp/x": False,
                 "abstract": "ECONNREFUSED", "processes": 2})


# ---- files --------------------------------------------------------------------------------------

MOVES = r'''
def ren(a, b, flags=0):
    ctypes.set_errno(0)
    r = libc.renameat2(-100, a.encode(), -100, b.encode(), flags)
    return "moved" if r == 0 else errno.errorcode[ctypes.get_errno()]
for x in ("a/b/secret", "a/b", "a", "d", "d/k", "ro", "ro/x", "ro/x/f", ".", os.getcwd(),
          os.path.dirname(os.getcwd())):
    t("rename " + x, lambda: ren(x, "zz"))
    os.makedirs("ex", exist_ok=True)
    t("exchange " + x, lambda: ren(x, "ex", 2))
    t("whiteout " + x, lambda: ren(x, "zz", 4))
for x in ("a/b/secret", "d/k", "ro/x/f"):
    t("link " + x, lambda: os.link(x, "hl"))
    t("link by descriptor " + x, lambda: sc(265, os.open(x, os.O_PATH), b"", -100, b"hl2", 0x1000))
    t("link by proc " + x, lambda: os.link("/proc/self/fd/%d" % os.open(x, os.O_PATH), "hl3",
                                           follow_symlinks=True))
    t("unlink " + x, lambda: os.unlink(x))
    t("append " + x, lambda: opens(x, os.O_WRONLY | os.O_APPEND))
    t("chmod " + x, lambda: os.chmod(x, 0o777))
    t("truncate " + x, lambda: os.truncate(x, 0))
    t("times " + x, lambda: os.utime(x))
    t("attribute " + x, lambda: os.setxattr(x, "user.x", b"1"))
for x in ("d", "a/b", "a", "ro/x", "ro"):
    t("rmdir " + x, lambda: os.rmdir(x))
    open("new", "w").close()
    os.makedirs("newd", exist_ok=True)
    t("over " + x, lambda: ren("newd", x))
t("over secret", lambda: ren("new", "a/b/secret"))
t("over leaf", lambda: ren("new", "ro/x/f"))
fd = os.open("d", os.O_PATH)
t("O_PATH", lambda: os.open("k", os.O_RDONLY, dir_fd=fd))
t("O_PATH up", lambda: os.open("../d/k", os.O_RDONLY, dir_fd=fd))
here = os.getcwd()
for x in ("/proc/self/root%s/d/k" % here, "/proc/self/cwd/d/k", "/proc/1/root%s/d/k" % here, "a/../d/k",
          "/proc/self/fd/%d/k" % fd, "d//k", "d/./k", "d/k/", "./a/b/../b/secret",
          "/proc/self/task/%d/root%s/a/b/secret" % (os.getpid(), here), "//%s/d/k" % here):
    t("read " + x, lambda: read(x))
t("list", lambda: os.listdir("d"))
t("mode", lambda: os.chmod("d", 0o777))
t("fifo", lambda: os.mkfifo("a/b/secret"))
t("make", lambda: os.mkdir("d/x"))
'''


@case(*ALL)
@both
def r10_what_is_closed_stays_closed(daemon, engine):
    place = project(daemon, "moves")
    for name, content in (("a/b/secret", "SECRET"), ("d/k", "SECRET"), ("ro/x/f", "READ")):
        daemon.user.write(f"{place}/{name}", content)
    said = inside(daemon, engine, MOVES, place, "--deny", f"{place}/a/b/secret", "--deny", f"{place}/d",
                  "--ro", f"{place}/ro/x")
    all_in(said, REFUSED | {"EBUSY", "EXDEV", "EINVAL", "ENOTEMPTY", "EEXIST", "EISDIR"}, "files")
    for name, content in (("a/b/secret", "SECRET"), ("d/k", "SECRET"), ("ro/x/f", "READ")):
        with open(f"{place}/{name}", encoding="utf-8") as file:
            equal(file.read(), content, name)


@case(*MODES)
@both
def r10_links_planted_for_the_next_job(daemon, engine):
    place = project(daemon, "plant")
    home = daemon.user.home
    lib.needs_throwaway_home()
    daemon.user.write(f"{home}/.ssh/id", "SECRET")
    daemon.user.write(f"{home}/documents/f", "SECRET")
    succeeds(shell(daemon, engine, f"ln -s {home}/.ssh keys; ln -s {home} home; ln -s / all;"
                                   f"ln -s {home}/.ssh/id file; ln -s {home}/.ssh .vscode;"
                                   f"ln -s {home}/documents .idea; ln -s / .zed; ln -s .. .fleet;"
                                   f"mkdir .claude; ln -s {home}/documents .claude/hooks", place))
    look = (f"cat {home}/.ssh/id {home}/documents/f keys/id file .vscode/id .idea/f .claude/hooks/f;"
            f"ls {home} .zed/ .fleet/; echo W >{home}/.ssh/new; true")
    for options in ([], ["--rw", f"{place}/keys"], ["--ro", f"{place}/keys"], ["--rw", f"{place}/file"]):
        result = shell(daemon, engine, look, place, *options)
        lacks(succeeds(result), "SECRET", f"{options}")
        lacks(result.stdout, "documents", f"{options}")
        equal(os.listdir(f"{home}/.ssh"), ["id"])
    for name in ("home", "all"):
        result = shell(daemon, engine, look, place, "--rw", f"{place}/{name}")
        status_is(result, 125, "--allow-home")
    status_is(shell(daemon, engine, look, f"{place}/keys"), 125, "denied")
    status_is(shell(daemon, engine, look, f"{place}/home"), 125, "--allow-home")
    # Protected links are there, and cannot be made to lead elsewhere.
    if engine == "native":
        status_is(shell(daemon, engine, "ln -sfn /x .idea", place), 1, "busy")


@case(*MODES)
@both
def r28_git_files_planted_for_the_next_job(daemon, engine):
    place = project(daemon, "gitplant")
    home = daemon.user.home
    lib.needs_throwaway_home()
    daemon.user.write(f"{home}/.ssh/id", "SECRET")
    daemon.user.write(f"{home}/documents/f", "SECRET")
    daemon.user.shell(f"git init -q {home}/src/other-{engine}; echo SECRET >>{home}/src/other-{engine}/.git/config")
    look = (f"cat {home}/.ssh/id {home}/documents/f {home}/src/other-{engine}/.git/config;"
            f"for d in .ssh documents src/other-{engine}/.git; do echo W >{home}/$d/new; done; true")
    plants = {
        "commondir": f"echo 'gitdir: fake' >.git; mkdir fake; echo {place}/.git >fake/gitdir; echo",
        "another's repository": f"echo 'gitdir: {home}/src/other-{engine}/.git' >.git; true",
        "hooks": "git init -q; git config core.hooksPath",
    }
    for what, plant in plants.items():
        for target in (f"{home}/.ssh", f"{home}/documents"):
            end = " >fake/commondir" if what == "commondir" else ""
            succeeds(shell(daemon, engine, f"{plant} {target} {end}", place))
            result = shell(daemon, engine, look, place)
            lacks(succeeds(result), "SECRET", f"{what}: {target}")
            for name in (".ssh", "documents", f"src/other-{engine}/.git"):
                if os.path.exists(f"{home}/{name}/new"):
                    raise AssertionError(f"{what}: {name} was written to")
            daemon.user.shell("rm -rf .git fake", cwd=place)


@case(*MODES)
@both
def r28_what_git_runs_is_not_for_the_job(daemon, engine):
    place = project(daemon, "git")
    daemon.user.shell("git init -q; touch .envrc; mkdir .vscode", cwd=place)
    for script in ("echo x >.git/config", "echo x >.git/hooks/pre-commit", "mv .git g", "mv .git/hooks h",
                   "rm -rf .git/hooks", "git config core.fsmonitor x", "echo x >.envrc", "mv .envrc e",
                   "touch .vscode/tasks.json", "mv .vscode v", "ln -f .envrc e && echo x >e"):
        if shell(daemon, engine, script, place).returncode == 0:
            raise AssertionError(f"{script}: went through")
    succeeds(shell(daemon, engine, "echo 1 >f; git add f", place))


@case(*MODES)
@both
def r28_repositories_inside_a_repository(daemon, engine):
    place = project(daemon, "gitinner")
    git = "git -c user.name=t -c user.email=t@t -c protocol.file.allow=always"
    daemon.user.shell(f"{git} init -q sub; {git} -C sub commit -q --allow-empty -m x; {git} init -q r; cd r;"
                      f"{git} commit -q --allow-empty -m x; {git} worktree add -q ../w;"
                      f"{git} submodule -q add '{place}/sub' .deps/s", cwd=place)
    for script in ("echo x >.git/worktrees/w/commondir", "echo x >.git/worktrees/w/gitdir",
                   "mv .git/worktrees v", "mv .git/worktrees/w v", "echo x >>.git/modules/.deps/s/config",
                   "touch .git/modules/.deps/s/hooks/x", "mv .git/modules m", "echo x >.deps/s/.git",
                   "mv .deps d"):
        if shell(daemon, engine, script, f"{place}/r").returncode in (0, 125):
            raise AssertionError(f"{script}: went through")
    # They work: git writes to what it needs.
    for folder in ("w", "r/.deps/s"):
        succeeds(shell(daemon, engine, f"{git} commit -q --allow-empty -m y", f"{place}/{folder}"))


@case("system")
def r28_a_full_directory_hides_nothing(daemon):
    place, engine = project(daemon, "gitfull"), "native"
    daemon.user.shell("git init -q; touch .envrc", cwd=place)
    succeeds(shell(daemon, engine, "seq -f .f%.0f 51000 | xargs touch", place))
    for script in ("echo x >.git/config", "echo x >.envrc", "mv .git g"):
        if shell(daemon, engine, script, place).returncode in (0, 125):
            raise AssertionError(f"{script}: went through")
    shutil.rmtree(place)


@case(*MODES)
@both
def r25_what_decides_about_the_next_job(daemon, engine):
    place = project(daemon, "profile")
    lib.needs_throwaway_home()
    base = f"{place}/d/base.json"
    daemon.user.write(base, '{"extends": "generic"}')
    daemon.user.write(f"{place}/p.json", json.dumps({"extends": base}))
    for script in ("echo {} >p.json", "echo {} >d/base.json", "mv p.json q", "mv d e", "rm p.json",
                   "cp p.json x; mv x p.json"):
        result = shell(daemon, engine, script, place, "--profile", f"{place}/p.json")
        if result.returncode in (0, 125):
            raise AssertionError(f"{script}: {lib.show(result)}")
    home = daemon.user.home
    daemon.user.shell("mkdir -p .config")
    result = shell(daemon, engine, "cd; mkdir -p .config/fsbox/profiles; echo x >.config/fsbox/fsboxd.conf;"
                   "mv .config .c; mkdir -p .local/state/fsbox && touch .local/state/fsbox/x;"
                   "mv .local .l; ls .config/fsbox /run/fsbox /etc/fsbox; echo end", place,
                   "--profile", "host")
    equal(succeeds(result), "end\n")
    for name in (".config/fsbox/profiles", ".config/fsbox/fsboxd.conf", ".c", ".l", ".local/state/fsbox/x"):
        if os.path.exists(f"{home}/{name}"):
            raise AssertionError(f"{name} was made")


def plants_nothing(daemon, engine, place, folder, *options):
    """What decides about the next job cannot be written to or moved in FOLDER, the home by some name."""
    home = daemon.user.home
    said = shell(daemon, engine, f"cd {folder} && mkdir -p .config/fsbox .cache/fsbox;"
                 "echo x >.config/fsbox/fsboxd.conf; echo x >.cache/fsbox/planted;"
                 "mv .config/fsbox .config/f; mv .cache/fsbox .cache/f; mv .config .c; mv .cache .k;"
                 "cat .config/fsbox/profile; echo x >.config/free; echo end", place, *options)
    equal(succeeds(said), "end\n")
    for name in (".config/fsbox/fsboxd.conf", ".cache/fsbox/planted", ".config/f", ".cache/f", ".c", ".k"):
        if os.path.exists(f"{home}/{name}"):
            raise AssertionError(f"{folder}, {options}: {name} was made")
    os.remove(f"{home}/.config/free")  # it was open otherwise


@case(*MODES)
@both
def r11_r25_other_names_of_what_is_closed(daemon, engine):
    place = project(daemon, "alias")
    lib.needs_throwaway_home()
    home = daemon.user.home
    # One was there before fsboxd; where mounting is possible one comes while it runs.
    folders = [os.environ["FSBOX_TEST_TOP"] + (home if lib.IS_ROOT else "/home")]
    if lib.IS_ROOT:
        folders.append(f"/var/lib/alias-{daemon.mode}-{engine}")
        os.mkdir(folders[1])
        lib.mount("--bind", home, folders[1])
    try:
        for there in (False, True):
            daemon.user.shell("rm -rf .config/fsbox; mkdir -p .config .cache")
            if there:
                daemon.user.write(f"{home}/.config/fsbox/profile", "SECRET")
            for folder in folders:
                plants_nothing(daemon, engine, place, folder, "--rw", folder)
                plants_nothing(daemon, engine, place, folder, "--rw", f"{folder}/.config",
                               "--rw", f"{folder}/.cache")
                plants_nothing(daemon, engine, place, folder, "--profile", "host")
        # Who shows nothing of it hears nothing of it.
        said = succeeds(daemon.ctl("--json", "policy", "show", cwd=place))
        mounts = succeeds(shell(daemon, engine, "cut -d' ' -f5 /proc/self/mountinfo; ls -A /tmp", place))
        for folder in folders:
            lacks(said, folder)
            lacks(mounts, folder)
        contains(succeeds(daemon.ctl("--json", "policy", "show", "--rw", folders[0], cwd=place)),
                 f'["{folders[0]}/.config/fsbox","deny","mandatory"]')
    finally:
        if lib.IS_ROOT:
            lib.sh("umount", folders[1])
        daemon.user.shell("rm -rf .config/fsbox")


@case(*MODES)
@both
def r25_private_caches_are_not_for_the_job(daemon, engine):
    place = project(daemon, "caches")
    lib.needs_throwaway_home()
    home = daemon.user.home
    succeeds(shell(daemon, engine, "echo private >~/.cache/mine", place))
    for options in (["--rw", f"{home}/.cache"], ["--rw", f"{home}/.cache/fsbox"], ["--profile", "host"]):
        result = shell(daemon, engine, "cd ~/.cache; find . -name mine; echo x >fsbox/planted; mv fsbox f;"
                       "rm -rf fsbox/*; echo end", place, *options)
        equal(succeeds(result), "./mine\nend\n" if options[1].endswith("/fsbox") else "end\n", f"{options}")
        for name in ("f", "fsbox/planted"):
            if os.path.exists(f"{home}/.cache/{name}"):
                raise AssertionError(f"{options}: {name} was made")
    equal(succeeds(shell(daemon, engine, "cat ~/.cache/mine", place)), "private\n")


# ---- processes, status --------------------------------------------------------------------------


@case(*MODES)
@both
def r24_nothing_stays_and_the_status_is_the_commands(daemon, engine):
    place = project(daemon, "left")
    result = daemon.spawn("--engine", engine, "--", "/usr/bin/python3", "-c", PRELUDE + r'''
for k in range(4):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            for number in range(1, 65):
                try: signal.signal(number, signal.SIG_IGN)
                except (OSError, ValueError): pass
            if k == 1:
                os.kill(os.getpid(), signal.SIGSTOP)
            while k == 2:
                if os.fork(): os._exit(0)
            time.sleep(600)
        os._exit(0)
time.sleep(0.2)
os._exit(7)
''', "left-behind", cwd=place)
    status_is(result, 7)
    equal([p for p in lib.processes() if b"left-behind" in command_line(p)], [], "left behind")
    for script, status in (
            ("import os, threading; threading.Thread(target=lambda: os.execv('/bin/sh',"
             " ['sh', '-c', 'exit 5'])).start(); import time; time.sleep(9)", 5),
            ("import ctypes; ctypes.CDLL(None).syscall(60, 4)", 4),
            ("import ctypes, os; ctypes.CDLL(None).prctl(36, 1); os._exit(6)", 6),
            ("import os; os.kill(os.getpid(), 9)", 137),
            ("import os\nfor n in range(1, 32):\n  os.kill(1, n)\nos._exit(3)", 3)):
        status_is(daemon.spawn("--engine", engine, "--", "/usr/bin/python3", "-c", script, cwd=place),
                  status)


def command_line(pid):
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return file.read()
    except OSError:
        return b""


@case("system")
@both
def r13_no_room_for_processes_helps_nobody(daemon, engine):
    user = User("fsbxbomb")
    user.shell("mkdir -p bomb")
    place = f"{user.home}/bomb"
    script = "import os\nwhile True:\n  try: os.fork()\n  except OSError: pass"
    limits = ["prlimit", "--nproc=200", "--"]
    start = time.monotonic()
    result = user.run([*limits, *daemon.command("spawn", "--engine", engine, "--timeout", "1s", "--",
                                                "/usr/bin/python3", "-c", script, "bomb")], cwd=place)
    status_is(result, 124)
    if time.monotonic() - start > 10:
        raise AssertionError("it took too long")
    wait_for(lambda: not [p for p in lib.processes() if b"bomb" in command_line(p)], 5, "the end of all")
    succeeds(shell(daemon, engine, "true", place, user=user))


# ---- other users --------------------------------------------------------------------------------


@case("system")
@both
def r14_r30_jobs_are_their_users(daemon, engine):
    other = User("fsbxb")
    place = project(daemon, "mine")
    daemon.detach("--engine", engine, "--label", "mine", "--", "sleep", "60", cwd=place)
    listed = daemon.jobs()
    job = str(max(entry["job"] for entry in listed))
    try:
        equal(json.loads(daemon.ctl("--json", "ps", user=other).stdout)["jobs"], [])
        for command in (["inspect", job], ["wait", job], ["signal", job, "KILL"]):
            result = daemon.ctl(*command, user=other)
            equal(result.returncode != 0, True, command[0])
            contains(result.stderr, "job-unknown")
        pid = next(entry["pid"] for entry in listed if str(entry["job"]) == job)

        def look():
            found = []
            for name in ("environ", "maps", "mem", "cwd", "root", "fd", "exe"):
                try:
                    path = f"/proc/{pid}/{name}"
                    found.append(os.listdir(path) if name == "fd" else
                                 os.readlink(path) if name in ("cwd", "root", "exe") else
                                 open(path, "rb").read(1))
                except OSError:
                    pass
            try:
                os.kill(pid, 0)
                found.append("signal")
            except OSError:
                pass
            return len(found)
        equal(lib.as_user(other, look), 0, "what another user may see")
        # Nor his own user of what pid 1 of the native engine holds: it was a copy of fsboxd.
        if engine == "native":
            equal(lib.as_user(daemon.user, look), 1, "what the job's user may: a signal")
    finally:
        daemon.ctl("signal", job, "KILL")


lib.main()
