/* SPDX-License-Identifier: Apache-2.0 */
#include "client/ctl/request.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/buf.h"
#include "common/limits.h"
#include "common/scope.h"
#include "common/units.h"

int file_read(const char *path, char **ret_text, size_t *ret_size, struct error *err)
{
	AUTO(buf_deinit) struct buf text = BUF_INIT(LIMIT_PROFILE_BYTES + 1);
	AUTO(auto_close) int opened = -1;
	bool standard = strcmp(path, "-") == 0;
	const char *name = standard ? "standard input" : path;
	int fd = STDIN_FILENO;

	if (!standard) {
		opened = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
		if (opened < 0)
			return error_set(err, errno == ENOENT ? ERR_PATH_NOT_FOUND : ERR_SYSTEM,
					 errno, "read '%s'", path);
		fd = opened;
	}

	for (;;) {
		char portion[8192];
		ssize_t got = read(fd, portion, sizeof(portion));

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return error_set(err, ERR_SYSTEM, errno, "read '%s'", name);
		if (got == 0)
			break;
		if (buf_add(&text, portion, (size_t)got) < 0 || text.size > LIMIT_PROFILE_BYTES)
			return error_set(err, ERR_INVALID, 0, "'%s' has more than %u bytes", name,
					 LIMIT_PROFILE_BYTES);
	}
	*ret_size = text.size;
	*ret_text = buf_steal(&text);
	return *ret_text ? 0 : error_set(err, ERR_NOMEM, 0, "read '%s'", name);
}

int job_parse(const char *word, uint64_t *ret_job, struct error *err)
{
	if (!parse_count(word, 1, INT64_MAX, ret_job))
		return error_set(err, ERR_INVALID, 0,
				 "'%s' is not a job's number, as 'fsboxctl ps' lists them", word);
	return 0;
}

static int fill_rules(struct request *request, const struct ctl_args *args, struct error *err)
{
	const struct {
		const struct ctl_list *list;
		enum fsbox_access access;
	} lists[] = {
		{ &args->rw, FSBOX_READ_WRITE },
		{ &args->ro, FSBOX_READ_ONLY },
		{ &args->deny, FSBOX_DENY },
	};
	size_t count = 0;

	request->rules = calloc(args->rw.count + args->ro.count + args->deny.count + 1,
				sizeof(*request->rules));
	if (!request->rules)
		return error_set(err, ERR_NOMEM, 0, "collect the paths");
	for (size_t i = 0; i < ARRAY_SIZE(lists); i++)
		for (size_t j = 0; j < lists[i].list->count; j++)
			request->rules[count++] = (struct fsbox_rule){
				.path = lists[i].list->items[j],
				.access = lists[i].access,
				.absent = lists[i].access == FSBOX_DENY ? args->absent : NULL,
			};
	request->spawn.rules = request->rules;
	request->spawn.rule_count = count;
	return 0;
}

/* A command that starts elsewhere must not be told that it starts here. */
static int fill_env(struct request *request, const struct ctl_args *args, struct error *err)
{
	if (args->cwd) {
		if (asprintf(&request->pwd, "PWD=%s", args->cwd) < 0) {
			request->pwd = NULL;
			return error_set(err, ERR_NOMEM, 0, "collect the environment");
		}
		ctl_list_add(&request->env, request->pwd);
	}
	for (size_t i = 0; i < args->env.count; i++)
		ctl_list_add(&request->env, args->env.items[i]);
	request->spawn.env_set = request->env.items;
	return 0;
}

static int fill_net(struct request *request, const struct ctl_args *args, struct error *err)
{
	request->spawn.net = args->net;
	request->spawn.net_allow = args->allow_hosts.items;
	request->spawn.net_deny = args->deny_hosts.items;
	if (args->forward.count == 0)
		return 0;

	request->forward = calloc(args->forward.count, sizeof(*request->forward));
	if (!request->forward)
		return error_set(err, ERR_NOMEM, 0, "collect the ports");
	for (size_t i = 0; i < args->forward.count; i++) {
		uint64_t port = 0;

		if (!parse_count(args->forward.items[i], 1, UINT16_MAX, &port))
			return error_set(err, ERR_INVALID, 0,
					 "--forward: '%s' is no port from 1 to 65535",
					 args->forward.items[i]);
		request->forward[i] = (uint32_t)port;
	}
	request->spawn.forward = request->forward;
	request->spawn.forward_count = args->forward.count;
	return 0;
}

static int fill_profile(struct request *request, struct ctl *ctl, struct error *err)
{
	const struct ctl_args *args = &ctl->args;
	size_t size = 0;
	int r = 0;

	request->spawn.profile = args->profile;
	if (args->egress_only) {
		if (args->profile)
			return error_set(
				err, ERR_INVALID, 0,
				"--egress-only is a profile of its own: leave out --profile");
		request->spawn.profile = "host";
	}
	if (!args->context)
		return 0;

	if (!request->spawn.profile)
		request->spawn.profile = "botmux";
	r = file_read(args->context, &request->context, &size, err);
	if (r == 0 && strlen(request->context) != size)
		r = error_set(err, ERR_INVALID, 0, "'%s' has a NUL byte in it", args->context);
	request->spawn.context = request->context;
	return r;
}

int request_fill(struct request *ret_request, struct ctl *ctl, struct error *err)
{
	const struct ctl_args *args = &ctl->args;
	int r = 0;

	*ret_request = (struct request){ .spawn = FSBOX_SPAWN_INIT };
	ret_request->spawn.grant_fd = args->grant_fd;
	r = fill_profile(ret_request, ctl, err);
	if (r == 0)
		r = fill_rules(ret_request, args, err);
	if (r == 0)
		r = fill_env(ret_request, args, err);
	if (r == 0)
		r = fill_net(ret_request, args, err);
	if (r < 0)
		return r;

	ret_request->spawn.cwd = args->cwd;
	ret_request->spawn.env_pass = args->env_pass.items;
	ret_request->spawn.socket_allow = args->socket_allow.items;
	ret_request->spawn.memory_bytes = args->memory_bytes;
	ret_request->spawn.wall_ms = args->timeout_ms;
	ret_request->spawn.pids = (uint32_t)args->pids;
	ret_request->spawn.cpus_milli = args->cpus_milli;
	ret_request->spawn.engine = args->engine;
	ret_request->spawn.label = args->label;
	ret_request->spawn.allow_home = args->allow_home;
	ret_request->spawn.allow_git_config = args->allow_git_config;
	ret_request->spawn.detach = args->detach;
	return 0;
}

void request_deinit(struct request *request)
{
	free(request->rules);
	free(request->context);
	free(request->pwd);
	free(request->forward);
	free(request->env.items);
	*request = (struct request){ .rules = NULL };
}
