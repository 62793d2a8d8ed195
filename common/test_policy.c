/* SPDX-License-Identifier: Apache-2.0 */
#include "common/policy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/buf.h"
#include "common/scope.h"
#include "tests/flat.h"
#include "tests/gen_policy.h"
#include "tests/test.h"

static void add(struct policy *policy, const char *path, enum access access)
{
	assert_non_null(rule_list_add(&policy->rules, path, access, RULE_USER, NULL, NULL));
}

static void deepest_rule_answers(void **state)
{
	AUTO(policy_deinit) struct policy policy = POLICY_INIT;

	(void)state;
	add(&policy, "/home/u", ACCESS_READ_WRITE);
	add(&policy, "/home/u/.ssh", ACCESS_DENY);
	add(&policy, "/home/u/.ssh/known_hosts", ACCESS_READ_ONLY);
	assert_int_equal(policy_access(&policy, "/home/u").access, ACCESS_NONE); /* no index yet */
	assert_int_equal(policy_covering(&policy, "/home/u", NULL, 0), 0);
	assert_int_equal(policy_index(&policy, NULL), 0);
	assert_int_equal(policy_access(&policy, "/home/u/x/").access, ACCESS_READ_WRITE);
	assert_int_equal(policy_access(&policy, "/home/u/.ssh/id").access, ACCESS_DENY);
	assert_int_equal(policy_access(&policy, "/home/u/.ssh/known_hosts").access,
			 ACCESS_READ_ONLY);
	assert_int_equal(policy_access(&policy, "/home/u/.sshx").access, ACCESS_READ_WRITE);
	assert_int_equal(policy_access(&policy, "/home").access, ACCESS_NONE);
	assert_null(policy_access(&policy, "/home").rule);
	assert_int_equal(policy_access(&policy, "home/u").access, ACCESS_NONE);
	assert_int_equal(policy_access(&policy, "/home/u/../u").access, ACCESS_NONE);
	assert_int_equal(policy_covering(&policy, "home", NULL, 0), 0);
}

static void index_follows_the_rules(void **state)
{
	AUTO(policy_deinit) struct policy policy = POLICY_INIT;

	(void)state;
	add(&policy, "/a", ACCESS_READ_ONLY);
	assert_int_equal(policy_index(&policy, NULL), 0);
	add(&policy, "/a/b", ACCESS_DENY);
	assert_int_equal(policy_access(&policy, "/a/b").access, ACCESS_READ_ONLY);
	assert_int_equal(policy_index(&policy, NULL), 0);
	assert_int_equal(policy_access(&policy, "/a/b").access, ACCESS_DENY);
}

static void covering_is_deepest_first(void **state)
{
	AUTO(policy_deinit) struct policy policy = POLICY_INIT;
	const struct rule *covering[4] = { NULL };

	(void)state;
	add(&policy, "/", ACCESS_READ_ONLY);
	add(&policy, "/a", ACCESS_DENY);
	add(&policy, "/a/b", ACCESS_READ_ONLY);
	assert_int_equal(policy_index(&policy, NULL), 0);
	assert_int_equal(policy_covering(&policy, "/a/b/c/", covering, 4), 3);
	assert_string_equal(covering[0]->path, "/a/b");
	assert_string_equal(covering[1]->path, "/a");
	assert_string_equal(covering[2]->path, "/");
}

/* Merged and unmerged lists, clean and odd paths: the index answers as the flat walk does. */
static void equals_the_flat_reference(void **state)
{
	struct gen gen = gen_start(20261130);

	(void)state;
	for (int round = 0; round < 6000; round++) {
		const struct gen_options options = {
			.max_rules = round % 10 == 0 ? 200 : 24,
			.max_depth = 1 + gen_below(&gen, 8),
			.odd = round & 1,
			.bytes = round & 2,
			.root = round & 4,
		};
		AUTO(policy_deinit) struct policy policy = POLICY_INIT;

		if (round % 3 == 0)
			gen_candidates(&gen, &policy.rules, &options);
		else
			gen_rules(&gen, &policy.rules, &options);
		assert_int_equal(policy_index(&policy, NULL), 0);
		for (int i = 0; i < 24; i++) {
			AUTO(auto_free) char *path = gen_probe(&gen, &policy.rules, &options);
			struct verdict got = policy_access(&policy, path);
			const struct rule *want = flat_access(&policy.rules, path);

			if (got.rule != want)
				fail_msg("round %d: '%s' is decided by '%s', not '%s'", round, path,
					 got.rule ? got.rule->path : "none",
					 want ? want->path : "none");
			assert_int_equal(got.access, want ? want->access : ACCESS_NONE);
		}
	}
}

/* 100,000 rules with a common tail and a common head: no two alike, many siblings. */
static void many_rules(void **state)
{
	AUTO(policy_deinit) struct policy policy = POLICY_INIT;
	char path[128];

	(void)state;
	for (int i = 0; i < 100000; i++) {
		(void)snprintf(path, sizeof(path), "/srv/project/%d/node_modules/.bin/%d", i % 317,
			       i);
		add(&policy, path, i & 1 ? ACCESS_DENY : ACCESS_READ_ONLY);
	}
	assert_int_equal(policy_index(&policy, NULL), 0);
	for (int i = 0; i < 100000; i++) {
		(void)snprintf(path, sizeof(path), "/srv/project/%d/node_modules/.bin/%d/x",
			       i % 317, i);
		assert_ptr_equal(policy_access(&policy, path).rule, &policy.rules.rules[i]);
	}
	assert_int_equal(policy_access(&policy, "/srv/project/1/node_modules").access, ACCESS_NONE);
}

static void strings(void **state)
{
	AUTO(string_list_deinit) struct string_list list = { .items = NULL };

	(void)state;
	string_list_sort_unique(&list);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(string_list_add(&list, "b", NULL), 0);
		assert_int_equal(string_list_add(&list, "\xff", NULL), 0);
		assert_int_equal(string_list_add(&list, "a", NULL), 0);
		assert_int_equal(string_list_add(&list, "", NULL), 0);
	}
	assert_int_equal(list.count, 12);
	string_list_sort_unique(&list);
	assert_int_equal(list.count, 4);
	assert_string_equal(list.items[0], "");
	assert_string_equal(list.items[1], "a");
	assert_string_equal(list.items[2], "b");
	assert_string_equal(list.items[3], "\xff");
	assert_true(string_list_has(&list, "b"));
	assert_false(string_list_has(&list, "c"));
	string_list_deinit(NULL);
	policy_deinit(NULL);
}

static void notes_are_copied(void **state)
{
	AUTO(policy_deinit) struct policy policy = POLICY_INIT;
	char path[16];

	(void)state;
	for (int i = 0; i < 20; i++) {
		(void)snprintf(path, sizeof(path), "/%d", i);
		assert_int_equal(policy_add_note(&policy, path, "lies in a denied tree", NULL), 0);
	}
	assert_int_equal(policy.note_count, 20);
	assert_string_equal(policy.notes[7].path, "/7");
	assert_string_equal(policy.notes[7].reason, "lies in a denied tree");
}

static void canonical_text(void **state)
{
	AUTO(policy_deinit) struct policy policy = POLICY_INIT;
	AUTO(buf_deinit) struct buf out = BUF_INIT(4096);
	AUTO(buf_deinit) struct buf small = BUF_INIT(16);
	struct error err = ERROR_INIT;

	(void)state;
	policy.net = NET_PROXY;
	add(&policy, "/a b\\\n\xc3\xa9", ACCESS_DENY);
	add(&policy, "/home/u/.cache", ACCESS_READ_WRITE);
	policy.rules.rules[0].absent = ABSENT_WATCH;
	policy.rules.rules[1].bind_source = strdup("/var/cache/x");
	policy.rules.rules[1].type = NODE_DIRECTORY;
	assert_int_equal(string_list_add(&policy.write_regexes, "^/w", NULL), 0);
	assert_int_equal(string_list_add(&policy.deny_regexes, "^/d d", NULL), 0);
	assert_int_equal(string_list_add(&policy.final_read_only, "/f", NULL), 0);
	assert_int_equal(policy_canonical_text(&policy, &out, NULL), 0);
	assert_string_equal(buf_text(&out),
			    "net proxy\n"
			    "rule deny user unknown watch /a\\x20b\\x5c\\x0a\\xc3\\xa9 -\n"
			    "rule readWrite user directory default /home/u/.cache /var/cache/x\n"
			    "write-regex ^/w\n"
			    "deny-regex ^/d\\x20d\n"
			    "final-read-only /f\n");
	assert_int_equal(policy_canonical_text(&policy, &small, &err), -ERR_NOMEM);
	assert_string_equal(err.message,
			    "the canonical text of the policy does not fit into 16 bytes");
}

static void check_ancestors(const struct policy *policy, const char *const *want)
{
	AUTO(string_list_deinit) struct string_list paths = { .items = NULL };
	size_t count = 0;

	assert_int_equal(policy_traverse_ancestors(&policy->rules, &paths, NULL), 0);
	while (want[count])
		count++;
	assert_int_equal(paths.count, count);
	for (size_t i = 0; i < count; i++)
		assert_string_equal(paths.items[i], want[i]);
}

static void ancestors(void **state)
{
	AUTO(policy_deinit) struct policy policy = POLICY_INIT;

	(void)state;
	check_ancestors(&policy, (const char *[]){ NULL });
	add(&policy, "/", ACCESS_READ_ONLY);
	add(&policy, "/x/y/z", ACCESS_DENY);
	check_ancestors(&policy, (const char *[]){ NULL });
	add(&policy, "/b/c/d", ACCESS_READ_ONLY);
	add(&policy, "/b/c/e", ACCESS_READ_WRITE);
	add(&policy, "/b/cc/d", ACCESS_READ_WRITE);
	add(&policy, "/a", ACCESS_READ_WRITE);
	add(&policy, "/a//q", ACCESS_READ_WRITE);
	check_ancestors(&policy, (const char *[]){ "/", "/a", "/b", "/a/", "/b/c", "/b/cc", NULL });
	/* No rule that is merged looks like these. */
	add(&policy, "", ACCESS_READ_WRITE);
	add(&policy, "", ACCESS_READ_WRITE);
	add(&policy, "rel", ACCESS_READ_WRITE);
	check_ancestors(&policy, (const char *[]){ "/", "/a", "/b", "/a/", "/b/c", "/b/cc", NULL });
}

static void net_modes(void **state)
{
	enum net_mode mode = NET_NONE;

	(void)state;
	for (int i = NET_NONE; i <= NET_HOST; i++) {
		assert_true(net_mode_parse(net_mode_name((enum net_mode)i), &mode));
		assert_int_equal(mode, i);
	}
	assert_false(net_mode_parse("all", &mode));
	assert_string_equal(net_mode_name((enum net_mode)77), "unknown");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(deepest_rule_answers),
		cmocka_unit_test(index_follows_the_rules),
		cmocka_unit_test(covering_is_deepest_first),
		cmocka_unit_test(equals_the_flat_reference),
		cmocka_unit_test(many_rules),
		cmocka_unit_test(strings),
		cmocka_unit_test(notes_are_copied),
		cmocka_unit_test(canonical_text),
		cmocka_unit_test(ancestors),
		cmocka_unit_test(net_modes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
