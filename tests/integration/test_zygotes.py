# SPDX-License-Identifier: Apache-2.0
"""Jobs whose pid 1 was there before them: they are jobs like any other, and what waits for one knows nothing,
can do nothing, and is used only where nothing has changed."""

import contextlib
import ctypes
import errno
import functools
import json
import os
import resource
import signal
import threading
import time

import lib
from lib import User, case, contains, equal, project, spawn_status, status_is, succeeds, wait_for
from restarting import begin, detached, end, listed, wait
from templates import HURRIED, memory_of
from zygotelib import MODES, counts, refuses, served, warm, with_zygotes, zygotes

LIBC = ctypes.CDLL(None, use_errno=True)


def zygote_case(config="", count=2, modes=MODES):
    """A case with a daemon of its own in each of MODES."""
    def register(function):
        for mode in modes:
            def run(at=mode):
                with with_zygotes(at, config, count) as daemon:
                    function(daemon)
            run.__name__ = f"{mode}_{function.__name__}" if not function.__name__.startswith("r") else \
                function.__name__.replace("_", f"_{mode}_", 1)
            case(root=True)(functools.wraps(run)(run))
        return function
    return register


# ---- a job like any other -----------------------------------------------------------------------


@zygote_case()
def a_job_in_a_zygote_is_as_any_other(daemon):
    place = project(daemon, "like")
    warm(daemon, cwd=place)
    for script, status in (("exit 0", 0), ("exit 7", 7), ("exit 255", 255), ("kill -9 $$", 137),
                           ("kill -TERM $$", 143)):
        warm(daemon, cwd=place)
        status_is(served(daemon, "--", "/bin/sh", "-c", script, cwd=place), status)
    warm(daemon, cwd=place)
    status_is(served(daemon, "--", "/nonexistent", cwd=place), 127)
    warm(daemon, cwd=place)
    out = succeeds(served(daemon, "--env", "WORD=one", "--", "/bin/sh", "-c",
                          "echo $WORD $0; pwd; id -u; cat; umask; cat /proc/1/comm", "arg", cwd=place,
                          input=b"typed\n", umask=0o027))
    equal(out, f"one arg\n{place}\n{daemon.user.uid}\ntyped\n0027\nfsbox-init\n")
    warm(daemon, cwd=place)
    before = counts(daemon)["used"]
    result, said = spawn_status(daemon, "--", "/bin/sh", "-c", "exit 9", cwd=place)
    equal((result.returncode, said["reason"], said["code"]), (9, "exited", 9))
    equal(counts(daemon)["used"], before + 1, "zygotes used")


@zygote_case()
def a_running_job_is_shown_signalled_and_timed(daemon):
    place = project(daemon, "shown")
    warm(daemon, cwd=place)
    job = detached(daemon, place, "sleep 60")
    equal(counts(daemon)["used"] > 0, True, "zygotes used")
    shown = daemon.json("inspect", str(job))["job"]
    equal((shown["state"], shown["engine"], shown["command"]), ("running", "native", "sh"))
    with open(f"/proc/{shown['pid']}/comm", encoding="utf-8") as file:
        equal(file.read(), "fsbox-init\n")
    succeeds(daemon.ctl("signal", str(job), "TERM"))
    equal(wait(daemon, job), ("signaled", signal.SIGTERM))
    warm(daemon, cwd=place)
    _, said = spawn_status(daemon, "--timeout", "500ms", "--", "/bin/sleep", "60", cwd=place)
    equal(said["reason"], "timeout")


@zygote_case()
def r16_nothing_is_left_of_privilege_in_a_zygote(daemon):
    place = project(daemon, "privilege")
    warm(daemon, cwd=place)
    for pid in zygotes():
        status = lib.status_of(pid)
        for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
            equal(int(status[name], 16), 0, name)
        equal((status["NoNewPrivs"], status["Seccomp"]), ("1", "2"))
        equal(status["Uid"].split(), [str(daemon.user.uid)] * 4)
        # Three times /dev/null, two pipes, the socket, the host's root, its signals, mountinfo, its mounts.
        links = [os.readlink(f"/proc/{pid}/fd/{n}") for n in os.listdir(f"/proc/{pid}/fd")]
        kinds = sorted(link.split(":")[0] for link in links)
        equal(kinds, sorted(["/dev/null"] * 4 + ["pipe"] * 2 + ["socket", "/", "anon_inode", "mnt",
                                                              next(k for k in kinds if "mountinfo" in k)]))
    out = succeeds(served(daemon, "--", "/bin/sh", "-c", "grep -E '^(Cap|NoNew|Seccomp:)' /proc/self/status;"
                          " ls /proc/self/fd | wc -l; ls /proc | grep -c '^[0-9]'", cwd=place))
    equal(out.split()[1::2][:7], ["0" * 16] * 5 + ["1", "2"])
    equal(out.split()[-2], "4", "descriptors of ls")


@zygote_case("audit = required\n")
def r30_a_record_comes_before_the_command_of_a_zygote(daemon):
    place = project(daemon, "audited")
    warm(daemon, cwd=place)
    equal(succeeds(served(daemon, "--", "/bin/sh", "-c", "echo ran", cwd=place)), "ran\n")


@zygote_case()
def r33_a_zygote_has_its_listeners(daemon):
    place = project(daemon, "proxied")
    net = ("--net", "proxy", "--allow-host", "example.org")
    warm(daemon, *net, cwd=place)
    script = ("import os,socket;s=socket.create_connection((\"127.0.0.1\", "
              "int(os.environ[\"http_proxy\"].rsplit(\":\",1)[1].strip(\"/\"))));"
              "s.sendall(b\"CONNECT other.example:443 HTTP/1.1\\r\\nHost: other.example:443\\r\\n\\r\\n\");"
              "print(s.recv(99).split()[1].decode())")
    for _ in range(2):
        out = succeeds(served(daemon, *net, "--", "/usr/bin/python3", "-c", script, cwd=place))
        equal(out, "403\n")
        warm(daemon, *net, cwd=place)


# ---- R10, R12: the host changes -----------------------------------------------------------------


CHANGES = {
    "replaced": "echo LEAK >new; mv new secret",
    "a link": "mv secret s2; ln -s s2 secret",
    "a directory": "rm secret; mkdir secret; echo LEAK >secret/x",
    "away and back": "mv secret gone; mv gone secret",
    "over it and back": "ln secret kept; echo LEAK >new; mv new secret; mv kept secret",
    "its directory": "cd ..; mv changing moved; mkdir changing; cp -r moved/. changing; echo LEAK >changing/secret",
    "removed and made": "rm secret; echo LEAK >secret",
}


@zygote_case()
def r10_each_change_between_birth_and_use(daemon):
    for name, change in CHANGES.items():
        place = project(daemon, "changing")
        deny = ("--deny", f"{place}/secret")
        daemon.user.shell("rm -rf ../moved; echo LEAK >secret; mkdir ro; echo one >ro/f", cwd=place)
        warm(daemon, *deny, "--ro", f"{place}/ro/f", cwd=place, count=2)
        daemon.user.shell(change, cwd=place)
        script = "cat secret secret/x s2 2>/dev/null; true" if name != "a link" else "cat secret 2>/dev/null; true"
        what = (*deny, "--ro", f"{place}/ro/f", "--", "/bin/sh", "-c", script)
        # Renamed and renamed back it is what it was, and a mask moves with it: used or not, it holds.
        result = daemon.spawn(*what, cwd=place) if name == "away and back" else refuses(daemon, *what, cwd=place)[0]
        equal(succeeds(result), "", name)


@zygote_case()
def r10_what_was_absent_appears_before_a_zygote_is_used(daemon):
    place = project(daemon, "appears")
    rules = ("--ro", f"{place}/d", "--deny", f"{place}/d/late")
    daemon.user.shell("mkdir d; echo yes >d/plain", cwd=place)
    warm(daemon, *rules, cwd="/usr", count=2)
    equal(succeeds(served(daemon, *rules, "--", "/bin/sh", "-c", f"cat {place}/d/*", cwd="/usr")), "yes\n")
    warm(daemon, *rules, cwd="/usr", count=2)
    daemon.user.write(f"{place}/d/late", "LEAK\n")
    result, _ = refuses(daemon, *rules, "--", "/bin/sh", "-c", f"cat {place}/d/late 2>&-; true", cwd="/usr")
    equal(succeeds(result), "")


@zygote_case()
def r10_a_read_only_file_is_replaced_before_a_zygote_is_used(daemon):
    place = project(daemon, "config")
    config = daemon.user.write(f"{place}/config", "one\n")
    for text in ("two", "three"):
        warm(daemon, "--ro", config, cwd=place)
        daemon.user.shell(f"echo {text} >new; mv new config", cwd=place)
        result, _ = refuses(daemon, "--ro", config, "--", "/bin/sh", "-c",
                            "cat config; (echo evil >config) 2>&-; true", cwd=place)
        equal(succeeds(result), f"{text}\n")
        equal(daemon.user.shell("cat config", cwd=place), f"{text}\n")


@zygote_case()
def r12_a_mount_ends_zygotes(daemon):
    place = project(daemon, "mounted")
    daemon.user.write(f"{place}/under/f", "below\n")
    warm(daemon, cwd=place, count=2)
    lib.mount("-t", "tmpfs", "-o", "mode=0755", "tmpfs", f"{place}/under")
    try:
        lib.sh("sh", "-c", f"echo above >{place}/under/f")
        result, _ = refuses(daemon, "--", "/bin/cat", "under/f", cwd=place)
        equal(succeeds(result), "above\n")
        wait_for(lambda: not zygotes(), 5, "zygotes to go")
        warm(daemon, cwd=place, count=2)
    finally:
        # Whatever waits keeps no file system busy.
        lib.sh("umount", f"{place}/under")
    wait_for(lambda: not zygotes(), 5, "zygotes to go")
    equal(succeeds(daemon.spawn("--", "/bin/cat", "under/f", cwd=place)), "below\n")


@zygote_case()
def r27_a_mask_of_a_job_in_a_zygote_is_put_back(daemon):
    place = project(daemon, "guarded")
    secret = daemon.user.write(f"{place}/secret", "LEAK\n")
    warm(daemon, "--deny", secret, cwd=place)
    before = counts(daemon)["used"]
    process = daemon.user.popen(daemon.command("spawn", "--deny", secret, "--", "/bin/sh", "-c",
                                               "echo up; read x; cat secret 2>&-; echo end; read x"),
                                cwd=place, stdin=-1, stdout=-1)
    equal(process.stdout.readline(), b"up\n")
    equal(counts(daemon)["used"], before + 1, "zygotes used")
    daemon.user.shell("echo LEAK new >new; mv new secret", cwd=place)
    job = [job["job"] for job in daemon.jobs()][0]
    wait_for(lambda: daemon.json("inspect", str(job))["repaired"] > 0, 5, "the repair")
    process.stdin.write(b"\n")
    process.stdin.flush()
    equal(process.stdout.readline(), b"end\n")
    process.communicate(b"\n", 30)


# ---- R14: its user's hands ------------------------------------------------------------------------


def pidfd_open(pid):
    return LIBC.syscall(434, pid, 0)


def attempts(pid):
    """What a process of the same user can do to a zygote: {what: errno}"""
    said = {}

    def call(name, *arguments):
        ctypes.set_errno(0)
        result = LIBC.syscall(*arguments)
        said[name] = "done" if result >= 0 else errno.errorcode[ctypes.get_errno()]
    room = ctypes.create_string_buffer(64)
    local = (ctypes.c_void_p * 2)(ctypes.addressof(room), 64)
    remote = (ctypes.c_void_p * 2)(0x400000, 64)
    call("attach", 101, 16, pid, 0, 0)
    call("seize", 101, 0x4206, pid, 0, 0)
    call("vm_readv", 310, pid, local, ctypes.c_ulong(1), remote, ctypes.c_ulong(1), ctypes.c_ulong(0))
    call("vm_writev", 311, pid, local, ctypes.c_ulong(1), remote, ctypes.c_ulong(1), ctypes.c_ulong(0))
    fd = pidfd_open(pid)
    for number in (3, 4, 5, 11):
        call(f"getfd {number}", 438, fd, number, 0)
    for leaf in ("mem", "maps", "environ", "fd", "cwd", "root", "exe", "map_files", "ns/mnt", "io", "auxv"):
        try:
            os.close(os.open(f"/proc/{pid}/{leaf}", os.O_RDONLY))
            said[leaf] = "done"
        except OSError as error:
            said[leaf] = errno.errorcode[error.errno]
    for leaf in ("oom_score_adj", "mem", "coredump_filter", "clear_refs"):
        try:
            os.close(os.open(f"/proc/{pid}/{leaf}", os.O_WRONLY))
            said[f"write {leaf}"] = "done"
        except OSError as error:
            said[f"write {leaf}"] = errno.errorcode[error.errno]
    return said


@zygote_case(modes=("system",))
def r14_its_user_cannot_look_into_a_zygote(daemon):
    place = project(daemon, "looked")
    warm(daemon, cwd=place, count=2)
    for pid in zygotes():
        said = lib.as_user(daemon.user, attempts, pid)
        wrong = {name: value for name, value in said.items() if value not in ("EPERM", "EACCES", "ENOENT")}
        equal(wrong, {}, "what a user may do to his zygote")
    succeeds(served(daemon, "--", "/bin/true", cwd=place))


@zygote_case()
def r14_zygotes_that_were_stopped_or_killed_delay_nobody(daemon):
    place = project(daemon, "stopped")
    for signo in (signal.SIGSTOP, signal.SIGKILL):
        warm(daemon, cwd=place, count=2)
        pids = list(zygotes())
        for pid in pids:
            lib.as_user(daemon.user, os.kill, pid, signo)
        begun = time.monotonic()
        result, _ = refuses(daemon, "--", "/bin/sh", "-c", "exit 3", cwd=place)
        status_is(result, 3)
        if time.monotonic() - begun > 8:
            raise AssertionError(f"{signo}: it took {time.monotonic() - begun:.1f} s")
        wait_for(lambda its=pids: not set(its) & set(zygotes()), 5, "those to go")


@zygote_case(modes=("system",))
def r14_limits_that_its_user_takes_from_a_zygote(daemon):
    """prlimit(2) is his right. What then cannot be a job begins the ordinary way; nobody's limits rise."""
    place = project(daemon, "lowered")
    warm(daemon, cwd=place, count=2)
    for pid in zygotes():
        lib.as_user(daemon.user, resource.prlimit, pid, resource.RLIMIT_NOFILE, (3, 3))
        for name in (resource.RLIMIT_NOFILE, resource.RLIMIT_CORE):
            try:
                lib.as_user(daemon.user, resource.prlimit, pid, name, (1 << 20, 1 << 20))
            except AssertionError as error:
                contains(str(error), "PermissionError" if name == resource.RLIMIT_CORE else "Error")
            else:
                raise AssertionError(f"limit {name} was raised")
    result, refused = refuses(daemon, "--", "/bin/sh", "-c", "ulimit -n; exit 4", cwd=place)
    status_is(result, 4)
    equal(refused > 0, True, "zygotes refused")
    equal(int(result.stdout) > 3, True, lib.text(result.stdout))


@zygote_case()
def r14_signals_to_a_zygote_are_no_jobs(daemon):
    place = project(daemon, "signalled")
    warm(daemon, cwd=place, count=2)
    for pid in zygotes():
        for signo in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGCHLD,
                      signal.SIGALRM, signal.SIGRTMIN + 3):
            lib.as_user(daemon.user, os.kill, pid, signo)
    succeeds(served(daemon, "--", "/bin/sleep", "0.2", cwd=place))


@zygote_case(modes=("system",))
def r14_a_user_who_kills_at_random_harms_nobody_else(daemon):
    """Stopping and killing whatever waits or begins, while jobs start: of his own jobs those may be lost that had
    begun; the others' are right, and nothing hangs."""
    place, other = project(daemon, "random"), User("fsbxb")
    there = f"{other.home}/src/random"
    other.shell("mkdir -p src/random")
    over = threading.Event()

    def send(pid, signo):
        with contextlib.suppress(ProcessLookupError, FileNotFoundError):
            if uid_of(pid) == daemon.user.uid:
                os.kill(pid, signo)

    def torment():
        while not over.is_set():
            for number, pid in enumerate(zygotes()):
                send(pid, signal.SIGSTOP if number % 2 else signal.SIGKILL)
            time.sleep(0.003)
            # One that was taken meanwhile is his job, and would stay stopped.
            for pid in lib.processes("fsbox-init"):
                send(pid, signal.SIGCONT)
    thread = threading.Thread(target=torment)
    thread.start()
    slowest = 0
    try:
        for n in range(60):
            begun = time.monotonic()
            result = daemon.spawn("--", "/bin/sh", "-c", f"exit {n}", cwd=place)
            slowest = max(slowest, time.monotonic() - begun)
            if result.returncode != n and b"lost" not in result.stderr and \
                    b"ended before the command ran" not in result.stderr:
                raise AssertionError(lib.show(result))
            status_is(daemon.spawn("--", "/bin/sh", "-c", f"exit {n}", user=other, cwd=there), n)
    finally:
        over.set()
        thread.join()
    if slowest > 3:
        raise AssertionError(f"one took {slowest:.1f} s")
    for pid in lib.processes("fsbox-init"):
        send(pid, signal.SIGCONT)
    wait_for(lambda: not daemon.jobs(), 10, "the end of the jobs")


def uid_of(pid):
    with open(f"/proc/{pid}/status", encoding="utf-8") as file:
        return int(next(line for line in file if line.startswith("Uid:")).split()[1])


@zygote_case(modes=("system",))
def r14_a_zygote_is_never_another_users(daemon):
    shared = "/run/shared-z"
    os.makedirs(shared, exist_ok=True)
    os.chmod(shared, 0o777)
    warm(daemon, "--ro", shared, cwd="/usr", count=2)
    other = User("fsbxb")
    result, _ = refuses(daemon, "--ro", shared, "--", "/usr/bin/id", "-u", user=other, cwd="/usr")
    equal(succeeds(result), f"{other.uid}\n")
    equal(succeeds(served(daemon, "--ro", shared, "--", "/usr/bin/id", "-u", cwd="/usr")),
          f"{daemon.user.uid}\n")


# ---- R15: what it knows ---------------------------------------------------------------------------


@zygote_case(modes=("system",))
def r15_a_zygote_knows_nothing_of_others(daemon):
    other = User("fsbxb")
    marker = "a-name-that-only-one-user-knows"
    there = f"{other.home}/src/work"
    other.shell(f"mkdir -p src/work; echo x >src/work/{marker}")
    rules = ["--label", marker, "--deny", f"{there}/{marker}", "--deny", f"{there}/{marker}-not-there"]
    place = project(daemon, "ignorant")

    def others_work():
        daemon.sh("true", *rules[:4], user=other, cwd=there)
        daemon.spawn("--", f"/{marker}", user=other, cwd=there)
    others_work()
    busy = other.popen(daemon.command("spawn", *rules, "--", "/bin/sh", "-c", f"echo up; read x; : {marker}"),
                       cwd=there, stdin=-1, stdout=-1)
    equal(busy.stdout.readline(), b"up\n")
    warm(daemon, "--label", "mine", cwd=place, count=2)
    others_work()
    before = counts(daemon)["used"]
    mine = daemon.user.popen(daemon.command("spawn", "--", "/bin/sh", "-c", "echo up; read x"),
                             cwd=place, stdin=-1, stdout=-1)
    try:
        equal(mine.stdout.readline(), b"up\n")
        equal(counts(daemon)["used"], before + 1, "zygotes used")
        pids = [job["pid"] for job in daemon.jobs() if job["uid"] == daemon.user.uid] + \
            [pid for pid in zygotes() if uid_of(pid) == daemon.user.uid]
        equal(len(pids) >= 2, True, f"looked at: {pids}")
        for pid in pids:
            size = 0
            for block in memory_of(pid):
                size += len(block)
                at = block.find(marker.encode())
                if at >= 0:
                    raise AssertionError(f"{pid} remembers {block[max(0, at - 100):at + 100]!r}")
            equal(size > 100000, True, f"{size} bytes of {pid}")
    finally:
        mine.communicate(b"\n", 30)
        busy.communicate(b"\n", 30)


# ---- R20: as its client ---------------------------------------------------------------------------

SEEN = ("import os,resource,json;print(json.dumps([resource.getrlimit(resource.RLIMIT_NOFILE),"
        "resource.getrlimit(resource.RLIMIT_FSIZE),resource.getrlimit(resource.RLIMIT_CORE),os.nice(0),"
        "sorted(os.sched_getaffinity(0)),open('/proc/self/oom_score_adj').read().strip(),"
        "sorted(os.getgroups())]))")


@zygote_case()
def r20_a_job_has_its_clients_limits(daemon):
    place = project(daemon, "limits")

    def wanted(nofile, fsize, nice, processor):
        def prepare():
            os.nice(nice)
            os.sched_setaffinity(0, processor)
            resource.setrlimit(resource.RLIMIT_NOFILE, nofile)
            resource.setrlimit(resource.RLIMIT_FSIZE, fsize)
        return {"preexec_fn": prepare}
    free = resource.RLIM_INFINITY
    everywhere = os.sched_getaffinity(0)
    clients = [((200, 300), (free, free), 0, everywhere), ((200, 300), (1 << 20, 1 << 21), 0, everywhere),
               ((100, 100), (free, free), 3, everywhere), ((100, 100), (free, free), 3, {min(everywhere)})]
    for nofile, fsize, nice, processors in clients:
        options = wanted(nofile, fsize, nice, processors)
        # Those that wait are of another client's.
        result, _ = refuses(daemon, "--", "/usr/bin/python3", "-c", SEEN, cwd=place, **options)
        first = json.loads(succeeds(result))
        equal(first[:5], [list(nofile), list(fsize), [1, 1], nice, sorted(processors)])
        warm(daemon, cwd=place, count=2, **options)
        again = json.loads(succeeds(served(daemon, "--", "/usr/bin/python3", "-c", SEEN, cwd=place, **options)))
        equal(again, first, "in a zygote")


# ---- how many, and how long -----------------------------------------------------------------------


@zygote_case(count=3)
def zygotes_are_bounded_and_of_the_policies_in_use(daemon):
    places = [project(daemon, f"of{n}") for n in range(3)]
    for n, place in enumerate(places):
        warm(daemon, cwd=place)
        wait_for(lambda n=n: counts(daemon)["ready"] == 3 * (n + 1), 10, "three for each")
    # A policy that was used once has none.
    succeeds(daemon.spawn("--", "/bin/true", cwd=project(daemon, "once")))
    time.sleep(0.3)
    equal(counts(daemon)["ready"], 9)
    # Nor one with the host's network.
    if daemon.mode == "system":
        for _ in range(3):
            succeeds(daemon.spawn("--net", "host", "--profile", "host", "--", "/bin/true", cwd=places[0]))
        time.sleep(0.3)
        equal(counts(daemon)["ready"], 9)


@zygote_case(count=40, modes=("system",))
def r13_one_user_has_no_more_than_his_share(daemon):
    for n in range(2):
        warm(daemon, cwd=project(daemon, f"many{n}"), count=n * 24 + 40)
    time.sleep(0.5)
    equal(counts(daemon)["ready"], 64, "LIMIT_ZYGOTES_PER_UID")
    other = User("fsbxb")
    other.shell("mkdir -p src/z")
    warm(daemon, user=other, cwd=f"{other.home}/src/z", count=104)
    equal(succeeds(served(daemon, "--", "/usr/bin/id", "-u", user=other, cwd=f"{other.home}/src/z")),
          f"{other.uid}\n")


@case(root=True)
def r13_mounts_of_zygotes_count():
    with with_zygotes("system", "template-cache-mounts = 400\n", count=40) as daemon:
        place = project(daemon, "mounts")
        warm(daemon, cwd=place)
        time.sleep(1)
        ready = counts(daemon)["ready"]
        equal(0 < ready < 12, True, f"{ready} zygotes of some 50 mounts each")
        succeeds(served(daemon, "--", "/bin/true", cwd=place))


@case(root=True)
def zygotes_that_nobody_takes_go():
    daemon = lib.make_daemon("system")
    daemon.start("--exec-dir", os.path.join(lib.BUILD, "daemon"), program=HURRIED, config="zygotes = 2\n")
    try:
        place = project(daemon, "aged")
        warm(daemon, cwd=place, count=2)
        for _ in range(10):  # its template stays
            succeeds(daemon.spawn("--ro", "/usr/bin", "--", "/bin/true", cwd=place))
            time.sleep(0.1)
        wait_for(lambda: counts(daemon)["expired"] >= 2 or not zygotes(), 6, "their end")
        wait_for(lambda: not zygotes(), 2, "their end")
        warm(daemon, cwd=place, count=2)
        succeeds(served(daemon, "--", "/bin/true", cwd=place))
    finally:
        daemon.stop()


# ---- ends -----------------------------------------------------------------------------------------


@zygote_case()
def zygotes_end_with_fsboxd_however_that_ends(daemon):
    place = project(daemon, "ends")
    for how in (signal.SIGTERM, signal.SIGKILL):
        warm(daemon, cwd=place, count=2)
        pids = list(zygotes())
        lib.as_user(daemon.user, os.kill, pids[0], signal.SIGSTOP)
        job = detached(daemon, place, "sleep 1; exit 5")
        end(daemon, how)
        wait_for(lambda its=pids: not set(its) & set(zygotes()), 5, f"zygotes to go after {how}")
        begin(daemon)
        equal(wait(daemon, job), ("exited", 5), "the job goes on")


@zygote_case()
def r24_a_job_in_a_zygote_is_taken_over(daemon):
    place = project(daemon, "over")
    warm(daemon, cwd=place, count=2)
    before = counts(daemon)["used"]
    held = daemon.user.write(f"{place}/held")
    jobs = {detached(daemon, place, f"while [ -e {held} ]; do sleep 0.05; done; exit {n}"): n for n in (3, 4)}
    equal(counts(daemon)["used"], before + 2, "zygotes used")
    end(daemon, signal.SIGKILL)
    begin(daemon)
    equal(set(listed(daemon)), set(jobs), "jobs taken over")
    os.remove(held)
    equal({job: wait(daemon, job) for job in jobs}, {job: ("exited", n) for job, n in jobs.items()})


@zygote_case()
def zygotes_end_with_their_users_broker(daemon):
    place = project(daemon, "broker")
    warm(daemon, cwd=place, count=2)
    for pid in lib.processes("fsbox-broker"):
        os.kill(pid, signal.SIGKILL)
    wait_for(lambda: not zygotes(), 5, "zygotes to go")
    equal(succeeds(daemon.spawn("--", "/bin/echo", "on", cwd=place)), "on\n")


@zygote_case(modes=("system",))
def nothing_is_left_of_a_thousand_jobs(daemon):
    place = project(daemon, "thousand")
    warm(daemon, cwd=place, count=2)
    time.sleep(1.5)
    before = lib.descriptors_but_of_templates(daemon.process.pid)
    used = counts(daemon)["used"]
    daemon.user.shell(f"i=0; while [ $i -lt 1000 ]; do {' '.join(daemon.command('spawn', '--', '/bin/true'))}"
                      " || exit 1; i=$((i+1)); done", cwd=place, timeout=250)
    # How many are ready in time is the machine's matter.
    equal(counts(daemon)["used"] - used >= 30, True, f"of 1000 in zygotes: {counts(daemon)['used'] - used}")
    wait_for(lambda: not daemon.jobs(), 10, "the end of the jobs")
    wait_for(lambda: counts(daemon)["ready"] == 2, 10, "two to wait")
    wait_for(lambda: lib.descriptors_but_of_templates(daemon.process.pid) <= before + 2, 10,
             f"descriptors to go: {before} before")
    equal(len(zygotes()), 2)
    wait_for(lambda: not lib.processes("fsbox-init"), 5, "every pid 1 to go")


@case("user")
def there_are_none_in_user_mode(daemon):
    daemon.stop()
    daemon.start(config="zygotes = 2\n")
    place = project(daemon, "user")
    for _ in range(4):
        succeeds(daemon.spawn("--", "/bin/true", cwd=place))
    time.sleep(0.3)
    equal(counts(daemon)["ready"] + len(zygotes()), 0)
    equal("zygotes are not made in user mode" in daemon.json("status")["unenforced"], True, "said in status")


lib.main()
