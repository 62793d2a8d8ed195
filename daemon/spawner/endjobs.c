/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/spawner/endjobs.h"

#include <signal.h>
#include <unistd.h>

#include "daemon/log.h"
#include "daemon/spawner/job.h"
#include "daemon/spawner/listener.h"
#include "daemon/spawner/spawner.h"

#define LOOK_AGAIN_MS 20

/* Longer than a job that cannot be killed is waited for. */
#define END_JOBS_MS 10000u

static void look_again(void *arg)
{
	struct spawner *spawner = arg;

	if (spawner->job_count == 0) {
		loop_stop(&spawner->loop);
	} else if (spawner_real_ms() - spawner->started_ms > END_JOBS_MS) {
		log_write(LOG_WARNING, "%zu jobs do not end", spawner->job_count);
		loop_stop(&spawner->loop);
	} else {
		loop_arm(&spawner->loop, &spawner->idle_timer, LOOK_AGAIN_MS, look_again, spawner);
	}
}

int endjobs_run(struct spawner *spawner, struct error *err)
{
	struct error fail = ERROR_INIT;

	for (size_t i = 0; i < SPAWNER_JOB_BUCKETS; i++) {
		struct job *next = NULL;

		for (struct job *job = spawner->jobs[i]; job; job = next) {
			next = job->next;
			if (job_signal(job, SIGKILL, &fail) < 0)
				log_failure(&fail, "job %llu", (unsigned long long)job->id);
		}
	}
	/* One that nobody serves any more would look like a daemon that hangs. */
	listener_remove_left_over(spawner->paths.socket);
	look_again(spawner);
	return loop_run(&spawner->loop, err);
}
