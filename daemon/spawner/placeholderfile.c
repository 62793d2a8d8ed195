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
#include <unistd.h>

#include "common/limits.h"
#include "common/path.h"
#include "common/scope.h"
#include "daemon/spawner/mountapi.h"
#include "daemon/spawner/quote.h"

#define FILE_MODE 0600

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
	if (fstatat(parent_fd, path_leaf(path), &st, AT_SYMLINK_NOFOLLOW) == 0)
		return 1;
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

/*
 * Whether somebody has FD's file open for writing: what he is about to write would be lost with it. A lease says
 * so, and makes the next one wait until the name is gone, which closing FD tells him.
 */
static bool is_in_use(int fd)
{
	(void)signal(SIGIO, SIG_IGN); /* how the next one is told of */
	return fcntl(fd, F_SETLEASE, F_RDLCK) < 0 && errno == EAGAIN;
}

/* To a name that nobody has; false with errno. */
static bool set_aside(int parent_fd, const char *name, char ret_aside[32])
{
	uint64_t number = 0;

	if (getrandom(&number, sizeof(number), 0) != (ssize_t)sizeof(number))
		return false;
	(void)snprintf(ret_aside, 32, ".fsboxd-%016llx", (unsigned long long)number);
	return renameat2(parent_fd, name, parent_fd, ret_aside, RENAME_NOREPLACE) == 0;
}

int placeholder_file_remove(int parent_fd, const char *name, const struct node_identity *node,
			    struct error *err)
{
	AUTO(auto_close)
	int fd = mountapi_open(parent_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK,
			       RESOLVE_BENEATH | RESOLVE_NO_XDEV);
	char aside[32] = "";
	struct stat st;

	if (fd < 0)
		return errno == ENOENT ? PLACEHOLDER_GONE : PLACEHOLDER_LEFT;
	if (!is_node(fd, node) || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size != 0 ||
	    st.st_nlink != 1)
		return PLACEHOLDER_LEFT;
	if (is_in_use(fd))
		return error_set(err, ERR_SYSTEM, 0, "placeholder %s is being written to",
				 quote(name).text);
	if (!set_aside(parent_fd, name, aside))
		return errno == ENOENT ? PLACEHOLDER_GONE : PLACEHOLDER_LEFT;
	if (is_named(parent_fd, aside, node) && fstat(fd, &st) == 0 && st.st_size == 0) {
		(void)unlinkat(parent_fd, aside, 0);
		return PLACEHOLDER_REMOVED;
	}
	/* Somebody was faster, and that is his. */
	(void)renameat2(parent_fd, aside, parent_fd, name, RENAME_NOREPLACE);
	return PLACEHOLDER_LEFT;
}
