/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_TESTS_GEN_POLICY_H
#define FSBOX_TESTS_GEN_POLICY_H

/*
 * Random policies from a seed, the same on every machine: rules that nest, share prefixes that are no
 * component borders (/a beside /ab and /a-b), and repeat each other's paths.
 *
 * Test code: short memory aborts.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/rule.h"

struct gen {
	uint64_t state;
};

/*
 * @max_rules   at most so many, at least 1
 * @max_depth   components of a path, at least 1
 * @odd         paths that no look-up would give: empty and `.` segments, trailing slashes; now and
 *              then one that does not normalise
 * @bytes       names with newlines, quotes, backslashes, bytes that are no UTF-8
 * @root        now and then a rule on "/"
 * @files       types are set: some rules stand on regular files (nothing is below them), the other
 *              ones on directories; otherwise NODE_UNKNOWN
 */
struct gen_options {
	uint32_t max_rules;
	uint32_t max_depth;
	bool odd;
	bool bytes;
	bool root;
	bool files;
};

struct gen gen_start(uint64_t seed);

uint32_t gen_below(struct gen *gen, uint32_t bound); /* 0 ... bound - 1; BOUND not 0 */

/* A path by itself; the caller frees. */
char *gen_path(struct gen *gen, const struct gen_options *options);

/*
 * A path made to meet RULES: one of theirs, below, above or beside one of them, or gen_path(). The
 * caller frees.
 */
char *gen_probe(struct gen *gen, const struct rule_list *rules, const struct gen_options *options);

/* Candidates, appended to LIST: in no order, with duplicates. With `files` merge them afterwards. */
void gen_candidates(struct gen *gen, struct rule_list *list, const struct gen_options *options);

/* Merged rules of a random policy into LIST, which holds nothing. */
void gen_rules(struct gen *gen, struct rule_list *list, const struct gen_options *options);

#endif
