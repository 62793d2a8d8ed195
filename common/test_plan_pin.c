/* SPDX-License-Identifier: Apache-2.0 */
#include "common/plan_pin.h"

#include <stdio.h>
#include <string.h>

#include "common/buf.h"
#include "tests/test.h"

static void add(struct plan *plan, enum plan_op_kind kind, uint32_t flags, const char *path,
		const char *source)
{
	const struct plan_op op = {
		.kind = kind,
		.flags = flags,
		.path = (char *)path,
		.source = (char *)source,
		.rule = -1,
	};

	assert_int_equal(plan_add(plan, &op, NULL), 0);
}

/* The pins as text: "path<source path<source". */
static void assert_pins(struct plan *plan, const char *expected)
{
	struct buf text = BUF_INIT(4096);
	struct error err = ERROR_INIT;
	size_t before = plan->count;

	assert_int_equal(plan_add_pins(plan, &err), 0);
	for (size_t i = before; i < plan->count; i++) {
		assert_int_equal(plan->ops[i].kind, PLAN_PIN);
		(void)buf_printf(&text, "%s%s<%s", i > before ? " " : "", plan->ops[i].path,
				 plan->ops[i].source);
	}
	assert_string_equal(buf_text(&text), expected);
	buf_deinit(&text);
	plan_deinit(plan);
}

static void begin(struct plan *plan)
{
	*plan = (struct plan)PLAN_INIT;
	add(plan, PLAN_ROOT, PLAN_SYSTEM, "/", NULL);
}

static void ancestors_of_a_mask_are_pinned_deepest_first(void **state)
{
	struct plan plan;

	(void)state;
	begin(&plan);
	add(&plan, PLAN_BIND, 0, "/w", "/w");
	add(&plan, PLAN_MASK_FILE, 0, "/w/a/b/secret", NULL);
	assert_pins(&plan, "/w/a/b</w/a/b /w/a</w/a");
}

static void read_only_leaves_too_each_ancestor_once(void **state)
{
	struct plan plan;

	(void)state;
	begin(&plan);
	add(&plan, PLAN_BIND, 0, "/w", "/w");
	add(&plan, PLAN_BIND, PLAN_READ_ONLY, "/w/.git/config", "/w/.git/config");
	add(&plan, PLAN_BIND, PLAN_READ_ONLY, "/w/.git/hooks", "/w/.git/hooks");
	add(&plan, PLAN_MASK_FILE, 0, "/w/.git/x/y", NULL);
	add(&plan, PLAN_MASK_DIR, PLAN_PLACEHOLDER, "/w/.gitx/y", NULL);
	assert_pins(&plan, "/w/.gitx</w/.gitx /w/.git/x</w/.git/x /w/.git</w/.git");
}

static void nothing_is_pinned_where_nothing_can_be_renamed(void **state)
{
	struct plan plan;

	(void)state;
	begin(&plan);
	add(&plan, PLAN_BIND, PLAN_READ_ONLY, "/r", "/r");
	add(&plan, PLAN_MASK_FILE, 0, "/r/a/secret", NULL);
	add(&plan, PLAN_TMPFS, PLAN_SYSTEM, "/tmp", NULL);
	add(&plan, PLAN_MASK_DIR, 0, "/tmp/a/b", NULL);
	add(&plan, PLAN_BIND, 0, "/w", "/w");
	add(&plan, PLAN_MASK_FILE, 0, "/w/secret", NULL);
	add(&plan, PLAN_MASK_DIR, PLAN_WATCH, "/w/a/absent", NULL);
	add(&plan, PLAN_BIND, 0, "/w/b/c", "/w/b/c");
	assert_pins(&plan, "");
}

static void a_grant_inside_a_grant_is_gone_through(void **state)
{
	struct plan plan;

	(void)state;
	begin(&plan);
	add(&plan, PLAN_BIND, 0, "/w", "/w");
	add(&plan, PLAN_BIND, 0, "/w/a/in", "/w/a/in");
	add(&plan, PLAN_MASK_FILE, 0, "/w/a/in/q/secret", NULL);
	assert_pins(&plan, "/w/a/in/q</w/a/in/q /w/a</w/a");
}

/* What is denied below a file is absent; with a directory in the file's place it would not be. */
static void a_file_is_gone_through_like_a_directory(void **state)
{
	struct plan plan;

	(void)state;
	begin(&plan);
	add(&plan, PLAN_BIND, 0, "/w", "/w");
	add(&plan, PLAN_BIND, PLAN_NODE_FILE, "/w/a/file", "/w/a/file");
	add(&plan, PLAN_MASK_DIR, PLAN_PLACEHOLDER, "/w/a/file/x", NULL);
	assert_pins(&plan, "/w/a</w/a");
}

static void a_read_only_tree_stops_the_walk_and_is_pinned_itself(void **state)
{
	struct plan plan;

	(void)state;
	begin(&plan);
	add(&plan, PLAN_BIND, 0, "/w", "/w");
	add(&plan, PLAN_BIND, PLAN_READ_ONLY, "/w/a/ro", "/w/a/ro");
	add(&plan, PLAN_MASK_FILE, 0, "/w/a/ro/q/secret", NULL);
	assert_pins(&plan, "/w/a</w/a");
}

static void private_sources_and_the_root_are_named_as_the_host_has_them(void **state)
{
	struct plan plan;

	(void)state;
	begin(&plan);
	add(&plan, PLAN_BIND, 0, "/", "/");
	add(&plan, PLAN_BIND, PLAN_PRIVATE_SOURCE, "/h/.cache", "/p/cache");
	add(&plan, PLAN_MASK_FILE, 0, "/h/.cache/k/secret", NULL);
	add(&plan, PLAN_MASK_DIR, 0, "/etc/ssh", NULL);
	assert_pins(&plan, "/h/.cache/k</p/cache/k /h</h /etc</etc");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ancestors_of_a_mask_are_pinned_deepest_first),
		cmocka_unit_test(read_only_leaves_too_each_ancestor_once),
		cmocka_unit_test(nothing_is_pinned_where_nothing_can_be_renamed),
		cmocka_unit_test(a_grant_inside_a_grant_is_gone_through),
		cmocka_unit_test(a_file_is_gone_through_like_a_directory),
		cmocka_unit_test(a_read_only_tree_stops_the_walk_and_is_pinned_itself),
		cmocka_unit_test(private_sources_and_the_root_are_named_as_the_host_has_them),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
