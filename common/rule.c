/* SPDX-License-Identifier: Apache-2.0 */
#include "common/rule.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/limits.h"
#include "common/path.h"
#include "common/scope.h"

#define RULES_FIRST 16

static const char *const access_names[] = {
	[ACCESS_NONE] = "none",
	[ACCESS_READ_WRITE] = "readWrite",
	[ACCESS_READ_ONLY] = "readOnly",
	[ACCESS_DENY] = "deny",
};

static const char *const source_names[] = {
	[RULE_BASELINE] = "baseline", [RULE_ADAPTER] = "adapter",     [RULE_INTERNAL] = "internal",
	[RULE_USER] = "user",         [RULE_MANDATORY] = "mandatory",
};

static const char *const node_names[] = {
	[NODE_UNKNOWN] = "unknown", [NODE_ABSENT] = "absent", [NODE_DIRECTORY] = "directory",
	[NODE_FILE] = "file",       [NODE_SOCKET] = "socket", [NODE_OTHER] = "other",
};

static const char *const absent_names[] = {
	[ABSENT_DEFAULT] = "default", [ABSENT_PLACEHOLDER] = "placeholder",
	[ABSENT_WATCH] = "watch",     [ABSENT_REPORT] = "report",
	[ABSENT_IGNORE] = "ignore",
};

static const char *name_at(const char *const *names, size_t count, size_t value)
{
	return value < count ? names[value] : "unknown";
}

/* The first value from FIRST on that is called NAME. */
static bool value_of(const char *const *names, size_t count, size_t first, const char *name,
		     size_t *ret_value)
{
	for (size_t value = first; value < count; value++) {
		if (strcmp(names[value], name) == 0) {
			*ret_value = value;
			return true;
		}
	}
	return false;
}

const char *access_name(enum access access)
{
	return name_at(access_names, ARRAY_SIZE(access_names), access);
}

bool access_parse(const char *name, enum access *ret)
{
	size_t value = 0;

	if (!value_of(access_names, ARRAY_SIZE(access_names), ACCESS_READ_WRITE, name, &value))
		return false;
	*ret = (enum access)value;
	return true;
}

const char *rule_source_name(enum rule_source source)
{
	return name_at(source_names, ARRAY_SIZE(source_names), source);
}

bool rule_source_parse(const char *name, enum rule_source *ret)
{
	size_t value = 0;

	if (!value_of(source_names, ARRAY_SIZE(source_names), 0, name, &value))
		return false;
	*ret = (enum rule_source)value;
	return true;
}

bool node_is_file(enum node_type type)
{
	return type == NODE_FILE || type == NODE_SOCKET || type == NODE_OTHER;
}

const char *node_type_name(enum node_type type)
{
	return name_at(node_names, ARRAY_SIZE(node_names), type);
}

const char *absent_mode_name(enum absent_mode mode)
{
	return name_at(absent_names, ARRAY_SIZE(absent_names), mode);
}

bool absent_mode_parse(const char *name, enum absent_mode *ret)
{
	size_t value = 0;

	if (!value_of(absent_names, ARRAY_SIZE(absent_names), 0, name, &value))
		return false;
	*ret = (enum absent_mode)value;
	return true;
}

void rule_deinit(struct rule *rule)
{
	if (!rule)
		return;
	free(rule->path);
	free(rule->origin);
	free(rule->bind_source);
	free(rule->real);
	free(rule->link);
	*rule = (struct rule){ .path = NULL };
}

/* TEXT may be NULL, and then so is the copy. */
static bool copy_text(char **ret_copy, const char *text)
{
	if (!text)
		return true;
	*ret_copy = strdup(text);
	return *ret_copy != NULL;
}

int rule_copy(struct rule *ret_copy, const struct rule *rule, struct error *err)
{
	struct rule copy = *rule;

	copy.path = NULL;
	copy.origin = NULL;
	copy.bind_source = NULL;
	copy.real = NULL;
	copy.link = NULL;
	if (!copy_text(&copy.path, rule->path) || !copy_text(&copy.origin, rule->origin) ||
	    !copy_text(&copy.bind_source, rule->bind_source) ||
	    !copy_text(&copy.real, rule->real) || !copy_text(&copy.link, rule->link)) {
		rule_deinit(&copy);
		return error_set(err, ERR_NOMEM, 0, "no memory for a rule");
	}
	*ret_copy = copy;
	return 0;
}

void rule_list_deinit(struct rule_list *list)
{
	if (!list)
		return;
	for (size_t i = 0; i < list->count; i++)
		rule_deinit(&list->rules[i]);
	free(list->rules);
	*list = (struct rule_list)RULE_LIST_INIT;
}

static int rule_list_grow(struct rule_list *list, size_t capacity, struct error *err)
{
	struct rule *grown =
		realloc(list->rules, capacity * sizeof(*grown)); /* <= 2 * LIMIT_RULES */

	if (!grown)
		return error_set(err, ERR_NOMEM, 0, "no memory for %zu rules", capacity);
	list->rules = grown;
	list->capacity = capacity;
	return 0;
}

int rule_list_add_take(struct rule_list *list, struct rule *rule, struct error *err)
{
	int r = 0;

	if (list->count >= LIMIT_RULES)
		r = error_set(err, ERR_POLICY_INVALID, 0, "more than %d rules", LIMIT_RULES);
	else if (list->count == list->capacity)
		r = rule_list_grow(list, list->capacity ? list->capacity * 2 : RULES_FIRST, err);
	if (r < 0) {
		rule_deinit(rule);
		return r;
	}
	list->rules[list->count++] = *rule;
	*rule = (struct rule){ .path = NULL };
	return 0;
}

int rule_list_append(struct rule_list *list, const char *path, enum access access,
		     enum rule_source source, const char *origin, struct error *err)
{
	struct rule rule = { .access = access, .source = source };

	if (!copy_text(&rule.path, path) || !copy_text(&rule.origin, origin)) {
		rule_deinit(&rule);
		return error_set(err, ERR_NOMEM, 0, "no memory for a rule");
	}
	return rule_list_add_take(list, &rule, err);
}

struct rule *rule_list_add(struct rule_list *list, const char *path, enum access access,
			   enum rule_source source, const char *origin, struct error *err)
{
	if (rule_list_append(list, path, access, source, origin, err) < 0)
		return NULL;
	return &list->rules[list->count - 1];
}

/* A candidate with what sorting looks at again and again. */
struct candidate {
	const struct rule *rule;
	size_t size; /* of the normal form of rule->path */
	size_t depth;
};

static int compare_sizes(size_t a, size_t b)
{
	return (a > b) - (a < b);
}

/* NULL after any text: what says more comes first. */
static int compare_texts(const char *a, const char *b)
{
	if (!a || !b)
		return (a == NULL) - (b == NULL);
	return strcmp(a, b);
}

static int compare_paths(const struct candidate *a, const struct candidate *b)
{
	size_t shorter = a->size < b->size ? a->size : b->size;
	int order = compare_sizes(a->depth, b->depth);

	if (order == 0)
		order = memcmp(a->rule->path, b->rule->path, shorter);
	return order ? order : compare_sizes(a->size, b->size);
}

/*
 * Which of two rules for one path is kept: the first. After source and access only fields remain that
 * the meaning of the policy does not depend on; they are compared all the same, so that the result
 * never depends on the order of the candidates.
 */
static int compare_claims(const struct rule *a, const struct rule *b)
{
	int order = compare_sizes(b->source, a->source);

	if (order == 0)
		order = compare_sizes(b->access, a->access);
	if (order == 0)
		order = compare_texts(a->bind_source, b->bind_source);
	if (order == 0)
		order = compare_sizes(a->optional, b->optional);
	if (order == 0)
		order = compare_sizes(b->host, a->host);
	if (order == 0)
		order = compare_sizes(b->denied_link, a->denied_link);
	if (order == 0)
		order = compare_sizes(b->type, a->type);
	if (order == 0)
		order = compare_texts(a->real, b->real);
	if (order == 0)
		order = compare_texts(a->link, b->link);
	if (order == 0 && a->absent != b->absent) /* what was asked for before the default */
		order = a->absent == ABSENT_DEFAULT   ? 1
			: b->absent == ABSENT_DEFAULT ? -1
						      : compare_sizes(a->absent, b->absent);
	return order ? order : compare_texts(a->origin, b->origin);
}

static int compare_candidates(const void *a, const void *b)
{
	const struct candidate *left = a;
	const struct candidate *right = b;
	int order = compare_paths(left, right);

	return order ? order : compare_claims(left->rule, right->rule);
}

static int add_normal_copy(struct rule_list *list, const struct candidate *candidate,
			   struct error *err)
{
	struct rule copy = { .path = NULL };
	int r = rule_copy(&copy, candidate->rule, err);

	if (r < 0)
		return r;
	copy.path[candidate->size] = '\0';
	return rule_list_add_take(list, &copy, err);
}

int rule_list_merge(struct rule_list *ret_merged, const struct rule_list *candidates,
		    struct error *err)
{
	AUTO(rule_list_deinit) struct rule_list merged = RULE_LIST_INIT;
	AUTO(auto_free) struct candidate *sorted = NULL;
	size_t count = 0;
	int r = 0;

	sorted = calloc(candidates->count + 1, sizeof(*sorted));
	if (!sorted)
		return error_set(err, ERR_NOMEM, 0, "no memory for %zu rules", candidates->count);

	for (size_t i = 0; i < candidates->count; i++) {
		struct candidate *candidate = &sorted[count];

		candidate->rule = &candidates->rules[i];
		if (!path_normal_length(candidate->rule->path, &candidate->size))
			continue;
		candidate->depth = path_depth_sized(candidate->rule->path, candidate->size);
		count++;
	}
	qsort(sorted, count, sizeof(*sorted), compare_candidates);

	for (size_t i = 0; r == 0 && i < count; i++) {
		if (i > 0 && compare_paths(&sorted[i - 1], &sorted[i]) == 0)
			continue;
		r = add_normal_copy(&merged, &sorted[i], err);
	}
	if (r < 0)
		return r;
	*ret_merged = merged;
	merged = (struct rule_list)RULE_LIST_INIT;
	return 0;
}
