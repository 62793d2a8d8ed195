/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/json/codec.h"

/* Initialising, releasing and writing; codecread.c decodes. */

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proto/json/codecwhere.h"
#include "proto/json/utf8.h"

/* ---- where we are -------------------------------------------------------------------- */

static void where_text(const struct where *where, struct buf *out)
{
	char shown[PRINTABLE_BYTES];

	if (where->up)
		where_text(where->up, out);
	if (!where->name)
		(void)buf_printf(out, "[%zu]", where->index);
	else
		(void)buf_printf(out, "%s%s", where->up ? "." : "",
				 text_printable(shown, where->name));
}

int where_refuse(const struct where *where, enum error_kind kind, struct error *err,
		 const char *format, ...)
{
	struct buf path = BUF_INIT(ERROR_MESSAGE_BYTES);
	char why[ERROR_MESSAGE_BYTES];
	va_list args;
	int r = 0;

	va_start(args, format);
	(void)vsnprintf(why, sizeof(why), format, args);
	va_end(args);
	where_text(where, &path);
	r = error_set(err, kind, 0, "%s: %s", buf_text(&path), why);
	buf_deinit(&path);
	return r;
}

/* ---- fields -------------------------------------------------------------------------- */

size_t field_element_size(const struct field *field)
{
	switch (field->kind) {
	case FIELD_BOOL:
		return sizeof(bool);
	case FIELD_U32:
	case FIELD_I32:
	case FIELD_MILLI:
	case FIELD_ENUM:
	case FIELD_TRISTATE:
		return sizeof(uint32_t);
	case FIELD_U64:
		return sizeof(uint64_t);
	case FIELD_TEXT:
	case FIELD_BYTES:
	case FIELD_PATH:
		return sizeof(char *);
	case FIELD_FD:
	case FIELD_FD_OR_NULL:
		return sizeof(int);
	case FIELD_ENV:
		return sizeof(struct env_list);
	case FIELD_STRUCT:
		return field->table->size;
	}
	return 0;
}

bool table_refuses(const struct table *table, const char *name)
{
	for (size_t i = 0; table->refused && table->refused[i]; i++)
		if (strcmp(table->refused[i], name) == 0)
			return true;
	return false;
}

static void *member_of(const struct field *field, void *object)
{
	return (char *)object + field->offset;
}

/* Give the absent value; OBJECT's other bytes are zero. */
static void init_fields(const struct table *table, void *object)
{
	for (size_t i = 0; i < table->count; i++) {
		const struct field *field = &table->fields[i];
		void *at = member_of(field, object);

		if (field->flags & (LIST | POINTER))
			continue;
		switch (field->kind) {
		case FIELD_BOOL:
			*(bool *)at = field->absent != 0;
			break;
		case FIELD_U32:
		case FIELD_MILLI:
		case FIELD_ENUM:
		case FIELD_TRISTATE:
			*(uint32_t *)at = (uint32_t)field->absent;
			break;
		case FIELD_I32:
			*(int32_t *)at = (int32_t)field->absent;
			break;
		case FIELD_U64:
			*(uint64_t *)at = (uint64_t)field->absent;
			break;
		case FIELD_FD:
		case FIELD_FD_OR_NULL:
			*(int *)at = -1;
			break;
		case FIELD_STRUCT:
			init_fields(field->table, at);
			break;
		case FIELD_TEXT:
		case FIELD_BYTES:
		case FIELD_PATH:
		case FIELD_ENV:
			break;
		}
	}
}

void codec_init(const struct table *table, void *object)
{
	memset(object, 0, table->size);
	init_fields(table, object);
}

static void release_fields(const struct table *table, void *object);

static void release_one(const struct field *field, void *at)
{
	switch (field->kind) {
	case FIELD_TEXT:
	case FIELD_BYTES:
	case FIELD_PATH:
		free(*(char **)at);
		break;
	case FIELD_FD:
	case FIELD_FD_OR_NULL:
		auto_close(at);
		break;
	case FIELD_ENV:
		env_list_deinit(at);
		break;
	case FIELD_STRUCT:
		release_fields(field->table, at);
		break;
	case FIELD_BOOL:
	case FIELD_U32:
	case FIELD_I32:
	case FIELD_U64:
	case FIELD_MILLI:
	case FIELD_ENUM:
	case FIELD_TRISTATE:
		break;
	}
}

static void release_fields(const struct table *table, void *object)
{
	for (size_t i = 0; i < table->count; i++) {
		const struct field *field = &table->fields[i];
		void *at = member_of(field, object);

		if (field->flags & LIST) {
			struct any_list *list = at;

			for (size_t n = 0; n < list->count; n++)
				release_one(field,
					    (char *)list->items + n * field_element_size(field));
			free(list->items);
		} else if (field->flags & POINTER) {
			void *part = *(void **)at;

			if (part)
				release_fields(field->table, part);
			free(part);
		} else {
			release_one(field, at);
		}
	}
}

void codec_deinit(const struct table *table, void *object)
{
	if (!object)
		return;
	release_fields(table, object);
	codec_init(table, object);
}

/* ---- writing ------------------------------------------------------------------------- */

struct encoding {
	struct json_writer *writer;
	struct fdset *fds;
	struct error *err;
};

static int64_t number_of(const struct field *field, const void *at)
{
	switch (field->kind) {
	case FIELD_BOOL:
		return *(const bool *)at;
	case FIELD_U32:
	case FIELD_MILLI:
	case FIELD_ENUM:
	case FIELD_TRISTATE:
		return *(const uint32_t *)at;
	case FIELD_I32:
		return *(const int32_t *)at;
	case FIELD_U64:
		/* What does not fit is refused by its range. */
		return *(const uint64_t *)at > INT64_MAX ? -1 : (int64_t) * (const uint64_t *)at;
	case FIELD_FD:
	case FIELD_FD_OR_NULL:
		return *(const int *)at;
	case FIELD_TEXT:
	case FIELD_BYTES:
	case FIELD_PATH:
	case FIELD_ENV:
	case FIELD_STRUCT:
		break;
	}
	return 0;
}

static bool all_absent(const struct table *table, const void *object);

static bool is_absent(const struct field *field, const void *object)
{
	const void *at = (const char *)object + field->offset;

	if (field->flags & LIST)
		return ((const struct any_list *)at)->count == 0;
	if (field->flags & POINTER)
		return *(void *const *)at == NULL;
	switch (field->kind) {
	case FIELD_TEXT:
	case FIELD_BYTES:
	case FIELD_PATH:
		return *(char *const *)at == NULL;
	case FIELD_ENV:
		return ((const struct env_list *)at)->count == 0;
	case FIELD_STRUCT:
		return all_absent(field->table, at);
	case FIELD_BOOL:
	case FIELD_U32:
	case FIELD_I32:
	case FIELD_U64:
	case FIELD_MILLI:
	case FIELD_ENUM:
	case FIELD_TRISTATE:
	case FIELD_FD:
	case FIELD_FD_OR_NULL:
		break;
	}
	return number_of(field, at) == field->absent;
}

static bool all_absent(const struct table *table, const void *object)
{
	for (size_t i = 0; i < table->count; i++)
		if (!is_absent(&table->fields[i], object))
			return false;
	return true;
}

static int encode_string(const struct encoding *to, const struct field *field, const char *text,
			 const struct where *where)
{
	size_t size = text ? strlen(text) : 0;

	if (!text)
		return where_refuse(where, ERR_INVALID, to->err, "is missing");
	if ((int64_t)size < field->min || (int64_t)size > field->max)
		return where_refuse(where, ERR_INVALID, to->err,
				    "has %zu bytes, not %" PRId64 "..%" PRId64, size, field->min,
				    field->max);
	if (field->kind == FIELD_PATH && text[0] != '/')
		return where_refuse(where, ERR_INVALID, to->err, "must be absolute");
	if (field->kind != FIELD_TEXT) {
		json_write_bytes(to->writer, text);
		return 0;
	}
	if (!utf8_valid(text, size))
		return where_refuse(where, ERR_INVALID, to->err, "is not UTF-8");
	json_write_text_sized(to->writer, text, size);
	return 0;
}

static int encode_number(const struct encoding *to, const struct field *field, int64_t number,
			 const struct where *where)
{
	if (number < field->min || number > field->max)
		return where_refuse(where, ERR_INVALID, to->err, "must be in %" PRId64 "..%" PRId64,
				    field->min, field->max);
	if (field->kind == FIELD_BOOL)
		json_write_bool(to->writer, number != 0);
	else
		json_write_int(to->writer, number);
	return 0;
}

/* Whole processors as an integer, others as a decimal string without trailing zeroes. */
static int encode_milli(const struct encoding *to, const struct field *field, uint32_t milli,
			const struct where *where)
{
	char text[32];
	int length = 0;

	if (milli % 1000 == 0 || milli > field->max)
		return encode_number(to, field, milli > field->max ? -1 : (int64_t)milli / 1000,
				     where);
	length = snprintf(text, sizeof(text), "%u.%03u", milli / 1000, milli % 1000);
	while (text[length - 1] == '0')
		text[--length] = '\0';
	json_write_text(to->writer, text);
	return 0;
}

static int encode_enum(const struct encoding *to, const struct field *field, uint32_t value,
		       const struct where *where)
{
	const struct enum_names *names = field->names;

	if (value < names->first || value - names->first >= names->count)
		return where_refuse(where, ERR_INVALID, to->err, "has no name for %u", value);
	json_write_text(to->writer, names->names[value - names->first]);
	return 0;
}

static int encode_fd(const struct encoding *to, const struct field *field, int fd,
		     const struct where *where)
{
	int r = 0;

	if (fd < 0 && field->kind == FIELD_FD_OR_NULL) {
		json_write_text(to->writer, "null");
		return 0;
	}
	if (!to->fds)
		return where_refuse(where, ERR_INVALID, to->err, "no descriptor can ride along");
	r = fdset_add_dup(to->fds, fd, to->err);
	if (r < 0)
		return r;
	json_write_uint(to->writer, to->fds->count - 1);
	return 0;
}

static int encode_env(const struct encoding *to, const struct env_list *list,
		      const struct where *where)
{
	AUTO(auto_free) const struct env_var **sorted = NULL;
	size_t count = 0;
	bool plain = true;

	sorted = env_list_sorted(list, &count, NULL);
	if (!sorted)
		return where_refuse(where, ERR_NOMEM, to->err, "out of memory");
	for (size_t i = 0; i < count && plain; i++)
		plain = utf8_valid(sorted[i]->name, strlen(sorted[i]->name));

	if (plain)
		json_write_object(to->writer);
	else
		json_write_array(to->writer);
	for (size_t i = 0; i < count; i++) {
		struct buf pair = BUF_INIT(SIZE_MAX / 2);

		if (plain) {
			json_write_key(to->writer, sorted[i]->name);
			json_write_bytes(to->writer, sorted[i]->value);
			continue;
		}
		(void)buf_add_string(&pair, sorted[i]->name);
		(void)buf_add_byte(&pair, '=');
		(void)buf_add_string(&pair, sorted[i]->value);
		json_write_bytes(to->writer, buf_text(&pair));
		to->writer->out->failed |= pair.failed;
		buf_deinit(&pair);
	}
	if (plain)
		json_write_object_end(to->writer);
	else
		json_write_array_end(to->writer);
	return 0;
}

static int encode_struct(const struct encoding *to, const struct table *table, const void *object,
			 const struct where *where);

static int encode_one(const struct encoding *to, const struct field *field, const void *at,
		      const struct where *where)
{
	switch (field->kind) {
	case FIELD_BOOL:
	case FIELD_U32:
	case FIELD_I32:
	case FIELD_U64:
		return encode_number(to, field, number_of(field, at), where);
	case FIELD_MILLI:
		return encode_milli(to, field, *(const uint32_t *)at, where);
	case FIELD_ENUM:
		return encode_enum(to, field, *(const uint32_t *)at, where);
	case FIELD_TRISTATE:
		json_write_bool(to->writer, *(const uint32_t *)at == TRISTATE_TRUE);
		return 0;
	case FIELD_TEXT:
	case FIELD_BYTES:
	case FIELD_PATH:
		return encode_string(to, field, *(char *const *)at, where);
	case FIELD_FD:
	case FIELD_FD_OR_NULL:
		return encode_fd(to, field, *(const int *)at, where);
	case FIELD_ENV:
		return encode_env(to, at, where);
	case FIELD_STRUCT:
		return encode_struct(to, field->table, at, where);
	}
	return 0;
}

static int encode_list(const struct encoding *to, const struct field *field,
		       const struct any_list *list, const struct where *where)
{
	int r = 0;

	if (list->count > field->max_count)
		return where_refuse(where, ERR_INVALID, to->err, "has %zu elements, at most %zu",
				    list->count, field->max_count);
	json_write_array(to->writer);
	for (size_t i = 0; i < list->count && r == 0; i++) {
		const struct where element = { .up = where, .index = i };

		r = encode_one(to, field, (const char *)list->items + i * field_element_size(field),
			       &element);
	}
	json_write_array_end(to->writer);
	return r;
}

static int encode_member(const struct encoding *to, const struct field *field, const void *object,
			 const struct where *where)
{
	const void *at = (const char *)object + field->offset;

	if (field->flags & LIST)
		return encode_list(to, field, at, where);
	if (field->flags & POINTER)
		return encode_struct(to, field->table, *(void *const *)at, where);
	return encode_one(to, field, at, where);
}

/* Whether only the first field says anything, so that it may stand alone. */
static bool first_only(const struct table *table, const void *object)
{
	for (size_t i = 1; i < table->count; i++)
		if (!is_absent(&table->fields[i], object))
			return false;
	return true;
}

static int encode_struct(const struct encoding *to, const struct table *table, const void *object,
			 const struct where *where)
{
	bool tuple = table->form == TABLE_TUPLE;
	size_t count = tuple ? table->tuple_count : table->count;
	int r = 0;

	if (table->form == TABLE_OBJECT_OR_FIRST && first_only(table, object))
		return encode_member(to, &table->fields[0], object, where);
	if (tuple)
		json_write_array(to->writer);
	else
		json_write_object(to->writer);
	for (size_t i = 0; i < count && r == 0; i++) {
		const struct field *field = &table->fields[i];
		const struct where member = { .up = where, .name = field->name };

		if (!tuple) {
			if (table_refuses(table, field->name) ||
			    (!(field->flags & REQUIRED) && is_absent(field, object)))
				continue;
			json_write_key(to->writer, field->name);
		}
		r = encode_member(to, field, object, &member);
	}
	/* After a failure the text is thrown away; only the writer's own order matters. */
	to->writer->after_key = false;
	if (tuple)
		json_write_array_end(to->writer);
	else
		json_write_object_end(to->writer);
	return r;
}

int codec_encode(const struct table *table, const void *object, const char *where,
		 struct json_writer *writer, struct fdset *fds, struct error *err)
{
	const struct encoding to = { .writer = writer, .fds = fds, .err = err };
	const struct where top = { .name = where };

	return encode_struct(&to, table, object, &top);
}
