/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_CLIENT_CONN_H
#define FSBOX_CLIENT_CONN_H

/*
 * One connection to a daemon: frames out, events in. What libfsbox and fsboxctl stand on; the public
 * functions only change the form of what goes in and comes out.
 *
 * Errors are the public struct fsbox_error throughout, since the daemon's own hints and stages must
 * not be lost on the way.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/fsbox.h"
#include "client/locate.h"
#include "common/error.h"
#include "proto/json/message.h"
#include "proto/wire/channel.h"

/*
 * One thing that arrived; owned by who takes it out of the queue: conn_event_free().
 *
 * @request      of a reply: the request's number; 0: the notification `exited`
 * @method       of a reply: what was asked; METHOD_NONE for requests sent as text
 * @failed       the request failed: @error, and nothing of @result
 * @result       by @method
 * @json         the result as text: of requests sent as text, and of all with conn.want_text
 * @exited       of a notification
 * @lifeline_fd  of a spawn: our end of the job's lifeline, or -1
 */
struct conn_event {
	uint64_t request;
	enum method method;
	bool failed;
	struct fsbox_error error;
	union method_result result;
	char *json;
	struct wait_result exited;
	int lifeline_fd;
	struct conn_event *next; /* conn.first */
};

struct conn_event *conn_event_free(struct conn_event *event); /* returns NULL */

/* A request without an answer yet. */
struct conn_pending {
	uint64_t request;
	enum method method;
	bool abandoned; /* nobody waits any more: the answer is thrown away */
	uint64_t own;   /* of `wait` for a job of before: its answer is that job's end; else 0 */
	int lifeline_fd;
	struct conn_pending *next; /* conn.pending */
};

/* A job that has not ended; with the cookie another connection may ask for its end. */
struct conn_own {
	uint64_t job;
	char cookie[33];
};

/*
 * @location    where the daemon was found
 * @hello       what it said of itself, in its member of that name
 * @timeout_ms  for each answer
 * @want_text   keep every result as text too
 * @own         jobs of this connection that have not ended, @own_count of them
 * @first, @last  events not yet taken
 * @failed      the connection is of no more use, for the reason @death
 */
struct conn {
	struct channel channel;
	struct location location;
	union method_result hello;
	int timeout_ms;
	bool want_text;
	uint64_t next_request;
	struct conn_pending *pending;
	struct conn_own *own;
	size_t own_count;
	size_t own_capacity;
	struct conn_event *first;
	struct conn_event *last;
	bool failed;
	struct fsbox_error death;
};

/* See fsbox_open(). OPTIONS may be NULL. */
int conn_open(struct conn **ret_conn, const struct fsbox_options *options, struct fsbox_error *err);

/* The same for a connected socket that is known to be the daemon's; FD is taken in any case. */
int conn_open_take(struct conn **ret_conn, int fd, const char *client, int timeout_ms,
		   struct fsbox_error *err);

struct conn *conn_free(struct conn *conn); /* returns NULL */

/*
 * Send a request; its answer will be an event.
 *
 * @params       descriptors in it are duplicated
 * @lifeline_fd  kept with the request and handed over in its event; taken in any case; -1: none
 */
int conn_send(struct conn *conn, enum method method, const union method_params *params,
	      int lifeline_fd, uint64_t *ret_request, struct fsbox_error *err);

/* The same for a method by name, with params as JSON text (an object) or NULL. */
int conn_send_text(struct conn *conn, const char *method, const char *params, uint64_t *ret_request,
		   struct fsbox_error *err);

/*
 * CONN takes over what BROKEN has: events that were not taken, and the jobs that have not ended, for
 * whose ends it asks. BROKEN is of no more use afterwards, also on failure: then CONN is broken as well.
 */
int conn_resume(struct conn *conn, struct conn *broken, struct fsbox_error *err);

/* See fsbox_process(). */
int conn_process(struct conn *conn, struct fsbox_error *err);

/* The oldest event, out of the queue; NULL when there is none. */
struct conn_event *conn_next(struct conn *conn);

/*
 * Wait for the answer to REQUEST, at most TIMEOUT_MS (negative: for ever). A request that failed gives
 * -1 with its error; the event is only handed out on success. After a timeout the answer will be
 * thrown away, and the request's lifeline is closed at once.
 */
int conn_await(struct conn *conn, uint64_t request, int timeout_ms, struct conn_event **ret_event,
	       struct fsbox_error *err);

/* Wait likewise until JOB, started by this connection, has ended. */
int conn_await_exited(struct conn *conn, uint64_t job, int timeout_ms,
		      struct conn_event **ret_event, struct fsbox_error *err);

/* Whether JOB was started by this connection and its end has not been taken yet. */
bool conn_owns(const struct conn *conn, uint64_t job);

/* conn_send() and conn_await() with the connection's time limit. */
int conn_request(struct conn *conn, enum method method, const union method_params *params,
		 struct conn_event **ret_event, struct fsbox_error *err);

#endif
