/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_DAEMON_SPAWNER_OP_H
#define FSBOX_DAEMON_SPAWNER_OP_H

/*
 * What a broker may ask for: one table names each operation, what it must name, and in which states
 * of a job it is legal. A broker speaks for its own user only; connections of administrators reach
 * further, for lists and signals.
 */

#include "proto/wire/spawnop.h"

struct brokerlink;

/* MESSAGE passed op_message_check(). What is not allowed is answered by LINK_ERROR. */
void op_handle(struct brokerlink *link, const struct op_message *message);

#endif
