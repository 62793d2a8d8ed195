/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_PROTO_JSON_ENVLIST_H
#define FSBOX_PROTO_JSON_ENVLIST_H

/* Variables in order, names and values any bytes but NUL. On the wire: see FIELD_ENV. */

#include <stdbool.h>
#include <stddef.h>

#include "common/error.h"

struct env_var {
	char *name;  /* owned; not empty, no '=' */
	char *value; /* owned */
};

struct env_list {
	struct env_var *items;
	size_t count;
	size_t capacity;
};

/* Append copies. Fails with ERR_NOMEM or ERR_INVALID (the name). */
int env_list_add(struct env_list *list, const char *name, const char *value, struct error *err);

/* The same from "NAME=VALUE". */
int env_list_add_pair(struct env_list *list, const char *pair, struct error *err);

/* The value of the last variable called NAME, or NULL. Borrowed. */
const char *env_list_get(const struct env_list *list, const char *name);

/*
 * The variables sorted by name, of several with one name only the last: an array on the heap of
 * pointers into LIST, the caller's to free; NULL when memory is short. *ret_repeated (may be NULL): a
 * name that was there twice, or NULL.
 */
const struct env_var **env_list_sorted(const struct env_list *list, size_t *ret_count,
				       const char **ret_repeated);

void env_list_deinit(struct env_list *list); /* NULL and zeroed are fine */

#endif
