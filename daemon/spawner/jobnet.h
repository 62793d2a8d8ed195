/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_DAEMON_SPAWNER_JOBNET_H
#define FSBOX_DAEMON_SPAWNER_JOBNET_H

/*
 * What fsbox-egress serves for a job: the proxies of network `proxy`, ports of the host's loopback.
 *
 * The network policy comes from the job's broker behind the plan. It is decoded here, strictly, before
 * fsbox-egress gets a copy that nobody can change; the ports in it are what the job's init listens on.
 */

#include <stdbool.h>
#include <stddef.h>

#include "common/error.h"
#include "common/plan.h"
#include "daemon/spawner/builder.h"

struct job;

/*
 * @policy_fd  sealed memfd; -1: the job has no such policy
 * @init_fd    the end that the job's init gets, while a leader is started
 * @served     fsbox-egress was told
 */
struct jobnet {
	struct builder_net net;
	int policy_fd;
	int init_fd;
	bool served;
};

#define JOBNET_INIT                             \
	{                                       \
		.policy_fd = -1, .init_fd = -1, \
	}

/*
 * BYTES, SIZE of them, are the network policy of JOB; none is fine. Also when the job begins again. Fails
 * with ERR_BAD_FRAME, ERR_NOMEM, ERR_SYSTEM.
 */
int jobnet_take(struct job *job, const void *bytes, size_t size, struct error *err);

/*
 * Before the leader of JOB is started for PLAN, which was verified: the two must fit each other (R11),
 * and fsbox-egress is told. Fails with ERR_POLICY_INVALID, or as egresslink_job() does.
 */
int jobnet_begin(struct job *job, const struct plan *plan, struct error *err);

/* Into INPUT, for the leader. */
void jobnet_lend(const struct job *job, struct builder_input *input);

/* The leader has its copy of what was lent. */
void jobnet_lent(struct job *job);

/* The job will not begin again. */
void jobnet_settled(struct job *job);

/* The job is over. More than once is fine. */
void jobnet_end(struct job *job);

/* It is forgotten: if it still runs, as it may when fsboxd ends, fsbox-egress serves it on. */
void jobnet_deinit(struct job *job);

#endif
