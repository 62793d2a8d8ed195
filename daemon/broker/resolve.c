/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/broker/resolve.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/scope.h"

static void dispatch(struct resolver_pool *pool);

static struct lookup *lookup_free(struct lookup *lookup)
{
	if (lookup == NULL)
		return NULL;
	if (lookup->timer != NULL)
		event_free(lookup->timer);
	buf_deinit(&lookup->request);
	free(lookup);
	return NULL;
}

/* The answer, exactly once. The lookup is gone afterwards. */
static void lookup_finish(struct lookup *lookup, const void *values, size_t size,
			  const struct error *err)
{
	lookup_done_fn *done = lookup->done;
	void *arg = lookup->arg;

	(void)lookup_free(lookup);
	if (done != NULL)
		done(arg, values, size, err);
}

/* ---- one child ------------------------------------------------------------------------- */

static void slot_close(struct resolver_slot *slot)
{
	if (slot->readable != NULL)
		event_free(slot->readable);
	if (slot->writable != NULL)
		event_free(slot->writable);
	slot->readable = NULL;
	slot->writable = NULL;
	auto_close(&slot->fd);
	slot->fd = -1;
	buf_deinit(&slot->answer);
}

/* Whether the child is gone; its place is then free. */
static bool slot_reap(struct resolver_slot *slot)
{
	pid_t pid = waitpid(slot->pid, NULL, WNOHANG);

	if (pid == 0 || (pid < 0 && errno == EINTR))
		return false;
	slot->state = RESOLVER_NONE;
	slot->pid = 0;
	return true;
}

/* Give the child up: it is killed and, if that has no effect now, counted as stuck. */
static struct lookup *slot_abandon(struct resolver_slot *slot)
{
	struct lookup *lookup = slot->lookup;

	slot->lookup = NULL;
	slot_close(slot);
	(void)kill(slot->pid, SIGKILL);
	slot->state = RESOLVER_STUCK;
	(void)slot_reap(slot);
	if (lookup != NULL)
		lookup->slot = NULL;
	return lookup;
}

/* Whoever asked is served by another child, once: it may have died long before it was asked. */
static void slot_died(struct resolver_slot *slot, const struct error *err)
{
	struct lookup *lookup = slot_abandon(slot);

	if (lookup != NULL && lookup->done != NULL && !lookup->again) {
		lookup->again = true;
		lookup->sent = 0;
		lookup->next = slot->pool->first;
		slot->pool->first = lookup;
	} else if (lookup != NULL) {
		lookup_finish(lookup, NULL, 0, err);
	}
}

/* Send what the socket takes. */
static int slot_send(struct resolver_slot *slot, struct error *err)
{
	struct lookup *lookup = slot->lookup;

	while (lookup != NULL && lookup->sent < lookup->request.size) {
		ssize_t n = send(slot->fd, lookup->request.data + lookup->sent,
				 lookup->request.size - lookup->sent, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n >= 0) {
			lookup->sent += (size_t)n;
			continue;
		}
		if (errno == EINTR)
			continue;
		if (errno != EAGAIN)
			return error_set(err, ERR_SYSTEM, errno, "ask a resolver");
		if (slot->writable != NULL && event_add(slot->writable, NULL) < 0)
			return error_set(err, ERR_NOMEM, 0, "event");
		return 0;
	}
	return 0;
}

/*
 * Read what is there. Returns 1 when the answer is complete, 0 when more must come; fails when the
 * child is of no more use.
 */
static int slot_receive(struct resolver_slot *slot, struct error *err)
{
	struct lookup_header header;

	for (;;) {
		size_t wanted = sizeof(header);
		void *room;
		ssize_t n;

		if (slot->answer.size >= sizeof(header)) {
			memcpy(&header, slot->answer.data, sizeof(header));
			if (slot->lookup == NULL || header.size < sizeof(header) ||
			    header.size > RESOLVER_MESSAGE_BYTES || header.id != slot->lookup->id)
				return error_set(err, ERR_SYSTEM, 0, "a resolver answers nonsense");
			if (slot->answer.size == header.size)
				return 1;
			wanted = header.size;
		}
		room = buf_reserve(&slot->answer, wanted - slot->answer.size);
		if (room == NULL)
			return error_set(err, ERR_NOMEM, ENOMEM, "an answer of a resolver");
		n = recv(slot->fd, room, wanted - slot->answer.size, MSG_DONTWAIT);
		if (n > 0) {
			buf_commit(&slot->answer, (size_t)n);
			continue;
		}
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return 0;
		return error_set(err, ERR_SYSTEM, n < 0 ? errno : 0, "a resolver died");
	}
}

/* The complete answer in slot->answer goes to whoever asked; the child is idle again. */
static void slot_deliver(struct resolver_slot *slot)
{
	struct lookup *lookup = slot->lookup;
	struct buf answer = slot->answer;
	struct error err = ERROR_INIT;
	struct lookup_header header;
	const char *values = answer.data + sizeof(header);
	size_t size = answer.size - sizeof(header);

	memcpy(&header, answer.data, sizeof(header));
	buf_init(&slot->answer, RESOLVER_MESSAGE_BYTES);
	slot->lookup = NULL;
	slot->state = RESOLVER_IDLE;
	if (header.result < 0) {
		struct unpack in = UNPACK_INIT(values, size);
		const char *message = unpack_string(&in);

		/* The message has errno's text already. */
		(void)error_set(&err, (enum error_kind) - header.result, 0, "%s", message);
		err.errnum = header.errnum;
	}
	lookup_finish(lookup, values, size, header.result < 0 ? &err : NULL);
	if (slot->state == RESOLVER_IDLE && slot->answer.data == NULL && answer.capacity < 65536) {
		buf_clear(&answer);
		slot->answer = answer;
	} else {
		buf_deinit(&answer);
	}
}

static void slot_readable(evutil_socket_t fd, short what, void *arg)
{
	struct resolver_slot *slot = arg;
	struct resolver_pool *pool = slot->pool;
	struct error err = ERROR_INIT;
	int r = slot_receive(slot, &err);

	(void)fd;
	(void)what;
	if (r < 0)
		slot_died(slot, &err);
	else if (r > 0)
		slot_deliver(slot);
	dispatch(pool);
}

static void slot_writable(evutil_socket_t fd, short what, void *arg)
{
	struct resolver_slot *slot = arg;
	struct error err = ERROR_INIT;

	(void)fd;
	(void)what;
	if (slot_send(slot, &err) < 0) {
		slot_died(slot, &err);
		dispatch(slot->pool);
	}
}

static int slot_attach(struct resolver_slot *slot, struct error *err)
{
	struct event_base *base = slot->pool->base;

	if (base == NULL)
		return 0;
	slot->readable = event_new(base, slot->fd, EV_READ | EV_PERSIST, slot_readable, slot);
	slot->writable = event_new(base, slot->fd, EV_WRITE, slot_writable, slot);
	if (slot->readable == NULL || slot->writable == NULL || event_add(slot->readable, NULL) < 0)
		return error_set(err, ERR_NOMEM, 0, "event");
	return 0;
}

static int slot_fill(struct resolver_pool *pool, struct resolver_slot *slot, struct error *err)
{
	int r;

	slot->pool = pool;
	slot->fd = -1;
	slot->lookup = NULL;
	buf_init(&slot->answer, RESOLVER_MESSAGE_BYTES);
	r = resolver_fork(&slot->fd, &slot->pid, err);
	if (r < 0)
		return r;
	slot->state = RESOLVER_IDLE;
	r = slot_attach(slot, err);
	if (r < 0)
		(void)slot_abandon(slot);
	return r;
}

/* ---- the pool -------------------------------------------------------------------------- */

unsigned resolver_pool_stuck(const struct resolver_pool *pool)
{
	unsigned count = 0;

	for (size_t i = 0; i < RESOLVERS_MAX; i++)
		count += pool->slots[i].state == RESOLVER_STUCK;
	return count;
}

static void pool_reap(struct resolver_pool *pool)
{
	for (size_t i = 0; i < RESOLVERS_MAX; i++) {
		if (pool->slots[i].state == RESOLVER_STUCK)
			(void)slot_reap(&pool->slots[i]);
	}
}

/* An idle child; with MORE set one is forked if need be and possible. */
static struct resolver_slot *pool_idle(struct resolver_pool *pool, bool more, struct error *err)
{
	struct resolver_slot *empty = NULL;
	unsigned living = 0;

	for (size_t i = 0; i < RESOLVERS_MAX; i++) {
		struct resolver_slot *slot = &pool->slots[i];

		if (slot->state == RESOLVER_IDLE)
			return slot;
		living += slot->state == RESOLVER_BUSY;
		if (slot->state == RESOLVER_NONE && empty == NULL)
			empty = slot;
	}
	if (empty == NULL || (living >= RESOLVERS_READY && !more))
		return NULL;
	return slot_fill(pool, empty, err) < 0 ? NULL : empty;
}

static void slot_begin(struct resolver_slot *slot, struct lookup *lookup)
{
	struct error err = ERROR_INIT;

	slot->state = RESOLVER_BUSY;
	slot->lookup = lookup;
	lookup->slot = slot;
	/* A dead child is noticed by its end of file: nothing is called back from here. */
	if (slot_send(slot, &err) < 0)
		(void)shutdown(slot->fd, SHUT_RDWR);
}

static void pool_serve(struct resolver_pool *pool, bool more)
{
	static const struct timeval patience = {
		.tv_sec = RESOLVE_PATIENCE_MS / 1000,
		.tv_usec = (suseconds_t)(RESOLVE_PATIENCE_MS % 1000) * 1000,
	};

	while (pool->first != NULL) {
		struct lookup *lookup = pool->first;
		struct resolver_slot *slot = pool_idle(pool, more, NULL);

		if (slot == NULL)
			break;
		pool->first = lookup->next;
		lookup->next = NULL;
		slot_begin(slot, lookup);
		more = false;
	}
	if (pool->patience == NULL)
		return;
	if (pool->first == NULL)
		(void)event_del(pool->patience);
	else if (!event_pending(pool->patience, EV_TIMEOUT, NULL))
		(void)event_add(pool->patience, &patience);
}

static void dispatch(struct resolver_pool *pool)
{
	pool_serve(pool, false);
}

static void pool_impatient(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	pool_serve(arg, true);
}

static void pool_on_child(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	pool_reap(arg);
	dispatch(arg);
}

int resolver_pool_init(struct resolver_pool *pool, struct error *err)
{
	memset(pool, 0, sizeof(*pool));
	pool->timeout_ms = LIMIT_RESOLVE_MS;
	for (size_t i = 0; i < RESOLVERS_MAX; i++)
		pool->slots[i].fd = -1;
	for (size_t i = 0; i < RESOLVERS_READY; i++) {
		int r = slot_fill(pool, &pool->slots[i], err);

		if (r < 0)
			return r;
	}
	return 0;
}

int resolver_pool_attach(struct resolver_pool *pool, struct event_base *base, struct error *err)
{
	pool->base = base;
	pool->patience = event_new(base, -1, 0, pool_impatient, pool);
	pool->reaper = evsignal_new(base, SIGCHLD, pool_on_child, pool);
	if (pool->patience == NULL || pool->reaper == NULL || event_add(pool->reaper, NULL) < 0)
		return error_set(err, ERR_NOMEM, 0, "event");
	for (size_t i = 0; i < RESOLVERS_MAX; i++) {
		int r;

		if (pool->slots[i].state != RESOLVER_IDLE)
			continue;
		r = slot_attach(&pool->slots[i], err);
		if (r < 0)
			return r;
	}
	return 0;
}

void resolver_pool_deinit(struct resolver_pool *pool)
{
	if (pool == NULL)
		return;
	while (pool->first != NULL) {
		struct lookup *lookup = pool->first;

		pool->first = lookup->next;
		(void)lookup_free(lookup);
	}
	for (size_t i = 0; i < RESOLVERS_MAX; i++) {
		struct resolver_slot *slot = &pool->slots[i];

		if (slot->state == RESOLVER_IDLE || slot->state == RESOLVER_BUSY)
			(void)lookup_free(slot_abandon(slot));
		if (slot->state == RESOLVER_STUCK && !slot_reap(slot)) {
			/* Killed a moment ago: usually gone at once, never waited for beyond that. */
			(void)poll(NULL, 0, 10);
			(void)slot_reap(slot);
		}
	}
	if (pool->patience != NULL)
		event_free(pool->patience);
	if (pool->reaper != NULL)
		event_free(pool->reaper);
	pool->patience = NULL;
	pool->reaper = NULL;
}

/* ---- asking ---------------------------------------------------------------------------- */

static void lookup_expired(evutil_socket_t fd, short what, void *arg)
{
	struct lookup *lookup = arg;
	struct resolver_pool *pool = lookup->pool;
	struct error err = ERROR_INIT;

	(void)fd;
	(void)what;
	if (lookup->slot != NULL) {
		(void)slot_abandon(lookup->slot);
		(void)error_set(&err, ERR_TIMEOUT, 0,
				"look up paths: no answer in %u ms; a file system hangs",
				pool->timeout_ms);
	} else {
		struct lookup **link = &pool->first;

		while (*link != lookup)
			link = &(*link)->next;
		*link = lookup->next;
		(void)error_set(&err, ERR_RESOLVER_BUSY, 0,
				"look up paths: all look-ups of this user hang");
	}
	lookup_finish(lookup, NULL, 0, &err);
	dispatch(pool);
}

static int lookup_new(struct resolver_pool *pool, enum lookup_kind kind, const struct buf *values,
		      struct lookup **ret_lookup, struct error *err)
{
	struct lookup *lookup;
	struct lookup_header header = { .kind = kind };
	int r;

	pool_reap(pool);
	if (resolver_pool_stuck(pool) >= LIMIT_STUCK_PER_UID)
		return error_set(err, ERR_RESOLVER_BUSY, 0,
				 "%u path look-ups hang on file systems that do not answer",
				 resolver_pool_stuck(pool));
	r = buf_check(values, "a look-up", err);
	if (r < 0)
		return r;
	if (values->size > RESOLVER_MESSAGE_BYTES - sizeof(header))
		return error_set(err, ERR_NOMEM, 0, "too many paths to look up");
	lookup = calloc(1, sizeof(*lookup));
	if (lookup == NULL)
		return error_set(err, ERR_NOMEM, ENOMEM, "look up paths");
	lookup->pool = pool;
	lookup->id = ++pool->next_id;
	header.id = lookup->id;
	header.size = (uint32_t)(sizeof(header) + values->size);
	buf_init(&lookup->request, RESOLVER_MESSAGE_BYTES);
	(void)buf_add(&lookup->request, &header, sizeof(header));
	(void)buf_add(&lookup->request, values->data != NULL ? values->data : "", values->size);
	r = buf_check(&lookup->request, "a look-up", err);
	if (r < 0)
		lookup = lookup_free(lookup);
	*ret_lookup = lookup;
	return r;
}

int resolver_pool_ask(struct resolver_pool *pool, enum lookup_kind kind, const struct buf *values,
		      lookup_done_fn *done, void *arg, struct lookup **ret_lookup,
		      struct error *err)
{
	struct timeval timeout = {
		.tv_sec = pool->timeout_ms / 1000,
		.tv_usec = (suseconds_t)(pool->timeout_ms % 1000) * 1000,
	};
	struct lookup *lookup = NULL;
	struct lookup **last = &pool->first;
	int r = lookup_new(pool, kind, values, &lookup, err);

	if (r < 0)
		return r;
	lookup->done = done;
	lookup->arg = arg;
	lookup->timer = event_new(pool->base, -1, 0, lookup_expired, lookup);
	if (lookup->timer == NULL || event_add(lookup->timer, &timeout) < 0) {
		(void)lookup_free(lookup);
		return error_set(err, ERR_NOMEM, 0, "event");
	}
	while (*last != NULL)
		last = &(*last)->next;
	*last = lookup;
	*ret_lookup = lookup;
	dispatch(pool);
	return 0;
}

void lookup_cancel(struct lookup *lookup)
{
	struct lookup **link;

	if (lookup == NULL)
		return;
	lookup->done = NULL;
	if (lookup->slot != NULL)
		return; /* the child is busy with it until it answers or the time is up */
	link = &lookup->pool->first;
	while (*link != lookup)
		link = &(*link)->next;
	*link = lookup->next;
	(void)lookup_free(lookup);
}

/* ---- at start, without an event loop --------------------------------------------------- */

static uint64_t now_ms(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

struct call_result {
	struct buf *values;
	struct error *err;
	int result;
};

static void call_done(void *arg, const void *values, size_t size, const struct error *err)
{
	struct call_result *call = arg;

	if (err == NULL) {
		call->result = buf_add(call->values, values, size);
	} else {
		call->result = -(int)err->kind;
		if (call->err != NULL)
			*call->err = *err;
	}
}

static int call_wait(struct resolver_slot *slot, uint64_t deadline, struct error *err)
{
	for (;;) {
		struct pollfd pfd = { .fd = slot->fd, .events = POLLIN };
		uint64_t now = now_ms();
		int r = slot_send(slot, err);

		if (r == 0)
			r = slot_receive(slot, err);
		if (r != 0)
			return r;
		if (now >= deadline)
			return error_set(err, ERR_TIMEOUT, 0, "look up paths: a file system hangs");
		if (slot->lookup->sent < slot->lookup->request.size)
			pfd.events |= POLLOUT;
		(void)poll(&pfd, 1, (int)(deadline - now));
	}
}

int resolver_pool_call(struct resolver_pool *pool, enum lookup_kind kind, const struct buf *values,
		       struct buf *ret_values, struct error *err)
{
	struct call_result call = { .values = ret_values, .err = err };
	struct resolver_slot *slot;
	struct lookup *lookup = NULL;
	int r = lookup_new(pool, kind, values, &lookup, err);

	if (r < 0)
		return r;
	slot = pool_idle(pool, true, err);
	if (slot == NULL) {
		(void)lookup_free(lookup);
		return error_set(err, ERR_RESOLVER_BUSY, 0, "no resolver is free");
	}
	lookup->done = call_done;
	lookup->arg = &call;
	slot_begin(slot, lookup);
	r = call_wait(slot, now_ms() + pool->timeout_ms, err);
	if (r < 0) {
		(void)lookup_free(slot_abandon(slot));
		return r;
	}
	slot_deliver(slot);
	return call.result;
}
