/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_DAEMON_SPAWNER_JOBPID1_H
#define FSBOX_DAEMON_SPAWNER_JOBPID1_H

/*
 * What lies below a job's leader: pid 1 where the leader is not that itself. Only children that can be nobody
 * but the job's user are ever opened or signalled.
 */

#include <sys/types.h>

#include "common/error.h"

struct job;

/* *RET_PIDFD is the caller's. Fails with ERR_SETUP_FAILED: there is none. */
int jobpid1_find(const struct job *job, pid_t *ret_pid, int *ret_pidfd, struct error *err);

/* SIGKILL to all of them. */
void jobpid1_kill_children(const struct job *job);

#endif
