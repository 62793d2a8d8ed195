/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_DAEMON_SPAWNER_EGRESSFILE_H
#define FSBOX_DAEMON_SPAWNER_EGRESSFILE_H

/*
 * What a fsbox-egress decides while its fsboxd is gone, for the one that comes: a file beside those of the
 * jobs (jobfile.h), "e" and a number. fsboxd makes it and fsbox-egress can only append to it, under a
 * limit (RLIMIT_FSIZE). It does so from the moment when nobody reads its pipe any more; what was in that
 * pipe is lost.
 *
 * The next fsboxd records what is in it, goes on doing so as it grows, and removes it when its writer is
 * gone. If there was no room for all, that is told then: EGRESS_EVENT_STATS of job 0 with lost events. The
 * writer is as hostile as ever: what it wrote is checked like what comes by a pipe, and after the first thing
 * that makes no sense nothing more is read.
 */

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"
#include "daemon/spawner/egresslink.h"
#include "daemon/spawner/jobfile.h"
#include "daemon/spawner/loop.h"

/* Room for some seven thousand events; it lies in memory (/run). */
#define EGRESSFILE_BYTES (4u << 20)

struct egressfile; /* one that is read */

/* Whether there is room to record one more event now: there may be thousands. */
typedef bool egressfiles_may_fn(void *arg);

/* @notify_fd  inotify: what was appended, and that a writer is gone */
struct egressfiles {
	const struct jobfiles *jobs;
	struct loop *loop;
	egresslink_event_fn *on_event;
	egressfiles_may_fn *may;
	void *arg;
	int notify_fd;
	struct loop_source source;
	struct loop_timer later;
	struct egressfile *first;
};

#define EGRESSFILES_INIT                                     \
	{                                                    \
		.notify_fd = -1, .source = LOOP_SOURCE_INIT, \
	}

/*
 * A new, empty one. *RET_FD is for fsbox-egress and nobody else: as long as it is open somewhere the file
 * counts as written to. Fails with ERR_SYSTEM.
 */
int egressfile_make(const struct jobfiles *jobs, char ret_name[EGRESSFILE_NAME_BYTES], int *ret_fd,
		    struct error *err);
void egressfile_remove(const struct jobfiles *jobs, const char *name);

/*
 * At start, when all jobs are known: record what those before us left, as MAY allows, and go on as long as there is a
 * writer. Fails with ERR_SYSTEM; what is wrong with one file is logged.
 */
int egressfiles_take_over(struct egressfiles *files, const struct jobfiles *jobs, struct loop *loop,
			  egresslink_event_fn *on_event, egressfiles_may_fn *may, void *arg,
			  struct error *err);

/* The files stay for the next fsboxd. */
void egressfiles_deinit(struct egressfiles *files);

#endif
