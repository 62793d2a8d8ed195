/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_DAEMON_SPAWNER_VERIFY_H
#define FSBOX_DAEMON_SPAWNER_VERIFY_H

/*
 * Whether what a broker asks for may run on this host, by the authority that fsboxd read itself
 * (R11). The broker is the user, so everything in a plan is the user's word.
 */

#include <stddef.h>
#include <sys/types.h>

#include "common/error.h"
#include "common/plan.h"
#include "proto/wire/spawnop.h"

struct spawner;

/*
 * Map the plan in PLAN_FD, a memfd that fsboxd made and the broker filled and sealed.
 *
 * @plan_bytes  as announced: must be the file's size
 * @ret_bytes   the caller munmap()s @ret_count bytes
 *
 * Fails with ERR_BAD_FRAME (size, seals) or ERR_SYSTEM.
 */
int verify_map(int plan_fd, size_t plan_bytes, const void **ret_bytes, size_t *ret_count,
	       struct error *err);

/*
 * Whether a job of UID may have PLAN. Fails with ERR_POLICY_INVALID, ERR_NOT_AUTHORIZED or
 * ERR_ENGINE_UNAVAILABLE, naming what is wrong.
 */
int verify_plan(const struct spawner *spawner, uid_t uid, const struct plan *plan,
		struct error *err);

/*
 * Whether the request beside the plan is sound; fills in the configured limits where it has none.
 * Fails likewise.
 */
int verify_start(const struct spawner *spawner, struct op_start *start, struct error *err);

#endif
