/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/egress/conn.h"

#include <errno.h>
#include <event2/event.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/egress/socks.h"

#define LINGER_MS 2000
#define LINGER_BYTES (1u << 20)
#define READ_BYTES 4096
#define OUT_BYTES 49152 /* a head may grow when it is written anew, by its host */
#define ANSWER_BYTES 2048
#define ESTABLISHED "HTTP/1.1 200 Connection established\r\n\r\n"

/* ---- records --------------------------------------------------------------------------- */

static struct egress_event event_of(const struct conn *conn, enum egress_event_kind kind,
				    enum net_reason reason)
{
	struct egress_event event = {
		.kind = kind,
		.job = conn->job->id,
		.connection = conn->id,
		.uid = conn->job->limits.uid,
		.via = conn->via,
		.port = conn->port,
		.reason = reason,
		.flags = (conn->unchecked ? EGRESS_ADDRESS_UNCHECKED : 0) |
			 (conn->plain ? EGRESS_PLAIN_HTTP : 0),
		.address_family = conn->address.family,
		.address_class = (uint8_t)conn->class,
		.duration_ms = relay_now_ms(conn->job->egress->base) - conn->begun_ms,
	};

	memcpy(event.address, conn->address.bytes, sizeof(event.address));
	(void)snprintf(event.host, sizeof(event.host), "%s", conn->host.name);
	return event;
}

static void record_end(struct conn *conn)
{
	struct egress_event event = event_of(conn, EGRESS_EVENT_CLOSED, NET_ALLOWED);

	if (!conn->recorded)
		return;
	conn->recorded = false;
	event.stats.sent_bytes = conn->relay.ways[RELAY_OUT].bytes;
	event.stats.received_bytes = conn->relay.ways[RELAY_IN].bytes;
	conn->job->stats.sent_bytes += event.stats.sent_bytes;
	conn->job->stats.received_bytes += event.stats.received_bytes;
	records_add(&conn->job->egress->records, &event);
}

/* ---- begin and end --------------------------------------------------------------------- */

void conn_set_timer(struct conn *conn, uint64_t ms)
{
	const struct timeval limit = { .tv_sec = (time_t)(ms / 1000),
				       .tv_usec = (suseconds_t)(ms % 1000 * 1000) };

	(void)event_add(&conn->timer, &limit);
}

static void close_server(struct conn *conn)
{
	relay_deinit(&conn->relay);
	if (conn->server_fd < 0)
		return;
	if (event_initialized(&conn->server_readable))
		(void)event_del(&conn->server_readable);
	(void)close(conn->server_fd);
	conn->server_fd = -1;
}

void conn_end(struct conn *conn)
{
	const struct linger reset = { .l_onoff = 1 };
	struct job *job = conn->job;

	if (conn->cut)
		(void)setsockopt(conn->client_fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
	record_end(conn);
	lookup_cancel(&job->egress->lookups, &conn->lookup);
	conn->dial = dial_free(conn->dial);
	close_server(conn);
	(void)event_del(&conn->client_readable);
	(void)event_del(&conn->timer);
	(void)close(conn->client_fd);
	buf_deinit(&conn->in);
	buf_deinit(&conn->out);
	buf_deinit(&conn->answer);
	if (conn->prev)
		conn->prev->next = conn->next;
	else
		job->conns = conn->next;
	if (conn->next)
		conn->next->prev = conn->prev;
	job->conn_count--;
	job->egress->connection_count--;
	free(conn);
}

/* All that is to be said was: wait until the client has it, for a reset would take it away. */
static void linger(struct conn *conn)
{
	record_end(conn);
	close_server(conn);
	buf_deinit(&conn->in);
	conn->state = CONN_LINGER;
	if (!conn->cut)
		(void)shutdown(conn->client_fd, SHUT_WR);
	(void)event_add(&conn->client_readable, NULL);
	conn_set_timer(conn, LINGER_MS);
}

static void drain(struct conn *conn)
{
	char bytes[READ_BYTES];
	ssize_t got = recv(conn->client_fd, bytes, sizeof(bytes), 0);

	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	conn->drained += got > 0 ? (size_t)got : 0;
	if (got <= 0 || conn->drained > LINGER_BYTES)
		conn_end(conn);
}

static void read_head(struct conn *conn)
{
	size_t room = LIMIT_EGRESS_HEAD_BYTES - conn->in.size;
	void *space = buf_reserve(&conn->in, room < READ_BYTES ? room : READ_BYTES);
	ssize_t got =
		space ? recv(conn->client_fd, space, room < READ_BYTES ? room : READ_BYTES, 0) : 0;

	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (got <= 0) {
		conn_end(conn);
		return;
	}
	buf_commit(&conn->in, (size_t)got);
	conn_on_head(conn);
}

static void on_client(evutil_socket_t fd, short what, void *arg)
{
	struct conn *conn = arg;

	(void)fd;
	(void)what;
	if (conn->state == CONN_LINGER)
		drain(conn);
	else
		read_head(conn);
}

static void on_idle(struct conn *conn)
{
	uint64_t limit_ms =
		conn->job->limits.idle_ms ? conn->job->limits.idle_ms : LIMIT_EGRESS_IDLE_MS;
	uint64_t now_ms = relay_now_ms(conn->job->egress->base);
	uint64_t idle_ms = now_ms > conn->relay.moved_ms ? now_ms - conn->relay.moved_ms : 0;

	if (idle_ms >= limit_ms)
		conn_end(conn);
	else
		conn_set_timer(conn, limit_ms - idle_ms);
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct conn *conn = arg;

	(void)fd;
	(void)what;
	switch (conn->state) {
	case CONN_HEAD:
		conn_refuse(conn, NET_LIMIT, "nothing complete was asked for in time");
		return;
	case CONN_UPSTREAM:
		conn_refuse(conn, NET_UPSTREAM_FAILED, "the upstream proxy did not answer in time");
		return;
	case CONN_RELAY:
		on_idle(conn);
		return;
	case CONN_LOOKUP:
	case CONN_DIAL:
	case CONN_LINGER:
		break;
	}
	conn_end(conn);
}

void conn_begin_take(struct job *job, const struct listener *listener, int fd)
{
	const int on = 1;
	struct conn *conn = calloc(1, sizeof(*conn));

	if (!conn) {
		(void)close(fd);
		return;
	}
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	conn->job = job;
	conn->id = ++job->egress->last_connection;
	conn->via = listener->via;
	conn->state = CONN_HEAD;
	conn->begun_ms = relay_now_ms(job->egress->base);
	conn->client_fd = fd;
	conn->server_fd = -1;
	buf_init(&conn->in, LIMIT_EGRESS_HEAD_BYTES);
	buf_init(&conn->out, OUT_BYTES);
	buf_init(&conn->answer, ANSWER_BYTES);
	(void)event_assign(&conn->client_readable, job->egress->base, fd, EV_READ | EV_PERSIST,
			   on_client, conn);
	(void)evtimer_assign(&conn->timer, job->egress->base, on_timer, conn);
	conn->next = job->conns;
	if (job->conns)
		job->conns->prev = conn;
	job->conns = conn;
	job->conn_count++;
	job->egress->connection_count++;
	if (conn->via == EGRESS_VIA_FORWARD) {
		conn->port = listener->port;
		conn_on_request(conn);
		return;
	}
	(void)event_add(&conn->client_readable, NULL);
	conn_set_timer(conn, LIMIT_EGRESS_HEAD_MS);
}

/* ---- answers --------------------------------------------------------------------------- */

static const char *http_status(enum net_reason reason)
{
	switch (reason) {
	case NET_NOT_LISTED:
	case NET_DENIED:
	case NET_CLOSED_ADDRESS:
		return "403 Forbidden";
	case NET_BAD_HOST:
	case NET_BAD_REQUEST:
		return "400 Bad Request";
	case NET_RESOLVE_TIMEOUT:
	case NET_CONNECT_TIMEOUT:
		return "504 Gateway Timeout";
	case NET_LIMIT:
		return "408 Request Timeout";
	case NET_ALLOWED:
	case NET_RESOLVE_FAILED:
	case NET_CONNECT_FAILED:
	case NET_UPSTREAM_FAILED:
	case NET_REASON_COUNT:
		break;
	}
	return "502 Bad Gateway";
}

static enum socks_reply socks_status(enum net_reason reason)
{
	switch (reason) {
	case NET_NOT_LISTED:
	case NET_DENIED:
	case NET_CLOSED_ADDRESS:
	case NET_BAD_HOST:
		return SOCKS_NOT_ALLOWED;
	case NET_RESOLVE_FAILED:
		return SOCKS_HOST_UNREACHABLE;
	case NET_CONNECT_FAILED:
		return SOCKS_REFUSED;
	case NET_RESOLVE_TIMEOUT:
	case NET_CONNECT_TIMEOUT:
		return SOCKS_TIMEOUT;
	case NET_ALLOWED:
	case NET_BAD_REQUEST:
	case NET_UPSTREAM_FAILED:
	case NET_LIMIT:
	case NET_REASON_COUNT:
		break;
	}
	return SOCKS_FAILURE;
}

static void write_refusal(struct conn *conn, enum net_reason reason, const char *why)
{
	char text[NET_REFUSAL_BYTES];
	uint8_t socks[SOCKS_ANSWER_BYTES];

	switch (conn->via) {
	case EGRESS_VIA_HTTP:
		net_refusal_text(reason, conn->class, &conn->host, conn->port, text, sizeof(text));
		(void)buf_printf(&conn->answer,
				 "HTTP/1.1 %s\r\nConnection: close\r\nContent-Type: text/plain\r\n"
				 "X-Fsbox-Reason: %s\r\nContent-Length: %zu\r\n\r\nfsbox: %s%s%s\n",
				 http_status(reason), net_reason_name(reason),
				 strlen("fsbox: \n") + strlen(text) + strlen(why) +
					 (why[0] ? strlen("; ") : 0),
				 text, why[0] ? "; " : "", why);
		break;
	case EGRESS_VIA_SOCKS:
		if (conn->greeted) {
			socks_write_answer(socks_status(reason), socks);
			(void)buf_add(&conn->answer, socks, sizeof(socks));
		}
		break;
	case EGRESS_VIA_FORWARD:
	case EGRESS_VIA_COUNT:
		break;
	}
}

void conn_refuse(struct conn *conn, enum net_reason reason, const char *why)
{
	bool failed = reason == NET_RESOLVE_FAILED || reason == NET_RESOLVE_TIMEOUT ||
		      reason == NET_CONNECT_FAILED || reason == NET_CONNECT_TIMEOUT ||
		      reason == NET_UPSTREAM_FAILED;
	struct egress_event event =
		event_of(conn, failed ? EGRESS_EVENT_FAILED : EGRESS_EVENT_DENIED, reason);

	if (failed)
		conn->job->stats.failed++;
	else
		conn->job->stats.denied++;
	(void)snprintf(event.detail, sizeof(event.detail), "%s", why);
	records_add(&conn->job->egress->records, &event);
	conn->dial = dial_free(conn->dial);
	if (conn->answer.size == 0)
		write_refusal(conn, reason, why);
	/* It is shorter than any socket's buffer. */
	if (conn->answer.size > 0)
		(void)send(conn->client_fd, conn->answer.data, conn->answer.size, MSG_NOSIGNAL);
	linger(conn);
}

/* ---- relaying -------------------------------------------------------------------------- */

static bool client_has_all(const struct conn *conn)
{
	struct tcp_info info = { 0 };
	socklen_t size = sizeof(info);

	return getsockopt(conn->client_fd, IPPROTO_TCP, TCP_INFO, &info, &size) == 0 &&
	       info.tcpi_unacked == 0;
}

/*
 * What the client was sent it shall be able to read, also when the server did not want all of what the
 * client had to say: no reset then before it did. But an answer cut off must not look like a whole one.
 */
static void on_relay_end(enum relay_end end, void *arg)
{
	struct conn *conn = arg;
	bool uploading = conn->plain && !conn->relay.ways[RELAY_OUT].ended;

	conn->cut = end == RELAY_CUT;
	if ((end == RELAY_OVER && !conn->plain) ||
	    (end == RELAY_CUT && !uploading && client_has_all(conn)))
		conn_end(conn);
	else
		linger(conn);
}

static void move_buf(struct buf *to, struct buf *from)
{
	*to = *from;
	buf_init(from, 0);
}

void conn_establish(struct conn *conn)
{
	struct egress *egress = conn->job->egress;
	struct egress_event event = event_of(conn, EGRESS_EVENT_ALLOWED, NET_ALLOWED);
	struct relay_way *out = &conn->relay.ways[RELAY_OUT];
	uint8_t socks[SOCKS_ANSWER_BYTES];

	conn->job->stats.allowed++;
	conn->recorded = true;
	records_add(&egress->records, &event);
	conn->state = CONN_RELAY;
	(void)event_del(&conn->client_readable);
	relay_prepare(&conn->relay, egress->base, &egress->pipes, conn->client_fd, conn->server_fd,
		      on_relay_end, conn);
	if (conn->plain) {
		conn->relay.answer_ends = true;
		out->extent = conn->extent;
		out->left = conn->left;
		out->chunked = conn->chunked;
		move_buf(&out->first, &conn->out);
		buf_deinit(&conn->in);
	} else {
		move_buf(&out->first, &conn->in);
	}
	out->bytes = out->first.size;
	if (conn->via == EGRESS_VIA_HTTP && conn->tunnel)
		(void)buf_add_string(&conn->answer, ESTABLISHED);
	if (conn->via == EGRESS_VIA_SOCKS) {
		socks_write_answer(SOCKS_SUCCEEDED, socks);
		(void)buf_add(&conn->answer, socks, sizeof(socks));
	}
	move_buf(&conn->relay.ways[RELAY_IN].first, &conn->answer);
	relay_start(&conn->relay);
	conn_set_timer(conn, conn->job->limits.idle_ms ? conn->job->limits.idle_ms
						       : LIMIT_EGRESS_IDLE_MS);
}
