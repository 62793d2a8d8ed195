/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_DAEMON_BROKER_LEFTOVERS_H
#define FSBOX_DAEMON_BROKER_LEFTOVERS_H

/* The request `ledger`: which placeholders are on the host, and another try at what is left over. */

struct call;

void leftovers_begin(struct call *call);

#endif
