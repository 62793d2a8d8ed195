# SPDX-License-Identifier: Apache-2.0
"""Homes and rules on file systems of all kinds, and in odd places."""

import contextlib
import os
import shutil
import subprocess
import time

import lib
from autofs import automounted
from lib import case, contains, equal, project, status_is, succeeds, wait_for
from templates import counters, popen_spawn, reuses_or_not

MODES = ("system", "user", "root")
RUN = os.path.basename(os.environ.get("FSBOX_TEST_TOP", "")) + "-fresh"  # of the host's names


@case(*MODES, root=True)
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


# ---- homes on file systems of all kinds ---------------------------------------------------------


@contextlib.contextmanager
def image(place, top, size, *make):
    """What MAKE makes of a file of SIZE, mounted at PLACE."""
    if not shutil.which(make[0]):
        raise lib.Skip(f"{make[0]} is not installed")
    file = os.path.join(top, "image")
    lib.sh("truncate", "-s", size, file)
    lib.sh(*make, file, stdout=subprocess.DEVNULL)
    try:
        lib.mount("-o", "loop", file, place)
    except subprocess.CalledProcessError:
        raise lib.Skip(f"no loop devices here, or no file system that {make[0]} makes") from None
    try:
        yield
    finally:
        lib.sh("umount", place)


def ext4(place, top):
    return image(place, top, "16M", "mkfs.ext4", "-q")


def btrfs(place, top):
    return image(place, top, "256M", "mkfs.btrfs", "-q")


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


@contextlib.contextmanager
def bound(place, top):
    """The home is elsewhere."""
    os.makedirs(f"{top}/real", exist_ok=True)
    lib.mount("--bind", f"{top}/real", place)
    try:
        yield
    finally:
        lib.sh("umount", place)


@contextlib.contextmanager
def on(kind, daemon):
    """A folder of the user's on a file system of this kind."""
    place = project(daemon, kind.__name__)
    top = f"/run/{kind.__name__}-{daemon.mode}"
    os.makedirs(top, exist_ok=True)
    with kind(place, top):
        os.chown(place, daemon.user.uid, daemon.user.gid)
        os.chmod(place, 0o700)
        yield place
        wait_for(lambda: not daemon.jobs(), 10, "the end of the jobs")
    shutil.rmtree(top)


def a_home_works(daemon, kind):
    with on(kind, daemon) as place:
        daemon.user.write(f"{place}/a/secret", "LEAK\n")
        daemon.user.write(f"{place}/ro", "one\n")
        options = ("--deny", f"{place}/a/secret", "--ro", f"{place}/ro",
                   "--deny", f"{place}/absent")
        script = ("cat a/secret 2>&-; (echo x >ro) 2>&-; (mv a z) 2>&-; echo new >file; "
                  "cat ro file; (mkdir absent/x) 2>&-; test ! -e from-below || cat from-below")
        wanted = "one\nnew\n" + ("below\n" if kind is overlay else "")
        equal(reuses_or_not(daemon, script, *options, cwd=place), wanted)
        equal(os.path.isdir(f"{place}/z"), False, "an ancestor was renamed")
        daemon.user.shell("echo LEAK >n; mv n a/secret; echo one >n; mv n ro", cwd=place)
        equal(reuses_or_not(daemon, script, *options, cwd=place), wanted)
        wait_for(lambda: not os.path.exists(f"{place}/absent"), 10, "the placeholder to go")


@case(*MODES, root=True)
def a_home_on_ext4(daemon):
    a_home_works(daemon, ext4)


@case(*MODES, root=True)
def a_home_on_btrfs(daemon):
    a_home_works(daemon, btrfs)


@case(*MODES, root=True)
def a_home_on_overlayfs(daemon):
    a_home_works(daemon, overlay)


@case(*MODES, root=True)
def a_home_that_is_bound(daemon):
    a_home_works(daemon, bound)


@case(*MODES, root=True)
def rules_on_and_below_btrfs_subvolumes(daemon):
    """Each subvolume has a device number and first inode of its own, and is no mount."""
    with on(btrfs, daemon) as place:
        user = f"{daemon.user.uid}:{daemon.user.gid}"
        lib.sh("btrfs", "-q", "subvolume", "create", f"{place}/vol")
        lib.sh("chown", user, f"{place}/vol")
        daemon.user.shell("mkdir vol/rw vol/d; echo LEAK >vol/d/secret; echo one >vol/f", cwd=place)
        lib.sh("btrfs", "-q", "subvolume", "snapshot", f"{place}/vol", f"{place}/snap")
        options = ("--ro", f"{place}/vol", "--rw", f"{place}/vol/rw", "--deny", f"{place}/vol/d/secret",
                   "--deny", f"{place}/snap/d", "--deny", f"{place}/snap/absent")
        script = ("cat vol/f snap/f; cat vol/d/secret snap/d/secret 2>&-; (echo x >vol/f) 2>&-; "
                  "echo w >vol/rw/w; echo s >snap/s; (mv snap snup; mv vol vul) 2>&-; ls vol snap")
        wanted = "one\none\nsnap:\nabsent\nd\nf\nrw\ns\n\nvol:\nd\nf\nrw\n"
        equal(reuses_or_not(daemon, script, *options, cwd=place), wanted)
        equal(daemon.user.shell("cat vol/rw/w snap/s; ls", cwd=place), "w\ns\nsnap\nvol\n")
        wait_for(lambda: not os.path.exists(f"{place}/snap/absent"), 10, "the placeholder to go")
        # Another snapshot in its place: its directories have the same numbers.
        daemon.user.shell("echo two >vol/f; echo LEAK two >vol/d/secret", cwd=place)
        lib.sh("btrfs", "-q", "subvolume", "delete", f"{place}/snap")
        lib.sh("btrfs", "-q", "subvolume", "snapshot", f"{place}/vol", f"{place}/snap")
        out = reuses_or_not(daemon, "cat vol/f snap/f; cat vol/d/secret snap/d/secret 2>&-; true",
                            *options, cwd=place)
        equal(out, "two\ntwo\n")
        wait_for(lambda: not os.path.exists(f"{place}/snap/absent"), 10, "the placeholder to go")


# ---- mounted when somebody looks ----------------------------------------------------------------


@case(*MODES, root=True)
def r9_names_that_are_mounted_when_somebody_looks(daemon):
    place, auto = project(daemon, "auto"), f"/run/auto-{daemon.mode}"
    with automounted(auto):
        # A rule is a look: it is mounted on the host first, and is then as any other mount.
        out = reuses_or_not(daemon, f"cat {auto}/one/name; echo x >{auto}/one/new; ls {auto}",
                            "--rw", f"{auto}/one", cwd=place)
        equal(out, "one\none\n")
        equal(sorted(os.listdir(f"{auto}/one")), ["name", "new"])
        # The whole directory: what is there already comes along, and what a job asks for may come too
        # late for it. Nothing hangs.
        for _ in range(2):
            out = succeeds(daemon.sh(f"cat {auto}/one/name; ls {auto}; for n in two none; do "
                                     f"timeout 5 ls {auto}/$n >/dev/null 2>&-; "
                                     "test $? != 124 || echo hangs; done", "--ro", auto, cwd=place))
            equal(out.replace("two\n", ""), "one\none\n")
        # And a name that cannot be mounted is one that is not there.
        result = daemon.sh("true", "--ro", f"{auto}/none", cwd=place)
        contains(status_is(result, 125).stderr, "path-not-found")


@case(*MODES, root=True)
def r9_an_automounter_that_hangs_holds_up_its_own_request_alone(daemon):
    place, auto = project(daemon, "auto-hangs"), f"/run/auto-hangs-{daemon.mode}"
    with automounted(auto, answer=False):
        waiting = popen_spawn(daemon, "--ro", f"{auto}/one", "--", "true", cwd=place)
        time.sleep(0.5)
        for _ in range(3):
            status_is(daemon.sh("exit 3", cwd=place, timeout=8), 3)
        _, errors = waiting.communicate(timeout=20)
        equal(waiting.returncode, 125, lib.text(errors))
        contains(errors, "timeout")
    wait_for(lambda: counters(daemon)["stuck"] == 0, 10, "nothing that hangs")


# ---- where things lie ---------------------------------------------------------------------------


@case(*MODES)
def rules_at_and_below_the_fresh_directories(daemon):
    place = project(daemon, "fresh")
    with contextlib.ExitStack() as stack:
        names = []
        for top in ("/tmp", "/var/tmp", "/dev/shm"):
            name = f"{top}/{RUN}.{daemon.mode}"
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


@case(*MODES, root=True)
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


lib.main()
