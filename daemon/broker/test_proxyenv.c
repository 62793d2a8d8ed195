/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/broker/proxyenv.h"

#include <stdio.h>
#include <string.h>

#include "tests/test.h"

static const char *get(const struct string_list *env, const char *name)
{
	size_t length = strlen(name);
	const char *found = NULL;

	for (size_t i = 0; i < env->count; i++) {
		if (strncmp(env->items[i], name, length) != 0 || env->items[i][length] != '=')
			continue;
		assert_null(found); /* one for each name */
		found = env->items[i] + length + 1;
	}
	return found;
}

static void upper_and_lower_case_are_set(void **state)
{
	static const char *const urls[] = { "HTTP_PROXY",       "http_proxy",
					    "HTTPS_PROXY",      "https_proxy",
					    "ALL_PROXY",        "all_proxy",
					    "npm_config_proxy", "npm_config_https_proxy",
					    "PIP_PROXY" };
	struct env_list list = { 0 };

	(void)state;
	assert_int_equal(proxyenv_set(&list, 65535, NULL), 0);
	for (size_t i = 0; i < sizeof(urls) / sizeof(urls[0]); i++) {
		size_t seen = 0;

		for (size_t k = 0; k < list.count; k++) {
			if (strcmp(list.items[k].name, urls[i]) != 0)
				continue;
			seen++;
			assert_string_equal(list.items[k].value, "http://127.0.0.1:65535");
		}
		assert_int_equal(seen, 1);
	}
	env_list_deinit(&list);
}

static void java_keeps_its_own_options(void **state)
{
	static const char ours[] =
		"-Dhttp.proxyHost=127.0.0.1 -Dhttp.proxyPort=3128 -Dhttps.proxyHost=127.0.0.1"
		" -Dhttps.proxyPort=3128 -Dhttp.nonProxyHosts=localhost|127.*|[::1]";
	struct string_list env = { 0 };

	(void)state;
	assert_int_equal(proxyenv_merge(&env, 3128, NULL), 0);
	assert_string_equal(get(&env, "JAVA_TOOL_OPTIONS"), ours);
	string_list_deinit(&env);

	assert_int_equal(string_list_add(&env, "JAVA_TOOL_OPTIONS=-Xmx1g", NULL), 0);
	assert_int_equal(proxyenv_merge(&env, 3128, NULL), 0);
	assert_int_equal(strncmp(get(&env, "JAVA_TOOL_OPTIONS"), "-Xmx1g ", 7), 0);
	assert_string_equal(get(&env, "JAVA_TOOL_OPTIONS") + 7, ours);
	string_list_deinit(&env);
}

static void git_keeps_its_own_settings(void **state)
{
	struct string_list env = { 0 };

	(void)state;
	assert_int_equal(string_list_add(&env, "GIT_CONFIG_KEY_0=user.name", NULL), 0);
	assert_int_equal(string_list_add(&env, "GIT_CONFIG_VALUE_0=u", NULL), 0);
	assert_int_equal(string_list_add(&env, "GIT_CONFIG_COUNT=1", NULL), 0);
	assert_int_equal(proxyenv_merge(&env, 8080, NULL), 0);
	assert_string_equal(get(&env, "GIT_CONFIG_COUNT"), "2");
	assert_string_equal(get(&env, "GIT_CONFIG_KEY_0"), "user.name");
	assert_string_equal(get(&env, "GIT_CONFIG_KEY_1"), "http.proxy");
	assert_string_equal(get(&env, "GIT_CONFIG_VALUE_1"), "http://127.0.0.1:8080");
	string_list_deinit(&env);
}

/* Nonsense is left for git to complain about, and never makes an index. */
static void a_count_that_is_none_stays(void **state)
{
	static const char *const counts[] = { "", "-1", "x", "99999999999999999999", "1x" };

	(void)state;
	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		struct string_list env = { 0 };
		char text[64];

		(void)snprintf(text, sizeof(text), "GIT_CONFIG_COUNT=%s", counts[i]);
		assert_int_equal(string_list_add(&env, text, NULL), 0);
		assert_int_equal(proxyenv_merge(&env, 8080, NULL), 0);
		assert_string_equal(get(&env, "GIT_CONFIG_COUNT"), counts[i]);
		assert_int_equal(env.count, 2);
		string_list_deinit(&env);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(upper_and_lower_case_are_set),
		cmocka_unit_test(java_keeps_its_own_options),
		cmocka_unit_test(git_keeps_its_own_settings),
		cmocka_unit_test(a_count_that_is_none_stays),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
