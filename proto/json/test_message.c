/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/json/message.h"

#include "tests/test.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/context.h"
#include "common/scope.h"
#include "proto/json/bulk.h"
#include "tests/fdcount.h"

/* Examples of every message are in tests/data/messages, for tests/lint/schema.py. */

static const struct message_id id_7 = MESSAGE_ID(7);

static int parse(struct message *message, const char *text, struct fdset *fds, struct error *err)
{
	char *copy = malloc(strlen(text) + 1);
	int r = 0;

	assert_non_null(copy);
	memcpy(copy, text, strlen(text));
	r = message_parse(message, copy, strlen(text), fds, err);
	free(copy);
	return r;
}

static struct spawn_params small_spawn(void)
{
	struct spawn_params spawn = SPAWN_PARAMS_INIT;

	assert_int_equal(string_list_add(&spawn.argv, "true", NULL), 0);
	spawn.cwd = strdup("/");
	return spawn;
}

/* ---- ids ----------------------------------------------------------------------------- */

static void ids_of_both_kinds(void **state)
{
	static const char *const ids[] = { "0", "-1", "9223372036854775807", "\"\"",
					   "\"a\xc3\xa9\\n\"" };
	struct message_id last = { .kind = MESSAGE_ID_NONE };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(ids); i++) {
		union method_params params;
		struct buf out = BUF_INIT(LIMIT_FRAME_BYTES);
		struct error err = ERROR_INIT;
		struct message message;
		char text[200];

		(void)snprintf(
			text, sizeof(text),
			"{\"jsonrpc\":\"2.0\",\"id\":%s,\"method\":\"status\",\"params\":{}}",
			ids[i]);
		assert_int_equal(parse(&message, text, NULL, &err), 0);
		assert_true(message_id_equal(&message.id, &message.id));
		assert_false(message_id_equal(&message.id, &last));
		last = message.id;
		assert_int_equal(message_decode_params(&message, &params, &err), 0);
		assert_int_equal(message_encode_request(&out, NULL, &message.id, METHOD_STATUS,
							&params, &err),
				 0);
		assert_string_equal(buf_text(&out), text);
		message_deinit(&message);
		buf_deinit(&out);
	}
}

static void longest_id(void **state)
{
	char text[200];
	struct error err = ERROR_INIT;
	struct message message;

	(void)state;
	for (int length = MESSAGE_ID_BYTES; length <= MESSAGE_ID_BYTES + 1; length++) {
		(void)snprintf(text, sizeof(text),
			       "{\"jsonrpc\":\"2.0\",\"id\":\"%0*d\",\"method\":\"status\"}",
			       length, 0);
		assert_int_equal(parse(&message, text, NULL, &err),
				 length == MESSAGE_ID_BYTES ? 0 : -ERR_INVALID);
		message_deinit(&message);
	}
	message_deinit(NULL);
}

/* ---- envelopes ----------------------------------------------------------------------- */

/* However the request fails after its id was read, the id is there to answer to. */
static void id_survives_failures(void **state)
{
	static const char *const texts[] = {
		"{\"id\":7}",
		"{\"id\":7,\"method\":\"status\"}",
		"{\"jsonrpc\":\"2.0\",\"id\":7}",
		"{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":1}",
		"{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"nothing\"}",
		"{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"status\",\"paramsFd\":0}",
		"{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"status\",\"paramsFd\":16}",
		"{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"status\",\"paramsFd\":\"0\"}",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		struct error err = ERROR_INIT;
		struct message message;

		assert_true(parse(&message, texts[i], NULL, &err) < 0);
		assert_true(message_id_equal(&message.id, &id_7));
		message_deinit(&message);
	}
}

static void what_is_no_message(void **state)
{
	static const struct {
		const char *text;
		enum error_kind kind;
	} cases[] = {
		{ "", ERR_BAD_JSON },
		{ "{", ERR_BAD_JSON },
		{ "7", ERR_INVALID },
		{ "[{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"status\"}]", ERR_INVALID },
		{ "{}", ERR_INVALID },
		{ "{\"jsonrpc\":2,\"id\":7,\"method\":\"status\"}", ERR_INVALID },
		{ "{\"jsonrpc\":\"2.0\",\"id\":7.5,\"method\":\"status\"}", ERR_BAD_JSON },
		{ "{\"jsonrpc\":\"2.0\",\"id\":true,\"method\":\"status\"}", ERR_INVALID },
		{ "{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"status\"}", ERR_INVALID },
		{ "{\"jsonrpc\":\"2.0\",\"id\":null,\"result\":{}}", ERR_INVALID },
		{ "{\"jsonrpc\":\"2.0\",\"method\":\"status\"}", ERR_INVALID },
		{ "{\"jsonrpc\":\"2.0\",\"result\":{}}", ERR_INVALID },
		{ "{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{},\"params\":{}}", ERR_INVALID },
		{ "{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{},\"error\":{}}", ERR_INVALID },
		{ "{\"jsonrpc\":\"2.0\",\"id\":7,\"error\":{}}", ERR_INVALID },
		{ "{\"jsonrpc\":\"2.0\",\"id\":7,\"error\":{\"code\":1,\"message\":\"\",\"data\":{"
		  "\"kind\":\"none\"}}}",
		  ERR_INVALID },
		{ "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"status\",\"error\":{}}",
		  ERR_INVALID },
		{ "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"exited\",\"params\":{}}",
		  ERR_UNKNOWN_METHOD },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct error err = ERROR_INIT;
		struct message message;

		assert_int_equal(parse(&message, cases[i].text, NULL, &err), -(int)cases[i].kind);
		assert_int_equal(err.kind, cases[i].kind);
		message_deinit(&message);
	}
}

static void a_body_is_decoded_as_what_it_is(void **state)
{
	union method_params params;
	union method_result result;
	struct wait_result exited;
	struct error err = ERROR_INIT;
	struct message message;

	(void)state;
	assert_int_equal(
		parse(&message, "{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{}}", NULL, &err), 0);
	assert_int_equal(message.kind, MESSAGE_RESULT);
	assert_int_equal(message_decode_params(&message, &params, &err), -ERR_INVALID);
	assert_int_equal(message_decode_exited(&message, &exited, &err), -ERR_INVALID);
	assert_int_equal(message_decode_result(&message, METHOD_NONE, &result, &err), -ERR_INVALID);
	assert_int_equal(message_decode_result(&message, METHOD_SIGNAL, &result, &err), 0);
	message_deinit(&message);
	assert_int_equal(parse(&message, "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"status\"}",
			       NULL, &err),
			 0);
	assert_int_equal(message_decode_result(&message, METHOD_STATUS, &result, &err),
			 -ERR_INVALID);
	message_deinit(&message);
}

/* ---- descriptors --------------------------------------------------------------------- */

static void descriptors_travel_and_are_closed(void **state)
{
	size_t before = fd_count();
	union method_params params = { .spawn = small_spawn() };
	struct buf out = BUF_INIT(LIMIT_FRAME_BYTES);
	struct fdset fds = FDSET_INIT;
	struct error err = ERROR_INIT;
	union method_params got;
	struct message message;
	struct stat here;
	struct stat there;

	(void)state;
	params.spawn.stdio.out_fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
	params.spawn.lifeline_fd = open("/", O_PATH | O_CLOEXEC);
	assert_int_equal(message_encode_request(&out, &fds, &id_7, METHOD_SPAWN, &params, &err), 0);
	assert_int_equal(fds.count, 2);
	assert_int_equal(parse(&message, buf_text(&out), &fds, &err), 0);
	assert_int_equal(fds.count, 0);
	assert_int_equal(message_decode_params(&message, &got, &err), 0);
	assert_int_equal(got.spawn.stdio.in_fd, -1);
	assert_int_equal(fstat(params.spawn.lifeline_fd, &here), 0);
	assert_int_equal(fstat(got.spawn.lifeline_fd, &there), 0);
	assert_int_equal(here.st_ino, there.st_ino);
	message_deinit(&message);
	method_params_deinit(METHOD_SPAWN, &got);
	method_params_deinit(METHOD_SPAWN, &params);
	buf_deinit(&out);
	assert_int_equal(fd_count(), before);
}

static void descriptors_nobody_names_are_closed(void **state)
{
	static const char *const texts[] = {
		"{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"status\"}",
		"{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"spawn\",\"params\":{\"argv\":[\"a\"],"
		"\"cwd\":\"/\",\"lifeline\":1}}",
		"{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"spawn\",\"params\":{\"argv\":[\"a\"],"
		"\"cwd\":\"/\",\"lifeline\":1,\"grant\":0,\"stdio\":{\"stdin\":0}}}",
		"{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"nothing\"}",
		"nothing",
	};
	size_t before = fd_count();

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		struct fdset fds = FDSET_INIT;
		struct error err = ERROR_INIT;
		union method_params params;
		struct message message;
		int r = 0;

		assert_int_equal(fdset_add_dup(&fds, 0, NULL), 0);
		assert_int_equal(fdset_add_dup(&fds, 0, NULL), 0);
		r = parse(&message, texts[i], &fds, &err);
		if (r == 0)
			r = message_decode_params(&message, &params, &err);
		assert_true(r < 0);
		if (i < 3)
			assert_int_equal(r, -ERR_BAD_FRAME);
		message_deinit(&message);
		assert_int_equal(fd_count(), before);
	}
}

/* ---- long bodies --------------------------------------------------------------------- */

/* Params that just fit into a frame, and one byte more, which ride in a memfd. */
static void params_around_the_frame_limit(void **state)
{
	size_t before = fd_count();
	bool seen_inline = false;
	bool seen_memfd = false;

	(void)state;
	for (size_t extra = 0; extra < 2; extra++) {
		union method_params params = { .spawn = small_spawn() };
		struct buf out = BUF_INIT(LIMIT_FRAME_BYTES);
		struct fdset fds = FDSET_INIT;
		struct error err = ERROR_INIT;
		union method_params got;
		struct message message;
		char *long_value = malloc(2000000);
		size_t first = 0;

		assert_non_null(long_value);
		memset(long_value, 'x', 1999999);
		long_value[1999999] = '\0';
		assert_int_equal(env_list_add(&params.spawn.env, "A", long_value, NULL), 0);
		assert_int_equal(env_list_add(&params.spawn.env, "B", long_value, NULL), 0);
		assert_int_equal(
			message_encode_request(&out, &fds, &id_7, METHOD_SPAWN, &params, &err), 0);
		/* Fill up to the very limit: what the envelope may need, 640 bytes, is kept free. */
		first = out.size - strlen("{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"spawn\","
					  "\"params\":}");
		long_value[LIMIT_FRAME_BYTES - 640 - first - strlen(",\"C\":\"\"") + extra] = '\0';
		assert_int_equal(env_list_add(&params.spawn.env, "C", long_value, NULL), 0);
		buf_clear(&out);
		assert_int_equal(
			message_encode_request(&out, &fds, &id_7, METHOD_SPAWN, &params, &err), 0);
		seen_memfd |= fds.count == 1;
		seen_inline |= fds.count == 0;
		assert_int_equal(fds.count, extra);
		assert_true(out.size <= LIMIT_FRAME_BYTES);
		assert_int_equal(parse(&message, buf_text(&out), &fds, &err), 0);
		assert_int_equal(message_decode_params(&message, &got, &err), 0);
		assert_string_equal(env_list_get(&got.spawn.env, "C"), long_value);
		message_deinit(&message);
		method_params_deinit(METHOD_SPAWN, &got);
		method_params_deinit(METHOD_SPAWN, &params);
		buf_deinit(&out);
		free(long_value);
	}
	assert_true(seen_inline && seen_memfd);
	assert_int_equal(fd_count(), before);
}

static void long_results_ride_in_a_memfd(void **state)
{
	size_t before = fd_count();
	union method_result result;
	union method_result got;
	struct buf out = BUF_INIT(LIMIT_FRAME_BYTES);
	struct fdset fds = FDSET_INIT;
	struct error err = ERROR_INIT;
	struct message message;
	char *text = malloc(LIMIT_JSON_STRING_BYTES + 1);

	(void)state;
	assert_non_null(text);
	method_result_init(METHOD_POLICY, &result);
	result.policy.policy_digest = malloc(65);
	assert_non_null(result.policy.policy_digest);
	memset(result.policy.policy_digest, 'a', 64);
	result.policy.policy_digest[64] = '\0';
	/* Each byte is escaped to six. */
	memset(text, 1, 1u << 20);
	text[1u << 20] = '\0';
	result.policy.seatbelt = text;
	assert_int_equal(message_encode_result(&out, &fds, &id_7, METHOD_POLICY, &result, &err), 0);
	assert_int_equal(fds.count, 1);
	assert_non_null(strstr(buf_text(&out), "\"resultFd\":0"));
	assert_int_equal(parse(&message, buf_text(&out), &fds, &err), 0);
	assert_int_equal(message_decode_result(&message, METHOD_POLICY, &got, &err), 0);
	assert_string_equal(got.policy.seatbelt, text);
	message_deinit(&message);
	method_result_deinit(METHOD_POLICY, &got);

	/* Without descriptors, or with no room for one, that is an error. */
	assert_int_equal(message_encode_result(&out, NULL, &id_7, METHOD_POLICY, &result, &err),
			 -ERR_INVALID);
	for (int i = 0; i < LIMIT_FRAME_FDS; i++)
		assert_int_equal(fdset_add_dup(&fds, 0, NULL), 0);
	assert_int_equal(message_encode_result(&out, &fds, &id_7, METHOD_POLICY, &result, &err),
			 -ERR_BAD_FRAME);
	fdset_deinit(&fds);
	method_result_deinit(METHOD_POLICY, &result);
	buf_deinit(&out);
	assert_int_equal(fd_count(), before);
}

static void params_fd_excludes_params_and_is_claimed(void **state)
{
	static const char bulk[] = "{\"argv\":[\"true\"],\"cwd\":\"/\",\"lifeline\":1}";
	static const char text[] =
		"{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"spawn\",\"paramsFd\":0}";
	struct fdset fds = FDSET_INIT;
	struct error err = ERROR_INIT;
	union method_params params;
	struct message message;
	size_t before = fd_count();
	int fd = -1;

	(void)state;
	assert_int_equal(bulk_create(bulk, sizeof(bulk) - 1, &fd, NULL), 0);
	assert_int_equal(fdset_add_take(&fds, fd, NULL), 0);
	assert_int_equal(fdset_add_dup(&fds, 0, NULL), 0);
	assert_int_equal(parse(&message, text, &fds, &err), 0);
	assert_int_equal(message_decode_params(&message, &params, &err), 0);
	assert_true(params.spawn.lifeline_fd >= 0);
	method_params_deinit(METHOD_SPAWN, &params);
	message_deinit(&message);
	assert_int_equal(fd_count(), before);
}

/* ---- what encoding refuses ----------------------------------------------------------- */

static void encoding_refuses(void **state)
{
	union method_params params = { .spawn = SPAWN_PARAMS_INIT };
	union method_result result;
	struct buf out = BUF_INIT(LIMIT_FRAME_BYTES);
	struct buf small = BUF_INIT(30);
	struct wait_result exited = { .reason = EXIT_EXITED };
	struct error_reply reply = { .kind = ERR_INVALID };
	struct error err = ERROR_INIT;

	(void)state;
	method_result_init(METHOD_HELLO, &result);
	assert_int_equal(message_encode_request(&out, NULL, &id_7, METHOD_SPAWN, &params, &err),
			 -ERR_INVALID);
	assert_string_equal(err.message, "params.argv: names no command");
	assert_int_equal(message_encode_request(&out, NULL, &id_7, METHOD_NONE, &params, &err),
			 -ERR_INVALID);
	assert_int_equal(message_encode_result(&out, NULL, &id_7, METHOD_COUNT, &result, &err),
			 -ERR_INVALID);
	assert_int_equal(message_encode_result(&out, NULL, &id_7, METHOD_HELLO, &result, &err),
			 -ERR_INVALID);
	assert_string_equal(err.message, "result.server: is missing");
	assert_int_equal(message_encode_exited(&out, &exited, &err), -ERR_INVALID);
	assert_string_equal(err.message, "params.job: must be in 1..9223372036854775807");
	assert_int_equal(message_encode_error(&out, &id_7, &reply, &err), -ERR_INVALID);
	exited.job = 1;
	assert_int_equal(message_encode_exited(&small, &exited, &err), -ERR_NOMEM);
	buf_deinit(&out);
	buf_deinit(&small);
}

static void why_asks_one_thing(void **state)
{
	union method_params params = { .why = WHY_PARAMS_INIT };
	struct buf out = BUF_INIT(LIMIT_FRAME_BYTES);
	struct error err = ERROR_INIT;

	(void)state;
	assert_int_equal(message_encode_request(&out, NULL, &id_7, METHOD_WHY, &params, &err),
			 -ERR_INVALID);
	buf_clear(&out);
	params.why.path = strdup("/etc");
	params.why.job = 3;
	assert_int_equal(message_encode_request(&out, NULL, &id_7, METHOD_WHY, &params, &err), 0);
	assert_string_equal(buf_text(&out), "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"why\","
					    "\"params\":{\"job\":3,\"path\":\"/etc\"}}");
	method_params_deinit(METHOD_WHY, &params);
	buf_deinit(&out);
}

/* A context that the broker completed is released whole, and never leaves again. */
static void completed_contexts_keep_their_facts_to_themselves(void **state)
{
	static const char text[] =
		"{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"policy\",\"params\":{\"context\":{"
		"\"currentAppId\":\"a\",\"redirectedCliData\":true}}}";
	struct buf out = BUF_INIT(LIMIT_FRAME_BYTES);
	struct error err = ERROR_INIT;
	union method_params params;
	struct message message;

	(void)state;
	assert_int_equal(parse(&message, text, NULL, &err), 0);
	assert_int_equal(message_decode_params(&message, &params, &err), 0);
	message_deinit(&message);
	assert_true(params.policy.spawn.context->net);
	assert_null(params.policy.spawn.context->home_dir);
	params.policy.spawn.context->home_dir = strdup("/home/u");
	assert_int_equal(message_encode_request(&out, NULL, &id_7, METHOD_POLICY, &params, &err),
			 0);
	assert_string_equal(buf_text(&out), text);
	method_params_deinit(METHOD_POLICY, &params);
	buf_deinit(&out);
}

static void records_become_results(void **state)
{
	const struct exit_record record = { .reason = EXIT_SIGNALED,
					    .signal = 9,
					    .core_dumped = 1,
					    .wall_ms = 1,
					    .user_ms = 2,
					    .sys_ms = 3,
					    .max_rss_kib = 4 };
	struct buf out = BUF_INIT(LIMIT_FRAME_BYTES);
	struct wait_result result;
	struct wait_result got;
	struct message message;

	(void)state;
	wait_result_from_record(&result, 5, &record);
	assert_int_equal(message_encode_exited(&out, &result, NULL), 0);
	assert_int_equal(parse(&message, buf_text(&out), NULL, NULL), 0);
	assert_int_equal(message.kind, MESSAGE_EXITED);
	assert_int_equal(message_decode_exited(&message, &got, NULL), 0);
	assert_int_equal(got.job, 5);
	assert_int_equal(got.reason, EXIT_SIGNALED);
	assert_int_equal(got.signal, 9);
	assert_true(got.core_dumped);
	assert_int_equal(got.usage.max_rss_kib, 4);
	message_deinit(&message);
	wait_result_deinit(&got);
	wait_result_deinit(&result);
	buf_deinit(&out);
}

/* Text of golden size with bytes changed at random: decoded and written again, or refused. */
static void random_mutations(void **state)
{
	static const char seed_text[] =
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"spawn\",\"params\":{\"argv\":[\"a\",{"
		"\"b64\":\"/w==\"}],\"cwd\":\"/s\",\"env\":{\"A\":\"b\"},\"paths\":{\"deny\":[\"/x\",{"
		"\"path\":\"/y\",\"absent\":\"watch\"}]},\"limits\":{\"cpus\":\"1.5\",\"pids\":3},"
		"\"stdio\":{\"stdin\":0,\"stdout\":1},\"umask\":18}}";
	size_t before = fd_count();
	unsigned seed = 11;
	size_t taken = 0;

	(void)state;
	for (int round = 0; round < 20000; round++) {
		char text[sizeof(seed_text)];
		struct fdset fds = FDSET_INIT;
		struct error err = ERROR_INIT;
		union method_params params;
		struct message message;

		memcpy(text, seed_text, sizeof(text));
		for (int n = rand_r(&seed) % 2; n >= 0; n--)
			text[(size_t)rand_r(&seed) % (sizeof(text) - 1)] =
				text[(size_t)rand_r(&seed) % (sizeof(text) - 1)];
		assert_int_equal(fdset_add_dup(&fds, 0, NULL), 0);
		assert_int_equal(fdset_add_dup(&fds, 0, NULL), 0);
		if (parse(&message, text, &fds, &err) == 0 && message.kind == MESSAGE_REQUEST &&
		    message_decode_params(&message, &params, &err) == 0) {
			struct buf out = BUF_INIT(LIMIT_FRAME_BYTES);

			taken++;
			assert_int_equal(message_encode_request(&out, &fds, &message.id,
								message.method, &params, &err),
					 0);
			method_params_deinit(message.method, &params);
			buf_deinit(&out);
		}
		message_deinit(&message);
		fdset_deinit(&fds);
	}
	assert_true(taken > 100);
	assert_int_equal(fd_count(), before);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ids_of_both_kinds),
		cmocka_unit_test(longest_id),
		cmocka_unit_test(id_survives_failures),
		cmocka_unit_test(what_is_no_message),
		cmocka_unit_test(a_body_is_decoded_as_what_it_is),
		cmocka_unit_test(descriptors_travel_and_are_closed),
		cmocka_unit_test(descriptors_nobody_names_are_closed),
		cmocka_unit_test(params_around_the_frame_limit),
		cmocka_unit_test(long_results_ride_in_a_memfd),
		cmocka_unit_test(params_fd_excludes_params_and_is_claimed),
		cmocka_unit_test(encoding_refuses),
		cmocka_unit_test(why_asks_one_thing),
		cmocka_unit_test(completed_contexts_keep_their_facts_to_themselves),
		cmocka_unit_test(records_become_results),
		cmocka_unit_test(random_mutations),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
