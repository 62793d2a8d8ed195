/* SPDX-License-Identifier: Apache-2.0 */
#include "client/convert.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/hint.h"
#include "common/scope.h"
#include "proto/json/bulk.h"
#include "proto/json/contextjson.h"

int convert_no_memory(struct fsbox_error *err)
{
	struct error fail = ERROR_INIT;

	(void)error_set(&fail, ERR_NOMEM, 0, "prepare a request or an answer");
	return hint_fill(err, &fail, NULL);
}

/* ---- requests ------------------------------------------------------------------------ */

/* As `fsboxctl grant create` prints it. */
#define TOKEN_BYTES ((size_t)2 * GRANT_TOKEN_BYTES)

static int copy_text(char **ret_copy, const char *text, struct error *err)
{
	if (!text)
		return 0;
	*ret_copy = strdup(text);
	return *ret_copy ? 0 : error_set(err, ERR_NOMEM, 0, "copy a text");
}

static int copy_list(struct string_list *out, const char *const *items, struct error *err)
{
	int r = 0;

	for (; items && *items && r == 0; items++)
		r = string_list_add(out, *items, err);
	return r;
}

/* "NAME=VALUE" lines. Of the caller's own environment what is no variable is left out. */
static int copy_env(struct env_list *out, const char *const *lines, bool tolerant,
		    struct error *err)
{
	int r = 0;

	for (; lines && *lines && r == 0; lines++) {
		const char *equals = strchr(*lines, '=');
		AUTO(auto_free) char *name = NULL;

		if (!equals || equals == *lines) {
			if (tolerant)
				continue;
			return error_set(err, ERR_INVALID, 0, "'%s' is not NAME=VALUE", *lines);
		}
		name = strndup(*lines, (size_t)(equals - *lines));
		if (!name)
			return error_set(err, ERR_NOMEM, 0, "copy the environment");
		r = env_list_add(out, name, equals + 1, err);
	}
	return r;
}

static int copy_rules(struct msg_paths *out, const struct fsbox_spawn *spawn, struct error *err)
{
	int r = 0;

	for (size_t i = 0; i < spawn->rule_count && r == 0; i++) {
		const struct fsbox_rule *rule = &spawn->rules[i];
		struct path_entry_list *list = NULL;

		switch (rule->access) {
		case FSBOX_READ_WRITE:
			list = &out->read_write;
			break;
		case FSBOX_READ_ONLY:
			list = &out->read_only;
			break;
		case FSBOX_DENY:
			list = &out->deny;
			break;
		}
		if (!list || !rule->path)
			return error_set(err, ERR_INVALID, 0, "rule %zu has no access or no path",
					 i);
		r = path_entry_list_add(list, rule->path, err);
		if (r < 0)
			return r;
		list->items[list->count - 1].optional = rule->optional;
		if (rule->absent &&
		    !absent_mode_parse(rule->absent, &list->items[list->count - 1].absent))
			return error_set(err, ERR_INVALID, 0,
					 "'%s' says nothing about absent paths", rule->absent);
	}
	return r;
}

static int copy_net(struct msg_net *out, const struct fsbox_spawn *spawn, struct error *err)
{
	enum net_mode mode = NET_NONE;
	int r = 0;

	if (spawn->net) {
		if (!net_mode_parse(spawn->net, &mode))
			return error_set(err, ERR_INVALID, 0, "'%s' is no network mode",
					 spawn->net);
		out->mode = net_choice_from_mode(mode);
	}
	r = copy_list(&out->allow, spawn->net_allow, err);
	if (r == 0)
		r = copy_list(&out->deny, spawn->net_deny, err);
	if (r < 0 || spawn->forward_count == 0)
		return r;

	out->forward.items = calloc(spawn->forward_count, sizeof(*out->forward.items));
	if (!out->forward.items)
		return error_set(err, ERR_NOMEM, 0, "copy the ports");
	out->forward.capacity = spawn->forward_count;
	for (size_t i = 0; i < spawn->forward_count; i++)
		out->forward.items[out->forward.count++] = spawn->forward[i];
	return 0;
}

static int copy_fd(int *ret_fd, int fd, const char *what, struct error *err)
{
	if (fd < 0)
		return 0;
	*ret_fd = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	return *ret_fd >= 0 ? 0 : error_set(err, ERR_INVALID, errno, "%s", what);
}

/*
 * The daemon takes a token only in memory that cannot change and that nobody can keep it waiting with.
 * Blocks until the descriptor's owner has written all of it.
 */
static int copy_grant(int *ret_fd, int fd, struct error *err)
{
	char text[TOKEN_BYTES + 1];
	size_t size = 0;
	int r = 0;

	if (fd < 0)
		return 0;
	while (size < TOKEN_BYTES) {
		ssize_t got = read(fd, text + size, TOKEN_BYTES - size);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			break;
		size += (size_t)got;
	}
	if (size == TOKEN_BYTES)
		r = bulk_create(text, size, ret_fd, err);
	else
		r = error_set(err, ERR_GRANT_INVALID, 0, "the grant's descriptor holds no token");
	explicit_bzero(text, sizeof(text));
	return r;
}

static int copy_descriptors(struct spawn_params *out, const struct fsbox_spawn *spawn,
			    struct error *err)
{
	int r = copy_fd(&out->stdio.in_fd, spawn->stdin_fd, "standard input", err);

	if (r == 0)
		r = copy_fd(&out->stdio.out_fd, spawn->stdout_fd, "standard output", err);
	if (r == 0)
		r = copy_fd(&out->stdio.err_fd, spawn->stderr_fd, "standard error", err);
	if (r == 0)
		r = copy_grant(&out->grant_fd, spawn->grant_fd, err);
	return r;
}

static int copy_context(struct policy_context **ret_context, const char *text, struct error *err)
{
	struct policy_context *context = calloc(1, sizeof(*context));
	int r = 0;

	if (!context)
		return error_set(err, ERR_NOMEM, 0, "copy the context");
	r = context_parse(context, text, strlen(text), CONTEXT_WIRE, err);
	if (r < 0)
		free(context);
	else
		*ret_context = context;
	return r;
}

static int copy_words(struct spawn_params *out, const struct fsbox_spawn *spawn, struct error *err)
{
	int r = copy_text(&out->profile, spawn->profile, err);

	if (r == 0)
		r = copy_text(&out->label, spawn->label, err);
	if (r == 0)
		r = copy_text(&out->session, spawn->session, err);
	if (r == 0 && spawn->context)
		r = copy_context(&out->context, spawn->context, err);
	if (r == 0 && spawn->engine && !engine_parse(spawn->engine, &out->engine))
		r = error_set(err, ERR_INVALID, 0, "'%s' is no engine", spawn->engine);
	return r;
}

static int copy_cwd(struct spawn_params *out, const struct fsbox_spawn *spawn, struct error *err)
{
	if (spawn->cwd)
		return copy_text(&out->cwd, spawn->cwd, err);
	out->cwd = getcwd(NULL, 0);
	if (!out->cwd)
		return error_set(err, ERR_PATH_NOT_FOUND, errno, "the current directory");
	if (out->cwd[0] != '/')
		return error_set(err, ERR_PATH_NOT_FOUND, 0,
				 "the current directory cannot be reached from the root");
	return 0;
}

/* The mask files are made with, without changing it even for a moment: other threads create files. */
static int32_t read_umask(void)
{
	FILE *status = fopen("/proc/self/status", "re");
	char line[256];
	int32_t found = -1;

	if (!status)
		return -1;
	while (found < 0 && fgets(line, sizeof(line), status))
		if (strncmp(line, "Umask:", 6) == 0)
			found = (int32_t)(strtoul(line + 6, NULL, 8) & 0777);
	(void)fclose(status);
	return found;
}

int convert_spawn(struct spawn_params *ret_params, const struct fsbox_spawn *spawn,
		  bool argv_needed, struct fsbox_error *err)
{
	static const struct fsbox_spawn nothing = FSBOX_SPAWN_INIT;
	struct spawn_params *out = ret_params;
	struct fsbox_spawn given = nothing;
	struct error fail = ERROR_INIT;
	int r = 0;

	*out = (struct spawn_params)SPAWN_PARAMS_INIT;
	memcpy(&given, spawn, spawn->size < sizeof(given) ? spawn->size : sizeof(given));

	if (argv_needed && (!given.argv || !given.argv[0]))
		r = error_set(&fail, ERR_INVALID, 0, "no command");
	if (r == 0)
		r = copy_list(&out->argv, given.argv, &fail);
	if (r == 0)
		r = copy_cwd(out, &given, &fail);
	if (r == 0)
		r = copy_env(&out->env, given.env ? given.env : (const char *const *)environ,
			     !given.env, &fail);
	if (r == 0)
		r = copy_env(&out->env_set, given.env_set, false, &fail);
	if (r == 0)
		r = copy_list(&out->env_pass, given.env_pass, &fail);
	if (r == 0)
		r = copy_words(out, &given, &fail);
	if (r == 0)
		r = copy_rules(&out->paths, &given, &fail);
	if (r == 0)
		r = copy_list(&out->socket_allow, given.socket_allow, &fail);
	if (r == 0)
		r = copy_net(&out->net, &given, &fail);
	if (r == 0)
		r = copy_descriptors(out, &given, &fail);
	if (r < 0)
		return hint_fill(err, &fail, NULL);

	out->limits = (struct msg_limits){
		.memory_bytes = given.memory_bytes,
		.wall_ms = given.wall_ms,
		.pids = given.pids,
		.cpus_milli = given.cpus_milli,
	};
	out->umask = read_umask();
	out->allow_home = given.allow_home;
	out->allow_git_config = given.allow_git_config;
	out->detach = given.detach;
	return 0;
}
