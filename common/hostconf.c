/* SPDX-License-Identifier: Apache-2.0 */
#include "common/hostconf.h"

#include <stdlib.h>
#include <string.h>

#include "common/confline.h"
#include "common/limits.h"
#include "common/path.h"
#include "common/scope.h"

#define KIB (UINT64_C(1) << 10)
#define MIB (UINT64_C(1) << 20)
#define TIB (UINT64_C(1) << 40)
#define YEAR_MS (UINT64_C(366) * 24 * 3600 * 1000)
#define CONF_LIST_MAX 4096 /* entries of one list key: far more than anybody writes by hand */

/*
 * How the text of a value becomes a field, and the field's type.
 *
 * KIND_CHOICE is an unsigned int: MIN plus the position of the word in the form "a|b|c".
 * The NONE_ variants also take the word "none" for 0, which means no limit.
 */
enum kind {
	KIND_CHOICE,
	KIND_PATHS,
	KIND_ENV_NAMES,
	KIND_GROUPS,
	KIND_GROUP,
	KIND_NAME,
	KIND_ENGINE,
	KIND_PROXY,
	KIND_UIDS,
	KIND_HOST_ENV,
	KIND_COUNT32,
	KIND_SIZE,
	KIND_NONE_COUNT32,
	KIND_NONE_SIZE,
	KIND_NONE_CPUS,
	KIND_NONE_DURATION,
};

/* What a user's own file may do where a file of the host has set the key. */
enum user_rule {
	USER_NOTHING,   /* no direction is stricter: the host's word stands */
	USER_APPEND,    /* every entry makes it stricter */
	USER_LOWER,     /* the smaller value is stricter */
	USER_HIGHER,    /* the larger value is stricter */
	USER_LOWER_SET, /* as USER_LOWER, but 0 is no limit at all */
};

/*	 key, field, kind, user rule, min, max, form, default, help */
#define HOSTCONF_KEYS(X)                                                                           \
	X("mandatory-deny", mandatory_deny, KIND_PATHS, USER_APPEND, 0, 0, "PATH (repeatable)",    \
	  "", "denied in every job; no profile, request or grant opens it again")                  \
	X("mandatory-read-only", mandatory_read_only, KIND_PATHS, USER_APPEND, 0, 0,               \
	  "PATH (repeatable)", "", "never writable in any job")                                    \
	X("max-net", max_net, KIND_CHOICE, USER_LOWER, NET_NONE, 0, "none|proxy|host", "host",     \
	  "the most network a job may have without a grant")                                       \
	X("default-profile", default_profile, KIND_NAME, USER_NOTHING, 0, 0, "NAME", "generic",    \
	  "profile of requests that name none")                                                    \
	X("default-engine", default_engine, KIND_ENGINE, USER_NOTHING, 0, 0, "auto|bwrap|native",  \
	  "auto", "engine of requests that name none; auto takes the first that is available")     \
	X("root-peers", root_peers, KIND_CHOICE, USER_LOWER, ROOT_PEERS_REFUSE, 0, "refuse|serve", \
	  "refuse", "whether the system daemon serves uid 0")                                      \
	X("admit-confined-uid", admit_confined_uids, KIND_UIDS, USER_NOTHING, 0, 0,                \
	  "UID (repeatable)", "", "serve this user although his process is confined already")      \
	X("admin-group", admin_group, KIND_GROUP, USER_NOTHING, 0, 0, "GROUP", "fsbox-admin",      \
	  "members see and signal all jobs and make grants")                                       \
	X("max-jobs-per-uid", max_jobs_per_uid, KIND_COUNT32, USER_LOWER, 1, 65536, "COUNT",       \
	  "1024", "jobs of one user at a time")                                                    \
	X("max-jobs", max_jobs, KIND_COUNT32, USER_LOWER, 1, 65536, "COUNT", "4096",               \
	  "jobs of all users at a time")                                                           \
	X("max-spawns-per-second", max_spawns_per_second, KIND_COUNT32, USER_LOWER, 1, 1000000,    \
	  "COUNT", "1000", "starts of one user in a second")                                       \
	X("default-memory", default_memory_bytes, KIND_NONE_SIZE, USER_LOWER_SET, MIB, 1024 * TIB, \
	  "SIZE|none", "none", "memory of a job that asks for no limit")                           \
	X("default-pids", default_pids, KIND_NONE_COUNT32, USER_LOWER_SET, 1, 4194304,             \
	  "COUNT|none", "none", "processes and threads of a job that asks for no limit")           \
	X("default-cpus", default_cpus_milli, KIND_NONE_CPUS, USER_LOWER_SET, 10, 1024000,         \
	  "NUMBER|none", "none", "processors of a job that asks for no limit; 1.5 is allowed")     \
	X("default-timeout", default_timeout_ms, KIND_NONE_DURATION, USER_LOWER_SET, 1, YEAR_MS,   \
	  "DURATION|none", "none", "wall time of a job that asks for no limit")                    \
	X("audit", audit, KIND_CHOICE, USER_HIGHER, AUDIT_BEST_EFFORT, 0, "best-effort|required",  \
	  "best-effort", "whether a start waits for its durable record")                           \
	X("events-max-bytes", events_max_bytes, KIND_SIZE, USER_NOTHING, 64 * KIB, TIB, "SIZE",    \
	  "64M", "size of events.jsonl at which it is rotated")                                    \
	X("on-unmask", on_unmask, KIND_CHOICE, USER_HIGHER, ON_UNMASK_REMASK, 0, "remask|kill",    \
	  "remask", "what follows when a mask is torn off from outside")                           \
	X("on-plant", on_plant, KIND_CHOICE, USER_HIGHER, ON_PLANT_QUARANTINE, 0,                  \
	  "quarantine|kill", "quarantine", "what follows when a job makes a name that executes")   \
	X("absent-deny", absent_deny, KIND_CHOICE, USER_LOWER, ABSENT_PLACEHOLDER, 0,              \
	  "placeholder|watch|report|ignore", "placeholder", "denied paths that do not exist")      \
	X("zygotes", zygotes, KIND_COUNT32, USER_LOWER, 0, 64, "COUNT", "0",                       \
	  "prepared processes for each policy in use; 0 switches them off")                        \
	X("template-cache-mounts", template_cache_mounts, KIND_COUNT32, USER_LOWER, 0, 1000000,    \
	  "COUNT", "20000", "mounts held by prepared trees together")                              \
	X("net-pool", net_pool, KIND_COUNT32, USER_LOWER, 0, 256, "COUNT", "24",                   \
	  "prepared network namespaces")                                                           \
	X("env-withhold", env_withhold, KIND_ENV_NAMES, USER_APPEND, 0, 0, "PATTERN (repeatable)", \
	  "", "variables that no job gets, besides the usual ones")                                \
	X("env-pass", env_pass, KIND_ENV_NAMES, USER_NOTHING, 0, 0, "PATTERN (repeatable)", "",    \
	  "variables that jobs get although they look like secrets")                               \
	X("host-env", host_env, KIND_HOST_ENV, USER_NOTHING, 0, 0, "NAME=VALUE (repeatable)", "",  \
	  "a frozen fact about this host; host-env@USER holds for one user only")                  \
	X("upstream-proxy", upstream_proxy, KIND_PROXY, USER_NOTHING, 0, 0, "URL|none", "none",    \
	  "http:// or socks5:// proxy that fsbox-egress goes through")                             \
	X("drop-group", drop_groups, KIND_GROUPS, USER_APPEND, 0, 0, "GROUP (repeatable)", "",     \
	  "group that jobs lose, besides fsbox, fsbox-admin, docker, lxd and libvirt")             \
	X("log-level", log_level, KIND_CHOICE, USER_NOTHING, 0, 0, "error|warning|info|debug",     \
	  "info", "what the daemon logs")

struct spec {
	enum kind kind;
	enum user_rule user_rule;
	size_t offset;
	uint64_t min;
	uint64_t max;
};

#define X(key, field, kind, user_rule, min, max, form, standard, help) \
	{ kind, user_rule, offsetof(struct hostconf, field), min, max },
static const struct spec specs[] = { HOSTCONF_KEYS(X) };
#undef X

#define X(key, field, kind, user_rule, min, max, form, standard, help) \
	{ key, form, standard, help },
static const struct hostconf_key keys[] = { HOSTCONF_KEYS(X) };
#undef X

_Static_assert(ARRAY_SIZE(keys) <= 64, "hostconf.spoken has a bit for each key");

/* One assignment under way. */
struct setting {
	struct hostconf *conf;
	size_t index;     /* into keys and specs */
	const char *user; /* of host-env@USER, or NULL */
	const char *value;
	bool restricted; /* by a user's file, and the host has spoken */
};

static int fail(const struct setting *setting, struct error *err, const char *why)
{
	return error_set(err, ERR_CONFIG, 0, "key '%s': %s", keys[setting->index].key, why);
}

static int fail_form(const struct setting *setting, struct error *err)
{
	return error_set(err, ERR_CONFIG, 0, "key '%s': expected %s", keys[setting->index].key,
			 keys[setting->index].form);
}

static void *field_of(const struct setting *setting)
{
	return (char *)setting->conf + specs[setting->index].offset;
}

/* Letters, digits and what EXTRA allows besides; not empty, not beyond LIMIT_NAME_BYTES. */
static bool is_word(const char *text, size_t size, const char *extra)
{
	if (size == 0 || size > LIMIT_NAME_BYTES)
		return false;
	for (size_t i = 0; i < size; i++) {
		char byte = text[i];

		if (!(byte >= 'a' && byte <= 'z') && !(byte >= 'A' && byte <= 'Z') &&
		    !(byte >= '0' && byte <= '9') && !(byte && strchr(extra, byte)))
			return false;
	}
	return true;
}

/* A name of a profile or group: it becomes part of a file name or is looked up, so no `.` first. */
static bool is_name(const char *text)
{
	return is_word(text, strlen(text), "_-.") && text[0] != '.' && text[0] != '-';
}

static bool is_variable(const char *text, size_t size)
{
	return is_word(text, size, "_") && !(text[0] >= '0' && text[0] <= '9');
}

static int set_string(const struct setting *setting, const char *text, struct error *err)
{
	char **field = field_of(setting);
	char *copy = NULL;

	if (text) {
		copy = strdup(text);
		if (!copy)
			return error_set(err, ERR_NOMEM, 0, "no memory for the configuration");
	}
	free(*field);
	*field = copy;
	return 0;
}

static int add_string(const struct setting *setting, struct error *err)
{
	struct string_list *list = field_of(setting);

	if (list->count >= CONF_LIST_MAX)
		return fail(setting, err, "too many entries");
	if (string_list_has(list, setting->value))
		return 0;
	return string_list_add(list, setting->value, err);
}

static int add_path(const struct setting *setting, struct error *err)
{
	const char *why = path_refusal(setting->value);
	size_t size = strlen(setting->value);

	if (why)
		return error_set(err, ERR_CONFIG, 0, "key '%s': the path %s",
				 keys[setting->index].key, why);
	if (size > 1 && setting->value[size - 1] == '/')
		return fail(setting, err, "the path ends with a slash");
	if (size == 1)
		return fail(setting, err, "'/' would leave nothing to run");
	return add_string(setting, err);
}

static int add_env_name(const struct setting *setting, struct error *err)
{
	size_t size = strlen(setting->value);

	if (size > 1 && setting->value[size - 1] == '*')
		size--;
	if (!is_variable(setting->value, size))
		return fail_form(setting, err);
	return add_string(setting, err);
}

static int add_uid(const struct setting *setting, struct error *err)
{
	struct hostconf *conf = setting->conf;
	uint64_t uid = 0;
	uint32_t *grown = NULL;

	/* The last value is "no user" to the kernel. */
	if (!parse_count(setting->value, 0, UINT32_MAX - 1, &uid))
		return fail_form(setting, err);
	for (size_t i = 0; i < conf->admit_confined_uid_count; i++)
		if (conf->admit_confined_uids[i] == uid)
			return 0;
	if (conf->admit_confined_uid_count >= CONF_LIST_MAX)
		return fail(setting, err, "too many entries");
	grown = realloc(conf->admit_confined_uids,
			(conf->admit_confined_uid_count + 1) * sizeof(*grown));
	if (!grown)
		return error_set(err, ERR_NOMEM, 0, "no memory for the configuration");
	grown[conf->admit_confined_uid_count++] = (uint32_t)uid;
	conf->admit_confined_uids = grown;
	return 0;
}

static void host_env_deinit(struct hostconf_env *env)
{
	free(env->user);
	free(env->name);
	free(env->value);
}

static int add_host_env(const struct setting *setting, struct error *err)
{
	struct hostconf *conf = setting->conf;
	const char *equals = strchr(setting->value, '=');
	struct hostconf_env env = { .user = NULL };
	struct hostconf_env *grown = NULL;

	if (!equals || !is_variable(setting->value, (size_t)(equals - setting->value)))
		return fail_form(setting, err);
	if (conf->host_env_count >= CONF_LIST_MAX)
		return fail(setting, err, "too many entries");

	env.user = setting->user ? strdup(setting->user) : NULL;
	env.name = strndup(setting->value, (size_t)(equals - setting->value));
	env.value = strdup(equals + 1);
	grown = realloc(conf->host_env, (conf->host_env_count + 1) * sizeof(*grown));
	if (grown)
		conf->host_env = grown;
	if (!grown || !env.name || !env.value || (setting->user && !env.user)) {
		host_env_deinit(&env);
		return error_set(err, ERR_NOMEM, 0, "no memory for the configuration");
	}
	grown[conf->host_env_count++] = env;
	return 0;
}

/* Scheme, host and optional port; no credentials, which would end up in lists and logs. */
static bool is_proxy_url(const char *text)
{
	const char *rest = strstr(text, "://");
	size_t scheme = rest ? (size_t)(rest - text) : 0;

	if (!rest || !((scheme == 4 && strncmp(text, "http", 4) == 0) ||
		       (scheme == 6 && strncmp(text, "socks5", 6) == 0)))
		return false;
	rest += 3;
	return is_word(rest, strlen(rest), "-.:[]");
}

static bool is_engine(const char *text)
{
	return strcmp(text, "bwrap") == 0 || strcmp(text, "native") == 0 ||
	       strcmp(text, "seatbelt") == 0;
}

static bool user_may(const struct setting *setting, uint64_t now, uint64_t wanted)
{
	if (!setting->restricted)
		return true;
	switch (specs[setting->index].user_rule) {
	case USER_NOTHING:
		return false;
	case USER_APPEND:
		return true;
	case USER_LOWER:
		return wanted <= now;
	case USER_HIGHER:
		return wanted >= now;
	case USER_LOWER_SET:
		return now == 0 || (wanted != 0 && wanted <= now);
	}
	return false;
}

/* The number that stands for a choice: MIN plus its place in "a|b|c". */
static bool parse_choice(const char *form, const char *text, uint64_t min, uint64_t *ret_value)
{
	size_t size = strlen(text);

	for (uint64_t value = min;; value++) {
		size_t word = strcspn(form, "|");

		if (word == size && memcmp(form, text, word) == 0) {
			*ret_value = value;
			return true;
		}
		if (form[word] == '\0')
			return false;
		form += word + 1;
	}
}

static bool parse_number(const struct setting *setting, uint64_t *ret_value)
{
	const struct spec *spec = &specs[setting->index];
	uint64_t value = 0;
	uint32_t milli = 0;
	bool parsed = false;

	if (spec->kind == KIND_CHOICE)
		return parse_choice(keys[setting->index].form, setting->value, spec->min,
				    ret_value);
	if (spec->kind >= KIND_NONE_COUNT32 && strcmp(setting->value, "none") == 0) {
		*ret_value = 0;
		return true;
	}
	if (spec->kind == KIND_COUNT32 || spec->kind == KIND_NONE_COUNT32)
		parsed = parse_count(setting->value, 0, UINT64_MAX, &value);
	else if (spec->kind == KIND_SIZE || spec->kind == KIND_NONE_SIZE)
		parsed = parse_size_bytes(setting->value, &value);
	else if (spec->kind == KIND_NONE_DURATION)
		parsed = parse_duration_ms(setting->value, &value);
	else if ((parsed = parse_cpus_milli(setting->value, &milli)))
		value = milli;
	*ret_value = value;
	return parsed;
}

static int set_number(const struct setting *setting, struct error *err)
{
	const struct spec *spec = &specs[setting->index];
	bool wide = spec->kind == KIND_SIZE || spec->kind == KIND_NONE_SIZE ||
		    spec->kind == KIND_NONE_DURATION;
	bool none_allowed = spec->kind >= KIND_NONE_COUNT32;
	uint64_t now = 0;
	uint64_t value = 0;
	uint32_t narrow = 0;

	if (!parse_number(setting, &value))
		return fail_form(setting, err);
	if (spec->kind != KIND_CHOICE && !(none_allowed && strcmp(setting->value, "none") == 0) &&
	    (value < spec->min || value > spec->max))
		return fail(setting, err, "the number is out of range");

	memcpy(&narrow, field_of(setting), sizeof(narrow));
	now = narrow;
	if (wide)
		memcpy(&now, field_of(setting), sizeof(now));
	if (!user_may(setting, now, value))
		return fail(setting, err, "the host's configuration is stricter");

	narrow = (uint32_t)value;
	if (wide)
		memcpy(field_of(setting), &value, sizeof(value));
	else
		memcpy(field_of(setting), &narrow, sizeof(narrow));
	return 0;
}

_Static_assert(sizeof(enum net_mode) == sizeof(uint32_t), "choices are stored as 32 bits");
_Static_assert(sizeof(enum absent_mode) == sizeof(uint32_t), "choices are stored as 32 bits");

static int apply(const struct setting *setting, struct error *err)
{
	bool none = strcmp(setting->value, "none") == 0;

	if (setting->restricted && specs[setting->index].user_rule == USER_NOTHING)
		return fail(setting, err, "the host's configuration has set it already");

	switch (specs[setting->index].kind) {
	case KIND_PATHS:
		return add_path(setting, err);
	case KIND_ENV_NAMES:
		return add_env_name(setting, err);
	case KIND_GROUPS:
		return is_name(setting->value) ? add_string(setting, err) : fail_form(setting, err);
	case KIND_GROUP:
	case KIND_NAME:
		return is_name(setting->value) ? set_string(setting, setting->value, err)
					       : fail_form(setting, err);
	case KIND_ENGINE:
		if (strcmp(setting->value, "auto") == 0)
			return set_string(setting, NULL, err);
		return is_engine(setting->value) ? set_string(setting, setting->value, err)
						 : fail_form(setting, err);
	case KIND_PROXY:
		if (!none && !is_proxy_url(setting->value))
			return fail_form(setting, err);
		return set_string(setting, none ? NULL : setting->value, err);
	case KIND_UIDS:
		return add_uid(setting, err);
	case KIND_HOST_ENV:
		return add_host_env(setting, err);
	case KIND_CHOICE:
	case KIND_COUNT32:
	case KIND_SIZE:
	case KIND_NONE_COUNT32:
	case KIND_NONE_SIZE:
	case KIND_NONE_CPUS:
	case KIND_NONE_DURATION:
		return set_number(setting, err);
	}
	return fail(setting, err, "unknown kind");
}

static bool is_list(size_t index)
{
	return specs[index].kind == KIND_PATHS || specs[index].kind == KIND_ENV_NAMES ||
	       specs[index].kind == KIND_GROUPS || specs[index].kind == KIND_UIDS ||
	       specs[index].kind == KIND_HOST_ENV;
}

/* Which key a line sets; splits USER off "host-env@USER". */
static int find_key(struct setting *setting, char *key, struct error *err)
{
	char *at = strchr(key, '@');

	if (at)
		*at = '\0';
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		if (strcmp(keys[i].key, key) != 0)
			continue;
		setting->index = i;
		if (!at)
			return 0;
		setting->user = at + 1;
		if (specs[i].kind != KIND_HOST_ENV || !is_name(at + 1))
			return fail(setting, err, "'@' names a user for host-env only");
		return 0;
	}
	return error_set(err, ERR_CONFIG, 0, "key '%s': there is no such key", key);
}

const struct hostconf_key *hostconf_keys(size_t *ret_count)
{
	*ret_count = ARRAY_SIZE(keys);
	return keys;
}

int hostconf_init(struct hostconf *conf, struct error *err)
{
	*conf = (struct hostconf){ .max_jobs = 0 };
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		struct setting setting = { .conf = conf, .index = i };
		int r = 0;

		setting.value = keys[i].default_value;
		if (setting.value[0] != '\0')
			r = apply(&setting, err);
		if (r < 0) {
			hostconf_deinit(conf);
			return r;
		}
	}
	return 0;
}

void hostconf_deinit(struct hostconf *conf)
{
	if (!conf)
		return;
	string_list_deinit(&conf->mandatory_deny);
	string_list_deinit(&conf->mandatory_read_only);
	string_list_deinit(&conf->env_withhold);
	string_list_deinit(&conf->env_pass);
	string_list_deinit(&conf->drop_groups);
	free(conf->default_profile);
	free(conf->default_engine);
	free(conf->admit_confined_uids);
	free(conf->admin_group);
	for (size_t i = 0; i < conf->host_env_count; i++)
		host_env_deinit(&conf->host_env[i]);
	free(conf->host_env);
	free(conf->upstream_proxy);
	*conf = (struct hostconf){ .max_jobs = 0 };
}

int hostconf_parse(struct hostconf *conf, const char *text, size_t size, const char *name,
		   bool user_file, struct error *err)
{
	struct confline reader;
	uint64_t seen = 0;
	int r = 0;

	if (size > LIMIT_CONFIG_BYTES)
		return error_set(err, ERR_CONFIG, 0, "%s: the file is longer than %u bytes", name,
				 LIMIT_CONFIG_BYTES);
	confline_init(&reader, text, size);
	while ((r = confline_next(&reader, err)) > 0) {
		struct setting setting = { .conf = conf, .value = reader.value };
		uint64_t bit = 0;

		r = find_key(&setting, reader.key, err);
		if (r < 0)
			break;
		bit = UINT64_C(1) << setting.index;
		setting.restricted = user_file && (conf->spoken & bit);
		if ((seen & bit) && !is_list(setting.index))
			r = fail(&setting, err, "stands twice in this file");
		else
			r = apply(&setting, err);
		if (r < 0)
			break;
		seen |= bit;
	}
	if (r < 0) {
		error_prefix(err, "%s:%zu", name, reader.line);
		return r;
	}
	if (!user_file)
		conf->spoken |= seen;
	return 0;
}
