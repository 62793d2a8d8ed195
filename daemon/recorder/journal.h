/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_DAEMON_RECORDER_JOURNAL_H
#define FSBOX_DAEMON_RECORDER_JOURNAL_H

/*
 * The only file that sees libsystemd. Without it, and without a running journald, both functions do
 * nothing.
 */

#include <stdbool.h>

#include "proto/wire/eventop.h"

/* Whether journald is here now. */
bool journal_available(void);

/*
 * Hand MESSAGE to journald; LINE is its text as in events.jsonl, without the newline. A journald that
 * refuses is no concern of ours: events.jsonl is the record.
 */
void journal_send(const struct event_message *message, const char *line);

#endif
