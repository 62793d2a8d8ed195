/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_DAEMON_SPAWNER_BROKERPROC_H
#define FSBOX_DAEMON_SPAWNER_BROKERPROC_H

/* Starting fsbox-broker as somebody, and what it is told first. */

#include "common/error.h"
#include "daemon/identity.h"
#include "daemon/spawner/child.h"
#include "proto/wire/spawnop.h"

struct spawner;

/*
 * Start a broker that is IDENTITY: groups, gid, uid; no environment, /dev/null as its standard three,
 * a session of its own, working directory /, its two descriptors and nothing else (R3).
 *
 * @ret_link_fd     socket to it; nothing can be received from it, so that it can never make us hold
 *                  a descriptor
 * @ret_request_fd  reading end of its pipe; both non-blocking and the caller's
 *
 * Fails with ERR_SYSTEM.
 */
int brokerproc_start(struct spawner *spawner, const struct identity *identity, struct child *child,
		     child_exit_fn *on_exit, void *arg, int *ret_link_fd, int *ret_request_fd,
		     struct error *err);

/* What LINK_CONFIG says to the broker of IDENTITY. Fails with ERR_CONFIG. */
int brokerproc_config(const struct spawner *spawner, const struct identity *identity,
		      struct link_config *ret_config, struct error *err);

#endif
