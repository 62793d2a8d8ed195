# SPDX-License-Identifier: Apache-2.0
"""The native engine: what is prepared is used again, and never when the host has changed since."""

import contextlib
import os
import re
import time

import lib
from lib import User, case, contains, equal, lacks, project, status_is, succeeds, wait_for
from templates import (hurried, memory_of, parent_of, rebuilds, reuses, spawn_in_template,
                       templates)

MODES = ("system", "user", "root")
SHIM = os.path.join(lib.BUILD, "tests/integration/libold_kernel.so")

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
        equal(process.communicate(b"\n", 30)[0], b"below\n")
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


# ---- how much is kept ---------------------------------------------------------------------------


@case(root=True)
def r12_what_nobody_uses_goes():
    for mode in ("system", "user"):
        with hurried(mode) as daemon:
            place = project(daemon, "idle")
            rebuilds(daemon, "true", cwd=place)
            for _ in range(8):  # longer than an idle one lives
                used = time.monotonic()
                time.sleep(0.3)
                _, new = spawn_in_template(daemon, "true", cwd=place)
                # Unless the machine stood still for so long that it was idle.
                equal(new == set() or time.monotonic() - used > 1.4, True, "used again")
            wait_for(lambda at=daemon: not templates(at), 5, "the template to go")
            rebuilds(daemon, "true", cwd=place)


@contextlib.contextmanager
def submounts(place, count):
    """So many below PLACE."""
    lib.mount("-t", "tmpfs", "-o", "mode=0755", "tmpfs", place)
    try:
        for n in range(count - 1):
            os.mkdir(f"{place}/{n}")
            lib.mount("--bind", f"{place}/{n}", f"{place}/{n}")
        yield
    finally:
        lib.sh("umount", "-R", place)


@case(root=True)
def r12_mounts_that_come_along_count():
    """A rule of one line may bring hundreds of mounts; templates are kept within template-cache-mounts."""
    for mode in ("system", "user"):
        # Zygotes would count as well, and are made when they may be.
        daemon = lib.make_daemon(mode).start(config="template-cache-mounts = 800\nzygotes = 0\n")
        try:
            place = project(daemon, "bound")
            daemon.user.shell("mkdir many too-many a b c d e f", cwd=place)
            with submounts(f"{place}/many", 420), submounts(f"{place}/too-many", 801):
                rules = ("--ro", "/usr", "--ro", "/etc", "--ro", "/bin", "--ro", "/lib", "--ro", "/lib64")
                for name in "abcd":  # four of these would be far below 800 without what comes along
                    rebuilds(daemon, "true", *rules, "--ro", f"{place}/many", cwd=f"{place}/{name}")
                wait_for(lambda d=daemon: len(templates(d)) == 1, 5, "one template of 420 and some mounts")
                rebuilds(daemon, "true", *rules, cwd=f"{place}/e")
                kept = templates(daemon)
                equal(len(kept), 2, "templates")
                # One that is too large by itself serves who waits for it, and nobody else is put out.
                succeeds(daemon.sh("true", *rules, "--ro", f"{place}/too-many", cwd=f"{place}/f"))
                wait_for(lambda d=daemon, k=kept: templates(d) == k, 5, "the templates of before")
        finally:
            daemon.stop()


# ---- what is left of privilege ------------------------------------------------------------------

CAPABILITIES = {"CHOWN": 0, "DAC_OVERRIDE": 1, "DAC_READ_SEARCH": 2, "FOWNER": 3, "KILL": 5, "SETGID": 6,
                "SETUID": 7, "SETPCAP": 8, "NET_ADMIN": 12, "SYS_CHROOT": 18, "SYS_PTRACE": 19,
                "SYS_ADMIN": 21, "SYS_NICE": 23, "SYS_RESOURCE": 24, "SETFCAP": 31}  # linux/capability.h


@case("system", "root")
def fsboxd_can_give_its_children_no_more_than_its_unit_says(daemon):
    unit = os.path.join(os.path.dirname(lib.__file__), "../../packaging/fsboxd.service.in")
    with open(unit, encoding="utf-8") as file:
        words = re.search(r"^CapabilityBoundingSet=(.*)$", file.read(), re.M).group(1).split()
    allowed = sum(1 << CAPABILITIES[word.removeprefix("CAP_")] for word in words)
    with open(f"/proc/{daemon.process.pid}/status", encoding="utf-8") as file:
        status = dict(line.split(":\t", 1) for line in file if ":\t" in line)
    equal(status["Name"].strip(), "fsboxd")
    equal(int(status["CapBnd"], 16) & ~allowed, 0)
    # What this machine gives at all is kept.
    with open("/proc/self/status", encoding="utf-8") as file:
        own = dict(line.split(":\t", 1) for line in file if ":\t" in line)
    equal(int(status["CapBnd"], 16), int(own["CapBnd"], 16) & allowed)


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
        mine.communicate(b"\n", 30)
        busy.communicate(b"\n", 30)


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
            equal(sorted(set(file.read().split("\n"))), ["", "fanotify", "listmount", "pidfd ioctl", "statx"])
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


@case(*MODES)
def nothing_is_left_of_many_jobs_and_templates(daemon):
    place = project(daemon, "many")
    daemon.user.write(f"{place}/f", "")
    succeeds(daemon.sh("true", cwd=place))
    time.sleep(1.5)  # collected channels are closed
    before = (lib.settled(lambda: lib.descriptors_but_of_templates(daemon.process.pid)),
              len(templates(daemon)))
    for n in range(20):
        daemon.user.shell("echo x >n; mv n f", cwd=place)
        succeeds(daemon.sh("true", "--deny", f"{place}/f", cwd=place))
        status_is(daemon.spawn("--deny", f"{place}/f", "--", f"/nonexistent{n}", cwd=place), 127)
    wait_for(lambda: not daemon.jobs(), 10, "the end of the jobs")
    wait_for(lambda: lib.descriptors_but_of_templates(daemon.process.pid) <= before[0], 10,
             "descriptors to go")
    if len(templates(daemon)) > before[1] + 1:
        raise AssertionError(f"templates: {templates(daemon)}, {before[1]} before")
    wait_for(lambda: not lib.processes("fsbox-init"), 5, "every pid 1 to go")
    ours = [pid for pid in lib.processes("fsboxd") if parent_of(pid) == daemon.process.pid]
    if len(ours) > 1:  # the maker of network namespaces
        raise AssertionError(f"children of fsboxd: {ours}")


lib.main()
