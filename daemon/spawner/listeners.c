/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/spawner/listeners.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/scope.h"
#include "proto/wire/egressop.h"

static int listener_make(uint16_t port, struct error *err)
{
	AUTO(auto_close) int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(port) };

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 ||
	    listen(fd, SOMAXCONN) < 0)
		return error_set(err, ERR_SETUP_FAILED, errno, "listen on port %u of the job's",
				 port);
	return steal_fd(&fd);
}

static int send_listener(int egress_fd, const struct egress_listener *message, int fd,
			 struct error *err)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = { 0 };
	struct iovec iov = { (void *)(uintptr_t)message, sizeof(*message) };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = control.bytes,
			      .msg_controllen = sizeof(control.bytes) };

	control.align.cmsg_level = SOL_SOCKET;
	control.align.cmsg_type = SCM_RIGHTS;
	control.align.cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(&control.align), &fd, sizeof(int));
	if (sendmsg(egress_fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
		return error_set(err, ERR_SETUP_FAILED, errno, "hand a listener to fsbox-egress");
	return 0;
}

static int hand_over(int egress_fd, enum egress_via via, uint16_t port, struct error *err)
{
	const struct egress_listener message = {
		.size = sizeof(message),
		.via = via,
		.port = via == EGRESS_VIA_FORWARD ? port : 0,
	};
	AUTO(auto_close) int fd = listener_make(port, err);

	return fd < 0 ? fd : send_listener(egress_fd, &message, fd, err);
}

int listeners_hand_over(int egress_fd, const struct setup_header *setup, struct error *err)
{
	int r = 0;

	if (setup->flags & SETUP_PROXY &&
	    ((r = hand_over(egress_fd, EGRESS_VIA_HTTP, EGRESS_HTTP_PORT, err)) < 0 ||
	     (r = hand_over(egress_fd, EGRESS_VIA_SOCKS, EGRESS_SOCKS_PORT, err)) < 0))
		return r;
	for (uint32_t i = 0; i < setup->forward_count; i++) {
		r = hand_over(egress_fd, EGRESS_VIA_FORWARD, setup->forwards[i], err);
		if (r < 0)
			return r;
	}
	return 0;
}
