/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/vector_handlers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/authority.h"
#include "common/buf.h"
#include "common/bwrap.h"
#include "common/context.h"
#include "common/larkstore.h"
#include "common/legacy.h"
#include "common/path.h"
#include "common/plan.h"
#include "common/policy.h"
#include "common/redirect.h"
#include "common/scope.h"
#include "common/seatbelt.h"
#include "tests/vector_input.h"

static struct json_value *object_with(const char *key, struct json_value *value)
{
	struct json_value *object = json_new(JSON_OBJECT);

	(void)json_set(object, key, value);
	return object;
}

/* {"result": TEXT}, TEXT taken; NULL is null. */
static struct json_value *text_result(char *text)
{
	struct json_value *value = json_new_string(text);

	free(text);
	return object_with("result", value);
}

/* A string that must be there; NULL with ERR filled when it is not. */
static const char *need(const struct json_value *input, const char *key, struct error *err)
{
	const char *text = json_get_string(input, key);

	if (!text)
		(void)error_set(err, ERR_INVALID, 0, "input has no string '%s'", key);
	return text;
}

static struct json_value *do_normalize(const struct json_value *input, struct error *err)
{
	const char *path = need(input, "p", err);

	return path ? text_result(path_normalize(path)) : NULL;
}

static struct json_value *do_clean(const struct json_value *input, struct error *err)
{
	const char *path = need(input, "p", err);

	return path ? text_result(path_clean(path)) : NULL;
}

static struct json_value *do_covers(const struct json_value *input, struct error *err)
{
	const char *path = need(input, "p", err);
	const char *child = need(input, "child", err);

	return path && child ? object_with("result", json_new_bool(path_covers(path, child)))
			     : NULL;
}

static struct json_value *do_merge(const struct json_value *input, struct error *err)
{
	AUTO(rule_list_deinit) struct rule_list candidates = RULE_LIST_INIT;
	AUTO(rule_list_deinit) struct rule_list merged = RULE_LIST_INIT;

	if (input_rules(&candidates, json_get(input, "candidates"), err) < 0 ||
	    rule_list_merge(&merged, &candidates, err) < 0)
		return NULL;
	return object_with("rules", output_rules(&merged));
}

/* Through the index, also for lists that are not in order. */
static struct json_value *do_access(const struct json_value *input, struct error *err)
{
	AUTO(policy_deinit) struct policy policy = POLICY_INIT;
	AUTO(string_list_deinit) struct string_list paths = { .items = NULL };
	struct json_value *results = NULL;

	if (input_rules(&policy.rules, json_get(input, "rules"), err) < 0 ||
	    input_strings(&paths, json_get(input, "paths"), err) < 0 ||
	    policy_index(&policy, err) < 0)
		return NULL;
	results = json_new(JSON_ARRAY);
	for (size_t i = 0; i < paths.count; i++) {
		struct verdict verdict = policy_access(&policy, paths.items[i]);
		struct json_value *result = json_new(JSON_OBJECT);

		(void)json_set(result, "path", json_new_string(paths.items[i]));
		(void)json_set(result, "access", json_new_string(access_name(verdict.access)));
		(void)json_set(result, "rule",
			       verdict.rule ? output_rule(verdict.rule) : json_new(JSON_NULL));
		json_append(results, result);
	}
	return object_with("results", results);
}

static struct json_value *do_ancestors(const struct json_value *input, struct error *err)
{
	AUTO(rule_list_deinit) struct rule_list rules = RULE_LIST_INIT;
	AUTO(string_list_deinit) struct string_list paths = { .items = NULL };

	if (input_rules(&rules, json_get(input, "rules"), err) < 0 ||
	    policy_traverse_ancestors(&rules, &paths, err) < 0)
		return NULL;
	return object_with("result", output_strings(&paths));
}

static struct json_value *do_surviving(const struct json_value *input, struct error *err)
{
	AUTO(string_list_deinit) struct string_list auth = { .items = NULL };
	AUTO(string_list_deinit) struct string_list roots = { .items = NULL };
	AUTO(string_list_deinit) struct string_list kept = { .items = NULL };

	if (input_strings(&auth, json_get(input, "authPaths"), err) < 0 ||
	    input_strings(&roots, json_get(input, "rehomedRoots"), err) < 0 ||
	    redirect_surviving(&kept, &auth, &roots, err) < 0)
		return NULL;
	return object_with("result", output_strings(&kept));
}

static struct json_value *do_redirected(const struct json_value *input, struct error *err)
{
	AUTO(string_list_deinit) struct string_list auth = { .items = NULL };
	AUTO(string_list_deinit) struct string_list roots = { .items = NULL };
	AUTO(string_list_deinit) struct string_list kept = { .items = NULL };
	bool redirect = json_get_bool(input, "willRedirectCliData", false);

	if (input_strings(&auth, json_get(input, "declaredAuthPaths"), err) < 0 ||
	    input_strings(&roots, json_get(input, "rehomedHostRoots"), err) < 0 ||
	    redirect_auth_paths(&kept, &auth, redirect, &roots, err) < 0)
		return NULL;
	return object_with("result", output_strings(&kept));
}

static struct json_value *do_store_path(const struct json_value *input, struct error *err)
{
	const char *home = need(input, "homeDir", err);

	return home ? text_result(lark_store_path(home, json_get_string(input, "override"))) : NULL;
}

static struct json_value *do_child_root(const struct json_value *input, struct error *err)
{
	(void)err;
	return text_result(lark_child_data_root(json_get_string(input, "canonStore")));
}

static struct json_value *do_store_dir(const struct json_value *input, struct error *err)
{
	const char *home = need(input, "homeDir", err);

	return home ? text_result(lark_store_dir(json_get_string(input, "rawDataDir"), home))
		    : NULL;
}

static struct json_value *do_authority_roots(const struct json_value *input, struct error *err)
{
	AUTO(string_list_deinit) struct string_list roots = { .items = NULL };
	struct authority_input authority = {
		.home_dir = need(input, "homeDir", err),
		.botmux_home = need(input, "botmuxHome", err),
		.default_botmux_home = json_get_string(input, "defaultBotmuxHome"),
		.loaded_bots_config = json_get_string(input, "loadedBotsConfigPath"),
		.lark_cli_linux_store = json_get_string(input, "larkCliLinuxStore"),
	};

	if (!authority.home_dir || !authority.botmux_home ||
	    input_platform(&authority.platform, input, err) < 0 ||
	    authority_roots(&roots, &authority, err) < 0)
		return NULL;
	return object_with("roots", output_strings(&roots));
}

static struct json_value *do_build(const struct json_value *input, struct error *err)
{
	AUTO(policy_context_deinit) struct policy_context context = POLICY_CONTEXT_INIT;
	AUTO(policy_deinit) struct policy policy = POLICY_INIT;

	if (input_context(&context, input, err) < 0 ||
	    policy_context_build(&policy, &context, err) < 0)
		return NULL;
	return output_policy(&policy);
}

/* The lines of TEXT, each of which ends in a newline. */
static struct json_value *lines_of(const char *text)
{
	struct json_value *lines = json_new(JSON_ARRAY);

	while (*text) {
		size_t size = strcspn(text, "\n");
		AUTO(auto_free) char *line = strndup(text, size);

		json_append(lines, json_new_string(line));
		text += text[size] ? size + 1 : size;
	}
	return lines;
}

static struct json_value *do_seatbelt(const struct json_value *input, struct error *err)
{
	AUTO(policy_deinit) struct policy policy = POLICY_INIT;
	AUTO(buf_deinit) struct buf out = BUF_INIT(64u << 20);

	if (input_policy(&policy, json_get(input, "policy"), err) < 0 ||
	    seatbelt_compile(&out, &policy, 0, err) < 0)
		return NULL;
	return object_with("lines", lines_of(buf_text(&out)));
}

/* Links of the input, borrowed from it; the caller frees the list. */
static struct plan_symlink *input_symlinks(const struct json_value *value, size_t *ret_count,
					   struct error *err)
{
	size_t count = value && value->type == JSON_ARRAY ? value->count : 0;
	struct plan_symlink *links = calloc(count + 1, sizeof(*links));

	for (size_t i = 0; links && i < count; i++) {
		links[i].path = need(value->items[i], "path", err);
		links[i].target = need(value->items[i], "target", err);
		if (!links[i].path || !links[i].target) {
			free(links);
			return NULL;
		}
	}
	*ret_count = count;
	return links;
}

/* [{PATH_KEY: ..., OTHER_KEY: ...}] from two parallel lists. */
static struct json_value *output_pairs(const char *first_key, const struct string_list *first,
				       const char *second_key, const struct string_list *second)
{
	struct json_value *array = json_new(JSON_ARRAY);

	for (size_t i = 0; i < first->count; i++) {
		struct json_value *pair = json_new(JSON_OBJECT);

		(void)json_set(pair, first_key, json_new_string(first->items[i]));
		(void)json_set(pair, second_key, json_new_string(second->items[i]));
		json_append(array, pair);
	}
	return array;
}

static struct json_value *output_bwrap(const struct bwrap_plain *plain, struct error *err)
{
	AUTO(string_list_deinit) struct string_list kinds = { .items = NULL };
	struct json_value *object = NULL;

	for (size_t i = 0; i < plain->mask_mounts.count; i++)
		if (string_list_add(&kinds, plain->mask_mount_is_dir[i] ? "dir" : "file", err) < 0)
			return NULL;
	object = object_with("args", output_strings(&plain->args));
	(void)json_set(object, "emptyFiles",
		       output_pairs("path", &plain->empty_files, "maskedPath",
				    &plain->empty_file_masks));
	(void)json_set(object, "maskMounts",
		       output_pairs("path", &plain->mask_mounts, "kind", &kinds));
	return object;
}

static struct json_value *do_bwrap(const struct json_value *input, struct error *err)
{
	AUTO(policy_deinit) struct policy policy = POLICY_INIT;
	AUTO(plan_deinit) struct plan plan = PLAN_INIT;
	AUTO(bwrap_plain_deinit) struct bwrap_plain plain = { .mask_mount_is_dir = NULL };
	AUTO(string_list_deinit) struct string_list file_paths = { .items = NULL };
	AUTO(auto_free) struct plan_symlink *links = NULL;
	const struct json_value *opts = json_get(input, "opts");
	const struct bwrap_plain_options names = {
		.empty_dir = need(opts, "emptyDir", err),
		.empties_dir = need(opts, "emptiesDir", err),
	};
	struct plan_options options = {
		.chdir = need(opts, "chdir", err),
		.skip_pid = json_get_bool(opts, "skipPidNamespace", false),
		.file_paths = &file_paths,
	};

	links = input_symlinks(json_get(opts, "symlinks"), &options.symlink_count, err);
	options.symlinks = links;
	if (!names.empty_dir || !names.empties_dir || !options.chdir || !links ||
	    input_strings(&file_paths, json_get(opts, "filePaths"), err) < 0 ||
	    input_policy(&policy, json_get(input, "policy"), err) < 0 ||
	    policy_index(&policy, err) < 0 || plan_build(&plan, &policy, &options, err) < 0 ||
	    bwrap_compile_plain(&plan, &names, &plain, err) < 0)
		return NULL;
	return output_bwrap(&plain, err);
}

static struct json_value *migrated_value(const struct migrated_fields *migrated)
{
	struct json_value *result = json_new(JSON_OBJECT);
	struct json_value *paths = NULL;

	(void)json_set(result, "sandbox", json_new_bool(migrated->sandbox));
	if (migrated->read_only.count == 0 && migrated->deny.count == 0)
		return result;
	paths = json_set(result, "sandboxPaths", json_new(JSON_OBJECT));
	if (migrated->read_only.count > 0)
		(void)json_set(paths, "readOnly", output_strings(&migrated->read_only));
	if (migrated->deny.count > 0)
		(void)json_set(paths, "deny", output_strings(&migrated->deny));
	return result;
}

static struct json_value *do_migrate(const struct json_value *input, struct error *err)
{
	AUTO(legacy_fields_deinit) struct legacy_fields fields = { .sandbox = false };
	AUTO(migrated_fields_deinit) struct migrated_fields migrated = { .needed = false };
	const struct json_value *entry = json_get(input, "entry");

	fields.sandbox = json_get_bool(entry, "sandbox", false);
	fields.read_isolation = json_get_bool(entry, "readIsolation", false);
	fields.has_sandbox_paths = json_get(entry, "sandboxPaths") != NULL;
	if (input_strings(&fields.readonly_paths, json_get(entry, "sandboxReadonlyPaths"), err) <
		    0 ||
	    input_strings(&fields.hide_paths, json_get(entry, "sandboxHidePaths"), err) < 0 ||
	    input_strings(&fields.deny_extra_paths, json_get(entry, "readDenyExtraPaths"), err) <
		    0 ||
	    legacy_migrate(&migrated, &fields, err) < 0)
		return NULL;
	return object_with("result",
			   migrated.needed ? migrated_value(&migrated) : json_new(JSON_NULL));
}

static const struct vector_function functions[] = {
	{ "normalizeFsPath", do_normalize, false, NULL, NULL },
	{ "cleanPosixAbsPath", do_clean, false, NULL, NULL },
	{ "coversPath", do_covers, false, NULL, NULL },
	{ "mergeFsRules", do_merge, false, NULL, NULL },
	{ "accessForPath", do_access, false, NULL, NULL },
	{ "ancestorsNeedingTraverse", do_ancestors, false, NULL, NULL },
	{ "authPathsSurvivingCliDataRedirect", do_surviving, false, NULL, NULL },
	{ "resolveRedirectedAdapterAuthPaths", do_redirected, false, NULL, NULL },
	{ "larkCliLinuxStorePath", do_store_path, false, NULL, NULL },
	{ "larkCliChildDataRoot", do_child_root, false, NULL, NULL },
	{ "resolveLarkCliLinuxStoreDir", do_store_dir, false, NULL, NULL },
	{ "computeNoTransportAuthorityRoots", do_authority_roots, false, NULL, NULL },
	{ "buildFsPolicy", do_build, true, NULL, NULL },
	{ "compileToBwrap", do_bwrap, false, NULL, NULL },
	{ "compileToSeatbelt", do_seatbelt, false, NULL, NULL },
	{ "migrateLegacySandboxFields", do_migrate, false, NULL, NULL },
};

const struct vector_function *vector_function(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(functions); i++)
		if (strcmp(functions[i].name, name) == 0)
			return &functions[i];
	return vector_masks_function(name) ? vector_masks_function(name)
					   : vector_egress_function(name);
}
