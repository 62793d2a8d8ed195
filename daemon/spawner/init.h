/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_DAEMON_SPAWNER_INIT_H
#define FSBOX_DAEMON_SPAWNER_INIT_H

/*
 * Pid 1 of a job: confines itself for good, receives the client's descriptors, runs the command,
 * forwards signals, reaps, and reports exactly how it ended, after nothing runs any more.
 *
 * Used by the static program fsbox-init (engine bwrap); written so that a forked child of fsboxd can
 * call it too.
 *
 * Order (R16), each step irrevocable: not dumpable, capability bounding and ambient sets empty, no
 * capabilities, no_new_privs, Landlock, seccomp; only then is the first descriptor of the client's
 * received and the first byte of the client's read.
 */

#include <stddef.h>

#include "common/error.h"
#include "proto/wire/spawnop.h"

/*
 * @report_fd, @go_fd, @channel_fd  as INIT_FD_*; owned by init from here on
 * @setup, @setup_bytes             checked with setup_check(); borrowed
 */
struct init_input {
	int report_fd;
	int go_fd;
	int channel_fd;
	const void *setup;
	size_t setup_bytes;
};

/* Never returns: _exit(0) once everything was reported, _exit(125) after REPORT_FAILED. */
_Noreturn void init_run(const struct init_input *input);

#endif
