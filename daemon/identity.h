/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_DAEMON_IDENTITY_H
#define FSBOX_DAEMON_IDENTITY_H

/*
 * As whom something runs: one user, one group, the supplementary groups.
 *
 * Two connections of a user with different groups are two identities, since what they may open
 * differs. Brokers, builders and jobs are made for an identity.
 */

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "common/error.h"
#include "common/limits.h"

struct identity {
	uid_t uid;
	gid_t gid;
	size_t group_count;
	gid_t groups[LIMIT_GROUPS]; /* sorted, unique */
};

bool identity_equal(const struct identity *a, const struct identity *b);

/* Sort the groups and remove repeats, so that identity_equal() may compare. */
void identity_normalise(struct identity *identity);

/* Remove the groups in DROP from IDENTITY's supplementary groups (its gid stays). */
void identity_drop_groups(struct identity *identity, const gid_t *drop, size_t count);

/*
 * Become IDENTITY in this process, for good: groups, all four group ids, all four user ids, checked
 * afterwards. A no-op where this process already is that user and has no privilege to change
 * (user mode). Call it in a fresh child only. Capabilities: as setresuid(2) leaves them.
 *
 * Fails with ERR_SYSTEM; the caller must then exit.
 */
int identity_become(const struct identity *identity, struct error *err);

#endif
