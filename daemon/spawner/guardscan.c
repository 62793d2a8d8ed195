/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of a guard that looks for repositories which a job made. They stay, since `git init` and
 * `git clone` are everyday work, but git outside obeys what is in them: so their owner is told.
 */
#include "daemon/spawner/guardwork.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/limits.h"
#include "common/path.h"
#include "common/scope.h"
#include "daemon/spawner/mountapi.h"
#include "daemon/spawner/report.h"

#define DEPTH_MAX 4

/* Entries that are read: one for so much of the time that the job took, which is ten times what it costs. */
#define NS_PER_ENTRY 10000
#define ENTRIES_MIN 64
#define ENTRIES_MAX 20000

/* What opening a directory costs, in entries. */
#define OPEN_COST 8

#define FOUND_MAX 16

/*
 * @tree_fd  the root of the tree, @tree its path
 * @left     entries that may still be read
 * @found    told so far
 */
struct scan {
	const struct guarded_job *job;
	int tree_fd;
	const char *tree;
	uint64_t left;
	size_t found;
};

static void tell(struct scan *scan, const char *path)
{
	struct report_message message;

	report_begin(&message, REPORT_NAME_APPEARED);
	message.u.guard.job = scan->job->id;
	message.u.guard.action = GUARD_REPORTED;
	(void)snprintf(message.u.guard.path, sizeof(message.u.guard.path), "%s", path);
	guard_tell(scan->job->state, &message);
	scan->found++;
}

/* Whether the plan says something of PATH, or of names in it. */
static bool is_known(const struct guarded_job *job, const char *path)
{
	const struct plan *plan = &job->plan->plan;

	for (size_t i = 0; i < plan->count; i++)
		if (path_covers(path, plan->ops[i].path))
			return true;
	return false;
}

/* When it came to be, where the file system knows; else when it changed. */
static bool is_new(const struct guarded_job *job, int dir_fd)
{
	struct statx stx;
	const struct statx_timestamp *since = &stx.stx_ctime;

	if (statx(dir_fd, ".git", AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, STATX_CTIME | STATX_BTIME,
		  &stx) < 0)
		return false;
	if (stx.stx_mask & STATX_BTIME)
		since = &stx.stx_btime;
	return (uint64_t)since->tv_sec * 1000000000u + since->tv_nsec >= job->begun_ns;
}

static void look_at(struct scan *scan, int dir_fd, const char *below)
{
	char path[LIMIT_PATH_BYTES + 1];
	int length = snprintf(path, sizeof(path), "%s%s%s/.git", scan->tree[1] ? scan->tree : "",
			      *below ? "/" : "", below);

	if (length < (int)sizeof(path) && !is_known(scan->job, path) && is_new(scan->job, dir_fd))
		tell(scan, path);
}

/* -1: not there, or of another file system, which may not answer. */
static int open_below(const struct scan *scan, const char *below)
{
	struct statx stx;

	if (*below == '\0')
		return mountapi_open(scan->tree_fd, ".", O_RDONLY | O_DIRECTORY | O_NONBLOCK, 0);
	/* Looked at before it is entered: to open a directory that is mounted on demand mounts it. */
	if (statx(scan->tree_fd, below, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT | AT_STATX_DONT_SYNC,
		  STATX_TYPE, &stx) < 0 ||
	    !S_ISDIR(stx.stx_mode) ||
	    stx.stx_attributes & (STATX_ATTR_MOUNT_ROOT | STATX_ATTR_AUTOMOUNT))
		return -1;
	return mountapi_open(scan->tree_fd, below, O_RDONLY | O_DIRECTORY | O_NONBLOCK,
			     RESOLVE_BENEATH | RESOLVE_NO_XDEV);
}

static void add_below(struct string_list *list, const char *below, const char *name)
{
	char path[LIMIT_PATH_BYTES + 1];

	if (snprintf(path, sizeof(path), "%s%s%s", below, *below ? "/" : "", name) <
	    (int)sizeof(path))
		(void)string_list_add(list, path, NULL);
}

/* One directory; those in it are added to DEEPER. */
static void look_into(struct scan *scan, const char *below, struct string_list *deeper)
{
	int fd = open_below(scan, below);
	DIR *stream = fd < 0 ? NULL : fdopendir(fd);

	if (!stream) {
		auto_close(&fd);
		return;
	}
	scan->left -= scan->left < OPEN_COST ? scan->left : OPEN_COST;
	for (struct dirent *entry; scan->left > 0 && (entry = readdir(stream)); scan->left--) {
		if (strcmp(entry->d_name, ".git") == 0)
			look_at(scan, dirfd(stream), below);
		else if (entry->d_type == DT_DIR && entry->d_name[0] != '.' && deeper)
			add_below(deeper, below, entry->d_name);
	}
	(void)closedir(stream);
}

/* Level by level, so that the bound cuts off what is deepest. */
static void scan_tree(struct scan *scan)
{
	struct string_list level = { 0 };

	(void)string_list_add(&level, "", NULL);
	for (unsigned int depth = 0; level.count > 0; depth++) {
		struct string_list deeper = { 0 };

		for (size_t i = 0; i < level.count && scan->left > 0 && scan->found < FOUND_MAX;
		     i++)
			look_into(scan, level.items[i], depth < DEPTH_MAX ? &deeper : NULL);
		string_list_deinit(&level);
		level = deeper;
	}
	string_list_deinit(&level);
}

/* A writable tree of the host's in which names are protected, and not part of one before it. */
static bool is_tree(const struct plan *plan, size_t index)
{
	const struct plan_op *op = &plan->ops[index];
	bool has_notice = false;

	if (op->kind != PLAN_BIND ||
	    op->flags & (PLAN_READ_ONLY | PLAN_PRIVATE_SOURCE | PLAN_SYSTEM | PLAN_NODE_FILE))
		return false;
	for (size_t i = 0; i < plan->count && !has_notice; i++)
		has_notice = plan->ops[i].kind == PLAN_NOTICE &&
			     path_covers(op->path, plan->ops[i].path);
	return has_notice;
}

void guard_scan_last(struct guarded_job *job)
{
	const struct plan *plan = &job->plan->plan;
	uint64_t now_ns = guard_now_ns();
	uint64_t took_ns = now_ns > job->begun_ns ? now_ns - job->begun_ns : 0;
	struct scan scan = { .job = job, .tree_fd = -1, .left = took_ns / NS_PER_ENTRY };

	if (scan.left < ENTRIES_MIN)
		scan.left = ENTRIES_MIN;
	if (scan.left > ENTRIES_MAX)
		scan.left = ENTRIES_MAX;
	for (size_t i = 0; i < plan->count && scan.left > 0; i++) {
		if (!is_tree(plan, i))
			continue;
		scan.tree = plan->ops[i].path;
		scan.tree_fd = mountapi_open(AT_FDCWD, scan.tree, O_PATH | O_DIRECTORY, 0);
		if (scan.tree_fd >= 0)
			scan_tree(&scan);
		auto_close(&scan.tree_fd);
		scan.tree_fd = -1;
	}
}
