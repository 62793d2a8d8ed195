/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/spawner/listeners.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "proto/wire/egressop.h"
#include "tests/fdcount.h"
#include "tests/test.h"

/* One message and its socket, or -1. */
static int receive(int fd, struct egress_listener *ret)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control;
	struct iovec iov = { ret, sizeof(*ret) };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = control.bytes,
			      .msg_controllen = sizeof(control.bytes) };
	ssize_t n = recvmsg(fd, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	int received = -1;

	if (n <= 0)
		return -1;
	assert_non_null(CMSG_FIRSTHDR(&msg));
	memcpy(&received, CMSG_DATA(CMSG_FIRSTHDR(&msg)), sizeof(int));
	assert_int_equal(egress_listener_check(ret, (size_t)n, 1, NULL), 0);
	return received;
}

/* On the loopback alone, and listening. */
static uint16_t port_of(int fd)
{
	struct sockaddr_in address;
	socklen_t size = sizeof(address);
	int listening = 0;

	assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &size), 0);
	assert_int_equal(address.sin_family, AF_INET);
	assert_int_equal(ntohl(address.sin_addr.s_addr), INADDR_LOOPBACK);
	size = sizeof(listening);
	assert_int_equal(getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listening, &size), 0);
	assert_int_equal(listening, 1);
	return ntohs(address.sin_port);
}

/* Two ports that are free now. */
static void free_ports(uint16_t ports[2])
{
	int fds[2];

	for (int i = 0; i < 2; i++) {
		struct sockaddr_in address = { .sin_family = AF_INET };
		socklen_t size = sizeof(address);

		address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
		fds[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		assert_int_equal(bind(fds[i], (struct sockaddr *)&address, sizeof(address)), 0);
		assert_int_equal(getsockname(fds[i], (struct sockaddr *)&address, &size), 0);
		ports[i] = ntohs(address.sin_port);
	}
	(void)close(fds[0]);
	(void)close(fds[1]);
	if (ports[0] > ports[1]) {
		uint16_t other = ports[0];

		ports[0] = ports[1];
		ports[1] = other;
	}
}

static void forwarded_ports_are_handed_over(void **state)
{
	struct setup_header setup = { .forward_count = 2 };
	struct egress_listener message;
	size_t before = fd_count();
	int ends[2];

	(void)state;
	free_ports(setup.forwards);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
	assert_int_equal(listeners_hand_over(ends[0], &setup, NULL), 0);
	assert_int_equal(fd_count(), before + 2); /* nothing is kept here */
	for (int i = 0; i < 2; i++) {
		int fd = receive(ends[1], &message);

		assert_true(fd >= 0);
		assert_int_equal(message.via, EGRESS_VIA_FORWARD);
		assert_int_equal(message.port, setup.forwards[i]);
		assert_int_equal(port_of(fd), setup.forwards[i]);
		(void)close(fd);
	}
	assert_int_equal(receive(ends[1], &message), -1);
	(void)close(ends[0]);
	(void)close(ends[1]);
}

static void nothing_asked_nothing_made(void **state)
{
	const struct setup_header setup = { .magic = SETUP_MAGIC };

	(void)state;
	assert_int_equal(listeners_hand_over(-1, &setup, NULL), 0);
}

/* A job that cannot have what it was promised does not begin. */
static void what_fails_is_told(void **state)
{
	struct setup_header setup = { .forward_count = 1 };
	struct sockaddr_in address = { .sin_family = AF_INET };
	socklen_t size = sizeof(address);
	struct error err = ERROR_INIT;
	uint16_t ports[2];
	int taken = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int ends[2];

	(void)state;
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_int_equal(bind(taken, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(getsockname(taken, (struct sockaddr *)&address, &size), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
	setup.forwards[0] = ntohs(address.sin_port);
	assert_int_equal(listeners_hand_over(ends[0], &setup, &err), -ERR_SETUP_FAILED);
	assert_int_equal(err.errnum, EADDRINUSE);
	(void)close(taken);

	free_ports(ports);
	setup.forwards[0] = ports[0];
	(void)close(ends[1]);
	assert_int_equal(listeners_hand_over(ends[0], &setup, &err), -ERR_SETUP_FAILED);
	assert_non_null(strstr(err.message, "fsbox-egress"));
	(void)close(ends[0]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(forwarded_ports_are_handed_over),
		cmocka_unit_test(nothing_asked_nothing_made),
		cmocka_unit_test(what_fails_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
