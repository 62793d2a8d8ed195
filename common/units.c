/* SPDX-License-Identifier: Apache-2.0 */
#include "common/units.h"

#include <stddef.h>
#include <string.h>

#include "common/scope.h"

#define KIB (UINT64_C(1) << 10)

bool parse_count(const char *text, uint64_t min, uint64_t max, uint64_t *ret_count)
{
	uint64_t count = 0;

	if (*text == '\0')
		return false;
	for (; *text; text++) {
		if (*text < '0' || *text > '9')
			return false;
		if (__builtin_mul_overflow(count, 10, &count) ||
		    __builtin_add_overflow(count, (uint64_t)(*text - '0'), &count))
			return false;
	}
	if (count < min || count > max)
		return false;
	*ret_count = count;
	return true;
}

struct unit {
	const char *name;
	uint64_t factor;
};

/* Digits, then one of UNITS; an empty unit name allows plain digits. */
static bool parse_with_unit(const char *text, const struct unit *units, size_t unit_count,
			    uint64_t *ret_value)
{
	char digits[24]; /* 2^64 has 20 */
	size_t size = strspn(text, "0123456789");
	uint64_t number = 0;

	if (size == 0 || size >= sizeof(digits))
		return false;
	memcpy(digits, text, size);
	digits[size] = '\0';
	if (!parse_count(digits, 0, UINT64_MAX, &number))
		return false;
	for (size_t i = 0; i < unit_count; i++)
		if (strcmp(text + size, units[i].name) == 0)
			return !__builtin_mul_overflow(number, units[i].factor, ret_value);
	return false;
}

bool parse_duration_ms(const char *text, uint64_t *ret_ms)
{
	static const struct unit units[] = {
		{ "ms", 1 }, { "s", 1000 }, { "m", 60000 }, { "h", 3600000 }
	};
	uint64_t value = 0;

	if (!parse_with_unit(text, units, ARRAY_SIZE(units), &value))
		return false;
	*ret_ms = value;
	return true;
}

bool parse_size_bytes(const char *text, uint64_t *ret_bytes)
{
	static const struct unit units[] = { { "", 1 },
					     { "K", KIB },
					     { "M", KIB * KIB },
					     { "G", KIB * KIB * KIB },
					     { "T", KIB * KIB * KIB * KIB } };
	uint64_t value = 0;

	if (!parse_with_unit(text, units, ARRAY_SIZE(units), &value))
		return false;
	*ret_bytes = value;
	return true;
}

bool parse_cpus_milli(const char *text, uint32_t *ret_milli)
{
	size_t whole = strspn(text, "0123456789");
	size_t places = 0;
	uint64_t milli = 0;

	if (whole == 0 || whole > 6)
		return false;
	for (size_t i = 0; i < whole; i++)
		milli = milli * 10 + (uint64_t)(text[i] - '0');
	if (text[whole] == '.') {
		places = strspn(text + whole + 1, "0123456789");
		if (places == 0 || places > 3)
			return false;
		for (size_t i = 0; i < places; i++)
			milli = milli * 10 + (uint64_t)(text[whole + 1 + i] - '0');
		whole += 1 + places;
	}
	if (text[whole] != '\0')
		return false;
	for (; places < 3; places++)
		milli *= 10;
	*ret_milli = (uint32_t)milli; /* at most 999,999,999 */
	return true;
}
