/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/egress/socks.h"

#include <string.h>

#include "common/scope.h"
#include "tests/test.h"

#define REQUEST(bytes, host, port, reply) \
	socks_read_request((const uint8_t *)(bytes), sizeof(bytes) - 1, host, port, reply, NULL)

static void greetings_are_read(void **state)
{
	(void)state;
	assert_int_equal(socks_read_greeting((const uint8_t *)"", 0, NULL), 0);
	assert_int_equal(socks_read_greeting((const uint8_t *)"\5", 1, NULL), 0);
	assert_int_equal(socks_read_greeting((const uint8_t *)"\5\2\2", 3, NULL), 0);
	assert_int_equal(socks_read_greeting((const uint8_t *)"\5\2\2\0rest", 8, NULL), 4);
	assert_int_equal(socks_read_greeting((const uint8_t *)"\5\1\2", 3, NULL), -ERR_INVALID);
	assert_int_equal(socks_read_greeting((const uint8_t *)"\5\0", 2, NULL), -ERR_INVALID);
	assert_int_equal(socks_read_greeting((const uint8_t *)"\4\1", 2, NULL), -ERR_INVALID);
}

static void requests_are_read(void **state)
{
	static const char name[] = "\5\1\0\3\13Example.org\1\273rest";
	struct hostname host;
	uint16_t port = 0;
	enum socks_reply reply = SOCKS_SUCCEEDED;

	(void)state;
	for (size_t size = 0; size < 18; size++)
		assert_int_equal(socks_read_request((const uint8_t *)name, size, &host, &port,
						    &reply, NULL),
				 0);
	assert_int_equal(REQUEST(name, &host, &port, &reply), 18);
	assert_string_equal(host.name, "example.org");
	assert_int_equal(port, 443);
	assert_int_equal(REQUEST("\5\1\0\1\300\0\2\1\0\120", &host, &port, &reply), 10);
	assert_string_equal(host.name, "192.0.2.1");
	assert_int_equal(REQUEST("\5\1\0\4\0\0\0\0\0\0\0\0\0\0\377\377\177\0\0\1\0\120", &host,
				 &port, &reply),
			 22);
	assert_string_equal(host.name, "127.0.0.1");
	assert_int_equal(REQUEST("\5\1\0\3\3::1\0\120", &host, &port, &reply), 10);
	assert_int_equal(host.address.family, 6);
}

static void R34_other_requests_are_refused(void **state)
{
	struct hostname host;
	uint16_t port = 0;
	enum socks_reply reply = SOCKS_SUCCEEDED;

	(void)state;
	assert_int_equal(REQUEST("\5\2\0\1\177\0\0\1\0\120", &host, &port, &reply), -ERR_INVALID);
	assert_int_equal(reply, SOCKS_NO_SUCH_COMMAND);
	assert_int_equal(REQUEST("\5\3\0\1", &host, &port, &reply), -ERR_INVALID);
	assert_int_equal(reply, SOCKS_NO_SUCH_COMMAND);
	assert_int_equal(REQUEST("\5\1\0\2\177\0\0\1\0\120", &host, &port, &reply), -ERR_INVALID);
	assert_int_equal(reply, SOCKS_NO_SUCH_ADDRESS);
	assert_int_equal(REQUEST("\5\1\1\1\177\0\0\1\0\120", &host, &port, &reply), -ERR_INVALID);
	assert_int_equal(REQUEST("\4\1\0\1\177\0\0\1\0\120", &host, &port, &reply), -ERR_INVALID);
	assert_int_equal(REQUEST("\5\1\0\1\177\0\0\1\0\0", &host, &port, &reply), -ERR_INVALID);
	assert_int_equal(REQUEST("\5\1\0\3\0\0\120", &host, &port, &reply), -ERR_INVALID);
	assert_int_equal(reply, SOCKS_NOT_ALLOWED);
	assert_int_equal(REQUEST("\5\1\0\3\5"
				 "127.1\0\120",
				 &host, &port, &reply),
			 -ERR_INVALID);
	assert_int_equal(reply, SOCKS_NOT_ALLOWED);
	assert_int_equal(REQUEST("\5\1\0\3\3a\0b\0\120", &host, &port, &reply), -ERR_INVALID);
	assert_int_equal(reply, SOCKS_NOT_ALLOWED);
}

/* What we send as a client, the server side reads. */
static void both_sides_agree(void **state)
{
	static const char *const hosts[] = { "example.org", "192.0.2.1", "2001:db8::1" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(hosts); i++) {
		AUTO(buf_deinit) struct buf out = BUF_INIT(512);
		struct hostname host;
		struct hostname read;
		uint16_t port = 0;
		enum socks_reply reply = SOCKS_FAILURE;
		int size = 0;

		assert_int_equal(hostname_parse(hosts[i], strlen(hosts[i]), true, &host, NULL), 0);
		assert_int_equal(socks_write_request(&host, 443, &out), 0);
		size = socks_read_greeting((const uint8_t *)out.data, out.size, NULL);
		assert_int_equal(size, 3);
		assert_int_equal(socks_read_request((const uint8_t *)out.data + size,
						    out.size - (size_t)size, &read, &port, &reply,
						    NULL),
				 (int)out.size - size);
		assert_string_equal(read.name, host.name);
		assert_int_equal(port, 443);
	}
}

static void answers_are_read(void **state)
{
	uint8_t answers[2 + SOCKS_ANSWER_BYTES] = { 5, 0 };

	(void)state;
	socks_write_answer(SOCKS_SUCCEEDED, answers + 2);
	for (size_t size = 0; size < sizeof(answers); size++)
		assert_int_equal(socks_read_answers(answers, size, NULL), 0);
	assert_int_equal(socks_read_answers(answers, sizeof(answers), NULL), sizeof(answers));
	answers[3] = SOCKS_NOT_ALLOWED;
	assert_int_equal(socks_read_answers(answers, sizeof(answers), NULL), -ERR_INVALID);
	answers[1] = 2;
	assert_int_equal(socks_read_answers(answers, 2, NULL), -ERR_INVALID);
	answers[0] = 'H';
	assert_int_equal(socks_read_answers(answers, 1, NULL), -ERR_INVALID);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(greetings_are_read),
		cmocka_unit_test(requests_are_read),
		cmocka_unit_test(R34_other_requests_are_refused),
		cmocka_unit_test(both_sides_agree),
		cmocka_unit_test(answers_are_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
