/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_COMMON_PATHPATTERN_H
#define FSBOX_COMMON_PATHPATTERN_H

/*
 * Regular expressions that only spell a path: `^/a/b\.c$`, `^/a/b(/|$)`, `^/a/b`, `^/a/b.*`. They can
 * be held exactly on every platform, and no two dialects read them differently. Anything else is no
 * path pattern.
 */

#include <stdbool.h>

#include "common/error.h"

enum path_pattern_kind {
	PATH_PATTERN_LITERAL, /* this path */
	PATH_PATTERN_SUBPATH, /* this path and everything below */
	PATH_PATTERN_PREFIX,  /* every path whose text begins so */
};

/* @text  owned; begins with `/` */
struct path_pattern {
	enum path_pattern_kind kind;
	char *text;
};

void path_pattern_deinit(struct path_pattern *pattern);

/*
 * What EXPRESSION spells. RET_PATTERN holds nothing before. Fails with ERR_POLICY_INVALID when it is
 * no path pattern, or with ERR_NOMEM.
 */
int path_pattern_parse(struct path_pattern *ret_pattern, const char *expression, struct error *err);

/* Whether PATTERN matches PATH, both as text. */
bool path_pattern_matches(const struct path_pattern *pattern, const char *path);

#endif
