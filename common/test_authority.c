/* SPDX-License-Identifier: Apache-2.0 */
#include "common/authority.h"

#include "common/scope.h"
#include "tests/test.h"

static const struct authority_input linux_input = {
	.platform = PLATFORM_LINUX,
	.home_dir = "/home/u",
	.botmux_home = "/home/u/.botmux",
};

static void roots_in_order(void **state)
{
	struct authority_input input = linux_input;
	AUTO(string_list_deinit) struct string_list roots = { .items = NULL };

	(void)state;
	input.default_botmux_home = "/home/u/.botmux"; /* again: once is enough */
	input.lark_cli_linux_store = "/srv/lark-cli";
	input.loaded_bots_config = "/home/u/.botmux/bots.json";
	assert_int_equal(authority_roots(&roots, &input, NULL), 0);
	assert_int_equal(roots.count, 6);
	assert_string_equal(roots.items[0], "/home/u/.botmux");
	assert_string_equal(roots.items[3], "/home/u/Library/Application Support/lark-cli");
	assert_string_equal(roots.items[5], "/srv/lark-cli");
}

static void unusable_roots_vanish(void **state)
{
	struct authority_input input = linux_input;
	AUTO(string_list_deinit) struct string_list roots = { .items = NULL };

	(void)state;
	input.botmux_home = "botmux";
	input.lark_cli_linux_store = "rel";
	input.loaded_bots_config = "also/rel";
	assert_int_equal(authority_roots(&roots, &input, NULL), 0);
	assert_int_equal(roots.count, 4);
}

static void external_configuration_is_refused(void **state)
{
	struct authority_input input = linux_input;
	AUTO(string_list_deinit) struct string_list roots = { .items = NULL };
	struct error err = ERROR_INIT;

	(void)state;
	input.loaded_bots_config = "/etc/bots.json";
	assert_int_equal(authority_roots(&roots, &input, &err), -ERR_EXTERNAL_BOTS_CONFIG);
	assert_string_equal(err.message, "the loaded configuration '/etc/bots.json' lies outside "
					 "every authority root");
	assert_int_equal(roots.count, 0);
}

static void own_home_is_the_exception(void **state)
{
	AUTO(string_list_deinit) struct string_list roots = { .items = NULL };

	(void)state;
	assert_int_equal(string_list_add(&roots, "/b", NULL), 0);
	assert_true(authority_restricts(&roots, "/b/bots/x", "/b"));
	assert_true(authority_restricts(&roots, "/b/bots/x", "/b/bots/y"));
	assert_false(authority_restricts(&roots, "/b/bots/x", "/b/bots/x/w"));
	assert_false(authority_restricts(&roots, "/b/bots/x", "/c"));
	assert_true(
		authority_restricts(&roots, "/b", "/b/w")); /* the root itself is no exception */
	assert_int_equal(string_list_add(&roots, "/b/bots/x/keys", NULL), 0);
	assert_true(authority_restricts(&roots, "/b/bots/x", "/b/bots/x/keys/k"));
}

static void filter_keeps_and_records(void **state)
{
	AUTO(string_list_deinit) struct string_list roots = { .items = NULL };
	AUTO(string_list_deinit) struct string_list paths = { .items = NULL };
	AUTO(string_list_deinit) struct string_list kept = { .items = NULL };
	AUTO(string_list_deinit) struct string_list suppressed = { .items = NULL };

	(void)state;
	assert_int_equal(string_list_add(&roots, "/b", NULL), 0);
	assert_int_equal(string_list_add(&paths, "/b/x//", NULL), 0);
	assert_int_equal(string_list_add(&paths, "/c/", NULL), 0);
	assert_int_equal(string_list_add(&paths, "rel", NULL), 0);
	assert_int_equal(authority_filter(&kept, &suppressed, &paths, &roots, "/t", NULL), 0);
	assert_int_equal(kept.count, 1);
	assert_string_equal(kept.items[0], "/c/");
	assert_int_equal(suppressed.count, 1);
	assert_string_equal(suppressed.items[0], "/b/x");
}

static void working_directory(void **state)
{
	AUTO(string_list_deinit) struct string_list roots = { .items = NULL };
	struct error err = ERROR_INIT;

	(void)state;
	assert_int_equal(string_list_add(&roots, "/b", NULL), 0);
	assert_int_equal(authority_check_working_dir(&roots, "/t", "/c", &err), 0);
	assert_int_equal(authority_check_working_dir(&roots, "/t", "rel", &err), 0);
	assert_int_equal(authority_check_working_dir(&roots, "/t", "/b/", &err),
			 -ERR_WORKING_DIR_IS_AUTHORITY);
}

static void configuration_stays_denied(void **state)
{
	AUTO(policy_deinit) struct policy policy = POLICY_INIT;
	struct error err = ERROR_INIT;

	(void)state;
	assert_int_equal(
		rule_list_append(&policy.rules, "/b", ACCESS_DENY, RULE_MANDATORY, NULL, NULL), 0);
	assert_int_equal(policy_index(&policy, NULL), 0);
	assert_int_equal(authority_check_config(&policy, NULL, &err), 0);
	assert_int_equal(authority_check_config(&policy, "", &err), 0);
	assert_int_equal(authority_check_config(&policy, "rel", &err), 0);
	assert_int_equal(authority_check_config(&policy, "/b/c/bots.json", &err), 0);
	/* Denied itself, but not its directory. */
	assert_int_equal(authority_check_config(&policy, "/b", &err), -ERR_BOTS_CONFIG_IN_CARVEOUT);
	/* Covered by nothing is not denied. */
	assert_int_equal(authority_check_config(&policy, "/x/bots.json", &err),
			 -ERR_BOTS_CONFIG_IN_CARVEOUT);
	assert_int_equal(rule_list_append(&policy.rules, "/b/c", ACCESS_READ_ONLY, RULE_INTERNAL,
					  NULL, NULL),
			 0);
	assert_int_equal(policy_index(&policy, NULL), 0);
	assert_int_equal(authority_check_config(&policy, "/b/c/bots.json", &err),
			 -ERR_BOTS_CONFIG_IN_CARVEOUT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(roots_in_order),
		cmocka_unit_test(unusable_roots_vanish),
		cmocka_unit_test(external_configuration_is_refused),
		cmocka_unit_test(own_home_is_the_exception),
		cmocka_unit_test(filter_keeps_and_records),
		cmocka_unit_test(working_directory),
		cmocka_unit_test(configuration_stays_denied),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
