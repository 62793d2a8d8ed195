/* SPDX-License-Identifier: Apache-2.0 */
#include "common/plan_op.h"

#include <stdlib.h>
#include <string.h>

#include "common/limits.h"
#include "common/path.h"
#include "common/scope.h"

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
