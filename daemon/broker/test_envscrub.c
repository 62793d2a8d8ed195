/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/broker/envscrub.h"

#include <stdio.h>
#include <string.h>

#include "tests/test.h"

struct result {
	struct string_list env;
	struct string_list withheld;
};

static const char *get(const struct result *result, const char *name)
{
	size_t length = strlen(name);
	const char *found = NULL;

	for (size_t i = 0; i < result->env.count; i++) {
		const char *text = result->env.items[i];

		if (strncmp(text, name, length) != 0 || text[length] != '=')
			continue;
		assert_null(found); /* one for each name */
		found = text + length + 1;
	}
	return found;
}

static void deinit(struct result *result)
{
	string_list_deinit(&result->env);
	string_list_deinit(&result->withheld);
}

static void test_pins(void **state)
{
	struct env_list given = { 0 };
	struct envscrub_input input = { .given = &given,
					.home = "/home/u",
					.user = "u",
					.shell = "/bin/bash",
					.cwd = "/home/u/p" };
	struct result result = { 0 };

	(void)state;
	assert_int_equal(env_list_add(&given, "HOME", "/root", NULL), 0);
	assert_int_equal(env_list_add(&given, "PWD", "/elsewhere", NULL), 0);
	assert_int_equal(env_list_add(&given, "TMPDIR", "/var/folders/x", NULL), 0);
	assert_int_equal(env_list_add(&given, "USER", "root", NULL), 0);
	assert_int_equal(env_list_add(&given, "PATH", "/opt/bin:/bin", NULL), 0);
	assert_int_equal(env_list_add(&given, "LANG", "a=b \n\xff", NULL), 0);
	assert_int_equal(envscrub(&input, &result.env, &result.withheld, NULL), 0);
	assert_string_equal(get(&result, "HOME"), "/home/u");
	assert_string_equal(get(&result, "PWD"), "/home/u/p");
	assert_string_equal(get(&result, "TMPDIR"), "/tmp");
	assert_string_equal(get(&result, "USER"), "u");
	assert_string_equal(get(&result, "LOGNAME"), "u");
	assert_string_equal(get(&result, "SHELL"), "/bin/bash");
	assert_string_equal(get(&result, "PATH"), "/opt/bin:/bin");
	assert_string_equal(get(&result, "LANG"), "a=b \n\xff");
	assert_int_equal(result.withheld.count, 0);
	deinit(&result);
	env_list_deinit(&given);
}

static void test_path_is_never_missing(void **state)
{
	struct envscrub_input input = { .home = "/h" };
	struct result result = { 0 };

	(void)state;
	assert_int_equal(envscrub(&input, &result.env, &result.withheld, NULL), 0);
	assert_non_null(get(&result, "PATH"));
	deinit(&result);
}

/* Credentials do not come along; their names are told, their values nowhere. */
static void test_withheld_R15(void **state)
{
	static const char *const secret[] = {
		"AWS_SECRET_ACCESS_KEY",
		"AWS_ACCESS_KEY_ID",
		"AWS_SESSION_TOKEN",
		"GITHUB_TOKEN",
		"GH_TOKEN",
		"OPENAI_API_KEY",
		"ANTHROPIC_API_KEY",
		"NPM_TOKEN",
		"SSH_AUTH_SOCK",
		"PGPASSWORD",
		"VAULT_ADDR",
		"APPROVAL_PASSPHRASE",
		"MY_DB_PASSWORD",
		"TOKEN",
		"CORP_THING",
		"LISTED",
	};
	static const char *const open_names[] = {
		"AWS_REGION", "PATHOLOGY",       "TOKENIZERS_PARALLELISM",
		"KEYBOARD",   "GIT_AUTHOR_NAME", "CORP"
	};
	struct string_list extra = { 0 };
	struct env_list given = { 0 };
	struct envscrub_input input = { .given = &given, .withhold = { &extra }, .home = "/h" };
	struct result result = { 0 };

	(void)state;
	assert_int_equal(string_list_add(&extra, "CORP_*", NULL), 0);
	assert_int_equal(string_list_add(&extra, "LISTED", NULL), 0);
	for (size_t i = 0; i < sizeof(secret) / sizeof(secret[0]); i++)
		assert_int_equal(env_list_add(&given, secret[i], "s3cret", NULL), 0);
	for (size_t i = 0; i < sizeof(open_names) / sizeof(open_names[0]); i++)
		assert_int_equal(env_list_add(&given, open_names[i], "fine", NULL), 0);
	assert_int_equal(envscrub(&input, &result.env, &result.withheld, NULL), 0);
	for (size_t i = 0; i < sizeof(secret) / sizeof(secret[0]); i++) {
		assert_null(get(&result, secret[i]));
		assert_true(string_list_has(&result.withheld, secret[i]));
	}
	for (size_t i = 0; i < sizeof(open_names) / sizeof(open_names[0]); i++)
		assert_string_equal(get(&result, open_names[i]), "fine");
	for (size_t i = 0; i < result.env.count; i++)
		assert_null(strstr(result.env.items[i], "s3cret"));
	assert_int_equal(result.withheld.count, sizeof(secret) / sizeof(secret[0]));
	deinit(&result);
	string_list_deinit(&extra);
	env_list_deinit(&given);
}

static void test_pass_and_set(void **state)
{
	struct string_list pass = { 0 };
	struct env_list given = { 0 };
	struct env_list set = { 0 };
	struct envscrub_input input = {
		.given = &given, .set = { NULL, &set }, .pass = { NULL, NULL, &pass }, .home = "/h"
	};
	struct result result = { 0 };

	(void)state;
	assert_int_equal(string_list_add(&pass, "GH_*", NULL), 0);
	assert_int_equal(env_list_add(&given, "GH_TOKEN", "mine", NULL), 0);
	assert_int_equal(env_list_add(&given, "NPM_TOKEN", "not", NULL), 0);
	assert_int_equal(env_list_add(&set, "OPENAI_API_KEY", "set", NULL), 0);
	assert_int_equal(env_list_add(&set, "TMPDIR", "/var/tmp", NULL), 0);
	assert_int_equal(env_list_add(&set, "HOME", "/elsewhere", NULL), 0);
	assert_int_equal(envscrub(&input, &result.env, &result.withheld, NULL), 0);
	assert_string_equal(get(&result, "GH_TOKEN"), "mine");
	assert_null(get(&result, "NPM_TOKEN"));
	assert_string_equal(get(&result, "OPENAI_API_KEY"), "set");
	assert_string_equal(get(&result, "TMPDIR"), "/var/tmp");
	assert_string_equal(get(&result, "HOME"), "/h"); /* pinned for good */
	assert_int_equal(result.withheld.count, 1);
	deinit(&result);
	string_list_deinit(&pass);
	env_list_deinit(&given);
	env_list_deinit(&set);
}

/* At the limit of variables and one past it; quickly, whatever the names. */
static void test_many_R13(void **state)
{
	struct env_list given = { 0 };
	struct envscrub_input input = { .given = &given };
	struct result result = { 0 };
	struct error err = ERROR_INIT;
	char name[32];

	(void)state;
	/* PATH, LANG and TMPDIR are there anyhow. */
	for (int i = 0; i < LIMIT_ARGS_COUNT - 3; i++) {
		(void)snprintf(name, sizeof(name), "V%d", i);
		assert_int_equal(env_list_add(&given, name, "", NULL), 0);
	}
	assert_int_equal(envscrub(&input, &result.env, &result.withheld, &err), 0);
	assert_int_equal(result.env.count, LIMIT_ARGS_COUNT);
	deinit(&result);
	memset(&result, 0, sizeof(result));
	assert_int_equal(env_list_add(&given, "ONE_MORE", "", NULL), 0);
	assert_int_equal(envscrub(&input, &result.env, &result.withheld, &err), -ERR_INVALID);
	deinit(&result);
	env_list_deinit(&given);
}

/* `host` and `botmux` withhold whole families only; what is declared passes, what is open always does. */
static void test_families(void **state)
{
	struct env_list given = { 0 };
	struct string_list pass = { 0 };
	struct envscrub_input input = { .given = &given, .pass = { &pass }, .families_only = true };
	struct result result = { 0 };

	(void)state;
	assert_int_equal(env_list_add(&given, "AWS_SECRET_ACCESS_KEY", "a", NULL), 0);
	assert_int_equal(env_list_add(&given, "VAULT_TOKEN", "v", NULL), 0);
	assert_int_equal(env_list_add(&given, "TELEGRAM_X", "t", NULL), 0);
	assert_int_equal(env_list_add(&given, "APPROVAL_HOME", "/h", NULL), 0);
	assert_int_equal(string_list_add(&pass, "TELEGRAM_X", NULL), 0);
	assert_int_equal(envscrub(&input, &result.env, &result.withheld, NULL), 0);
	assert_string_equal(get(&result, "AWS_SECRET_ACCESS_KEY"), "a");
	assert_string_equal(get(&result, "APPROVAL_HOME"), "/h");
	assert_string_equal(get(&result, "TELEGRAM_X"), "t");
	assert_null(get(&result, "VAULT_TOKEN"));
	assert_int_equal(result.withheld.count, 1);
	assert_string_equal(get(&result, "LANG"), "C.UTF-8");
	deinit(&result);

	memset(&result, 0, sizeof(result));
	input.families_only = false;
	assert_int_equal(envscrub(&input, &result.env, &result.withheld, NULL), 0);
	assert_null(get(&result, "AWS_SECRET_ACCESS_KEY"));
	assert_string_equal(get(&result, "APPROVAL_HOME"), "/h");
	assert_int_equal(result.withheld.count, 2);
	deinit(&result);
	env_list_deinit(&given);
	string_list_deinit(&pass);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pins),
		cmocka_unit_test(test_families),
		cmocka_unit_test(test_path_is_never_missing),
		cmocka_unit_test(test_withheld_R15),
		cmocka_unit_test(test_pass_and_set),
		cmocka_unit_test(test_many_R13),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
