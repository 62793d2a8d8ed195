/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_DAEMON_SPAWNER_ENDED_H
#define FSBOX_DAEMON_SPAWNER_ENDED_H

/*
 * How jobs ended that are over, for a while: a broker that died with the news can be followed by another
 * one, whose client asks again (OP_JOB_FIND). Their files stay as long, for the same case with a fsboxd.
 *
 * The newest LIMIT_RESULTS_PER_BROKER of each identity, none longer than LIMIT_RESULT_KEPT_MS.
 */

#include <stddef.h>
#include <stdint.h>

#include "daemon/spawner/loop.h"
#include "proto/wire/spawnop.h"

struct brokerlink;
struct spawner;

struct ended {
	uint64_t job;
	uint8_t cookie_hash[32];
	struct exit_record record;
	uint32_t repaired; /* see struct guard_share */
	uint64_t until_ms;
	struct ended *next; /* ended_list.first, oldest first */
};

struct ended_list {
	struct ended *first;
	struct ended *last;
	size_t count;
	struct loop_timer timer;
};

/* JOB of LINK is over, and has a file. Without memory for it the file is removed at once. */
void ended_add(struct brokerlink *link, uint64_t job, const uint8_t cookie_hash[32],
	       const struct exit_record *record, uint32_t repaired);

/* Of any identity with UID; NULL: not known, or not any more. */
const struct ended *ended_find(const struct spawner *spawner, uid_t uid, uint64_t job);

/* LINK goes. Files stay when all of fsboxd goes. */
void ended_deinit(struct brokerlink *link);

#endif
