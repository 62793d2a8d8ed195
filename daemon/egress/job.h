/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_DAEMON_EGRESS_JOB_H
#define FSBOX_DAEMON_EGRESS_JOB_H

/*
 * One job as the proxy sees it: its policy, the listeners that its init sent, its connections.
 *
 * Init is hostile here: a descriptor that is no listening TCP socket in a namespace other than ours ends
 * the job's network, and accept(2) is called under an alarm, since whoever shares the socket could make
 * it blocking.
 */

#include <event2/event_struct.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/netpolicy.h"
#include "daemon/egress/egress.h"
#include "proto/wire/egressop.h"

struct conn;

struct listener {
	struct job *job;
	struct listener *next; /* job.listeners */
	int fd;                /* owned */
	enum egress_via via;
	uint16_t port; /* of the host, EGRESS_VIA_FORWARD */
	int family;
	struct event readable;
};

struct job {
	struct egress *egress;
	struct job *next; /* egress.jobs */
	uint64_t id;
	struct egress_job limits;
	struct netpolicy policy;
	int init_fd; /* owned */
	struct event init_readable;
	struct listener *listeners;
	size_t listener_count;
	struct conn *conns; /* open ones */
	size_t conn_count;
	struct egress_stats stats;
	bool paused;
	struct event resume;
	uint64_t tokens; /* accepts left, in thousandths */
	uint64_t refilled_ms;
};

/*
 * Begin job ID with MESSAGE's limits; POLICY_FD and INIT_FD are taken also on failure. A refusal is
 * a record, and the error says why: ERR_INVALID (known already), ERR_BAD_FRAME, ERR_QUOTA_EXCEEDED,
 * ERR_NOMEM, ERR_SYSTEM.
 */
int job_begin_take(struct egress *egress, uint64_t id, const struct egress_job *limits,
		   int policy_fd, int init_fd, struct error *err);

/* Close all that is JOB's, record its sums, and free it. */
void job_end(struct job *job);

struct job *job_find(const struct egress *egress, uint64_t id);

#endif
