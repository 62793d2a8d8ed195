/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_DAEMON_SPAWNER_OPGRANT_H
#define FSBOX_DAEMON_SPAWNER_OPGRANT_H

/*
 * What brokers ask about grants. CONN is whom the kernel said it is; that somebody may run that
 * broker, its user, is no reason to believe more of it.
 */

#include "common/error.h"
#include "common/policy.h"
#include "proto/wire/spawnop.h"

struct brokerlink;
struct conn;
struct job;

int opgrant_create(struct brokerlink *link, const struct conn *conn,
		   const struct op_message *message, struct error *err);
int opgrant_list(struct brokerlink *link, const struct conn *conn, const struct op_message *message,
		 struct error *err);
int opgrant_revoke(struct brokerlink *link, const struct conn *conn,
		   const struct op_message *message, struct error *err);

/*
 * If JOB asks for a grant, for the plan and the lists of hosts in BYTES: spend it, before anything else of
 * the job happens and once for all its beginnings. Recorded either way. Fails with ERR_GRANT_INVALID,
 * ERR_LEDGER_FAILED, or as plan_decode() does.
 */
int opgrant_use(struct job *job, const void *bytes, size_t plan_bytes, size_t net_bytes,
		struct error *err);

/* What network a grant allows JOB; NET_NONE without one. */
enum net_mode opgrant_net(const struct job *job);

#endif
