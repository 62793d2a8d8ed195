/* SPDX-License-Identifier: Apache-2.0 */
#include "client/conn.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/clock.h"
#include "client/hint.h"
#include "client/jsontext.h"
#include "common/scope.h"

/* ---- events -------------------------------------------------------------------------- */

struct conn_event *conn_event_free(struct conn_event *event)
{
	if (!event)
		return NULL;
	if (event->request == 0)
		wait_result_deinit(&event->exited);
	else if (!event->failed && event->method != METHOD_NONE)
		method_result_deinit(event->method, &event->result);
	if (event->lifeline_fd >= 0)
		(void)close(event->lifeline_fd);
	free(event->json);
	free(event);
	return NULL;
}

static struct conn_event *event_new(void)
{
	struct conn_event *event = calloc(1, sizeof(*event));

	if (event)
		event->lifeline_fd = -1;
	return event;
}

static void queue_event(struct conn *conn, struct conn_event *event)
{
	if (conn->last)
		conn->last->next = event;
	else
		conn->first = event;
	conn->last = event;
}

/* Take EVENT, whose predecessor is BEFORE (NULL: it is the first), out of the queue. */
static struct conn_event *unqueue(struct conn *conn, struct conn_event *before,
				  struct conn_event *event)
{
	if (before)
		before->next = event->next;
	else
		conn->first = event->next;
	if (conn->last == event)
		conn->last = before;
	event->next = NULL;

	if (event->request == 0)
		for (size_t i = 0; i < conn->own_count; i++)
			if (conn->own[i].job == event->exited.job) {
				conn->own[i] = conn->own[--conn->own_count];
				break;
			}
	return event;
}

struct conn_event *conn_next(struct conn *conn)
{
	return conn->first ? unqueue(conn, NULL, conn->first) : NULL;
}

bool conn_owns(const struct conn *conn, uint64_t job)
{
	for (size_t i = 0; i < conn->own_count; i++)
		if (conn->own[i].job == job)
			return true;
	return false;
}

static int remember_own(struct conn *conn, uint64_t job, const char *cookie, struct error *err)
{
	if (conn->own_count == conn->own_capacity) {
		size_t capacity = conn->own_capacity ? 2 * conn->own_capacity : 8;
		struct conn_own *grown = reallocarray(conn->own, capacity, sizeof(*grown));

		if (!grown)
			return error_set(err, ERR_NOMEM, 0, "remember a job");
		conn->own = grown;
		conn->own_capacity = capacity;
	}
	conn->own[conn->own_count].job = job;
	(void)snprintf(conn->own[conn->own_count].cookie, sizeof(conn->own->cookie), "%s",
		       cookie ? cookie : "");
	conn->own_count++;
	return 0;
}

/* ---- requests ------------------------------------------------------------------------ */

static struct conn_pending *pending_find(struct conn *conn, uint64_t request)
{
	for (struct conn_pending *p = conn->pending; p; p = p->next)
		if (p->request == request)
			return p;
	return NULL;
}

/* Out of the list, and freed, but for the lifeline, which is the caller's. */
static void pending_remove(struct conn *conn, struct conn_pending *pending, int *ret_lifeline_fd)
{
	struct conn_pending **link = &conn->pending;

	while (*link != pending)
		link = &(*link)->next;
	*link = pending->next;
	*ret_lifeline_fd = pending->lifeline_fd;
	free(pending);
}

/* The connection is finished: every request under way fails for the same reason. */
static int conn_fail(struct conn *conn, const struct error *err, struct fsbox_error *out)
{
	if (!conn->failed) {
		conn->failed = true;
		(void)hint_fill(&conn->death, err, NULL);
	}

	while (conn->pending) {
		struct conn_event *event = event_new();
		struct conn_pending *pending = conn->pending;
		bool abandoned = pending->abandoned || pending->own != 0;
		int lifeline_fd = -1;

		if (event) {
			event->request = pending->request;
			event->method = pending->method;
			event->failed = true;
			event->error = conn->death;
		}
		pending_remove(conn, pending, &lifeline_fd);
		if (event && !abandoned) {
			/* The job may be running: its lifeline ends it, for nobody can name it. */
			event->lifeline_fd = lifeline_fd;
			queue_event(conn, event);
		} else {
			if (lifeline_fd >= 0)
				(void)close(lifeline_fd);
			free(event);
		}
	}

	if (out)
		*out = conn->death;
	return -1;
}

static int send_payload(struct conn *conn, const struct buf *payload, struct fdset *fds,
			enum method method, int lifeline_fd, uint64_t request,
			struct fsbox_error *err)
{
	struct conn_pending *pending = calloc(1, sizeof(*pending));
	struct error fail = ERROR_INIT;
	int r = 0;

	if (!pending) {
		fdset_deinit(fds);
		if (lifeline_fd >= 0)
			(void)close(lifeline_fd);
		(void)error_set(&fail, ERR_NOMEM, 0, "send a request");
		return hint_fill(err, &fail, NULL);
	}
	*pending = (struct conn_pending){
		.request = request,
		.method = method,
		.lifeline_fd = lifeline_fd,
		.next = conn->pending,
	};
	conn->pending = pending;

	r = channel_send(&conn->channel, payload->data, payload->size, fds, &fail);
	if (r < 0) {
		pending_remove(conn, pending, &lifeline_fd);
		if (lifeline_fd >= 0)
			(void)close(lifeline_fd);
		/* Too large is this request's fault alone: not a byte of it was sent. */
		if (r == -ERR_FRAME_TOO_LARGE || r == -ERR_QUOTA_EXCEEDED)
			return hint_fill(err, &fail, NULL);
		/* A daemon that hung up may have said why: that is the better reason. */
		if (conn_process(conn, err) < 0)
			return -1;
		return conn_fail(conn, &fail, err);
	}
	return 0;
}

int conn_send(struct conn *conn, enum method method, const union method_params *params,
	      int lifeline_fd, uint64_t *ret_request, struct fsbox_error *err)
{
	AUTO(buf_deinit) struct buf payload = BUF_INIT(LIMIT_FRAME_BYTES);
	AUTO(fdset_deinit) struct fdset fds = FDSET_INIT;
	AUTO(auto_close) int lifeline = lifeline_fd;
	struct message_id id = MESSAGE_ID((int64_t)conn->next_request);
	struct error fail = ERROR_INIT;
	uint64_t request = conn->next_request;

	if (conn->failed) {
		if (err)
			*err = conn->death;
		return -1;
	}
	if (message_encode_request(&payload, &fds, &id, method, params, &fail) < 0)
		return hint_fill(err, &fail, NULL);

	conn->next_request++;
	if (send_payload(conn, &payload, &fds, method, steal_fd(&lifeline), request, err) < 0)
		return -1;
	*ret_request = request;
	return 0;
}

int conn_send_text(struct conn *conn, const char *method, const char *params, uint64_t *ret_request,
		   struct fsbox_error *err)
{
	AUTO(buf_deinit) struct buf payload = BUF_INIT(LIMIT_FRAME_BYTES);
	AUTO(fdset_deinit) struct fdset fds = FDSET_INIT;
	struct error fail = ERROR_INIT;
	uint64_t request = conn->next_request;

	if (conn->failed) {
		if (err)
			*err = conn->death;
		return -1;
	}
	if (jsontext_request(&payload, request, method, params, &fail) < 0)
		return hint_fill(err, &fail, NULL);

	conn->next_request++;
	if (send_payload(conn, &payload, &fds, METHOD_NONE, -1, request, err) < 0)
		return -1;
	*ret_request = request;
	return 0;
}

/* ---- answers ------------------------------------------------------------------------- */

static void fill_reply_error(struct fsbox_error *out, const struct error_reply *reply)
{
	struct error err = ERROR_INIT;

	(void)error_reply_to_error(reply, &err);
	(void)hint_fill(out, &err, reply->hint);
	if (reply->stage) {
		size_t length = strnlen(reply->stage, sizeof(out->stage) - 1);

		memcpy(out->stage, reply->stage, length);
		out->stage[length] = '\0';
	}
}

/* Fill EVENT, the answer to a request for METHOD, from MESSAGE. */
static int read_answer(struct conn *conn, struct conn_event *event, struct message *message,
		       struct error *err)
{
	int r = 0;

	if (message->kind == MESSAGE_ERROR) {
		event->failed = true;
		fill_reply_error(&event->error, &message->error);
		return 0;
	}

	/* Until it is read there is nothing of a result to release. */
	event->failed = true;
	if (event->method == METHOD_NONE || conn->want_text)
		r = jsontext_of(&event->json, message->body, err);
	if (r == 0 && event->method != METHOD_NONE)
		r = message_decode_result(message, event->method, &event->result, err);
	if (r < 0)
		return r;
	event->failed = false;

	if (event->method == METHOD_SPAWN && event->result.spawn.job != 0)
		return remember_own(conn, event->result.spawn.job, event->result.spawn.cookie, err);
	return 0;
}

/*
 * EVENT, the answer about JOB of an earlier connection, becomes that job's end. What nobody can answer is
 * lost; a daemon that is about to go is asked again by whoever follows (negative).
 */
static int make_exited(struct conn_event *event, uint64_t job, struct error *err)
{
	if (event->failed && strcmp(event->error.kind, error_name(ERR_UNREACHABLE)) == 0)
		return error_set(err, ERR_UNREACHABLE, 0, "the daemon is going");
	if (event->failed) {
		memset(&event->exited, 0, sizeof(event->exited));
		event->exited.reason = EXIT_LOST;
	} else {
		event->exited = event->result.wait;
	}
	event->exited.job = job;
	event->failed = false;
	event->method = METHOD_NONE;
	event->request = 0;
	return 0;
}

static int take_answer(struct conn *conn, struct message *message, struct error *err)
{
	struct conn_pending *pending = NULL;
	struct conn_event *event = NULL;
	bool abandoned = false;
	int r = 0;

	if (message->id.kind == MESSAGE_ID_NONE && message->kind == MESSAGE_ERROR) {
		/* About no request of ours: the daemon takes leave, and says why. */
		(void)fill_reply_error(&conn->death, &message->error);
		conn->failed = true;
		return error_reply_to_error(&message->error, err);
	}
	if (message->id.kind == MESSAGE_ID_NUMBER && message->id.number > 0)
		pending = pending_find(conn, (uint64_t)message->id.number);
	if (!pending)
		return error_set(err, ERR_INVALID, 0, "the daemon answered what nobody asked");

	event = event_new();
	if (!event)
		return error_set(err, ERR_NOMEM, 0, "take an answer");
	event->request = pending->request;
	event->method = pending->method;
	abandoned = pending->abandoned;

	r = read_answer(conn, event, message, err);
	if (r < 0) {
		error_prefix(err, "the daemon's answer cannot be read");
		(void)conn_event_free(event);
		return r; /* the request stays pending, and fails with the connection */
	}
	if (pending->own != 0 && make_exited(event, pending->own, err) < 0) {
		(void)conn_event_free(event);
		return -(int)ERR_UNREACHABLE;
	}
	pending_remove(conn, pending, &event->lifeline_fd);
	queue_event(conn, event);
	if (abandoned) {
		/* Only ever the newest event: take it out again, so that nothing of it is left. */
		struct conn_event *before = conn->first == event ? NULL : conn->first;

		while (before && before->next != event)
			before = before->next;
		(void)conn_event_free(unqueue(conn, before, event));
	}
	return 0;
}

static int take_exited(struct conn *conn, struct message *message, struct error *err)
{
	struct conn_event *event = event_new();
	int r = 0;

	if (!event)
		return error_set(err, ERR_NOMEM, 0, "take an event");
	r = message_decode_exited(message, &event->exited, err);
	if (r < 0) {
		error_prefix(err, "the daemon's event cannot be read");
		free(event);
		return r;
	}
	queue_event(conn, event);
	return 0;
}

static int take_frame(struct conn *conn, struct channel_frame *frame, struct error *err)
{
	struct message message = { .kind = MESSAGE_RESULT };
	int r = message_parse(&message, buf_text(&frame->payload), frame->payload.size, &frame->fds,
			      err);

	if (r < 0) {
		error_prefix(err, "the daemon's answer cannot be read");
	} else {
		switch (message.kind) {
		case MESSAGE_RESULT:
		case MESSAGE_ERROR:
			r = take_answer(conn, &message, err);
			break;
		case MESSAGE_EXITED:
			r = take_exited(conn, &message, err);
			break;
		case MESSAGE_REQUEST:
			r = error_set(err, ERR_INVALID, 0, "the daemon sent a request");
			break;
		}
	}
	message_deinit(&message);
	return r;
}

int conn_process(struct conn *conn, struct fsbox_error *err)
{
	struct error fail = ERROR_INIT;
	int r = 0;

	if (conn->failed)
		return conn_fail(conn, &fail, err);
	/* A peer that is gone may have left its last words: read before giving up. */
	(void)channel_flush(&conn->channel, &fail);

	for (;;) {
		struct channel_frame frame = CHANNEL_FRAME_INIT;

		r = channel_receive(&conn->channel, &frame, &fail);
		if (r <= 0)
			break;
		r = take_frame(conn, &frame, &fail);
		channel_frame_deinit(&frame);
		if (r < 0)
			break;
	}
	if (r == 0 && conn->channel.eof)
		r = error_set(&fail, ERR_UNREACHABLE, 0, "the daemon closed the connection");
	return r < 0 ? conn_fail(conn, &fail, err) : 0;
}

/* Whether its end waits to be taken. */
static bool has_ended(const struct conn *conn, uint64_t job)
{
	for (const struct conn_event *event = conn->first; event; event = event->next)
		if (event->request == 0 && event->exited.job == job)
			return true;
	return false;
}

int conn_resume(struct conn *conn, struct conn *broken, struct fsbox_error *err)
{
	conn->first = broken->first;
	conn->last = broken->last;
	broken->first = NULL;
	broken->last = NULL;
	conn->want_text = broken->want_text;
	conn->timeout_ms = broken->timeout_ms;
	conn->own = broken->own;
	conn->own_count = broken->own_count;
	conn->own_capacity = broken->own_capacity;
	broken->own = NULL;
	broken->own_count = 0;
	broken->own_capacity = 0;

	/* Numbers of requests are not used again: events of before may still be waited for. */
	conn->next_request = broken->next_request + conn->next_request;
	for (size_t i = 0; i < conn->own_count; i++) {
		struct conn_own *own = &conn->own[i];
		const union method_params params = {
			.wait = { .job = own->job, .cookie = own->cookie[0] ? own->cookie : NULL }
		};
		uint64_t request = 0;

		if (has_ended(conn, own->job))
			continue;
		if (conn_send(conn, METHOD_WAIT, &params, -1, &request, err) < 0)
			return -1;
		pending_find(conn, request)->own = own->job;
	}
	return 0;
}

/* ---- waiting ------------------------------------------------------------------------- */

/* Whether EVENT is what one waits for: the answer to REQUEST, or with REQUEST 0 the end of JOB. */
static bool event_matches(const struct conn_event *event, uint64_t request, uint64_t job)
{
	if (event->request != request)
		return false;
	return request != 0 || event->exited.job == job;
}

static struct conn_event *take_matching(struct conn *conn, uint64_t request, uint64_t job)
{
	struct conn_event *before = NULL;

	for (struct conn_event *event = conn->first; event; before = event, event = event->next)
		if (event_matches(event, request, job))
			return unqueue(conn, before, event);
	return NULL;
}

/* 1: the event is there; 0: the time is over; -1: there will be none. */
static int await_event(struct conn *conn, uint64_t request, uint64_t job, int timeout_ms,
		       struct conn_event **ret_event, struct fsbox_error *err)
{
	int64_t deadline_ms = clock_ms() + timeout_ms;

	for (;;) {
		struct pollfd entry = { .fd = conn->channel.fd, .events = POLLIN };
		int64_t left_ms = -1;
		bool dead = conn_process(conn, err) < 0;
		struct conn_event *event = take_matching(conn, request, job);

		if (event) {
			*ret_event = event;
			return 1;
		}
		if (dead)
			return -1;

		if (timeout_ms >= 0) {
			left_ms = deadline_ms - clock_ms();
			if (left_ms <= 0)
				return 0;
		}
		if (channel_wants_write(&conn->channel))
			entry.events |= POLLOUT;
		(void)poll(&entry, 1, (int)left_ms);
	}
}

int conn_await(struct conn *conn, uint64_t request, int timeout_ms, struct conn_event **ret_event,
	       struct fsbox_error *err)
{
	struct conn_event *event = NULL;
	struct error fail = ERROR_INIT;
	int r = await_event(conn, request, 0, timeout_ms, &event, err);

	if (r == 0) {
		struct conn_pending *pending = pending_find(conn, request);

		if (pending) {
			pending->abandoned = true;
			if (pending->lifeline_fd >= 0)
				(void)close(steal_fd(&pending->lifeline_fd));
		}
		(void)error_set(&fail, ERR_TIMEOUT, 0, "the daemon has not answered for %d.%d s",
				timeout_ms / 1000, timeout_ms % 1000 / 100);
		return hint_fill(err, &fail, NULL);
	}
	if (r < 0)
		return -1;

	if (event->failed) {
		if (err)
			*err = event->error;
		(void)conn_event_free(event);
		return -1;
	}
	*ret_event = event;
	return 0;
}

int conn_await_exited(struct conn *conn, uint64_t job, int timeout_ms,
		      struct conn_event **ret_event, struct fsbox_error *err)
{
	struct error fail = ERROR_INIT;
	int r = await_event(conn, 0, job, timeout_ms, ret_event, err);

	if (r > 0)
		return 0;
	if (r == 0) {
		(void)error_set(&fail, ERR_TIMEOUT, 0, "the job still runs");
		(void)hint_fill(err, &fail, NULL);
	}
	return -1;
}

int conn_request(struct conn *conn, enum method method, const union method_params *params,
		 struct conn_event **ret_event, struct fsbox_error *err)
{
	uint64_t request = 0;

	if (conn_send(conn, method, params, -1, &request, err) < 0)
		return -1;
	return conn_await(conn, request, conn->timeout_ms, ret_event, err);
}

struct conn *conn_free(struct conn *conn)
{
	if (!conn)
		return NULL;
	while (conn->first)
		(void)conn_event_free(conn_next(conn));
	while (conn->pending) {
		int lifeline_fd = -1;

		pending_remove(conn, conn->pending, &lifeline_fd);
		if (lifeline_fd >= 0)
			(void)close(lifeline_fd);
	}
	channel_deinit(&conn->channel);
	method_result_deinit(METHOD_HELLO, &conn->hello);
	free(conn->own);
	free(conn);
	return NULL;
}
