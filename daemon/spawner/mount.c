/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/spawner/mount.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/limits.h"
#include "common/path.h"
#include "common/scope.h"
#include "daemon/spawner/mountapi.h"
#include "daemon/spawner/mountwork.h"

static int open_source(const struct plan_op *op, struct stat *ret_st, struct error *err)
{
	bool link = (op->flags & PLAN_NODE_LINK) != 0;
	AUTO(auto_close)
	int fd = mountapi_open(AT_FDCWD, op->source, O_PATH | (link ? O_NOFOLLOW : 0), 0);

	if (fd < 0)
		return error_set(err, errno == ENOENT ? ERR_PATH_NOT_FOUND : ERR_SETUP_FAILED,
				 errno, "open '%s'", op->source);
	if (fstat(fd, ret_st) < 0)
		return error_set(err, ERR_SETUP_FAILED, errno, "stat '%s'", op->source);
	if (S_ISLNK(ret_st->st_mode) != link)
		return error_set(err, ERR_PATH_NOT_FOUND, link ? 0 : ELOOP, "open '%s'%s",
				 op->source, link ? ": it was a link" : "");
	return steal_fd(&fd);
}

/* A detached copy of what OP shows, with everything mounted below it, restricted. */
static int clone_source(const struct plan_op *op, struct stat *ret_st, struct error *err)
{
	uint64_t attributes = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV |
			      (op->flags & PLAN_READ_ONLY ? MOUNT_ATTR_RDONLY : 0);
	AUTO(auto_close) int source = open_source(op, ret_st, err);
	AUTO(auto_close) int tree = -1;

	if (source < 0)
		return source;
	/* Recursive, or what an overmount hides would show. */
	tree = open_tree(source, "",
			 AT_EMPTY_PATH | AT_RECURSIVE | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
	if (tree < 0)
		return error_set(err, ERR_SETUP_FAILED, errno, "clone '%s'", op->source);
	if (mountapi_restrict(tree, "", attributes, AT_RECURSIVE) < 0)
		return error_set(err, ERR_SETUP_FAILED, errno, "restrict '%s'", op->source);
	return steal_fd(&tree);
}

static bool shows_root(const struct plan_op *op)
{
	return op->kind == PLAN_BIND && strcmp(op->path, "/") == 0;
}

static int do_bind(struct mount_work *work, const struct plan_op *op, struct error *err)
{
	AUTO(auto_close) int target = -1;
	AUTO(auto_close) int tree = -1;
	struct stat st;

	if (shows_root(op))
		return 0; /* begin_root() */
	tree = clone_source(op, &st, err);
	if (tree < 0)
		return tree;
	target = mount_work_target(work, op, S_ISDIR(st.st_mode), err);
	if (target < 0)
		return target;
	if (mountapi_attach(tree, target) < 0)
		return error_set(err, ERR_SETUP_FAILED, errno, "mount '%s'", op->path);
	return 0;
}

static int mount_mask(const struct mount_work *work, int target, bool directory, const char *path,
		      struct error *err)
{
	AUTO(auto_close)
	int mask = open_tree(work->masks_fd, directory ? "d" : "f",
			     OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);

	if (mask < 0 || mountapi_attach(mask, target) < 0)
		return error_set(err, ERR_SETUP_FAILED, errno, "mask '%s'", path);
	return 0;
}

static int do_mask(struct mount_work *work, const struct plan_op *op, struct error *err)
{
	bool directory = op->kind == PLAN_MASK_DIR;
	AUTO(auto_close) int target = mount_work_target(work, op, directory, err);

	return target < 0 ? target : mount_mask(work, target, directory, op->path, err);
}

/* A tmpfs that holds the mountpoints of deeper grants; a PLAN_SEAL makes it read-only later. */
static int do_mask_tree(struct mount_work *work, const struct plan_op *op, struct error *err)
{
	AUTO(auto_close) int target = mount_work_target(work, op, true, err);
	AUTO(auto_close) int tree = -1;

	if (target < 0)
		return target;
	tree = mountapi_new_tmpfs("0711", MOUNT_ATTR_NOEXEC);
	if (tree < 0 || mountapi_attach(tree, target) < 0)
		return error_set(err, ERR_SETUP_FAILED, errno, "mask '%s'", op->path);
	return mount_work_remember(work, tree, err);
}

static int do_symlink(struct mount_work *work, const struct plan_op *op, struct error *err)
{
	AUTO(auto_free) char *parent = path_parent(op->path);
	AUTO(auto_close) int dir = -1;

	if (!parent)
		return error_set(err, ERR_NOMEM, 0, "parent of '%s'", op->path);
	dir = mount_work_mountpoint(work, work->root_fd, parent, true);
	if (dir < 0 || symlinkat(op->source, dir, path_leaf(op->path)) < 0)
		return error_set(err, ERR_SETUP_FAILED, errno, "link '%s'", op->path);
	return 0;
}

/* FD is O_PATH, of a directory that we own and may list. */
static int chmod_by_descriptor(int fd, mode_t mode)
{
	AUTO(auto_close) int directory = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return directory < 0 ? -1 : fchmod(directory, mode);
}

static int do_seal(struct mount_work *work, const struct plan_op *op, struct error *err)
{
	AUTO(auto_close) int target = -1;

	/* What is fresh is not there yet, and stays writable. */
	for (size_t i = 0; i < work->fresh_count; i++)
		if (strcmp(work->fresh[i]->path, op->path) == 0)
			return 0;
	target = mount_work_target(work, op, true, err);
	if (target < 0)
		return target;
	/* A mask that holds grants can be passed through, not listed. */
	if (!(op->flags & PLAN_SYSTEM) && chmod_by_descriptor(target, 0111) < 0)
		return error_set(err, ERR_SETUP_FAILED, errno, "close '%s'", op->path);
	if (mountapi_restrict(target, "", MOUNT_ATTR_RDONLY, 0) < 0)
		return error_set(err, ERR_SETUP_FAILED, errno, "seal '%s'", op->path);
	return 0;
}

/* ---- /dev ---------------------------------------------------------------------------- */

struct device {
	const char *name;
	unsigned int major_number;
	unsigned int minor_number;
};

static const struct device devices[] = {
	{ "null", 1, 3 },   { "zero", 1, 5 },    { "full", 1, 7 },
	{ "random", 1, 8 }, { "urandom", 1, 9 }, { "tty", 5, 0 },
};

static const char *const device_links[][2] = {
	{ "fd", "/proc/self/fd" },       { "stdin", "/proc/self/fd/0" },
	{ "stdout", "/proc/self/fd/1" }, { "stderr", "/proc/self/fd/2" },
	{ "core", "/proc/kcore" },       { "ptmx", "pts/ptmx" },
};

static int bind_device(int dir_fd, const char *name, struct error *err)
{
	char path[64];
	AUTO(auto_close) int source = -1;
	AUTO(auto_close) int target = -1;

	(void)snprintf(path, sizeof(path), "/dev/%s", name);
	target = openat(dir_fd, name, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0644);
	source = open_tree(AT_FDCWD, path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
	if (target < 0 || source < 0 ||
	    mountapi_restrict(source, "", MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC, 0) < 0 ||
	    mountapi_attach(source, target) < 0)
		return error_set(err, ERR_SETUP_FAILED, errno, "bind '%s'", path);
	return 0;
}

static int do_dev(struct mount_work *work, const struct plan_op *op, struct error *err)
{
	const char *const settings[] = { "mode", "0755", "source", "fsbox", NULL };
	AUTO(auto_close) int target = mount_work_target(work, op, true, err);
	AUTO(auto_close) int dev = -1;

	if (target < 0)
		return target;
	/* The only tmpfs without nodev: it holds the six nodes, and is read-only when a job sees it. */
	dev = mountapi_new("tmpfs", settings, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC);
	if (dev < 0 || mountapi_attach(dev, target) < 0)
		return error_set(err, ERR_SETUP_FAILED, errno, "mount '/dev'");
	for (size_t i = 0; i < ARRAY_SIZE(devices); i++)
		if (bind_device(dev, devices[i].name, err) < 0)
			return -(int)err->kind;
	for (size_t i = 0; i < ARRAY_SIZE(device_links); i++)
		if (symlinkat(device_links[i][1], dev, device_links[i][0]) < 0)
			return error_set(err, ERR_SETUP_FAILED, errno, "link '/dev/%s'",
					 device_links[i][0]);
	if (mkdirat(dev, "pts", 0755) < 0 || mkdirat(dev, "shm", 0755) < 0)
		return error_set(err, ERR_SETUP_FAILED, errno, "directories in '/dev'");
	return mount_work_remember(work, dev, err);
}

/* ---- building ------------------------------------------------------------------------ */

/* In a user namespace a fresh procfs may be mounted only where a full one is already seen. */
static int keep_host_proc(struct mount_work *work, const struct plan_op *op, struct error *err)
{
	AUTO(auto_close) int target = mount_work_target(work, op, true, err);
	AUTO(auto_close) int tree = -1;

	if (target < 0 || !work->options->in_userns)
		return target < 0 ? target : 0;
	tree = open_tree(AT_FDCWD, "/proc", AT_RECURSIVE | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
	if (tree < 0 || mountapi_attach(tree, target) < 0)
		return error_set(err, ERR_SETUP_FAILED, errno, "keep the host's /proc");
	return 0;
}

/*
 * A detached copy of one mount without those on it, which the kernel refuses for what came into a user
 * namespace as a whole: then with them, and *RET_WHOLE is true.
 */
static int clone_alone(int fd, const char *path, bool *ret_whole)
{
	unsigned int flags = AT_EMPTY_PATH | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC;
	int tree = open_tree(fd, path, flags);

	*ret_whole = tree < 0 && errno == EINVAL;
	return *ret_whole ? open_tree(fd, path, flags | AT_RECURSIVE) : tree;
}

static int hide_control_groups(const struct mount_work *work, int sys, struct error *err)
{
	AUTO(auto_close) int target = mountapi_open(sys, "fs/cgroup", O_PATH | O_DIRECTORY, 0);

	return target < 0 ? 0 : mount_mask(work, target, true, "/sys/fs/cgroup", err);
}

static int do_sys(struct mount_work *work, const struct plan_op *op, struct error *err)
{
	AUTO(auto_close) int target = mount_work_target(work, op, true, err);
	AUTO(auto_close) int tree = -1;
	bool whole = false;

	if (target < 0)
		return target;
	if (work->options->root_peer)
		return mount_mask(work, target, true, op->path, err);
	/* The control group file systems mounted below stay out; /sys itself hides nothing. */
	tree = clone_alone(AT_FDCWD, "/sys", &whole);
	if (tree < 0 ||
	    mountapi_restrict(tree, "",
			      MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV |
				      MOUNT_ATTR_NOEXEC,
			      AT_RECURSIVE) < 0 ||
	    mountapi_attach(tree, target) < 0)
		return error_set(err, ERR_SETUP_FAILED, errno, "mount '/sys'");
	return whole ? hide_control_groups(work, tree, err) : 0;
}

#define PINS_DIR "/dev/.fsbox-pins"

/*
 * The directory (or the file that stands in its place) once more in a hidden place, inert, and a mask on
 * top of it: its dentry is a mountpoint now, and the kernel refuses to rename it, although nothing is
 * mounted where the job sees it.
 */
static int do_pin(struct mount_work *work, const struct plan_op *op, struct error *err)
{
	uint64_t attributes =
		MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC;
	char place[sizeof(PINS_DIR) + 32];
	AUTO(auto_close) int source = mountapi_open(AT_FDCWD, op->source, O_PATH, 0);
	AUTO(auto_close) int target = -1;
	AUTO(auto_close) int tree = -1;
	AUTO(auto_close) int mask = -1;
	bool whole = false;
	bool directory = false;
	struct stat st;

	if (source < 0 || fstat(source, &st) < 0)
		return error_set(err, ERR_SETUP_FAILED, errno, "pin '%s'", op->path);
	directory = S_ISDIR(st.st_mode);
	(void)snprintf(place, sizeof(place), "%s/%zu", PINS_DIR, work->pins++);
	target = mount_work_mountpoint(work, work->root_fd, place, directory);
	mask = open_tree(work->masks_fd, directory ? "d" : "f",
			 OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
	tree = clone_alone(source, "", &whole);
	if (target < 0 || mask < 0 || tree < 0 ||
	    mountapi_restrict(tree, "", attributes, AT_RECURSIVE) < 0 ||
	    mountapi_attach(tree, target) < 0 || mountapi_attach(mask, tree) < 0)
		return error_set(err, ERR_SETUP_FAILED, errno, "pin '%s'", op->path);
	return 0;
}

/* After the last pin: nobody looks in there. */
static int cover_pins(struct mount_work *work, struct error *err)
{
	AUTO(auto_close) int target = -1;
	AUTO(auto_close) int mask = -1;

	if (work->pins == 0)
		return 0;
	target = mount_work_mountpoint(work, work->root_fd, PINS_DIR, true);
	mask = open_tree(work->masks_fd, "d", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
	if (target < 0 || mask < 0 || mountapi_attach(mask, target) < 0)
		return error_set(err, ERR_SETUP_FAILED, errno, "cover the pins");
	return 0;
}

static int make_mountpoint(struct mount_work *work, const struct plan_op *op, struct error *err)
{
	AUTO(auto_close) int target = mount_work_target(work, op, true, err);

	return target < 0 ? target : 0;
}

/* What is only watched must not be there: the plan was made for a world in which it is not. */
static int check_absent(const struct plan_op *op, struct error *err)
{
	AUTO(auto_close) int fd = mountapi_open(AT_FDCWD, op->path, O_PATH, 0);

	if (fd >= 0 || (errno != ENOENT && errno != ENOTDIR && errno != EACCES))
		return error_set(err, ERR_SETUP_FAILED, fd >= 0 ? EEXIST : errno, "'%s' was absent",
				 op->path);
	return 0;
}

/* For root peers a mask covers all of /sys (R19), and nothing can be mounted in it. */
static bool lies_in_hidden_sys(const struct mount_work *work, const struct plan_op *op)
{
	return work->options->root_peer && strncmp(op->path, "/sys/", strlen("/sys/")) == 0;
}

static int build_op(struct mount_work *work, const struct plan_op *op, struct error *err)
{
	if (lies_in_hidden_sys(work, op))
		return 0;
	if (op->flags & PLAN_WATCH)
		return op->kind == PLAN_PIN ? 0 : check_absent(op, err);
	switch (op->kind) {
	case PLAN_ROOT:
		return 0; /* begin_root() */
	case PLAN_PROC:
		return keep_host_proc(work, op, err);
	case PLAN_DEV:
		return do_dev(work, op, err);
	case PLAN_TMPFS:
		return make_mountpoint(work, op, err);
	case PLAN_SYMLINK:
		return do_symlink(work, op, err);
	case PLAN_BIND:
		return do_bind(work, op, err);
	case PLAN_MASK_DIR:
	case PLAN_MASK_FILE:
		return do_mask(work, op, err);
	case PLAN_MASK_TREE:
		return do_mask_tree(work, op, err);
	case PLAN_SEAL:
		return do_seal(work, op, err);
	case PLAN_SYS:
		return do_sys(work, op, err);
	case PLAN_PIN:
		return do_pin(work, op, err);
	case PLAN_NOTICE:
		return 0;
	case PLAN_OP_KIND_COUNT:
		break;
	}
	return error_set(err, ERR_SETUP_FAILED, 0, "unknown operation %d", (int)op->kind);
}

/*
 * The new root, a tmpfs or a copy of the host's tree, is attached on top of "/": look-ups begin at the
 * root this process has, below it, so nothing of the host is hidden while sources are opened.
 */
static int begin_root(struct mount_work *work, struct error *err)
{
	AUTO(auto_close) int at = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	const struct plan_op *shown = NULL;
	struct stat st;

	for (size_t i = 0; i < work->plan->count && !shown; i++)
		if (shows_root(&work->plan->ops[i]))
			shown = &work->plan->ops[i];
	work->root_fd = shown ? clone_source(shown, &st, err) : mountapi_new_tmpfs("0755", 0);
	if (shown && work->root_fd < 0)
		return work->root_fd;
	if (at < 0 || work->root_fd < 0 || mountapi_attach(work->root_fd, at) < 0)
		return error_set(err, ERR_SETUP_FAILED, errno, "new root");
	return shown ? 0 : mount_work_remember(work, work->root_fd, err);
}

/* NAME in the stage, inert, of which every job mounts copies. */
static int stage_inert(int stage, const char *name, struct error *err)
{
	AUTO(auto_close) int target = openat(stage, name, O_PATH | O_CLOEXEC);
	AUTO(auto_close) int tree = open_tree(stage, name, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);

	if (target < 0 || tree < 0 || mountapi_restrict(tree, "", MOUNT_ATTR_RDONLY, 0) < 0 ||
	    mountapi_attach(tree, target) < 0)
		return error_set(err, ERR_SETUP_FAILED, errno, "stage");
	return 0;
}

/* An empty file to put over files of /proc, and a closed directory to put over the stage at the end. */
static int stage_masks(int stage, struct error *err)
{
	AUTO(auto_close)
	int file = openat(stage, "mask", O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0);
	int r = 0;

	if (file < 0 || mkdirat(stage, "cover", 0) < 0)
		return error_set(err, ERR_SETUP_FAILED, errno, "stage");
	r = stage_inert(stage, "mask", err);
	return r < 0 ? r : stage_inert(stage, "cover", err);
}

/* A tmpfs of its own, so that /dev may be read-only, with a mountpoint for each waiting tree. */
static int begin_stage(struct mount_work *work, struct error *err)
{
	AUTO(auto_close) int target = -1;
	AUTO(auto_close) int stage = -1;
	int r = 0;

	target = mount_work_mountpoint(work, work->root_fd, MOUNT_STAGE_DIR, true);
	stage = mountapi_new_tmpfs("0700", MOUNT_ATTR_NOEXEC);
	if (target < 0 || stage < 0 || mountapi_attach(stage, target) < 0)
		return error_set(err, ERR_SETUP_FAILED, errno, "stage");
	r = stage_masks(stage, err);
	return r < 0 ? r : mount_work_remember(work, stage, err);
}

/* The new root becomes "/" of this process; the host's tree is let go. */
static int enter_root(const struct mount_work *work, struct error *err)
{
	if (fchdir(work->root_fd) < 0 || syscall(SYS_pivot_root, ".", ".") < 0 ||
	    umount2(".", MNT_DETACH) < 0 || chdir("/") < 0)
		return error_set(err, ERR_SETUP_FAILED, errno, "enter the new root");
	return 0;
}

int mount_build(const struct plan *plan, const struct mount_options *options, struct error *err)
{
	AUTO(mount_work_deinit) struct mount_work work = MOUNT_WORK_INIT(plan, options);
	mode_t old_mask = umask(0);
	int result = mount_work_find_staged(&work, err);

	if (result == 0)
		result = mount_work_make_masks(&work.masks_fd, err);
	if (result == 0)
		result = begin_root(&work, err);
	for (size_t i = 0; result == 0 && i < plan->count; i++) {
		result = build_op(&work, &plan->ops[i], err);
		/* /dev is always ours and among the first: the stage stands in it. */
		if (result == 0 && plan->ops[i].kind == PLAN_DEV)
			result = begin_stage(&work, err);
	}
	if (result == 0)
		result = cover_pins(&work, err);
	if (result == 0)
		result = enter_root(&work, err);
	/* Jobs only take copies from it. */
	if (result == 0 && mountapi_restrict(AT_FDCWD, MOUNT_STAGE_DIR, MOUNT_ATTR_RDONLY, 0) < 0)
		result = error_set(err, ERR_SETUP_FAILED, errno, "seal the stage");
	(void)umask(old_mask);
	return result;
}
