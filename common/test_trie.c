/* SPDX-License-Identifier: Apache-2.0 */
#include "common/trie.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/path.h"
#include "common/scope.h"
#include "tests/flat.h"
#include "tests/gen_policy.h"
#include "tests/test.h"

static void trie_release(struct policy_trie **trie)
{
	*trie = trie_free(*trie);
}

static void add(struct rule_list *list, const char *path)
{
	assert_non_null(rule_list_add(list, path, ACCESS_DENY, RULE_USER, NULL, NULL));
}

static uint32_t find(const struct policy_trie *trie, const char *path)
{
	return trie_find(trie, path, strlen(path));
}

static void empty(void **state)
{
	struct rule_list list = RULE_LIST_INIT;
	AUTO(trie_release) struct policy_trie *trie = trie_new(&list);
	const struct rule *covering[1];

	(void)state;
	assert_non_null(trie);
	assert_int_equal(find(trie, "/"), TRIE_NO_RULE);
	assert_int_equal(find(trie, "/a"), TRIE_NO_RULE);
	assert_int_equal(trie_covering(trie, &list, "/a", 2, covering, 1), 0);
	assert_null(trie_free(NULL));
}

static void root_alone(void **state)
{
	AUTO(rule_list_deinit) struct rule_list list = RULE_LIST_INIT;
	AUTO(trie_release) struct policy_trie *trie = NULL;
	const struct rule *covering[1];

	(void)state;
	add(&list, "relative");
	add(&list, "/");
	add(&list, "");
	trie = trie_new(&list);
	assert_non_null(trie);
	assert_int_equal(find(trie, "/"), 1);
	assert_int_equal(find(trie, "/a/b"), 1);
	assert_int_equal(trie_covering(trie, &list, "/a", 2, covering, 1), 1);
	assert_ptr_equal(covering[0], &list.rules[1]);
}

static void component_borders(void **state)
{
	AUTO(rule_list_deinit) struct rule_list list = RULE_LIST_INIT;
	AUTO(trie_release) struct policy_trie *trie = NULL;

	(void)state;
	add(&list, "/a/bc");
	add(&list, "/a/b");
	add(&list, "/a//b");
	add(&list, "/a/b/c/d");
	trie = trie_new(&list);
	assert_non_null(trie);
	assert_int_equal(find(trie, "/a"), TRIE_NO_RULE);
	assert_int_equal(find(trie, "/a/b"), 1);
	assert_int_equal(find(trie, "/a/bc"), 0);
	assert_int_equal(find(trie, "/a/bcd"), TRIE_NO_RULE);
	assert_int_equal(find(trie, "/a/b/c"), 1);
	assert_int_equal(find(trie, "/a/b/cd"), 1);
	assert_int_equal(find(trie, "/a/b/c/d/e"), 3);
	assert_int_equal(find(trie, "/a//b/x"), 2);
	assert_int_equal(find(trie, "/a//bx"), TRIE_NO_RULE);
	assert_int_equal(trie_find(trie, "/a/b/c/d", 4), 1);
}

static void first_of_equals(void **state)
{
	AUTO(rule_list_deinit) struct rule_list list = RULE_LIST_INIT;
	AUTO(trie_release) struct policy_trie *trie = NULL;

	(void)state;
	add(&list, "/z");
	add(&list, "/a");
	add(&list, "");
	add(&list, "/a");
	add(&list, "/");
	trie = trie_new(&list);
	assert_int_equal(find(trie, "/a/x"), 1);
	assert_int_equal(find(trie, "/q"), 2);
}

/* All bytes that can follow each other, so that one node has as many children as there can be. */
static void widest_node(void **state)
{
	AUTO(rule_list_deinit) struct rule_list list = RULE_LIST_INIT;
	AUTO(trie_release) struct policy_trie *trie = NULL;
	char path[] = "/x?";

	(void)state;
	for (int byte = 1; byte < 256; byte++) {
		path[2] = (char)byte;
		add(&list, path);
	}
	trie = trie_new(&list);
	assert_non_null(trie);
	for (int byte = 1; byte < 256; byte++) {
		path[2] = (char)byte;
		assert_int_equal(find(trie, path), byte - 1);
	}
}

/* Every component a rule: more answers than anybody has room for. */
static void covering_fills_what_fits(void **state)
{
	AUTO(rule_list_deinit) struct rule_list list = RULE_LIST_INIT;
	AUTO(trie_release) struct policy_trie *trie = NULL;
	const struct rule *covering[200] = { NULL };
	char path[512] = "";

	(void)state;
	add(&list, "/");
	for (size_t i = 0; i < 150; i++) {
		memcpy(path + 2 * i, "/a", 3);
		add(&list, path);
	}
	trie = trie_new(&list);
	assert_int_equal(trie_covering(trie, &list, path, strlen(path), covering, 200), 151);
	for (size_t i = 0; i < 151; i++)
		assert_ptr_equal(covering[i], &list.rules[150 - i]);
	memset(covering, 0, sizeof(covering));
	assert_int_equal(trie_covering(trie, &list, path, strlen(path), covering, 2), 151);
	assert_ptr_equal(covering[0], &list.rules[150]);
	assert_ptr_equal(covering[1], &list.rules[149]);
	assert_null(covering[2]);
	assert_int_equal(trie_covering(trie, &list, path, strlen(path), NULL, 0), 151);
}

static int compare_depth_descending(const void *a, const void *b)
{
	size_t left = path_depth((*(const struct rule *const *)a)->path);
	size_t right = path_depth((*(const struct rule *const *)b)->path);

	return (left < right) - (left > right);
}

/* All covering rules of merged RULES, the plain way. */
static size_t flat_covering(const struct rule_list *rules, const char *path,
			    const struct rule **ret_rules)
{
	AUTO(auto_free) char *normal = path_normalize(path);
	size_t count = 0;

	for (size_t i = 0; normal && i < rules->count; i++)
		if (path_covers(rules->rules[i].path, normal))
			ret_rules[count++] = &rules->rules[i];
	qsort(ret_rules, count, sizeof(*ret_rules), compare_depth_descending);
	return count;
}

static void covering_equals_the_flat_way(void **state)
{
	const struct gen_options options = {
		.max_rules = 60, .max_depth = 7, .odd = true, .bytes = true, .root = true
	};
	struct gen gen = gen_start(20);

	(void)state;
	for (int round = 0; round < 1000; round++) {
		AUTO(rule_list_deinit) struct rule_list list = RULE_LIST_INIT;
		AUTO(trie_release) struct policy_trie *trie = NULL;

		gen_rules(&gen, &list, &options);
		trie = trie_new(&list);
		for (int i = 0; i < 10; i++) {
			AUTO(auto_free) char *path = gen_probe(&gen, &list, &options);
			const struct rule *want[64];
			const struct rule *got[64];
			size_t size = 0;
			size_t count = flat_covering(&list, path, want);

			if (!path_normal_length(path, &size))
				continue;
			assert_int_equal(trie_covering(trie, &list, path, size, got, 64), count);
			for (size_t k = 0; k < count; k++)
				assert_ptr_equal(got[k], want[k]);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(empty),
		cmocka_unit_test(root_alone),
		cmocka_unit_test(component_borders),
		cmocka_unit_test(first_of_equals),
		cmocka_unit_test(widest_node),
		cmocka_unit_test(covering_fills_what_fits),
		cmocka_unit_test(covering_equals_the_flat_way),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
