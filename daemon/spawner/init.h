/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_DAEMON_SPAWNER_INIT_H
#define FSBOX_DAEMON_SPAWNER_INIT_H

/*
 * Pid 1 of a job: confines itself for good, receives the client's descriptors, runs the command,
 * forwards signals, reaps, and reports exactly how it ended, after nothing runs any more.
 *
 * When the command ends everything else is killed and reaped before that is reported. The command
 * gets TERM, then everything KILL, when the client's lifeline hangs up. The broker or fsboxd going
 * away is no reason to end: the job goes on, and reports are lost or kept by whoever is left.
 *
 * Signals that come from outside go to the command's process group: all that can be caught but those that the
 * kernel sends for faults. TSTP goes as STOP, since the kernel discards TSTP for a session without a
 * shell that waits for it; for STOP itself, which nobody can catch, senders should use TSTP. What is
 * sent to pid 1 from inside is ignored.
 *
 * Used by the static program fsbox-init (engine bwrap); written so that a forked child of fsboxd can
 * call it too.
 *
 * Order (R16), each step irrevocable: listeners in the job's network, not dumpable, capability bounding and ambient sets empty, no
 * capabilities, no_new_privs, Landlock, seccomp; only then is the first descriptor of the client's
 * received and the first byte of the client's read.
 */

#include <stddef.h>

#include "common/error.h"
#include "daemon/spawner/result.h"
#include "proto/wire/spawnop.h"

/*
 * @report_fd, @go_fd, @channel_fd  as INIT_FD_*; owned by init from here on
 * @dev_fd                          O_PATH descriptor of the host's /dev, see landlock.h; or -1; likewise
 * @ruleset_fd                      see initconfine.h; likewise
 * @egress_fd                       to fsbox-egress, where @setup says that listeners go there; kept for
 *                                  as long as the job lives; else -1
 * @guard_fd                        closed when nothing but pid 1 is left, before that is reported; or -1
 * @result                          where it is written how the job came on and ended, see result.h
 * @setup, @setup_bytes             checked with setup_check(); borrowed
 */
struct init_input {
	int report_fd;
	int go_fd;
	int channel_fd;
	int dev_fd;
	int ruleset_fd;
	int egress_fd;
	int guard_fd;
	struct result_to result;
	const void *setup;
	size_t setup_bytes;
};

/* Never returns: _exit(0) once everything was reported, _exit(125) after REPORT_FAILED. */
_Noreturn void init_run(const struct init_input *input);

/*
 * The same in two parts, for a pid 1 that is made before its job (zygote.h): all of the confinement first, and
 * what a job has of its own when there is one. Of that the listeners are all that is made under the filter.
 */
struct init_born {
	int signal_fd;
	int null_fd;
};

/*
 * @setup   checked; only its paths are looked at
 * @dev_fd, @ruleset_fd  as in struct init_input; the caller's
 *
 * Fails as init_confine() does; the process must then exit.
 */
int init_bear(const void *setup, int dev_fd, int ruleset_fd, struct init_born *ret_born,
	      const char **ret_stage, struct error *err);

/* As init_run(); dev_fd and ruleset_fd are not looked at. */
_Noreturn void init_run_born(const struct init_born *born, const struct init_input *input);

#endif
