/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/egress/relay.h"

#include <arpa/inet.h>
#include <event2/event.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/scope.h"
#include "tests/test.h"

/* client <-> ends[0] relay ends[1] <-> server, over Unix sockets, which splice as well. */
struct fixture {
	struct event_base *base;
	struct pipepool pool;
	struct relay relay;
	int client;
	int server;
	int inner[2];
	int ends;
	enum relay_end how;
};

static void on_end(enum relay_end how, void *arg)
{
	struct fixture *fixture = arg;

	fixture->ends++;
	fixture->how = how;
}

static void begin(struct fixture *fixture)
{
	int pair[2];

	memset(fixture, 0, sizeof(*fixture));
	fixture->base = event_base_new();
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair),
			 0);
	fixture->client = pair[0];
	fixture->inner[0] = pair[1];
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair),
			 0);
	fixture->server = pair[0];
	fixture->inner[1] = pair[1];
	relay_prepare(&fixture->relay, fixture->base, &fixture->pool, fixture->inner[0],
		      fixture->inner[1], on_end, fixture);
}

static void end(struct fixture *fixture)
{
	relay_deinit(&fixture->relay);
	relay_deinit(&fixture->relay);
	pipepool_deinit(&fixture->pool);
	event_base_free(fixture->base);
	(void)close(fixture->client);
	(void)close(fixture->server);
	(void)close(fixture->inner[0]);
	(void)close(fixture->inner[1]);
}

static void turn(struct fixture *fixture)
{
	for (int i = 0; i < 4; i++)
		(void)event_base_loop(fixture->base, EVLOOP_NONBLOCK);
}

static void say(int fd, const char *text)
{
	assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
}

static void hears(int fd, const char *text)
{
	char bytes[256] = "";
	ssize_t got = recv(fd, bytes, sizeof(bytes) - 1, 0);

	assert_true(got >= 0 || text[0] == '\0');
	assert_string_equal(bytes, text);
}

static void ends_pass_one_by_one(void **state)
{
	struct fixture fixture;

	(void)state;
	begin(&fixture);
	buf_init(&fixture.relay.ways[RELAY_OUT].first, 100);
	buf_init(&fixture.relay.ways[RELAY_IN].first, 100);
	assert_int_equal(buf_add_string(&fixture.relay.ways[RELAY_OUT].first, "early "), 0);
	assert_int_equal(buf_add_string(&fixture.relay.ways[RELAY_IN].first, "welcome"), 0);
	say(fixture.client, "late");
	relay_start(&fixture.relay);
	turn(&fixture);
	hears(fixture.server, "early late");
	hears(fixture.client, "welcome");
	(void)shutdown(fixture.client, SHUT_WR);
	turn(&fixture);
	hears(fixture.server, "");
	assert_int_equal(fixture.ends, 0);
	say(fixture.server, "answer");
	turn(&fixture);
	hears(fixture.client, "answer");
	(void)shutdown(fixture.server, SHUT_WR);
	turn(&fixture);
	assert_int_equal(fixture.ends, 1);
	assert_int_equal(fixture.how, RELAY_OVER);
	assert_int_equal(fixture.relay.ways[RELAY_OUT].bytes, 4);
	assert_int_equal(fixture.relay.ways[RELAY_IN].bytes, 6);
	end(&fixture);
}

static void R34_a_counted_way_takes_no_more(void **state)
{
	struct fixture fixture;

	(void)state;
	begin(&fixture);
	fixture.relay.answer_ends = true;
	fixture.relay.ways[RELAY_OUT].extent = RELAY_COUNTED;
	fixture.relay.ways[RELAY_OUT].left = 4;
	say(fixture.client, "abcdGET /");
	relay_start(&fixture.relay);
	turn(&fixture);
	hears(fixture.server, "abcd");
	say(fixture.client, "more");
	turn(&fixture);
	assert_int_equal(recv(fixture.server, &(char){ 0 }, 1, 0), -1);
	say(fixture.server, "answer");
	(void)shutdown(fixture.server, SHUT_WR);
	turn(&fixture);
	hears(fixture.client, "answer");
	assert_int_equal(fixture.ends, 1);
	assert_int_equal(fixture.how, RELAY_OVER);
	end(&fixture);
}

static void R34_a_body_cut_off_is_broken(void **state)
{
	struct fixture fixture;

	(void)state;
	for (int chunked = 0; chunked < 2; chunked++) {
		begin(&fixture);
		fixture.relay.ways[RELAY_OUT].extent = chunked ? RELAY_CHUNKED : RELAY_COUNTED;
		fixture.relay.ways[RELAY_OUT].left = 100;
		say(fixture.client, "5\r\nab");
		(void)shutdown(fixture.client, SHUT_WR);
		relay_start(&fixture.relay);
		turn(&fixture);
		assert_int_equal(fixture.ends, 1);
		assert_int_equal(fixture.how, RELAY_CUT);
		end(&fixture);
	}
	begin(&fixture);
	fixture.relay.ways[RELAY_OUT].extent = RELAY_CHUNKED;
	say(fixture.client, "2\r\nab\r\n3;x\r\nabc\r\n");
	relay_start(&fixture.relay);
	turn(&fixture);
	assert_int_equal(fixture.how, RELAY_CUT);
	end(&fixture);
}

static void a_slow_reader_gets_every_byte(void **state)
{
	const size_t size = 3 << 20;
	char *bytes = malloc(size);
	char *read = malloc(size);
	size_t sent = 0;
	size_t got = 0;
	struct fixture fixture;

	(void)state;
	assert_non_null(bytes);
	assert_non_null(read);
	for (size_t i = 0; i < size; i++)
		bytes[i] = (char)(i * 31 + (i >> 12));
	begin(&fixture);
	relay_start(&fixture.relay);
	while (got < size) {
		ssize_t n = sent < size ? send(fixture.client, bytes + sent, size - sent, 0) : 0;

		sent += n > 0 ? (size_t)n : 0;
		turn(&fixture);
		n = recv(fixture.server, read + got, size - got < 1000 ? size - got : 100000, 0);
		got += n > 0 ? (size_t)n : 0;
	}
	assert_memory_equal(bytes, read, size);
	assert_int_equal(fixture.relay.ways[RELAY_OUT].bytes, size);
	turn(&fixture);
	/* Nothing is in flight: the pipes are back in the pool. */
	assert_int_equal(fixture.relay.ways[RELAY_OUT].pipe[0], -1);
	assert_int_equal(fixture.relay.ways[RELAY_IN].pipe[0], -1);
	assert_in_range(fixture.pool.count, 1, 2);
	end(&fixture);
	free(bytes);
	free(read);
}

/* Of both ends over TCP, for resets: returns what the test keeps, *RET_INNER is the relay's. */
static int tcp_pair(int *ret_inner)
{
	struct sockaddr_in address = { .sin_family = AF_INET };
	socklen_t size = sizeof(address);
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int outer = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_int_equal(bind(listener, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(listener, 1), 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &size), 0);
	assert_int_equal(connect(outer, (struct sockaddr *)&address, sizeof(address)), 0);
	*ret_inner = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	assert_true(*ret_inner >= 0);
	assert_int_equal(fcntl(outer, F_SETFL, O_NONBLOCK), 0);
	(void)close(listener);
	return outer;
}

static void begin_over_tcp(struct fixture *fixture)
{
	memset(fixture, 0, sizeof(*fixture));
	fixture->base = event_base_new();
	fixture->client = tcp_pair(&fixture->inner[0]);
	fixture->server = tcp_pair(&fixture->inner[1]);
	relay_prepare(&fixture->relay, fixture->base, &fixture->pool, fixture->inner[0],
		      fixture->inner[1], on_end, fixture);
}

/* A server that answers before it has read all, and goes, which resets the connection. */
static void an_answer_outlives_an_upload_that_nobody_reads(void **state)
{
	static const char upload[300000];
	struct fixture fixture;

	(void)state;
	for (int ended = 0; ended < 2; ended++) {
		begin_over_tcp(&fixture);
		fixture.relay.ways[RELAY_OUT].extent = RELAY_COUNTED;
		fixture.relay.ways[RELAY_OUT].left = 10 * sizeof(upload);
		assert_true(send(fixture.client, upload, sizeof(upload), MSG_NOSIGNAL) > 0);
		relay_start(&fixture.relay);
		turn(&fixture);
		say(fixture.server, "no!");
		if (ended) {
			(void)shutdown(fixture.server, SHUT_WR);
			turn(&fixture);
			assert_true(fixture.relay.ways[RELAY_IN].done);
		}
		(void)close(fixture.server);
		fixture.server = -1;
		/* More than the broken connection takes, before its answer is looked at. */
		(void)send(fixture.client, upload, sizeof(upload), MSG_NOSIGNAL);
		event_active(&fixture.relay.ways[RELAY_OUT].writable, EV_WRITE, 1);
		turn(&fixture);
		hears(fixture.client, "no!");
		/* It sees the end where there was one. */
		assert_int_equal(recv(fixture.client, &(char){ 0 }, 1, 0), ended ? 0 : -1);
		assert_int_equal(fixture.ends, 1);
		assert_int_equal(fixture.how, ended ? RELAY_UNREAD : RELAY_CUT);
		end(&fixture);
	}
}

static void R34_a_pipe_with_bytes_is_not_given_on(void **state)
{
	char bytes[4096] = { 0 };
	struct fixture fixture;

	(void)state;
	begin(&fixture);
	relay_start(&fixture.relay);
	/* The server reads nothing: its socket and then the pipe fill up. */
	for (int i = 0; i < 1000; i++) {
		(void)send(fixture.client, bytes, sizeof(bytes), 0);
		(void)event_base_loop(fixture.base, EVLOOP_NONBLOCK);
	}
	assert_true(fixture.relay.ways[RELAY_OUT].piped > 0);
	relay_deinit(&fixture.relay);
	assert_in_range(fixture.pool.count, 0, 1);
	for (size_t i = 0; i < fixture.pool.count; i++)
		assert_int_equal(read(fixture.pool.pipes[i][0], bytes, sizeof(bytes)), -1);
	end(&fixture);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ends_pass_one_by_one),
		cmocka_unit_test(R34_a_counted_way_takes_no_more),
		cmocka_unit_test(R34_a_body_cut_off_is_broken),
		cmocka_unit_test(a_slow_reader_gets_every_byte),
		cmocka_unit_test(an_answer_outlives_an_upload_that_nobody_reads),
		cmocka_unit_test(R34_a_pipe_with_bytes_is_not_given_on),
	};

	(void)signal(SIGPIPE, SIG_IGN); /* as fsbox-egress does */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
