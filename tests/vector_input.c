/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/vector_input.h"

#include <stdlib.h>
#include <string.h>

#include "common/scope.h"

int input_strings(struct string_list *list, const struct json_value *value, struct error *err)
{
	int r = 0;

	if (!value)
		return 0;
	if (value->type != JSON_ARRAY)
		return error_set(err, ERR_INVALID, 0, "not a list of strings");
	for (size_t i = 0; r == 0 && i < value->count; i++) {
		if (value->items[i]->type != JSON_STRING)
			return error_set(err, ERR_INVALID, 0, "not a list of strings");
		r = string_list_add(list, value->items[i]->text, err);
	}
	return r;
}

static int input_rule(struct rule_list *rules, const struct json_value *value, struct error *err)
{
	enum access access = ACCESS_NONE;
	enum rule_source source = RULE_BASELINE;

	if (value->type != JSON_ARRAY || value->count != 3 ||
	    value->items[0]->type != JSON_STRING || value->items[1]->type != JSON_STRING ||
	    value->items[2]->type != JSON_STRING || !access_parse(value->items[1]->text, &access) ||
	    !rule_source_parse(value->items[2]->text, &source))
		return error_set(err, ERR_INVALID, 0, "not a rule");
	return rule_list_append(rules, value->items[0]->text, access, source, NULL, err);
}

int input_rules(struct rule_list *rules, const struct json_value *value, struct error *err)
{
	int r = 0;

	if (value && value->type != JSON_ARRAY)
		return error_set(err, ERR_INVALID, 0, "not a list of rules");
	for (size_t i = 0; value && r == 0 && i < value->count; i++)
		r = input_rule(rules, value->items[i], err);
	return r;
}

int input_platform(enum platform *ret_platform, const struct json_value *object, struct error *err)
{
	const char *name = json_get_string(object, "platform");

	if (!name || !platform_parse(name, ret_platform))
		return error_set(err, ERR_INVALID, 0, "no platform");
	return 0;
}

int input_policy(struct policy *policy, const struct json_value *value, struct error *err)
{
	int r = input_rules(&policy->rules, json_get(value, "rules"), err);

	policy->net = json_get_bool(value, "net", true) ? NET_HOST : NET_NONE;
	if (r == 0)
		r = input_strings(&policy->write_regexes, json_get(value, "writeRegexes"), err);
	if (r == 0)
		r = input_strings(&policy->deny_regexes, json_get(value, "denyRegexes"), err);
	if (r == 0)
		r = input_strings(&policy->final_read_only, json_get(value, "finalReadOnlyPaths"),
				  err);
	return r;
}

static int input_text(char **ret_text, const struct json_value *object, const char *key,
		      struct error *err)
{
	const char *text = json_get_string(object, key);

	if (!text)
		return 0;
	*ret_text = strdup(text);
	return *ret_text ? 0 : error_set(err, ERR_NOMEM, 0, "no memory for a string");
}

int input_context(struct policy_context *context, const struct json_value *value, struct error *err)
{
	const struct json_value *user = json_get(value, "userPaths");
	const struct {
		char **text;
		const char *key;
	} texts[] = {
		{ &context->home_dir, "homeDir" },
		{ &context->botmux_home, "botmuxHome" },
		{ &context->session_data_dir, "sessionDataDir" },
		{ &context->working_dir, "workingDir" },
		{ &context->current_app_id, "currentAppId" },
		{ &context->bot_home, "botHome" },
		{ &context->session_id, "sessionId" },
		{ &context->role_library_subtree, "roleLibrarySubtree" },
		{ &context->botmux_install_root, "botmuxInstallRoot" },
		{ &context->outbox, "outbox" },
		{ &context->default_botmux_home, "defaultBotmuxHome" },
		{ &context->loaded_bots_config_path, "loadedBotsConfigPath" },
		{ &context->lark_cli_linux_store, "larkCliLinuxStore" },
	};
	const struct {
		struct string_list *list;
		const struct json_value *object;
		const char *key;
	} lists[] = {
		{ &context->cli_data_paths, value, "cliDataPaths" },
		{ &context->auth_paths, value, "authPaths" },
		{ &context->exec_paths, value, "execPaths" },
		{ &context->readonly_roots, value, "readonlyRoots" },
		{ &context->extra_write_paths, value, "extraWritePaths" },
		{ &context->user_read_write, user, "readWrite" },
		{ &context->user_read_only, user, "readOnly" },
		{ &context->user_deny, user, "deny" },
		{ &context->mandatory_deny_paths, value, "mandatoryDenyPaths" },
		{ &context->mandatory_deny_regexes, value, "mandatoryDenyRegexes" },
		{ &context->mandatory_read_only_paths, value, "mandatoryReadOnlyPaths" },
		{ &context->write_regexes, value, "writeRegexes" },
	};
	int r = input_platform(&context->platform, value, err);

	context->redirected_cli_data = json_get_bool(value, "redirectedCliData", false);
	context->net = json_get_bool(value, "net", true);
	context->lark_transport_enabled = json_get_bool(value, "larkTransportEnabled", true);
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(texts); i++)
		r = input_text(texts[i].text, value, texts[i].key, err);
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(lists); i++)
		r = input_strings(lists[i].list, json_get(lists[i].object, lists[i].key), err);
	return r;
}

struct json_value *output_strings(const struct string_list *list)
{
	struct json_value *array = json_new(JSON_ARRAY);

	for (size_t i = 0; i < list->count; i++)
		json_append(array, json_new_string(list->items[i]));
	return array;
}

struct json_value *output_rule(const struct rule *rule)
{
	struct json_value *tuple = json_new(JSON_ARRAY);

	json_append(tuple, json_new_string(rule->path));
	json_append(tuple, json_new_string(access_name(rule->access)));
	json_append(tuple, json_new_string(rule_source_name(rule->source)));
	return tuple;
}

struct json_value *output_rules(const struct rule_list *rules)
{
	struct json_value *array = json_new(JSON_ARRAY);

	for (size_t i = 0; i < rules->count; i++)
		json_append(array, output_rule(&rules->rules[i]));
	return array;
}

struct json_value *output_policy(const struct policy *policy)
{
	struct json_value *object = json_new(JSON_OBJECT);

	(void)json_set(object, "rules", output_rules(&policy->rules));
	(void)json_set(object, "net", json_new_bool(policy->net != NET_NONE));
	(void)json_set(object, "writeRegexes", output_strings(&policy->write_regexes));
	(void)json_set(object, "denyRegexes", output_strings(&policy->deny_regexes));
	(void)json_set(object, "finalReadOnlyPaths", output_strings(&policy->final_read_only));
	(void)json_set(object, "suppressedAuthorityPaths", output_strings(&policy->suppressed));
	return object;
}
