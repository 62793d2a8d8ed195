/* SPDX-License-Identifier: Apache-2.0 */
#include "common/pathpattern.h"

#include <stdlib.h>
#include <string.h>

#include "common/path.h"
#include "common/scope.h"

#define SPECIAL ".[]()*+?{}|^$\\"

void path_pattern_deinit(struct path_pattern *pattern)
{
	if (!pattern)
		return;
	free(pattern->text);
	pattern->text = NULL;
}

/* Characters that stand for themselves, from AT on, into TEXT; what follows them. */
static const char *take_literal(const char *at, char *text)
{
	while (*at) {
		if (*at == '\\' && at[1] && strchr(SPECIAL "/-", at[1]))
			at++;
		else if (strchr(SPECIAL, *at))
			break;
		*text++ = *at++;
	}
	*text = '\0';
	return at;
}

static bool kind_of_tail(const char *tail, enum path_pattern_kind *ret_kind)
{
	if (strcmp(tail, "$") == 0)
		*ret_kind = PATH_PATTERN_LITERAL;
	else if (strcmp(tail, "(/|$)") == 0 || strcmp(tail, "($|/)") == 0)
		*ret_kind = PATH_PATTERN_SUBPATH;
	else if (strcmp(tail, "") == 0 || strcmp(tail, ".*") == 0)
		*ret_kind = PATH_PATTERN_PREFIX;
	else
		return false;
	return true;
}

int path_pattern_parse(struct path_pattern *ret_pattern, const char *expression, struct error *err)
{
	struct path_pattern pattern = { .text = malloc(strlen(expression) + 1) };

	if (!pattern.text)
		return error_set(err, ERR_NOMEM, 0, "no memory for a regular expression");
	if (expression[0] != '^' ||
	    !kind_of_tail(take_literal(expression + 1, pattern.text), &pattern.kind) ||
	    pattern.text[0] != '/') {
		path_pattern_deinit(&pattern);
		return error_set(err, ERR_POLICY_INVALID, 0,
				 "the expression '%s' is more than an anchored path", expression);
	}
	*ret_pattern = pattern;
	return 0;
}

bool path_pattern_matches(const struct path_pattern *pattern, const char *path)
{
	switch (pattern->kind) {
	case PATH_PATTERN_LITERAL:
		return strcmp(pattern->text, path) == 0;
	case PATH_PATTERN_SUBPATH:
		return path_covers(pattern->text, path);
	case PATH_PATTERN_PREFIX:
		return strncmp(pattern->text, path, strlen(pattern->text)) == 0;
	}
	return false;
}
