/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/json/tables.h"

#include "common/context.h"

/* ---- names --------------------------------------------------------------------------- */

#define ENUM_NAMES(names, first_value)                \
	{                                             \
		names, ARRAY_SIZE(names), first_value \
	}

static const char *const net_mode_names[] = { "none", "proxy", "host" };
static const struct enum_names net_mode_enum = ENUM_NAMES(net_mode_names, NET_NONE);
const struct enum_names net_choice_enum = ENUM_NAMES(net_mode_names, NET_CHOICE_NONE);

static const char *const access_names[] = { "readWrite", "readOnly", "deny" };
static const struct enum_names access_enum = ENUM_NAMES(access_names, ACCESS_READ_WRITE);

static const char *const source_names[] = { "baseline", "adapter", "internal", "user",
					    "mandatory" };
static const struct enum_names source_enum = ENUM_NAMES(source_names, RULE_BASELINE);

static const char *const absent_names[] = { "placeholder", "watch", "report", "ignore" };
const struct enum_names absent_enum = ENUM_NAMES(absent_names, ABSENT_PLACEHOLDER);

static const char *const engine_names[] = { "bwrap", "native", "seatbelt" };
static const struct enum_names engine_enum = ENUM_NAMES(engine_names, ENGINE_BWRAP);

static const char *const room_names[] = { "egress-denied", "egress-allowlist", "egress-open",
					  "opted-out",     "granted-egress",   "unsupported" };
static const struct enum_names room_enum = ENUM_NAMES(room_names, ROOM_EGRESS_DENIED);

static const char *const reason_names[] = { "exited", "signaled", "timeout", "oom", "lost" };
static const struct enum_names reason_enum = ENUM_NAMES(reason_names, EXIT_EXITED);

static const char *const mode_names[] = { "system", "user", "root" };
static const struct enum_names mode_enum = ENUM_NAMES(mode_names, MODE_SYSTEM);

static const char *const state_names[] = { "open", "starting", "running", "ending" };
static const struct enum_names state_enum = ENUM_NAMES(state_names, JOB_OPEN);

#define X(symbol, name, status, text) name,
static const char *const error_names[] = { ERROR_KINDS(X) };
#undef X
static const struct enum_names error_enum = ENUM_NAMES(error_names, ERR_NONE + 1);

/* ---- shorthands ---------------------------------------------------------------------- */

#define HEX_COOKIE 32
#define HEX_DIGEST 64
#define TEXT_MAX 1024 /* sentences for people */
#define COUNT_MAX 1000000000
#define MILLI_MAX 1000000000 /* a million processors */
#define UMASK_MAX 0777
#define SIGNAL_MAX 64
#define ERRNO_MAX 4095

#define U32(owner, member, json, low, high, bits) \
	FIELD_NUMBER(owner, member, json, uint32_t, FIELD_U32, low, high, bits)
#define U64(owner, member, json, bits) \
	FIELD_NUMBER(owner, member, json, uint64_t, FIELD_U64, 0, INT64_MAX, bits)
#define COUNT(owner, member, json) U32(owner, member, json, 0, UINT32_MAX, REQUIRED)
#define TEXT(owner, member, json, low, high, bits) \
	FIELD_STRING(owner, member, json, FIELD_TEXT, low, high, bits)
#define ABSOLUTE(owner, member, json, bits) \
	FIELD_STRING(owner, member, json, FIELD_PATH, 1, LIMIT_PATH_BYTES, bits)
#define BYTES_LIST(owner, member, json, most) \
	FIELD_STRINGS(owner, member, json, FIELD_BYTES, 0, LIMIT_ARGS_BYTES, most, OPTIONAL)
#define SENTENCES(owner, member, json)                                                  \
	FIELD_STRINGS(owner, member, json, FIELD_BYTES, 0, LIMIT_PATH_BYTES + TEXT_MAX, \
		      LIMIT_RULES, REQUIRED)
#define JOB_ID(owner, bits) FIELD_NUMBER(owner, job, "job", uint64_t, FIELD_U64, 1, INT64_MAX, bits)
#define COOKIE(owner) TEXT(owner, cookie, "cookie", HEX_COOKIE, HEX_COOKIE, OPTIONAL)
#define ENGINE(owner, bits) FIELD_NAMED(owner, engine, "engine", engine_enum, ENGINE_DEFAULT, bits)
#define ROOM(owner, bits) FIELD_NAMED(owner, room, "room", room_enum, 0, bits)

/* A struct that is an empty object. */
#define EMPTY_TABLE(table_name, type)                      \
	{                                                  \
		.name = (table_name), .size = sizeof(type) \
	}

/* ---- parts --------------------------------------------------------------------------- */

static const struct field path_entry_fields[] = {
	ABSOLUTE(struct path_entry, path, "path", REQUIRED),
	FIELD_NAMED(struct path_entry, absent, "absent", absent_enum, ABSENT_DEFAULT, OPTIONAL),
	FIELD_BOOLEAN(struct path_entry, optional, "optional", 0, OPTIONAL),
};
static const struct table path_entry_table = {
	.name = "pathEntry",
	.size = sizeof(struct path_entry),
	.fields = path_entry_fields,
	.count = ARRAY_SIZE(path_entry_fields),
	.form = TABLE_OBJECT_OR_FIRST,
};

#define PATH_ENTRIES(member, json)                                                       \
	FIELD_PARTS(struct msg_paths, member, json, path_entry_table, struct path_entry, \
		    LIMIT_RULES)

static const struct field paths_fields[] = {
	PATH_ENTRIES(read_write, "readWrite"),
	PATH_ENTRIES(read_only, "readOnly"),
	PATH_ENTRIES(deny, "deny"),
};
static const struct table paths_table = TABLE("paths", struct msg_paths, paths_fields);

#define HOST_PATTERNS(member, json)                                                          \
	FIELD_STRINGS(struct msg_net, member, json, FIELD_TEXT, 1, LIMIT_HOST_PATTERN_BYTES, \
		      LIMIT_HOST_PATTERNS, OPTIONAL)

static const struct field net_fields[] = {
	FIELD_NAMED(struct msg_net, mode, "mode", net_choice_enum, NET_CHOICE_UNSET, OPTIONAL),
	HOST_PATTERNS(allow, "allow"),
	HOST_PATTERNS(deny, "deny"),
	FIELD_NUMBERS(struct msg_net, forward, "forward", 1, 65535, LIMIT_FORWARDS),
	FIELD_BOOLEAN(struct msg_net, loopback, "loopback", 0, OPTIONAL),
};
static const struct table net_table = TABLE("net", struct msg_net, net_fields);

#define LIMITS_FIELDS(owner)                                                                 \
	U64(owner, memory_bytes, "memoryBytes", OPTIONAL),                                   \
		U32(owner, pids, "pids", 0, COUNT_MAX, OPTIONAL),                            \
		FIELD_NUMBER(owner, cpus_milli, "cpus", uint32_t, FIELD_MILLI, 0, MILLI_MAX, \
			     OPTIONAL),                                                      \
		U64(owner, wall_ms, "wallMs", OPTIONAL)

static const struct field limits_fields[] = { LIMITS_FIELDS(struct msg_limits) };
const struct table limits_table = TABLE("limits", struct msg_limits, limits_fields);

static const struct field limits_result_fields[] = {
	LIMITS_FIELDS(struct limits_result),
	SENTENCES(struct limits_result, unenforced, "unenforced"),
};
static const struct table limits_result_table =
	TABLE("limitsResult", struct limits_result, limits_result_fields);

static const struct field tty_fields[] = {
	U32(struct msg_tty, rows, "rows", 1, 65535, REQUIRED),
	U32(struct msg_tty, cols, "cols", 1, 65535, REQUIRED),
};
static const struct table tty_table = TABLE("tty", struct msg_tty, tty_fields);

#define STDIO_FD(member, json) \
	FIELD_DESCRIPTOR(struct msg_stdio, member, json, FIELD_FD_OR_NULL, OPTIONAL)

static const struct field stdio_fields[] = {
	STDIO_FD(in_fd, "stdin"),
	STDIO_FD(out_fd, "stdout"),
	STDIO_FD(err_fd, "stderr"),
};
static const struct table stdio_table = TABLE("stdio", struct msg_stdio, stdio_fields);

static const struct field engine_fields[] = {
	FIELD_NAMED(struct msg_engine, name, "name", engine_enum, ENGINE_DEFAULT, REQUIRED),
	FIELD_BOOLEAN(struct msg_engine, supported, "supported", 0, REQUIRED),
	FIELD_BOOLEAN(struct msg_engine, available, "available", 0, REQUIRED),
	FIELD_BOOLEAN(struct msg_engine, is_default, "default", 0, REQUIRED),
	TEXT(struct msg_engine, reason, "reason", 0, TEXT_MAX, OPTIONAL),
};
static const struct table engine_table = TABLE("engine", struct msg_engine, engine_fields);

/* A list of structs, of which none may be left out. */
#define PARTS(owner, member, json, part_table, list, max)                     \
	{                                                                     \
		.name = (json), .kind = FIELD_STRUCT, .table = &(part_table), \
		.flags = LIST | REQUIRED, .max_count = (max),                 \
		.offset = CODEC_AT(owner, member, list)                       \
	}

#define ENGINES(owner)                                                           \
	{                                                                        \
		.name = "engines", .kind = FIELD_STRUCT, .table = &engine_table, \
		.flags = LIST | REQUIRED, .max_count = 16,                       \
		.offset = CODEC_AT(owner, engines, struct msg_engine_list)       \
	}

static const struct field note_fields[] = {
	FIELD_STRING(struct msg_note, path, "path", FIELD_BYTES, 0, LIMIT_PATH_BYTES, REQUIRED),
	FIELD_STRING(struct msg_note, reason, "reason", FIELD_BYTES, 0, LIMIT_PATH_BYTES + TEXT_MAX,
		     REQUIRED),
};
static const struct table note_table = TABLE("note", struct msg_note, note_fields);

#define NOTES(owner, member, json)                                          \
	{                                                                   \
		.name = (json), .kind = FIELD_STRUCT, .table = &note_table, \
		.flags = LIST | REQUIRED, .max_count = LIMIT_RULES,         \
		.offset = CODEC_AT(owner, member, struct msg_note_list)     \
	}

static const struct field rule_fields[] = {
	ABSOLUTE(struct msg_rule, path, "path", REQUIRED),
	FIELD_NAMED(struct msg_rule, access, "access", access_enum, ACCESS_NONE, REQUIRED),
	FIELD_NAMED(struct msg_rule, source, "source", source_enum, RULE_BASELINE, REQUIRED),
	FIELD_STRING(struct msg_rule, origin, "origin", FIELD_BYTES, 0, LIMIT_PATH_BYTES + TEXT_MAX,
		     OPTIONAL),
};
static const struct table rule_table = TABLE("rule", struct msg_rule, rule_fields);
static const struct table rule_tuple_table = {
	.name = "ruleTuple",
	.size = sizeof(struct msg_rule),
	.fields = rule_fields,
	.count = ARRAY_SIZE(rule_fields),
	.form = TABLE_TUPLE,
	.tuple_count = 3,
};

static const struct field plan_op_fields[] = {
	TEXT(struct msg_plan_op, op, "op", 1, LIMIT_NAME_BYTES, REQUIRED),
	FIELD_STRING(struct msg_plan_op, path, "path", FIELD_BYTES, 0, LIMIT_PATH_BYTES, OPTIONAL),
	FIELD_STRING(struct msg_plan_op, source, "source", FIELD_BYTES, 0, LIMIT_PATH_BYTES,
		     OPTIONAL),
	FIELD_STRINGS(struct msg_plan_op, flags, "flags", FIELD_TEXT, 1, LIMIT_NAME_BYTES, 32,
		      OPTIONAL),
};
static const struct table plan_op_table = TABLE("planOp", struct msg_plan_op, plan_op_fields);

/* ---- hello --------------------------------------------------------------------------- */

static const struct field hello_params_fields[] = {
	U32(struct hello_params, protocol, "protocol", 0, UINT32_MAX, REQUIRED),
	TEXT(struct hello_params, client, "client", 0, LIMIT_LABEL_BYTES, REQUIRED),
};
static const struct table hello_params_table =
	TABLE("helloParams", struct hello_params, hello_params_fields);

static const struct field hello_limits_fields[] = {
	U64(struct hello_limits, frame_bytes, "frameBytes", REQUIRED),
	U64(struct hello_limits, params_bytes, "paramsBytes", REQUIRED),
	COUNT(struct hello_limits, frame_fds, "frameFds"),
	COUNT(struct hello_limits, requests, "requests"),
};
static const struct table hello_limits_table =
	TABLE("helloLimits", struct hello_limits, hello_limits_fields);

static const struct field hello_result_fields[] = {
	COUNT(struct hello_result, protocol, "protocol"),
	TEXT(struct hello_result, server, "server", 0, LIMIT_LABEL_BYTES, REQUIRED),
	FIELD_NAMED(struct hello_result, mode, "mode", mode_enum, 0, REQUIRED),
	ENGINES(struct hello_result),
	FIELD_STRINGS(struct hello_result, features, "features", FIELD_TEXT, 1, LIMIT_NAME_BYTES,
		      256, REQUIRED),
	FIELD_PART(struct hello_result, limits, "limits", hello_limits_table, struct hello_limits,
		   REQUIRED),
	COUNT(struct hello_result, uid, "uid"),
};
static const struct table hello_result_table =
	TABLE("helloResult", struct hello_result, hello_result_fields);

/* ---- spawn, policy, why -------------------------------------------------------------- */

/*
 * The params of a spawn, which those of `policy` and `why` include. IN is where struct spawn_params
 * lies in OWNER: nothing, or `spawn.` BITS: whether argv and cwd must be there.
 */
#define SPAWN_FIELDS(owner, in, bits)                                                              \
	FIELD_STRINGS(owner, in argv, "argv", FIELD_BYTES, 0, LIMIT_ARGS_BYTES, LIMIT_ARGS_COUNT,  \
		      bits),                                                                       \
		ABSOLUTE(owner, in cwd, "cwd", bits), FIELD_VARIABLES(owner, in env, "env"),       \
		FIELD_VARIABLES(owner, in env_set, "envSet"),                                      \
		FIELD_STRINGS(owner, in env_pass, "envPass", FIELD_BYTES, 1, LIMIT_PATH_BYTES,     \
			      LIMIT_ARGS_COUNT, OPTIONAL),                                         \
		FIELD_STRING(owner, in profile, "profile", FIELD_BYTES, 1, LIMIT_PATH_BYTES,       \
			     OPTIONAL),                                                            \
		FIELD_POINTER(owner, in context, "context", context_wire_table,                    \
			      struct policy_context),                                              \
		FIELD_PART(owner, in paths, "paths", paths_table, struct msg_paths, OPTIONAL),     \
		FIELD_STRINGS(owner, in socket_allow, "socketAllow", FIELD_PATH, 1,                \
			      LIMIT_PATH_BYTES, LIMIT_RULES, OPTIONAL),                            \
		FIELD_PART(owner, in net, "net", net_table, struct msg_net, OPTIONAL),             \
		FIELD_PART(owner, in limits, "limits", limits_table, struct msg_limits, OPTIONAL), \
		FIELD_POINTER(owner, in tty, "tty", tty_table, struct msg_tty),                    \
		FIELD_PART(owner, in stdio, "stdio", stdio_table, struct msg_stdio, OPTIONAL),     \
		FIELD_DESCRIPTOR(owner, in lifeline_fd, "lifeline", FIELD_FD, OPTIONAL),           \
		FIELD_DESCRIPTOR(owner, in grant_fd, "grant", FIELD_FD, OPTIONAL),                 \
		FIELD_NAMED(owner, in engine, "engine", engine_enum, ENGINE_DEFAULT, OPTIONAL),    \
		TEXT(owner, in label, "label", 0, LIMIT_LABEL_BYTES - 1, OPTIONAL),                \
		TEXT(owner, in session, "session", 1, LIMIT_NAME_BYTES - 1, OPTIONAL),             \
		FIELD_UMASK(owner, in umask),                                                      \
		FIELD_BOOLEAN(owner, in allow_home, "allowHome", 0, OPTIONAL),                     \
		FIELD_BOOLEAN(owner, in allow_git_config, "allowGitConfig", 0, OPTIONAL),          \
		FIELD_BOOLEAN(owner, in detach, "detach", 0, OPTIONAL),                            \
		FIELD_BOOLEAN(owner, in dry_run, "dryRun", 0, OPTIONAL),                           \
		FIELD_BOOLEAN(owner, in grant_request, "grantRequest", 0, OPTIONAL)

#define FIELD_UMASK(owner, member)                                                            \
	{                                                                                     \
		.name = "umask", .kind = FIELD_I32, .min = 0, .max = UMASK_MAX, .absent = -1, \
		.offset = CODEC_AT(owner, member, int32_t)                                    \
	}

static const struct field spawn_params_fields[] = {
	SPAWN_FIELDS(struct spawn_params, , REQUIRED),
};
static const struct table spawn_params_table =
	TABLE("spawnParams", struct spawn_params, spawn_params_fields);

static const struct field policy_params_fields[] = {
	SPAWN_FIELDS(struct policy_params, spawn., OPTIONAL),
};
static const struct table policy_params_table =
	TABLE("policyParams", struct policy_params, policy_params_fields);

static const struct field why_params_fields[] = {
	SPAWN_FIELDS(struct why_params, spawn., OPTIONAL),
	JOB_ID(struct why_params, OPTIONAL),
	COOKIE(struct why_params),
	ABSOLUTE(struct why_params, path, "path", OPTIONAL),
	TEXT(struct why_params, host, "host", 1, LIMIT_HOST_PATTERN_BYTES, OPTIONAL),
};
static const struct table why_params_table =
	TABLE("whyParams", struct why_params, why_params_fields);

static const struct field policy_result_fields[] = {
	PARTS(struct policy_result, rules, "rules", rule_tuple_table, struct msg_rule_list,
	      LIMIT_RULES),
	FIELD_NAMED(struct policy_result, net, "net", net_mode_enum, NET_NONE, REQUIRED),
	FIELD_POINTER(struct policy_result, hosts, "hosts", net_table, struct msg_net),
	ENGINE(struct policy_result, OPTIONAL),
	ROOM(struct policy_result, OPTIONAL),
	TEXT(struct policy_result, policy_digest, "policyDigest", HEX_DIGEST, HEX_DIGEST, REQUIRED),
	SENTENCES(struct policy_result, suppressed_authority_paths, "suppressedAuthorityPaths"),
	BYTES_LIST(struct policy_result, write_regexes, "writeRegexes", LIMIT_RULES),
	BYTES_LIST(struct policy_result, deny_regexes, "denyRegexes", LIMIT_RULES),
	BYTES_LIST(struct policy_result, final_read_only_paths, "finalReadOnlyPaths", LIMIT_RULES),
	NOTES(struct policy_result, notes, "notes"),
	SENTENCES(struct policy_result, withheld, "withheld"),
	SENTENCES(struct policy_result, warnings, "warnings"),
	FIELD_PARTS(struct policy_result, plan, "plan", plan_op_table, struct msg_plan_op,
		    LIMIT_RULES),
	BYTES_LIST(struct policy_result, bwrap, "bwrap", LIMIT_JSON_ELEMENTS),
	FIELD_STRING(struct policy_result, seatbelt, "seatbelt", FIELD_BYTES, 0,
		     LIMIT_JSON_STRING_BYTES, OPTIONAL),
	TEXT(struct policy_result, args_hash, "argsHash", HEX_DIGEST, HEX_DIGEST, OPTIONAL),
	TEXT(struct policy_result, env_hash, "envHash", HEX_DIGEST, HEX_DIGEST, OPTIONAL),
	TEXT(struct policy_result, plan_hash, "planHash", HEX_DIGEST, HEX_DIGEST, OPTIONAL),
};
static const struct table policy_result_table =
	TABLE("policyResult", struct policy_result, policy_result_fields);

static const struct field spawn_result_fields[] = {
	JOB_ID(struct spawn_result, OPTIONAL),
	COOKIE(struct spawn_result),
	FIELD_NUMBER(struct spawn_result, pid, "pid", int32_t, FIELD_I32, 1, INT32_MAX, OPTIONAL),
	FIELD_DESCRIPTOR(struct spawn_result, pidfd_fd, "pidfd", FIELD_FD, OPTIONAL),
	ENGINE(struct spawn_result, REQUIRED),
	ROOM(struct spawn_result, REQUIRED),
	TEXT(struct spawn_result, policy_digest, "policyDigest", HEX_DIGEST, HEX_DIGEST, REQUIRED),
	COUNT(struct spawn_result, rules, "rules"),
	NOTES(struct spawn_result, suppressed, "suppressed"),
	SENTENCES(struct spawn_result, withheld, "withheld"),
	SENTENCES(struct spawn_result, warnings, "warnings"),
	FIELD_PART(struct spawn_result, limits, "limits", limits_result_table, struct limits_result,
		   REQUIRED),
	FIELD_POINTER(struct spawn_result, policy, "policy", policy_result_table,
		      struct policy_result),
};
static const struct table spawn_result_table =
	TABLE("spawnResult", struct spawn_result, spawn_result_fields);

static const struct field why_result_fields[] = {
	TEXT(struct why_result, access, "access", 1, LIMIT_NAME_BYTES, REQUIRED),
	FIELD_POINTER(struct why_result, rule, "rule", rule_table, struct msg_rule),
	PARTS(struct why_result, shadowed, "shadowed", rule_table, struct msg_rule_list,
	      LIMIT_RULES),
	FIELD_STRING(struct why_result, real, "real", FIELD_BYTES, 0, LIMIT_PATH_BYTES, OPTIONAL),
	TEXT(struct why_result, type, "type", 1, LIMIT_NAME_BYTES, OPTIONAL),
	TEXT(struct why_result, mask, "mask", 1, LIMIT_NAME_BYTES, OPTIONAL),
	TEXT(struct why_result, entry, "entry", 1, LIMIT_HOST_PATTERN_BYTES, OPTIONAL),
	TEXT(struct why_result, origin, "origin", 1, LIMIT_NAME_BYTES, OPTIONAL),
	FIELD_STRING(struct why_result, hint, "hint", FIELD_BYTES, 0, LIMIT_PATH_BYTES + TEXT_MAX,
		     OPTIONAL),
};
static const struct table why_result_table =
	TABLE("whyResult", struct why_result, why_result_fields);

/* ---- jobs ---------------------------------------------------------------------------- */

static const struct field wait_params_fields[] = {
	JOB_ID(struct wait_params, REQUIRED),
	COOKIE(struct wait_params),
};
static const struct table wait_params_table =
	TABLE("waitParams", struct wait_params, wait_params_fields);

static const struct field usage_fields[] = {
	U64(struct msg_usage, user_ms, "userMs", REQUIRED),
	U64(struct msg_usage, sys_ms, "sysMs", REQUIRED),
	U64(struct msg_usage, max_rss_kib, "maxRssKiB", REQUIRED),
};
static const struct table usage_table = TABLE("usage", struct msg_usage, usage_fields);

static const struct field exited_fields[] = {
	JOB_ID(struct wait_result, REQUIRED),
	FIELD_NAMED(struct wait_result, reason, "reason", reason_enum, 0, REQUIRED),
	U32(struct wait_result, code, "code", 0, 255, REQUIRED),
	U32(struct wait_result, signal, "signal", 0, SIGNAL_MAX, REQUIRED),
	FIELD_BOOLEAN(struct wait_result, core_dumped, "coreDumped", 0, REQUIRED),
	U64(struct wait_result, wall_ms, "wallMs", REQUIRED),
	FIELD_PART(struct wait_result, usage, "usage", usage_table, struct msg_usage, REQUIRED),
	SENTENCES(struct wait_result, planted, "planted"),
	COUNT(struct wait_result, repaired, "repaired"),
};
const struct table exited_table = TABLE("exited", struct wait_result, exited_fields);

static const struct field signal_params_fields[] = {
	JOB_ID(struct signal_params, REQUIRED),
	COOKIE(struct signal_params),
	U32(struct signal_params, signal, "signal", 1, SIGNAL_MAX, REQUIRED),
};
static const struct table signal_params_table =
	TABLE("signalParams", struct signal_params, signal_params_fields);
static const struct table signal_result_table = EMPTY_TABLE("signalResult", struct signal_result);

static const struct field list_params_fields[] = {
	FIELD_BOOLEAN(struct list_params, all, "all", 0, OPTIONAL),
};
static const struct table list_params_table =
	TABLE("listParams", struct list_params, list_params_fields);

static const struct field job_fields[] = {
	JOB_ID(struct msg_job, REQUIRED),
	COUNT(struct msg_job, uid, "uid"),
	FIELD_NUMBER(struct msg_job, pid, "pid", int32_t, FIELD_I32, 0, INT32_MAX, REQUIRED),
	FIELD_NAMED(struct msg_job, state, "state", state_enum, 0, REQUIRED),
	TEXT(struct msg_job, profile, "profile", 0, LIMIT_NAME_BYTES, OPTIONAL),
	TEXT(struct msg_job, command, "command", 0, LIMIT_NAME_BYTES, OPTIONAL),
	TEXT(struct msg_job, label, "label", 0, LIMIT_LABEL_BYTES, OPTIONAL),
	U64(struct msg_job, started_ms, "startedMs", REQUIRED),
	ENGINE(struct msg_job, OPTIONAL),
	ROOM(struct msg_job, OPTIONAL),
	FIELD_BOOLEAN(struct msg_job, detached, "detached", 0, REQUIRED),
};
static const struct table job_table = TABLE("job", struct msg_job, job_fields);

static const struct field list_result_fields[] = {
	PARTS(struct list_result, jobs, "jobs", job_table, struct msg_job_list,
	      LIMIT_JSON_ELEMENTS),
};
static const struct table list_result_table =
	TABLE("listResult", struct list_result, list_result_fields);

static const struct field inspect_params_fields[] = {
	JOB_ID(struct inspect_params, REQUIRED),
	COOKIE(struct inspect_params),
};
static const struct table inspect_params_table =
	TABLE("inspectParams", struct inspect_params, inspect_params_fields);

static const struct field inspect_result_fields[] = {
	FIELD_PART(struct inspect_result, job, "job", job_table, struct msg_job, REQUIRED),
	ABSOLUTE(struct inspect_result, cwd, "cwd", OPTIONAL),
	TEXT(struct inspect_result, policy_digest, "policyDigest", HEX_DIGEST, HEX_DIGEST,
	     OPTIONAL),
	U32(struct inspect_result, rules, "rules", 0, UINT32_MAX, OPTIONAL),
	NOTES(struct inspect_result, suppressed, "suppressed"),
	SENTENCES(struct inspect_result, withheld, "withheld"),
	SENTENCES(struct inspect_result, warnings, "warnings"),
	FIELD_PART(struct inspect_result, limits, "limits", limits_result_table,
		   struct limits_result, REQUIRED),
	FIELD_POINTER(struct inspect_result, hosts, "hosts", net_table, struct msg_net),
	BYTES_LIST(struct inspect_result, masks, "masks", LIMIT_RULES),
	BYTES_LIST(struct inspect_result, placeholders, "placeholders", LIMIT_RULES),
	BYTES_LIST(struct inspect_result, pins, "pins", LIMIT_RULES),
	BYTES_LIST(struct inspect_result, watched, "watched", LIMIT_RULES),
	BYTES_LIST(struct inspect_result, planted, "planted", LIMIT_RULES),
	U32(struct inspect_result, repaired, "repaired", 0, UINT32_MAX, OPTIONAL),
	FIELD_POINTER(struct inspect_result, exited, "exited", exited_table, struct wait_result),
};
static const struct table inspect_result_table =
	TABLE("inspectResult", struct inspect_result, inspect_result_fields);

static const struct field ledger_params_fields[] = {
	FIELD_BOOLEAN(struct ledger_params, all, "all", 0, OPTIONAL),
	FIELD_BOOLEAN(struct ledger_params, repair, "repair", 0, OPTIONAL),
};
static const struct table ledger_params_table =
	TABLE("ledgerParams", struct ledger_params, ledger_params_fields);

static const struct field placeholder_fields[] = {
	ABSOLUTE(struct msg_placeholder, path, "path", REQUIRED),
	COUNT(struct msg_placeholder, uid, "uid"),
	FIELD_BOOLEAN(struct msg_placeholder, made, "made", 0, REQUIRED),
	FIELD_BOOLEAN(struct msg_placeholder, left, "left", 0, REQUIRED),
	COUNT(struct msg_placeholder, jobs, "jobs"),
};
static const struct table placeholder_table =
	TABLE("placeholder", struct msg_placeholder, placeholder_fields);

static const struct field ledger_result_fields[] = {
	PARTS(struct ledger_result, placeholders, "placeholders", placeholder_table,
	      struct msg_placeholder_list, LIMIT_LEDGER_SHOWN),
	COUNT(struct ledger_result, entries, "entries"),
	COUNT(struct ledger_result, replayed, "replayed"),
	COUNT(struct ledger_result, damaged, "damaged"),
	TEXT(struct ledger_result, unwritable, "unwritable", 0, 128, OPTIONAL),
};
static const struct table ledger_result_table =
	TABLE("ledgerResult", struct ledger_result, ledger_result_fields);

/* ---- status, detect ------------------------------------------------------------------ */

static const struct field counters_fields[] = {
	COUNT(struct status_counters, brokers, "brokers"),
	COUNT(struct status_counters, connections, "connections"),
	COUNT(struct status_counters, jobs, "jobs"),
	COUNT(struct status_counters, jobs_of_uid, "jobsOfUid"),
	U64(struct status_counters, spawns, "spawns", REQUIRED),
	U64(struct status_counters, failures, "failures", REQUIRED),
	U64(struct status_counters, refused_peers, "refusedPeers", REQUIRED),
	COUNT(struct status_counters, placeholders, "placeholders"),
	COUNT(struct status_counters, stuck, "stuck"),
	U64(struct status_counters, zygotes_ready, "zygotesReady", REQUIRED),
	U64(struct status_counters, zygotes_used, "zygotesUsed", REQUIRED),
	U64(struct status_counters, zygotes_refused, "zygotesRefused", REQUIRED),
	U64(struct status_counters, zygotes_expired, "zygotesExpired", REQUIRED),
};
static const struct table counters_table =
	TABLE("counters", struct status_counters, counters_fields);

static const struct table status_params_table = EMPTY_TABLE("statusParams", struct status_params);
static const struct field status_result_fields[] = {
	TEXT(struct status_result, version, "version", 0, LIMIT_LABEL_BYTES, REQUIRED),
	FIELD_NAMED(struct status_result, mode, "mode", mode_enum, 0, REQUIRED),
	COUNT(struct status_result, uid, "uid"),
	U64(struct status_result, started_ms, "startedMs", REQUIRED),
	U64(struct status_result, uptime_ms, "uptimeMs", REQUIRED),
	FIELD_BOOLEAN(struct status_result, recorder_up, "recorderUp", 0, REQUIRED),
	FIELD_PART(struct status_result, counters, "counters", counters_table,
		   struct status_counters, REQUIRED),
	FIELD_VARIABLES(struct status_result, facts, "facts"),
	ENGINES(struct status_result),
	SENTENCES(struct status_result, unenforced, "unenforced"),
	FIELD_STRING(struct status_result, default_profile, "defaultProfile", FIELD_BYTES, 0,
		     LIMIT_PATH_BYTES, OPTIONAL),
	FIELD_NAMED(struct status_result, max_net, "maxNet", net_mode_enum, NET_NONE, REQUIRED),
};
static const struct table status_result_table =
	TABLE("statusResult", struct status_result, status_result_fields);

static const struct table detect_params_table = EMPTY_TABLE("detectParams", struct detect_params);
static const struct field detect_result_fields[] = {
	ENGINES(struct detect_result),
	SENTENCES(struct detect_result, unenforced, "unenforced"),
};
static const struct table detect_result_table =
	TABLE("detectResult", struct detect_result, detect_result_fields);

/* ---- errors -------------------------------------------------------------------------- */

static const struct field error_data_fields[] = {
	FIELD_NAMED(struct error_reply, kind, "kind", error_enum, ERR_NONE, REQUIRED),
	U32(struct error_reply, errnum, "errno", 0, ERRNO_MAX, OPTIONAL),
	TEXT(struct error_reply, stage, "stage", 0, LIMIT_NAME_BYTES, OPTIONAL),
	FIELD_STRING(struct error_reply, path, "path", FIELD_BYTES, 0, LIMIT_PATH_BYTES, OPTIONAL),
	FIELD_NUMBERS(struct error_reply, indexes, "indexes", 0, LIMIT_FRAME_FDS - 1,
		      LIMIT_FRAME_FDS),
	FIELD_STRING(struct error_reply, hint, "hint", FIELD_BYTES, 0, LIMIT_PATH_BYTES + TEXT_MAX,
		     OPTIONAL),
};
static const struct table error_data_table =
	TABLE("errorData", struct error_reply, error_data_fields);

static const struct field error_fields[] = {
	FIELD_NUMBER(struct error_reply, code, "code", int32_t, FIELD_I32, INT32_MIN, INT32_MAX,
		     REQUIRED),
	TEXT(struct error_reply, message, "message", 0, ERROR_REPLY_BYTES, REQUIRED),
	FIELD_GROUP("data", error_data_table, REQUIRED),
};
const struct table error_table = TABLE("error", struct error_reply, error_fields);

/* ---- by method ----------------------------------------------------------------------- */

#define wait_result_table exited_table
#define X(symbol, name, member, text) [symbol] = &member##_params_table,
static const struct table *const params_tables[METHOD_COUNT] = { METHODS(X) };
#undef X
#define X(symbol, name, member, text) [symbol] = &member##_result_table,
static const struct table *const result_tables[METHOD_COUNT] = { METHODS(X) };
#undef X

const struct table *method_params_table(enum method method)
{
	return (size_t)method < METHOD_COUNT ? params_tables[method] : NULL;
}

const struct table *method_result_table(enum method method)
{
	return (size_t)method < METHOD_COUNT ? result_tables[method] : NULL;
}
