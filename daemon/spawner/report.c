/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/spawner/report.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* What a client is told whose job was being begun. */
#define FSBOXD_ENDED "fsboxd is gone; the job has not begun"

void report_begin(struct report_message *message, enum report_kind kind)
{
	memset(message, 0, sizeof(*message));
	message->kind = kind;
	message->size = (uint32_t)report_message_size(kind);
}

int report_write(int fd, const struct report_message *message, struct error *err)
{
	const char *at = (const char *)message;
	size_t left = message->size;

	while (left > 0) {
		ssize_t n = write(fd, at, left);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EPIPE)
			return error_set(err, ERR_UNREACHABLE, 0, FSBOXD_ENDED);
		if (n < 0)
			return error_set(err, ERR_SYSTEM, errno, "report to fsboxd");
		at += n;
		left -= (size_t)n;
	}
	return 0;
}

int report_wait_go(int fd, struct error *err)
{
	char go = 0;
	ssize_t n = 0;

	do
		n = read(fd, &go, 1);
	while (n < 0 && errno == EINTR);
	if (n == 0)
		return error_set(err, ERR_UNREACHABLE, 0, FSBOXD_ENDED);
	if (n < 0)
		return error_set(err, ERR_SYSTEM, errno, "wait for fsboxd");
	return 0;
}

void report_send(int channel_fd, const struct report_message *message, int pass_fd)
{
	struct iovec iov = { .iov_base = (void *)message, .iov_len = message->size };
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = { { 0 } };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	ssize_t n = 0;

	if (pass_fd >= 0) {
		struct cmsghdr *cmsg = NULL;

		msg.msg_control = control.bytes;
		msg.msg_controllen = sizeof(control.bytes);
		cmsg = CMSG_FIRSTHDR(&msg);
		cmsg->cmsg_level = SOL_SOCKET;
		cmsg->cmsg_type = SCM_RIGHTS;
		cmsg->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(cmsg), &pass_fd, sizeof(int));
	}
	do
		n = sendmsg(channel_fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
}
