/* SPDX-License-Identifier: Apache-2.0 */

/* The functions of the egress sandbox. Their vectors speak of a system that has no mechanism on Linux. */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/childenv.h"
#include "common/egressprofile.h"
#include "common/pathview.h"
#include "common/posture.h"
#include "common/scope.h"
#include "daemon/hostview.h"
#include "daemon/wrapper.h"
#include "tests/vector_handlers.h"
#include "tests/vector_input.h"
#include "tests/vector_tree.h"

static const struct posture_terms seed_terms = {
	.force_unavailable = "APPROVAL_SANDBOX_FORCE_UNAVAILABLE",
	.required = "APPROVAL_SANDBOX_REQUIRED",
	.linux_has = false,
};

static struct json_value *with_result(struct json_value *value)
{
	struct json_value *object = json_new(JSON_OBJECT);

	(void)json_set(object, "result", value);
	return object;
}

static struct json_value *new_number(size_t number)
{
	struct json_value *value = json_new(JSON_NUMBER);

	value->text = malloc(24);
	if (!value->text)
		abort();
	value->size = (size_t)snprintf(value->text, 24, "%zu", number);
	return value;
}

static const char *env_get(void *arg, const char *name)
{
	return json_get_string(arg, name);
}

static struct posture_env env_of(const struct json_value *input)
{
	return (struct posture_env){
		.get = env_get,
		.arg = (void *)(uintptr_t)json_get(input, "env"),
	};
}

/* ---- names and lists ------------------------------------------------------------------- */

static struct json_value *list_of(const char *const *items)
{
	struct json_value *list = json_new(JSON_ARRAY);

	for (; *items; items++)
		json_append(list, json_new_string(*items));
	return list;
}

static struct json_value *known_states(void)
{
	struct json_value *list = json_new(JSON_ARRAY);

	for (int state = POSTURE_EGRESS_DENIED; state <= POSTURE_UNSUPPORTED; state++)
		json_append(list, json_new_string(posture_state_name((enum posture_state)state)));
	return list;
}

static struct json_value *known_mechanisms(void)
{
	struct json_value *list = json_new(JSON_ARRAY);

	if (seed_terms.linux_has)
		json_append(list, json_new_string(mechanism_name(MECHANISM_NAMESPACE)));
	json_append(list, json_new_string(mechanism_name(MECHANISM_SANDBOX_EXEC)));
	return list;
}

static struct json_value *do_constants(const struct json_value *test, struct error *err)
{
	const char *name = json_get_string(test, "name");
	const struct egress_allowance nothing = { .loopback = false };
	struct json_value *object = json_new(JSON_OBJECT);

	if (!name)
		name = "";
	if (strcmp(name, "constants/mechanisms") == 0) {
		(void)json_set(object, "values", known_mechanisms());
	} else if (strcmp(name, "constants/states") == 0) {
		(void)json_set(object, "values", known_states());
	} else if (strcmp(name, "constants/deny-all-allowance") == 0) {
		(void)json_set(object, "loopback", json_new_bool(nothing.loopback));
		(void)json_set(object, "denyRead", json_new(JSON_ARRAY));
	} else if (strcmp(name, "constants/env-names") == 0) {
		(void)json_set(object, "forceUnavailable",
			       json_new_string(seed_terms.force_unavailable));
		(void)json_set(object, "required", json_new_string(seed_terms.required));
	} else if (strcmp(name, "constants/secret-prefixes") == 0) {
		(void)json_set(object, "values", list_of(childenv_secret_prefixes));
	} else if (strcmp(name, "constants/non-secret-names") == 0) {
		(void)json_set(object, "values", list_of(childenv_open_names));
	} else if (strcmp(name, "constants/jail-runtime-read-paths") == 0) {
		(void)json_set(object, "values", list_of(egress_runtime_roots));
	} else if (strcmp(name, "constants/wrapper-binary") == 0) {
		(void)json_set(object, "value", json_new_string(EGRESS_WRAPPER));
	} else {
		json_free(object);
		(void)error_set(err, ERR_INVALID, 0, "no such constant: %s", name);
		return NULL;
	}
	return object;
}

/* ---- posture --------------------------------------------------------------------------- */

static struct json_value *do_detect(const struct json_value *input, struct error *err)
{
	const char *platform = json_get_string(input, "platform");
	const struct posture_env env = env_of(input);
	struct detection detection;
	struct json_value *object = NULL;

	if (!platform) {
		(void)error_set(err, ERR_INVALID, 0, "no platform");
		return NULL;
	}
	posture_detect(&detection, &seed_terms, platform, &env, NULL);
	object = json_new(JSON_OBJECT);
	(void)json_set(object, "available", json_new_bool(detection.available));
	(void)json_set(object, "mechanism", json_new_string(mechanism_name(detection.mechanism)));
	(void)json_set(object, "supported", json_new_bool(detection.supported));
	(void)json_set(object, "loopback", json_new_bool(detection.loopback));
	(void)json_set(object, "reason", json_new_string(detection.reason));
	return object;
}

/* The reason is prose: it must hold certain words. */
static bool detections_agree(const struct json_value *want, const struct json_value *result)
{
	const struct json_value *words = json_get(want, "reasonContains");
	const char *reason = json_get_string(result, "reason");

	for (size_t i = 0; words && i < words->count; i++)
		if (!strstr(reason, words->items[i]->text))
			return false;
	for (size_t i = 0; i < want->count; i++) {
		const struct json_value *got = json_get(result, want->keys[i]);

		if (strcmp(want->keys[i], "reasonContains") != 0 &&
		    (!got || !json_equal(want->items[i], got, false)))
			return false;
	}
	return true;
}

static struct json_value *do_required(const struct json_value *input, struct error *err)
{
	const struct posture_env env = env_of(input);

	(void)err;
	return with_result(json_new_bool(posture_required(&seed_terms, &env)));
}

static enum mechanism mechanism_from(const char *name)
{
	if (!name)
		return MECHANISM_NONE;
	return strcmp(name, mechanism_name(MECHANISM_NAMESPACE)) == 0 ? MECHANISM_NAMESPACE
								      : MECHANISM_SANDBOX_EXEC;
}

static struct json_value *do_posture(const struct json_value *input, struct error *err)
{
	const struct json_value *given = json_get(input, "detection");
	const char *reason = json_get_string(given, "reason");
	struct detection detection = {
		.supported = json_get_bool(given, "supported", false),
		.available = json_get_bool(given, "available", false),
		.loopback = json_get_bool(given, "loopback", false),
		.mechanism = mechanism_from(json_get_string(given, "mechanism")),
	};
	struct posture_input question = {
		.opted_out = json_get_bool(input, "optedOut", false),
		.granted = json_get_bool(input, "granted", false),
		.require_supported = json_get_bool(input, "requireSupported", false),
		.detection = &detection,
	};
	struct posture posture;
	struct json_value *object = json_new(JSON_OBJECT);

	(void)err;
	(void)snprintf(detection.reason, sizeof(detection.reason), "%s", reason ? reason : "");
	posture = posture_decide(&question);
	switch (posture.kind) {
	case POSTURE_APPLY:
		(void)json_set(object, "kind", json_new_string("apply"));
		(void)json_set(object, "mechanism",
			       json_new_string(mechanism_name(posture.mechanism)));
		break;
	case POSTURE_SKIP:
		(void)json_set(object, "kind", json_new_string("skip"));
		break;
	case POSTURE_REFUSE:
		(void)json_set(object, "kind", json_new_string("refuse"));
		(void)json_set(object, "reason", json_new_string(posture.reason));
		return object;
	}
	(void)json_set(object, "state", json_new_string(posture_state_name(posture.state)));
	return object;
}

/* ---- paths and profile ----------------------------------------------------------------- */

static struct json_value *text_of(const struct vector_tree *tree, char *text)
{
	AUTO(json_release) struct json_value *value = json_new_string(text);

	free(text);
	return with_result(vector_tree_result(tree, value));
}

static struct json_value *do_executable(const struct json_value *input, struct error *err)
{
	AUTO(vector_tree_deinit) struct vector_tree tree = VECTOR_TREE_INIT;
	struct path_view view;
	char *found = NULL;

	if (vector_tree_init(&tree, input, err) < 0)
		return NULL;
	view = hostview(json_get_string(tree.input, "cwd"));
	if (path_find_executable(&view, json_get_string(tree.input, "command"),
				 json_get_string(json_get(tree.input, "env"), "PATH"), &found,
				 err) < 0)
		return NULL;
	return text_of(&tree, found);
}

static struct json_value *do_resolve(const struct json_value *input, struct error *err)
{
	AUTO(vector_tree_deinit) struct vector_tree tree = VECTOR_TREE_INIT;
	struct path_view view;
	char *resolved = NULL;

	if (vector_tree_init(&tree, input, err) < 0)
		return NULL;
	view = hostview(json_get_string(tree.input, "cwd"));
	if (path_resolve_for_profile(&view, json_get_string(tree.input, "path"), &resolved, err) <
	    0)
		return NULL;
	return text_of(&tree, resolved);
}

static struct json_value *do_credentials(const struct json_value *input, struct error *err)
{
	AUTO(string_list_deinit) struct string_list paths = { .items = NULL };
	const char *log_path = json_get_string(input, "logPath");

	if (!log_path || path_credentials_of_log(log_path, &paths, err) < 0)
		return NULL;
	return with_result(output_strings(&paths));
}

/* Whether LINE speaks of a directory above the tree: how many there are, depends on the machine. */
static bool is_above_root(const char *line, const char *root)
{
	static const char start[] = "(allow file-read-metadata (literal \"";
	size_t size = strlen(line);
	size_t path_size = 0;

	if (strncmp(line, start, sizeof(start) - 1) != 0 || size < sizeof(start) + 2)
		return false;
	path_size = size - (sizeof(start) - 1) - strlen("\"))");
	return strlen(root) > path_size &&
	       strncmp(line + sizeof(start) - 1, root, path_size) == 0 && root[path_size] == '/';
}

static struct json_value *profile_lines(const char *text, const char *root)
{
	struct json_value *lines = json_new(JSON_ARRAY);
	bool above = false;

	while (*text) {
		size_t size = strcspn(text, "\n");
		AUTO(auto_free) char *line = strndup(text, size);

		text += text[size] ? size + 1 : size;
		if (size == 0 || strncmp(line, ";;", 2) == 0)
			continue;
		if (!is_above_root(line, root))
			json_append(lines, json_new_string(line));
		else if (!above)
			json_append(lines, json_new_string("${ROOT_ANCESTORS}"));
		above = above || is_above_root(line, root);
	}
	return lines;
}

static struct json_value *do_profile(const struct json_value *input, struct error *err)
{
	AUTO(vector_tree_deinit) struct vector_tree tree = VECTOR_TREE_INIT;
	AUTO(string_list_deinit) struct string_list deny = { .items = NULL };
	AUTO(string_list_deinit) struct string_list allow = { .items = NULL };
	AUTO(string_list_deinit) struct string_list runtime = { .items = NULL };
	AUTO(buf_deinit) struct buf out = BUF_INIT(1u << 20);
	AUTO(json_release) struct json_value *object = json_new(JSON_OBJECT);
	struct egress_allowance allowance = { .deny_read = &deny, .allow_read = &allow };
	const struct json_value *given = NULL;
	struct path_view view = hostview("/");

	if (vector_tree_init(&tree, input, err) < 0)
		return NULL;
	given = json_get(tree.input, "allowance");
	allowance.loopback = json_get_bool(given, "loopback", false);
	if (json_get(tree.input, "runtimeReadRoots"))
		allowance.runtime_roots = &runtime;
	if (input_strings(&deny, json_get(given, "denyRead"), err) < 0 ||
	    input_strings(&allow, json_get(given, "allowRead"), err) < 0 ||
	    input_strings(&runtime, json_get(tree.input, "runtimeReadRoots"), err) < 0 ||
	    egress_profile(&out, &allowance, &view, err) < 0)
		return NULL;
	(void)json_set(object, "lines", profile_lines(buf_text(&out), tree.root));
	return vector_tree_result(&tree, object);
}

static struct json_value *do_wrap(const struct json_value *input, struct error *err)
{
	AUTO(wrapper_deinit) struct wrapper wrapper = WRAPPER_INIT;
	AUTO(string_list_deinit) struct string_list args = { .items = NULL };
	AUTO(string_list_deinit) struct string_list argv = { .items = NULL };
	AUTO(json_release) struct json_value *list = json_new(JSON_ARRAY);
	struct json_value *object = NULL;
	const char *mechanism = json_get_string(input, "mechanism");
	struct stat file = { 0 };
	struct stat dir = { 0 };
	char mode[8];

	if (mechanism_from(mechanism) != MECHANISM_SANDBOX_EXEC ||
	    input_strings(&args, json_get(input, "args"), err) < 0 ||
	    wrapper_init(&wrapper, "/tmp", "(version 1)\n", 12, err) < 0 ||
	    wrapper_argv(&wrapper, json_get_string(input, "command"), &args, &argv, err) < 0 ||
	    stat(wrapper.profile, &file) < 0 || stat(wrapper.dir, &dir) < 0)
		return NULL;
	for (size_t i = 1; i < argv.count; i++)
		json_append(list, json_new_string(argv.items[i]));
	object = json_new(JSON_OBJECT);
	(void)json_set(object, "command", json_new_string(argv.items[0]));
	(void)json_set(object, "args", vector_replace(list, wrapper.profile, "${PROFILE}"));
	(void)json_set(object, "mechanism", json_new_string(mechanism));
	(void)snprintf(mode, sizeof(mode), "%04o", (unsigned)(file.st_mode & 07777));
	(void)json_set(object, "profileMode", json_new_string(mode));
	(void)snprintf(mode, sizeof(mode), "%04o", (unsigned)(dir.st_mode & 07777));
	(void)json_set(object, "cleanupDirMode", json_new_string(mode));
	(void)json_set(object, "profileInsideCleanup",
		       json_new_bool(strncmp(wrapper.profile, wrapper.dir, strlen(wrapper.dir)) ==
				     0));
	return object;
}

/* ---- environment ----------------------------------------------------------------------- */

static struct json_value *do_is_secret(const struct json_value *input, struct error *err)
{
	const char *name = json_get_string(input, "name");

	(void)err;
	return name ? with_result(json_new_bool(childenv_is_secret(name))) : NULL;
}

static struct json_value *do_environment(const struct json_value *input, struct error *err)
{
	AUTO(string_list_deinit) struct string_list declared = { .items = NULL };
	const struct json_value *source = json_get(input, "source");
	const struct childenv_rules rules = {
		.passphrase = json_get_string(input, "passphraseEnv"),
		.declared = &declared,
	};
	struct json_value *object = NULL;
	struct json_value *env = NULL;
	size_t counts[CHILDENV_STRIP + 1] = { 0 };

	if (!source || input_strings(&declared, json_get(input, "declaredCredentials"), err) < 0)
		return NULL;
	object = json_new(JSON_OBJECT);
	env = json_set(object, "env", json_new(JSON_OBJECT));
	for (size_t i = 0; i < source->count; i++) {
		enum childenv_fate fate = childenv_decide(&rules, source->keys[i]);

		counts[fate]++;
		if (fate != CHILDENV_STRIP)
			(void)json_set(env, source->keys[i],
				       json_new_string(source->items[i]->text));
	}
	(void)json_set(object, "stripped", new_number(counts[CHILDENV_STRIP]));
	(void)json_set(object, "passed", new_number(counts[CHILDENV_PASS]));
	return object;
}

static const struct vector_function functions[] = {
	{ "egress:constants", NULL, false, do_constants, NULL },
	{ "egress:detect", do_detect, false, NULL, detections_agree },
	{ "egress:sandboxRequired", do_required, false, NULL, NULL },
	{ "egress:posture", do_posture, false, NULL, NULL },
	{ "egress:resolveExecutable", do_executable, false, NULL, NULL },
	{ "egress:resolveForProfile", do_resolve, false, NULL, NULL },
	{ "egress:credentialPathsFor", do_credentials, false, NULL, NULL },
	{ "egress:profile", do_profile, false, NULL, NULL },
	{ "egress:wrapForSandbox", do_wrap, false, NULL, NULL },
	{ "egress:isSecretEnvName", do_is_secret, false, NULL, NULL },
	{ "egress:childEnvironment", do_environment, false, NULL, NULL },
};

const struct vector_function *vector_egress_function(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(functions); i++)
		if (strcmp(functions[i].name, name) == 0)
			return &functions[i];
	return NULL;
}
