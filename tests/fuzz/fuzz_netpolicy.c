/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Bytes as an encoded network policy: refused, or the very bytes that encoding it gives again; then
 * decisions about a few hosts, where deny wins.
 */

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/limits.h"
#include "common/netpolicy.h"
#include "common/scope.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
	if (!holds)
		abort();
}

static void check_decision(const struct netpolicy *policy, const char *text, uint16_t port)
{
	struct hostname host;
	struct net_verdict verdict;
	bool denied = false;

	must(hostname_parse(text, strlen(text), false, &host, NULL) == 0);
	verdict = netpolicy_decide(policy, &host, port);
	for (size_t i = 0; i < policy->deny_count; i++)
		denied = denied || hostpattern_matches(&policy->deny[i], &host, port);
	must(denied == (verdict.reason == NET_DENIED));
	must((verdict.rule != NULL) == (verdict.reason != NET_NOT_LISTED));
	if (verdict.rule)
		must(hostpattern_matches(verdict.rule, &host, port));
	for (int class = 0; class < NETADDR_CLASS_COUNT; class ++) {
		struct netaddr other = { .family = 4, .bytes = { 9, 9, 9, 9 } };
		enum net_reason reason =
			netpolicy_judge(policy, &host, port, &verdict, &other, class);

		if (class != NETADDR_PUBLIC && !verdict.private_too)
			must(reason != NET_ALLOWED || netaddr_equal(&other, &host.address));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO(buf_deinit) struct buf again = BUF_INIT(LIMIT_EGRESS_POLICY_BYTES);
	struct netpolicy policy;
	struct error err = ERROR_INIT;

	if (netpolicy_decode(&policy, data, size, &err) < 0) {
		must(err.kind == ERR_BAD_FRAME);
		must(policy.allow_count == 0 && policy.forward_count == 0);
		return 0;
	}
	must(netpolicy_encode(&policy, &again, NULL) == 0);
	must(again.size == size && memcmp(again.data, data, size) == 0);
	check_decision(&policy, "example.org", 443);
	check_decision(&policy, "a.b", 80);
	check_decision(&policy, "127.0.0.1", 80);
	check_decision(&policy, "[2001:db8::1]", 1);
	netpolicy_deinit(&policy);
	return 0;
}
