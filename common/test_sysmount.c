/* SPDX-License-Identifier: Apache-2.0 */
#include "common/sysmount.h"

#include <string.h>

#include "common/path.h"
#include "common/scope.h"
#include "tests/test.h"

static void add(struct policy *policy, const char *path, enum access access)
{
	struct error err = ERROR_INIT;
	AUTO(rule_list_deinit) struct rule_list merged = RULE_LIST_INIT;

	assert_non_null(rule_list_add(&policy->rules, path, access, RULE_USER, "--test", &err));
	assert_int_equal(rule_list_merge(&merged, &policy->rules, &err), 0);
	rule_list_deinit(&policy->rules);
	policy->rules = merged;
	merged = (struct rule_list)RULE_LIST_INIT;
	assert_int_equal(policy_index(policy, &err), 0);
}

static void expect(const struct policy *policy, const char *path, enum access access,
		   const char *decided_by)
{
	struct sysmount_verdict verdict = sysmount_verdict(policy, path);

	assert_string_equal(access_name(verdict.access), access_name(access));
	assert_true(!verdict.rule || !verdict.mount);
	if (!decided_by) {
		assert_null(verdict.rule);
		assert_null(verdict.mount);
	} else if (verdict.rule) {
		assert_string_equal(verdict.rule->path, decided_by);
	} else {
		assert_non_null(verdict.mount);
		assert_string_equal(verdict.mount->path, decided_by);
	}
}

static void the_table_is_sorted_as_rules_are(void **state)
{
	size_t count = 0;
	const struct sysmount *mounts = sysmounts(&count);

	(void)state;
	for (size_t i = 1; i < count; i++) {
		size_t before = path_depth(mounts[i - 1].path);
		size_t here = path_depth(mounts[i].path);

		assert_true(before < here ||
			    (before == here && strcmp(mounts[i - 1].path, mounts[i].path) < 0));
	}
}

static void without_rules_only_ours_is_there(void **state)
{
	AUTO(policy_deinit) struct policy policy = POLICY_INIT;

	(void)state;
	expect(&policy, "/", ACCESS_NONE, NULL);
	expect(&policy, "/usr/bin", ACCESS_NONE, NULL);
	expect(&policy, "/tmp/x", ACCESS_READ_WRITE, "/tmp");
	expect(&policy, "/tmpx", ACCESS_NONE, NULL);
	expect(&policy, "/run", ACCESS_READ_WRITE, "/run");
	expect(&policy, "/var", ACCESS_NONE, NULL);
	expect(&policy, "/var/tmp/x", ACCESS_READ_WRITE, "/var/tmp");
	expect(&policy, "/dev/null", ACCESS_READ_ONLY, "/dev");
	expect(&policy, "/dev/shm/x", ACCESS_READ_WRITE, "/dev/shm");
	expect(&policy, "/proc/self", ACCESS_READ_WRITE, "/proc");
	expect(&policy, "/sys/fs", ACCESS_NONE, NULL);
	expect(&policy, "relative", ACCESS_NONE, NULL);
}

static void rules_stand_on_top(void **state)
{
	AUTO(policy_deinit) struct policy policy = POLICY_INIT;

	(void)state;
	add(&policy, "/tmp", ACCESS_READ_ONLY);
	add(&policy, "/run/user/1000", ACCESS_READ_WRITE);
	add(&policy, "/run/user/1000/keys", ACCESS_DENY);
	add(&policy, "/var", ACCESS_READ_ONLY);
	expect(&policy, "/tmp/x", ACCESS_READ_ONLY, "/tmp");
	expect(&policy, "/run/user", ACCESS_READ_WRITE, "/run");
	expect(&policy, "/run/user/1000/keys/x", ACCESS_DENY, "/run/user/1000/keys");
	expect(&policy, "/var/lib", ACCESS_READ_ONLY, "/var");
	expect(&policy, "/var/tmp/x", ACCESS_READ_WRITE, "/var/tmp");
}

static void a_root_rule_shows_the_host(void **state)
{
	AUTO(policy_deinit) struct policy policy = POLICY_INIT;

	(void)state;
	add(&policy, "/", ACCESS_READ_WRITE);
	add(&policy, "/var/tmp/x", ACCESS_DENY);
	assert_true(sysmount_root_shown(&policy.rules));
	expect(&policy, "/tmp/x", ACCESS_READ_WRITE, "/");
	expect(&policy, "/var/tmp/x", ACCESS_DENY, "/var/tmp/x");
	expect(&policy, "/dev/sda", ACCESS_READ_ONLY, "/dev");
	expect(&policy, "/dev/shm/x", ACCESS_READ_WRITE, "/dev/shm");
	expect(&policy, "/proc/1", ACCESS_READ_WRITE, "/proc");
	expect(&policy, "/sys/kernel", ACCESS_READ_ONLY, "/sys");
	expect(&policy, "/sys/fs/cgroup/x", ACCESS_DENY, "/sys/fs/cgroup");
}

static void a_denied_root_shows_nothing(void **state)
{
	AUTO(policy_deinit) struct policy policy = POLICY_INIT;

	(void)state;
	add(&policy, "/", ACCESS_DENY);
	assert_false(sysmount_root_shown(&policy.rules));
	expect(&policy, "/tmp/x", ACCESS_READ_WRITE, "/tmp");
	expect(&policy, "/usr", ACCESS_DENY, "/");
	expect(&policy, "/sys/fs", ACCESS_DENY, "/");
}

static void control_groups_are_never_shown(void **state)
{
	AUTO(policy_deinit) struct policy policy = POLICY_INIT;

	(void)state;
	add(&policy, "/sys/fs", ACCESS_READ_ONLY);
	expect(&policy, "/sys", ACCESS_NONE, NULL);
	expect(&policy, "/sys/fs/x", ACCESS_READ_ONLY, "/sys/fs");
	expect(&policy, "/sys/fs/cgroup", ACCESS_DENY, "/sys/fs/cgroup");
}

static void rules_on_what_stays_ours(void **state)
{
	static const struct {
		const char *path;
		enum access access;
		const char *why; /* NULL: fine */
	} rows[] = {
		{ "/proc", ACCESS_DENY, "every job has its own /proc" },
		{ "/proc", ACCESS_READ_ONLY, "every job has its own /proc" },
		{ "/proc/meminfo", ACCESS_READ_ONLY, "every job has its own /proc" },
		{ "/proc/meminfo", ACCESS_DENY, NULL },
		{ "/proc/1/environ", ACCESS_DENY, "processes inside are not those outside" },
		{ "/proc/self", ACCESS_DENY, "processes inside are not those outside" },
		{ "/proc/thread-self/x", ACCESS_DENY, "processes inside are not those outside" },
		{ "/proc/selfish", ACCESS_DENY, NULL },
		{ "/proc/1x", ACCESS_DENY, NULL },
		{ "/processes", ACCESS_READ_WRITE, NULL },
		{ "/dev", ACCESS_DENY, "every job has its own /dev" },
		{ "/dev", ACCESS_READ_WRITE, "every job has its own /dev" },
		{ "/dev/null", ACCESS_DENY, NULL },
		{ "/dev/kvm", ACCESS_READ_WRITE,
		  "only null, zero, full, random, urandom, tty, ptmx, pts and shm are in /dev, and "
		  "they need no grant" },
		{ "/dev/shm", ACCESS_READ_WRITE, NULL },
		{ "/dev/shm/x", ACCESS_READ_ONLY, NULL },
		{ "/sys", ACCESS_READ_ONLY, NULL },
		{ "/sys", ACCESS_DENY, NULL },
		{ "/sys", ACCESS_READ_WRITE, "/sys is never writable" },
		{ "/sys/kernel/x", ACCESS_READ_WRITE, "/sys is never writable" },
		{ "/sys/fs/cgroup", ACCESS_READ_ONLY, "control groups are never shown" },
		{ "/sys/fs/cgroup/x", ACCESS_DENY, NULL },
		{ "/", ACCESS_READ_WRITE, NULL },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct error err = ERROR_INIT;
		struct rule rule = { .path = (char *)rows[i].path,
				     .access = rows[i].access,
				     .source = RULE_USER };
		int r = sysmount_check_rule(&rule, &err);

		assert_int_equal(r, rows[i].why ? -ERR_POLICY_INVALID : 0);
		if (rows[i].why)
			assert_non_null(strstr(err.message, rows[i].why));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_table_is_sorted_as_rules_are),
		cmocka_unit_test(without_rules_only_ours_is_there),
		cmocka_unit_test(rules_stand_on_top),
		cmocka_unit_test(a_root_rule_shows_the_host),
		cmocka_unit_test(a_denied_root_shows_nothing),
		cmocka_unit_test(control_groups_are_never_shown),
		cmocka_unit_test(rules_on_what_stays_ours),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
