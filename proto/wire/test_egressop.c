/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/wire/egressop.h"

#include <string.h>

#include "common/scope.h"
#include "tests/test.h"

static struct egress_link_message link_message(enum egress_link_kind kind)
{
	struct egress_link_message message = { .size = sizeof(message), .kind = kind };

	if (kind == EGRESS_CONFIG)
		message.u.config.version = EGRESSOP_VERSION;
	else
		message.job = 7;
	if (kind == EGRESS_JOB)
		message.u.job.max_connections = LIMIT_EGRESS_CONNECTIONS_PER_JOB;
	return message;
}

static int check_link(const struct egress_link_message *message, size_t fd_count)
{
	return egress_link_check(message, sizeof(*message), fd_count, NULL);
}

static void link_messages_are_checked(void **state)
{
	struct egress_link_message message;

	(void)state;
	message = link_message(EGRESS_CONFIG);
	assert_int_equal(check_link(&message, 0), 0);
	assert_int_equal(check_link(&message, 1), -ERR_BAD_FRAME);
	assert_int_equal(egress_link_check(&message, sizeof(message) - 1, 0, NULL), -ERR_BAD_FRAME);
	message.u.config.version++;
	assert_int_equal(check_link(&message, 0), -ERR_BAD_FRAME);
	message = link_message(EGRESS_CONFIG);
	message.u.config.upstream = EGRESS_UPSTREAM_HTTP;
	assert_int_equal(check_link(&message, 0), -ERR_BAD_FRAME);
	message.u.config.upstream_port = 3128;
	assert_int_equal(check_link(&message, 0), -ERR_BAD_FRAME);
	message.u.config.upstream_host[0] = 'a';
	assert_int_equal(check_link(&message, 0), 0);
	memset(message.u.config.upstream_host, 'a', sizeof(message.u.config.upstream_host));
	assert_int_equal(check_link(&message, 0), -ERR_BAD_FRAME);
	message = link_message(EGRESS_CONFIG);
	message.job = 1;
	assert_int_equal(check_link(&message, 0), -ERR_BAD_FRAME);

	message = link_message(EGRESS_JOB);
	assert_int_equal(check_link(&message, 2), 0);
	assert_int_equal(check_link(&message, 1), -ERR_BAD_FRAME);
	message.u.job.max_connections++;
	assert_int_equal(check_link(&message, 2), -ERR_BAD_FRAME);
	message.u.job.max_connections = 0;
	assert_int_equal(check_link(&message, 2), -ERR_BAD_FRAME);
	message = link_message(EGRESS_JOB);
	message.job = 0;
	assert_int_equal(check_link(&message, 2), -ERR_BAD_FRAME);

	message = link_message(EGRESS_END);
	assert_int_equal(check_link(&message, 0), 0);
	message.kind = EGRESS_LINK_KIND_COUNT;
	assert_int_equal(check_link(&message, 0), -ERR_BAD_FRAME);
	message.kind = 0;
	assert_int_equal(check_link(&message, 0), -ERR_BAD_FRAME);
}

static void R33_listener_messages_are_checked(void **state)
{
	struct egress_listener message = { .size = sizeof(message), .via = EGRESS_VIA_HTTP };

	(void)state;
	assert_int_equal(egress_listener_check(&message, sizeof(message), 1, NULL), 0);
	assert_int_equal(egress_listener_check(&message, sizeof(message), 0, NULL), -ERR_BAD_FRAME);
	assert_int_equal(egress_listener_check(&message, sizeof(message), 2, NULL), -ERR_BAD_FRAME);
	assert_int_equal(egress_listener_check(&message, 4, 1, NULL), -ERR_BAD_FRAME);
	message.port = 80;
	assert_int_equal(egress_listener_check(&message, sizeof(message), 1, NULL), -ERR_BAD_FRAME);
	message.via = EGRESS_VIA_FORWARD;
	assert_int_equal(egress_listener_check(&message, sizeof(message), 1, NULL), 0);
	message.port = 65536;
	assert_int_equal(egress_listener_check(&message, sizeof(message), 1, NULL), -ERR_BAD_FRAME);
	message.port = 0;
	assert_int_equal(egress_listener_check(&message, sizeof(message), 1, NULL), -ERR_BAD_FRAME);
	message.via = EGRESS_VIA_COUNT;
	assert_int_equal(egress_listener_check(&message, sizeof(message), 1, NULL), -ERR_BAD_FRAME);
}

static void R33_events_are_checked(void **state)
{
	struct egress_event good = { .size = sizeof(good), .kind = EGRESS_EVENT_DENIED };
	struct egress_event event = good;

	(void)state;
#define REFUSED(change)                                                                            \
	do {                                                                                       \
		event = good;                                                                      \
		change;                                                                            \
		assert_int_equal(egress_event_check(&event, sizeof(event), NULL), -ERR_BAD_FRAME); \
	} while (0)
	assert_int_equal(egress_event_check(&event, sizeof(event), NULL), 0);
	assert_int_equal(egress_event_check(&event, sizeof(event) - 1, NULL), -ERR_BAD_FRAME);
	REFUSED(event.kind = 0);
	REFUSED(event.kind = EGRESS_EVENT_KIND_COUNT);
	REFUSED(event.via = EGRESS_VIA_COUNT);
	REFUSED(event.port = 65536);
	REFUSED(event.reason = NET_REASON_COUNT);
	REFUSED(event.flags = EGRESS_EVENT_FLAGS_ALL + 1);
	REFUSED(event.address_family = 5);
	REFUSED(event.address_class = NETADDR_CLASS_COUNT);
	REFUSED(event.reserved[1] = 1);
	REFUSED(memset(event.host, 'a', sizeof(event.host)));
	REFUSED(memset(event.detail, 'a', sizeof(event.detail)));
#undef REFUSED
}

static void upstream_proxies_are_read(void **state)
{
	static const char *const odd[] = {
		"",
		"http://",
		"http:///",
		"https://p:1",
		"p:3128",
		"http://u@p:1",
		"http://p:0",
		"http://p:1/x",
		"socks5://[::1",
		"socks4://p:1",
		"http://127.1:8",
		"http://p:1//",
	};
	struct egress_config config = { .version = EGRESSOP_VERSION };
	struct error err = ERROR_INIT;

	(void)state;
	assert_int_equal(egress_upstream_parse(NULL, &config, &err), 0);
	assert_int_equal(config.upstream, EGRESS_UPSTREAM_NONE);
	assert_int_equal(egress_upstream_parse("http://Proxy.corp:3128/", &config, &err), 0);
	assert_int_equal(config.upstream, EGRESS_UPSTREAM_HTTP);
	assert_int_equal(config.upstream_port, 3128);
	assert_string_equal(config.upstream_host, "proxy.corp");
	assert_int_equal(egress_upstream_parse("socks5://[::1]", &config, &err), 0);
	assert_int_equal(config.upstream, EGRESS_UPSTREAM_SOCKS5);
	assert_int_equal(config.upstream_port, 1080);
	assert_string_equal(config.upstream_host, "::1");
	for (size_t i = 0; i < ARRAY_SIZE(odd); i++) {
		if (egress_upstream_parse(odd[i], &config, &err) != -ERR_CONFIG)
			fail_msg("'%s' is taken", odd[i]);
		assert_int_equal(config.upstream, EGRESS_UPSTREAM_NONE);
	}
}

static void everything_has_a_name(void **state)
{
	(void)state;
	for (int kind = EGRESS_EVENT_READY; kind < EGRESS_EVENT_KIND_COUNT; kind++)
		assert_string_not_equal(egress_event_name(kind), "unknown");
	for (int via = EGRESS_VIA_HTTP; via < EGRESS_VIA_COUNT; via++)
		assert_string_not_equal(egress_via_name(via), "unknown");
	assert_string_equal(egress_event_name(EGRESS_EVENT_KIND_COUNT), "unknown");
	assert_string_equal(egress_via_name(0), "unknown");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(link_messages_are_checked),
		cmocka_unit_test(R33_listener_messages_are_checked),
		cmocka_unit_test(R33_events_are_checked),
		cmocka_unit_test(upstream_proxies_are_read),
		cmocka_unit_test(everything_has_a_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
