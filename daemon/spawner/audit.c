/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/spawner/audit.h"

#include "daemon/spawner/job.h"
#include "daemon/spawner/jobproc.h"
#include "daemon/spawner/spawner.h"

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

	job_describe(job, &event);
	recorderlink_send_durable(&job->spawner->recorder, EVENT_EXECUTION_STARTED, &event,
				  &job->audit, on_recorded, job);
}

void audit_started(const struct job *job)
{
	if (!job->audited)
		job_record(job, EVENT_EXECUTION_STARTED);
	if (job->start.suppressed > 0)
		job_record(job, EVENT_POLICY_SUPPRESSED);
}
