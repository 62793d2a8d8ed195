/* SPDX-License-Identifier: Apache-2.0 */
#include "common/netpolicy.h"

#include <stdio.h>
#include <string.h>

#include "common/limits.h"
#include "common/scope.h"
#include "tests/test.h"

static void allow(struct netpolicy *policy, const char *text)
{
	assert_int_equal(netpolicy_allow(policy, text, strlen(text), NULL), 0);
}

static void deny(struct netpolicy *policy, const char *text)
{
	assert_int_equal(netpolicy_deny(policy, text, strlen(text), NULL), 0);
}

static struct netpolicy sample(void)
{
	struct netpolicy policy = NETPOLICY_INIT;

	allow(&policy, "example.org");
	allow(&policy, "*.example.org:443");
	allow(&policy, "db.corp+private");
	allow(&policy, "10.0.0.7:5432");
	allow(&policy, "169.254.169.254");
	deny(&policy, "secret.example.org");
	deny(&policy, "*.deep.example.org");
	deny(&policy, "8.8.4.4");
	assert_int_equal(netpolicy_forward(&policy, 8080, NULL), 0);
	assert_int_equal(netpolicy_forward(&policy, 22, NULL), 0);
	assert_int_equal(netpolicy_forward(&policy, 8080, NULL), 0);
	return policy;
}

static struct net_verdict decide(const struct netpolicy *policy, const char *text, uint16_t port,
				 struct hostname *host)
{
	assert_int_equal(hostname_parse(text, strlen(text), false, host, NULL), 0);
	return netpolicy_decide(policy, host, port);
}

static void R34_deny_wins_and_the_rest_is_closed(void **state)
{
	static const struct {
		const char *host;
		uint16_t port;
		enum net_reason reason;
	} cases[] = {
		{ "example.org", 1, NET_ALLOWED },
		{ "a.example.org", 443, NET_ALLOWED },
		{ "a.example.org", 80, NET_NOT_LISTED },
		{ "secret.example.org", 443, NET_DENIED },
		{ "SECRET.example.org.", 443, NET_DENIED },
		{ "x.deep.example.org", 443, NET_DENIED },
		{ "deep.example.org", 443, NET_ALLOWED },
		{ "evil.test", 443, NET_NOT_LISTED },
		{ "10.0.0.7", 5432, NET_ALLOWED },
		{ "10.0.0.7", 5433, NET_NOT_LISTED },
		{ "[::ffff:10.0.0.7]", 5432, NET_ALLOWED },
		{ "8.8.4.4", 443, NET_DENIED },
		{ "127.0.0.1", 443, NET_NOT_LISTED },
	};
	struct netpolicy policy = sample();
	struct hostname host;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_int_equal(decide(&policy, cases[i].host, cases[i].port, &host).reason,
				 cases[i].reason);
	assert_true(netpolicy_forwards(&policy, 22));
	assert_false(netpolicy_forwards(&policy, 80));
	netpolicy_deinit(&policy);
}

static enum net_reason judge(const struct netpolicy *policy, const char *text,
			     const char *address_text, uint16_t port)
{
	struct hostname host;
	struct net_verdict verdict = decide(policy, text, port, &host);
	struct netaddr address;

	assert_int_equal(verdict.reason, NET_ALLOWED);
	assert_true(netaddr_parse(address_text, strlen(address_text), &address));
	return netpolicy_judge(policy, &host, port, &verdict, &address, netaddr_classify(&address));
}

static void R34_names_lead_to_public_addresses_only(void **state)
{
	static const char *const closed[] = {
		"127.0.0.1",         "10.0.0.7",       "192.168.1.1",
		"169.254.169.254",   "169.254.1.1",    "100.64.0.1",
		"0.0.0.0",           "224.0.0.1",      "::1",
		"fd00::1",           "fe80::1",        "::ffff:127.0.0.1",
		"64:ff9b::10.0.0.1", "2002:7f00:1::1", "2001:0:1::1",
		"255.255.255.255",
	};
	struct netpolicy policy = sample();

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(closed); i++)
		assert_int_equal(judge(&policy, "example.org", closed[i], 443), NET_CLOSED_ADDRESS);
	assert_int_equal(judge(&policy, "example.org", "8.8.8.8", 443), NET_ALLOWED);
	assert_int_equal(judge(&policy, "example.org", "2606:4700::1", 443), NET_ALLOWED);
	assert_int_equal(judge(&policy, "example.org", "8.8.4.4", 443), NET_DENIED);
	assert_int_equal(judge(&policy, "example.org", "64:ff9b::8.8.4.4", 443), NET_DENIED);
	netpolicy_deinit(&policy);
}

static void R34_marks_and_literals_open_what_they_say(void **state)
{
	struct netpolicy policy = sample();

	(void)state;
	assert_int_equal(judge(&policy, "db.corp", "10.1.1.1", 5432), NET_ALLOWED);
	assert_int_equal(judge(&policy, "db.corp", "127.0.0.1", 5432), NET_ALLOWED);
	assert_int_equal(judge(&policy, "db.corp", "fd00::1", 5432), NET_ALLOWED);
	/* The mark is for private places; stealing a machine's identity is none of its meanings. */
	assert_int_equal(judge(&policy, "db.corp", "169.254.169.254", 80), NET_CLOSED_ADDRESS);
	assert_int_equal(judge(&policy, "db.corp", "0.0.0.0", 80), NET_CLOSED_ADDRESS);
	assert_int_equal(judge(&policy, "10.0.0.7", "10.0.0.7", 5432), NET_ALLOWED);
	assert_int_equal(judge(&policy, "10.0.0.7", "10.0.0.8", 5432), NET_CLOSED_ADDRESS);
	assert_int_equal(judge(&policy, "169.254.169.254", "169.254.169.254", 80), NET_ALLOWED);
	netpolicy_deinit(&policy);
}

static void bytes_and_back(void **state)
{
	AUTO(buf_deinit) struct buf bytes = BUF_INIT(LIMIT_EGRESS_POLICY_BYTES);
	AUTO(buf_deinit) struct buf again = BUF_INIT(LIMIT_EGRESS_POLICY_BYTES);
	struct netpolicy policy = sample();
	struct netpolicy decoded;

	(void)state;
	assert_int_equal(netpolicy_encode(&policy, &bytes, NULL), 0);
	assert_int_equal(netpolicy_decode(&decoded, bytes.data, bytes.size, NULL), 0);
	assert_int_equal(netpolicy_encode(&decoded, &again, NULL), 0);
	assert_int_equal(bytes.size, again.size);
	assert_memory_equal(bytes.data, again.data, bytes.size);
	netpolicy_deinit(&decoded);

	for (size_t size = 0; size < bytes.size; size++)
		assert_int_equal(netpolicy_decode(&decoded, bytes.data, size, NULL),
				 -ERR_BAD_FRAME);
	assert_int_equal(buf_add_byte(&bytes, 0), 0);
	assert_int_equal(netpolicy_decode(&decoded, bytes.data, bytes.size, NULL), -ERR_BAD_FRAME);
	netpolicy_deinit(&policy);
}

static int decode_text(const char *bytes, size_t size, struct error *err)
{
	struct netpolicy policy;
	int r = netpolicy_decode(&policy, bytes, size, err);

	netpolicy_deinit(&policy);
	return r;
}

#define DECODE(bytes, err) decode_text(bytes, sizeof(bytes) - 1, err)

static void only_canonical_bytes_are_taken(void **state)
{
	struct error err = ERROR_INIT;

	(void)state;
	assert_int_equal(DECODE("fsboxnp1\1\0\0\0\0\0\0\0\0\0\0\0\5\0a.org", &err), 0);
	assert_int_equal(DECODE("fsboxnp1\1\0\0\0\0\0\0\0\0\0\0\0\5\0A.org", &err), -ERR_BAD_FRAME);
	assert_int_equal(DECODE("fsboxnp1\1\0\0\0\0\0\0\0\0\0\0\0\6\0a.org.", &err),
			 -ERR_BAD_FRAME);
	assert_int_equal(DECODE("fsboxnp1\1\0\0\0\0\0\0\0\0\0\0\0\0\0", &err), -ERR_BAD_FRAME);
	assert_int_equal(DECODE("fsboxnp1\0\0\0\0\0\0\0\0\2\0\0\0\1\0\2\0", &err), 0);
	assert_int_equal(DECODE("fsboxnp1\0\0\0\0\0\0\0\0\2\0\0\0\2\0\2\0", &err), -ERR_BAD_FRAME);
	assert_int_equal(DECODE("fsboxnp1\0\0\0\0\0\0\0\0\1\0\0\0\0\0", &err), -ERR_BAD_FRAME);
	assert_int_equal(DECODE("fsboxnp1\377\377\377\377\0\0\0\0\0\0\0\0", &err), -ERR_BAD_FRAME);
	assert_int_equal(DECODE("fsboxnp2\0\0\0\0\0\0\0\0\0\0\0\0", &err), -ERR_BAD_FRAME);
}

static void R13_lists_have_exact_bounds(void **state)
{
	AUTO(buf_deinit) struct buf bytes = BUF_INIT(LIMIT_EGRESS_POLICY_BYTES);
	struct netpolicy policy = NETPOLICY_INIT;
	struct netpolicy decoded;
	char text[32];

	(void)state;
	for (int i = 0; i < LIMIT_HOST_PATTERNS; i++) {
		(void)snprintf(text, sizeof(text), "h%d.example", i);
		allow(&policy, text);
	}
	assert_int_equal(netpolicy_allow(&policy, "a", 1, NULL), -ERR_QUOTA_EXCEEDED);
	for (uint16_t port = LIMIT_FORWARDS; port > 0; port--)
		assert_int_equal(netpolicy_forward(&policy, port, NULL), 0);
	assert_int_equal(netpolicy_forward(&policy, 1000, NULL), -ERR_QUOTA_EXCEEDED);
	assert_int_equal(netpolicy_forward(&policy, 0, NULL), -ERR_INVALID);
	assert_int_equal(netpolicy_encode(&policy, &bytes, NULL), 0);
	assert_int_equal(netpolicy_decode(&decoded, bytes.data, bytes.size, NULL), 0);
	assert_int_equal(decoded.allow_count, LIMIT_HOST_PATTERNS);
	netpolicy_deinit(&decoded);
	bytes.data[8]++; /* one entry more than may be */
	assert_int_equal(netpolicy_decode(&decoded, bytes.data, bytes.size, NULL), -ERR_BAD_FRAME);
	netpolicy_deinit(&policy);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(R34_deny_wins_and_the_rest_is_closed),
		cmocka_unit_test(R34_names_lead_to_public_addresses_only),
		cmocka_unit_test(R34_marks_and_literals_open_what_they_say),
		cmocka_unit_test(bytes_and_back),
		cmocka_unit_test(only_canonical_bytes_are_taken),
		cmocka_unit_test(R13_lists_have_exact_bounds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
