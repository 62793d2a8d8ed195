/* SPDX-License-Identifier: Apache-2.0 */
#include "common/legacy.h"

#include "common/scope.h"
#include "tests/test.h"

static void nothing_to_do(void **state)
{
	AUTO(legacy_fields_deinit) struct legacy_fields fields = { .sandbox = true };
	AUTO(migrated_fields_deinit) struct migrated_fields migrated = { .needed = true };

	(void)state;
	assert_int_equal(legacy_migrate(&migrated, &fields, NULL), 0);
	assert_false(migrated.needed);
	fields.read_isolation = true;
	fields.has_sandbox_paths = true;
	assert_int_equal(legacy_migrate(&migrated, &fields, NULL), 0);
	assert_false(migrated.needed);
	legacy_fields_deinit(NULL);
	migrated_fields_deinit(NULL);
}

static void denies_are_joined(void **state)
{
	AUTO(legacy_fields_deinit) struct legacy_fields fields = { .read_isolation = true };
	AUTO(migrated_fields_deinit) struct migrated_fields migrated = { .needed = false };

	(void)state;
	assert_int_equal(string_list_add(&fields.readonly_paths, "~/r", NULL), 0);
	assert_int_equal(string_list_add(&fields.readonly_paths, "~/r", NULL), 0);
	assert_int_equal(string_list_add(&fields.hide_paths, "b", NULL), 0);
	assert_int_equal(string_list_add(&fields.hide_paths, "a", NULL), 0);
	assert_int_equal(string_list_add(&fields.deny_extra_paths, "b", NULL), 0);
	assert_int_equal(string_list_add(&fields.deny_extra_paths, "c", NULL), 0);
	assert_int_equal(legacy_migrate(&migrated, &fields, NULL), 0);
	assert_true(migrated.needed);
	assert_true(migrated.sandbox);
	assert_int_equal(migrated.read_only.count, 2);
	assert_int_equal(migrated.deny.count, 3);
	assert_string_equal(migrated.deny.items[0], "b");
	assert_string_equal(migrated.deny.items[1], "a");
	assert_string_equal(migrated.deny.items[2], "c");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_to_do),
		cmocka_unit_test(denies_are_joined),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
