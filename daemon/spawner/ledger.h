/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_DAEMON_SPAWNER_LEDGER_H
#define FSBOX_DAEMON_SPAWNER_LEDGER_H

/*
 * Which placeholders exist on the host, and for which jobs: counted across all jobs of all users, so that
 * one job's end never removes what another still stands on; and on disk, so that the end of fsboxd or of
 * the machine leaves none behind (R26).
 *
 * Recorded, and on the disk, before one is made; recorded again when it is known which object it became, which
 * is on the disk with whatever is announced next, or when the kernel writes it there. Forgotten
 * only some time after it was removed, when that is on the disk too (ledger_tidy()).
 *
 * Nothing here touches a placeholder: placeholder.h does, as the peer; sweep.h says when.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/error.h"
#include "daemon/identity.h"
#include "daemon/spawner/placeholder.h"
#include "proto/wire/spawnop.h"

struct ledger;

/*
 * What the file held at the start.
 *
 * @entries  placeholders that somebody before us had not forgotten
 * @damaged  lines that were no lines; the file was kept as `ledger.damaged`
 * @why      the file cannot be written: why; "" else
 */
struct ledger_replay {
	size_t entries;
	size_t damaged;
	char why[128];
};

/*
 * Open or make the ledger in the state directory DIR, and read what is in it.
 *
 * @uid  only entries of this user are ours: others' were not written by us; (uid_t)-1: of all
 *
 * Fails with ERR_CONFIG (another fsboxd has it), ERR_SYSTEM, ERR_NOMEM. What is not a ledger, or cannot be
 * written, is no failure.
 */
int ledger_open(struct ledger **ret_ledger, const char *dir, uid_t uid, struct error *err);
struct ledger *ledger_free(struct ledger *ledger); /* returns NULL */

const struct ledger_replay *ledger_replayed(const struct ledger *ledger);

/* No job had a higher number: new ones begin above. */
uint64_t ledger_last_job(const struct ledger *ledger);

/*
 * Once, when all jobs that still run are known again: the claims of those for which LIVES says no are
 * dropped, and all is written anew. What nobody needs then is for ledger_take().
 */
typedef bool ledger_lives_fn(uint64_t job, void *arg);
void ledger_settle(struct ledger *ledger, ledger_lives_fn *lives, void *arg);

/* What is at the path, or above it, is being removed right now: ask again when the sweep is over. */
#define LEDGER_BUSY 1

/*
 * JOB is about to make WHAT as IDENTITY. On the disk when this returns 0; LEDGER_BUSY. Fails with
 * ERR_LEDGER_FAILED, ERR_NOMEM, or ERR_QUOTA_EXCEEDED past LIMIT_PLACEHOLDERS_PER_UID.
 */
int ledger_intend(struct ledger *ledger, uint64_t job, const struct identity *identity,
		  const struct report_placeholder *what, struct error *err);

/* It did; WHAT carries the identity. Unannounced ones fail with ERR_BAD_FRAME; else ERR_LEDGER_FAILED. */
int ledger_made(struct ledger *ledger, uint64_t job, uid_t uid,
		const struct report_placeholder *what, struct error *err);

/* For ledger_share(): a builder of JOB's may be making what it announced. */
#define LEDGER_ANY_UID ((uid_t)-1)

/*
 * JOB, of UID, relies on PATH and on the levels above it, as far as jobs of anybody made them. To be called
 * for every mount of a job's plan when the job is started (a placeholder of another job looks like any
 * other directory to whoever made the plan), and when the builder says it skipped PATH: then JOB's own
 * unfulfilled intent is forgotten too; with LEDGER_ANY_UID it is not.
 *
 * LEDGER_BUSY; fails with ERR_LEDGER_FAILED, ERR_NOMEM.
 */
int ledger_share(struct ledger *ledger, uint64_t job, uid_t uid, const char *path,
		 struct error *err);

/* Whether JOB stands on something. */
bool ledger_has_job(const struct ledger *ledger, uint64_t job);

/* JOB ended. True when something is there now that nobody needs. */
bool ledger_release(struct ledger *ledger, uint64_t job);

/*
 * How much of UID's nobody needs, and is not being removed. @again: also what could not be removed when it
 * was tried.
 */
size_t ledger_unneeded(const struct ledger *ledger, uid_t uid, bool again);

/* Whose is the next that nobody needs, from index *FROM on, which is moved behind it. False: no more. */
bool ledger_next_unneeded(const struct ledger *ledger, size_t *from, bool again, uid_t *ret_uid);

/*
 * Some of it, all of one identity, deepest first, at most MOST; count 0: there is none. It is busy until
 * ledger_settled() was called for each. The array is to be freed by ledger_taken_free(), and lent to the child
 * that is to see it (unshared.h). Fails with ERR_NOMEM.
 */
int ledger_take(struct ledger *ledger, uid_t uid, bool again, size_t most,
		struct identity *ret_identity, struct placeholder **ret_taken, size_t *ret_count,
		struct error *err);

void ledger_taken_free(struct placeholder *taken, size_t count); /* NULL is fine */

/* How that went. @gone: it is not there any more, or not ours; else it is kept to be tried again. */
void ledger_settled(struct ledger *ledger, uid_t uid, const char *path, bool gone);

/* Whether what nobody needs is waiting to be tried again. */
bool ledger_has_kept(const struct ledger *ledger);

/* Whether something that is kept or needed lies below PATH: then PATH cannot go. */
bool ledger_has_below(const struct ledger *ledger, const char *path);

/*
 * Forget on disk what was forgotten here. Not at once: the disk may remember what the file system does not
 * yet, and a power cut would bring a placeholder back without its entry. False: it could not be
 * written, or something was forgotten so lately that it is to be called again.
 */
#define LEDGER_TIDY_MS 60000
bool ledger_tidy(struct ledger *ledger);

/* Whether ledger_tidy() has something to do, some time. */
bool ledger_is_untidy(const struct ledger *ledger);

size_t ledger_count(const struct ledger *ledger);

/*
 * One entry, for showing; borrowed.
 *
 * @node    which object it is, if @made
 * @made    else: somebody was about to make it, and perhaps did
 * @kept    it could not be removed when it was tried
 * @jobs    how many stand on it
 */
struct ledger_view {
	uid_t uid;
	const char *path;
	const struct node_identity *node;
	bool made;
	bool kept;
	size_t jobs;
};

/* By index below ledger_count(), sorted by path. */
struct ledger_view ledger_view(const struct ledger *ledger, size_t index);

#endif
