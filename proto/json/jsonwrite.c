/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/json/json.h"

/* The writing half. */

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "proto/json/base64.h"
#include "proto/json/utf8.h"

void json_writer_init(struct json_writer *writer, struct buf *out)
{
	*writer = (struct json_writer){ .out = out };
}

/* A value or key begins: the comma before it. */
static void item_begin(struct json_writer *writer)
{
	uint64_t bit = 0;

	if (writer->after_key) {
		writer->after_key = false;
		return;
	}
	if (writer->depth == 0)
		return;
	bit = UINT64_C(1) << (writer->depth - 1);
	if (writer->has_items & bit)
		(void)buf_add_byte(writer->out, ',');
	writer->has_items |= bit;
}

static void container_begin(struct json_writer *writer, char byte)
{
	item_begin(writer);
	(void)buf_add_byte(writer->out, byte);
	assert(writer->depth < 64);
	writer->has_items &= ~(UINT64_C(1) << writer->depth);
	writer->depth++;
}

static void container_end(struct json_writer *writer, char byte)
{
	assert(writer->depth > 0 && !writer->after_key);
	writer->depth--;
	(void)buf_add_byte(writer->out, byte);
}

void json_write_object(struct json_writer *writer)
{
	container_begin(writer, '{');
}

void json_write_object_end(struct json_writer *writer)
{
	container_end(writer, '}');
}

void json_write_array(struct json_writer *writer)
{
	container_begin(writer, '[');
}

void json_write_array_end(struct json_writer *writer)
{
	container_end(writer, ']');
}

/* The escape of one byte that does not stand for itself. */
static const char *escape_of(unsigned char byte, char room[8])
{
	static const char digits[] = "0123456789abcdef";

	switch (byte) {
	case '"':
		return "\\\"";
	case '\\':
		return "\\\\";
	case '\n':
		return "\\n";
	case '\t':
		return "\\t";
	case '\r':
		return "\\r";
	default:
		break;
	}
	memcpy(room, "\\u00", 4);
	room[4] = digits[byte >> 4];
	room[5] = digits[byte & 15];
	room[6] = '\0';
	return room;
}

static void quoted(struct json_writer *writer, const char *text, size_t size)
{
	size_t plain = 0;

	if (!utf8_valid(text, size) || memchr(text, '\0', size)) {
		writer->not_utf8 = true;
		size = 0;
	}
	(void)buf_add_byte(writer->out, '"');
	for (size_t at = 0; at < size; at++) {
		unsigned char byte = (unsigned char)text[at];
		const char *escape = NULL;
		char room[8];

		if (byte >= 0x20 && byte != '"' && byte != '\\' && byte != 0x7f)
			continue;
		escape = escape_of(byte, room);
		(void)buf_add(writer->out, text + plain, at - plain);
		(void)buf_add_string(writer->out, escape);
		plain = at + 1;
	}
	(void)buf_add(writer->out, text + plain, size - plain);
	(void)buf_add_byte(writer->out, '"');
}

void json_write_key(struct json_writer *writer, const char *key)
{
	assert(writer->depth > 0 && !writer->after_key);
	item_begin(writer);
	quoted(writer, key, strlen(key));
	(void)buf_add_byte(writer->out, ':');
	writer->after_key = true;
}

void json_write_raw(struct json_writer *writer, const char *json, size_t size)
{
	item_begin(writer);
	(void)buf_add(writer->out, json, size);
}

void json_write_null(struct json_writer *writer)
{
	json_write_raw(writer, "null", 4);
}

void json_write_bool(struct json_writer *writer, bool value)
{
	json_write_raw(writer, value ? "true" : "false", value ? 4 : 5);
}

void json_write_int(struct json_writer *writer, int64_t value)
{
	item_begin(writer);
	(void)buf_printf(writer->out, "%" PRId64, value);
}

void json_write_uint(struct json_writer *writer, uint64_t value)
{
	if (value > INT64_MAX) {
		writer->out_of_range = true;
		value = 0;
	}
	json_write_int(writer, (int64_t)value);
}

void json_write_text_sized(struct json_writer *writer, const char *text, size_t size)
{
	item_begin(writer);
	quoted(writer, text, size);
}

void json_write_text(struct json_writer *writer, const char *text)
{
	json_write_text_sized(writer, text, strlen(text));
}

void json_write_bytes(struct json_writer *writer, const char *text)
{
	size_t size = strlen(text);

	if (utf8_valid(text, size)) {
		json_write_text_sized(writer, text, size);
		return;
	}
	json_write_object(writer);
	json_write_key(writer, "b64");
	item_begin(writer);
	(void)buf_add_byte(writer->out, '"');
	(void)base64_encode(writer->out, text, size);
	(void)buf_add_byte(writer->out, '"');
	json_write_object_end(writer);
}

int json_writer_check(const struct json_writer *writer, struct error *err)
{
	if (writer->not_utf8)
		return error_set(err, ERR_INVALID, 0, "text is not UTF-8");
	if (writer->out_of_range)
		return error_set(err, ERR_INVALID, 0, "number above 2^63 - 1");
	return buf_check(writer->out, "JSON", err);
}
