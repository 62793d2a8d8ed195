/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/broker/why.h"

#include <string.h>

#include "tests/test.h"

static void add(struct policy *policy, const char *path, enum access access,
		enum rule_source source, const char *origin, enum node_type type)
{
	struct rule *rule = rule_list_add(&policy->rules, path, access, source, origin, NULL);

	assert_non_null(rule);
	rule->type = type;
}

static int set_up(void **state)
{
	static struct policy policy;

	policy = (struct policy)POLICY_INIT;
	/* By depth, then by bytes, as settled ones are. */
	add(&policy, "/usr", ACCESS_READ_ONLY, RULE_BASELINE, "profile generic", NODE_DIRECTORY);
	add(&policy, "/home/u/p", ACCESS_READ_WRITE, RULE_INTERNAL, "working directory",
	    NODE_DIRECTORY);
	add(&policy, "/home/u/p/later", ACCESS_DENY, RULE_USER, "request", NODE_ABSENT);
	add(&policy, "/home/u/p/own", ACCESS_DENY, RULE_MANDATORY, "fsboxd.conf", NODE_DIRECTORY);
	add(&policy, "/home/u/p/secret", ACCESS_DENY, RULE_USER, "request", NODE_FILE);
	add(&policy, "/home/u/p/.git/config", ACCESS_READ_ONLY, RULE_USER, "protected name",
	    NODE_FILE);
	policy.rules.rules[2].absent = ABSENT_PLACEHOLDER;
	policy.rules.rules[3].host = true;
	assert_int_equal(policy_index(&policy, NULL), 0);
	*state = &policy;
	return 0;
}

static int tear_down(void **state)
{
	policy_deinit(*state);
	return 0;
}

static void ask(const struct policy *policy, const char *path, const char *real,
		enum node_type type, union method_result *ret_result)
{
	method_result_init(METHOD_WHY, ret_result);
	assert_int_equal(
		why_explain_path(policy, path, real, type, "/home/u/p", &ret_result->why, NULL), 0);
}

static void assert_mask(const struct why_result *why, const char *expected)
{
	assert_string_equal(why->mask != NULL ? why->mask : "(none)", expected);
}

static void test_granted(void **state)
{
	union method_result result;

	ask(*state, "/home/u/p/src/x", "/home/u/p/src/x", NODE_FILE, &result);
	assert_string_equal(result.why.access, "readWrite");
	assert_string_equal(result.why.rule->path, "/home/u/p");
	assert_string_equal(result.why.rule->origin, "working directory");
	assert_string_equal(result.why.type, "file");
	assert_null(result.why.real);
	assert_null(result.why.mask);
	method_result_deinit(METHOD_WHY, &result);
}

static void test_nothing_grants_it(void **state)
{
	union method_result result;

	ask(*state, "/srv/x", "/srv/x", NODE_ABSENT, &result);
	assert_string_equal(result.why.access, "none");
	assert_null(result.why.rule);
	assert_non_null(strstr(result.why.hint, "--ro '/srv/x'"));
	method_result_deinit(METHOD_WHY, &result);

	/* Fresh places are ours, not the host's. */
	ask(*state, "/tmp/x", "/tmp/x", NODE_ABSENT, &result);
	assert_string_equal(result.why.access, "readWrite");
	assert_non_null(strstr(result.why.hint, "'/tmp'"));
	method_result_deinit(METHOD_WHY, &result);
}

static void test_denied_and_shadowed(void **state)
{
	union method_result result;

	ask(*state, "/home/u/link", "/home/u/p/secret", NODE_FILE, &result);
	assert_string_equal(result.why.access, "deny");
	assert_string_equal(result.why.real, "/home/u/p/secret");
	assert_string_equal(result.why.rule->path, "/home/u/p/secret");
	assert_int_equal(result.why.shadowed.count, 1);
	assert_string_equal(result.why.shadowed.items[0].path, "/home/u/p");
	assert_mask(&result.why, "mask-file");
	assert_non_null(strstr(result.why.hint, "--deny"));
	method_result_deinit(METHOD_WHY, &result);

	ask(*state, "/home/u/p/later", "/home/u/p/later", NODE_ABSENT, &result);
	assert_mask(&result.why, "placeholder");
	method_result_deinit(METHOD_WHY, &result);

	ask(*state, "/home/u/p/own/x", "/home/u/p/own/x", NODE_FILE, &result);
	assert_non_null(strstr(result.why.hint, "fsboxd.conf"));
	method_result_deinit(METHOD_WHY, &result);
}

static void test_hints_for_writing(void **state)
{
	union method_result result;

	ask(*state, "/home/u/p/.git/config", "/home/u/p/.git/config", NODE_FILE, &result);
	assert_string_equal(result.why.access, "readOnly");
	assert_non_null(strstr(result.why.hint, "--allow-git-config"));
	method_result_deinit(METHOD_WHY, &result);
	ask(*state, "/usr/bin/x", "/usr/bin/x", NODE_FILE, &result);
	assert_non_null(strstr(result.why.hint, "--rw '/usr/bin/x'"));
	method_result_deinit(METHOD_WHY, &result);
}

int main(void)
{
#define T(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		T(test_granted),
		T(test_nothing_grants_it),
		T(test_denied_and_shadowed),
		T(test_hints_for_writing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
