/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/broker/cookie.h"

#include <string.h>

#include "tests/test.h"

static void fits_itself_alone(void **state)
{
	char one[COOKIE_TEXT];
	char two[COOKIE_TEXT];
	uint8_t hash[COOKIE_HASH_BYTES];
	uint8_t other[COOKIE_HASH_BYTES];
	struct error err = ERROR_INIT;

	(void)state;
	assert_int_equal(cookie_make(one, hash, &err), 0);
	assert_int_equal(cookie_make(two, other, &err), 0);
	assert_int_equal(strlen(one), 32);
	assert_int_equal(strspn(one, "0123456789abcdef"), 32);
	assert_string_not_equal(one, two);
	assert_true(cookie_fits(hash, one));
	assert_false(cookie_fits(hash, two));
	assert_false(cookie_fits(other, one));
	assert_false(cookie_fits(hash, ""));
	one[31] = '\0';
	assert_false(cookie_fits(hash, one));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fits_itself_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
