/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_PROTO_JSON_UTF8_H
#define FSBOX_PROTO_JSON_UTF8_H

/* UTF-8 as Unicode defines it: no overlong forms, no surrogates, nothing above U+10FFFF. */

#include <stdbool.h>
#include <stddef.h>

/*
 * How many bytes the character at the start of DATA has (1 to 4), or 0 when the first of its SIZE
 * bytes are no character. NUL is a character.
 */
size_t utf8_length(const char *data, size_t size);

bool utf8_valid(const char *data, size_t size);

#define PRINTABLE_BYTES 80

/*
 * TEXT fit for a message: bytes outside printable ASCII, quotes and backslashes become \xNN, and what
 * does not fit is cut with "...". Returns OUT.
 */
const char *text_printable(char out[PRINTABLE_BYTES], const char *text);

#endif
