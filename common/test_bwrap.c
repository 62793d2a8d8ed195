/* SPDX-License-Identifier: Apache-2.0 */
#include "common/bwrap.h"

#include <stdio.h>
#include <string.h>

#include "common/limits.h"
#include "common/scope.h"
#include "tests/plan_text.h"
#include "tests/test.h"

static void build(const char *rules, uint32_t harden, enum net_mode net, struct plan *ret_plan)
{
	AUTO(policy_deinit) struct policy policy = policy_of(rules);
	static const struct plan_symlink links[] = { { "/bin", "usr/bin" } };
	struct plan_options options = {
		.harden = harden, .symlinks = links, .symlink_count = 1, .chdir = "/p"
	};
	struct error err = ERROR_INIT;

	policy.net = net;
	if (plan_build(ret_plan, &policy, &options, &err) < 0)
		fail_msg("%s: %s", rules, err.message);
}

/* The arguments, one blank between two. */
static void expect(const char *rules, enum net_mode net, const struct bwrap_options *options,
		   const char *expected)
{
	AUTO(plan_deinit) struct plan plan = PLAN_INIT;
	AUTO(buf_deinit) struct buf args = BUF_INIT(1 << 20);
	struct error err = ERROR_INIT;

	build(rules, PLAN_HARDEN_ALL, net, &plan);
	if (bwrap_compile(&plan, options, &args, &err) < 0)
		fail_msg("%s", err.message);
	assert_int_equal(args.data[args.size - 1], '\0');
	for (size_t i = 0; i + 1 < args.size; i++)
		if (args.data[i] == '\0')
			args.data[i] = ' ';
	assert_string_equal(buf_text(&args), expected);
}

static const struct bwrap_options engine = {
	.mask_dir = "/m/d",
	.mask_file = "/m/f",
	.disable_userns = true,
};

#define SWITCHES                                                                         \
	"--unshare-user --unshare-pid --unshare-ipc --unshare-uts --unshare-cgroup-try " \
	"--unshare-net --disable-userns --cap-drop ALL --chdir /p"

static void every_kind_of_operation(void **state)
{
	(void)state;
	expect("rw:/p ro:/q deny:/p/.env=file deny:/p/d deny:/p/gone=absent!watch deny:/p/t "
	       "ro:/p/t/x deny:/p/l~ rw:/c@/priv/c",
	       NET_NONE, &engine,
	       "--tmpfs / --symlink usr/bin /bin --bind /priv/c /c --dev /dev --bind /p /p "
	       "--proc /proc --ro-bind /q /q --tmpfs /run --tmpfs /tmp --tmpfs /dev/shm "
	       "--ro-bind /m/f /p/.env --ro-bind /m/d /p/d --perms 0111 --tmpfs /p/t "
	       "--tmpfs /var/tmp --ro-bind /p/t/x /p/t/x --remount-ro /p/t --remount-ro /dev "
	       "--remount-ro / " SWITCHES);
	expect("ro:/sys", NET_NONE, &engine,
	       "--tmpfs / --symlink usr/bin /bin --dev /dev --proc /proc --tmpfs /run "
	       "--ro-bind /sys /sys --tmpfs /tmp --tmpfs /dev/shm --tmpfs /var/tmp "
	       "--ro-bind /m/d /sys/fs/cgroup --remount-ro /dev --remount-ro / " SWITCHES);
}

static void pins_are_made_in_a_covered_place(void **state)
{
	(void)state;
	expect("rw:/p deny:/p/a/b/c=file", NET_NONE, &engine,
	       "--tmpfs / --symlink usr/bin /bin --dev /dev --bind /p /p --proc /proc --tmpfs /run "
	       "--tmpfs /tmp --tmpfs /dev/shm --tmpfs /var/tmp --ro-bind /m/f /p/a/b/c "
	       "--ro-bind-try /p/a/b /dev/.fsbox-pins/0 --ro-bind /m/d /dev/.fsbox-pins/0 "
	       "--ro-bind-try /p/a /dev/.fsbox-pins/1 --ro-bind /m/d /dev/.fsbox-pins/1 "
	       "--ro-bind /m/d /dev/.fsbox-pins --remount-ro /dev --remount-ro / " SWITCHES);
}

/* Where something below a file is denied. */
static void a_pinned_file_is_masked_by_a_file(void **state)
{
	AUTO(plan_deinit) struct plan plan = PLAN_INIT;
	AUTO(buf_deinit) struct buf args = BUF_INIT(1 << 20);
	static const char wanted[] = "--ro-bind-try\0/p/a\0/dev/.fsbox-pins/0\0"
				     "--ro-bind\0/m/f\0/dev/.fsbox-pins/0";

	(void)state;
	build("rw:/p deny:/p/a/b=absent", PLAN_HARDEN_ALL, NET_NONE, &plan);
	for (size_t i = 0; i < plan.count; i++)
		if (plan.ops[i].kind == PLAN_PIN)
			plan.ops[i].flags |= PLAN_NODE_FILE;
	assert_int_equal(bwrap_compile(&plan, &engine, &args, NULL), 0);
	assert_non_null(memmem(args.data, args.size, wanted, sizeof(wanted)));
}

static void the_network_is_kept_only_for_host(void **state)
{
	AUTO(plan_deinit) struct plan plan = PLAN_INIT;
	AUTO(buf_deinit) struct buf args = BUF_INIT(1 << 20);
	struct bwrap_options made = engine;

	(void)state;
	build("", PLAN_HARDEN_ALL, NET_PROXY, &plan);
	assert_int_equal(bwrap_compile(&plan, &engine, &args, NULL), 0);
	assert_non_null(memmem(args.data, args.size, "--unshare-net", 14));
	buf_clear(&args);
	made.own_network = true; /* by who executes it */
	assert_int_equal(bwrap_compile(&plan, &made, &args, NULL), 0);
	assert_null(memmem(args.data, args.size, "--unshare-net", 14));
	buf_clear(&args);
	plan.net = NET_HOST;
	assert_int_equal(bwrap_compile(&plan, &engine, &args, NULL), 0);
	assert_null(memmem(args.data, args.size, "--unshare-net", 14));
}

/* Whatever else a plan says, these are always there. */
static void R11_switches_do_not_come_from_the_plan(void **state)
{
	AUTO(plan_deinit) struct plan plan = PLAN_INIT;
	AUTO(buf_deinit) struct buf args = BUF_INIT(1 << 20);

	(void)state;
	build("", PLAN_HARDEN_ALL, NET_NONE, &plan);
	plan.unshare = 0;
	assert_int_equal(bwrap_compile(&plan, &engine, &args, NULL), 0);
	assert_non_null(memmem(args.data, args.size, "--unshare-user", 15));
	assert_non_null(memmem(args.data, args.size, "--unshare-pid", 14));
	assert_non_null(memmem(args.data, args.size, "--unshare-net", 14));
	assert_non_null(memmem(args.data, args.size, "--cap-drop\0ALL", 15));
}

static void R19_root_peers(void **state)
{
	struct bwrap_options options = engine;
	struct string_list masks = { .items = NULL };

	(void)state;
	assert_int_equal(string_list_add(&masks, "keys", NULL), 0);
	options.root_peer = true;
	options.proc_masks = &masks;
	options.disable_userns = false;
	options.die_with_parent = true;
	options.new_session = true;
	expect("ro:/sys deny:/sys/kernel ro:/sys/fs/x", NET_NONE, &options,
	       "--tmpfs / --symlink usr/bin /bin --dev /dev --proc /proc "
	       "--ro-bind /m/f /proc/keys --remount-ro /proc --tmpfs /run "
	       "--ro-bind /m/d /sys --tmpfs /tmp --tmpfs /dev/shm --tmpfs /var/tmp "
	       "--remount-ro /dev --remount-ro / "
	       "--unshare-user --unshare-pid --unshare-ipc --unshare-uts --unshare-cgroup-try "
	       "--unshare-net --cap-drop ALL --die-with-parent --new-session --chdir /p");
	string_list_deinit(&masks);
}

static void proc_masks_are_names(void **state)
{
	size_t count = 0;
	const char *const *names = bwrap_proc_masks(&count);

	(void)state;
	assert_true(count > 10);
	for (size_t i = 0; i < count; i++) {
		assert_null(strchr(names[i], '/'));
		assert_true(strlen(names[i]) <= LIMIT_NAME_BYTES);
	}
}

/* bubblewrap counts arguments; one more than it takes is our error, not its. */
static void too_many_arguments(void **state)
{
	AUTO(plan_deinit) struct plan plan = PLAN_INIT;
	AUTO(buf_deinit) struct buf args = BUF_INIT(1 << 20);
	AUTO(buf_deinit) struct buf small = BUF_INIT(32);
	const struct plan_op op = {
		.kind = PLAN_BIND, .path = (char *)"/a", .source = (char *)"/a", .rule = -1
	};
	struct error err = ERROR_INIT;
	size_t binds = 0;

	(void)state;
	plan.chdir = strdup("/");
	for (; bwrap_compile(&plan, &engine, &args, &err) == 0; binds++) {
		buf_clear(&args);
		assert_int_equal(plan_add(&plan, &op, NULL), 0);
		if (binds == 0)
			for (; binds < 2970; binds++)
				assert_int_equal(plan_add(&plan, &op, NULL), 0);
	}
	assert_int_equal(err.kind, ERR_ENGINE_UNAVAILABLE);
	assert_int_equal(plan.count, (BWRAP_ARGS_MAX - BWRAP_ARGS_CALLER - 11) / 3 + 1);
	assert_non_null(strstr(err.message, "bubblewrap takes 8936"));

	plan_deinit(&plan);
	build("rw:/p", PLAN_HARDEN_ALL, NET_NONE, &plan);
	assert_int_equal(bwrap_compile(&plan, &engine, &small, &err), -ERR_NOMEM);
}

static void plain_output_lists_its_masks(void **state)
{
	AUTO(plan_deinit) struct plan plan = PLAN_INIT;
	AUTO(bwrap_plain_deinit) struct bwrap_plain plain = { .mask_mount_is_dir = NULL };
	AUTO(policy_deinit)
	struct policy policy = policy_of("rw:/p deny:/p/a deny:/p/f deny:/p/t ro:/p/t/x");
	struct string_list files = { .items = NULL };
	struct plan_options options = { .chdir = "/p", .file_paths = &files };
	const struct bwrap_plain_options sources = { .empty_dir = "/e", .empties_dir = "/es" };
	AUTO(buf_deinit) struct buf text = BUF_INIT(4096);

	(void)state;
	assert_int_equal(string_list_add(&files, "/p/f", NULL), 0);
	assert_int_equal(plan_build(&plan, &policy, &options, NULL), 0);
	assert_int_equal(bwrap_compile_plain(&plan, &sources, &plain, NULL), 0);
	for (size_t i = 0; i < plain.args.count; i++)
		assert_int_equal(buf_printf(&text, "%s ", plain.args.items[i]), 0);
	assert_string_equal(buf_text(&text),
			    "--tmpfs / --proc /proc --dev /dev --tmpfs /tmp --tmpfs /run "
			    "--tmpfs /var/tmp --tmpfs /dev/shm --bind /p /p --ro-bind /e /p/a "
			    "--ro-bind /es/mask-0 /p/f --tmpfs /p/t --ro-bind /p/t/x /p/t/x "
			    "--remount-ro /p/t --unshare-user --unshare-pid --unshare-ipc "
			    "--unshare-uts --unshare-cgroup-try --unshare-net --die-with-parent "
			    "--new-session --chdir /p ");
	assert_int_equal(plain.empty_files.count, 1);
	assert_string_equal(plain.empty_files.items[0], "/es/mask-0");
	assert_string_equal(plain.empty_file_masks.items[0], "/p/f");
	assert_int_equal(plain.mask_mounts.count, 3);
	assert_true(plain.mask_mount_is_dir[0]);
	assert_false(plain.mask_mount_is_dir[1]);
	assert_true(plain.mask_mount_is_dir[2]);
	string_list_deinit(&files);
	bwrap_plain_deinit(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_kind_of_operation),
		cmocka_unit_test(pins_are_made_in_a_covered_place),
		cmocka_unit_test(a_pinned_file_is_masked_by_a_file),
		cmocka_unit_test(the_network_is_kept_only_for_host),
		cmocka_unit_test(R11_switches_do_not_come_from_the_plan),
		cmocka_unit_test(R19_root_peers),
		cmocka_unit_test(proc_masks_are_names),
		cmocka_unit_test(too_many_arguments),
		cmocka_unit_test(plain_output_lists_its_masks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
