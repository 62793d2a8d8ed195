/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/egress/chunked.h"

#include <string.h>

#include "common/scope.h"
#include "tests/test.h"

/* Feed in pieces of PIECE bytes; how many were taken. */
static size_t feed(const char *text, size_t piece, struct chunked *chunked)
{
	size_t size = strlen(text);
	size_t at = 0;

	*chunked = (struct chunked){ .state = CHUNKED_SIZE };
	while (at < size) {
		size_t some = size - at < piece ? size - at : piece;
		size_t taken = chunked_feed(chunked, text + at, some);

		at += taken;
		if (taken < some)
			break;
	}
	return at;
}

static void a_body_ends_where_it_ends(void **state)
{
	static const char *const bodies[] = {
		"0\r\n\r\n",
		"4\r\nabcd\r\n0\r\n\r\n",
		"1\r\na\r\n00a\r\n0123456789\r\n000\r\n\r\n",
		"A\r\n\r\n\r\n0\r\n\r\nx\r\n0\r\n\r\n",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bodies); i++) {
		char text[100];
		struct chunked chunked;

		(void)strncpy(text, bodies[i], sizeof(text) - 1);
		(void)strncat(text, "GET / HTTP/1.1\r\n", sizeof(text) - strlen(text) - 1);
		for (size_t piece = 1; piece < 40; piece++) {
			assert_int_equal(feed(text, piece, &chunked), strlen(bodies[i]));
			assert_int_equal(chunked.state, CHUNKED_END);
		}
	}
}

static void R34_other_forms_are_refused(void **state)
{
	static const char *const bodies[] = {
		"\r\n",
		"x\r\n",
		" 4\r\nabcd\r\n",
		"4 \r\nabcd\r\n",
		"4;a=b\r\nabcd\r\n",
		"+4\r\nabcd\r\n",
		"-4\r\nabcd\r\n",
		"0x4\r\nabcd\r\n",
		"4\nabcd\n",
		"4\rabcd",
		"4\r\nabcde\r\n",
		"4\r\nabcd\n0\n\n",
		"0\r\nTrailer: x\r\n\r\n",
		"0\r\n\n",
		"0000000000000000\r\n\r\n",
		"fffffffffffffffff\r\n",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bodies); i++) {
		for (size_t piece = 1; piece < 20; piece++) {
			struct chunked chunked;

			if (feed(bodies[i], piece, &chunked) == strlen(bodies[i]) &&
			    chunked.state != CHUNKED_BAD)
				fail_msg("'%s' is taken", bodies[i]);
			assert_int_equal(chunked.state, CHUNKED_BAD);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_body_ends_where_it_ends),
		cmocka_unit_test(R34_other_forms_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
