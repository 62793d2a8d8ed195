/* SPDX-License-Identifier: Apache-2.0 */
#include "client/hint.h"

#include "tests/test.h"

#include <errno.h>
#include <string.h>

static void every_kind_has_a_next_step(void **state)
{
	(void)state;
	for (int kind = 1; kind <= ERROR_KIND_COUNT; kind++) {
		const char *hint = hint_for((enum error_kind)kind);

		if (hint[0] == '\0')
			fail_msg("no hint for %s", error_name((enum error_kind)kind));
		assert_int_not_equal(hint[strlen(hint) - 1], '.');
	}
	assert_string_equal(hint_for(ERR_NONE), "");
	assert_string_equal(hint_for((enum error_kind)(ERROR_KIND_COUNT + 1)), "");
}

static void better_hints_win(void **state)
{
	const struct error err = { .kind = ERR_JOB_UNKNOWN, .errnum = 3, .message = "job 7" };
	struct fsbox_error out;

	(void)state;
	assert_int_equal(hint_fill(&out, &err, NULL), -1);
	assert_string_equal(out.kind, "job-unknown");
	assert_string_equal(out.message, "job 7");
	assert_int_equal(out.errnum, 3);
	assert_string_equal(out.hint, hint_for(ERR_JOB_UNKNOWN));
	assert_int_equal(hint_fill(&out, &err, "ask Fred"), -1);
	assert_string_equal(out.hint, "ask Fred");
	assert_int_equal(hint_fill(NULL, &err, NULL), -1);
	(void)hint_fill(&out, &(struct error){ .kind = ERR_SYSTEM, .errnum = EMFILE }, NULL);
	assert_non_null(strstr(out.hint, "ulimit -n"));
}

static void every_kind_fits(void **state)
{
	struct fsbox_error out;

	(void)state;
	for (int kind = 1; kind <= ERROR_KIND_COUNT; kind++) {
		const struct error err = { .kind = (enum error_kind)kind };

		(void)hint_fill(&out, &err, NULL);
		assert_string_equal(out.kind, error_name(err.kind));
		assert_string_equal(out.hint, hint_for(err.kind));
		assert_int_equal(fsbox_error_exit_status(out.kind), error_exit_status(err.kind));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_kind_has_a_next_step),
		cmocka_unit_test(better_hints_win),
		cmocka_unit_test(every_kind_fits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
