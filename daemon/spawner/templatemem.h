/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_DAEMON_SPAWNER_TEMPLATEMEM_H
#define FSBOX_DAEMON_SPAWNER_TEMPLATEMEM_H

/*
 * What a template knows, in memory that no child has but its own builder and its own jobs: the plan
 * says much about a user. Of what these share fsboxd has a descriptor only: each mapping of its own would make
 * every fork of every job longer.
 */

#include <stdbool.h>
#include <stddef.h>

#include "common/error.h"
#include "common/plan.h"
#include "daemon/spawner/native.h"

/*
 * @plan        lies in the block as a whole: never plan_add(), never plan_deinit()
 * @bytes       the plan as it came; in the block too
 * @shared_fd   struct native_shared, for builder_map_shared(); a memfd that cannot be resized, -1: none
 */
struct templatemem {
	struct plan plan;
	const void *bytes;
	size_t byte_count;
	int shared_fd;
	void *block;
	size_t block_bytes;
};

#define TEMPLATEMEM_INIT                           \
	{                                          \
		.plan = PLAN_INIT, .shared_fd = -1 \
	}

/* Copies of BYTES and PLAN. Fails with ERR_NOMEM or ERR_SYSTEM; nothing is held then. */
int templatemem_init(struct templatemem *mem, const void *bytes, size_t byte_count,
		     const struct plan *plan, struct error *err);
void templatemem_deinit(struct templatemem *mem);

/* Lend the block to children forked from now on, or end that. Fails with ERR_NOMEM. */
int templatemem_lend(const struct templatemem *mem, bool lend, struct error *err);

#endif
