/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/json/envlist.h"

#include "tests/test.h"

#include <stdlib.h>

static void adding_and_looking(void **state)
{
	struct env_list list = { NULL };

	(void)state;
	for (int i = 0; i < 100; i++)
		assert_int_equal(env_list_add(&list, "A", "x", NULL), 0);
	assert_int_equal(env_list_add(&list, "A", "last", NULL), 0);
	assert_int_equal(env_list_add_pair(&list, "B=c=d", NULL), 0);
	assert_int_equal(env_list_add_pair(&list, "\xff=", NULL), 0);
	assert_int_equal(list.count, 103);
	assert_string_equal(env_list_get(&list, "A"), "last");
	assert_string_equal(env_list_get(&list, "B"), "c=d");
	assert_string_equal(env_list_get(&list, "\xff"), "");
	assert_null(env_list_get(&list, "C"));
	env_list_deinit(&list);
	env_list_deinit(&list);
	env_list_deinit(NULL);
}

static void names_that_cannot_be(void **state)
{
	struct env_list list = { NULL };
	struct error err = ERROR_INIT;

	(void)state;
	assert_int_equal(env_list_add(&list, "", "x", &err), -ERR_INVALID);
	assert_int_equal(env_list_add(&list, "a=b", "x", &err), -ERR_INVALID);
	assert_int_equal(env_list_add_pair(&list, "a", &err), -ERR_INVALID);
	assert_int_equal(env_list_add_pair(&list, "=a", &err), -ERR_INVALID);
	assert_int_equal(list.count, 0);
	env_list_deinit(&list);
}

static void sorted_keeps_the_last_of_each_name(void **state)
{
	static const char *const pairs[] = { "B=1", "A=1", "C=1", "A=2", "B=2", "A=3" };
	const struct env_var **sorted = NULL;
	const char *repeated = NULL;
	struct env_list list = { NULL };
	size_t count = 99;

	(void)state;
	sorted = env_list_sorted(&list, &count, NULL);
	assert_non_null(sorted);
	assert_int_equal(count, 0);
	free((void *)sorted);
	for (size_t i = 0; i < 6; i++)
		assert_int_equal(env_list_add_pair(&list, pairs[i], NULL), 0);
	sorted = env_list_sorted(&list, &count, &repeated);
	assert_int_equal(count, 3);
	assert_string_equal(sorted[0]->name, "A");
	assert_string_equal(sorted[0]->value, "3");
	assert_string_equal(sorted[1]->value, "2");
	assert_string_equal(sorted[2]->name, "C");
	assert_string_equal(repeated, "B");
	free((void *)sorted);
	env_list_deinit(&list);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(adding_and_looking),
		cmocka_unit_test(names_that_cannot_be),
		cmocka_unit_test(sorted_keeps_the_last_of_each_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
