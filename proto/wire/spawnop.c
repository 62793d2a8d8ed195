/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/wire/spawnop.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/buf.h"
#include "common/rule.h"
#include "common/scope.h"

/* The request pipe has one reader that may rely on whole messages. */
_Static_assert(sizeof(struct op_message) <= PIPE_BUF, "op_message is written atomically");
_Static_assert(sizeof(struct failure) >= ERROR_MESSAGE_BYTES, "failure holds a whole message");

#define SIGNAL_MAX 64
#define STATUS_MAX 255
#define UMASK_MAX 0777
#define ENGINE_BITS ((1u << ENGINE_BWRAP) | (1u << ENGINE_NATIVE) | (1u << ENGINE_SEATBELT))

/* ---- sizes --------------------------------------------------------------------------- */

#define SIZE_WITH(type, member) (offsetof(struct type, u) + sizeof(((struct type *)NULL)->u.member))
#define SIZE_BARE(type) offsetof(struct type, u)

size_t op_message_size(enum op_kind kind)
{
	switch (kind) {
	case OP_READY:
	case OP_CONN_CLOSED:
	case OP_JOB_OPEN:
	case OP_JOB_ABANDON:
	case OP_JOB_CONFIRM:
	case OP_JOB_LIST:
	case OP_STATUS:
	case OP_JOB_FIND:
	case OP_GRANT_LIST:
		return SIZE_BARE(op_message);
	case OP_EVENTS:
		return SIZE_WITH(op_message, events);
	case OP_GRANT_CREATE:
		return SIZE_WITH(op_message, grant);
	case OP_GRANT_REVOKE:
		return SIZE_WITH(op_message, grant_id);
	case OP_JOB_START:
		return SIZE_WITH(op_message, start);
	case OP_JOB_SIGNAL:
		return SIZE_WITH(op_message, signal);
	case OP_LEDGER:
		return SIZE_WITH(op_message, ledger);
	case OP_KIND_COUNT:
		break;
	}
	return 0;
}

size_t link_message_size(enum link_kind kind)
{
	switch (kind) {
	case LINK_CONFIG:
		return SIZE_WITH(link_message, config);
	case LINK_CONN:
		return SIZE_WITH(link_message, conn);
	case LINK_JOB_UP:
		return SIZE_WITH(link_message, up);
	case LINK_JOB_FAILED:
	case LINK_ERROR:
		return SIZE_WITH(link_message, failure);
	case LINK_JOB_ENDED:
		return SIZE_WITH(link_message, ended);
	case LINK_JOB_ENTRY:
		return SIZE_WITH(link_message, entry);
	case LINK_STATUS:
		return SIZE_WITH(link_message, status);
	case LINK_JOB_GUARD:
		return SIZE_WITH(link_message, guard);
	case LINK_JOB_FOUND:
		return SIZE_WITH(link_message, found);
	case LINK_GRANT:
		return SIZE_WITH(link_message, grant);
	case LINK_GRANT_ENTRY:
		return SIZE_WITH(link_message, grant_entry);
	case LINK_LEDGER_ENTRY:
		return SIZE_WITH(link_message, placeholder);
	case LINK_LEDGER:
		return SIZE_WITH(link_message, ledger);
	case LINK_JOB_OPENED:
	case LINK_EVENTS:
	case LINK_DONE:
		return SIZE_BARE(link_message);
	case LINK_KIND_COUNT:
		break;
	}
	return 0;
}

size_t report_message_size(enum report_kind kind)
{
	switch (kind) {
	case REPORT_PLACEHOLDER_INTENT:
	case REPORT_PLACEHOLDER_MADE:
	case REPORT_PLACEHOLDER_SKIPPED:
		return SIZE_WITH(report_message, placeholder);
	case REPORT_FAILED:
		return SIZE_WITH(report_message, failure);
	case REPORT_EXITED:
		return SIZE_WITH(report_message, exited);
	case REPORT_MASK_REPAIRED:
	case REPORT_MASK_LOST:
	case REPORT_MASK_GONE:
	case REPORT_NAME_APPEARED:
		return SIZE_WITH(report_message, guard);
	case REPORT_GUARD_WATCHES:
	case REPORT_GUARD_DONE:
	case REPORT_GUARD_HOLDS:
		return SIZE_WITH(report_message, number);
	case REPORT_BUILT:
		return SIZE_WITH(report_message, built);
	case REPORT_PID1_UP:
	case REPORT_STARTED:
		return SIZE_BARE(report_message);
	case REPORT_KIND_COUNT:
		break;
	}
	return 0;
}

/* ---- checks of parts ----------------------------------------------------------------- */

static int text_check(const char *field, size_t size, const char *what, struct error *err)
{
	if (!memchr(field, '\0', size))
		return error_set(err, ERR_BAD_FRAME, 0, "%s is not terminated", what);
	return 0;
}

#define TEXT_CHECK(field, what, err) text_check(field, sizeof(field), what, err)

static int range_check(uint64_t value, uint64_t min, uint64_t max, const char *what,
		       struct error *err)
{
	if (value < min || value > max)
		return error_set(err, ERR_BAD_FRAME, 0, "%s is %llu, not in %llu..%llu", what,
				 (unsigned long long)value, (unsigned long long)min,
				 (unsigned long long)max);
	return 0;
}

static int guard_check(const struct report_guard *guard, bool appeared, struct error *err)
{
	int r = range_check(guard->job, 1, UINT64_MAX, "job", err);

	if (r == 0)
		r = range_check(guard->action, appeared ? GUARD_REPORTED : 0,
				appeared ? GUARD_KILLED : 0, "guard action", err);
	if (r == 0)
		r = range_check(guard->reserved, 0, 0, "reserved", err);
	if (r == 0)
		r = TEXT_CHECK(guard->kept_as, "kept_as", err);
	if (r == 0)
		r = TEXT_CHECK(guard->path, "path", err);
	if (r == 0 && (guard->path[0] != '/' || strchr(guard->kept_as, '/')))
		return error_set(err, ERR_BAD_FRAME, 0, "what a guard tells names no place");
	return r;
}

static int failure_check(const struct failure *failure, struct error *err)
{
	int r = range_check(failure->kind, 1, ERROR_KIND_COUNT, "failure kind", err);

	if (r < 0 || (r = TEXT_CHECK(failure->stage, "failure stage", err)) < 0)
		return r;
	return TEXT_CHECK(failure->message, "failure message", err);
}

static int exit_record_check(const struct exit_record *record, struct error *err)
{
	int64_t code_max = record->reason == EXIT_EXITED ? STATUS_MAX : 0;
	int64_t signal_max = record->reason == EXIT_SIGNALED ? SIGNAL_MAX : 0;
	int64_t signal_min = record->reason == EXIT_SIGNALED ? 1 : 0;
	int r = range_check(record->reason, EXIT_EXITED, EXIT_LOST, "exit reason", err);

	if (r < 0)
		return r;
	if (record->code < 0 || record->code > code_max || record->signal < signal_min ||
	    record->signal > signal_max)
		return error_set(err, ERR_BAD_FRAME, 0, "exit '%s' with code %d and signal %d",
				 exit_reason_name((enum exit_reason)record->reason), record->code,
				 record->signal);
	return range_check(record->core_dumped, 0, 1, "core_dumped", err);
}

static int node_identity_check(const struct node_identity *node, struct error *err)
{
	int r = range_check(node->handle_bytes, 0, sizeof(node->handle), "handle_bytes", err);

	if (r < 0)
		return r;
	return range_check(node->reserved, 0, 0, "reserved", err);
}

static int placeholder_check(const struct report_placeholder *what, struct error *err)
{
	int r = node_identity_check(&what->parent, err);

	if (r < 0)
		return r;
	r = node_identity_check(&what->node, err);
	if (r < 0)
		return r;
	r = TEXT_CHECK(what->path, "placeholder path", err);
	if (r < 0)
		return r;
	if (what->path[0] != '/')
		return error_set(err, ERR_BAD_FRAME, 0, "placeholder path is relative");
	return 0;
}

/* ---- broker -> fsboxd ---------------------------------------------------------------- */

static int op_start_check(const struct op_start *start, struct error *err)
{
	const struct {
		uint64_t value;
		uint64_t min;
		uint64_t max;
		const char *what;
	} ranges[] = {
		{ start->plan_bytes, 1, LIMIT_PLAN_BYTES, "plan_bytes" },
		{ start->net_bytes, 0, LIMIT_EGRESS_POLICY_BYTES, "net_bytes" },
		{ start->engine, ENGINE_BWRAP, ENGINE_SEATBELT, "engine" },
		{ start->room, ROOM_EGRESS_DENIED, ROOM_UNSUPPORTED, "room" },
		{ start->detached, 0, 1, "detached" },
		{ start->argc, 1, LIMIT_ARGS_COUNT, "argc" },
		{ start->rules, 0, LIMIT_RULES, "rules" },
		{ start->suppressed, 0, LIMIT_JSON_ELEMENTS, "suppressed" },
		{ start->withheld, 0, LIMIT_ARGS_COUNT, "withheld" },
		{ start->grant.has_grant, 0, 1, "has_grant" },
		{ start->grant.reserved, 0, 0, "reserved" },
	};
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(ranges); i++) {
		r = range_check(ranges[i].value, ranges[i].min, ranges[i].max, ranges[i].what, err);
		if (r < 0)
			return r;
	}
	r = TEXT_CHECK(start->profile, "profile", err);
	if (r < 0)
		return r;
	r = TEXT_CHECK(start->command, "command", err);
	if (r < 0)
		return r;
	return TEXT_CHECK(start->label, "label", err);
}

static int op_events_check(const struct op_events *events, struct error *err)
{
	int r = range_check(events->everybody, 0, 1, "everybody", err);

	return r < 0 ? r : range_check(events->follow, 0, 1, "follow", err);
}

/* What all messages begin with: the size field, then the kind. EXPECTED is 0 for no such kind. */
static int size_check(size_t received, size_t header, uint32_t claimed, uint32_t kind,
		      size_t expected, struct error *err)
{
	if (received < header)
		return error_set(err, ERR_BAD_FRAME, 0, "message of %zu bytes is no header",
				 received);
	if (expected == 0)
		return error_set(err, ERR_BAD_FRAME, 0, "message of unknown kind %u", kind);
	if (claimed != expected || received != expected)
		return error_set(err, ERR_BAD_FRAME, 0,
				 "message of kind %u has %zu bytes and says %u, must be %zu", kind,
				 received, claimed, expected);
	return 0;
}

/*
 * Kinds are compared as numbers: whatever the other side wrote there need not be a value of the enum.
 * A header that was not received whole is not read.
 */
#define MESSAGE_SIZE_CHECK(type, sizer, message, size, err)                            \
	((size) < SIZE_BARE(type) ? size_check(size, SIZE_BARE(type), 0, 0, 0, err)    \
				  : size_check(size, SIZE_BARE(type), (message)->size, \
					       (message)->kind, sizer((message)->kind), err))

int op_message_check(const struct op_message *message, size_t size, struct error *err)
{
	int r = MESSAGE_SIZE_CHECK(op_message, op_message_size, message, size, err);

	if (r < 0)
		return r;
	if (message->kind == OP_JOB_START)
		return op_start_check(&message->u.start, err);
	if (message->kind == OP_JOB_SIGNAL)
		return range_check(message->u.signal.signo, 1, SIGNAL_MAX, "signal", err);
	if (message->kind == OP_EVENTS)
		return op_events_check(&message->u.events, err);
	if (message->kind == OP_GRANT_CREATE)
		return grant_terms_check(&message->u.grant, err);
	if (message->kind == OP_LEDGER)
		return range_check(message->u.ledger.repair | message->u.ledger.all, 0, 1,
				   "ledger switches", err);
	return 0;
}

/* ---- fsboxd -> broker ---------------------------------------------------------------- */

/* Strings NAME=VALUE, each terminated, then an empty one. */
static int config_text_check(const char text[LINK_TEXT_BYTES], struct error *err)
{
	size_t at = 0;

	while (at < LINK_TEXT_BYTES && text[at] != '\0') {
		const char *end = memchr(text + at, '\0', LINK_TEXT_BYTES - at);

		if (!end)
			return error_set(err, ERR_BAD_FRAME, 0, "host facts are not terminated");
		if (text[at] == '=' || !strchr(text + at, '='))
			return error_set(err, ERR_BAD_FRAME, 0, "a host fact is not NAME=VALUE");
		at = (size_t)(end - text) + 1;
	}
	if (at == LINK_TEXT_BYTES)
		return error_set(err, ERR_BAD_FRAME, 0, "host facts are not terminated");
	return 0;
}

static int config_check(const struct link_config *config, struct error *err)
{
	const struct {
		const char *text;
		size_t size;
		const char *what;
	} texts[] = {
		{ config->run_dir, sizeof(config->run_dir), "run_dir" },
		{ config->state_dir, sizeof(config->state_dir), "state_dir" },
		{ config->log_dir, sizeof(config->log_dir), "log_dir" },
		{ config->config_dir, sizeof(config->config_dir), "config_dir" },
		{ config->exec_dir, sizeof(config->exec_dir), "exec_dir" },
		{ config->mask_dir, sizeof(config->mask_dir), "mask_dir" },
		{ config->mask_file, sizeof(config->mask_file), "mask_file" },
		{ config->engine_reason, sizeof(config->engine_reason), "engine_reason" },
	};
	int r = range_check(config->version, SPAWNOP_VERSION, SPAWNOP_VERSION, "version", err);

	if (r < 0)
		return r;
	r = range_check(config->mode, MODE_SYSTEM, MODE_ROOT, "mode", err);
	if (r < 0)
		return r;
	r = range_check(config->engines & ~ENGINE_BITS, 0, 0, "unknown engines", err);
	if (r < 0)
		return r;
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		r = text_check(texts[i].text, texts[i].size, texts[i].what, err);
		if (r < 0)
			return r;
	}
	return config_text_check(config->text, err);
}

static int entry_check(const struct link_job_entry *entry, struct error *err)
{
	const struct {
		uint64_t value;
		uint64_t min;
		uint64_t max;
		const char *what;
	} ranges[] = {
		{ entry->state, JOB_OPEN, JOB_ENDING, "state" },
		/* A job that is only open has no engine and no room yet. */
		{ entry->engine, ENGINE_DEFAULT, ENGINE_SEATBELT, "engine" },
		{ entry->room, 0, ROOM_UNSUPPORTED, "room" },
		{ entry->detached, 0, 1, "detached" },
	};
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(ranges); i++) {
		r = range_check(ranges[i].value, ranges[i].min, ranges[i].max, ranges[i].what, err);
		if (r < 0)
			return r;
	}
	r = TEXT_CHECK(entry->profile, "profile", err);
	if (r < 0)
		return r;
	r = TEXT_CHECK(entry->command, "command", err);
	if (r < 0)
		return r;
	return TEXT_CHECK(entry->label, "label", err);
}

static int found_check(const struct link_job_found *found, struct error *err)
{
	int r = range_check(found->is_over, 0, 1, "is_over", err);

	if (r == 0)
		r = entry_check(&found->entry, err);
	return r == 0 && found->is_over ? exit_record_check(&found->ended, err) : r;
}

static int ledger_entry_check(const struct link_ledger_entry *entry, struct error *err)
{
	int r = range_check(entry->made | entry->kept, 0, 1, "made or kept", err);

	return r < 0 ? r : text_check(entry->path, sizeof(entry->path), "path", err);
}

int link_message_check(const struct link_message *message, size_t size, struct error *err)
{
	int r = MESSAGE_SIZE_CHECK(link_message, link_message_size, message, size, err);

	if (r < 0)
		return r;
	switch ((enum link_kind)message->kind) {
	case LINK_CONFIG:
		return config_check(&message->u.config, err);
	case LINK_CONN:
		return range_check(message->u.conn.admin, 0, 1, "admin", err);
	case LINK_JOB_FAILED:
	case LINK_ERROR:
		return failure_check(&message->u.failure, err);
	case LINK_JOB_ENDED:
		return exit_record_check(&message->u.ended, err);
	case LINK_JOB_ENTRY:
		return entry_check(&message->u.entry, err);
	case LINK_STATUS:
		return range_check(message->u.status.recorder_up, 0, 1, "recorder_up", err);
	case LINK_JOB_GUARD:
		r = range_check(message->u.guard.kind, GUARD_NEWS_REPAIRED, GUARD_NEWS_APPEARED,
				"guard news", err);
		return r < 0 ? r
			     : guard_check(&message->u.guard.what,
					   message->u.guard.kind == GUARD_NEWS_APPEARED, err);
	case LINK_JOB_FOUND:
		return found_check(&message->u.found, err);
	case LINK_GRANT_ENTRY:
		if ((r = range_check(message->u.grant_entry.state, GRANT_OPEN, GRANT_EXPIRED,
				     "state of a grant", err)) < 0)
			return r;
		return grant_terms_check(&message->u.grant_entry.terms, err);
	case LINK_LEDGER_ENTRY:
		return ledger_entry_check(&message->u.placeholder, err);
	case LINK_LEDGER:
		return text_check(message->u.ledger.why, sizeof(message->u.ledger.why), "why", err);
	case LINK_JOB_OPENED:
	case LINK_JOB_UP:
	case LINK_DONE:
	case LINK_EVENTS:
	case LINK_GRANT:
	case LINK_KIND_COUNT:
		break;
	}
	return 0;
}

/* ---- builder and init -> fsboxd and broker ------------------------------------------- */

int report_message_check(const struct report_message *message, size_t size, struct error *err)
{
	int r = MESSAGE_SIZE_CHECK(report_message, report_message_size, message, size, err);

	if (r < 0)
		return r;
	switch ((enum report_kind)message->kind) {
	case REPORT_PLACEHOLDER_INTENT:
	case REPORT_PLACEHOLDER_MADE:
	case REPORT_PLACEHOLDER_SKIPPED:
		return placeholder_check(&message->u.placeholder, err);
	case REPORT_FAILED:
		return failure_check(&message->u.failure, err);
	case REPORT_EXITED:
		return exit_record_check(&message->u.exited, err);
	case REPORT_MASK_REPAIRED:
	case REPORT_MASK_LOST:
	case REPORT_MASK_GONE:
	case REPORT_NAME_APPEARED:
		return guard_check(&message->u.guard, message->kind == REPORT_NAME_APPEARED, err);
	case REPORT_GUARD_WATCHES:
	case REPORT_GUARD_DONE:
	case REPORT_GUARD_HOLDS:
		return range_check(message->u.number, 1, UINT64_MAX, "number", err);
	case REPORT_BUILT:
		return range_check(message->u.built.mounts, 1, LIMIT_TEMPLATE_MOUNTS, "mounts",
				   err);
	case REPORT_PID1_UP:
	case REPORT_STARTED:
	case REPORT_KIND_COUNT:
		break;
	}
	return 0;
}

/* ---- broker -> init ------------------------------------------------------------------ */

int start_message_check(const struct start_message *message, size_t size, size_t fd_count,
			struct error *err)
{
	int r = 0;

	if (size != sizeof(*message) || message->size != sizeof(*message))
		return error_set(err, ERR_BAD_FRAME, 0, "start message of %zu bytes", size);
	if ((message->fds & ~(uint32_t)START_FD_ALL) != 0 || !(message->fds & START_FD_ARGS))
		return error_set(err, ERR_BAD_FRAME, 0, "start message with descriptors 0x%x",
				 message->fds);
	if ((size_t)__builtin_popcount(message->fds) != fd_count)
		return error_set(err, ERR_BAD_FRAME, 0,
				 "start message names descriptors 0x%x, %zu came", message->fds,
				 fd_count);
	r = range_check(message->umask, 0, UMASK_MAX, "umask", err);
	if (r < 0)
		return r;
	return range_check(message->reserved, 0, 0, "reserved", err);
}

/* ---- names --------------------------------------------------------------------------- */

static const char *const engine_names[] = { "default", "bwrap", "native", "seatbelt" };
static const char *const room_names[] = { "unknown",     "egress-denied", "egress-allowlist",
					  "egress-open", "opted-out",     "granted-egress",
					  "unsupported" };
static const char *const exit_reason_names[] = { "unknown", "exited", "signaled",
						 "timeout", "oom",    "lost" };
static const char *const daemon_mode_names[] = { "unknown", "system", "user", "root" };
static const char *const job_state_names[] = { "unknown", "open", "starting", "running", "ending" };

static const char *const guard_action_names[] = { "unknown", "reported", "quarantined", "left",
						  "killed" };

#define NAME_OF(names, value) \
	((size_t)(value) < ARRAY_SIZE(names) ? (names)[(size_t)(value)] : "unknown")

enum engine_kind engine_default(uint32_t engines)
{
	return engines & 1u << ENGINE_NATIVE ? ENGINE_NATIVE : ENGINE_BWRAP;
}

const char *engine_name(enum engine_kind engine)
{
	return NAME_OF(engine_names, engine);
}

bool engine_parse(const char *name, enum engine_kind *ret_engine)
{
	for (size_t i = 0; i < ARRAY_SIZE(engine_names); i++) {
		if (strcmp(engine_names[i], name) == 0) {
			*ret_engine = (enum engine_kind)i;
			return true;
		}
	}
	return false;
}

const char *room_name(enum room_kind room)
{
	return NAME_OF(room_names, room);
}

const char *exit_reason_name(enum exit_reason reason)
{
	return NAME_OF(exit_reason_names, reason);
}

const char *daemon_mode_name(enum daemon_mode mode)
{
	return NAME_OF(daemon_mode_names, mode);
}

const char *guard_action_name(enum guard_action action)
{
	return NAME_OF(guard_action_names, action);
}

const char *job_state_name(enum job_state state)
{
	return NAME_OF(job_state_names, state);
}

/* ---- failures ------------------------------------------------------------------------ */

void failure_set(struct failure *failure, const struct error *err, const char *stage)
{
	memset(failure, 0, sizeof(*failure));
	failure->kind = err->kind == ERR_NONE ? ERR_SYSTEM : err->kind;
	failure->errnum = err->errnum;
	(void)snprintf(failure->stage, sizeof(failure->stage), "%s", stage ? stage : "");
	(void)snprintf(failure->message, sizeof(failure->message), "%s", err->message);
}

int failure_to_error(const struct failure *failure, struct error *err)
{
	int r = error_set(err, (enum error_kind)failure->kind, 0, "%s", failure->message);

	/* The text of errno is in the message already; only the number is still to be carried. */
	if (err)
		err->errnum = failure->errnum;
	return r;
}
