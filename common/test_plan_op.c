/* SPDX-License-Identifier: Apache-2.0 */
#include "common/plan_op.h"

#include <string.h>

#include "common/limits.h"
#include "common/scope.h"
#include "tests/test.h"

static void too_many_operations(void **state)
{
	AUTO(plan_deinit) struct plan plan = PLAN_INIT;
	const struct plan_op op = { .kind = PLAN_BIND, .path = (char *)"/a", .rule = -1 };
	struct error err = ERROR_INIT;

	(void)state;
	for (size_t i = 0; i < LIMIT_RULES; i++)
		assert_int_equal(plan_add(&plan, &op, &err), 0);
	assert_int_equal(plan_add(&plan, &op, &err), -ERR_POLICY_INVALID);
	assert_string_equal(err.message, "the plan has more than 100000 operations");
}

static void names_of_kinds(void **state)
{
	(void)state;
	for (int kind = 0; kind < PLAN_OP_KIND_COUNT; kind++)
		assert_string_not_equal(plan_op_kind_name((enum plan_op_kind)kind), "unknown");
	assert_string_equal(plan_op_kind_name(PLAN_MASK_TREE), "mask-tree");
	assert_string_equal(plan_op_kind_name(PLAN_OP_KIND_COUNT), "unknown");
}

static void canonical_paths(void **state)
{
	static const char *const good[] = { "/", "/a", "/a/b", "/a b/\n", "/...", "/.a" };
	static const char *const bad[] = { "", "a", "//", "/a/", "/a//b", "/./a", "/a/.", "/../a" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(good); i++)
		assert_true(plan_path_is_canonical(good[i]));
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_false(plan_path_is_canonical(bad[i]));
}

static void deinit_is_forgiving(void **state)
{
	struct plan plan = PLAN_INIT;

	(void)state;
	plan_deinit(NULL);
	plan_deinit(&plan);
	plan_deinit(&plan);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(too_many_operations),
		cmocka_unit_test(names_of_kinds),
		cmocka_unit_test(canonical_paths),
		cmocka_unit_test(deinit_is_forgiving),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
