/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_DAEMON_EGRESS_EGRESS_H
#define FSBOX_DAEMON_EGRESS_EGRESS_H

/*
 * fsbox-egress: fsboxd's link, the jobs, and what they share. One thread, one event base; nothing
 * here waits for anybody.
 */

#include <event2/event_struct.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "daemon/egress/lookup.h"
#include "daemon/egress/records.h"
#include "daemon/egress/relay.h"
#include "proto/wire/egressop.h"

/*
 * @netns          cookie of our own network namespace: no listener may be there
 * @upstream       where the host's own proxy is; meant only when config says that there is one
 * @strange_fds    descriptors that were no sockets and that nobody dares to close, since closing some
 *                 files hangs
 * @connection_max as many as there are descriptors for
 */
struct egress {
	struct event_base *base;
	int link_fd;
	struct event link_readable;
	bool link_down;
	bool configured;
	struct egress_config config;
	struct hostname upstream;
	struct records records;
	struct lookups lookups;
	struct pipepool pipes;
	int route_fd;
	uint64_t netns;
	struct job *jobs;
	size_t job_count;
	size_t connection_count;
	size_t connection_max;
	uint64_t last_connection;
	unsigned strange_fds;
	bool failed;
	struct error why;
};

#define EGRESS_INIT                           \
	{                                     \
		.link_fd = -1, .route_fd = -1 \
	}

/*
 * Start the resolver, open what must be open, and confine this process for good. LINK_FD and
 * EVENTS_FD, and FILE_FD if it is not -1, are
 * borrowed. ERR_SYSTEM, ERR_NOMEM.
 */
int egress_init(struct egress *egress, int link_fd, int events_fd, int file_fd, struct error *err);
void egress_deinit(struct egress *egress);

/* Serve until fsboxd is gone and no job is left. Fails with what fsboxd or the resolver did. */
int egress_run(struct egress *egress, struct error *err);

/* End with an error: after the current event egress_run() returns it. */
void egress_fail(struct egress *egress, const struct error *err);

/* Whether new connections may be taken: records can be kept, descriptors are there. */
bool egress_may_accept(const struct egress *egress);

/* A job is gone: without fsboxd the last one ends the process. */
void egress_job_gone(struct egress *egress);

#endif
