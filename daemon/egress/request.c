/* SPDX-License-Identifier: Apache-2.0 */
/* What a connection asks for, whether it may, and the way there. */
#include <errno.h>
#include <event2/event.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "daemon/egress/conn.h"
#include "daemon/egress/hostaddr.h"
#include "daemon/egress/httphead.h"
#include "daemon/egress/socks.h"

/* ---- after the decision ---------------------------------------------------------------- */

static void on_dialled(int fd, const struct netaddr *address, int errnum, void *arg)
{
	struct conn *conn = arg;

	conn->dial = dial_free(conn->dial);
	if (conn_needs_upstream(conn)) {
		if (fd < 0) {
			conn_refuse(conn, NET_UPSTREAM_FAILED, strerror(errnum));
			return;
		}
		conn->server_fd = fd;
		conn_ask_upstream(conn);
		return;
	}
	conn->address = *address;
	conn->class = netaddr_classify(address);
	if (fd < 0) {
		conn_refuse(conn, errnum == ETIMEDOUT ? NET_CONNECT_TIMEOUT : NET_CONNECT_FAILED,
			    strerror(errnum));
		return;
	}
	conn->server_fd = fd;
	conn_establish(conn);
}

static void dial(struct conn *conn, const struct netaddr *addresses, size_t count, uint16_t port)
{
	conn->state = CONN_DIAL;
	(void)event_del(&conn->timer); /* the dial has its own */
	conn->dial = dial_new(conn->job->egress->base, addresses, count, port, on_dialled, conn);
	if (!conn->dial)
		conn_refuse(conn, NET_CONNECT_FAILED, "out of memory");
}

/* Dial those of ADDRESSES that may be; the first that may not says why when there is none. */
static void dial_judged(struct conn *conn, const struct netaddr *addresses, size_t count)
{
	struct netaddr good[LIMIT_EGRESS_ADDRESSES];
	enum net_reason first = NET_ALLOWED;
	size_t good_count = 0;

	for (size_t i = 0; i < count; i++) {
		enum netaddr_class class =
			hostaddr_classify(conn->job->egress->route_fd, &addresses[i]);
		enum net_reason reason =
			netpolicy_judge(&conn->job->policy, &conn->host, conn->port, &conn->verdict,
					&addresses[i], class);

		if (reason == NET_ALLOWED) {
			good[good_count++] = addresses[i];
		} else if (first == NET_ALLOWED) {
			first = reason;
			conn->address = addresses[i];
			conn->class = class;
		}
	}
	if (good_count == 0)
		conn_refuse(conn, first, "");
	else
		dial(conn, good, good_count, conn->port);
}

static void on_looked_up(enum net_reason reason, const struct netaddr *addresses, size_t count,
			 void *arg)
{
	struct conn *conn = arg;

	if (conn_needs_upstream(conn) && reason != NET_ALLOWED)
		conn_refuse(conn, NET_UPSTREAM_FAILED, "the upstream proxy's name leads nowhere");
	else if (conn_needs_upstream(conn))
		dial(conn, addresses, count, (uint16_t)conn->job->egress->config.upstream_port);
	else if (reason != NET_ALLOWED)
		conn_refuse(conn, reason, "");
	else
		dial_judged(conn, addresses, count);
}

/* Look HOST up unless it is an address. */
static void look_up(struct conn *conn, const struct hostname *host)
{
	if (host->address.family != 0) {
		on_looked_up(NET_ALLOWED, &host->address, 1, conn);
		return;
	}
	conn->state = CONN_LOOKUP;
	(void)event_del(&conn->timer); /* the lookup has its own */
	lookup_start(&conn->job->egress->lookups, &conn->lookup, conn->job->id, host->name,
		     on_looked_up, conn);
}

void conn_on_request(struct conn *conn)
{
	static const struct netaddr loopback = { .family = 4, .bytes = { 127, 0, 0, 1 } };

	(void)event_del(&conn->client_readable);
	if (conn->via == EGRESS_VIA_FORWARD) {
		/* The listener is there since the policy lists its port. */
		conn->host.address = conn->address = loopback;
		conn->class = NETADDR_LOOPBACK;
		netaddr_format(&loopback, conn->host.name);
		dial(conn, &loopback, 1, conn->port);
		return;
	}
	conn->verdict = netpolicy_decide(&conn->job->policy, &conn->host, conn->port);
	conn->address = conn->host.address;
	conn->class = conn->address.family ? netaddr_classify(&conn->address) : NETADDR_PUBLIC;
	if (conn->verdict.reason != NET_ALLOWED) {
		conn_refuse(conn, conn->verdict.reason, "");
		return;
	}
	conn->unchecked = conn_needs_upstream(conn);
	look_up(conn, conn->unchecked ? &conn->job->egress->upstream : &conn->host);
}

/* ---- reading the head ------------------------------------------------------------------ */

/* The part of a plain request's body that came with its head. False: it is not in its form. */
static bool take_body(struct conn *conn, const struct http_head *head, const char *body,
		      size_t size)
{
	size_t good = 0;

	switch (head->body) {
	case HTTP_BODY_NONE:
	case HTTP_BODY_LENGTH:
		conn->extent = RELAY_COUNTED;
		good = size < head->length ? size : (size_t)head->length;
		conn->left = head->length - good;
		break;
	case HTTP_BODY_CHUNKED:
		conn->extent = RELAY_CHUNKED;
		good = chunked_feed(&conn->chunked, body, size);
		if (conn->chunked.state == CHUNKED_BAD)
			return false;
		break;
	}
	return buf_add(&conn->out, body, good) == 0;
}

static void on_http_request(struct conn *conn, size_t size)
{
	struct http_head head;
	struct error err = ERROR_INIT;
	bool bad_host = false;

	if (httphead_parse(conn->in.data, size, &head, &bad_host, &err) < 0) {
		conn_refuse(conn, bad_host ? NET_BAD_HOST : NET_BAD_REQUEST, err.message);
		return;
	}
	conn->host = head.host;
	conn->port = head.port;
	conn->tunnel = head.connect;
	conn->plain = !head.connect;
	if (head.connect) {
		buf_consume(&conn->in, size);
		conn_on_request(conn);
		return;
	}
	/* Whether it goes through an upstream proxy decides how it is written. */
	conn->verdict = netpolicy_decide(&conn->job->policy, &conn->host, conn->port);
	if (httphead_render(&head, conn_needs_upstream_http(conn), &conn->out) < 0 ||
	    !take_body(conn, &head, conn->in.data + size, conn->in.size - size)) {
		conn_refuse(conn, NET_BAD_REQUEST, "the body is not in the form that is allowed");
		return;
	}
	conn_on_request(conn);
}

static void on_http(struct conn *conn)
{
	int size = httphead_size(conn->in.data, conn->scanned, conn->in.size);
	char first = conn->in.data[0];

	conn->scanned = conn->in.size;
	if (size > 0)
		on_http_request(conn, (size_t)size);
	else if (!(first >= 'A' && first <= 'Z') && !(first >= 'a' && first <= 'z'))
		conn_refuse(conn, NET_BAD_REQUEST, "this is the HTTP proxy, and that is no HTTP");
	else if (size < 0)
		conn_refuse(conn, NET_BAD_REQUEST, "a line does not end with CR LF");
	else if (conn->in.size == LIMIT_EGRESS_HEAD_BYTES)
		conn_refuse(conn, NET_BAD_REQUEST, "the head of the request is too long");
}

static void on_socks_request(struct conn *conn)
{
	enum socks_reply reply = SOCKS_FAILURE;
	struct error err = ERROR_INIT;
	uint8_t answer[SOCKS_ANSWER_BYTES];
	int size = socks_read_request((const uint8_t *)conn->in.data, conn->in.size, &conn->host,
				      &conn->port, &reply, &err);

	if (size < 0) {
		socks_write_answer(reply, answer);
		(void)buf_add(&conn->answer, answer, sizeof(answer));
		conn_refuse(conn, reply == SOCKS_NOT_ALLOWED ? NET_BAD_HOST : NET_BAD_REQUEST,
			    err.message);
	} else if (size > 0) {
		buf_consume(&conn->in, (size_t)size);
		conn->tunnel = true;
		conn_on_request(conn);
	} else if (conn->in.size > SOCKS_REQUEST_BYTES) {
		conn_refuse(conn, NET_BAD_REQUEST, "the request is too long");
	}
}

static void on_socks(struct conn *conn)
{
	struct error err = ERROR_INIT;
	int size = 0;

	if (!conn->greeted) {
		size = socks_read_greeting((const uint8_t *)conn->in.data, conn->in.size, &err);
		if (size < 0) {
			(void)buf_add(&conn->answer, SOCKS_GREETING_REFUSED, 2);
			conn_refuse(conn, NET_BAD_REQUEST, err.message);
			return;
		}
		if (size == 0)
			return;
		buf_consume(&conn->in, (size_t)size);
		conn->greeted = true;
		(void)send(conn->client_fd, SOCKS_GREETING_ANSWER, 2, MSG_NOSIGNAL);
	}
	if (conn->in.size > 0)
		on_socks_request(conn);
}

void conn_on_head(struct conn *conn)
{
	if (conn->via == EGRESS_VIA_HTTP)
		on_http(conn);
	else
		on_socks(conn);
}
