/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_DAEMON_BROKER_ROOM_H
#define FSBOX_DAEMON_BROKER_ROOM_H

/*
 * What a job's network room is called: common/posture.h's decision, and the two rooms that it does not
 * know. fsboxd holds the answer against the plan (verify.h). Pure.
 */

#include <stdbool.h>

#include "common/error.h"
#include "common/policy.h"
#include "proto/wire/spawnop.h"

/*
 * @net       what the job gets
 * @usual     what it would get if nobody asked for anything
 * @asked     the caller asked for @net: by an option, or by a profile of its own choosing that is no
 *            installed one
 * @granted   a grant came with the request
 * @config    what fsboxd found out about this machine
 */
struct room_input {
	enum net_mode net;
	enum net_mode usual;
	bool asked;
	bool granted;
	const struct link_config *config;
};

/* Fails with ERR_ENGINE_UNAVAILABLE, the reason with it: what is broken refuses everybody. */
int room_choose(enum room_kind *ret_room, const struct room_input *input, struct error *err);

#endif
