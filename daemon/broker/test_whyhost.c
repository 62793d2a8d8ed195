/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/broker/whyhost.h"

#include <string.h>

#include "tests/test.h"

static struct netlists lists;

static int set_up(void **state)
{
	struct msg_net profile = { 0 };
	struct msg_net request = { 0 };
	uint32_t port = 5432;

	(void)state;
	assert_int_equal(string_list_add(&profile.allow, "*.example.org", NULL), 0);
	assert_int_equal(string_list_add(&request.allow, "db.corp:5432+private", NULL), 0);
	assert_int_equal(string_list_add(&request.allow, "192.0.2.1", NULL), 0);
	assert_int_equal(string_list_add(&request.deny, "bad.example.org", NULL), 0);
	request.forward = (struct port_list){ .items = &port, .count = 1 };
	assert_int_equal(netlists_make(&lists, &profile, &request, NULL), 0);
	string_list_deinit(&profile.allow);
	string_list_deinit(&request.allow);
	string_list_deinit(&request.deny);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	netlists_deinit(&lists);
	return 0;
}

static void ask(enum net_mode mode, enum net_mode max_net, const char *host, const char *access,
		const char *entry, const char *origin, const char *hint)
{
	const struct whyhost input = { .mode = mode, .max_net = max_net, .lists = &lists };
	union method_result result;

	method_result_init(METHOD_WHY, &result);
	assert_int_equal(whyhost_explain(&input, host, &result.why, NULL), 0);
	assert_string_equal(result.why.access, access);
	assert_string_equal(result.why.entry != NULL ? result.why.entry : "", entry);
	assert_string_equal(result.why.origin != NULL ? result.why.origin : "", origin);
	if (strstr(result.why.hint, hint) == NULL)
		assert_string_equal(result.why.hint, hint);
	method_result_deinit(METHOD_WHY, &result);
}

static void the_deciding_entry(void **state)
{
	(void)state;
	ask(NET_PROXY, NET_HOST, "a.example.org", "allowed", "*.example.org", "profile",
	    "+private");
	ask(NET_PROXY, NET_HOST, "A.Example.ORG.:80", "allowed", "*.example.org", "profile",
	    "proxy");
	ask(NET_PROXY, NET_HOST, "bad.example.org:80", "denied", "bad.example.org", "request",
	    "the request's deny list");
	ask(NET_PROXY, NET_HOST, "example.org", "denied", "", "", "--allow-host 'example.org'");
	ask(NET_PROXY, NET_HOST, "db.corp:5432", "allowed", "db.corp:5432+private", "request",
	    "fail at once");
	ask(NET_PROXY, NET_HOST, "db.corp", "denied", "", "", "--allow-host 'db.corp'");
	ask(NET_PROXY, NET_HOST, "192.0.2.1:8", "allowed", "192.0.2.1", "request", "proxy");
	ask(NET_PROXY, NET_HOST, "2001:db8::1", "denied", "", "", "no entry fits");
	ask(NET_PROXY, NET_HOST, "[2001:db8::1]:80", "denied", "", "", "no entry fits");
}

static void the_loopback_is_the_jobs_own(void **state)
{
	(void)state;
	ask(NET_PROXY, NET_HOST, "localhost:5432", "allowed", "", "", "forwarded");
	ask(NET_PROXY, NET_HOST, "127.0.0.1:5433", "denied", "", "", "--forward 5433");
	ask(NET_NONE, NET_HOST, "127.0.0.1:80", "denied", "", "", "--forward 80");
	ask(NET_NONE, NET_HOST, "::1", "denied", "", "", "--forward 443");
	ask(NET_HOST, NET_HOST, "127.0.0.1:80", "allowed", "", "", "every host");
}

/* No advice that this host's configuration would refuse. */
static void what_would_help_is_what_may_be_had(void **state)
{
	(void)state;
	ask(NET_NONE, NET_HOST, "example.org", "denied", "", "", "--net host");
	ask(NET_NONE, NET_PROXY, "example.org", "denied", "", "",
	    "--allow-host 'example.org' opens the way to this host");
	ask(NET_NONE, NET_NONE, "example.org", "denied", "", "", "max-net = none");
}

static void what_is_no_host(void **state)
{
	static const char *const bad[] = { "",        "a b",           "http://a/", "a:0",
					   "a:65536", "*.example.org", "0x7f.1",    "user@a",
					   "a:80:80", "1.2.3" };
	const struct whyhost input = { .mode = NET_PROXY, .lists = &lists };

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		union method_result result;
		struct error err = ERROR_INIT;

		method_result_init(METHOD_WHY, &result);
		assert_int_equal(whyhost_explain(&input, bad[i], &result.why, &err), -ERR_INVALID);
		assert_non_null(strstr(err.message, "params.host"));
		method_result_deinit(METHOD_WHY, &result);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_deciding_entry),
		cmocka_unit_test(the_loopback_is_the_jobs_own),
		cmocka_unit_test(what_would_help_is_what_may_be_had),
		cmocka_unit_test(what_is_no_host),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
