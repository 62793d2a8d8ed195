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
	int egress_fd;
	int guard_fd;
	struct result_to result;
	const void *setup;
	size_t setup_bytes;
};

/*
 * The confinement alone, in the order above.
 *
 * @writable   where writing stays allowed, see landlock.h
 * @ret_stage  what was being done; static; written on failure
 *
 * Fails with ERR_SYSTEM or ERR_SETUP_FAILED; the process must then exit.
 */
int init_confine(const char *const *writable, size_t count, int dev_fd, const char **ret_stage,
		 struct error *err);

/* Never returns: _exit(0) once everything was reported, _exit(125) after REPORT_FAILED. */
_Noreturn void init_run(const struct init_input *input);

#endif
