# SPDX-License-Identifier: Apache-2.0
"""The same request again: what is kept from before is used only as long as it is still right (R10)."""

import lib
from lib import case, equal, status_is, succeeds


@case("system", "user")
def r10_a_link_that_leads_elsewhere_now(daemon):
    """The rule names a link; between two runs it is turned to another directory."""
    place = lib.project(daemon, "link")
    daemon.user.shell(f"cd '{place}'; mkdir one two; echo 1 >one/f; echo 2 >two/f; ln -s one at")
    rules = ("--rw", f"{place}/at", "--deny", f"{place}/two")
    for _ in range(3):
        equal(succeeds(daemon.sh(f"cat {place}/one/f; echo new >{place}/one/g", *rules, cwd="/usr")),
              "1\n")
    daemon.user.shell(f"cd '{place}'; mkdir three; ln -sfn three at")
    for _ in range(2):
        status_is(daemon.sh(f"echo new >{place}/one/g", *rules, cwd="/usr"), 2)
        succeeds(daemon.sh(f"echo new >{place}/three/g", *rules, cwd="/usr"))


@case("system", "user")
def r10_a_denied_place_that_was_not_there(daemon):
    place = lib.project(daemon, "late")
    daemon.user.shell(f"cd '{place}'; mkdir d; echo yes >d/plain")
    rules = ("--ro", f"{place}/d", "--deny", f"{place}/d/secret")
    for _ in range(3):
        equal(succeeds(daemon.sh(f"cat {place}/d/*", *rules, cwd="/usr")), "yes\n")
    daemon.user.shell(f"echo no >'{place}/d/secret'")
    for _ in range(2):
        status_is(daemon.sh(f"cat {place}/d/secret", *rules, cwd="/usr"), 1)


@case("system", "user")
def r10_a_directory_in_the_place_of_another(daemon):
    place = lib.project(daemon, "moved")
    daemon.user.shell(f"cd '{place}'; mkdir d; echo old >d/f")
    for _ in range(2):
        equal(succeeds(daemon.sh(f"cat {place}/d/f", "--ro", f"{place}/d", cwd="/usr")), "old\n")
    daemon.user.shell(f"cd '{place}'; mv d e; mkdir d; echo new >d/f")
    for _ in range(2):
        equal(succeeds(daemon.sh(f"cat {place}/d/f", "--ro", f"{place}/d", cwd="/usr")), "new\n")


@case("system", "user")
def a_profile_that_was_edited(daemon):
    place = lib.project(daemon, "profile")
    profile = f"{place}/p.json"
    spawn = ("--profile", profile, "--ro", "/usr", "--ro", "/etc")
    show = "echo ${WARM-unset}; test -e " + place + "/d && echo there"
    daemon.user.shell(f"mkdir '{place}/d'")
    daemon.user.write(profile, '{"env": {"set": {"WARM": "1"}}}')
    for _ in range(2):
        result = daemon.sh(show, *spawn, cwd="/usr")
        equal((result.returncode, result.stdout), (1, b"1\n"))
    daemon.user.write(profile, '{"env": {"set": {"WARM": "2"}}, "paths": {"readOnly": ["%s/d"]}}' % place)
    for _ in range(2):
        equal(succeeds(daemon.sh(show, *spawn, cwd="/usr")), "2\nthere\n")


@case("system", "user")
def what_no_policy_depends_on_is_of_this_request(daemon):
    for word in ("one", "two", "three"):
        equal(succeeds(daemon.spawn("--ro", "/usr", "--env", f"WORD={word}", "--", "/bin/sh", "-c",
                                    "echo $WORD $0", word, cwd="/usr")), f"{word} {word}\n")


if __name__ == "__main__":
    lib.main()
