/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/json/base64.h"

#include "tests/test.h"

#include <stdlib.h>
#include <string.h>

#include "common/scope.h"

/* RFC 4648, section 10. */
static const char *const vectors[][2] = {
	{ "", "" },
	{ "f", "Zg==" },
	{ "fo", "Zm8=" },
	{ "foo", "Zm9v" },
	{ "foob", "Zm9vYg==" },
	{ "fooba", "Zm9vYmE=" },
	{ "foobar", "Zm9vYmFy" },
};

static void vectors_both_ways(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(vectors); i++) {
		struct buf out = BUF_INIT(64);
		bool invalid = true;
		size_t size = 99;
		char *bytes = NULL;

		assert_int_equal(base64_encode(&out, vectors[i][0], strlen(vectors[i][0])), 0);
		assert_string_equal(buf_text(&out), vectors[i][1]);
		bytes = base64_decode(out.data ? out.data : "", out.size, &size, &invalid);
		assert_non_null(bytes);
		assert_false(invalid);
		assert_int_equal(size, strlen(vectors[i][0]));
		assert_string_equal(bytes, vectors[i][0]);
		free(bytes);
		buf_deinit(&out);
	}
}

static void random_bytes_come_back(void **state)
{
	unsigned seed = 7;

	(void)state;
	for (int round = 0; round < 2000; round++) {
		char data[100];
		size_t size = (size_t)rand_r(&seed) % sizeof(data);
		struct buf out = BUF_INIT(200);
		bool invalid = true;
		size_t got = 0;
		char *bytes = NULL;

		for (size_t i = 0; i < size; i++)
			data[i] = (char)rand_r(&seed);
		assert_int_equal(base64_encode(&out, data, size), 0);
		bytes = base64_decode(buf_text(&out), out.size, &got, &invalid);
		assert_non_null(bytes);
		assert_int_equal(got, size);
		assert_memory_equal(bytes, data, size);
		free(bytes);
		buf_deinit(&out);
	}
}

static void only_one_spelling(void **state)
{
	static const char *const bad[] = {
		"Z",     "Zg",       "Zg=",   "Zg===", "====",     "=",
		"Zh==",  "Zm9=",     "Zm9w ", " Zm8=", "Zm\n8=",   "Zm8-",
		"Zm8_",  "Zg==Zg==", "Z===",  "Zm=v",  "Zm8=Zm9v", "\xff\xff\xff\xff",
		"Zm9v=",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		bool invalid = false;
		size_t size = 0;

		assert_null(base64_decode(bad[i], strlen(bad[i]), &size, &invalid));
		assert_true(invalid);
	}
}

/* Of all texts of four characters each value has exactly one. */
static void every_single_byte_has_one_spelling(void **state)
{
	static const char alphabet[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	int seen[256] = { 0 };

	(void)state;
	for (size_t a = 0; a < 64; a++) {
		for (size_t b = 0; b < 64; b++) {
			char text[4] = { alphabet[a], alphabet[b], '=', '=' };
			bool invalid = false;
			size_t size = 0;
			char *bytes = base64_decode(text, 4, &size, &invalid);

			if (!bytes)
				continue;
			assert_int_equal(size, 1);
			seen[(unsigned char)bytes[0]]++;
			free(bytes);
		}
	}
	for (size_t i = 0; i < 256; i++)
		assert_int_equal(seen[i], 1);
}

static void ceiling_holds(void **state)
{
	struct buf out = BUF_INIT(7);

	(void)state;
	assert_int_equal(base64_encode(&out, "foo", 3), 0);
	assert_int_equal(base64_encode(&out, "f", 1), -ERR_NOMEM);
	buf_deinit(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(vectors_both_ways),
		cmocka_unit_test(random_bytes_come_back),
		cmocka_unit_test(only_one_spelling),
		cmocka_unit_test(every_single_byte_has_one_spelling),
		cmocka_unit_test(ceiling_holds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
