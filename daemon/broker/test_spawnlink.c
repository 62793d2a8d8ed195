/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/broker/spawnlink.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/test.h"

struct room {
	struct event_base *base;
	struct spawnlink link;
	int theirs;   /* fsboxd's end of the socket */
	int requests; /* fsboxd's end of the pipe */
	int answers;
	int entries;
	int news;
	int downs;
	bool garbage;
	struct error err;
	int fds;
};

static void answered(void *arg, const struct link_message *message, int fds[LINK_MESSAGE_FDS],
		     const struct error *err)
{
	struct room *room = arg;

	if (message != NULL && message->kind == LINK_JOB_ENTRY) {
		room->entries++;
		return;
	}
	room->answers++;
	room->fds = (fds[0] >= 0) + (fds[1] >= 0);
	error_clear(&room->err);
	if (err != NULL)
		room->err = *err;
}

static void on_news(void *arg, const struct link_message *message, int fds[LINK_MESSAGE_FDS])
{
	struct room *room = arg;

	(void)message;
	room->news++;
	room->fds = (fds[0] >= 0) + (fds[1] >= 0);
}

static void on_down(void *arg, bool garbage, const struct error *err)
{
	struct room *room = arg;

	(void)err;
	room->downs++;
	room->garbage = garbage;
}

static int set_up(void **state)
{
	struct room *room = calloc(1, sizeof(*room));
	int ends[2];
	int pipes[2];

	assert_non_null(room);
	(void)signal(SIGPIPE, SIG_IGN);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
	assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
	room->theirs = ends[0];
	room->requests = pipes[0];
	room->base = event_base_new();
	assert_int_equal(spawnlink_init_take(&room->link, ends[1], pipes[1], NULL), 0);
	assert_int_equal(spawnlink_attach(&room->link, room->base, on_news, on_down, room, NULL),
			 0);
	*state = room;
	return 0;
}

static int tear_down(void **state)
{
	struct room *room = *state;

	spawnlink_deinit(&room->link);
	event_base_free(room->base);
	(void)close(room->theirs);
	(void)close(room->requests);
	free(room);
	return 0;
}

static void turn(struct room *room)
{
	for (int i = 0; i < 3; i++)
		(void)event_base_loop(room->base, EVLOOP_NONBLOCK);
}

static void send_message(struct room *room, struct link_message *message, size_t fd_count)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int) * 3)];
		struct cmsghdr align;
	} control = { 0 };
	struct iovec iov = { .iov_base = message };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	const int fds[3] = { 0, 1, 2 };

	message->size = (uint32_t)link_message_size((enum link_kind)message->kind);
	iov.iov_len = message->size;
	if (fd_count > 0) {
		control.align.cmsg_level = SOL_SOCKET;
		control.align.cmsg_type = SCM_RIGHTS;
		control.align.cmsg_len = CMSG_LEN(fd_count * sizeof(int));
		memcpy(CMSG_DATA(&control.align), fds, fd_count * sizeof(int));
		msg.msg_control = control.bytes;
		msg.msg_controllen = CMSG_SPACE(fd_count * sizeof(int));
	}
	assert_int_equal(sendmsg(room->theirs, &msg, 0), (ssize_t)message->size);
	turn(room);
}

static uint64_t take_op(struct room *room, enum op_kind kind)
{
	struct op_message op;
	size_t size = op_message_size(kind);

	assert_int_equal(read(room->requests, &op, size), (ssize_t)size);
	assert_int_equal(op_message_check(&op, size, NULL), 0);
	assert_int_equal(op.kind, kind);
	return op.seq;
}

static void ask(struct room *room, enum op_kind kind)
{
	struct op_message op;

	spawnlink_op_init(&op, kind);
	assert_int_equal(spawnlink_ask(&room->link, &op, answered, room, NULL, NULL), 0);
}

static void test_question_and_answer(void **state)
{
	struct room *room = *state;
	struct link_message message = { .kind = LINK_STATUS };

	ask(room, OP_STATUS);
	ask(room, OP_STATUS);
	message.seq = take_op(room, OP_STATUS);
	send_message(room, &message, 0);
	assert_int_equal(room->answers, 1);
	message.seq = take_op(room, OP_STATUS);
	send_message(room, &message, 0);
	assert_int_equal(room->answers, 2);
	assert_int_equal(room->downs, 0);
}

static void test_lists_and_errors(void **state)
{
	struct room *room = *state;
	struct link_message message = { .kind = LINK_JOB_ENTRY };
	struct error err = ERROR_INIT;

	ask(room, OP_JOB_LIST);
	message.seq = take_op(room, OP_JOB_LIST);
	message.u.entry.state = JOB_RUNNING;
	message.u.entry.engine = ENGINE_BWRAP;
	message.u.entry.room = ROOM_EGRESS_DENIED;
	send_message(room, &message, 0);
	send_message(room, &message, 0);
	assert_int_equal(room->entries, 2);
	assert_int_equal(room->answers, 0);
	memset(&message.u, 0, sizeof(message.u));
	message.kind = LINK_ERROR;
	(void)error_set(&err, ERR_QUOTA_EXCEEDED, 0, "no more");
	failure_set(&message.u.failure, &err, "quota");
	send_message(room, &message, 0);
	assert_int_equal(room->answers, 1);
	assert_int_equal(room->err.kind, ERR_QUOTA_EXCEEDED);
}

static void test_descriptors(void **state)
{
	struct room *room = *state;
	struct link_message message = { .kind = LINK_CONN, .conn = 3 };

	message.u.conn.pid = 1;
	send_message(room, &message, 2);
	assert_int_equal(room->news, 1);
	assert_int_equal(room->fds, 2);

	/* Too few: fsboxd is not what it should be. */
	send_message(room, &message, 1);
	assert_int_equal(room->downs, 1);
	assert_true(room->garbage);
}

static void test_too_many_descriptors(void **state)
{
	struct room *room = *state;
	struct link_message message = { .kind = LINK_CONN, .conn = 3 };

	message.u.conn.pid = 1;
	send_message(room, &message, 3);
	assert_true(room->garbage);
}

static void test_answer_to_nothing(void **state)
{
	struct room *room = *state;
	struct link_message message = { .kind = LINK_DONE, .seq = 99 };

	send_message(room, &message, 0);
	assert_int_equal(room->downs, 1);
	assert_true(room->garbage);
}

static void test_config_twice(void **state)
{
	struct room *room = *state;

	assert_int_equal(write(room->theirs, "xx", 2), 2);
	turn(room);
	assert_true(room->garbage);
}

/* fsboxd is gone: everything asked fails once, nothing more can be asked. */
static void test_down(void **state)
{
	struct room *room = *state;
	struct op_message op;

	ask(room, OP_STATUS);
	ask(room, OP_JOB_LIST);
	(void)shutdown(room->theirs, SHUT_RDWR);
	turn(room);
	assert_int_equal(room->answers, 2);
	assert_int_equal(room->err.kind, ERR_UNREACHABLE);
	assert_int_equal(room->downs, 1);
	assert_false(room->garbage);
	spawnlink_op_init(&op, OP_STATUS);
	assert_int_equal(spawnlink_ask(&room->link, &op, answered, room, NULL, NULL),
			 -ERR_UNREACHABLE);
	assert_int_equal(spawnlink_tell(&room->link, &op, NULL), -ERR_UNREACHABLE);
}

/* A full pipe holds nothing up: messages wait whole, in order, up to a bound. */
static void test_full_pipe_R13(void **state)
{
	struct room *room = *state;
	struct op_message op;
	int sent = 0;
	int r = 0;

	while (r == 0) {
		spawnlink_op_init(&op, OP_CONN_CLOSED);
		op.conn = (uint64_t)++sent;
		r = spawnlink_tell(&room->link, &op, NULL);
	}
	assert_int_equal(r, -ERR_QUOTA_EXCEEDED);
	assert_true(room->link.queue.size <= SPAWNLINK_QUEUE_BYTES);
	for (int i = 1; i < sent; i++) {
		size_t size = op_message_size(OP_CONN_CLOSED);
		ssize_t n;

		if (i % 100 == 0)
			turn(room);
		n = read(room->requests, &op, size);
		assert_int_equal(n, (ssize_t)size);
		assert_int_equal(op.conn, i);
	}
	turn(room);
	assert_int_equal(room->link.queue.size, 0);
}

static void test_withdrawn(void **state)
{
	struct room *room = *state;
	struct spawnlink_question *question;
	struct op_message op;

	spawnlink_op_init(&op, OP_STATUS);
	assert_int_equal(spawnlink_ask(&room->link, &op, answered, room, &question, NULL), 0);
	ask(room, OP_STATUS);
	spawnlink_withdraw(&room->link, question);
	spawnlink_withdraw(&room->link, NULL);
	(void)shutdown(room->theirs, SHUT_RDWR);
	turn(room);
	assert_int_equal(room->answers, 1);
}

/* fsboxd had refused it by then: that is no reason to give fsboxd up. */
static void test_refused_when_withdrawn(void **state)
{
	struct room *room = *state;
	struct link_message message = { .kind = LINK_ERROR };
	struct spawnlink_question *question;
	struct error err = ERROR_INIT;
	struct op_message op;

	spawnlink_op_init(&op, OP_JOB_START);
	assert_int_equal(spawnlink_ask(&room->link, &op, answered, room, &question, NULL), 0);
	spawnlink_withdraw(&room->link, question);
	message.seq = op.seq;
	(void)error_set(&err, ERR_QUOTA_EXCEEDED, 0, "no more");
	failure_set(&message.u.failure, &err, "quota");
	send_message(room, &message, 0);
	assert_int_equal(room->answers, 0);
	assert_int_equal(room->downs, 0);

	message.seq++; /* that nobody ever asked */
	send_message(room, &message, 0);
	assert_int_equal(room->downs, 1);
	assert_true(room->garbage);
}

static void test_not_what_is_expected(void **state)
{
	struct spawnlink link;
	int pipes[2];

	(void)state;
	assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
	assert_int_equal(spawnlink_init_take(&link, pipes[0], pipes[1], NULL), -ERR_SYSTEM);
	spawnlink_deinit(&link);
}

int main(void)
{
#define T(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		T(test_question_and_answer),
		T(test_lists_and_errors),
		T(test_descriptors),
		T(test_too_many_descriptors),
		T(test_answer_to_nothing),
		T(test_config_twice),
		T(test_down),
		T(test_full_pipe_R13),
		T(test_withdrawn),
		T(test_refused_when_withdrawn),
		cmocka_unit_test(test_not_what_is_expected),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
