/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/json/contextjson.h"

#include "tests/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/scope.h"

static const char full_text[] =
	"{\"platform\":\"darwin\",\"homeDir\":\"/Users/u\",\"botmuxHome\":\"/Users/u/.botmux\","
	"\"sessionDataDir\":\"/d\",\"botHome\":\"/b\",\"defaultBotmuxHome\":\"\","
	"\"loadedBotsConfigPath\":\"/c\",\"larkCliLinuxStore\":\"/s\",\"workingDir\":\"/w\","
	"\"currentAppId\":\"a b-\xe6\x97\xa5\",\"sessionId\":\"\",\"roleLibrarySubtree\":\"/r\","
	"\"redirectedCliData\":true,\"cliDataPaths\":[\"/1\",\"\"],\"authPaths\":[\"/2\"],"
	"\"execPaths\":[\"relative\"],\"readonlyRoots\":[\"/4/../5\"],\"botmuxInstallRoot\":\"/i\","
	"\"outbox\":\"/o\",\"extraWritePaths\":[\"/e\"],\"userPaths\":{\"readWrite\":[\"/p\"],"
	"\"readOnly\":[\"/q\"],\"deny\":[{\"b64\":\"L/8=\"}]},\"mandatoryDenyPaths\":[\"/m\"],"
	"\"mandatoryDenyRegexes\":[\"(\"],\"mandatoryReadOnlyPaths\":[\"/n\"],\"net\":false,"
	"\"writeRegexes\":[\"^/w$\"],\"larkTransportEnabled\":false}";

static void all_fields_come_back(void **state)
{
	struct policy_context context;
	struct buf out = BUF_INIT(1 << 16);
	struct error err = ERROR_INIT;
	struct json_writer writer;

	(void)state;
	if (context_parse(&context, full_text, strlen(full_text), CONTEXT_FULL, &err) < 0)
		fail_msg("%s", err.message);
	assert_int_equal(context.platform, PLATFORM_DARWIN);
	assert_string_equal(context.session_id, "");
	assert_string_equal(context.user_deny.items[0], "/\xff");
	assert_false(context.net);
	assert_true(context.redirected_cli_data);
	json_writer_init(&writer, &out);
	assert_int_equal(context_to_json(&context, CONTEXT_FULL, &writer, &err), 0);
	assert_int_equal(json_writer_check(&writer, &err), 0);
	assert_string_equal(buf_text(&out), full_text);
	policy_context_deinit(&context);
	buf_deinit(&out);
}

static void least_that_is_needed(void **state)
{
	static const char full[] =
		"{\"platform\":\"linux\",\"homeDir\":\"/h\",\"botmuxHome\":\"/m\","
		"\"sessionDataDir\":\"/d\",\"botHome\":\"/b\",\"workingDir\":\"/w\","
		"\"currentAppId\":\"a\",\"redirectedCliData\":false}";
	static const char wire[] = "{\"currentAppId\":\"a\",\"redirectedCliData\":false}";
	struct policy_context context;
	struct error err = ERROR_INIT;

	(void)state;
	assert_int_equal(context_parse(&context, full, strlen(full), CONTEXT_FULL, &err), 0);
	assert_true(context.net);
	assert_true(context.lark_transport_enabled);
	assert_int_equal(context.platform, PLATFORM_LINUX);
	policy_context_deinit(&context);
	assert_int_equal(context_parse(&context, wire, strlen(wire), CONTEXT_WIRE, &err), 0);
	assert_null(context.home_dir);
	assert_null(context.working_dir);
	policy_context_deinit(&context);
	assert_int_equal(context_parse(&context, wire, strlen(wire), CONTEXT_FULL, &err),
			 -ERR_INVALID);
	assert_string_equal(err.message, "context.platform: is missing");
}

static void frozen_facts_are_refused_on_the_wire(void **state)
{
	static const char *const frozen[] = { "homeDir",
					      "botmuxHome",
					      "sessionDataDir",
					      "defaultBotmuxHome",
					      "loadedBotsConfigPath",
					      "larkCliLinuxStore",
					      "platform",
					      "botHome" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(frozen); i++) {
		struct policy_context context;
		struct error err = ERROR_INIT;
		char text[200];
		char expected[200];

		(void)snprintf(
			text, sizeof(text),
			"{\"currentAppId\":\"a\",\"redirectedCliData\":true,\"%s\":\"linux\"}",
			frozen[i]);
		(void)snprintf(
			expected, sizeof(expected),
			"context.%s: is a fact that the daemon froze when it started; leave it "
			"out",
			frozen[i]);
		assert_int_equal(context_parse(&context, text, strlen(text), CONTEXT_WIRE, &err),
				 -ERR_INVALID);
		assert_string_equal(err.message, expected);
	}
}

static void refusals(void **state)
{
	static const char *const cases[][2] = {
		{ "{\"homedir\":\"/\"}", "context.homedir: unknown key" },
		{ "{\"net\":\"host\"}", "context.net: must be true or false, is a string" },
		{ "{\"userPaths\":{\"deny\":[1]}}",
		  "context.userPaths.deny[0]: must be a string or {\"b64\"}, is an integer" },
		{ "{\"platform\":\"win32\"}",
		  "context.platform: is 'win32', must be one of: linux darwin" },
		{ "[]", "context: must be an object, is an array" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct policy_context context;
		struct error err = ERROR_INIT;

		assert_int_equal(context_parse(&context, cases[i][0], strlen(cases[i][0]),
					       CONTEXT_FULL, &err),
				 -ERR_INVALID);
		assert_string_equal(err.message, cases[i][1]);
		assert_null(context.home_dir);
	}
}

/* Each context of the shared vectors is one we take. */
static void contexts_of_the_vectors(void **state)
{
	FILE *file = fopen(TEST_DATA "/vectors/buildFsPolicy.json", "rbe");
	const struct json_value *cases = NULL;
	struct json_limits limits = JSON_LIMITS;
	struct buf text = BUF_INIT(64u << 20);
	struct error err = ERROR_INIT;
	struct json_doc *doc = NULL;
	size_t taken = 0;
	char chunk[65536];
	size_t got = 0;

	(void)state;
	assert_non_null(file);
	while ((got = fread(chunk, 1, sizeof(chunk), file)) > 0)
		assert_int_equal(buf_add(&text, chunk, got), 0);
	(void)fclose(file);
	if (json_parse(&doc, buf_text(&text), text.size, &limits, &err) < 0)
		fail_msg("%s", err.message);
	cases = json_get(json_root(doc), "cases");
	for (const struct json_value *item = cases->u.first; item; item = item->next) {
		struct policy_context context;

		if (context_from_json(&context, json_get(item, "input"), CONTEXT_FULL, &err) < 0)
			fail_msg("%s", err.message);
		policy_context_deinit(&context);
		taken++;
	}
	assert_int_equal(taken, cases->size);
	assert_true(taken > 10);
	json_doc_free(doc);
	buf_deinit(&text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_fields_come_back),
		cmocka_unit_test(least_that_is_needed),
		cmocka_unit_test(frozen_facts_are_refused_on_the_wire),
		cmocka_unit_test(refusals),
		cmocka_unit_test(contexts_of_the_vectors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
