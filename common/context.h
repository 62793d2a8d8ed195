/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_COMMON_CONTEXT_H
#define FSBOX_COMMON_CONTEXT_H

/*
 * The botmux policy context: what is known about one bot's session, and the policy that follows.
 *
 * Strings go into paths as they are; nothing is looked up. Empty strings count as not given. Lists
 * may hold anything: what does not normalise has no effect here (the daemon refuses it before).
 */

#include <stdbool.h>

#include "common/baseline.h"
#include "common/error.h"
#include "common/policy.h"

/* Strings and lists are owned. Names follow the fields of the context's JSON form. */
struct policy_context {
	enum platform platform;

	/* required */
	char *home_dir;
	char *botmux_home;
	char *session_data_dir;
	char *working_dir;
	char *current_app_id;
	char *bot_home;

	/* may be NULL */
	char *session_id;
	char *role_library_subtree;
	char *botmux_install_root;
	char *outbox;
	char *default_botmux_home;     /* without lark transport */
	char *loaded_bots_config_path; /* without lark transport */
	char *lark_cli_linux_store;    /* Linux */

	bool redirected_cli_data; /* cli_data_paths are not exposed */
	bool net;
	bool lark_transport_enabled;

	struct string_list cli_data_paths;
	struct string_list auth_paths;
	struct string_list exec_paths;
	struct string_list readonly_roots;
	struct string_list extra_write_paths;
	struct string_list user_read_write;
	struct string_list user_read_only;
	struct string_list user_deny;
	struct string_list mandatory_deny_paths;
	struct string_list mandatory_deny_regexes;
	struct string_list mandatory_read_only_paths;
	struct string_list write_regexes;
};

#define POLICY_CONTEXT_INIT                                 \
	{                                                   \
		.net = true, .lark_transport_enabled = true \
	}

void policy_context_deinit(struct policy_context *context);

/*
 * Build the policy of CONTEXT, indexed. RET_POLICY holds nothing before. What was left out because
 * it lies in an authority root is in its `suppressed` and `notes`.
 *
 * Fails with ERR_EXTERNAL_BOTS_CONFIG, ERR_WORKING_DIR_IS_AUTHORITY or ERR_BOTS_CONFIG_IN_CARVEOUT
 * (in this order, only without lark transport), with ERR_INVALID when a required string is NULL,
 * with ERR_POLICY_INVALID beyond LIMIT_RULES, or with ERR_NOMEM.
 */
int policy_context_build(struct policy *ret_policy, const struct policy_context *context,
			 struct error *err);

#endif
