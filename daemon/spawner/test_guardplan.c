/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/spawner/guardplan.h"

#include <string.h>

#include "common/buf.h"
#include "tests/test.h"

static void add(struct plan *plan, enum plan_op_kind kind, uint32_t flags, const char *path)
{
	const struct plan_op op = {
		.kind = kind,
		.flags = flags,
		.path = (char *)path,
		.source = kind == PLAN_BIND ? (char *)path : NULL,
		.rule = -1,
	};

	assert_int_equal(plan_add(plan, &op, NULL), 0);
}

static void begin(struct plan *plan)
{
	*plan = (struct plan)PLAN_INIT;
	add(plan, PLAN_ROOT, PLAN_SYSTEM, "/");
}

/* Points as "m/path r/path n/path", then directories as "dir:name,name" or "dir:*". */
static void assert_points(struct plan *plan, const char *expected)
{
	static const char letters[] = { 'm', 'r', 'n' };
	struct buf text = BUF_INIT(4096);
	struct guard_points points;
	bool needed = false;

	assert_int_equal(guard_points_init(&points, plan, NULL), 0);
	assert_int_equal(guard_points_needed(plan, &needed, NULL), 0);
	assert_int_equal(needed, points.count > 0);
	for (size_t i = 0; i < points.count; i++)
		(void)buf_printf(&text, "%c%s%s ", letters[points.points[i].kind],
				 points.points[i].stand_in ? "+" : "", points.points[i].op->path);
	for (size_t i = 0; i < points.dir_count; i++) {
		const struct guard_dir *dir = &points.dirs[i];

		(void)buf_printf(&text, "%s:%s", dir->path, dir->all ? "*" : "");
		for (size_t j = 0; j < dir->name_count; j++) {
			const char *name = points.names[dir->names + j];

			(void)buf_printf(&text, "%s%.*s", j > 0 ? "," : "", (int)strcspn(name, "/"),
					 name);
		}
		(void)buf_add_byte(&text, ' ');
	}
	assert_string_equal(buf_text(&text), expected);
	buf_deinit(&text);
	guard_points_deinit(&points);
	plan_deinit(plan);
}

static void R27_masks_in_trees_of_the_host_are_guarded(void **state)
{
	struct plan plan;

	(void)state;
	begin(&plan);
	add(&plan, PLAN_BIND, PLAN_READ_ONLY, "/usr");
	add(&plan, PLAN_BIND, 0, "/w");
	add(&plan, PLAN_MASK_FILE, 0, "/w/a/b");
	add(&plan, PLAN_MASK_DIR, PLAN_PLACEHOLDER, "/w/c");
	add(&plan, PLAN_MASK_DIR, PLAN_WATCH, "/usr/x");
	add(&plan, PLAN_MASK_TREE, 0, "/w/t");
	assert_points(&plan, "m+/w/a/b m+/w/c m/usr/x m/w/t /usr:x /w:a,c,t /w/a:b ");
}

/* Only where the job could make it, a file is what fits, and nobody said otherwise. */
static void R27_what_goes_is_stood_in_for(void **state)
{
	struct plan plan;

	(void)state;
	begin(&plan);
	add(&plan, PLAN_BIND, PLAN_READ_ONLY, "/r");
	add(&plan, PLAN_BIND, 0, "/w");
	add(&plan, PLAN_MASK_FILE, 0, "/r/file");
	add(&plan, PLAN_MASK_FILE, 0, "/w/file");
	add(&plan, PLAN_MASK_FILE, PLAN_LET_GO, "/w/let");
	add(&plan, PLAN_MASK_FILE, PLAN_NODE_LINK, "/w/link");
	add(&plan, PLAN_MASK_DIR, 0, "/w/dir");
	add(&plan, PLAN_MASK_DIR, PLAN_PLACEHOLDER, "/w/absent");
	add(&plan, PLAN_MASK_DIR, PLAN_WATCH, "/w/watched");
	assert_points(&plan, "m/r/file m+/w/file m/w/let m/w/link m/w/dir m+/w/absent m/w/watched "
			     "/r:file /w:absent,dir,file,let,link,watched ");
}

static void R27_read_only_leaves_in_writable_trees_are_guarded(void **state)
{
	struct plan plan;

	(void)state;
	begin(&plan);
	add(&plan, PLAN_BIND, 0, "/w");
	add(&plan, PLAN_BIND, PLAN_READ_ONLY, "/w/ro");
	add(&plan, PLAN_BIND, PLAN_READ_ONLY, "/w/ro/below"); /* read-only without it */
	add(&plan, PLAN_BIND, 0, "/w/ro/rw");
	add(&plan, PLAN_BIND, PLAN_READ_ONLY, "/w/ro/rw/leaf");
	assert_points(&plan, "r/w/ro r/w/ro/rw/leaf /w:ro /w/ro/rw:leaf ");
}

static void what_stands_on_our_own_entries_needs_no_guard(void **state)
{
	struct plan plan;

	(void)state;
	begin(&plan);
	add(&plan, PLAN_BIND, PLAN_READ_ONLY, "/usr");
	add(&plan, PLAN_TMPFS, PLAN_SYSTEM, "/tmp");
	add(&plan, PLAN_MASK_DIR, 0, "/tmp/x");
	add(&plan, PLAN_BIND, 0, "/w");
	add(&plan, PLAN_BIND, PLAN_PRIVATE_SOURCE, "/w/cache");
	add(&plan, PLAN_MASK_DIR, 0, "/w/cache/x");
	add(&plan, PLAN_PIN, 0, "/w/p");
	add(&plan, PLAN_SEAL, PLAN_SYSTEM, "/");
	assert_points(&plan, "");
}

static void with_the_root_bound_every_component_counts(void **state)
{
	struct plan plan;

	(void)state;
	begin(&plan);
	add(&plan, PLAN_BIND, 0, "/");
	add(&plan, PLAN_MASK_FILE, 0, "/etc/secret");
	assert_points(&plan, "m+/etc/secret /:etc /etc:secret ");
}

static void R28_notices_and_entries(void **state)
{
	struct plan plan;

	(void)state;
	begin(&plan);
	add(&plan, PLAN_BIND, 0, "/w");
	add(&plan, PLAN_NOTICE, 0, "/w/.envrc");
	add(&plan, PLAN_NOTICE, PLAN_QUARANTINE, "/w/.git/commondir");
	add(&plan, PLAN_NOTICE, PLAN_QUARANTINE | PLAN_ENTRIES, "/w/.git/modules");
	assert_points(&plan, "n/w/.envrc n/w/.git/commondir n/w/.git/modules "
			     "/w:.envrc,.git /w/.git:commondir,modules /w/.git/modules:* ");
}

static void names_are_found_exactly(void **state)
{
	struct guard_points points;
	struct plan plan;

	(void)state;
	begin(&plan);
	add(&plan, PLAN_BIND, 0, "/w");
	add(&plan, PLAN_MASK_FILE, 0, "/w/ab/c");
	add(&plan, PLAN_MASK_FILE, 0, "/w/b");
	assert_int_equal(guard_points_init(&points, &plan, NULL), 0);
	assert_int_equal(points.dir_count, 2);
	assert_true(guard_points_matters(&points, &points.dirs[0], "ab"));
	assert_true(guard_points_matters(&points, &points.dirs[0], "b"));
	assert_false(guard_points_matters(&points, &points.dirs[0], "a"));
	assert_false(guard_points_matters(&points, &points.dirs[0], "abc"));
	assert_true(guard_points_is_dir(&points, &points.dirs[0], "ab"));
	assert_false(guard_points_is_dir(&points, &points.dirs[0], "b"));
	guard_points_deinit(&points);
	plan_deinit(&plan);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(R27_masks_in_trees_of_the_host_are_guarded),
		cmocka_unit_test(R27_what_goes_is_stood_in_for),
		cmocka_unit_test(R27_read_only_leaves_in_writable_trees_are_guarded),
		cmocka_unit_test(what_stands_on_our_own_entries_needs_no_guard),
		cmocka_unit_test(with_the_root_bound_every_component_counts),
		cmocka_unit_test(R28_notices_and_entries),
		cmocka_unit_test(names_are_found_exactly),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
