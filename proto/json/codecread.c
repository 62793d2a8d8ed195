/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/json/codec.h"

/* The decoding half of the codec. */

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "proto/json/base64.h"
#include "proto/json/codecwhere.h"
#include "proto/json/utf8.h"

/* One bit for each field of a table that was met. */
typedef uint64_t seen_bits;
#define SEEN_MAX 64

struct decoding {
	struct fdset *fds;
	struct error *err;
};

static int refuse_type(const struct decoding *from, const struct json_value *value,
		       const struct where *where, const char *expected)
{
	return where_refuse(where, ERR_INVALID, from->err, "must be %s, is %s", expected,
			    json_type_name(value->type));
}

/* ---- strings ------------------------------------------------------------------------- */

static bool is_b64(const struct json_value *value)
{
	return value->type == JSON_OBJECT && value->size == 1 &&
	       strcmp(value->u.first->key, "b64") == 0;
}

static int decode_b64(const struct decoding *from, const struct json_value *value,
		      const struct where *where, char **ret_text)
{
	AUTO(auto_free) char *bytes = NULL;
	bool invalid = false;
	size_t size = 0;

	if (value->type != JSON_STRING)
		return refuse_type(from, value, where, "a string");
	bytes = base64_decode(value->u.text, value->size, &size, &invalid);
	if (invalid)
		return where_refuse(where, ERR_INVALID, from->err, "is not canonical base64");
	if (!bytes)
		return where_refuse(where, ERR_NOMEM, from->err, "out of memory");
	if (memchr(bytes, '\0', size))
		return where_refuse(where, ERR_INVALID, from->err, "holds a NUL byte");
	*ret_text = steal_ptr(&bytes);
	return 0;
}

static int decode_string(const struct decoding *from, const struct field *field,
			 const struct json_value *value, const struct where *where, char **ret_text)
{
	AUTO(auto_free) char *text = NULL;
	size_t size = 0;
	int r = 0;

	if (field->kind != FIELD_TEXT && is_b64(value)) {
		const struct where inside = { .up = where, .name = "b64" };

		r = decode_b64(from, value->u.first, &inside, &text);
		if (r < 0)
			return r;
	} else if (value->type != JSON_STRING) {
		return refuse_type(from, value, where,
				   field->kind == FIELD_TEXT ? "a string"
							     : "a string or {\"b64\"}");
	} else {
		text = strdup(value->u.text);
		if (!text)
			return where_refuse(where, ERR_NOMEM, from->err, "out of memory");
	}

	size = strlen(text);
	if ((int64_t)size < field->min)
		return where_refuse(where, ERR_INVALID, from->err,
				    field->min == 1 ? "is empty" : "is too short");
	if ((int64_t)size > field->max)
		return where_refuse(where, ERR_INVALID, from->err,
				    "has %zu bytes, at most %" PRId64, size, field->max);
	if (field->kind == FIELD_PATH && text[0] != '/')
		return where_refuse(where, ERR_INVALID, from->err, "must be an absolute path");
	*ret_text = steal_ptr(&text);
	return 0;
}

/* ---- numbers, names, descriptors ----------------------------------------------------- */

static int number_check(const struct decoding *from, const struct field *field, int64_t number,
			const struct where *where)
{
	if (number < field->min || number > field->max)
		return where_refuse(where, ERR_INVALID, from->err,
				    "is %" PRId64 ", must be in %" PRId64 "..%" PRId64, number,
				    field->min, field->max);
	return 0;
}

static int decode_number(const struct decoding *from, const struct field *field,
			 const struct json_value *value, const struct where *where, void *at)
{
	int r = 0;

	if (value->type != JSON_INT)
		return refuse_type(from, value, where, "an integer");
	r = number_check(from, field, value->u.number, where);
	if (r < 0)
		return r;
	if (field->kind == FIELD_U64)
		*(uint64_t *)at = (uint64_t)value->u.number;
	else if (field->kind == FIELD_I32)
		*(int32_t *)at = (int32_t)value->u.number;
	else
		*(uint32_t *)at = (uint32_t)value->u.number;
	return 0;
}

/* Digits, perhaps a point and one to three more; -1 otherwise. At most nine digits before it. */
static int64_t milli_parse(const char *text)
{
	int64_t value = 0;
	size_t whole = strspn(text, "0123456789");
	size_t part = text[whole] == '.' ? strspn(text + whole + 1, "0123456789") : 0;
	size_t length = whole + (text[whole] == '.' ? 1 + part : 0);

	if (whole < 1 || whole > 9 || part > 3 || text[length] != '\0' ||
	    (text[whole] == '.' && part == 0))
		return -1;
	for (size_t i = 0; i < whole; i++)
		value = value * 10 + (text[i] - '0');
	for (size_t i = 0; i < 3; i++)
		value = value * 10 + (i < part ? text[whole + 1 + i] - '0' : 0);
	return value;
}

static int decode_milli(const struct decoding *from, const struct field *field,
			const struct json_value *value, const struct where *where, uint32_t *at)
{
	int64_t milli = -1;
	int r = 0;

	if (value->type == JSON_STRING)
		milli = milli_parse(value->u.text);
	else if (value->type == JSON_INT && value->u.number <= field->max / 1000)
		milli = value->u.number < 0 ? -1 : value->u.number * 1000;
	else if (value->type != JSON_INT)
		return refuse_type(from, value, where, "an integer or a decimal string");
	if (milli < 0)
		return where_refuse(where, ERR_INVALID, from->err,
				    "must be a decimal number with at most three places");
	r = number_check(from, field, milli, where);
	if (r < 0)
		return r;
	*at = (uint32_t)milli;
	return 0;
}

static int decode_enum(const struct decoding *from, const struct field *field,
		       const struct json_value *value, const struct where *where, uint32_t *at)
{
	const struct enum_names *names = field->names;
	struct buf known = BUF_INIT(ERROR_MESSAGE_BYTES / 2);
	char shown[PRINTABLE_BYTES];
	int r = 0;

	if (value->type != JSON_STRING)
		return refuse_type(from, value, where, "a string");
	for (size_t i = 0; i < names->count; i++) {
		if (strcmp(names->names[i], value->u.text) == 0) {
			*at = names->first + (uint32_t)i;
			return 0;
		}
	}
	for (size_t i = 0; i < names->count; i++)
		(void)buf_printf(&known, " %s", names->names[i]);
	r = where_refuse(where, ERR_INVALID, from->err, "is '%s', must be one of:%s",
			 text_printable(shown, value->u.text), buf_text(&known));
	buf_deinit(&known);
	return r;
}

static int decode_fd(const struct decoding *from, const struct field *field,
		     const struct json_value *value, const struct where *where, int *at)
{
	struct error why = ERROR_INIT;
	int r = 0;

	if (field->kind == FIELD_FD_OR_NULL && value->type == JSON_STRING &&
	    strcmp(value->u.text, "null") == 0)
		return 0;
	if (value->type != JSON_INT)
		return refuse_type(from, value, where,
				   field->kind == FIELD_FD
					   ? "the index of a descriptor"
					   : "the index of a descriptor or \"null\"");
	r = number_check(from, field, value->u.number, where);
	if (r < 0)
		return r;
	if (!from->fds)
		return where_refuse(where, ERR_BAD_FRAME, from->err,
				    "no descriptor came with the frame");
	r = fdset_claim(from->fds, (size_t)value->u.number, at, &why);
	if (r < 0)
		return where_refuse(where, why.kind, from->err, "%s", why.message);
	return 0;
}

/* ---- variables ----------------------------------------------------------------------- */

static int decode_variable(const struct decoding *from, const struct field *field,
			   const struct json_value *value, const struct where *where,
			   struct env_list *list)
{
	struct field text_field = *field;
	AUTO(auto_free) char *text = NULL;
	struct error why = ERROR_INIT;
	int r = 0;

	text_field.kind = FIELD_BYTES;
	r = decode_string(from, &text_field, value, where, &text);
	if (r < 0)
		return r;
	if (value->key && where->name)
		r = env_list_add(list, value->key, text, &why);
	else
		r = env_list_add_pair(list, text, &why);
	if (r < 0)
		return where_refuse(where, why.kind, from->err, "%s", why.message);
	return 0;
}

static int decode_env(const struct decoding *from, const struct field *field,
		      const struct json_value *value, const struct where *where,
		      struct env_list *list)
{
	AUTO(auto_free) const struct env_var **sorted = NULL;
	const char *repeated = NULL;
	char shown[PRINTABLE_BYTES];
	bool object = value->type == JSON_OBJECT;
	size_t index = 0;

	if (!object && value->type != JSON_ARRAY)
		return refuse_type(from, value, where, "an object or an array of NAME=VALUE");
	if (value->size > field->max_count)
		return where_refuse(where, ERR_INVALID, from->err, "has %zu variables, at most %zu",
				    value->size, field->max_count);
	for (const struct json_value *item = value->u.first; item; item = item->next) {
		const struct where inside = { .up = where,
					      .name = object ? item->key : NULL,
					      .index = index++ };
		int r = decode_variable(from, field, item, &inside, list);

		if (r < 0)
			return r;
	}
	if (object)
		return 0;
	sorted = env_list_sorted(list, &index, &repeated);
	if (!sorted)
		return where_refuse(where, ERR_NOMEM, from->err, "out of memory");
	if (repeated)
		return where_refuse(where, ERR_INVALID, from->err, "has '%s' twice",
				    text_printable(shown, repeated));
	return 0;
}

/* ---- structs ------------------------------------------------------------------------- */

static int decode_struct(const struct decoding *from, const struct table *table,
			 const struct json_value *value, const struct where *where, void *object);

static int decode_one(const struct decoding *from, const struct field *field,
		      const struct json_value *value, const struct where *where, void *at)
{
	switch (field->kind) {
	case FIELD_BOOL:
		if (value->type != JSON_BOOL)
			return refuse_type(from, value, where, "true or false");
		*(bool *)at = value->u.boolean;
		return 0;
	case FIELD_TRISTATE:
		if (value->type != JSON_BOOL)
			return refuse_type(from, value, where, "true or false");
		*(uint32_t *)at = value->u.boolean ? TRISTATE_TRUE : TRISTATE_FALSE;
		return 0;
	case FIELD_U32:
	case FIELD_I32:
	case FIELD_U64:
		return decode_number(from, field, value, where, at);
	case FIELD_MILLI:
		return decode_milli(from, field, value, where, at);
	case FIELD_ENUM:
		return decode_enum(from, field, value, where, at);
	case FIELD_TEXT:
	case FIELD_BYTES:
	case FIELD_PATH:
		return decode_string(from, field, value, where, at);
	case FIELD_FD:
	case FIELD_FD_OR_NULL:
		return decode_fd(from, field, value, where, at);
	case FIELD_ENV:
		return decode_env(from, field, value, where, at);
	case FIELD_STRUCT:
		return decode_struct(from, field->table, value, where, at);
	}
	return 0;
}

static int decode_list(const struct decoding *from, const struct field *field,
		       const struct json_value *value, const struct where *where,
		       struct any_list *list)
{
	size_t element_size = field_element_size(field);

	if (value->type != JSON_ARRAY)
		return refuse_type(from, value, where, "an array");
	if (value->size > field->max_count)
		return where_refuse(where, ERR_INVALID, from->err, "has %zu elements, at most %zu",
				    value->size, field->max_count);
	if (value->size == 0)
		return 0;
	list->items = calloc(value->size, element_size);
	if (!list->items)
		return where_refuse(where, ERR_NOMEM, from->err, "out of memory");
	list->capacity = value->size;
	for (const struct json_value *item = value->u.first; item; item = item->next) {
		const struct where element = { .up = where, .index = list->count };
		void *at = (char *)list->items + list->count * element_size;
		int r = 0;

		/* Counted first, so that what a failure leaves in it is released. */
		if (field->kind == FIELD_STRUCT)
			codec_init(field->table, at);
		list->count++;
		r = decode_one(from, field, item, &element, at);
		if (r < 0)
			return r;
	}
	return 0;
}

static int decode_member(const struct decoding *from, const struct field *field,
			 const struct json_value *value, const struct where *where, void *object)
{
	void *at = (char *)object + field->offset;
	void *part = NULL;

	if (field->flags & LIST)
		return decode_list(from, field, value, where, at);
	if (!(field->flags & POINTER))
		return decode_one(from, field, value, where, at);

	part = calloc(1, field->table->size);
	if (!part)
		return where_refuse(where, ERR_NOMEM, from->err, "out of memory");
	codec_init(field->table, part);
	*(void **)at = part;
	return decode_struct(from, field->table, value, where, part);
}

static int decode_tuple(const struct decoding *from, const struct table *table,
			const struct json_value *value, const struct where *where, void *object)
{
	const struct json_value *item = value->u.first;

	if (value->type != JSON_ARRAY)
		return refuse_type(from, value, where, "an array");
	if (value->size != table->tuple_count)
		return where_refuse(where, ERR_INVALID, from->err,
				    "has %zu elements, must have %zu", value->size,
				    table->tuple_count);
	for (size_t i = 0; i < table->tuple_count; i++, item = item->next) {
		const struct where element = { .up = where, .index = i };
		int r = decode_member(from, &table->fields[i], item, &element, object);

		if (r < 0)
			return r;
	}
	return 0;
}

/* The index of the field called NAME, or table->count. */
static size_t field_find(const struct table *table, const char *name)
{
	size_t i = 0;

	while (i < table->count && strcmp(table->fields[i].name, name) != 0)
		i++;
	return i;
}

static int decode_object(const struct decoding *from, const struct table *table,
			 const struct json_value *value, const struct where *where, void *object)
{
	seen_bits seen = 0;

	for (const struct json_value *item = value->u.first; item; item = item->next) {
		const struct where member = { .up = where, .name = item->key };
		size_t i = field_find(table, item->key);
		int r = 0;

		if (table_refuses(table, item->key))
			return where_refuse(&member, ERR_INVALID, from->err, "%s",
					    table->refused_reason);
		if (i == table->count)
			return where_refuse(&member, ERR_INVALID, from->err, "unknown key");
		seen |= (seen_bits)1 << i;
		r = decode_member(from, &table->fields[i], item, &member, object);
		if (r < 0)
			return r;
	}
	for (size_t i = 0; i < table->count && i < SEEN_MAX; i++) {
		const struct where member = { .up = where, .name = table->fields[i].name };

		if ((table->fields[i].flags & REQUIRED) && !(seen >> i & 1))
			return where_refuse(&member, ERR_INVALID, from->err, "is missing");
	}
	return 0;
}

static int decode_struct(const struct decoding *from, const struct table *table,
			 const struct json_value *value, const struct where *where, void *object)
{
	if (table->form == TABLE_TUPLE)
		return decode_tuple(from, table, value, where, object);
	if (table->form == TABLE_OBJECT_OR_FIRST && (value->type == JSON_STRING || is_b64(value)))
		return decode_member(from, &table->fields[0], value, where, object);
	if (value->type != JSON_OBJECT)
		return refuse_type(from, value, where, "an object");
	return decode_object(from, table, value, where, object);
}

int codec_decode(const struct table *table, const struct json_value *value, const char *where,
		 struct fdset *fds, void *object, struct error *err)
{
	const struct decoding from = { .fds = fds, .err = err };
	const struct where top = { .name = where };
	int r = 0;

	codec_init(table, object);
	r = decode_struct(&from, table, value, &top, object);
	if (r < 0)
		codec_deinit(table, object);
	return r;
}
