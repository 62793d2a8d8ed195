/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_DAEMON_BROKER_MATCHING_H
#define FSBOX_DAEMON_BROKER_MATCHING_H

/*
 * What exists in some trees and matches regular expressions: the half of common/expression.h that
 * touches files. matching_answer() runs in a resolver child.
 *
 * Every node counts, links as themselves; directories of other file systems are looked into too, links
 * are not followed. Only directories that a match can lie in are opened. A look that would take more
 * than MATCHING_NODES_MAX nodes fails: an expression is held wholly or the request refused.
 */

#include "common/buf.h"
#include "common/error.h"
#include "common/policy.h"
#include "daemon/broker/pack.h"

#define MATCHING_NODES_MAX 200000
#define MATCHING_EXPRESSIONS_MAX 256

/* Values for LOOKUP_MATCHING, appended to OUT: @deny and @write expressions, canonical @trees. */
void matching_ask(struct buf *out, const struct string_list *deny, const struct string_list *write,
		  const struct string_list *trees);

/*
 * The answer as rules with path and type, for struct expression_facts. The lists hold nothing before.
 * Fails with ERR_BAD_FRAME, ERR_NOMEM, ERR_POLICY_INVALID beyond LIMIT_RULES.
 */
int matching_unpack(struct rule_list *ret_deny, struct rule_list *ret_write, const void *values,
		    size_t size, struct error *err);

/* In the child. Fails with ERR_POLICY_INVALID (too many nodes, an expression that is none). */
int matching_answer(struct unpack *in, struct buf *out, struct error *err);

#endif
