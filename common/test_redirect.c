/* SPDX-License-Identifier: Apache-2.0 */
#include "common/redirect.h"

#include "common/scope.h"
#include "tests/test.h"

static void fill(struct string_list *list, const char *const *texts)
{
	for (; *texts; texts++)
		assert_int_equal(string_list_add(list, *texts, NULL), 0);
}

static void outside_survives_as_written(void **state)
{
	AUTO(string_list_deinit) struct string_list auth = { .items = NULL };
	AUTO(string_list_deinit) struct string_list roots = { .items = NULL };
	AUTO(string_list_deinit) struct string_list kept = { .items = NULL };
	AUTO(string_list_deinit) struct string_list all = { .items = NULL };

	(void)state;
	fill(&auth, (const char *[]){ "/h/.codex/auth.json", "/h/.codexx/", "rel", "/h/.codex//",
				      "/h/.local", "/h/.local", NULL });
	fill(&roots, (const char *[]){ "/h/.codex//", "not-a-path", NULL });
	assert_int_equal(redirect_auth_paths(&kept, &auth, true, &roots, NULL), 0);
	assert_int_equal(kept.count, 3);
	assert_string_equal(kept.items[0], "/h/.codexx/");
	assert_string_equal(kept.items[1], "/h/.local");
	assert_string_equal(kept.items[2], "/h/.local");

	assert_int_equal(redirect_auth_paths(&all, &auth, false, &roots, NULL), 0);
	assert_int_equal(all.count, auth.count);
	assert_string_equal(all.items[2], "rel");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(outside_survives_as_written),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
