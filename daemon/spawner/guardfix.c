/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/spawner/guardfix.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sched.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/path.h"
#include "common/scope.h"
#include "daemon/spawner/mountapi.h"
#include "daemon/spawner/mountwork.h"

/* Whoever changes a path faster than we can look at it is not repaired, but given up. */
#define TRIES 16

/* ---- the source of masks -------------------------------------------------------------- */

static int send_fd(int socket_fd, int fd)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = { { 0 } };
	char byte = 'm';
	struct iovec iov = { .iov_base = &byte, .iov_len = 1 };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = control.bytes,
			      .msg_controllen = sizeof(control.bytes) };

	control.align.cmsg_level = SOL_SOCKET;
	control.align.cmsg_type = SCM_RIGHTS;
	control.align.cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(&control.align), &fd, sizeof(int));
	return sendmsg(socket_fd, &msg, MSG_NOSIGNAL) == 1 ? 0 : -1;
}

static int receive_fd(int socket_fd)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = { { 0 } };
	char byte = 0;
	struct iovec iov = { .iov_base = &byte, .iov_len = 1 };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = control.bytes,
			      .msg_controllen = sizeof(control.bytes) };
	int fd = -1;

	if (recvmsg(socket_fd, &msg, MSG_CMSG_CLOEXEC) == 1 && CMSG_FIRSTHDR(&msg))
		memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&msg)), sizeof(int));
	return fd;
}

static _Noreturn void make_masks(int user_ns_fd, int socket_fd)
{
	int fd = -1;

	if (user_ns_fd >= 0 && setns(user_ns_fd, CLONE_NEWUSER) < 0)
		_exit(1);
	if (unshare(CLONE_NEWNS) < 0 || mount_work_make_masks(&fd, NULL) < 0)
		_exit(1);
	_exit(send_fd(socket_fd, fd) < 0);
}

int guardfix_make_masks(int user_ns_fd, int *ret_fd, struct error *err)
{
	AUTO(auto_close) int ours = -1;
	AUTO(auto_close) int theirs = -1;
	int ends[2];
	int fd = -1;
	pid_t pid = 0;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return error_set(err, ERR_SETUP_FAILED, errno, "socketpair");
	ours = ends[0];
	theirs = ends[1];
	pid = fork();
	if (pid < 0)
		return error_set(err, ERR_SETUP_FAILED, errno, "fork");
	if (pid == 0)
		make_masks(user_ns_fd, theirs);
	auto_close(&theirs);
	theirs = -1;
	fd = receive_fd(ours);
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	if (fd < 0)
		return error_set(err, ERR_SETUP_FAILED, 0, "no masks could be made");
	*ret_fd = fd;
	return 0;
}

/* ---- looking -------------------------------------------------------------------------- */

int guardfix_enter(int mount_ns_fd, struct error *err)
{
	if (setns(mount_ns_fd, CLONE_NEWNS) < 0)
		return error_set(err, ERR_SETUP_FAILED, errno, "enter the job's mounts");
	return 0;
}

/* O_PATH of what is at PATH, a last link itself. */
static int open_node(const char *path)
{
	return mountapi_open(AT_FDCWD, path, O_PATH | O_NOFOLLOW, 0);
}

bool guardfix_may_make(const char *path)
{
	AUTO(auto_free) char *parent = path_parent(path);
	AUTO(auto_close)
	int fd = parent ? mountapi_open(AT_FDCWD, parent, O_PATH | O_DIRECTORY, 0) : -1;

	return fd >= 0 &&
	       syscall(SYS_faccessat2, fd, "", W_OK | X_OK, AT_EACCESS | AT_EMPTY_PATH) == 0;
}

/* Nobody inside can make such a thing: the root of a read-only tmpfs mount without any permission. */
static bool is_mask(int fd)
{
	struct statx st;
	struct statfs fs;

	if (statx(fd, "", AT_EMPTY_PATH, STATX_TYPE | STATX_MODE, &st) < 0 ||
	    !(st.stx_attributes_mask & st.stx_attributes & STATX_ATTR_MOUNT_ROOT) ||
	    fstatfs(fd, &fs) < 0 || fs.f_type != TMPFS_MAGIC || !(fs.f_flags & ST_RDONLY))
		return false;
	/* One with deeper grants can be passed through (mount.c). */
	return (st.stx_mode & 07777) == 0 ||
	       (S_ISDIR(st.stx_mode) && (st.stx_mode & 07777) == 0111);
}

static bool is_read_only(int fd)
{
	struct statfs fs;

	return fstatfs(fd, &fs) == 0 && (fs.f_flags & ST_RDONLY);
}

static bool is_closed(const struct guard_point *point, int fd)
{
	return point->kind == GUARD_POINT_MASK ? is_mask(fd) : is_read_only(fd);
}

/* ---- repairing ------------------------------------------------------------------------ */

static int cover_with_mask(int fd, int masks_fd)
{
	AUTO(auto_close) int mask = -1;
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -1;
	mask = open_tree(masks_fd, S_ISDIR(st.st_mode) ? "d" : "f",
			 OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
	return mask < 0 ? -1 : mountapi_attach(mask, fd);
}

/* With what is mounted below it, so that nothing that a mount hides shows. */
static int cover_with_itself(int fd)
{
	AUTO(auto_close)
	int tree = open_tree(fd, "",
			     AT_EMPTY_PATH | AT_RECURSIVE | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);

	if (tree < 0 ||
	    mountapi_restrict(tree, "", MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV,
			      AT_RECURSIVE) < 0)
		return -1;
	return mountapi_attach(tree, fd);
}

static uint64_t changed_ns(int fd)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return 0;
	return (uint64_t)st.st_ctim.tv_sec * 1000000000u + (uint64_t)st.st_ctim.tv_nsec;
}

/* What a link that took a file's place leads to is not held by holding the link. */
static bool leads_away(const struct guard_point *point, int fd)
{
	struct stat st;

	return point->kind == GUARD_POINT_READ_ONLY && !(point->op->flags & PLAN_NODE_LINK) &&
	       fstat(fd, &st) == 0 && S_ISLNK(st.st_mode);
}

static enum guardfix_result lost(const struct guard_point *point, int errnum, const char *what,
				 struct error *err)
{
	(void)error_set(err, ERR_SETUP_FAILED, errnum, "%s '%s'", what, point->op->path);
	return GUARDFIX_LOST;
}

enum guardfix_result guardfix_point(const struct guard_point *point, int masks_fd,
				    uint64_t *ret_changed_ns, struct error *err)
{
	uint64_t since_ns = 0;

	for (int try = 0; try < TRIES; try++) {
		AUTO(auto_close) int fd = open_node(point->op->path);

		/* What this user cannot reach his job cannot either. */
		if (fd < 0 && (errno == ENOENT || errno == ENOTDIR || errno == EACCES))
			return try > 0 ? GUARDFIX_WENT : GUARDFIX_ABSENT;
		if (fd < 0)
			return lost(point, errno, "look at", err);
		if (leads_away(point, fd))
			return lost(point, 0, "a link took the place of", err);
		if (is_closed(point, fd)) {
			*ret_changed_ns = since_ns;
			return try > 0 ? GUARDFIX_REPAIRED : GUARDFIX_HELD;
		}
		if (try == 0)
			since_ns = changed_ns(fd);
		/* What we hold may have been moved meanwhile: then that is covered, and we look again. */
		if ((point->kind == GUARD_POINT_MASK ? cover_with_mask(fd, masks_fd)
						     : cover_with_itself(fd)) < 0 &&
		    errno != ENOENT && errno != EINVAL)
			return lost(point, errno, "cover", err);
	}
	return lost(point, 0, "it changes too fast:", err);
}
