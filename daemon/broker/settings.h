/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_DAEMON_BROKER_SETTINGS_H
#define FSBOX_DAEMON_BROKER_SETTINGS_H

/*
 * What a request, its profile and the host's configuration together come to, but for the rules:
 * engine, network, limits. Pure.
 */

#include <stdbool.h>

#include "common/error.h"
#include "common/hostconf.h"
#include "daemon/broker/profiles.h"
#include "proto/json/message.h"
#include "proto/wire/spawnop.h"

struct settings {
	enum engine_kind engine;
	enum net_mode net;
	enum room_kind room;
	struct job_limits limits;
	bool protect;
};

/* Borrowed. @params may have no argv. */
struct settings_input {
	const struct spawn_params *params;
	const struct profile *profile; /* empty for built-in ones */
	enum profile_base base;
	const struct hostconf *conf;
	const struct link_config *config;
	bool root_peer;
};

/*
 * What this version has no way to do is refused by name. Needs no profile, so comes first.
 * Fails with ERR_INVALID or ERR_ENGINE_UNAVAILABLE.
 */
int settings_check(const struct spawn_params *params, struct error *err);

/*
 * Fails with ERR_ENGINE_UNAVAILABLE (the reason with it), ERR_INVALID (lists of hosts for another
 * network than `proxy`) or ERR_NOT_AUTHORIZED (a network beyond the host's `max-net`; what root may not
 * have, R19).
 */
int settings_make(struct settings *ret_settings, const struct settings_input *input,
		  struct error *err);

#endif
