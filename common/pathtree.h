/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_COMMON_PATHTREE_H
#define FSBOX_COMMON_PATHTREE_H

/*
 * Many paths in the order of a walk through a file tree, so that questions about what covers what
 * need no comparison of all with all.
 *
 * Paths are put in with a number (the item), sorted once, and then found by position. A path stands
 * before everything below it, and everything below it directly follows. Entries with the same path
 * are neighbours, ordered by item; the first of them speaks for all (`parent`, `end`).
 *
 * Covering is that of path_covers(). Nothing needs to be normal; paths are borrowed.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

#define PATH_TREE_NONE UINT32_MAX

/*
 * @first   position of the first entry with this path
 * @parent  position of the first entry of the nearest path above, or PATH_TREE_NONE
 * @end     one past the last position at or below this path; only good at @first
 */
struct path_tree_entry {
	const char *path;
	uint32_t size;
	uint32_t item;
	uint32_t first;
	uint32_t parent;
	uint32_t end;
};

struct path_tree {
	struct path_tree_entry *entries; /* heap, owned */
	uint32_t count;
	uint32_t capacity;
};

#define PATH_TREE_INIT          \
	{                       \
		.entries = NULL \
	}

/* Room for CAPACITY paths. Fails with ERR_NOMEM. */
int path_tree_init(struct path_tree *tree, size_t capacity, struct error *err);
void path_tree_deinit(struct path_tree *tree);

/* At most as often as there is room. */
void path_tree_add(struct path_tree *tree, const char *path, uint32_t item);

/* Sort and connect; to be called once, after the last path_tree_add(). */
void path_tree_link(struct path_tree *tree);

/* Position of the first entry of the deepest path covering PATH, or PATH_TREE_NONE. */
uint32_t path_tree_cover(const struct path_tree *tree, const char *path);

/* Position of the first entry with exactly this path, or PATH_TREE_NONE. */
uint32_t path_tree_find(const struct path_tree *tree, const char *path);

/* The positions [*ret_begin, *ret_end) of what lies at or below PATH, which need not be in the tree. */
void path_tree_below(const struct path_tree *tree, const char *path, uint32_t *ret_begin,
		     uint32_t *ret_end);

#endif
