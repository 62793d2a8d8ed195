/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/spawner/placeholderfile.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/openat2.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/limits.h"
#include "common/path.h"
#include "common/scope.h"
#include "daemon/spawner/mountapi.h"
#include "daemon/spawner/quote.h"

#define FILE_MODE 0600

/* The name of one that is being removed. */
#define ASIDE ".fsboxd-%016llx"

/* From finding a name to opening what is there. */
#define LATECOMERS_NS 1000000

/* ---- making -------------------------------------------------------------------------- */

static int say(enum report_kind kind, int parent_fd, int fd, const char *path,
	       placeholder_announce_fn *announce, void *arg, struct error *err)
{
	struct report_placeholder what = { .path = "" };
	int r = node_identity_read(parent_fd, &what.parent, err);

	if (r == 0 && fd >= 0)
		r = node_identity_read(fd, &what.node, err);
	if (r < 0)
		return r;
	(void)snprintf(what.path, sizeof(what.path), "%s", path);
	return announce(kind, &what, arg, err);
}

int placeholder_file_make(const char *path, placeholder_announce_fn *announce, void *arg,
			  struct error *err)
{
	AUTO(auto_free) char *parent = path_parent(path);
	AUTO(auto_close)
	int parent_fd = parent ? mountapi_open(AT_FDCWD, parent, O_PATH | O_DIRECTORY, 0) : -1;
	AUTO(auto_close) int fd = -1;
	struct stat st;
	int errnum = 0;
	int r = 0;

	if (parent_fd < 0)
		return 0;
	/* Perhaps another job's: who stands on it too must be known. */
	if (fstatat(parent_fd, path_leaf(path), &st, AT_SYMLINK_NOFOLLOW) == 0) {
		r = say(REPORT_PLACEHOLDER_SKIPPED, parent_fd, -1, path, announce, arg, err);
		return r < 0 ? r : 1;
	}
	r = say(REPORT_PLACEHOLDER_INTENT, parent_fd, -1, path, announce, arg, err);
	if (r < 0)
		return r;
	fd = openat(parent_fd, path_leaf(path),
		    O_CREAT | O_EXCL | O_NOFOLLOW | O_WRONLY | O_CLOEXEC, FILE_MODE);
	errnum = errno;
	r = say(fd >= 0 ? REPORT_PLACEHOLDER_MADE : REPORT_PLACEHOLDER_SKIPPED, parent_fd, fd, path,
		announce, arg, err);
	if (r < 0 || fd >= 0 || errnum == EEXIST)
		return r < 0 ? r : 1;
	if (errnum == EACCES || errnum == EPERM || errnum == EROFS || errnum == ENOENT)
		return 0;
	return error_set(err, ERR_SETUP_FAILED, errnum, "make placeholder %s", quote(path).text);
}

/* ---- removing ------------------------------------------------------------------------ */

bool placeholder_file_looks_ours(const struct statx *stx)
{
	return S_ISREG(stx->stx_mode) && stx->stx_uid == geteuid() && stx->stx_size == 0 &&
	       stx->stx_nlink == 1 && (stx->stx_mode & 07777) == FILE_MODE;
}

static bool is_node(int fd, const struct node_identity *node)
{
	struct node_identity found;

	return fd >= 0 && node_identity_read(fd, &found, NULL) == 0 &&
	       node_identity_equal(&found, node);
}

static bool is_named(int parent_fd, const char *name, const struct node_identity *node)
{
	AUTO(auto_close)
	int fd = mountapi_open(parent_fd, name, O_PATH | O_NOFOLLOW, RESOLVE_BENEATH);

	return is_node(fd, node);
}

/* Nobody may write to FD's file, or with errno EAGAIN somebody does; other failures: not known here. */
static bool take_lease(int fd)
{
	(void)signal(SIGIO, SIG_IGN); /* how the one who wants to is told of */
	return fcntl(fd, F_SETLEASE, F_RDLCK) == 0;
}

/*
 * Whether somebody who wants to write waits until that lease, which is FD's, is given back. Who found the name
 * before it went may not have come so far yet.
 */
static bool is_wanted(int fd)
{
	const struct timespec moment = { .tv_nsec = LATECOMERS_NS };

	if (fcntl(fd, F_GETLEASE) != F_RDLCK)
		return true;
	(void)nanosleep(&moment, NULL);
	return fcntl(fd, F_GETLEASE) != F_RDLCK;
}

static bool is_later(const struct statx_timestamp *a, const struct statx_timestamp *b)
{
	return a->tv_sec > b->tv_sec || (a->tv_sec == b->tv_sec && a->tv_nsec > b->tv_nsec);
}

/* Else its user made it his: by writing, touch(1), chmod(1), a second name. */
static bool is_as_made(int fd)
{
	struct statx stx;

	if (statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS | STATX_BTIME, &stx) < 0 ||
	    !S_ISREG(stx.stx_mode) || stx.stx_size != 0 || stx.stx_nlink != 1)
		return false;
	if (!(stx.stx_mask & STATX_BTIME))
		return true;
	/* Some file systems keep no mode, but then that did not change. */
	return !is_later(&stx.stx_mtime, &stx.stx_btime) &&
	       ((stx.stx_mode & 07777) == FILE_MODE || !is_later(&stx.stx_ctime, &stx.stx_btime));
}

void placeholder_file_aside(const struct node_identity *node,
			    char ret_name[PLACEHOLDER_ASIDE_BYTES])
{
	(void)snprintf(ret_name, PLACEHOLDER_ASIDE_BYTES, ASIDE,
		       (unsigned long long)(node->ino << 32 ^ (uint64_t)node->btime_sec << 30 ^
					    node->btime_nsec));
}

/* To a name that nobody has. */
static bool move_aside(int dir_fd, const char *name, const char *aside)
{
	struct stat st;

	if (renameat2(dir_fd, name, dir_fd, aside, RENAME_NOREPLACE) == 0)
		return true;
	if (errno != EINVAL)
		return false;
	/* Some network file systems cannot say that nothing is to be replaced. */
	if (fstatat(dir_fd, aside, &st, AT_SYMLINK_NOFOLLOW) == 0) {
		errno = EEXIST;
		return false;
	}
	return renameat(dir_fd, name, dir_fd, aside) == 0;
}

static void move_back(int dir_fd, const char *aside, const char *name)
{
	if (renameat2(dir_fd, aside, dir_fd, name, RENAME_NOREPLACE) < 0 && errno == EINVAL &&
	    linkat(dir_fd, aside, dir_fd, name, 0) == 0)
		(void)unlinkat(dir_fd, aside, 0);
}

/*
 * To the name at which placeholder_file_finish() looks for NODE; if somebody took that, to another one. False
 * with errno.
 */
static bool set_aside(int dir_fd, const char *name, const struct node_identity *node,
		      char ret_aside[PLACEHOLDER_ASIDE_BYTES])
{
	uint64_t number = 0;

	placeholder_file_aside(node, ret_aside);
	if (move_aside(dir_fd, name, ret_aside))
		return true;
	if (errno != EEXIST || getrandom(&number, sizeof(number), 0) != (ssize_t)sizeof(number))
		return false;
	(void)snprintf(ret_aside, PLACEHOLDER_ASIDE_BYTES, ASIDE, (unsigned long long)number);
	return move_aside(dir_fd, name, ret_aside);
}

static int not_now(struct error *err, int errnum, const char *name)
{
	return error_set(err, ERR_SYSTEM, errnum, "placeholder %s cannot be removed now",
			 quote(name).text);
}

/* What FD is, and ASIDE was: away for good, or back where it belongs. LEASED: FD would tell of a writer. */
static int settle_aside(int dir_fd, int fd, bool leased, const char *aside, const char *name,
			struct error *err)
{
	int errnum = 0;

	if (is_as_made(fd) && !(leased && is_wanted(fd))) {
		if (unlinkat(dir_fd, aside, 0) == 0)
			return PLACEHOLDER_REMOVED;
		errnum = errno;
	}
	move_back(dir_fd, aside, name);
	return not_now(err, errnum, name);
}

int placeholder_file_remove(int parent_fd, const char *name, const struct node_identity *node,
			    struct error *err)
{
	AUTO(auto_close)
	int fd = mountapi_open(parent_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK,
			       RESOLVE_BENEATH | RESOLVE_NO_XDEV);
	char aside[PLACEHOLDER_ASIDE_BYTES] = "";
	bool leased = false;

	if (fd < 0 && errno == ENOENT)
		return PLACEHOLDER_GONE;
	if (fd < 0)
		return errno == EACCES || errno == ELOOP || errno == EXDEV || errno == ENXIO
			       ? PLACEHOLDER_LEFT
			       : not_now(err, errno, name);
	if (!is_node(fd, node) || !is_as_made(fd))
		return PLACEHOLDER_LEFT;
	leased = take_lease(fd);
	if (!leased && errno == EAGAIN)
		return error_set(err, ERR_SYSTEM, 0, "placeholder %s is being written to",
				 quote(name).text);
	if (!set_aside(parent_fd, name, node, aside))
		return errno == ENOENT ? PLACEHOLDER_GONE : not_now(err, errno, name);
	if (is_named(parent_fd, aside, node))
		return settle_aside(parent_fd, fd, leased, aside, name, err);
	/* Somebody was faster, and that is his. */
	move_back(parent_fd, aside, name);
	return PLACEHOLDER_LEFT;
}

int placeholder_file_finish(int parent_fd, const char *name, const struct node_identity *node,
			    struct error *err)
{
	char aside[PLACEHOLDER_ASIDE_BYTES];
	AUTO(auto_close) int fd = -1;
	bool leased = false;

	placeholder_file_aside(node, aside);
	fd = mountapi_open(parent_fd, aside, O_RDONLY | O_NOFOLLOW | O_NONBLOCK,
			   RESOLVE_BENEATH | RESOLVE_NO_XDEV);
	/* Whose else that may be: no matter of ours. */
	if (!is_node(fd, node))
		return PLACEHOLDER_GONE;
	leased = take_lease(fd);
	if (!leased && errno == EAGAIN) {
		move_back(parent_fd, aside, name);
		return not_now(err, 0, name);
	}
	return settle_aside(parent_fd, fd, leased, aside, name, err);
}
