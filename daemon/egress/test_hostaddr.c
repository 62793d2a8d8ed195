/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/egress/hostaddr.h"

#include <ifaddrs.h>
#include <netinet/in.h>
#include <string.h>
#include <unistd.h>

#include "common/scope.h"
#include "tests/test.h"

static enum netaddr_class classify(int fd, const char *text)
{
	struct netaddr address;

	assert_true(netaddr_parse(text, strlen(text), &address));
	return hostaddr_classify(fd, &address);
}

static void R34_what_the_form_says_needs_no_kernel(void **state)
{
	(void)state;
	assert_int_equal(classify(-1, "127.0.0.1"), NETADDR_LOOPBACK);
	assert_int_equal(classify(-1, "10.1.2.3"), NETADDR_PRIVATE);
	assert_int_equal(classify(-1, "169.254.169.254"), NETADDR_METADATA);
	assert_int_equal(classify(-1, "::ffff:127.0.0.1"), NETADDR_LOOPBACK);
}

static void R34_without_an_answer_nothing_is_public(void **state)
{
	int pair[2];

	(void)state;
	assert_int_equal(classify(-1, "93.184.216.34"), NETADDR_RESERVED);
	/* Nobody answers there. */
	assert_int_equal(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, pair), 0);
	assert_int_equal(classify(pair[0], "93.184.216.34"), NETADDR_RESERVED);
	(void)close(pair[0]);
	(void)close(pair[1]);
}

/* Whatever public addresses this host has: it knows them for its own. */
static void R34_this_hosts_addresses_are_its_own(void **state)
{
	AUTO(auto_close) int fd = -1;
	struct ifaddrs *all = NULL;

	(void)state;
	assert_int_equal(hostaddr_open(&fd, NULL), 0);
	assert_int_equal(getifaddrs(&all), 0);
	for (const struct ifaddrs *at = all; at; at = at->ifa_next) {
		struct netaddr address;

		if (!at->ifa_addr || at->ifa_addr->sa_family != AF_INET)
			continue;
		address = netaddr_from_v4(
			(const uint8_t *)&((const struct sockaddr_in *)(const void *)at->ifa_addr)
				->sin_addr);
		assert_int_not_equal(hostaddr_classify(fd, &address), NETADDR_PUBLIC);
	}
	freeifaddrs(all);
	/* Asked twice, so that an answer is not taken for that to another question. */
	for (int i = 0; i < 3; i++) {
		enum netaddr_class class = classify(fd, "93.184.216.34");

		assert_true(class == NETADDR_PUBLIC || class == NETADDR_HOST);
		assert_int_equal(classify(fd, "255.255.255.255") == NETADDR_PUBLIC, 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(R34_what_the_form_says_needs_no_kernel),
		cmocka_unit_test(R34_without_an_answer_nothing_is_public),
		cmocka_unit_test(R34_this_hosts_addresses_are_its_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
