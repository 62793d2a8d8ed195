/* SPDX-License-Identifier: Apache-2.0 */
#include "client/trust.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/limits.h"
#include "common/scope.h"

/*
 * NAME is one component of the way to DIR, open as FD.
 *
 * Whoever owns "/" (OWNER) counts as root: he can change everything anyway, and in a user namespace
 * that does not map root this is how root shows.
 */
static int check_step(int fd, const char *dir, const char *name, uid_t uid, uid_t owner,
		      struct error *err)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return error_set(err, ERR_UNREACHABLE, errno, "look at '%s'", dir);
	if (!S_ISDIR(st.st_mode))
		return error_set(err, ERR_UNREACHABLE, 0, "'%s': '%s' is not a directory", dir,
				 name);
	if (st.st_uid != 0 && st.st_uid != uid && st.st_uid != owner)
		return error_set(err, ERR_UNREACHABLE, 0,
				 "'%s' is not to be trusted: '%s' belongs to uid %lu", dir, name,
				 (unsigned long)st.st_uid);
	if ((st.st_mode & (S_IWGRP | S_IWOTH)) && !(st.st_mode & S_ISVTX))
		return error_set(err, ERR_UNREACHABLE, 0,
				 "'%s' is not to be trusted: '%s' can be written by others (mode "
				 "%03o)",
				 dir, name, (unsigned)(st.st_mode & 07777));
	return 0;
}

int trust_directory(const char *dir, uid_t uid, int *ret_fd, struct error *err)
{
	AUTO(auto_free) char *real = realpath(dir, NULL);
	AUTO(auto_close) int fd = -1;
	struct stat root;
	char *rest = NULL;
	int r = 0;

	if (!real)
		return error_set(err, ERR_UNREACHABLE, errno, "look at '%s'", dir);

	fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &root) < 0)
		return error_set(err, ERR_UNREACHABLE, errno, "look at '/'");
	r = check_step(fd, dir, "/", uid, root.st_uid, err);

	for (char *name = strtok_r(real, "/", &rest); name && r == 0;
	     name = strtok_r(NULL, "/", &rest)) {
		int next = openat(fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);

		if (next < 0)
			return error_set(err, ERR_UNREACHABLE, errno, "look at '%s'", dir);
		(void)close(fd);
		fd = next;
		r = check_step(fd, dir, name, uid, root.st_uid, err);
	}
	if (r < 0)
		return r;

	if (ret_fd)
		*ret_fd = steal_fd(&fd);
	return 0;
}

static int make_parents(const char *dir, struct error *err)
{
	char path[LIMIT_PATH_BYTES + 1];

	if (strlen(dir) > LIMIT_PATH_BYTES)
		return error_set(err, ERR_INVALID, 0, "the path of the socket is too long");
	memcpy(path, dir, strlen(dir) + 1);

	for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		if (mkdir(path, 0700) < 0 && errno != EEXIST)
			return error_set(err, ERR_UNREACHABLE, errno, "make '%s'", path);
		*slash = '/';
	}
	if (mkdir(path, 0700) < 0 && errno != EEXIST)
		return error_set(err, ERR_UNREACHABLE, errno, "make '%s'", path);
	return 0;
}

int trust_make_private(const char *dir, uid_t uid, int *ret_fd, struct error *err)
{
	AUTO(auto_close) int fd = -1;
	struct stat st;
	int r = make_parents(dir, err);

	if (r < 0)
		return r;
	r = trust_directory(dir, uid, &fd, err);
	if (r < 0)
		return r;

	if (fstat(fd, &st) < 0)
		return error_set(err, ERR_UNREACHABLE, errno, "look at '%s'", dir);
	if (st.st_uid != uid)
		return error_set(err, ERR_UNREACHABLE, 0,
				 "'%s' is not to be trusted: it belongs to uid %lu", dir,
				 (unsigned long)st.st_uid);
	if (st.st_mode & 077)
		return error_set(err, ERR_UNREACHABLE, 0,
				 "'%s' is not to be trusted: its mode is %03o, not 700", dir,
				 (unsigned)(st.st_mode & 07777));

	if (ret_fd)
		*ret_fd = steal_fd(&fd);
	return 0;
}

static int check_peer(int fd, const char *path, uid_t uid, uid_t *ret_uid, struct error *err)
{
	struct ucred cred = { .uid = (uid_t)-1 };
	socklen_t size = sizeof(cred);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &size) < 0)
		return error_set(err, ERR_UNREACHABLE, errno, "ask whose socket '%s' is", path);
	if (size != sizeof(cred) || (cred.uid != 0 && cred.uid != uid))
		return error_set(
			err, ERR_UNREACHABLE, 0,
			"'%s' is served by uid %lu, neither root nor yourself; nothing was "
			"sent",
			path, (unsigned long)cred.uid);
	if (ret_uid)
		*ret_uid = cred.uid;
	return 0;
}

int trust_connect(int dir_fd, const char *name, const char *path, uid_t uid, int *ret_fd,
		  uid_t *ret_uid, struct error *err)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	AUTO(auto_close) int fd = -1;
	int printed = 0;
	int r = 0;

	/*
	 * By way of the directory's descriptor: it is the very directory that was checked, and its
	 * path may be longer than a socket address holds.
	 */
	printed = snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d/%s",
			   dir_fd, name);
	if (printed < 0 || (size_t)printed >= sizeof(address.sun_path))
		return error_set(err, ERR_INVALID, 0, "'%s': the name of the socket is too long",
				 path);

	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return error_set(err, ERR_UNREACHABLE, errno, "make a socket");
	if (connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0) {
		if (errno == EACCES || errno == EPERM)
			return error_set(err, ERR_NOT_AUTHORIZED, errno, "connect to '%s'", path);
		if (errno == EAGAIN)
			return error_set(err, ERR_UNREACHABLE, errno,
					 "connect to '%s': too many are waiting to connect", path);
		return error_set(err, ERR_UNREACHABLE, errno, "connect to '%s'", path);
	}

	r = check_peer(fd, path, uid, ret_uid, err);
	if (r < 0)
		return r;
	*ret_fd = steal_fd(&fd);
	return 0;
}
