/* SPDX-License-Identifier: Apache-2.0 */
#include "common/confline.h"

#include <string.h>

#include "common/scope.h"
#include "tests/test.h"

/* Read all of TEXT (SIZE bytes) and compare with "key|value;" for each line, or the error. */
static void expect_sized(const char *text, size_t size, const char *expected)
{
	struct error err = ERROR_INIT;
	struct confline reader;
	char seen[1024] = "";
	int r = 0;

	confline_init(&reader, text, size);
	while ((r = confline_next(&reader, &err)) > 0) {
		strncat(seen, reader.key, sizeof(seen) - strlen(seen) - 1);
		strncat(seen, "|", sizeof(seen) - strlen(seen) - 1);
		strncat(seen, reader.value, sizeof(seen) - strlen(seen) - 1);
		strncat(seen, ";", sizeof(seen) - strlen(seen) - 1);
	}
	if (r < 0) {
		assert_int_equal(r, -ERR_CONFIG);
		assert_string_equal(err.message, expected);
	} else {
		assert_string_equal(seen, expected);
	}
}

static void expect(const char *text, const char *expected)
{
	expect_sized(text, strlen(text), expected);
}

static void lines_comments_and_blanks(void **state)
{
	(void)state;
	expect("", "");
	expect("\n\n  \t\n# a\n   # b\n", "");
	expect("a=1", "a|1;");
	expect("  a-b\t= \t1 2  # c\nc = d#e\n", "a-b|1 2;c|d#e;");
	expect("a = 1\r\nb = 2\r\n", "a|1;b|2;");
	expect("host-env@me = A=B # x", "host-env@me|A=B;");
}

static void quotes_and_escapes(void **state)
{
	(void)state;
	expect("a = \" b # c \" # d", "a| b # c ;");
	expect("a = \"x\\\"y\\\\z\\nq\"", "a|x\"y\\z\nq;");
	expect("a = \"x", "key 'a': the closing quote is missing");
	expect("a = \"x\\", "key 'a': only \\\" \\\\ and \\n may follow a backslash in quotes");
	expect("a = \"x\\t\"", "key 'a': only \\\" \\\\ and \\n may follow a backslash in quotes");
	expect("a = \"x\" y", "key 'a': text after the closing quote");
	expect("a = x\"y\"", "key 'a': a quote inside a value without quotes");
}

static void malformed_lines(void **state)
{
	(void)state;
	expect("= 1", "expected 'key = value'");
	expect("a", "key 'a': expected '=' after it");
	expect("a b = 1", "key 'a': expected '=' after it");
	expect("a =", "key 'a': the value is empty");
	expect("a = # c", "key 'a': the value is empty");
	expect("a = \"\"", "key 'a': the value is empty");
	expect("\xef\xbb\xbf"
	       "a = 1",
	       "expected 'key = value'");
	expect("a = \x1b[0m", "control byte 0x1b in the line");
	expect("a = \x7f", "control byte 0x7f in the line");
	expect("a = b\rc", "control byte 0x0d in the line");
	expect_sized("a = b\0c", 7, "control byte 0x00 in the line");
}

static void lengths_are_exact(void **state)
{
	static char text[LIMIT_CONFIG_LINE_BYTES + 2];
	static struct confline storage;
	struct confline *reader = &storage;
	struct error err = ERROR_INIT;

	(void)state;
	memset(text, 'a', LIMIT_CONFIG_LINE_BYTES + 1);
	memcpy(text, "k=", 2);
	confline_init(reader, text, LIMIT_CONFIG_LINE_BYTES);
	assert_int_equal(confline_next(reader, &err), 1);
	assert_int_equal(strlen(reader->value), LIMIT_CONFIG_LINE_BYTES - 2);
	confline_init(reader, text, LIMIT_CONFIG_LINE_BYTES + 1);
	assert_int_equal(confline_next(reader, &err), -ERR_CONFIG);
	assert_string_equal(err.message, "the line is longer than 8192 bytes");

	memset(text, 'a', LIMIT_NAME_BYTES + 1);
	memcpy(text + LIMIT_NAME_BYTES, "=1", 3);
	confline_init(reader, text, LIMIT_NAME_BYTES + 2);
	assert_int_equal(confline_next(reader, &err), 1);
	memset(text, 'a', LIMIT_NAME_BYTES + 1);
	memcpy(text + LIMIT_NAME_BYTES + 1, "=1", 3);
	confline_init(reader, text, LIMIT_NAME_BYTES + 3);
	assert_int_equal(confline_next(reader, &err), -ERR_CONFIG);
	assert_string_equal(err.message, "the key is longer than 64 bytes");
}

static void line_numbers_count_every_line(void **state)
{
	const char *text = "# one\n\na = 1\n\nb = 2\nbad\n";
	struct error err = ERROR_INIT;
	struct confline reader;

	(void)state;
	confline_init(&reader, text, strlen(text));
	assert_int_equal(confline_next(&reader, &err), 1);
	assert_int_equal(reader.line, 3);
	assert_int_equal(confline_next(&reader, &err), 1);
	assert_int_equal(reader.line, 5);
	assert_int_equal(confline_next(&reader, &err), -ERR_CONFIG);
	assert_int_equal(reader.line, 6);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_comments_and_blanks),
		cmocka_unit_test(quotes_and_escapes),
		cmocka_unit_test(malformed_lines),
		cmocka_unit_test(lengths_are_exact),
		cmocka_unit_test(line_numbers_count_every_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
