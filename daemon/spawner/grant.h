/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_DAEMON_SPAWNER_GRANT_H
#define FSBOX_DAEMON_SPAWNER_GRANT_H

/*
 * Grants (R29): an administrator's word that one user may run one exact command once with more network
 * than `max-net`. Kept here and in the file `grants` of the state directory; nobody else decides.
 *
 * Each change is a record of a fixed size with a checksum, appended and synced before it counts. A
 * token is spent by the record of its reservation, so before the job is started: whatever happens
 * then, also to us, it cannot be used again. Of a token only the hash is kept.
 *
 * A record cut off at the end of the file was never acted upon and is dropped. Anything else that is
 * wrong in the file could hide that a token was spent: then no old grant is honoured.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/error.h"
#include "common/limits.h"
#include "proto/wire/spawnop.h"

/*
 * @state   GRANT_OPEN may also be over: ask grant_state_at()
 * @job     that it was reserved for, or 0
 */
struct grant {
	uint64_t id;
	uint64_t created_ms;
	uint64_t job;
	uid_t creator;
	enum grant_state state;
	uint8_t token_hash[HASH_BYTES];
	struct grant_terms terms;
	struct grant *next; /* grants.first, newest first */
};

/* @fd  of the file; -1: no grants here */
struct grants {
	int fd;
	uint64_t size;
	uint64_t last_id;
	struct grant *first;
	size_t count;
};

#define GRANTS_INIT       \
	{                 \
		.fd = -1, \
	}

/*
 * Read what is in DIR, forget what is over, and write the rest anew. Fails with ERR_SYSTEM or
 * ERR_CONFIG (somebody else's file); then there are no grants.
 *
 * @ret_damaged  the file was, and its open grants are not honoured
 */
int grants_open(struct grants *grants, const char *dir, uint64_t now_ms, bool *ret_damaged,
		struct error *err);
void grants_close(struct grants *grants);

/*
 * Make one. CREATOR was found to be an administrator. Fails with ERR_NOT_AUTHORIZED (for himself, for
 * root), ERR_INVALID (over already, or too long), ERR_QUOTA_EXCEEDED, ERR_GRANT_INVALID (there are none
 * here), ERR_LEDGER_FAILED (cannot be written), ERR_SYSTEM.
 */
int grants_create(struct grants *grants, uid_t creator, const struct grant_terms *terms,
		  uint64_t now_ms, struct link_grant *ret_grant, struct error *err);

/*
 * Who wants to use one.
 *
 * @claim  as the broker says; the job's pid 1 holds it against what is really there
 */
struct grant_use {
	uid_t uid;
	uint64_t job;
	uint64_t now_ms;
	uint32_t net; /* of the plan */
	const uint8_t *plan_hash;
	const struct op_start_grant *claim;
};

/*
 * Spend the one that USE's token is for. What does not fit is refused with ERR_GRANT_INVALID and does
 * not spend it. *RET_GRANT stays ours. Fails also with ERR_LEDGER_FAILED: then it may be spent.
 */
int grants_reserve(struct grants *grants, const struct grant_use *use,
		   const struct grant **ret_grant, struct error *err);

/* Fails with ERR_GRANT_INVALID (there is no open one) or ERR_LEDGER_FAILED. */
int grants_revoke(struct grants *grants, uint64_t id, uint64_t now_ms,
		  const struct grant **ret_grant, struct error *err);

enum grant_state grant_state_at(const struct grant *grant, uint64_t now_ms);

#endif
