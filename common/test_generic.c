/* SPDX-License-Identifier: Apache-2.0 */
#include "common/generic.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/generic_table.h"
#include "common/limits.h"
#include "common/path.h"
#include "common/plan.h"
#include "common/scope.h"
#include "common/settle.h"
#include "tests/plan_text.h"
#include "tests/test.h"

/* What exists on the machine that these tests imagine. */
static const char *const existing[] = {
	"/usr",
	"/etc",
	"/etc/shadow",
	"/opt",
	"/h",
	"/h/.cargo",
	"/h/.ssh",
	"/h/.nvm",
	"/h/.config/git",
	"/h/.bashrc",
	"/h/.gitconfig",
	"/h/.cache",
	"/h/work/p",
	"/h/.config/gh",
	"/h/.cargo/credentials.toml",
	"/run/dbus",
	"/run/user/1/bus",
	"/tmp",
	"/h/.local/share/keyrings",
};

static void set_types(struct rule_list *list)
{
	for (size_t i = 0; i < list->count; i++) {
		list->rules[i].type = NODE_ABSENT;
		for (size_t j = 0; j < ARRAY_SIZE(existing); j++)
			if (path_covers(list->rules[i].path, existing[j]))
				list->rules[i].type = NODE_DIRECTORY;
	}
}

static void settle(const struct rule_list *candidates, const char *cwd, struct policy *ret_policy)
{
	AUTO(rule_list_deinit) struct rule_list copy = RULE_LIST_INIT;
	const struct settle_options options = { .cwd = cwd };
	struct error err = ERROR_INIT;

	for (size_t i = 0; i < candidates->count; i++) {
		struct rule rule = { .path = NULL };

		assert_int_equal(rule_copy(&rule, &candidates->rules[i], NULL), 0);
		assert_int_equal(rule_list_add_take(&copy, &rule, NULL), 0);
	}
	set_types(&copy);
	if (policy_settle(ret_policy, &copy, &options, &err) < 0)
		fail_msg("%s", err.message);
}

static const struct generic_input standard = {
	.home = "/h",
	.cwd = "/h/work/p",
	.private_root = "/h/.cache/fsbox/generic",
};

static void expect(const struct policy *policy, const char *path, enum access access)
{
	enum access seen = policy_access(policy, path).access;

	if (seen != access)
		fail_msg("'%s' is %s, not %s", path, access_name(seen), access_name(access));
}

static void an_ordinary_request(void **state)
{
	AUTO(rule_list_deinit) struct rule_list candidates = RULE_LIST_INIT;
	AUTO(policy_deinit) struct policy policy = POLICY_INIT;
	const struct rule *cache = NULL;

	(void)state;
	assert_int_equal(generic_assemble(&candidates, &standard, NULL), 0);
	settle(&candidates, standard.cwd, &policy);
	expect(&policy, "/usr/bin/env", ACCESS_READ_ONLY);
	expect(&policy, "/etc/passwd", ACCESS_READ_ONLY);
	expect(&policy, "/etc/shadow", ACCESS_DENY);
	expect(&policy, "/h", ACCESS_NONE);
	expect(&policy, "/h/other", ACCESS_NONE);
	expect(&policy, "/h/work", ACCESS_NONE);
	expect(&policy, "/h/work/p/x", ACCESS_READ_WRITE);
	expect(&policy, "/h/.cargo/bin/cargo", ACCESS_READ_ONLY);
	expect(&policy, "/h/.cargo/credentials.toml", ACCESS_DENY);
	expect(&policy, "/h/.ssh/id", ACCESS_DENY);
	expect(&policy, "/h/.cache/x", ACCESS_READ_WRITE);
	expect(&policy, "/srv", ACCESS_NONE);
	expect(&policy, "/sys/fs", ACCESS_NONE);
	cache = policy_access(&policy, "/h/.cache").rule;
	assert_string_equal(cache->bind_source, "/h/.cache/fsbox/generic/cache");
	cache = policy_access(&policy, "/h/.local/state/x").rule;
	assert_string_equal(cache->bind_source, "/h/.cache/fsbox/generic/local-state");
	assert_int_equal(policy.suppressed.count, 0);
	assert_int_equal(policy.note_count, 0);
}

static void moved_xdg_directories(void **state)
{
	AUTO(rule_list_deinit) struct rule_list candidates = RULE_LIST_INIT;
	AUTO(policy_deinit) struct policy policy = POLICY_INIT;
	struct generic_input input = standard;

	(void)state;
	input.config_home = "/x/config";
	input.cache_home = "/x/cache";
	input.data_home = "/x/data";
	input.state_home = "/x/state";
	assert_int_equal(generic_assemble(&candidates, &input, NULL), 0);
	settle(&candidates, NULL, &policy);
	expect(&policy, "/x/config/gh", ACCESS_DENY);
	expect(&policy, "/x/data/keyrings/x", ACCESS_DENY);
	expect(&policy, "/x/cache/y", ACCESS_READ_WRITE);
	expect(&policy, "/x/state/y", ACCESS_READ_WRITE);
	expect(&policy, "/h/.cache", ACCESS_NONE);
	expect(&policy, "/h/.ssh", ACCESS_DENY);
}

static void private_directories_are_optional(void **state)
{
	AUTO(rule_list_deinit) struct rule_list candidates = RULE_LIST_INIT;
	AUTO(rule_list_deinit) struct rule_list more = RULE_LIST_INIT;
	struct string_list caches = { .items = NULL };
	struct generic_input input = standard;

	(void)state;
	input.private_root = NULL;
	assert_int_equal(generic_assemble(&candidates, &input, NULL), 0);
	for (size_t i = 0; i < candidates.count; i++)
		assert_null(candidates.rules[i].bind_source);

	assert_int_equal(string_list_add(&caches, "/h/.foo/bar", NULL), 0);
	input.private_root = "/priv";
	input.caches = &caches;
	assert_int_equal(generic_assemble(&more, &input, NULL), 0);
	for (size_t i = 0; i < more.count; i++)
		if (strcmp(more.rules[i].path, "/h/.foo/bar") == 0)
			assert_string_equal(more.rules[i].bind_source, "/priv/h-.foo-bar");
	string_list_deinit(&caches);
}

static void users_paths_come_on_top(void **state)
{
	AUTO(rule_list_deinit) struct rule_list rules = RULE_LIST_INIT;
	AUTO(rule_list_deinit) struct rule_list candidates = RULE_LIST_INIT;
	AUTO(policy_deinit) struct policy policy = POLICY_INIT;
	AUTO(string_list_deinit) struct string_list targets = { .items = NULL };
	struct generic_input input = standard;

	(void)state;
	rules_of("ro:/h/.ssh/known_hosts? rw:/h/.nvm deny:/h/work/p/secret ro:/opt", &rules);
	assert_int_equal(string_list_add(&targets, "/usr/share/resolv", NULL), 0);
	input.rules = &rules;
	input.link_targets = &targets;
	assert_int_equal(generic_assemble(&candidates, &input, NULL), 0);
	settle(&candidates, input.cwd, &policy);
	expect(&policy, "/h/.nvm/x", ACCESS_READ_WRITE);
	expect(&policy, "/h/work/p/secret", ACCESS_DENY);
	expect(&policy, "/h/.ssh/id", ACCESS_DENY);
}

static void refuse(const struct generic_input *input, const char *message)
{
	AUTO(rule_list_deinit) struct rule_list candidates = RULE_LIST_INIT;
	struct error err = ERROR_INIT;

	assert_int_equal(generic_assemble(&candidates, input, &err), -ERR_POLICY_INVALID);
	assert_string_equal(err.message, message);
}

/* R21: readOnly stops nobody from connecting; what a grant does not show costs nothing. */
static void R21_sockets_below_grants(void **state)
{
	static const struct {
		const char *rules;
		const char *path;
		enum access access;
	} cases[] = {
		{ "ro:/run", "/run/docker.sock", ACCESS_DENY },
		{ "ro:/run", "/run/user/1/bus", ACCESS_DENY },
		{ "ro:/run", "/run/other", ACCESS_READ_ONLY },
		{ "rw:/run/user/1", "/run/user/1/systemd/private", ACCESS_DENY },
		{ "rw:/run/user/1", "/run/docker.sock", ACCESS_NONE },
		{ "ro:/run rw:/run/user/1/bus", "/run/user/1/bus", ACCESS_READ_WRITE },
		{ "rw:/tmp", "/tmp/.X11-unix/X0", ACCESS_DENY },
		{ "deny:/run", "/run/docker.sock", ACCESS_DENY },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		AUTO(rule_list_deinit) struct rule_list rules = RULE_LIST_INIT;
		AUTO(rule_list_deinit) struct rule_list candidates = RULE_LIST_INIT;
		AUTO(policy_deinit) struct policy policy = POLICY_INIT;
		struct generic_input input = standard;

		rules_of(cases[i].rules, &rules);
		input.rules = &rules;
		input.runtime_dir = "/run/user/1";
		assert_int_equal(generic_assemble(&candidates, &input, NULL), 0);
		settle(&candidates, input.cwd, &policy);
		expect(&policy, cases[i].path, cases[i].access);
	}
}

static void R21_sockets_by_another_name(void **state)
{
	AUTO(rule_list_deinit) struct rule_list rules = RULE_LIST_INIT;
	AUTO(rule_list_deinit) struct rule_list candidates = RULE_LIST_INIT;
	struct generic_input input = standard;
	bool found = false;

	(void)state;
	rules_of("ro:/var/run", &rules);
	input.rules = &rules;
	assert_int_equal(generic_assemble(&candidates, &input, NULL), 0);
	for (size_t i = 0; i < candidates.count; i++)
		found = found || (candidates.rules[i].access == ACCESS_DENY &&
				  strcmp(candidates.rules[i].path, "/run/docker.sock") == 0);
	assert_true(found);
}

static void links_to_the_home_directory(void **state)
{
	AUTO(rule_list_deinit) struct rule_list candidates = RULE_LIST_INIT;
	struct generic_input input = { .home = "/h/u" };
	struct error err = ERROR_INIT;

	(void)state;
	rules_of("rw:/h/u/p ro:/h/u/l", &candidates);
	candidates.rules[1].real = strdup("/");
	assert_int_equal(generic_check_places(&candidates, &input, NULL), 0);
	candidates.rules[0].real = strdup("/h/u/elsewhere");
	assert_int_equal(generic_check_places(&candidates, &input, NULL), 0);
	for (int i = 0; i < 3; i++) {
		static const char *const places[] = { "/h/u", "/h", "/" };
		char message[200];

		free(candidates.rules[0].real);
		candidates.rules[0].real = strdup(places[i]);
		input.allow_home = false;
		assert_int_equal(generic_check_places(&candidates, &input, &err),
				 -ERR_POLICY_INVALID);
		(void)snprintf(message, sizeof(message),
			       "readWrite '/h/u/p' (test) leads through a link to '%s' and would "
			       "open the home directory: allow this with --allow-home",
			       places[i]);
		assert_string_equal(err.message, message);
		input.allow_home = true;
		assert_int_equal(generic_check_places(&candidates, &input, NULL), 0);
	}
}

static void homes_and_working_directories(void **state)
{
	AUTO(rule_list_deinit) struct rule_list rules = RULE_LIST_INIT;
	AUTO(rule_list_deinit) struct rule_list granted = RULE_LIST_INIT;
	AUTO(rule_list_deinit) struct rule_list candidates = RULE_LIST_INIT;
	AUTO(policy_deinit) struct policy policy = POLICY_INIT;
	struct generic_input input = standard;

	(void)state;
	input.home = NULL;
	refuse(&input, "this user has no home directory");
	input.home = "/";
	refuse(&input, "the home directory '/' cannot be a home directory");
	input.home = "h";
	refuse(&input, "the home directory 'h' is relative");
	input = standard;
	input.cwd = NULL;
	refuse(&input, "there is no working directory");
	input.cwd = "p";
	refuse(&input, "the working directory 'p' is relative");
	input.cwd = "/";
	refuse(&input, "the working directory is '/': go to a project, or use profile 'host'");
	input.cwd = "/h";
	refuse(&input,
	       "the working directory '/h' is the home directory: go to a project, or allow "
	       "this with --allow-home");
	input.home = "/h/u";
	refuse(&input,
	       "the working directory '/h' contains the home directory: go to a project, or "
	       "allow this with --allow-home");
	input = standard;
	input.cwd = "/h/.ssh/x";
	refuse(&input, "the working directory '/h/.ssh/x' lies in '/h/.ssh', which is denied "
		       "(profile generic); grant it by name if that is meant");
	rules_of("rw:/h/.ssh/x", &granted);
	input.rules = &granted;
	assert_int_equal(generic_assemble(&candidates, &input, NULL), 0);

	input = standard;
	rules_of("rw:/h", &rules);
	input.rules = &rules;
	refuse(&input, "readWrite '/h' (test) would open the home directory: allow this with "
		       "--allow-home");
	input.cwd = "/h";
	input.allow_home = true;
	rule_list_deinit(&candidates);
	assert_int_equal(generic_assemble(&candidates, &input, NULL), 0);
	settle(&candidates, "/h", &policy);
	expect(&policy, "/h/anything", ACCESS_READ_WRITE);
	expect(&policy, "/h/.ssh", ACCESS_DENY);
	expect(&policy, "/h/.bashrc", ACCESS_READ_ONLY);
	/* Nothing is put into the home directory for what is not there. */
	for (size_t i = 0; i < policy.rules.count; i++)
		if (policy.rules.rules[i].type == NODE_ABSENT &&
		    policy.rules.rules[i].access == ACCESS_DENY)
			assert_int_equal(policy.rules.rules[i].absent, ABSENT_WATCH);
}

/* R25, R11: the host's word and fsbox's own directories, in every profile, over everything. */
static void R25_the_hosts_rules_hold(void **state)
{
	AUTO(hostconf_deinit) struct hostconf conf;
	AUTO(rule_list_deinit) struct rule_list rules = RULE_LIST_INIT;
	struct string_list own = { .items = NULL };
	struct string_list binaries = { .items = NULL };
	struct string_list kernel = { .items = NULL };
	struct generic_input input = standard;

	(void)state;
	assert_int_equal(hostconf_init(&conf, NULL), 0);
	assert_int_equal(string_list_add(&conf.mandatory_deny, "/opt/secret", NULL), 0);
	assert_int_equal(string_list_add(&conf.mandatory_read_only, "/opt/tools", NULL), 0);
	assert_int_equal(string_list_add(&own, "/h/.local/state/fsbox", NULL), 0);
	assert_int_equal(string_list_add(&binaries, "/opt/fsbox", NULL), 0);
	assert_int_equal(string_list_add(&kernel, "/srv/chroot/proc", NULL), 0);
	rules_of("rw:/opt rw:/opt/secret rw:/opt/secret/x? rw:/opt/fsbox/bin? rw:/opt/tools/x?",
		 &rules);
	input.conf = &conf;
	input.own_deny = &own;
	input.own_read_only = &binaries;
	input.kernel_mounts = &kernel;
	input.rules = &rules;
	for (int host = 0; host < 2; host++) {
		AUTO(rule_list_deinit) struct rule_list candidates = RULE_LIST_INIT;
		AUTO(policy_deinit) struct policy policy = POLICY_INIT;

		assert_int_equal(host ? host_assemble(&candidates, &input, NULL)
				      : generic_assemble(&candidates, &input, NULL),
				 0);
		settle(&candidates, input.cwd, &policy);
		expect(&policy, "/opt/secret/x", ACCESS_DENY);
		expect(&policy, "/opt/x", ACCESS_READ_WRITE);
		expect(&policy, "/h/.local/state/fsbox/ledger", ACCESS_DENY);
		expect(&policy, "/srv/chroot/proc/1", ACCESS_DENY);
		/* These two are absent here: nothing may be made there. */
		expect(&policy, "/opt/fsbox/bin/fsboxd", ACCESS_DENY);
		expect(&policy, "/opt/tools/x", ACCESS_DENY);
	}
	input = standard;
	input.own_deny = &own;
	input.cwd = "/h/.local/state/fsbox/x";
	refuse(&input,
	       "the working directory '/h/.local/state/fsbox/x' lies in "
	       "'/h/.local/state/fsbox', which is denied (fsbox itself); grant it by name if "
	       "that is meant");
	string_list_deinit(&own);
	string_list_deinit(&binaries);
	string_list_deinit(&kernel);
}

static void the_host_profile(void **state)
{
	AUTO(rule_list_deinit) struct rule_list candidates = RULE_LIST_INIT;
	AUTO(policy_deinit) struct policy policy = POLICY_INIT;
	struct generic_input input = standard;
	struct error err = ERROR_INIT;

	(void)state;
	input.runtime_dir = "/run/user/7";
	input.cwd = "/";
	assert_int_equal(host_assemble(&candidates, &input, NULL), 0);
	settle(&candidates, "/", &policy);
	expect(&policy, "/h/.ssh", ACCESS_READ_WRITE);
	expect(&policy, "/run/dbus/system_bus_socket", ACCESS_DENY);
	expect(&policy, "/run/user/7/bus", ACCESS_DENY);

	/* R19 */
	input.root_peer = true;
	assert_int_equal(host_assemble(&candidates, &input, &err), -ERR_NOT_AUTHORIZED);
	input.root_peer = false;
	input.home = NULL;
	assert_int_equal(host_assemble(&candidates, &input, &err), -ERR_POLICY_INVALID);
}

static void R19_roots_secrets(void **state)
{
	AUTO(rule_list_deinit) struct rule_list candidates = RULE_LIST_INIT;
	AUTO(policy_deinit) struct policy policy = POLICY_INIT;
	struct generic_input input = standard;

	(void)state;
	input.home = "/root";
	input.root_peer = true;
	assert_int_equal(generic_assemble(&candidates, &input, NULL), 0);
	settle(&candidates, input.cwd, &policy);
	expect(&policy, "/var/lib/docker/x", ACCESS_DENY);
	expect(&policy, "/root/.ssh/id", ACCESS_DENY);
	expect(&policy, "/root/x", ACCESS_NONE);
}

static void links_to_follow(void **state)
{
	size_t count = 0;
	const struct generic_link *links = generic_link_names(&count);

	(void)state;
	assert_true(count > 3);
	for (size_t i = 0; i < count; i++)
		assert_true(path_covers("/etc", links[i].path));
}

/* Every profile that settles also makes a plan. */
static void profiles_make_plans(void **state)
{
	const struct plan_options options = { .harden = PLAN_HARDEN_ALL, .chdir = "/" };

	(void)state;
	for (int host = 0; host < 2; host++) {
		AUTO(rule_list_deinit) struct rule_list candidates = RULE_LIST_INIT;
		AUTO(policy_deinit) struct policy policy = POLICY_INIT;
		AUTO(plan_deinit) struct plan plan = PLAN_INIT;
		struct error err = ERROR_INIT;

		assert_int_equal(host ? host_assemble(&candidates, &standard, NULL)
				      : generic_assemble(&candidates, &standard, NULL),
				 0);
		settle(&candidates, NULL, &policy);
		if (plan_build(&plan, &policy, &options, &err) < 0)
			fail_msg("%s", err.message);
	}
}

static void too_many_rules(void **state)
{
	AUTO(rule_list_deinit) struct rule_list candidates = RULE_LIST_INIT;
	struct error err = ERROR_INIT;

	(void)state;
	for (size_t i = 0; i < LIMIT_RULES - 300; i++)
		assert_non_null(
			rule_list_add(&candidates, "/a", ACCESS_DENY, RULE_USER, NULL, NULL));
	assert_int_equal(generic_assemble(&candidates, &standard, &err), -ERR_POLICY_INVALID);
	assert_string_equal(err.message, "more than 100000 rules");
	assert_true(generic_assemble(&candidates, &standard, NULL) < 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_ordinary_request),
		cmocka_unit_test(moved_xdg_directories),
		cmocka_unit_test(private_directories_are_optional),
		cmocka_unit_test(users_paths_come_on_top),
		cmocka_unit_test(R21_sockets_below_grants),
		cmocka_unit_test(R21_sockets_by_another_name),
		cmocka_unit_test(links_to_the_home_directory),
		cmocka_unit_test(homes_and_working_directories),
		cmocka_unit_test(R25_the_hosts_rules_hold),
		cmocka_unit_test(the_host_profile),
		cmocka_unit_test(R19_roots_secrets),
		cmocka_unit_test(links_to_follow),
		cmocka_unit_test(profiles_make_plans),
		cmocka_unit_test(too_many_rules),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
