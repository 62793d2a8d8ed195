/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_DAEMON_SPAWNER_JOBPROC_H
#define FSBOX_DAEMON_SPAWNER_JOBPROC_H

/*
 * A job's processes: the leader that fsboxd forks, pid 1 that the engine makes, what both report,
 * and how long they may take. Everything here happens to one job and ends in job_finish().
 */

#include <sys/types.h>

#include "common/error.h"
#include "common/plan.h"

struct job;

/*
 * Fork the leader for a verified PLAN on behalf of the process PEER_PID. Consumes the job's channel.
 * Fails with ERR_SYSTEM; nothing runs then.
 */
int jobproc_start(struct job *job, const struct plan *plan, pid_t peer_pid, int peer_pidfd,
		  struct error *err);

/* Kill whatever is known of the job; how it ended is noticed as usual, or given up on in time. */
void jobproc_kill(struct job *job);

/* Ask pid 1 for SIGNO. Fails with ERR_SYSTEM. */
int jobproc_signal(struct job *job, int signo, struct error *err);

/* Close everything; a leader that is still there becomes a stray. */
void jobproc_release(struct job *job);

#endif
