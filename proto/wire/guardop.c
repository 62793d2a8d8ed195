/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/wire/guardop.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/limits.h"
#include "common/scope.h"

size_t guard_order_fd_count(enum guard_order_kind kind)
{
	switch (kind) {
	case GUARD_ORDER_PLAN:
		return 1;
	case GUARD_ORDER_JOB:
		return 2;
	case GUARD_ORDER_FORGET:
	case GUARD_ORDER_KIND_COUNT:
		break;
	}
	return 0;
}

void guard_order_init(struct guard_order *order, enum guard_order_kind kind)
{
	memset(order, 0, sizeof(*order));
	order->size = sizeof(*order);
	order->kind = kind;
}

int guard_order_check(const struct guard_order *order, size_t size, size_t fd_count,
		      struct error *err)
{
	bool is_job = false;
	bool is_plan = false;

	if (size != sizeof(*order) || order->size != sizeof(*order))
		return error_set(err, ERR_BAD_FRAME, 0, "guard order of %zu bytes", size);
	if (order->kind < GUARD_ORDER_PLAN || order->kind >= GUARD_ORDER_KIND_COUNT)
		return error_set(err, ERR_BAD_FRAME, 0, "guard order of unknown kind %u",
				 order->kind);
	is_job = order->kind == GUARD_ORDER_JOB;
	is_plan = order->kind == GUARD_ORDER_PLAN;
	if (fd_count != guard_order_fd_count((enum guard_order_kind)order->kind))
		return error_set(err, ERR_BAD_FRAME, 0, "guard order %u with %zu descriptors",
				 order->kind, fd_count);
	if (order->plan == 0 || (order->job != 0) != is_job ||
	    (order->plan_bytes != 0) != is_plan || order->plan_bytes > LIMIT_PLAN_BYTES ||
	    order->reserved != 0 || (order->begun_ns != 0) != is_job ||
	    (order->flags & ~(is_job ? (uint32_t)GUARD_FLAGS_ALL : 0u)) != 0 || order->pid < 0 ||
	    (order->pid != 0 && !is_job))
		return error_set(err, ERR_BAD_FRAME, 0, "guard order %u: a value out of range",
				 order->kind);
	return 0;
}

union order_control {
	char bytes[CMSG_SPACE(GUARD_ORDER_FDS * sizeof(int)) + CMSG_SPACE(sizeof(struct ucred))];
	struct cmsghdr align;
};

int guard_order_send(int socket_fd, const struct guard_order *order, const int *fds, bool block,
		     struct error *err)
{
	size_t bytes = guard_order_fd_count((enum guard_order_kind)order->kind) * sizeof(int);
	struct iovec iov = { .iov_base = (void *)order, .iov_len = sizeof(*order) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	union order_control control = { { 0 } };
	ssize_t n = 0;

	if (bytes > 0) {
		struct cmsghdr *cmsg = &control.align;

		msg.msg_control = control.bytes;
		msg.msg_controllen = CMSG_SPACE(bytes);
		cmsg->cmsg_level = SOL_SOCKET;
		cmsg->cmsg_type = SCM_RIGHTS;
		cmsg->cmsg_len = CMSG_LEN(bytes);
		memcpy(CMSG_DATA(cmsg), fds, bytes);
	}
	do
		n = sendmsg(socket_fd, &msg, MSG_NOSIGNAL | (block ? 0 : MSG_DONTWAIT));
	while (n < 0 && errno == EINTR);
	return n < 0 ? error_set(err, ERR_SYSTEM, errno, "tell the guard") : 0;
}

/* All descriptors of MSG to FDS as far as there is room; how many there were. */
static size_t take_control(struct msghdr *msg, int *fds, int *ret_sender)
{
	size_t count = 0;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
		struct ucred sender;

		if (c->cmsg_level != SOL_SOCKET)
			continue;
		if (c->cmsg_type == SCM_CREDENTIALS &&
		    c->cmsg_len == CMSG_LEN(sizeof(struct ucred))) {
			memcpy(&sender, CMSG_DATA(c), sizeof(sender));
			*ret_sender = sender.pid;
		}
		if (c->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t i = 0; i < (c->cmsg_len - CMSG_LEN(0)) / sizeof(int); i++) {
			int fd = -1;

			memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(int));
			if (count < GUARD_ORDER_FDS)
				fds[count] = fd;
			else
				(void)close(fd);
			count++;
		}
	}
	return count;
}

int guard_order_receive(int socket_fd, struct guard_order *ret_order, int *ret_fds, int *ret_sender,
			struct error *err)
{
	struct iovec iov = { .iov_base = ret_order, .iov_len = sizeof(*ret_order) };
	union order_control control;
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = control.bytes,
			      .msg_controllen = sizeof(control.bytes) };
	size_t count = 0;
	ssize_t n = 0;
	int r = 0;

	for (size_t i = 0; i < GUARD_ORDER_FDS; i++)
		ret_fds[i] = -1;
	*ret_sender = 0;
	do
		n = recvmsg(socket_fd, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n == 0)
		return 0;
	if (n < 0)
		return error_set(err, ERR_SYSTEM, errno, "receive an order");
	count = take_control(&msg, ret_fds, ret_sender);
	if (msg.msg_flags & (MSG_TRUNC | MSG_CTRUNC))
		r = error_set(err, ERR_BAD_FRAME, 0, "a guard order is too long");
	else
		r = guard_order_check(ret_order, (size_t)n, count, err);
	for (size_t i = 0; r < 0 && i < GUARD_ORDER_FDS; i++)
		auto_close(&ret_fds[i]);
	return r < 0 ? r : 1;
}
