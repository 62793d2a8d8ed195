/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_COMMON_TRIE_H
#define FSBOX_COMMON_TRIE_H

/*
 * The look-up index of a policy: which rules cover a path.
 *
 * A radix tree over the bytes of the rules' paths, with edges as long as they can be, so at most two
 * nodes for each rule. Nodes lie in one array, the children of a node side by side, their first bytes
 * in an array of their own: one memchr() finds the next node. The cost of a look-up is bounded by the
 * length of the path, however many rules there are and however they were chosen. It never allocates.
 *
 * One rule covers a path when it is the path, or ends where a `/` of the path begins; all rules that
 * cover a path lie on one walk from the root, deepest last. Of several rules for one path the first
 * in the list counts. "/" and the empty path both cover everything; the first of them counts.
 * Paths are taken as they are: nothing needs to be normal, sorted or unique.
 */

#include <stddef.h>
#include <stdint.h>

#include "common/rule.h"

struct policy_trie;

#define TRIE_NO_RULE UINT32_MAX

/*
 * An index over the rules' paths, which are copied as far as needed. NULL when memory is short. The
 * caller frees it with trie_free().
 */
struct policy_trie *trie_new(const struct rule_list *rules);

struct policy_trie *trie_free(struct policy_trie *trie); /* returns NULL */

/* Index of the deepest rule covering the first SIZE bytes of PATH (absolute), or TRIE_NO_RULE. */
uint32_t trie_find(const struct policy_trie *trie, const char *path, size_t size);

/*
 * All rules covering the first SIZE bytes of PATH, deepest first, as pointers into RULES (what the
 * index was made from). Fills at most CAPACITY pointers, returns how many there are.
 */
size_t trie_covering(const struct policy_trie *trie, const struct rule_list *rules,
		     const char *path, size_t size, const struct rule **ret_rules, size_t capacity);

#endif
