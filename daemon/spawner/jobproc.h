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
struct zygote;

/*
 * Fork the leader for a verified PLAN, which is the template's if the job has one. Closes the job's
 * channel, plan and peer_pidfd as soon as they are not needed for another try. Fails with ERR_SYSTEM or
 * ERR_SETUP_FAILED; nothing runs then.
 */
int jobproc_start(struct job *job, const struct plan *plan, struct error *err);

/*
 * The same in ZYGOTE, which was told of the job already: its process and its pipes are the job's now. Fails with
 * ERR_SYSTEM.
 */
int jobproc_start_in(struct job *job, struct zygote *zygote, struct error *err);

/* Take what pid 1 has reported by now, before its turn. */
void jobproc_catch_up(struct job *job);

/* Kill whatever is known of the job; how it ended is noticed as usual, or given up on in time. */
void jobproc_kill(struct job *job);

/* Take the report that waited for a sweep. */
void jobproc_resume(struct job *job);

/* Ask pid 1 for SIGNO. Fails with ERR_SYSTEM. */
int jobproc_signal(struct job *job, int signo, struct error *err);

/*
 * PID is JOB's pid 1, of which *PIDFD is taken on success: its end is noticed from now on. Fails with
 * ERR_SYSTEM.
 */
int jobproc_watch_pid1(struct job *job, pid_t pid, int *pidfd, struct error *err);

/* Close everything; a leader that is still there becomes a stray. */
void jobproc_release(struct job *job);

/* Whoever waits for permission may go on. */
void jobproc_go(struct job *job);

#endif
