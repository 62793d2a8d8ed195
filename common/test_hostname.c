/* SPDX-License-Identifier: Apache-2.0 */
#include "common/hostname.h"

#include <string.h>

#include "common/scope.h"
#include "tests/test.h"

static void R34_one_name_has_one_form(void **state)
{
	static const struct {
		const char *text;
		const char *name;
		int family;
	} cases[] = {
		{ "example.org", "example.org", 0 },
		{ "EXAMPLE.Org", "example.org", 0 },
		{ "example.org.", "example.org", 0 },
		{ "localhost", "localhost", 0 },
		{ "xn--bcher-kva.example", "xn--bcher-kva.example", 0 },
		{ "my_bucket.s3.example", "my_bucket.s3.example", 0 },
		{ "1e100.net", "1e100.net", 0 },
		{ "4.example", "4.example", 0 },
		{ "0x7f.example", "0x7f.example", 0 },
		{ "x.0y", "x.0y", 0 },
		{ "192.0.2.1", "192.0.2.1", 4 },
		{ "[2001:DB8::1]", "2001:db8::1", 6 },
		{ "[::ffff:192.0.2.1]", "192.0.2.1", 4 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct hostname host;
		struct error err = ERROR_INIT;

		if (hostname_parse(cases[i].text, strlen(cases[i].text), false, &host, &err) < 0)
			fail_msg("%s: %s", cases[i].text, err.message);
		assert_string_equal(host.name, cases[i].name);
		assert_int_equal(host.address.family, cases[i].family);
	}
}

static void R34_odd_hosts_are_refused(void **state)
{
	static const char *const odd[] = {
		"",
		".",
		"..",
		".example.org",
		"example..org",
		"example.org..",
		"-a.example",
		"a-.example",
		"exa mple.org",
		"example.org\t",
		"example.org\r",
		"user@example.org",
		"user:pass@example.org",
		"example.org@evil.test",
		"example.org%00.evil.test",
		"example.org/",
		"example.org#x",
		"example.org?x",
		"example.org\\evil",
		"b\xc3\xbc"
		"cher.example",
		"example\xe3\x80\x82org",
		"\xef\xbc\x91\xef\xbc\x92\xef\xbc\x97.0.0.1",
		"127.1",
		"127.0.0.1.",
		"0x7f.1",
		"0x7F.0.0.1",
		"0X7f000001",
		"2130706433",
		"017700000001",
		"0177.0.0.1",
		"1.2.3.4.5",
		"a.1",
		"a.0x",
		"a.0x1f",
		"256.256.256.256",
		"::1",
		"[::1",
		"::1]",
		"[]",
		"[1.2.3.4]",
		"[::1%25lo]",
		"[::1]x",
		"[[::1]]",
		"*.example.org",
		"a,b",
	};
	struct hostname host;
	struct error err = ERROR_INIT;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(odd); i++) {
		error_clear(&err);
		if (hostname_parse(odd[i], strlen(odd[i]), false, &host, &err) != -ERR_INVALID)
			fail_msg("'%s' is taken", odd[i]);
		assert_int_equal(err.kind, ERR_INVALID);
	}
	assert_int_equal(hostname_parse("a\0b", 3, false, &host, NULL), -ERR_INVALID);
}

static void lengths_are_exact(void **state)
{
	char text[300];
	struct hostname host;

	(void)state;
	memset(text, 'a', sizeof(text));
	assert_int_equal(hostname_parse(text, 63, false, &host, NULL), 0);
	assert_int_equal(hostname_parse(text, 64, false, &host, NULL), -ERR_INVALID);
	for (size_t i = 50; i < sizeof(text); i += 51)
		text[i] = '.';
	assert_int_equal(hostname_parse(text, 253, false, &host, NULL), 0);
	text[254] = 'a';
	assert_int_equal(hostname_parse(text, 254, false, &host, NULL), -ERR_INVALID);
	text[253] = '.';
	assert_int_equal(hostname_parse(text, 254, false, &host, NULL), 0);
	assert_int_equal(strlen(host.name), 253);
}

static void bare_addresses_have_no_brackets(void **state)
{
	struct hostname host;

	(void)state;
	assert_int_equal(hostname_parse("::1", 3, true, &host, NULL), 0);
	assert_int_equal(host.address.family, 6);
	assert_int_equal(hostname_parse("[::1]", 5, true, &host, NULL), -ERR_INVALID);
}

static int authority(const char *text, uint16_t standard, struct hostname *host, uint16_t *port)
{
	return hostname_parse_authority(text, strlen(text), standard, host, port, NULL);
}

static void R34_authorities_are_host_and_port(void **state)
{
	static const char *const odd[] = {
		"",
		":80",
		"example.org:",
		"example.org:0",
		"a:65536",
		"a:080",
		"a:+80",
		"a:80 ",
		"a:8 0",
		"a:80:80",
		"::1:80",
		"[::1]80",
		"[::1]:",
		"[::1:80",
		"user@a:80",
		"user:pw@a:80",
		"a:80@b:443",
		"a:0x50",
		"a:99999999999999999",
		"http://a:80",
	};
	struct hostname host;
	uint16_t port = 0;

	(void)state;
	assert_int_equal(authority("Example.org:8080", 0, &host, &port), 0);
	assert_string_equal(host.name, "example.org");
	assert_int_equal(port, 8080);
	assert_int_equal(authority("example.org", 443, &host, &port), 0);
	assert_int_equal(port, 443);
	assert_int_equal(authority("example.org", 0, &host, &port), -ERR_INVALID);
	assert_int_equal(authority("[2001:db8::1]:65535", 0, &host, &port), 0);
	assert_string_equal(host.name, "2001:db8::1");
	assert_int_equal(port, 65535);
	assert_int_equal(authority("[2001:db8::1]", 80, &host, &port), 0);
	assert_int_equal(port, 80);
	for (size_t i = 0; i < ARRAY_SIZE(odd); i++)
		if (authority(odd[i], 80, &host, &port) == 0)
			fail_msg("'%s' is taken", odd[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(R34_one_name_has_one_form),
		cmocka_unit_test(R34_odd_hosts_are_refused),
		cmocka_unit_test(lengths_are_exact),
		cmocka_unit_test(bare_addresses_have_no_brackets),
		cmocka_unit_test(R34_authorities_are_host_and_port),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
