# SPDX-License-Identifier: Apache-2.0
"""The network of jobs whose fsboxd is gone, and what is recorded of it."""

import os

import lib
from lib import case, equal, project, wait_for
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


if __name__ == "__main__":
    lib.main()
