/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/broker/netlists.h"

#include <string.h>

#include "tests/test.h"

static const struct hostpattern *rule_for(const struct netlists *lists, const char *host,
					  uint16_t port, enum net_reason reason)
{
	struct net_verdict verdict;
	struct hostname name;

	assert_int_equal(hostname_parse(host, strlen(host), false, &name, NULL), 0);
	verdict = netpolicy_decide(&lists->policy, &name, port);
	assert_int_equal(verdict.reason, reason);
	return verdict.rule;
}

static void the_request_adds_to_the_profile(void **state)
{
	struct msg_net profile = { 0 };
	struct msg_net request = { 0 };
	struct netlists lists = { 0 };

	(void)state;
	assert_int_equal(string_list_add(&profile.allow, "*.example.org", NULL), 0);
	assert_int_equal(string_list_add(&profile.deny, "bad.example.org", NULL), 0);
	assert_int_equal(string_list_add(&request.allow, "bad.example.org", NULL), 0);
	assert_int_equal(string_list_add(&request.allow, "example.net:443", NULL), 0);
	assert_int_equal(string_list_add(&request.deny, "b.example.org", NULL), 0);
	assert_int_equal(netlists_make(&lists, &profile, &request, NULL), 0);

	assert_true(
		netlists_of_profile(&lists, rule_for(&lists, "a.example.org", 80, NET_ALLOWED)));
	assert_true(
		netlists_of_profile(&lists, rule_for(&lists, "bad.example.org", 80, NET_DENIED)));
	assert_false(
		netlists_of_profile(&lists, rule_for(&lists, "b.example.org", 80, NET_DENIED)));
	assert_false(
		netlists_of_profile(&lists, rule_for(&lists, "example.net", 443, NET_ALLOWED)));
	assert_null(rule_for(&lists, "example.net", 80, NET_NOT_LISTED));

	netlists_deinit(&lists);
	string_list_deinit(&profile.allow);
	string_list_deinit(&profile.deny);
	string_list_deinit(&request.allow);
	string_list_deinit(&request.deny);
}

/* A port of the host's loopback is forwarded; what the proxies themselves listen on is not. */
static void ports(void **state)
{
	uint32_t good[] = { 8080, 1, 65535, 8080 };
	uint32_t taken[] = { 3128, 1080 };
	struct msg_net request = { 0 };
	const struct msg_net profile = { 0 };
	struct netlists lists = { 0 };
	struct error err = ERROR_INIT;

	(void)state;
	request.forward = (struct port_list){ .items = good, .count = 4 };
	assert_int_equal(netlists_make(&lists, &profile, &request, NULL), 0);
	assert_int_equal(lists.policy.forward_count, 3);
	netlists_deinit(&lists);
	for (size_t i = 0; i < 2; i++) {
		request.forward = (struct port_list){ .items = &taken[i], .count = 1 };
		assert_int_equal(netlists_make(&lists, &profile, &request, &err), -ERR_INVALID);
		assert_non_null(strstr(err.message, "params.net.forward"));
		netlists_deinit(&lists);
	}
}

static void what_is_wrong_is_named(void **state)
{
	struct msg_net request = { 0 };
	struct msg_net profile = { 0 };
	struct netlists lists = { 0 };
	struct error err = ERROR_INIT;

	(void)state;
	assert_int_equal(string_list_add(&request.deny, "a*b", NULL), 0);
	assert_int_equal(netlists_make(&lists, &profile, &request, &err), -ERR_INVALID);
	assert_non_null(strstr(err.message, "params.net.deny"));
	netlists_deinit(&lists);
	assert_int_equal(string_list_add(&profile.allow, "*", NULL), 0);
	assert_int_equal(netlists_make(&lists, &profile, &request, &err), -ERR_INVALID);
	assert_non_null(strstr(err.message, "profile: net.allow"));
	netlists_deinit(&lists);
	string_list_deinit(&request.deny);
	string_list_deinit(&profile.allow);
}

static void what_is_shown_is_in_its_usual_form(void **state)
{
	struct netlists lists = { 0 };
	const char *allow[] = { "Example.ORG.:443", "*.b.test+private", "[::1]:80" };
	const char *deny[] = { "a.b.test" };
	uint32_t ports[] = { 8080, 5432 };
	const struct msg_net profile = { .deny = { .items = (char **)(uintptr_t)deny,
						   .count = 1 } };
	const struct msg_net request = { .allow = { .items = (char **)(uintptr_t)allow,
						    .count = 3 },
					 .forward = { .items = ports, .count = 2 } };
	struct msg_net *shown = NULL;

	(void)state;
	assert_int_equal(netlists_show(&lists.policy, &shown, NULL), 0);
	assert_null(shown);
	netlists_show_free(shown);
	assert_int_equal(netlists_make(&lists, &profile, &request, NULL), 0);
	assert_int_equal(netlists_show(&lists.policy, &shown, NULL), 0);
	assert_int_equal(shown->allow.count, 3);
	assert_string_equal(shown->allow.items[0], "example.org:443");
	assert_string_equal(shown->allow.items[1], "*.b.test+private");
	assert_string_equal(shown->allow.items[2], "[::1]:80");
	assert_int_equal(shown->deny.count, 1);
	assert_string_equal(shown->deny.items[0], "a.b.test");
	assert_int_equal(shown->forward.count, 2);
	assert_int_equal(shown->forward.items[0], 5432);
	assert_int_equal(shown->forward.items[1], 8080);
	netlists_show_free(shown);
	netlists_deinit(&lists);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_request_adds_to_the_profile),
		cmocka_unit_test(ports),
		cmocka_unit_test(what_is_wrong_is_named),
		cmocka_unit_test(what_is_shown_is_in_its_usual_form),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
