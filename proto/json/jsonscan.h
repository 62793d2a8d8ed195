/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_PROTO_JSON_JSONSCAN_H
#define FSBOX_PROTO_JSON_JSONSCAN_H

/*
 * What the JSON grammar of the library behind json.c lets through and ours does not, checked on the
 * raw bytes before the library sees them. The grammar itself is not checked here.
 */

#include <stddef.h>

#include "common/error.h"
#include "proto/json/json.h"

/*
 * Refuses bytes that are not UTF-8, control characters and unknown escapes in strings, U+0000, lone
 * surrogates, comments, numbers that are not integers, and what passes the ceilings on bytes, depth
 * and string length. Fails with ERR_BAD_JSON, saying where.
 */
int json_scan(const char *text, size_t size, const struct json_limits *limits, struct error *err);

/* ERR_BAD_JSON with line and column of the byte at AT in front. */
int json_error_at(const char *text, size_t at, struct error *err, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

#endif
