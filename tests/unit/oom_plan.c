/* SPDX-License-Identifier: Apache-2.0 */

/* As oom.c, for what makes policies and plans and reads the host's configuration. */

#include <stdlib.h>
#include <string.h>

#include "common/bwrap.h"
#include "common/expression.h"
#include "common/generic.h"
#include "common/hostconf.h"
#include "common/plan.h"
#include "common/protect.h"
#include "common/scope.h"
#include "common/settle.h"
#include "tests/plan_text.h"
#include "tests/test.h"
#include "tests/unit/short_memory.h"

/* Candidates as text, without touching what is granted. */
static void candidates(const char *text, struct rule_list *list)
{
	long saved = memory_granted;

	memory_granted = -1;
	rules_of(text, list);
	memory_granted = saved;
}

static struct policy settled(const char *text)
{
	long saved = memory_granted;
	struct policy policy;

	memory_granted = -1;
	policy = policy_of(text);
	memory_granted = saved;
	return policy;
}

static void add(struct string_list *list, const char *text)
{
	long saved = memory_granted;

	memory_granted = -1;
	assert_int_equal(string_list_add(list, text, NULL), 0);
	memory_granted = saved;
}

static int parse(struct error *err)
{
	static const char text[] = "mandatory-deny = /a\ndefault-engine = bwrap\n"
				   "admit-confined-uid = 7\nhost-env@u = A=b\nhost-env = C=d\n";
	struct hostconf conf;
	int r = hostconf_init(&conf, err);

	if (r == 0)
		r = hostconf_parse(&conf, text, strlen(text), "f", false, err);
	hostconf_deinit(&conf);
	return r;
}

static int settle(struct error *err)
{
	AUTO(rule_list_deinit) struct rule_list list = RULE_LIST_INIT;
	AUTO(policy_deinit) struct policy policy = POLICY_INIT;
	const struct settle_options options = { .absent_deny = ABSENT_REPORT, .cwd = "/p" };

	candidates("rw:/p deny:/p/l</t>/p/l ro:/h/x</opt/x>/h/x mandatory/deny:/m rw:/m/x "
		   "deny:/p/gone=absent ro:/q=absent?",
		   &list);
	return policy_settle(&policy, &list, &options, err);
}

static int express(struct error *err)
{
	AUTO(policy_deinit) struct policy policy = settled("ro:/p rw:/q");
	AUTO(rule_list_deinit) struct rule_list writes = RULE_LIST_INIT;
	AUTO(rule_list_deinit) struct rule_list denies = RULE_LIST_INIT;
	AUTO(rule_list_deinit) struct rule_list finals = RULE_LIST_INIT;
	const struct expression_facts facts = { .write_matches = &writes,
						.deny_matches = &denies,
						.final_read_only = &finals };

	add(&policy.write_regexes, "^/p/f$");
	add(&policy.deny_regexes, "^/p/g$");
	add(&policy.deny_regexes, "^/p/absent$");
	add(&policy.final_read_only, "/q");
	candidates("ro:/p/f=file", &writes);
	candidates("ro:/p/g=file", &denies);
	candidates("ro:/q", &finals);
	return policy_hold_expressions(&policy, &facts, err);
}

static int assemble(struct error *err)
{
	AUTO(rule_list_deinit) struct rule_list list = RULE_LIST_INIT;
	AUTO(rule_list_deinit) struct rule_list rules = RULE_LIST_INIT;
	AUTO(string_list_deinit) struct string_list names = { .items = NULL };
	const struct generic_input input = { .home = "/h",
					     .cwd = "/h/p",
					     .cache_home = "/x",
					     .private_root = "/priv",
					     .caches = &names,
					     .own_deny = &names,
					     .rules = &rules };

	add(&names, "/h/c");
	candidates("ro:/opt/x", &rules);
	return generic_assemble(&list, &input, err);
}

static int assemble_host(struct error *err)
{
	AUTO(rule_list_deinit) struct rule_list list = RULE_LIST_INIT;
	const struct generic_input input = { .home = "/h",
					     .cwd = "/h/p",
					     .runtime_dir = "/run/user/7" };

	return host_assemble(&list, &input, err);
}

static int protect(struct error *err)
{
	AUTO(rule_list_deinit) struct rule_list list = RULE_LIST_INIT;
	AUTO(protect_watch_deinit) struct protect_watch watch = { .report.items = NULL };
	const struct protect_found found[] = { { 0, "/p/.bashrc", "/d/bashrc", NODE_FILE },
					       { 1, "/p/.bash_profile", NULL, NODE_ABSENT } };
	const struct protect_repository repository = { .dot_git = "/p/.git",
						       .is_file = true,
						       .git_dir = "/r/.git/worktrees/p",
						       .common_dir = "/r/.git",
						       .hooks_dir = "/r/h",
						       .points_back = true };
	const struct protect_facts facts = { .found = found,
					     .found_count = ARRAY_SIZE(found),
					     .repositories = &repository,
					     .repository_count = 1 };

	return protect_rules(&list, &facts, &watch, err);
}

static const char *const rules =
	"rw:/p deny:/p/.env=file deny:/p/d ro:/p/d/x ro:/opt/n>/h/n rw:/c@/priv/c";

static int plan(struct error *err)
{
	AUTO(policy_deinit) struct policy policy = settled(rules);
	AUTO(plan_deinit) struct plan made = PLAN_INIT;
	AUTO(plan_deinit) struct plan back = PLAN_INIT;
	AUTO(string_list_deinit) struct string_list list = { .items = NULL };
	AUTO(hostconf_deinit) struct hostconf conf = { .max_net = NET_HOST };
	AUTO(buf_deinit) struct buf bytes = BUF_INIT(1 << 20);
	AUTO(buf_deinit) struct buf args = BUF_INIT(1 << 20);
	const struct bwrap_options engine = { .mask_dir = "/m/d", .mask_file = "/m/f" };
	const struct plan_options options = { .harden = PLAN_HARDEN_ALL,
					      .chdir = "/p",
					      .file_paths = &list };
	int r = 0;

	add(&list, "/priv");
	r = plan_build(&made, &policy, &options, err);
	if (r == 0)
		r = plan_encode(&made, &bytes, err);
	if (r == 0)
		r = plan_decode(&back, bytes.data, bytes.size, err);
	if (r == 0)
		r = plan_check(&back, &conf, NULL, NULL, &list, err);
	if (r == 0)
		r = bwrap_compile(&back, &engine, &args, err);
	return r;
}

static int plan_plain(struct error *err)
{
	AUTO(policy_deinit) struct policy policy = settled(rules);
	AUTO(plan_deinit) struct plan made = PLAN_INIT;
	AUTO(bwrap_plain_deinit) struct bwrap_plain plain = { .mask_mount_is_dir = NULL };
	AUTO(string_list_deinit) struct string_list files = { .items = NULL };
	const struct bwrap_plain_options names = { .empty_dir = "/e", .empties_dir = "/es" };
	const struct plan_symlink link = { "/bin", "usr/bin" };
	const struct plan_options options = {
		.symlinks = &link, .symlink_count = 1, .chdir = "/p", .file_paths = &files
	};
	int r = 0;

	add(&files, "/p/.env");
	r = plan_build(&made, &policy, &options, err);
	return r == 0 ? bwrap_compile_plain(&made, &names, &plain, err) : r;
}

/* Indexing shrinks three arrays, which may fail: they stay as large as they were. */
static void everything(void **state)
{
	(void)state;
	run_short_of_memory(parse, 0);
	run_short_of_memory(settle, 3);
	run_short_of_memory(express, 9);
	run_short_of_memory(assemble, 0);
	run_short_of_memory(assemble_host, 0);
	run_short_of_memory(protect, 0);
	run_short_of_memory(plan, 0);
	run_short_of_memory(plan_plain, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(everything),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
