# SPDX-License-Identifier: Apache-2.0
"""A machine of our own for tests of the whole daemon.

As root, a test program runs in its own mount and process namespace: /etc is a copy with users of
ours, /home, /run, /var/lib and /var/log are fresh. The host never sees a user, a group or a file of
them, and whatever a test left running ends with it. fsboxd and its clients live in there together,
as they do on a host (a client in other namespaces would be refused).

Without root only user mode can be tried, as the user who calls: in a user namespace that maps him to
himself, with a home of its own mounted over his.

A test program registers functions with @case and ends with main(). A case fails by an exception,
ends early with Skip, and its name carries the number of the requirement it holds (r6_...).
"""

import atexit
import collections
import contextlib
import ctypes
import functools
import json
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback

BUILD = os.environ.get("FSBOX_BUILD", "")
FSBOXD = os.path.join(BUILD, "daemon/fsboxd")
FSBOXCTL = os.path.join(BUILD, "client/fsboxctl")
ENGINE = os.environ.get("FSBOX_TEST_ENGINE")  # every spawn asks for it; else the daemon's choice
ZYGOTES = os.environ.get("FSBOX_TEST_ZYGOTES")  # every daemon has so many, see zygotelib.py
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

IS_ROOT = os.geteuid() == 0 and os.environ.get("FSBOX_TEST_STAGE") != "mapped"

# name: (uid, groups besides its own)
USERS = {
    "fsbxa": (61501, ["fsbox"]),
    "fsbxb": (61502, ["fsbox"]),
    "fsbxc": (61503, []),
    "fsbxadm": (61504, ["fsbox", "fsbox-admin"]),
}
GROUPS = {"fsbox": 61510, "fsbox-admin": 61511}


class Skip(Exception):
    """The case cannot run here; the text says why."""


# ---- the private machine -------------------------------------------------------------------


def sh(*command, **options):
    return subprocess.run(command, check=True, stdin=subprocess.DEVNULL, **options)


def mount(*arguments, **options):
    sh("mount", *arguments, **options)


def private_etc(top):
    """A copy of /etc with our users and groups, mounted over it."""
    etc = os.path.join(top, "etc")
    sh("cp", "-a", "/etc", etc)
    shutil.rmtree(os.path.join(etc, "fsbox"), ignore_errors=True)
    with open(os.path.join(etc, "passwd"), "a", encoding="utf-8") as file:
        for name, (uid, _) in USERS.items():
            file.write(f"{name}:x:{uid}:{uid}::/home/{name}:/bin/sh\n")
    with open(os.path.join(etc, "group"), "a", encoding="utf-8") as file:
        for name, (uid, _) in USERS.items():
            file.write(f"{name}:x:{uid}:\n")
        for group, gid in GROUPS.items():
            members = [name for name, (_, groups) in USERS.items() if group in groups]
            file.write(f"{group}:x:{gid}:{','.join(members)}\n")
    mount("--bind", etc, "/etc")


def in_machine(*command, top, stage, **options):
    """COMMAND in new mount and process namespaces; its exit status."""
    namespaces = ["unshare", "--mount", "--propagation", "private", "--pid", "--fork", "--kill-child",
                  "--mount-proc", *options.get("more", ())]
    environment = dict(os.environ, FSBOX_TEST_TOP=top, FSBOX_TEST_STAGE=stage)
    # Whatever kills us takes the whole machine with it.
    return subprocess.run([*namespaces, *command], env=environment, check=False,
                          preexec_fn=lambda: ctypes.CDLL(None).prctl(1, signal.SIGKILL)).returncode


def enter_private_machine():
    """Run this program again in namespaces of its own; the outer one tidies up."""
    stage = os.environ.get("FSBOX_TEST_STAGE", "")
    if stage == "root" and IS_ROOT:
        prepare_private_machine()
        return
    if stage == "mapped":  # root of our own user namespace, for the mounts; then ourselves again
        prepare_private_home()
        os.environ["FSBOX_TEST_STAGE"] = "user"
        uid, gid = os.environ["FSBOX_TEST_IDS"].split(":")
        os.execvp("unshare", ["unshare", "--user", f"--map-user={uid}", f"--map-group={gid}",
                              sys.executable, "-B", *sys.argv])
    if stage == "user" or not IS_ROOT and no_user_namespaces():
        return
    top = tempfile.mkdtemp(prefix=f"fsbox-it.{os.environ.get('FSBOX_TEST_RUN', '0')}.")
    os.chmod(top, 0o755)
    try:
        if IS_ROOT:
            status = in_machine(sys.executable, "-B", *sys.argv, top=top, stage="root")
        else:
            # The tree may lie in the home that is about to be covered.
            for folder in {os.path.dirname(os.path.abspath(p)) for p in (__file__, sys.argv[0])}:
                shutil.copytree(folder, f"{top}/tests", dirs_exist_ok=True)
            for variable in ("FSBOX_KERNEL_TESTS", "FSBOX_VECTORS"):
                if os.environ.get(variable):
                    shutil.copytree(os.environ[variable], f"{top}/{variable}")
                    os.environ[variable] = f"{top}/{variable}"
            os.environ["FSBOX_TEST_IDS"] = f"{os.getuid()}:{os.getgid()}"
            status = in_machine(sys.executable, "-B", f"{top}/tests/{os.path.basename(sys.argv[0])}",
                                *sys.argv[1:], top=top, stage="mapped",
                                more=["--user", "--map-root-user"])
    finally:
        shutil.rmtree(top, ignore_errors=True)
    sys.exit(status)


def check_stage():
    if os.getpid() != 1:
        raise SystemExit("FSBOX_TEST_STAGE is set by this program alone")
    return os.environ["FSBOX_TEST_TOP"]


def prepare_private_machine():
    top = check_stage()
    private_etc(top)
    for place in ("/run", "/var/lib", "/var/log"):
        mount("-t", "tmpfs", "-o", "mode=0755", "tmpfs", place)
    # /home and /root are where people's keys are: a tree of ours hides them from the tests.
    for place in ("home", "root"):
        if any(os.path.realpath(p).startswith(f"/{place}/") for p in (BUILD, __file__)):
            raise SystemExit(f"run these tests as root from outside /{place} "
                             "and with FSBOX_TEST_BUILD outside of it")
        os.mkdir(os.path.join(top, place))
        os.chmod(os.path.join(top, place), 0o755 if place == "home" else 0o700)
        mount("--bind", os.path.join(top, place), f"/{place}")
    os.makedirs("/run/user", exist_ok=True)
    for name, (uid, _) in USERS.items():
        home = f"/home/{name}"
        os.mkdir(home, 0o700)
        os.chown(home, uid, uid)
        os.mkdir(f"/run/user/{uid}", 0o700)
        os.chown(f"/run/user/{uid}", uid, uid)
    os.environ.pop("HOME", None)
    os.chdir("/")


def prepare_private_home():
    top = check_stage()
    uid = os.environ["FSBOX_TEST_IDS"].split(":")[0]
    home = pwd.getpwuid(int(uid)).pw_dir
    if os.path.realpath(BUILD).startswith(os.path.realpath(home) + "/"):
        raise SystemExit(f"set FSBOX_TEST_BUILD to a folder outside of {home}")
    mount("-t", "tmpfs", "-o", "mode=0755", "tmpfs", "/run")
    os.makedirs(f"/run/user/{uid}", 0o700)
    os.mkdir(f"{top}/home", 0o700)
    mount("--bind", f"{top}/home", home)
    os.chdir("/")


# ---- who runs what -------------------------------------------------------------------------


class User:
    """Somebody to run programs as."""

    def __init__(self, name):
        entry = pwd.getpwnam(name)
        self.name, self.uid, self.gid = name, entry.pw_uid, entry.pw_gid
        self.home = entry.pw_dir
        self.groups = [GROUPS[g] for g in USERS.get(name, (0, []))[1]]

    def environment(self, **more):
        result = {"HOME": self.home, "USER": self.name, "LOGNAME": self.name, "PATH": PATH,
                  "LANG": "C.UTF-8", "XDG_RUNTIME_DIR": f"/run/user/{self.uid}", "SHELL": "/bin/sh"}
        if self.uid == 0 or not os.path.isdir(result["XDG_RUNTIME_DIR"]):
            del result["XDG_RUNTIME_DIR"]
        result.update(more)
        return result

    def identity(self):
        if not IS_ROOT:
            return {}
        return {"user": self.uid, "group": self.gid, "extra_groups": self.groups}

    def popen(self, command, env=None, cwd=None, **options):
        options.setdefault("stdin", subprocess.DEVNULL)
        return subprocess.Popen(command, env=self.environment(**(env or {})), cwd=cwd or self.home,
                                **self.identity(), **options)

    def run(self, command, timeout=60, input=None, **options):
        """Run to the end; stdout and stderr as bytes."""
        if input is not None:
            options["stdin"] = subprocess.PIPE
        options.setdefault("stdout", subprocess.PIPE)
        options.setdefault("stderr", subprocess.PIPE)
        process = self.popen(command, **options)
        try:
            out, errors = process.communicate(input, timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            try:
                out, errors = process.communicate(timeout=3)
            except subprocess.TimeoutExpired:  # somebody else holds its pipes
                out, errors = b"?", b"?"
            raise AssertionError(f"{command} did not end in {timeout} s; stdout {out!r}, "
                                 f"stderr {errors!r}") from None
        return subprocess.CompletedProcess(command, process.returncode, out, errors)

    def shell(self, script, **options):
        """A script of this user's, unconfined; must succeed."""
        result = self.run(["/bin/sh", "-euc", script], **options)
        equal(result.returncode, 0, f"preparation: {script}\n{text(result.stderr)}")
        return text(result.stdout)

    def write(self, path, content=""):
        """A file of this user's with every folder on the way."""
        self.run(["/bin/sh", "-euc", 'mkdir -p "$(dirname "$1")"; cat >"$1"', "sh", path],
                 input=content.encode() if isinstance(content, str) else content)
        return path


def as_user(user, function, *arguments, prepare=None):
    """FUNCTION's result (anything JSON can say), called in a process of USER's.

    @prepare  called before, still with our own rights: unshare, chroot and the like
    """
    read_end, write_end = os.pipe()
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            os.close(read_end)
            if prepare:
                prepare()
            if IS_ROOT:
                os.setgroups(user.groups)
                os.setresgid(user.gid, user.gid, user.gid)
                os.setresuid(user.uid, user.uid, user.uid)
                # As after exec; else even what may be asked of any process could not be read.
                ctypes.CDLL(None).prctl(4, 1, 0, 0, 0)  # PR_SET_DUMPABLE
            os.environ.clear()
            os.environ.update(user.environment())
            try:
                said = {"result": function(*arguments)}
            except Exception:  # pylint: disable=broad-except
                said = {"failed": traceback.format_exc()}
            data = json.dumps(said).encode()
            while data:
                data = data[os.write(write_end, data):]
            status = 0
        finally:
            os._exit(status)
    os.close(write_end)
    said = b""
    while True:
        data = os.read(read_end, 65536)
        if not data:
            break
        said += data
    os.close(read_end)
    os.waitpid(pid, 0)
    answer = json.loads(said or b'{"failed": "died without a word"}')
    if "failed" in answer:
        raise AssertionError(f"as {user.name}: {answer['failed']}")
    return answer["result"]


def text(data):
    return data.decode("utf-8", "replace") if isinstance(data, bytes) else data


# ---- the daemon ----------------------------------------------------------------------------


class Daemon:
    """fsboxd in one of its modes, and clients that talk to it."""

    def __init__(self, mode, user):
        self.mode, self.user = mode, user
        self.process = None
        self.log = None
        self.socket = {
            "system": "/run/fsbox/fsbox.sock",
            "root": "/run/fsbox-root/fsbox.sock",
            "user": f"{user.environment().get('XDG_RUNTIME_DIR', '')}/fsbox/fsbox.sock",
        }[mode]

    def owner(self):
        return self.user if self.mode == "user" else User("root") if IS_ROOT else self.user

    def start(self, *arguments, config=None, program=FSBOXD, env=None, **options):
        self.write_config(config)
        self.log = tempfile.TemporaryFile()
        self.process = self.owner().popen([program, "--mode", self.mode, *arguments], cwd="/",
                                          env=env, stdout=self.log, stderr=self.log, **options)
        self.wait_until_it_answers()
        return self

    def write_config(self, config):
        if ZYGOTES:
            config = zygotelib.config_with(self, config)
        if self.mode == "user":
            path = os.path.join(self.user.home, ".config/fsbox/fsboxd.conf")
            if config is not None:
                self.user.write(path, config)
            return
        path = "/etc/fsbox/fsboxd.conf"
        if config is None:
            with contextlib.suppress(FileNotFoundError):
                os.remove(path)
            return
        os.makedirs("/etc/fsbox", exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(config)

    def wait_until_it_answers(self):
        result, end = None, time.monotonic() + 30
        while time.monotonic() < end:
            if self.process.poll() is not None:
                raise AssertionError(f"fsboxd ended with {self.process.returncode}: {self.logged()}")
            if os.path.exists(self.socket):
                result = self.ctl("status")
                if result.returncode == 0:
                    return
            time.sleep(0.05)
        raise AssertionError(f"fsboxd does not answer: {result}; its log: {self.logged()}")

    def logged(self):
        self.log.seek(0)
        return text(self.log.read())

    def stop(self):
        if self.process is None:
            return None
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise AssertionError(f"fsboxd did not end on SIGTERM: {self.logged()}") from None
        finally:
            status, self.process = self.process.returncode, None
        return status

    def command(self, *arguments):
        if ENGINE and arguments[:1] == ("spawn",):
            arguments = ("spawn", "--engine", ENGINE, *arguments[1:])
        return [FSBOXCTL, "--socket", self.socket, *arguments]

    def ctl(self, *arguments, user=None, **options):
        return (user or self.user).run(self.command(*arguments), **options)

    def spawn(self, *arguments, **options):
        """`fsboxctl spawn ARGUMENTS`; pass options of spawn, then "--", then the command."""
        before = zygotelib.before_spawn(self, arguments, options) if ZYGOTES else None
        result = self.ctl("spawn", *arguments, **options)
        if ZYGOTES:
            zygotelib.after_spawn(self, before)
        return result

    def detach(self, *arguments, **options):
        """spawn --detach: the job would keep our pipes open, so that it gets none."""
        return self.spawn("--detach", *arguments, stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL, **options)

    def sh(self, script, *options, cwd=None, **more):
        """A shell script inside, with CWD as the project."""
        return self.spawn(*options, "--", "/bin/sh", "-c", script, cwd=cwd, **more)

    def json(self, *arguments, **options):
        result = self.ctl("--json", *arguments, **options)
        equal(result.returncode, 0, text(result.stderr))
        return json.loads(result.stdout)

    def jobs(self):
        listed = self.json("ps")
        return listed["jobs"] if isinstance(listed, dict) else listed


def make_daemon(mode):
    if mode != "user" and not IS_ROOT:
        raise Skip("needs root")
    if IS_ROOT:
        return Daemon(mode, User("root" if mode == "root" else "fsbxa"))
    return Daemon(mode, User(pwd.getpwuid(os.getuid()).pw_name))


@functools.lru_cache(maxsize=None)
def no_user_namespaces():
    """Why an ordinary user cannot make a sandbox here, or None."""
    user = User("fsbxa") if IS_ROOT else User(pwd.getpwuid(os.getuid()).pw_name)
    result = user.run(["bwrap", "--unshare-user", "--unshare-pid", "--ro-bind", "/", "/", "true"])
    return None if result.returncode == 0 else text(result.stderr).strip()


def project(daemon, name):
    """An empty folder to work in, the user's own."""
    if os.environ.get("FSBOX_TEST_STAGE"):
        path = os.path.join(daemon.user.home, "src", name)
        daemon.user.shell(f"rm -rf '{path}'; mkdir -p '{path}'")
        return path
    path = tempfile.mkdtemp(prefix=f"fsbox-it.{name}.")
    atexit.register(shutil.rmtree, path, True)
    return path


def needs_throwaway_home():
    if not os.environ.get("FSBOX_TEST_STAGE"):
        raise Skip("needs a home that may be written to: root, or user namespaces")


def spawn_status(daemon, *arguments, **options):
    """spawn with --status-fd: the result, and what was said there."""
    read_end, write_end = os.pipe()
    try:
        result = daemon.spawn("--status-fd", str(write_end), *arguments, pass_fds=[write_end],
                              **options)
        os.close(write_end)
        write_end = -1
        said = b""
        while True:
            data = os.read(read_end, 65536)
            if not data:
                break
            said += data
    finally:
        os.close(read_end)
        if write_end >= 0:
            os.close(write_end)
    return result, json.loads(said) if said else None


# ---- looking at processes ------------------------------------------------------------------


def processes(name=None):
    """{pid: comm} of the live processes that we see."""
    found = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
                line = file.read()
            comm = line[line.index("(") + 1:line.rindex(")")]
            if line[line.rindex(")") + 2] != "Z" and (name is None or comm == name):
                found[int(pid)] = comm
    return found


def status_of(pid):
    """The lines of /proc/PID/status; "" for each where PID is gone."""
    found = collections.defaultdict(str)
    with contextlib.suppress(OSError):
        with open(f"/proc/{pid}/status", encoding="utf-8", errors="replace") as file:
            found.update(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)
    return found


def parent_of(pid):
    """0 where PID is gone."""
    return int(status_of(pid)["PPid"] or 0)


def descriptors(pid):
    """How many PID has open; 0 where only root may see that (roles are not dumpable)."""
    try:
        return len(os.listdir(f"/proc/{pid}/fd"))
    except PermissionError:
        return 0


def descriptors_but_of_templates(pid):
    """Without the mount namespaces that fsboxd holds, and without a builder's pidfd, two pipes and the plan
    that its guard may be told again; of a zygote without its socket, two pipes, its pidfd and four namespaces."""
    held = 4 * len(processes("fsbox-builder")) + 8 * len(processes("fsbox-zygote"))
    place = f"/proc/{pid}/fd"
    count = 0
    for number in os.listdir(place):
        with contextlib.suppress(FileNotFoundError):
            count += not os.readlink(f"{place}/{number}").startswith("mnt:[")
    return count - held


def settled(value):
    """What VALUE() is when it has not changed for a second: networks are made ahead, one after the other."""
    found, since = value(), time.monotonic()
    while time.monotonic() - since < 1:
        time.sleep(0.05)
        if value() != found:
            found, since = value(), time.monotonic()
    return found


PATIENCE = 3  # not every machine is as fast as ours, or idle


def wait_for(condition, seconds=10, what="condition"):
    """Until CONDITION() is true; its value. SECONDS are more than enough on a usual machine."""
    seconds *= PATIENCE
    end = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"{what}: not within {seconds} s")
        time.sleep(0.02)


def records(path):
    """The events in PATH; without a last line that is being written."""
    with open(path, "rb") as file:
        return [json.loads(line) for line in file if line.endswith(b"\n")]


# ---- assertions that show both sides -------------------------------------------------------


def show(result):
    return (f"status {result.returncode}\n  stdout: {text(result.stdout)!r}\n"
            f"  stderr: {text(result.stderr)!r}")


def equal(found, wanted, what=""):
    if found != wanted:
        raise AssertionError(f"{what}: found {found!r}, wanted {wanted!r}")


def contains(whole, piece, what=""):
    whole = text(whole)
    if piece not in whole:
        raise AssertionError(f"{what}: {piece!r} is not in {whole!r}")


def lacks(whole, piece, what=""):
    whole = text(whole)
    if piece in whole:
        raise AssertionError(f"{what}: {piece!r} is in {whole!r}")


def succeeds(result, stdout=None):
    if result.returncode != 0:
        raise AssertionError(show(result))
    if stdout is not None:
        equal(text(result.stdout), stdout, "stdout")
    return text(result.stdout)


def status_is(result, status, stderr=None):
    if result.returncode != status:
        raise AssertionError(f"wanted status {status}: {show(result)}")
    if stderr is not None:
        contains(result.stderr, stderr, "stderr")
    return result


# ---- cases ---------------------------------------------------------------------------------

CASES = []


def case(*modes, root=False):
    """Register a case. With MODES it is called once for each with a running daemon of that mode."""

    def register(function):
        CASES.append((function, modes, root))
        return function

    return register


class Runner:
    def __init__(self):
        self.number = 0
        self.failed = 0

    def run(self, name, function, *arguments):
        self.number += 1
        start = time.monotonic()
        try:
            function(*arguments)
            outcome, note = "ok", ""
        except Skip as skip:
            outcome, note = "ok", f" # SKIP {skip}"
        except Exception:  # pylint: disable=broad-except
            self.failed += 1
            outcome, note = "not ok", ""
            for line in traceback.format_exc().rstrip().split("\n"):
                print(f"#   {line}")
        if time.monotonic() - start > 5:
            print(f"# {name}: {time.monotonic() - start:.1f} s")
        print(f"{outcome} {self.number} - {name}{note}", flush=True)


def with_daemon(function, mode, daemons):
    """Call FUNCTION with a daemon of MODE, the one from the last case if it still runs."""
    if mode == "user" and no_user_namespaces():
        raise Skip(f"user namespaces are blocked: {no_user_namespaces()}")
    daemon = daemons.get(mode)
    if daemon is None or daemon.process is None or daemon.process.poll() is not None:
        daemon = make_daemon(mode)
        daemon.start(config="root-peers = serve\n" if mode == "root" else None)
        daemons[mode] = daemon
    before = len(daemon.logged())
    try:
        function(daemon)
    except Exception:
        said = daemon.logged()
        for line in said[before if len(said) >= before else 0:].rstrip().split("\n")[-15:]:
            print(f"#   log: {line}")
        raise


def main():
    if not BUILD:
        sys.exit("set FSBOX_BUILD to the build folder")
    # What a caller ignores (nohup) would be ignored by every program started here.
    for number in (signal.SIGHUP, signal.SIGQUIT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    enter_private_machine()
    only = sys.argv[1:]
    runner = Runner()
    daemons = {}
    for function, modes, root in CASES:
        for mode in modes or [None]:
            name = f"{mode}: {function.__name__}" if mode else function.__name__
            if only and not any(word in name for word in only):
                continue
            if (root or mode in ("system", "root")) and not IS_ROOT:
                def skip(*_):
                    raise Skip("needs root")
                runner.run(name, skip)
            elif mode:
                runner.run(name, with_daemon, function, mode, daemons)
            else:  # it starts its own
                for daemon in daemons.values():
                    daemon.stop()
                runner.run(name, function)
    for mode, daemon in daemons.items():
        if daemon.process is not None:
            runner.run(f"{mode}: fsboxd ends on SIGTERM", lambda d=daemon: equal(d.stop(), 0, "status"))
    if ZYGOTES:
        runner.run("the cases ran in zygotes", lambda: equal(zygotelib.report(), True))
    print(f"1..{runner.number}")
    sys.exit(1 if runner.failed else 0)


if ZYGOTES:
    import zygotelib  # pylint: disable=wrong-import-position  # it needs what is above
