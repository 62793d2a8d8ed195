/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/recorder/jsonline.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/wire/egressop.h"
#include "tests/test.h"

static struct event_message event_make(enum event_kind kind)
{
	struct event_message message = {
		.size = sizeof(message),
		.kind = kind,
		.time_ns = UINT64_C(1700000000123456789), /* 2023-11-14T22:13:20.123 */
		.uid = 1000,
	};

	return message;
}

static char *line_of(const struct event_message *message)
{
	struct buf buf = BUF_INIT(JSONLINE_BYTES);

	assert_int_equal(jsonline_event(&buf, message), 0);
	return buf_steal(&buf);
}

static void assert_text(const char *text, const char *json)
{
	struct buf buf = BUF_INIT(JSONLINE_BYTES);

	assert_int_equal(jsonline_text(&buf, text), 0);
	assert_string_equal(buf_text(&buf), json);
	buf_deinit(&buf);
}

static void text_has_one_reading(void **state)
{
	(void)state;
	assert_text("", "\"\"");
	assert_text("make -j2", "\"make -j2\"");
	assert_text("a\"b", "\"a\\\"b\"");
	assert_text("a\\x41", "\"a\\\\x5cx41\"");
	assert_text("one\ntwo\t\x1b[31m\x7f", "\"one\\u000atwo\\u0009\\u001b[31m\\u007f\"");
	assert_text("gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80",
		    "\"gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80\"");
}

static void text_escapes_what_is_not_utf8(void **state)
{
	(void)state;
	assert_text("\xff", "\"\\\\xff\"");
	assert_text("a\xc3", "\"a\\\\xc3\"");                     /* cut short */
	assert_text("\xc0\xaf", "\"\\\\xc0\\\\xaf\"");            /* overlong */
	assert_text("\xed\xa0\x80", "\"\\\\xed\\\\xa0\\\\x80\""); /* surrogate */
	assert_text("\xf4\x90\x80\x80", "\"\\\\xf4\\\\x90\\\\x80\\\\x80\"");
	assert_text("\xf8\x88\x80\x80\x80", "\"\\\\xf8\\\\x88\\\\x80\\\\x80\\\\x80\"");
}

static void text_escapes_what_turns_lines_round(void **state)
{
	(void)state;
	assert_text("\xe2\x80\xae.txt", "\"\\u202e.txt\"");
	assert_text("\xe2\x80\xa8", "\"\\u2028\"");
	assert_text("\xc2\x9b", "\"\\u009b\"");
	assert_text("\xef\xbb\xbf", "\"\\ufeff\"");
}

static void a_started_execution(void **state)
{
	struct event_message message = event_make(EVENT_EXECUTION_STARTED);
	char *line = NULL;

	(void)state;
	message.job = 7;
	message.pid = 4242;
	message.engine = ENGINE_BWRAP;
	message.room = ROOM_EGRESS_DENIED;
	message.argc = 3;
	message.rules = 43;
	message.suppressed = 1;
	message.withheld = 2;
	memset(message.args_hash, 0xab, 32);
	(void)snprintf(message.profile, sizeof(message.profile), "generic");
	(void)snprintf(message.command, sizeof(message.command), "make");
	line = line_of(&message);
	assert_string_equal(
		line,
		"{\"time\":\"2023-11-14T22:13:20.123Z\",\"event\":\"execution.started\",\"job\":7,"
		"\"uid\":1000,\"pid\":4242,\"engine\":\"bwrap\",\"room\":\"egress-denied\","
		"\"profile\":\"generic\",\"command\":\"make\",\"argc\":3,\"argsHash\":"
		"\"abababababababababababababababababababababababababababababababab\","
		"\"policyDigest\":"
		"\"0000000000000000000000000000000000000000000000000000000000000000\","
		"\"rules\":43,\"suppressed\":1,\"withheld\":2}\n");
	free(line);
}

static void a_finished_execution_has_its_record(void **state)
{
	struct event_message message = event_make(EVENT_EXECUTION_FINISHED);
	char *line = NULL;

	(void)state;
	message.job = 7;
	message.exited = (struct exit_record){
		.reason = EXIT_SIGNALED,
		.signal = 9,
		.wall_ms = 1500,
		.user_ms = 20,
		.sys_ms = 30,
		.max_rss_kib = 1024,
	};
	line = line_of(&message);
	assert_string_equal(
		line, "{\"time\":\"2023-11-14T22:13:20.123Z\",\"event\":\"execution.finished\","
		      "\"job\":7,\"uid\":1000,\"exited\":{\"reason\":\"signaled\",\"code\":0,"
		      "\"signal\":9,\"coreDumped\":false,\"wallMs\":1500,\"usage\":{"
		      "\"userMs\":20,\"sysMs\":30,\"maxRssKiB\":1024}}}\n");
	free(line);
}

static void a_refused_peer(void **state)
{
	struct event_message message = event_make(EVENT_PEER_REFUSED);
	char *line = NULL;

	(void)state;
	message.pid = 5;
	message.error_kind = ERR_CONFINED_PEER;
	(void)snprintf(message.detail, sizeof(message.detail), "mount namespace");
	line = line_of(&message);
	assert_string_equal(line,
			    "{\"time\":\"2023-11-14T22:13:20.123Z\",\"event\":\"peer.refused\","
			    "\"uid\":1000,\"pid\":5,\"error\":\"confined-peer\",\"detail\":"
			    "\"mount namespace\"}\n");
	free(line);
}

static void a_denied_connection(void **state)
{
	struct event_message message = event_make(EVENT_EGRESS_DENIED);
	char *line = NULL;

	(void)state;
	message.job = 7;
	message.egress.via = EGRESS_VIA_HTTP;
	message.egress.reason = NET_CLOSED_ADDRESS;
	message.egress.port = 443;
	(void)snprintf(message.egress.host, sizeof(message.egress.host), "a\"b\n");
	(void)snprintf(message.egress.address, sizeof(message.egress.address), "10.0.0.1");
	line = line_of(&message);
	assert_string_equal(
		line, "{\"time\":\"2023-11-14T22:13:20.123Z\",\"event\":\"egress.denied\","
		      "\"job\":7,\"uid\":1000,\"via\":\"http\",\"host\":\"a\\\"b\\u000a\","
		      "\"port\":443,\"address\":\"10.0.0.1\",\"reason\":\"closed-address\"}\n");
	free(line);
}

static void a_closed_connection_has_its_bytes(void **state)
{
	struct event_message message = event_make(EVENT_EGRESS_CLOSED);
	char *line = NULL;

	(void)state;
	message.egress = (struct event_egress){ .connection = 3,
						.via = EGRESS_VIA_SOCKS,
						.flags = EGRESS_ADDRESS_UNCHECKED,
						.port = 22,
						.sent_bytes = 10,
						.received_bytes = 20,
						.duration_ms = 30,
						.host = "example.org" };
	line = line_of(&message);
	assert_string_equal(line,
			    "{\"time\":\"2023-11-14T22:13:20.123Z\",\"event\":\"egress.closed\","
			    "\"uid\":1000,\"via\":\"socks\",\"host\":\"example.org\",\"port\":22,"
			    "\"addressUnchecked\":true,\"connection\":3,\"sentBytes\":10,"
			    "\"receivedBytes\":20,\"durationMs\":30}\n");
	free(line);
}

/* The worst that can be in a message still fits the ceiling that every caller uses. */
static void the_worst_message_fits(void **state)
{
	struct event_message message;

	(void)state;
	memset(&message, 0xff, sizeof(message));
	message.kind = EVENT_EXECUTION_FINISHED;
	message.pid = INT32_MAX;
	message.engine = ENGINE_SEATBELT;
	message.room = ROOM_EGRESS_ALLOWLIST;
	message.error_kind = ERR_COMMAND_NOT_EXECUTABLE;
	message.exited.reason = EXIT_SIGNALED;
	message.egress.via = EGRESS_VIA_FORWARD;
	message.egress.reason = NET_CLOSED_ADDRESS;
	memset(message.egress.host, 1, sizeof(message.egress.host));
	memset(message.egress.address, 1, sizeof(message.egress.address));
	message.egress.host[sizeof(message.egress.host) - 1] = '\0';
	message.egress.address[sizeof(message.egress.address) - 1] = '\0';
	memset(message.profile, 1, sizeof(message.profile) - 1);
	memset(message.command, 1, sizeof(message.command) - 1);
	memset(message.label, 1, sizeof(message.label) - 1);
	memset(message.detail, 1, sizeof(message.detail) - 1);
	message.profile[sizeof(message.profile) - 1] = '\0';
	message.command[sizeof(message.command) - 1] = '\0';
	message.label[sizeof(message.label) - 1] = '\0';
	message.detail[sizeof(message.detail) - 1] = '\0';
	for (uint32_t kind = 1; kind < EVENT_KIND_COUNT; kind++) {
		char *line = NULL;

		message.kind = kind;
		line = line_of(&message);
		assert_non_null(strchr(line, '\n'));
		assert_int_equal(strchr(line, '\n') - line, (long)strlen(line) - 1);
		free(line);
	}
}

static void lost_events_are_a_record(void **state)
{
	struct buf buf = BUF_INIT(JSONLINE_BYTES);

	(void)state;
	assert_int_equal(jsonline_lost(&buf, 0, 12, 28), 0);
	assert_string_equal(buf_text(&buf), "{\"time\":\"1970-01-01T00:00:00.000Z\",\"event\":"
					    "\"recorder.lost\",\"count\":12,\"detail\":"
					    "\"No space left on device\"}\n");
	buf_deinit(&buf);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(text_has_one_reading),
		cmocka_unit_test(text_escapes_what_is_not_utf8),
		cmocka_unit_test(text_escapes_what_turns_lines_round),
		cmocka_unit_test(a_started_execution),
		cmocka_unit_test(a_finished_execution_has_its_record),
		cmocka_unit_test(a_refused_peer),
		cmocka_unit_test(a_denied_connection),
		cmocka_unit_test(a_closed_connection_has_its_bytes),
		cmocka_unit_test(the_worst_message_fits),
		cmocka_unit_test(lost_events_are_a_record),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
