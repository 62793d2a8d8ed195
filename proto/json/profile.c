/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/json/profile.h"

#include <stdlib.h>
#include <string.h>

#include "common/path.h"
#include "common/scope.h"
#include "proto/json/codec.h"
#include "proto/json/tables.h"
#include "proto/json/utf8.h"

/* ---- tables -------------------------------------------------------------------------- */

static const struct field entry_fields[] = {
	FIELD_STRING(struct path_entry, path, "path", FIELD_BYTES, 1, LIMIT_PATH_BYTES, REQUIRED),
	FIELD_NAMED(struct path_entry, absent, "absent", absent_enum, ABSENT_DEFAULT, OPTIONAL),
	FIELD_BOOLEAN(struct path_entry, optional, "optional", 0, OPTIONAL),
};
static const struct table entry_table = {
	.name = "profilePathEntry",
	.size = sizeof(struct path_entry),
	.fields = entry_fields,
	.count = ARRAY_SIZE(entry_fields),
	.form = TABLE_OBJECT_OR_FIRST,
};

#define ENTRIES(member, json)                                                       \
	FIELD_PARTS(struct msg_paths, member, json, entry_table, struct path_entry, \
		    LIMIT_PROFILE_PATHS)
#define STRINGS(member, json)                                                         \
	FIELD_STRINGS(struct profile, member, json, FIELD_BYTES, 1, LIMIT_PATH_BYTES, \
		      LIMIT_PROFILE_PATHS, OPTIONAL)

static const struct field paths_fields[] = {
	ENTRIES(read_write, "readWrite"),
	ENTRIES(read_only, "readOnly"),
	ENTRIES(deny, "deny"),
};
static const struct table paths_table = TABLE("profilePaths", struct msg_paths, paths_fields);

#define HOST_PATTERNS(member, json)                                                          \
	FIELD_STRINGS(struct msg_net, member, json, FIELD_TEXT, 1, LIMIT_HOST_PATTERN_BYTES, \
		      LIMIT_HOST_PATTERNS, OPTIONAL)

static const struct field net_fields[] = {
	FIELD_NAMED(struct msg_net, mode, "mode", net_choice_enum, NET_CHOICE_UNSET, OPTIONAL),
	HOST_PATTERNS(allow, "allow"),
	HOST_PATTERNS(deny, "deny"),
};
static const struct table net_table = {
	.name = "profileNet",
	.size = sizeof(struct msg_net),
	.fields = net_fields,
	.count = ARRAY_SIZE(net_fields),
	.form = TABLE_OBJECT_OR_FIRST,
};

static const struct field env_fields[] = {
	STRINGS(env_pass, "pass"),
	FIELD_VARIABLES(struct profile, env_set, "set"),
	STRINGS(env_withhold, "withhold"),
};
static const struct table env_table = TABLE("profileEnv", struct profile, env_fields);

static const struct field profile_fields[] = {
	FIELD_STRING(struct profile, extends, "extends", FIELD_BYTES, 1, LIMIT_PATH_BYTES,
		     OPTIONAL),
	FIELD_STRING(struct profile, description, "description", FIELD_TEXT, 0, LIMIT_PATH_BYTES,
		     OPTIONAL),
	FIELD_PART(struct profile, paths, "paths", paths_table, struct msg_paths, OPTIONAL),
	FIELD_PART(struct profile, net, "net", net_table, struct msg_net, OPTIONAL),
	FIELD_GROUP("env", env_table, OPTIONAL),
	FIELD_PART(struct profile, limits, "limits", limits_table, struct msg_limits, OPTIONAL),
	STRINGS(cache, "cache"),
	STRINGS(sockets, "sockets"),
	{
		.name = "protect",
		.kind = FIELD_TRISTATE,
		.offset = CODEC_AT_ENUM(struct profile, protect),
	},
};
const struct table profile_table = TABLE("profile", struct profile, profile_fields);

void profile_deinit(struct profile *profile)
{
	codec_deinit(&profile_table, profile);
}

/* ---- reading ------------------------------------------------------------------------- */

/* Blanks for each comment, so that every other byte stays where it is. */
static void comments_blank(char *text, size_t size)
{
	bool in_string = false;

	for (size_t at = 0; at < size; at++) {
		if (in_string && text[at] == '\\') {
			at++;
		} else if (text[at] == '"') {
			in_string = !in_string;
		} else if (!in_string && text[at] == '/' && at + 1 < size && text[at + 1] == '/') {
			while (at < size && text[at] != '\n')
				text[at++] = ' ';
		}
	}
}

/* FUNCTION for the path of each entry, with its place for messages; stops at the first failure. */
typedef int path_fn(char **path, const void *arg, struct error *err);

static int each_of_entries(struct path_entry_list *list, const char *where, path_fn *function,
			   const void *arg, struct error *err)
{
	for (size_t i = 0; i < list->count; i++) {
		int r = function(&list->items[i].path, arg, err);

		if (r < 0) {
			error_prefix(err, "%s[%zu]", where, i);
			return r;
		}
	}
	return 0;
}

static int each_of_strings(struct string_list *list, const char *where, path_fn *function,
			   const void *arg, struct error *err)
{
	for (size_t i = 0; i < list->count; i++) {
		int r = function(&list->items[i], arg, err);

		if (r < 0) {
			error_prefix(err, "%s[%zu]", where, i);
			return r;
		}
	}
	return 0;
}

static int each_path(struct profile *profile, path_fn *function, const void *arg, struct error *err)
{
	int r = each_of_entries(&profile->paths.read_write, "paths.readWrite", function, arg, err);

	if (r == 0)
		r = each_of_entries(&profile->paths.read_only, "paths.readOnly", function, arg,
				    err);
	if (r == 0)
		r = each_of_entries(&profile->paths.deny, "paths.deny", function, arg, err);
	if (r == 0)
		r = each_of_strings(&profile->cache, "cache", function, arg, err);
	if (r == 0)
		r = each_of_strings(&profile->sockets, "sockets", function, arg, err);
	return r;
}

/* Whether TEXT can be expanded at all shows with any facts, and errors belong to the file. */
static int path_try(char **path, const void *arg, struct error *err)
{
	static const struct profile_facts facts = { .home = "/home", .cwd = "/cwd" };
	AUTO(auto_free) char *expanded = NULL;

	(void)arg;
	return profile_expand_path(*path, &facts, &expanded, err);
}

static int text_parse(struct profile *profile, const char *text, size_t size, struct error *err)
{
	static const struct json_limits limits = {
		.text_bytes = LIMIT_PROFILE_BYTES,
		.depth = LIMIT_JSON_DEPTH,
		.elements = LIMIT_JSON_ELEMENTS,
		.string_bytes = LIMIT_JSON_STRING_BYTES,
		.memory_bytes = LIMIT_JSON_MEMORY_BYTES,
	};
	struct json_doc *doc = NULL;
	int r = json_parse(&doc, text, size, &limits, err);

	if (r < 0)
		return r;
	r = codec_decode(&profile_table, json_root(doc), "profile", NULL, profile, err);
	json_doc_free(doc);
	if (r < 0)
		return r;
	r = each_path(profile, path_try, NULL, err);
	if (r < 0)
		profile_deinit(profile);
	return r;
}

int profile_parse(struct profile *ret_profile, const char *text, size_t size, const char *name,
		  struct error *err)
{
	struct error why = ERROR_INIT;
	AUTO(auto_free) char *blanked = NULL;
	char shown[PRINTABLE_BYTES];
	int r = 0;

	if (size > LIMIT_PROFILE_BYTES)
		return error_set(err, ERR_CONFIG, 0, "%s: longer than %u bytes",
				 text_printable(shown, name), LIMIT_PROFILE_BYTES);
	blanked = malloc(size + 1);
	if (!blanked)
		return error_set(err, ERR_NOMEM, 0, "%s", text_printable(shown, name));
	memcpy(blanked, text, size);
	comments_blank(blanked, size);
	r = text_parse(ret_profile, blanked, size, &why);
	if (r < 0)
		return error_set(err, why.kind == ERR_NOMEM ? ERR_NOMEM : ERR_CONFIG, 0, "%s: %s",
				 text_printable(shown, name), why.message);
	return 0;
}

/* ---- merging ------------------------------------------------------------------------- */

static bool entries_have(const struct path_entry_list *list, const char *path)
{
	for (size_t i = 0; i < list->count; i++)
		if (strcmp(list->items[i].path, path) == 0)
			return true;
	return false;
}

static bool paths_have(const struct msg_paths *paths, const char *path)
{
	return entries_have(&paths->read_write, path) || entries_have(&paths->read_only, path) ||
	       entries_have(&paths->deny, path);
}

/* Take what NEWER names out of LIST. */
static void entries_drop(struct path_entry_list *list, const struct msg_paths *newer)
{
	size_t kept = 0;

	for (size_t i = 0; i < list->count; i++) {
		if (paths_have(newer, list->items[i].path))
			free(list->items[i].path);
		else
			list->items[kept++] = list->items[i];
	}
	list->count = kept;
}

/*
 * Put the SIZE-byte elements of BASE before those of LIST; BASE is then empty. Both have the layout of
 * struct any_list.
 */
static int list_join(void *list_arg, void *base_arg, size_t size, struct error *err)
{
	struct any_list *list = list_arg;
	struct any_list *base = base_arg;
	struct any_list joined = { .count = base->count + list->count };

	if (base->count == 0)
		return 0;
	joined.capacity = joined.count;
	joined.items = realloc(base->items, joined.count * size);
	if (!joined.items)
		return error_set(err, ERR_NOMEM, 0, "profile lists");
	if (list->count > 0)
		memcpy((char *)joined.items + base->count * size, list->items, list->count * size);
	free(list->items);
	*list = joined;
	*base = (struct any_list){ .items = NULL };
	return 0;
}

static void string_inherit(char **own, char **base)
{
	if (!*own)
		*own = steal_ptr(base);
}

static void limits_inherit(struct msg_limits *own, const struct msg_limits *base)
{
	if (own->memory_bytes == 0)
		own->memory_bytes = base->memory_bytes;
	if (own->wall_ms == 0)
		own->wall_ms = base->wall_ms;
	if (own->pids == 0)
		own->pids = base->pids;
	if (own->cpus_milli == 0)
		own->cpus_milli = base->cpus_milli;
}

int profile_merge_take(struct profile *profile, struct profile *base, struct error *err)
{
	const struct {
		void *own;
		void *base;
		size_t size;
	} lists[] = {
		{ &profile->paths.read_write, &base->paths.read_write, sizeof(struct path_entry) },
		{ &profile->paths.read_only, &base->paths.read_only, sizeof(struct path_entry) },
		{ &profile->paths.deny, &base->paths.deny, sizeof(struct path_entry) },
		{ &profile->net.allow, &base->net.allow, sizeof(char *) },
		{ &profile->net.deny, &base->net.deny, sizeof(char *) },
		{ &profile->env_pass, &base->env_pass, sizeof(char *) },
		{ &profile->env_set, &base->env_set, sizeof(struct env_var) },
		{ &profile->env_withhold, &base->env_withhold, sizeof(char *) },
		{ &profile->cache, &base->cache, sizeof(char *) },
		{ &profile->sockets, &base->sockets, sizeof(char *) },
	};
	int r = 0;

	entries_drop(&base->paths.read_write, &profile->paths);
	entries_drop(&base->paths.read_only, &profile->paths);
	entries_drop(&base->paths.deny, &profile->paths);
	for (size_t i = 0; i < ARRAY_SIZE(lists) && r == 0; i++)
		r = list_join(lists[i].own, lists[i].base, lists[i].size, err);

	string_inherit(&profile->description, &base->description);
	free(profile->extends);
	profile->extends = steal_ptr(&base->extends);
	if (profile->net.mode == NET_CHOICE_UNSET)
		profile->net.mode = base->net.mode;
	if (profile->protect == TRISTATE_UNSET)
		profile->protect = base->protect;
	limits_inherit(&profile->limits, &base->limits);
	profile_deinit(base);
	return r;
}

/* ---- expanding ----------------------------------------------------------------------- */

static int expand_refuse(struct error *err, const char *text, const char *why)
{
	char shown[PRINTABLE_BYTES];

	return error_set(err, ERR_CONFIG, 0, "'%s': %s", text_printable(shown, text), why);
}

/* Whether TEXT begins with PREFIX as whole components; then *ret_rest is what follows. */
static bool begins_with(const char *text, const char *prefix, const char **ret_rest)
{
	size_t length = strlen(prefix);

	if (strncmp(text, prefix, length) != 0 || (text[length] != '/' && text[length] != '\0'))
		return false;
	*ret_rest = text + length;
	return true;
}

int profile_expand_path(const char *text, const struct profile_facts *facts, char **ret_path,
			struct error *err)
{
	AUTO(auto_free) char *joined = NULL;
	AUTO(auto_free) char *path = NULL;
	const char *rest = text;
	const char *start = NULL;
	const char *why = NULL;

	if (strpbrk(text, "*?["))
		return expand_refuse(err, text, "globs are not supported");
	if (begins_with(text, "~", &rest) || begins_with(text, "${home}", &rest))
		start = facts->home;
	else if (begins_with(text, "${cwd}", &rest))
		start = facts->cwd;
	else if (text[0] == '~')
		return expand_refuse(err, text, "only ~ itself stands for a home directory");
	if (strstr(rest, "${"))
		return expand_refuse(err, text, "only ${cwd} and ${home}, and only at the start");
	if (!start && text[0] != '/')
		return expand_refuse(err, text, "must begin with /, ~, ${cwd} or ${home}");

	joined = start ? path_join(start, rest) : strdup(text);
	path = joined ? path_collapse(joined) : NULL;
	if (!path)
		return error_set(err, ERR_NOMEM, 0, "expand a path");
	why = path_refusal(path);
	if (why)
		return expand_refuse(err, text, why);
	*ret_path = steal_ptr(&path);
	return 0;
}

static int path_expand(char **path, const void *arg, struct error *err)
{
	char *expanded = NULL;
	int r = profile_expand_path(*path, arg, &expanded, err);

	if (r < 0)
		return r;
	free(*path);
	*path = expanded;
	return 0;
}

int profile_expand(struct profile *profile, const struct profile_facts *facts, struct error *err)
{
	return each_path(profile, path_expand, facts, err);
}
