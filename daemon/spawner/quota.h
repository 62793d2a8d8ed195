/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_DAEMON_SPAWNER_QUOTA_H
#define FSBOX_DAEMON_SPAWNER_QUOTA_H

/*
 * How much each user has of what fsboxd gives: counted here, in fsboxd, so that limits hold whatever
 * a broker does (R13). Pure but for memory: time comes from the caller.
 */

#include <stdint.h>
#include <sys/types.h>

#include "common/error.h"

enum quota_kind {
	QUOTA_JOBS = 0,
	QUOTA_CONNECTIONS,
	QUOTA_BROKERS,
	QUOTA_STUCK,   /* helpers that hang and were abandoned */
	QUOTA_CLOSERS, /* helpers that close something which may make them hang */
	QUOTA_KIND_COUNT,
};

/* @uid, @total  the most that one user, and all together, may have */
struct quota_limits {
	struct quota_limit {
		uint32_t uid;
		uint32_t total;
	} kinds[QUOTA_KIND_COUNT];
	uint32_t spawns_per_second; /* per user; a burst of one second's worth */
};

struct quota_user;

struct quota {
	struct quota_limits limits;
	uint32_t totals[QUOTA_KIND_COUNT];
	struct quota_user *users;
};

void quota_init(struct quota *quota, const struct quota_limits *limits);
void quota_deinit(struct quota *quota);

/* New limits; what is held beyond them stays held. */
void quota_set_limits(struct quota *quota, const struct quota_limits *limits);

/* One more for UID. Fails with ERR_QUOTA_EXCEEDED, naming the limit, or ERR_NOMEM. */
int quota_take(struct quota *quota, uid_t uid, enum quota_kind kind, struct error *err);

/* One less; each successful quota_take() once. */
void quota_give(struct quota *quota, uid_t uid, enum quota_kind kind);

/* Count without a limit: for what has already happened. ERR_NOMEM: it stays uncounted. */
int quota_note(struct quota *quota, uid_t uid, enum quota_kind kind, struct error *err);

uint32_t quota_held(const struct quota *quota, uid_t uid, enum quota_kind kind);

/* Whether UID may spawn at NOW_MS; if so it is counted. Fails like quota_take(). */
int quota_spawn(struct quota *quota, uid_t uid, uint64_t now_ms, struct error *err);

#endif
