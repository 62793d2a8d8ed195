/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/wire/spawnop.h"

#include "tests/test.h"

#include <errno.h>
#include <string.h>

#include "common/policy.h"
#include "common/scope.h"

static struct grant_terms terms_good(void)
{
	return (struct grant_terms){ .uid = 7,
				     .net = NET_HOST,
				     .stdio = { 1, STDIO_KIND_ALL, STDIO_KIND_PIPE } };
}

/* One good message of each kind; a test changes one thing and expects a refusal. */
static struct op_message op_good(enum op_kind kind)
{
	struct op_message message = { .size = (uint32_t)op_message_size(kind), .kind = kind };

	if (kind == OP_JOB_START)
		message.u.start = (struct op_start){ .plan_bytes = 1,
						     .engine = ENGINE_BWRAP,
						     .room = ROOM_EGRESS_DENIED,
						     .argc = 1 };
	if (kind == OP_JOB_SIGNAL)
		message.u.signal.signo = 15;
	if (kind == OP_GRANT_CREATE)
		message.u.grant = terms_good();
	return message;
}

static struct link_message link_good(enum link_kind kind)
{
	struct link_message message = { .size = (uint32_t)link_message_size(kind), .kind = kind };

	if (kind == LINK_CONFIG) {
		message.u.config = (struct link_config){ .version = SPAWNOP_VERSION,
							 .mode = MODE_USER,
							 .engines = 1 << ENGINE_BWRAP };
		memcpy(message.u.config.text, "A=b\0C=\0\0", 8);
	}
	if (kind == LINK_JOB_FAILED || kind == LINK_ERROR)
		message.u.failure.kind = ERR_SYSTEM;
	if (kind == LINK_JOB_ENDED)
		message.u.ended.reason = EXIT_EXITED;
	if (kind == LINK_JOB_ENTRY)
		message.u.entry.state = JOB_OPEN;
	if (kind == LINK_JOB_GUARD) {
		message.u.guard.kind = GUARD_NEWS_REPAIRED;
		message.u.guard.what.job = 1;
		message.u.guard.what.path[0] = '/';
	}
	if (kind == LINK_JOB_FOUND)
		message.u.found.entry.state = JOB_RUNNING;
	if (kind == LINK_GRANT_ENTRY) {
		message.u.grant_entry.state = GRANT_OPEN;
		message.u.grant_entry.terms = terms_good();
	}
	return message;
}

static struct report_message report_good(enum report_kind kind)
{
	struct report_message message = { .size = (uint32_t)report_message_size(kind),
					  .kind = kind };

	if (kind <= REPORT_PLACEHOLDER_SKIPPED)
		memcpy(message.u.placeholder.path, "/x", 3);
	if (kind == REPORT_FAILED)
		message.u.failure.kind = ERR_SETUP_FAILED;
	if (kind == REPORT_EXITED)
		message.u.exited.reason = EXIT_LOST;
	if ((kind >= REPORT_MASK_REPAIRED && kind <= REPORT_NAME_APPEARED) ||
	    kind == REPORT_MASK_GONE) {
		message.u.guard.job = 1;
		message.u.guard.path[0] = '/';
	}
	if (kind == REPORT_NAME_APPEARED)
		message.u.guard.action = GUARD_REPORTED;
	if (kind >= REPORT_GUARD_WATCHES && kind <= REPORT_GUARD_HOLDS)
		message.u.number = 1;
	if (kind == REPORT_BUILT)
		message.u.built.mounts = 1;
	return message;
}

static void every_kind_passes_with_its_own_size_only(void **state)
{
	(void)state;
	for (uint32_t kind = 1; kind < OP_KIND_COUNT; kind++) {
		struct op_message message = op_good((enum op_kind)kind);

		assert_int_equal(op_message_check(&message, message.size, NULL), 0);
		assert_int_equal(op_message_check(&message, message.size - 1, NULL),
				 -ERR_BAD_FRAME);
		assert_int_equal(op_message_check(&message, message.size + 1, NULL),
				 -ERR_BAD_FRAME);
		message.size++;
		assert_int_equal(op_message_check(&message, message.size, NULL), -ERR_BAD_FRAME);
	}
	for (uint32_t kind = 1; kind < LINK_KIND_COUNT; kind++) {
		struct link_message message = link_good((enum link_kind)kind);

		assert_int_equal(link_message_check(&message, message.size, NULL), 0);
		assert_int_equal(link_message_check(&message, message.size - 1, NULL),
				 -ERR_BAD_FRAME);
		message.size--;
		assert_int_equal(link_message_check(&message, message.size, NULL), -ERR_BAD_FRAME);
	}
	for (uint32_t kind = 1; kind < REPORT_KIND_COUNT; kind++) {
		struct report_message message = report_good((enum report_kind)kind);

		assert_int_equal(report_message_check(&message, message.size, NULL), 0);
		assert_int_equal(report_message_check(&message, message.size - 1, NULL),
				 -ERR_BAD_FRAME);
		message.size--;
		assert_int_equal(report_message_check(&message, message.size, NULL),
				 -ERR_BAD_FRAME);
	}
}

static void unknown_kinds_and_cut_headers(void **state)
{
	struct op_message op = op_good(OP_READY);
	struct link_message link = link_good(LINK_DONE);
	struct report_message report = report_good(REPORT_STARTED);
	static const uint32_t kinds[] = { 0, 1000, UINT32_MAX };

	(void)state;
	for (size_t size = 0; size < op.size; size++)
		assert_int_equal(op_message_check(&op, size, NULL), -ERR_BAD_FRAME);
	for (size_t size = 0; size < report.size; size++)
		assert_int_equal(report_message_check(&report, size, NULL), -ERR_BAD_FRAME);
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		op.kind = link.kind = report.kind = kinds[i];
		assert_int_equal(op_message_check(&op, op.size, NULL), -ERR_BAD_FRAME);
		assert_int_equal(link_message_check(&link, link.size, NULL), -ERR_BAD_FRAME);
		assert_int_equal(report_message_check(&report, report.size, NULL), -ERR_BAD_FRAME);
	}
	op.kind = OP_KIND_COUNT;
	link.kind = LINK_KIND_COUNT;
	report.kind = REPORT_KIND_COUNT;
	assert_int_equal(op_message_check(&op, op.size, NULL), -ERR_BAD_FRAME);
	assert_int_equal(link_message_check(&link, link.size, NULL), -ERR_BAD_FRAME);
	assert_int_equal(report_message_check(&report, report.size, NULL), -ERR_BAD_FRAME);
}

#define CHECKED(family, of_kind, change, expected)                                                \
	do {                                                                                      \
		struct family##_message message = family##_good(of_kind);                         \
		change;                                                                           \
		assert_int_equal(family##_message_check(&message, message.size, NULL), expected); \
	} while (0)
#define REFUSED(family, of_kind, change) CHECKED(family, of_kind, change, -ERR_BAD_FRAME)
#define TAKEN(family, of_kind, change) CHECKED(family, of_kind, change, 0)
#define FILL(field) memset(message.u.field, 'x', sizeof(message.u.field))

static void start_values(void **state)
{
	(void)state;
	REFUSED(op, OP_JOB_START, message.u.start.plan_bytes = 0);
	TAKEN(op, OP_JOB_START, message.u.start.plan_bytes = LIMIT_PLAN_BYTES);
	REFUSED(op, OP_JOB_START, message.u.start.plan_bytes = LIMIT_PLAN_BYTES + 1);
	REFUSED(op, OP_JOB_START, message.u.start.engine = ENGINE_DEFAULT);
	REFUSED(op, OP_JOB_START, message.u.start.engine = ENGINE_SEATBELT + 1);
	REFUSED(op, OP_JOB_START, message.u.start.room = 0);
	REFUSED(op, OP_JOB_START, message.u.start.room = ROOM_UNSUPPORTED + 1);
	REFUSED(op, OP_JOB_START, message.u.start.detached = 2);
	REFUSED(op, OP_JOB_START, message.u.start.argc = 0);
	TAKEN(op, OP_JOB_START, message.u.start.argc = LIMIT_ARGS_COUNT);
	REFUSED(op, OP_JOB_START, message.u.start.argc = LIMIT_ARGS_COUNT + 1);
	TAKEN(op, OP_JOB_START, message.u.start.rules = LIMIT_RULES);
	REFUSED(op, OP_JOB_START, message.u.start.rules = LIMIT_RULES + 1);
	REFUSED(op, OP_JOB_START, message.u.start.suppressed = LIMIT_JSON_ELEMENTS + 1);
	REFUSED(op, OP_JOB_START, message.u.start.withheld = LIMIT_ARGS_COUNT + 1);
	REFUSED(op, OP_JOB_START, FILL(start.profile));
	REFUSED(op, OP_JOB_START, FILL(start.command));
	REFUSED(op, OP_JOB_START, FILL(start.label));
	REFUSED(op, OP_JOB_SIGNAL, message.u.signal.signo = 0);
	TAKEN(op, OP_JOB_SIGNAL, message.u.signal.signo = 64);
	REFUSED(op, OP_JOB_SIGNAL, message.u.signal.signo = 65);
}

static void config_values(void **state)
{
	(void)state;
	REFUSED(link, LINK_CONFIG, message.u.config.version++);
	REFUSED(link, LINK_CONFIG, message.u.config.mode = 0);
	REFUSED(link, LINK_CONFIG, message.u.config.mode = MODE_ROOT + 1);
	REFUSED(link, LINK_CONFIG, message.u.config.engines = 1 << ENGINE_DEFAULT);
	REFUSED(link, LINK_CONFIG, message.u.config.engines = 1u << 31);
	REFUSED(link, LINK_CONFIG, FILL(config.run_dir));
	REFUSED(link, LINK_CONFIG, FILL(config.state_dir));
	REFUSED(link, LINK_CONFIG, FILL(config.log_dir));
	REFUSED(link, LINK_CONFIG, FILL(config.config_dir));
	REFUSED(link, LINK_CONFIG, FILL(config.exec_dir));
	REFUSED(link, LINK_CONFIG, FILL(config.mask_dir));
	REFUSED(link, LINK_CONFIG, FILL(config.mask_file));
	REFUSED(link, LINK_CONFIG, FILL(config.engine_reason));
	REFUSED(link, LINK_CONFIG, FILL(config.text));
	REFUSED(link, LINK_CONFIG, memcpy(message.u.config.text, "=b\0", 4));
	REFUSED(link, LINK_CONFIG, memcpy(message.u.config.text, "Ab\0", 4));
	/* The last string ends with the last byte, so that no empty one follows. */
	REFUSED(link, LINK_CONFIG, {
		FILL(config.text);
		message.u.config.text[1] = '=';
		message.u.config.text[LINK_TEXT_BYTES - 1] = '\0';
	});
	TAKEN(link, LINK_CONFIG, {
		FILL(config.text);
		message.u.config.text[1] = '=';
		message.u.config.text[LINK_TEXT_BYTES - 2] = '\0';
		message.u.config.text[LINK_TEXT_BYTES - 1] = '\0';
	});
}

static void link_values(void **state)
{
	(void)state;
	REFUSED(link, LINK_CONN, message.u.conn.admin = 2);
	REFUSED(link, LINK_STATUS, message.u.status.recorder_up = 2);
	REFUSED(link, LINK_ERROR, message.u.failure.kind = 0);
	TAKEN(link, LINK_ERROR, message.u.failure.kind = ERROR_KIND_COUNT);
	REFUSED(link, LINK_ERROR, message.u.failure.kind = ERROR_KIND_COUNT + 1);
	REFUSED(link, LINK_JOB_FAILED, FILL(failure.stage));
	REFUSED(link, LINK_JOB_FAILED, FILL(failure.message));
	REFUSED(link, LINK_LEDGER_ENTRY, message.u.placeholder.made = 2);
	REFUSED(link, LINK_LEDGER_ENTRY, message.u.placeholder.kept = 2);
	REFUSED(link, LINK_LEDGER_ENTRY, FILL(placeholder.path));
	REFUSED(link, LINK_LEDGER, FILL(ledger.why));
	REFUSED(link, LINK_JOB_FOUND, message.u.found.entry.state = 0);
	REFUSED(link, LINK_JOB_FOUND, message.u.found.is_over = 2);
	/* With it the result counts, and there is none. */
	REFUSED(link, LINK_JOB_FOUND, message.u.found.is_over = 1);
	REFUSED(link, LINK_JOB_ENTRY, message.u.entry.state = 0);
	REFUSED(link, LINK_JOB_ENTRY, message.u.entry.state = JOB_ENDING + 1);
	REFUSED(link, LINK_JOB_ENTRY, message.u.entry.engine = ENGINE_SEATBELT + 1);
	REFUSED(link, LINK_JOB_ENTRY, message.u.entry.room = ROOM_UNSUPPORTED + 1);
	REFUSED(link, LINK_JOB_ENTRY, message.u.entry.detached = 2);
	REFUSED(link, LINK_JOB_ENTRY, FILL(entry.profile));
	REFUSED(link, LINK_JOB_ENTRY, FILL(entry.command));
	REFUSED(link, LINK_JOB_ENTRY, FILL(entry.label));
}

static void exit_records(void **state)
{
	(void)state;
	TAKEN(report, REPORT_BUILT, message.u.built.mounts = LIMIT_TEMPLATE_MOUNTS);
	REFUSED(report, REPORT_BUILT, message.u.built.mounts = LIMIT_TEMPLATE_MOUNTS + 1);
	REFUSED(report, REPORT_BUILT, message.u.built.mounts = 0);
	REFUSED(report, REPORT_EXITED, message.u.exited.reason = 0);
	REFUSED(report, REPORT_EXITED, message.u.exited.reason = EXIT_LOST + 1);
	REFUSED(report, REPORT_EXITED, message.u.exited.code = 1);
	REFUSED(report, REPORT_EXITED, message.u.exited.signal = 9);
	REFUSED(report, REPORT_EXITED, message.u.exited.core_dumped = 2);
	TAKEN(link, LINK_JOB_ENDED, message.u.ended.code = 255);
	REFUSED(link, LINK_JOB_ENDED, message.u.ended.code = 256);
	REFUSED(link, LINK_JOB_ENDED, message.u.ended.code = -1);
	REFUSED(link, LINK_JOB_ENDED, message.u.ended.signal = 1);
	REFUSED(link, LINK_JOB_ENDED, message.u.ended.reason = EXIT_SIGNALED);
	TAKEN(link, LINK_JOB_ENDED, {
		message.u.ended.reason = EXIT_SIGNALED;
		message.u.ended.signal = 64;
	});
	REFUSED(link, LINK_JOB_ENDED, {
		message.u.ended.reason = EXIT_SIGNALED;
		message.u.ended.signal = 65;
	});
	REFUSED(link, LINK_JOB_ENDED, {
		message.u.ended.reason = EXIT_SIGNALED;
		message.u.ended.signal = 9;
		message.u.ended.code = 137;
	});
}

static void placeholders(void **state)
{
	(void)state;
	REFUSED(report, REPORT_PLACEHOLDER_MADE, message.u.placeholder.path[0] = 'x');
	REFUSED(report, REPORT_PLACEHOLDER_MADE, message.u.placeholder.path[0] = '\0');
	REFUSED(report, REPORT_PLACEHOLDER_MADE, FILL(placeholder.path));
	TAKEN(report, REPORT_PLACEHOLDER_MADE, {
		memset(message.u.placeholder.path, '/', LIMIT_PATH_BYTES);
		message.u.placeholder.path[LIMIT_PATH_BYTES] = '\0';
	});
	TAKEN(report, REPORT_PLACEHOLDER_MADE, message.u.placeholder.node.handle_bytes = 128);
	REFUSED(report, REPORT_PLACEHOLDER_MADE, message.u.placeholder.node.handle_bytes = 129);
	REFUSED(report, REPORT_PLACEHOLDER_INTENT, message.u.placeholder.parent.handle_bytes = 129);
	REFUSED(report, REPORT_PLACEHOLDER_SKIPPED, message.u.placeholder.parent.reserved = 1);
}

static void R27_what_a_guard_says(void **state)
{
	(void)state;
	REFUSED(report, REPORT_MASK_REPAIRED, message.u.guard.job = 0);
	REFUSED(report, REPORT_MASK_REPAIRED, message.u.guard.action = GUARD_REPORTED);
	REFUSED(report, REPORT_MASK_REPAIRED, message.u.guard.path[0] = 'x');
	REFUSED(report, REPORT_MASK_LOST, message.u.guard.reserved = 1);
	REFUSED(report, REPORT_MASK_LOST, FILL(guard.path));
	REFUSED(report, REPORT_NAME_APPEARED, FILL(guard.kept_as));
	REFUSED(report, REPORT_NAME_APPEARED, memcpy(message.u.guard.kept_as, "a/b", 4));
	REFUSED(report, REPORT_NAME_APPEARED, message.u.guard.action = 0);
	REFUSED(report, REPORT_NAME_APPEARED, message.u.guard.action = GUARD_KILLED + 1);
	TAKEN(report, REPORT_NAME_APPEARED, message.u.guard.action = GUARD_KILLED);
	REFUSED(report, REPORT_GUARD_DONE, message.u.number = 0);
	REFUSED(report, REPORT_GUARD_HOLDS, message.u.number = 0);
	REFUSED(link, LINK_JOB_GUARD, message.u.guard.kind = 0);
	REFUSED(link, LINK_JOB_GUARD, message.u.guard.kind = GUARD_NEWS_APPEARED);
	REFUSED(link, LINK_JOB_GUARD, FILL(guard.what.path));
}

static void start_descriptors(void **state)
{
	struct start_message message = { .size = sizeof(message),
					 .fds = START_FD_ALL,
					 .umask = 022 };

	(void)state;
	assert_int_equal(start_message_check(&message, sizeof(message), 5, NULL), 0);
	assert_int_equal(start_message_check(&message, sizeof(message), 4, NULL), -ERR_BAD_FRAME);
	assert_int_equal(start_message_check(&message, sizeof(message), 6, NULL), -ERR_BAD_FRAME);
	assert_int_equal(start_message_check(&message, sizeof(message) - 1, 5, NULL),
			 -ERR_BAD_FRAME);
	message.fds = START_FD_ARGS;
	assert_int_equal(start_message_check(&message, sizeof(message), 1, NULL), 0);
	message.fds = START_FD_STDIN;
	assert_int_equal(start_message_check(&message, sizeof(message), 1, NULL), -ERR_BAD_FRAME);
	message.fds = START_FD_ARGS | 1 << 5;
	assert_int_equal(start_message_check(&message, sizeof(message), 2, NULL), -ERR_BAD_FRAME);
	message.fds = START_FD_ARGS;
	message.umask = 01000;
	assert_int_equal(start_message_check(&message, sizeof(message), 1, NULL), -ERR_BAD_FRAME);
	message.umask = 0777;
	message.reserved = 1;
	assert_int_equal(start_message_check(&message, sizeof(message), 1, NULL), -ERR_BAD_FRAME);
	message.reserved = 0;
	message.size = 0;
	assert_int_equal(start_message_check(&message, sizeof(message), 1, NULL), -ERR_BAD_FRAME);
}

static void names(void **state)
{
	enum engine_kind engine = ENGINE_DEFAULT;

	(void)state;
	for (int i = ENGINE_DEFAULT; i <= ENGINE_SEATBELT; i++) {
		assert_true(engine_parse(engine_name((enum engine_kind)i), &engine));
		assert_int_equal(engine, i);
	}
	assert_false(engine_parse("docker", &engine));
	assert_false(engine_parse("unknown", &engine));
	assert_string_equal(engine_name((enum engine_kind)99), "unknown");
	assert_string_equal(room_name(ROOM_OPTED_OUT), "opted-out");
	assert_string_equal(room_name(ROOM_UNSUPPORTED), "unsupported");
	assert_string_equal(exit_reason_name(EXIT_OOM), "oom");
	assert_string_equal(exit_reason_name(EXIT_LOST), "lost");
	assert_string_equal(daemon_mode_name(MODE_ROOT), "root");
	assert_string_equal(job_state_name(JOB_ENDING), "ending");
	assert_string_equal(job_state_name((enum job_state)7), "unknown");
}

static void failures_keep_kind_errno_and_text(void **state)
{
	struct error err = ERROR_INIT;
	struct error back = ERROR_INIT;
	struct failure failure;

	(void)state;
	(void)error_set(&err, ERR_SETUP_FAILED, EACCES, "bind '/x'");
	failure_set(&failure, &err, "bwrap");
	assert_string_equal(failure.stage, "bwrap");
	assert_int_equal(failure_to_error(&failure, &back), -ERR_SETUP_FAILED);
	assert_int_equal(back.errnum, EACCES);
	assert_string_equal(back.message, err.message);
	assert_int_equal(failure_to_error(&failure, NULL), -ERR_SETUP_FAILED);

	error_clear(&err);
	failure_set(&failure, &err, NULL);
	assert_int_equal(failure.kind, ERR_SYSTEM);
	assert_string_equal(failure.stage, "");
	failure_set(&failure, &err, "a stage name much longer than what fits into the record");
	assert_int_equal(strlen(failure.stage), sizeof(failure.stage) - 1);
}

static void R29_terms_are_checked(void **state)
{
	struct op_message message = op_good(OP_GRANT_CREATE);

	(void)state;
	for (int change = 0; change < 5; change++) {
		message.u.grant = terms_good();
		if (change == 0)
			message.u.grant.net = NET_NONE;
		if (change == 1)
			message.u.grant.net = NET_HOST + 1;
		if (change == 2)
			message.u.grant.stdio[2] = 0;
		if (change == 3)
			message.u.grant.stdio[0] = STDIO_KIND_ALL + 1;
		if (change == 4)
			memset(message.u.grant.command, 'x', sizeof(message.u.grant.command));
		assert_int_equal(op_message_check(&message, message.size, NULL), -ERR_BAD_FRAME);
	}
	message = op_good(OP_EVENTS);
	message.u.events.everybody = 2;
	assert_int_equal(op_message_check(&message, message.size, NULL), -ERR_BAD_FRAME);
	message = op_good(OP_JOB_START);
	message.u.start.grant.has_grant = 2;
	assert_int_equal(op_message_check(&message, message.size, NULL), -ERR_BAD_FRAME);
}

static void names_of_kinds(void **state)
{
	enum stdio_kind kind;

	(void)state;
	for (uint32_t bit = 1; bit < STDIO_KIND_ALL; bit <<= 1) {
		assert_true(stdio_kind_parse(stdio_kind_name((enum stdio_kind)bit), &kind));
		assert_int_equal(kind, bit);
	}
	assert_false(stdio_kind_parse("door", &kind));
	assert_string_equal(grant_state_name(GRANT_EXPIRED), "expired");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_kind_passes_with_its_own_size_only),
		cmocka_unit_test(R29_terms_are_checked),
		cmocka_unit_test(names_of_kinds),
		cmocka_unit_test(unknown_kinds_and_cut_headers),
		cmocka_unit_test(start_values),
		cmocka_unit_test(config_values),
		cmocka_unit_test(link_values),
		cmocka_unit_test(exit_records),
		cmocka_unit_test(placeholders),
		cmocka_unit_test(R27_what_a_guard_says),
		cmocka_unit_test(start_descriptors),
		cmocka_unit_test(names),
		cmocka_unit_test(failures_keep_kind_errno_and_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
