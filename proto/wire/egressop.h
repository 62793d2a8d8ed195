/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_PROTO_WIRE_EGRESSOP_H
#define FSBOX_PROTO_WIRE_EGRESSOP_H

/*
 * What fsboxd, a job's init and fsbox-egress say to each other: fixed layouts in the machine's own
 * byte order, as in spawnop.h.
 *
 *	fsboxd  --socket-->  egress	struct egress_link_message; descriptors that fsboxd made
 *	egress  --pipe---->  fsboxd	struct egress_event; no descriptors possible
 *	init    --socket-->  egress	struct egress_listener, each with one listening socket
 *
 * The first message is EGRESS_CONFIG; egress answers EGRESS_EVENT_READY once it is confined. A job
 * begins with EGRESS_JOB and two descriptors: the sealed memfd with the encoded policy
 * (common/netpolicy.h), which fsboxd has decoded itself before, and one end of a SOCK_SEQPACKET
 * socketpair whose other end the job's init holds as long as it lives. Over it init sends the
 * listeners that it made in the job's own network namespace, before it starts the command: what
 * connects early waits in their backlog. The listener that a connection came in by says whose it is.
 *
 * A job ends with EGRESS_END or when init's end is closed; then its listeners and connections are
 * closed at once. To egress all that comes from init is hostile.
 *
 * When egress dies its listeners die with it: programs inside are refused, nothing opens up, and jobs
 * that were running stay without network. fsboxd starts another one for later jobs.
 */

#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "common/limits.h"
#include "common/netpolicy.h"

#define EGRESSOP_VERSION 1

/* Descriptor numbers at exec. */
#define EGRESS_FD_LINK 3   /* socket: fsboxd's messages; fsboxd has shut down its reading side */
#define EGRESS_FD_EVENTS 4 /* pipe: struct egress_event */
#define EGRESS_FD_FILE 5   /* or not open: where events are appended once nobody reads that pipe */

/* Where programs inside find the proxies, on 127.0.0.1 (and [::1]). */
#define EGRESS_HTTP_PORT 3128
#define EGRESS_SOCKS_PORT 1080

/* ---- fsboxd -> egress ---------------------------------------------------------------- */

enum egress_link_kind {
	EGRESS_CONFIG = 1, /* first, and once */
	EGRESS_JOB,        /* + [policy memfd, init's socket] */
	EGRESS_END,        /* close everything of a job; none is fine */
	EGRESS_LINK_KIND_COUNT,
};

enum egress_upstream { EGRESS_UPSTREAM_NONE = 0, EGRESS_UPSTREAM_HTTP, EGRESS_UPSTREAM_SOCKS5 };

/*
 * @required  records are required: without fsboxd nothing new is connected
 * @upstream  the host's own proxy, from fsboxd's configuration
 */
struct egress_config {
	uint32_t version; /* EGRESSOP_VERSION */
	uint32_t required;
	uint32_t upstream; /* enum egress_upstream */
	uint32_t upstream_port;
	char upstream_host[HOSTNAME_BYTES + 2]; /* "" without upstream */
};

struct egress_job {
	uint32_t uid;             /* for records */
	uint32_t max_connections; /* at a time; 1 .. LIMIT_EGRESS_CONNECTIONS_PER_JOB */
	uint32_t idle_ms;         /* 0: LIMIT_EGRESS_IDLE_MS */
	uint32_t reserved;
};

struct egress_link_message {
	uint32_t size; /* sizeof(struct egress_link_message) */
	uint32_t kind; /* enum egress_link_kind */
	uint64_t job;  /* 0 for EGRESS_CONFIG */
	union {
		struct egress_config config;
		struct egress_job job;
	} u;
};

#define EGRESS_LINK_FDS 2

/* ---- init -> egress ------------------------------------------------------------------ */

enum egress_via { EGRESS_VIA_HTTP = 1, EGRESS_VIA_SOCKS, EGRESS_VIA_FORWARD, EGRESS_VIA_COUNT };

/*
 * With it rides one listening TCP socket of the job's network namespace; at most one of each kind,
 * port and address family.
 *
 * @port  EGRESS_VIA_FORWARD: the host's port, which the policy must list; else 0
 */
struct egress_listener {
	uint32_t size; /* sizeof(struct egress_listener) */
	uint32_t via;  /* enum egress_via */
	uint32_t port;
	uint32_t reserved;
};

/* ---- egress -> fsboxd ---------------------------------------------------------------- */

enum egress_event_kind {
	EGRESS_EVENT_READY = 1,   /* confined, serves */
	EGRESS_EVENT_JOB_REFUSED, /* its policy or socket cannot be used, or a bound is reached */
	EGRESS_EVENT_LISTENER_REFUSED, /* init sent something that is not served */
	EGRESS_EVENT_ALLOWED,          /* connected */
	EGRESS_EVENT_DENIED,           /* refused by the policy, or not understood */
	EGRESS_EVENT_FAILED,           /* allowed, but could not be connected */
	EGRESS_EVENT_CLOSED,           /* the end of one that was ALLOWED */
	EGRESS_EVENT_STATS,            /* when a job ends */
	EGRESS_EVENT_KIND_COUNT,
};

enum egress_event_flags {
	EGRESS_ADDRESS_UNCHECKED = 1 << 0, /* an upstream proxy looks the name up (R33) */
	EGRESS_PLAIN_HTTP = 1 << 1,        /* a request for an http:// URL, not a tunnel */
	EGRESS_EVENT_FLAGS_ALL = (1 << 2) - 1,
};

/* Of one job, so far. */
struct egress_stats {
	uint64_t allowed;
	uint64_t denied;
	uint64_t failed;
	uint64_t sent_bytes;
	uint64_t received_bytes;
	uint64_t lost_events; /* while nobody read them */
};

/*
 * About one connection; in the others only what their kind says.
 *
 * @connection  counts up within egress; ties CLOSED to its ALLOWED
 * @address     as dialled or judged; address_family 0 when none was
 * @host        what the program asked for, in its normal form where it has one, else as it came:
 *              any bytes but NUL, cut
 * @detail      for people: text of ours
 */
struct egress_event {
	uint32_t size; /* sizeof(struct egress_event) */
	uint32_t kind; /* enum egress_event_kind */
	uint64_t job;
	uint64_t connection;
	uint64_t time_ns; /* CLOCK_REALTIME */
	uint32_t uid;
	uint32_t via;    /* enum egress_via, or 0 */
	uint32_t port;   /* 0: none was read */
	uint32_t reason; /* enum net_reason */
	uint32_t flags;  /* enum egress_event_flags */
	uint8_t address_family;
	uint8_t address_class; /* enum netaddr_class */
	uint8_t reserved[2];
	uint8_t address[16];
	uint64_t duration_ms;
	struct egress_stats stats; /* CLOSED: sent_bytes, received_bytes; STATS: all */
	char host[HOSTNAME_BYTES + 2];
	char detail[128];
};

/*
 * Whether SIZE bytes received as MESSAGE are one well-formed message. Fails with ERR_BAD_FRAME,
 * saying what is wrong. Only then may fields be read.
 */
int egress_link_check(const struct egress_link_message *message, size_t size, size_t fd_count,
		      struct error *err);
int egress_listener_check(const struct egress_listener *message, size_t size, size_t fd_count,
			  struct error *err);
int egress_event_check(const struct egress_event *event, size_t size, struct error *err);

const char *egress_via_name(enum egress_via via);
const char *egress_event_name(enum egress_event_kind kind); /* "egress.allowed" ... */

/*
 * The URL of an upstream proxy as fsboxd.conf(5) has it ("http://proxy:3128", "socks5://[::1]:1080")
 * into CONFIG. NULL is none. Fails with ERR_CONFIG.
 */
int egress_upstream_parse(const char *url, struct egress_config *config, struct error *err);

#endif
