/* SPDX-License-Identifier: Apache-2.0 */
#include "common/plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/path.h"
#include "common/scope.h"
#include "common/sysmount.h"
#include "tests/gen_policy.h"
#include "tests/plan_text.h"
#include "tests/test.h"

static int build(const char *rules, uint32_t harden, struct plan *ret_plan, struct error *err)
{
	AUTO(policy_deinit) struct policy policy = policy_of(rules);
	struct plan_options options = { .harden = harden, .chdir = "/p" };

	return plan_build(ret_plan, &policy, &options, err);
}

/* The operations that come from rules, one a line. */
static void expect(const char *rules, const char *expected)
{
	AUTO(plan_deinit) struct plan plan = PLAN_INIT;
	AUTO(buf_deinit) struct buf text = BUF_INIT(1 << 20);
	struct error err = ERROR_INIT;

	if (build(rules, PLAN_HARDEN_ALL, &plan, &err) < 0)
		fail_msg("%s: %s", rules, err.message);
	plan_text(&plan, true, &text);
	assert_string_equal(buf_text(&text), expected);
}

static void expect_all(const char *rules, uint32_t harden, const char *expected)
{
	AUTO(plan_deinit) struct plan plan = PLAN_INIT;
	AUTO(buf_deinit) struct buf text = BUF_INIT(1 << 20);
	struct error err = ERROR_INIT;

	assert_int_equal(build(rules, harden, &plan, &err), 0);
	plan_text(&plan, false, &text);
	assert_string_equal(buf_text(&text), expected);
}

static void refuse(const char *rules, enum error_kind kind, const char *message)
{
	AUTO(plan_deinit) struct plan plan = PLAN_INIT;
	struct error err = ERROR_INIT;

	assert_int_equal(build(rules, PLAN_HARDEN_ALL, &plan, &err), -(int)kind);
	assert_string_equal(err.message, message);
}

static void the_frame_hardened_and_plain(void **state)
{
	(void)state;
	expect_all("", PLAN_HARDEN_ALL,
		   "root /\ndev /dev\nproc /proc\ntmpfs /run\ntmpfs /tmp\ntmpfs /dev/shm\n"
		   "tmpfs /var/tmp\nseal /dev\nseal /\n");
	expect_all("", 0,
		   "root /\nproc /proc\ndev /dev\ntmpfs /tmp\ntmpfs /run\ntmpfs /var/tmp\n"
		   "tmpfs /dev/shm\n");
}

static void grants_and_masks_by_depth(void **state)
{
	(void)state;
	expect("rw:/p ro:/q deny:/p/.env=file deny:/p/d deny:/p/s=sock deny:/nowhere",
	       "bind /p\nbind /q ro\nmask-file /p/.env\nmask-dir /p/d\nmask-file /p/s\n");
	expect("rw:/f=file deny:/f/x=absent!ignore", "bind /f file\n");
	/* Nothing takes the place of a file that goes where nothing would be made for an absent one. */
	expect("rw:/p deny:/p/a=file!watch deny:/p/b=file!placeholder deny:/p/c!ignore "
	       "deny:/p/d=file!report",
	       "bind /p\nmask-file /p/a let-go\nmask-file /p/b\nmask-dir /p/c\n"
	       "mask-file /p/d let-go\n");
	expect("rw:/p deny:/p/a deny:/p/a/b", "bind /p\nmask-dir /p/a\n");
	expect("deny:/p/a ro:/p/a/b", "bind /p/a/b ro\n");
	expect("rw:/p deny:/p/a ro:/p/a/b deny:/p/a/b/c",
	       "bind /p\nmask-tree /p/a\nbind /p/a/b ro\nmask-dir /p/a/b/c\nseal /p/a\n");
	expect("rw:/p deny:/p/a deny:/p/a/b rw:/p/a/b/c",
	       "bind /p\nmask-tree /p/a\nmask-tree /p/a/b\nbind /p/a/b/c\nseal /p/a\n"
	       "seal /p/a/b\n");
}

/* Plain first, ours behind it: system mounts no longer hide rules that stand on them. */
static void rules_at_and_below_fresh_places(void **state)
{
	(void)state;
	expect_all("ro:/var rw:/tmp", 0,
		   "root /\nproc /proc\ndev /dev\ntmpfs /tmp\ntmpfs /run\ntmpfs /var/tmp\n"
		   "tmpfs /dev/shm\nbind /tmp\nbind /var ro\n");
	expect_all("ro:/var rw:/tmp", PLAN_HARDEN_ALL,
		   "root /\ndev /dev\nproc /proc\ntmpfs /run\nbind /tmp\nbind /var ro\n"
		   "tmpfs /dev/shm\ntmpfs /var/tmp\nseal /dev\nseal /\n");
	expect("rw:/run/user/1000 deny:/tmp/secret deny:/tmp/gone=absent",
	       "mask-dir /tmp/gone\nmask-dir /tmp/secret\nbind /run/user/1000\n");
	expect("deny:/tmp ro:/tmp/x",
	       "bind /tmp/x ro\n"); /* nothing above is shown: no mask needed */
	expect("rw:/dev/shm deny:/dev/shm/a deny:/dev/tty=file",
	       "bind /dev/shm\nmask-file /dev/tty\nmask-dir /dev/shm/a\n");
	expect("deny:/proc/keys=file deny:/proc/gone=absent",
	       "mask-dir /proc/gone watch\nmask-file /proc/keys\n");
}

static void a_rule_on_the_root(void **state)
{
	(void)state;
	expect_all("rw:/ deny:/tmp/x", PLAN_HARDEN_ALL,
		   "root /\nbind /\ndev /dev\nproc /proc\nsys /sys ro\ntmpfs /dev/shm\n"
		   "mask-dir /tmp/x\nmask-dir /sys/fs/cgroup\npin /tmp\nseal /dev\n");
	expect_all("rw:/ deny:/sys ro:/sys/kernel", PLAN_HARDEN_ALL,
		   "root /\nbind /\ndev /dev\nproc /proc\nmask-tree /sys\ntmpfs /dev/shm\n"
		   "bind /sys/kernel ro\nseal /sys\nseal /dev\n");
	expect_all("deny:/", PLAN_HARDEN_ALL,
		   "root /\ndev /dev\nproc /proc\ntmpfs /run\ntmpfs /tmp\ntmpfs /dev/shm\n"
		   "tmpfs /var/tmp\nseal /dev\nseal /\n");
	expect_all("ro:/", PLAN_HARDEN_ORDER,
		   "root /\nbind / ro\ndev /dev\nproc /proc\ntmpfs /run\ntmpfs /tmp\n"
		   "tmpfs /dev/shm\ntmpfs /var/tmp\n");
	expect("ro:/sys deny:/sys/kernel/debug", "sys /sys ro\nmask-dir /sys/kernel/debug\n");
	expect("ro:/sys/fs", "bind /sys/fs ro\n");
	expect("ro:/sys deny:/sys/fs/cgroup/x", "sys /sys ro\n");
}

/* A deny of what is absent: never a placeholder in a readOnly tree (R26). */
static void R26_absent_denies(void **state)
{
	(void)state;
	expect("rw:/p deny:/p/gone=absent", "bind /p\nmask-dir /p/gone placeholder\n");
	expect("rw:/p deny:/p/gone=absent!placeholder", "bind /p\nmask-dir /p/gone placeholder\n");
	expect("rw:/p deny:/p/gone=absent!watch", "bind /p\nmask-dir /p/gone watch\n");
	expect("rw:/p deny:/p/gone=absent!report", "bind /p\nnotice /p/gone\n");
	expect("ro:/p deny:/p/gone=absent!report", "bind /p ro\nnotice /p/gone\n");
	expect("rw:/p@/priv/p deny:/p/gone=absent!report", "bind /p <- /priv/p private\n");
	expect("rw:/p deny:/p/gone=absent!ignore", "bind /p\n");
	expect("ro:/p deny:/p/gone=absent", "bind /p ro\nmask-dir /p/gone watch\n");
	expect("ro:/p deny:/p/gone=absent!placeholder", "bind /p ro\nmask-dir /p/gone watch\n");
	expect("deny:/p/gone=absent", "");
	expect("rw:/p deny:/p/gone=absent deny:/p/gone/x=absent",
	       "bind /p\nmask-dir /p/gone placeholder\n");
	/* What is only watched hides nothing from a deny below it. */
	expect("rw:/p deny:/p/gone=absent!report deny:/p/gone/x=absent",
	       "bind /p\nnotice /p/gone\nmask-dir /p/gone/x placeholder\npin /p/gone\n");
	expect("rw:/p deny:/p/gone=absent!watch deny:/p/gone/x=absent",
	       "bind /p\nmask-dir /p/gone watch\nmask-dir /p/gone/x placeholder\npin /p/gone\n");
	expect("rw:/p deny:/p/gone=absent!watch rw:/p/gone/x=absent@/priv/x",
	       "bind /p\nmask-dir /p/gone watch\nbind /p/gone/x <- /priv/x placeholder private\n");
	expect_all("rw:/p deny:/p/gone=absent", 0,
		   "root /\nproc /proc\ndev /dev\ntmpfs /tmp\ntmpfs /run\ntmpfs /var/tmp\n"
		   "tmpfs /dev/shm\nbind /p\nmask-dir /p/gone\n");
}

static void absent_grants(void **state)
{
	(void)state;
	expect("rw:/p ro:/q=absent?", "bind /p\n");
	expect("rw:/p deny:/p/a ro:/p/a/b=absent?", "bind /p\nmask-dir /p/a\n");
	refuse("ro:/q=absent", ERR_PATH_NOT_FOUND, "readOnly '/q' (test): does not exist");
}

static void private_directories(void **state)
{
	(void)state;
	expect("rw:/h/.cache@/priv/cache", "bind /h/.cache <- /priv/cache private\n");
	expect("rw:/h/.cache=absent@/priv/cache", "bind /h/.cache <- /priv/cache private\n");
	expect("rw:/h rw:/h/.cache=absent@/priv/cache",
	       "bind /h\nbind /h/.cache <- /priv/cache placeholder private\n");
	expect("rw:/h rw:/h/.cache@/priv/cache deny:/h/.cache/x=absent",
	       "bind /h\nbind /h/.cache <- /priv/cache private\nmask-dir /h/.cache/x\n");
	refuse("ro:/h rw:/h/.cache=absent@/priv/cache", ERR_POLICY_INVALID,
	       "readWrite '/h/.cache' (test): the path does not exist, and nothing can be mounted "
	       "there because what is above it is read-only");
	expect("rw:/h deny:/h/d=absent rw:/h/d/c=absent@/priv/c",
	       "bind /h\nmask-tree /h/d placeholder\nbind /h/d/c <- /priv/c private\nseal /h/d\n");
	refuse("ro:/h deny:/h/d=absent rw:/h/d/c=absent@/priv/c", ERR_POLICY_INVALID,
	       "deny '/h/d' (test): the path does not exist, and nothing can be mounted there "
	       "because what is above it is read-only");
}

static void links_keep_their_node(void **state)
{
	(void)state;
	expect("rw:/p deny:/p/l~ deny:/p/target=file ro:/p/m~",
	       "bind /p\nmask-file /p/l link\nbind /p/m ro file link\nmask-file /p/target\n");
}

static void nonsense_is_refused(void **state)
{
	(void)state;
	refuse("rw:/p deny:/p/f=file ro:/p/f/x", ERR_POLICY_INVALID,
	       "deny '/p/f' (test): it is no directory, so nothing below it can be granted");
	refuse("rw:/proc", ERR_POLICY_INVALID,
	       "readWrite '/proc' (test): every job has its own /proc");
	refuse("rw:/a/./b", ERR_POLICY_INVALID, "a rule's path '/a/./b' has a '.' segment");
}

static void unmerged_rules_are_refused(void **state)
{
	static const char *const lists[][2] = { { "/b", "/a" }, { "/a", "/a" }, { "/a/b", "/c" } };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(lists); i++) {
		AUTO(policy_deinit) struct policy policy = POLICY_INIT;
		AUTO(plan_deinit) struct plan plan = PLAN_INIT;
		struct plan_options options = { .harden = PLAN_HARDEN_ALL, .chdir = "/" };
		struct error err = ERROR_INIT;

		for (size_t j = 0; j < 2; j++)
			assert_non_null(rule_list_add(&policy.rules, lists[i][j], ACCESS_READ_ONLY,
						      RULE_USER, NULL, &err));
		assert_int_equal(plan_build(&plan, &policy, &options, &err), -ERR_POLICY_INVALID);
		assert_non_null(strstr(err.message, "the rules are not merged at"));
	}
}

static void links_of_a_merged_usr(void **state)
{
	static const struct plan_symlink links[] = { { "/bin", "usr/bin" },
						     { "/lib", "usr/lib" },
						     { "/tmp", "var/tmp" } };
	struct plan_options options = { .harden = PLAN_HARDEN_ALL,
					.symlinks = links,
					.symlink_count = ARRAY_SIZE(links),
					.chdir = "/" };
	AUTO(policy_deinit) struct policy policy = policy_of("ro:/usr ro:/lib/x");
	AUTO(policy_deinit) struct policy root = policy_of("ro:/");
	AUTO(plan_deinit) struct plan plan = PLAN_INIT;
	AUTO(plan_deinit) struct plan root_plan = PLAN_INIT;
	struct error err = ERROR_INIT;
	size_t symlinks = 0;

	(void)state;
	assert_int_equal(plan_build(&plan, &policy, &options, &err), 0);
	assert_int_equal(plan.ops[1].kind, PLAN_SYMLINK);
	assert_string_equal(plan.ops[1].path, "/bin");
	assert_string_equal(plan.ops[1].source, "usr/bin");
	for (size_t i = 0; i < plan.count; i++)
		symlinks += plan.ops[i].kind == PLAN_SYMLINK;
	assert_int_equal(symlinks, 1); /* a rule below /lib, our own place at /tmp */

	assert_int_equal(plan_build(&root_plan, &root, &options, &err), 0);
	assert_int_equal(root_plan.ops[1].kind, PLAN_BIND);
}

/* A grant that was spelled through a link gets a link where nothing else is. */
static void links_of_grants(void **state)
{
	(void)state;
	expect("ro:/opt/nvm>/h/.nvm", "symlink /h/.nvm <- /opt/nvm\nbind /opt/nvm ro\n");
	expect("rw:/h ro:/opt/nvm>/h/.nvm", "bind /h\nbind /opt/nvm ro\n");
	expect("ro:/opt/nvm>/tmp/nvm", "bind /opt/nvm ro\n");
	expect("ro:/h/.nvm/x ro:/opt/nvm>/h/.nvm", "bind /opt/nvm ro\nbind /h/.nvm/x ro\n");
	expect("ro:/d/a>/h/c ro:/d/b>/h/c/b", "symlink /h/c <- /d/a\nbind /d/a ro\nbind /d/b ro\n");
	expect("deny:/h ro:/d/a>/h/c", "symlink /h/c <- /d/a\nbind /d/a ro\n");
	expect("ro:/d/a=absent?>/h/c", "");
	/* One place by several names, one of them without links; and one that is denied after all. */
	expect("ro:/d/a>/h/c ro:/d/a>/h/b ro:/d/a",
	       "symlink /h/b <- /d/a\nsymlink /h/c <- /d/a\nbind /d/a ro\n");
	expect("ro:/d rw:/d/a>/h/c deny:/d/a", "bind /d ro\nmask-dir /d/a\n");
}

static void switches_follow_the_policy(void **state)
{
	AUTO(policy_deinit) struct policy policy = policy_of("rw:/p");
	AUTO(plan_deinit) struct plan none = PLAN_INIT;
	AUTO(plan_deinit) struct plan host = PLAN_INIT;
	AUTO(plan_deinit) struct plan skip = PLAN_INIT;
	AUTO(plan_deinit) struct plan kept = PLAN_INIT;
	struct plan_options options = { .harden = PLAN_HARDEN_ALL, .skip_pid = true };
	struct error err = ERROR_INIT;

	(void)state;
	assert_int_equal(plan_build(&none, &policy, &options, &err), 0);
	assert_int_equal(none.unshare, PLAN_UNSHARE_ALL);
	assert_string_equal(none.chdir, "/");
	policy.net = NET_HOST;
	assert_int_equal(plan_build(&host, &policy, &options, &err), 0);
	assert_int_equal(host.unshare, PLAN_UNSHARE_ALL & ~PLAN_UNSHARE_NET);
	assert_int_equal(host.net, NET_HOST);
	options.harden = 0;
	assert_int_equal(plan_build(&skip, &policy, &options, &err), 0);
	assert_int_equal(skip.unshare, PLAN_UNSHARE_ALL & ~(PLAN_UNSHARE_NET | PLAN_UNSHARE_PID));
}

/* Rules on and around the system places, put among random ones. */
static void add_system_rules(struct gen *gen, struct rule_list *list)
{
	static const char *const paths[] = {
		"/",           "/tmp",          "/tmp/a",       "/tmp/a/b",
		"/run",        "/run/user/1",   "/var",         "/var/tmp",
		"/var/tmp/a",  "/dev/shm",      "/dev/shm/x/y", "/dev/null",
		"/proc/keys",  "/sys",          "/sys/fs",      "/sys/fs/cgroup",
		"/sys/kernel", "/sys/kernel/a", "/var/tmp/a/b",
	};
	uint32_t count = gen_below(gen, 6);

	for (uint32_t i = 0; i < count; i++) {
		const struct rule wanted = {
			.path = (char *)paths[gen_below(gen, ARRAY_SIZE(paths))],
			.access = ACCESS_READ_WRITE + gen_below(gen, 3),
		};

		if (sysmount_check_rule(&wanted, NULL) == 0)
			assert_non_null(rule_list_add(list, wanted.path, wanted.access,
						      RULE_BASELINE, NULL, NULL));
	}
}

/* Absent denies and private directories where they make sense: on leaves. */
static void vary_leaves(struct gen *gen, struct rule_list *rules)
{
	static const enum absent_mode modes[] = { ABSENT_DEFAULT, ABSENT_PLACEHOLDER,
						  ABSENT_WATCH };

	for (size_t i = 0; i < rules->count; i++) {
		struct rule *rule = &rules->rules[i];
		bool leaf = strcmp(rule->path, "/") != 0;

		for (size_t other = 0; leaf && other < rules->count; other++)
			leaf = other == i || !path_covers(rule->path, rules->rules[other].path);
		if (!leaf || gen_below(gen, 3) != 0)
			continue;
		if (rule->access == ACCESS_DENY) {
			rule->type = NODE_ABSENT;
			rule->absent = modes[gen_below(gen, ARRAY_SIZE(modes))];
		} else if (!path_covers("/sys", rule->path)) {
			rule->bind_source = strdup("/private/x");
		}
	}
}

static bool same_answer(enum access plan, enum access policy)
{
	bool plan_closed = plan == ACCESS_NONE || plan == ACCESS_DENY;
	bool policy_closed = policy == ACCESS_NONE || policy == ACCESS_DENY;

	return plan_closed || policy_closed ? plan_closed == policy_closed : plan == policy;
}

/* The mounts let through exactly what the policy says, system places included. */
static void plans_mean_what_policies_say(void **state)
{
	enum { POLICIES = 6000, PROBES = 40 };
	size_t open = 0;
	size_t closed = 0;

	(void)state;
	for (uint64_t seed = 0; seed < POLICIES; seed++) {
		struct gen gen = gen_start(seed);
		struct gen_options options = { .max_rules = 1 + gen_below(&gen, 30),
					       .max_depth = 1 + gen_below(&gen, 6),
					       .bytes = seed % 2 == 0,
					       .root = seed % 3 == 0,
					       .files = true };
		struct plan_options plan_options = { .harden = PLAN_HARDEN_ALL, .chdir = "/" };
		AUTO(policy_deinit) struct policy policy = POLICY_INIT;
		AUTO(rule_list_deinit) struct rule_list random = RULE_LIST_INIT;
		AUTO(plan_deinit) struct plan plan = PLAN_INIT;
		struct error err = ERROR_INIT;

		gen_rules(&gen, &random, &options);
		add_system_rules(&gen, &random);
		assert_int_equal(rule_list_merge(&policy.rules, &random, &err), 0);
		vary_leaves(&gen, &policy.rules);
		assert_int_equal(policy_index(&policy, &err), 0);
		if (plan_build(&plan, &policy, &plan_options, &err) < 0)
			fail_msg("seed %d: %s", (int)seed, err.message);

		for (int i = 0; i < PROBES; i++) {
			AUTO(auto_free) char *probe = gen_probe(&gen, &policy.rules, &options);
			enum access expected = sysmount_verdict(&policy, probe).access;
			enum access seen = plan_access(&plan, probe);

			if (!same_answer(seen, expected))
				fail_msg("seed %d, '%s': plan %s, policy %s", (int)seed, probe,
					 access_name(seen), access_name(expected));
			if (seen == ACCESS_NONE || seen == ACCESS_DENY)
				closed++;
			else
				open++;
		}
	}
	assert_true(open > 20000);
	assert_true(closed > 20000);
}

static double seconds_to_build(size_t count, bool nested)
{
	AUTO(rule_list_deinit) struct rule_list candidates = RULE_LIST_INIT;
	AUTO(policy_deinit) struct policy policy = POLICY_INIT;
	AUTO(plan_deinit) struct plan plan = PLAN_INIT;
	struct plan_options options = { .harden = PLAN_HARDEN_ALL, .chdir = "/" };
	struct timespec before;
	struct timespec after;
	char path[256];

	for (size_t i = 0; i < count; i++) {
		if (nested)
			(void)snprintf(path, sizeof(path), "/home/user/work/p%zu/a/b%zu", i / 50,
				       i % 50);
		else
			(void)snprintf(path, sizeof(path), "/home/user/work/project/file-%zu", i);
		assert_non_null(rule_list_add(&candidates, path,
					      i % 3 ? ACCESS_DENY : ACCESS_READ_WRITE, RULE_USER,
					      NULL, NULL));
	}
	assert_non_null(rule_list_add(&candidates, "/home/user/work", ACCESS_READ_WRITE, RULE_USER,
				      NULL, NULL));
	(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &before);
	assert_int_equal(rule_list_merge(&policy.rules, &candidates, NULL), 0);
	assert_int_equal(policy_index(&policy, NULL), 0);
	assert_int_equal(plan_build(&plan, &policy, &options, NULL), 0);
	(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &after);
	return (double)(after.tv_sec - before.tv_sec) +
	       (double)(after.tv_nsec - before.tv_nsec) / 1e9;
}

/* Ten times the rules take about ten times as long, not a hundred times. */
static void cost_grows_with_the_rules_not_their_square(void **state)
{
	(void)state;
	for (int nested = 0; nested < 2; nested++) {
		double small = seconds_to_build(2000, nested);
		double large = seconds_to_build(20000, nested);

		print_message("%s: 2,000 rules %.2f ms, 20,000 rules %.2f ms\n",
			      nested ? "nested" : "flat", small * 1e3, large * 1e3);
		assert_true(large < small * 40 + 0.05);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_frame_hardened_and_plain),
		cmocka_unit_test(grants_and_masks_by_depth),
		cmocka_unit_test(rules_at_and_below_fresh_places),
		cmocka_unit_test(a_rule_on_the_root),
		cmocka_unit_test(R26_absent_denies),
		cmocka_unit_test(absent_grants),
		cmocka_unit_test(private_directories),
		cmocka_unit_test(links_keep_their_node),
		cmocka_unit_test(nonsense_is_refused),
		cmocka_unit_test(unmerged_rules_are_refused),
		cmocka_unit_test(links_of_a_merged_usr),
		cmocka_unit_test(links_of_grants),
		cmocka_unit_test(switches_follow_the_policy),
		cmocka_unit_test(plans_mean_what_policies_say),
		cmocka_unit_test(cost_grows_with_the_rules_not_their_square),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
