/* SPDX-License-Identifier: Apache-2.0 */
#include "common/macpath.h"

#include <stdlib.h>
#include <string.h>

#include "common/scope.h"
#include "tests/test.h"

static void dead_paths_are_refused(void **state)
{
	static const struct {
		const char *path;
		const char *message;
	} rows[] = {
		{ "/a\nb", "'/a?b' has a control character" },
		{ "/a\x7f", "'/a?' has a control character" },
		{ "/a//b", "'/a//b' has an empty segment" },
		{ "/a/./b", "'/a/./b' has a '.' segment" },
		{ "/a/..", "'/a/..' has a '..' segment" },
		{ "a", "'a' is relative" },
		{ "/\xff", "'/\xff' is not UTF-8, as every name on macOS is" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct error err = ERROR_INIT;

		assert_int_equal(macpath_check(rows[i].path, &err), -ERR_POLICY_INVALID);
		assert_string_equal(err.message, rows[i].message);
	}
	assert_int_equal(macpath_check("/", NULL), 0);
	assert_int_equal(macpath_check("/a b/c\"\\", NULL), 0);
}

static void utf8_is_strict(void **state)
{
	static const char *const good[] = { "/\xc2\x80",        "/\xdf\xbf",
					    "/\xe0\xa0\x80",    "/\xed\x9f\xbf",
					    "/\xef\xbf\xbf",    "/\xf0\x90\x80\x80",
					    "/\xf4\x8f\xbf\xbf" };
	static const char *const bad[] = { "/\x80",
					   "/\xc1\xbf",
					   "/\xc2",
					   "/\xe0\x9f\xbf",
					   "/\xe1\x80",
					   "/\xed\xa0\x80",
					   "/\xf0\x8f\xbf\xbf",
					   "/\xf4\x90\x80\x80",
					   "/\xf5\x80\x80\x80",
					   "/\xf1\x80\x80",
					   "/\xc2/" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(good); i++)
		assert_int_equal(macpath_check(good[i], NULL), 0);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(macpath_check(bad[i], NULL), -ERR_POLICY_INVALID);
}

static void prefixes_end_anywhere(void **state)
{
	(void)state;
	assert_int_equal(macpath_check_prefix("/a/.", NULL), 0);
	assert_int_equal(macpath_check_prefix("/", NULL), 0);
	assert_int_equal(macpath_check_prefix("/a//b", NULL), -ERR_POLICY_INVALID);
	assert_int_equal(macpath_check_prefix("/a/\n", NULL), -ERR_POLICY_INVALID);
}

static void physical_spelling(void **state)
{
	static const char *const pairs[][2] = {
		{ "/etc/", "/private/etc" }, { "/tmp/a//", "/private/tmp/a" },
		{ "/var", "/private/var" },  { "/private/etc", "/private/etc" },
		{ "/etcx", "/etcx" },        { "/", "/" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(pairs); i++) {
		AUTO(auto_free) char *path = macpath_physical(pairs[i][0]);

		assert_string_equal(path, pairs[i][1]);
	}
	assert_true(macpath_is_linked("/tmp/x"));
	assert_false(macpath_is_linked("/private/tmp/x"));
	assert_true(macpath_on_data_volume("/System/Volumes/Data/Users"));
	assert_false(macpath_on_data_volume("/System/Volumes/Database"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(dead_paths_are_refused),
		cmocka_unit_test(utf8_is_strict),
		cmocka_unit_test(prefixes_end_anywhere),
		cmocka_unit_test(physical_spelling),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
