/* SPDX-License-Identifier: Apache-2.0 */
#include "common/childenv.h"

#include "tests/test.h"

static void families_and_their_open_names(void **state)
{
	(void)state;
	for (size_t i = 0; childenv_secret_prefixes[i]; i++)
		assert_false(childenv_is_secret(childenv_secret_prefixes[i]));
	for (size_t i = 0; childenv_open_names[i]; i++)
		assert_false(childenv_is_secret(childenv_open_names[i]));
	assert_true(childenv_is_secret("VAULT_X"));
	assert_true(childenv_is_secret("VAULT__"));
	assert_true(childenv_is_secret("APPROVAL_DIRX"));
	assert_false(childenv_is_secret("vault_x"));
	assert_false(childenv_is_secret("XVAULT_X"));
	assert_false(childenv_is_secret(""));
}

static void declared_names_pass_and_count(void **state)
{
	char token[] = "VAULT_TOKEN";
	char plain[] = "PLAIN";
	char *items[] = { token, plain };
	const struct string_list declared = { .items = items, .count = 2 };
	const struct childenv_rules rules = { .declared = &declared };
	const struct childenv_rules none = { .passphrase = NULL };

	(void)state;
	assert_int_equal(childenv_decide(&rules, "VAULT_TOKEN"), CHILDENV_PASS);
	assert_int_equal(childenv_decide(&rules, "VAULT_OTHER"), CHILDENV_STRIP);
	assert_int_equal(childenv_decide(&rules, "PLAIN"), CHILDENV_KEEP);
	assert_int_equal(childenv_decide(&none, "VAULT_TOKEN"), CHILDENV_STRIP);
}

static void passphrase_is_secret_whatever_its_name(void **state)
{
	const struct childenv_rules house = { .passphrase = "HOUSE" };
	const struct childenv_rules open = { .passphrase = "APPROVAL_HOME" };
	const struct childenv_rules empty = { .passphrase = "" };

	(void)state;
	assert_int_equal(childenv_decide(&house, "HOUSE"), CHILDENV_STRIP);
	assert_int_equal(childenv_decide(&house, "HOUSES"), CHILDENV_KEEP);
	assert_int_equal(childenv_decide(&open, "APPROVAL_HOME"), CHILDENV_STRIP);
	assert_int_equal(childenv_decide(&empty, ""), CHILDENV_KEEP);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(families_and_their_open_names),
		cmocka_unit_test(declared_names_pass_and_count),
		cmocka_unit_test(passphrase_is_secret_whatever_its_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
