/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_DAEMON_SPAWNER_SWEEP_H
#define FSBOX_DAEMON_SPAWNER_SWEEP_H

/*
 * Removing placeholders that no job needs any more: in short-lived children that are the peer, because
 * fsboxd itself never walks a path of somebody's. A child that hangs is abandoned; what it did not get to
 * stays in the ledger and is tried again: when jobs of the same user end, when mounts change, after a
 * while, at the next start.
 *
 * What a child is removing is busy meanwhile (ledger.h): jobs that would stand on it wait for its end.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/spawner/loop.h"

struct spawner;

/*
 * @retry     for what could not be removed; @retry_ms: the pause before, longer each time
 * @tidy      for the ledger's file
 */
struct sweeps {
	struct loop_timer retry;
	struct loop_timer tidy;
	uint64_t retry_ms;
};

typedef void sweep_done_fn(void *arg);

/*
 * Remove what nobody needs of UID's. @job: whose end it is, for records; 0: nobody's. @again: also what
 * could not be removed before. DONE (may be NULL) is called once, when all of it was tried or given up on;
 * perhaps before this returns.
 */
void sweep_start(struct spawner *spawner, uint64_t job, uid_t uid, bool again, sweep_done_fn *done,
		 void *arg);

/* The same for all users but UID ((uid_t)-1: for all), each by themselves. */
void sweep_others(struct spawner *spawner, uid_t uid, bool again);

/* Something in the ledger changed: see to the timers. */
void sweep_touch(struct spawner *spawner);

/* The host's mounts changed: what waits for a file system may have got it. */
void sweep_mounts_changed(struct spawner *spawner);

void sweeps_deinit(struct spawner *spawner);

#endif
