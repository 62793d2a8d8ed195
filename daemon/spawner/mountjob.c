/* SPDX-License-Identifier: Apache-2.0 */
/* The part of mount.h that each job does for itself. */
#include "daemon/spawner/mount.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/bwrap.h"
#include "common/limits.h"
#include "common/path.h"
#include "common/scope.h"
#include "daemon/spawner/mountapi.h"
#include "daemon/spawner/mountwork.h"

/* Whether a user other than root can open a file of root's of this MODE: the job has no capability. */
static bool open_to_others(mode_t mode)
{
	return (mode & (S_IRWXG | S_IRWXO)) != 0;
}

/* Bit 31: the others are known. */
#define MASKS_KNOWN (1u << 31)

/* Not every kernel has all of them, and most are closed to anybody but root. */
static int find_proc_masks(const struct mount_work *work, int proc, uint32_t *ret_masks,
			   struct error *err)
{
	size_t count = 0;
	const char *const *names = bwrap_proc_masks(&count);

	*ret_masks = MASKS_KNOWN;
	for (size_t i = 0; i < count; i++) {
		struct stat st;

		if (fstatat(proc, names[i], &st, AT_SYMLINK_NOFOLLOW) < 0) {
			if (errno == ENOENT)
				continue;
			return error_set(err, ERR_SETUP_FAILED, errno, "look at '/proc/%s'",
					 names[i]);
		}
		if (work->options->root_peer || open_to_others(st.st_mode))
			*ret_masks |= 1u << i;
	}
	return 0;
}

static int mask_proc_files(const struct mount_work *work, int proc, struct error *err)
{
	size_t count = 0;
	const char *const *names = bwrap_proc_masks(&count);
	uint32_t masks = work->options->proc_masks ? *work->options->proc_masks : 0;
	int r = masks & MASKS_KNOWN ? 0 : find_proc_masks(work, proc, &masks, err);

	if (r < 0)
		return r;
	if (work->options->proc_masks)
		*work->options->proc_masks = masks;
	for (size_t i = 0; i < count; i++) {
		AUTO(auto_close) int mask = -1;

		if (!(masks & 1u << i))
			continue;
		mask = open_tree(work->stage_fd, "mask", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
		if (mask < 0 || move_mount(mask, "", proc, names[i], MOVE_MOUNT_F_EMPTY_PATH) < 0)
			return error_set(err, ERR_SETUP_FAILED, errno, "mask '/proc/%s'", names[i]);
	}
	return 0;
}

static int finish_proc(const struct mount_work *work, int target, struct error *err)
{
	const char *const settings[] = { "source", "proc", NULL };
	uint64_t attributes = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC |
			      (work->options->root_peer ? MOUNT_ATTR_RDONLY : 0);
	AUTO(auto_close) int proc = mountapi_new("proc", settings, attributes);
	AUTO(auto_close) int sys = -1;

	if (proc < 0 || mountapi_attach(proc, target) < 0)
		return error_set(err, ERR_SETUP_FAILED, errno, "mount '/proc'");
	sys = open_tree(proc, "sys", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
	if (sys < 0 || mountapi_restrict(sys, "", MOUNT_ATTR_RDONLY, 0) < 0 ||
	    move_mount(sys, "", proc, "sys", MOVE_MOUNT_F_EMPTY_PATH) < 0)
		return error_set(err, ERR_SETUP_FAILED, errno, "restrict '/proc/sys'");
	return mask_proc_files(work, proc, err);
}

static int finish_tmpfs(struct mount_work *work, const struct plan_op *op, int target,
			struct error *err)
{
	AUTO(auto_close)
	int fs = mountapi_new_tmpfs(strcmp(op->path, "/run") == 0 ? "0755" : "1777", 0);

	if (fs < 0 || mountapi_attach(fs, target) < 0)
		return error_set(err, ERR_SETUP_FAILED, errno, "mount '%s'", op->path);
	return work->staged_count > 0 ? mount_work_remember(work, fs, err) : 0;
}

static int finish_pts(const struct mount_work *work, const struct plan_op *op, struct error *err)
{
	const char *const settings[] = { "ptmxmode", "0666",   "mode", "0620",
					 "source",   "devpts", NULL };
	char path[LIMIT_PATH_BYTES + 8];
	AUTO(auto_close) int target = -1;
	AUTO(auto_close) int pts = -1;

	(void)snprintf(path, sizeof(path), "%s/pts", op->path);
	target = mountapi_open(work->root_fd, path + 1, O_PATH, RESOLVE_IN_ROOT);
	pts = mountapi_new("devpts", settings, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC);
	if (target < 0 || pts < 0 || mountapi_attach(pts, target) < 0)
		return error_set(err, ERR_SETUP_FAILED, errno, "mount '%s'", path);
	return 0;
}

static int finish_fresh(struct mount_work *work, const struct plan_op *op, struct error *err)
{
	AUTO(auto_close)
	int target = mountapi_open(work->root_fd, op->path + 1, O_PATH, RESOLVE_IN_ROOT);

	if (target < 0)
		return error_set(err, ERR_SETUP_FAILED, errno, "mountpoint '%s'", op->path);
	if (op->kind == PLAN_PROC)
		return finish_proc(work, target, err);
	return finish_tmpfs(work, op, target, err);
}

/* Attach a copy of a waiting tree where its rule wants it. */
static int finish_staged(const struct mount_work *work, const struct staged *staged,
			 struct error *err)
{
	char name[32];
	AUTO(auto_close) int tree = -1;
	AUTO(auto_close) int target = -1;
	struct stat st;

	(void)snprintf(name, sizeof(name), "%zu", staged->index);
	tree = open_tree(work->stage_fd, name,
			 AT_RECURSIVE | AT_SYMLINK_NOFOLLOW | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
	if (tree < 0 || fstat(tree, &st) < 0)
		return error_set(err, ERR_SETUP_FAILED, errno, "staged '%s'", staged->op->path);
	target = mount_work_mountpoint(work, work->root_fd, staged->op->path, S_ISDIR(st.st_mode));
	if (target < 0 || mountapi_attach(tree, target) < 0)
		return error_set(err, ERR_SETUP_FAILED, errno, "mount '%s'", staged->op->path);
	return 0;
}

/* From here on the stage is out of reach. Taking it away would make every job wait for RCU. */
static int cover_stage(const struct mount_work *work, struct error *err)
{
	AUTO(auto_close)
	int cover = open_tree(work->stage_fd, "cover", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);

	if (cover < 0 || mountapi_attach(cover, work->stage_fd) < 0)
		return error_set(err, ERR_SETUP_FAILED, errno, "cover the stage");
	return 0;
}

/* Whether OP, fresh or waiting for something fresh, belongs to PARTS. */
static bool is_part(const struct mount_work *work, const struct plan_op *op, unsigned int parts)
{
	bool inside = false;

	for (size_t i = 0; i < work->fresh_count; i++)
		if (work->fresh[i]->kind == PLAN_PROC &&
		    path_covers(work->fresh[i]->path, op->path))
			inside = true;
	return (parts & (inside ? MOUNT_INSIDE : MOUNT_AHEAD)) != 0;
}

static int finish_parts(struct mount_work *work, unsigned int parts, struct error *err)
{
	const struct plan *plan = work->plan;
	int r = 0;

	for (size_t i = 0; r == 0 && i < plan->count && parts & MOUNT_AHEAD; i++)
		if (plan->ops[i].kind == PLAN_DEV)
			r = finish_pts(work, &plan->ops[i], err);
	for (size_t i = 0; r == 0 && i < work->fresh_count; i++)
		if (is_part(work, work->fresh[i], parts))
			r = finish_fresh(work, work->fresh[i], err);
	for (size_t i = 0; r == 0 && i < work->staged_count; i++)
		if (is_part(work, work->staged[i].op, parts))
			r = finish_staged(work, &work->staged[i], err);
	return r == 0 && parts & MOUNT_INSIDE ? cover_stage(work, err) : r;
}

int mount_finish(const struct plan *plan, const struct mount_options *options, unsigned int parts,
		 struct error *err)
{
	AUTO(mount_work_deinit) struct mount_work work = MOUNT_WORK_INIT(plan, options);
	mode_t old_mask = umask(0);
	int result = mount_work_find_staged(&work, err);

	work.root_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	work.stage_fd = open(MOUNT_STAGE_DIR, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (result == 0 && (work.root_fd < 0 || work.stage_fd < 0))
		result = error_set(err, ERR_SETUP_FAILED, errno, "open '/' and the stage");
	if (result == 0)
		result = finish_parts(&work, parts, err);
	(void)umask(old_mask);
	return result;
}
