/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_DAEMON_SPAWNER_LEDGER_H
#define FSBOX_DAEMON_SPAWNER_LEDGER_H

/*
 * Which placeholders exist on the host, for which jobs: counted across all jobs, so that one job's
 * end never removes what another still stands on.
 *
 * Kept in memory of fsboxd; nothing here touches a placeholder itself (placeholder.h does, as the
 * peer).
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/error.h"
#include "proto/wire/spawnop.h"

struct ledger;

int ledger_new(struct ledger **ret_ledger, struct error *err);
struct ledger *ledger_free(struct ledger *ledger); /* returns NULL */

/*
 * JOB is about to make WHAT as UID. Recorded before it may (R26). Fails with ERR_LEDGER_FAILED,
 * ERR_NOMEM, or ERR_QUOTA_EXCEEDED past LIMIT_PLACEHOLDERS_PER_UID.
 */
int ledger_intend(struct ledger *ledger, uint64_t job, uid_t uid,
		  const struct report_placeholder *what, struct error *err);

/* It did; WHAT carries the identity. Unannounced ones fail with ERR_BAD_FRAME. */
int ledger_made(struct ledger *ledger, uint64_t job, const struct report_placeholder *what,
		struct error *err);

/*
 * JOB relies on PATH and on the levels above it, as far as earlier jobs of the same uid made them. To be
 * called for every mask of a job's plan when the job is started (a placeholder of another job looks
 * like any other directory to whoever made the plan), and when the builder says it skipped PATH:
 * then JOB's own unfulfilled intent is forgotten too.
 */
void ledger_share(struct ledger *ledger, uint64_t job, uid_t uid, const char *path);

/*
 * JOB ended. Placeholders that no job needs any more are moved out of the ledger into an array on
 * the heap, deepest first, for a child to remove; the caller frees it. *ret_count may be 0.
 * An intent that was never fulfilled is among them too, without inode (placeholder_remove() knows).
 */
int ledger_release(struct ledger *ledger, uint64_t job, struct report_placeholder **ret_gone,
		   size_t *ret_count, struct error *err);

/* Those that could not be removed now come back, to be tried again at the next release. */
int ledger_keep(struct ledger *ledger, uid_t uid, const struct report_placeholder *what,
		struct error *err);

size_t ledger_count(const struct ledger *ledger);

#endif
