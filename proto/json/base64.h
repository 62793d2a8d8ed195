/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_PROTO_JSON_BASE64_H
#define FSBOX_PROTO_JSON_BASE64_H

/* Base64 of RFC 4648 section 4: standard alphabet, padded, one spelling for each value. */

#include <stdbool.h>
#include <stddef.h>

#include "common/buf.h"

/* Append the encoding of SIZE bytes; 0 or -ERR_NOMEM, which also sets OUT's failed mark. */
int base64_encode(struct buf *out, const void *data, size_t size);

/*
 * The bytes that TEXT encodes, on the heap and followed by one NUL that does not count. NULL with
 * *ret_invalid true when TEXT is not canonical base64 (foreign characters, white space, wrong padding,
 * bits that are not used but set); NULL with *ret_invalid false when memory is short.
 */
char *base64_decode(const char *text, size_t size, size_t *ret_size, bool *ret_invalid);

#endif
