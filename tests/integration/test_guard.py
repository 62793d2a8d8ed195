# SPDX-License-Identifier: Apache-2.0
"""Masks that hold while jobs run and somebody outside changes what they stand on."""

import os
import subprocess
import time

import lib
from guardlib import MODES, NATIVE, events, inside, hidden
from lib import case, contains, equal, project, succeeds, wait_for


# ---- R27: what somebody outside does ------------------------------------------------------------


@case(*MODES)
def r27_an_atomic_save_over_a_masked_file(daemon):
    place = project(daemon, "save")
    secret = daemon.user.write(f"{place}/.env", "LEAK\n")
    with inside(daemon, "--deny", secret, cwd=place) as job:
        hidden(job, ".env")
        for i in range(3):
            daemon.user.shell(f"echo LEAK {i} >new; mv new .env", cwd=place)
            hidden(job, ".env")
        equal(job.run("echo x >.env")[1] != 0, True, "writing fails")
        ended = job.end()
    equal(ended["repaired"], 3)
    found = wait_for(lambda: events(daemon, "mask.repaired", below=place)[2:] and
                     events(daemon, "mask.repaired", below=place), 5, "events")
    equal([event["detail"] for event in found], [secret] * 3)
    equal(all(event["exposureUs"] < 2_000_000 for event in found), True, found)
    equal(daemon.user.shell("cat .env", cwd=place), "LEAK 2\n")


@case(*MODES)
def r27_a_masked_file_that_is_removed_and_comes_again(daemon):
    place = project(daemon, "checkout")
    secret = daemon.user.write(f"{place}/d/key", "LEAK\n")
    with inside(daemon, "--deny", secret, cwd=place) as job:
        for _ in range(3):
            daemon.user.shell("rm d/key", cwd=place)
            time.sleep(0.1)
            daemon.user.shell("echo LEAK >d/key", cwd=place)
            hidden(job, "d/key")
        # Another kind of thing takes its place.
        daemon.user.shell("rm d/key; mkdir d/key; echo LEAK >d/key/x", cwd=place)
        hidden(job, "d/key/x")
        daemon.user.shell("rm -r d/key; ln -s ../other d/key; echo LEAK >other", cwd=place)
        hidden(job, "d/key")
        job.end()


@case(*MODES)
def r27_git_checkout_over_masked_files(daemon):
    place = project(daemon, "git")
    git = "git -c user.name=t -c user.email=t@t"
    daemon.user.shell(f"git init -q .; mkdir d; echo LEAK a >d/key; {git} add .; "
                      f"{git} commit -qm a; git branch other; echo LEAK b >d/key; "
                      f"{git} commit -qam b", cwd=place)
    with inside(daemon, "--deny", f"{place}/d/key", cwd=place) as job:
        for branch in ("other", "master", "other"):
            daemon.user.shell(f"git checkout -q {branch} 2>/dev/null || git checkout -q -", cwd=place)
            hidden(job, "d/key")
        equal(job.end()["repaired"] > 0, True, "repairs")


@case(*MODES)
def r27_git_config_leaves_the_file_read_only(daemon):
    place = project(daemon, "gitconfig")
    config = daemon.user.write(f"{place}/.gitconfig", "[a]\n\tb = 1\n")
    with inside(daemon, "--ro", config, cwd=place) as job:
        for i in range(3):
            daemon.user.shell(f"GIT_CONFIG_GLOBAL={config} git config --global a.b {i}", cwd=place)
            wait_for(lambda: job.run("echo '[evil]' >>.gitconfig")[1] != 0, 5, "read-only")
            contains(job.run("cat .gitconfig")[0], f"b = {i}")
            equal(job.run("rm -f .gitconfig")[1] != 0, True, "removing fails")
        equal(job.end()["repaired"], 3)
    daemon.user.shell("sed -i /evil/d .gitconfig", cwd=place)


@case(*MODES)
def r27_a_directory_above_is_moved_and_made_again(daemon):
    place = project(daemon, "moved")
    daemon.user.write(f"{place}/a/b/secret", "LEAK\n")
    with inside(daemon, "--deny", f"{place}/a/b/secret", cwd=place) as job:
        daemon.user.shell("mv a z; mkdir -p a/b; echo LEAK >a/b/secret", cwd=place)
        hidden(job, "a/b/secret")
        hidden(job, "z/b/secret")
        daemon.user.shell("mv a y; mkdir a", cwd=place)
        time.sleep(0.1)
        daemon.user.shell("mkdir a/b", cwd=place)
        time.sleep(0.1)
        daemon.user.shell("echo LEAK >a/b/n; mv a/b/n a/b/secret", cwd=place)
        hidden(job, "a/b/secret")
        job.end()


@case(*MODES)
def r27_the_denied_object_is_moved_elsewhere(daemon):
    place = project(daemon, "elsewhere")
    daemon.user.write(f"{place}/secret", "LEAK old\n")
    daemon.user.write(f"{place}/d/x", "")
    with inside(daemon, "--deny", f"{place}/secret", cwd=place) as job:
        daemon.user.shell("mv secret d/shown", cwd=place)
        hidden(job, "d/shown")
        daemon.user.shell("echo LEAK new >secret", cwd=place)
        hidden(job, "secret")
        hidden(job, "d/shown")
        # Exchanged with something else: both stay hidden.
        daemon.user.shell("echo LEAK third >third; mv --exchange third secret 2>/dev/null || "
                          "mv third secret", cwd=place)
        hidden(job, "secret")
        job.end()


@case(*MODES)
def r27_a_second_job_without_the_rule_moves_things(daemon):
    place = project(daemon, "second")
    daemon.user.write(f"{place}/a/secret", "LEAK\n")
    with inside(daemon, "--deny", f"{place}/a/secret", cwd=place) as job:
        script = ("echo LEAK 2 >n; mv n a/secret; mv a z; mkdir a; echo LEAK 3 >a/secret; "
                  "rm a/secret; cp z/secret a/secret; rm -r a; mv z a")
        succeeds(daemon.sh(script, *NATIVE, cwd=place))
        hidden(job, "a/secret")
        hidden(job, "z/secret")
        job.end()


@case(*MODES)
def r27_a_masked_directory_is_replaced(daemon):
    place = project(daemon, "directory")
    daemon.user.write(f"{place}/keys/a", "LEAK\n")
    with inside(daemon, "--deny", f"{place}/keys", cwd=place) as job:
        daemon.user.shell("rm -r keys; mkdir keys; echo LEAK >keys/a", cwd=place)
        hidden(job, "keys/a")
        equal(job.run("ls keys")[1] != 0, True, "listing fails")
        daemon.user.shell("mkdir new; echo LEAK >new/a; rm -r keys; mv -T new keys", cwd=place)
        hidden(job, "keys/a")
        job.end()


@case(*MODES)
def r27_masks_below_what_is_replaced(daemon):
    """What is read-only with masks in it comes back with them."""
    place = project(daemon, "below")
    daemon.user.write(f"{place}/ro/f", "one\n")
    daemon.user.write(f"{place}/ro/secret", "LEAK\n")
    options = ("--ro", f"{place}/ro", "--deny", f"{place}/ro/secret")
    with inside(daemon, *options, cwd=place) as job:
        daemon.user.shell("rm -r ro; mkdir ro; echo LEAK >ro/secret; echo two >ro/f", cwd=place)
        hidden(job, "ro/secret")
        wait_for(lambda: job.run("echo x >ro/f")[1] != 0, 5, "read-only")
        equal(job.run("cat ro/f")[0].strip()[:3] in ("two", "x"), True)
        job.end()


# ---- names that are not there yet ----------------------------------------------------------------


@case(*MODES)
def r27_a_watched_path_is_masked_when_it_appears(daemon):
    place = project(daemon, "watched")
    daemon.user.shell("mkdir ro", cwd=place)
    options = ("--ro", f"{place}/ro", "--deny", f"{place}/ro/a/b/late")
    with inside(daemon, *options, cwd=place) as job:
        equal(os.listdir(f"{place}/ro"), [], "no placeholder")
        daemon.user.shell("mkdir -p ro/a/b; echo LEAK >ro/a/b/late", cwd=place)
        hidden(job, "ro/a/b/late")
        daemon.user.shell("rm -r ro/a; mkdir ro/a", cwd=place)
        time.sleep(0.1)
        daemon.user.shell("mkdir -p ro/a/b/late; echo LEAK >ro/a/b/late/x", cwd=place)
        hidden(job, "ro/a/b/late/x")
        equal(job.end()["repaired"] >= 2, True, "repairs")


@case("system")
def r12_jobs_that_have_what_the_host_unmounted(daemon):
    place = project(daemon, "held")
    daemon.user.shell("mkdir m", cwd=place)
    with inside(daemon, cwd=place) as earlier:
        lib.mount("-t", "tmpfs", "-o", "mode=0777", "tmpfs", f"{place}/m")
        try:
            time.sleep(0.1)
            with inside(daemon, cwd=place) as job:
                equal(job.run("echo x >m/f; cat m/f")[0].strip(), "x")
                lib.sh("umount", f"{place}/m")
                found = wait_for(lambda: events(daemon, "mount.held", below=place), 5, "the event")
                numbers = [entry["job"] for entry in daemon.jobs()]
                equal([(event["job"], event["detail"]) for event in found],
                      [(max(numbers), f"{place}/m")])
                equal(job.run("cat m/f")[0].strip(), "x")
                job.end()
            earlier.end()
        finally:
            subprocess.run(["umount", "-q", f"{place}/m"], check=False)


# ---- what one is told -----------------------------------------------------------------------------


@case(*MODES)
def inspect_shows_what_holds_a_job(daemon):
    place = project(daemon, "inspect")
    secret = daemon.user.write(f"{place}/d/.env", "LEAK\n")
    with inside(daemon, "--deny", secret, "--deny", f"{place}/none", cwd=place) as job:
        daemon.user.shell("echo LEAK >n; mv n d/.env; echo x >.envrc", cwd=place)
        hidden(job, "d/.env")
        number = str(daemon.jobs()[0]["job"])

        def both():
            found = daemon.json("inspect", number)
            return found if found.get("repaired") and found.get("planted") else None
        shown = wait_for(both, 5, "the repair and what was planted")
        equal({p for p in shown["masks"] if p.startswith(place)}, {secret, f"{place}/none"})
        equal(shown["placeholders"], [f"{place}/none"])
        equal([p for p in shown["pins"] if p.startswith(place)], [f"{place}/d"])
        contains(str(shown["watched"]), f"{place}/.gitmodules")
        equal(shown["repaired"], 1)
        equal(shown["planted"], [f"{place}/.envrc (reported)"])
        text = succeeds(daemon.ctl("inspect", number))
        for row in (f"masked         {secret}", f"placeholder    {place}/none", "repaired       1 times",
                    f"pinned         {place}/d", "watched ", f"planted        {place}/.envrc (reported)"):
            contains(text, row)
        job.end()


@case(*MODES)
def r27_many_short_jobs_at_once(daemon):
    """What a guard says of a job counts, also when it is heard before pid 1's own words."""
    place = project(daemon, "short")
    secret = daemon.user.write(f"{place}/.env", "LEAK\n")
    down = len(events(daemon, "guard.down"))
    command = daemon.command("spawn", "--deny", secret, *NATIVE, "--", "/bin/true")
    for _ in range(3):
        jobs = [daemon.user.popen(command, cwd=place, stdin=-1, stdout=-1, stderr=-1)
                for _ in range(24)]
        for job in jobs:
            out = job.communicate(timeout=60)
            equal(job.returncode, 0, str(out))
    equal(len(events(daemon, "guard.down")), down, "guards that went down")


lib.main()
