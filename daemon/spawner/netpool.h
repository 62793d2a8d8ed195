/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_DAEMON_SPAWNER_NETPOOL_H
#define FSBOX_DAEMON_SPAWNER_NETPOOL_H

/*
 * Empty network namespaces, made before they are needed: making one takes the kernel longer than all
 * the rest of a spawn. With each come an IPC, a UTS and a control group namespace. Each is used once.
 *
 * A child makes them, one after the other, and fsboxd takes each by the child's pidfd: no descriptor is
 * ever received. In user mode they belong to the daemon's user namespace.
 *
 * What was taken is made anew when it has been quiet for a moment, so that no spawn waits for a
 * processor that is busy with that; at once when three quarters of the pool are gone. For the same reason
 * those that were used are held until then: the kernel takes longer to end one than a job takes, and
 * less for many at a time.
 */

#include <stdbool.h>
#include <stddef.h>

#include "common/error.h"
#include "daemon/spawner/child.h"
#include "daemon/spawner/loop.h"
#include "daemon/spawner/native.h"

/* More would only hold kernel memory (0.2 MB each). */
#define NETPOOL_MAX 64
#define NETPOOL_USED_MAX 32

/*
 * @wanted       how many to keep ready; 0: none are made
 * @user_ns_fd   borrowed; -1: the host's
 * @maker        the child; it waits while the pool is full
 * @ready_fd     a byte for each namespace the maker stands in
 * @next_fd      a byte tells it to make another
 * @standing     the namespaces that the maker stands in: nobody gets them before it has left
 * @asked        it was told to make one and has not
 * @used         of jobs that have begun: perhaps nobody else holds them any more
 */
struct netpool {
	struct loop *loop;
	struct children *children;
	size_t wanted;
	size_t count;
	struct native_set sets[NETPOOL_MAX];
	int user_ns_fd;
	struct child maker;
	int ready_fd;
	int next_fd;
	struct native_set standing;
	bool asked;
	struct loop_source ready_source;
	struct native_set used[NETPOOL_USED_MAX];
	size_t used_count;
	struct loop_timer quiet;
	unsigned int failures;
};

#define NETPOOL_INIT                                                                  \
	{                                                                             \
		.user_ns_fd = -1, .maker = CHILD_INIT, .ready_fd = -1, .next_fd = -1, \
		.standing = NATIVE_SET_INIT, .ready_source = LOOP_SOURCE_INIT,        \
	}

/* Begin to fill. WANTED is cut to NETPOOL_MAX. */
void netpool_init(struct netpool *pool, struct loop *loop, struct children *children, size_t wanted,
		  int user_ns_fd);
void netpool_deinit(struct netpool *pool);

/* False when none is ready: then the job must make them itself. RET_SET is the caller's to deinit. */
bool netpool_take(struct netpool *pool, struct native_set *ret_set);

/* A job has entered SET, or will not: it is the pool's again, and never given to anybody else. */
void netpool_give_back(struct netpool *pool, struct native_set *set);

#endif
