/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/json/json.h"

/*
 * The reading half, and the only file that sees yajl.
 *
 * yajl has had no release since 2015. What is asked of it is the grammar alone: jsonscan.c has seen
 * every byte before, so that strings, numbers, comments and depth hold nothing odd, and all its memory
 * comes from us. It does not check its allocator for NULL; so ours does not return when it must fail,
 * but jumps back into json_parse(), which then throws the whole arena away.
 */

#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <yajl/yajl_parse.h>

#include "common/scope.h"
#include "proto/json/jsonscan.h"
#include "proto/json/utf8.h"

/* ---- memory -------------------------------------------------------------------------- */

#define ALIGNMENT 16
#define BLOCK_FIRST_BYTES 4096
#define BLOCK_MAX_BYTES (1u << 20)

struct block {
	struct block *next; /* arena.blocks */
	size_t size;
	size_t used;
	_Alignas(ALIGNMENT) char bytes[];
};

/* @budget  what all arenas of one document may still take from the heap */
struct arena {
	struct block *blocks;
	size_t *budget;
};

static struct block *arena_grow(struct arena *arena, size_t size)
{
	size_t wanted = arena->blocks ? arena->blocks->size * 2 : BLOCK_FIRST_BYTES;
	struct block *block = NULL;

	if (wanted > BLOCK_MAX_BYTES)
		wanted = BLOCK_MAX_BYTES;
	if (wanted < size)
		wanted = size;
	if (wanted + sizeof(*block) > *arena->budget) {
		wanted = size; /* near the end of the budget no byte is given away */
		if (wanted + sizeof(*block) > *arena->budget)
			return NULL;
	}
	block = malloc(sizeof(*block) + wanted);
	if (!block)
		return NULL;
	*arena->budget -= sizeof(*block) + wanted;
	*block = (struct block){ .next = arena->blocks, .size = wanted };
	arena->blocks = block;
	return block;
}

/* NULL when the budget or the memory is used up. */
static void *arena_get(struct arena *arena, size_t size)
{
	struct block *block = arena->blocks;
	size_t rounded = (size + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);
	void *memory = NULL;

	if (rounded < size)
		return NULL;
	if (!block || block->size - block->used < rounded)
		block = arena_grow(arena, rounded);
	if (!block)
		return NULL;
	memory = block->bytes + block->used;
	block->used += rounded;
	return memory;
}

static void arena_free(struct arena *arena)
{
	while (arena->blocks) {
		struct block *block = arena->blocks;

		arena->blocks = block->next;
		free(block);
	}
}

/* ---- the document -------------------------------------------------------------------- */

struct json_doc {
	struct arena arena;
	size_t budget;
	const struct json_value *root;
};

/* An array or object that is not complete. */
struct open_container {
	struct json_value *value;
	struct json_value *last; /* its last child so far */
};

/*
 * @scratch   yajl's memory and the stack; gone after the parse
 * @stack     limits->depth entries, @depth in use
 * @key       of the member whose value comes next
 * @refused   a callback stopped the parse and filled @err
 * @at_end    all of the text has been read
 * @jump      where failed allocations go
 */
struct parser {
	struct json_doc *doc;
	struct arena scratch;
	const char *text;
	size_t size;
	const struct json_limits *limits;
	struct open_container *stack;
	size_t depth;
	size_t elements;
	const char *key;
	yajl_handle yajl;
	bool refused;
	bool at_end;
	struct error *err;
	jmp_buf jump;
};

static void *parser_get(struct parser *parser, struct arena *arena, size_t size)
{
	void *memory = arena_get(arena, size);

	if (!memory)
		longjmp(parser->jump, 1);
	return memory;
}

/* Where yajl is. At the end of the text it counts from the start of a blank of its own. */
static size_t position(const struct parser *parser)
{
	size_t at = yajl_get_bytes_consumed(parser->yajl);

	return parser->at_end || at > parser->size ? parser->size : at;
}

/* Callbacks return 0 to stop yajl. */
#define REFUSE(parser, ...)                                                           \
	(json_error_at((parser)->text, position(parser), (parser)->err, __VA_ARGS__), \
	 (parser)->refused = true, 0)

static const char *text_copy(struct parser *parser, const unsigned char *text, size_t size)
{
	char *copy = parser_get(parser, &parser->doc->arena, size + 1);

	memcpy(copy, text, size);
	copy[size] = '\0';
	return copy;
}

/* A new value at the place where the parse is, or NULL after REFUSE. */
static struct json_value *value_add(struct parser *parser, enum json_type type)
{
	struct json_value *value = NULL;
	struct open_container *open = NULL;

	if (++parser->elements > parser->limits->elements) {
		(void)REFUSE(parser, "more than %zu values", parser->limits->elements);
		return NULL;
	}
	value = parser_get(parser, &parser->doc->arena, sizeof(*value));
	*value = (struct json_value){ .type = type, .key = parser->key };
	parser->key = NULL;
	if (parser->depth == 0) {
		parser->doc->root = value;
		return value;
	}

	open = &parser->stack[parser->depth - 1];
	if (open->last)
		open->last->next = value;
	else
		open->value->u.first = value;
	open->last = value;
	open->value->size++;
	return value;
}

/* ---- yajl's callbacks ---------------------------------------------------------------- */

static int on_null(void *arg)
{
	return value_add(arg, JSON_NULL) != NULL;
}

static int on_boolean(void *arg, int boolean)
{
	struct json_value *value = value_add(arg, JSON_BOOL);

	if (!value)
		return 0;
	value->u.boolean = boolean != 0;
	return 1;
}

static int on_number(void *arg, const char *digits, size_t size)
{
	struct parser *parser = arg;
	struct json_value *value = NULL;
	bool negative = digits[0] == '-';
	uint64_t limit = (uint64_t)INT64_MAX + (negative ? 1 : 0);
	uint64_t magnitude = 0;

	for (size_t i = negative ? 1 : 0; i < size; i++) {
		uint64_t digit = (uint64_t)(digits[i] - '0');

		if (magnitude > (limit - digit) / 10)
			return REFUSE(parser, "number does not fit into 64 bits");
		magnitude = magnitude * 10 + digit;
	}
	value = value_add(parser, JSON_INT);
	if (!value)
		return 0;
	value->u.number = negative ? (int64_t)(0 - magnitude) : (int64_t)magnitude;
	return 1;
}

static int on_string(void *arg, const unsigned char *text, size_t size)
{
	struct json_value *value = value_add(arg, JSON_STRING);

	if (!value)
		return 0;
	value->u.text = text_copy(arg, text, size);
	value->size = size;
	return 1;
}

static int on_key(void *arg, const unsigned char *text, size_t size)
{
	struct parser *parser = arg;

	parser->key = text_copy(parser, text, size);
	return 1;
}

static int container_begin(struct parser *parser, enum json_type type)
{
	struct json_value *value = value_add(parser, type);

	if (!value)
		return 0;
	/* json_scan() saw no deeper nesting. */
	parser->stack[parser->depth++] = (struct open_container){ .value = value };
	return 1;
}

static int on_array(void *arg)
{
	return container_begin(arg, JSON_ARRAY);
}

static int on_object(void *arg)
{
	return container_begin(arg, JSON_OBJECT);
}

static int on_array_end(void *arg)
{
	struct parser *parser = arg;

	parser->depth--;
	return 1;
}

static int key_compare(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* A key of OBJECT that it has twice, or NULL. Sorted, so that many members cost no square. */
static const char *duplicate_key(struct parser *parser, const struct json_value *object)
{
	const char **keys = NULL;
	size_t count = 0;

	if (object->size < 2)
		return NULL;
	keys = parser_get(parser, &parser->scratch, object->size * sizeof(*keys));
	for (const struct json_value *member = object->u.first; member; member = member->next)
		keys[count++] = member->key;
	qsort(keys, count, sizeof(*keys), key_compare);
	for (size_t i = 1; i < count; i++)
		if (strcmp(keys[i - 1], keys[i]) == 0)
			return keys[i];
	return NULL;
}

static int on_object_end(void *arg)
{
	struct parser *parser = arg;
	const char *twice = duplicate_key(parser, parser->stack[--parser->depth].value);
	char shown[PRINTABLE_BYTES];

	if (twice)
		return REFUSE(parser, "duplicate key '%s'", text_printable(shown, twice));
	return 1;
}

static const yajl_callbacks callbacks = {
	.yajl_null = on_null,
	.yajl_boolean = on_boolean,
	.yajl_number = on_number,
	.yajl_string = on_string,
	.yajl_start_map = on_object,
	.yajl_map_key = on_key,
	.yajl_end_map = on_object_end,
	.yajl_start_array = on_array,
	.yajl_end_array = on_array_end,
};

/* ---- yajl's memory ------------------------------------------------------------------- */

/* The size stands before each piece, since yajl does not tell it when it grows one. */
static void *scratch_malloc(void *arg, size_t size)
{
	struct parser *parser = arg;
	char *memory = NULL;

	if (size > parser->limits->memory_bytes)
		longjmp(parser->jump, 1);
	memory = parser_get(parser, &parser->scratch, size + ALIGNMENT);
	memcpy(memory, &size, sizeof(size));
	return memory + ALIGNMENT;
}

static void *scratch_realloc(void *arg, void *old, size_t size)
{
	size_t old_size = 0;
	void *memory = scratch_malloc(arg, size);

	if (old) {
		memcpy(&old_size, (char *)old - ALIGNMENT, sizeof(old_size));
		memcpy(memory, old, old_size < size ? old_size : size);
	}
	return memory;
}

static void scratch_free(void *arg, void *memory)
{
	(void)arg;
	(void)memory; /* all at once, by json_parse() */
}

/* ---- parsing ------------------------------------------------------------------------- */

/* What yajl says about a syntax error: one of its own texts, without the line end. */
static int syntax_error(struct parser *parser, struct error *err)
{
	unsigned char *why =
		yajl_get_error(parser->yajl, 0, (const unsigned char *)parser->text, parser->size);

	return json_error_at(parser->text, position(parser), err, "%.*s",
			     (int)strcspn((char *)why, "\n"), (char *)why);
}

/* Everything that allocates: a failure jumps to parser->jump. */
static int run(struct parser *parser, struct error *err)
{
	yajl_alloc_funcs memory = { .malloc = scratch_malloc,
				    .realloc = scratch_realloc,
				    .free = scratch_free,
				    .ctx = parser };
	yajl_status status = yajl_status_error;

	parser->stack = parser_get(parser, &parser->scratch,
				   (parser->limits->depth + 1) * sizeof(*parser->stack));
	parser->yajl = yajl_alloc(&callbacks, &memory, parser);
	status = yajl_parse(parser->yajl, (const unsigned char *)parser->text, parser->size);
	if (status == yajl_status_ok) {
		parser->at_end = true;
		status = yajl_complete_parse(parser->yajl);
	}

	if (parser->refused)
		return -ERR_BAD_JSON; /* err is filled */
	if (status != yajl_status_ok)
		return syntax_error(parser, err);
	return 0;
}

int json_parse(struct json_doc **ret_doc, const char *text, size_t size,
	       const struct json_limits *limits, struct error *err)
{
	static const struct json_limits protocol_limits = JSON_LIMITS;
	struct parser parser = {
		.text = text, .size = size, .limits = limits ? limits : &protocol_limits, .err = err
	};
	int r = json_scan(text, size, parser.limits, err);

	if (r < 0)
		return r;
	parser.doc = calloc(1, sizeof(*parser.doc));
	if (!parser.doc)
		return error_set(err, ERR_NOMEM, 0, "parse JSON");
	parser.doc->budget = parser.limits->memory_bytes;
	parser.doc->arena.budget = &parser.doc->budget;
	parser.scratch.budget = &parser.doc->budget;

	if (setjmp(parser.jump) == 0)
		r = run(&parser, err);
	else
		r = error_set(err, ERR_NOMEM, 0, "JSON that needs more than %zu bytes of memory",
			      parser.limits->memory_bytes);

	arena_free(&parser.scratch);
	if (r < 0) {
		json_doc_free(parser.doc);
		return r;
	}
	*ret_doc = parser.doc;
	return 0;
}

struct json_doc *json_doc_free(struct json_doc *doc)
{
	if (!doc)
		return NULL;
	arena_free(&doc->arena);
	free(doc);
	return NULL;
}

/* ---- looking ------------------------------------------------------------------------- */

const struct json_value *json_root(const struct json_doc *doc)
{
	return doc->root;
}

const struct json_value *json_get(const struct json_value *object, const char *key)
{
	if (!object || object->type != JSON_OBJECT)
		return NULL;
	for (const struct json_value *member = object->u.first; member; member = member->next)
		if (strcmp(member->key, key) == 0)
			return member;
	return NULL;
}

const char *json_type_name(enum json_type type)
{
	static const char *const names[] = { "null",     "a boolean", "an integer",
					     "a string", "an array",  "an object" };

	return names[type];
}
