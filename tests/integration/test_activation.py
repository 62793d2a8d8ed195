# SPDX-License-Identifier: Apache-2.0
"""Service managers and embedding: a socket passed in, readiness told, a daemon started on demand."""

import os
import shutil
import socket
import subprocess
import time

import lib
from lib import User, case, contains, equal, project, status_is, succeeds, wait_for


def notify_socket(path):
    server = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    server.bind(path)
    os.chmod(path, 0o666)
    server.settimeout(15)
    return server


@case("system", "root")
def readiness_is_told_when_it_serves(daemon):
    daemon.stop()
    path = "/run/notify"
    with notify_socket(path) as server:
        daemon.process = daemon.owner().popen([lib.FSBOXD, "--mode", daemon.mode], cwd="/",
                                              env={"NOTIFY_SOCKET": path}, stdout=daemon.log,
                                              stderr=daemon.log)
        said = server.recv(4096).decode()
        contains(said, "READY=1")
        # From this moment on a client is served, without trying twice.
        succeeds(daemon.ctl("status"))
        daemon.stop()
        said = ""
        while "STOPPING=1" not in said:
            said = server.recv(4096).decode()
    os.remove(path)
    os.remove(daemon.socket)  # kept for a successor, to which the manager passes it


@case(root=True)
def systemd_socket_activation():
    activate = shutil.which("systemd-socket-activate")
    if not activate:
        raise lib.Skip("systemd-socket-activate is not here")
    daemon = lib.make_daemon("system")
    os.makedirs("/run/fsbox", exist_ok=True)
    manager = User("root").popen([activate, "-l", daemon.socket, lib.FSBOXD, "--mode", "system"],
                                 cwd="/")
    try:
        wait_for(lambda: os.path.exists(daemon.socket), 10, "the socket")
        os.chown(daemon.socket, 0, lib.GROUPS["fsbox"])
        os.chmod(daemon.socket, 0o660)
        equal(lib.processes("fsboxd"), {}, "before the first client")
        place = project(daemon, "activated")
        # The first client waits for the start; nothing of its request is lost.
        result = daemon.sh("echo inside; exit 4", cwd=place, timeout=30)
        equal((result.returncode, result.stdout), (4, b"inside\n"))
        # The job sees nothing of the conversation with the manager.
        lib.lacks(daemon.spawn("--", "env", cwd=place).stdout, "LISTEN_")
    finally:
        manager.terminate()
        manager.wait(15)
        if os.path.exists(daemon.socket):
            os.remove(daemon.socket)


@case()
def fsboxctl_starts_a_daemon_for_its_caller():
    if lib.no_user_namespaces():
        raise lib.Skip(f"user namespaces are blocked: {lib.no_user_namespaces()}")
    if not lib.IS_ROOT:
        raise lib.Skip("needs root, to be a user without a daemon")
    user = User("fsbxc")  # no member of anything
    user.shell("mkdir -p src/p")
    place = f"{user.home}/src/p"
    command = [lib.FSBOXCTL, "spawn", "--", "/bin/sh", "-c", "echo inside; exit 6"]
    status_is(user.run([lib.FSBOXCTL, "--no-autostart", "status"], cwd=place), 125)
    # Ten at once: one daemon.
    many = [user.popen(command, cwd=place, stdout=-1, stderr=-1) for _ in range(10)]
    for process in many:
        out, errors = process.communicate(timeout=60)
        equal((process.returncode, out, errors), (6, b"inside\n", b""))
    daemons = [pid for pid in lib.processes("fsboxd") if lib.parent_of(pid) == 1]  # not its children
    equal(len(daemons), 1, "daemons")
    with open(f"/proc/{daemons[0]}/status", encoding="utf-8") as file:
        contains(file.read(), f"Uid:\t{user.uid}\t")
    for pid in daemons:
        os.kill(pid, 15)
    wait_for(lambda: not lib.processes("fsboxd"), 10, "its end")


@case(root=True)
def fsboxctl_starts_an_embedded_daemon_for_root():
    root = User("root")
    root.shell("mkdir -p /root/src/p")
    result = root.run([lib.FSBOXCTL, "spawn", "--", "/bin/sh", "-c", "id -u; exit 6"],
                      cwd="/root/src/p")
    equal((result.returncode, result.stdout), (6, b"0\n"), lib.text(result.stderr))
    found = os.stat("/run/fsbox-root/fsbox.sock")
    equal((found.st_mode & 0o777, found.st_uid), (0o600, 0))
    for pid in lib.processes("fsboxd"):
        os.kill(pid, 15)
    wait_for(lambda: not lib.processes("fsboxd"), 10, "its end")


@case(root=True)
def a_second_daemon_does_not_take_the_place_of_the_first():
    daemon = lib.make_daemon("system")
    daemon.start()
    try:
        result = User("root").run([lib.FSBOXD, "--mode", "system"], timeout=15)
        if result.returncode == 0:
            raise AssertionError(lib.show(result))
        succeeds(daemon.ctl("status"))
    finally:
        daemon.stop()
    # After a kill -9 the leftovers of the first are no obstacle.
    daemon.start()
    daemon.process.kill()
    daemon.process.wait()
    time.sleep(0.2)
    daemon.start()
    daemon.stop()


@case(root=True)
def an_installed_fsbox_works_and_its_units_are_right():
    meson = shutil.which("meson", path=lib.PATH)
    if not meson:
        raise lib.Skip("meson is not here")
    stage = f"{os.environ['FSBOX_TEST_TOP']}/installed"
    lib.sh(meson, "install", "-C", lib.BUILD, "--no-rebuild", env=dict(os.environ, DESTDIR=stage),
           stdout=subprocess.DEVNULL)
    lib.mount("--bind", f"{stage}/usr/local", "/usr/local")
    try:
        user = User("fsbxc")
        user.shell("mkdir -p src/p")
        result = user.run(["fsboxctl", "--user", "spawn", "--", "/bin/sh", "-c", "exit 6"],
                          cwd=f"{user.home}/src/p")
        status_is(result, 6)
        for pid in lib.processes("fsboxd"):
            os.kill(pid, 15)
        wait_for(lambda: not lib.processes("fsboxd"), 10, "its end")
        if shutil.which("systemd-analyze"):
            units = "/usr/local/lib/systemd"
            for kind in ("system", "user"):
                succeeds(User("root").run(
                    ["systemd-analyze", f"--{kind}", "--man=no", "verify",
                     f"{units}/{kind}/fsboxd.service", f"{units}/{kind}/fsboxd.socket"],
                    env={"XDG_RUNTIME_DIR": "/run"}))
    finally:
        lib.sh("umount", "-l", "/usr/local")


# Says what systemd does with the unit.
SYSTEMCTL = """#!/bin/sh
[ "$*" = "--system list-jobs --no-legend --plain fsboxd.service" ] || exit 9
cat /run/systemd-jobs
"""


@case(root=True)
def R35_stop_and_restart_are_told_apart_by_the_unit():
    meson = shutil.which("meson", path=lib.PATH)
    if not meson:
        raise lib.Skip("meson is not here")
    stage = f"{os.environ['FSBOX_TEST_TOP']}/installed"
    lib.sh(meson, "install", "-C", lib.BUILD, "--no-rebuild", env=dict(os.environ, DESTDIR=stage),
           stdout=subprocess.DEVNULL)
    lib.mount("--bind", f"{stage}/usr/local", "/usr/local")
    try:
        with open("/usr/local/lib/systemd/system/fsboxd.service", encoding="utf-8") as file:
            unit = file.read()
        contains(unit, "\nKillMode=process\n")
        script = unit.split("\nExecStopPost=")[1].split("\n")[0].split(" ")
        with open("/usr/local/bin/systemctl", "w", encoding="ascii") as file:
            file.write(SYSTEMCTL)
        os.chmod("/usr/local/bin/systemctl", 0o755)
        daemon = lib.make_daemon("system")
        daemon.start(program="/usr/local/sbin/fsboxd")
        place = project(daemon, "units")
        succeeds(daemon.detach("--", "sleep", "600", cwd=place))

        def after_stop(jobs, result="success"):
            with open("/run/systemd-jobs", "w", encoding="ascii") as file:
                file.write(jobs)
            succeeds(User("root").run(script, env={"SERVICE_RESULT": result}))
            return len(lib.processes("sleep"))

        daemon.stop()
        equal(after_stop("77 fsboxd.service restart running\n"), 1, "restart")
        equal(after_stop("", "signal"), 1, "a crash, after which systemd starts another one")
        daemon.start(program="/usr/local/sbin/fsboxd")
        contains(daemon.ctl("ps").stdout, "sleep")
        daemon.stop()
        equal(after_stop("78 fsboxd.service stop running\n"), 0, "stop")
        equal(lib.processes("fsbox-init"), {})
    finally:
        lib.sh("umount", "-l", "/usr/local")


lib.main()
