/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_DAEMON_EGRESS_CHUNKED_H
#define FSBOX_DAEMON_EGRESS_CHUNKED_H

/*
 * Where a chunked body ends. Nothing is decoded: the bytes go on as they are, as far as they are in the
 * one form that cannot be read another way: a size of up to 15 hexadecimal digits without extension,
 * CR LF, the bytes, CR LF; at the end a chunk of size 0 and an empty line, no trailer. Pure.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum chunked_state {
	CHUNKED_SIZE = 0, /* before or in a size */
	CHUNKED_SIZE_LF,
	CHUNKED_DATA,
	CHUNKED_DATA_CR,
	CHUNKED_DATA_LF,
	CHUNKED_LAST_CR, /* the empty line after the last chunk */
	CHUNKED_LAST_LF,
	CHUNKED_END,
	CHUNKED_BAD,
};

/* Zeroed is the start. */
struct chunked {
	enum chunked_state state;
	unsigned digits;
	uint64_t left;
};

/*
 * How many of SIZE bytes belong to the body. Fewer than SIZE only when it has ended (CHUNKED_END) or
 * what follows is not in the form (CHUNKED_BAD); then the body must not be completed.
 */
size_t chunked_feed(struct chunked *chunked, const char *data, size_t size);

#endif
