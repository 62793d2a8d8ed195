/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The host's own proxy between us and the internet: it looks names up, so that what it reaches is
 * not checked, and is recorded so. What the policy marks as private, addresses that are not public and
 * forwarded ports are reached without it.
 */
#include <errno.h>
#include <event2/event.h>
#include <string.h>
#include <sys/socket.h>

#include "common/scope.h"
#include "daemon/egress/conn.h"
#include "daemon/egress/httphead.h"
#include "daemon/egress/socks.h"

#define ASK_BYTES 1024

bool conn_needs_upstream(const struct conn *conn)
{
	if (conn->job->egress->config.upstream == EGRESS_UPSTREAM_NONE ||
	    conn->via == EGRESS_VIA_FORWARD || conn->verdict.private_too)
		return false;
	return conn->host.address.family == 0 ||
	       netaddr_classify(&conn->host.address) == NETADDR_PUBLIC;
}

bool conn_needs_upstream_http(const struct conn *conn)
{
	return conn_needs_upstream(conn) &&
	       conn->job->egress->config.upstream == EGRESS_UPSTREAM_HTTP;
}

static bool speaks_http(const struct conn *conn)
{
	return conn->job->egress->config.upstream == EGRESS_UPSTREAM_HTTP;
}

/* How many bytes the upstream proxy's answer has; 0: more to come, -1: it refused. */
static int answer_size(struct conn *conn, const char *data, size_t size, struct error *err)
{
	int status = 0;
	int head = 0;

	if (!speaks_http(conn))
		return socks_read_answers((const uint8_t *)data, size, err);
	head = httphead_size(data, 0, size);
	if (head == 0)
		return 0;
	status = head < 0 ? 0 : httphead_status(data, (size_t)head);
	if (status >= 200 && status <= 299)
		return head;
	return error_set(err, ERR_INVALID, 0, "the upstream proxy answered %d", status);
}

static void on_answer(evutil_socket_t fd, short what, void *arg)
{
	struct conn *conn = arg;
	struct error err = ERROR_INIT;
	char data[LIMIT_EGRESS_HEAD_BYTES];
	ssize_t got = recv(fd, data, sizeof(data), MSG_PEEK);
	int size = 0;

	(void)what;
	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	size = got > 0 ? answer_size(conn, data, (size_t)got, &err) : -1;
	if (size == 0 && (size_t)got == sizeof(data))
		size = -1;
	if (size < 0) {
		conn_refuse(conn, NET_UPSTREAM_FAILED,
			    err.kind ? err.message : "the upstream proxy went away");
		return;
	}
	if (size == 0)
		return;
	/* What follows the answer is the server's already and stays in the socket. */
	(void)recv(fd, data, (size_t)size, 0);
	(void)event_del(&conn->server_readable);
	conn_establish(conn);
}

void conn_ask_upstream(struct conn *conn)
{
	AUTO(buf_deinit) struct buf ask = BUF_INIT(ASK_BYTES);

	/* A request for a URL is itself what such a proxy wants. */
	if (conn->plain && speaks_http(conn)) {
		conn_establish(conn);
		return;
	}
	if (speaks_http(conn)) {
		(void)buf_add_string(&ask, "CONNECT ");
		(void)httphead_render_authority(&conn->host, conn->port, true, &ask);
		(void)buf_add_string(&ask, " HTTP/1.1\r\nHost: ");
		(void)httphead_render_authority(&conn->host, conn->port, true, &ask);
		(void)buf_add_string(&ask, "\r\n\r\n");
	} else {
		(void)socks_write_request(&conn->host, conn->port, &ask);
	}
	if (send(conn->server_fd, ask.data, ask.size, MSG_NOSIGNAL) != (ssize_t)ask.size) {
		conn_refuse(conn, NET_UPSTREAM_FAILED, "the upstream proxy went away");
		return;
	}
	conn->state = CONN_UPSTREAM;
	(void)event_assign(&conn->server_readable, conn->job->egress->base, conn->server_fd,
			   EV_READ | EV_PERSIST, on_answer, conn);
	(void)event_add(&conn->server_readable, NULL);
	conn_set_timer(conn, LIMIT_EGRESS_CONNECT_MS);
}
