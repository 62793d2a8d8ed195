# SPDX-License-Identifier: Apache-2.0
"""What a developer does all day, inside, in all three modes; and what must not happen meanwhile."""

import os
import pty
import select
import shutil
import signal
import time

import lib
from lib import case, contains, equal, lacks, project, spawn_status, status_is, succeeds, wait_for

MODES = ("system", "user", "root")
GIT = "git -c user.name=T -c user.email=t@example.org -c init.defaultBranch=main"

# Where people's secrets are. All must be unreadable and unwritable inside.
SECRETS = [
    ".ssh/id_ed25519", ".ssh/config", ".aws/credentials", ".azure/accessTokens.json",
    ".config/gcloud/credentials.db", ".kube/config", ".docker/config.json", ".netrc",
    ".git-credentials", ".config/git/credentials", ".npmrc", ".pypirc", ".config/gh/hosts.yml",
    ".config/glab-cli/config.yml", ".gnupg/private-keys-v1.d/key", ".password-store/mail.gpg",
    ".local/share/keyrings/login.keyring", ".mozilla/firefox/x.default/logins.json",
    ".config/google-chrome/Default/Login Data", ".config/chromium/Default/Cookies",
    ".claude/.credentials.json", ".codex/auth.json", ".gemini/oauth_creds.json", ".vault-token",
    ".cargo/credentials.toml", ".terraform.d/credentials.tfrc.json", ".bash_history",
]


@case(*MODES)
def git_clone_commit_branch_worktree(daemon):
    place = project(daemon, "git")
    origin = project(daemon, "origin.git")
    daemon.user.shell(f"""
        {GIT} init -q --bare .
        {GIT} clone -q . '{place}/seed' 2>/dev/null; cd '{place}/seed'
        echo one >file; {GIT} add .; {GIT} commit -qm first; {GIT} push -q origin HEAD:main
        rm -rf '{place}/seed'""", cwd=origin)
    result = daemon.sh(f"""
        set -e
        {GIT} clone -q -b main {origin} work; cd work
        {GIT} checkout -q -b topic; echo two >>file; {GIT} commit -qam second
        {GIT} worktree add -q ../tree main; {GIT} stash list; {GIT} status --short
        {GIT} -C ../tree log --format=%s; {GIT} log --format=%s topic
        {GIT} diff --stat main topic""", "--ro", origin, cwd=place)
    out = succeeds(result)
    equal(out.split("\n")[:3], ["first", "second", "first"])
    contains(out, "1 file changed")
    equal(daemon.user.shell("git log --format=%s topic", cwd=f"{place}/work"), "second\nfirst\n")
    # The origin was shown for reading only.
    status_is(daemon.sh(f"{GIT} -C work push -q origin topic", "--ro", origin, cwd=place), 1)


@case(*MODES)
def work_goes_on_in_an_existing_repository(daemon):
    place = project(daemon, "repository")
    daemon.user.shell(f"{GIT} init -q; echo a >f; {GIT} add f; {GIT} commit -qm a", cwd=place)
    succeeds(daemon.sh(f"{GIT} checkout -q -b b && echo b >f && {GIT} commit -qam b && "
                       f"{GIT} tag v1 && {GIT} gc -q && {GIT} status --short", cwd=place), "")
    hook = f"{place}/.git/hooks/pre-commit"
    for script in (f"echo evil >{hook}", f"git config core.fsmonitor evil",
                   f"mv .git/hooks .git/h", f"rm -r .git/hooks"):
        if daemon.sh(script, cwd=place).returncode == 0:
            raise AssertionError(f"{script}: was accepted")
    equal(daemon.user.shell("git config core.fsmonitor || true; ls .git/hooks | grep -c evil || true",
                            cwd=place), "0\n")


CONFIGURE = r"""#!/bin/sh
# A configure of a few lines that does what the long ones do.
set -e
echo "checking for a C compiler..."
echo 'int main(void) { return 0; }' >conftest.c
${CC:-cc} -o conftest conftest.c && ./conftest
rm -f conftest conftest.c
sed "s|@CC@|${CC:-cc}|" Makefile.in >Makefile
echo "configure: creating Makefile"
"""
MAKEFILE = """CC = @CC@
OBJECTS = main.o sum.o
all: program
program: $(OBJECTS)
\t$(CC) -o $@ $(OBJECTS)
check: program
\ttest "$$(./program 40 2)" = 42
clean:
\trm -f program $(OBJECTS)
"""


@case(*MODES)
def configure_make_and_check_a_c_project(daemon):
    place = project(daemon, "c")
    write = daemon.user.write
    write(f"{place}/configure", CONFIGURE)
    write(f"{place}/Makefile.in", MAKEFILE)
    write(f"{place}/sum.c", "int sum(int a, int b) { return a + b; }\n")
    write(f"{place}/main.c", '#include <stdio.h>\n#include <stdlib.h>\nint sum(int a, int b);\n'
          'int main(int c, char **v) { (void)c; printf("%d\\n", '
          'sum((int)strtol(v[1], NULL, 10), (int)strtol(v[2], NULL, 10))); return 0; }\n')
    succeeds(daemon.sh("chmod +x configure && ./configure && make -j2 && make check && make clean "
                       "&& make && rm Makefile", cwd=place, timeout=120))
    equal(daemon.user.shell("./program 1 2", cwd=place), "3\n")


@case(*MODES)
def meson_sets_up_builds_and_tests(daemon):
    if not shutil.which("meson", path=lib.PATH):
        raise lib.Skip("meson is not here")
    place = project(daemon, "meson")
    daemon.user.write(f"{place}/meson.build", "project('p', 'c')\n"
                      "test('t', executable('t', 't.c'))\n")
    daemon.user.write(f"{place}/t.c", "int main(void) { return 0; }\n")
    succeeds(daemon.sh("meson setup build && ninja -C build && meson test -C build", cwd=place,
                       timeout=120))


@case(*MODES)
def node_runs_its_tests(daemon):
    node = shutil.which("node", path=lib.PATH)
    if not node:
        raise lib.Skip("node is not on PATH")
    place = project(daemon, "node")
    daemon.user.write(f"{place}/package.json", '{"name":"p","version":"1.0.0","type":"module"}\n')
    daemon.user.write(f"{place}/sum.test.js", """
        import test from 'node:test'; import assert from 'node:assert';
        import http from 'node:http';
        test('sum', () => assert.equal(40 + 2, 42));
        test('own loopback works', async () => {
            const server = http.createServer((q, a) => a.end('hi')).listen(0, '127.0.0.1');
            await new Promise(done => server.once('listening', done));
            const answer = await fetch(`http://127.0.0.1:${server.address().port}/`);
            assert.equal(await answer.text(), 'hi');
            server.close(); server.closeAllConnections?.();
        });""")
    out = succeeds(daemon.spawn("--", "node", "--test", cwd=place, timeout=120))
    contains(out, "pass 2")
    contains(out, "fail 0")
    if shutil.which("npm", path=lib.PATH):
        daemon.user.write(f"{place}/package.json",
                          '{"name":"p","version":"1.0.0","scripts":{"test":"node -e 0"}}\n')
        succeeds(daemon.spawn("--", "npm", "test", "--silent", cwd=place, timeout=120))


PYTHON = """
import multiprocessing, sqlite3, sys
def square(n):
    return n * n
if __name__ == "__main__":
    with sqlite3.connect("numbers.db") as base:
        base.execute("pragma journal_mode=wal")
        base.execute("create table t (n integer)")
        base.executemany("insert into t values (?)", [(n,) for n in range(1000)])
    print(base.execute("select sum(n) from t").fetchone()[0])
    with multiprocessing.Pool(4) as pool:
        print(sum(pool.map(square, range(100))))
    multiprocessing.Semaphore()
"""


@case(*MODES)
def python_with_sqlite_multiprocessing_and_a_virtual_environment(daemon):
    place = project(daemon, "python")
    daemon.user.write(f"{place}/work.py", PYTHON)
    succeeds(daemon.spawn("--", "/usr/bin/python3", "work.py", cwd=place), "499500\n328350\n")
    result = daemon.sh("/usr/bin/python3 -m venv env && . env/bin/activate && "
                       "python -c 'import sys; print(sys.prefix != sys.base_prefix)' && "
                       "pip --version >/dev/null", cwd=place, timeout=180)
    equal(succeeds(result).split("\n")[0], "True")


@case(*MODES)
def b41_semaphores_have_their_shared_memory(daemon):
    place = project(daemon, "shm")
    succeeds(daemon.spawn("--", "/usr/bin/python3", "-c",
                          "import multiprocessing as m; m.Semaphore(); print('ok')", cwd=place),
             "ok\n")


@case(*MODES)
def a_hundred_megabytes_through_ten_processes(daemon):
    place = project(daemon, "pipe")
    size = 100 << 20
    pipeline = f"head -c {size} /dev/zero" + " | cat" * 8 + " | wc -c"
    succeeds(daemon.sh(pipeline, cwd=place, timeout=120), f"{size}\n")
    # And through fsboxctl's own standard streams, which are the caller's.
    result = daemon.user.run(["/bin/sh", "-c", f'head -c {size} /dev/zero | "$@" | wc -c', "sh",
                              *daemon.command("spawn", "--", "cat")], cwd=place, timeout=120)
    succeeds(result, f"{size}\n")


@case(*MODES)
def secrets_of_the_home_can_be_neither_read_nor_written(daemon):
    lib.needs_throwaway_home()
    home = daemon.user.home
    place = project(daemon, "secrets")
    for name in SECRETS:
        daemon.user.write(f"{home}/{name}", f"SECRET of {name}\n")
    script = "\n".join(f'cat "{home}/{name}"; (echo planted >>"{home}/{name}"); '
                       f'rm -f "{home}/{name}"; ln -s /etc/passwd "{home}/{name}.new"'
                       for name in SECRETS)
    result = daemon.sh(script + "; true", cwd=place)
    lacks(result.stdout + result.stderr, "SECRET of", "what came out")
    for name in SECRETS:
        with open(f"{home}/{name}", encoding="utf-8") as file:
            equal(file.read(), f"SECRET of {name}\n", name)
        if os.path.lexists(f"{home}/{name}.new"):
            raise AssertionError(f"{name}.new was created beside the secret")
    # The caller cannot grant them by accident either: a link in the project leads nowhere.
    daemon.user.shell(f"ln -s {home}/.ssh key", cwd=place)
    status_is(daemon.sh("cat key/id_ed25519", cwd=place), 1)
    # By a command of a script that the project itself brought.
    lacks(daemon.sh(f"cp -r {home}/. copy 2>/dev/null; cat copy/.ssh/* copy/.netrc copy/.npmrc",
                    cwd=place).stdout, "SECRET")


@case(*MODES)
def other_projects_are_out_of_reach(daemon):
    lib.needs_throwaway_home()
    place = project(daemon, "mine")
    other = project(daemon, "theirs")
    daemon.user.write(f"{other}/plan.txt", "SECRET\n")
    lacks(daemon.sh(f"cat {other}/plan.txt; ls {other}; ls {daemon.user.home}/src", cwd=place).stdout,
          "SECRET")
    if daemon.sh(f"echo x >{other}/new", cwd=place).returncode == 0:
        raise AssertionError("a write into another project was accepted")
    equal(os.listdir(other), ["plan.txt"])


@case(*MODES)
def writes_outside_the_grants_are_refused(daemon):
    place = project(daemon, "outside")
    for path in ("/etc/fsbox-it", "/usr/fsbox-it", "/fsbox-it", "/opt/fsbox-it",
                 f"{os.path.dirname(place)}/fsbox-it", f"{daemon.user.home}/fsbox-it",
                 "/proc/sys/kernel/hostname", "/sys/fsbox-it", "/boot/fsbox-it"):
        if daemon.sh(f"echo x >{path}", cwd=place).returncode == 0:
            raise AssertionError(f"{path}: a write was accepted")
        if not path.startswith("/proc") and os.path.lexists(path):
            raise AssertionError(f"{path} is on the host")
    # What is granted works, at its place on the host.
    more = project(daemon, "more")
    succeeds(daemon.sh(f"echo x >{more}/new", "--rw", more, cwd=place))
    with open(f"{more}/new", encoding="utf-8") as file:
        equal(file.read(), "x\n")
    if daemon.sh(f"echo y >{more}/new", "--ro", more, cwd=place).returncode == 0:
        raise AssertionError("a write into a --ro tree was accepted")
    status_is(daemon.sh(f"cat {more}/new", "--rw", more, "--deny", f"{more}/new", cwd=place), 1)


@case(*MODES)
def the_fresh_tmp_is_private(daemon):
    place = project(daemon, "tmp")
    for folder in ("/tmp", "/var/tmp", "/dev/shm", "/run"):
        succeeds(daemon.sh(f"echo x >{folder}/fsbox-it && cat {folder}/fsbox-it", cwd=place), "x\n")
        if os.path.lexists(f"{folder}/fsbox-it"):
            raise AssertionError(f"{folder}/fsbox-it is on the host")


@case(*MODES)
def statuses_and_streams_are_exact(daemon):
    place = project(daemon, "status")
    for code in (0, 1, 2, 42, 125, 126, 127, 128, 137, 255):
        result, said = spawn_status(daemon, "--", "/bin/sh", "-c", f"exit {code}", cwd=place)
        status_is(result, code)
        equal((said["reason"], said["code"]), ("exited", code))
        equal(result.stderr, b"", "stderr of a command that said nothing")
    result = daemon.sh("printf 'out\\000\\377'; printf 'err\\n\\001' >&2; exit 3", cwd=place)
    equal((result.returncode, result.stdout, result.stderr), (3, b"out\0\xff", b"err\n\x01"))
    result = daemon.spawn("--", "cat", cwd=place, input=b"through\0\n")
    equal((result.returncode, result.stdout), (0, b"through\0\n"))


@case(*MODES)
def b31_signals_codes_and_failures_are_told_apart(daemon):
    place = project(daemon, "b31")
    result, said = spawn_status(daemon, "--", "/bin/sh", "-c", "kill -9 $$", cwd=place)
    status_is(result, 137)
    equal((said["reason"], said["signal"]), ("signaled", 9))
    result, said = spawn_status(daemon, "--", "/bin/sh", "-c", "exit 137", cwd=place)
    status_is(result, 137)
    equal((said["reason"], said["code"]), ("exited", 137))
    result, said = spawn_status(daemon, "--", "/nonexistent", cwd=place)
    status_is(result, 127, "command-not-found")
    equal(said["error"]["kind"], "command-not-found")
    status_is(daemon.spawn("--", "no-such-command-anywhere", cwd=place), 127, "command-not-found")
    daemon.user.write(f"{place}/plain", "text\n")
    result, said = spawn_status(daemon, "--", f"{place}/plain", cwd=place)
    status_is(result, 126, "command-not-executable")
    equal(said["error"]["kind"], "command-not-executable")
    status_is(daemon.spawn("--", place, cwd=place), 126)
    result, said = spawn_status(daemon, "--rw", "/nonexistent-fsbox", "--", "true", cwd=place)
    status_is(result, 125)
    if "error" not in said:
        raise AssertionError(said)
    for number in (signal.SIGSEGV, signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        result, said = spawn_status(daemon, "--", "/bin/sh", "-c", f"kill -{int(number)} $$",
                                    cwd=place)
        status_is(result, 128 + number)
        equal((said["reason"], said["signal"]), ("signaled", number))


@case(*MODES)
def timeouts_are_their_own_reason(daemon):
    place = project(daemon, "timeout")
    start = time.monotonic()
    result, said = spawn_status(daemon, "--timeout", "700ms", "--", "sleep", "30", cwd=place)
    status_is(result, 124)
    equal(said["reason"], "timeout")
    if not 0.6 < time.monotonic() - start < 8:
        raise AssertionError(f"took {time.monotonic() - start:.1f} s")


def popen_spawn(daemon, script, place, **options):
    return daemon.user.popen(daemon.command("spawn", "--", "/bin/sh", "-c", script), cwd=place,
                             stdout=-1, stderr=-1, **options)


@case(*MODES)
def b29_term_reaches_the_command(daemon):
    place = project(daemon, "term")
    process = popen_spawn(daemon, 'trap "echo cleaned; exit 5" TERM; echo up; '
                          'while :; do sleep .1; done', place)
    equal(process.stdout.readline(), b"up\n")
    process.send_signal(signal.SIGTERM)
    out, errors = process.communicate(timeout=15)
    # The whole group hears it: the shell may tell how its sleep ended.
    equal((process.returncode, out, errors.replace(b"Terminated\n", b"")), (5, b"cleaned\n", b""))


@case(*MODES)
def the_command_ends_with_its_client(daemon):
    place = project(daemon, "lifeline")
    process = popen_spawn(daemon, "echo up; while :; do date +%N >beat; sleep .1; done", place)
    equal(process.stdout.readline(), b"up\n")
    process.kill()
    process.wait()

    def beat():
        try:
            return os.stat(f"{place}/beat").st_mtime_ns
        except FileNotFoundError:
            return 0

    def still():
        before = beat()
        time.sleep(0.5)
        return beat() == before
    wait_for(still, 10, "the job's end")
    wait_for(lambda: not daemon.jobs(), 10, "an empty list of jobs")


@case(*MODES)
def b28_nothing_of_a_command_survives_it(daemon):
    place = project(daemon, "b28")
    before = set(lib.processes())
    succeeds(daemon.sh("setsid sleep 600 & (setsid sh -c 'trap \"\" TERM HUP; sleep 601' &) ; exit 0",
                       cwd=place))
    left = {pid: name for pid, name in lib.processes().items()
            if pid not in before and name in ("sleep", "sh", "setsid")}
    equal(left, {}, "right after the report")


@case(*MODES)
def ctrl_c_reaches_the_command(daemon):
    place = project(daemon, "tty")
    pid, master = pty.fork()
    if pid == 0:
        try:
            user = daemon.user
            if lib.IS_ROOT:
                os.setgroups(user.groups)
                os.setresgid(user.gid, user.gid, user.gid)
                os.setresuid(user.uid, user.uid, user.uid)
            os.chdir(place)
            command = daemon.command("spawn", "--", "/bin/sh", "-c",
                                     'trap "echo interrupted; exit 7" INT; echo up; '
                                     'while :; do sleep .1; done')
            os.execve(command[0], command, user.environment())
        finally:
            os._exit(99)
    said = b""

    def read_until(word, seconds):
        nonlocal said
        end = time.monotonic() + seconds
        while word not in said:
            if not select.select([master], [], [], max(0, end - time.monotonic()))[0]:
                raise AssertionError(f"{word!r} not within {seconds} s, only {said!r}")
            try:
                data = os.read(master, 4096)
            except OSError:
                data = b""
            if not data:
                raise AssertionError(f"the terminal ended before {word!r}: {said!r}")
            said += data
    try:
        read_until(b"up", 15)
        os.write(master, b"\x03")
        read_until(b"interrupted", 10)
        equal(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 7)
    finally:
        os.close(master)


lib.main()
