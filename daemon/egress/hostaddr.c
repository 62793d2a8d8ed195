/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/egress/hostaddr.h"

#include <errno.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/scope.h"

struct request {
	struct nlmsghdr header;
	struct rtmsg route;
	struct rtattr attribute;
	uint8_t address[16];
};

int hostaddr_open(int *ret_fd, struct error *err)
{
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);

	if (fd < 0)
		return error_set(err, ERR_SYSTEM, errno, "route netlink socket");
	*ret_fd = fd;
	return 0;
}

static enum netaddr_class read_answer(int fd, uint32_t seq)
{
	union {
		struct nlmsghdr header;
		char bytes[4096];
	} answer;

	/* The kernel answers within the request: there is nothing to wait for. */
	for (;;) {
		ssize_t got = recv(fd, &answer, sizeof(answer), MSG_DONTWAIT);

		if (got < (ssize_t)sizeof(answer.header))
			return NETADDR_RESERVED;
		if (answer.header.nlmsg_seq != seq)
			continue;
		if (answer.header.nlmsg_type == NLMSG_ERROR)
			return NETADDR_PUBLIC;
		if (answer.header.nlmsg_type != RTM_NEWROUTE ||
		    got < (ssize_t)NLMSG_LENGTH(sizeof(struct rtmsg)))
			return NETADDR_RESERVED;
		switch (((const struct rtmsg *)NLMSG_DATA(&answer.header))->rtm_type) {
		case RTN_UNICAST:
			return NETADDR_PUBLIC;
		case RTN_LOCAL:
		case RTN_ANYCAST:
			return NETADDR_HOST;
		default:
			return NETADDR_MULTICAST;
		}
	}
}

static enum netaddr_class ask(int fd, const struct netaddr *address)
{
	static uint32_t seq;
	uint8_t size = address->family == 4 ? 4 : 16;
	struct request request = {
		.header = { .nlmsg_type = RTM_GETROUTE, .nlmsg_flags = NLM_F_REQUEST },
		.route = { .rtm_family = address->family == 4 ? AF_INET : AF_INET6,
			   .rtm_dst_len = (uint8_t)(size * 8) },
		.attribute = { .rta_type = RTA_DST, .rta_len = (uint16_t)RTA_LENGTH(size) },
	};

	memcpy(request.address, address->bytes, size);
	request.header.nlmsg_len = (uint32_t)(offsetof(struct request, address) + size);
	request.header.nlmsg_seq = ++seq;
	if (send(fd, &request, request.header.nlmsg_len, MSG_DONTWAIT) < 0)
		return NETADDR_RESERVED;
	return read_answer(fd, seq);
}

enum netaddr_class hostaddr_classify(int fd, const struct netaddr *address)
{
	enum netaddr_class class = netaddr_classify(address);

	return class == NETADDR_PUBLIC ? ask(fd, address) : class;
}
