/* SPDX-License-Identifier: Apache-2.0 */
#include "common/rule.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/limits.h"
#include "common/scope.h"
#include "tests/gen_policy.h"
#include "tests/test.h"

static void add(struct rule_list *list, const char *path, enum access access,
		enum rule_source source)
{
	assert_non_null(rule_list_add(list, path, access, source, "test", NULL));
}

static void expect(const struct rule_list *list, size_t index, const char *path, enum access access,
		   enum rule_source source)
{
	assert_true(index < list->count);
	assert_string_equal(list->rules[index].path, path);
	assert_int_equal(list->rules[index].access, access);
	assert_int_equal(list->rules[index].source, source);
}

static void names_go_both_ways(void **state)
{
	enum access access = ACCESS_NONE;
	enum rule_source source = RULE_BASELINE;
	enum absent_mode absent = ABSENT_DEFAULT;

	(void)state;
	for (int i = ACCESS_READ_WRITE; i <= ACCESS_DENY; i++) {
		assert_true(access_parse(access_name((enum access)i), &access));
		assert_int_equal(access, i);
	}
	assert_string_equal(access_name(ACCESS_NONE), "none");
	assert_false(access_parse("none", &access));
	assert_false(access_parse("readwrite", &access));
	for (int i = RULE_BASELINE; i <= RULE_MANDATORY; i++) {
		assert_true(rule_source_parse(rule_source_name((enum rule_source)i), &source));
		assert_int_equal(source, i);
	}
	assert_false(rule_source_parse("", &source));
	for (int i = ABSENT_DEFAULT; i <= ABSENT_IGNORE; i++) {
		assert_true(absent_mode_parse(absent_mode_name((enum absent_mode)i), &absent));
		assert_int_equal(absent, i);
	}
	assert_false(absent_mode_parse("never", &absent));
	assert_string_equal(node_type_name(NODE_DIRECTORY), "directory");
	assert_string_equal(node_type_name((enum node_type)99), "unknown");
}

static void source_outranks_then_access(void **state)
{
	AUTO(rule_list_deinit) struct rule_list list = RULE_LIST_INIT;
	AUTO(rule_list_deinit) struct rule_list merged = RULE_LIST_INIT;

	(void)state;
	add(&list, "/p", ACCESS_DENY, RULE_BASELINE);
	add(&list, "/p/", ACCESS_READ_WRITE, RULE_USER);
	add(&list, "/q", ACCESS_READ_WRITE, RULE_USER);
	add(&list, "/q", ACCESS_READ_ONLY, RULE_USER);
	add(&list, "/r", ACCESS_READ_WRITE, RULE_MANDATORY);
	add(&list, "/r", ACCESS_DENY, RULE_USER);
	add(&list, "rel", ACCESS_DENY, RULE_MANDATORY);
	add(&list, "/a/../b", ACCESS_DENY, RULE_MANDATORY);
	add(&list, "", ACCESS_DENY, RULE_MANDATORY);
	assert_int_equal(rule_list_merge(&merged, &list, NULL), 0);
	assert_int_equal(merged.count, 3);
	expect(&merged, 0, "/p", ACCESS_READ_WRITE, RULE_USER);
	expect(&merged, 1, "/q", ACCESS_READ_ONLY, RULE_USER);
	expect(&merged, 2, "/r", ACCESS_READ_WRITE, RULE_MANDATORY);
}

static void sorted_by_depth_then_bytes(void **state)
{
	static const char *const order[] = { "/",     "/Z",   "/a",   "/a.b", "/ab",
					     "/\xff", "/a/b", "/b/a", "//a/b" };
	AUTO(rule_list_deinit) struct rule_list list = RULE_LIST_INIT;
	AUTO(rule_list_deinit) struct rule_list merged = RULE_LIST_INIT;

	(void)state;
	for (size_t i = ARRAY_SIZE(order); i-- > 0;)
		add(&list, order[i], ACCESS_DENY, RULE_USER);
	assert_int_equal(rule_list_merge(&merged, &list, NULL), 0);
	assert_int_equal(merged.count, ARRAY_SIZE(order));
	for (size_t i = 0; i < ARRAY_SIZE(order); i++)
		assert_string_equal(merged.rules[i].path, order[i]);
}

/* Of otherwise equal claims the one with a bind source, not optional, with more known, stays. */
static void ties_are_total(void **state)
{
	struct rule variants[8];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(variants); i++)
		variants[i] = (struct rule){ .path = (char *)"/p", .access = ACCESS_DENY };
	variants[0].bind_source = (char *)"/private";
	variants[1].denied_link = true;
	variants[2].type = NODE_FILE;
	variants[3].real = (char *)"/real";
	variants[4].absent = ABSENT_IGNORE;
	variants[5].origin = (char *)"a";
	variants[7].optional = true;

	for (size_t i = 0; i < ARRAY_SIZE(variants); i++) {
		for (size_t j = 0; j < ARRAY_SIZE(variants); j++) {
			AUTO(rule_list_deinit) struct rule_list list = RULE_LIST_INIT;
			AUTO(rule_list_deinit) struct rule_list merged = RULE_LIST_INIT;
			const struct rule *best = &variants[i < j ? i : j];
			struct rule copy;

			assert_int_equal(rule_copy(&copy, &variants[i], NULL), 0);
			assert_int_equal(rule_list_add_take(&list, &copy, NULL), 0);
			assert_int_equal(rule_copy(&copy, &variants[j], NULL), 0);
			assert_int_equal(rule_list_add_take(&list, &copy, NULL), 0);
			assert_int_equal(rule_list_merge(&merged, &list, NULL), 0);
			assert_int_equal(merged.count, 1);
			assert_int_equal(merged.rules[0].optional, best->optional);
			assert_int_equal(merged.rules[0].denied_link, best->denied_link);
			assert_int_equal(merged.rules[0].type, best->type);
			assert_int_equal(merged.rules[0].absent, best->absent);
			assert_int_equal(!merged.rules[0].bind_source, !best->bind_source);
			assert_int_equal(!merged.rules[0].real, !best->real);
			assert_int_equal(!merged.rules[0].origin, !best->origin);
		}
	}
}

static void named_absent_modes_are_ordered(void **state)
{
	AUTO(rule_list_deinit) struct rule_list list = RULE_LIST_INIT;
	AUTO(rule_list_deinit) struct rule_list merged = RULE_LIST_INIT;

	(void)state;
	rule_list_add(&list, "/p", ACCESS_DENY, RULE_USER, NULL, NULL)->absent = ABSENT_IGNORE;
	rule_list_add(&list, "/p", ACCESS_DENY, RULE_USER, NULL, NULL)->absent = ABSENT_WATCH;
	assert_int_equal(rule_list_merge(&merged, &list, NULL), 0);
	assert_int_equal(merged.rules[0].absent, ABSENT_WATCH);
}

static void shuffle(struct gen *gen, struct rule_list *list)
{
	for (size_t i = list->count; i > 1; i--) {
		size_t other = gen_below(gen, (uint32_t)i);
		struct rule moved = list->rules[i - 1];

		list->rules[i - 1] = list->rules[other];
		list->rules[other] = moved;
	}
}

static void order_does_not_matter(void **state)
{
	const struct gen_options options = {
		.max_rules = 30, .max_depth = 4, .odd = true, .root = true
	};
	struct gen gen = gen_start(7);

	(void)state;
	for (int round = 0; round < 500; round++) {
		AUTO(rule_list_deinit) struct rule_list list = RULE_LIST_INIT;
		AUTO(rule_list_deinit) struct rule_list once = RULE_LIST_INIT;
		AUTO(rule_list_deinit) struct rule_list again = RULE_LIST_INIT;

		gen_candidates(&gen, &list, &options);
		assert_int_equal(rule_list_merge(&once, &list, NULL), 0);
		shuffle(&gen, &list);
		assert_int_equal(rule_list_merge(&again, &list, NULL), 0);
		assert_int_equal(once.count, again.count);
		for (size_t i = 0; i < once.count; i++)
			expect(&again, i, once.rules[i].path, once.rules[i].access,
			       once.rules[i].source);
	}
}

static void copies_are_deep(void **state)
{
	AUTO(rule_deinit)
	struct rule rule = { .path = strdup("/p"),
			     .origin = strdup("o"),
			     .bind_source = strdup("/b"),
			     .real = strdup("/r"),
			     .type = NODE_FILE,
			     .optional = true };
	AUTO(rule_deinit) struct rule copy = { .path = NULL };

	(void)state;
	assert_int_equal(rule_copy(&copy, &rule, NULL), 0);
	assert_string_equal(copy.path, "/p");
	assert_string_equal(copy.origin, "o");
	assert_string_equal(copy.bind_source, "/b");
	assert_string_equal(copy.real, "/r");
	assert_ptr_not_equal(copy.path, rule.path);
	assert_int_equal(copy.type, NODE_FILE);
	assert_true(copy.optional);
	rule_deinit(NULL);
	rule_list_deinit(NULL);
}

static void no_more_than_the_limit(void **state)
{
	AUTO(rule_list_deinit) struct rule_list list = RULE_LIST_INIT;
	struct error err = ERROR_INIT;

	(void)state;
	for (int i = 0; i < LIMIT_RULES; i++)
		assert_non_null(rule_list_add(&list, "/p", ACCESS_DENY, RULE_USER, NULL, NULL));
	assert_null(rule_list_add(&list, "/p", ACCESS_DENY, RULE_USER, "x", &err));
	assert_int_equal(err.kind, ERR_POLICY_INVALID);
	assert_string_equal(err.message, "more than 100000 rules");
	assert_int_equal(list.count, LIMIT_RULES);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_go_both_ways),
		cmocka_unit_test(source_outranks_then_access),
		cmocka_unit_test(sorted_by_depth_then_bytes),
		cmocka_unit_test(ties_are_total),
		cmocka_unit_test(named_absent_modes_are_ordered),
		cmocka_unit_test(order_does_not_matter),
		cmocka_unit_test(copies_are_deep),
		cmocka_unit_test(no_more_than_the_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
