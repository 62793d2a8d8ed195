/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/wire/spawnop.h"

#include "tests/test.h"

#include <stdlib.h>
#include <string.h>

#include "common/buf.h"
#include "common/rule.h"
#include "common/scope.h"

#define BOUND (LIMIT_ARGS_BYTES * 2)

/* As args_encode(), for literals. */
static int encode(struct buf *out, const char *cwd, const char *const argv[],
		  const char *const envp[], struct error *err)
{
	return args_encode(out, cwd, (char *const *)(uintptr_t)argv, (char *const *)(uintptr_t)envp,
			   err);
}

/* ---- args ---------------------------------------------------------------------------- */

static void args_round_trip(void **state)
{
	const char *argv[] = { "/bin/echo", "", "a b", "\xff\n", NULL };
	const char *envp[] = { "A=", "B=c=d", NULL };
	struct buf out = BUF_INIT(BOUND);
	const char *cwd = NULL;
	char **got_argv = NULL;
	char **got_envp = NULL;

	(void)state;
	/* Not at the start of the buffer and not aligned. */
	assert_int_equal(buf_add(&out, "xyz", 3), 0);
	assert_int_equal(encode(&out, "/tmp", argv, envp, NULL), 0);
	assert_int_equal(args_check(out.data + 3, out.size - 3, NULL), 0);
	assert_int_equal(args_split(out.data + 3, &cwd, &got_argv, &got_envp, NULL), 0);
	assert_string_equal(cwd, "/tmp");
	for (size_t i = 0; i < 4; i++)
		assert_string_equal(got_argv[i], argv[i]);
	assert_null(got_argv[4]);
	assert_string_equal(got_envp[1], "B=c=d");
	assert_null(got_envp[2]);
	free(got_argv);
	free(got_envp);
	buf_deinit(&out);
}

static void args_without_environment(void **state)
{
	const char *argv[] = { "x", NULL };
	const char *envp[] = { NULL };
	struct buf out = BUF_INIT(BOUND);
	const char *cwd = NULL;
	char **got_argv = NULL;
	char **got_envp = NULL;

	(void)state;
	assert_int_equal(encode(&out, "/", argv, envp, NULL), 0);
	assert_int_equal(args_check(out.data, out.size, NULL), 0);
	assert_int_equal(args_split(out.data, &cwd, &got_argv, &got_envp, NULL), 0);
	assert_null(got_envp[0]);
	free(got_argv);
	free(got_envp);
	buf_deinit(&out);
}

/* What cannot be encoded, each with one thing wrong. */
static void args_that_cannot_be(void **state)
{
	const char *good[] = { "x", NULL };
	const char *none[] = { NULL };
	const char *empty[] = { "", NULL };
	const char *nameless[] = { "=x", NULL };
	const char *bare[] = { "PATH", NULL };
	struct {
		const char *cwd;
		const char **argv;
		const char **envp;
	} cases[] = {
		{ "relative", good, none }, { "", good, none },      { "/", none, none },
		{ "/", empty, none },       { "/", good, nameless }, { "/", good, bare },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct buf out = BUF_INIT(BOUND);
		struct error err = ERROR_INIT;

		assert_int_equal(encode(&out, cases[i].cwd, cases[i].argv, cases[i].envp, &err),
				 -ERR_INVALID);
		buf_deinit(&out);
	}
}

static void args_counts_at_their_bound(void **state)
{
	const char **argv = calloc(LIMIT_ARGS_COUNT + 2, sizeof(*argv));
	const char *envp[] = { NULL };
	struct buf out = BUF_INIT(BOUND);

	(void)state;
	assert_non_null(argv);
	for (size_t i = 0; i < LIMIT_ARGS_COUNT; i++)
		argv[i] = "x";
	assert_int_equal(encode(&out, "/", argv, envp, NULL), 0);
	assert_int_equal(args_check(out.data, out.size, NULL), 0);
	buf_clear(&out);
	argv[LIMIT_ARGS_COUNT] = "x";
	assert_int_equal(encode(&out, "/", argv, envp, NULL), -ERR_INVALID);
	buf_deinit(&out);
	free((void *)argv);
}

static void args_bytes_at_their_bound(void **state)
{
	char *text = malloc(LIMIT_ARGS_BYTES + 2);
	const char *argv[] = { text, NULL };
	const char *envp[] = { NULL };
	char cwd[LIMIT_PATH_BYTES + 2];
	struct buf out = BUF_INIT(BOUND);
	struct buf small = BUF_INIT(64);
	struct error err = ERROR_INIT;

	(void)state;
	assert_non_null(text);
	memset(cwd, '/', sizeof(cwd));
	cwd[LIMIT_PATH_BYTES] = '\0';
	memset(text, 'x', LIMIT_ARGS_BYTES + 1);
	text[LIMIT_ARGS_BYTES - 1] = '\0';
	assert_int_equal(encode(&out, cwd, argv, envp, &err), 0);
	buf_clear(&out);
	text[LIMIT_ARGS_BYTES - 1] = 'x';
	text[LIMIT_ARGS_BYTES] = '\0';
	assert_int_equal(encode(&out, cwd, argv, envp, &err), -ERR_INVALID);
	assert_int_equal(encode(&small, "/", argv, envp, &err), -ERR_NOMEM);
	text[0] = '\0';
	argv[0] = "x";
	cwd[LIMIT_PATH_BYTES] = '/';
	cwd[LIMIT_PATH_BYTES + 1] = '\0';
	buf_clear(&out);
	assert_int_equal(encode(&out, cwd, argv, envp, &err), -ERR_INVALID);
	buf_deinit(&out);
	buf_deinit(&small);
	free(text);
}

static void args_each_byte_changed_or_cut(void **state)
{
	const char *argv[] = { "cmd", "arg", NULL };
	const char *envp[] = { "A=b", NULL };
	struct buf out = BUF_INIT(BOUND);
	char *copy = NULL;

	(void)state;
	assert_int_equal(encode(&out, "/w", argv, envp, NULL), 0);
	for (size_t size = 0; size < out.size; size++) {
		/* Exactly sized, so that a read past the end is seen. */
		copy = malloc(size ? size : 1);
		assert_non_null(copy);
		memcpy(copy, out.data, size);
		assert_int_equal(args_check(copy, size, NULL), -ERR_BAD_FRAME);
		if (size >= sizeof(struct args_header)) {
			((struct args_header *)(void *)copy)->size = (uint32_t)size;
			assert_int_equal(args_check(copy, size, NULL), -ERR_BAD_FRAME);
		}
		free(copy);
	}
	for (size_t at = 0; at < out.size; at++) {
		for (int bit = 0; bit < 8; bit++) {
			copy = malloc(out.size);
			assert_non_null(copy);
			memcpy(copy, out.data, out.size);
			copy[at] = (char)(copy[at] ^ (1 << bit));
			if (at < sizeof(struct args_header))
				assert_int_equal(args_check(copy, out.size, NULL), -ERR_BAD_FRAME);
			else
				(void)args_check(copy, out.size, NULL);
			free(copy);
		}
	}
	buf_deinit(&out);
}

/* ---- setup --------------------------------------------------------------------------- */

struct setup_input {
	struct setup_header header;
	const char *paths;
	size_t paths_size;
};

static int check_setup(struct setup_input input)
{
	struct buf out = BUF_INIT(1 << 20);
	int r = 0;

	input.header.size += (uint32_t)(sizeof(input.header) + input.paths_size);
	assert_int_equal(buf_add(&out, &input.header, sizeof(input.header)), 0);
	assert_int_equal(buf_add(&out, input.paths, input.paths_size), 0);
	r = setup_check(out.data, out.size, NULL);
	buf_deinit(&out);
	return r;
}

#define PATHS(text) .paths = (text), .paths_size = sizeof(text) - 1
#define HEADER .magic = SETUP_MAGIC, .engine = ENGINE_BWRAP

static void setup_forms(void **state)
{
	static char longest[1 + LIMIT_PATH_BYTES + 2];

	(void)state;
	assert_int_equal(check_setup((struct setup_input){ .header = { HEADER }, PATHS("") }), 0);
	assert_int_equal(check_setup((struct setup_input){
				 .header = { HEADER, .path_count = 2,
					     .flags = SETUP_NET_HOST | SETUP_DETACHED },
				 PATHS("\1/a\0\3/b\0") }),
			 0);
	assert_int_equal(check_setup((struct setup_input){ .header = { HEADER, .flags = SETUP_PROXY,
								       .forward_count = 2,
								       .forwards = { 80, 65535 } },
							   PATHS("") }),
			 0);
	memset(longest, '/', sizeof(longest));
	longest[0] = 1;
	longest[1 + LIMIT_PATH_BYTES] = '\0';
	assert_int_equal(check_setup((struct setup_input){ .header = { HEADER, .path_count = 1 },
							   .paths = longest,
							   .paths_size = LIMIT_PATH_BYTES + 2 }),
			 0);
	longest[1 + LIMIT_PATH_BYTES] = '/';
	longest[2 + LIMIT_PATH_BYTES] = '\0';
	assert_int_equal(check_setup((struct setup_input){ .header = { HEADER, .path_count = 1 },
							   .paths = longest,
							   .paths_size = LIMIT_PATH_BYTES + 3 }),
			 -ERR_BAD_FRAME);
}

static void setup_that_cannot_be(void **state)
{
	const struct setup_input cases[] = {
		{ .header = { .magic = ARGS_MAGIC, .engine = ENGINE_BWRAP }, PATHS("") },
		{ .header = { HEADER, .size = 1 }, PATHS("") },
		{ .header = { HEADER, .flags = 8 }, PATHS("") },
		{ .header = { HEADER, .flags = SETUP_PROXY | SETUP_NET_HOST }, PATHS("") },
		{ .header = { .magic = SETUP_MAGIC }, PATHS("") },
		{ .header = { .magic = SETUP_MAGIC, .engine = ENGINE_SEATBELT + 1 }, PATHS("") },
		{ .header = { HEADER, .forward_count = 1 }, PATHS("") },
		{ .header = { HEADER, .forwards = { 80 } }, PATHS("") },
		{ .header = { HEADER, .forward_count = 2, .forwards = { 80, 80 } }, PATHS("") },
		{ .header = { HEADER, .forward_count = 2, .forwards = { 81, 80 } }, PATHS("") },
		{ .header = { HEADER, .forward_count = 1, .forwards = { 80 },
			      .flags = SETUP_NET_HOST },
		  PATHS("") },
		{ .header = { HEADER, .forward_count = LIMIT_FORWARDS + 1 }, PATHS("") },
		{ .header = { HEADER, .path_count = LIMIT_RULES + 1 }, PATHS("\1/a\0") },
		{ .header = { HEADER, .path_count = 1 }, PATHS("") },
		{ .header = { HEADER, .path_count = 1 }, PATHS("\1/a") },
		{ .header = { HEADER, .path_count = 2 }, PATHS("\1/a\0\1") },
		{ .header = { HEADER, .path_count = 1 }, PATHS("\0/a\0") },
		{ .header = { HEADER, .path_count = 1 }, PATHS("\4/a\0") },
		{ .header = { HEADER, .path_count = 1 }, PATHS("\1a\0") },
		{ .header = { HEADER, .path_count = 1 }, PATHS("\1\0") },
		{ .header = { HEADER, .path_count = 1 }, PATHS("\1/a\0x") },
	};
	char byte = 0;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_int_equal(check_setup(cases[i]), -ERR_BAD_FRAME);
	assert_int_equal(setup_check(&byte, 0, NULL), -ERR_BAD_FRAME);
	assert_int_equal(setup_check(&byte, 1, NULL), -ERR_BAD_FRAME);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(args_round_trip),
		cmocka_unit_test(args_without_environment),
		cmocka_unit_test(args_that_cannot_be),
		cmocka_unit_test(args_counts_at_their_bound),
		cmocka_unit_test(args_bytes_at_their_bound),
		cmocka_unit_test(args_each_byte_changed_or_cut),
		cmocka_unit_test(setup_forms),
		cmocka_unit_test(setup_that_cannot_be),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
