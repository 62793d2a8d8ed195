/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/spawner/refusal.h"

#include <stdint.h>
#include <string.h>

#include "tests/test.h"

static void assert_frame(const char *frame, size_t size, const char *body)
{
	const unsigned char *header = (const unsigned char *)frame;
	size_t length = (size_t)header[0] << 24 | (size_t)header[1] << 16 | (size_t)header[2] << 8 |
			header[3];

	assert_int_equal(length, size - 4);
	assert_int_equal(length, strlen(body));
	assert_memory_equal(frame + 4, body, length);
}

static void R6_says_which_and_how_to_admit(void **state)
{
	char frame[REFUSAL_BYTES];
	size_t size = refusal_frame(frame, ERR_CONFINED_PEER, "the caller is confined: seccomp",
				    "seccomp", "admit it");

	(void)state;
	assert_frame(frame, size,
		     "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32009,"
		     "\"message\":\"the caller is confined: seccomp\",\"data\":{"
		     "\"kind\":\"confined-peer\",\"stage\":\"seccomp\",\"hint\":\"admit it\"}}}");
}

static void what_is_not_known_is_left_out(void **state)
{
	char frame[REFUSAL_BYTES];
	size_t size = refusal_frame(frame, ERR_QUOTA_EXCEEDED, "too many", NULL, NULL);

	(void)state;
	assert_non_null(memmem(frame, size, "\"data\":{\"kind\":\"quota-exceeded\"}", 32));
}

static void nothing_breaks_out_of_its_string(void **state)
{
	char frame[REFUSAL_BYTES];
	size_t size = refusal_frame(frame, ERR_INVALID, "a\"b\\c\nd\xff", NULL, NULL);

	(void)state;
	assert_non_null(memmem(frame, size, "\"message\":\"a?b?c?d?\"", 20));
}

static void the_longest_fits(void **state)
{
	char frame[REFUSAL_BYTES + 1];
	char text[5000];
	size_t size = 0;

	(void)state;
	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	frame[REFUSAL_BYTES] = 'z';
	size = refusal_frame(frame, ERR_WORKING_DIR_IS_AUTHORITY, text, text, text);
	assert_true(size < REFUSAL_BYTES);
	assert_int_equal(frame[REFUSAL_BYTES], 'z');
	assert_memory_equal(frame + size - 3, "}}}", 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(R6_says_which_and_how_to_admit),
		cmocka_unit_test(what_is_not_known_is_left_out),
		cmocka_unit_test(nothing_breaks_out_of_its_string),
		cmocka_unit_test(the_longest_fits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
