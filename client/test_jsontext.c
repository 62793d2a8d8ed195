/* SPDX-License-Identifier: Apache-2.0 */
#include "client/jsontext.h"

#include "tests/test.h"

#include <stdlib.h>
#include <string.h>

#include "common/limits.h"

static const char *request(const char *method, const char *params, struct error *err)
{
	static char text[4096];
	struct buf out = BUF_INIT(sizeof(text) - 1);
	int r = jsontext_request(&out, 7, method, params, err);

	text[0] = '\0';
	if (r == 0)
		memcpy(text, buf_text(&out), out.size + 1);
	buf_deinit(&out);
	return r == 0 ? text : error_name(err->kind);
}

static void requests_are_frames(void **state)
{
	struct error err = ERROR_INIT;

	(void)state;
	assert_string_equal(request("status", NULL, &err),
			    "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"status\",\"params\":{}}");
	assert_string_equal(request("x", " { \"a\" : [ 1 , null ] } ", &err),
			    "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"x\","
			    "\"params\":{\"a\":[1,null]}}");
}

/* Whatever a caller writes, one request goes out and nothing else. */
static void params_cannot_break_out(void **state)
{
	struct error err = ERROR_INIT;

	(void)state;
	assert_string_equal(request("x", "{}}{\"jsonrpc\":\"2.0\"", &err), "bad-json");
	assert_string_equal(request("x", "{},\"id\":8", &err), "bad-json");
	assert_string_equal(request("x", "", &err), "bad-json");
	assert_string_equal(request("x", "[1]", &err), "bad-request");
	assert_string_equal(request("x", "7", &err), "bad-request");
	assert_string_equal(request("a\"b", "{}", &err),
			    "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"a\\\"b\",\"params\":{}}");
	assert_string_equal(request("\xff", "{}", &err), "bad-request");
}

static void what_was_read_is_written(void **state)
{
	static const char text[] =
		"{\"a\":[true,false,null,-9223372036854775808,\"\\u00e9\\n\\\"\"],"
		"\"b\":{},\"c\":[]}";
	struct error err = ERROR_INIT;
	struct json_doc *doc = NULL;
	char *again = NULL;

	(void)state;
	assert_int_equal(json_parse(&doc, text, strlen(text), NULL, &err), 0);
	assert_int_equal(jsontext_of(&again, json_root(doc), &err), 0);
	assert_string_equal(again,
			    "{\"a\":[true,false,null,-9223372036854775808,\"\xc3\xa9\\n\\\"\"],"
			    "\"b\":{},\"c\":[]}");
	free(again);
	(void)json_doc_free(doc);
	assert_int_equal(jsontext_of(&again, NULL, &err), 0);
	assert_string_equal(again, "{}");
	free(again);
}

static void a_full_buffer_is_an_error(void **state)
{
	struct buf out = BUF_INIT(20);
	struct error err = ERROR_INIT;

	(void)state;
	assert_int_equal(jsontext_request(&out, 1, "status", NULL, &err), -ERR_NOMEM);
	buf_deinit(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(requests_are_frames),
		cmocka_unit_test(params_cannot_break_out),
		cmocka_unit_test(what_was_read_is_written),
		cmocka_unit_test(a_full_buffer_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
