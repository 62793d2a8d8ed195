/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/json/tables.h"

/* The methods of administrators and auditors: events, grants. */

#define HEX_DIGEST 64

static const char *const net_mode_names[] = { "none", "proxy", "host" };
static const struct enum_names net_mode_enum = {
	net_mode_names,
	ARRAY_SIZE(net_mode_names),
	NET_NONE,
};
static const char *const state_names[] = { "open", "spent", "revoked", "expired" };
static const struct enum_names state_enum = {
	state_names,
	ARRAY_SIZE(state_names),
	GRANT_OPEN,
};

#define NUMBER(owner, member, json, low, bits) \
	FIELD_NUMBER(owner, member, json, uint64_t, FIELD_U64, low, INT64_MAX, bits)
#define USER(owner, member, json) \
	FIELD_NUMBER(owner, member, json, uint32_t, FIELD_U32, 0, UINT32_MAX, REQUIRED)
#define DIGEST(owner, member, json) \
	FIELD_STRING(owner, member, json, FIELD_TEXT, HEX_DIGEST, HEX_DIGEST, REQUIRED)
#define COMMAND(owner) \
	FIELD_STRING(owner, command, "command", FIELD_TEXT, 0, LIMIT_NAME_BYTES - 1, REQUIRED)
#define KINDS(member, json)                                                                      \
	FIELD_STRINGS(struct grant_create_params, member, json, FIELD_TEXT, 1, LIMIT_NAME_BYTES, \
		      STDIO_KIND_COUNT, OPTIONAL)
#define STDIO_KIND_COUNT 6

static const struct field events_params_fields[] = {
	NUMBER(struct events_params, job, "job", 1, OPTIONAL),
	FIELD_BOOLEAN(struct events_params, follow, "follow", 0, OPTIONAL),
	FIELD_BOOLEAN(struct events_params, all, "all", 0, OPTIONAL),
};
const struct table events_params_table =
	TABLE("eventsParams", struct events_params, events_params_fields);

static const struct field events_result_fields[] = {
	FIELD_DESCRIPTOR(struct events_result, stream_fd, "stream", FIELD_FD, REQUIRED),
};
const struct table events_result_table =
	TABLE("eventsResult", struct events_result, events_result_fields);

static const struct field grant_create_params_fields[] = {
	USER(struct grant_create_params, uid, "uid"),
	FIELD_NAMED(struct grant_create_params, net, "net", net_mode_enum, NET_NONE, REQUIRED),
	NUMBER(struct grant_create_params, ttl_ms, "ttlMs", 1, REQUIRED),
	COMMAND(struct grant_create_params),
	DIGEST(struct grant_create_params, args_hash, "argsHash"),
	DIGEST(struct grant_create_params, env_hash, "envHash"),
	DIGEST(struct grant_create_params, exec_hash, "execHash"),
	DIGEST(struct grant_create_params, plan_hash, "planHash"),
	KINDS(stdin_kinds, "stdin"),
	KINDS(stdout_kinds, "stdout"),
	KINDS(stderr_kinds, "stderr"),
};
const struct table grant_create_params_table =
	TABLE("grantCreateParams", struct grant_create_params, grant_create_params_fields);

static const struct field grant_create_result_fields[] = {
	NUMBER(struct grant_create_result, grant, "grant", 1, REQUIRED),
	DIGEST(struct grant_create_result, token, "token"),
	NUMBER(struct grant_create_result, expires_ms, "expiresMs", 0, REQUIRED),
};
const struct table grant_create_result_table =
	TABLE("grantCreateResult", struct grant_create_result, grant_create_result_fields);

const struct table grant_list_params_table = {
	.name = "grantListParams",
	.size = sizeof(struct grant_list_params),
};

static const struct field grant_fields[] = {
	NUMBER(struct msg_grant, grant, "grant", 1, REQUIRED),
	USER(struct msg_grant, uid, "uid"),
	USER(struct msg_grant, creator, "creator"),
	FIELD_NAMED(struct msg_grant, state, "state", state_enum, 0, REQUIRED),
	FIELD_NAMED(struct msg_grant, net, "net", net_mode_enum, NET_NONE, REQUIRED),
	COMMAND(struct msg_grant),
	NUMBER(struct msg_grant, created_ms, "createdMs", 0, REQUIRED),
	NUMBER(struct msg_grant, expires_ms, "expiresMs", 0, REQUIRED),
	NUMBER(struct msg_grant, job, "job", 1, OPTIONAL),
};
static const struct table grant_table = TABLE("grant", struct msg_grant, grant_fields);

static const struct field grant_list_result_fields[] = {
	{
		.name = "grants",
		.kind = FIELD_STRUCT,
		.table = &grant_table,
		.flags = LIST | REQUIRED,
		.max_count = LIMIT_GRANTS,
		.offset = CODEC_AT(struct grant_list_result, grants, struct msg_grant_list),
	},
};
const struct table grant_list_result_table =
	TABLE("grantListResult", struct grant_list_result, grant_list_result_fields);

static const struct field grant_revoke_params_fields[] = {
	NUMBER(struct grant_revoke_params, grant, "grant", 1, REQUIRED),
};
const struct table grant_revoke_params_table =
	TABLE("grantRevokeParams", struct grant_revoke_params, grant_revoke_params_fields);

const struct table grant_revoke_result_table = {
	.name = "grantRevokeResult",
	.size = sizeof(struct grant_revoke_result),
};
