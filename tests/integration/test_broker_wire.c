/* SPDX-License-Identifier: Apache-2.0 */

/* What a hostile or broken client can do to fsbox-broker: nothing to others, and nothing unanswered. */

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/integration/fake_fsboxd.h"
#include "tests/test.h"

static int set_up(void **state)
{
	struct fake *fake = calloc(1, sizeof(*fake));

	assert_non_null(fake);
	fake_init(fake);
	fake_start(fake);
	*state = fake;
	return 0;
}

static int tear_down(void **state)
{
	fake_stop(*state);
	free(*state);
	return 0;
}

/* The broker serves another client as if nothing had happened. */
static void assert_serves(struct fake *fake)
{
	struct fake_client client;
	union method_result result;
	int64_t id;

	client_hello(fake, &client);
	id = client_ask(&client, METHOD_DETECT, &(union method_params){ 0 });
	client_expect_result(&client, id, METHOD_DETECT, &result);
	assert_true(result.detect.engines.count > 0);
	method_result_deinit(METHOD_DETECT, &result);
	client_disconnect(&client);
}

static void expect_conn_closed(struct fake *fake, const struct fake_client *client)
{
	struct op_message op;

	fake_expect_op(fake, OP_CONN_CLOSED, &op);
	assert_int_equal(op.conn, client->number);
}

static void put_header(char *out, uint32_t length)
{
	uint32_t big = htonl(length);

	memcpy(out, &big, sizeof(big));
}

static void test_hello(void **state)
{
	struct fake *fake = *state;
	struct fake_client client;
	union method_params params;
	union method_result result;
	int64_t id;

	/* Nothing before it. */
	client_connect(fake, &client);
	id = client_ask(&client, METHOD_STATUS, &(union method_params){ 0 });
	client_expect_error(&client, id, ERR_INVALID, NULL);

	/* Not another protocol. */
	method_params_init(METHOD_HELLO, &params);
	params.hello.protocol = 2;
	params.hello.client = strdup("test");
	id = client_ask(&client, METHOD_HELLO, &params);
	client_expect_error(&client, id, ERR_INVALID, NULL);
	params.hello.protocol = 1;
	id = client_ask(&client, METHOD_HELLO, &params);
	client_expect_result(&client, id, METHOD_HELLO, &result);
	assert_int_equal(result.hello.protocol, 1);
	assert_int_equal(result.hello.uid, getuid());
	assert_int_equal(result.hello.mode, MODE_USER);
	assert_int_equal(result.hello.limits.frame_bytes, LIMIT_FRAME_BYTES);
	assert_true(string_list_has(&result.hello.features, "lifeline"));
	assert_false(string_list_has(&result.hello.features, "tty"));
	method_result_deinit(METHOD_HELLO, &result);

	/* Not twice. */
	id = client_ask(&client, METHOD_HELLO, &params);
	client_expect_error(&client, id, ERR_INVALID, NULL);
	method_params_deinit(METHOD_HELLO, &params);
	client_disconnect(&client);
	expect_conn_closed(fake, &client);
}

/* Each kind of garbage gets one error, then the connection is closed, and only that one. */
static void test_garbage_closes_that_client(void **state)
{
	static const char *const garbage[] = {
		"garbage",
		"{",
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"id\":1,\"method\":\"hello\"}",
		"{\"a\":\"\xff\"}",
		"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[",
		"{} {}",
		"nul\0l",
		"{\"a\":\"\\ud800\"}",
		"{\"a\":1.5}",
	};
	struct fake *fake = *state;
	struct fake_client other;
	union method_result result;
	int64_t id;

	client_hello(fake, &other);
	for (size_t i = 0; i < sizeof(garbage) / sizeof(garbage[0]); i++) {
		struct fake_client client;

		client_hello(fake, &client);
		client_send_text(&client, garbage[i]);
		client_expect_error(&client, 0, ERR_BAD_JSON, NULL);
		assert_true(client_is_closed(&client));
		expect_conn_closed(fake, &client);
		client_disconnect(&client);
	}
	id = client_ask(&other, METHOD_DETECT, &(union method_params){ 0 });
	client_expect_result(&other, id, METHOD_DETECT, &result);
	method_result_deinit(METHOD_DETECT, &result);
	client_disconnect(&other);
}

/* Well-formed JSON that is no good request: the error names what is wrong; the connection stays. */
static void test_wrong_requests_are_answered(void **state)
{
	static const struct {
		const char *json;
		enum error_kind kind;
		const char *names;
	} wrong[] = {
		{ "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"nonsense\",\"params\":{}}",
		  ERR_UNKNOWN_METHOD, "" },
		{ "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"wait\",\"params\":{}}", ERR_INVALID,
		  "job" },
		{ "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"wait\",\"params\":{\"job\":\"x\"}}",
		  ERR_INVALID, "job" },
		{ "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"wait\",\"params\":{\"job\":1,\"x\":2}}",
		  ERR_INVALID, "x" },
		{ "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"spawn\",\"params\":{\"argv\":[\"a\"],"
		  "\"cwd\":\"relative\"}}",
		  ERR_INVALID, "cwd" },
		{ "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"spawn\",\"params\":{\"argv\":[],"
		  "\"cwd\":\"/\"}}",
		  ERR_INVALID, "argv" },
		{ "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"spawn\",\"params\":{\"argv\":[\"a\"],"
		  "\"cwd\":\"/\",\"stdio\":{\"stdin\":0}}}",
		  ERR_BAD_FRAME, "" },
		{ "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"spawn\",\"params\":{\"argv\":[\"a\"],"
		  "\"cwd\":\"/\",\"context\":{\"homeDir\":\"/x\"}}}",
		  ERR_INVALID, "homeDir" },
	};
	struct fake *fake = *state;
	struct fake_client client;

	client_hello(fake, &client);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct error_reply reply;

		client_send_text(&client, wrong[i].json);
		client_expect_error(&client, 7, wrong[i].kind, &reply);
		if (strstr(reply.message, wrong[i].names) == NULL)
			fail_msg("'%s' is not named: %s", wrong[i].names, reply.message);
		error_reply_deinit(&reply);
	}
	client_disconnect(&client);
	assert_serves(fake);
}

static void test_lengths_R13(void **state)
{
	struct fake *fake = *state;
	struct fake_client client;
	char header[4];

	client_hello(fake, &client);
	put_header(header, LIMIT_FRAME_BYTES + 1);
	client_send_raw(&client, header, sizeof(header), NULL, 0);
	client_expect_error(&client, 0, ERR_FRAME_TOO_LARGE, NULL);
	assert_true(client_is_closed(&client));
	client_disconnect(&client);

	client_hello(fake, &client);
	put_header(header, 0);
	client_send_raw(&client, header, sizeof(header), NULL, 0);
	client_expect_error(&client, 0, ERR_BAD_FRAME, NULL);
	assert_true(client_is_closed(&client));
	client_disconnect(&client);

	/* Exactly the largest frame: an error about what is in it, not about its size. */
	client_hello(fake, &client);
	{
		char *big = malloc(LIMIT_FRAME_BYTES);

		assert_non_null(big);
		memset(big, ' ', LIMIT_FRAME_BYTES);
		assert_int_equal(channel_send(&client.channel, big, LIMIT_FRAME_BYTES, NULL, NULL),
				 0);
		while (channel_wants_write(&client.channel)) {
			struct pollfd pfd = { .fd = client.channel.fd, .events = POLLOUT };

			assert_int_equal(poll(&pfd, 1, FAKE_PATIENCE_MS), 1);
			assert_int_equal(channel_flush(&client.channel, NULL), 0);
		}
		free(big);
	}
	client_expect_error(&client, 0, ERR_BAD_JSON, NULL);
	client_disconnect(&client);
	assert_serves(fake);
}

static void test_truncated(void **state)
{
	struct fake *fake = *state;
	struct fake_client client;
	char bytes[20] = "";

	for (size_t size = 1; size <= sizeof(bytes); size += 3) {
		struct op_message op;

		client_connect(fake, &client);
		put_header(bytes, 1000);
		client_send_raw(&client, bytes, size, NULL, 0);
		client_disconnect(&client);
		fake_expect_op(fake, OP_CONN_CLOSED, &op);
		assert_int_equal(op.conn, client.number);
	}
	assert_serves(fake);
}

static size_t make_frame(char *out, const char *json)
{
	size_t size = strlen(json);

	put_header(out, (uint32_t)size);
	memcpy(out + 4, json, size + 1); /* the NUL is not sent */
	return 4 + size;
}

/* Two clients whose frames come byte by byte, in turn. */
static void test_slow_and_interleaved(void **state)
{
	struct fake *fake = *state;
	struct fake_client clients[2];
	char frame[256];
	size_t size = make_frame(frame, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"hello\","
					"\"params\":{\"protocol\":1,\"client\":\"slow\"}}");

	client_connect(fake, &clients[0]);
	client_connect(fake, &clients[1]);
	for (size_t i = 0; i < size; i++) {
		for (int k = 0; k < 2; k++)
			client_send_raw(&clients[k], frame + i, 1, NULL, 0);
	}
	for (int k = 0; k < 2; k++) {
		union method_result result;

		client_expect_result(&clients[k], 1, METHOD_HELLO, &result);
		method_result_deinit(METHOD_HELLO, &result);
		client_disconnect(&clients[k]);
	}
}

static void test_hello_is_due_R13(void **state)
{
	struct fake *fake = *state;
	struct fake_client client;
	struct error_reply reply;
	char byte = 0;

	/* Half a frame does not buy more time. */
	client_connect(fake, &client);
	client_send_raw(&client, &byte, 1, NULL, 0);
	client_expect_error(&client, 0, ERR_TIMEOUT, &reply);
	assert_non_null(strstr(reply.message, "hello"));
	error_reply_deinit(&reply);
	assert_true(client_is_closed(&client));
	client_disconnect(&client);
}

/* ---- descriptors ------------------------------------------------------------------------- */

static void test_descriptors_R7(void **state)
{
	struct fake *fake = *state;
	unsigned before;
	int fds[LIMIT_FRAME_FDS + 1];
	char frame[256];
	size_t size = make_frame(frame, "{\"jsonrpc\":\"2.0\",\"id\":9,\"method\":\"detect\","
					"\"params\":{}}");
	struct fake_client client;

	for (size_t i = 0; i < LIMIT_FRAME_FDS + 1; i++) {
		fds[i] = open("/dev/null", O_RDONLY | O_CLOEXEC);
		assert_true(fds[i] >= 0);
	}
	client_hello(fake, &client);
	before = fake_open_descriptors(fake);

	/* Not asked for: refused by name, closed, the connection stays. */
	for (size_t count = 1; count <= LIMIT_FRAME_FDS; count += 5) {
		client_send_raw(&client, frame, size, fds, count);
		client_expect_error(&client, 9, ERR_BAD_FRAME, NULL);
	}
	fake_expect_descriptors(fake, before);

	/* One too many. */
	client_send_raw(&client, frame, size, fds, LIMIT_FRAME_FDS + 1);
	client_expect_error(&client, 0, ERR_BAD_FRAME, NULL);
	assert_true(client_is_closed(&client));
	client_disconnect(&client);

	/* Not with the frame's first byte. */
	client_hello(fake, &client);
	client_send_raw(&client, frame, 10, NULL, 0);
	client_send_raw(&client, frame + 10, size - 10, fds, 1);
	client_expect_error(&client, 0, ERR_BAD_FRAME, NULL);
	assert_true(client_is_closed(&client));
	client_disconnect(&client);

	/* With a frame that is garbage. */
	client_hello(fake, &client);
	size = make_frame(frame, "{garbage");
	client_send_raw(&client, frame, size, fds, 3);
	client_expect_error(&client, 0, ERR_BAD_JSON, NULL);
	client_disconnect(&client);
	assert_serves(fake);
	fake_expect_descriptors(
		fake, before - 3); /* the client counted then is gone: socket, pidfd, /proc */
	for (size_t i = 0; i < LIMIT_FRAME_FDS + 1; i++)
		(void)close(fds[i]);
}

static void test_wrong_indexes(void **state)
{
	static const char *const stdio[] = {
		"{\"stdin\":0,\"stdout\":0}", "{\"stdin\":1}",           "{\"stdin\":-1}",
		"{\"stdin\":\"x\"}",          "{\"stdin\":99999999999}",
	};
	struct fake *fake = *state;
	struct fake_client client;
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	unsigned before;

	client_hello(fake, &client);
	before = fake_open_descriptors(fake);
	for (size_t i = 0; i < sizeof(stdio) / sizeof(stdio[0]); i++) {
		char json[512];
		char frame[600];
		struct message message;

		(void)snprintf(json, sizeof(json),
			       "{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"spawn\",\"params\":"
			       "{\"argv\":[\"/bin/true\"],\"cwd\":\"%s\",\"stdio\":%s}}",
			       fake->cwd, stdio[i]);
		client_send_raw(&client, frame, make_frame(frame, json), &fd, 1);
		client_receive(&client, &message);
		assert_int_equal(message.kind, MESSAGE_ERROR);
		assert_true(message.error.kind == ERR_BAD_FRAME ||
			    message.error.kind == ERR_INVALID);
		message_deinit(&message);
	}
	fake_expect_descriptors(fake, before);
	client_disconnect(&client);
	(void)close(fd);
}

/* ---- who sends ----------------------------------------------------------------------------- */

/* The connection leaked into another process: worth nothing there. */
static void test_another_process_R2(void **state)
{
	struct fake *fake = *state;
	struct fake_client client;
	char frame[256];
	size_t size = make_frame(frame, "{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"detect\","
					"\"params\":{}}");
	struct error_reply reply;
	pid_t pid;

	client_hello(fake, &client);
	pid = fork();
	if (pid == 0)
		_exit(send(client.channel.fd, frame, size, MSG_NOSIGNAL) == (ssize_t)size ? 0 : 1);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	client_expect_error(&client, 0, ERR_CONFINED_PEER, &reply);
	error_reply_deinit(&reply);
	assert_true(client_is_closed(&client));
	client_disconnect(&client);
	assert_serves(fake);
}

/* Half a frame from one, half from another. */
static void test_two_processes_one_frame_R2(void **state)
{
	struct fake *fake = *state;
	struct fake_client client;
	char frame[256];
	size_t size = make_frame(frame, "{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"detect\","
					"\"params\":{}}");
	struct message message;
	pid_t pid;

	client_hello(fake, &client);
	client_send_raw(&client, frame, 20, NULL, 0);
	pid = fork();
	if (pid == 0)
		_exit(send(client.channel.fd, frame + 20, size - 20, MSG_NOSIGNAL) > 0 ? 0 : 1);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	client_receive(&client, &message);
	assert_int_equal(message.kind, MESSAGE_ERROR);
	message_deinit(&message);
	assert_true(client_is_closed(&client));
	client_disconnect(&client);
	assert_serves(fake);
}

/* ---- floods --------------------------------------------------------------------------------- */

/* More requests at once than one connection may have: all are answered, each once. */
static void test_flood_of_requests_R13(void **state)
{
	/* No more beyond than a socket holds, frame by frame: nobody reads those. */
	enum { COUNT = LIMIT_REQUESTS_PER_CONNECTION + 40 };
	struct fake *fake = *state;
	struct fake_client client;
	union method_params params = { 0 };
	unsigned char seen[COUNT + 1] = { 0 };
	uint64_t seqs[COUNT];
	int64_t first;

	client_hello(fake, &client);
	first = client.last_id;
	for (int i = 0; i < COUNT; i++)
		(void)client_ask(&client, METHOD_STATUS, &params);
	/* fsboxd is slow: so many and no more wait at one time. */
	for (int i = 0; i < LIMIT_REQUESTS_PER_CONNECTION; i++) {
		struct op_message op;

		fake_expect_op(fake, OP_STATUS, &op);
		seqs[i] = op.seq;
	}
	assert_false(fake_op_waits(fake, 300));
	for (int i = 0; i < COUNT; i++) {
		struct link_message message = { .kind = LINK_STATUS };

		if (i >= LIMIT_REQUESTS_PER_CONNECTION) {
			struct op_message op;

			fake_expect_op(fake, OP_STATUS, &op);
			seqs[i] = op.seq;
		}
		message.seq = seqs[i];
		fake_send(fake, &message, NULL, 0);
	}
	for (int i = 0; i < COUNT; i++) {
		struct message message;

		client_receive(&client, &message);
		assert_int_equal(message.kind, MESSAGE_RESULT);
		assert_in_range(message.id.number - first, 1, COUNT);
		assert_int_equal(seen[message.id.number - first]++, 0);
		message_deinit(&message);
	}
	client_disconnect(&client);
}

/* A client that never reads: held back, and nobody else. */
static void test_client_that_does_not_read_R13(void **state)
{
	struct fake *fake = *state;
	struct fake_client client;
	char frame[256];
	size_t size = make_frame(frame, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"detect\","
					"\"params\":{}}");
	bool held = false;
	size_t sent = 0;

	client_hello(fake, &client);
	for (int i = 0; i < 400000 && !held; i++) {
		ssize_t n = send(client.channel.fd, frame + sent, size - sent,
				 MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n < 0 && (errno == EAGAIN || errno == EPIPE || errno == ECONNRESET)) {
			struct pollfd pfd = { .fd = client.channel.fd, .events = POLLOUT };

			/* Still full after a while: the broker reads no more. */
			held = errno != EAGAIN || poll(&pfd, 1, 500) == 0;
			continue;
		}
		assert_true(n > 0);
		sent = (sent + (size_t)n) % size;
	}
	assert_true(held);
	assert_serves(fake);
	client_disconnect(&client);
	assert_serves(fake);
}

static void test_many_connections_R13(void **state)
{
	struct fake *fake = *state;
	struct fake_client clients[200];
	unsigned before = fake_open_descriptors(fake);

	for (int i = 0; i < 200; i++)
		client_hello(fake, &clients[i]);
	for (int i = 0; i < 200; i++)
		client_disconnect(&clients[i]);
	for (int i = 0; i < 200; i++) {
		struct op_message op;

		fake_expect_op(fake, OP_CONN_CLOSED, &op);
	}
	fake_expect_descriptors(fake, before);
}

/* Params in a sealed memfd; one that is not sealed is refused. */
static void test_params_in_a_memfd(void **state)
{
	static const char params[] = "{\"job\":77}";
	struct fake *fake = *state;
	struct fake_client client;
	char frame[256];
	size_t size = make_frame(frame, "{\"jsonrpc\":\"2.0\",\"id\":4,\"method\":\"wait\","
					"\"paramsFd\":0}");
	int fd = memfd_create("params", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, params, strlen(params)), (ssize_t)strlen(params));
	client_hello(fake, &client);
	client_send_raw(&client, frame, size, &fd, 1);
	{
		struct message message;

		client_receive(&client, &message);
		assert_int_equal(message.kind, MESSAGE_ERROR);
		assert_int_not_equal(message.error.kind, ERR_JOB_UNKNOWN);
		message_deinit(&message);
	}
	assert_int_equal(fcntl(fd, F_ADD_SEALS,
			       F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE),
			 0);
	client_send_raw(&client, frame, size, &fd, 1);
	fake_know_nothing(fake, 77);
	client_expect_error(&client, 4, ERR_JOB_UNKNOWN, NULL);
	client_disconnect(&client);
	(void)close(fd);
}

int main(void)
{
#define T(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		T(test_hello),
		T(test_garbage_closes_that_client),
		T(test_wrong_requests_are_answered),
		T(test_lengths_R13),
		T(test_truncated),
		T(test_slow_and_interleaved),
		T(test_hello_is_due_R13),
		T(test_descriptors_R7),
		T(test_wrong_indexes),
		T(test_another_process_R2),
		T(test_two_processes_one_frame_R2),
		T(test_flood_of_requests_R13),
		T(test_client_that_does_not_read_R13),
		T(test_many_connections_R13),
		T(test_params_in_a_memfd),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
