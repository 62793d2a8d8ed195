/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/spawner/mountwork.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/limits.h"
#include "common/path.h"
#include "common/scope.h"
#include "daemon/spawner/mountapi.h"

enum walk_flags {
	WALK_ANYWHERE = 1 << 0, /* mountpoints may be made also in what is not ours */
	WALK_LINK = 1 << 1,     /* the last component may be a link, which is then the mountpoint */
};

void mount_work_deinit(struct mount_work *work)
{
	auto_close(&work->root_fd);
	auto_close(&work->stage_fd);
	auto_close(&work->masks_fd);
	free(work->own_devs);
	free(work->staged);
}

int mount_work_make_masks(int *ret_fd, struct error *err)
{
	AUTO(auto_close) int masks = mountapi_new_tmpfs("0755", MOUNT_ATTR_NOEXEC);
	AUTO(auto_close) int file = -1;

	if (masks < 0 || mkdirat(masks, "d", 0) < 0)
		return error_set(err, ERR_SETUP_FAILED, errno, "source of masks");
	file = openat(masks, "f", O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0);
	if (file < 0)
		return error_set(err, ERR_SETUP_FAILED, errno, "source of masks");
	auto_close(&file);
	file = -1;
	if (mountapi_restrict(masks, "", MOUNT_ATTR_RDONLY, 0) < 0)
		return error_set(err, ERR_SETUP_FAILED, errno, "seal the source of masks");
	*ret_fd = steal_fd(&masks);
	return 0;
}

bool mount_work_is_fresh(const struct plan_op *op)
{
	return op->kind == PLAN_TMPFS || op->kind == PLAN_PROC;
}

/* The waiting tree that PATH lies in, or NULL; the last one covering it decides. */
static const struct staged *staged_over(const struct mount_work *work, const char *path)
{
	for (size_t i = work->staged_count; i-- > 0;)
		if (path_covers(work->staged[i].op->path, path))
			return &work->staged[i];
	return NULL;
}

static bool under_fresh(const struct mount_work *work, const char *path)
{
	for (size_t i = 0; i < work->fresh_count; i++)
		if (path_covers(work->fresh[i]->path, path))
			return true;
	return false;
}

int mount_work_find_staged(struct mount_work *work, struct error *err)
{
	const struct plan *plan = work->plan;

	work->staged = calloc(plan->count + 1, sizeof(*work->staged));
	if (!work->staged)
		return error_set(err, ERR_NOMEM, 0, "list of staged mounts");
	for (size_t i = 0; i < plan->count; i++) {
		const struct plan_op *op = &plan->ops[i];

		if (mount_work_is_fresh(op)) {
			if (work->fresh_count == FRESH_MAX)
				return error_set(err, ERR_SETUP_FAILED, 0, "too many fresh places");
			work->fresh[work->fresh_count++] = op;
		} else if (op->kind != PLAN_SEAL && op->kind != PLAN_NOTICE &&
			   !(op->flags & PLAN_WATCH) && under_fresh(work, op->path) &&
			   !staged_over(work, op->path)) {
			work->staged[work->staged_count++] = (struct staged){ op, i };
		}
	}
	return 0;
}

static bool own_filesystem(const struct mount_work *work, dev_t dev)
{
	for (size_t i = 0; i < work->own_dev_count; i++)
		if (work->own_devs[i] == dev)
			return true;
	return false;
}

int mount_work_remember(struct mount_work *work, int fd, struct error *err)
{
	struct stat st;
	dev_t *grown = NULL;

	if (fstat(fd, &st) < 0)
		return error_set(err, ERR_SETUP_FAILED, errno, "stat a new file system");
	grown = reallocarray(work->own_devs, work->own_dev_count + 1, sizeof(*grown));
	if (!grown)
		return error_set(err, ERR_NOMEM, 0, "list of file systems");
	work->own_devs = grown;
	work->own_devs[work->own_dev_count++] = st.st_dev;
	return 0;
}

/*
 * The child NAME of DIR_FD, made when it is missing and DIR_FD is in a file system of ours, or with
 * WALK_ANYWHERE.
 */
static int open_or_make(const struct mount_work *work, int dir_fd, const char *name, bool directory,
			unsigned int flags)
{
	uint64_t link = flags & WALK_LINK ? O_NOFOLLOW : 0;
	bool anywhere = (flags & WALK_ANYWHERE) != 0;
	struct stat st;
	int fd = mountapi_open(dir_fd, name, O_PATH | link, RESOLVE_IN_ROOT);

	if (fd >= 0 || errno != ENOENT)
		return fd;
	if (fstat(dir_fd, &st) < 0)
		return -1;
	if (!anywhere && !own_filesystem(work, st.st_dev)) {
		errno = ENOENT;
		return -1;
	}
	/* In a private directory the builder of another job may be faster, with the same in mind. */
	if (directory) {
		if (mkdirat(dir_fd, name, anywhere ? 0700 : 0755) < 0 && errno != EEXIST)
			return -1;
	} else {
		AUTO(auto_close)
		int made = openat(dir_fd, name, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0644);

		if (made < 0 && errno != EEXIST)
			return -1;
	}
	return mountapi_open(dir_fd, name, O_PATH | link, RESOLVE_IN_ROOT);
}

static int walk(const struct mount_work *work, int base_fd, const char *rel, bool directory,
		unsigned int flags)
{
	AUTO(auto_close) int at = fcntl(base_fd, F_DUPFD_CLOEXEC, 3);

	while (at >= 0 && *rel) {
		char name[LIMIT_PATH_BYTES + 1];
		size_t length = strcspn(rel, "/");
		int next = -1;

		if (length == 0) {
			rel++;
			continue;
		}
		memcpy(name, rel, length);
		name[length] = '\0';
		rel += length;
		next = open_or_make(work, at, name, directory || *rel != '\0',
				    *rel == '\0' ? flags : flags & ~(unsigned int)WALK_LINK);
		auto_close(&at);
		at = next;
	}
	return steal_fd(&at);
}

int mount_work_mountpoint(const struct mount_work *work, int base_fd, const char *rel,
			  bool directory)
{
	return walk(work, base_fd, rel, directory, 0);
}

/* Whether what is seen around OP is a private directory of fsbox's, in which we may make things. */
static bool stands_in_private(const struct mount_work *work, const struct plan_op *op)
{
	const struct plan_op *seen = NULL;

	for (const struct plan_op *at = work->plan->ops; at < op; at++)
		if (at->kind != PLAN_SYMLINK && at->kind != PLAN_SEAL && at->kind != PLAN_PIN &&
		    at->kind != PLAN_NOTICE && path_covers(at->path, op->path))
			seen = at;
	return seen && seen->kind == PLAN_BIND && (seen->flags & PLAN_PRIVATE_SOURCE);
}

int mount_work_target(const struct mount_work *work, const struct plan_op *op, bool directory,
		      struct error *err)
{
	const struct staged *staged = mount_work_is_fresh(op) ? NULL : staged_over(work, op->path);
	char rel[LIMIT_PATH_BYTES + sizeof(MOUNT_STAGE_DIR) + 32];
	unsigned int flags = op->flags & PLAN_NODE_LINK ? WALK_LINK : 0;
	int fd = -1;

	if (staged)
		(void)snprintf(rel, sizeof(rel), "%s/%zu%s", MOUNT_STAGE_DIR, staged->index,
			       op->path + strlen(staged->op->path));
	else
		(void)snprintf(rel, sizeof(rel), "%s", op->path);

	fd = walk(work, work->root_fd, rel, directory, flags);
	if (fd < 0 && errno == ENOENT && stands_in_private(work, op))
		fd = walk(work, work->root_fd, rel, directory, flags | WALK_ANYWHERE);
	if (fd < 0)
		return error_set(err, ERR_SETUP_FAILED, errno, "mountpoint '%s'", op->path);
	return fd;
}
