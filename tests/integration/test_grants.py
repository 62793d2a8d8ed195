# SPDX-License-Identifier: Apache-2.0
"""Grants (R29): one exact command, once, for one user, by somebody else."""

import json
import os
import signal
import time

import lib
from fakebroker import Spawner
from lib import User, case, contains, equal, lacks, status_is, succeeds, text, wait_for
from netlib import Server

CONFIG = "max-net = none\nadmin-group = fsbox-admin\nroot-peers = serve\n"
STATE = {}
SAY = ("/usr/bin/env", "echo", "went out")


def daemon():
    if "daemon" not in STATE:
        STATE["daemon"] = lib.make_daemon("system").start(config=CONFIG)
        STATE["admin"] = User("fsbxadm")
        STATE["place"] = lib.project(STATE["daemon"], "grants")
        os.chown(STATE["place"], STATE["daemon"].user.uid, STATE["daemon"].user.gid)
    return STATE["daemon"]


def request(*command, net=("--net", "host"), options=(), user=None, **more):
    """What a user asks an administrator with."""
    result = daemon().spawn("--dry-run", "--grant-request", *net, *options, "--",
                            *command, cwd=STATE["place"], user=user, **more)
    return json.loads(succeeds(result))


def grant(asked, *options, user=None, **more):
    """The token, or the failed result."""
    result = daemon().ctl("grant", "create", "--request", "-", *options,
                          user=user or STATE["admin"], input=json.dumps(asked).encode(), **more)
    return text(result.stdout).strip() if result.returncode == 0 else result


def use(token, *command, options=("--net", "host"), user=None, **more):
    read_end, write_end = os.pipe()
    os.write(write_end, token.encode())
    os.close(write_end)
    try:
        return daemon().spawn("--grant-fd", str(read_end), *options, "--", *command, user=user,
                              cwd=more.pop("cwd", STATE["place"]), pass_fds=[read_end], **more)
    finally:
        os.close(read_end)


def events(*arguments, user=None):
    result = daemon().ctl("events", "--json", *arguments, user=user)
    return [json.loads(line) for line in succeeds(result).splitlines()]


@case(root=True)
def R29_a_grant_is_the_only_way_above_the_cap():
    status_is(daemon().spawn("--net", "host", "--", *SAY, cwd=STATE.get("place", "/tmp")), 125,
              "max-net")
    asked = request(*SAY)
    equal(asked["net"], "host")
    equal(asked["argv"], list(SAY))
    token = grant(asked)
    equal(len(token), 64)
    result = use(token, *SAY)
    equal(succeeds(result), "went out\n")
    started = [line for line in events(user=daemon().user) if line["event"] == "execution.started"]
    equal(started[-1]["room"], "granted-egress")
    number = started[-1]["grant"]
    kinds = {line["event"]: line for line in events("--all", user=STATE["admin"])
             if line.get("grant") == number}
    for kind in ("grant.created", "grant.used", "execution.started", "execution.finished"):
        equal(kind in kinds, True, kind)
    contains(kinds["grant.created"]["detail"], str(STATE["admin"].uid))
    lacks(json.dumps(kinds), token)
    lacks(text(result.stderr), "opted-out")
    # The host's network it is, not a promise of it.
    look = ("/usr/bin/readlink", "/proc/self/ns/net")
    host = os.readlink("/proc/self/ns/net") + "\n"
    equal(succeeds(use(grant(request(*look)), *look)), host)
    lacks(succeeds(daemon().spawn("--", *look, cwd=STATE["place"])), host)


@case(root=True)
def R29_a_grant_for_a_list_of_hosts():
    """Under `max-net = none` it opens what is on the list, and no host more."""
    with open("/etc/hosts", "a", encoding="utf-8") as file:
        file.write("127.0.0.8 listed.test other.test\n")
    with Server("127.0.0.8") as server:
        def list_of(*names):
            return [x for name in names for x in ("--allow-host", f"{name}.test:{server.port}+private")]

        def get(name):
            return ("/usr/bin/curl", "-sS", "-p", "--http0.9", f"http://{name}.test:{server.port}/")

        status_is(daemon().spawn(*list_of("listed"), "--", *get("listed"), cwd=STATE.get("place", "/tmp")),
                  125, "max-net")
        asked = request(*get("listed"), net=list_of("listed"))
        equal(asked["net"], "proxy")
        token = grant(asked)
        equal(server.visits, 0)
        # Not for a longer list, not for another one, and not for the whole network.
        for options in (list_of("listed", "other"), list_of("other"), ("--net", "host")):
            status_is(use(token, *get("listed"), options=options), 125, "grant")
        equal(succeeds(use(token, *get("listed"), options=list_of("listed"))), "hello from the host")
        equal(server.visits, 1)
        mine = [line for line in events(user=daemon().user)]
        started = [line for line in mine if line["event"] == "execution.started"][-1]
        equal(started["room"], "granted-egress")
        used = [line for line in events("--all", user=STATE["admin"]) if line["event"] == "grant.used"][-1]
        equal((used["grant"], used["job"]), (started["grant"], started["job"]))
        allowed = [line for line in mine if line["event"] == "egress.allowed" and line["job"] == started["job"]]
        equal([line["host"] for line in allowed], ["listed.test"])
        token = grant(request(*get("other"), net=list_of("listed")))
        result = use(token, *get("other"), options=list_of("listed"))
        equal((result.returncode, text(result.stdout)), (56, ""), text(result.stderr))
        contains(result.stderr, "403")
        equal(server.visits, 1)
        denied = [line for line in events(user=daemon().user) if line["event"] == "egress.denied"][-1]
        equal((denied["host"], denied["reason"]), ("other.test", "not-listed"))
        status_is(daemon().spawn(*list_of("listed"), "--", *get("listed"), cwd=STATE["place"]), 125, "max-net")


@case(root=True)
def R29_a_token_works_once():
    asked = request(*SAY)
    token = grant(asked)
    succeeds(use(token, *SAY))
    status_is(use(token, *SAY), 125, "spent")
    refused = [line for line in events(user=daemon().user) if line["event"] == "grant.refused"]
    contains(refused[-1]["detail"], "spent")


@case(root=True)
def R29_it_is_bound_to_all_of_the_request():
    asked = request(*SAY)
    token = grant(asked)
    other = User("fsbxb")
    status_is(use(token, *SAY, user=other, cwd="/tmp"), 125, "another user")
    status_is(use(token, "/usr/bin/env", "echo", "went far out"), 125, "another command")
    status_is(use(token, *SAY, cwd=lib.project(daemon(), "elsewhere")), 125, "another command")
    status_is(use(token, *SAY, env={"MORE": "1"}), 125, "another environment")
    status_is(use(token, *SAY, options=("--net", "host", "--deny", STATE["place"] + "/x")), 125,
              "another policy")
    status_is(use(token, *SAY, options=()), 125, "network")
    status_is(use("0" * 64, *SAY), 125, "no such grant")
    status_is(use("short", *SAY), 125, "no token")
    # None of these has spent it.
    succeeds(use(token, *SAY))


@case(root=True)
def R29_descriptors_are_part_of_it():
    asked = request(*SAY)
    token = grant(asked, "--stdout", "null")
    status_is(use(token, *SAY), 125, "standard output")
    # Only pid 1 can tell: it was spent on that.
    status_is(use(token, *SAY, stdout=open(os.devnull, "wb")), 125, "spent")
    token = grant(asked, "--stdout", "null")
    status_is(use(token, *SAY, stdout=open(os.devnull, "wb")), 0)


@case(root=True)
def R29_it_ends():
    token = grant(request(*SAY), "--ttl", "1s")
    time.sleep(1.2)
    status_is(use(token, *SAY), 125, "expired")


@case(root=True)
def R29_only_administrators_make_them_and_for_others():
    asked = request(*SAY)
    status_is(grant(asked, user=daemon().user), 1, "administrators")
    status_is(grant(asked, user=User("fsbxb")), 1, "administrators")
    status_is(grant(dict(asked, uid=STATE["admin"].uid)), 1, "somebody else")
    status_is(grant(dict(asked, uid=0)), 1)
    status_is(daemon().ctl("grant", "list", user=daemon().user), 1, "administrators")
    status_is(daemon().ctl("grant", "revoke", "1", user=daemon().user), 1, "administrators")
    # root is one, too.
    root = User("root")
    token = grant(asked, user=root)
    succeeds(use(token, *SAY))


@case(root=True)
def R29_what_is_approved_is_what_is_read():
    asked = request(*SAY)
    status_is(grant(dict(asked, argv=["/usr/bin/env", "true"])), 1, "contradicts itself")
    status_is(grant(dict(asked, cwd="/")), 1, "contradicts itself")
    os.makedirs("/srv/mine", exist_ok=True)
    os.chown("/srv/mine", daemon().user.uid, daemon().user.gid)
    for name, owner, complaint in (("mine", daemon().user.uid, "cannot change"),
                                   ("script", 0, "is a script")):
        with open(f"/srv/mine/{name}", "w", encoding="ascii") as file:
            file.write("#!/bin/sh\n")
        os.chmod(file.name, 0o755)
        os.chown(file.name, owner, 0)
        status_is(grant(request(file.name, options=("--ro", "/srv/mine"))), 1, complaint)
    result = daemon().ctl("grant", "create", "--request", "-", user=STATE["admin"],
                          input=json.dumps(asked).encode())
    contains(result.stderr, "went out")
    contains(result.stderr, STATE["place"])


@case(root=True)
def R29_another_program_at_its_place_is_not_it():
    os.makedirs("/srv/tools", exist_ok=True)
    with open("/usr/bin/env", "rb") as file:
        data = file.read()
    tool = "/srv/tools/tool"
    with open(tool, "wb") as file:
        file.write(data)
    os.chmod(tool, 0o755)
    asked = request(tool, "echo", "x", options=("--ro", "/srv/tools"))
    tokens = [grant(asked), grant(asked), grant(asked)]
    options = ("--net", "host", "--ro", "/srv/tools")
    equal(succeeds(use(tokens[0], tool, "echo", "x", options=options)), "x\n")
    with open(tool, "ab") as file:
        file.write(b"\0")
    status_is(use(tokens[1], tool, "echo", "x", options=options), 125, "not the program")
    with open(tool, "wb") as file:
        file.write(data)
    os.chmod(tool, 0o777)
    status_is(use(tokens[2], tool, "echo", "x", options=options), 125, "can be changed")


@case(root=True)
def R29_revoked_is_over():
    asked = request(*SAY)
    token = grant(asked)
    listed = json.loads(succeeds(daemon().ctl("--json", "grant", "list", user=STATE["admin"])))
    newest = listed["grants"][0]
    equal((newest["state"], newest["uid"], newest["creator"]),
          ("open", daemon().user.uid, STATE["admin"].uid))
    lacks(json.dumps(listed), token)
    succeeds(daemon().ctl("grant", "revoke", str(newest["grant"]), user=STATE["admin"]))
    status_is(daemon().ctl("grant", "revoke", str(newest["grant"]), user=STATE["admin"]), 1)
    status_is(use(token, *SAY), 125, "revoked")


@case(root=True)
def R29_they_survive_and_stay_spent():
    asked = request(*SAY)
    spent, kept = grant(asked), grant(asked)
    succeeds(use(spent, *SAY))
    equal(os.stat("/var/lib/fsbox/grants").st_mode & 0o7777, 0o600)
    with open("/var/lib/fsbox/grants", "rb") as file:
        stored = file.read()
    equal(bytes.fromhex(kept) in stored or kept.encode() in stored, False, "a token is stored")
    daemon().process.send_signal(signal.SIGKILL)
    daemon().process.wait()
    daemon().start(config=CONFIG)
    status_is(use(spent, *SAY), 125, "spent")
    succeeds(use(kept, *SAY))


@case(root=True)
def R29_a_job_without_one_does_not_inherit_it():
    """The prepared mounts of a granted job fit the next one, which has no grant."""
    token = grant(request(*SAY))
    succeeds(use(token, *SAY))
    status_is(daemon().spawn("--net", "host", "--", *SAY, cwd=STATE["place"]), 125, "max-net")


@case(root=True)
def R29_user_mode_has_none():
    if "daemon" in STATE:
        STATE.pop("daemon").stop()
    user = lib.make_daemon("user").start()
    place = lib.project(user, "none")
    status_is(user.spawn("--dry-run", "--grant-request", "--net", "host", "--", "true", cwd=place),
              125, "no grants")
    status_is(user.ctl("grant", "list"), 1, "no grants")
    user.stop()


# ---- brokers in the hands of their users ---------------------------------------------------


def spawner():
    if "daemon" in STATE:
        STATE.pop("daemon").stop()
    if "spawner" not in STATE:
        STATE["spawner"] = Spawner("system", User("fsbxa"), "grant_broker")
        STATE["spawner"].start(config=CONFIG)
    return STATE["spawner"]


def forged(line, user=None, **options):
    return spawner().ask(line, user=user, **options)


def made(script, uid=None):
    said = forged(f"grant {uid or spawner().user.uid} {script}", user=User("fsbxadm"))
    contains(said, "token ")
    return said.split()[1]


@case(root=True)
def R29_a_users_broker_makes_none():
    said = forged(f"grant {User('fsbxb').uid} true")
    contains(said, "not-authorized")
    said = forged(f"borrow {User('fsbxb').uid} true")
    lacks(said, "token")
    contains(said, "conn 0: not-authorized")
    contains(said, "next conn: not-authorized")
    contains(forged("list"), "not-authorized")
    contains(forged("revoke 1"), "not-authorized")


@case(root=True)
def R29_saying_what_is_not_so_gains_nothing():
    contains(forged("nothing echo leaked"), "not-authorized")
    token = made("echo one")
    said = forged(f"lie {token} echo one|echo two")
    contains(said, "grant-invalid")
    contains(said, "other arguments")
    lacks(said, "output")
    contains(forged(f"use {token} echo one"), "spent")


@case(root=True)
def R29_two_at_once_are_one():
    token = made("echo one")
    said = forged(f"twice {token} echo one")
    equal(said.count("reports exited"), 1, said)
    equal(said.count("output one"), 1, said)
    equal(said.count("grant-invalid"), 1, said)


@case(root=True)
def R29_anothers_token_is_worth_nothing():
    token = made("echo one")
    contains(forged(f"use {token} echo one", user=User("fsbxb")), "another user")
    contains(forged(f"use {token} echo one"), "reports exited")


@case(root=True)
def R29_killed_between_reservation_and_start_it_is_spent():
    token = made("echo one")
    contains(forged(f"hang {token} echo one"), "reserved")
    spawner().process.send_signal(signal.SIGKILL)
    spawner().process.wait()
    spawner().start(config=CONFIG)
    contains(forged(f"use {token} echo one"), "spent")
    wait_for(lambda: not lib.processes("bwrap"), 20, "the end of the job nobody started")


@case(root=True)
def R29_garbage_tokens_end_nothing():
    for line in ("use " + "0" * 64 + " true", "use " + "f" * 64 + " true"):
        contains(forged(line), "no such grant")
    lacks(forged("badterms"), "still linked")
    contains(forged("list", user=User("fsbxadm")), "kind 8")


lib.main()
