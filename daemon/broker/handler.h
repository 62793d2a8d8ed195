/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_DAEMON_BROKER_HANDLER_H
#define FSBOX_DAEMON_BROKER_HANDLER_H

/* The table of requests: name, the states of a connection it is legal in, the function. */

#include "common/error.h"
#include "proto/json/message.h"

struct call;
struct client;

/* Whether CLIENT may ask for METHOD now. Fails with ERR_UNKNOWN_METHOD, ERR_INVALID (say hello first). */
int handler_check(const struct client *client, enum method method, struct error *err);

/* Do what CALL asks; it is answered now or later. */
void handler_run(struct call *call);

#endif
