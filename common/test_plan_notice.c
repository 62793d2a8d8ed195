/* SPDX-License-Identifier: Apache-2.0 */
#include "common/plan_notice.h"

#include <string.h>

#include "common/buf.h"
#include "common/scope.h"
#include "tests/plan_text.h"
#include "tests/test.h"

/* R28: for the guard, what is to be told or taken away; only where a job can make it. */
static void R28_absent_names_are_under_notice(void **state)
{
	AUTO(policy_deinit)
	struct policy policy =
		policy_of("rw:/c@/priv/c rw:/p deny:/p/d ro:/p/r rw:/p/.git/hooks ro:/p/.git/x");
	AUTO(plan_deinit) struct plan plan = PLAN_INIT;
	AUTO(plan_deinit) struct plan plain = PLAN_INIT;
	AUTO(buf_deinit) struct buf text = BUF_INIT(1 << 20);
	struct plan_options options = { .harden = PLAN_HARDEN_ALL, .chdir = "/p" };
	static const char *const told[] = { "/p/.envrc", "/p/r/.envrc", "/p/d/.envrc", "/c/.envrc",
					    "/q/.envrc" };

	(void)state;
	assert_int_equal(policy_index(&policy, NULL), 0);
	for (size_t i = 0; i < ARRAY_SIZE(told); i++)
		assert_int_equal(string_list_add(&policy.notice, told[i], NULL), 0);
	assert_int_equal(string_list_add(&policy.quarantine, "/p/.git/commondir", NULL), 0);
	assert_int_equal(string_list_add(&policy.quarantine, "/p/.git/hooks", NULL), 0);
	assert_int_equal(string_list_add(&policy.quarantine_entries, "/p/.git/modules", NULL), 0);
	assert_int_equal(plan_build(&plan, &policy, &options, NULL), 0);
	plan_text(&plan, true, &text);
	assert_non_null(strstr(buf_text(&text), "pin /p/.git\nnotice /p/.envrc\n"
						"notice /p/.git/commondir quarantine\n"
						"notice /p/.git/modules quarantine entries\n"));
	assert_null(strstr(buf_text(&text), "notice /p/r"));

	options.harden = 0;
	assert_int_equal(plan_build(&plain, &policy, &options, NULL), 0);
	for (size_t i = 0; i < plain.count; i++)
		assert_int_not_equal(plain.ops[i].kind, PLAN_NOTICE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(R28_absent_names_are_under_notice),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
