/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of a guard that follows denied objects which somebody outside took away: a job could make them now.
 * When one stays away fsboxd is told, which has something put in its place (standin.h).
 */
#include "daemon/spawner/guardwork.h"

#define NS_PER_MS UINT64_C(1000000)

/* When a look that is due could not begin. */
#define PAUSE_MS 10

/* One that stays gone, whatever was done about it: others have their turn, too. */
static struct guard_gone *old_one(struct guarded_job *job)
{
	for (size_t i = 0; i < job->gone_count; i++)
		if (job->gone[i].old)
			return &job->gone[i];
	return NULL;
}

void guard_gone_found(struct guarded_job *job, size_t point, bool makeable)
{
	struct guard_gone *slot = NULL;

	if (!job->plan->points.points[point].stand_in)
		return;
	for (size_t i = 0; i < job->gone_count; i++) {
		if (job->gone[i].point != point)
			continue;
		job->gone[i].seen = true;
		job->gone[i].makeable = makeable;
		return;
	}
	slot = job->gone_count < GUARD_GONE_MOST ? &job->gone[job->gone_count++] : old_one(job);
	if (!slot)
		return;
	*slot = (struct guard_gone){
		.point = point,
		.tell_ns = guard_now_ns() + GUARD_GONE_MS * NS_PER_MS,
		.seen = true,
		.makeable = makeable,
	};
}

static void on_gone(void *arg);

/* For what is to be told next, of any job. */
static void arm(struct guard_state *state)
{
	uint64_t now_ns = guard_now_ns();
	uint64_t next_ns = UINT64_MAX;

	/* One that is looked at is counted again by guard_gone_settle(). */
	for (const struct guarded_job *job = state->jobs; job; job = job->next)
		for (size_t i = 0; i < job->gone_count && !job->repairing && !job->killed; i++)
			if (job->gone[i].tell_ns < next_ns)
				next_ns = job->gone[i].tell_ns;
	if (next_ns == UINT64_MAX)
		loop_disarm(&state->loop, &state->gone);
	else
		loop_arm(&state->loop, &state->gone,
			 next_ns > now_ns ? (next_ns - now_ns) / NS_PER_MS + 1 : PAUSE_MS, on_gone,
			 state);
}

static void on_gone(void *arg)
{
	struct guard_state *state = arg;
	uint64_t now_ns = guard_now_ns();

	for (struct guarded_job *job = state->jobs; job; job = job->next)
		for (size_t i = 0; i < job->gone_count; i++)
			if (job->gone[i].tell_ns <= now_ns)
				guard_mark(job);
	guard_repair(state);
	/* Perhaps by another clock it is not time yet, or too many are looked at. */
	arm(state);
}

void guard_gone_settle(struct guarded_job *job)
{
	uint64_t now_ns = guard_now_ns();
	size_t kept = 0;

	for (size_t i = 0; i < job->gone_count; i++) {
		struct guard_gone gone = job->gone[i];

		if (!gone.seen)
			continue; /* something is there again */
		if (gone.tell_ns <= now_ns) {
			if (gone.makeable)
				guard_tell_path(job, REPORT_MASK_GONE,
						job->plan->points.points[gone.point].op->path, 0);
			gone.tell_ns = now_ns + GUARD_GONE_AGAIN_MS * NS_PER_MS;
			gone.old = true;
		}
		gone.seen = false;
		job->gone[kept++] = gone;
	}
	job->gone_count = kept;
	/* Without fsboxd nobody could record what is made. */
	if (job->state->report_fd >= 0)
		arm(job->state);
}
