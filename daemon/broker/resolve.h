/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_DAEMON_BROKER_RESOLVE_H
#define FSBOX_DAEMON_BROKER_RESOLVE_H

/*
 * The broker's side of path look-ups: a few resolver children, a queue, and a limit on every wait.
 *
 * A child that does not answer in time is killed and its place given up, but never waited for: on a
 * dead file system SIGKILL has no effect. It counts as stuck until the kernel lets it go; with
 * LIMIT_STUCK_PER_UID of them nothing more is looked up.
 */

#include <event2/event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/buf.h"
#include "common/error.h"
#include "common/limits.h"
#include "daemon/broker/resolver.h"

/* Kept ready; more are forked only while these hang. */
#define RESOLVERS_READY 2
#define RESOLVERS_MAX (LIMIT_STUCK_PER_UID + RESOLVERS_READY)

/* A look-up that takes longer may hang: the queue behind it gets another child. */
#define RESOLVE_PATIENCE_MS 100

/*
 * What a look-up gave: with ERR NULL the packed values (resolver.h), borrowed for the call; else why
 * not: ERR_TIMEOUT, ERR_RESOLVER_BUSY, or what the child said.
 */
typedef void lookup_done_fn(void *arg, const void *values, size_t size, const struct error *err);

struct resolver_pool;

struct lookup {
	struct resolver_pool *pool;
	struct resolver_slot *slot; /* NULL while queued */
	uint64_t id;
	struct buf request; /* header and values */
	size_t sent;
	bool again; /* its first child died */
	struct event *timer;
	lookup_done_fn *done; /* NULL: cancelled, the answer is thrown away */
	void *arg;
	struct lookup *next; /* resolver_pool.first */
};

enum resolver_state { RESOLVER_NONE = 0, RESOLVER_IDLE, RESOLVER_BUSY, RESOLVER_STUCK };

struct resolver_slot {
	struct resolver_pool *pool;
	enum resolver_state state;
	pid_t pid;
	int fd;
	struct event *readable;
	struct event *writable;
	struct lookup *lookup;
	struct buf answer;
};

struct resolver_pool {
	struct event_base *base; /* NULL until attached */
	struct event *patience;
	struct event *reaper; /* SIGCHLD */
	struct resolver_slot slots[RESOLVERS_MAX];
	struct lookup *first; /* queued, oldest first */
	uint64_t next_id;
	unsigned timeout_ms;
};

/* Fork the children; before any client byte is read. Fails with ERR_SYSTEM. */
int resolver_pool_init(struct resolver_pool *pool, struct error *err);

/* Drops every look-up without calling back. The children end by themselves. */
void resolver_pool_deinit(struct resolver_pool *pool);

/* From now on work in BASE (borrowed). */
int resolver_pool_attach(struct resolver_pool *pool, struct event_base *base, struct error *err);

/*
 * Ask. DONE is called exactly once from the event loop, never from here, unless this fails or the
 * look-up is cancelled. VALUES is borrowed. *ret_lookup is valid until DONE is called.
 *
 * Fails with ERR_RESOLVER_BUSY, ERR_NOMEM.
 */
int resolver_pool_ask(struct resolver_pool *pool, enum lookup_kind kind, const struct buf *values,
		      lookup_done_fn *done, void *arg, struct lookup **ret_lookup,
		      struct error *err);

/* Nobody wants the answer any more: DONE is not called. NULL is fine. */
void lookup_cancel(struct lookup *lookup);

/*
 * Ask and wait: at start only, before the pool is attached. The packed values are appended to
 * RET_VALUES. Fails as a look-up does.
 */
int resolver_pool_call(struct resolver_pool *pool, enum lookup_kind kind, const struct buf *values,
		       struct buf *ret_values, struct error *err);

unsigned resolver_pool_stuck(const struct resolver_pool *pool);

#endif
