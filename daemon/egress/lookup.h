/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_DAEMON_EGRESS_LOOKUP_H
#define FSBOX_DAEMON_EGRESS_LOOKUP_H

/*
 * Names that wait for the resolver process: at most LIMIT_EGRESS_LOOKUPS are under way, at most
 * LIMIT_EGRESS_LOOKUPS_PER_JOB of one job, the others wait in order.
 */

#include <event2/event_struct.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "common/limits.h"
#include "common/netpolicy.h"

struct lookup;

/* @reason  NET_ALLOWED with addresses in the resolver's order, or NET_RESOLVE_... */
typedef void (*lookup_done)(enum net_reason reason, const struct netaddr *addresses, size_t count,
			    void *arg);

struct lookup {
	struct lookup *prev; /* lookups.first, while it waits */
	struct lookup *next;
	bool waiting;
	bool under_way;
	uint64_t job;
	const char *name; /* borrowed until it is done or cancelled */
	lookup_done done;
	void *arg;
};

/* @lookup  NULL when nobody waits for the answer any more; the child may still be at it */
struct lookup_slot {
	struct lookups *lookups;
	bool taken;
	uint64_t id;
	uint64_t job;
	struct lookup *lookup;
	struct event timer;
};

struct lookups {
	int fd; /* owned */
	struct event readable;
	struct lookup *first;
	struct lookup *last;
	struct lookup_slot slots[LIMIT_EGRESS_LOOKUPS];
	void (*on_gone)(void *arg); /* the resolver process ended */
	void *arg;
};

void lookups_init_take(struct lookups *lookups, struct event_base *base, int fd,
		       void (*on_gone)(void *arg), void *arg);
void lookups_deinit(struct lookups *lookups);

/* Look NAME up for JOB; DONE is called later, once, from the event loop, unless it is cancelled. */
void lookup_start(struct lookups *lookups, struct lookup *lookup, uint64_t job, const char *name,
		  lookup_done done, void *arg);
void lookup_cancel(struct lookups *lookups, struct lookup *lookup); /* never started: fine */

#endif
