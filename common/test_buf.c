/* SPDX-License-Identifier: Apache-2.0 */
#include "common/buf.h"

#include <stdlib.h>

#include "tests/test.h"

static void add_grows_and_terminates(void **state)
{
	struct buf buf = BUF_INIT(100000);

	(void)state;
	for (int i = 0; i < 5000; i++)
		assert_int_equal(buf_add(&buf, "0123456789", 10), 0);
	assert_int_equal(buf.size, 50000);
	assert_int_equal(buf.data[buf.size], '\0');
	assert_memory_equal(buf.data + 49990, "0123456789", 10);
	buf_deinit(&buf);
	buf_deinit(&buf);
}

static void ceiling_is_exact(void **state)
{
	struct buf buf = BUF_INIT(4);
	struct error err = ERROR_INIT;

	(void)state;
	assert_int_equal(buf_add(&buf, "abcd", 4), 0);
	assert_int_equal(buf_check(&buf, "text", &err), 0);
	assert_int_equal(buf_add_byte(&buf, 'e'), -ERR_NOMEM);
	assert_string_equal(buf_text(&buf), "abcd");
	assert_int_equal(buf_check(&buf, "text", &err), -ERR_NOMEM);
	assert_string_equal(err.message, "text does not fit into 4 bytes");
	buf_deinit(&buf);
}

static void huge_sizes_do_not_wrap(void **state)
{
	struct buf buf = BUF_INIT(16);

	(void)state;
	assert_int_equal(buf_add(&buf, "ab", 2), 0);
	assert_null(buf_reserve(&buf, SIZE_MAX));
	assert_null(buf_reserve(&buf, SIZE_MAX - 1));
	assert_int_equal(buf.size, 2);
	buf_deinit(&buf);
}

static void consume_and_steal(void **state)
{
	struct buf buf = BUF_INIT(64);
	char *text = NULL;

	(void)state;
	assert_int_equal(buf_printf(&buf, "%s-%d", "abc", 42), 0);
	buf_consume(&buf, 4);
	assert_string_equal(buf_text(&buf), "42");
	text = buf_steal(&buf);
	assert_string_equal(text, "42");
	free(text);
	assert_string_equal(buf_text(&buf), "");
	text = buf_steal(&buf);
	assert_string_equal(text, "");
	free(text);
	buf_deinit(&buf);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(add_grows_and_terminates),
		cmocka_unit_test(ceiling_is_exact),
		cmocka_unit_test(huge_sizes_do_not_wrap),
		cmocka_unit_test(consume_and_steal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
