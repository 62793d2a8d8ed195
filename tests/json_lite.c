/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/json_lite.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define MAX_DEPTH 64

static _Noreturn void out_of_memory(void)
{
	(void)fputs("json_lite: out of memory\n", stderr);
	abort();
}

static void *checked(void *memory)
{
	if (!memory)
		out_of_memory();
	return memory;
}

struct json_value *json_new(enum json_type type)
{
	struct json_value *value = checked(calloc(1, sizeof(*value)));

	value->type = type;
	return value;
}

static struct json_value *new_text(enum json_type type, const char *text, size_t size)
{
	struct json_value *value = json_new(type);

	value->text = checked(malloc(size + 1));
	memcpy(value->text, text, size);
	value->text[size] = '\0';
	value->size = size;
	return value;
}

struct json_value *json_new_string(const char *text)
{
	return text ? new_text(JSON_STRING, text, strlen(text)) : json_new(JSON_NULL);
}

struct json_value *json_new_bool(bool truth)
{
	struct json_value *value = json_new(JSON_BOOL);

	value->truth = truth;
	return value;
}

void json_free(struct json_value *value)
{
	if (!value)
		return;
	for (size_t i = 0; i < value->count; i++) {
		json_free(value->items[i]);
		if (value->keys)
			free(value->keys[i]);
	}
	free(value->items);
	free(value->keys);
	free(value->text);
	free(value);
}

void json_release(struct json_value **value)
{
	json_free(*value);
	*value = NULL;
}

void json_append(struct json_value *array, struct json_value *item)
{
	if ((array->count & (array->count - 1)) == 0) { /* full at each power of two */
		size_t capacity = array->count ? array->count * 2 : 1;

		array->items = checked(realloc(array->items, capacity * sizeof(*array->items)));
		if (array->type == JSON_OBJECT)
			array->keys =
				checked(realloc(array->keys, capacity * sizeof(*array->keys)));
	}
	if (array->keys)
		array->keys[array->count] = NULL;
	array->items[array->count++] = item;
}

struct json_value *json_set(struct json_value *object, const char *key, struct json_value *item)
{
	json_append(object, item);
	object->keys[object->count - 1] = checked(strdup(key));
	return item;
}

const struct json_value *json_get(const struct json_value *object, const char *key)
{
	if (!object || object->type != JSON_OBJECT)
		return NULL;
	for (size_t i = 0; i < object->count; i++)
		if (strcmp(object->keys[i], key) == 0)
			return object->items[i];
	return NULL;
}

const char *json_get_string(const struct json_value *object, const char *key)
{
	const struct json_value *value = json_get(object, key);

	return value && value->type == JSON_STRING ? value->text : NULL;
}

bool json_get_bool(const struct json_value *object, const char *key, bool fallback)
{
	const struct json_value *value = json_get(object, key);

	return value && value->type == JSON_BOOL ? value->truth : fallback;
}

bool json_has_nul(const struct json_value *value)
{
	if (value->type == JSON_STRING && strlen(value->text) != value->size)
		return true;
	for (size_t i = 0; i < value->count; i++)
		if (json_has_nul(value->items[i]))
			return true;
	return false;
}

/* Every member of A is in B too. */
static bool members_in(const struct json_value *a, const struct json_value *b, bool empty_is_absent)
{
	for (size_t i = 0; i < a->count; i++) {
		const struct json_value *mine = a->items[i];
		const struct json_value *theirs = json_get(b, a->keys[i]);

		if (!theirs && empty_is_absent && mine->type == JSON_ARRAY && mine->count == 0)
			continue;
		if (!theirs || !json_equal(mine, theirs, empty_is_absent))
			return false;
	}
	return true;
}

bool json_equal(const struct json_value *a, const struct json_value *b, bool empty_is_absent)
{
	if (a->type != b->type)
		return false;
	switch (a->type) {
	case JSON_NULL:
		return true;
	case JSON_BOOL:
		return a->truth == b->truth;
	case JSON_NUMBER:
	case JSON_STRING:
		return a->size == b->size && memcmp(a->text, b->text, a->size) == 0;
	case JSON_OBJECT:
		return members_in(a, b, empty_is_absent) && members_in(b, a, empty_is_absent);
	case JSON_ARRAY:
		break;
	}
	if (a->count != b->count)
		return false;
	for (size_t i = 0; i < a->count; i++)
		if (!json_equal(a->items[i], b->items[i], empty_is_absent))
			return false;
	return true;
}

static void print_text(const char *text, size_t size, FILE *out)
{
	(void)fputc('"', out);
	for (size_t i = 0; i < size; i++) {
		unsigned char byte = (unsigned char)text[i];

		if (byte == '"' || byte == '\\')
			(void)fprintf(out, "\\%c", byte);
		else if (byte < 0x20 || byte == 0x7f)
			(void)fprintf(out, "\\u%04x", byte);
		else
			(void)fputc(byte, out);
	}
	(void)fputc('"', out);
}

static void print_members(const struct json_value *value, FILE *out)
{
	bool object = value->type == JSON_OBJECT;

	(void)fputc(object ? '{' : '[', out);
	for (size_t i = 0; i < value->count; i++) {
		if (i > 0)
			(void)fputc(',', out);
		if (object) {
			print_text(value->keys[i], strlen(value->keys[i]), out);
			(void)fputc(':', out);
		}
		json_print(value->items[i], out);
	}
	(void)fputc(object ? '}' : ']', out);
}

void json_print(const struct json_value *value, FILE *out)
{
	switch (value->type) {
	case JSON_NULL:
		(void)fputs("null", out);
		break;
	case JSON_BOOL:
		(void)fputs(value->truth ? "true" : "false", out);
		break;
	case JSON_NUMBER:
		(void)fputs(value->text, out);
		break;
	case JSON_STRING:
		print_text(value->text, value->size, out);
		break;
	case JSON_ARRAY:
	case JSON_OBJECT:
		print_members(value, out);
		break;
	}
}

struct parser {
	const char *at;
	const char *end;
	const char *start;
};

static void skip_space(struct parser *parser)
{
	while (parser->at < parser->end && *parser->at && strchr(" \t\r\n", *parser->at))
		parser->at++;
}

static bool take(struct parser *parser, const char *word)
{
	size_t size = strlen(word);

	if ((size_t)(parser->end - parser->at) < size || memcmp(parser->at, word, size) != 0)
		return false;
	parser->at += size;
	return true;
}

/* Four hexadecimal digits. */
static bool take_unit(struct parser *parser, uint32_t *ret_unit)
{
	uint32_t unit = 0;

	if (parser->end - parser->at < 4)
		return false;
	for (int i = 0; i < 4; i++) {
		static const char digits[] = "0123456789abcdef";
		char byte = *parser->at;
		const char *digit = NULL;

		if (byte >= 'A' && byte <= 'F')
			byte = (char)(byte - 'A' + 'a');
		digit = byte ? strchr(digits, byte) : NULL;
		if (!digit)
			return false;
		unit = unit * 16 + (uint32_t)(digit - digits);
		parser->at++;
	}
	*ret_unit = unit;
	return true;
}

/* After `\u`: the code point, two units if they are a pair. A unit of a pair alone is no text. */
static bool take_code_point(struct parser *parser, uint32_t *ret_point)
{
	uint32_t point = 0;
	uint32_t low = 0;

	if (!take_unit(parser, &point) || (point >= 0xdc00 && point < 0xe000))
		return false;
	if (point >= 0xd800 && point < 0xdc00) {
		if (!take(parser, "\\u") || !take_unit(parser, &low) || low < 0xdc00 ||
		    low > 0xdfff)
			return false;
		point = 0x10000 + ((point - 0xd800) << 10) + (low - 0xdc00);
	}
	*ret_point = point;
	return true;
}

static char *put_utf8(char *out, uint32_t point)
{
	if (point < 0x80) {
		*out++ = (char)point;
	} else if (point < 0x800) {
		*out++ = (char)(0xc0 | point >> 6);
		*out++ = (char)(0x80 | (point & 0x3f));
	} else if (point < 0x10000) {
		*out++ = (char)(0xe0 | point >> 12);
		*out++ = (char)(0x80 | (point >> 6 & 0x3f));
		*out++ = (char)(0x80 | (point & 0x3f));
	} else {
		*out++ = (char)(0xf0 | point >> 18);
		*out++ = (char)(0x80 | (point >> 12 & 0x3f));
		*out++ = (char)(0x80 | (point >> 6 & 0x3f));
		*out++ = (char)(0x80 | (point & 0x3f));
	}
	return out;
}

static bool take_escape(struct parser *parser, char **out)
{
	static const char from[] = "\"\\/bfnrt";
	static const char to[] = "\"\\/\b\f\n\r\t";
	const char *found = NULL;
	uint32_t point = 0;

	if (parser->at == parser->end)
		return false;
	if (*parser->at == 'u') {
		parser->at++;
		if (!take_code_point(parser, &point))
			return false;
		*out = put_utf8(*out, point);
		return true;
	}
	found = *parser->at ? strchr(from, *parser->at) : NULL;
	if (!found)
		return false;
	*(*out)++ = to[found - from];
	parser->at++;
	return true;
}

/* How many bytes there are before the closing quote. */
static size_t string_extent(const struct parser *parser)
{
	const char *at = parser->at;

	while (at < parser->end && *at != '"')
		at += *at == '\\' ? 2 : 1;
	return (size_t)((at < parser->end ? at : parser->end) - parser->at);
}

/* After the opening quote. What is written is never shorter than what it means. */
static struct json_value *parse_string(struct parser *parser)
{
	char *room = checked(malloc(string_extent(parser) + 1));
	char *out = room;
	struct json_value *value = NULL;

	while (parser->at < parser->end && *parser->at != '"') {
		unsigned char byte = (unsigned char)*parser->at++;

		if (byte < 0x20 || (byte == '\\' && !take_escape(parser, &out)))
			break;
		if (byte != '\\')
			*out++ = (char)byte;
	}
	if (take(parser, "\""))
		value = new_text(JSON_STRING, room, (size_t)(out - room));
	free(room);
	return value;
}

static struct json_value *parse_number(struct parser *parser)
{
	const char *start = parser->at;

	while (parser->at < parser->end && *parser->at && strchr("+-.0123456789eE", *parser->at))
		parser->at++;
	if (parser->at == start)
		return NULL;
	return new_text(JSON_NUMBER, start, (size_t)(parser->at - start));
}

static struct json_value *parse_value(struct parser *parser, int depth);

/* One member of VALUE, which is an array or an object. */
static bool parse_member(struct parser *parser, struct json_value *value, int depth)
{
	struct json_value *key = NULL;
	struct json_value *item = NULL;

	if (value->type == JSON_OBJECT) {
		skip_space(parser);
		key = take(parser, "\"") ? parse_string(parser) : NULL;
		skip_space(parser);
		if (!key || json_get(value, key->text) || !take(parser, ":")) {
			json_free(key);
			return false;
		}
	}
	item = parse_value(parser, depth + 1);
	if (item && key)
		(void)json_set(value, key->text, item);
	else if (item)
		json_append(value, item);
	json_free(key);
	return item != NULL;
}

static struct json_value *parse_members(struct parser *parser, enum json_type type, int depth)
{
	const char *close = type == JSON_OBJECT ? "}" : "]";
	struct json_value *value = json_new(type);

	skip_space(parser);
	if (take(parser, close))
		return value;
	while (depth < MAX_DEPTH && parse_member(parser, value, depth)) {
		skip_space(parser);
		if (take(parser, close))
			return value;
		if (!take(parser, ","))
			break;
	}
	json_free(value);
	return NULL;
}

static struct json_value *parse_value(struct parser *parser, int depth)
{
	skip_space(parser);
	if (take(parser, "{"))
		return parse_members(parser, JSON_OBJECT, depth);
	if (take(parser, "["))
		return parse_members(parser, JSON_ARRAY, depth);
	if (take(parser, "\""))
		return parse_string(parser);
	if (take(parser, "true"))
		return json_new_bool(true);
	if (take(parser, "false"))
		return json_new_bool(false);
	if (take(parser, "null"))
		return json_new(JSON_NULL);
	return parse_number(parser);
}

struct json_value *json_parse(const char *text, size_t size, size_t *ret_offset)
{
	struct parser parser = { .at = text, .end = text + size, .start = text };
	struct json_value *value = parse_value(&parser, 0);

	if (value) {
		skip_space(&parser);
		if (parser.at == parser.end)
			return value;
		json_free(value);
	}
	*ret_offset = (size_t)(parser.at - parser.start);
	return NULL;
}
