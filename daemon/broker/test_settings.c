/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/broker/settings.h"

#include <stdlib.h>
#include <string.h>

#include "common/context.h"
#include "tests/test.h"

struct room {
	union method_params params;
	struct profile profile;
	struct hostconf conf;
	struct link_config config;
	struct settings settings;
	struct error err;
};

static int set_up(void **state)
{
	struct room *room = calloc(1, sizeof(*room));

	assert_non_null(room);
	method_params_init(METHOD_SPAWN, &room->params);
	assert_int_equal(hostconf_init(&room->conf, NULL), 0);
	room->conf.max_net = NET_HOST;
	room->config.engines = 1u << ENGINE_BWRAP;
	*state = room;
	return 0;
}

static int tear_down(void **state)
{
	struct room *room = *state;

	method_params_deinit(METHOD_SPAWN, &room->params);
	hostconf_deinit(&room->conf);
	free(room);
	return 0;
}

static int make(struct room *room, enum profile_base base, bool root)
{
	const struct settings_input input = {
		.params = &room->params.spawn,
		.profile = &room->profile,
		.base = base,
		.conf = &room->conf,
		.config = &room->config,
		.root_peer = root,
	};

	error_clear(&room->err);
	return settings_make(&room->settings, &input, &room->err);
}

/* What cannot be done is refused by name, never passed over. */
static void test_not_in_this_version(void **state)
{
	struct room *room = *state;
	struct spawn_params *params = &room->params.spawn;
	struct msg_tty tty = { 24, 80 };
	char session[] = "s";

	assert_int_equal(settings_check(params, &room->err), 0);
	params->tty = &tty;
	assert_int_equal(settings_check(params, &room->err), -ERR_INVALID);
	assert_non_null(strstr(room->err.message, "params.tty"));
	params->tty = NULL;
	params->session = session;
	assert_int_equal(settings_check(params, &room->err), -ERR_INVALID);
	assert_non_null(strstr(room->err.message, "params.session"));
	params->session = NULL;
	params->net.loopback = true;
	assert_int_equal(settings_check(params, &room->err), -ERR_INVALID);
	assert_non_null(strstr(room->err.message, "net.loopback"));
	params->net.loopback = false;
	assert_int_equal(settings_check(params, &room->err), 0);
}

static void test_engines(void **state)
{
	struct room *room = *state;

	assert_int_equal(make(room, PROFILE_BASE_GENERIC, false), 0);
	assert_int_equal(room->settings.engine, ENGINE_BWRAP);
	room->params.spawn.engine = ENGINE_NATIVE;
	assert_int_equal(make(room, PROFILE_BASE_GENERIC, false), -ERR_ENGINE_UNAVAILABLE);
	room->params.spawn.engine = ENGINE_SEATBELT;
	assert_int_equal(make(room, PROFILE_BASE_GENERIC, false), -ERR_ENGINE_UNAVAILABLE);

	/* Supported but not available refuses, with the reason: nothing runs unconfined. */
	room->params.spawn.engine = ENGINE_DEFAULT;
	room->config.engines = 0;
	memcpy(room->config.engine_reason, "bwrap: not found", sizeof("bwrap: not found"));
	assert_int_equal(make(room, PROFILE_BASE_GENERIC, false), -ERR_ENGINE_UNAVAILABLE);
	assert_non_null(strstr(room->err.message, "bwrap: not found"));
}

static void test_network_cap_R11(void **state)
{
	struct room *room = *state;

	assert_int_equal(make(room, PROFILE_BASE_GENERIC, false), 0);
	assert_int_equal(room->settings.net, NET_NONE);
	assert_int_equal(room->settings.room, ROOM_EGRESS_DENIED);
	assert_int_equal(make(room, PROFILE_BASE_HOST, false), 0);
	assert_int_equal(room->settings.net, NET_NONE);
	room->params.spawn.net.mode = NET_CHOICE_HOST;
	assert_int_equal(make(room, PROFILE_BASE_GENERIC, false), 0);
	assert_int_equal(room->settings.net, NET_HOST);
	assert_int_equal(room->settings.room, ROOM_OPTED_OUT);
	room->conf.max_net = NET_PROXY;
	assert_int_equal(make(room, PROFILE_BASE_GENERIC, false), -ERR_NOT_AUTHORIZED);
	assert_non_null(strstr(room->err.message, "max-net = proxy"));
	room->params.spawn.net.mode = NET_CHOICE_NONE;
	assert_int_equal(make(room, PROFILE_BASE_GENERIC, false), 0);

	/* What a profile asks for is capped no less. */
	room->params.spawn.net.mode = NET_CHOICE_UNSET;
	room->profile.net.mode = NET_CHOICE_HOST;
	assert_int_equal(make(room, PROFILE_BASE_GENERIC, false), -ERR_NOT_AUTHORIZED);
	room->profile.net.mode = NET_CHOICE_UNSET;
	assert_int_equal(make(room, PROFILE_BASE_BOTMUX, false), -ERR_NOT_AUTHORIZED);
	room->conf.max_net = NET_HOST;
	assert_int_equal(make(room, PROFILE_BASE_BOTMUX, false), 0);
	assert_int_equal(room->settings.room, ROOM_EGRESS_OPEN);

	/* An installed profile speaks for the host; a file by its path for who names it. */
	room->profile.net.mode = NET_CHOICE_HOST;
	assert_int_equal(make(room, PROFILE_BASE_GENERIC, false), 0);
	assert_int_equal(room->settings.room, ROOM_EGRESS_OPEN);
	room->params.spawn.profile = strdup("/home/u/mine.json");
	assert_int_equal(make(room, PROFILE_BASE_GENERIC, false), 0);
	assert_int_equal(room->settings.room, ROOM_OPTED_OUT);
}

static void clear(struct string_list *list)
{
	string_list_deinit(list);
	memset(list, 0, sizeof(*list));
}

/* A list of hosts asks for the proxy, and goes with nothing else. */
static void test_lists_mean_the_proxy_R11(void **state)
{
	struct room *room = *state;
	struct msg_net *net = &room->params.spawn.net;

	assert_int_equal(string_list_add(&net->allow, "example.org", NULL), 0);
	assert_int_equal(make(room, PROFILE_BASE_GENERIC, false), 0);
	assert_int_equal(room->settings.net, NET_PROXY);
	assert_int_equal(room->settings.room, ROOM_EGRESS_ALLOWLIST);
	assert_int_equal(make(room, PROFILE_BASE_GENERIC, true), 0);
	net->mode = NET_CHOICE_NONE;
	assert_int_equal(make(room, PROFILE_BASE_GENERIC, false), -ERR_INVALID);
	net->mode = NET_CHOICE_HOST;
	assert_int_equal(make(room, PROFILE_BASE_GENERIC, false), -ERR_INVALID);
	net->mode = NET_CHOICE_UNSET;
	room->conf.max_net = NET_NONE;
	assert_int_equal(make(room, PROFILE_BASE_GENERIC, false), -ERR_NOT_AUTHORIZED);
	assert_non_null(strstr(room->err.message, "max-net = none"));
	room->conf.max_net = NET_HOST;
	clear(&net->allow);

	/* A denial alone asks for nothing, and is not passed over. */
	assert_int_equal(string_list_add(&net->deny, "example.org", NULL), 0);
	assert_int_equal(make(room, PROFILE_BASE_GENERIC, false), -ERR_INVALID);
	assert_int_equal(string_list_add(&room->profile.net.allow, "*.org", NULL), 0);
	assert_int_equal(make(room, PROFILE_BASE_GENERIC, false), 0);
	assert_int_equal(room->settings.net, NET_PROXY);
	clear(&net->deny);

	/* The request may lower what the profile has. */
	net->mode = NET_CHOICE_NONE;
	assert_int_equal(make(room, PROFILE_BASE_GENERIC, false), 0);
	assert_int_equal(room->settings.net, NET_NONE);
	net->mode = NET_CHOICE_UNSET;
	clear(&room->profile.net.allow);
}

static void test_forwarded_ports_are_a_way_out_R11(void **state)
{
	struct room *room = *state;
	struct msg_net *net = &room->params.spawn.net;
	uint32_t port = 80;

	net->forward = (struct port_list){ .items = &port, .count = 1 };
	for (int mode = NET_CHOICE_UNSET; mode <= NET_CHOICE_NONE; mode++) {
		net->mode = (enum net_choice)mode;
		assert_int_equal(make(room, PROFILE_BASE_GENERIC, false), 0);
		assert_int_equal(room->settings.net, NET_PROXY);
		assert_int_equal(room->settings.room, ROOM_EGRESS_ALLOWLIST);
	}
	room->conf.max_net = NET_NONE;
	assert_int_equal(make(room, PROFILE_BASE_GENERIC, false), -ERR_NOT_AUTHORIZED);
	assert_non_null(strstr(room->err.message, "forwarded ports"));
	memset(&net->forward, 0, sizeof(net->forward));
}

/* With one the cap is fsboxd's concern; without a network there is nothing to grant; users have none. */
static void test_grants_R29(void **state)
{
	struct room *room = *state;

	room->conf.max_net = NET_NONE;
	room->config.mode = MODE_SYSTEM;
	room->params.spawn.net.mode = NET_CHOICE_HOST;
	assert_int_equal(make(room, PROFILE_BASE_GENERIC, false), -ERR_NOT_AUTHORIZED);
	room->params.spawn.grant_request = true;
	assert_int_equal(make(room, PROFILE_BASE_GENERIC, false), 0);
	assert_int_equal(room->settings.room, ROOM_GRANTED_EGRESS);
	assert_int_equal(make(room, PROFILE_BASE_GENERIC, true), -ERR_NOT_AUTHORIZED);
	room->params.spawn.net.mode = NET_CHOICE_NONE;
	assert_int_equal(make(room, PROFILE_BASE_GENERIC, false), -ERR_INVALID);
	room->params.spawn.net.mode = NET_CHOICE_HOST;
	room->config.mode = MODE_USER;
	assert_int_equal(make(room, PROFILE_BASE_GENERIC, false), -ERR_GRANT_INVALID);
}

static void test_root_R19(void **state)
{
	struct room *room = *state;

	room->params.spawn.net.mode = NET_CHOICE_HOST;
	assert_int_equal(make(room, PROFILE_BASE_GENERIC, true), -ERR_NOT_AUTHORIZED);
	room->params.spawn.net.mode = NET_CHOICE_NONE;
	assert_int_equal(make(room, PROFILE_BASE_GENERIC, true), 0);
}

/* The request, else the profile, else the host. */
static void test_limits(void **state)
{
	struct room *room = *state;

	room->conf.default_timeout_ms = 3000;
	room->conf.default_pids = 300;
	room->conf.default_memory_bytes = 0;
	assert_int_equal(make(room, PROFILE_BASE_GENERIC, false), 0);
	assert_int_equal(room->settings.limits.wall_ms, 3000);
	assert_int_equal(room->settings.limits.pids, 300);
	assert_int_equal(room->settings.limits.memory_bytes, 0);
	room->profile.limits.wall_ms = 2000;
	assert_int_equal(make(room, PROFILE_BASE_GENERIC, false), 0);
	assert_int_equal(room->settings.limits.wall_ms, 2000);
	room->params.spawn.limits.wall_ms = 1000;
	assert_int_equal(make(room, PROFILE_BASE_GENERIC, false), 0);
	assert_int_equal(room->settings.limits.wall_ms, 1000);
}

static void test_protect(void **state)
{
	struct room *room = *state;

	assert_int_equal(make(room, PROFILE_BASE_GENERIC, false), 0);
	assert_true(room->settings.protect);
	assert_int_equal(make(room, PROFILE_BASE_HOST, false), 0);
	assert_false(room->settings.protect);
	room->profile.protect = TRISTATE_FALSE;
	assert_int_equal(make(room, PROFILE_BASE_GENERIC, false), 0);
	assert_false(room->settings.protect);
	room->profile.protect = TRISTATE_TRUE;
	assert_int_equal(make(room, PROFILE_BASE_HOST, false), 0);
	assert_true(room->settings.protect);
}

int main(void)
{
#define T(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		T(test_not_in_this_version),
		T(test_engines),
		T(test_network_cap_R11),
		T(test_lists_mean_the_proxy_R11),
		T(test_forwarded_ports_are_a_way_out_R11),
		T(test_grants_R29),
		T(test_root_R19),
		T(test_limits),
		T(test_protect),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
