/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Short memory at every allocation that there is, one after the other: whatever common/ was doing
 * fails with ERR_NOMEM and fills the error, changes nothing it should not, and leaks nothing (a
 * sanitizer sees to that).
 */

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/authority.h"
#include "common/buf.h"
#include "common/context.h"
#include "common/larkstore.h"
#include "common/legacy.h"
#include "common/macpath.h"
#include "common/path.h"
#include "common/policy.h"
#include "common/redirect.h"
#include "common/scope.h"
#include "common/seatbelt.h"
#include "tests/test.h"
#include "tests/unit/short_memory.h"

static void add(struct string_list *list, const char *text)
{
	long saved = memory_granted;

	memory_granted = -1;
	assert_int_equal(string_list_add(list, text, NULL), 0);
	memory_granted = saved;
}

/* Strings of a context, without touching what is memory_granted. */
static void fill_context(struct policy_context *context, bool transport)
{
	long saved = memory_granted;

	memory_granted = -1;
	context->lark_transport_enabled = transport;
	context->home_dir = strdup("/home/u");
	context->botmux_home = strdup("/home/u/.botmux");
	context->default_botmux_home = strdup("/srv/botmux");
	context->session_data_dir = strdup("/home/u/.botmux/data");
	context->working_dir = strdup("/home/u/proj");
	context->current_app_id = strdup("cli");
	context->bot_home = strdup("/home/u/.botmux/bots/cli");
	context->session_id = strdup("s");
	context->role_library_subtree = strdup("/home/u/roles");
	context->loaded_bots_config_path = strdup("/home/u/.botmux/bots.json");
	context->lark_cli_linux_store = strdup("/srv/lark-cli");
	memory_granted = saved;
	add(&context->user_read_write, "/home/u/.botmux/x");
	add(&context->user_read_write, "/w");
	add(&context->mandatory_deny_regexes, "^/q");
	add(&context->mandatory_read_only_paths, "/home/u/roles");
	add(&context->write_regexes, "^/w");
}

static int build_context(bool transport, struct error *err)
{
	AUTO(policy_context_deinit) struct policy_context context = POLICY_CONTEXT_INIT;
	AUTO(policy_deinit) struct policy policy = POLICY_INIT;

	fill_context(&context, transport);
	return policy_context_build(&policy, &context, err);
}

static int build_with_transport(struct error *err)
{
	return build_context(true, err);
}

static int build_without_transport(struct error *err)
{
	return build_context(false, err);
}

/* Shrinking the index's three arrays may fail: they stay as large as they were. */
static void contexts(void **state)
{
	(void)state;
	run_short_of_memory(build_with_transport, 3);
	run_short_of_memory(build_without_transport, 3);
}

static void fill_policy(struct policy *policy)
{
	long saved = memory_granted;

	memory_granted = -1;
	for (int i = 0; i < 40; i++) {
		char path[64];

		(void)snprintf(path, sizeof(path), "/tmp/d%d/%d", i % 3, i);
		assert_int_equal(rule_list_append(&policy->rules, path,
						  i % 2 ? ACCESS_DENY : ACCESS_READ_WRITE,
						  RULE_USER, NULL, NULL),
				 0);
	}
	assert_int_equal(rule_list_append(&policy->rules, "/tmp", ACCESS_READ_WRITE, RULE_USER,
					  NULL, NULL),
			 0);
	memory_granted = saved;
	add(&policy->write_regexes, "^/w/a");
	add(&policy->deny_regexes, "^/w/b(/|$)");
	add(&policy->final_read_only, "/f/g");
}

static int compile_seatbelt(struct error *err)
{
	AUTO(policy_deinit) struct policy policy = { .net = NET_HOST };
	AUTO(buf_deinit) struct buf out = BUF_INIT(1u << 20);

	fill_policy(&policy);
	return seatbelt_compile(&out, &policy, SEATBELT_HARDEN_ALL, err);
}

static int compile_seatbelt_plain(struct error *err)
{
	AUTO(policy_deinit) struct policy policy = { .net = NET_HOST };
	AUTO(buf_deinit) struct buf out = BUF_INIT(1u << 20);

	fill_policy(&policy);
	return seatbelt_compile(&out, &policy, 0, err);
}

static void seatbelt(void **state)
{
	(void)state;
	run_short_of_memory(compile_seatbelt, 3);
	run_short_of_memory(compile_seatbelt_plain, 3);
}

static int annotate(struct error *err)
{
	AUTO(policy_deinit) struct policy policy = POLICY_INIT;
	AUTO(buf_deinit) struct buf out = BUF_INIT(4096);
	int r = policy_add_note(&policy, "/a", "reason", err);

	if (r == 0)
		r = rule_list_append(&policy.rules, "/a", ACCESS_DENY, RULE_USER, "test", err);
	if (r == 0 && !rule_list_add(&policy.rules, "/b", ACCESS_DENY, RULE_USER, "test", err))
		return -ERR_NOMEM;
	return r < 0 ? r : policy_canonical_text(&policy, &out, err);
}

static int redirect(struct error *err)
{
	AUTO(string_list_deinit) struct string_list auth = { .items = NULL };
	AUTO(string_list_deinit) struct string_list roots = { .items = NULL };
	AUTO(string_list_deinit) struct string_list kept = { .items = NULL };
	int r = 0;

	add(&auth, "/a/b");
	add(&roots, "/c");
	r = redirect_auth_paths(&kept, &auth, true, &roots, err);
	return r < 0 ? r : redirect_auth_paths(&kept, &auth, false, &roots, err);
}

static int migrate(struct error *err)
{
	AUTO(legacy_fields_deinit) struct legacy_fields fields = { .read_isolation = true };
	AUTO(migrated_fields_deinit) struct migrated_fields migrated = { .needed = false };

	add(&fields.readonly_paths, "a");
	add(&fields.hide_paths, "b");
	add(&fields.deny_extra_paths, "c");
	return legacy_migrate(&migrated, &fields, err);
}

/* TEXT from a function that tells short memory by errno. */
static int judge(char *text, struct error *err)
{
	int errnum = errno;

	if (!text) {
		assert_int_equal(errnum, ENOMEM);
		return error_set(err, ERR_NOMEM, 0, "no text");
	}
	free(text);
	return 0;
}

static int texts(struct error *err)
{
	int r = judge(path_normalize("/a"), err);

	if (r == 0)
		r = judge(path_clean("/a/.."), err);
	if (r == 0)
		r = judge(path_join("/a", "b"), err);
	if (r == 0)
		r = judge(path_parent("/a"), err);
	if (r == 0)
		r = judge(lark_store_path("/h", NULL), err);
	if (r == 0)
		r = judge(lark_store_dir("/d", "/h"), err);
	if (r == 0)
		r = judge(lark_child_data_root("/d/lark-cli"), err);
	if (r == 0)
		r = judge(macpath_physical("/tmp/x"), err);
	return r < 0 ? r : macpath_check_prefix("/a/b", err);
}

static void the_rest(void **state)
{
	(void)state;
	run_short_of_memory(annotate, 0);
	run_short_of_memory(redirect, 0);
	run_short_of_memory(migrate, 0);
	run_short_of_memory(texts, 0);
}

/* The old index answers on when there is no memory for a new one. */
static void index_stays(void **state)
{
	AUTO(policy_deinit) struct policy policy = POLICY_INIT;
	struct error err = ERROR_INIT;

	(void)state;
	assert_int_equal(rule_list_append(&policy.rules, "/a", ACCESS_DENY, RULE_USER, NULL, NULL),
			 0);
	assert_int_equal(policy_index(&policy, NULL), 0);
	memory_granted = 0;
	assert_int_equal(policy_index(&policy, &err), -ERR_NOMEM);
	memory_granted = -1;
	assert_int_equal(policy_access(&policy, "/a/b").access, ACCESS_DENY);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(contexts),
		cmocka_unit_test(seatbelt),
		cmocka_unit_test(the_rest),
		cmocka_unit_test(index_stays),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
