/* SPDX-License-Identifier: Apache-2.0 */
#include "common/pathpattern.h"

#include "common/scope.h"
#include "tests/test.h"

static void paths_in_disguise(void **state)
{
	static const struct {
		const char *expression;
		enum path_pattern_kind kind;
		const char *text;
	} rows[] = {
		{ "^/a/b$", PATH_PATTERN_LITERAL, "/a/b" },
		{ "^/a/\\.b\\$$", PATH_PATTERN_LITERAL, "/a/.b$" },
		{ "^\\/a\\-b$", PATH_PATTERN_LITERAL, "/a-b" },
		{ "^/a(/|$)", PATH_PATTERN_SUBPATH, "/a" },
		{ "^/a($|/)", PATH_PATTERN_SUBPATH, "/a" },
		{ "^/a/\\.claude\\.json\\.tmp\\.", PATH_PATTERN_PREFIX, "/a/.claude.json.tmp." },
		{ "^/a.*", PATH_PATTERN_PREFIX, "/a" },
		{ "^/", PATH_PATTERN_PREFIX, "/" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		AUTO(path_pattern_deinit) struct path_pattern pattern = { .text = NULL };

		assert_int_equal(path_pattern_parse(&pattern, rows[i].expression, NULL), 0);
		assert_int_equal(pattern.kind, rows[i].kind);
		assert_string_equal(pattern.text, rows[i].text);
	}
	path_pattern_deinit(NULL);
}

static void anything_else_is_refused(void **state)
{
	static const char *const refused[] = {
		"",        "/a",      "^a",      "^",         "^/a.b", "^/a[0-9]", "^/a+$",
		"^/a\\d$", "^/(a|b)", "^/a/?$",  "^/a{2}$",   "^/a$b", "^/a.*$",   "^/a\\",
		"^/a|^/b", "^/a)",    "^/a\\n$", "^/a(/|$)x", "^^/a$",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(refused); i++) {
		AUTO(path_pattern_deinit) struct path_pattern pattern = { .text = NULL };
		struct error err = ERROR_INIT;

		if (path_pattern_parse(&pattern, refused[i], &err) != -ERR_POLICY_INVALID)
			fail_msg("'%s' is taken", refused[i]);
		assert_null(pattern.text);
	}
}

static void matching(void **state)
{
	const struct path_pattern literal = { PATH_PATTERN_LITERAL, (char *)"/a" };
	const struct path_pattern subpath = { PATH_PATTERN_SUBPATH, (char *)"/a" };
	const struct path_pattern prefix = { PATH_PATTERN_PREFIX, (char *)"/a" };

	(void)state;
	assert_true(path_pattern_matches(&literal, "/a"));
	assert_false(path_pattern_matches(&literal, "/a/b"));
	assert_true(path_pattern_matches(&subpath, "/a/b"));
	assert_false(path_pattern_matches(&subpath, "/ab"));
	assert_true(path_pattern_matches(&prefix, "/ab"));
	assert_false(path_pattern_matches(&prefix, "/b"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(paths_in_disguise),
		cmocka_unit_test(anything_else_is_refused),
		cmocka_unit_test(matching),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
