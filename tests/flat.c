/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/flat.h"

#include <stdlib.h>

#include "common/path.h"
#include "common/scope.h"

const struct rule *flat_access(const struct rule_list *rules, const char *path)
{
	AUTO(auto_free) char *normal = path_normalize(path);
	const struct rule *best = NULL;

	if (!normal)
		return NULL;
	for (size_t i = 0; i < rules->count; i++) {
		const struct rule *rule = &rules->rules[i];

		if (path_covers(rule->path, normal) &&
		    (!best || path_depth(rule->path) > path_depth(best->path)))
			best = rule;
	}
	return best;
}
