/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/egress/httphead.h"

#include <stdio.h>
#include <string.h>

#include "common/scope.h"
#include "tests/test.h"

static int parse(const char *text, struct http_head *head, bool *bad_host)
{
	return httphead_parse(text, strlen(text), head, bad_host, NULL);
}

static void heads_end_with_an_empty_line(void **state)
{
	const char text[] = "GET http://a/ HTTP/1.1\r\nHost: a\r\n\r\nrest";

	(void)state;
	for (size_t size = 0; size < sizeof(text); size++)
		for (size_t scanned = 0; scanned <= size; scanned++) {
			/* What was scanned before had no end. */
			if (scanned >= strlen(text) - 4)
				continue;
			assert_int_equal(httphead_size(text, scanned, size),
					 size < strlen(text) - 4 ? 0 : (int)strlen(text) - 4);
		}
	assert_int_equal(httphead_size("GET / HTTP/1.1\n", 0, 15), -1);
	assert_int_equal(httphead_size("\n", 0, 1), -1);
	assert_int_equal(httphead_size("a\r\nb: c\n", 0, 8), -1);
	assert_int_equal(httphead_size("a\r\n\n", 0, 4), -1);
}

static void requests_are_written_anew(void **state)
{
	static const struct {
		const char *in;
		const char *out;
		const char *absolute;
	} cases[] = {
		{ "GET http://A.example./x?y HTTP/1.1\r\nHost: a.EXAMPLE\r\n\r\n",
		  "GET /x?y HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\n\r\n",
		  "GET http://a.example/x?y HTTP/1.1\r\nHost: a.example\r\nConnection: "
		  "close\r\n\r\n" },
		{ "GET http://a:8080 HTTP/1.0\r\n\r\n",
		  "GET / HTTP/1.0\r\nHost: a:8080\r\nConnection: close\r\n\r\n",
		  "GET http://a:8080/ HTTP/1.0\r\nHost: a:8080\r\nConnection: close\r\n\r\n" },
		{ "GET HTTP://[2001:DB8::1]?q HTTP/1.1\r\nHost:[2001:db8:0::1]:80\t\r\n\r\n",
		  "GET /?q HTTP/1.1\r\nHost: [2001:db8::1]\r\nConnection: close\r\n\r\n",
		  "GET http://[2001:db8::1]/?q HTTP/1.1\r\nHost: [2001:db8::1]\r\nConnection: "
		  "close\r\n\r\n" },
		{ "OPTIONS http://a HTTP/1.1\r\nHost: a\r\n\r\n",
		  "OPTIONS * HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
		  "OPTIONS http://a HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n" },
		{ "PUT http://a/ HTTP/1.1\r\nhost: a\r\nCONNECTION: x-a , ,X-B\r\nx-A: 1\r\nX-b: "
		  "2\r\nX-C:   3  \r\nX-D:\r\nTe: gzip\r\ncontent-length: 12\r\n\r\n",
		  "PUT / HTTP/1.1\r\nHost: a\r\nX-C: 3\r\nX-D: \r\ncontent-length: "
		  "12\r\nConnection: close\r\n\r\n",
		  NULL },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		AUTO(buf_deinit) struct buf out = BUF_INIT(4096);
		AUTO(buf_deinit) struct buf absolute = BUF_INIT(4096);
		struct http_head head;
		bool bad_host = false;

		assert_int_equal(parse(cases[i].in, &head, &bad_host), 0);
		assert_int_equal(httphead_render(&head, false, &out), 0);
		assert_string_equal(buf_text(&out), cases[i].out);
		assert_int_equal(httphead_render(&head, true, &absolute), 0);
		if (cases[i].absolute)
			assert_string_equal(buf_text(&absolute), cases[i].absolute);
	}
}

static void bodies_are_told(void **state)
{
	struct http_head head;
	bool bad_host = false;

	(void)state;
	assert_int_equal(parse("CONNECT a.b:443 HTTP/1.1\r\nHost: a.b\r\n\r\n", &head, &bad_host),
			 0);
	assert_true(head.connect);
	assert_int_equal(head.port, 443);
	assert_int_equal(head.body, HTTP_BODY_NONE);
	assert_int_equal(parse("CONNECT a.b:443 HTTP/1.0\r\n\r\n", &head, &bad_host), 0);
	assert_int_equal(parse("POST http://a/ HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: "
			       "CHUNKED\r\n\r\n",
			       &head, &bad_host),
			 0);
	assert_int_equal(head.body, HTTP_BODY_CHUNKED);
	assert_int_equal(parse("POST http://a/ HTTP/1.0\r\nContent-Length: 007\r\n\r\n", &head,
			       &bad_host),
			 0);
	assert_int_equal(head.body, HTTP_BODY_LENGTH);
	assert_int_equal(head.length, 7);
}

static void R34_two_readings_are_none(void **state)
{
	static const char *const fields[] = {
		"Content-Length: 1\r\nContent-Length: 1\r\n",
		"Content-Length: 1\r\nTransfer-Encoding: chunked\r\n",
		"Transfer-Encoding: chunked\r\nContent-Length: 1\r\n",
		"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
		"Transfer-Encoding: gzip, chunked\r\n",
		"Transfer-Encoding: chunked;a\r\n",
		"Transfer-Encoding:\r\n",
		"Content-Length: 1 2\r\n",
		"Content-Length: -1\r\n",
		"Content-Length: 1a\r\n",
		"Content-Length:\r\n",
		"Content-Length: 1234567890123456789\r\n",
		"Content-Length : 1\r\n",
		" Content-Length: 1\r\n",
		"X: y\r\n\tz\r\n",
		"X: y\r z\r\n",
		"X: y\x01\r\n",
		"X: y\x7f\r\n",
		"X y\r\n",
		"X(: y\r\n",
		": y\r\n",
		"Host: b\r\n",
		"Host: a\r\n",
		"Connection: content-length\r\n",
		"Connection: close, host\r\n",
		"Proxy-Connection: transfer-encoding\r\n",
		"Connection: a b\r\n",
	};
	char text[512];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
		struct http_head head;
		bool bad_host = false;

		(void)snprintf(text, sizeof(text), "POST http://a/ HTTP/1.1\r\nHost: a\r\n%s\r\n",
			       fields[i]);
		if (parse(text, &head, &bad_host) != -ERR_INVALID)
			fail_msg("'%s' is taken", fields[i]);
		assert_false(bad_host);
	}
}

static void R34_request_lines_have_one_form(void **state)
{
	static const struct {
		const char *line;
		bool bad_host;
	} lines[] = {
		{ "", false },
		{ "GET", false },
		{ "GET /", false },
		{ "GET / HTTP/1.1", false },
		{ "GET http://a/", false },
		{ "GET http://a/ HTTP/1.1 ", false },
		{ "GET  http://a/ HTTP/1.1", false },
		{ " GET http://a/ HTTP/1.1", false },
		{ "GET http://a/ HTTP/1.2", false },
		{ "GET http://a/ http/1.1", false },
		{ "GET http://a/ HTTP/2.0", false },
		{ "GET http://a/\x01 HTTP/1.1", false },
		{ "GET http://a/\xc3\xa4 HTTP/1.1", false },
		{ "GET https://a/ HTTP/1.1", false },
		{ "GET a HTTP/1.1", false },
		{ "GET http://a/#f HTTP/1.1", false },
		{ "connect a:1 HTTP/1.1", false },
		{ "G\"T http://a/ HTTP/1.1", false },
		{ "GET http://u@a/ HTTP/1.1", true },
		{ "GET http:///a HTTP/1.1", true },
		{ "GET http://a:/ HTTP/1.1", true },
		{ "GET http://a:0/ HTTP/1.1", true },
		{ "GET http://127.1/ HTTP/1.1", true },
		{ "GET http://a\\@b/ HTTP/1.1", true },
		{ "CONNECT a HTTP/1.1", true },
		{ "CONNECT http://a:1 HTTP/1.1", true },
		{ "CONNECT u@a:1 HTTP/1.1", true },
		{ "CONNECT a:1/ HTTP/1.1", true },
		{ "CONNECT 0x7f.1:1 HTTP/1.1", true },
	};
	char text[256];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
		struct http_head head;
		bool bad_host = false;

		(void)snprintf(text, sizeof(text), "%s\r\nHost: a\r\n\r\n", lines[i].line);
		if (parse(text, &head, &bad_host) != -ERR_INVALID)
			fail_msg("'%s' is taken", lines[i].line);
		if (bad_host != lines[i].bad_host)
			fail_msg("'%s': bad host: %d", lines[i].line, bad_host);
	}
}

static void R34_the_host_field_says_the_same(void **state)
{
	static const char *const good[] = { "a.b:8080", "A.B.:8080" };
	static const char *const bad[] = {
		"a.b", "a.b:80", "b:8080", "a.b:8080 x", "u@a.b:8080", "a.b:8080,a.b:8080", ""
	};
	char text[256];
	struct http_head head;
	bool bad_host = false;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		(void)snprintf(text, sizeof(text),
			       "GET http://a.b:8080/ HTTP/1.1\r\nHost: %s\r\n\r\n", good[i]);
		assert_int_equal(parse(text, &head, &bad_host), 0);
	}
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		(void)snprintf(text, sizeof(text),
			       "GET http://a.b:8080/ HTTP/1.1\r\nHost: %s\r\n\r\n", bad[i]);
		assert_int_equal(parse(text, &head, &bad_host), -ERR_INVALID);
	}
	assert_int_equal(parse("GET http://a.b/ HTTP/1.1\r\n\r\n", &head, &bad_host), -ERR_INVALID);
}

static void R13_fields_have_an_exact_bound(void **state)
{
	AUTO(buf_deinit) struct buf text = BUF_INIT(1 << 16);
	struct http_head head;
	bool bad_host = false;

	(void)state;
	assert_int_equal(buf_add_string(&text, "GET http://a/ HTTP/1.1\r\nHost: a\r\n"), 0);
	for (int i = 1; i < LIMIT_EGRESS_FIELDS; i++)
		assert_int_equal(buf_add_string(&text, "X: y\r\n"), 0);
	assert_int_equal(buf_add_string(&text, "\r\n"), 0);
	assert_int_equal(parse(buf_text(&text), &head, &bad_host), 0);
	text.size -= 2;
	assert_int_equal(buf_add_string(&text, "X: y\r\n\r\n"), 0);
	assert_int_equal(parse(buf_text(&text), &head, &bad_host), -ERR_INVALID);
}

static void statuses_are_read(void **state)
{
	(void)state;
	assert_int_equal(httphead_status("HTTP/1.1 200 OK\r\n\r\n", 19), 200);
	assert_int_equal(httphead_status("HTTP/1.0 407\r\n\r\n", 16), 407);
	assert_int_equal(httphead_status("HTTP/2.0 200 OK\r\n\r\n", 19), 0);
	assert_int_equal(httphead_status("HTTP/1.1 2000 O\r\n\r\n", 19), 0);
	assert_int_equal(httphead_status("HTTP/1.1 099 OK\r\n\r\n", 19), 0);
	assert_int_equal(httphead_status("HTTP/1.1 2", 10), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(heads_end_with_an_empty_line),
		cmocka_unit_test(requests_are_written_anew),
		cmocka_unit_test(bodies_are_told),
		cmocka_unit_test(R34_two_readings_are_none),
		cmocka_unit_test(R34_request_lines_have_one_form),
		cmocka_unit_test(R34_the_host_field_says_the_same),
		cmocka_unit_test(R13_fields_have_an_exact_bound),
		cmocka_unit_test(statuses_are_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
