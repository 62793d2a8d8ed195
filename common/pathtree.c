/* SPDX-License-Identifier: Apache-2.0 */
#include "common/pathtree.h"

#include <stdlib.h>
#include <string.h>

/* How many leading bytes two texts of at least SIZE bytes share, at most SIZE. */
static size_t shared_bytes(const char *a, const char *b, size_t size)
{
	size_t i = 0;

	/* By words first: paths of one tree share long beginnings. */
	for (; size - i >= sizeof(uint64_t); i += sizeof(uint64_t))
		if (memcmp(a + i, b + i, sizeof(uint64_t)) != 0)
			break;
	while (i < size && a[i] == b[i])
		i++;
	return i;
}

/* A walk goes below `/x` before it comes to `/x-y`: the slash sorts before every other byte. */
static int walk_rank(char byte)
{
	return byte == '/' ? -1 : (unsigned char)byte;
}

static int compare_paths(const char *a, size_t a_size, const char *b, size_t b_size)
{
	size_t shorter = a_size < b_size ? a_size : b_size;
	size_t shared = shared_bytes(a, b, shorter);

	if (shared == shorter)
		return (a_size > b_size) - (a_size < b_size);
	return walk_rank(a[shared]) - walk_rank(b[shared]);
}

static int compare_entries(const void *a, const void *b)
{
	const struct path_tree_entry *left = a;
	const struct path_tree_entry *right = b;
	int order = compare_paths(left->path, left->size, right->path, right->size);

	return order ? order : (left->item > right->item) - (left->item < right->item);
}

static bool covers(const struct path_tree_entry *entry, const char *path, size_t size)
{
	if (entry->size > size || memcmp(entry->path, path, entry->size) != 0)
		return false;
	if (entry->size == size)
		return true;
	return path[entry->size] == '/' || (entry->size == 1 && entry->path[0] == '/');
}

int path_tree_init(struct path_tree *tree, size_t capacity, struct error *err)
{
	*tree = (struct path_tree)PATH_TREE_INIT;
	if (capacity < PATH_TREE_NONE)
		tree->entries = calloc(capacity + 1, sizeof(*tree->entries));
	if (!tree->entries)
		return error_set(err, ERR_NOMEM, 0, "no memory to sort %zu paths", capacity);
	tree->capacity = (uint32_t)capacity;
	return 0;
}

void path_tree_deinit(struct path_tree *tree)
{
	if (!tree)
		return;
	free(tree->entries);
	*tree = (struct path_tree)PATH_TREE_INIT;
}

void path_tree_add(struct path_tree *tree, const char *path, uint32_t item)
{
	if (tree->count >= tree->capacity)
		return;
	tree->entries[tree->count++] = (struct path_tree_entry){
		.path = path,
		.size = (uint32_t)strlen(path),
		.item = item,
	};
}

void path_tree_link(struct path_tree *tree)
{
	if (tree->count == 0)
		return;
	qsort(tree->entries, tree->count, sizeof(*tree->entries), compare_entries);

	for (uint32_t i = 0; i < tree->count; i++) {
		struct path_tree_entry *entry = &tree->entries[i];
		uint32_t above = i > 0 ? tree->entries[i - 1].first : PATH_TREE_NONE;

		while (above != PATH_TREE_NONE &&
		       !covers(&tree->entries[above], entry->path, entry->size))
			above = tree->entries[above].parent;
		entry->first = i;
		entry->parent = above;
		entry->end = i + 1;
		if (above != PATH_TREE_NONE && tree->entries[above].size == entry->size) {
			entry->first = above;
			entry->parent = tree->entries[above].parent;
		}
	}

	/* Backwards, everything below an entry has its end before the entry passes it on. */
	for (uint32_t i = tree->count; i-- > 0;) {
		struct path_tree_entry *entry = &tree->entries[i];
		uint32_t to = entry->first != i ? entry->first : entry->parent;

		if (to != PATH_TREE_NONE && tree->entries[to].end < entry->end)
			tree->entries[to].end = entry->end;
	}
}

/* How many entries stand before PATH in the walk; with AFTER_EQUAL those with the same path count. */
static uint32_t count_before(const struct path_tree *tree, const char *path, size_t size,
			     bool after_equal)
{
	uint32_t low = 0;
	uint32_t high = tree->count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		const struct path_tree_entry *entry = &tree->entries[middle];
		int order = compare_paths(entry->path, entry->size, path, size);

		if (order < 0 || (order == 0 && after_equal))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

uint32_t path_tree_cover(const struct path_tree *tree, const char *path)
{
	size_t size = strlen(path);
	uint32_t before = count_before(tree, path, size, true);
	uint32_t position = before > 0 ? tree->entries[before - 1].first : PATH_TREE_NONE;

	/* What covers PATH also covers its predecessor in the walk, or is it. */
	while (position != PATH_TREE_NONE && !covers(&tree->entries[position], path, size))
		position = tree->entries[position].parent;
	return position;
}

uint32_t path_tree_find(const struct path_tree *tree, const char *path)
{
	uint32_t position = path_tree_cover(tree, path);

	if (position == PATH_TREE_NONE || strcmp(tree->entries[position].path, path) != 0)
		return PATH_TREE_NONE;
	return position;
}

void path_tree_below(const struct path_tree *tree, const char *path, uint32_t *ret_begin,
		     uint32_t *ret_end)
{
	const struct path_tree_entry self = { .path = path, .size = (uint32_t)strlen(path) };
	uint32_t begin = count_before(tree, path, self.size, false);
	uint32_t end = begin;

	/* Sibling after sibling: each knows where its own subtree ends. */
	while (end < tree->count && covers(&self, tree->entries[end].path, tree->entries[end].size))
		end = tree->entries[tree->entries[end].first].end;
	*ret_begin = begin;
	*ret_end = end;
}
