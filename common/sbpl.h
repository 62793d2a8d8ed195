/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_COMMON_SBPL_H
#define FSBOX_COMMON_SBPL_H

/*
 * Lines of a Seatbelt profile: one allow or deny, its operations, its filters. What is named in them
 * depends on the hardening (common/seatbelt.h); which lines there are is seatbelt.c's business.
 *
 * Nothing fails here: a buffer that is full remembers it.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/pathpattern.h"
#include "common/policy.h"
#include "common/rule.h"

struct buf;

/* What a filter counts beside its path, by the same estimate as SEATBELT_PATH_BYTES. */
#define SBPL_FILTER_BYTES 8

/* @out  borrowed; @harden  enum seatbelt_harden */
struct sbpl {
	struct buf *out;
	uint32_t harden;
};

/* What a line is about: the tree of a rule (PATH_PATTERN_SUBPATH), or what an expression spells. */
struct sbpl_place {
	enum path_pattern_kind kind;
	const char *text; /* borrowed */
};

bool sbpl_is_hard(const struct sbpl *sbpl, uint32_t flag);

void sbpl_text(struct sbpl *sbpl, const char *text);

/* All lines of one rule. */
void sbpl_rule(struct sbpl *sbpl, const char *path, enum access access);

/* Deny reading, writing and what goes with them; a deny's lines. */
void sbpl_deny(struct sbpl *sbpl, const struct sbpl_place *place);

/* Allow writing, but no sockets: what a write expression means. */
void sbpl_allow_write(struct sbpl *sbpl, const struct sbpl_place *place);

/* The lines of expressions, verbatim but for quotes, which become dots. */
void sbpl_allow_write_regex(struct sbpl *sbpl, const char *expression);
void sbpl_deny_regex(struct sbpl *sbpl, const char *expression);

/* One line each: START (a verb and operations, with the opening parenthesis) and the path alone. */
void sbpl_literals(struct sbpl *sbpl, const char *start, const struct string_list *paths);

/* The filters of PLACE by themselves, with those of its twin on the Data volume if DENY. */
void sbpl_filters(struct sbpl *sbpl, const struct sbpl_place *place, bool deny);

/* How many bytes the filters of a rule's tree count towards SEATBELT_PATH_BYTES. */
size_t sbpl_filter_bytes(const struct sbpl *sbpl, const char *path, bool deny);

#endif
