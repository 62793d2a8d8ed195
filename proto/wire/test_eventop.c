/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/wire/eventop.h"

#include "tests/test.h"

#include <string.h>

static struct event_message good(void)
{
	return (struct event_message){ .size = sizeof(struct event_message),
				       .kind = EVENT_EXECUTION_FINISHED,
				       .engine = ENGINE_BWRAP,
				       .room = ROOM_EGRESS_DENIED,
				       .error_kind = ERR_NONE,
				       .exited = { .reason = EXIT_EXITED } };
}

static void every_kind_has_a_name_and_passes(void **state)
{
	struct event_message message = good();

	(void)state;
	for (uint32_t kind = EVENT_DAEMON_STARTED; kind < EVENT_KIND_COUNT; kind++) {
		message.kind = kind;
		assert_int_equal(event_message_check(&message, sizeof(message), NULL), 0);
		assert_string_not_equal(event_kind_name((enum event_kind)kind), "unknown");
	}
	assert_string_equal(event_kind_name(EVENT_EXECUTION_STARTED), "execution.started");
	assert_string_equal(event_kind_name((enum event_kind)0), "unknown");
	assert_string_equal(event_kind_name(EVENT_KIND_COUNT), "unknown");
}

static void sizes_and_kinds(void **state)
{
	struct event_message message = good();
	struct error err = ERROR_INIT;

	(void)state;
	assert_int_equal(event_message_check(&message, sizeof(message) - 1, &err), -ERR_BAD_FRAME);
	assert_int_equal(event_message_check(&message, 0, &err), -ERR_BAD_FRAME);
	message.size--;
	assert_int_equal(event_message_check(&message, sizeof(message), &err), -ERR_BAD_FRAME);
	message = good();
	message.kind = 0;
	assert_int_equal(event_message_check(&message, sizeof(message), &err), -ERR_BAD_FRAME);
	message.kind = EVENT_KIND_COUNT;
	assert_int_equal(event_message_check(&message, sizeof(message), &err), -ERR_BAD_FRAME);
}

#define REFUSED(change)                                                                \
	do {                                                                           \
		struct event_message message = good();                                 \
		change;                                                                \
		assert_int_equal(event_message_check(&message, sizeof(message), NULL), \
				 -ERR_BAD_FRAME);                                      \
	} while (0)

static void values_and_texts(void **state)
{
	(void)state;
	REFUSED(message.engine = ENGINE_SEATBELT + 1);
	REFUSED(message.room = ROOM_UNSUPPORTED + 1);
	REFUSED(message.error_kind = ERROR_KIND_COUNT + 1);
	REFUSED(message.exited.reason = EXIT_LOST + 1);
	REFUSED(message.exited.core_dumped = 2);
	REFUSED(message.guard_action = GUARD_KILLED + 1);
	REFUSED(memset(message.kept_as, 0x61, sizeof(message.kept_as)));
	REFUSED(message.urgent = 2);
	REFUSED(memset(message.profile, 'x', sizeof(message.profile)));
	REFUSED(memset(message.command, 'x', sizeof(message.command)));
	REFUSED(memset(message.label, 'x', sizeof(message.label)));
	REFUSED(memset(message.detail, 'x', sizeof(message.detail)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_kind_has_a_name_and_passes),
		cmocka_unit_test(sizes_and_kinds),
		cmocka_unit_test(values_and_texts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
