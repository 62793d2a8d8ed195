/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/spawner/jobtime.h"

#include <signal.h>

#include "daemon/spawner/adopt.h"
#include "daemon/spawner/job.h"
#include "daemon/spawner/jobproc.h"
#include "daemon/spawner/spawner.h"

static void on_setup_too_long(void *arg)
{
	job_fail(arg, ERR_TIMEOUT, "setup", "the sandbox was not ready within %d seconds",
		 LIMIT_SETUP_MS / 1000);
}

void jobtime_setup(struct job *job)
{
	loop_arm(&job->spawner->loop, &job->timer, LIMIT_SETUP_MS, on_setup_too_long, job);
}

static void on_grace_over(void *arg)
{
	jobproc_kill(arg);
}

void jobtime_grace(struct job *job, uint64_t ms)
{
	loop_arm(&job->spawner->loop, &job->timer, ms, on_grace_over, job);
}

static void on_time_up(void *arg)
{
	struct job *job = arg;

	job->timed_out = true;
	job->state = JOB_ENDING;
	adopt_note(job);
	(void)jobproc_signal(job, SIGTERM, NULL);
	jobtime_grace(job, LIMIT_GRACE_MS);
}

void jobtime_run(struct job *job)
{
	uint64_t limit_ms = job->start.limits.wall_ms;
	uint64_t spent_ms = loop_now_ms() - job->begun_ms;

	fdstore_job_runs(job);
	loop_disarm(&job->spawner->loop, &job->timer);
	if (limit_ms > 0)
		loop_arm(&job->spawner->loop, &job->timer,
			 spent_ms < limit_ms ? limit_ms - spent_ms : 0, on_time_up, job);
}
