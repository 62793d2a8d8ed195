/* SPDX-License-Identifier: Apache-2.0 */
#include "common/plan_check.h"

#include <stdlib.h>
#include <string.h>

#include "common/hostconf.h"
#include "common/scope.h"
#include "tests/gen_policy.h"
#include "tests/plan_text.h"
#include "tests/test.h"

/* What fsboxd knows. */
struct host {
	struct hostconf conf;
	struct string_list own_deny;
	struct string_list own_read_only;
	struct string_list private_roots;
};

static void host_deinit(struct host *host)
{
	hostconf_deinit(&host->conf);
	string_list_deinit(&host->own_deny);
	string_list_deinit(&host->own_read_only);
	string_list_deinit(&host->private_roots);
}

static struct host a_host(void)
{
	struct host host = { .own_deny = { .items = NULL } };

	assert_int_equal(hostconf_init(&host.conf, NULL), 0);
	assert_int_equal(string_list_add(&host.conf.mandatory_deny, "/srv/secret", NULL), 0);
	assert_int_equal(string_list_add(&host.conf.mandatory_read_only, "/srv/tools", NULL), 0);
	assert_int_equal(string_list_add(&host.own_deny, "/var/lib/fsbox", NULL), 0);
	assert_int_equal(string_list_add(&host.own_read_only, "/usr/libexec/fsbox", NULL), 0);
	assert_int_equal(string_list_add(&host.private_roots, "/h/.cache/fsbox", NULL), 0);
	return host;
}

static int check(const struct host *host, const struct plan *plan, struct error *err)
{
	return plan_check(plan, &host->conf, &host->own_deny, &host->own_read_only,
			  &host->private_roots, err);
}

static void build(const char *rules, enum net_mode net, struct plan *ret_plan)
{
	AUTO(policy_deinit) struct policy policy = policy_of(rules);
	static const struct plan_symlink links[] = { { "/bin", "usr/bin" } };
	struct plan_options options = {
		.harden = PLAN_HARDEN_ALL, .symlinks = links, .symlink_count = 1, .chdir = "/"
	};
	struct error err = ERROR_INIT;

	policy.net = net;
	if (plan_build(ret_plan, &policy, &options, &err) < 0)
		fail_msg("%s: %s", rules, err.message);
}

static void accept(const char *rules)
{
	AUTO(host_deinit) struct host host = a_host();
	AUTO(plan_deinit) struct plan plan = PLAN_INIT;
	struct error err = ERROR_INIT;

	build(rules, NET_NONE, &plan);
	if (check(&host, &plan, &err) < 0)
		fail_msg("%s: %s", rules, err.message);
}

static void refuse(const char *rules, const char *message)
{
	AUTO(host_deinit) struct host host = a_host();
	AUTO(plan_deinit) struct plan plan = PLAN_INIT;
	struct error err = ERROR_INIT;

	build(rules, NET_NONE, &plan);
	assert_int_equal(check(&host, &plan, &err), -ERR_POLICY_INVALID);
	assert_non_null(strstr(err.message, message));
}

static void R11_honest_plans_pass(void **state)
{
	(void)state;
	accept("");
	accept("ro:/usr rw:/p deny:/p/.env=file deny:/p/a ro:/p/a/b");
	accept("rw:/srv deny:/srv/secret ro:/srv/tools");
	accept("rw:/p ro:/p/l~ deny:/p/m~");
	accept("ro:/srv deny:/srv/secret=absent");
	accept("rw:/srv deny:/srv/secret=absent ro:/srv/tools");
	accept("rw:/srv deny:/srv/secret ro:/srv/tools deny:/srv/tools/x");
	accept("rw:/srv deny:/srv/secret deny:/srv/tools=absent");
	accept("rw:/ deny:/srv/secret ro:/srv/tools deny:/var/lib/fsbox ro:/usr/libexec/fsbox");
	accept("rw:/ deny:/srv ro:/srv/tools deny:/var ro:/usr/libexec");
	accept("rw:/h/.cache@/h/.cache/fsbox/generic/cache");
	accept("ro:/sys deny:/proc/keys=file rw:/dev/shm rw:/tmp");
}

static void R11_mandatory_denies_are_held(void **state)
{
	(void)state;
	refuse("ro:/srv", "'/srv/secret' must be denied on this host");
	refuse("rw:/srv/secret", "'/srv/secret' must be denied on this host");
	refuse("rw:/", "must be denied on this host");
	refuse("rw:/srv deny:/srv/secret=absent!watch",
	       "'/srv/secret' must be denied on this host");
	refuse("rw:/srv deny:/srv/secret=absent!ignore",
	       "'/srv/secret' must be denied on this host");
	refuse("rw:/srv deny:/srv/secret ro:/srv/secret/x ro:/srv/tools",
	       "what is above it must be denied on this host");
	/* A mask that not every engine can make does not count. */
	refuse("ro:/srv deny:/srv/secret~", "'/srv/secret' must be denied on this host");
}

static void R11_mandatory_read_only_is_held(void **state)
{
	(void)state;
	refuse("rw:/srv deny:/srv/secret", "'/srv/tools' must be read-only on this host");
	refuse("rw:/srv/tools", "'/srv/tools' must be read-only on this host");
	refuse("ro:/srv/tools rw:/srv/tools/x", "what is above it must be read-only on this host");
	refuse("rw:/srv deny:/srv/secret deny:/srv/tools=absent!watch",
	       "'/srv/tools' must be read-only on this host");
	refuse("rw:/srv deny:/srv/secret ro:/srv/tools~",
	       "'/srv/tools' must be read-only on this host");
}

static void R25_what_is_fsboxs_own_is_held(void **state)
{
	(void)state;
	refuse("ro:/var", "'/var/lib/fsbox' must be denied on this host");
	refuse("rw:/var/lib/fsbox/jobs", "must be denied on this host");
	refuse("rw:/usr", "'/usr/libexec/fsbox' must be read-only on this host");
}

static void R11_private_sources(void **state)
{
	AUTO(host_deinit) struct host host = a_host();
	AUTO(plan_deinit) struct plan plan = PLAN_INIT;
	AUTO(plan_deinit) struct plan in_state = PLAN_INIT;
	struct error err = ERROR_INIT;

	(void)state;
	refuse("rw:/h/.cache@/etc", "the source is no private directory");
	refuse("rw:/h/.cache@/h/.cache/fsbox", "the source is no private directory");
	refuse("rw:/h/.cache@/h/.cache/fsboxes/x", "the source is no private directory");

	/* Private directories inside fsbox's own denied state are what the roots are for. */
	build("rw:/h/.cache@/var/lib/fsbox/private/u/x", NET_NONE, &in_state);
	assert_int_equal(check(&host, &in_state, &err), -ERR_POLICY_INVALID);
	assert_int_equal(string_list_add(&host.private_roots, "/var/lib/fsbox/private", NULL), 0);
	assert_int_equal(check(&host, &in_state, &err), 0);

	/* But a mandatory deny between root and source, or below the source, stays one. */
	assert_int_equal(string_list_add(&host.own_deny, "/var/lib/fsbox/private/u", NULL), 0);
	assert_int_equal(check(&host, &in_state, &err), -ERR_POLICY_INVALID);
	assert_non_null(strstr(err.message, "its source is denied on this host"));
	build("rw:/h/.cache@/h/.cache/fsbox/a", NET_NONE, &plan);
	assert_int_equal(check(&host, &plan, &err), 0);
	assert_int_equal(string_list_add(&host.own_deny, "/h/.cache/fsbox/a/b", NULL), 0);
	assert_int_equal(check(&host, &plan, &err), -ERR_POLICY_INVALID);
	assert_non_null(strstr(err.message, "its source holds what is protected"));
	host.own_deny.items[host.own_deny.count - 1][14] = 'z';
	host.own_deny.items[host.own_deny.count - 1][15] = 'z';
	assert_int_equal(string_list_add(&host.own_read_only, "/h/.cache/fsbox/a/b", NULL), 0);
	assert_int_equal(check(&host, &plan, &err), -ERR_POLICY_INVALID);
	assert_int_equal(plan_check(&plan, &host.conf, &host.own_deny, NULL, NULL, &err),
			 -ERR_POLICY_INVALID);
}

static void R11_network_at_most_the_cap(void **state)
{
	AUTO(host_deinit) struct host host = a_host();
	struct error err = ERROR_INIT;

	(void)state;
	for (int cap = NET_NONE; cap <= NET_HOST; cap++) {
		for (int net = NET_NONE; net <= NET_HOST; net++) {
			AUTO(plan_deinit) struct plan plan = PLAN_INIT;

			host.conf.max_net = (enum net_mode)cap;
			build("ro:/usr", (enum net_mode)net, &plan);
			assert_int_equal(check(&host, &plan, &err),
					 net > cap ? -ERR_NOT_AUTHORIZED : 0);
		}
	}
	assert_string_equal(err.message, "network 'host' is above this host's max-net 'proxy'");
}

/* A hostile broker's plan: honest but for one thing. */
static void tamper(const char *rules, void (*change)(struct plan *plan), const char *message)
{
	AUTO(host_deinit) struct host host = a_host();
	AUTO(plan_deinit) struct plan plan = PLAN_INIT;
	struct error err = ERROR_INIT;

	build(rules, NET_NONE, &plan);
	change(&plan);
	assert_int_equal(check(&host, &plan, &err), -ERR_POLICY_INVALID);
	if (!strstr(err.message, message))
		fail_msg("'%s' does not say '%s'", err.message, message);
}

static struct plan_op *find(struct plan *plan, enum plan_op_kind kind, const char *path)
{
	for (size_t i = plan->count; i-- > 0;)
		if (plan->ops[i].kind == kind && (!path || strcmp(plan->ops[i].path, path) == 0))
			return &plan->ops[i];
	fail_msg("no such operation");
	return NULL;
}

static void set_path(struct plan_op *op, const char *path)
{
	free(op->path);
	op->path = strdup(path);
}

static void append(struct plan *plan, enum plan_op_kind kind, uint32_t flags, const char *path,
		   const char *source)
{
	const struct plan_op op = { .kind = kind,
				    .flags = flags,
				    .path = (char *)path,
				    .source = (char *)source,
				    .rule = -1 };

	assert_int_equal(plan_add(plan, &op, NULL), 0);
}

static void drop(struct plan *plan, struct plan_op *op)
{
	free(op->path);
	free(op->source);
	memmove(op, op + 1, (size_t)(plan->ops + plan->count - (op + 1)) * sizeof(*op));
	plan->count--;
}

static void keep_pid(struct plan *plan)
{
	plan->unshare &= ~(uint32_t)PLAN_UNSHARE_PID;
}
static void keep_net(struct plan *plan)
{
	plan->unshare &= ~(uint32_t)PLAN_UNSHARE_NET;
}
static void unshare_host_net(struct plan *plan)
{
	plan->net = NET_HOST;
}
static void no_chdir(struct plan *plan)
{
	free(plan->chdir);
	plan->chdir = NULL;
}
static void odd_chdir(struct plan *plan)
{
	free(plan->chdir);
	plan->chdir = strdup("/a/..");
}
static void no_root(struct plan *plan)
{
	drop(plan, &plan->ops[0]);
}
static void second_root(struct plan *plan)
{
	append(plan, PLAN_ROOT, 0, "/", NULL);
}
static void no_proc(struct plan *plan)
{
	drop(plan, find(plan, PLAN_PROC, NULL));
}
static void no_dev(struct plan *plan)
{
	drop(plan, find(plan, PLAN_SEAL, "/dev"));
	drop(plan, find(plan, PLAN_DEV, NULL));
}
static void proc_elsewhere(struct plan *plan)
{
	set_path(find(plan, PLAN_PROC, NULL), "/prok");
}
static void dev_elsewhere(struct plan *plan)
{
	set_path(find(plan, PLAN_DEV, NULL), "/dew");
}
static void tmpfs_elsewhere(struct plan *plan)
{
	set_path(find(plan, PLAN_TMPFS, "/tmp"), "/usr");
}
static void sys_elsewhere(struct plan *plan)
{
	set_path(find(plan, PLAN_SYS, NULL), "/sis");
}
static void writable_sys(struct plan *plan)
{
	find(plan, PLAN_SYS, NULL)->flags = 0;
}
static void no_sys(struct plan *plan)
{
	drop(plan, find(plan, PLAN_SYS, NULL));
}
static void open_cgroups(struct plan *plan)
{
	drop(plan, find(plan, PLAN_MASK_DIR, "/sys/fs/cgroup"));
}
static void bind_proc(struct plan *plan)
{
	append(plan, PLAN_BIND, 0, "/proc", "/proc");
}
static void bind_device(struct plan *plan)
{
	append(plan, PLAN_BIND, 0, "/dev/sda", "/dev/sda");
}
static void bind_sys(struct plan *plan)
{
	append(plan, PLAN_BIND, PLAN_READ_ONLY, "/sys", "/sys");
}
static void bind_sys_part(struct plan *plan)
{
	append(plan, PLAN_BIND, 0, "/sys/kernel", "/sys/kernel");
}
static void bind_cgroup(struct plan *plan)
{
	append(plan, PLAN_BIND, PLAN_READ_ONLY, "/sys/fs/cgroup/x", "/sys/fs/cgroup/x");
}
static void bind_root_late(struct plan *plan)
{
	append(plan, PLAN_BIND, PLAN_READ_ONLY, "/", "/");
}
static void mask_proc(struct plan *plan)
{
	append(plan, PLAN_MASK_DIR, 0, "/proc", NULL);
}
static void mask_root(struct plan *plan)
{
	append(plan, PLAN_MASK_DIR, 0, "/", NULL);
}
static void other_source(struct plan *plan)
{
	struct plan_op *op = find(plan, PLAN_BIND, NULL);

	free(op->source);
	op->source = strdup("/srv/secret");
}
static void quarantine_read_only(struct plan *plan)
{
	append(plan, PLAN_NOTICE, PLAN_QUARANTINE, "/r/x", NULL);
}
static void quarantine_nothing(struct plan *plan)
{
	append(plan, PLAN_NOTICE, PLAN_QUARANTINE, "/home/u/x", NULL);
}
static void entries_alone(struct plan *plan)
{
	append(plan, PLAN_NOTICE, PLAN_ENTRIES, "/p/x", NULL);
}
static void let_go_of_a_directory(struct plan *plan)
{
	append(plan, PLAN_MASK_DIR, PLAN_LET_GO, "/p/x", NULL);
}
static void notice_for_mask(struct plan *plan)
{
	find(plan, PLAN_MASK_DIR, "/srv/secret")->kind = PLAN_NOTICE;
}
static void root_as_link(struct plan *plan)
{
	append(plan, PLAN_BIND, PLAN_NODE_LINK | PLAN_READ_ONLY, "/", "/");
}
static void shown_as_link(struct plan *plan)
{
	append(plan, PLAN_BIND, PLAN_NODE_LINK | PLAN_READ_ONLY, "/q", "/q");
}
static void writable_link(struct plan *plan)
{
	append(plan, PLAN_BIND, PLAN_NODE_LINK, "/p/l", "/p/l");
}
static void pin_elsewhere(struct plan *plan)
{
	append(plan, PLAN_PIN, 0, "/p/x", "/srv/secret");
}
static void private_root(struct plan *plan)
{
	append(plan, PLAN_BIND, PLAN_PRIVATE_SOURCE, "/", "/h/.cache/fsbox/x");
}
static void placeholder_bind(struct plan *plan)
{
	find(plan, PLAN_BIND, NULL)->flags |= PLAN_PLACEHOLDER;
}
static void watched_bind(struct plan *plan)
{
	find(plan, PLAN_BIND, NULL)->flags |= PLAN_WATCH;
}
static void flagged_proc(struct plan *plan)
{
	find(plan, PLAN_PROC, NULL)->flags |= PLAN_READ_ONLY;
}
static void deep_link(struct plan *plan)
{
	set_path(find(plan, PLAN_SYMLINK, NULL), "/p/bin");
}
static void link_below_link(struct plan *plan)
{
	append(plan, PLAN_SYMLINK, 0, "/bin/x", "/etc");
}
static void link_under_mount(struct plan *plan)
{
	set_path(find(plan, PLAN_SYMLINK, NULL), "/p");
}
static void no_root_seal(struct plan *plan)
{
	drop(plan, find(plan, PLAN_SEAL, "/"));
}
static void no_dev_seal(struct plan *plan)
{
	drop(plan, find(plan, PLAN_SEAL, "/dev"));
}
static void no_tree_seal(struct plan *plan)
{
	drop(plan, find(plan, PLAN_SEAL, "/p/a"));
}
static void seal_of_nothing(struct plan *plan)
{
	append(plan, PLAN_SEAL, 0, "/p", NULL);
}
static void seal_too_early(struct plan *plan)
{
	struct plan_op *seal = find(plan, PLAN_SEAL, "/p/a");
	struct plan_op *tree = find(plan, PLAN_MASK_TREE, "/p/a");
	struct plan_op kept = *seal;

	*seal = *tree;
	*tree = kept;
}
static void covered_later(struct plan *plan)
{
	append(plan, PLAN_BIND, 0, "/srv", "/srv");
}

static void R11_nothing_can_be_switched_off(void **state)
{
	(void)state;
	tamper("rw:/p", keep_pid, "switches a protection off");
	tamper("rw:/p", keep_net, "switches a protection off");
	tamper("rw:/p", unshare_host_net, "switches a protection off");
	tamper("rw:/p", no_chdir, "no working directory");
	tamper("rw:/p", odd_chdir, "no working directory");
	tamper("rw:/p", no_root, "no root");
	tamper("rw:/p", second_root, "misplaced");
	tamper("rw:/p", watched_bind, "flags that do not belong to it");
	tamper("rw:/p", flagged_proc, "flags that do not belong to it");
	tamper("rw:/p", placeholder_bind, "a placeholder for what is shown");
	tamper("rw:/p", other_source, "the source is not the target");
	tamper("rw:/p", pin_elsewhere, "the source is not the target");
	tamper("rw:/p ro:/r", quarantine_read_only, "no tree of the host's that a job may write");
	tamper("rw:/p ro:/r", quarantine_nothing, "no tree of the host's that a job may write");
	tamper("rw:/p", entries_alone, "flags that do not belong together");
	tamper("rw:/p", let_go_of_a_directory, "flags that do not belong to it");
	tamper("rw:/srv deny:/srv/secret ro:/srv/tools", notice_for_mask,
	       "'/srv/secret' must be denied on this host");
	tamper("rw:/p", root_as_link, "it is no link in a tree that is shown");
	tamper("rw:/p", shown_as_link, "it is no link in a tree that is shown");
	tamper("rw:/p", writable_link, "it is no link in a tree that is shown");
	tamper("rw:/p", private_root, "a private directory in place of /");
	tamper("rw:/p", deep_link, "the link is not in the root's own directories");
	tamper("rw:/p", link_below_link, "another link is at or below the link");
	tamper("rw:/p", link_under_mount, "something is mounted at or below the link");
	tamper("rw:/p", mask_root, "nothing would be left");
	tamper("rw:/srv deny:/srv/secret ro:/srv/tools", covered_later,
	       "'/srv/secret' must be denied on this host");
}

static void R19_places_stay_ours(void **state)
{
	static const char *const root = "rw:/ deny:/srv deny:/var ro:/usr";

	(void)state;
	tamper("rw:/p", no_proc, "no /proc of its own");
	tamper("rw:/p", no_dev, "no /dev of its own");
	tamper("rw:/p", mask_proc, "no /proc of its own");
	tamper("rw:/p", proc_elsewhere, "misplaced");
	tamper("rw:/p", dev_elsewhere, "misplaced");
	tamper("rw:/p", tmpfs_elsewhere, "misplaced");
	tamper(root, sys_elsewhere, "misplaced");
	tamper(root, writable_sys, "misplaced");
	tamper(root, no_sys, "it shows the host's /sys");
	tamper(root, open_cgroups, "it shows the host's control groups");
	tamper("rw:/p", bind_proc, "nothing is shown below /proc");
	tamper("rw:/p", bind_device, "nothing is shown below /dev");
	tamper("rw:/p", bind_sys, "the host's /sys is not shown like this");
	tamper("rw:/p", bind_sys_part, "the host's /sys is not shown like this");
	tamper("rw:/p", bind_cgroup, "the host's /sys is not shown like this");
	tamper("rw:/p", bind_root_late, "no /proc of its own");
}

static void R11_seals_are_there(void **state)
{
	static const char *const rules = "rw:/p deny:/p/a ro:/p/a/b";

	(void)state;
	tamper(rules, no_root_seal, "it is not sealed");
	tamper(rules, no_dev_seal, "it is not sealed");
	tamper(rules, no_tree_seal, "it is not sealed");
	tamper(rules, seal_of_nothing, "there is nothing to seal");
	tamper(rules, seal_too_early, "there is nothing to seal");
}

/* Random policies plus the host's own rules always pass; without those they pass only if honest. */
static void R11_what_passes_holds(void **state)
{
	size_t passed = 0;
	size_t refused = 0;

	(void)state;
	for (uint64_t seed = 0; seed < 4000; seed++) {
		AUTO(host_deinit) struct host host = a_host();
		AUTO(policy_deinit) struct policy policy = POLICY_INIT;
		AUTO(plan_deinit) struct plan plan = PLAN_INIT;
		struct plan_options options = { .harden = PLAN_HARDEN_ALL, .chdir = "/" };
		struct gen gen = gen_start(seed);
		const struct gen_options gen_options = {
			.max_rules = 20, .max_depth = 4, .root = true, .files = true
		};
		AUTO(auto_free) char *secret = gen_path(&gen, &gen_options);
		AUTO(auto_free) char *tools = gen_path(&gen, &gen_options);

		gen_rules(&gen, &policy.rules, &gen_options);
		assert_int_equal(policy_index(&policy, NULL), 0);
		assert_int_equal(plan_build(&plan, &policy, &options, NULL), 0);
		free(host.conf.mandatory_deny.items[0]);
		host.conf.mandatory_deny.items[0] = steal_ptr(&secret);
		free(host.conf.mandatory_read_only.items[0]);
		host.conf.mandatory_read_only.items[0] = steal_ptr(&tools);
		if (check(&host, &plan, NULL) < 0) {
			refused++;
			continue;
		}
		passed++;
		for (int i = 0; i < 20; i++) {
			AUTO(auto_free) char *probe = gen_probe(&gen, &policy.rules, &gen_options);
			AUTO(auto_free) char *below = NULL;
			enum access access = ACCESS_NONE;
			struct buf text = BUF_INIT(4096);

			assert_int_equal(buf_printf(&text, "%s%s",
						    host.conf.mandatory_deny.items[0],
						    i ? probe : ""),
					 0);
			below = buf_steal(&text);
			access = plan_access(&plan, below);
			assert_true(access == ACCESS_NONE || access == ACCESS_DENY);
			assert_int_equal(buf_printf(&text, "%s%s",
						    host.conf.mandatory_read_only.items[0],
						    i ? probe : ""),
					 0);
			free(below);
			below = buf_steal(&text);
			assert_int_not_equal(plan_access(&plan, below), ACCESS_READ_WRITE);
		}
	}
	assert_true(passed > 300);
	assert_true(refused > 300);
}

static void answers_of_the_mounts(void **state)
{
	AUTO(plan_deinit) struct plan plan = PLAN_INIT;
	struct plan empty = PLAN_INIT;

	(void)state;
	build("rw:/p deny:/p/x=file ro:/p/l~", NET_NONE, &plan);
	assert_int_equal(plan_access(&plan, "/"), ACCESS_NONE);
	assert_int_equal(plan_access(&plan, "/bin"), ACCESS_NONE);
	assert_int_equal(plan_access(&plan, "/p/y"), ACCESS_READ_WRITE);
	assert_int_equal(plan_access(&plan, "/p/x"), ACCESS_DENY);
	assert_int_equal(plan_access(&plan, "/p/l"), ACCESS_READ_ONLY);
	assert_int_equal(plan_access(&plan, "/tmp/y"), ACCESS_READ_WRITE);
	assert_int_equal(plan_access(&plan, "/dev/y"), ACCESS_READ_ONLY);
	assert_int_equal(plan_access(&empty, "/"), ACCESS_NONE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(R11_honest_plans_pass),
		cmocka_unit_test(R11_mandatory_denies_are_held),
		cmocka_unit_test(R11_mandatory_read_only_is_held),
		cmocka_unit_test(R25_what_is_fsboxs_own_is_held),
		cmocka_unit_test(R11_private_sources),
		cmocka_unit_test(R11_network_at_most_the_cap),
		cmocka_unit_test(R11_nothing_can_be_switched_off),
		cmocka_unit_test(R19_places_stay_ours),
		cmocka_unit_test(R11_seals_are_there),
		cmocka_unit_test(R11_what_passes_holds),
		cmocka_unit_test(answers_of_the_mounts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
