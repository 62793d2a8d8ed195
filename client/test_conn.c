/* SPDX-License-Identifier: Apache-2.0 */
#include "client/conn.h"

#include "tests/test.h"

#include <time.h>

#include "client/test_server.h"

/* The other end of a connection whose hello is answered by a child; then FN is let loose on it. */
static struct conn *open_with(server_fn *fn, pid_t *ret_pid)
{
	struct conn *conn = NULL;
	struct fsbox_error err;
	int ends[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
	*ret_pid = fork();
	assert_true(*ret_pid >= 0);
	if (*ret_pid == 0) {
		struct channel channel = CHANNEL_INIT;
		struct message message;

		(void)close(ends[0]);
		if (channel_init_take(&channel, ends[1], true, NULL) < 0 ||
		    !server_receive(&channel, &message))
			_exit(1);
		server_hello(&channel, &message);
		message_deinit(&message);
		fn(&channel);
		channel_deinit(&channel);
		_exit(0);
	}
	(void)close(ends[1]);
	if (conn_open_take(&conn, ends[0], "test", 700, &err) < 0)
		fail_msg("%s", err.message);
	return conn;
}

static void reap(pid_t pid)
{
	(void)kill(pid, SIGKILL);
	(void)waitpid(pid, NULL, 0);
}

/* Ask for the list and return the kind of error that comes of it. */
static const char *ask(struct conn *conn)
{
	static struct fsbox_error err;
	const union method_params params = { .list = { .all = false } };
	struct conn_event *event = NULL;

	memset(&err, 0, sizeof(err));
	if (conn_request(conn, METHOD_LIST, &params, &event, &err) == 0) {
		(void)conn_event_free(event);
		return "ok";
	}
	return err.kind;
}

static void send_raw(struct channel *channel, const void *data, size_t size)
{
	if (write(channel->fd, data, size) != (ssize_t)size)
		_exit(1);
}

static void send_text(struct channel *channel, const char *text)
{
	if (channel_send(channel, text, strlen(text), NULL, NULL) < 0)
		_exit(1);
}

/* Wait for the request, say TEXT, and stay. */
#define SAYS(name, text)                                \
	static void name(struct channel *channel)       \
	{                                               \
		struct message message;                 \
                                                        \
		if (!server_receive(channel, &message)) \
			return;                         \
		message_deinit(&message);               \
		send_text(channel, text);               \
		(void)pause();                          \
	}

SAYS(says_nonsense, "this is no JSON")
SAYS(says_request, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"list\",\"params\":{}}")
SAYS(says_unasked, "{\"jsonrpc\":\"2.0\",\"id\":77,\"result\":{\"jobs\":[]}}")
SAYS(says_text_id, "{\"jsonrpc\":\"2.0\",\"id\":\"2\",\"result\":{\"jobs\":[]}}")
SAYS(says_wrong_type, "{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{\"jobs\":7}}")
SAYS(says_unknown_key, "{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{\"jobs\":[],\"more\":1}}")
SAYS(says_duplicate, "{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{\"jobs\":[],\"jobs\":[]}}")
SAYS(says_deep,
     "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]")
SAYS(says_good, "{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{\"jobs\":[]}}")

static void hangs_up(struct channel *channel)
{
	struct message message;

	if (server_receive(channel, &message))
		message_deinit(&message);
}

static void cuts_frame(struct channel *channel)
{
	struct message message;

	if (server_receive(channel, &message))
		message_deinit(&message);
	send_raw(channel, "\0\0\1\0{\"js", 8);
}

static void announces_too_much(struct channel *channel)
{
	struct message message;

	if (server_receive(channel, &message))
		message_deinit(&message);
	send_raw(channel, "\x7f\xff\xff\xff", 4);
	(void)pause();
}

static void sends_empty_frame(struct channel *channel)
{
	struct message message;

	if (server_receive(channel, &message))
		message_deinit(&message);
	send_raw(channel, "\0\0\0\0", 4);
	(void)pause();
}

static void never_answers(struct channel *channel)
{
	(void)channel;
	(void)pause();
}

/* An answer in single bytes, 5 ms apart. */
static void answers_slowly(struct channel *channel)
{
	static const char text[] = "{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{\"jobs\":[]}}";
	const char header[4] = { 0, 0, 0, sizeof(text) - 1 };
	struct message message;

	if (server_receive(channel, &message))
		message_deinit(&message);
	send_raw(channel, header, 4);
	for (size_t i = 0; i < sizeof(text) - 1; i++) {
		const struct timespec pause_time = { .tv_nsec = 5000000 };

		send_raw(channel, text + i, 1);
		(void)nanosleep(&pause_time, NULL);
	}
	(void)pause();
}

/* A good answer with descriptors that nobody asked for. */
static void sends_descriptors(struct channel *channel)
{
	static const char text[] = "{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{\"jobs\":[]}}";
	struct fdset fds = FDSET_INIT;
	struct message message;

	if (server_receive(channel, &message))
		message_deinit(&message);
	for (int i = 0; i < 16; i++)
		(void)fdset_add_take(&fds, open("/dev/null", O_RDONLY | O_CLOEXEC), NULL);
	if (channel_send(channel, text, sizeof(text) - 1, &fds, NULL) < 0)
		_exit(1);
	(void)pause();
}

static void says_farewell(struct channel *channel)
{
	const struct message_id none = { .kind = MESSAGE_ID_NONE };
	struct message message;

	if (server_receive(channel, &message))
		message_deinit(&message);
	server_error(channel, &none, ERR_CONFINED_PEER, "you are in a box", "leave it");
}

static void abuse_is_an_error(void **state)
{
	static const struct {
		server_fn *fn;
		const char *kind;
	} rows[] = {
		{ says_nonsense, "bad-json" },
		{ says_request, "bad-request" },
		{ says_unasked, "bad-request" },
		{ says_text_id, "bad-request" },
		{ says_wrong_type, "bad-request" },
		{ says_unknown_key, "bad-request" },
		{ says_duplicate, "bad-json" },
		{ says_deep, "bad-json" },
		{ hangs_up, "daemon-unreachable" },
		{ cuts_frame, "bad-frame" },
		{ announces_too_much, "frame-too-large" },
		{ sends_empty_frame, "bad-frame" },
		{ never_answers, "timeout" },
		{ sends_descriptors, "bad-frame" },
		{ says_farewell, "confined-peer" },
		{ says_good, "ok" },
		{ answers_slowly, "ok" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		int before = count_fds();
		pid_t pid = 0;
		struct conn *conn = open_with(rows[i].fn, &pid);
		const char *kind = NULL;

		kind = ask(conn);
		if (strcmp(kind, rows[i].kind) != 0)
			print_error("row %zu\n", i);
		assert_string_equal(kind, rows[i].kind);
		/* What broke stays broken, for the same reason; what did not is still usable. */
		assert_string_equal(ask(conn), conn->failed ? rows[i].kind : "timeout");
		(void)conn_free(conn);
		reap(pid);
		assert_int_equal(count_fds(), before);
	}
}

/* Begun before the client took its end, ended after it spoke: at any byte. */
static void a_farewell_in_two_pieces_is_heard(void **state)
{
	static const char text[] = "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32000,"
				   "\"message\":\"no\",\"data\":{\"kind\":\"not-authorized\"}}}";
	char frame[4 + sizeof(text) - 1] = { 0, 0, 0, sizeof(text) - 1 };

	(void)state;
	memcpy(frame + 4, text, sizeof(text) - 1);
	for (size_t at = 0; at <= sizeof(frame); at++) {
		struct fsbox_error err;
		struct conn *conn = NULL;
		int ends[2];
		pid_t pid = 0;

		assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
		assert_int_equal(send(ends[1], frame, at, MSG_NOSIGNAL), at);
		pid = fork();
		assert_true(pid >= 0);
		if (pid == 0) {
			char byte = 0;

			(void)close(ends[0]);
			if (at < sizeof(frame) && read(ends[1], &byte, 1) == 1)
				(void)send(ends[1], frame + at, sizeof(frame) - at, MSG_NOSIGNAL);
			_exit(0);
		}
		(void)close(ends[1]);
		assert_int_equal(conn_open_take(&conn, ends[0], "test", 5000, &err), -1);
		assert_string_equal(err.kind, "not-authorized");
		reap(pid);
	}
}

static void late_answers_are_thrown_away(void **state)
{
	const union method_params params = { .list = { .all = false } };
	struct conn_event *event = NULL;
	struct fsbox_error err;
	uint64_t request = 0;
	pid_t pid = 0;
	struct conn *conn = open_with(answers_slowly, &pid);
	int lifeline[2];
	char byte = 0;

	(void)state;
	assert_int_equal(pipe2(lifeline, O_CLOEXEC), 0);
	assert_int_equal(conn_send(conn, METHOD_LIST, &params, lifeline[1], &request, &err), 0);
	assert_int_equal(conn_await(conn, request, 20, &event, &err), -1);
	assert_string_equal(err.kind, "timeout");
	/* A spawn that nobody waits for must not run on. */
	assert_int_equal(read(lifeline[0], &byte, 1), 0);
	(void)close(lifeline[0]);
	for (int i = 0; conn->pending && i < 200; i++) {
		struct pollfd entry = { .fd = conn->channel.fd, .events = POLLIN };

		(void)poll(&entry, 1, 20);
		assert_int_equal(conn_process(conn, &err), 0);
	}
	assert_null(conn->pending);
	assert_null(conn_next(conn));
	(void)conn_free(conn);
	reap(pid);
}

static void two_answers_out_of_order(struct channel *channel)
{
	struct message message;

	for (int i = 0; i < 2; i++)
		if (server_receive(channel, &message))
			message_deinit(&message);
	send_text(channel, "{\"jsonrpc\":\"2.0\",\"method\":\"exited\",\"params\":{\"job\":5,"
			   "\"reason\":\"exited\",\"code\":0,\"signal\":0,\"coreDumped\":false,"
			   "\"wallMs\":1,\"usage\":{\"userMs\":0,\"sysMs\":0,\"maxRssKiB\":1},"
			   "\"planted\":[],\"repaired\":0}}");
	send_text(channel, "{\"jsonrpc\":\"2.0\",\"id\":3,\"result\":{\"jobs\":[]}}");
	send_text(channel, "{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{\"jobs\":[]}}");
	(void)pause();
}

static void events_wait_for_who_wants_them(void **state)
{
	const union method_params params = { .list = { .all = false } };
	struct conn_event *event = NULL;
	struct fsbox_error err;
	uint64_t first = 0;
	uint64_t second = 0;
	pid_t pid = 0;
	struct conn *conn = open_with(two_answers_out_of_order, &pid);

	(void)state;
	assert_int_equal(conn_send(conn, METHOD_LIST, &params, -1, &first, &err), 0);
	assert_int_equal(conn_send(conn, METHOD_LIST, &params, -1, &second, &err), 0);
	assert_int_equal(conn_await(conn, first, 2000, &event, &err), 0);
	assert_int_equal(event->request, first);
	(void)conn_event_free(event);
	event = conn_next(conn);
	assert_int_equal(event->request, 0);
	assert_int_equal(event->exited.job, 5);
	(void)conn_event_free(event);
	event = conn_next(conn);
	assert_int_equal(event->request, second);
	(void)conn_event_free(event);
	assert_null(conn_next(conn));
	(void)conn_free(conn);
	reap(pid);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(abuse_is_an_error),
		cmocka_unit_test(a_farewell_in_two_pieces_is_heard),
		cmocka_unit_test(late_answers_are_thrown_away),
		cmocka_unit_test(events_wait_for_who_wants_them),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
