/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/spawner/notify.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/scope.h"

#define LISTEN_FIRST_FD 3

/* A socket and all jobs of before (fdstore.h); keeps a nonsense number from being walked through. */
#define LISTEN_MAX_FDS 8192

/* A path, or "@name" for an abstract address. */
static int notify_address(const char *text, struct sockaddr_un *ret_address, socklen_t *ret_bytes,
			  struct error *err)
{
	size_t length = strlen(text);

	if ((text[0] != '/' && text[0] != '@') || length < 2)
		return error_set(err, ERR_INVALID, 0, "NOTIFY_SOCKET is neither a path nor @name");
	if (length >= sizeof(ret_address->sun_path))
		return error_set(err, ERR_INVALID, 0, "NOTIFY_SOCKET is longer than %zu bytes",
				 sizeof(ret_address->sun_path) - 1);
	*ret_address = (struct sockaddr_un){ .sun_family = AF_UNIX };
	memcpy(ret_address->sun_path, text, length);
	if (text[0] == '@')
		ret_address->sun_path[0] = '\0';

	/* An abstract name is all bytes given; a path's length counts its NUL. */
	*ret_bytes = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length +
				 (text[0] == '/' ? 1 : 0));
	return 0;
}

bool notify_is_there(void)
{
	const char *text = getenv("NOTIFY_SOCKET");

	return text && text[0] != '\0';
}

int notify_send(const char *state, struct error *err)
{
	return notify_send_fd(state, -1, err);
}

int notify_send_fd(const char *state, int passed_fd, struct error *err)
{
	AUTO(auto_close) int fd = -1;
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = { 0 };
	struct iovec bytes_of = { (void *)(uintptr_t)state, strlen(state) };
	struct msghdr header = { .msg_iov = &bytes_of, .msg_iovlen = 1 };
	const char *text = getenv("NOTIFY_SOCKET");
	struct sockaddr_un address;
	socklen_t bytes = 0;
	int r = 0;

	if (!text || text[0] == '\0')
		return 0;
	if ((r = notify_address(text, &address, &bytes, err)) < 0)
		return r;
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return error_set(err, ERR_SYSTEM, errno, "socket");
	header.msg_name = &address;
	header.msg_namelen = bytes;
	if (passed_fd >= 0) {
		control.header.cmsg_level = SOL_SOCKET;
		control.header.cmsg_type = SCM_RIGHTS;
		control.header.cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(&control.header), &passed_fd, sizeof(int));
		header.msg_control = &control;
		header.msg_controllen = CMSG_SPACE(sizeof(int));
	}
	if (sendmsg(fd, &header, MSG_NOSIGNAL) < 0)
		return error_set(err, ERR_SYSTEM, errno, "tell the service manager");
	return 0;
}

static int number_of(const char *name, long *ret_number, struct error *err)
{
	const char *text = getenv(name);
	char *end = NULL;

	errno = 0;
	*ret_number = strtol(text, &end, 10);
	if (errno != 0 || end == text || *end != '\0' || *ret_number < 0)
		return error_set(err, ERR_INVALID, 0, "%s is not a number", name);
	return 0;
}

int notify_listen_fds(struct error *err)
{
	long pid = 0;
	long count = 0;
	int r = 0;

	if (!getenv("LISTEN_PID") || !getenv("LISTEN_FDS"))
		return 0;
	if ((r = number_of("LISTEN_PID", &pid, err)) < 0 ||
	    (r = number_of("LISTEN_FDS", &count, err)) < 0)
		return r;
	if (pid != getpid())
		return 0;
	if (count > LISTEN_MAX_FDS)
		return error_set(err, ERR_INVALID, 0, "LISTEN_FDS is %ld, more than %d", count,
				 LISTEN_MAX_FDS);
	for (int fd = LISTEN_FIRST_FD; fd < LISTEN_FIRST_FD + count; fd++)
		if (fcntl(fd, F_SETFD, FD_CLOEXEC) < 0)
			return error_set(err, ERR_INVALID, errno, "LISTEN_FDS: descriptor %d", fd);
	return (int)count;
}

void notify_unset(void)
{
	(void)unsetenv("NOTIFY_SOCKET");
	(void)unsetenv("LISTEN_PID");
	(void)unsetenv("LISTEN_FDS");
	(void)unsetenv("LISTEN_FDNAMES");
}
