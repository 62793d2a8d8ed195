# SPDX-License-Identifier: Apache-2.0
"""The native engine: what is prepared is used again, and never when the host has changed since."""

import contextlib
import ctypes
import fcntl
import os
import re
import select
import struct
import threading
import time

import lib
from lib import User, case, contains, equal, lacks, project, status_is, succeeds, wait_for

MODES = ("system", "user", "root")
SHIM = os.path.join(lib.BUILD, "tests/integration/libold_kernel.so")


# ---- looking at fsboxd --------------------------------------------------------------------------


NS_GET_MNTNS_ID = 0x8008B705  # Linux 6.11; inode numbers of namespaces are used again


def templates(daemon):
    """The mount namespaces that fsboxd holds: one for each template."""
    found = set()
    place = f"/proc/{daemon.process.pid}/fd"
    for number in os.listdir(place):
        with contextlib.suppress(FileNotFoundError):
            if not os.readlink(f"{place}/{number}").startswith("mnt:["):
                continue
            fd = os.open(f"{place}/{number}", os.O_RDONLY)
            try:
                found.add(struct.unpack("Q", fcntl.ioctl(fd, NS_GET_MNTNS_ID, bytes(8)))[0])
            except OSError as error:
                raise lib.Skip(f"mount namespaces have no numbers here: {error}") from None
            finally:
                os.close(fd)
    return found


def spawn_in_template(daemon, script, *options, cwd):
    """What the script printed, and which templates there are afterwards that were not before."""
    before = templates(daemon)
    out = succeeds(daemon.sh(script, "--engine", "native", *options, cwd=cwd))
    return out, templates(daemon) - before


def rebuilds(daemon, script, *options, cwd):
    """The same, when a new template must have been made."""
    out, new = spawn_in_template(daemon, script, *options, cwd=cwd)
    equal(len(new), 1, "new templates")
    return out


def reuses(daemon, script, *options, cwd):
    out, new = spawn_in_template(daemon, script, *options, cwd=cwd)
    equal(new, set(), "new templates")
    return out


HIDDEN = "cat {} 2>/dev/null && echo LEAK; true"


@case(*MODES)
def a_template_is_used_again_for_the_same_policy_alone(daemon):
    place = project(daemon, "again")
    rebuilds(daemon, "true", cwd=place)
    for _ in range(3):
        reuses(daemon, "true", cwd=place)
    # Another command, environment or terminal is no other policy; another rule is.
    reuses(daemon, "echo other >file", cwd=place)
    daemon.user.write(f"{place}/f", "x")
    rebuilds(daemon, "true", "--ro", f"{place}/f", cwd=place)
    reuses(daemon, "true", cwd=place)
    equal(sorted(os.listdir(place)), ["f", "file"])


@case("system")
def r14_a_template_is_never_another_users(daemon):
    shared = "/run/shared"
    os.makedirs(shared, exist_ok=True)
    os.chmod(shared, 0o777)
    succeeds(daemon.sh("true", "--ro", shared, cwd=project(daemon, "mine")))
    before = templates(daemon)
    other = User("fsbxb")
    other.shell("mkdir -p src/mine")
    result = daemon.sh("id -u", "--ro", shared, user=other, cwd=f"{other.home}/src/mine")
    equal(succeeds(result), f"{other.uid}\n")
    equal(len(templates(daemon) - before), 1, "new templates")


# ---- R10: the host changes ----------------------------------------------------------------------


@case(*MODES)
def r10_a_masked_file_that_is_replaced_is_masked_again(daemon):
    place = project(daemon, "replaced")
    secret = daemon.user.write(f"{place}/.npmrc", "LEAK\n")
    deny = ("--deny", secret)
    script = HIDDEN.format(".npmrc")
    equal(rebuilds(daemon, script, *deny, cwd=place), "")
    for _ in range(3):
        # The kernel takes a mask away when what it stands on is renamed over from outside.
        daemon.user.shell("echo LEAK new >new; mv new .npmrc", cwd=place)
        equal(rebuilds(daemon, script, *deny, cwd=place), "")
        equal(reuses(daemon, script, *deny, cwd=place), "")
    daemon.user.shell("rm .npmrc; mkdir .npmrc; echo LEAK >.npmrc/x", cwd=place)
    equal(succeeds(daemon.sh(HIDDEN.format(".npmrc/x"), *deny, cwd=place)), "")


@case(*MODES)
def r10_a_read_only_file_that_is_replaced_is_read_only_again(daemon):
    place = project(daemon, "gitconfig")
    config = daemon.user.write(f"{place}/config", "one\n")
    script = "cat config; echo evil >config; echo evil >>config; rm -f config; true"
    for text in ("one", "two", "three"):
        daemon.user.shell(f"echo {text} >config.lock; mv config.lock config", cwd=place)
        out = rebuilds(daemon, f"({script}) 2>/dev/null", "--ro", config, cwd=place)
        equal(out, f"{text}\n")
        equal(daemon.user.shell("cat config", cwd=place), f"{text}\n")


@case(*MODES)
def r10_an_ancestor_that_is_renamed(daemon):
    place = project(daemon, "ancestor")
    daemon.user.write(f"{place}/a/b/secret", "LEAK\n")
    deny = ("--deny", f"{place}/a/b/secret")
    script = HIDDEN.format("a/b/secret")
    equal(rebuilds(daemon, script, *deny, cwd=place), "")
    daemon.user.shell("mv a z; mkdir -p a/b; echo LEAK >a/b/secret", cwd=place)
    equal(rebuilds(daemon, script, *deny, cwd=place), "")
    # And back: the old objects are there again, and what was made for them may not be.
    daemon.user.shell("mv a y; mv z a", cwd=place)
    equal(succeeds(daemon.sh(script, *deny, cwd=place)), "")


@case(*MODES)
def r10_a_link_that_is_turned(daemon):
    place = project(daemon, "turned")
    for name in ("one", "two"):
        daemon.user.write(f"{place}/{name}/secret", "LEAK\n")
    daemon.user.shell("ln -s one at", cwd=place)
    deny = ("--deny", f"{place}/at/secret")
    script = HIDDEN.format("at/secret")
    equal(succeeds(daemon.sh(script, *deny, cwd=place)), "")
    for name in ("two", "one", "two"):
        daemon.user.shell(f"ln -sfn {name} at", cwd=place)
        equal(succeeds(daemon.sh(script, *deny, cwd=place)), "")


@case(*MODES)
def r10_what_was_absent_appears(daemon):
    place = project(daemon, "appears")
    deny = ("--deny", f"{place}/d/late")
    daemon.user.shell("mkdir d", cwd=place)
    for _ in range(2):
        equal(succeeds(daemon.sh("ls d/late 2>/dev/null; true", *deny, cwd=place)), "")
        equal(os.listdir(f"{place}/d"), [], "a placeholder is left")
    daemon.user.write(f"{place}/d/late", "LEAK\n")
    equal(succeeds(daemon.sh(HIDDEN.format("d/late"), *deny, cwd=place)), "")
    daemon.user.shell("rm d/late; rmdir d", cwd=place)
    equal(succeeds(daemon.sh("true", *deny, cwd=place)), "")
    equal(os.listdir(place), [], "a placeholder is left")


@case(*MODES)
def r26_jobs_that_share_a_template_share_its_placeholders(daemon):
    place = project(daemon, "shared")
    deny = ("--deny", f"{place}/.agents")

    def start():
        process = daemon.user.popen(daemon.command("spawn", *deny, "--", "/bin/sh", "-c",
                                                   "echo up; read x; ls .agents; echo $?"),
                                    cwd=place, stdin=-1, stdout=-1, stderr=-1)
        equal(process.stdout.readline(), b"up\n")
        return process
    jobs = [start() for _ in range(3)]
    for left, job in enumerate(jobs):
        equal(os.listdir(place), [".agents"], f"with {3 - left} jobs")
        out, _ = job.communicate(b"\n", 20)
        equal(out, b"2\n", "it stays closed")
    wait_for(lambda: not os.listdir(place), 10, "removal of the placeholder")
    # The template that stood on it is of no use any more.
    equal(succeeds(daemon.sh("ls -A; true", *deny, cwd=place)), ".agents\n")
    wait_for(lambda: not os.listdir(place), 10, "removal of the placeholder")


# ---- R12: the host's mounts ---------------------------------------------------------------------


@case("system", "root")
def r12_a_mount_drops_what_was_prepared(daemon):
    place = project(daemon, "mounted")
    daemon.user.write(f"{place}/under/f", "below\n")
    equal(rebuilds(daemon, "cat under/f", cwd=place), "below\n")
    process = daemon.user.popen(daemon.command("spawn", "--", "/bin/sh", "-c",
                                               "echo up; read x; cat under/f"),
                                cwd=place, stdin=-1, stdout=-1)
    equal(process.stdout.readline(), b"up\n")
    lib.mount("-t", "tmpfs", "tmpfs", f"{place}/under")
    try:
        wait_for(lambda: not templates(daemon), 5, "templates to go")
        with open(f"{place}/under/f", "w", encoding="utf-8") as file:
            file.write("above\n")
        os.chmod(f"{place}/under", 0o755)
        os.chmod(f"{place}/under/f", 0o644)
        equal(rebuilds(daemon, "cat under/f", cwd=place), "above\n")
        # What runs has its own tree, into which nothing of the host's comes.
        equal(process.communicate(b"\n", 10)[0], b"below\n")
    finally:
        lib.sh("umount", f"{place}/under")
    wait_for(lambda: not templates(daemon), 5, "templates to go")
    equal(rebuilds(daemon, "cat under/f", cwd=place), "below\n")


@case("system", "root")
def r12_no_template_keeps_a_file_system_busy(daemon):
    place = project(daemon, "busy")
    daemon.user.shell("mkdir m", cwd=place)
    lib.mount("-t", "tmpfs", "-o", "mode=0777", "tmpfs", f"{place}/m")
    succeeds(daemon.sh("echo x >m/f", cwd=place))
    lib.sh("umount", f"{place}/m")  # the host's, at once
    wait_for(lambda: not templates(daemon), 5, "templates to go")


@case("system", "root")
def what_lies_on_other_file_systems_is_shown_with_its_rules(daemon):
    place = project(daemon, "submounts")
    daemon.user.shell("mkdir -p tree/sub tree/sub2", cwd=place)
    lib.mount("-t", "tmpfs", "-o", "mode=0777", "tmpfs", f"{place}/tree/sub")
    try:
        daemon.user.write(f"{place}/tree/sub/f", "x\n")
        daemon.user.write(f"{place}/tree/sub/key", "LEAK\n")
        out = succeeds(daemon.sh(
            "cat tree/sub/f; echo y 2>&- >tree/sub/f || echo read-only; "
            "echo y 2>&- >tree/sub/new || echo read-only; cat tree/sub/key 2>&-; true",
            "--ro", f"{place}/tree", "--deny", f"{place}/tree/sub/key", cwd=place))
        equal(out, "x\nread-only\nread-only\n")
        # A grant inside a denied tree, on another file system.
        out = succeeds(daemon.sh("echo y >tree/sub/g; cat tree/sub/g; ls tree 2>&-; true",
                                 "--deny", f"{place}/tree", "--rw", f"{place}/tree/sub", cwd=place))
        equal(out, "y\n")
    finally:
        lib.sh("umount", f"{place}/tree/sub")


@contextlib.contextmanager
def ext4(place, top):
    image = os.path.join(top, "image")
    lib.sh("truncate", "-s", "16M", image)
    lib.sh("mkfs.ext4", "-q", image)
    try:
        lib.mount("-o", "loop", image, place)
    except Exception:  # pylint: disable=broad-except
        raise lib.Skip("no loop devices here") from None
    try:
        yield
    finally:
        lib.sh("umount", place)


@contextlib.contextmanager
def overlay(place, top):
    lib.mount("-t", "tmpfs", "tmpfs", top)
    for name in ("lower", "upper", "work"):
        os.mkdir(f"{top}/{name}", 0o777)
        os.chmod(f"{top}/{name}", 0o777)
    with open(f"{top}/lower/from-below", "w", encoding="utf-8") as file:
        file.write("below\n")
    lib.mount("-t", "overlay", "-o", f"lowerdir={top}/lower,upperdir={top}/upper,"
              f"workdir={top}/work", "overlay", place)
    try:
        yield
    finally:
        lib.sh("umount", place)
        lib.sh("umount", top)


@case("system", "root")
def homes_on_ext4_and_overlayfs(daemon):
    for kind in (ext4, overlay):
        place = project(daemon, kind.__name__)
        top = f"/run/{kind.__name__}"
        os.makedirs(top, exist_ok=True)
        with kind(place, top):
            os.chown(place, daemon.user.uid, daemon.user.gid)
            os.chmod(place, 0o700)
            daemon.user.write(f"{place}/a/secret", "LEAK\n")
            daemon.user.write(f"{place}/ro", "one\n")
            options = ("--deny", f"{place}/a/secret", "--ro", f"{place}/ro",
                       "--deny", f"{place}/absent")
            script = ("cat a/secret 2>&-; (echo x >ro) 2>&-; (mv a z) 2>&-; echo new >file; "
                      "cat ro file; (mkdir absent/x) 2>&-; test ! -e from-below || cat from-below")
            wanted = "one\nnew\n" + ("below\n" if kind is overlay else "")
            equal(succeeds(daemon.sh(script, *options, cwd=place)), wanted)
            daemon.user.shell("echo LEAK >n; mv n a/secret; echo one >n; mv n ro", cwd=place)
            equal(succeeds(daemon.sh(script, *options, cwd=place)), wanted)
            wait_for(lambda at=place: not os.path.exists(f"{at}/absent"), 10, "the placeholder")
            wait_for(lambda: not daemon.jobs(), 10, "the end of the jobs")


# ---- where things lie ---------------------------------------------------------------------------


@case(*MODES)
def rules_at_and_below_the_fresh_directories(daemon):
    place = project(daemon, "fresh")
    with contextlib.ExitStack() as stack:
        names = []
        for top in ("/tmp", "/var/tmp", "/dev/shm"):
            name = f"{top}/fsbox-native-test.{os.getpid()}.{daemon.mode}"
            daemon.user.shell(f"rm -rf {name}; mkdir -p {name}/in; echo x >{name}/in/f; "
                              f"echo LEAK >{name}/in/secret; echo LEAK >{name}/beside")
            stack.callback(lib.sh, "rm", "-rf", name)
            names.append(name)
        for name in names:
            script = (f"cat {name}/in/f; echo y >{name}/in/g; ls {name}; "
                      f"cat {name}/beside {name}/in/secret 2>&-; "
                      f"echo z >{os.path.dirname(name)}/mine && cat {os.path.dirname(name)}/mine")
            out = reuses_or_not(daemon, script, "--rw", f"{name}/in", "--deny", f"{name}/in/secret",
                                cwd=place)
            equal(out, "x\nin\nz\n", name)
            equal(daemon.user.shell(f"cat {name}/in/g"), "y\n")
            if os.path.exists(f"{os.path.dirname(name)}/mine"):
                raise AssertionError("a fresh directory is the host's")
        # A fresh directory itself may be the host's when a rule says so.
        out = succeeds(daemon.sh(f"ls {names[0]}; (echo x >{names[0]}/new) 2>&- || echo read-only",
                                 "--ro", "/tmp", cwd=place))
        equal(out, "beside\nin\nread-only\n")


def reuses_or_not(daemon, *arguments, **options):
    first = succeeds(daemon.sh(*arguments, **options))
    equal(succeeds(daemon.sh(*arguments, **options)), first, "with the template again")
    return first


@case("system", "root")
def link_chains_into_run(daemon):
    place = project(daemon, "chain")
    os.makedirs("/run/resolve", exist_ok=True)
    for name in ("stub", "other"):
        with open(f"/run/resolve/{name}", "w", encoding="utf-8") as file:
            file.write(f"{name}\n")
    daemon.user.shell("ln -sfn /run/resolve/stub one; ln -sfn one two", cwd=place)
    out = succeeds(daemon.sh("cat two; ls /run/resolve", "--ro", f"{place}/two", cwd=place))
    equal(out, "stub\nstub\n", "only what the chain ends at is there")


@case("system", "user")
def a_rule_on_the_root(daemon):
    place = project(daemon, "root")
    secret = daemon.user.write(f"{place}/secret", "LEAK\n")
    script = ("test -e /proc/self/status && cat secret 2>&-; ls /proc/1/fd 2>&-; "
              "ls /sys/fs/cgroup 2>&-; (echo x >/sys/x) 2>&-; "
              "test -d /sys/class || test ! -d /sys/kernel; ls -d /dev/mem /dev/vda 2>&-; "
              "echo w >file; cat file; ls -A /dev/.fsbox-stage /dev/.fsbox-pins 2>&- | grep -v :; true")
    out = reuses_or_not(daemon, script, "--profile", "host", "--deny", secret, cwd=place)
    equal(out, "w\n")


@case(*MODES)
def files_as_rules(daemon):
    place = project(daemon, "files")
    outside = project(daemon, "outside")
    daemon.user.shell("echo r >r; echo w >w; echo LEAK >other", cwd=outside)
    out = reuses_or_not(daemon, f"cd {outside}; cat r w; (echo x >r) 2>&-; echo w >w; ls; "
                        "cat other 2>&-; true", "--ro", f"{outside}/r", "--rw", f"{outside}/w",
                        cwd=place)
    equal(out, "r\nw\nr\nw\n")


# ---- what is left of privilege ------------------------------------------------------------------


@case(*MODES)
def r16_nothing_is_left_of_privilege(daemon):
    place = project(daemon, "privilege")
    out = succeeds(daemon.sh("cat /proc/self/status; ls /proc/self/fd | wc -l; umask", cwd=place))
    status = dict(line.split(":\t", 1) for line in out.splitlines() if ":\t" in line)
    for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
        equal(int(status[name], 16), 0, name)
    equal(status["NoNewPrivs"], "1")
    equal(status["Seccomp"], "2")
    equal(status["Uid"].split(), [str(daemon.user.uid)] * 4)
    equal(status["Gid"].split(), [str(daemon.user.gid)] * 4)
    # cat's three, and the directory that ls reads.
    contains(out, "\n4\n")
    equal(succeeds(daemon.sh("ls /proc/1/ | wc -l >&2; cat /proc/1/maps /proc/1/environ "
                             "2>&-; ls -l /proc/1/fd /proc/1/exe 2>&- | "
                             "grep fsbox; true", cwd=place)), "")


@case("root")
def r19_a_job_of_roots_writes_nothing_into_proc(daemon):
    place = project(daemon, "proc")
    out = succeeds(daemon.sh(
        "for f in /proc/sys/kernel/core_pattern /proc/sysrq-trigger /proc/self/oom_score_adj "
        "/proc/irq/default_smp_affinity; do test -e $f && (: >>$f) 2>&- && echo $f; done; "
        "ls -A /sys /sys/fs/cgroup 2>&-; cat /proc/kcore /proc/keys 2>&-; true", cwd=place))
    equal(out, "")


@case(*MODES)
def every_mount_is_the_policys(daemon):
    place = project(daemon, "mounts")
    daemon.user.write(f"{place}/.git/config", "")
    daemon.user.write(f"{place}/f", "")
    out = succeeds(daemon.sh("cat /proc/self/mountinfo", "--deny", f"{place}/f", cwd=place))
    fresh = ("/tmp", "/run", "/var/tmp", "/dev/shm", "/dev/pts", "/proc")
    for line in out.splitlines():
        fields = line.split(" ")
        where, options = fields[4], fields[5].split(",")
        optional = fields[6:fields.index("-")]
        if "nosuid" not in options and not where.startswith("/dev/"):
            raise AssertionError(f"setuid programs work in {line}")
        if [word for word in optional if word.startswith(("shared:", "master:"))]:
            raise AssertionError(f"mounts of the host's can come into {line}")
        if "rw" in options and where not in fresh and not where.startswith(
                (f"{place}", f"{daemon.user.home}/", "/dev/null", "/dev/zero", "/dev/full",
                 "/dev/random", "/dev/urandom", "/dev/tty")):
            raise AssertionError(f"writable: {line}")
    lacks(succeeds(daemon.sh("ls -A /dev/.fsbox-stage 2>&-; true", cwd=place)), "mask")


def memory_of(pid):
    """Every byte that the process has mapped and can read, file or not."""
    with open(f"/proc/{pid}/maps", encoding="utf-8") as maps, \
            open(f"/proc/{pid}/mem", "rb", buffering=0) as mem:
        for line in maps:
            span, rights = line.split()[:2]
            if "r" not in rights or "[v" in line:
                continue
            start, end = (int(word, 16) for word in span.split("-"))
            if end - start > 1 << 32:
                raise lib.Skip("a sanitizer's shadow is too much to read")
            with contextlib.suppress(OSError, ValueError, OverflowError):
                mem.seek(start)
                yield mem.read(end - start)


@case("system")
def r15_pid_1_knows_nothing_of_other_jobs(daemon):
    other = User("fsbxb")
    marker = "a-name-that-only-one-user-knows"
    there = f"{other.home}/src/work"
    other.shell(f"mkdir -p src/work; echo x >src/work/{marker}")
    rules = ["--label", marker, "--deny", f"{there}/{marker}", "--deny", f"{there}/absent-{marker}",
             "--ro", f"{there}/{marker}-not-there"]
    busy = other.popen(daemon.command("spawn", *rules[:6], "--", "/bin/sh", "-c",
                                      f"echo up; read x; : {marker}"),
                       cwd=there, stdin=-1, stdout=-1)
    equal(busy.stdout.readline(), b"up\n")
    # Those that are over, too, well or not.
    for last in (4, 6, 8):
        daemon.sh("true", *rules[:last], user=other, cwd=there)
    daemon.spawn(*rules[:6], "--", f"/{marker}", user=other, cwd=there)
    place = project(daemon, "ignorant")
    mine = daemon.user.popen(daemon.command("spawn", "--", "/bin/sh", "-c", "echo up; read x"),
                             cwd=place, stdin=-1, stdout=-1)
    equal(mine.stdout.readline(), b"up\n")
    try:
        pid = [job["pid"] for job in daemon.jobs() if job["uid"] == daemon.user.uid][0]
        size = 0
        for block in memory_of(pid):
            size += len(block)
            at = block.find(marker.encode())
            if at >= 0:
                raise AssertionError(f"pid 1 remembers {block[max(0, at - 100):at + 100]!r}")
        if size < 100000:
            raise AssertionError(f"only {size} bytes were looked at")
    finally:
        mine.communicate(b"\n", 10)
        busy.communicate(b"\n", 10)


# ---- file systems that do not answer ------------------------------------------------------------


class SlowFileSystem:
    """A FUSE directory of empty directories that answers everybody but those that are like fsboxd."""

    def __init__(self, place, user):
        self.place = place
        try:
            self.fd = os.open("/dev/fuse", os.O_RDWR)
        except OSError as error:
            raise lib.Skip(f"no FUSE here: {error}") from None
        os.makedirs(place, exist_ok=True)
        libc = ctypes.CDLL(None, use_errno=True)
        options = f"fd={self.fd},rootmode=40000,user_id={user.uid},group_id={user.gid},allow_other"
        if libc.mount(b"slow", place.encode(), b"fuse", 0, options.encode()) != 0:
            raise lib.Skip(f"no FUSE here: {os.strerror(ctypes.get_errno())}")
        os.set_blocking(self.fd, False)
        self.held = []
        self.hold = True
        self.ended = False
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    @staticmethod
    def is_ours(pid):
        with contextlib.suppress(OSError):
            with open(f"/proc/{pid}/comm", encoding="utf-8") as file:
                return file.read().strip() == "fsboxd"
        return True  # in a pid namespace that is not known here yet

    def answer(self, unique, opcode, node, name):
        body = b""
        error = 0
        attributes = struct.pack("<QQQQQQIIIIIIIIII", node, 0, 0, 0, 0, 0, 0, 0, 0, 0o40777, 2,
                                 0, 0, 0, 4096, 0)
        if opcode == 26:  # INIT
            body = struct.pack("<IIIIHHIIHHI28x", 7, 31, 1 << 17, 0, 12, 10, 1 << 17, 1, 0, 0, 0)
        elif opcode == 1:  # LOOKUP: each name is a directory; believed for no time at all
            node = 2 + sum(name) * 7 + len(name)
            attributes = struct.pack("<Q", node) + attributes[8:]
            body = struct.pack("<QQQQII", node, 0, 0, 0, 0, 0) + attributes
        elif opcode == 3:  # GETATTR
            body = struct.pack("<QII", 0, 0, 0) + attributes
        elif opcode in (27, 14):  # OPENDIR, OPEN
            body = struct.pack("<QII", 0, 0, 0)
        elif opcode in (2, 42, 36):  # FORGET, BATCH_FORGET, INTERRUPT
            return
        elif opcode not in (28, 29, 18, 25, 34):
            error = -38
        os.write(self.fd, struct.pack("<IiQ", 16 + len(body), error, unique) + body)

    def release(self):
        """From now on everybody is answered, those that wait as well."""
        self.hold = False

    def serve(self):
        try:
            while not self.ended:
                if not self.hold:
                    while self.held:
                        with contextlib.suppress(FileNotFoundError):
                            self.answer(*self.held.pop())
                if not select.select([self.fd], [], [], 0.05)[0]:
                    continue
                request = os.read(self.fd, 1 << 18)
                _, opcode, unique, node, _, _, pid = struct.unpack("<IIQQIII", request[:36])
                wanted = (unique, opcode, node, request[40:].rstrip(b"\0"))
                if self.hold and opcode in (1, 3) and self.is_ours(pid):
                    self.held.append(wanted)
                else:
                    with contextlib.suppress(FileNotFoundError):
                        self.answer(*wanted)
        except OSError:
            pass

    def close(self):
        lib.sh("umount", "-l", self.place)
        self.ended = True
        self.thread.join()
        os.close(self.fd)


@contextlib.contextmanager
def slow_file_system(daemon, name):
    slow = SlowFileSystem(f"/run/{name}", daemon.user)
    try:
        yield slow
    finally:
        slow.close()


def counters(daemon):
    return daemon.json("status")["counters"]


def popen_spawn(daemon, *arguments, cwd):
    return daemon.user.popen(daemon.command("spawn", "--engine", "native", *arguments), cwd=cwd,
                             stdin=-1, stdout=-1, stderr=-1)


@case("system", "root")
def r9_a_builder_that_hangs_holds_up_its_own_requests_alone(daemon):
    place = project(daemon, "builder")
    with slow_file_system(daemon, f"slow-{daemon.mode}") as slow:
        started = time.monotonic()
        waiting = [popen_spawn(daemon, "--ro", f"{slow.place}/{n % 2}", "--", "true", cwd=place)
                   for n in range(4)]
        wait_for(lambda: len(slow.held) >= 2, 10, "builders that hang")
        # Meanwhile: this user's other requests, and others.
        for _ in range(3):
            status_is(daemon.sh("exit 3", cwd=place, timeout=5), 3)
        if daemon.mode == "system":
            other = User("fsbxb")
            other.shell("mkdir -p src/calm")
            status_is(daemon.sh("exit 4", user=other, cwd=f"{other.home}/src/calm", timeout=5), 4)
        for process in waiting:
            _, errors = process.communicate(timeout=20)
            equal(process.returncode, 125, lib.text(errors))
            contains(errors, "timeout")
        if time.monotonic() - started > 15:
            raise AssertionError("the requests took too long to give up")
        slow.release()
        succeeds(daemon.sh("true", "--engine", "native", "--ro", f"{slow.place}/0", cwd=place))
    wait_for(lambda: not daemon.jobs(), 10, "the end of the jobs")


@case("system")
def r9_a_fifth_that_would_hang_is_told_so(daemon):
    place = project(daemon, "fifth")
    with slow_file_system(daemon, "slow-fifth") as slow:
        waiting = [popen_spawn(daemon, "--ro", f"{slow.place}/{n}", "--", "true", cwd=place)
                   for n in range(4)]
        for process in waiting:
            process.communicate(timeout=20)
            equal(process.returncode, 125)
        # They cannot be killed: the file system has their requests.
        wait_for(lambda: counters(daemon)["stuck"] >= 4, 15, "four that are stuck")
        result = daemon.sh("true", cwd=place, timeout=5)
        status_is(result, 125, "resolver-busy")
        slow.release()
    wait_for(lambda: daemon.sh("true", cwd=place).returncode == 0, 20, "service again")
    equal(counters(daemon)["stuck"], 0)


@case("system", "root")
def one_that_waits_for_a_template_may_go(daemon):
    place = project(daemon, "waits")
    with slow_file_system(daemon, f"slow-waits-{daemon.mode}") as slow:
        options = ("--ro", f"{slow.place}/x", "--deny", f"{place}/absent", "--deny",
                   f"{place}/zz")
        jobs = [popen_spawn(daemon, *options, "--", "/bin/sh", "-c", "ls -A; exit 5", cwd=place)
                for _ in range(3)]
        wait_for(lambda: slow.held and len(daemon.jobs()) == 3, 10, "three that wait")
        # The first of them is whose template it is, and whose the placeholders are.
        first = min(job["job"] for job in daemon.jobs())
        succeeds(daemon.ctl("signal", str(first), "KILL"))
        wait_for(lambda: len(daemon.jobs()) == 2, 10, "the first to go")
        slow.release()
        ended = [(job.communicate(timeout=20), job.returncode) for job in jobs]
        equal(sorted(status for _, status in ended), [5, 5, 125], str(ended))
        for (out, _), status in ended:
            equal(out, b"absent\nzz\n" if status == 5 else b"")
        wait_for(lambda: not os.listdir(place), 10, "removal of the placeholders")


# ---- both engines -------------------------------------------------------------------------------

SCRIPTS = [
    "exit 0", "exit 7", "kill -9 $$", "kill -TERM $$", "/nonexistent", "cd /nonexistent",
    "cat denied", "ls denied-dir", "echo x >denied", "echo x >denied-dir/x", "echo x >ro",
    "rm ro", "mv ro r2", "mv dir moved", "rmdir dir/sub", "ln dir/sub/f hard", "cat dir/sub/f",
    "echo x >/etc/x", "echo x >/x", "echo x >/tmp/x && cat /tmp/x", "ls -A /tmp /run", "ls /dev",
    "cat /proc/sys/kernel/core_pattern >/dev/null && echo x >/proc/sys/kernel/core_pattern",
    "mkdir absent/x", "test -d absent", "ls -ld denied denied-dir ro absent | cut -c1-10",
    "ls /sys", "cat link", "echo x >link", "rm link", "readlink link", "mount -t tmpfs x /tmp",
    "unshare -U true", "ls -di / >/dev/null; ulimit -a | grep -v pending", "hostname; id",
]


@case(*MODES)
def both_engines_give_the_same_answers(daemon):
    if not any(engine["name"] == "bwrap" and engine["available"]
               for engine in daemon.json("status")["engines"]):
        raise lib.Skip("bwrap is not available")
    place = project(daemon, "both")
    daemon.user.shell("echo s >denied; mkdir denied-dir; echo s >denied-dir/f; echo r >ro; "
                      "mkdir -p dir/sub; echo k >dir/sub/f; ln -s dir/sub/f link", cwd=place)
    options = ("--deny", f"{place}/denied", "--deny", f"{place}/denied-dir", "--ro", f"{place}/ro",
               "--ro", f"{place}/dir/sub", "--deny", f"{place}/absent")
    differ = []
    for script in SCRIPTS:
        results = []
        for engine in ("bwrap", "native"):
            daemon.user.shell("rm -f link hard; ln -s dir/sub/f link", cwd=place)
            result = daemon.sh(f"LC_ALL=C; {script}", "--engine", engine, *options, cwd=place)
            # Refused is refused, be it by a mount, by Landlock, or by a mode.
            said = re.sub(r"/bin/sh: \d+: |Permission denied|Read-only file system", "",
                          lib.text(result.stderr))
            results.append((result.returncode, lib.text(result.stdout), said))
        if results[0] != results[1]:
            differ.append(f"{script}:\n  bwrap  {results[0]}\n  native {results[1]}")
    if differ:
        raise AssertionError("\n".join(differ))


# ---- kernels that know less ---------------------------------------------------------------------


def with_old_kernel(mode):
    with open(lib.FSBOXD, "rb") as file:
        if b"__asan_init" in file.read():
            raise lib.Skip("a sanitizer wants to be preloaded first")
    daemon = lib.make_daemon(mode)
    log = os.path.join(daemon.user.home, "shim.log") if mode == "user" else "/run/shim.log"
    with open(log, "w", encoding="utf-8"):
        os.chmod(log, 0o666)  # children that are somebody else already write there, too
    daemon.start(config="root-peers = serve\n" if mode == "root" else None,
                 env={"LD_PRELOAD": SHIM, "FSBOX_SHIM_LOG": log})
    try:
        engines = {e["name"]: e for e in daemon.json("status")["engines"]}
        equal(engines["native"]["available"], True, engines["native"].get("reason", ""))
        a_template_is_used_again_for_the_same_policy_alone(daemon)
        r10_a_masked_file_that_is_replaced_is_masked_again(daemon)
        r10_an_ancestor_that_is_renamed(daemon)
        if mode != "user":
            r12_a_mount_drops_what_was_prepared(daemon)
        with open(log, encoding="utf-8") as file:
            equal(sorted(set(file.read().split("\n"))), ["", "listmount", "pidfd ioctl", "statx"])
    finally:
        daemon.stop()


@case(root=True)
def old_kernels_in_system_mode():
    with_old_kernel("system")


@case()
def old_kernels_in_user_mode():
    if lib.no_user_namespaces():
        raise lib.Skip(f"user namespaces are blocked: {lib.no_user_namespaces()}")
    lib.needs_throwaway_home()
    with_old_kernel("user")


# ---- nothing is left ----------------------------------------------------------------------------


def parent_of(pid):
    with contextlib.suppress(OSError), open(f"/proc/{pid}/stat", encoding="utf-8") as file:
        return int(file.read().rpartition(")")[2].split()[1])
    return 0


@case(*MODES)
def nothing_is_left_of_many_jobs_and_templates(daemon):
    place = project(daemon, "many")
    daemon.user.write(f"{place}/f", "")
    succeeds(daemon.sh("true", cwd=place))
    time.sleep(1.5)  # the pool is full again, collected channels are closed
    # A template is its mount namespace and the plan that its guard may be told again.
    def others():
        return lib.descriptors(daemon.process.pid) - 2 * len(templates(daemon))
    before = others(), len(templates(daemon))
    for n in range(20):
        daemon.user.shell("echo x >n; mv n f", cwd=place)
        succeeds(daemon.sh("true", "--deny", f"{place}/f", cwd=place))
        status_is(daemon.spawn("--deny", f"{place}/f", "--", f"/nonexistent{n}", cwd=place), 127)
    wait_for(lambda: not daemon.jobs(), 10, "the end of the jobs")
    wait_for(lambda: others() <= before[0], 10, "descriptors to go")
    if len(templates(daemon)) > before[1] + 1:
        raise AssertionError(f"templates: {templates(daemon)}, {before[1]} before")
    wait_for(lambda: not lib.processes("fsbox-init"), 5, "every pid 1 to go")
    ours = [pid for pid in lib.processes("fsboxd") if parent_of(pid) == daemon.process.pid]
    if len(ours) > 1:  # the maker of network namespaces
        raise AssertionError(f"children of fsboxd: {ours}")


lib.main()
