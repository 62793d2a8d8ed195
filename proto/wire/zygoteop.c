/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/wire/zygoteop.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "common/scope.h"
#include "proto/wire/guardop.h"

#define FLAGS_ALLOWED (SETUP_DETACHED | SETUP_PROXY | SETUP_GRANTED)

static size_t count_bits(uint32_t bits)
{
	return (size_t)__builtin_popcount(bits);
}

static bool all_zero(const void *data, size_t size)
{
	const uint8_t *bytes = data;

	for (size_t i = 0; i < size; i++)
		if (bytes[i] != 0)
			return false;
	return true;
}

/* Ascending, not zero, zeros behind; only for those that fsbox-egress serves. */
static bool forwards_are_sound(const struct zygote_message *message)
{
	const bool served = (message->fds & ZYGOTE_FD_EGRESS) != 0;

	if (message->forward_count > LIMIT_FORWARDS ||
	    served != (message->flags & SETUP_PROXY || message->forward_count > 0))
		return false;
	for (size_t i = 0; i < LIMIT_FORWARDS; i++) {
		uint16_t before = i > 0 ? message->forwards[i - 1] : 0;

		if (i < message->forward_count ? message->forwards[i] <= before
					       : message->forwards[i] != 0)
			return false;
	}
	return true;
}

static bool guard_is_sound(const struct zygote_message *message)
{
	const bool guarded = (message->fds & ZYGOTE_FD_GUARD) != 0;

	return (message->guard_plan != 0) == guarded && (message->job != 0) == guarded &&
	       (message->guard_flags & ~(guarded ? (uint32_t)GUARD_FLAGS_ALL : 0u)) == 0;
}

int zygote_message_check(const struct zygote_message *message, size_t size, size_t fd_count,
			 struct error *err)
{
	if (size != sizeof(*message) || message->size != sizeof(*message))
		return error_set(err, ERR_BAD_FRAME, 0, "zygote message of %zu bytes", size);
	if (message->fds & ~(uint32_t)ZYGOTE_FD_ALL || !(message->fds & ZYGOTE_FD_CHANNEL) ||
	    fd_count != count_bits(message->fds))
		return error_set(err, ERR_BAD_FRAME, 0, "zygote message with %zu descriptors",
				 fd_count);
	if (message->flags & ~(uint32_t)FLAGS_ALLOWED || message->reserved != 0 ||
	    !forwards_are_sound(message) || !guard_is_sound(message))
		return error_set(err, ERR_BAD_FRAME, 0, "zygote message: a value out of range");
	if (message->flags & SETUP_GRANTED)
		return grant_terms_check(&message->grant, err);
	if (!all_zero(&message->grant, sizeof(message->grant)))
		return error_set(err, ERR_BAD_FRAME, 0, "zygote message: a grant for nothing");
	return 0;
}

union zygote_control {
	char bytes[CMSG_SPACE(ZYGOTE_FD_COUNT * sizeof(int))];
	struct cmsghdr align;
};

int zygote_message_send(int socket_fd, struct zygote_message *message,
			const int fds[ZYGOTE_FD_COUNT], struct error *err)
{
	struct iovec iov = { .iov_base = message, .iov_len = sizeof(*message) };
	union zygote_control control = { { 0 } };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.bytes };
	size_t count = 0;
	ssize_t n = 0;

	message->size = sizeof(*message);
	message->fds = 0;
	for (size_t i = 0; i < ZYGOTE_FD_COUNT; i++) {
		if (fds[i] < 0)
			continue;
		message->fds |= 1u << i;
		memcpy(CMSG_DATA(&control.align) + count++ * sizeof(int), &fds[i], sizeof(int));
	}
	control.align.cmsg_level = SOL_SOCKET;
	control.align.cmsg_type = SCM_RIGHTS;
	control.align.cmsg_len = CMSG_LEN(count * sizeof(int));
	msg.msg_controllen = CMSG_SPACE(count * sizeof(int));
	do
		n = sendmsg(socket_fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
	while (n < 0 && errno == EINTR);
	return n < 0 ? error_set(err, ERR_SYSTEM, errno, "tell a zygote") : 0;
}

/* The descriptors of MSG in their order; how many. */
static size_t take_fds(struct msghdr *msg, int fds[ZYGOTE_FD_COUNT])
{
	size_t count = 0;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
		size_t more = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS ||
		    more > ZYGOTE_FD_COUNT - count)
			continue;
		memcpy(fds + count, CMSG_DATA(c), more * sizeof(int));
		count += more;
	}
	return count;
}

/* From the order in which they rode to their bits. */
static void place_fds(uint32_t bits, const int *ridden, int ret_fds[ZYGOTE_FD_COUNT])
{
	for (size_t i = 0; i < ZYGOTE_FD_COUNT; i++)
		ret_fds[i] = bits & (1u << i) ? *ridden++ : -1;
}

int zygote_message_receive(int socket_fd, struct zygote_message *ret_message,
			   int ret_fds[ZYGOTE_FD_COUNT], struct error *err)
{
	struct iovec iov = { .iov_base = ret_message, .iov_len = sizeof(*ret_message) };
	union zygote_control control;
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = control.bytes,
			      /* Not CMSG_SPACE: the kernel would use the padding for one more. */
			      .msg_controllen = CMSG_LEN(ZYGOTE_FD_COUNT * sizeof(int)) };
	int ridden[ZYGOTE_FD_COUNT] = { -1, -1, -1, -1 };
	size_t count = 0;
	ssize_t n = 0;
	int r = 0;

	do
		n = recvmsg(socket_fd, &msg, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n == 0)
		return 0;
	if (n < 0)
		return error_set(err, ERR_SYSTEM, errno, "wait for a job");
	count = take_fds(&msg, ridden);
	if (msg.msg_flags & (MSG_TRUNC | MSG_CTRUNC))
		r = error_set(err, ERR_BAD_FRAME, 0, "a zygote message is too long");
	else
		r = zygote_message_check(ret_message, (size_t)n, count, err);
	for (size_t i = 0; r < 0 && i < ZYGOTE_FD_COUNT; i++)
		auto_close(&ridden[i]);
	if (r < 0)
		return r;
	place_fds(ret_message->fds, ridden, ret_fds);
	return 1;
}
