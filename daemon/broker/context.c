/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/broker/context.h"

#include <errno.h>
#include <string.h>

#include "common/larkstore.h"
#include "common/path.h"
#include "common/scope.h"

static int no_memory(struct error *err)
{
	return error_set(err, ERR_NOMEM, ENOMEM, "context");
}

/* VALUE as it is configured, else BELOW a directory. */
static int fill(char **member, const char *value, const char *dir, const char *below,
		struct error *err)
{
	free(*member);
	*member = value != NULL ? strdup(value) : path_join(dir, below);
	return *member != NULL ? 0 : no_memory(err);
}

/* A component of a path: it must not lead anywhere else. */
static int check_name(const char *value, const char *member, struct error *err)
{
	if (value == NULL)
		return error_set(err, ERR_INVALID, 0, "params.context.%s: missing", member);
	if (value[0] == '\0' || strchr(value, '/') != NULL || strcmp(value, ".") == 0 ||
	    strcmp(value, "..") == 0)
		return error_set(err, ERR_INVALID, 0, "params.context.%s: is no name", member);
	return 0;
}

int context_complete(struct policy_context *context, const struct facts *facts,
		     const char text[LINK_TEXT_BYTES], struct error *err)
{
	const char *bots_config = facts_configured(text, "BOTS_CONFIG");
	AUTO(auto_free) char *bots = NULL;
	int r = check_name(context->current_app_id, "currentAppId", err);

	if (r == 0 && context->session_id != NULL && context->session_id[0] != '\0')
		r = check_name(context->session_id, "sessionId", err);
	if (r == 0 && context->working_dir == NULL)
		r = error_set(err, ERR_INVALID, 0, "params.context.workingDir: missing");
	context->platform = PLATFORM_LINUX;
	if (r == 0)
		r = fill(&context->home_dir, facts->home, NULL, NULL, err);
	if (r == 0)
		r = fill(&context->default_botmux_home, NULL, facts->home, ".botmux", err);
	if (r == 0)
		r = fill(&context->botmux_home, facts_configured(text, "BOTMUX_HOME"), facts->home,
			 ".botmux", err);
	if (r == 0)
		r = fill(&context->session_data_dir, facts_configured(text, "SESSION_DATA_DIR"),
			 context->botmux_home, "data", err);
	if (r < 0)
		return r;
	bots = path_join(context->botmux_home, "bots");
	if (bots == NULL)
		return no_memory(err);
	r = fill(&context->bot_home, NULL, bots, context->current_app_id, err);
	if (r == 0 && bots_config != NULL)
		r = fill(&context->loaded_bots_config_path, bots_config, NULL, NULL, err);
	if (r == 0 && facts_configured(text, "LARKSUITE_CLI_DATA_DIR") != NULL) {
		free(context->lark_cli_linux_store);
		context->lark_cli_linux_store =
			lark_store_dir(facts_configured(text, "LARKSUITE_CLI_DATA_DIR"),
				       facts->home);
		if (context->lark_cli_linux_store == NULL)
			r = no_memory(err);
	}
	return r;
}

static int check_paths(const struct string_list *list, const char *member, struct error *err)
{
	for (size_t i = 0; i < list->count; i++) {
		const char *why = path_refusal(list->items[i]);

		if (why != NULL)
			return error_set(err, ERR_POLICY_INVALID, 0,
					 "params.context.%s[%zu]: '%s' %s", member, i,
					 list->items[i], why);
	}
	return 0;
}

static int check_path(const char *path, const char *member, struct error *err)
{
	const char *why = path != NULL && path[0] != '\0' ? path_refusal(path) : NULL;

	if (why != NULL)
		return error_set(err, ERR_POLICY_INVALID, 0, "params.context.%s: '%s' %s", member,
				 path, why);
	return 0;
}

static int check_all(const struct policy_context *context, struct error *err)
{
	const struct {
		const struct string_list *list;
		const char *member;
	} lists[] = {
		{ &context->cli_data_paths, "cliDataPaths" },
		{ &context->auth_paths, "authPaths" },
		{ &context->exec_paths, "execPaths" },
		{ &context->readonly_roots, "readonlyRoots" },
		{ &context->extra_write_paths, "extraWritePaths" },
		{ &context->user_read_write, "userPaths.readWrite" },
		{ &context->user_read_only, "userPaths.readOnly" },
		{ &context->user_deny, "userPaths.deny" },
		{ &context->mandatory_deny_paths, "mandatoryDenyPaths" },
		{ &context->mandatory_read_only_paths, "mandatoryReadOnlyPaths" },
	};
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(lists) && r == 0; i++)
		r = check_paths(lists[i].list, lists[i].member, err);
	if (r == 0)
		r = check_path(context->working_dir, "workingDir", err);
	if (r == 0)
		r = check_path(context->role_library_subtree, "roleLibrarySubtree", err);
	if (r == 0)
		r = check_path(context->botmux_install_root, "botmuxInstallRoot", err);
	if (r == 0)
		r = check_path(context->outbox, "outbox", err);
	return r;
}

int context_candidates(struct rule_list *candidates, struct policy *ret_plain,
		       const struct policy_context *context, struct error *err)
{
	int r = check_all(context, err);

	if (r == 0)
		r = policy_context_build(ret_plain, context, err);
	for (size_t i = 0; r == 0 && i < ret_plain->rules.count; i++) {
		struct rule copy = { 0 };

		r = rule_copy(&copy, &ret_plain->rules.rules[i], err);
		if (r < 0)
			break;
		/* What a host does not have is no error, unless somebody asked for just that. */
		copy.optional = copy.source != RULE_USER;
		r = rule_list_add_take(candidates, &copy, err);
	}
	return r;
}
