/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_DAEMON_BROKER_PACK_H
#define FSBOX_DAEMON_BROKER_PACK_H

/*
 * Numbers and strings one after the other in a buffer: what broker and resolver children say to each
 * other. Both are the same program on the same machine, so the layout is the machine's own.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/buf.h"
#include "common/error.h"

/* Appending; what does not fit marks the buffer as failed (buf_check()). */
void pack_u32(struct buf *buf, uint32_t value);
void pack_u64(struct buf *buf, uint64_t value);
void pack_bytes(struct buf *buf, const void *data, size_t size);
void pack_string(struct buf *buf, const char *text);

/*
 * Reading in the same order. After the first mistake every getter gives 0 or NULL and the error stays:
 * check once with unpack_end(), before anything that was read is used for more than reading on.
 */
struct unpack {
	const char *at;
	size_t left;
	bool bad;
};

#define UNPACK_INIT(data, size)              \
	{                                    \
		.at = (data), .left = (size) \
	}

uint32_t unpack_u32(struct unpack *unpack);
uint64_t unpack_u64(struct unpack *unpack);

/* Borrowed from the data and terminated. @ret_size without the NUL; may be NULL for strings. */
const char *unpack_bytes(struct unpack *unpack, size_t *ret_size);
const char *unpack_string(struct unpack *unpack); /* never NULL: "" after a mistake */

/* 0 when everything was well formed and nothing is left, else -ERR_BAD_FRAME. */
int unpack_end(const struct unpack *unpack, struct error *err);

#endif
