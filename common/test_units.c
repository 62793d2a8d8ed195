/* SPDX-License-Identifier: Apache-2.0 */
#include "common/units.h"

#include "common/scope.h"
#include "tests/test.h"

#define BAD UINT64_MAX

static const struct {
	const char *text;
	uint64_t duration;
	uint64_t size;
	uint32_t cpus;
} rows[] = {
	{ "", BAD, BAD, UINT32_MAX },
	{ "0", BAD, 0, 0 },
	{ "500ms", 500, BAD, UINT32_MAX },
	{ "20s", 20000, BAD, UINT32_MAX },
	{ "5m", 300000, BAD, UINT32_MAX },
	{ "1h", 3600000, BAD, UINT32_MAX },
	{ "0s", 0, BAD, UINT32_MAX },
	{ "12", BAD, 12, 12000 },
	{ "512K", BAD, 524288, UINT32_MAX },
	{ "3M", BAD, 3145728, UINT32_MAX },
	{ "2G", BAD, UINT64_C(2147483648), UINT32_MAX },
	{ "1T", BAD, UINT64_C(1099511627776), UINT32_MAX },
	{ "16777216T", BAD, BAD, UINT32_MAX },
	{ "18446744073709551615", BAD, BAD, UINT32_MAX }, /* BAD is this number: checked below */
	{ "18446744073709551616", BAD, BAD, UINT32_MAX },
	{ "99999999999999999999999999", BAD, BAD, UINT32_MAX },
	{ "18446744073709551615h", BAD, BAD, UINT32_MAX },
	{ "1.5", BAD, BAD, 1500 },
	{ "0.001", BAD, BAD, 1 },
	{ "1.2345", BAD, BAD, UINT32_MAX },
	{ "1.", BAD, BAD, UINT32_MAX },
	{ ".5", BAD, BAD, UINT32_MAX },
	{ "999999.999", BAD, BAD, 999999999 },
	{ "1000000", BAD, 1000000, UINT32_MAX },
	{ "1.5x", BAD, BAD, UINT32_MAX },
	{ "-1", BAD, BAD, UINT32_MAX },
	{ "+1s", BAD, BAD, UINT32_MAX },
	{ " 1s", BAD, BAD, UINT32_MAX },
	{ "1 s", BAD, BAD, UINT32_MAX },
	{ "1k", BAD, BAD, UINT32_MAX },
	{ "1S", BAD, BAD, UINT32_MAX },
	{ "0x10", BAD, BAD, UINT32_MAX },
};

static void every_row(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		uint64_t value = BAD;
		uint32_t cpus = UINT32_MAX;

		(void)parse_duration_ms(rows[i].text, &value);
		assert_int_equal(value, rows[i].duration);
		value = BAD;
		(void)parse_size_bytes(rows[i].text, &value);
		assert_int_equal(value, rows[i].size);
		(void)parse_cpus_milli(rows[i].text, &cpus);
		assert_int_equal(cpus, rows[i].cpus);
	}
}

static void counts_keep_their_range(void **state)
{
	uint64_t value = 0;

	(void)state;
	assert_true(parse_count("18446744073709551615", 0, UINT64_MAX, &value));
	assert_true(value == UINT64_MAX);
	assert_false(parse_count("18446744073709551616", 0, UINT64_MAX, &value));
	assert_true(parse_count("5", 5, 5, &value));
	assert_false(parse_count("4", 5, 5, &value));
	assert_false(parse_count("6", 5, 5, &value));
	assert_false(parse_count("", 0, 9, &value));
	assert_false(parse_count("1 ", 0, 9, &value));
	assert_int_equal(value, 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_row),
		cmocka_unit_test(counts_keep_their_range),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
