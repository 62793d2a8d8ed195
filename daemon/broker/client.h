/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_DAEMON_BROKER_CLIENT_H
#define FSBOX_DAEMON_BROKER_CLIENT_H

/*
 * One connection of a client, and the requests on it.
 *
 * Every request is a `struct call` and is answered exactly once, by call_result() or call_error(),
 * maybe long after it came in. When the connection closes first, its calls stay valid, unconnected
 * (call_connected()); answering them then only releases them.
 *
 * A connection is read only while it has few requests under way and takes its replies; so a client
 * that floods or does not read holds back nobody but itself.
 */

#include <event2/event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "daemon/broker/sender.h"
#include "proto/json/message.h"
#include "proto/wire/channel.h"
#include "proto/wire/spawnop.h"

struct broker;
struct client;

/* Replies that pile up beyond this stop the reading; beyond LIMIT_REPLY_QUEUE_BYTES it is closed. */
#define CLIENT_PATIENCE_BYTES (1u << 20)

/* Frames taken from one client in one turn of the loop. */
#define CLIENT_FRAMES_PER_TURN 8

enum client_state {
	CLIENT_NEW = 1 << 0,   /* has not said hello */
	CLIENT_READY = 1 << 1, /* has */
	CLIENT_CLOSING = 1 << 2,
};

/*
 * @params   decoded; the call's until it is released
 * @sent     the numbers that the frame's descriptors had: where a refused one is to be named by
 *           index
 * @on_gone  called once when the connection closes while the call is under way; may be NULL. It may
 *           answer the call.
 * @work     of whoever is at work on it
 */
struct call {
	struct broker *broker;
	struct client *client; /* NULL once it is gone */
	struct message_id id;
	enum method method;
	union method_params params;
	int sent[LIMIT_FRAME_FDS];
	size_t sent_count;
	void (*on_gone)(struct call *call);
	void *work;
	struct call *previous;
	struct call *next; /* client.calls */
};

struct client {
	struct broker *broker;
	uint64_t number; /* fsboxd's */
	struct sender sender;
	bool admin;
	enum client_state state;
	struct channel channel;
	struct event *readable;
	struct event *writable;
	struct event *timer; /* hello is due, or the frame under way */
	uint64_t frames;     /* received so far */
	struct call *calls;
	size_t call_count;
	struct client *previous;
	struct client *next; /* broker.clients */
};

/*
 * Serve a connection that fsboxd accepted. @fd and @pidfd are the client's even when this fails; then
 * the connection is closed. On success it is in broker->clients.
 */
int client_new_take(struct broker *broker, const struct link_conn *who, uint64_t number, int fd,
		    int pidfd, struct error *err);

/* Close soon: nothing more is read, the memory is released by a deferred event. */
void client_close(struct client *client);

/* Read or do not read, as its queues are; write while there is something to write. */
void client_update(struct client *client);

/* Release now; only from the deferred event and at the end of the program. */
struct client *client_free(struct client *client);

/* Send `exited` if the connection still takes anything. */
void client_notify_exited(struct client *client, const struct wait_result *exited);

static inline bool call_connected(const struct call *call)
{
	return call->client != NULL;
}

/* Answer and release. RESULT is borrowed. */
void call_result(struct call *call, const union method_result *result);
void call_error(struct call *call, const struct error *err);

/* The same with what else is known: everything of REPLY but code, kind and message, which ERR has. */
void call_error_detail(struct call *call, const struct error *err,
		       const struct error_reply *detail);

/* The position in its frame of a descriptor that CALL's params hold, or -1. */
int call_fd_index(const struct call *call, int fd);

#endif
