/* SPDX-License-Identifier: Apache-2.0 */
#include "common/policy.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/buf.h"
#include "common/path.h"
#include "common/scope.h"
#include "common/trie.h"

#define STRINGS_FIRST 8
#define NOTES_FIRST 8
#define SPANS_FIRST 64

static const char *const net_names[] = {
	[NET_NONE] = "none",
	[NET_PROXY] = "proxy",
	[NET_HOST] = "host",
};

const char *net_mode_name(enum net_mode mode)
{
	return (size_t)mode < ARRAY_SIZE(net_names) ? net_names[mode] : "unknown";
}

bool net_mode_parse(const char *name, enum net_mode *ret_mode)
{
	for (size_t i = 0; i < ARRAY_SIZE(net_names); i++) {
		if (strcmp(net_names[i], name) == 0) {
			*ret_mode = (enum net_mode)i;
			return true;
		}
	}
	return false;
}

void string_list_deinit(struct string_list *list)
{
	if (!list)
		return;
	for (size_t i = 0; i < list->count; i++)
		free(list->items[i]);
	free(list->items);
	*list = (struct string_list){ .items = NULL };
}

/* Append TEXT, which is the list's even when this fails; NULL is short memory. */
static int string_list_add_take(struct string_list *list, char *text, struct error *err)
{
	if (text && list->count == list->capacity) {
		size_t capacity = list->capacity ? list->capacity * 2 : STRINGS_FIRST;
		char **grown = realloc(list->items, capacity * sizeof(*grown));

		if (!grown) {
			free(text);
			text = NULL;
		} else {
			list->items = grown;
			list->capacity = capacity;
		}
	}
	if (!text)
		return error_set(err, ERR_NOMEM, 0, "no memory for a list of strings");
	list->items[list->count++] = text;
	return 0;
}

int string_list_add(struct string_list *list, const char *text, struct error *err)
{
	return string_list_add_take(list, strdup(text), err);
}

bool string_list_has(const struct string_list *list, const char *text)
{
	for (size_t i = 0; i < list->count; i++)
		if (strcmp(list->items[i], text) == 0)
			return true;
	return false;
}

static int compare_strings(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

void string_list_sort_unique(struct string_list *list)
{
	size_t kept = 0;

	if (list->count == 0)
		return;
	qsort(list->items, list->count, sizeof(*list->items), compare_strings);
	for (size_t i = 1; i < list->count; i++) {
		if (strcmp(list->items[kept], list->items[i]) == 0)
			free(list->items[i]);
		else
			list->items[++kept] = list->items[i];
	}
	list->count = kept + 1;
}

void policy_deinit(struct policy *policy)
{
	if (!policy)
		return;
	policy->trie = trie_free(policy->trie);
	rule_list_deinit(&policy->rules);
	string_list_deinit(&policy->write_regexes);
	string_list_deinit(&policy->deny_regexes);
	string_list_deinit(&policy->final_read_only);
	string_list_deinit(&policy->aliases);
	string_list_deinit(&policy->notice);
	string_list_deinit(&policy->quarantine);
	string_list_deinit(&policy->quarantine_entries);
	string_list_deinit(&policy->suppressed);
	for (size_t i = 0; i < policy->note_count; i++) {
		free(policy->notes[i].path);
		free(policy->notes[i].reason);
	}
	free(policy->notes);
	*policy = (struct policy)POLICY_INIT;
}

int policy_index(struct policy *policy, struct error *err)
{
	struct policy_trie *trie = trie_new(&policy->rules);

	if (!trie)
		return error_set(err, ERR_NOMEM, 0, "no memory to index %zu rules",
				 policy->rules.count);
	(void)trie_free(policy->trie);
	policy->trie = trie;
	return 0;
}

struct verdict policy_access(const struct policy *policy, const char *path)
{
	const struct rule *rule = NULL;
	uint32_t index = TRIE_NO_RULE;
	size_t size = 0;

	if (policy->trie && path_normal_length(path, &size))
		index = trie_find(policy->trie, path, size);
	if (index == TRIE_NO_RULE)
		return (struct verdict){ .access = ACCESS_NONE };
	rule = &policy->rules.rules[index];
	return (struct verdict){ .access = rule->access, .rule = rule };
}

size_t policy_covering(const struct policy *policy, const char *path, const struct rule **ret_rules,
		       size_t capacity)
{
	size_t size = 0;

	if (!policy->trie || !path_normal_length(path, &size))
		return 0;
	return trie_covering(policy->trie, &policy->rules, path, size, ret_rules, capacity);
}

int policy_add_note(struct policy *policy, const char *path, const char *reason, struct error *err)
{
	struct policy_note note = { .path = strdup(path), .reason = strdup(reason) };

	if (policy->note_count == policy->note_capacity) {
		size_t capacity = policy->note_capacity ? policy->note_capacity * 2 : NOTES_FIRST;
		struct policy_note *grown = realloc(policy->notes, capacity * sizeof(*grown));

		if (grown) {
			policy->notes = grown;
			policy->note_capacity = capacity;
		}
	}
	if (!note.path || !note.reason || policy->note_count == policy->note_capacity) {
		free(note.path);
		free(note.reason);
		return error_set(err, ERR_NOMEM, 0, "no memory for a note");
	}
	policy->notes[policy->note_count++] = note;
	return 0;
}

/* One field of a line: printable ASCII without blanks and backslashes as it is, the rest as \xNN. */
static void add_escaped(struct buf *out, const char *text)
{
	for (; *text; text++) {
		unsigned char byte = (unsigned char)*text;

		if (byte <= 0x20 || byte >= 0x7f || byte == '\\')
			(void)buf_printf(out, "\\x%02x", byte);
		else
			(void)buf_add_byte(out, (char)byte);
	}
}

static void add_strings(struct buf *out, const char *label, const struct string_list *list)
{
	for (size_t i = 0; i < list->count; i++) {
		(void)buf_printf(out, "%s ", label);
		add_escaped(out, list->items[i]);
		(void)buf_add_byte(out, '\n');
	}
}

int policy_canonical_text(const struct policy *policy, struct buf *out, struct error *err)
{
	(void)buf_printf(out, "net %s\n", net_mode_name(policy->net));
	for (size_t i = 0; i < policy->rules.count; i++) {
		const struct rule *rule = &policy->rules.rules[i];

		(void)buf_printf(out, "rule %s %s %s %s ", access_name(rule->access),
				 rule_source_name(rule->source), node_type_name(rule->type),
				 absent_mode_name(rule->absent));
		add_escaped(out, rule->path);
		(void)buf_add_byte(out, ' ');
		add_escaped(out, rule->bind_source ? rule->bind_source : "-");
		(void)buf_add_byte(out, '\n');
	}
	add_strings(out, "write-regex", &policy->write_regexes);
	add_strings(out, "deny-regex", &policy->deny_regexes);
	add_strings(out, "final-read-only", &policy->final_read_only);
	return buf_check(out, "the canonical text of the policy", err);
}

/* A path that is the beginning of another one; borrowed. "/" is always the literal. */
struct span {
	const char *text;
	size_t size;
	size_t depth;
};

struct span_list {
	struct span *spans;
	size_t count;
	size_t capacity;
};

static void span_list_deinit(struct span_list *list)
{
	free(list->spans);
}

static int span_list_add(struct span_list *list, const char *text, size_t size, struct error *err)
{
	if (list->count == list->capacity) {
		size_t capacity = list->capacity ? list->capacity * 2 : SPANS_FIRST;
		struct span *grown = realloc(list->spans, capacity * sizeof(*grown));

		if (!grown)
			return error_set(err, ERR_NOMEM, 0, "no memory for the ancestors of rules");
		list->spans = grown;
		list->capacity = capacity;
	}
	list->spans[list->count++] = (struct span){
		.text = text,
		.size = size,
		.depth = path_depth_sized(text, size),
	};
	return 0;
}

static int compare_spans(const void *a, const void *b)
{
	const struct span *left = a;
	const struct span *right = b;
	size_t shorter = left->size < right->size ? left->size : right->size;
	int order = (left->depth > right->depth) - (left->depth < right->depth);

	if (order == 0)
		order = memcmp(left->text, right->text, shorter);
	return order ? order : (left->size > right->size) - (left->size < right->size);
}

/*
 * The strict ancestors of PATH, deepest first. Neighbours in a list share most of theirs: the first
 * one that PREVIOUS (already done) has too ends the work, for it has all further ones as well.
 */
static int add_ancestors(struct span_list *list, const char *path, const char *previous,
			 struct error *err)
{
	size_t size = strlen(path);
	int r = 0;

	if (strcmp(path, "/") == 0)
		return 0;
	do {
		size = path_parent_length(path, size);
		if (size > 1 && previous && strncmp(path, previous, size) == 0 &&
		    previous[size] == '/')
			return 0;
		r = span_list_add(list, size > 1 ? path : "/", size, err);
	} while (r == 0 && size > 1);
	return r;
}

int policy_traverse_ancestors(const struct rule_list *rules, struct string_list *ret_paths,
			      struct error *err)
{
	AUTO(span_list_deinit) struct span_list list = { .spans = NULL };
	AUTO(string_list_deinit) struct string_list paths = { .items = NULL };
	const char *previous = NULL;
	int r = 0;

	for (size_t i = 0; r == 0 && i < rules->count; i++) {
		const struct rule *rule = &rules->rules[i];

		if (rule->access == ACCESS_DENY)
			continue;
		r = add_ancestors(&list, rule->path, previous, err);
		previous = rule->path;
	}
	if (list.count > 0)
		qsort(list.spans, list.count, sizeof(*list.spans), compare_spans);

	for (size_t i = 0; r == 0 && i < list.count; i++) {
		const struct span *span = &list.spans[i];

		if (i == 0 || compare_spans(span - 1, span) != 0)
			r = string_list_add_take(&paths, strndup(span->text, span->size), err);
	}
	if (r < 0)
		return r;
	*ret_paths = paths;
	paths = (struct string_list){ .items = NULL };
	return 0;
}
