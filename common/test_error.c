/* SPDX-License-Identifier: Apache-2.0 */
#include "common/error.h"

#include <errno.h>
#include <string.h>

#include "tests/test.h"

static void names_go_both_ways(void **state)
{
	(void)state;
	for (int i = 1; i <= ERROR_KIND_COUNT; i++) {
		enum error_kind kind = (enum error_kind)i;

		assert_int_equal(error_from_name(error_name(kind)), kind);
		assert_true(strlen(error_meaning(kind)) > 0);
		assert_in_range(error_exit_status(kind), 125, 127);
	}
	assert_int_equal(error_from_name("no-such-kind"), ERR_NONE);
	assert_string_equal(error_name(ERR_NONE), "ok");
	assert_string_equal(error_name((enum error_kind)999), "internal");
}

static void message_reads_from_outside_in(void **state)
{
	struct error err = ERROR_INIT;

	(void)state;
	assert_int_equal(error_set(&err, ERR_SYSTEM, ENOENT, "open '%s'", "/x"), -ERR_SYSTEM);
	error_prefix(&err, "mount '%s'", "/y");
	assert_string_equal(err.message, "mount '/y': open '/x': No such file or directory");
	assert_int_equal(err.errnum, ENOENT);
	error_clear(&err);
	assert_int_equal(err.kind, ERR_NONE);
}

static void long_text_is_cut_not_overrun(void **state)
{
	struct error err = ERROR_INIT;
	char text[2 * ERROR_MESSAGE_BYTES];

	(void)state;
	memset(text, 'a', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	(void)error_set(&err, ERR_INVALID, EIO, "%s", text);
	assert_int_equal(strlen(err.message), ERROR_MESSAGE_BYTES - 1);
	error_prefix(&err, "%s", text);
	assert_int_equal(strlen(err.message), ERROR_MESSAGE_BYTES - 1);
	assert_int_equal(error_set(NULL, ERR_INVALID, 0, "x"), -ERR_INVALID);
	error_prefix(NULL, "x");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_go_both_ways),
		cmocka_unit_test(message_reads_from_outside_in),
		cmocka_unit_test(long_text_is_cut_not_overrun),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
