/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/json/base64.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* The last one is no value but the padding. */
static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=";
#define PADDING 64

int base64_encode(struct buf *out, const void *data, size_t size)
{
	const uint8_t *bytes = data;
	size_t needed = (size + 2) / 3 * 4;
	char *to = buf_reserve(out, needed);

	if (!to)
		return -ERR_NOMEM;
	for (size_t at = 0; at < size; at += 3) {
		size_t left = size - at;
		uint32_t group = (uint32_t)bytes[at] << 16;

		if (left > 1)
			group |= (uint32_t)bytes[at + 1] << 8;
		if (left > 2)
			group |= bytes[at + 2];
		*to++ = alphabet[group >> 18];
		*to++ = alphabet[group >> 12 & 63];
		*to++ = alphabet[left > 1 ? group >> 6 & 63 : PADDING];
		*to++ = alphabet[left > 2 ? group & 63 : PADDING];
	}
	buf_commit(out, needed);
	return 0;
}

/* The value of one character, or -1. */
static int value_of(char character)
{
	const char *found = character ? strchr(alphabet, character) : NULL;

	return found && found - alphabet < PADDING ? (int)(found - alphabet) : -1;
}

/* Four characters, of which the last PAD are '='. Returns false when they are not canonical. */
static bool group_decode(const char *text, size_t pad, uint8_t *to)
{
	uint32_t group = 0;

	for (size_t i = 0; i < 4; i++) {
		int value = i < 4 - pad ? value_of(text[i]) : 0;

		if (value < 0)
			return false;
		group = group << 6 | (uint32_t)value;
	}
	if ((pad == 1 && (group & 0xff) != 0) || (pad == 2 && (group & 0xffff) != 0))
		return false;
	to[0] = (uint8_t)(group >> 16);
	if (pad < 2)
		to[1] = (uint8_t)(group >> 8);
	if (pad < 1)
		to[2] = (uint8_t)group;
	return true;
}

char *base64_decode(const char *text, size_t size, size_t *ret_size, bool *ret_invalid)
{
	char *bytes = NULL;
	size_t used = 0;

	*ret_invalid = size % 4 != 0;
	if (*ret_invalid)
		return NULL;
	bytes = malloc(size / 4 * 3 + 1);
	if (!bytes)
		return NULL;

	for (size_t at = 0; at < size; at += 4) {
		size_t pad = 0;

		if (at + 4 == size && text[size - 1] == '=')
			pad = text[size - 2] == '=' ? 2 : 1;
		if (!group_decode(text + at, pad, (uint8_t *)bytes + used)) {
			*ret_invalid = true;
			free(bytes);
			return NULL;
		}
		used += 3 - pad;
	}
	bytes[used] = '\0';
	*ret_size = used;
	return bytes;
}
