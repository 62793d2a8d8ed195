/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_COMMON_POLICY_H
#define FSBOX_COMMON_POLICY_H

/*
 * The policy of one job: ordered rules, network posture, and the answer for every path.
 *
 * policy_access() is what a policy means. Every engine is tested against it.
 */

#include <stdbool.h>
#include <stddef.h>

#include "common/error.h"
#include "common/rule.h"

enum net_mode {
	NET_NONE = 0,
	NET_PROXY,
	NET_HOST,
};

/* A list of owned strings. */
struct string_list {
	char **items;
	size_t count;
	size_t capacity;
};

void string_list_deinit(struct string_list *list);
int string_list_add(struct string_list *list, const char *text, struct error *err); /* copies */
bool string_list_has(const struct string_list *list, const char *text);
void string_list_sort_unique(struct string_list *list); /* by bytes */

/* One thing left out or changed while the policy was settled, to be shown to the caller. */
struct policy_note {
	char *path;   /* owned */
	char *reason; /* owned; one clause, no final stop */
};

struct policy_trie; /* look-up index: common/trie.h */

/*
 * @rules                 merged: sorted by depth then bytes, one for each path
 * @net                   network mode asked for
 * @write_regexes         the botmux context's regular expressions, verbatim
 * @deny_regexes          likewise
 * @final_read_only       likewise: paths that end read-only whatever the expressions say
 * @aliases               pairs: a name through links that something granted was asked for by, and
 *                        where that really is
 * @notice                absent protected names: their appearing is told
 * @quarantine            such that are taken away when they appear, and with @quarantine_entries
 *                        directories of which new entries are (common/protect.h)
 * @suppressed            grants dropped because they lie in a restricted tree; sorted, unique
 * @notes                 the same and other changes, with reasons
 */
struct policy {
	struct rule_list rules;
	enum net_mode net;
	struct string_list write_regexes;
	struct string_list deny_regexes;
	struct string_list final_read_only;
	struct string_list aliases;
	struct string_list notice;
	struct string_list quarantine;
	struct string_list quarantine_entries;
	struct string_list suppressed;
	struct policy_note *notes;
	size_t note_count;
	size_t note_capacity;
	struct policy_trie *trie;
};

#define POLICY_INIT             \
	{                       \
		.net = NET_NONE \
	}

void policy_deinit(struct policy *policy);

/*
 * Build the index over policy->rules. Needed before policy_access(), which without it answers
 * ACCESS_NONE; again after rules changed. Fails with ERR_NOMEM, and then the old index stays.
 *
 * Rules need not be merged for it: of several for one path the first in the list counts.
 */
int policy_index(struct policy *policy, struct error *err);

/* The answer for one path. */
struct verdict {
	enum access access;      /* ACCESS_NONE where no rule covers the path */
	const struct rule *rule; /* borrowed from the policy; NULL with ACCESS_NONE */
};

/*
 * What PATH may be used for: the deepest rule that covers it. PATH is normalised as text first; one
 * that does not normalise gets ACCESS_NONE. Never fails, never allocates; cost grows with the
 * path's length, not with the number of rules.
 */
struct verdict policy_access(const struct policy *policy, const char *path);

/*
 * All rules covering PATH, deepest first: what the deciding rule shadows. Fills at most CAPACITY
 * pointers (borrowed), returns how many there are. Of several rules for one path only the first.
 */
size_t policy_covering(const struct policy *policy, const char *path, const struct rule **ret_rules,
		       size_t capacity);

int policy_add_note(struct policy *policy, const char *path, const char *reason, struct error *err);

/*
 * The canonical text that policyDigest is taken over: the network mode; one line for each rule
 * (access, source, kind of node, what if absent, path, where bound from or `-`); one for each regular
 * expression and final read-only path. Blanks, backslashes and bytes outside printable ASCII are
 * written as \xNN, so that a line has one reading. Appended to OUT; fails with ERR_NOMEM when it does
 * not fit.
 */
struct buf;
int policy_canonical_text(const struct policy *policy, struct buf *out, struct error *err);

/* Every strict ancestor of every rule that is not a deny; sorted by depth, then bytes. */
int policy_traverse_ancestors(const struct rule_list *rules, struct string_list *ret_paths,
			      struct error *err);

const char *net_mode_name(enum net_mode mode);
bool net_mode_parse(const char *name, enum net_mode *ret_mode);

#endif
