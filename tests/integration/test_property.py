# SPDX-License-Identifier: Apache-2.0
"""
The policy against the kernel: random policies, every answer held against policy_access().

    FSBOX_PROPERTY_POLICIES  how many for each mode; default 150
    FSBOX_PROPERTY_SECONDS   but no longer than this
    FSBOX_PROPERTY_SEED      the first seed; default 1
    FSBOX_PROPERTY_ENGINES   default "bwrap native"
"""

import os
import shutil

import lib
from lib import case, project, text

KERNEL = os.environ.get("FSBOX_KERNEL_TESTS", "")
MODES = ("system", "user", "root")
POLICIES = int(os.environ.get("FSBOX_PROPERTY_POLICIES", "150"))
SECONDS = os.environ.get("FSBOX_PROPERTY_SECONDS", "0")
SEED = os.environ.get("FSBOX_PROPERTY_SEED", "1")
ENGINES = os.environ.get("FSBOX_PROPERTY_ENGINES", "bwrap native").split()
LIMIT = 3600


def prepare(daemon, trees):
    """Programs and a profile that grants nothing, below the user's home; an empty place for trees."""
    lib.needs_throwaway_home()
    place = project(daemon, "property")
    daemon.user.shell(f"mkdir inside programs; rm -rf '{trees}'; mkdir '{trees}'", cwd=place)
    for name in ("trees.py", "expect.py", "property.py"):
        shutil.copy(os.path.join(KERNEL, name), f"{place}/programs/{name}")
    shutil.copy(os.path.join(lib.BUILD, "tests/kernel/answers"), f"{place}/programs/answers")
    shutil.copy(os.path.join(lib.BUILD, "tests/kernel/probe"), f"{place}/inside/probe")
    daemon.user.write(f"{place}/nothing.json", '{"description": "nothing", "protect": false}\n')
    return place


def hold(daemon, trees, *options):
    """Run the property test as the user with its trees in TREES; it must find nothing."""
    place = prepare(daemon, trees)
    engines = [word for engine in ENGINES for word in ("--engine", engine)]
    result = daemon.user.run(
        ["/usr/bin/python3", "-B", f"{place}/programs/property.py", *options, "--seconds", SECONDS,
         "--seed", SEED, *engines, "--ctl", lib.FSBOXCTL, "--ctl-option=--socket",
         f"--ctl-option={daemon.socket}", "--profile", f"{place}/nothing.json", "--probe",
         f"{place}/inside/probe", "--answers", f"{place}/programs/answers", "--work", trees],
        timeout=LIMIT)
    for line in (text(result.stdout) + text(result.stderr)).rstrip().split("\n"):
        print(f"# {daemon.mode}: {line}", flush=True)
    lib.equal(result.returncode, 0, "status")


@case(*MODES)
def engines_do_what_the_policy_says(daemon):
    hold(daemon, f"{daemon.user.home}/trees", "--rounds", str(POLICIES))


@case(*MODES)
def engines_do_so_below_fresh_directories(daemon):
    if lib.IS_ROOT:
        trees = f"/run/of-{daemon.user.name}"
        os.makedirs(trees, exist_ok=True)
        os.chown(trees, daemon.user.uid, daemon.user.gid)
    else:
        trees = daemon.user.environment()["XDG_RUNTIME_DIR"]
    hold(daemon, f"{trees}/trees", "--rounds", str(POLICIES // 3))


# By names that trees have: there or not, directories and files.
HOST_RULES = {"mandatory-deny": ["a", "b/a", "dir/new", "x y/.dot/a", "ab/absent"],
              "mandatory-read-only": ["c", "d/d", "a/b", "gone", "star*"]}


@case(root=True)
def r25_the_hosts_own_rules_hold_like_any_other():
    daemon = lib.make_daemon("system")
    trees = f"{daemon.user.home}/trees"
    daemon.start(config="".join(f'{key} = "{trees}/tree/{name}"\n'
                                for key, names in HOST_RULES.items() for name in names))
    try:
        hold(daemon, trees, "--rounds", str(POLICIES // 3))
    finally:
        daemon.stop()


@case("system")
def a_rule_left_out_would_be_noticed(daemon):
    hold(daemon, f"{daemon.user.home}/trees", "--rounds", str(min(POLICIES, 30)), "--spoil")


lib.main()
