/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_DAEMON_SPAWNER_STANDIN_H
#define FSBOX_DAEMON_SPAWNER_STANDIN_H

/*
 * What takes the place of a denied object that somebody outside took away while a job runs: an empty file,
 * recorded like every placeholder and removed with the last job that stands on it (ledger.h). The mask that the
 * job's guard puts on it keeps the job from making that path itself (R27).
 *
 * It is made by a child as the peer, since the path is the peer's to shape, and only some time after the
 * object went: who replaces a file by removing it first is done by then.
 */

#include <stdbool.h>

struct job;

/*
 * PATH, which JOB's policy denies, is gone. One after the other is made. What fails is logged; the job goes on,
 * and what is made at PATH is masked then.
 */
void standin_begin(struct job *job, const char *path);

/* Whether one is being made: JOB, which is over, waits. job_standin_over() is called when it is through. */
bool standin_wait(const struct job *job);

/* JOB is freed, or fsboxd ends. */
void standin_drop(struct job *job);

#endif
