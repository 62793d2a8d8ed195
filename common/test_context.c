/* SPDX-License-Identifier: Apache-2.0 */
#include "common/context.h"

#include <stdlib.h>
#include <string.h>

#include "common/limits.h"
#include "common/scope.h"
#include "tests/test.h"

/* The whole of policy_context_build() is held to tests/vectors/buildFsPolicy.json by vector-runner. */

static struct policy_context bot(void)
{
	struct policy_context context = POLICY_CONTEXT_INIT;

	context.home_dir = strdup("/home/u");
	context.botmux_home = strdup("/home/u/.botmux");
	context.session_data_dir = strdup("/home/u/.botmux/data");
	context.working_dir = strdup("/home/u/proj");
	context.current_app_id = strdup("cli_self");
	context.bot_home = strdup("/home/u/.botmux/bots/cli_self");
	context.redirected_cli_data = true;
	return context;
}

static void answers(void **state)
{
	AUTO(policy_context_deinit) struct policy_context context = bot();
	AUTO(policy_deinit) struct policy policy = POLICY_INIT;
	struct verdict verdict;

	(void)state;
	assert_int_equal(policy_context_build(&policy, &context, NULL), 0);
	assert_int_equal(policy.net, NET_HOST);
	verdict = policy_access(&policy, "/home/u/proj/src");
	assert_int_equal(verdict.access, ACCESS_READ_WRITE);
	assert_string_equal(verdict.rule->origin, "workingDir");
	assert_int_equal(policy_access(&policy, "/home/u/.ssh/id").access, ACCESS_DENY);
	assert_int_equal(policy_access(&policy, "/home/u/.botmux/bots.json").access, ACCESS_NONE);
	assert_int_equal(policy_access(&policy, "/home/u/.local/share/lark-cli/k").access,
			 ACCESS_DENY);
	assert_int_equal(policy_access(&policy, "/home/u/.local/share/lark-cli/master.key").access,
			 ACCESS_READ_ONLY);
}

/* A percent sign in a path is no pattern. */
static void percent_signs_are_copied(void **state)
{
	AUTO(policy_context_deinit) struct policy_context context = bot();
	AUTO(policy_deinit) struct policy policy = POLICY_INIT;

	(void)state;
	free(context.current_app_id);
	context.current_app_id = strdup("%S%s%n");
	context.session_id = strdup("s1");
	context.lark_cli_linux_store = strdup("/srv/%A/%s");
	assert_int_equal(policy_context_build(&policy, &context, NULL), 0);
	assert_int_equal(policy_access(&policy, "/srv/%A/%s/appsecret_%S%s%n.enc").access,
			 ACCESS_READ_ONLY);
	assert_int_equal(policy_access(&policy, "/home/u/.botmux/data/attachments/%S%s%n").access,
			 ACCESS_READ_WRITE);
	assert_int_equal(policy_access(&policy, "/home/u/.botmux/data/turn-sends/s1.jsonl").access,
			 ACCESS_READ_WRITE);
}

static void suppressed_grants_are_told(void **state)
{
	AUTO(policy_context_deinit) struct policy_context context = bot();
	AUTO(policy_deinit) struct policy policy = POLICY_INIT;

	(void)state;
	context.lark_transport_enabled = false;
	context.net = false;
	for (int i = 0; i < 2; i++)
		assert_int_equal(
			string_list_add(&context.user_read_write, "/home/u/.lark-cli/x/", NULL), 0);
	assert_int_equal(policy_context_build(&policy, &context, NULL), 0);
	assert_int_equal(policy.net, NET_NONE);
	assert_int_equal(policy.suppressed.count, 1);
	assert_string_equal(policy.suppressed.items[0], "/home/u/.lark-cli/x");
	assert_int_equal(policy.note_count, 1);
	assert_string_equal(policy.notes[0].path, "/home/u/.lark-cli/x");
	assert_int_equal(policy_access(&policy, "/home/u/.lark-cli/x").access, ACCESS_DENY);
}

static void refusals_in_order(void **state)
{
	AUTO(policy_context_deinit) struct policy_context context = bot();
	AUTO(policy_deinit) struct policy policy = POLICY_INIT;
	struct error err = ERROR_INIT;

	(void)state;
	context.lark_transport_enabled = false;
	context.loaded_bots_config_path = strdup("/etc/bots.json");
	free(context.working_dir);
	context.working_dir = strdup("/home/u/.botmux");
	assert_int_equal(policy_context_build(&policy, &context, &err), -ERR_EXTERNAL_BOTS_CONFIG);

	free(context.loaded_bots_config_path);
	context.loaded_bots_config_path = strdup("/home/u/.botmux/bin/bots.json");
	assert_int_equal(policy_context_build(&policy, &context, &err),
			 -ERR_WORKING_DIR_IS_AUTHORITY);

	free(context.working_dir);
	context.working_dir = strdup("/home/u/proj");
	assert_int_equal(policy_context_build(&policy, &context, &err),
			 -ERR_BOTS_CONFIG_IN_CARVEOUT);

	context.lark_transport_enabled = true;
	assert_int_equal(policy_context_build(&policy, &context, &err), 0);
}

static void missing_strings_are_named(void **state)
{
	AUTO(policy_context_deinit) struct policy_context context = bot();
	AUTO(policy_deinit) struct policy policy = POLICY_INIT;
	struct error err = ERROR_INIT;

	(void)state;
	free(context.bot_home);
	context.bot_home = NULL;
	assert_int_equal(policy_context_build(&policy, &context, &err), -ERR_INVALID);
	assert_string_equal(err.message, "botHome is missing");
	policy_context_deinit(NULL);
}

/* A string longer than any frame, wherever it is put in. */
static void huge_strings_are_refused(void **state)
{
	AUTO(policy_context_deinit) struct policy_context context = bot();
	AUTO(policy_deinit) struct policy policy = POLICY_INIT;
	size_t size = LIMIT_FRAME_BYTES;
	char *huge = malloc(size + 1);
	char **fields[] = { &context.home_dir, &context.session_data_dir };
	struct error err = ERROR_INIT;

	(void)state;
	memset(huge, 'x', size);
	huge[0] = '/';
	huge[size] = '\0';
	for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
		char *saved = *fields[i];

		*fields[i] = huge;
		assert_int_equal(policy_context_build(&policy, &context, &err), -ERR_NOMEM);
		context.lark_transport_enabled = false;
		assert_int_equal(policy_context_build(&policy, &context, &err), -ERR_NOMEM);
		context.lark_transport_enabled = true;
		*fields[i] = saved;
	}
	free(huge);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(answers),
		cmocka_unit_test(percent_signs_are_copied),
		cmocka_unit_test(suppressed_grants_are_told),
		cmocka_unit_test(refusals_in_order),
		cmocka_unit_test(missing_strings_are_named),
		cmocka_unit_test(huge_strings_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
