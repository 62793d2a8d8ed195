/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/spawner/listener.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/scope.h"

#define LISTEN_FIRST_FD 3
#define LISTEN_BACKLOG 512

static int socket_number(int fd, int what)
{
	int value = -1;
	socklen_t bytes = sizeof(value);

	return getsockopt(fd, SOL_SOCKET, what, &value, &bytes) < 0 ? -1 : value;
}

static bool is_ours(int fd)
{
	struct sockaddr_un address = { 0 };
	socklen_t bytes = sizeof(address);

	if (socket_number(fd, SO_DOMAIN) != AF_UNIX || socket_number(fd, SO_TYPE) != SOCK_STREAM ||
	    socket_number(fd, SO_ACCEPTCONN) != 1)
		return false;
	return getsockname(fd, (struct sockaddr *)&address, &bytes) == 0 &&
	       address.sun_path[0] == '/';
}

int listener_note_senders(int fd, struct error *err)
{
	/* Bytes that come while this is off carry no sender for good, whoever asks later. */
	if (setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &(int){ 1 }, sizeof(int)) < 0)
		return error_set(err, ERR_SYSTEM, errno, "SO_PASSCRED");
	return 0;
}

int listener_adopt(int count, struct error *err)
{
	AUTO(auto_close) int found = -1;
	int extra = 0;
	int r = 0;

	for (int fd = LISTEN_FIRST_FD; fd < LISTEN_FIRST_FD + count; fd++) {
		if (is_ours(fd) && found < 0) {
			found = fd;
			continue;
		}
		(void)close(fd);
		extra++;
	}
	if (found < 0 || extra > 0)
		return error_set(err, ERR_CONFIG, 0,
				 "%d descriptors were passed, not one Unix stream socket that "
				 "listens on a path",
				 count);
	if (fcntl(found, F_SETFL, fcntl(found, F_GETFL) | O_NONBLOCK) < 0)
		return error_set(err, ERR_SYSTEM, errno, "fcntl");
	if ((r = listener_note_senders(found, err)) < 0)
		return r;
	return steal_fd(&found);
}

/* 0: may be removed, or is not there. Only under the lock, so nobody begins to serve meanwhile. */
static int check_left_over(const char *path, const struct sockaddr_un *address, struct error *err)
{
	AUTO(auto_close) int fd = -1;
	struct stat about;

	if (lstat(path, &about) < 0)
		return errno == ENOENT ? 0 : error_set(err, ERR_SYSTEM, errno, "stat '%s'", path);
	if (!S_ISSOCK(about.st_mode))
		return error_set(err, ERR_CONFIG, 0, "'%s' is there and is no socket", path);

	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return error_set(err, ERR_SYSTEM, errno, "socket");
	if (connect(fd, (const struct sockaddr *)address, sizeof(*address)) < 0 &&
	    errno == ECONNREFUSED)
		return 0;
	return error_set(err, ERR_CONFIG, 0, "somebody serves '%s' already", path);
}

void listener_remove_left_over(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	if (strlen(path) >= sizeof(address.sun_path))
		return;
	memcpy(address.sun_path, path, strlen(path));
	if (check_left_over(path, &address, NULL) == 0)
		(void)unlink(path);
}

int listener_open(const char *path, mode_t mode, gid_t gid, struct error *err)
{
	AUTO(auto_close) int fd = -1;
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	mode_t saved_mask = 0;
	int bound = 0;
	int r = 0;

	if (strlen(path) >= sizeof(address.sun_path))
		return error_set(err, ERR_CONFIG, 0, "the socket's path is longer than %zu bytes",
				 sizeof(address.sun_path) - 1);
	memcpy(address.sun_path, path, strlen(path));
	if ((r = check_left_over(path, &address, err)) < 0)
		return r;
	if (unlink(path) < 0 && errno != ENOENT)
		return error_set(err, ERR_SYSTEM, errno, "unlink '%s'", path);

	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return error_set(err, ERR_SYSTEM, errno, "socket");
	if ((r = listener_note_senders(fd, err)) < 0)
		return r;

	/* Nobody may connect before owner and mode are right. */
	saved_mask = umask(0777);
	bound = bind(fd, (struct sockaddr *)&address, sizeof(address));
	(void)umask(saved_mask);
	if (bound < 0)
		return error_set(err, ERR_SYSTEM, errno, "bind '%s'", path);
	if (gid != (gid_t)-1 && lchown(path, (uid_t)-1, gid) < 0)
		return error_set(err, ERR_SYSTEM, errno, "chown '%s'", path);
	if (chmod(path, mode) < 0)
		return error_set(err, ERR_SYSTEM, errno, "chmod '%s'", path);
	if (listen(fd, LISTEN_BACKLOG) < 0)
		return error_set(err, ERR_SYSTEM, errno, "listen on '%s'", path);
	return steal_fd(&fd);
}
