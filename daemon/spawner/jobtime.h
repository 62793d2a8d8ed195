/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_DAEMON_SPAWNER_JOBTIME_H
#define FSBOX_DAEMON_SPAWNER_JOBTIME_H

/* How long a job may take for what it does now. Each replaces what was set before (job.timer). */

#include <stdint.h>

struct job;

/* Until its init must have begun: LIMIT_SETUP_MS, then it fails. */
void jobtime_setup(struct job *job);

/*
 * It runs since job->begun_ms: its own limit, if it has one, counts from there. Then it is asked to end
 * (SIGTERM), and after LIMIT_GRACE_MS killed.
 */
void jobtime_run(struct job *job);

/* It is ending by itself: killed if it has not after MS. */
void jobtime_grace(struct job *job, uint64_t ms);

#endif
