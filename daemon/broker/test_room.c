/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/broker/room.h"

#include <string.h>

#include "tests/test.h"

static const struct link_config works = { .engines = 1u << ENGINE_NATIVE };
static const struct link_config broken = { .engine_reason = "FSBOX_FORCE_UNAVAILABLE is set" };

static void check(enum net_mode net, enum net_mode usual, bool asked, bool granted,
		  enum room_kind want)
{
	const struct room_input input = {
		.net = net, .usual = usual, .asked = asked, .granted = granted, .config = &works
	};
	enum room_kind room = ROOM_UNSUPPORTED;

	assert_int_equal(room_choose(&room, &input, NULL), 0);
	assert_string_equal(room_name(room), room_name(want));
}

static void rooms(void **state)
{
	(void)state;
	check(NET_NONE, NET_NONE, false, false, ROOM_EGRESS_DENIED);
	check(NET_NONE, NET_HOST, true, false, ROOM_EGRESS_DENIED);
	check(NET_PROXY, NET_NONE, true, false, ROOM_EGRESS_ALLOWLIST);
	check(NET_PROXY, NET_PROXY, false, false, ROOM_EGRESS_ALLOWLIST);
	check(NET_HOST, NET_HOST, false, false, ROOM_EGRESS_OPEN);
	check(NET_HOST, NET_HOST, true, false, ROOM_EGRESS_OPEN);
	check(NET_HOST, NET_NONE, true, false, ROOM_OPTED_OUT);
	check(NET_HOST, NET_PROXY, true, false, ROOM_OPTED_OUT);
	check(NET_HOST, NET_NONE, true, true, ROOM_GRANTED_EGRESS);
	check(NET_PROXY, NET_NONE, true, true, ROOM_GRANTED_EGRESS);
}

/* Neither wanting no room nor holding a grant is a way round a mechanism that does not work. */
static void broken_refuses_everybody(void **state)
{
	struct room_input input = { .net = NET_HOST, .asked = true, .config = &broken };
	enum room_kind room = ROOM_EGRESS_DENIED;
	struct error err = ERROR_INIT;

	(void)state;
	assert_int_equal(room_choose(&room, &input, &err), -ERR_ENGINE_UNAVAILABLE);
	assert_non_null(strstr(err.message, "FSBOX_FORCE_UNAVAILABLE"));
	input.granted = true;
	assert_int_equal(room_choose(&room, &input, NULL), -ERR_ENGINE_UNAVAILABLE);
	assert_int_equal(room, ROOM_EGRESS_DENIED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rooms),
		cmocka_unit_test(broken_refuses_everybody),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
