/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_DAEMON_SPAWNER_TEMPLATEMEM_H
#define FSBOX_DAEMON_SPAWNER_TEMPLATEMEM_H

/*
 * What a template knows, in memory that no child has but its own builder and its own jobs: the plan
 * says much about a user.
 */

#include <stdbool.h>
#include <stddef.h>

#include "common/error.h"
#include "common/plan.h"
#include "daemon/spawner/native.h"

/*
 * @plan        lies in the block as a whole: never plan_add(), never plan_deinit()
 * @bytes       the plan as it came; in the block too
 * @shared      between builder and jobs; fsboxd never reads it
 */
struct templatemem {
	struct plan plan;
	const void *bytes;
	size_t byte_count;
	struct native_shared *shared;
	size_t shared_bytes;
	void *block;
	size_t block_bytes;
};

/* Copies of BYTES and PLAN. Fails with ERR_NOMEM; nothing is held then. */
int templatemem_init(struct templatemem *mem, const void *bytes, size_t byte_count,
		     const struct plan *plan, struct error *err);
void templatemem_deinit(struct templatemem *mem);

/* Lend all of it to children forked from now on, or end that. Fails with ERR_NOMEM. */
int templatemem_lend(const struct templatemem *mem, bool lend, struct error *err);

#endif
