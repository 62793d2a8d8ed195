/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/json/jsonscan.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "proto/json/utf8.h"

struct scan {
	const char *text;
	size_t size;
	size_t at;
	const struct json_limits *limits;
};

int json_error_at(const char *text, size_t at, struct error *err, const char *format, ...)
{
	char why[ERROR_MESSAGE_BYTES];
	size_t line = 1;
	size_t column = 1;
	va_list args;

	for (size_t i = 0; i < at; i++) {
		column++;
		if (text[i] == '\n') {
			line++;
			column = 1;
		}
	}
	va_start(args, format);
	(void)vsnprintf(why, sizeof(why), format, args);
	va_end(args);
	return error_set(err, ERR_BAD_JSON, 0, "line %zu, column %zu: %s", line, column, why);
}

#define REFUSE(scan, err, ...) json_error_at((scan)->text, (scan)->at, err, __VA_ARGS__)

/* Four hexadecimal digits at offset AT, or -1. */
static int32_t hex4(const struct scan *scan, size_t at)
{
	int32_t value = 0;

	if (at > scan->size || scan->size - at < 4)
		return -1;
	for (size_t i = at; i < at + 4; i++) {
		char c = scan->text[i];

		value *= 16;
		if (c >= '0' && c <= '9')
			value += c - '0';
		else if (c >= 'a' && c <= 'f')
			value += c - 'a' + 10;
		else if (c >= 'A' && c <= 'F')
			value += c - 'A' + 10;
		else
			return -1;
	}
	return value;
}

static bool is_high_surrogate(int32_t value)
{
	return value >= 0xd800 && value <= 0xdbff;
}

static bool is_low_surrogate(int32_t value)
{
	return value >= 0xdc00 && value <= 0xdfff;
}

/* An escape `\uXXXX`, or two that make one character. *ret_bytes: of the character in UTF-8. */
static int scan_unicode_escape(struct scan *scan, size_t *ret_bytes, struct error *err)
{
	int32_t value = hex4(scan, scan->at + 2);
	int32_t low = -1;

	if (value < 0)
		return REFUSE(scan, err, "\\u needs four hexadecimal digits");
	if (value == 0)
		return REFUSE(scan, err, "U+0000 is not allowed");
	if (is_low_surrogate(value))
		return REFUSE(scan, err, "lone surrogate");
	if (!is_high_surrogate(value)) {
		*ret_bytes = value < 0x80 ? 1 : value < 0x800 ? 2 : 3;
		scan->at += 6;
		return 0;
	}
	if (scan->size - scan->at >= 12 && scan->text[scan->at + 6] == '\\' &&
	    scan->text[scan->at + 7] == 'u')
		low = hex4(scan, scan->at + 8);
	if (!is_low_surrogate(low))
		return REFUSE(scan, err, "lone surrogate");
	*ret_bytes = 4;
	scan->at += 12;
	return 0;
}

static int scan_escape(struct scan *scan, size_t *ret_bytes, struct error *err)
{
	char what = '\0';

	if (scan->size - scan->at > 1)
		what = scan->text[scan->at + 1];
	if (what == 'u')
		return scan_unicode_escape(scan, ret_bytes, err);
	if (what == '\0' || !strchr("\"\\/bfnrt", what))
		return REFUSE(scan, err, "unknown escape");
	scan->at += 2;
	*ret_bytes = 1;
	return 0;
}

/* One character of a string, escaped or not. */
static int scan_character(struct scan *scan, size_t *ret_bytes, struct error *err)
{
	size_t length = 0;

	if (scan->text[scan->at] == '\\')
		return scan_escape(scan, ret_bytes, err);
	if ((uint8_t)scan->text[scan->at] < 0x20)
		return REFUSE(scan, err, "control character in a string");
	length = utf8_length(scan->text + scan->at, scan->size - scan->at);
	if (length == 0)
		return REFUSE(scan, err, "not UTF-8");
	scan->at += length;
	*ret_bytes = length;
	return 0;
}

/* How many bytes from here on stand for themselves and need no further look; skips them. */
static size_t plain_run(struct scan *scan)
{
	size_t start = scan->at;

	while (scan->at < scan->size) {
		uint8_t byte = (uint8_t)scan->text[scan->at];

		if (byte < 0x20 || byte >= 0x80 || byte == '"' || byte == '\\')
			break;
		scan->at++;
	}
	return scan->at - start;
}

/* A string; scan->at is at its opening quote, afterwards behind the closing one. */
static int scan_string(struct scan *scan, struct error *err)
{
	size_t start = scan->at++;
	size_t total = 0;

	while (scan->at < scan->size && scan->text[scan->at] != '"') {
		size_t bytes = plain_run(scan);
		int r = 0;

		if (bytes == 0)
			r = scan_character(scan, &bytes, err);
		if (r < 0)
			return r;
		total += bytes;
		if (total > scan->limits->string_bytes)
			return REFUSE(scan, err, "string longer than %zu bytes",
				      scan->limits->string_bytes);
	}
	if (scan->at == scan->size) {
		scan->at = start;
		return REFUSE(scan, err, "string without end");
	}
	scan->at++;
	return 0;
}

/* A number; range and leading zeroes are for others to check. */
static int scan_number(struct scan *scan, struct error *err)
{
	scan->at++;
	while (scan->at < scan->size && strchr("0123456789+-.eE", scan->text[scan->at]) &&
	       scan->text[scan->at] != '\0') {
		if (scan->text[scan->at] < '0' || scan->text[scan->at] > '9')
			return REFUSE(scan, err, "numbers must be integers");
		scan->at++;
	}
	return 0;
}

int json_scan(const char *text, size_t size, const struct json_limits *limits, struct error *err)
{
	struct scan scan = { .text = text, .size = size, .limits = limits };
	size_t depth = 0;
	int r = 0;

	if (size > limits->text_bytes)
		return error_set(err, ERR_BAD_JSON, 0, "longer than %zu bytes", limits->text_bytes);
	while (r == 0 && scan.at < size) {
		char c = text[scan.at];

		if (c == '"') {
			r = scan_string(&scan, err);
		} else if (c == '-' || (c >= '0' && c <= '9')) {
			r = scan_number(&scan, err);
		} else if (c == '{' || c == '[') {
			if (++depth > limits->depth)
				return REFUSE(&scan, err, "nested deeper than %zu", limits->depth);
			scan.at++;
		} else if (c == '/') {
			return REFUSE(&scan, err, "comments are not allowed");
		} else {
			if ((c == '}' || c == ']') && depth > 0)
				depth--;
			scan.at++;
		}
	}
	return r;
}
