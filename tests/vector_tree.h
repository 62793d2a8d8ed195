/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_TESTS_VECTOR_TREE_H
#define FSBOX_TESTS_VECTOR_TREE_H

/*
 * Files that a vector wants to find. They are made below a new directory, which the vector calls
 * ${ROOT}, and are removed at the end.
 */

#include "common/error.h"
#include "tests/json_lite.h"

/*
 * @root   canonical, on the heap; NULL: no tree
 * @input  the case's input with the root's path in place of ${ROOT}
 */
struct vector_tree {
	char *root;
	struct json_value *input;
};

#define VECTOR_TREE_INIT    \
	{                   \
		NULL, NULL, \
	}

int vector_tree_init(struct vector_tree *tree, const struct json_value *input, struct error *err);
void vector_tree_deinit(struct vector_tree *tree);

/* A copy of VALUE with ${ROOT} in place of the root's path. */
struct json_value *vector_tree_result(const struct vector_tree *tree,
				      const struct json_value *value);

/* A copy of VALUE with TO in place of every FROM in its strings. */
struct json_value *vector_replace(const struct json_value *value, const char *from, const char *to);

#endif
