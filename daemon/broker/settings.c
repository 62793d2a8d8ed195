/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/broker/settings.h"

#include <string.h>

#include "common/context.h"
#include "daemon/broker/room.h"

static int not_yet(const char *member, const char *what, struct error *err)
{
	return error_set(err, ERR_INVALID, 0, "params.%s: %s not in this version", member, what);
}

int settings_check(const struct spawn_params *params, struct error *err)
{
	if (params->tty != NULL)
		return not_yet("tty", "terminals are", err);
	if (params->session != NULL)
		return not_yet("session", "sessions are", err);
	if (params->net.loopback)
		return not_yet("net.loopback", "published ports are", err);
	return 0;
}

static int choose_engine(struct settings *settings, const struct settings_input *input,
			 struct error *err)
{
	enum engine_kind engine = input->params->engine;

	if (engine == ENGINE_DEFAULT && input->conf->default_engine != NULL &&
	    !engine_parse(input->conf->default_engine, &engine))
		engine = ENGINE_DEFAULT;
	if (engine == ENGINE_DEFAULT)
		engine = engine_default(input->config->engines);
	settings->engine = engine;
	if (engine == ENGINE_SEATBELT)
		return error_set(err, ERR_ENGINE_UNAVAILABLE, 0,
				 "engine 'seatbelt' is for macOS only");
	if (input->config->engines & (1u << engine))
		return 0;
	return error_set(err, ERR_ENGINE_UNAVAILABLE, 0, "engine '%s' does not work here: %s",
			 engine_name(engine), input->config->engine_reason);
}

static enum net_mode net_of_base(enum profile_base base)
{
	return base == PROFILE_BASE_BOTMUX ? NET_HOST : NET_NONE;
}

/* There is one, or the question is what one would have to be for. fsboxd decides. */
static bool has_grant(const struct spawn_params *params)
{
	return params->grant_fd >= 0 || params->grant_request;
}

/* The mode, and by whom. A list of hosts to be allowed asks for the proxy by itself. */
static const char *choose_mode(struct settings *settings, const struct settings_input *input)
{
	const struct msg_net *request = &input->params->net;
	const struct msg_net *profile = &input->profile->net;

	if (net_choice_mode(request->mode, &settings->net))
		return "the request";
	if (request->allow.count > 0) {
		settings->net = NET_PROXY;
		return "the request";
	}
	if (net_choice_mode(profile->mode, &settings->net))
		return "the profile";
	settings->net = profile->allow.count > 0 ? NET_PROXY : net_of_base(input->base);
	if (input->base == PROFILE_BASE_BOTMUX && input->params->context != NULL &&
	    !input->params->context->net)
		settings->net = NET_NONE;
	return "the profile";
}

static int choose_net(struct settings *settings, const struct settings_input *input,
		      struct error *err)
{
	const struct msg_net *request = &input->params->net;
	const char *by = choose_mode(settings, input);

	if (settings->net != NET_PROXY && (request->allow.count > 0 || request->deny.count > 0))
		return error_set(
			err, ERR_INVALID, 0,
			"params.net: only network 'proxy' has lists of hosts, '%s' has not",
			net_mode_name(settings->net));
	/* A port of the host's is a way out, if a narrow one: that is the proxy with an empty list. */
	if (settings->net == NET_NONE && request->forward.count > 0) {
		settings->net = NET_PROXY;
		by = "the request, for forwarded ports";
	}
	if (settings->net == NET_HOST && input->root_peer)
		return error_set(err, ERR_NOT_AUTHORIZED, 0,
				 "network 'host' is not for jobs of root (asked for by %s)", by);
	if (has_grant(input->params) && settings->net == NET_NONE)
		return error_set(err, ERR_INVALID, 0,
				 "params.grant: a grant is for network 'proxy' or 'host'");
	if (settings->net > input->conf->max_net && !has_grant(input->params))
		return error_set(err, ERR_NOT_AUTHORIZED, 0,
				 "network '%s' (asked for by %s) is more than this host allows:"
				 " max-net = %s",
				 net_mode_name(settings->net), by,
				 net_mode_name(input->conf->max_net));
	return 0;
}

/* A profile file that the caller names by its path is the caller's word, not the host's. */
static int choose_room(struct settings *settings, const struct settings_input *input,
		       struct error *err)
{
	const char *profile = input->params->profile;
	const bool own_profile = profile != NULL && profile[0] == '/';
	struct room_input room = {
		.net = settings->net,
		.usual = net_of_base(input->base),
		.asked = own_profile || input->params->net.mode != NET_CHOICE_UNSET,
		.granted = has_grant(input->params),
		.config = input->config,
	};

	if (!own_profile)
		(void)net_choice_mode(input->profile->net.mode, &room.usual);
	return room_choose(&settings->room, &room, err);
}

static uint64_t first_of(uint64_t a, uint64_t b, uint64_t c)
{
	return a != 0 ? a : b != 0 ? b : c;
}

static void choose_limits(struct settings *settings, const struct settings_input *input)
{
	const struct msg_limits *asked = &input->params->limits;
	const struct msg_limits *profile = &input->profile->limits;
	const struct hostconf *conf = input->conf;

	settings->limits.memory_bytes =
		first_of(asked->memory_bytes, profile->memory_bytes, conf->default_memory_bytes);
	settings->limits.wall_ms =
		first_of(asked->wall_ms, profile->wall_ms, conf->default_timeout_ms);
	settings->limits.pids = (uint32_t)first_of(asked->pids, profile->pids, conf->default_pids);
	settings->limits.cpus_milli = (uint32_t)first_of(asked->cpus_milli, profile->cpus_milli,
							 conf->default_cpus_milli);
}

int settings_make(struct settings *ret_settings, const struct settings_input *input,
		  struct error *err)
{
	struct settings settings = { 0 };
	int r = 0;

	if (has_grant(input->params) && input->config->mode != MODE_SYSTEM)
		return error_set(err, ERR_GRANT_INVALID, 0, "there are no grants in mode '%s'",
				 daemon_mode_name((enum daemon_mode)input->config->mode));
	r = choose_engine(&settings, input, err);

	if (r == 0)
		r = choose_net(&settings, input, err);
	if (r == 0)
		r = choose_room(&settings, input, err);
	if (r < 0)
		return r;
	choose_limits(&settings, input);
	settings.protect =
		input->profile->protect == TRISTATE_UNSET
			? input->base == PROFILE_BASE_GENERIC || input->base == PROFILE_BASE_NONE
			: input->profile->protect == TRISTATE_TRUE;
	*ret_settings = settings;
	return 0;
}
