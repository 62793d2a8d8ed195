/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/spawner/guardtell.h"

#include <stdio.h>
#include <string.h>

#include "daemon/spawner/adopt.h"
#include "daemon/spawner/brokerlink.h"
#include "daemon/spawner/job.h"
#include "daemon/spawner/jobproc.h"
#include "daemon/spawner/placing.h"
#include "daemon/spawner/spawner.h"
#include "daemon/spawner/template.h"

static void record(const struct job *job, enum event_kind kind, const struct report_guard *what)
{
	struct event_message event = { .job = job->id, .uid = job->identity.uid };

	event.exposure_us = what->exposure_us;
	event.guard_action = what->action;
	memcpy(event.kept_as, what->kept_as, sizeof(event.kept_as));
	(void)snprintf(event.detail, sizeof(event.detail), "%.*s", (int)sizeof(event.detail) - 1,
		       what->path);
	recorderlink_send(&job->spawner->recorder, kind, &event);
}

static void tell_broker(struct job *job, enum guard_news_kind kind, const struct report_guard *what)
{
	struct link_message message;

	link_message_init(&message, LINK_JOB_GUARD, 0, job->conn, job->id);
	message.u.guard.kind = kind;
	message.u.guard.what = *what;
	brokerlink_send_take(job->broker, &message, NULL, 0);
}

void guardtell(struct job *job, enum report_kind kind, const struct report_guard *what)
{
	bool lost = kind == REPORT_MASK_LOST || what->action == GUARD_LEFT ||
		    what->action == GUARD_KILLED;

	if (lost && !job->exited) {
		job->killed = true;
		/* Its start, which may be on its way, comes first, so that it is not taken for a failure. */
		if (job->started || what->action != GUARD_KILLED)
			jobproc_kill(job);
		else
			job->state = JOB_ENDING;
	}
	if (kind == REPORT_MASK_REPAIRED)
		placing_masked(job, what->path);
	/* The prepared tree lost the same mount. */
	if (kind != REPORT_NAME_APPEARED)
		templates_drop_guarded(&job->spawner->templates, job->guarded.plan);
	/* How often things change outside is in the user's hands. */
	if (job->told || job->guarded.told++ >= LIMIT_GUARD_REPORTS_PER_JOB)
		return;
	if (kind != REPORT_NAME_APPEARED) {
		job->guarded.repaired++;
		adopt_note(job);
	}
	if (kind == REPORT_NAME_APPEARED) {
		record(job, EVENT_NAME_PLANTED, what);
		tell_broker(job, GUARD_NEWS_APPEARED, what);
	} else {
		record(job, kind == REPORT_MASK_LOST ? EVENT_MASK_LOST : EVENT_MASK_REPAIRED, what);
		tell_broker(job, kind == REPORT_MASK_LOST ? GUARD_NEWS_LOST : GUARD_NEWS_REPAIRED,
			    what);
	}
}
