# SPDX-License-Identifier: Apache-2.0
"""R28: names that alone give execution are taken away when they appear, others told."""

import os
import time

import lib
from guardlib import MODES, NATIVE, events, inside, own_daemon, repository
from lib import case, contains, equal, project, succeeds, wait_for


# ---- R28: names that alone give execution -------------------------------------------------------


PLANTS = {
    "commondir": "echo ../evil >.git/commondir",
    "config.worktree": "echo x >.git/t; mv .git/t .git/config.worktree",
    "hooks": "mkdir .git/hooks; echo x >.git/hooks/post-checkout",
    "gitdir": "ln -s /etc/passwd .git/gitdir",
}


@case(*MODES)
def r28_what_is_planted_is_taken_away_at_once(daemon):
    place = repository(daemon, "planted")
    with inside(daemon, cwd=place) as job:
        for name, script in PLANTS.items():
            job.run(script)
            wait_for(lambda n=name: not os.path.lexists(f"{place}/.git/{n}"), 5, name)
            equal(os.path.lexists(f"{place}/.git/fsbox-quarantined.{name}"), True, name)
        # Again, and in a directory that stays.
        job.run(PLANTS["commondir"])
        wait_for(lambda: os.path.exists(f"{place}/.git/fsbox-quarantined.commondir.1"), 5, "second")
        job.run("mkdir -p .git/modules/evil/hooks; touch .git/modules/known/index")
        wait_for(lambda: os.listdir(f"{place}/.git/modules") == ["known"], 5, "modules")
        equal(os.path.isdir(f"{place}/.git/fsbox-quarantined.modules.evil"), True)
        ended = job.end()
    planted = "\n".join(ended["planted"])
    for name in (*PLANTS, "modules/evil"):
        contains(planted, f"{place}/.git/{name} (quarantined, now fsbox-quarantined.")
    equal(ended["repaired"], 0)
    found = wait_for(lambda: len(events(daemon, "name.planted", below=place)) >= 6 and
                     events(daemon, "name.planted", below=place), 5, "events")
    equal({event["action"] for event in found}, {"quarantined"})
    equal(all(event["keptAs"].startswith("fsbox-quarantined.") for event in found), True)
    daemon.user.shell("git status", cwd=place)


@case(*MODES)
def r28_nothing_planted_is_there_when_the_status_comes(daemon):
    place = repository(daemon, "last")
    for i in range(10):
        result, ended = lib.spawn_status(daemon, *NATIVE, "--", "/bin/sh", "-c",
                                         "mkdir -p .git/modules/m; echo x >.git/commondir", cwd=place)
        equal(os.path.lexists(f"{place}/.git/commondir"), False, f"round {i}")
        equal(os.listdir(f"{place}/.git/modules"), ["known"], f"round {i}")
        equal(result.returncode, 0)
        equal(len(ended["planted"]), 2, f"round {i}: {ended}")


@case(*MODES)
def r28_other_protected_names_are_reported(daemon):
    place = repository(daemon, "reported")
    result, ended = lib.spawn_status(daemon, *NATIVE, "--", "/bin/sh", "-c",
                                     "echo x >.envrc; mkdir -p .vscode; sleep 0.2", cwd=place)
    equal(result.returncode, 0)
    equal(sorted(ended["planted"]), [f"{place}/.envrc (reported)", f"{place}/.vscode (reported)"])
    equal(os.path.exists(f"{place}/.envrc"), True)


GIT = "git -c user.name=t -c user.email=t@t"


@case(*MODES)
def r28_a_whole_repository_is_told_and_works(daemon):
    place = project(daemon, "whole")
    daemon.user.shell(f"git init -q old; {GIT} -C old commit -q --allow-empty -m x", cwd=place)
    result, ended = lib.spawn_status(
        daemon, *NATIVE, "--", "/bin/sh", "-ec",
        f"git init -q .; echo x >f; git add f; {GIT} commit -q -m x; mkdir -p a/b linked;"
        f"git clone -q . a/b/c; echo gitdir: /elsewhere >linked/.git;"
        f"{GIT} -C old commit -q --allow-empty -m y; sleep 0.1", cwd=place)
    equal(result.returncode, 0, lib.show(result))
    wanted = {f"{place}/{name}.git (reported)" for name in ("", "a/b/c/", "linked/")}
    equal({name for name in ended["planted"] if ".git (" in name}, wanted)
    found = wait_for(lambda: len(events(daemon, "name.planted", below=place)) >= 3 and
                     events(daemon, "name.planted", below=place), 5, "events")
    equal({event["action"] for event in found}, {"reported"})
    result = daemon.ctl("--verbose", "spawn", *NATIVE, "--", "git", "init", "-q", "told", cwd=place)
    contains(lib.text(result.stderr), f"made {place}/told/.git (reported); before you run git there")
    # It is whole, and the user's; the next job may not change what git obeys in it.
    equal(daemon.user.shell("git log --format=%s", cwd=f"{place}/a/b/c"), "x\n")
    result, ended = lib.spawn_status(daemon, *NATIVE, "--", "/bin/sh", "-c",
                                     "echo x >>a/b/c/.git/config", cwd=place)
    equal((result.returncode != 0, ended["planted"]), (True, []))


@case()
def r28_a_whole_repository_is_no_reason_to_kill():
    for mode in MODES:
        with own_daemon(mode, "on-plant = kill\n") as daemon:
            place = project(daemon, "wholekill")
            result, ended = lib.spawn_status(daemon, *NATIVE, "--", "/bin/sh", "-c",
                                             "git init -q .; sleep 0.2; exit 3", cwd=place)
            equal((result.returncode, ended["planted"]), (3, [f"{place}/.git (reported)"]))


@case(*MODES)
def r28_what_the_user_makes_between_jobs_is_his(daemon):
    place = repository(daemon, "between")
    succeeds(daemon.sh("true", *NATIVE, cwd=place))
    daemon.user.shell("mkdir -p .git/modules/mine .git/hooks; echo x >.git/hooks/pre-commit", cwd=place)
    time.sleep(0.1)
    for _ in range(2):
        succeeds(daemon.sh("true", *NATIVE, cwd=place))
        equal(sorted(os.listdir(f"{place}/.git/modules")), ["known", "mine"])
        equal(os.listdir(f"{place}/.git/hooks"), ["pre-commit"])


@case()
def r28_on_plant_kill():
    for mode in MODES:
        with own_daemon(mode, "on-plant = kill\n") as daemon:
            place = repository(daemon, "kill")
            result, ended = lib.spawn_status(daemon, *NATIVE, "--", "/bin/sh", "-c",
                                             "echo x >.git/commondir; sleep 20", cwd=place)
            equal((result.returncode, ended.get("reason"), ended.get("signal")), (137, "signaled", 9),
                  f"{ended}")
            contains(ended["planted"][0], "killed, now fsbox-quarantined.commondir")
            equal(os.path.lexists(f"{place}/.git/commondir"), False)


lib.main()
