/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_DAEMON_SPAWNER_LEDGERLINE_H
#define FSBOX_DAEMON_SPAWNER_LEDGERLINE_H

/*
 * One line of the ledger's file: text and back. Pure.
 *
 *	ACT JOB UID GID GROUPS PARENT NODE PATH SUM
 *
 * ACT is `intent`, `made`, `share` or `cancel`. GROUPS are numbers between commas. A node is
 * FSID:DEV:INO:SEC.NSEC:TYPE:HANDLE; the second node of an intent has only a time, since when it may be
 * there. What does not apply is `-`. In PATH blanks, backslashes and everything that is not
 * printable ASCII are \xNN. SUM is the beginning of the SHA-256 of what is before it, so that
 * a line that was torn or altered is not taken for another one.
 *
 * There is one way to write a line; any other is refused.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/limits.h"
#include "daemon/identity.h"
#include "proto/wire/spawnop.h"

struct buf;

enum ledger_act {
	LEDGER_INTENT = 1, /* @job is about to make @path in @parent; @node: not before when */
	LEDGER_MADE,       /* it did: @node */
	LEDGER_SHARE,      /* @job stands on what is at @path as well */
	LEDGER_CANCEL,     /* nobody made what they said they would at @path */
};

/*
 * @job       0: nobody stands on it any more
 * @identity  as whom it is made, and removed
 * @path      absolute, canonical, not "/"
 */
struct ledger_line {
	enum ledger_act act;
	uint64_t job;
	struct identity identity;
	struct node_identity parent;
	struct node_identity node;
	char path[LIMIT_PATH_BYTES + 1];
};

/* Append LINE and a newline to OUT, which may fail (common/buf.h). */
void ledger_line_write(const struct ledger_line *line, struct buf *out);

/* SIZE bytes of TEXT, without newline, from anybody. False: they are no line; RET_LINE is not set. */
bool ledger_line_read(struct ledger_line *ret_line, const char *text, size_t size);

#endif
