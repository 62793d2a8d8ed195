/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_DAEMON_SPAWNER_JOBOPEN_H
#define FSBOX_DAEMON_SPAWNER_JOBOPEN_H

/*
 * Jobs before they have a plan: a number, the memfd that the plan goes into, and the job channel. The
 * broker asks for one, and gets one more ahead of its next request when a job of its has started, so
 * that most spawns need not ask. One that was opened ahead is nobody's: in no table, no list and no quota,
 * until the broker speaks of it.
 */

#include <stdint.h>

#include "common/error.h"

struct brokerlink;
struct conn;

/*
 * Open a job for CONN: quotas are taken, and the broker is sent LINK_JOB_OPENED for SEQ. Fails with
 * ERR_QUOTA_EXCEEDED, ERR_NOT_AUTHORIZED (its groups), ERR_NOMEM, ERR_SYSTEM.
 */
int jobopen(struct brokerlink *broker, const struct conn *conn, uint64_t seq, struct error *err);

/* Open BROKER's next job, if there is none yet: LINK_JOB_OPENED that answers nothing. */
void jobopen_ahead(struct brokerlink *broker);

/*
 * BROKER speaks of JOB for connection CONN: if that is the one that was opened ahead, it is a job from now
 * on, with quotas, or gone. Fails as jobopen() does.
 */
int jobopen_claim(struct brokerlink *broker, uint64_t job, uint64_t conn, struct error *err);

/* BROKER's process is gone. */
void jobopen_forget(struct brokerlink *broker);

#endif
