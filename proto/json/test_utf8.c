/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/json/utf8.h"

#include "tests/test.h"

#include <string.h>

#include "common/scope.h"

static void lengths_at_the_borders_of_each_form(void **state)
{
	static const struct {
		const char *text;
		size_t length;
	} cases[] = {
		{ "a", 1 },
		{ "\x7f", 1 },
		{ "\xc2\x80", 2 },
		{ "\xdf\xbf", 2 },
		{ "\xe0\xa0\x80", 3 },
		{ "\xed\x9f\xbf", 3 },
		{ "\xee\x80\x80", 3 },
		{ "\xef\xbf\xbf", 3 },
		{ "\xf0\x90\x80\x80", 4 },
		{ "\xf4\x8f\xbf\xbf", 4 },
		{ "\x80", 0 },
		{ "\xbf", 0 },
		{ "\xc0\x80", 0 },
		{ "\xc1\xbf", 0 },
		{ "\xe0\x9f\xbf", 0 },
		{ "\xed\xa0\x80", 0 },
		{ "\xed\xbf\xbf", 0 },
		{ "\xf0\x8f\xbf\xbf", 0 },
		{ "\xf4\x90\x80\x80", 0 },
		{ "\xf5\x80\x80\x80", 0 },
		{ "\xff", 0 },
		{ "\xe1\x80\x41", 0 },
		{ "\xf1\x80\x80\x41", 0 },
		{ "\xc2\x41", 0 },
		{ "\xf1\x80\x41\x80", 0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		size_t size = strlen(cases[i].text);

		assert_int_equal(utf8_length(cases[i].text, size), cases[i].length);
		assert_int_equal(utf8_valid(cases[i].text, size), cases[i].length == size);
		/* Cut short, no character of several bytes is one. */
		for (size_t cut = 0; cut < size && cases[i].length > 1; cut++)
			assert_int_equal(utf8_length(cases[i].text, cut), 0);
	}
	assert_true(utf8_valid("", 0));
	assert_true(utf8_valid("a\0b", 3));
	assert_true(utf8_valid("gr\xc3\xbc\xc3\x9f \xf0\x9f\x98\x80", 11));
	assert_false(utf8_valid("ab\xc3", 3));
}

/* Every code point that is one is taken; surrogates and what lies above are not. */
static void all_code_points(void **state)
{
	(void)state;
	for (uint32_t point = 0x10000; point <= 0x1fffff; point += 0x7f) {
		char text[4] = { (char)(0xf0 | point >> 18), (char)(0x80 | (point >> 12 & 63)),
				 (char)(0x80 | (point >> 6 & 63)), (char)(0x80 | (point & 63)) };

		assert_int_equal(utf8_length(text, 4), point <= 0x10ffff ? 4 : 0);
	}
	for (uint32_t point = 0; point <= 0xffff; point++) {
		char text[3] = { (char)(0xe0 | point >> 12), (char)(0x80 | (point >> 6 & 63)),
				 (char)(0x80 | (point & 63)) };
		bool good = point >= 0x800 && (point < 0xd800 || point > 0xdfff);

		assert_int_equal(utf8_length(text, 3), good ? 3 : 0);
	}
}

static void printable(void **state)
{
	char out[PRINTABLE_BYTES];
	char longer[200];

	(void)state;
	assert_string_equal(text_printable(out, "plain text"), "plain text");
	assert_string_equal(text_printable(out, "a\n'\"\\\x7f\xff"),
			    "a\\x0a\\x27\\x22\\x5c\\x7f\\xff");
	memset(longer, 'x', sizeof(longer));
	longer[sizeof(longer) - 1] = '\0';
	assert_non_null(strstr(text_printable(out, longer), "xxx..."));
	assert_in_range(strlen(out), 70, PRINTABLE_BYTES - 1);
	memset(longer, '\n', sizeof(longer) - 1);
	assert_non_null(strstr(text_printable(out, longer), "..."));
	assert_in_range(strlen(out), 70, PRINTABLE_BYTES - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lengths_at_the_borders_of_each_form),
		cmocka_unit_test(all_code_points),
		cmocka_unit_test(printable),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
