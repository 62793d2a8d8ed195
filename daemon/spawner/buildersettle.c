/* SPDX-License-Identifier: Apache-2.0 */
/* The part of a builder that looks at what operations of the plan are about now, which the plan knew earlier. */
#include "daemon/spawner/builderwork.h"

#include <sys/stat.h>

#include "common/path.h"
#include "common/plan.h"

void builder_settle_mask(struct plan_op *op)
{
	struct stat st;

	if ((op->kind != PLAN_MASK_DIR && op->kind != PLAN_MASK_FILE) ||
	    op->flags & (PLAN_SYSTEM | PLAN_NODE_LINK) || lstat(op->path, &st) < 0 ||
	    S_ISLNK(st.st_mode))
		return;
	/* What is there is not what the job will see. */
	if (op->flags & PLAN_WATCH &&
	    (path_covers("/proc", op->path) || path_covers("/sys", op->path)))
		return;
	op->kind = S_ISDIR(st.st_mode) ? PLAN_MASK_DIR : PLAN_MASK_FILE;
	op->flags &= ~(uint32_t)PLAN_WATCH;
}

void builder_settle_pin(struct plan_op *op)
{
	struct stat st;

	if (lstat(op->source, &st) < 0)
		op->flags |= PLAN_WATCH;
	else if (!S_ISDIR(st.st_mode))
		op->flags |= PLAN_NODE_FILE;
}
