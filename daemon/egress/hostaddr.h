/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_DAEMON_EGRESS_HOSTADDR_H
#define FSBOX_DAEMON_EGRESS_HOSTADDR_H

/*
 * Whether an address is this host's own, whatever it looks like. The kernel's routing is asked each
 * time, so that the answer is that of the moment and covers whole local networks.
 */

#include "common/error.h"
#include "common/netaddr.h"

/* Open the socket to ask with. *ret_fd is the caller's. ERR_SYSTEM. */
int hostaddr_open(int *ret_fd, struct error *err);

/*
 * netaddr_classify(), or if that says NETADDR_PUBLIC what routing says: NETADDR_HOST for a local
 * address, NETADDR_MULTICAST for broadcast and what is not unicast at all. No route is PUBLIC: connecting
 * will fail. NETADDR_RESERVED when the kernel does not answer.
 */
enum netaddr_class hostaddr_classify(int fd, const struct netaddr *address);

#endif
