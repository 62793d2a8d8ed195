/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_TESTS_JSON_LITE_H
#define FSBOX_TESTS_JSON_LITE_H

/*
 * JSON for test data: a tree that can be read, built, compared and printed. It is no part of the
 * product (that has proto/json) and shares no code with it, so that the two can be held against each
 * other. Short memory aborts.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum json_type { JSON_NULL, JSON_BOOL, JSON_NUMBER, JSON_STRING, JSON_ARRAY, JSON_OBJECT };

/*
 * @text   JSON_STRING: UTF-8, terminated, and it may hold NUL bytes; JSON_NUMBER: as written
 * @items  JSON_ARRAY and JSON_OBJECT: members in order, each with its key if this is an object
 */
struct json_value {
	enum json_type type;
	bool truth;
	char *text;
	size_t size;
	struct json_value **items;
	char **keys;
	size_t count;
};

/* A tree, or NULL with *RET_OFFSET where the text stops being JSON. Nothing may follow. */
struct json_value *json_parse(const char *text, size_t size, size_t *ret_offset);

void json_free(struct json_value *value);
void json_release(struct json_value **value); /* for AUTO() */

struct json_value *json_new(enum json_type type);
struct json_value *json_new_string(const char *text); /* JSON_NULL when TEXT is NULL */
struct json_value *json_new_bool(bool truth);

/* Put ITEM at the end; it is the tree's. The second returns ITEM. */
void json_append(struct json_value *array, struct json_value *item);
struct json_value *json_set(struct json_value *object, const char *key, struct json_value *item);

/* The member, or NULL; OBJECT may be NULL or of another type. */
const struct json_value *json_get(const struct json_value *object, const char *key);

/* The member's text, or NULL when it is no string. */
const char *json_get_string(const struct json_value *object, const char *key);

/* The member when it is a boolean, else FALLBACK. */
bool json_get_bool(const struct json_value *object, const char *key, bool fallback);

/* Whether any string in the tree holds a NUL. */
bool json_has_nul(const struct json_value *value);

/*
 * Whether two trees say the same: members of objects in any order. With EMPTY_IS_ABSENT an empty
 * array in one object and no such member in the other one are the same.
 */
bool json_equal(const struct json_value *a, const struct json_value *b, bool empty_is_absent);

void json_print(const struct json_value *value, FILE *out);

#endif
