/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_PROTO_JSON_CODEC_H
#define FSBOX_PROTO_JSON_CODEC_H

/*
 * Structs and JSON objects, each way by the same table of fields. The table also initialises and
 * releases the struct and is what the schema and the manual are tested against.
 *
 *	static const struct field point_fields[] = {
 *		FIELD_NUMBER(struct point, x, "x", uint32_t, FIELD_U32, 0, 100, REQUIRED),
 *		FIELD_STRING(struct point, label, "label", FIELD_TEXT, 64, OPTIONAL),
 *	};
 *	const struct table point_table = TABLE("point", struct point, point_fields);
 *
 * The FIELD_ macros make the compiler check that a member has the C type its kind needs.
 *
 * Decoding refuses unknown, missing and over-long members by name, with the way to them:
 * "params.paths.deny[3].absent: ...". (Duplicates json_parse() has refused already.)
 */

#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "common/scope.h"
#include "proto/json/envlist.h"
#include "proto/json/json.h"
#include "proto/wire/fdset.h"

enum field_kind {
	FIELD_BOOL,       /* bool: true or false */
	FIELD_U32,        /* uint32_t, @min to @max */
	FIELD_I32,        /* int32_t */
	FIELD_U64,        /* uint64_t, at most INT64_MAX */
	FIELD_MILLI,      /* uint32_t thousandths: an integer, or a string like "1.5" */
	FIELD_ENUM,       /* 4 bytes: one of @names */
	FIELD_TEXT,       /* char *: UTF-8 */
	FIELD_BYTES,      /* char *: a string, or {"b64":"..."} */
	FIELD_PATH,       /* as FIELD_BYTES, absolute */
	FIELD_FD,         /* int: index of a descriptor */
	FIELD_FD_OR_NULL, /* int: the same, or the string "null" for -1 */
	FIELD_TRISTATE,   /* enum tristate: true or false, TRISTATE_UNSET when absent */
	FIELD_ENV,        /* struct env_list: an object, or an array of "NAME=VALUE" */
	FIELD_STRUCT,     /* struct by @table */
};

enum field_flags {
	OPTIONAL = 0,
	REQUIRED = 1 << 0,
	LIST = 1 << 1,    /* {items, count, capacity} of the kind; @max_count */
	POINTER = 1 << 2, /* FIELD_STRUCT: on the heap, NULL when absent */
};

/* A boolean that may be left to somebody else. */
enum tristate { TRISTATE_UNSET = 0, TRISTATE_FALSE, TRISTATE_TRUE };

/* Values first ... first + count - 1 have the names in order. */
struct enum_names {
	const char *const *names;
	size_t count;
	uint32_t first;
};

/*
 * @min, @max    numbers: the range; text, bytes, path: length in bytes
 * @absent       bool, numbers, enums: the value when the member is missing; not written then
 * @max_count    LIST: most elements; FIELD_ENV: most variables
 */
struct field {
	const char *name;
	enum field_kind kind;
	uint32_t flags;
	size_t offset;
	int64_t min;
	int64_t max;
	int64_t absent;
	size_t max_count;
	const struct enum_names *names;
	const struct table *table;
};

enum table_form {
	TABLE_OBJECT = 0,
	TABLE_OBJECT_OR_FIRST, /* the first field alone stands for an object with just that */
	TABLE_TUPLE,           /* an array with the first @tuple_count fields in order */
};

/*
 * @refused         names that are neither decoded nor encoded, though there may be fields for them (which
 *                  are initialised and released); ended by NULL; may be NULL
 * @refused_reason  what is said to who sends one
 */
struct table {
	const char *name;
	size_t size;
	const struct field *fields;
	size_t count;
	enum table_form form;
	size_t tuple_count;
	const char *const *refused;
	const char *refused_reason;
};

bool table_refuses(const struct table *table, const char *name);

/* All lists have this layout. */
struct any_list {
	void *items;
	size_t count;
	size_t capacity;
};

/* Offset of a member; does not compile without a warning when it is not a TYPE. */
#define CODEC_AT(owner, member, type) \
	(offsetof(owner, member) + 0 * sizeof(&((owner *)NULL)->member == (type *)NULL))
/* Offset of a member that must have the size of an enum. */
#define CODEC_AT_ENUM(owner, member) \
	(offsetof(owner, member) +   \
	 0 * sizeof(char[sizeof(((owner *)NULL)->member) == sizeof(uint32_t) ? 1 : -1]))
/* Offset of a pointer to TYPE. */
#define CODEC_AT_POINTER(owner, member, type) \
	(offsetof(owner, member) + 0 * sizeof(((owner *)NULL)->member == (type *)NULL))
/* Offset of a list whose elements are TYPE. */
#define CODEC_AT_LIST(owner, member, type) \
	(offsetof(owner, member) + 0 * sizeof(((owner *)NULL)->member.items == (type *)NULL))

#define FIELD_BOOLEAN(owner, member, json, absent_value, bits)                          \
	{                                                                               \
		.name = (json), .kind = FIELD_BOOL, .absent = (absent_value), .max = 1, \
		.flags = (bits), .offset = CODEC_AT(owner, member, bool)                \
	}
#define FIELD_NUMBER(owner, member, json, type, number_kind, low, high, bits)       \
	{                                                                           \
		.name = (json), .kind = (number_kind), .min = (low), .max = (high), \
		.flags = (bits), .offset = CODEC_AT(owner, member, type)            \
	}
#define FIELD_NAMED(owner, member, json, enum_table, absent_value, bits)                          \
	{                                                                                         \
		.name = (json), .kind = FIELD_ENUM, .names = &(enum_table),                       \
		.absent = (absent_value), .flags = (bits), .offset = CODEC_AT_ENUM(owner, member) \
	}
#define FIELD_STRING(owner, member, json, string_kind, low, high, bits)             \
	{                                                                           \
		.name = (json), .kind = (string_kind), .min = (low), .max = (high), \
		.flags = (bits), .offset = CODEC_AT(owner, member, char *)          \
	}
#define FIELD_DESCRIPTOR(owner, member, json, fd_kind, bits)                                 \
	{                                                                                    \
		.name = (json), .kind = (fd_kind), .absent = -1, .max = LIMIT_FRAME_FDS - 1, \
		.flags = (bits), .offset = CODEC_AT(owner, member, int)                      \
	}
#define FIELD_STRINGS(owner, member, json, string_kind, low, high, most, bits)      \
	{                                                                           \
		.name = (json), .kind = (string_kind), .min = (low), .max = (high), \
		.max_count = (most), .flags = (bits) | LIST,                        \
		.offset = CODEC_AT_LIST(owner, member, char *)                      \
	}
#define FIELD_NUMBERS(owner, member, json, low, high, most)                     \
	{                                                                       \
		.name = (json), .kind = FIELD_U32, .min = (low), .max = (high), \
		.max_count = (most), .flags = LIST,                             \
		.offset = CODEC_AT_LIST(owner, member, uint32_t)                \
	}
#define FIELD_VARIABLES(owner, member, json)                                                      \
	{                                                                                         \
		.name = (json), .kind = FIELD_ENV, .max = LIMIT_ARGS_BYTES,                       \
		.max_count = LIMIT_ARGS_COUNT, .offset = CODEC_AT(owner, member, struct env_list) \
	}
/* A struct that is part of OWNER. */
#define FIELD_PART(owner, member, json, part_table, type, bits)                                \
	{                                                                                      \
		.name = (json), .kind = FIELD_STRUCT, .table = &(part_table), .flags = (bits), \
		.offset = CODEC_AT(owner, member, type)                                        \
	}
/* An object on the wire whose members lie in OWNER itself. */
#define FIELD_GROUP(json, part_table, bits)                                                   \
	{                                                                                     \
		.name = (json), .kind = FIELD_STRUCT, .table = &(part_table), .flags = (bits) \
	}
#define FIELD_POINTER(owner, member, json, part_table, type)                                    \
	{                                                                                       \
		.name = (json), .kind = FIELD_STRUCT, .table = &(part_table), .flags = POINTER, \
		.offset = CODEC_AT_POINTER(owner, member, type)                                 \
	}
#define FIELD_PARTS(owner, member, json, part_table, type, most)                             \
	{                                                                                    \
		.name = (json), .kind = FIELD_STRUCT, .table = &(part_table), .flags = LIST, \
		.max_count = (most), .offset = CODEC_AT_LIST(owner, member, type)            \
	}

#define TABLE(table_name, type, field_array)                                         \
	{                                                                            \
		.name = (table_name), .size = sizeof(type), .fields = (field_array), \
		.count = ARRAY_SIZE(field_array)                                     \
	}

/* The absent state of a struct: zeroes, -1 for descriptors, the fields' absent values. */
void codec_init(const struct table *table, void *object);

/* Release everything and return to the absent state. NULL is fine. */
void codec_deinit(const struct table *table, void *object);

/*
 * Fill OBJECT from VALUE.
 *
 * @where   name of the whole in messages: "params"
 * @fds     descriptors named by index are claimed from it; NULL when there are none
 * @object  uninitialised; in the absent state after a failure
 *
 * Fails with ERR_INVALID, ERR_BAD_FRAME (a descriptor), ERR_NOMEM.
 */
int codec_decode(const struct table *table, const struct json_value *value, const char *where,
		 struct fdset *fds, void *object, struct error *err);

/*
 * Write OBJECT as one JSON value; descriptors are duplicated into FDS.
 *
 * Fails with ERR_INVALID (a value that the table does not allow), ERR_SYSTEM or ERR_BAD_FRAME (a
 * descriptor). Also check the writer at the end.
 */
int codec_encode(const struct table *table, const void *object, const char *where,
		 struct json_writer *writer, struct fdset *fds, struct error *err);

#endif
