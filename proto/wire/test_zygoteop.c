/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/wire/zygoteop.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "proto/wire/guardop.h"
#include "tests/test.h"

static struct zygote_message plain(void)
{
	return (struct zygote_message){ .size = sizeof(struct zygote_message),
					.fds = ZYGOTE_FD_CHANNEL };
}

static struct zygote_message full(void)
{
	struct zygote_message message = plain();

	message.fds = ZYGOTE_FD_ALL;
	message.flags = SETUP_DETACHED | SETUP_PROXY | SETUP_GRANTED;
	message.forward_count = 2;
	message.forwards[0] = 80;
	message.forwards[1] = 8080;
	message.guard_plan = 3;
	message.job = 7;
	message.guard_flags = GUARD_FLAGS_ALL;
	message.grant = (struct grant_terms){
		.uid = 1, .net = 1, .expires_ms = 1, .stdio = { 1, 1, 1 }, .command = "true"
	};
	return message;
}

static int check(const struct zygote_message *message, size_t fd_count)
{
	struct error err = ERROR_INIT;
	int r = zygote_message_check(message, sizeof(*message), fd_count, &err);

	assert_int_equal(r < 0, err.kind != ERR_NONE);
	return r;
}

static void what_is_sound_passes(void **state)
{
	struct zygote_message message = plain();

	(void)state;
	assert_int_equal(check(&message, 1), 0);
	message = full();
	assert_int_equal(check(&message, 4), 0);
	message.forward_count = LIMIT_FORWARDS;
	for (size_t i = 0; i < LIMIT_FORWARDS; i++)
		message.forwards[i] = (uint16_t)(i + 1);
	assert_int_equal(check(&message, 4), 0);
}

static void sizes_and_counts_are_exact(void **state)
{
	struct zygote_message message = full();

	(void)state;
	assert_int_equal(zygote_message_check(&message, sizeof(message) - 1, 4, NULL),
			 -(int)ERR_BAD_FRAME);
	assert_int_equal(check(&message, 3), -(int)ERR_BAD_FRAME);
	assert_int_equal(check(&message, 5), -(int)ERR_BAD_FRAME);
	message.size--;
	assert_int_equal(check(&message, 4), -(int)ERR_BAD_FRAME);
}

#define REJECTED(from, fds, change)                                            \
	do {                                                                   \
		struct zygote_message message = from();                        \
                                                                               \
		change;                                                        \
		assert_int_equal(check(&message, (fds)), -(int)ERR_BAD_FRAME); \
	} while (0)

static void every_field_has_its_range(void **state)
{
	(void)state;
	REJECTED(full, 3, message.fds &= ~(uint32_t)ZYGOTE_FD_CHANNEL);
	REJECTED(full, 5, message.fds |= ZYGOTE_FD_ALL + 1);
	REJECTED(full, 4, message.flags |= SETUP_NET_HOST);
	REJECTED(full, 4, message.flags |= 1 << 4);
	REJECTED(full, 4, message.reserved = 1);
	/* fsbox-egress exactly for those that it serves. */
	REJECTED(full, 3, message.fds &= ~(uint32_t)ZYGOTE_FD_EGRESS);
	REJECTED(plain, 2, message.fds |= ZYGOTE_FD_EGRESS);
	REJECTED(full, 4, message.forward_count = LIMIT_FORWARDS + 1);
	REJECTED(full, 4, message.forward_count = 1);
	REJECTED(full, 4, message.forward_count = 3);
	REJECTED(full, 4, message.forwards[0] = 8080);
	REJECTED(full, 4, message.forwards[0] = 0);
	REJECTED(full, 4, message.forwards[LIMIT_FORWARDS - 1] = 1);
	/* The guard likewise. */
	REJECTED(full, 4, message.guard_plan = 0);
	REJECTED(full, 4, message.job = 0);
	REJECTED(full, 4, message.guard_flags = GUARD_FLAGS_ALL + 1);
	REJECTED(plain, 2, message.fds |= ZYGOTE_FD_GUARD);
	REJECTED(plain, 1, message.job = 7);
	REJECTED(plain, 1, message.guard_flags = 1);
	/* And a grant. */
	REJECTED(full, 4, message.flags &= ~(uint32_t)SETUP_GRANTED);
	REJECTED(full, 4, message.grant.net = 0);
	REJECTED(plain, 1, message.grant.reserved = 1);
	REJECTED(plain, 1, message.flags = SETUP_GRANTED);
}

static void it_travels_with_its_descriptors(void **state)
{
	struct error err = ERROR_INIT;
	struct zygote_message sent = full();
	struct zygote_message got;
	int ends[2];
	int fds[ZYGOTE_FD_COUNT] = { -1, -1, -1, -1 };

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
	assert_int_equal(shutdown(ends[0], SHUT_RD), 0);
	sent.size = 0;
	sent.fds = 0;
	assert_int_equal(zygote_message_send(ends[0], &sent, (int[]){ 0, ends[0], 1, 2 }, &err), 0);
	assert_int_equal(zygote_message_receive(ends[1], &got, fds, &err), 1);
	assert_memory_equal(&got, &sent, sizeof(got));
	for (size_t i = 0; i < ZYGOTE_FD_COUNT; i++) {
		assert_int_equal(fcntl(fds[i], F_GETFD), FD_CLOEXEC);
		(void)close(fds[i]);
	}
	/* Each in its place, whatever is left out. */
	sent = plain();
	sent.guard_plan = sent.job = 1;
	assert_int_equal(zygote_message_send(ends[0], &sent, (int[]){ 0, -1, ends[0], -1 }, &err),
			 0);
	assert_int_equal(zygote_message_receive(ends[1], &got, fds, &err), 1);
	assert_int_equal(got.fds, ZYGOTE_FD_CHANNEL | ZYGOTE_FD_GUARD);
	assert_true(fds[0] >= 0 && fds[1] == -1 && fds[2] >= 0 && fds[3] == -1);
	(void)close(fds[0]);
	(void)close(fds[2]);
	/* Nobody can answer, and the end of the sender is seen. */
	assert_int_equal(send(ends[1], "x", 1, MSG_NOSIGNAL), -1);
	assert_int_equal(errno, EPIPE);
	(void)close(ends[0]);
	assert_int_equal(zygote_message_receive(ends[1], &got, fds, &err), 0);
	(void)close(ends[1]);
}

static void what_is_wrong_leaves_no_descriptor(void **state)
{
	struct error err = ERROR_INIT;
	struct zygote_message message = plain();
	int fds[ZYGOTE_FD_COUNT];
	int ends[2];
	int next = -1;

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
	next = dup(ends[0]);
	(void)close(next);
	message.reserved = 1;
	assert_int_equal(zygote_message_send(ends[0], &message, (int[]){ 0, -1, -1, -1 }, &err), 0);
	assert_int_equal(zygote_message_receive(ends[1], &message, fds, &err), -(int)ERR_BAD_FRAME);
	assert_int_equal(send(ends[0], "garbage", 7, 0), 7);
	assert_int_equal(zygote_message_receive(ends[1], &message, fds, &err), -(int)ERR_BAD_FRAME);
	assert_int_equal(dup(ends[0]), next);
	(void)close(next);
	(void)close(ends[0]);
	(void)close(ends[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_sound_passes),
		cmocka_unit_test(sizes_and_counts_are_exact),
		cmocka_unit_test(every_field_has_its_range),
		cmocka_unit_test(it_travels_with_its_descriptors),
		cmocka_unit_test(what_is_wrong_leaves_no_descriptor),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
