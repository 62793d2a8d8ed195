/* SPDX-License-Identifier: Apache-2.0 */
#include "common/plan_op.h"

#include <stdlib.h>
#include <string.h>

#include "common/limits.h"
#include "common/path.h"
#include "common/scope.h"
#include "common/sysmount.h"

#define OPS_FIRST 64

static const char *const kind_names[] = {
	[PLAN_ROOT] = "root",
	[PLAN_PROC] = "proc",
	[PLAN_DEV] = "dev",
	[PLAN_TMPFS] = "tmpfs",
	[PLAN_SYMLINK] = "symlink",
	[PLAN_BIND] = "bind",
	[PLAN_MASK_DIR] = "mask-dir",
	[PLAN_MASK_FILE] = "mask-file",
	[PLAN_MASK_TREE] = "mask-tree",
	[PLAN_SEAL] = "seal",
	[PLAN_SYS] = "sys",
	[PLAN_PIN] = "pin",
	[PLAN_NOTICE] = "notice",
};

const char *plan_op_kind_name(enum plan_op_kind kind)
{
	return kind < PLAN_OP_KIND_COUNT ? kind_names[kind] : "unknown";
}

bool plan_path_is_canonical(const char *path)
{
	return strcmp(path, "/") == 0 || (path[0] == '/' && path_is_relative(path + 1));
}

void plan_deinit(struct plan *plan)
{
	if (!plan)
		return;
	for (size_t i = 0; i < plan->count; i++) {
		free(plan->ops[i].path);
		free(plan->ops[i].source);
	}
	free(plan->ops);
	free(plan->chdir);
	*plan = (struct plan)PLAN_INIT;
}

int plan_add(struct plan *plan, const struct plan_op *op, struct error *err)
{
	struct plan_op copy = *op;

	if (plan->count >= LIMIT_RULES)
		return error_set(err, ERR_POLICY_INVALID, 0, "the plan has more than %d operations",
				 LIMIT_RULES);
	if (plan->count == plan->capacity) {
		size_t capacity = plan->capacity ? plan->capacity * 2 : OPS_FIRST;
		struct plan_op *grown = realloc(plan->ops, capacity * sizeof(*grown));

		if (!grown)
			return error_set(err, ERR_NOMEM, 0, "no memory for the plan");
		plan->ops = grown;
		plan->capacity = capacity;
	}
	copy.path = strdup(op->path);
	copy.source = op->source ? strdup(op->source) : NULL;
	if (!copy.path || (op->source && !copy.source)) {
		free(copy.path);
		free(copy.source);
		return error_set(err, ERR_NOMEM, 0, "no memory for the plan");
	}
	plan->ops[plan->count++] = copy;
	return 0;
}

int plan_check_rules(const struct rule_list *rules, struct error *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < rules->count; i++) {
		const struct rule *rule = &rules->rules[i];
		const char *why = path_refusal(rule->path);

		if (why)
			return error_set(err, ERR_POLICY_INVALID, 0, "a rule's path '%s' %s",
					 rule->path, why);
		if (i > 0) {
			size_t before = path_depth(rule[-1].path);
			size_t here = path_depth(rule->path);

			if (before > here ||
			    (before == here && strcmp(rule[-1].path, rule->path) >= 0))
				return error_set(err, ERR_POLICY_INVALID, 0,
						 "the rules are not merged at '%s'", rule->path);
		}
		r = sysmount_check_rule(rule, err);
	}
	return r;
}
