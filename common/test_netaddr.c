/* SPDX-License-Identifier: Apache-2.0 */
#include "common/netaddr.h"

#include <string.h>

#include "common/scope.h"
#include "tests/test.h"

static struct netaddr parsed(const char *text)
{
	struct netaddr address = { 0 };

	if (!netaddr_parse(text, strlen(text), &address))
		fail_msg("'%s' is not read", text);
	return address;
}

static void R34_odd_spellings_are_no_addresses(void **state)
{
	static const char *const odd[] = {
		"",
		".",
		"1",
		"127.1",
		"127.0.1",
		"0x7f.0.0.1",
		"0x7f000001",
		"2130706433",
		"0177.0.0.1",
		"127.0.0.01",
		"00.0.0.0",
		"127.0.0.1.",
		".127.0.0.1",
		"127..0.1",
		"256.0.0.1",
		"1.2.3.4.5",
		"1.2.3.4 ",
		" 1.2.3.4",
		"+1.2.3.4",
		"-1.2.3.4",
		"1.2.3.1000",
		"::1%lo",
		"::1%1",
		"[::1]",
		":::1",
		"1:2:3:4:5:6:7",
		"::ffff:127.1",
		"::ffff:0177.0.0.1",
		"fe80::1%25eth",
		"::1/128",
		"12345::",
		"1:2:3:4:5:6:7:8:9",
		"127.0.0.1\n",
		"1,2,3,4",
		"\xd9\xa1.2.3.4",
		"::ffff:1.2.3.4.5",
	};
	struct netaddr address;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(odd); i++)
		if (netaddr_parse(odd[i], strlen(odd[i]), &address))
			fail_msg("'%s' is read", odd[i]);
	assert_false(netaddr_parse("1.2.3.4\0x", 9, &address));
}

static void the_usual_spelling_is_read_and_written(void **state)
{
	static const struct {
		const char *text;
		const char *canonical;
	} cases[] = {
		{ "0.0.0.0", "0.0.0.0" },
		{ "255.255.255.255", "255.255.255.255" },
		{ "192.0.2.1", "192.0.2.1" },
		{ "::", "::" },
		{ "2001:DB8:0:0:0:0:0:1", "2001:db8::1" },
		{ "2001:db8::0001", "2001:db8::1" },
		{ "::ffff:192.0.2.1", "192.0.2.1" },
		{ "::ffff:c000:201", "192.0.2.1" },
		{ "64:ff9b::192.0.2.1", "64:ff9b::c000:201" },
	};
	char text[NETADDR_TEXT_BYTES];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct netaddr address = parsed(cases[i].text);

		netaddr_format(&address, text);
		assert_string_equal(text, cases[i].canonical);
	}
}

struct classified {
	const char *text;
	enum netaddr_class class;
};

/* Both ends of each range, and what lies just outside. */
static const struct classified classified[] = {
	{ "8.8.8.8", NETADDR_PUBLIC },
	{ "1.1.1.1", NETADDR_PUBLIC },
	{ "0.0.0.0", NETADDR_UNSPECIFIED },
	{ "0.0.0.1", NETADDR_RESERVED },
	{ "9.255.255.255", NETADDR_PUBLIC },
	{ "10.0.0.0", NETADDR_PRIVATE },
	{ "10.255.255.255", NETADDR_PRIVATE },
	{ "11.0.0.0", NETADDR_PUBLIC },
	{ "100.63.255.255", NETADDR_PUBLIC },
	{ "100.64.0.0", NETADDR_CGNAT },
	{ "100.127.255.255", NETADDR_CGNAT },
	{ "100.128.0.0", NETADDR_PUBLIC },
	{ "100.100.100.200", NETADDR_METADATA },
	{ "126.255.255.255", NETADDR_PUBLIC },
	{ "127.0.0.1", NETADDR_LOOPBACK },
	{ "127.255.255.255", NETADDR_LOOPBACK },
	{ "128.0.0.0", NETADDR_PUBLIC },
	{ "168.63.129.16", NETADDR_METADATA },
	{ "168.63.129.17", NETADDR_PUBLIC },
	{ "169.253.255.255", NETADDR_PUBLIC },
	{ "169.254.0.1", NETADDR_LINK_LOCAL },
	{ "169.254.169.254", NETADDR_METADATA },
	{ "172.15.255.255", NETADDR_PUBLIC },
	{ "172.16.0.0", NETADDR_PRIVATE },
	{ "172.31.255.255", NETADDR_PRIVATE },
	{ "172.32.0.0", NETADDR_PUBLIC },
	{ "192.0.0.192", NETADDR_METADATA },
	{ "192.0.0.8", NETADDR_RESERVED },
	{ "192.0.2.1", NETADDR_RESERVED },
	{ "192.88.99.1", NETADDR_TUNNEL },
	{ "192.167.255.255", NETADDR_PUBLIC },
	{ "192.168.0.1", NETADDR_PRIVATE },
	{ "192.169.0.0", NETADDR_PUBLIC },
	{ "198.17.255.255", NETADDR_PUBLIC },
	{ "198.18.0.2", NETADDR_PRIVATE },
	{ "198.19.255.255", NETADDR_PRIVATE },
	{ "198.20.0.0", NETADDR_PUBLIC },
	{ "223.255.255.255", NETADDR_PUBLIC },
	{ "224.0.0.1", NETADDR_MULTICAST },
	{ "239.255.255.255", NETADDR_MULTICAST },
	{ "240.0.0.1", NETADDR_RESERVED },
	{ "255.255.255.255", NETADDR_MULTICAST },
	{ "::", NETADDR_UNSPECIFIED },
	{ "::1", NETADDR_LOOPBACK },
	{ "::2", NETADDR_RESERVED },
	{ "2606:4700::1111", NETADDR_PUBLIC },
	{ "2001:4860:4860::8888", NETADDR_PUBLIC },
	{ "2001:db8::1", NETADDR_RESERVED },
	{ "2001:0:1::1", NETADDR_TUNNEL },
	{ "3fff::1", NETADDR_RESERVED },
	{ "4000::1", NETADDR_RESERVED },
	{ "fc00::1", NETADDR_UNIQUE_LOCAL },
	{ "fdff::1", NETADDR_UNIQUE_LOCAL },
	{ "fd00:ec2::254", NETADDR_METADATA },
	{ "fd20:ce::254", NETADDR_METADATA },
	{ "fe80::1", NETADDR_LINK_LOCAL },
	{ "febf::1", NETADDR_LINK_LOCAL },
	{ "fec0::1", NETADDR_PRIVATE },
	{ "ff02::1", NETADDR_MULTICAST },
};

static void check_classes(const struct classified *cases, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct netaddr address = parsed(cases[i].text);

		if (netaddr_classify(&address) != cases[i].class)
			fail_msg("%s: found %s, wanted %s", cases[i].text,
				 netaddr_class_name(netaddr_classify(&address)),
				 netaddr_class_name(cases[i].class));
	}
}

static void R34_each_address_has_its_class(void **state)
{
	(void)state;
	check_classes(classified, ARRAY_SIZE(classified));
	assert_int_equal(netaddr_classify(&(struct netaddr){ 0 }), NETADDR_UNSPECIFIED);
}

static void R34_what_an_address_carries_counts(void **state)
{
	static const struct classified cases[] = {
		{ "::ffff:127.0.0.1", NETADDR_LOOPBACK },
		{ "::ffff:169.254.169.254", NETADDR_METADATA },
		{ "::ffff:8.8.8.8", NETADDR_PUBLIC },
		{ "64:ff9b::8.8.8.8", NETADDR_PUBLIC },
		{ "64:ff9b::127.0.0.1", NETADDR_LOOPBACK },
		{ "64:ff9b::10.0.0.1", NETADDR_PRIVATE },
		{ "64:ff9b::169.254.169.254", NETADDR_METADATA },
		{ "64:ff9b:1::8.8.8.8", NETADDR_PRIVATE },
		{ "2002:7f00:1::1", NETADDR_LOOPBACK },
		{ "2002:a9fe:a9fe::1", NETADDR_METADATA },
		{ "2002:808:808::1", NETADDR_TUNNEL },
		{ "2001:0:a00:1::1", NETADDR_TUNNEL },
		{ "::127.0.0.1", NETADDR_LOOPBACK },
		{ "::8.8.8.8", NETADDR_RESERVED },
		{ "2606:4700::5efe:10.0.0.1", NETADDR_PRIVATE },
		{ "2606:4700::200:5efe:127.0.0.1", NETADDR_LOOPBACK },
		{ "2606:4700::5efe:8.8.8.8", NETADDR_PUBLIC },
		{ "::ffff:0:127.0.0.1", NETADDR_RESERVED },
	};

	(void)state;
	check_classes(cases, ARRAY_SIZE(cases));
}

static void names_and_texts_are_there(void **state)
{
	(void)state;
	for (int class = 0; class < NETADDR_CLASS_COUNT; class ++) {
		assert_string_not_equal(netaddr_class_name(class), "unknown");
		assert_true(strlen(netaddr_class_text(class)) > 0);
	}
	assert_string_equal(netaddr_class_name(NETADDR_CLASS_COUNT), "unknown");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(R34_odd_spellings_are_no_addresses),
		cmocka_unit_test(the_usual_spelling_is_read_and_written),
		cmocka_unit_test(R34_each_address_has_its_class),
		cmocka_unit_test(R34_what_an_address_carries_counts),
		cmocka_unit_test(names_and_texts_are_there),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
