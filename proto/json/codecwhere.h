/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_PROTO_JSON_CODECWHERE_H
#define FSBOX_PROTO_JSON_CODECWHERE_H

/* What the two halves of the codec share; nobody else includes it. */

#include "common/buf.h"
#include "common/error.h"
#include "proto/json/codec.h"

/*
 * The way to a value, from the inside out, on the stack of those who walk it.
 *
 * @name  of a member, or of the whole; NULL for an element, and then @index counts
 */
struct where {
	const struct where *up;
	const char *name;
	size_t index;
};

/* Fill ERR with "params.paths.deny[3]: " and the formatted reason; returns -KIND. */
int where_refuse(const struct where *where, enum error_kind kind, struct error *err,
		 const char *format, ...) __attribute__((format(printf, 4, 5)));

/* Bytes of one element of a list of this field's kind. */
size_t field_element_size(const struct field *field);

#endif
