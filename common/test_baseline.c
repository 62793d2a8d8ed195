/* SPDX-License-Identifier: Apache-2.0 */
#include "common/baseline.h"

#include <stdio.h>
#include <string.h>

#include "common/buf.h"
#include "common/scope.h"
#include "tests/test.h"

static size_t entry_count(enum platform platform)
{
	size_t count = 0;

	while (baseline_entry(platform, count))
		count++;
	return count;
}

static void platforms(void **state)
{
	enum platform platform = PLATFORM_LINUX;

	(void)state;
	assert_true(platform_parse("darwin", &platform));
	assert_int_equal(platform, PLATFORM_DARWIN);
	assert_true(platform_parse("linux", &platform));
	assert_int_equal(platform, PLATFORM_LINUX);
	assert_false(platform_parse("Linux", &platform));
	assert_string_equal(platform_name(PLATFORM_DARWIN), "darwin");
	assert_string_equal(platform_name((enum platform)9), "unknown");
	assert_null(baseline_entry((enum platform)9, 1000));
}

/* The entries one by one are in tests/vectors/baseline-*.json, which vector-runner compares. */
static void tables_have_their_size(void **state)
{
	(void)state;
	assert_int_equal(entry_count(PLATFORM_LINUX), 82);
	assert_int_equal(entry_count(PLATFORM_DARWIN), 98);
}

static void home_is_put_in_verbatim(void **state)
{
	AUTO(rule_list_deinit) struct rule_list list = RULE_LIST_INIT;

	(void)state;
	assert_int_equal(baseline_add_rules(&list, PLATFORM_LINUX, "/home//u/", NULL), 0);
	assert_int_equal(list.count, 82);
	assert_string_equal(list.rules[0].path, "/home//u//.zshenv");
	assert_int_equal(list.rules[0].source, RULE_BASELINE);
	for (size_t i = 0; i < list.count; i++)
		assert_int_equal(list.rules[i].path[0], '/');
}

static void what_does_not_fit_is_an_error(void **state)
{
	AUTO(buf_deinit) struct buf small = BUF_INIT(8);

	(void)state;
	assert_int_equal(baseline_path(baseline_entry(PLATFORM_LINUX, 0), "/home/u", &small),
			 -ERR_NOMEM);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(platforms),
		cmocka_unit_test(tables_have_their_size),
		cmocka_unit_test(home_is_put_in_verbatim),
		cmocka_unit_test(what_does_not_fit_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
