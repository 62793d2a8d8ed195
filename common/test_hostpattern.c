/* SPDX-License-Identifier: Apache-2.0 */
#include "common/hostpattern.h"

#include <stdio.h>
#include <string.h>

#include "common/limits.h"
#include "common/scope.h"
#include "tests/test.h"

static void entries_are_read_and_written(void **state)
{
	static const struct {
		const char *text;
		const char *canonical;
	} cases[] = {
		{ "example.org", "example.org" },
		{ "Example.ORG.", "example.org" },
		{ "example.org:443", "example.org:443" },
		{ "*.example.org", "*.example.org" },
		{ "*.Example.org:80", "*.example.org:80" },
		{ "192.0.2.1", "192.0.2.1" },
		{ "192.0.2.1:80", "192.0.2.1:80" },
		{ "[2001:DB8:0::1]", "[2001:db8::1]" },
		{ "[2001:db8::1]:443", "[2001:db8::1]:443" },
		{ "[::ffff:192.0.2.1]:80", "192.0.2.1:80" },
		{ "127.0.0.1:8080", "127.0.0.1:8080" },
		{ "db.corp+private", "db.corp+private" },
		{ "*.corp:5432+private", "*.corp:5432+private" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		AUTO(buf_deinit) struct buf out = BUF_INIT(LIMIT_HOST_PATTERN_BYTES);
		struct hostpattern pattern;
		struct error err = ERROR_INIT;

		if (hostpattern_parse(cases[i].text, strlen(cases[i].text), &pattern, &err) < 0)
			fail_msg("%s", err.message);
		assert_int_equal(hostpattern_format(&pattern, &out), 0);
		assert_string_equal(buf_text(&out), cases[i].canonical);
		hostpattern_deinit(&pattern);
	}
}

static void R34_odd_entries_are_refused(void **state)
{
	static const char *const odd[] = {
		"",
		"*",
		"*.",
		"**.a",
		"*a.example",
		"a.*.example",
		"*.*.example",
		"a*",
		"*.192.0.2.1",
		"*.[::1]",
		"example.org:*",
		"example.org:0",
		"example.org:",
		"example.org:65536",
		"http://example.org",
		"example.org/x",
		"user@example.org",
		"127.1",
		"0x7f.1",
		"2130706433",
		"::1",
		"2001:db8::1:443",
		"[::1",
		"[::1]443",
		"0.0.0.0",
		"[::]",
		"10.0.0.0/8",
		"10.0.0.1+private",
		"+private",
		"*.+private",
		"a+Private",
		"a+private:80",
		"b\xc3\xbc"
		"cher.example",
		"a b",
		".example.org",
		"[::1%lo]",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(odd); i++) {
		struct hostpattern pattern;
		struct error err = ERROR_INIT;

		if (hostpattern_parse(odd[i], strlen(odd[i]), &pattern, &err) != -ERR_INVALID)
			fail_msg("'%s' is taken", odd[i]);
		assert_non_null(strstr(err.message, "host entry '"));
	}
}

static void R34_foreign_bytes_in_messages_are_harmless(void **state)
{
	struct hostpattern pattern;
	struct error err = ERROR_INIT;

	(void)state;
	assert_int_equal(hostpattern_parse("a\x1b[2J\n\xff", 7, &pattern, &err), -ERR_INVALID);
	for (const char *at = err.message; *at; at++)
		assert_in_range((unsigned char)*at, ' ', '~');
}

static bool fits(const char *entry, const char *host_text, uint16_t port)
{
	struct hostpattern pattern;
	struct hostname host;
	bool result = false;

	assert_int_equal(hostpattern_parse(entry, strlen(entry), &pattern, NULL), 0);
	assert_int_equal(hostname_parse(host_text, strlen(host_text), false, &host, NULL), 0);
	result = hostpattern_matches(&pattern, &host, port);
	hostpattern_deinit(&pattern);
	return result;
}

static void R34_wildcards_have_sharp_edges(void **state)
{
	(void)state;
	assert_true(fits("*.example.org", "a.example.org", 443));
	assert_true(fits("*.example.org", "a.b.example.org", 443));
	assert_true(fits("*.example.org", "A.EXAMPLE.ORG.", 443));
	assert_false(fits("*.example.org", "example.org", 443));
	assert_false(fits("*.example.org", "notexample.org", 443));
	assert_false(fits("*.example.org", "a.example.org.evil.test", 443));
	assert_false(fits("*.example.org", "example.org.evil.test", 443));
	assert_false(fits("example.org", "a.example.org", 443));
	assert_false(fits("example.org", "example.orgx", 443));
	assert_true(fits("*.1e100.net", "x.1e100.net", 443));
	assert_false(fits("*.0.0.1x", "127.0.0.1", 443));
}

static void ports_and_addresses_are_exact(void **state)
{
	(void)state;
	assert_true(fits("example.org:443", "example.org", 443));
	assert_false(fits("example.org:443", "example.org", 80));
	assert_true(fits("example.org", "example.org", 65535));
	assert_true(fits("192.0.2.1", "192.0.2.1", 1));
	assert_true(fits("192.0.2.1", "[::ffff:192.0.2.1]", 1));
	assert_false(fits("192.0.2.1", "[64:ff9b::192.0.2.1]", 1));
	assert_true(fits("[2001:db8::1]", "[2001:db8:0:0::1]", 1));
	assert_false(fits("[2001:db8::1]", "[2001:db8::2]", 1));
}

static void the_longest_entry_fits(void **state)
{
	AUTO(buf_deinit) struct buf out = BUF_INIT(LIMIT_HOST_PATTERN_BYTES);
	char text[LIMIT_HOST_PATTERN_BYTES + 2];
	struct hostpattern pattern;

	(void)state;
	memset(text, 'a', sizeof(text));
	memcpy(text, "*.", 2);
	for (size_t i = 2 + 50; i < 2 + 253; i += 51)
		text[i] = '.';
	(void)snprintf(text + 2 + 253, sizeof(text) - 2 - 253, ":65535+private");
	assert_int_equal(strlen(text), LIMIT_HOST_PATTERN_BYTES);
	assert_int_equal(hostpattern_parse(text, strlen(text), &pattern, NULL), 0);
	assert_int_equal(hostpattern_format(&pattern, &out), 0);
	assert_string_equal(buf_text(&out), text);
	hostpattern_deinit(&pattern);
	memmove(text + 3, text + 2, strlen(text) - 1);
	assert_int_equal(hostpattern_parse(text, LIMIT_HOST_PATTERN_BYTES + 1, &pattern, NULL),
			 -ERR_INVALID);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(entries_are_read_and_written),
		cmocka_unit_test(R34_odd_entries_are_refused),
		cmocka_unit_test(R34_foreign_bytes_in_messages_are_harmless),
		cmocka_unit_test(R34_wildcards_have_sharp_edges),
		cmocka_unit_test(ports_and_addresses_are_exact),
		cmocka_unit_test(the_longest_entry_fits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
