# SPDX-License-Identifier: Apache-2.0
"""What goes wrong in other sandboxes; the numbers are those of the list of cases the project keeps."""

import os
import time

import lib
from lib import case, contains, equal, project, spawn_status, status_is, succeeds, wait_for

MODES = ("system", "user", "root")
GIT = "git -c user.name=t -c user.email=t@t -c init.defaultBranch=main"


@case(*MODES)
def b1_protecting_a_missing_name_leaves_no_trace(daemon):
    place = project(daemon, "b1")
    succeeds(daemon.sh("true", "--deny", f"{place}/.bashrc", "--deny", f"{place}/.gitconfig",
                       "--deny", f"{place}/a/b/c", cwd=place))
    equal(os.listdir(place), [])
    # Nor can the command make it meanwhile.
    status = daemon.sh("echo x >.bashrc", "--deny", f"{place}/.bashrc", cwd=place).returncode
    if status == 0:
        raise AssertionError("the denied name could be written")
    equal(os.listdir(place), [])


@case(*MODES)
def b2_placeholders_go_when_the_client_or_pid_1_is_killed(daemon):
    place = project(daemon, "b2")
    for victim in ("client", "pid 1"):
        process = daemon.user.popen(
            daemon.command("spawn", "--deny", f"{place}/.agents", "--", "/bin/sh", "-c",
                           "echo up; exec sleep 600"), cwd=place, stdout=-1)
        equal(process.stdout.readline(), b"up\n")
        equal(os.listdir(place), [".agents"], "while it runs")
        if victim == "client":
            process.kill()
        else:
            os.kill(daemon.jobs()[0]["pid"], 9)
        process.wait()
        process.stdout.close()
        wait_for(lambda: not os.listdir(place), 10, f"removal after {victim} was killed")


@case(*MODES)
def b2_a_placeholder_stays_while_another_job_stands_on_it(daemon):
    place = project(daemon, "b2shared")
    deny = ["--deny", f"{place}/.agents"]
    first = daemon.user.popen(daemon.command("spawn", *deny, "--", "/bin/sh", "-c",
                                             "echo up; read x; echo evil >.agents/x; echo $?"),
                              cwd=place, stdout=-1, stdin=-1)
    equal(first.stdout.readline(), b"up\n")
    succeeds(daemon.sh("true", *deny, cwd=place))
    equal(os.listdir(place), [".agents"], "the first still runs")
    out, _ = first.communicate(b"\n", 15)
    if out.strip() == b"0":
        raise AssertionError("the write was accepted")
    wait_for(lambda: not os.listdir(place), 10, "removal after the last")


@case(*MODES)
def b2_what_a_user_puts_into_a_placeholder_is_kept(daemon):
    place = project(daemon, "b2kept")
    process = daemon.user.popen(daemon.command("spawn", "--deny", f"{place}/.agents", "--",
                                               "/bin/sh", "-c", "echo up; read x"),
                                cwd=place, stdout=-1, stdin=-1)
    equal(process.stdout.readline(), b"up\n")
    daemon.user.write(f"{place}/.agents/notes", "mine\n")
    process.communicate(b"\n", 15)
    time.sleep(0.5)
    with open(f"{place}/.agents/notes", encoding="utf-8") as file:
        equal(file.read(), "mine\n")


@case(*MODES)
def b5_a_linked_worktree_works(daemon):
    place = project(daemon, "b5")
    daemon.user.shell(f"{GIT} init -q r; {GIT} -C r commit -q --allow-empty -m x; "
                      f"{GIT} -C r worktree add -q ../wt", cwd=place)
    succeeds(daemon.sh("true", "--deny", f"{place}/wt/.git/hooks", "--rw", f"{place}/wt",
                       cwd=f"{place}/wt"))


@case(*MODES)
def b9_a_rule_through_a_link_into_a_read_only_tree(daemon):
    place = project(daemon, "b9")
    daemon.user.shell("ln -s /usr/share store", cwd=place)
    succeeds(daemon.sh("true", "--deny", f"{place}/store/.env.sample", cwd=place))
    if os.path.lexists("/usr/share/.env.sample"):
        raise AssertionError("a placeholder was made in a read-only tree")


@case(*MODES)
def b19_a_denied_directory_takes_no_writes(daemon):
    place = project(daemon, "b19")
    daemon.user.write(f"{place}/p/id", "k\n")
    for script in ("echo W >p/x", "ls p", "cat p/id", "mkdir p/y", "rmdir p"):
        result = daemon.sh(f"LC_ALL=C {script}", "--deny", f"{place}/p", cwd=place)
        if result.returncode == 0:
            raise AssertionError(f"{script}: accepted: {lib.show(result)}")
    contains(daemon.sh("LC_ALL=C ls p", "--deny", f"{place}/p", cwd=place).stderr,
             "Permission denied")
    contains(daemon.sh("LC_ALL=C; echo W >p/x", "--deny", f"{place}/p", cwd=place).stderr,
             "ermission denied")
    equal(os.listdir(f"{place}/p"), ["id"])


@case(*MODES)
def b23_a_denied_file_stays_a_file(daemon):
    place = project(daemon, "b23")
    daemon.user.write(f"{place}/f", "s\n")
    result = daemon.sh("test -f f && ! cat f && ! echo x >f", "--deny", f"{place}/f", cwd=place)
    succeeds(result)
    with open(f"{place}/f", encoding="utf-8") as file:
        equal(file.read(), "s\n")


@case(*MODES)
def b24_thousands_of_rules(daemon):
    place = project(daemon, "b24")
    daemon.user.shell("mkdir d; seq -f d/f%.0f 3100 | xargs touch", cwd=place)
    count = 3100
    rules = [word for n in range(1, count + 1) for word in ("--ro", f"{place}/d/f{n}")]
    if lib.ENGINE == "bwrap":  # takes 9,000 arguments, and says so
        status_is(daemon.sh("true", *rules, cwd=place, timeout=60), 125, "engine-unavailable")
        count = 1000
        rules = rules[:2 * count]
    succeeds(daemon.sh(f"echo x >ok; ! echo x >d/f77 && ! echo x >d/f{count}", *rules, cwd=place,
                       timeout=60))


@case(*MODES)
def b21_an_allow_below_a_deny(daemon):
    place = project(daemon, "b21")
    daemon.user.write(f"{place}/d/ok/f", "open\n")
    daemon.user.write(f"{place}/d/no", "closed\n")
    result = daemon.sh("cat d/ok/f; echo w >d/ok/g; cat d/no; ls d; echo x >d/x; true", "--deny",
                       f"{place}/d", "--rw", f"{place}/d/ok", cwd=place)
    equal(lib.text(result.stdout), "open\n")
    equal(sorted(os.listdir(f"{place}/d")), ["no", "ok"])
    equal(sorted(os.listdir(f"{place}/d/ok")), ["f", "g"])


@case(*MODES)
def names_with_any_bytes(daemon):
    place = project(daemon, "bytes")
    names = [b"new\nline", b"caf\xe9", b" blank ", b"-dash", b"quo\"te", b"back\\slash", b"*"]
    for name in names:
        with open(os.path.join(place.encode(), name), "wb") as file:
            file.write(b"SECRET")
        os.chmod(os.path.join(place.encode(), name), 0o644)
    rules = [word for name in names for word in (b"--deny", place.encode() + b"/" + name)]
    result = daemon.spawn(*rules, "--", "/bin/sh", "-c", "cat ./*; true", cwd=place)
    lib.lacks(result.stdout, "SECRET")
    succeeds(daemon.spawn("--", "/bin/sh", "-c", 'printf %s "$1"', "sh", b"a\xff\n", cwd=place))
    result, said = spawn_status(daemon, "--rw", place + "/" + "x" * 5000, "--", "true", cwd=place)
    status_is(result, 125)
    if "error" not in said:
        raise AssertionError(said)


lib.main()
