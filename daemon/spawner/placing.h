/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_DAEMON_SPAWNER_PLACING_H
#define FSBOX_DAEMON_SPAWNER_PLACING_H

/*
 * Between those who make placeholders and the ledger: what a builder announces is recorded before it may go
 * on, what a job's plan stands on is claimed before its builder starts.
 *
 * Where a child is removing one of these right now (sweep.h), builder or job waits until that is through:
 * else a job could come to stand on a directory that is gone a moment later.
 */

#include <stdbool.h>

#include "common/error.h"
#include "proto/wire/spawnop.h"

struct job;
struct plan;
struct spawner;

/* What placing_plan() and placing_report() return besides 0 and failures: wait for placing_resume(). */
#define PLACING_WAIT 1

/*
 * JOB is about to be started with PLAN: claim what its mounts stand on. PLACING_WAIT: job_resume() is
 * called when to begin again. Fails with ERR_LEDGER_FAILED, ERR_NOMEM.
 */
int placing_plan(struct job *job, const struct plan *plan, struct error *err);

/*
 * By bubblewrap JOB's mounts are made some time after that, and what others make there meanwhile it may stand on:
 * all is claimed once more. Before it is up; and by placing_starting() for each that is about to be, before
 * claims are dropped. Fails as placing_plan(), ERR_BAD_FRAME, ERR_SYSTEM.
 *
 * Native jobs look whether their mounts are on what is there now (native.h), after they were counted: those
 * that waited for their template must be counted when that is ready.
 */
int placing_again(struct job *job, struct error *err);
void placing_starting(struct spawner *spawner);

/*
 * The guard of JOB, which runs, has masked what is at PATH now: another job's placeholder, perhaps. One that is
 * being removed it will find gone. What fails is logged.
 */
void placing_masked(struct job *job, const char *path);

/*
 * REPORT (REPORT_PLACEHOLDER_*) of a builder that works for JOB. 0: taken, and if the builder waits for a GO
 * byte it may have it (placing_wants_go()). PLACING_WAIT: take it again later. Fails as ledger.h does, and with
 * ERR_LEDGER_FAILED past LIMIT_PLACEHOLDERS_PER_JOB.
 */
int placing_report(struct job *job, const struct report_message *report, struct error *err);
bool placing_wants_go(const struct report_message *report);

/*
 * JOB relies on what is at WHAT's path, and, if it has an identity, on that object by whatever name it was made (a
 * mount may show it at several). PLACING_WAIT, and failures, as ledger_share().
 */
int placing_share(struct job *job, const struct report_placeholder *what, struct error *err);

/*
 * Keep a copy of REPORT, of a builder that waits, in *HELD to be taken again. Fails with ERR_NOMEM, or
 * ERR_BAD_FRAME when there is one: who waits says nothing more.
 */
int placing_hold(struct report_message **held, const struct report_message *report,
		 struct error *err);
void placing_let_go(struct report_message **held); /* NULL afterwards */

/* A sweep is through: those who wait go on. */
void placing_resume(struct spawner *spawner);

#endif
