/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/egress/lookup.h"

#include <errno.h>
#include <event2/event.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/egress/resolver.h"

static void pump(struct lookups *lookups);

static void queue_remove(struct lookups *lookups, struct lookup *lookup)
{
	if (lookup->prev)
		lookup->prev->next = lookup->next;
	else
		lookups->first = lookup->next;
	if (lookup->next)
		lookup->next->prev = lookup->prev;
	else
		lookups->last = lookup->prev;
	lookup->prev = lookup->next = NULL;
	lookup->waiting = false;
}

/* Free SLOT, tell who waits, and start the next. */
static void finish(struct lookup_slot *slot, enum net_reason reason,
		   const struct netaddr *addresses, size_t count)
{
	struct lookup *lookup = slot->lookup;
	struct lookups *lookups = slot->lookups;

	slot->taken = false;
	slot->lookup = NULL;
	(void)event_del(&slot->timer);
	if (lookup) {
		lookup->under_way = false;
		lookup->done(reason, addresses, count, lookup->arg);
	}
	pump(lookups);
}

static void on_timeout(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	finish(arg, NET_RESOLVE_TIMEOUT, NULL, 0);
}

static void take_answer(struct lookups *lookups, const struct resolver_answer *answer)
{
	bool good = answer->reason == NET_ALLOWED && answer->count > 0 &&
		    answer->count <= LIMIT_EGRESS_ADDRESSES;

	for (size_t i = 0; i < LIMIT_EGRESS_LOOKUPS; i++) {
		struct lookup_slot *slot = &lookups->slots[i];

		if (!slot->taken || slot->id != answer->id)
			continue;
		finish(slot, good ? NET_ALLOWED : NET_RESOLVE_FAILED, answer->addresses,
		       good ? answer->count : 0);
		return;
	}
}

static void on_readable(evutil_socket_t fd, short what, void *arg)
{
	struct lookups *lookups = arg;
	struct resolver_answer answer;
	ssize_t got = recv(fd, &answer, sizeof(answer), MSG_DONTWAIT);

	(void)what;
	if (got == (ssize_t)sizeof(answer))
		take_answer(lookups, &answer);
	else if (got >= 0 || (errno != EAGAIN && errno != EINTR))
		lookups->on_gone(lookups->arg);
}

void lookups_init_take(struct lookups *lookups, struct event_base *base, int fd,
		       void (*on_gone)(void *arg), void *arg)
{
	memset(lookups, 0, sizeof(*lookups));
	lookups->fd = fd;
	lookups->on_gone = on_gone;
	lookups->arg = arg;
	(void)event_assign(&lookups->readable, base, fd, EV_READ | EV_PERSIST, on_readable,
			   lookups);
	(void)event_add(&lookups->readable, NULL);
	for (size_t i = 0; i < LIMIT_EGRESS_LOOKUPS; i++) {
		lookups->slots[i].lookups = lookups;
		(void)evtimer_assign(&lookups->slots[i].timer, base, on_timeout,
				     &lookups->slots[i]);
	}
}

void lookups_deinit(struct lookups *lookups)
{
	if (lookups->fd < 0 || !event_initialized(&lookups->readable))
		return;
	(void)event_del(&lookups->readable);
	for (size_t i = 0; i < LIMIT_EGRESS_LOOKUPS; i++)
		(void)event_del(&lookups->slots[i].timer);
	(void)close(lookups->fd);
	lookups->fd = -1;
}

static struct lookup_slot *free_slot(struct lookups *lookups)
{
	for (size_t i = 0; i < LIMIT_EGRESS_LOOKUPS; i++)
		if (!lookups->slots[i].taken)
			return &lookups->slots[i];
	return NULL;
}

static unsigned under_way_of(const struct lookups *lookups, uint64_t job)
{
	unsigned count = 0;

	for (size_t i = 0; i < LIMIT_EGRESS_LOOKUPS; i++)
		if (lookups->slots[i].taken && lookups->slots[i].job == job)
			count++;
	return count;
}

static void send_query(struct lookup_slot *slot, struct lookup *lookup)
{
	/* A second longer than the child's own alarm: then it is gone, and its slot is free. */
	const struct timeval limit = { .tv_sec = LIMIT_RESOLVE_MS / 1000 + 1 };
	struct resolver_query query = { .id = 0 };

	(void)getrandom(&query.id, sizeof(query.id), 0);
	(void)snprintf(query.name, sizeof(query.name), "%s", lookup->name);
	slot->taken = true;
	slot->id = query.id;
	slot->job = lookup->job;
	slot->lookup = lookup;
	lookup->under_way = true;
	(void)event_add(&slot->timer, &limit);
	/* At most LIMIT_EGRESS_LOOKUPS are ever in the socket, so it takes them. */
	(void)send(slot->lookups->fd, &query, sizeof(query), MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void pump(struct lookups *lookups)
{
	struct lookup *next = NULL;

	for (struct lookup *at = lookups->first; at; at = next) {
		struct lookup_slot *slot = free_slot(lookups);

		next = at->next;
		if (!slot)
			return;
		if (under_way_of(lookups, at->job) >= LIMIT_EGRESS_LOOKUPS_PER_JOB)
			continue;
		queue_remove(lookups, at);
		send_query(slot, at);
	}
}

void lookup_start(struct lookups *lookups, struct lookup *lookup, uint64_t job, const char *name,
		  lookup_done done, void *arg)
{
	*lookup = (struct lookup){ .prev = lookups->last,
				   .waiting = true,
				   .job = job,
				   .name = name,
				   .done = done,
				   .arg = arg };
	if (lookups->last)
		lookups->last->next = lookup;
	else
		lookups->first = lookup;
	lookups->last = lookup;
	pump(lookups);
}

void lookup_cancel(struct lookups *lookups, struct lookup *lookup)
{
	if (lookup->waiting)
		queue_remove(lookups, lookup);
	for (size_t i = 0; lookup->under_way && i < LIMIT_EGRESS_LOOKUPS; i++) {
		if (lookups->slots[i].lookup == lookup) {
			lookups->slots[i].lookup = NULL;
			lookup->under_way = false;
		}
	}
}
