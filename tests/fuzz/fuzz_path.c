/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Lines of a text as paths: every function of common/path.h on each of them, and on each next to the
 * one before it. What must hold between the results is checked.
 */

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/macpath.h"
#include "common/path.h"
#include "common/pathpattern.h"
#include "common/scope.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
	if (!holds)
		abort();
}

static void check_normal(const char *path)
{
	AUTO(auto_free) char *normal = path_normalize(path);
	AUTO(auto_free) char *again = normal ? path_normalize(normal) : NULL;
	AUTO(auto_free) char *parent = normal ? path_parent(normal) : NULL;
	size_t length = 0;

	must(path_normal_length(path, &length) == (normal != NULL));
	if (!normal)
		return;
	must(again && strcmp(again, normal) == 0);
	must(strlen(normal) == length && strncmp(normal, path, length) == 0);
	must(path_covers("/", normal) && path_covers(normal, normal));
	must((parent == NULL) == (strcmp(normal, "/") == 0));
	if (parent) {
		must(path_covers(parent, normal) && path_depth(parent) < path_depth(normal));
		must(strcmp(path_leaf(normal), "") != 0);
	}
}

static void check_clean(const char *path)
{
	AUTO(auto_free) char *clean = path_clean(path);
	AUTO(auto_free) char *collapsed = path_collapse(path);

	must((collapsed != NULL) == (path[0] == '/'));
	if (clean) {
		const char *refusal = path_refusal(clean);

		must(!refusal || strncmp(refusal, "is longer", 9) == 0);
		must(strcmp(clean, "/") == 0 || path_is_relative(clean + 1));
	}
	if (!path_refusal(path))
		must(collapsed && path_covers(path, path));
}

static void check_pair(const char *a, const char *b)
{
	AUTO(auto_free) char *joined = path_join(a, b);

	must(joined != NULL);
	if (path_covers(a, b) && path_covers(b, a))
		must(strcmp(a, b) == 0 || (a[0] == '\0' && b[0] == '/') ||
		     (b[0] == '\0' && a[0] == '/'));
}

static void check_pattern(const char *expression)
{
	struct path_pattern pattern = { .text = NULL };

	if (path_pattern_parse(&pattern, expression, NULL) == 0)
		must(pattern.text[0] == '/' && path_pattern_matches(&pattern, pattern.text));
	path_pattern_deinit(&pattern);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO(auto_free) char *text = malloc(size + 1);
	const char *previous = "/";
	char *next = text;
	char *line = NULL;

	if (!text)
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	while ((line = strsep(&next, "\n"))) {
		AUTO(auto_free) char *physical = macpath_physical(line);
		size_t length = 0;

		must((physical != NULL) == path_normal_length(line, &length));
		check_normal(line);
		check_clean(line);
		check_pair(previous, line);
		check_pattern(line);
		(void)macpath_check(line, NULL);
		(void)macpath_check_prefix(line, NULL);
		previous = line;
	}
	return 0;
}
