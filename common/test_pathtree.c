/* SPDX-License-Identifier: Apache-2.0 */
#include "common/pathtree.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/path.h"
#include "common/scope.h"
#include "tests/test.h"

static void build(struct path_tree *tree, const char *const *paths, size_t count)
{
	struct error err = ERROR_INIT;

	assert_int_equal(path_tree_init(tree, count, &err), 0);
	for (size_t i = 0; i < count; i++)
		path_tree_add(tree, paths[i], (uint32_t)i);
	path_tree_link(tree);
}

static void a_walk_goes_down_before_it_goes_on(void **state)
{
	static const char *const paths[] = {
		"/a-b", "/a", "/a/b", "/a!", "/", "/a0", "/a/b/c", "/a"
	};
	static const char *const walk[] = {
		"/", "/a", "/a", "/a/b", "/a/b/c", "/a!", "/a-b", "/a0"
	};
	struct path_tree tree;

	(void)state;
	build(&tree, paths, ARRAY_SIZE(paths));
	for (size_t i = 0; i < ARRAY_SIZE(walk); i++)
		assert_string_equal(tree.entries[i].path, walk[i]);
	assert_int_equal(tree.entries[1].item, 1);
	assert_int_equal(tree.entries[2].item, 7);
	assert_int_equal(tree.entries[2].first, 1);
	assert_int_equal(tree.entries[3].parent, 1);
	assert_int_equal(tree.entries[1].end, 5);
	assert_int_equal(tree.entries[0].end, 8);
	assert_int_equal(tree.entries[0].parent, PATH_TREE_NONE);
	path_tree_add(&tree, "/one/too/many", 8);
	assert_int_equal(tree.count, 8);
	path_tree_deinit(&tree);
	path_tree_deinit(&tree);
	path_tree_deinit(NULL);
}

static void random_path(char *out, size_t size)
{
	static const char *const names[] = { "a",    "b",   "ab",
					     "a-",   "a.b", "long-component-name",
					     "\x01", "\xff" };
	int depth = rand() % 5;

	out[0] = '\0';
	for (int i = 0; i < depth; i++) {
		strncat(out, "/", size - strlen(out) - 1);
		strncat(out, names[(size_t)rand() % ARRAY_SIZE(names)], size - strlen(out) - 1);
	}
	if (out[0] == '\0')
		(void)snprintf(out, size, "/");
}

/* Every answer of the tree against path_covers() over all pairs. */
static void agrees_with_all_pairs(void **state)
{
	enum { COUNT = 60, ROUNDS = 300 };
	static char storage[COUNT][256];
	const char *paths[COUNT];

	(void)state;
	srand(7);
	for (int round = 0; round < ROUNDS; round++) {
		struct path_tree tree;

		for (size_t i = 0; i < COUNT; i++) {
			random_path(storage[i], sizeof(storage[i]));
			paths[i] = storage[i];
		}
		build(&tree, paths, COUNT);
		for (uint32_t i = 0; i < COUNT; i++) {
			const struct path_tree_entry *entry = &tree.entries[i];
			size_t deepest = 0;
			uint32_t begin = 0;
			uint32_t end = 0;
			uint32_t below = 0;
			char probe[256];

			random_path(probe, sizeof(probe));
			for (uint32_t j = 0; j < COUNT; j++) {
				const struct path_tree_entry *other = &tree.entries[j];

				if (path_covers(other->path, probe) && other->size > deepest)
					deepest = other->size;
				below += path_covers(probe, other->path);
				if (entry->first == i)
					assert_int_equal(path_covers(entry->path, other->path),
							 j >= i && j < entry->end);
			}
			begin = path_tree_cover(&tree, probe);
			if (deepest == 0)
				assert_int_equal(begin, PATH_TREE_NONE);
			else
				assert_int_equal(tree.entries[begin].size, deepest);
			assert_int_equal(path_tree_find(&tree, probe) != PATH_TREE_NONE,
					 deepest == strlen(probe));
			path_tree_below(&tree, probe, &begin, &end);
			assert_int_equal(end - begin, below);
			assert_true(below == 0 || path_covers(probe, tree.entries[begin].path));
			assert_true(below == 0 || path_covers(probe, tree.entries[end - 1].path));
		}
		path_tree_deinit(&tree);
	}
}

static void impossible_sizes_fail(void **state)
{
	struct path_tree tree;
	struct error err = ERROR_INIT;

	(void)state;
	assert_int_equal(path_tree_init(&tree, SIZE_MAX, &err), -ERR_NOMEM);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_walk_goes_down_before_it_goes_on),
		cmocka_unit_test(agrees_with_all_pairs),
		cmocka_unit_test(impossible_sizes_fail),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
