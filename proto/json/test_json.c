/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/json/json.h"

#include "tests/test.h"

#include <stdlib.h>
#include <string.h>

#include "common/scope.h"

/* Parse a copy of exactly SIZE bytes, so that a read past the end is seen. */
static int parse(const char *text, size_t size, const struct json_limits *limits,
		 struct json_doc **ret_doc, struct error *err)
{
	char *copy = malloc(size ? size : 1);
	int r = 0;

	assert_non_null(copy);
	memcpy(copy, text, size);
	*ret_doc = NULL;
	r = json_parse(ret_doc, copy, size, limits, err);
	free(copy);
	if (r < 0)
		assert_null(*ret_doc);
	return r;
}

/* Write the tree again, to compare with what was read. */
static void write_value(struct json_writer *writer, const struct json_value *value)
{
	switch (value->type) {
	case JSON_NULL:
		json_write_null(writer);
		break;
	case JSON_BOOL:
		json_write_bool(writer, value->u.boolean);
		break;
	case JSON_INT:
		json_write_int(writer, value->u.number);
		break;
	case JSON_STRING:
		json_write_text_sized(writer, value->u.text, value->size);
		break;
	case JSON_ARRAY:
		json_write_array(writer);
		for (const struct json_value *i = value->u.first; i; i = i->next)
			write_value(writer, i);
		json_write_array_end(writer);
		break;
	case JSON_OBJECT:
		json_write_object(writer);
		for (const struct json_value *i = value->u.first; i; i = i->next) {
			json_write_key(writer, i->key);
			write_value(writer, i);
		}
		json_write_object_end(writer);
		break;
	}
}

static void expect_text(const char *text, const char *expected)
{
	struct buf out = BUF_INIT(1 << 20);
	struct json_doc *doc = NULL;
	struct error err = ERROR_INIT;
	struct json_writer writer;

	if (parse(text, strlen(text), NULL, &doc, &err) < 0)
		fail_msg("%s: %s", text, err.message);
	json_writer_init(&writer, &out);
	write_value(&writer, json_root(doc));
	assert_int_equal(json_writer_check(&writer, NULL), 0);
	assert_string_equal(buf_text(&out), expected);
	buf_deinit(&out);
	json_doc_free(doc);
}

static void good_texts(void **state)
{
	static const char *const same[] = {
		"null",
		"true",
		"[]",
		"{}",
		"[[],{},[[]]]",
		"{\"a\":1,\"b\":[true,false,null],\"c\":{\"a\":\"x\"}}",
		"-9223372036854775808",
		"9223372036854775807",
		"\"gr\xc3\xbc\xc3\x9f \xf0\x9f\x98\x80\"",
		"\"\\\"\\\\\\n\\t\\r\\u0001\\u007f\"",
		"[0,-1,10]",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(same); i++)
		expect_text(same[i], same[i]);
	expect_text(" [ 1 , \t2\r\n] ", "[1,2]");
	expect_text("\"\\u00e9\\u20AC\\ud83d\\uDE00\\/\\b\\f\"",
		    "\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80/\\u0008\\u000c\"");
	expect_text("-0", "0");
	expect_text("\"\\uffff\\ue000\"", "\"\xef\xbf\xbf\xee\x80\x80\"");
}

struct bad {
	const char *text;
	const char *why; /* part of the message */
};

static const struct bad bad_cases[] = {
	{ "", "" },
	{ " ", "" },
	{ "[", "" },
	{ "]", "" },
	{ "[1,]", "" },
	{ "[,1]", "" },
	{ "[1 2]", "" },
	{ "{\"a\":1,}", "" },
	{ "{\"a\"}", "" },
	{ "{\"a\" 1}", "" },
	{ "{1:2}", "" },
	{ "{a:1}", "" },
	{ "[1}", "" },
	{ "nul", "" },
	{ "True", "" },
	{ "'a'", "" },
	{ "[1] 2", "trailing garbage" },
	{ "[1]]", "trailing garbage" },
	{ "1 \xff", "" },
	{ "01", "" },
	{ "-", "" },
	{ "+1", "" },
	{ "1.0", "integers" },
	{ "1e3", "integers" },
	{ "1E3", "integers" },
	{ "[-1.5]", "integers" },
	{ "1-1", "integers" },
	{ "9223372036854775808", "64 bits" },
	{ "-9223372036854775809", "64 bits" },
	{ "99999999999999999999999999", "64 bits" },
	{ "NaN", "" },
	{ "Infinity", "" },
	{ "-Infinity", "" },
	{ "\"a", "without end" },
	{ "\"\\", "escape" },
	{ "\"\\x41\"", "escape" },
	{ "\"\\u12\"", "hexadecimal" },
	{ "\"\\u12g4\"", "hexadecimal" },
	{ "\"\\u", "hexadecimal" },
	{ "\"a\nb\"", "control character" },
	{ "\"a\tb\"", "control character" },
	{ "\"\\u0000\"", "U+0000" },
	{ "{\"\\u0000\":1}", "U+0000" },
	{ "\"\\ud800\"", "lone surrogate" },
	{ "\"\\udc00\"", "lone surrogate" },
	{ "\"\\ud800x\"", "lone surrogate" },
	{ "\"\\ud800\\n23456\"", "lone surrogate" },
	{ "\"\\ud800\\u0041\"", "lone surrogate" },
	{ "\"\\ud800\\ud800\"", "lone surrogate" },
	{ "\"\\ud800\\u", "lone surrogate" },
	{ "\"\\ude00\\ud83d\"", "lone surrogate" },
	{ "\"\xed\xa0\x80\"", "not UTF-8" },
	{ "\"\xc0\x80\"", "not UTF-8" },
	{ "\"\xc3\"", "not UTF-8" },
	{ "\"\xff\"", "not UTF-8" },
	{ "\"\xf4\x90\x80\x80\"", "not UTF-8" },
	{ "{\"\xff\":1}", "not UTF-8" },
	{ "\xef\xbb\xbf[]", "" },
	{ "/* x */ 1", "comments" },
	{ "[1] // x", "comments" },
	{ "{\"a\":1,\"a\":2}", "duplicate key 'a'" },
	{ "{\"a\":1,\"b\":2,\"c\":{\"x\":1,\"y\":2,\"x\":3}}", "duplicate key 'x'" },
	{ "{\"a\":1,\"\\u0061\":2}", "duplicate key 'a'" },
	{ "{\"\":1,\"\":2}", "duplicate key ''" },
	{ "{\"a\nb\":1}", "control character" },
};

static void bad_texts(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad_cases); i++) {
		struct error err = ERROR_INIT;
		struct json_doc *doc = NULL;

		if (parse(bad_cases[i].text, strlen(bad_cases[i].text), NULL, &doc, &err) !=
		    -ERR_BAD_JSON)
			fail_msg("taken: %s", bad_cases[i].text);
		assert_int_equal(err.kind, ERR_BAD_JSON);
		if (!strstr(err.message, bad_cases[i].why))
			fail_msg("%s: '%s' does not say '%s'", bad_cases[i].text, err.message,
				 bad_cases[i].why);
	}
}

static void nul_bytes_are_refused_anywhere(void **state)
{
	static const char texts[][8] = { "\"a\0b\"  ", "[1,\0 2] ", "\0[1,2] ", "[1,2]\0 ",
					 "[1\0  ]  " };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		struct json_doc *doc = NULL;

		assert_int_equal(parse(texts[i], 7, NULL, &doc, NULL), -ERR_BAD_JSON);
	}
}

static void errors_say_line_and_column(void **state)
{
	struct error err = ERROR_INIT;
	struct json_doc *doc = NULL;
	const char *text = "{\n  \"a\": 1,\n  \"b\": 1.5\n}";

	(void)state;
	assert_int_equal(parse(text, strlen(text), NULL, &doc, &err), -ERR_BAD_JSON);
	assert_string_equal(err.message, "line 3, column 9: numbers must be integers");
	text = "{\"a\": 1,\n \"a\xe2\x82\xac\": 1, \"a\xe2\x82\xac\": 2}";
	assert_int_equal(parse(text, strlen(text), NULL, &doc, &err), -ERR_BAD_JSON);
	assert_non_null(strstr(err.message, "line 2, "));
	assert_non_null(strstr(err.message, "duplicate key 'a\\xe2\\x82\\xac'"));
}

/* ---- ceilings ------------------------------------------------------------------------ */

static void repeated(struct buf *out, const char *piece, size_t count)
{
	for (size_t i = 0; i < count; i++)
		assert_int_equal(buf_add_string(out, piece), 0);
}

static int parse_buf(const struct buf *text, const struct json_limits *limits, struct error *err)
{
	struct json_doc *doc = NULL;
	int r = parse(buf_text(text), text->size, limits, &doc, err);

	json_doc_free(doc);
	return r;
}

static void depth_at_the_ceiling(void **state)
{
	static const char *const open[] = { "[", "{\"a\":" };
	static const char *const close[] = { "]", "}" };

	(void)state;
	for (size_t kind = 0; kind < 2; kind++) {
		for (size_t depth = LIMIT_JSON_DEPTH; depth <= LIMIT_JSON_DEPTH + 1; depth++) {
			struct buf text = BUF_INIT(4096);
			struct error err = ERROR_INIT;

			repeated(&text, open[kind], depth);
			assert_int_equal(buf_add_string(&text, "1"), 0);
			repeated(&text, close[kind], depth);
			assert_int_equal(parse_buf(&text, NULL, &err),
					 depth == LIMIT_JSON_DEPTH ? 0 : -ERR_BAD_JSON);
			if (depth > LIMIT_JSON_DEPTH)
				assert_non_null(strstr(err.message, "nested deeper than 32"));
			buf_deinit(&text);
		}
	}
}

static void elements_at_the_ceiling(void **state)
{
	struct json_limits limits = JSON_LIMITS;
	struct error err = ERROR_INIT;
	struct buf text = BUF_INIT(4096);

	(void)state;
	limits.elements = 10;
	assert_int_equal(buf_add_string(&text, "[1,2,3,4,5,{\"a\":[true]},null"), 0);
	assert_int_equal(buf_add_byte(&text, ']'), 0);
	assert_int_equal(parse_buf(&text, &limits, &err), 0);
	limits.elements = 9;
	assert_int_equal(parse_buf(&text, &limits, &err), -ERR_BAD_JSON);
	assert_non_null(strstr(err.message, "more than 9 values"));
	limits.elements = 5;
	assert_int_equal(parse_buf(&text, &limits, &err), -ERR_BAD_JSON);
	limits.elements = 0;
	assert_int_equal(parse_buf(&text, &limits, &err), -ERR_BAD_JSON);
	buf_deinit(&text);
}

static void element_ceiling_of_the_protocol(void **state)
{
	struct buf text = BUF_INIT(4u << 20);
	struct error err = ERROR_INIT;

	(void)state;
	assert_int_equal(buf_add_byte(&text, '['), 0);
	repeated(&text, "0,", LIMIT_JSON_ELEMENTS - 2);
	assert_int_equal(buf_add_string(&text, "0]"), 0);
	assert_int_equal(parse_buf(&text, NULL, &err), 0);
	text.size -= 1;
	assert_int_equal(buf_add_string(&text, ",0]"), 0);
	assert_int_equal(parse_buf(&text, NULL, &err), -ERR_BAD_JSON);
	buf_deinit(&text);
}

static void string_length_at_the_ceiling(void **state)
{
	static const char *const texts[] = {
		"\"12345678\"",
		"{\"12345678\":1}",
		"\"\\u00e9\\ud83d\\ude00\\n\\\\\"",
		"\"\xc3\xa9\xf0\x9f\x98\x80zz\"",
		"\"\\u20ac1234\\u007f\"",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		struct json_limits limits = JSON_LIMITS;
		struct json_doc *doc = NULL;
		struct error err = ERROR_INIT;

		limits.string_bytes = 8;
		assert_int_equal(parse(texts[i], strlen(texts[i]), &limits, &doc, &err), 0);
		json_doc_free(doc);
		limits.string_bytes = 7;
		assert_int_equal(parse(texts[i], strlen(texts[i]), &limits, &doc, &err),
				 -ERR_BAD_JSON);
		assert_non_null(strstr(err.message, "string longer than 7 bytes"));
	}
}

static void text_length_at_the_ceiling(void **state)
{
	struct json_limits limits = JSON_LIMITS;
	struct json_doc *doc = NULL;
	struct error err = ERROR_INIT;

	(void)state;
	limits.text_bytes = 5;
	assert_int_equal(parse("[1,2]", 5, &limits, &doc, &err), 0);
	json_doc_free(doc);
	assert_int_equal(parse("[1,2] ", 6, &limits, &doc, &err), -ERR_BAD_JSON);
	assert_string_equal(err.message, "longer than 5 bytes");
}

/* Whatever the budget, either the text is taken or out-of-memory is said; never a crash. */
static void memory_at_every_ceiling(void **state)
{
	static const char text[] =
		"{\"a\":[1,2,3,\"x\\n\\u20ac\",{\"b\":null,\"c\":[[[[\"deep\"]]]]}],\"d\":\"e\\tf\"}";
	size_t refused = 0;
	size_t taken = 0;

	(void)state;
	for (size_t budget = 0; budget < 20000; budget += 16) {
		struct json_limits limits = JSON_LIMITS;
		struct json_doc *doc = NULL;
		struct error err = ERROR_INIT;
		int r = 0;

		limits.memory_bytes = budget;
		r = parse(text, sizeof(text) - 1, &limits, &doc, &err);
		if (r == 0) {
			taken++;
			json_doc_free(doc);
			continue;
		}
		assert_int_equal(r, -ERR_NOMEM);
		assert_true(budget < 16384);
		refused++;
	}
	assert_true(refused > 10);
	assert_true(taken > 10);
}

/* Long strings with escapes make the library grow its own buffer again and again. */
static void memory_of_long_escaped_strings(void **state)
{
	struct json_limits limits = JSON_LIMITS;
	struct buf text = BUF_INIT(8u << 20);
	struct error err = ERROR_INIT;

	(void)state;
	assert_int_equal(buf_add_byte(&text, '"'), 0);
	repeated(&text, "\\n", LIMIT_JSON_STRING_BYTES);
	assert_int_equal(buf_add_byte(&text, '"'), 0);
	assert_int_equal(parse_buf(&text, &limits, &err), 0);
	for (size_t budget = 1u << 12; budget < 4u << 20; budget *= 2) {
		limits.memory_bytes = budget;
		assert_int_equal(parse_buf(&text, &limits, &err), -ERR_NOMEM);
	}
	buf_deinit(&text);
}

static void many_keys_cost_no_square(void **state)
{
	struct buf text = BUF_INIT(8u << 20);
	struct error err = ERROR_INIT;

	(void)state;
	assert_int_equal(buf_add_byte(&text, '{'), 0);
	for (int i = 0; i < 200000; i++)
		assert_int_equal(buf_printf(&text, "\"k%d\":0,", i), 0);
	assert_int_equal(buf_add_string(&text, "\"k\":1"), 0);
	assert_int_equal(buf_add_byte(&text, '}'), 0);
	assert_int_equal(parse_buf(&text, NULL, &err), 0);
	text.size--;
	assert_int_equal(buf_add_string(&text, ",\"k77777\":0}"), 0);
	assert_int_equal(parse_buf(&text, NULL, &err), -ERR_BAD_JSON);
	assert_non_null(strstr(err.message, "duplicate key 'k77777'"));
	buf_deinit(&text);
}

/* Bytes changed, cut and doubled at random: taken or refused, never anything else. */
static void random_mutations(void **state)
{
	static const char seed_text[] =
		"{\"jsonrpc\":\"2.0\",\"id\":7,\"params\":{\"argv\":[\"a\\n\","
		"{\"b64\":\"/w==\"}],\"x\":[-1,true,null,\"\\ud83d\\ude00\"]}}";
	unsigned seed = 99;
	size_t taken = 0;

	(void)state;
	for (int round = 0; round < 30000; round++) {
		char text[sizeof(seed_text)];
		size_t size = sizeof(seed_text) - 1;
		struct json_doc *doc = NULL;
		struct error err = ERROR_INIT;

		memcpy(text, seed_text, sizeof(text));
		for (int n = rand_r(&seed) % 3; n >= 0; n--) {
			size_t at = (size_t)rand_r(&seed) % size;

			if (rand_r(&seed) % 4 == 0)
				size -= (size_t)rand_r(&seed) % 3 % size;
			else if (rand_r(&seed) % 2 == 0)
				text[at] = (char)rand_r(&seed);
			else
				text[at] = text[(size_t)rand_r(&seed) % size];
		}
		if (parse(text, size, NULL, &doc, &err) == 0)
			taken++;
		else
			assert_int_equal(err.kind, ERR_BAD_JSON);
		json_doc_free(doc);
	}
	assert_true(taken > 100);
}

/* ---- the tree ------------------------------------------------------------------------ */

static void looking(void **state)
{
	static const char text[] = "{\"a\":{\"b\":[1,\"xyz\"]},\"c\":null}";
	const struct json_value *root = NULL;
	const struct json_value *list = NULL;
	struct json_doc *doc = NULL;

	(void)state;
	assert_int_equal(parse(text, sizeof(text) - 1, NULL, &doc, NULL), 0);
	root = json_root(doc);
	assert_int_equal(root->size, 2);
	assert_null(root->key);
	list = json_get(json_get(root, "a"), "b");
	assert_int_equal(list->type, JSON_ARRAY);
	assert_int_equal(list->size, 2);
	assert_string_equal(list->key, "b");
	assert_int_equal(list->u.first->u.number, 1);
	assert_string_equal(list->u.first->next->u.text, "xyz");
	assert_int_equal(list->u.first->next->size, 3);
	assert_null(json_get(root, "d"));
	assert_null(json_get(list, "a"));
	assert_null(json_get(NULL, "a"));
	json_doc_free(doc);
	assert_null(json_doc_free(NULL));
	assert_string_equal(json_type_name(JSON_NULL), "null");
	assert_string_equal(json_type_name(JSON_OBJECT), "an object");
}

/* ---- the writer ---------------------------------------------------------------------- */

static void writing(void **state)
{
	struct buf out = BUF_INIT(1024);
	struct json_writer writer;

	(void)state;
	json_writer_init(&writer, &out);
	json_write_object(&writer);
	json_write_key(&writer, "a");
	json_write_array(&writer);
	json_write_uint(&writer, 1);
	json_write_bytes(&writer, "caf\xc3\xa9");
	json_write_bytes(&writer, "caf\xe9");
	json_write_array_end(&writer);
	json_write_key(&writer, "b\"");
	json_write_raw(&writer, "[1]", 3);
	json_write_key(&writer, "c");
	json_write_uint(&writer, INT64_MAX);
	json_write_object_end(&writer);
	assert_int_equal(json_writer_check(&writer, NULL), 0);
	assert_string_equal(buf_text(&out),
			    "{\"a\":[1,\"caf\xc3\xa9\",{\"b64\":\"Y2Fm6Q==\"}],\"b\\\"\":[1],"
			    "\"c\":9223372036854775807}");
	buf_deinit(&out);
}

static void writing_what_cannot_be(void **state)
{
	struct buf out = BUF_INIT(1024);
	struct error err = ERROR_INIT;
	struct json_writer writer;

	(void)state;
	json_writer_init(&writer, &out);
	json_write_text(&writer, "\xff");
	assert_int_equal(json_writer_check(&writer, &err), -ERR_INVALID);
	json_writer_init(&writer, &out);
	json_write_text_sized(&writer, "a\0b", 3);
	assert_int_equal(json_writer_check(&writer, &err), -ERR_INVALID);
	json_writer_init(&writer, &out);
	json_write_uint(&writer, (uint64_t)INT64_MAX + 1);
	assert_int_equal(json_writer_check(&writer, &err), -ERR_INVALID);
	buf_deinit(&out);
	buf_init(&out, 4);
	json_writer_init(&writer, &out);
	json_write_text(&writer, "abc");
	assert_int_equal(json_writer_check(&writer, &err), -ERR_NOMEM);
	buf_deinit(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(good_texts),
		cmocka_unit_test(bad_texts),
		cmocka_unit_test(nul_bytes_are_refused_anywhere),
		cmocka_unit_test(errors_say_line_and_column),
		cmocka_unit_test(depth_at_the_ceiling),
		cmocka_unit_test(elements_at_the_ceiling),
		cmocka_unit_test(element_ceiling_of_the_protocol),
		cmocka_unit_test(string_length_at_the_ceiling),
		cmocka_unit_test(text_length_at_the_ceiling),
		cmocka_unit_test(memory_at_every_ceiling),
		cmocka_unit_test(memory_of_long_escaped_strings),
		cmocka_unit_test(many_keys_cost_no_square),
		cmocka_unit_test(random_mutations),
		cmocka_unit_test(looking),
		cmocka_unit_test(writing),
		cmocka_unit_test(writing_what_cannot_be),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
