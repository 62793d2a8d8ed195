# SPDX-License-Identifier: Apache-2.0
"""The network of jobs whose fsboxd is gone, and what is recorded of it."""

import os
import struct

import lib
from lib import case, equal, lacks, project, wait_for
from netlib import MODES, Server, both, egress_of, events, our_hosts
from restarting import jobs_dir


@case(*MODES)
@both
def r33_fsboxd_may_end_and_the_network_stays(daemon, engine):
    our_hosts()
    with Server("127.0.0.2") as good:
        job = daemon.user.popen(
            daemon.command("spawn", "--engine", engine, "--allow-host", f"good.test:{good.port}+private", "--",
                           "/bin/sh", "-c", "echo up; read x; exec curl -sS -p --http0.9"
                           f" http://good.test:{good.port}/"), cwd=project(daemon, "stays"),
            stdin=-1, stdout=-1)
        equal(job.stdout.readline(), b"up\n")
        pid = wait_for(lambda: egress_of(daemon), 10, "fsbox-egress")[0]
        equal(daemon.stop(), 0, "fsboxd")
        equal((job.communicate(b"\n", 15)[0], job.returncode), (b"hello from the host", 0))
        # With its last job it ends itself.
        wait_for(lambda: pid not in lib.processes("fsbox-egress"), 10, "the end of fsbox-egress")
        daemon.start()


GET_ON_DEMAND = """
import subprocess, sys
for line in sys.stdin:
    subprocess.run(["curl", "-s", "-o", "/dev/null", "--max-time", "5", "-p", "--http0.9", line.strip()])
    print("done", flush=True)
"""


@case(*MODES)
@both
def r33_what_is_decided_without_fsboxd_is_recorded_by_the_next(daemon, engine):
    """Of a job that was taken over: while there is no fsboxd, and under the one that follows."""
    our_hosts()
    daemon.stop()
    daemon.start(config="audit = required\n")
    with Server("127.0.0.2") as good:
        job = daemon.user.popen(
            daemon.command("spawn", "--engine", engine, "--detach", "--allow-host",
                           f"good.test:{good.port}+private", "--", "/usr/bin/python3", "-c", GET_ON_DEMAND),
            cwd=project(daemon, "left"), stdin=-1, stdout=-1)

        def get(url):
            job.stdin.write(url.encode() + b"\n")
            job.stdin.flush()
            equal(job.stdout.readline(), b"done\n")

        def recorded(kind, host):
            return [e for e in events(daemon)
                    if (e["event"], e.get("job"), e.get("host")) == (kind, number, host)]

        def files():
            return [n for n in os.listdir(jobs_dir(daemon)) if n.startswith("e")]

        try:
            number = int(job.stdout.readline())
            get(f"http://good.test:{good.port}/")
            wait_for(lambda: recorded("egress.closed", "good.test"), 5, "the first")
            daemon.process.kill()
            daemon.process.wait()
            get(f"http://good.test:{good.port}/")
            get("http://alone.test/")
            daemon.start(config="audit = required\n")
            wait_for(lambda: recorded("egress.denied", "alone.test"), 5, "what was refused meanwhile")
            wait_for(lambda: len(recorded("egress.closed", "good.test")) == 2, 5, "what was allowed meanwhile")
            get("http://later.test/")
            wait_for(lambda: recorded("egress.denied", "later.test"), 5, "what is refused now")
            # Each once, also for another one.
            daemon.process.kill()
            daemon.process.wait()
            daemon.start(config="audit = required\n")
            get("http://last.test/")
            wait_for(lambda: recorded("egress.denied", "last.test"), 5, "with the third")
            for host in ("alone.test", "later.test", "last.test"):
                denied = recorded("egress.denied", host)
                equal([(e["uid"], e["reason"]) for e in denied], [(daemon.user.uid, "not-listed")], host)
            equal((len(recorded("egress.allowed", "good.test")), good.visits), (2, 2))
            equal(len(files()), 1)
        finally:
            job.communicate(timeout=15)
        wait_for(lambda: not egress_of(daemon) and not files(), 10, "the end of both")
    daemon.stop()
    daemon.start()


def event_bytes(port):
    """struct egress_event (proto/wire/egressop.h): something was denied."""
    fixed = struct.pack("=2I3Q5I2B2x16xQ6Q", 512, 5, 777, 1, 1, 0, 1, port, 1, 0, 0, 0, 0, *[0] * 6)
    return fixed + b"many.test".ljust(256, b"\0") + bytes(128)


@case(*MODES)
def r33_many_records_are_all_recorded(daemon):
    """More than wait for the recorder at a time; their writer is gone."""
    daemon.stop()
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
        boot_id = file.read().strip().encode()
    path = f"{jobs_dir(daemon)}/e1"
    with open(path, "wb", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
        file.write(struct.pack("=2I40sQ", 0x31456773, 512, boot_id, 0))
        file.write(b"".join(event_bytes(i + 1) for i in range(5000)))
    os.chown(path, daemon.owner().uid, daemon.owner().gid)
    daemon.start()
    wait_for(lambda: not os.path.exists(path), 20, "all of them read")

    def recorded():
        return [e["port"] for e in events(daemon) if (e["event"], e.get("job")) == ("egress.denied", 777)]
    wait_for(lambda: len(recorded()) >= 5000, 10, "all of them recorded")
    equal(recorded(), list(range(1, 5001)))
    lacks(daemon.logged(), "dropped")


if __name__ == "__main__":
    lib.main()
