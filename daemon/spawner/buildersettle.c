/* SPDX-License-Identifier: Apache-2.0 */
/* The part of a builder that looks at what operations of the plan are about now, which the plan knew earlier. */
#include "daemon/spawner/builderwork.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/path.h"
#include "common/plan.h"

static bool is_empty(const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
	size_t count = 0;

	if (!dir) {
		if (fd >= 0)
			(void)close(fd);
		return false;
	}
	while (count < 3 && readdir(dir))
		count++;
	(void)closedir(dir);
	return count <= 2; /* itself and the one above */
}

bool builder_may_be_placeholder(const char *path)
{
	struct stat st;

	if (lstat(path, &st) < 0)
		return errno == ENOENT;
	if (S_ISREG(st.st_mode))
		return (st.st_mode & 07777) == 0600 && st.st_size == 0;
	/* A set-group-id parent hands that bit down. */
	return S_ISDIR(st.st_mode) && (st.st_mode & 0777) == 0700 && is_empty(path);
}

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
