/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/json/codec.h"

#include "tests/test.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/policy.h"
#include "tests/fdcount.h"

/* ---- a struct with a field of every kind --------------------------------------------- */

enum color { COLOR_UNSET = 0, COLOR_RED, COLOR_BLUE };

struct leaf {
	char *name;
	uint32_t size;
	int fd;
};

struct leaf_list {
	struct leaf *items;
	size_t count;
	size_t capacity;
};

struct number_list {
	uint32_t *items;
	size_t count;
	size_t capacity;
};

struct thing {
	bool flag;
	bool on_unless_said;
	uint32_t small;
	int32_t signed_number;
	uint64_t big;
	uint32_t cpus;
	enum color color;
	char *text;
	char *bytes;
	char *path;
	int fd;
	int fd_or_null;
	struct env_list env;
	enum tristate maybe;
	struct string_list words;
	struct number_list numbers;
	struct leaf part;
	struct leaf *pointer;
	struct leaf_list leaves;
	struct leaf_list tuples;
	uint32_t grouped;
};

static const char *const color_names[] = { "red", "blue" };
static const struct enum_names colors = { color_names, 2, COLOR_RED };

static const struct field leaf_fields[] = {
	FIELD_STRING(struct leaf, name, "name", FIELD_BYTES, 1, 10, REQUIRED),
	FIELD_NUMBER(struct leaf, size, "size", uint32_t, FIELD_U32, 0, 9, OPTIONAL),
	FIELD_DESCRIPTOR(struct leaf, fd, "fd", FIELD_FD, OPTIONAL),
};
static const struct table leaf_table = {
	.name = "leaf",
	.size = sizeof(struct leaf),
	.fields = leaf_fields,
	.count = ARRAY_SIZE(leaf_fields),
	.form = TABLE_OBJECT_OR_FIRST,
};
static const struct table tuple_table = {
	.name = "tuple",
	.size = sizeof(struct leaf),
	.fields = leaf_fields,
	.count = ARRAY_SIZE(leaf_fields),
	.form = TABLE_TUPLE,
	.tuple_count = 2,
};

static const struct field group_fields[] = {
	FIELD_NUMBER(struct thing, grouped, "grouped", uint32_t, FIELD_U32, 0, 9, REQUIRED),
};
static const struct table group_table = TABLE("group", struct thing, group_fields);

static const struct field thing_fields[] = {
	FIELD_BOOLEAN(struct thing, flag, "flag", 0, OPTIONAL),
	FIELD_BOOLEAN(struct thing, on_unless_said, "onUnlessSaid", 1, OPTIONAL),
	FIELD_NUMBER(struct thing, small, "small", uint32_t, FIELD_U32, 1, 100, REQUIRED),
	FIELD_NUMBER(struct thing, signed_number, "signed", int32_t, FIELD_I32, -5, 5, OPTIONAL),
	FIELD_NUMBER(struct thing, big, "big", uint64_t, FIELD_U64, 0, INT64_MAX, OPTIONAL),
	FIELD_NUMBER(struct thing, cpus, "cpus", uint32_t, FIELD_MILLI, 1, 64000, OPTIONAL),
	FIELD_NAMED(struct thing, color, "color", colors, COLOR_UNSET, OPTIONAL),
	FIELD_STRING(struct thing, text, "text", FIELD_TEXT, 2, 4, OPTIONAL),
	FIELD_STRING(struct thing, bytes, "bytes", FIELD_BYTES, 0, 4, OPTIONAL),
	FIELD_STRING(struct thing, path, "path", FIELD_PATH, 1, 8, OPTIONAL),
	FIELD_DESCRIPTOR(struct thing, fd, "fd", FIELD_FD, OPTIONAL),
	FIELD_DESCRIPTOR(struct thing, fd_or_null, "fdOrNull", FIELD_FD_OR_NULL, OPTIONAL),
	FIELD_VARIABLES(struct thing, env, "env"),
	{
		.name = "maybe",
		.kind = FIELD_TRISTATE,
		.offset = CODEC_AT_ENUM(struct thing, maybe),
	},
	FIELD_STRINGS(struct thing, words, "words", FIELD_BYTES, 1, 5, 3, OPTIONAL),
	FIELD_NUMBERS(struct thing, numbers, "numbers", 1, 9, 2),
	FIELD_PART(struct thing, part, "part", leaf_table, struct leaf, OPTIONAL),
	FIELD_POINTER(struct thing, pointer, "pointer", leaf_table, struct leaf),
	FIELD_PARTS(struct thing, leaves, "leaves", leaf_table, struct leaf, 3),
	FIELD_PARTS(struct thing, tuples, "tuples", tuple_table, struct leaf, 2),
	FIELD_GROUP("group", group_table, OPTIONAL),
};
static const char *const refused[] = { "frozen", NULL };
static const struct table thing_table = {
	.name = "thing",
	.size = sizeof(struct thing),
	.fields = thing_fields,
	.count = ARRAY_SIZE(thing_fields),
	.refused = refused,
	.refused_reason = "is not yours to say",
};

static int decode(const char *text, struct fdset *fds, struct thing *ret_thing, struct error *err)
{
	struct json_doc *doc = NULL;
	int r = json_parse(&doc, text, strlen(text), NULL, err);

	if (r < 0)
		fail_msg("%s: %s", text, err->message);
	r = codec_decode(&thing_table, json_root(doc), "params", fds, ret_thing, err);
	json_doc_free(doc);
	return r;
}

static int encode(const struct thing *thing, struct fdset *fds, struct buf *out, struct error *err)
{
	struct json_writer writer;
	int r = 0;

	json_writer_init(&writer, out);
	r = codec_encode(&thing_table, thing, "params", &writer, fds, err);
	return r < 0 ? r : json_writer_check(&writer, err);
}

/* ---- both ways ----------------------------------------------------------------------- */

static void everything_comes_back(void **state)
{
	static const char text[] =
		"{\"flag\":true,\"onUnlessSaid\":false,\"small\":1,\"signed\":-5,"
		"\"big\":9223372036854775807,\"cpus\":\"1.25\",\"color\":\"blue\",\"text\":\"ab\","
		"\"bytes\":{\"b64\":\"/w==\"},\"path\":\"/a\",\"fd\":0,\"fdOrNull\":1,"
		"\"env\":{\"A\":\"b\",\"C\":{\"b64\":\"/w==\"}},\"maybe\":false,"
		"\"words\":[\"x\",{\"b64\":\"gA==\"}],\"numbers\":[1,9],"
		"\"part\":\"p\",\"pointer\":{\"name\":\"q\",\"size\":3,\"fd\":2},"
		"\"leaves\":[\"l\",{\"b64\":\"/w==\"},{\"name\":\"m\",\"size\":1}],"
		"\"tuples\":[[\"t\",0],[\"u\",9]],\"group\":{\"grouped\":4}}";
	struct fdset fds = FDSET_INIT;
	struct buf out = BUF_INIT(4096);
	struct error err = ERROR_INIT;
	size_t before = fd_count();
	struct thing thing;

	(void)state;
	for (int i = 0; i < 3; i++)
		assert_int_equal(fdset_add_dup(&fds, 0, NULL), 0);
	if (decode(text, &fds, &thing, &err) < 0)
		fail_msg("%s", err.message);
	assert_int_equal(fdset_unclaimed(&fds), 0);
	fdset_deinit(&fds);
	assert_int_equal(fd_count(), before + 3);
	assert_int_equal(thing.cpus, 1250);
	assert_string_equal(thing.bytes, "\xff");
	assert_string_equal(env_list_get(&thing.env, "C"), "\xff");
	assert_int_equal(thing.maybe, TRISTATE_FALSE);
	assert_int_equal(thing.leaves.items[2].size, 1);
	assert_string_equal(thing.leaves.items[1].name, "\xff");
	assert_int_equal(thing.tuples.items[1].size, 9);

	assert_int_equal(encode(&thing, &fds, &out, &err), 0);
	assert_string_equal(buf_text(&out), text);
	assert_int_equal(fds.count, 3);
	codec_deinit(&thing_table, &thing);
	codec_deinit(&thing_table, &thing);
	codec_deinit(&thing_table, NULL);
	fdset_deinit(&fds);
	buf_deinit(&out);
	assert_int_equal(fd_count(), before);
}

static void absent_members_have_their_values(void **state)
{
	struct buf out = BUF_INIT(4096);
	struct error err = ERROR_INIT;
	struct thing thing;

	(void)state;
	assert_int_equal(decode("{\"small\":7}", NULL, &thing, &err), 0);
	assert_false(thing.flag);
	assert_true(thing.on_unless_said);
	assert_int_equal(thing.fd, -1);
	assert_int_equal(thing.fd_or_null, -1);
	assert_int_equal(thing.part.fd, -1);
	assert_null(thing.pointer);
	assert_null(thing.text);
	assert_int_equal(thing.words.count, 0);
	assert_int_equal(thing.maybe, TRISTATE_UNSET);
	assert_int_equal(encode(&thing, NULL, &out, &err), 0);
	assert_string_equal(buf_text(&out), "{\"small\":7}");
	codec_deinit(&thing_table, &thing);

	/* What says the absent value, and empty lists, is the same. */
	assert_int_equal(decode("{\"small\":7,\"flag\":false,\"onUnlessSaid\":true,\"words\":[],"
				"\"fdOrNull\":\"null\",\"env\":{},\"signed\":0}",
				NULL, &thing, &err),
			 0);
	buf_clear(&out);
	assert_int_equal(encode(&thing, NULL, &out, &err), 0);
	assert_string_equal(buf_text(&out), "{\"small\":7}");
	codec_deinit(&thing_table, &thing);
	buf_deinit(&out);
}

static void milli_forms(void **state)
{
	static const struct {
		const char *json;
		uint32_t milli;
		const char *back;
	} cases[] = {
		{ "2", 2000, "2" },
		{ "\"2\"", 2000, "2" },
		{ "\"1.5\"", 1500, "\"1.5\"" },
		{ "\"0.001\"", 1, "\"0.001\"" },
		{ "\"1.50\"", 1500, "\"1.5\"" },
		{ "\"64.000\"", 64000, "64" },
		{ "\"00001\"", 1000, "1" },
	};
	static const char *const bad[] = { "0",
					   "-1",
					   "65",
					   "\"64.001\"",
					   "\"1.\"",
					   "\".5\"",
					   "\"1.2345\"",
					   "\"1,5\"",
					   "\"\"",
					   "\"-1\"",
					   "\" 1\"",
					   "\"1.5x\"",
					   "\"1e3\"",
					   "\"9999999999\"",
					   "true",
					   "9223372036854775807",
					   "-9223372036854775808" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct buf out = BUF_INIT(4096);
		struct error err = ERROR_INIT;
		struct thing thing;
		char text[100];

		(void)snprintf(text, sizeof(text), "{\"small\":1,\"cpus\":%s}", cases[i].json);
		assert_int_equal(decode(text, NULL, &thing, &err), 0);
		assert_int_equal(thing.cpus, cases[i].milli);
		assert_int_equal(encode(&thing, NULL, &out, &err), 0);
		(void)snprintf(text, sizeof(text), "{\"small\":1,\"cpus\":%s}", cases[i].back);
		assert_string_equal(buf_text(&out), text);
		codec_deinit(&thing_table, &thing);
		buf_deinit(&out);
	}
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct error err = ERROR_INIT;
		struct thing thing;
		char text[100];

		(void)snprintf(text, sizeof(text), "{\"small\":1,\"cpus\":%s}", bad[i]);
		assert_int_equal(decode(text, NULL, &thing, &err), -ERR_INVALID);
		assert_non_null(strstr(err.message, "params.cpus: "));
	}
}

static void environment_forms(void **state)
{
	struct buf out = BUF_INIT(4096);
	struct error err = ERROR_INIT;
	struct thing thing;

	(void)state;
	assert_int_equal(decode("{\"small\":1,\"env\":[\"A=b\",{\"b64\":\"/z14\"},\"B=c=d\"]}",
				NULL, &thing, &err),
			 0);
	assert_string_equal(env_list_get(&thing.env, "\xff"), "x");
	assert_string_equal(env_list_get(&thing.env, "B"), "c=d");
	assert_int_equal(encode(&thing, NULL, &out, &err), 0);
	assert_string_equal(buf_text(&out),
			    "{\"small\":1,\"env\":[\"A=b\",\"B=c=d\",{\"b64\":\"/z14\"}]}");
	codec_deinit(&thing_table, &thing);

	/* A list as environ(7) allows it: the last of a name goes out. */
	codec_init(&thing_table, &thing);
	thing.small = 1;
	assert_int_equal(env_list_add(&thing.env, "A", "1", NULL), 0);
	assert_int_equal(env_list_add(&thing.env, "A", "2", NULL), 0);
	buf_clear(&out);
	assert_int_equal(encode(&thing, NULL, &out, &err), 0);
	assert_string_equal(buf_text(&out), "{\"small\":1,\"env\":{\"A\":\"2\"}}");
	codec_deinit(&thing_table, &thing);
	buf_deinit(&out);
}

/* ---- refusals ------------------------------------------------------------------------ */

static const struct {
	const char *text;
	const char *message;
} refusals[] = {
	{ "[]", "params: must be an object, is an array" },
	{ "{}", "params.small: is missing" },
	{ "{\"small\":1,\"x\":1}", "params.x: unknown key" },
	{ "{\"small\":1,\"Flag\":true}", "params.Flag: unknown key" },
	{ "{\"small\":1,\"a\\nb\":1}", "params.a\\x0ab: unknown key" },
	{ "{\"frozen\":1}", "params.frozen: is not yours to say" },
	{ "{\"small\":0}", "params.small: is 0, must be in 1..100" },
	{ "{\"small\":101}", "params.small: is 101, must be in 1..100" },
	{ "{\"small\":-1}", "params.small: is -1, must be in 1..100" },
	{ "{\"small\":4294967297}", "params.small: is 4294967297, must be in 1..100" },
	{ "{\"small\":\"1\"}", "params.small: must be an integer, is a string" },
	{ "{\"small\":null}", "params.small: must be an integer, is null" },
	{ "{\"flag\":1}", "params.flag: must be true or false, is an integer" },
	{ "{\"maybe\":1}", "params.maybe: must be true or false, is an integer" },
	{ "{\"signed\":-6}", "params.signed: is -6, must be in -5..5" },
	{ "{\"big\":-1}", "params.big: is -1, must be in 0..9223372036854775807" },
	{ "{\"color\":\"green\"}", "params.color: is 'green', must be one of: red blue" },
	{ "{\"color\":1}", "params.color: must be a string, is an integer" },
	{ "{\"text\":\"a\"}", "params.text: is too short" },
	{ "{\"text\":\"abcde\"}", "params.text: has 5 bytes, at most 4" },
	{ "{\"text\":\"\xc3\xa9\xc3\xa9"
	  "a\"}",
	  "params.text: has 5 bytes, at most 4" },
	{ "{\"text\":{\"b64\":\"YWJj\"}}", "params.text: must be a string, is an object" },
	{ "{\"bytes\":{\"b64\":\"YQBi\"}}", "params.bytes.b64: holds a NUL byte" },
	{ "{\"bytes\":{\"b64\":\"Zh==\"}}", "params.bytes.b64: is not canonical base64" },
	{ "{\"bytes\":{\"b64\":1}}", "params.bytes.b64: must be a string, is an integer" },
	{ "{\"bytes\":{\"b64\":\"YWJjZGU=\"}}", "params.bytes: has 5 bytes, at most 4" },
	{ "{\"bytes\":{\"b64\":\"YQ==\",\"x\":1}}",
	  "params.bytes: must be a string or {\"b64\"}, is an object" },
	{ "{\"bytes\":{}}", "params.bytes: must be a string or {\"b64\"}, is an object" },
	{ "{\"path\":\"a\"}", "params.path: must be an absolute path" },
	{ "{\"path\":\"\"}", "params.path: is empty" },
	{ "{\"path\":\"/12345678\"}", "params.path: has 9 bytes, at most 8" },
	{ "{\"env\":1}", "params.env: must be an object or an array of NAME=VALUE, is an integer" },
	{ "{\"env\":{\"\":\"x\"}}", "params.env.: a variable needs a name, and that no '='" },
	{ "{\"env\":{\"a=b\":\"x\"}}", "params.env.a=b: a variable needs a name, and that no '='" },
	{ "{\"env\":{\"a\":1}}", "params.env.a: must be a string or {\"b64\"}, is an integer" },
	{ "{\"env\":[\"a\"]}", "params.env[0]: a variable must be NAME=VALUE" },
	{ "{\"env\":[\"a=b\",1]}", "params.env[1]: must be a string or {\"b64\"}, is an integer" },
	{ "{\"env\":[\"a=b\",\"c=\",\"a=d\"]}", "params.env: has 'a' twice" },
	{ "{\"words\":\"x\"}", "params.words: must be an array, is a string" },
	{ "{\"words\":[\"a\",\"b\",\"c\",\"d\"]}", "params.words: has 4 elements, at most 3" },
	{ "{\"words\":[\"a\",\"\"]}", "params.words[1]: is empty" },
	{ "{\"words\":[\"a\",\"b\",\"sixsix\"]}", "params.words[2]: has 6 bytes, at most 5" },
	{ "{\"numbers\":[1,10]}", "params.numbers[1]: is 10, must be in 1..9" },
	{ "{\"part\":{}}", "params.part.name: is missing" },
	{ "{\"part\":7}", "params.part: must be an object, is an integer" },
	{ "{\"part\":\"\"}", "params.part: is empty" },
	{ "{\"pointer\":{\"name\":\"a\",\"size\":10}}",
	  "params.pointer.size: is 10, must be in 0..9" },
	{ "{\"leaves\":[\"a\",\"b\",{\"name\":\"c\",\"nam\":1}]}",
	  "params.leaves[2].nam: unknown key" },
	{ "{\"tuples\":[[\"a\",1],[\"b\"]]}", "params.tuples[1]: has 1 elements, must have 2" },
	{ "{\"tuples\":[[\"a\",1,2]]}", "params.tuples[0]: has 3 elements, must have 2" },
	{ "{\"tuples\":[\"a\"]}", "params.tuples[0]: must be an array, is a string" },
	{ "{\"tuples\":[[\"a\",10]]}", "params.tuples[0][1]: is 10, must be in 0..9" },
	{ "{\"group\":{}}", "params.group.grouped: is missing" },
	{ "{\"fd\":\"null\"}", "params.fd: must be the index of a descriptor, is a string" },
	{ "{\"fdOrNull\":\"nul\"}",
	  "params.fdOrNull: must be the index of a descriptor or \"null\", is a string" },
	{ "{\"fd\":16}", "params.fd: is 16, must be in 0..15" },
	{ "{\"fd\":-1}", "params.fd: is -1, must be in 0..15" },
};

static void refusals_name_the_place(void **state)
{
	size_t before = fd_count();

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(refusals); i++) {
		struct fdset fds = FDSET_INIT;
		struct error err = ERROR_INIT;
		struct thing thing;

		assert_int_equal(fdset_add_dup(&fds, 0, NULL), 0);
		assert_int_equal(decode(refusals[i].text, &fds, &thing, &err), -ERR_INVALID);
		assert_string_equal(err.message, refusals[i].message);
		/* The absent state again: nothing to release. */
		assert_null(thing.words.items);
		fdset_deinit(&fds);
	}
	assert_int_equal(fd_count(), before);
}

static void descriptors_once_and_existing(void **state)
{
	static const struct {
		const char *text;
		const char *message;
	} cases[] = {
		{ "{\"small\":1,\"fd\":1,\"fdOrNull\":1}",
		  "params.fdOrNull: descriptor index 1 is used twice" },
		{ "{\"small\":1,\"fd\":0,\"leaves\":[{\"name\":\"a\",\"fd\":1},{\"name\":\"b\","
		  "\"fd\":2}]}",
		  "params.leaves[1].fd: descriptor index 2, but 2 came with the frame" },
	};
	size_t before = fd_count();

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct fdset fds = FDSET_INIT;
		struct error err = ERROR_INIT;
		struct thing thing;

		assert_int_equal(fdset_add_dup(&fds, 0, NULL), 0);
		assert_int_equal(fdset_add_dup(&fds, 0, NULL), 0);
		assert_int_equal(decode(cases[i].text, &fds, &thing, &err), -ERR_BAD_FRAME);
		assert_string_equal(err.message, cases[i].message);
		assert_int_equal(decode("{\"fd\":0}", NULL, &thing, &err), -ERR_BAD_FRAME);
		fdset_deinit(&fds);
	}
	assert_int_equal(fd_count(), before);
}

/* A struct that C allows and the table does not. */
#define NOT_ENCODED(change, text)                                          \
	do {                                                               \
		struct buf out = BUF_INIT(4096);                           \
		struct error err = ERROR_INIT;                             \
		struct thing thing;                                        \
                                                                           \
		codec_init(&thing_table, &thing);                          \
		thing.small = 1;                                           \
		change;                                                    \
		assert_int_not_equal(encode(&thing, NULL, &out, &err), 0); \
		assert_string_equal(err.message, text);                    \
		codec_deinit(&thing_table, &thing);                        \
		buf_deinit(&out);                                          \
	} while (0)

static void encoding_what_cannot_be(void **state)
{
	(void)state;
	NOT_ENCODED(thing.small = 0, "params.small: must be in 1..100");
	NOT_ENCODED(thing.signed_number = 6, "params.signed: must be in -5..5");
	NOT_ENCODED(thing.big = UINT64_MAX, "params.big: must be in 0..9223372036854775807");
	NOT_ENCODED(thing.cpus = 64001, "params.cpus: must be in 1..64000");
	NOT_ENCODED(thing.color = (enum color)3, "params.color: has no name for 3");
	NOT_ENCODED(thing.text = strdup("a"), "params.text: has 1 bytes, not 2..4");
	NOT_ENCODED(thing.text = strdup("a\xff"), "params.text: is not UTF-8");
	NOT_ENCODED(thing.path = strdup("a"), "params.path: must be absolute");
	NOT_ENCODED(thing.fd = open("/dev/null", O_RDONLY | O_CLOEXEC),
		    "params.fd: no descriptor can ride along");
	NOT_ENCODED(thing.part.size = 1, "params.part.name: is missing");
	NOT_ENCODED(
		{
			thing.pointer = malloc(sizeof(*thing.pointer));
			assert_non_null(thing.pointer);
			codec_init(&leaf_table, thing.pointer);
		},
		"params.pointer: is missing");
	NOT_ENCODED(
		{
			thing.words.items = calloc(4, sizeof(char *));
			thing.words.count = 4;
		},
		"params.words: has 4 elements, at most 3");
	NOT_ENCODED(
		{
			thing.words.items = calloc(2, sizeof(char *));
			thing.words.count = 2;
			thing.words.items[0] = strdup("a");
			thing.words.items[1] = strdup("sixsix");
		},
		"params.words[1]: has 6 bytes, not 1..5");
}

static void encoding_descriptors_that_are_none(void **state)
{
	struct buf out = BUF_INIT(4096);
	struct fdset fds = FDSET_INIT;
	struct error err = ERROR_INIT;
	struct thing thing;

	(void)state;
	codec_init(&thing_table, &thing);
	thing.small = 1;
	thing.fd = 987654;
	assert_int_equal(encode(&thing, &fds, &out, &err), -ERR_SYSTEM);
	thing.fd = -1;
	codec_deinit(&thing_table, &thing);
	buf_deinit(&out);
}

/* Members moved between texts at random: decoded and released, or refused; nothing leaks. */
static void random_members(void **state)
{
	static const char *const values[] = {
		"1",
		"0",
		"true",
		"\"null\"",
		"\"/a\"",
		"[\"a\"]",
		"[[]]",
		"{}",
		"[1,2]",
		"{\"b64\":\"\"}",
		"{\"name\":\"a\",\"fd\":0}",
		"[\"a=b\"]",
		"\"red\"",
		"{\"a\":\"b\"}",
		"[[\"a\",1]]",
		"{\"grouped\":1}",
	};
	size_t before = fd_count();
	unsigned seed = 5;
	size_t taken = 0;

	(void)state;
	for (int round = 0; round < 20000; round++) {
		struct buf text = BUF_INIT(4096);
		struct fdset fds = FDSET_INIT;
		struct error err = ERROR_INIT;
		struct thing thing;

		assert_int_equal(fdset_add_dup(&fds, 0, NULL), 0);
		assert_int_equal(buf_add_string(&text, "{\"small\":1"), 0);
		for (size_t i = 0; i < ARRAY_SIZE(thing_fields); i++)
			if (i != 2 && rand_r(&seed) % 7 == 0)
				assert_int_equal(
					buf_printf(
						&text, ",\"%s\":%s", thing_fields[i].name,
						values[(size_t)rand_r(&seed) % ARRAY_SIZE(values)]),
					0);
		assert_int_equal(buf_add_byte(&text, '}'), 0);
		if (decode(buf_text(&text), &fds, &thing, &err) == 0) {
			taken++;
			codec_deinit(&thing_table, &thing);
		}
		fdset_deinit(&fds);
		buf_deinit(&text);
	}
	assert_true(taken > 500);
	assert_int_equal(fd_count(), before);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(everything_comes_back),
		cmocka_unit_test(absent_members_have_their_values),
		cmocka_unit_test(milli_forms),
		cmocka_unit_test(environment_forms),
		cmocka_unit_test(refusals_name_the_place),
		cmocka_unit_test(descriptors_once_and_existing),
		cmocka_unit_test(encoding_what_cannot_be),
		cmocka_unit_test(encoding_descriptors_that_are_none),
		cmocka_unit_test(random_members),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
