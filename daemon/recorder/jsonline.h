/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_DAEMON_RECORDER_JSONLINE_H
#define FSBOX_DAEMON_RECORDER_JSONLINE_H

/*
 * One event as one line of JSON, for people and programs that read events.jsonl.
 *
 * Text fields hold what somebody else chose. A line is safe to print on a terminal: control
 * characters, direction marks and line separators are JSON escapes. What is not UTF-8 has one
 * reading: a foreign byte is the four characters \xNN, and a backslash is \x5c.
 */

#include <stdint.h>

#include "common/buf.h"
#include "proto/wire/eventop.h"

/* The longest line: every text field of an event escaped at its worst, and the numbers. */
#define JSONLINE_BYTES (8u * sizeof(struct event_message))

/*
 * Append MESSAGE and a newline to OUT. MESSAGE was checked with event_message_check(); keys that say
 * nothing for its kind are left out.
 *
 * Fails with -ERR_NOMEM as buf_add() does; OUT then ends in a piece of a line.
 */
int jsonline_event(struct buf *out, const struct event_message *message);

/* Append the record that COUNT events were lost before TIME_NS, because of ERRNUM. */
int jsonline_lost(struct buf *out, uint64_t time_ns, uint64_t count, int errnum);

/* Append "text" with quotes, escaped as above. */
int jsonline_text(struct buf *out, const char *text);

#endif
