/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Two profile files, split at the first NUL byte: the first extends the second. What both are taken for
 * is merged and expanded; every path is then one that a rule may have.
 */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/path.h"
#include "proto/json/profile.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_entries(const struct path_entry_list *list)
{
	for (size_t i = 0; i < list->count; i++)
		if (path_refusal(list->items[i].path))
			abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct profile_facts facts = { .home = "/home/u", .cwd = "/" };
	const uint8_t *middle = size ? memchr(data, '\0', size) : NULL;
	size_t first = middle ? (size_t)(middle - data) : size;
	struct profile profile;
	struct profile base;

	if (profile_parse(&profile, (const char *)data, first, "first", NULL) < 0)
		return 0;
	if (middle &&
	    profile_parse(&base, (const char *)middle + 1, size - first - 1, "second", NULL) == 0 &&
	    profile_merge_take(&profile, &base, NULL) < 0)
		abort();
	if (profile_expand(&profile, &facts, NULL) == 0) {
		check_entries(&profile.paths.read_write);
		check_entries(&profile.paths.read_only);
		check_entries(&profile.paths.deny);
	}
	profile_deinit(&profile);
	return 0;
}
