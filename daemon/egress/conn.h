/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_DAEMON_EGRESS_CONN_H
#define FSBOX_DAEMON_EGRESS_CONN_H

/*
 * One connection from inside a job: what it asks for is read, decided, dialled, relayed.
 *
 *	CONN_HEAD      reading where it wants to go	  request.c
 *	CONN_LOOKUP    its name is being looked up	  request.c
 *	CONN_DIAL      connecting			  request.c
 *	CONN_UPSTREAM  talking to the host's own proxy	  upstream.c
 *	CONN_RELAY     bytes go both ways		  conn.c
 *	CONN_LINGER    all is said; until the client has read it
 *
 * A connection is ended by conn_end(), which frees it: a caller returns at once afterwards.
 */

#include <event2/event_struct.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/buf.h"
#include "common/netpolicy.h"
#include "daemon/egress/dial.h"
#include "daemon/egress/job.h"
#include "daemon/egress/lookup.h"
#include "daemon/egress/relay.h"

enum conn_state { CONN_HEAD = 1, CONN_LOOKUP, CONN_DIAL, CONN_UPSTREAM, CONN_RELAY, CONN_LINGER };

/*
 * @in         bytes of the client that were read and not yet passed on
 * @out        what goes to the server first: a request written anew
 * @answer     what goes to the client first
 * @plain      a request for an http:// URL; its body is @extent and @left
 * @greeted    SOCKS: the greeting was answered
 * @unchecked  an upstream proxy looks the name up
 * @recorded   as allowed: its end is recorded, too
 * @cut        what the client got is not all that there should be: its end is a reset
 */
struct conn {
	struct job *job;
	struct conn *prev; /* job.conns */
	struct conn *next;
	uint64_t id;
	enum egress_via via;
	enum conn_state state;
	uint64_t begun_ms;
	int client_fd;
	int server_fd;
	struct event client_readable;
	struct event server_readable;
	struct event timer;
	struct buf in;
	struct buf out;
	struct buf answer;
	bool greeted;
	bool tunnel;
	bool plain;
	bool unchecked;
	bool recorded;
	bool cut;
	enum relay_extent extent;
	uint64_t left;
	struct chunked chunked;
	size_t scanned; /* of @in, for the end of the head */
	struct hostname host;
	uint16_t port;
	struct net_verdict verdict;
	struct netaddr address;
	enum netaddr_class class;
	struct lookup lookup;
	struct dial *dial;
	struct relay relay;
	size_t drained; /* in CONN_LINGER */
};

/* Serve FD, which came in by LISTENER. */
void conn_begin_take(struct job *job, const struct listener *listener, int fd);
void conn_end(struct conn *conn);

/* Wait for the client's or the server's bytes, or until MS have passed in this state. */
void conn_set_timer(struct conn *conn, uint64_t ms);

/* Record a refusal or failure, tell the client, and end. WHY is for the record; may be "". */
void conn_refuse(struct conn *conn, enum net_reason reason, const char *why);

/* conn->server_fd leads where the client wants: tell it and relay. */
void conn_establish(struct conn *conn);

/* More bytes of the client came, in CONN_HEAD (request.c). */
void conn_on_head(struct conn *conn);

/* It wants to go to conn->host and conn->port: decide and go on (request.c). */
void conn_on_request(struct conn *conn);

/* Whether it has to go through the host's own proxy (upstream.c). */
bool conn_needs_upstream(const struct conn *conn);
bool conn_needs_upstream_http(const struct conn *conn); /* and that one speaks HTTP */

/* The upstream proxy is connected: ask it (upstream.c). */
void conn_ask_upstream(struct conn *conn);

#endif
