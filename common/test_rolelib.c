/* SPDX-License-Identifier: Apache-2.0 */
#include "common/rolelib.h"

#include <stdlib.h>
#include <string.h>

#include "common/limits.h"
#include "common/scope.h"
#include "tests/test.h"

static void add(struct string_list *list, const char *text)
{
	assert_int_equal(string_list_add(list, text, NULL), 0);
}

static struct policy_context bot(const char *subtree)
{
	struct policy_context context = POLICY_CONTEXT_INIT;

	context.home_dir = strdup("/home/u");
	context.role_library_subtree = subtree ? strdup(subtree) : NULL;
	return context;
}

static enum access access_of(const struct policy_context *context)
{
	enum access access = ACCESS_DENY;

	assert_int_equal(role_library_access(&access, context, NULL), 0);
	return access;
}

static void writable_unless_something_speaks_against_it(void **state)
{
	AUTO(policy_context_deinit) struct policy_context context = bot("/r/own/");

	(void)state;
	assert_int_equal(access_of(&context), ACCESS_READ_WRITE);
	add(&context.user_read_only, "/r");
	assert_int_equal(access_of(&context), ACCESS_READ_ONLY);
	add(&context.user_deny, "/r/ow");
	assert_int_equal(access_of(&context), ACCESS_READ_ONLY);
	add(&context.user_deny, "/r/own");
	assert_int_equal(access_of(&context), ACCESS_NONE);
}

static void no_library_no_rule(void **state)
{
	AUTO(policy_context_deinit) struct policy_context none = bot(NULL);
	AUTO(policy_context_deinit) struct policy_context relative = bot("roles");
	AUTO(policy_context_deinit) struct policy_context empty = bot("");

	(void)state;
	assert_int_equal(access_of(&none), ACCESS_NONE);
	assert_int_equal(access_of(&relative), ACCESS_NONE);
	assert_int_equal(access_of(&empty), ACCESS_NONE);
}

static void mandatory_lists_and_baseline(void **state)
{
	AUTO(policy_context_deinit) struct policy_context context = bot("/r/own");
	AUTO(policy_context_deinit) struct policy_context in_ssh = bot("/home/u/.ssh/roles");
	AUTO(policy_context_deinit) struct policy_context in_share = bot("/home/u/.local/share/r");

	(void)state;
	assert_int_equal(access_of(&in_ssh), ACCESS_NONE);
	/* The baseline lets read there, and that has no say. */
	assert_int_equal(access_of(&in_share), ACCESS_READ_WRITE);
	add(&context.mandatory_read_only_paths, "/");
	assert_int_equal(access_of(&context), ACCESS_READ_ONLY);
	add(&context.mandatory_deny_paths, "not/a/path");
	assert_int_equal(access_of(&context), ACCESS_READ_ONLY);
	add(&context.mandatory_deny_paths, "/r/");
	assert_int_equal(access_of(&context), ACCESS_NONE);
}

static bool withheld_by(const char *expression)
{
	AUTO(policy_context_deinit) struct policy_context context = bot("/r/own-7.d/x");

	add(&context.mandatory_deny_regexes, expression);
	return access_of(&context) == ACCESS_NONE;
}

static void expressions(void **state)
{
	(void)state;
	assert_true(withheld_by("own"));
	assert_true(withheld_by("^/r/own-[0-9]+\\.d/"));
	assert_true(withheld_by("[^a-z]x$"));
	assert_true(withheld_by("(own|other)-"));
	assert_true(withheld_by("\\/own\\-"));
	assert_false(withheld_by("^/own"));
	assert_false(withheld_by("OWN"));
	assert_false(withheld_by("\\.x"));
	assert_false(withheld_by("own$"));
	assert_false(withheld_by("(own")); /* does not compile */
	assert_false(withheld_by("[own")); /* nor do these */
	assert_false(withheld_by("*own"));
	assert_false(withheld_by("(+own)"));
	assert_false(withheld_by("own|*"));
	assert_false(withheld_by("^*own"));
	assert_false(withheld_by("ow++n"));
	assert_false(withheld_by("own\\"));
}

/* None of these matches as POSIX reads it; all might as JavaScript does. */
static void doubtful_expressions_withhold(void **state)
{
	static const char *const doubtful[] = {
		"\\d",    "\\w+q",   "(?:own)", "q{0}", "ow*?q", "q+?",    "q??",
		"[\\d]q", "[[:q:]]", "[]q]",    "[^]q", "q\\<",  "(q)\\1", "[[.q.]]",
	};
	char longer[ROLE_REGEX_BYTES + 2];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(doubtful); i++)
		if (!withheld_by(doubtful[i]))
			fail_msg("'%s' does not withhold the grant", doubtful[i]);

	memset(longer, 'q', sizeof(longer));
	longer[ROLE_REGEX_BYTES] = '\0';
	assert_false(withheld_by(longer));
	longer[ROLE_REGEX_BYTES] = 'q';
	longer[ROLE_REGEX_BYTES + 1] = '\0';
	assert_true(withheld_by(longer));
}

static void huge_home(void **state)
{
	AUTO(policy_context_deinit) struct policy_context context = bot("/r");
	enum access access = ACCESS_NONE;
	struct error err = ERROR_INIT;

	(void)state;
	free(context.home_dir);
	context.home_dir = malloc(LIMIT_FRAME_BYTES + 1);
	memset(context.home_dir, '/', LIMIT_FRAME_BYTES);
	context.home_dir[LIMIT_FRAME_BYTES] = '\0';
	assert_int_equal(role_library_access(&access, &context, &err), -ERR_NOMEM);
	assert_int_equal(err.kind, ERR_NOMEM);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(writable_unless_something_speaks_against_it),
		cmocka_unit_test(no_library_no_rule),
		cmocka_unit_test(mandatory_lists_and_baseline),
		cmocka_unit_test(expressions),
		cmocka_unit_test(doubtful_expressions_withhold),
		cmocka_unit_test(huge_home),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
