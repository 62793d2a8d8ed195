/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_DAEMON_EGRESS_DIAL_H
#define FSBOX_DAEMON_EGRESS_DIAL_H

/*
 * Connect to the first of several addresses that answers (RFC 8305): in turn by family, the next
 * one is tried when one fails or LIMIT_EGRESS_ATTEMPT_MS have passed. Exactly these addresses are
 * dialled: no name is looked up here.
 */

#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "common/netaddr.h"

struct dial;
struct event_base;

/*
 * @fd       connected, non-blocking, the receiver's; -1 when all failed
 * @address  the one that it leads to, or the last that failed
 * @errnum   why, with fd -1; ETIMEDOUT when time was up
 */
typedef void (*dial_done)(int fd, const struct netaddr *address, int errnum, void *arg);

/*
 * Start; DONE is called later, once, from the event loop; then or before, dial_free() ends it.
 *
 * @count  1 .. LIMIT_EGRESS_ADDRESSES
 *
 * NULL when memory is short.
 */
struct dial *dial_new(struct event_base *base, const struct netaddr *addresses, size_t count,
		      uint16_t port, dial_done done, void *arg);
struct dial *dial_free(struct dial *dial);

#endif
