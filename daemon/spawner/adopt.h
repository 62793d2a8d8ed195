/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_DAEMON_SPAWNER_ADOPT_H
#define FSBOX_DAEMON_SPAWNER_ADOPT_H

/*
 * Jobs that outlive the fsboxd which started them: what is written down of each job while it runs, and
 * how a fsboxd that starts takes over what it finds.
 *
 *	pid 1 lives		the job is this fsboxd's, with quotas, time limit and cookie as before
 *	pid 1 is gone		how it ended is on its page (result.h), else it is lost
 *	never told to go on	nothing of it is left: its processes ended with the pipe to fsboxd
 *
 * A process is taken for a job's pid 1 only if it was born as that (birth.h).
 */

#include "common/error.h"

struct job;
struct spawner;

/* A file for JOB, which is going to start. Fails with ERR_SYSTEM: then it must not. */
int adopt_note_start(struct job *job, struct error *err);

/* The same in two steps, for a job that perhaps never starts; where that fails JOB has no file. */
void adopt_note_ahead(struct job *job);
void adopt_note_claimed(struct job *job);

/* JOB's pid 1 is known: written down before it is told to go on. Fails with ERR_SYSTEM. */
int adopt_note_up(struct job *job, struct error *err);

/* Something else that a successor must know changed: that it started, or why it is being ended. */
void adopt_note(struct job *job);

/* JOB is told to be over with job->record: kept for a while for those who ask again. */
void adopt_note_end(struct job *job);

/* JOB is freed. What is not kept is removed, unless fsboxd as a whole ends. */
void adopt_release(struct job *job);

/*
 * At start, once: end the brokers of the fsboxd before and take over its jobs. What is wrong with one is
 * logged, and keeps none of the others. Fails with ERR_SYSTEM or ERR_NOMEM.
 */
int adopt_jobs(struct spawner *spawner, struct error *err);

/* Pid 1 of JOB, which was taken over, is gone: how it ended goes into the job. */
void adopt_settle(struct job *job);

#endif
