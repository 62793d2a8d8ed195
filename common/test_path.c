/* SPDX-License-Identifier: Apache-2.0 */
#include "common/path.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/limits.h"
#include "common/scope.h"
#include "tests/test.h"

/* Input and what comes out; NULL for no result. */
struct pair {
	const char *in;
	const char *out;
};

static void check_text(char *got, const char *want)
{
	if (want) {
		assert_non_null(got);
		assert_string_equal(got, want);
	} else {
		assert_null(got);
	}
	free(got);
}

static void normalise(void **state)
{
	static const struct pair pairs[] = {
		{ "", NULL },           { "a", NULL },
		{ "a/", NULL },         { "/", "/" },
		{ "////", "/" },        { "/a", "/a" },
		{ "/a///", "/a" },      { "//a//b/", "//a//b" },
		{ "/a/./b", "/a/./b" }, { "/..", NULL },
		{ "/../", NULL },       { "/a/..", NULL },
		{ "/a/../b", NULL },    { "/a/..b", "/a/..b" },
		{ "/a/...", "/a/..." }, { "/..a/b..", "/..a/b.." },
		{ "/a\n", "/a\n" },     { "/a\\..", "/a\\.." },
		{ "..", NULL },         { "/a/..//", NULL },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(pairs); i++) {
		errno = EIO;
		check_text(path_normalize(pairs[i].in), pairs[i].out);
		assert_int_equal(errno, 0);
	}
}

static void normal_length(void **state)
{
	size_t size = 77;

	(void)state;
	assert_false(path_normal_length("a", &size));
	assert_int_equal(size, 77);
	assert_true(path_normal_length("/ab//", &size));
	assert_int_equal(size, 3);
	assert_true(path_normal_length("//", &size));
	assert_int_equal(size, 1);
}

static void depth(void **state)
{
	(void)state;
	assert_int_equal(path_depth("/"), 0);
	assert_int_equal(path_depth("/a"), 1);
	assert_int_equal(path_depth("/a/b"), 2);
	assert_int_equal(path_depth("/a//b"), 3);
	assert_int_equal(path_depth_sized("/a/b", 2), 1);
	assert_int_equal(path_depth_sized("/a/b", 1), 0);
}

static void covers(void **state)
{
	(void)state;
	assert_true(path_covers("/", "/"));
	assert_true(path_covers("/", "/a"));
	assert_false(path_covers("/", "a"));
	assert_false(path_covers("/", ""));
	assert_true(path_covers("", ""));
	assert_true(path_covers("", "/a"));
	assert_false(path_covers("", "a"));
	assert_true(path_covers("/a", "/a"));
	assert_true(path_covers("/a", "/a/b"));
	assert_false(path_covers("/a", "/ab"));
	assert_false(path_covers("/a/b", "/a"));
	assert_false(path_covers("/a/", "/a/b"));
	assert_true(path_covers("/a/", "/a//b"));
}

static void clean(void **state)
{
	static const struct pair pairs[] = {
		{ "", NULL },
		{ "a", NULL },
		{ "/", "/" },
		{ "//", "/" },
		{ "/..", "/" },
		{ "/../..", "/" },
		{ "/a/..", "/" },
		{ "/a/../..", "/" },
		{ "/a/../b", "/b" },
		{ "//a/./b//", "/a/b" },
		{ "/a/b/../../c/", "/c" },
		{ "/..a/...", "/..a/..." },
		{ "/a\n", NULL },
		{ "/a\x7f", NULL },
		{ "/a/\x1f/..", NULL },
		{ "/\xc3\xa9", "/\xc3\xa9" },
		{ "/ ", "/ " },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(pairs); i++) {
		errno = 0;
		check_text(path_clean(pairs[i].in), pairs[i].out);
		assert_int_equal(errno, pairs[i].out ? 0 : EINVAL);
	}
}

static void collapse(void **state)
{
	static const struct pair pairs[] = {
		{ "", NULL },         { "a", NULL },          { "/", "/" },
		{ "//.", "/" },       { "/a//b/./", "/a/b" }, { "/a/../b", "/a/../b" },
		{ "/n\nl", "/n\nl" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(pairs); i++)
		check_text(path_collapse(pairs[i].in), pairs[i].out);
}

static void join(void **state)
{
	(void)state;
	check_text(path_join("/", "a"), "/a");
	check_text(path_join("/a", "b/c"), "/a/b/c");
	check_text(path_join("/a//", "//b"), "/a/b");
	check_text(path_join("/a/", ""), "/a");
	check_text(path_join("/", "/"), "/");
}

static void parent_and_leaf(void **state)
{
	static const struct pair pairs[] = {
		{ "/", NULL }, { "/a", "/" }, { "/a/b", "/a" }, { "/a//b", "/a/" }, { "//a", "/" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(pairs); i++)
		check_text(path_parent(pairs[i].in), pairs[i].out);
	assert_int_equal(path_parent_length("/a/b/c", 4), 2);
	assert_string_equal(path_leaf("/"), "");
	assert_string_equal(path_leaf("/a/bc"), "bc");
	assert_string_equal(path_leaf("bc"), "bc");
}

static void relative(void **state)
{
	(void)state;
	assert_true(path_is_relative("a"));
	assert_true(path_is_relative("a/..b/.c"));
	assert_false(path_is_relative(""));
	assert_false(path_is_relative("/a"));
	assert_false(path_is_relative("a/"));
	assert_false(path_is_relative("a//b"));
	assert_false(path_is_relative("./a"));
	assert_false(path_is_relative("a/.."));
}

static void refusal(void **state)
{
	char longest[LIMIT_PATH_BYTES + 2];

	(void)state;
	assert_null(path_refusal("/"));
	assert_null(path_refusal("//"));
	assert_null(path_refusal("/a/b//"));
	assert_null(path_refusal("/a\n"));
	assert_string_equal(path_refusal(""), "is empty");
	assert_string_equal(path_refusal("~/a"), "is relative");
	assert_string_equal(path_refusal("/a/../b"), "has a '..' segment");
	assert_string_equal(path_refusal("//a"), "has an empty segment");
	assert_string_equal(path_refusal("/a//b"), "has an empty segment");
	assert_string_equal(path_refusal("/a/./b"), "has a '.' segment");
	assert_string_equal(path_refusal("/a/."), "has a '.' segment");

	memset(longest, 'x', sizeof(longest));
	longest[0] = '/';
	longest[LIMIT_PATH_BYTES] = '\0';
	assert_null(path_refusal(longest));
	longest[LIMIT_PATH_BYTES] = 'x';
	longest[LIMIT_PATH_BYTES + 1] = '\0';
	assert_string_equal(path_refusal(longest), "is longer than 4095 bytes");
}

static void lexical(void **state)
{
	static const struct pair pairs[] = {
		{ "/a/./b/../c//", "/a/c" },
		{ "/..", "/" },
		{ "/", "/" },
		{ "", "." },
		{ ".", "." },
		{ "a/..", "." },
		{ "a/../..", ".." },
		{ "../a/../b", "../b" },
		{ "../../x", "../../x" },
		{ "a//b/", "a/b" },
		{ "/a\n/..\n", "/a\n/..\n" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(pairs); i++)
		check_text(path_lexical(pairs[i].in), pairs[i].out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(normalise),       cmocka_unit_test(lexical),
		cmocka_unit_test(normal_length),   cmocka_unit_test(depth),
		cmocka_unit_test(covers),          cmocka_unit_test(clean),
		cmocka_unit_test(collapse),        cmocka_unit_test(join),
		cmocka_unit_test(parent_and_leaf), cmocka_unit_test(relative),
		cmocka_unit_test(refusal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
