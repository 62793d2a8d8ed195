/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/egress/dial.h"

#include <errno.h>
#include <event2/event.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/limits.h"
#include "common/scope.h"
#include "tests/test.h"

struct outcome {
	struct event_base *base;
	struct dial *dial;
	int calls;
	int fd;
	struct netaddr address;
	int errnum;
};

static void on_done(int fd, const struct netaddr *address, int errnum, void *arg)
{
	struct outcome *outcome = arg;

	outcome->calls++;
	outcome->dial = dial_free(outcome->dial); /* as every receiver does, at once */
	outcome->fd = fd;
	outcome->address = *address;
	outcome->errnum = errnum;
	(void)event_base_loopbreak(outcome->base);
}

static struct netaddr v4(uint8_t last)
{
	return netaddr_from_v4((const uint8_t[]){ 127, 0, 0, last });
}

static struct outcome run(const struct netaddr *addresses, size_t count, uint16_t port)
{
	struct outcome outcome = { .base = event_base_new(), .fd = -1 };

	outcome.dial = dial_new(outcome.base, addresses, count, port, on_done, &outcome);
	assert_non_null(outcome.dial);
	assert_int_equal(outcome.calls, 0);
	(void)event_base_dispatch(outcome.base);
	assert_int_equal(outcome.calls, 1);
	event_base_free(outcome.base);
	return outcome;
}

/* A listener on 127.0.0.2; *ret_port is its. */
static int listen_somewhere(uint16_t *ret_port)
{
	struct sockaddr_in in = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK + 1) };
	socklen_t size = sizeof(in);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (const void *)&in, sizeof(in)), 0);
	assert_int_equal(listen(fd, 8), 0);
	assert_int_equal(getsockname(fd, (void *)&in, &size), 0);
	*ret_port = ntohs(in.sin_port);
	return fd;
}

static void the_one_that_answers_is_taken(void **state)
{
	const struct netaddr addresses[] = { v4(9), v4(2), v4(8) };
	uint16_t port = 0;
	AUTO(auto_close) int listener = listen_somewhere(&port);
	struct outcome outcome = run(addresses, ARRAY_SIZE(addresses), port);
	struct netaddr wanted = v4(2);

	(void)state;
	assert_true(outcome.fd >= 0);
	assert_true(netaddr_equal(&outcome.address, &wanted));
	(void)close(outcome.fd);
}

static void refusals_are_told(void **state)
{
	struct netaddr addresses[LIMIT_EGRESS_ADDRESSES];
	uint16_t port = 0;
	AUTO(auto_close) int listener = listen_somewhere(&port);
	struct outcome outcome;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(addresses); i++)
		addresses[i] = v4((uint8_t)(10 + i));
	outcome = run(addresses, ARRAY_SIZE(addresses), port);
	assert_int_equal(outcome.fd, -1);
	assert_int_equal(outcome.errnum, ECONNREFUSED);
	outcome = run(addresses, 1, port);
	assert_int_equal(outcome.errnum, ECONNREFUSED);
}

static void it_can_be_given_up(void **state)
{
	const struct netaddr addresses[] = { v4(2) };
	struct outcome outcome = { .base = event_base_new() };
	uint16_t port = 0;
	AUTO(auto_close) int listener = listen_somewhere(&port);

	(void)state;
	assert_null(dial_free(dial_new(outcome.base, addresses, 1, port, on_done, &outcome)));
	(void)event_base_dispatch(outcome.base);
	assert_int_equal(outcome.calls, 0);
	event_base_free(outcome.base);
	assert_null(dial_free(NULL));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_one_that_answers_is_taken),
		cmocka_unit_test(refusals_are_told),
		cmocka_unit_test(it_can_be_given_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
