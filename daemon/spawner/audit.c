/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/spawner/audit.h"

#include <stdio.h>
#include <string.h>

#include "daemon/spawner/job.h"
#include "daemon/spawner/jobproc.h"
#include "daemon/spawner/spawner.h"

static void describe(const struct job *job, struct event_message *event)
{
	const struct op_start *start = &job->start;

	memset(event, 0, sizeof(*event));
	event->job = job->id;
	event->uid = job->identity.uid;
	event->pid = job->pid1;
	event->engine = start->engine;
	event->room = start->room;
	event->grant = job->grant;
	event->argc = start->argc;
	event->rules = start->rules;
	event->suppressed = start->suppressed;
	event->withheld = start->withheld;
	memcpy(event->args_hash, start->args_hash, sizeof(event->args_hash));
	memcpy(event->policy_digest, start->policy_digest, sizeof(event->policy_digest));
	memcpy(event->profile, start->profile, sizeof(event->profile));
	memcpy(event->command, start->command, sizeof(event->command));
	memcpy(event->label, start->label, sizeof(event->label));
}

void audit_record(const struct job *job, enum event_kind kind)
{
	struct event_message event;

	describe(job, &event);
	if (kind == EVENT_EXECUTION_FINISHED)
		event.exited = job->record;
	if (kind == EVENT_EXECUTION_FAILED) {
		event.error_kind = job->failure.kind;
		(void)snprintf(event.detail, sizeof(event.detail), "%s: %s", job->failure.stage,
			       job->failure.message);
	}
	recorderlink_send(&job->spawner->recorder, kind, &event);
}

static void on_recorded(void *arg, bool durable)
{
	struct job *job = arg;

	if (job->failed || job->over)
		return;
	if (durable)
		jobproc_go(job);
	else
		job_fail(job, ERR_AUDIT_UNAVAILABLE, "audit",
			 "records are required, and this start could not be recorded");
}

void audit_start(struct job *job)
{
	struct event_message event;

	describe(job, &event);
	recorderlink_send_durable(&job->spawner->recorder, EVENT_EXECUTION_STARTED, &event,
				  &job->audit, on_recorded, job);
}

void audit_started(const struct job *job)
{
	if (!job->audited)
		audit_record(job, EVENT_EXECUTION_STARTED);
	if (job->start.suppressed > 0)
		audit_record(job, EVENT_POLICY_SUPPRESSED);
}
