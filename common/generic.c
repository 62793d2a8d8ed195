/* SPDX-License-Identifier: Apache-2.0 */
#include "common/generic.h"

#include <stdlib.h>
#include <string.h>

#include "common/generic_table.h"
#include "common/path.h"
#include "common/scope.h"

#define ORIGIN_GENERIC "profile generic"
#define ORIGIN_HOST "profile host"
#define ORIGIN_CONF "fsboxd.conf"
#define ORIGIN_OWN "fsbox itself"
#define ORIGIN_CWD "working directory"
#define ORIGIN_ALLOW_HOME "--allow-home"
#define ORIGIN_PRIVATE "private directory"
#define ORIGIN_LINK "link target"

static const struct generic_link links[] = {
	{ "/etc/resolv.conf", true },        { "/etc/localtime", false },
	{ "/etc/machine-id", false },        { "/etc/ssl/certs/ca-certificates.crt", false },
	{ "/etc/ssl/cert.pem", false },      { "/etc/pki/tls/certs/ca-bundle.crt", false },
	{ "/etc/ssl/ca-bundle.pem", false },
};

const struct generic_link *generic_link_names(size_t *ret_count)
{
	*ret_count = ARRAY_SIZE(links);
	return links;
}

static int no_memory(struct error *err)
{
	return error_set(err, ERR_NOMEM, 0, "no memory for the profile");
}

static struct rule *last_of(struct rule_list *candidates)
{
	return &candidates->rules[candidates->count - 1];
}

/* One rule that may be absent without that being an error. */
static int add(struct rule_list *candidates, const char *path, enum access access,
	       enum rule_source source, const char *origin, struct error *err)
{
	int r = rule_list_append(candidates, path, access, source, origin, err);

	if (r == 0)
		last_of(candidates)->optional = true;
	return r;
}

/* Denies of a table: absent ones are no reason to put anything into a home directory. */
static int add_table_deny(struct rule_list *candidates, const char *path, const char *origin,
			  struct error *err)
{
	int r = rule_list_append(candidates, path, ACCESS_DENY, RULE_BASELINE, origin, err);

	if (r == 0)
		last_of(candidates)->absent = ABSENT_WATCH;
	return r;
}

static int add_absolute(struct rule_list *candidates, struct name_list list, enum access access,
			const char *origin, struct error *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < list.count; i++) {
		if (access == ACCESS_DENY)
			r = add_table_deny(candidates, list.names[i], origin, err);
		else
			r = add(candidates, list.names[i], access, RULE_BASELINE, origin, err);
	}
	return r;
}

/* Where NAME below the home directory really belongs, the user's XDG directories considered. */
static char *home_path(const struct generic_input *input, const char *name)
{
	const struct {
		const char *standard;
		const char *moved;
	} directories[] = {
		{ ".config", input->config_home },
		{ ".cache", input->cache_home },
		{ ".local/share", input->data_home },
		{ ".local/state", input->state_home },
	};

	for (size_t i = 0; i < ARRAY_SIZE(directories); i++) {
		size_t size = strlen(directories[i].standard);

		if (directories[i].moved && strncmp(name, directories[i].standard, size) == 0 &&
		    (name[size] == '/' || name[size] == '\0'))
			return path_join(directories[i].moved,
					 name[size] == '/' ? name + size + 1 : "");
	}
	return path_join(input->home, name);
}

static int add_home(struct rule_list *candidates, const struct generic_input *input,
		    struct name_list list, enum access access, struct error *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < list.count; i++) {
		AUTO(auto_free) char *path = home_path(input, list.names[i]);

		if (!path)
			return no_memory(err);
		if (access == ACCESS_DENY)
			r = add_table_deny(candidates, path, ORIGIN_GENERIC, err);
		else
			r = add(candidates, path, access, RULE_BASELINE, ORIGIN_GENERIC, err);
	}
	return r;
}

/* PATH shows PRIVATE_ROOT/NAME; a name's slashes and leading dots do not make directories. */
static int add_private(struct rule_list *candidates, const struct generic_input *input,
		       const char *path, const char *name, enum rule_source source,
		       struct error *err)
{
	AUTO(auto_free) char *flat = strdup(name + strspn(name, "./"));
	AUTO(auto_free) char *bind_source = NULL;
	int r = 0;

	for (char *at = flat; at && *at; at++)
		if (*at == '/')
			*at = '-';
	bind_source = flat ? path_join(input->private_root, flat) : NULL;
	if (!bind_source)
		return no_memory(err);
	r = rule_list_append(candidates, path, ACCESS_READ_WRITE, source, ORIGIN_PRIVATE, err);
	if (r == 0)
		last_of(candidates)->bind_source = steal_ptr(&bind_source);
	return r;
}

static int add_caches(struct rule_list *candidates, const struct generic_input *input,
		      struct error *err)
{
	struct name_list caches = generic_caches();
	int r = 0;

	if (!input->private_root)
		return 0;
	for (size_t i = 0; r == 0 && i < caches.count; i++) {
		AUTO(auto_free) char *path = home_path(input, caches.names[i]);

		r = path ? add_private(candidates, input, path, caches.names[i], RULE_BASELINE, err)
			 : no_memory(err);
	}
	for (size_t i = 0; r == 0 && input->caches && i < input->caches->count; i++)
		r = add_private(candidates, input, input->caches->items[i], input->caches->items[i],
				RULE_ADAPTER, err);
	return r;
}

static int add_list(struct rule_list *candidates, const struct string_list *list,
		    enum access access, const char *origin, struct error *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && list && i < list->count; i++) {
		r = rule_list_append(candidates, list->items[i], access, RULE_MANDATORY, origin,
				     err);
		if (r == 0)
			last_of(candidates)->host = true;
	}
	return r;
}

int generic_add_host_rules(struct rule_list *candidates, const struct generic_input *input,
			   struct error *err)
{
	const struct hostconf *conf = input->conf;
	int r = add_list(candidates, conf ? &conf->mandatory_deny : NULL, ACCESS_DENY, ORIGIN_CONF,
			 err);

	if (r == 0)
		r = add_list(candidates, conf ? &conf->mandatory_read_only : NULL, ACCESS_READ_ONLY,
			     ORIGIN_CONF, err);
	if (r == 0)
		r = add_list(candidates, input->own_deny, ACCESS_DENY, ORIGIN_OWN, err);
	if (r == 0)
		r = add_list(candidates, input->own_read_only, ACCESS_READ_ONLY, ORIGIN_OWN, err);
	if (r == 0)
		r = add_list(candidates, input->kernel_mounts, ACCESS_DENY, "kernel file system",
			     err);
	if (r == 0 && input->root_peer)
		r = add_absolute(candidates, generic_root_secrets(), ACCESS_DENY, "root's secrets",
				 err);
	return r;
}

static int add_rules(struct rule_list *candidates, const struct generic_input *input,
		     struct error *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && input->rules && i < input->rules->count; i++) {
		struct rule copy = { .path = NULL };

		r = rule_copy(&copy, &input->rules->rules[i], err);
		if (r == 0)
			r = rule_list_add_take(candidates, &copy, err);
	}
	for (size_t i = 0; r == 0 && input->link_targets && i < input->link_targets->count; i++)
		r = add(candidates, input->link_targets->items[i], ACCESS_READ_ONLY, RULE_BASELINE,
			ORIGIN_LINK, err);
	return r;
}

static int check_directories(const struct generic_input *input, struct error *err)
{
	const char *why = NULL;

	if (!input->home)
		return error_set(err, ERR_POLICY_INVALID, 0, "this user has no home directory");
	why = path_refusal(input->home);
	if (!why && strcmp(input->home, "/") == 0)
		why = "cannot be a home directory";
	if (why)
		return error_set(err, ERR_POLICY_INVALID, 0, "the home directory '%s' %s",
				 input->home, why);
	if (!input->cwd)
		return error_set(err, ERR_POLICY_INVALID, 0, "there is no working directory");
	why = path_refusal(input->cwd);
	if (why)
		return error_set(err, ERR_POLICY_INVALID, 0, "the working directory '%s' %s",
				 input->cwd, why);
	return 0;
}

/* A whole home directory, or more, is not granted because somebody happens to stand in it. */
static int check_cwd(const struct generic_input *input, struct error *err)
{
	if (strcmp(input->cwd, "/") == 0)
		return error_set(err, ERR_POLICY_INVALID, 0,
				 "the working directory is '/': go to a project, or use profile "
				 "'host'");
	if (path_covers(input->cwd, input->home) && !input->allow_home)
		return error_set(
			err, ERR_POLICY_INVALID, 0,
			"the working directory '%s' %s the home directory: go to a project, "
			"or allow this with --allow-home",
			input->cwd, strcmp(input->cwd, input->home) == 0 ? "is" : "contains");
	return 0;
}

/* Nor by a rule: who asks for that much says so. */
static int check_home_rules(const struct generic_input *input, struct error *err)
{
	for (size_t i = 0; input->rules && i < input->rules->count; i++) {
		const struct rule *rule = &input->rules->rules[i];

		if (rule->access == ACCESS_READ_WRITE && path_covers(rule->path, input->home) &&
		    !input->allow_home)
			return error_set(err, ERR_POLICY_INVALID, 0,
					 "readWrite '%s' (%s) would open the home directory: allow "
					 "this with --allow-home",
					 rule->path, rule->origin ? rule->origin : "rule");
	}
	return 0;
}

int generic_check_places(const struct rule_list *candidates, const struct generic_input *input,
			 struct error *err)
{
	for (size_t i = 0; i < candidates->count; i++) {
		const struct rule *rule = &candidates->rules[i];

		if (rule->access == ACCESS_READ_WRITE && !rule->bind_source && rule->real &&
		    strcmp(rule->real, rule->path) != 0 && path_covers(rule->real, input->home) &&
		    !input->allow_home)
			return error_set(
				err, ERR_POLICY_INVALID, 0,
				"readWrite '%s' (%s) leads through a link to '%s' and would "
				"open the home directory: allow this with --allow-home",
				rule->path, rule->origin ? rule->origin : "rule", rule->real);
	}
	return 0;
}

/* Nor is what is denied: there must be a grant that says so. CANDIDATES has all but the cwd's. */
static int check_cwd_denied(const struct rule_list *candidates, const struct generic_input *input,
			    struct error *err)
{
	const struct rule *deny = NULL;
	const struct rule *grant = NULL;

	for (size_t i = 0; i < candidates->count; i++) {
		const struct rule *rule = &candidates->rules[i];
		const struct rule **best = rule->access == ACCESS_DENY ? &deny : &grant;

		if (!path_covers(rule->path, input->cwd) ||
		    (rule->access != ACCESS_DENY && rule->source < RULE_ADAPTER))
			continue;
		if (!*best || strlen(rule->path) > strlen((*best)->path))
			*best = rule;
	}
	if (!deny || (grant && strlen(grant->path) >= strlen(deny->path)))
		return 0;
	return error_set(
		err, ERR_POLICY_INVALID, 0,
		"the working directory '%s' lies in '%s', which is denied (%s); grant it by "
		"name if that is meant",
		input->cwd, deny->path, deny->origin ? deny->origin : "rule");
}

static bool is_shown_by(const char *grant, const char *path)
{
	static const char alias[] = "/var/run";

	/* The old name of /run, a link everywhere. */
	if (strncmp(grant, alias, sizeof(alias) - 1) == 0)
		grant += strlen("/var");
	return path_covers(grant, path);
}

/* Whether something that was asked for shows PATH. */
static bool is_shown(const struct generic_input *input, const char *path)
{
	for (size_t i = 0; input->rules && i < input->rules->count; i++) {
		const struct rule *rule = &input->rules->rules[i];

		if (rule->access != ACCESS_DENY && is_shown_by(rule->path, path))
			return true;
	}
	return path_covers(input->cwd, path) ||
	       (input->allow_home && path_covers(input->home, path));
}

/*
 * Sockets behind which somebody acts for whoever connects, whatever a rule says about writing (R21).
 *
 * @all  also those that nothing shows
 */
static int add_sockets(struct rule_list *candidates, const struct generic_input *input,
		       const char *origin, bool all, struct error *err)
{
	const struct name_list fixed = generic_sockets();
	const struct name_list names = generic_runtime_sockets();
	int r = 0;

	for (size_t i = 0; r == 0 && i < fixed.count; i++)
		if (all || is_shown(input, fixed.names[i]))
			r = add_table_deny(candidates, fixed.names[i], origin, err);
	for (size_t i = 0; r == 0 && input->runtime_dir && i < names.count; i++) {
		AUTO(auto_free) char *path = path_join(input->runtime_dir, names.names[i]);

		if (!path)
			return no_memory(err);
		if (all || is_shown(input, path))
			r = add_table_deny(candidates, path, origin, err);
	}
	return r;
}

int generic_assemble(struct rule_list *candidates, const struct generic_input *input,
		     struct error *err)
{
	int r = check_directories(input, err);

	if (r == 0)
		r = check_cwd(input, err);
	if (r == 0)
		r = check_home_rules(input, err);
	if (r == 0)
		r = add_absolute(candidates, generic_system(), ACCESS_READ_ONLY, ORIGIN_GENERIC,
				 err);
	if (r == 0)
		r = add_absolute(candidates, generic_system_secrets(), ACCESS_DENY, ORIGIN_GENERIC,
				 err);
	if (r == 0)
		r = add_home(candidates, input, generic_toolchains(), ACCESS_READ_ONLY, err);
	if (r == 0)
		r = add_home(candidates, input, generic_jewels(), ACCESS_DENY, err);
	if (r == 0)
		r = add_caches(candidates, input, err);
	if (r == 0)
		r = add_sockets(candidates, input, ORIGIN_GENERIC, false, err);
	if (r == 0)
		r = add_rules(candidates, input, err);
	if (r == 0)
		r = generic_add_host_rules(candidates, input, err);
	if (r == 0)
		r = check_cwd_denied(candidates, input, err);
	if (r == 0 && input->allow_home)
		r = rule_list_append(candidates, input->home, ACCESS_READ_WRITE, RULE_INTERNAL,
				     ORIGIN_ALLOW_HOME, err);
	if (r == 0)
		r = rule_list_append(candidates, input->cwd, ACCESS_READ_WRITE, RULE_INTERNAL,
				     ORIGIN_CWD, err);
	return r;
}

int host_assemble(struct rule_list *candidates, const struct generic_input *input,
		  struct error *err)
{
	int r = check_directories(input, err);

	if (r < 0)
		return r;
	if (input->root_peer)
		return error_set(err, ERR_NOT_AUTHORIZED, 0,
				 "profile 'host' is not for root: it would show the whole system");
	r = rule_list_append(candidates, "/", ACCESS_READ_WRITE, RULE_INTERNAL, ORIGIN_HOST, err);
	if (r == 0)
		r = add_sockets(candidates, input, ORIGIN_HOST, true, err);
	if (r == 0)
		r = add_rules(candidates, input, err);
	if (r == 0)
		r = generic_add_host_rules(candidates, input, err);
	return r;
}
