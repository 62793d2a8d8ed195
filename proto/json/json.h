/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_PROTO_JSON_JSON_H
#define FSBOX_PROTO_JSON_JSON_H

/*
 * Bounded JSON: a strict reader that makes a read-only tree, and a writer.
 *
 * Stricter than RFC 8259 where two readers might differ or a C string would: no duplicate keys, no
 * bytes after the value, valid UTF-8 only, no lone surrogates, no U+0000, no numbers but integers that
 * fit into 64 bits with sign, no comments. Depth, elements, string length and memory have ceilings.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/buf.h"
#include "common/error.h"
#include "common/limits.h"

/* ---- reading ------------------------------------------------------------------------- */

enum json_type { JSON_NULL = 0, JSON_BOOL, JSON_INT, JSON_STRING, JSON_ARRAY, JSON_OBJECT };

/*
 * One value; all memory is the document's.
 *
 * @key    of an object's member: terminated, UTF-8, without NUL; else NULL
 * @next   the next element or member of the same array or object
 * @size   of JSON_STRING, in bytes; of JSON_ARRAY and JSON_OBJECT, the number of children
 * @text   JSON_STRING: terminated, UTF-8, without NUL
 * @first  JSON_ARRAY, JSON_OBJECT: the first child, or NULL
 */
struct json_value {
	enum json_type type;
	const char *key;
	const struct json_value *next;
	size_t size;
	union {
		bool boolean;
		int64_t number;
		const char *text;
		const struct json_value *first;
	} u;
};

/* Ceilings of one document; JSON_LIMITS for those of the protocol. */
struct json_limits {
	size_t text_bytes;
	size_t depth;        /* arrays and objects inside each other; the outermost is 1 */
	size_t elements;     /* values of any type, keys not counted */
	size_t string_bytes; /* one string or key, escapes resolved */
	size_t memory_bytes; /* tree and parser */
};

#define JSON_LIMITS                                                                       \
	{                                                                                 \
		.text_bytes = LIMIT_PARAMS_BYTES, .depth = LIMIT_JSON_DEPTH,              \
		.elements = LIMIT_JSON_ELEMENTS, .string_bytes = LIMIT_JSON_STRING_BYTES, \
		.memory_bytes = LIMIT_JSON_MEMORY_BYTES,                                  \
	}

struct json_doc;

/*
 * Parse TEXT, which is not needed afterwards and need not be terminated.
 *
 * @limits   may be NULL: JSON_LIMITS
 * @ret_doc  the caller's to free
 *
 * Fails with ERR_BAD_JSON ("line 3, column 7: ...", also for every ceiling but the last) or ERR_NOMEM
 * (memory, or its ceiling).
 */
int json_parse(struct json_doc **ret_doc, const char *text, size_t size,
	       const struct json_limits *limits, struct error *err);

struct json_doc *json_doc_free(struct json_doc *doc); /* returns NULL */

const struct json_value *json_root(const struct json_doc *doc);

/* The member of OBJECT called KEY, or NULL; NULL too when OBJECT is NULL or no object. */
const struct json_value *json_get(const struct json_value *object, const char *key);

const char *json_type_name(enum json_type type); /* "a string", "an object" ... */

/* ---- writing ------------------------------------------------------------------------- */

/*
 * Appends to a buffer. Errors are kept: check once at the end with json_writer_check(). Keys and
 * values must alternate and begins match ends as in the grammar; that is asserted.
 */
struct json_writer {
	struct buf *out;
	size_t depth;
	uint64_t has_items; /* bit n: the container at depth n + 1 has an item */
	bool after_key;
	bool not_utf8;
	bool out_of_range;
};

void json_writer_init(struct json_writer *writer, struct buf *out);

void json_write_object(struct json_writer *writer);
void json_write_object_end(struct json_writer *writer);
void json_write_array(struct json_writer *writer);
void json_write_array_end(struct json_writer *writer);
void json_write_key(struct json_writer *writer, const char *key); /* UTF-8 */
void json_write_null(struct json_writer *writer);
void json_write_bool(struct json_writer *writer, bool value);
void json_write_int(struct json_writer *writer, int64_t value);
void json_write_uint(struct json_writer *writer, uint64_t value);   /* at most INT64_MAX */
void json_write_text(struct json_writer *writer, const char *text); /* UTF-8 */
void json_write_text_sized(struct json_writer *writer, const char *text, size_t size);

/* A string, or {"b64":"..."} when TEXT is not UTF-8. */
void json_write_bytes(struct json_writer *writer, const char *text);

/* A value that is JSON already. */
void json_write_raw(struct json_writer *writer, const char *json, size_t size);

/* Fails with ERR_NOMEM (the buffer's ceiling) or ERR_INVALID (not UTF-8, number too large). */
int json_writer_check(const struct json_writer *writer, struct error *err);

#endif
