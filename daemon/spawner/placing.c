/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/spawner/placing.h"

#include <string.h>
#include <sys/mman.h>

#include "common/plan.h"
#include "common/scope.h"
#include "daemon/log.h"
#include "daemon/spawner/job.h"
#include "daemon/spawner/jobproc.h"
#include "daemon/spawner/spawner.h"
#include "daemon/spawner/template.h"
#include "daemon/spawner/unshared.h"
#include "daemon/spawner/verify.h"

/* @uid  of JOB, or LEDGER_ANY_UID: its builder may be making what it announced (ledger_share()) */
static int claim_plan(struct job *job, const struct plan *plan, uid_t uid, struct error *err)
{
	struct ledger *ledger = job->spawner->ledger;
	int wait = 0;

	for (size_t i = 0; i < plan->count && ledger_count(ledger) > 0; i++) {
		int r = ledger_share(ledger, job->id, uid, plan->ops[i].path, err);

		if (r < 0)
			return r;
		wait |= r;
	}
	return wait ? PLACING_WAIT : 0;
}

int placing_plan(struct job *job, const struct plan *plan, struct error *err)
{
	int r = claim_plan(job, plan, job->identity.uid, err);

	if (r >= 0)
		job->waits = r == PLACING_WAIT;
	return r;
}

int placing_again(struct job *job, struct error *err)
{
	AUTO(plan_deinit) struct plan plan = PLAN_INIT;
	const size_t size = job->start.plan_bytes + job->start.net_bytes;
	const uint8_t *bytes = NULL;
	int r = 0;

	if (ledger_count(job->spawner->ledger) == 0)
		return 0;
	r = verify_map(job->plan_fd, size, &bytes, err);
	if (r < 0)
		return r;
	r = plan_decode(&plan, bytes, job->start.plan_bytes, err);
	(void)munmap((void *)(uintptr_t)bytes, size);
	if (r == 0)
		r = claim_plan(job, &plan, LEDGER_ANY_UID, err);
	/* Each was claimed before anybody could begin to remove it. */
	if (r > 0)
		r = error_set(err, ERR_LEDGER_FAILED, 0, "what it stands on is being removed");
	return r;
}

void placing_starting(struct spawner *spawner)
{
	for (size_t i = 0; i < SPAWNER_JOB_BUCKETS; i++) {
		for (struct job *job = spawner->jobs[i]; job; job = job->next) {
			struct error err = ERROR_INIT;

			/* One that has a leader is not gone by failing. */
			if (job->state == JOB_STARTING && !job->template && !job->up &&
			    job->leader.pid != 0 && placing_again(job, &err) < 0)
				job_fail(job, err.kind, "placeholder", "%s", err.message);
		}
	}
}

void placing_masked(struct job *job, const char *path)
{
	struct error err = ERROR_INIT;

	/*
	 * One that is over stands on nothing any more. It may be what stands in for JOB's own file, whose maker has
	 * not said yet that he made it: that is not to be forgotten.
	 */
	if (!job->over &&
	    ledger_share(job->spawner->ledger, job->id, LEDGER_ANY_UID, path, &err) < 0)
		log_failure(&err, "job %llu: what it is denied may go",
			    (unsigned long long)job->id);
}

int placing_share(struct job *job, const struct report_placeholder *what, struct error *err)
{
	struct ledger *ledger = job->spawner->ledger;
	int wait = ledger_share(ledger, job->id, job->identity.uid, what->path, err);

	for (size_t i = 0; wait >= 0 && what->node.ino != 0 && i < ledger_count(ledger); i++) {
		const struct ledger_view view = ledger_view(ledger, i);
		int r = 0;

		if (!view.made || strcmp(view.path, what->path) == 0 ||
		    !node_identity_equal(view.node, &what->node))
			continue;
		r = ledger_share(ledger, job->id, job->identity.uid, view.path, err);
		if (r < 0)
			return r;
		wait |= r;
		/* Jobs that come later are counted by the plan's names. */
		if (job->template)
			job->template->outdated = true;
	}
	return wait;
}

static int take_intent(struct job *job, const struct report_placeholder *what, struct error *err)
{
	int r = 0;

	if (job->placeholders >= LIMIT_PLACEHOLDERS_PER_JOB)
		return error_set(err, ERR_LEDGER_FAILED, 0, "more than %d placeholders",
				 LIMIT_PLACEHOLDERS_PER_JOB);
	r = ledger_intend(job->spawner->ledger, job->id, &job->identity, what, err);
	if (r == 0)
		job->placeholders++;
	return r;
}

int placing_report(struct job *job, const struct report_message *report, struct error *err)
{
	const struct report_placeholder *what = &report->u.placeholder;
	struct ledger *ledger = job->spawner->ledger;
	int r = 0;

	if (report->kind == REPORT_PLACEHOLDER_INTENT)
		r = take_intent(job, what, err);
	else if (report->kind == REPORT_PLACEHOLDER_MADE)
		r = ledger_made(ledger, job->id, job->identity.uid, what, err);
	else if (report->kind == REPORT_PLACEHOLDER_SKIPPED)
		r = placing_share(job, what, err);
	else
		r = error_set(err, ERR_BAD_FRAME, 0, "no report about a placeholder");
	return r == LEDGER_BUSY ? PLACING_WAIT : r;
}

bool placing_wants_go(const struct report_message *report)
{
	return report->kind == REPORT_PLACEHOLDER_INTENT ||
	       report->kind == REPORT_PLACEHOLDER_SKIPPED;
}

int placing_hold(struct report_message **held, const struct report_message *report,
		 struct error *err)
{
	if (*held)
		return error_set(err, ERR_BAD_FRAME, 0, "a second report of one that waits");
	/* A path of this user's is nothing for children that are somebody else (R15). */
	*held = unshared_new(sizeof(**held));
	if (!*held)
		return error_set(err, ERR_NOMEM, 0, "keep a report");
	memcpy(*held, report, sizeof(*report));
	return 0;
}

void placing_let_go(struct report_message **held)
{
	unshared_free(*held, sizeof(**held));
	*held = NULL;
}

/* One that waited before this sweep was through. Any of them may end others, so each is looked for anew. */
static struct job *next_waiting(const struct spawner *spawner)
{
	for (size_t i = 0; i < SPAWNER_JOB_BUCKETS; i++)
		for (struct job *job = spawner->jobs[i]; job; job = job->next)
			if (job->resumes)
				return job;
	return NULL;
}

void placing_resume(struct spawner *spawner)
{
	bool anybody = false;

	for (size_t i = 0; i < SPAWNER_JOB_BUCKETS; i++) {
		for (struct job *job = spawner->jobs[i]; job; job = job->next) {
			job->resumes = job->waits || job->held;
			anybody |= job->resumes;
		}
	}
	for (struct job *job = NULL; anybody && (job = next_waiting(spawner));) {
		job->resumes = false;
		if (job->held)
			jobproc_resume(job);
		else if (job->waits)
			job_resume(job);
	}
	templates_resume(&spawner->templates);
}
