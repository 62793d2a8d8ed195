/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_DAEMON_EGRESS_RESOLVER_H
#define FSBOX_DAEMON_EGRESS_RESOLVER_H

/*
 * The process that looks names up with this host's own resolver (nsswitch.conf, hosts, resolv.conf).
 *
 * It is forked before anything of a sandbox is read and holds nothing but its socket. Each name is
 * looked up in a child of its own, which may hang and is ended by its alarm; what a hostile name server
 * makes of it is lost with it. The answer is only addresses, and those are judged by the proxy.
 */

#include <stdint.h>

#include "common/error.h"
#include "common/hostname.h"
#include "common/limits.h"

/* @id  random: a child knows only its own */
struct resolver_query {
	uint64_t id;
	char name[HOSTNAME_BYTES + 2]; /* a name, never an address */
};

struct resolver_answer {
	uint64_t id;
	uint32_t reason; /* enum net_reason: NET_ALLOWED or NET_RESOLVE_FAILED */
	uint32_t count;
	struct netaddr addresses[LIMIT_EGRESS_ADDRESSES];
};

/*
 * Fork it. *ret_fd is a SOCK_SEQPACKET socket for queries and answers; at its end the resolver exits,
 * and when the resolver is gone it shows the end. ERR_SYSTEM.
 */
int resolver_start(int *ret_fd, struct error *err);

#endif
