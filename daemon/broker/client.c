/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/broker/client.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "common/scope.h"
#include "daemon/broker/broker.h"
#include "daemon/broker/handler.h"
#include "daemon/log.h"

/* A reply: bounded by what a frame holds. */
static struct buf reply_buf(void)
{
	return (struct buf)BUF_INIT(LIMIT_FRAME_BYTES);
}

static void arm(struct client *client, unsigned ms)
{
	struct timeval timeout = { .tv_sec = ms / 1000,
				   .tv_usec = (suseconds_t)(ms % 1000) * 1000 };

	(void)event_add(client->timer, &timeout);
}

void client_update(struct client *client)
{
	bool ready = closer_ready(&client->broker->closer);

	if (client->state == CLIENT_CLOSING)
		return;
	if (!ready)
		broker_update_soon(client->broker);
	if (ready && client->call_count < LIMIT_REQUESTS_PER_CONNECTION &&
	    client->channel.queued_bytes < CLIENT_PATIENCE_BYTES)
		(void)event_add(client->readable, NULL);
	else
		(void)event_del(client->readable);
	if (channel_wants_write(&client->channel))
		(void)event_add(client->writable, NULL);
}

/* ---- calls ------------------------------------------------------------------------------ */

static void call_unlink(struct call *call)
{
	struct client *client = call->client;

	if (client == NULL)
		return;
	if (call->previous != NULL)
		call->previous->next = call->next;
	else
		client->calls = call->next;
	if (call->next != NULL)
		call->next->previous = call->previous;
	client->call_count--;
	call->client = NULL;
	call->previous = NULL;
	call->next = NULL;
}

/* What is left of the params' descriptors may be on a dead file system. */
static void call_release(struct call *call)
{
	struct closer *closer = &call->broker->closer;
	struct spawn_params *spawn = call->method == METHOD_SPAWN    ? &call->params.spawn
				     : call->method == METHOD_POLICY ? &call->params.policy.spawn
				     : call->method == METHOD_WHY    ? &call->params.why.spawn
								     : NULL;

	call_unlink(call);
	if (spawn != NULL) {
		closer_take(closer, steal_fd(&spawn->stdio.in_fd));
		closer_take(closer, steal_fd(&spawn->stdio.out_fd));
		closer_take(closer, steal_fd(&spawn->stdio.err_fd));
		closer_take(closer, steal_fd(&spawn->lifeline_fd));
		closer_take(closer, steal_fd(&spawn->grant_fd));
	}
	method_params_deinit(call->method, &call->params);
	free(call);
}

/* Send what is in OUT and FDS; a client that cannot take it is closed. */
static void client_send(struct client *client, const struct buf *out, struct fdset *fds)
{
	struct error err = ERROR_INIT;

	if (channel_send(&client->channel, out->data, out->size, fds, &err) < 0) {
		log_write(LOG_INFO, "connection %llu: %s", (unsigned long long)client->number,
			  err.message);
		client_close(client);
		return;
	}
	client_update(client);
}

static void send_error(struct client *client, const struct message_id *id, const struct error *err,
		       const struct error_reply *detail)
{
	struct buf out = reply_buf();
	struct error_reply reply = { 0 };
	struct error fail = ERROR_INIT;
	int r;

	r = error_reply_set(&reply, err, detail != NULL ? detail->stage : NULL,
			    detail != NULL ? detail->path : NULL,
			    detail != NULL ? detail->hint : NULL, &fail);
	if (r == 0) {
		if (detail != NULL)
			reply.indexes = detail->indexes; /* lent for the encoding */
		r = message_encode_error(&out, id, &reply, &fail);
		memset(&reply.indexes, 0, sizeof(reply.indexes));
	}
	error_reply_deinit(&reply);
	if (r == 0) {
		client_send(client, &out, NULL);
	} else {
		log_failure(&fail, "connection %llu: no reply", (unsigned long long)client->number);
		client_close(client);
	}
	buf_deinit(&out);
}

void call_error_detail(struct call *call, const struct error *err, const struct error_reply *detail)
{
	struct client *client = call->client;
	struct message_id id = call->id;

	call_release(call);
	if (client != NULL && client->state != CLIENT_CLOSING)
		send_error(client, &id, err, detail);
}

void call_error(struct call *call, const struct error *err)
{
	call_error_detail(call, err, NULL);
}

void call_result(struct call *call, const union method_result *result)
{
	struct client *client = call->client;
	struct buf out = reply_buf();
	struct fdset fds = FDSET_INIT;
	struct error err = ERROR_INIT;

	if (client == NULL || client->state == CLIENT_CLOSING) {
		call_release(call);
		return;
	}
	if (message_encode_result(&out, &fds, &call->id, call->method, result, &err) < 0) {
		error_prefix(&err, "the reply");
		fdset_deinit(&fds);
		buf_deinit(&out);
		call_error(call, &err);
		return;
	}
	call_release(call);
	client_send(client, &out, &fds);
	fdset_deinit(&fds);
	buf_deinit(&out);
}

int call_fd_index(const struct call *call, int fd)
{
	for (size_t i = 0; i < call->sent_count; i++) {
		if (call->sent[i] == fd)
			return (int)i;
	}
	return -1;
}

void client_notify_exited(struct client *client, const struct wait_result *exited)
{
	struct buf out = reply_buf();
	struct error err = ERROR_INIT;

	if (client->state == CLIENT_CLOSING)
		return;
	if (message_encode_exited(&out, exited, &err) == 0)
		client_send(client, &out, NULL);
	else
		log_failure(&err, "job %llu: no notification", (unsigned long long)exited->job);
	buf_deinit(&out);
}

/* ---- frames ----------------------------------------------------------------------------- */

/*
 * One request in its frame. What is wrong with it is answered; only what breaks the framing or comes
 * from somebody else ends the connection (a negative result).
 */
static void take_request(struct client *client, struct channel_frame *frame)
{
	struct message message = { 0 };
	struct error err = ERROR_INIT;
	struct call *call = calloc(1, sizeof(*call));
	int r;

	if (call == NULL) {
		client_close(client);
		return;
	}
	call->broker = client->broker;
	call->sent_count = frame->fds.count;
	memcpy(call->sent, frame->fds.fds, sizeof(call->sent));
	r = message_parse(&message, frame->payload.data, frame->payload.size, &frame->fds, &err);
	if (r == 0 && message.kind != MESSAGE_REQUEST)
		r = error_set(&err, ERR_INVALID, 0, "not a request");
	if (r == 0 && message.id.kind == MESSAGE_ID_NONE)
		r = error_set(&err, ERR_INVALID, 0, "a request needs an id");
	if (r == 0)
		r = handler_check(client, message.method, &err);
	if (r == 0)
		r = message_decode_params(&message, &call->params, &err);
	closer_take_set(&client->broker->closer, &message.fds);
	if (r < 0) {
		send_error(client, &message.id, &err, NULL);
		/* Garbage: one reply, then nothing more of it is read. */
		if (err.kind == ERR_BAD_JSON)
			client_close(client);
		message_deinit(&message);
		free(call);
		return;
	}
	call->id = message.id;
	call->method = message.method;
	call->client = client;
	call->next = client->calls;
	if (call->next != NULL)
		call->next->previous = call;
	client->calls = call;
	client->call_count++;
	message_deinit(&message);
	handler_run(call);
}

/* 1: there may be more; 0: not now; negative: close. */
static int take_frame(struct client *client, struct error *err)
{
	struct message_id nobody = { .kind = MESSAGE_ID_NONE };
	struct channel_frame frame = CHANNEL_FRAME_INIT;
	int r = channel_receive(&client->channel, &frame, err);

	if (r < 0) {
		/* Before it is closed the client hears why, if it can still hear. */
		if (err->kind != ERR_SYSTEM)
			send_error(client, &nobody, err, NULL);
		return r;
	}
	if (r == 0)
		return client->channel.eof ? error_set(err, ERR_UNREACHABLE, 0, "closed") : 0;
	client->frames++;
	r = sender_check(&client->sender, &frame.sender, &client->broker->places, err);
	if (r < 0) {
		closer_take_set(&client->broker->closer, &frame.fds);
		send_error(client, &nobody, err, NULL);
	} else {
		take_request(client, &frame);
		r = 1;
	}
	closer_take_set(&client->broker->closer, &frame.fds);
	channel_frame_deinit(&frame);
	return r;
}

static int read_frames(struct client *client, struct error *err)
{
	int r = 1;

	for (int i = 0; i < CLIENT_FRAMES_PER_TURN && r > 0; i++) {
		if (client->state == CLIENT_CLOSING ||
		    client->call_count >= LIMIT_REQUESTS_PER_CONNECTION)
			return 0;
		r = take_frame(client, err);
	}
	return r < 0 ? r : 0;
}

static void client_readable(evutil_socket_t fd, short what, void *arg)
{
	struct client *client = arg;
	struct error err = ERROR_INIT;
	uint64_t before = client->frames;
	bool was_mid = channel_mid_frame(&client->channel);
	int r = read_frames(client, &err);

	(void)fd;
	(void)what;
	if (client->state == CLIENT_CLOSING)
		return;
	if (r < 0) {
		if (err.kind != ERR_UNREACHABLE)
			log_write(LOG_INFO, "connection %llu: %s",
				  (unsigned long long)client->number, err.message);
		client_close(client);
		return;
	}
	/* While hello is due its own, shorter limit runs. */
	if (client->state == CLIENT_READY) {
		if (!channel_mid_frame(&client->channel))
			(void)event_del(client->timer);
		else if (!was_mid || client->frames != before)
			arm(client, LIMIT_FRAME_MS);
	}
	client_update(client);
}

static void client_writable(evutil_socket_t fd, short what, void *arg)
{
	struct client *client = arg;
	struct error err = ERROR_INIT;

	(void)fd;
	(void)what;
	if (channel_flush(&client->channel, &err) < 0)
		client_close(client);
	else
		client_update(client);
}

static void client_late(evutil_socket_t fd, short what, void *arg)
{
	struct client *client = arg;
	struct message_id nobody = { .kind = MESSAGE_ID_NONE };
	struct error err = ERROR_INIT;

	(void)fd;
	(void)what;
	if (client->state == CLIENT_NEW)
		(void)error_set(&err, ERR_TIMEOUT, 0, "no hello within %d ms", LIMIT_HELLO_MS);
	else
		(void)error_set(&err, ERR_TIMEOUT, 0, "a frame not complete after %d ms",
				LIMIT_FRAME_MS);
	send_error(client, &nobody, &err, NULL);
	client_close(client);
}

/* ---- life ------------------------------------------------------------------------------- */

int client_new_take(struct broker *broker, const struct link_conn *who, uint64_t number, int fd,
		    int pidfd, struct error *err)
{
	struct client *client = calloc(1, sizeof(*client));
	int r;

	if (client == NULL) {
		(void)close(fd);
		(void)close(pidfd);
		return error_set(err, ERR_NOMEM, ENOMEM, "a connection");
	}
	client->broker = broker;
	client->number = number;
	client->admin = who->admin != 0;
	client->state = CLIENT_NEW;
	client->channel = (struct channel)CHANNEL_INIT;
	r = sender_init_take(&client->sender, who->pid, who->uid, pidfd, err);
	if (r < 0)
		(void)close(fd);
	else
		r = channel_init_take(&client->channel, fd, true, err);
	if (r == 0) {
		client->readable =
			event_new(broker->base, fd, EV_READ | EV_PERSIST, client_readable, client);
		client->writable = event_new(broker->base, fd, EV_WRITE, client_writable, client);
		client->timer = event_new(broker->base, -1, 0, client_late, client);
		if (client->readable == NULL || client->writable == NULL || client->timer == NULL)
			r = error_set(err, ERR_NOMEM, ENOMEM, "a connection");
	}
	if (r < 0) {
		(void)client_free(client);
		return r;
	}
	client->next = broker->clients;
	if (client->next != NULL)
		client->next->previous = client;
	broker->clients = client;
	broker->client_count++;
	arm(client, LIMIT_HELLO_MS);
	client_update(client);
	return 0;
}

void client_close(struct client *client)
{
	if (client->state == CLIENT_CLOSING)
		return;
	client->state = CLIENT_CLOSING;
	(void)event_del(client->readable);
	(void)event_del(client->writable);
	(void)event_del(client->timer);
	broker_reap_soon(client->broker);
}

struct client *client_free(struct client *client)
{
	if (client == NULL)
		return NULL;
	while (client->calls != NULL) {
		struct call *call = client->calls;

		call_unlink(call);
		if (call->on_gone != NULL)
			call->on_gone(call);
	}
	if (client->readable != NULL)
		event_free(client->readable);
	if (client->writable != NULL)
		event_free(client->writable);
	if (client->timer != NULL)
		event_free(client->timer);
	closer_take_set(&client->broker->closer, &client->channel.incoming);
	channel_deinit(&client->channel);
	sender_deinit(&client->sender);
	free(client);
	return NULL;
}
