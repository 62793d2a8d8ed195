/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_DAEMON_SPAWNER_LEDGERTABLE_H
#define FSBOX_DAEMON_SPAWNER_LEDGERTABLE_H

/*
 * The entries of the ledger in memory: one for each path and user, sorted, with the jobs that stand on it.
 * Private to ledger.c.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "daemon/identity.h"
#include "daemon/spawner/unshared.h"
#include "proto/wire/spawnop.h"

/* @intends  it said that it is about to make what it stands on, and not yet what came of it */
struct ledger_claim {
	uint64_t job;
	bool intends;
};

/*
 * One level of a placeholder.
 *
 * @path         in the table's pool
 * @identity     as whom it is made and removed; shared by entries
 * @made         @node is known
 * @since_sec, @since_nsec  somebody was about to make it from then on, without having said that he did: what
 *               is there may be that. 0: nobody
 * @orphaned     one of them is gone without having said whether he did
 * @claims       owned; none: nobody needs it
 * @in_flight    a child is removing it
 * @kept         it could not be removed when it was tried
 */
struct ledger_entry {
	char *path;
	struct ledger_identity *identity;
	struct node_identity parent;
	struct node_identity node;
	int64_t since_sec;
	uint32_t since_nsec;
	bool orphaned;
	bool made;
	bool in_flight;
	bool kept;
	struct ledger_claim *claims;
	size_t claim_count;
	size_t claim_capacity;
};

struct ledger_identity {
	struct identity identity;
	size_t users; /* entries */
	struct ledger_identity *next;
};

/*
 * @entries     sorted by path, then uid; pointers, so that making room for one is cheap
 * @identities  few: one for each that has placeholders
 * @replaying   a file is being read: there are also those that it has not forgotten yet, and no user's bound
 * @paths       names of one user's files are nothing for processes of another (R15)
 */
struct ledger_table {
	struct unshared_pool paths;
	struct ledger_entry **entries;
	size_t count;
	size_t capacity;
	struct ledger_identity *identities;
	bool replaying;
};

void ledger_table_deinit(struct ledger_table *table);

/* The first entry at or after PATH, and of that path at or after UID; count if there is none. */
size_t ledger_table_at(const struct ledger_table *table, const char *path, uid_t uid);

/* The entry for exactly PATH and UID, or NULL. */
struct ledger_entry *ledger_table_find(const struct ledger_table *table, const char *path,
				       uid_t uid);

/* Whether there is an entry strictly below PATH. */
bool ledger_table_has_below(const struct ledger_table *table, const char *path);

/*
 * The same, new and without claims if there was none. Fails with ERR_NOMEM, or ERR_QUOTA_EXCEEDED past
 * LIMIT_PLACEHOLDERS_PER_UID (unless @replaying) or LIMIT_LEDGER_ENTRIES.
 */
int ledger_table_obtain(struct ledger_table *table, const char *path,
			const struct identity *identity, struct ledger_entry **ret_entry,
			struct error *err);

void ledger_table_remove(struct ledger_table *table, const struct ledger_entry *entry);

/* JOB's claim on ENTRY, or NULL. */
struct ledger_claim *ledger_entry_claim(const struct ledger_entry *entry, uint64_t job);

/* The same, new if there was none. NULL: no memory. */
struct ledger_claim *ledger_entry_add(struct ledger_entry *entry, uint64_t job);

/* True: there was one. If it was about to make ENTRY, nobody will ever say whether it did. */
bool ledger_entry_drop(struct ledger_entry *entry, uint64_t job);

/*
 * Somebody is about to make ENTRY: what is there may be his from the first on who is, or a moment ago was,
 * about to. What somebody was about to make longer ago is not there: who is about to now found nothing.
 */
void ledger_entry_begin(struct ledger_entry *entry);

/*
 * He makes it in the directory PARENT. What was made in another one of that name went away with that one, and
 * no path leads to it.
 */
void ledger_entry_enter(struct ledger_entry *entry, const struct node_identity *parent);

#endif
