/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_DAEMON_BROKER_LOOKUPRECORD_H
#define FSBOX_DAEMON_BROKER_LOOKUPRECORD_H

/*
 * What was asked of the resolvers, and answered: enough to see later, in one message, whether the
 * same questions would be answered the same, byte for byte. So every node that any of them visited
 * is looked at again, links and absences included (R10), and no list of nodes has to be right.
 *
 * One record is a sequence of entries, packed (pack.h): kind, request, answer.
 */

#include <stdbool.h>

#include "common/buf.h"
#include "daemon/broker/resolver.h"

/* Append one question and its answer; what does not fit marks the buffer as failed. */
void lookup_record_add(struct buf *record, enum lookup_kind kind, const struct buf *request,
		       const void *answer, size_t answer_size);

/*
 * In a resolver child: ask everything in RECORD again. *ret_same: all answers are as they were. What
 * cannot be asked is not the same. Fails with ERR_BAD_FRAME when that is no record.
 */
int lookup_record_repeat(struct unpack *record, bool *ret_same, struct error *err);

#endif
