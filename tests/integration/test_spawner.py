# SPDX-License-Identifier: Apache-2.0
"""fsboxd alone: a broker of ours takes fsbox-broker's place, so that every part of a job that fsboxd
is responsible for shows by itself."""

import lib
from fakebroker import spawner
from lib import case, equal


@case(root=True)
def a_job_runs_and_its_status_is_exact():
    for mode in ("user", "root", "system"):
        with spawner(mode) as fsboxd:
            equal(fsboxd.ask("/bin/true"), "ended exited 0 0\n", mode)
            equal(fsboxd.ask("echo hello; exit 137"), "hello\nended exited 137 0\n", mode)
            equal(fsboxd.ask("kill -KILL $$"), "ended signaled 0 9\n", mode)
            equal(fsboxd.ask("id -u"), f"{fsboxd.user.uid}\nended exited 0 0\n", mode)


lib.main()
