/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_DAEMON_SPAWNER_ENDED_H
#define FSBOX_DAEMON_SPAWNER_ENDED_H

/*
 * How jobs ended that are over, for a while: a broker that died with the news can be followed by another
 * one, whose client asks again (OP_JOB_FIND). Their files stay as long, for the same case with a fsboxd.
 *
 * The newest LIMIT_RESULTS_PER_BROKER of each identity, for LIMIT_RESULT_KEPT_MS. The next fsboxd keeps them
 * as long once more, since nobody could ask meanwhile; but however many follow, none is kept for longer than
 * LIMIT_RESULT_LONGEST_MS.
 */

#include <stddef.h>
#include <stdint.h>

#include "daemon/spawner/loop.h"
#include "proto/wire/spawnop.h"

struct brokerlink;
struct spawner;

/*
 * @repaired  see struct guard_share
 * @ended_ms, @until_ms  CLOCK_MONOTONIC: told then; kept until then
 */
struct ended {
	uint64_t job;
	uint8_t cookie_hash[32];
	struct exit_record record;
	uint32_t repaired;
	uint64_t ended_ms;
	uint64_t until_ms;
	struct ended *next; /* ended_list.first, by @ended_ms */
};

struct ended_list {
	struct ended *first;
	struct ended *last;
	size_t count;
	struct loop_timer timer;
};

/*
 * A job of LINK is over, and has a file: keep a copy of WHAT, whose @until_ms follows from the rest. Where
 * there is no memory for it, or no more time, the file is removed at once.
 */
void ended_add(struct brokerlink *link, const struct ended *what);

/* Of any identity with UID; NULL: not known, or not any more. */
const struct ended *ended_find(const struct spawner *spawner, uid_t uid, uint64_t job);

/* LINK goes. Files stay when all of fsboxd goes. */
void ended_deinit(struct brokerlink *link);

#endif
