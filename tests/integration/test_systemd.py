# SPDX-License-Identifier: Apache-2.0
"""The units under a real systemd, booted by systemd-nspawn on an overlay of this machine."""

import contextlib
import json
import os
import shutil
import subprocess

import lib
from lib import case, equal

HERE = os.path.dirname(os.path.abspath(__file__))

UNIT = """[Unit]
DefaultDependencies=no
Requires=dbus.service sysinit.target
After=dbus.service sysinit.target
[Service]
Type=oneshot
ExecStart=/usr/bin/python3 -B /opt/insystemd.py
ExecStopPost=/bin/systemctl poweroff --force --no-block
StandardOutput=file:/opt/said
StandardError=file:/opt/errors
"""

TARGET = "[Unit]\nRequires=fsbox-test.service\nAllowIsolate=yes\n"


def write(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def make_root(top):
    """This machine, with fsbox installed and a unit that runs the cases; nothing of it is changed."""
    lib.mount("-t", "tmpfs", "-o", "mode=0755", "tmpfs", top)
    for name in ("upper", "work", "root"):
        os.mkdir(f"{top}/{name}")
    lib.mount("-t", "overlay", "-o", f"lowerdir=/,upperdir={top}/upper,workdir={top}/work", "overlay",
              f"{top}/root")
    root = f"{top}/root"
    lib.sh(shutil.which("meson", path=lib.PATH), "install", "-C", lib.BUILD, "--no-rebuild",
           env=dict(os.environ, DESTDIR=root), stdout=subprocess.DEVNULL)
    # A home of our own: people's are nothing for tests. The accounts are the machine's, without ours.
    lib.mount("-t", "tmpfs", "-o", "mode=0755", "tmpfs", f"{root}/home")
    os.makedirs(f"{root}/opt", exist_ok=True)
    shutil.copy(f"{HERE}/insystemd.py", f"{root}/opt/insystemd.py")
    write(f"{root}/etc/systemd/system/fsbox-test.service", UNIT)
    write(f"{root}/etc/systemd/system/fsbox-test.target", TARGET)
    shutil.rmtree(f"{root}/etc/fsbox", ignore_errors=True)
    return root


@contextlib.contextmanager
def control_group():
    """nspawn divides the one it is in; so one of its own, which goes afterwards."""
    made = []
    try:
        for hierarchy in ("/sys/fs/cgroup", "/sys/fs/cgroup/systemd", "/sys/fs/cgroup/unified"):
            procs = f"{hierarchy}/cgroup.procs"
            if not os.path.exists(procs):
                continue
            place = f"{hierarchy}/fsbox-test-{os.path.basename(os.environ['FSBOX_TEST_TOP'])}"
            os.makedirs(f"{place}/run")
            made.append(place)
            write(f"{place}/run/cgroup.procs", str(os.getpid()))
        yield
    finally:
        for place in made:
            write(f"{os.path.dirname(place)}/cgroup.procs", str(os.getpid()))
            for below, _, _ in os.walk(place, topdown=False):
                with contextlib.suppress(OSError):
                    os.rmdir(below)


def boot(root):
    """Until it powers off; what it printed."""
    # Its filter of system calls would be on every client there, which fsboxd takes for a sandbox (R6).
    environment = dict(os.environ, SYSTEMD_SECCOMP="0")
    result = subprocess.run(["systemd-nspawn", "-q", "-D", root, "--keep-unit", "--register=no",
                             "--capability=all", "--console=pipe", "-b",
                             "systemd.unit=fsbox-test.target"],
                            env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, check=False, timeout=150)
    return lib.text(result.stdout)


def read(path):
    with contextlib.suppress(FileNotFoundError), open(path, encoding="utf-8") as file:
        return file.read()
    return ""


@case(root=True)
def R24_R35_restart_kill_upgrade_and_stop_under_the_real_systemd():
    for program in ("systemd-nspawn", "meson"):
        if not shutil.which(program, path=lib.PATH):
            raise lib.Skip(f"{program} is not here")
    top = f"{os.environ['FSBOX_TEST_TOP']}/machine"
    os.mkdir(top)
    root = make_root(top)
    try:
        with control_group():
            console = boot(root)
        said = [json.loads(line) for line in read(f"{root}/opt/said").splitlines()]
        if len(said) != 5:
            raise AssertionError(f"{said}\n{read(f'{root}/opt/errors')}\n{console[-2000:]}")
        for name, wrong, seconds in said:
            print(f"# {name}: {seconds} s")
            for line in (wrong or "").splitlines():
                print(f"#   {line}")
        equal([name for name, wrong, _ in said if wrong], [], "cases that failed")
    finally:
        lib.sh("umount", "-l", root)
        lib.sh("umount", "-l", top)


lib.main()
