/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_COMMON_EXPRESSION_H
#define FSBOX_COMMON_EXPRESSION_H

/*
 * Regular expressions over paths, and final read-only paths, on Linux: mounts know paths, not
 * patterns. What exists and matches is held by rules; where an expression could also match what does
 * not exist yet, and that would make a difference, the request is refused. Nothing is ignored.
 *
 * Expressions are POSIX extended, searched unanchored in a path's bytes.
 */

#include <stdbool.h>
#include <stddef.h>

#include "common/error.h"
#include "common/limits.h"
#include "common/policy.h"

/*
 * What can be told about all matches of an expression without trying it.
 *
 * @prefix  every match begins with it, when the expression is anchored; else empty
 * @exact   @prefix is the only match
 */
struct expression_shape {
	char prefix[LIMIT_PATH_BYTES + 1];
	bool exact;
};

/* Errs towards an empty prefix. Fails with ERR_POLICY_INVALID when REGEX does not compile. */
int expression_shape(const char *regex, struct expression_shape *ret_shape, struct error *err);

/* Whether a match can lie strictly below the normal path TREE. */
bool expression_reaches(const struct expression_shape *shape, const char *tree);

/*
 * What the caller found in the trees that the settled policy shows. Of the rules only path and type
 * are looked at; paths are canonical.
 *
 * @deny_matches     what exists and matches one of policy->deny_regexes
 * @write_matches    likewise policy->write_regexes
 * @final_read_only  the paths of policy->final_read_only with their types, absent ones included
 * @watched          a guard watches: then what appears later is held, and need not be refused
 */
struct expression_facts {
	const struct rule_list *deny_matches;
	const struct rule_list *write_matches;
	const struct rule_list *final_read_only;
	bool watched;
};

/*
 * Add to POLICY (settled; its expression lists filled) the rules that hold its expressions, in the
 * order that the Seatbelt profile gives them: writes, denies, final read-only paths. Merges and
 * indexes again.
 *
 * - A deny expression denies what matches. One with a single possible match is a deny like any other.
 *   Otherwise it is refused when it reaches into a readWrite tree of the host's and nobody watches.
 * - A write expression makes writable what matches and is readOnly. It is refused when it matches what
 *   may not be read, or reaches what does not exist outside a readWrite tree.
 * - Final read-only paths take write access away from themselves and everything below. Denies below
 *   stay denies.
 *
 * Fails with ERR_POLICY_INVALID (naming the expression and the reason) or ERR_NOMEM; POLICY is then
 * good for policy_deinit() only.
 */
int policy_hold_expressions(struct policy *policy, const struct expression_facts *facts,
			    struct error *err);

#endif
