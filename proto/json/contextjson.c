/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/json/contextjson.h"

#include "proto/json/tables.h"

/* ---- tables -------------------------------------------------------------------------- */

/* Empty strings count as not given; whether a path is usable is for the policy to say. */
#define PATH_FIELD(member, json, bits) \
	FIELD_STRING(struct policy_context, member, json, FIELD_BYTES, 0, LIMIT_PATH_BYTES, bits)
#define NAME_FIELD(member, json, bits) \
	FIELD_STRING(struct policy_context, member, json, FIELD_TEXT, 0, LIMIT_PATH_BYTES, bits)
#define PATHS_FIELD(member, json)                                                            \
	FIELD_STRINGS(struct policy_context, member, json, FIELD_BYTES, 0, LIMIT_PATH_BYTES, \
		      LIMIT_RULES, OPTIONAL)

static const struct field user_paths_fields[] = {
	PATHS_FIELD(user_read_write, "readWrite"),
	PATHS_FIELD(user_read_only, "readOnly"),
	PATHS_FIELD(user_deny, "deny"),
};
static const struct table user_paths_table =
	TABLE("contextUserPaths", struct policy_context, user_paths_fields);

/* Keys of the full form that name frozen facts, and those of both forms. */
#define FROZEN_FIELDS(bits)                                                                     \
	FIELD_NAMED(struct policy_context, platform, "platform", platform_enum, PLATFORM_LINUX, \
		    bits),                                                                      \
		PATH_FIELD(home_dir, "homeDir", bits),                                          \
		PATH_FIELD(botmux_home, "botmuxHome", bits),                                    \
		PATH_FIELD(session_data_dir, "sessionDataDir", bits),                           \
		PATH_FIELD(bot_home, "botHome", bits),                                          \
		PATH_FIELD(default_botmux_home, "defaultBotmuxHome", OPTIONAL),                 \
		PATH_FIELD(loaded_bots_config_path, "loadedBotsConfigPath", OPTIONAL),          \
		PATH_FIELD(lark_cli_linux_store, "larkCliLinuxStore", OPTIONAL)

#define COMMON_FIELDS(working_dir_bits)                                                            \
	PATH_FIELD(working_dir, "workingDir", working_dir_bits),                                   \
		NAME_FIELD(current_app_id, "currentAppId", REQUIRED),                              \
		NAME_FIELD(session_id, "sessionId", OPTIONAL),                                     \
		PATH_FIELD(role_library_subtree, "roleLibrarySubtree", OPTIONAL),                  \
		FIELD_BOOLEAN(struct policy_context, redirected_cli_data, "redirectedCliData", 0,  \
			      REQUIRED),                                                           \
		PATHS_FIELD(cli_data_paths, "cliDataPaths"), PATHS_FIELD(auth_paths, "authPaths"), \
		PATHS_FIELD(exec_paths, "execPaths"),                                              \
		PATHS_FIELD(readonly_roots, "readonlyRoots"),                                      \
		PATH_FIELD(botmux_install_root, "botmuxInstallRoot", OPTIONAL),                    \
		PATH_FIELD(outbox, "outbox", OPTIONAL),                                            \
		PATHS_FIELD(extra_write_paths, "extraWritePaths"),                                 \
		FIELD_GROUP("userPaths", user_paths_table, OPTIONAL),                              \
		PATHS_FIELD(mandatory_deny_paths, "mandatoryDenyPaths"),                           \
		PATHS_FIELD(mandatory_deny_regexes, "mandatoryDenyRegexes"),                       \
		PATHS_FIELD(mandatory_read_only_paths, "mandatoryReadOnlyPaths"),                  \
		FIELD_BOOLEAN(struct policy_context, net, "net", 1, OPTIONAL),                     \
		PATHS_FIELD(write_regexes, "writeRegexes"),                                        \
		FIELD_BOOLEAN(struct policy_context, lark_transport_enabled,                       \
			      "larkTransportEnabled", 1, OPTIONAL)

static const char *const platform_names[] = { "linux", "darwin" };
static const struct enum_names platform_enum = { platform_names, ARRAY_SIZE(platform_names),
						 PLATFORM_LINUX };

static const struct field full_fields[] = { FROZEN_FIELDS(REQUIRED), COMMON_FIELDS(REQUIRED) };
const struct table context_full_table = TABLE("contextFull", struct policy_context, full_fields);

static const char *const frozen_names[] = {
	"platform", "homeDir",           "botmuxHome",           "sessionDataDir",
	"botHome",  "defaultBotmuxHome", "loadedBotsConfigPath", "larkCliLinuxStore",
	NULL
};
static const struct field wire_fields[] = { FROZEN_FIELDS(OPTIONAL), COMMON_FIELDS(OPTIONAL) };
const struct table context_wire_table = {
	.name = "context",
	.size = sizeof(struct policy_context),
	.fields = wire_fields,
	.count = ARRAY_SIZE(wire_fields),
	.refused = frozen_names,
	.refused_reason = "is a fact that the daemon froze when it started; leave it out",
};

/* ---- functions ----------------------------------------------------------------------- */

static const struct table *table_of(enum context_keys keys)
{
	return keys == CONTEXT_FULL ? &context_full_table : &context_wire_table;
}

int context_from_json(struct policy_context *ret_context, const struct json_value *value,
		      enum context_keys keys, struct error *err)
{
	return codec_decode(table_of(keys), value, "context", NULL, ret_context, err);
}

int context_parse(struct policy_context *ret_context, const char *text, size_t size,
		  enum context_keys keys, struct error *err)
{
	struct json_doc *doc = NULL;
	int r = json_parse(&doc, text, size, NULL, err);

	if (r < 0)
		return r;
	r = context_from_json(ret_context, json_root(doc), keys, err);
	json_doc_free(doc);
	return r;
}

int context_to_json(const struct policy_context *context, enum context_keys keys,
		    struct json_writer *writer, struct error *err)
{
	return codec_encode(table_of(keys), context, "context", writer, NULL, err);
}
