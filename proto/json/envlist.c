/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/json/envlist.h"

#include <stdlib.h>
#include <string.h>

#include "common/scope.h"

#define FIRST_CAPACITY 16

void env_list_deinit(struct env_list *list)
{
	if (!list)
		return;
	for (size_t i = 0; i < list->count; i++) {
		free(list->items[i].name);
		free(list->items[i].value);
	}
	free(list->items);
	*list = (struct env_list){ .items = NULL };
}

static int reserve(struct env_list *list, struct error *err)
{
	size_t capacity = list->capacity ? list->capacity * 2 : FIRST_CAPACITY;
	struct env_var *grown = NULL;

	if (list->count < list->capacity)
		return 0;
	grown = realloc(list->items, capacity * sizeof(*grown));
	if (!grown)
		return error_set(err, ERR_NOMEM, 0, "environment of %zu variables", list->count);
	list->items = grown;
	list->capacity = capacity;
	return 0;
}

static int add_sized(struct env_list *list, const char *name, size_t name_size, const char *value,
		     struct error *err)
{
	AUTO(auto_free) char *name_copy = NULL;
	AUTO(auto_free) char *value_copy = NULL;
	int r = 0;

	if (name_size == 0 || memchr(name, '=', name_size))
		return error_set(err, ERR_INVALID, 0, "a variable needs a name, and that no '='");
	r = reserve(list, err);
	if (r < 0)
		return r;
	name_copy = strndup(name, name_size);
	value_copy = strdup(value);
	if (!name_copy || !value_copy)
		return error_set(err, ERR_NOMEM, 0, "environment of %zu variables", list->count);
	list->items[list->count++] =
		(struct env_var){ .name = steal_ptr(&name_copy), .value = steal_ptr(&value_copy) };
	return 0;
}

int env_list_add(struct env_list *list, const char *name, const char *value, struct error *err)
{
	return add_sized(list, name, strlen(name), value, err);
}

int env_list_add_pair(struct env_list *list, const char *pair, struct error *err)
{
	const char *equals = strchr(pair, '=');

	if (!equals)
		return error_set(err, ERR_INVALID, 0, "a variable must be NAME=VALUE");
	return add_sized(list, pair, (size_t)(equals - pair), equals + 1, err);
}

const char *env_list_get(const struct env_list *list, const char *name)
{
	for (size_t i = list->count; i > 0; i--)
		if (strcmp(list->items[i - 1].name, name) == 0)
			return list->items[i - 1].value;
	return NULL;
}

/* By name, then by place in the list. */
static int compare(const void *a, const void *b)
{
	const struct env_var *const *left = a;
	const struct env_var *const *right = b;
	int by_name = strcmp((*left)->name, (*right)->name);

	if (by_name != 0)
		return by_name;
	return (*left > *right) - (*left < *right);
}

const struct env_var **env_list_sorted(const struct env_list *list, size_t *ret_count,
				       const char **ret_repeated)
{
	/* An array of pointers, meant as such. NOLINTNEXTLINE(bugprone-sizeof-expression) */
	const struct env_var **sorted = calloc(list->count + 1, sizeof(*sorted));
	const char *repeated = NULL;
	size_t count = 0;

	if (!sorted)
		return NULL;
	for (size_t i = 0; i < list->count; i++)
		sorted[i] = &list->items[i];
	/* NOLINTNEXTLINE(bugprone-sizeof-expression) */
	qsort(sorted, list->count, sizeof(*sorted), compare);
	for (size_t i = 0; i < list->count; i++) {
		if (count > 0 && strcmp(sorted[count - 1]->name, sorted[i]->name) == 0) {
			repeated = sorted[i]->name;
			count--;
		}
		sorted[count++] = sorted[i];
	}

	*ret_count = count;
	if (ret_repeated)
		*ret_repeated = repeated;
	return sorted;
}
