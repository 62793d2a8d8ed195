/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_DAEMON_BROKER_BUILT_H
#define FSBOX_DAEMON_BROKER_BUILT_H

/*
 * Policies of spawns, shared by the requests that come to the same one and by the jobs that run with
 * it, and kept for a minute for those that come next.
 *
 * A kept policy is used for a request with the same parameters, but for those that no policy depends on
 * (arguments, environment, descriptors, label), and only after all that was looked up for it was looked
 * up again with the same answers (R10): a look-up LOOKUP_REPEAT of @build.record.
 */

#include <event2/event.h>
#include <stddef.h>
#include <stdint.h>

#include "common/buf.h"
#include "common/error.h"
#include "daemon/broker/policybuild.h"

struct broker;

/* Kept at once, and bytes of their keys, records and plans together. */
#define BUILT_KEPT_MAX 32
#define BUILT_KEPT_BYTES (8u << 20)

/* Unused for so long, one goes. */
#define BUILT_KEPT_MS 60000

/*
 * @build       done and trimmed, once it is shared
 * @plan        of @build, encoded
 * @key         of the request it was built for
 * @generation  of the broker's kernelmounts when the building began
 */
struct built {
	unsigned refs;
	struct policy_build build;
	struct buf plan; /* and behind it, from @plan_bytes on, the network policy */
	size_t plan_bytes;
	struct buf key;
	uint64_t generation;
	uint64_t used_ms;
	struct built *next; /* built_cache.first */
};

/* @first  most recently used first */
struct built_cache {
	struct built *first;
	size_t count;
	size_t bytes;
	struct event *expiry; /* armed while there are any */
};

int built_cache_init(struct built_cache *cache, struct event_base *base, struct error *err);
void built_cache_deinit(struct built_cache *cache);

/* Bytes that are the same for two requests exactly if their policies are built from the same. */
int built_key(const struct spawn_params *params, struct buf *ret_key, struct error *err);

/* A new one, to be built, with one reference. KEY is taken, and empty afterwards. NULL: no memory. */
struct built *built_new_take(struct broker *broker, struct buf *key);

/* The kept one of KEY, with a reference for the caller, or NULL. Whether it is still right is not said. */
struct built *built_find(struct broker *broker, const struct buf *key);

/* BUILT is done: encode its plan and network policy. Fails with ERR_POLICY_INVALID (too large), ERR_NOMEM. */
int built_finish(struct built *built, struct error *err);

/* Keep BUILT, which is finished, for later, if it is not too large. */
void built_keep(struct broker *broker, struct built *built);

/* BUILT is not right any more. */
void built_forget(struct broker *broker, struct built *built);

struct built *built_ref(struct built *built);
struct built *built_unref(struct built *built); /* NULL is fine, and returned */

#endif
