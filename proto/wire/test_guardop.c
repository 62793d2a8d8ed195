/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/wire/guardop.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/limits.h"
#include "tests/test.h"

static struct guard_order good(enum guard_order_kind kind)
{
	struct guard_order order;

	guard_order_init(&order, kind);
	order.plan = 7;
	if (kind == GUARD_ORDER_PLAN)
		order.plan_bytes = 100;
	if (kind == GUARD_ORDER_JOB)
		order.job = order.begun_ns = 9;
	return order;
}

static int check(const struct guard_order *order)
{
	return guard_order_check(order, sizeof(*order),
				 guard_order_fd_count((enum guard_order_kind)order->kind), NULL);
}

static void each_kind_is_accepted(void **state)
{
	(void)state;
	for (int kind = GUARD_ORDER_PLAN; kind < GUARD_ORDER_KIND_COUNT; kind++) {
		struct guard_order order = good((enum guard_order_kind)kind);

		assert_int_equal(check(&order), 0);
	}
}

#define REFUSED(kind, change)                          \
	do {                                           \
		struct guard_order order = good(kind); \
		change;                                \
		assert_true(check(&order) < 0);        \
	} while (0)

static void what_is_out_of_range_is_refused(void **state)
{
	(void)state;
	REFUSED(GUARD_ORDER_PLAN, order.size--);
	REFUSED(GUARD_ORDER_PLAN, order.kind = 0);
	REFUSED(GUARD_ORDER_PLAN, order.kind = GUARD_ORDER_KIND_COUNT);
	REFUSED(GUARD_ORDER_PLAN, order.plan = 0);
	REFUSED(GUARD_ORDER_PLAN, order.plan_bytes = 0);
	REFUSED(GUARD_ORDER_PLAN, order.plan_bytes = LIMIT_PLAN_BYTES + 1);
	REFUSED(GUARD_ORDER_PLAN, order.job = 1);
	REFUSED(GUARD_ORDER_PLAN, order.flags = GUARD_KILL_UNMASKED);
	REFUSED(GUARD_ORDER_PLAN, order.pid = 1);
	REFUSED(GUARD_ORDER_PLAN, order.begun_ns = 1);
	REFUSED(GUARD_ORDER_JOB, order.begun_ns = 0);
	REFUSED(GUARD_ORDER_FORGET, order.plan_bytes = 1);
	REFUSED(GUARD_ORDER_FORGET, order.job = 1);
	REFUSED(GUARD_ORDER_JOB, order.job = 0);
	REFUSED(GUARD_ORDER_JOB, order.flags = GUARD_FLAGS_ALL + 1);
	REFUSED(GUARD_ORDER_JOB, order.pid = -1);
	REFUSED(GUARD_ORDER_JOB, order.reserved = 1);
}

static void descriptors_must_be_as_many_as_the_kind_says(void **state)
{
	struct guard_order order = good(GUARD_ORDER_JOB);

	(void)state;
	assert_true(guard_order_check(&order, sizeof(order), 1, NULL) < 0);
	assert_true(guard_order_check(&order, sizeof(order), 3, NULL) < 0);
	assert_true(guard_order_check(&order, sizeof(order) - 1, 2, NULL) < 0);
}

static bool is_open(int fd)
{
	return fcntl(fd, F_GETFD) >= 0;
}

static void an_order_arrives_with_its_descriptors_and_its_sender(void **state)
{
	struct guard_order sent = good(GUARD_ORDER_JOB);
	struct guard_order got;
	const int on = 1;
	int fds[GUARD_ORDER_FDS];
	int passed[GUARD_ORDER_FDS];
	int sender = 0;
	int ends[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
	assert_int_equal(setsockopt(ends[1], SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)), 0);
	passed[0] = passed[1] = STDERR_FILENO;
	assert_int_equal(guard_order_send(ends[0], &sent, passed, false, NULL), 0);
	assert_int_equal(guard_order_receive(ends[1], &got, fds, &sender, NULL), 1);
	assert_memory_equal(&got, &sent, sizeof(got));
	assert_int_equal(sender, getpid());
	assert_true(is_open(fds[0]) && is_open(fds[1]));
	(void)close(fds[0]);
	(void)close(fds[1]);
	(void)close(ends[0]);
	assert_int_equal(guard_order_receive(ends[1], &got, fds, &sender, NULL), 0);
	(void)close(ends[1]);
}

static void garbage_leaves_no_descriptor_behind(void **state)
{
	struct guard_order sent = good(GUARD_ORDER_JOB);
	struct guard_order got;
	struct error err = ERROR_INIT;
	int passed[GUARD_ORDER_FDS] = { STDERR_FILENO, STDERR_FILENO };
	int fds[GUARD_ORDER_FDS];
	int sender = 0;
	int ends[2];
	int next = dup(STDERR_FILENO);

	(void)state;
	(void)close(next);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
	sent.reserved = 1;
	assert_int_equal(guard_order_send(ends[0], &sent, passed, false, NULL), 0);
	assert_true(guard_order_receive(ends[1], &got, fds, &sender, &err) < 0);
	assert_int_equal(err.kind, ERR_BAD_FRAME);
	assert_int_equal(guard_order_receive(ends[1], &got, fds, &sender, &err), -(int)ERR_SYSTEM);
	assert_int_equal(err.errnum, EAGAIN);
	(void)close(ends[0]);
	(void)close(ends[1]);
	assert_int_equal(dup(STDERR_FILENO), next);
	(void)close(next);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_kind_is_accepted),
		cmocka_unit_test(what_is_out_of_range_is_refused),
		cmocka_unit_test(descriptors_must_be_as_many_as_the_kind_says),
		cmocka_unit_test(an_order_arrives_with_its_descriptors_and_its_sender),
		cmocka_unit_test(garbage_leaves_no_descriptor_behind),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
