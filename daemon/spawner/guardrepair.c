/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of a guard that looks into jobs: children, each of which enters the mount namespaces of some
 * jobs one after the other and says what it found.
 */
#include "daemon/spawner/guardwork.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/scope.h"
#include "daemon/spawner/guardfix.h"
#include "proto/wire/guardop.h"

/* In finding.point: all of the job was looked at. */
#define POINT_END SIZE_MAX

/*
 * What a child says about one point that was not as it should be.
 *
 * @changed_ns, @done_ns  CLOCK_REALTIME: since when, at most, and until when it was open
 */
struct finding {
	uint64_t job;
	uint64_t point;
	uint32_t result;   /* enum guardfix_result */
	uint32_t makeable; /* nothing is there, and this user could make it */
	uint64_t changed_ns;
	uint64_t done_ns;
};

/* @begun_ns  what changed before that is known to it */
struct repair {
	struct guard_state *state;
	pid_t pid;
	int pipe_fd;
	struct loop_source source;
	struct loop_timer timer;
	uint64_t begun_ns;
	struct finding part;
	size_t part_bytes;
	size_t job_count;
	struct repair_job {
		uint64_t id;
		uint64_t dirty_ns;
		bool whole; /* was looked at to its end */
	} jobs[];
};

/* ---- in the child --------------------------------------------------------------------- */

static void say(int pipe_fd, const struct guarded_job *job, size_t point,
		enum guardfix_result result, uint64_t changed_ns)
{
	const struct finding finding = {
		.job = job->id,
		.point = point,
		.result = result,
		.makeable = (result == GUARDFIX_ABSENT || result == GUARDFIX_WENT) &&
			    guardfix_may_make(job->plan->points.points[point].op->path),
		.changed_ns = changed_ns,
		.done_ns = guard_now_ns(),
	};

	/* Smaller than PIPE_BUF: all of it or nothing. */
	if (write(pipe_fd, &finding, sizeof(finding)) != (ssize_t)sizeof(finding))
		_exit(1);
}

static void look_into(const struct guarded_job *job, int masks_fd, int pipe_fd)
{
	const struct guard_points *points = &job->plan->points;

	if (guardfix_enter(job->ns_fd, NULL) < 0)
		return;
	for (size_t i = 0; i < points->count; i++) {
		enum guardfix_result result = GUARDFIX_HELD;
		uint64_t changed_ns = 0;

		if (points->points[i].kind == GUARD_POINT_NOTICE)
			continue;
		result = guardfix_point(&points->points[i], masks_fd, &changed_ns, NULL);
		if (result != GUARDFIX_HELD &&
		    (result != GUARDFIX_ABSENT || points->points[i].stand_in))
			say(pipe_fd, job, i, result, changed_ns);
	}
	say(pipe_fd, job, POINT_END, GUARDFIX_HELD, 0);
}

static _Noreturn void repair_main(const struct repair *repair, int pipe_fd)
{
	for (size_t i = 0; i < repair->job_count; i++)
		look_into(guard_find_job(repair->state, repair->jobs[i].id),
			  repair->state->masks_fd, pipe_fd);
	_exit(0);
}

/* ---- what it says --------------------------------------------------------------------- */

static struct repair_job *find_repair_job(struct repair *repair, uint64_t id)
{
	for (size_t i = 0; i < repair->job_count; i++)
		if (repair->jobs[i].id == id)
			return &repair->jobs[i];
	return NULL;
}

/* From when the path changed, if the file system tells that and it is credible; else from when we heard. */
static uint64_t exposure_us(const struct guarded_job *job, const struct repair_job *as,
			    const struct finding *finding)
{
	uint64_t since_ns = as->dirty_ns;

	if (finding->changed_ns > job->verified_ns && finding->changed_ns < since_ns)
		since_ns = finding->changed_ns;
	return finding->done_ns > since_ns ? (finding->done_ns - since_ns) / 1000 : 0;
}

static void take_finding(struct repair *repair, const struct finding *finding)
{
	struct repair_job *as = find_repair_job(repair, finding->job);
	struct guarded_job *job = guard_find_job(repair->state, finding->job);
	bool lost = finding->result == GUARDFIX_LOST;
	const char *path = NULL;

	if (!as || !job)
		return;
	if (finding->point == POINT_END) {
		as->whole = true;
		return;
	}
	if (finding->point >= job->plan->points.count || job->killed)
		return;
	if (finding->result == GUARDFIX_ABSENT || finding->result == GUARDFIX_WENT)
		guard_gone_found(job, (size_t)finding->point, finding->makeable != 0);
	if (finding->result == GUARDFIX_ABSENT)
		return;
	path = job->plan->points.points[finding->point].op->path;
	if (lost || job->flags & GUARD_KILL_UNMASKED) {
		guard_tell_path(job, REPORT_MASK_LOST, path, 0);
		guard_kill(job);
	} else {
		job->patched = true;
		guard_tell_path(job, REPORT_MASK_REPAIRED, path, exposure_us(job, as, finding));
	}
}

static void settle_job(struct repair *repair, const struct repair_job *as)
{
	struct guarded_job *job = guard_find_job(repair->state, as->id);

	if (!job)
		return;
	job->repairing = false;
	if (!as->whole) {
		guard_tell_path(job, REPORT_MASK_LOST, "/", 0);
		guard_kill(job);
		return;
	}
	guard_gone_settle(job);
	if (job->handed)
		guard_tell_number(job->state, REPORT_GUARD_HOLDS, job->id);
	job->handed = false;
	job->verified_ns = repair->begun_ns;
	guardmounts_recount(job->ns_fd, &job->ns);
	/* Only one at which nothing was found shows how many there must be. */
	if (job->dirty_ns == 0 && job->gone_count == 0 && job->plan->mounts == 0)
		job->plan->mounts = job->ns.count;
}

static void repair_end(struct repair *repair)
{
	struct guard_state *state = repair->state;

	loop_remove(&state->loop, &repair->source);
	loop_disarm(&state->loop, &repair->timer);
	auto_close(&repair->pipe_fd);
	for (size_t i = 0; i < repair->job_count; i++)
		settle_job(repair, &repair->jobs[i]);
	free(repair);
	state->repairs--;
	guard_repair(state);
}

static void on_hung(void *arg)
{
	struct repair *repair = arg;

	/* It may be past killing; whoever reaps it does not wait. */
	(void)kill(repair->pid, SIGKILL);
	repair_end(repair);
}

static void on_finding(uint32_t events, void *arg)
{
	struct repair *repair = arg;
	ssize_t n = 0;

	(void)events;
	for (;;) {
		char *at = (char *)&repair->part + repair->part_bytes;

		n = read(repair->pipe_fd, at, sizeof(repair->part) - repair->part_bytes);
		if (n <= 0)
			break;
		repair->part_bytes += (size_t)n;
		if (repair->part_bytes < sizeof(repair->part))
			continue;
		repair->part_bytes = 0;
		take_finding(repair, &repair->part);
	}
	if (n == 0)
		repair_end(repair);
}

/* ---- beginning ------------------------------------------------------------------------ */

static bool is_due(const struct guarded_job *job)
{
	return job->dirty_ns != 0 && !job->repairing && !job->killed;
}

static size_t count_due(const struct guard_state *state)
{
	size_t count = 0;

	for (const struct guarded_job *job = state->jobs; job; job = job->next)
		count += is_due(job);
	return count;
}

/* All that are due, which they are not any more then. */
static struct repair *repair_new(struct guard_state *state, size_t count)
{
	struct repair *repair = calloc(1, sizeof(*repair) + count * sizeof(repair->jobs[0]));

	if (!repair)
		return NULL;
	repair->state = state;
	repair->source = (struct loop_source)LOOP_SOURCE_INIT;
	repair->pipe_fd = -1;
	repair->begun_ns = guard_now_ns();
	for (struct guarded_job *job = state->jobs; job; job = job->next) {
		if (!is_due(job))
			continue;
		repair->jobs[repair->job_count++] =
			(struct repair_job){ .id = job->id, .dirty_ns = job->dirty_ns };
		job->dirty_ns = 0;
		job->repairing = true;
	}
	return repair;
}

static int start_child(struct repair *repair)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -1;
	repair->pipe_fd = ends[0];
	repair->pid = fork();
	if (repair->pid == 0)
		repair_main(repair, ends[1]);
	(void)close(ends[1]);
	if (repair->pid < 0 || fcntl(ends[0], F_SETFL, O_NONBLOCK) < 0)
		return -1;
	return loop_add(&repair->state->loop, &repair->source, ends[0], EPOLLIN, on_finding, repair,
			NULL);
}

void guard_repair(struct guard_state *state)
{
	size_t count = count_due(state);
	struct repair *repair = NULL;

	if (count == 0 || state->repairs >= GUARD_REPAIRS)
		return;
	repair = repair_new(state, count);
	/* Without memory or processes nothing can be held; fsboxd sees that we are gone. */
	if (!repair || start_child(repair) < 0)
		_exit(1);
	state->repairs++;
	loop_arm(&state->loop, &repair->timer, GUARD_REPAIR_MS, on_hung, repair);
}
