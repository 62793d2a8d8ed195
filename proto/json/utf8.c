/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/json/utf8.h"

#include <stdint.h>
#include <stdio.h>

#include "common/scope.h"

/*
 * Table 3-7 of the Unicode standard: by first byte, how long and which second bytes are well-formed.
 * Third and fourth bytes are always 80..BF.
 */
static const struct {
	uint8_t first_min;
	uint8_t first_max;
	uint8_t length;
	uint8_t second_min;
	uint8_t second_max;
} forms[] = {
	{ 0xc2, 0xdf, 2, 0x80, 0xbf }, { 0xe0, 0xe0, 3, 0xa0, 0xbf }, { 0xe1, 0xec, 3, 0x80, 0xbf },
	{ 0xed, 0xed, 3, 0x80, 0x9f }, { 0xee, 0xef, 3, 0x80, 0xbf }, { 0xf0, 0xf0, 4, 0x90, 0xbf },
	{ 0xf1, 0xf3, 4, 0x80, 0xbf }, { 0xf4, 0xf4, 4, 0x80, 0x8f },
};

size_t utf8_length(const char *data, size_t size)
{
	const uint8_t *bytes = (const uint8_t *)data;

	if (size == 0)
		return 0;
	if (bytes[0] < 0x80)
		return 1;
	for (size_t i = 0; i < ARRAY_SIZE(forms); i++) {
		if (bytes[0] < forms[i].first_min || bytes[0] > forms[i].first_max)
			continue;
		if (size < forms[i].length || bytes[1] < forms[i].second_min ||
		    bytes[1] > forms[i].second_max)
			return 0;
		for (size_t at = 2; at < forms[i].length; at++)
			if ((bytes[at] & 0xc0) != 0x80)
				return 0;
		return forms[i].length;
	}
	return 0;
}

bool utf8_valid(const char *data, size_t size)
{
	size_t at = 0;

	while (at < size) {
		size_t length = 1;

		/* Nearly all bytes are ASCII. */
		if ((uint8_t)data[at] >= 0x80)
			length = utf8_length(data + at, size - at);
		if (length == 0)
			return false;
		at += length;
	}
	return true;
}

const char *text_printable(char out[PRINTABLE_BYTES], const char *text)
{
	size_t used = 0;

	for (; *text; text++) {
		/* The longest piece, "..." and the NUL must still fit. */
		if (used + 4 + 3 >= PRINTABLE_BYTES) {
			(void)snprintf(out + used, PRINTABLE_BYTES - used, "...");
			return out;
		}
		if (*text < ' ' || *text > '~' || *text == '\\' || *text == '\'' || *text == '"')
			used += (size_t)snprintf(out + used, PRINTABLE_BYTES - used, "\\x%02x",
						 (unsigned)(uint8_t)*text);
		else
			out[used++] = *text;
	}
	out[used] = '\0';
	return out;
}
