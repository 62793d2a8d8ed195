/* SPDX-License-Identifier: Apache-2.0 */
#include "common/plan_notice.h"

#include <string.h>

/* Whether a job can make PATH, in the host's own tree, and nothing is said about PATH itself. */
static bool is_worth_notice(const struct policy *policy, const char *path)
{
	struct verdict verdict = policy_access(policy, path);

	return verdict.access == ACCESS_READ_WRITE && !verdict.rule->bind_source &&
	       verdict.rule->type != NODE_ABSENT && strcmp(verdict.rule->path, path) != 0;
}

static int add_notices(struct plan *plan, const struct policy *policy,
		       const struct string_list *paths, uint32_t flags, struct error *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < paths->count; i++) {
		const struct plan_op op = {
			.kind = PLAN_NOTICE,
			.flags = flags,
			.path = paths->items[i], /* copied */
			.rule = -1,
		};

		if (is_worth_notice(policy, op.path))
			r = plan_add(plan, &op, err);
	}
	return r;
}

int plan_add_notices(struct plan *plan, const struct policy *policy, struct error *err)
{
	int r = add_notices(plan, policy, &policy->notice, 0, err);

	if (r == 0)
		r = add_notices(plan, policy, &policy->quarantine, PLAN_QUARANTINE, err);
	if (r == 0)
		r = add_notices(plan, policy, &policy->quarantine_entries,
				PLAN_QUARANTINE | PLAN_ENTRIES, err);
	return r;
}
