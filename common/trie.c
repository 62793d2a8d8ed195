/* SPDX-License-Identifier: Apache-2.0 */
#include "common/trie.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/scope.h"

/*
 * @label        offset in trie.labels of the bytes on the edge to this node
 * @rule         the rule whose path ends here, or TRIE_NO_RULE
 * @first_child  index of the first of child_count nodes, ordered by their first byte
 */
struct node {
	uint32_t label;
	uint32_t label_size;
	uint32_t rule;
	uint32_t first_child;
	uint16_t child_count;
};

/*
 * @first_bytes  for each node the first byte of its label
 * @root_rule    the rule that covers everything, or TRIE_NO_RULE
 */
struct policy_trie {
	struct node *nodes;
	uint8_t *first_bytes;
	char *labels;
	uint32_t node_count;
	uint32_t root_rule;
};

/* A rule's path on its way into the tree. */
struct key {
	const char *path;
	size_t size;
	uint32_t rule;
};

/* Which keys a node that is not yet made stands for, and how many bytes they already share. */
struct range {
	uint32_t begin;
	uint32_t end;
	size_t shared;
};

struct build {
	struct policy_trie *trie;
	struct key *keys;
	uint32_t key_count;
	struct range *ranges; /* one for each node */
	size_t label_bytes;
};

struct policy_trie *trie_free(struct policy_trie *trie)
{
	if (!trie)
		return NULL;
	free(trie->nodes);
	free(trie->first_bytes);
	free(trie->labels);
	free(trie);
	return NULL;
}

static void trie_release(struct policy_trie **trie)
{
	*trie = trie_free(*trie);
}

static void build_deinit(struct build *build)
{
	free(build->keys);
	free(build->ranges);
}

static int compare_keys(const void *a, const void *b)
{
	const struct key *left = a;
	const struct key *right = b;
	size_t shorter = left->size < right->size ? left->size : right->size;
	int order = memcmp(left->path, right->path, shorter);

	if (order == 0)
		order = (left->size > right->size) - (left->size < right->size);
	if (order == 0)
		order = (left->rule > right->rule) - (left->rule < right->rule);
	return order;
}

static bool same_key(const struct key *a, const struct key *b)
{
	return a->size == b->size && memcmp(a->path, b->path, a->size) == 0;
}

/* Sorted, each path once (its first rule), without those that cover everything or nothing. */
static void collect_keys(struct build *build, const struct rule_list *rules)
{
	uint32_t kept = 0;

	for (size_t i = 0; i < rules->count; i++) {
		const char *path = rules->rules[i].path;
		struct key key = { .path = path, .size = strlen(path), .rule = (uint32_t)i };

		if (key.size == 0 || strcmp(path, "/") == 0) {
			if (build->trie->root_rule == TRIE_NO_RULE)
				build->trie->root_rule = key.rule;
		} else if (path[0] == '/') {
			build->keys[build->key_count++] = key;
		}
	}
	qsort(build->keys, build->key_count, sizeof(*build->keys), compare_keys);

	for (uint32_t i = 0; i < build->key_count; i++)
		if (kept == 0 || !same_key(&build->keys[kept - 1], &build->keys[i]))
			build->keys[kept++] = build->keys[i];
	build->key_count = kept;
}

/* How many bytes the keys of RANGE share; they are sorted, so the outermost two tell. */
static size_t shared_bytes(const struct build *build, const struct range *range)
{
	const struct key *first = &build->keys[range->begin];
	const struct key *last = &build->keys[range->end - 1];
	size_t limit = first->size < last->size ? first->size : last->size;
	size_t shared = range->shared;

	while (shared < limit && first->path[shared] == last->path[shared])
		shared++;
	return shared;
}

static void add_node(struct build *build, const struct range *range)
{
	struct policy_trie *trie = build->trie;
	uint32_t index = trie->node_count++;

	build->ranges[index] = *range;
	trie->first_bytes[index] = (uint8_t)build->keys[range->begin].path[range->shared];
}

/* Append a child for each byte with which the keys of RANGE go on after their shared ones. */
static void add_children(struct build *build, struct node *node, const struct range *range)
{
	uint32_t at = range->begin;

	node->first_child = build->trie->node_count;
	while (at < range->end) {
		struct range child = { .begin = at, .shared = range->shared };
		char byte = build->keys[at].path[range->shared];

		while (at < range->end && build->keys[at].path[range->shared] == byte)
			at++;
		child.end = at;
		add_node(build, &child);
		node->child_count++;
	}
}

/* Level by level, so that the children of a node end up side by side. */
static void build_nodes(struct build *build)
{
	struct policy_trie *trie = build->trie;

	add_node(build, &(struct range){ .begin = 0, .end = build->key_count });
	for (uint32_t i = 0; i < trie->node_count; i++) {
		struct node *node = &trie->nodes[i];
		struct range range = build->ranges[i];
		size_t shared = shared_bytes(build, &range);

		node->label = (uint32_t)build->label_bytes;
		node->label_size = (uint32_t)(shared - range.shared);
		memcpy(trie->labels + node->label, build->keys[range.begin].path + range.shared,
		       node->label_size);
		build->label_bytes += node->label_size;

		node->rule = TRIE_NO_RULE;
		range.shared = shared;
		if (build->keys[range.begin].size == shared)
			node->rule = build->keys[range.begin++].rule;
		add_children(build, node, &range);
	}
}

/* Give back what the worst case would have needed. Shrinking may fail; then it stays. */
static void trim(void *memory, size_t bytes)
{
	void *smaller = realloc(*(void **)memory, bytes);

	if (smaller)
		*(void **)memory = smaller;
}

struct policy_trie *trie_new(const struct rule_list *rules)
{
	AUTO(trie_release) struct policy_trie *trie = calloc(1, sizeof(*trie));
	AUTO(build_deinit) struct build build = { .trie = trie };
	size_t path_bytes = 1;

	if (!trie)
		return NULL;
	trie->root_rule = TRIE_NO_RULE;
	build.keys = calloc(rules->count + 1, sizeof(*build.keys));
	if (!build.keys)
		return NULL;
	collect_keys(&build, rules);
	if (build.key_count == 0)
		return steal_ptr(&trie);

	/* No byte of a path is in two labels; a node without rule has at least two children. */
	for (uint32_t i = 0; i < build.key_count; i++)
		path_bytes += build.keys[i].size;
	if (path_bytes > UINT32_MAX)
		return NULL;
	trie->nodes = calloc(2 * (size_t)build.key_count, sizeof(*trie->nodes));
	trie->first_bytes = calloc(2 * (size_t)build.key_count, 1);
	trie->labels = malloc(path_bytes);
	build.ranges = calloc(2 * (size_t)build.key_count, sizeof(*build.ranges));
	if (!trie->nodes || !trie->first_bytes || !trie->labels || !build.ranges)
		return NULL;

	build_nodes(&build);
	trim(&trie->nodes, trie->node_count * sizeof(*trie->nodes));
	trim(&trie->first_bytes, trie->node_count);
	trim(&trie->labels, build.label_bytes + 1);
	return steal_ptr(&trie);
}

/* A walk along one path. */
struct walk {
	uint32_t node;
	size_t matched; /* bytes of the path that lead to the end of that node's label */
};

/* Whether the label of NODE comes next on the path; if so, go to its end. */
static bool walk_label(const struct policy_trie *trie, struct walk *walk, const char *path,
		       size_t size)
{
	const struct node *node = &trie->nodes[walk->node];

	if (node->label_size > size - walk->matched ||
	    memcmp(trie->labels + node->label, path + walk->matched, node->label_size) != 0)
		return false;
	walk->matched += node->label_size;
	return true;
}

/* To the child that the next byte of the path chooses, if there is one. */
static bool walk_down(const struct policy_trie *trie, struct walk *walk, const char *path,
		      size_t size)
{
	const struct node *node = &trie->nodes[walk->node];
	const uint8_t *bytes = trie->first_bytes + node->first_child;
	const uint8_t *hit = NULL;

	if (walk->matched == size || node->child_count == 0)
		return false;
	hit = memchr(bytes, (uint8_t)path[walk->matched], node->child_count);
	if (!hit)
		return false;
	walk->node = node->first_child + (uint32_t)(hit - bytes);
	return true;
}

/* The rule that ends where WALK is, if it covers the path. */
static uint32_t walk_rule(const struct policy_trie *trie, const struct walk *walk, const char *path,
			  size_t size)
{
	if (walk->matched < size && path[walk->matched] != '/')
		return TRIE_NO_RULE;
	return trie->nodes[walk->node].rule;
}

uint32_t trie_find(const struct policy_trie *trie, const char *path, size_t size)
{
	struct walk walk = { .node = 0 };
	uint32_t found = trie->root_rule;

	if (trie->node_count == 0)
		return found;
	while (walk_label(trie, &walk, path, size)) {
		uint32_t rule = walk_rule(trie, &walk, path, size);

		if (rule != TRIE_NO_RULE)
			found = rule;
		if (!walk_down(trie, &walk, path, size))
			break;
	}
	return found;
}

/* Where the rules of a walk go: the walk meets the deepest last, and it belongs first. */
struct sink {
	const struct rule *rules;
	const struct rule **out;
	size_t total;
	size_t capacity;
};

static void sink_put(const struct sink *sink, size_t met_before, uint32_t rule)
{
	size_t place = sink->total - 1 - met_before;

	if (place < sink->capacity)
		sink->out[place] = &sink->rules[rule];
}

/* All rules that cover the path, into SINK (may be NULL: only count). */
static size_t trie_walk(const struct policy_trie *trie, const char *path, size_t size,
			const struct sink *sink)
{
	struct walk walk = { .node = 0 };
	size_t count = 0;
	uint32_t rule = trie->root_rule;
	bool more = trie->node_count > 0;

	for (;;) {
		if (rule != TRIE_NO_RULE) {
			if (sink)
				sink_put(sink, count, rule);
			count++;
		}
		if (!more || !walk_label(trie, &walk, path, size))
			return count;
		rule = walk_rule(trie, &walk, path, size);
		more = walk_down(trie, &walk, path, size);
	}
}

size_t trie_covering(const struct policy_trie *trie, const struct rule_list *rules,
		     const char *path, size_t size, const struct rule **ret_rules, size_t capacity)
{
	size_t total = trie_walk(trie, path, size, NULL);
	struct sink sink = {
		.rules = rules->rules, .out = ret_rules, .total = total, .capacity = capacity
	};

	(void)trie_walk(trie, path, size, &sink);
	return total;
}
