/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/egress/chunked.h"

#define DIGITS_MAX 15

static int hex_value(char byte)
{
	if (byte >= '0' && byte <= '9')
		return byte - '0';
	if (byte >= 'a' && byte <= 'f')
		return byte - 'a' + 10;
	if (byte >= 'A' && byte <= 'F')
		return byte - 'A' + 10;
	return -1;
}

/* The state after BYTE, which is not of a chunk's data. */
static enum chunked_state step(struct chunked *chunked, char byte)
{
	int value = hex_value(byte);

	switch (chunked->state) {
	case CHUNKED_SIZE:
		if (value >= 0 && chunked->digits < DIGITS_MAX) {
			chunked->digits++;
			chunked->left = chunked->left * 16 + (uint64_t)value;
			return CHUNKED_SIZE;
		}
		return byte == '\r' && chunked->digits > 0 ? CHUNKED_SIZE_LF : CHUNKED_BAD;
	case CHUNKED_SIZE_LF:
		chunked->digits = 0;
		if (byte != '\n')
			return CHUNKED_BAD;
		return chunked->left == 0 ? CHUNKED_LAST_CR : CHUNKED_DATA;
	case CHUNKED_DATA_CR:
		return byte == '\r' ? CHUNKED_DATA_LF : CHUNKED_BAD;
	case CHUNKED_DATA_LF:
		return byte == '\n' ? CHUNKED_SIZE : CHUNKED_BAD;
	case CHUNKED_LAST_CR:
		return byte == '\r' ? CHUNKED_LAST_LF : CHUNKED_BAD;
	case CHUNKED_LAST_LF:
		return byte == '\n' ? CHUNKED_END : CHUNKED_BAD;
	case CHUNKED_DATA:
	case CHUNKED_END:
	case CHUNKED_BAD:
		break;
	}
	return CHUNKED_BAD;
}

size_t chunked_feed(struct chunked *chunked, const char *data, size_t size)
{
	size_t at = 0;

	while (at < size && chunked->state != CHUNKED_END && chunked->state != CHUNKED_BAD) {
		if (chunked->state == CHUNKED_DATA) {
			size_t some = size - at < chunked->left ? size - at : (size_t)chunked->left;

			at += some;
			chunked->left -= some;
			if (chunked->left == 0)
				chunked->state = CHUNKED_DATA_CR;
			continue;
		}
		chunked->state = step(chunked, data[at]);
		if (chunked->state != CHUNKED_BAD)
			at++;
	}
	return at;
}
