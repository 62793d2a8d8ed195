/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_DAEMON_SPAWNER_SWEEP_H
#define FSBOX_DAEMON_SPAWNER_SWEEP_H

/*
 * Removing placeholders that no job needs any more: in a short-lived child that is the peer, because
 * fsboxd itself never walks a path of somebody's. A child that hangs is abandoned; what it did not
 * get to goes back to the ledger.
 */

#include <stddef.h>

#include "daemon/identity.h"
#include "proto/wire/spawnop.h"

struct spawner;

typedef void sweep_done_fn(void *arg);

/*
 * Remove PLACEHOLDERS (on the heap, consumed) in order, for JOB, as IDENTITY. DONE is called once:
 * when all was tried, or given up on; perhaps before this returns.
 */
void sweep_start_take(struct spawner *spawner, uint64_t job, const struct identity *identity,
		      struct report_placeholder *placeholders, size_t count, sweep_done_fn *done,
		      void *arg);

#endif
