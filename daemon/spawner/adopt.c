/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/spawner/adopt.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/scope.h"
#include "daemon/log.h"
#include "daemon/spawner/audit.h"
#include "daemon/spawner/brokerlink.h"
#include "daemon/spawner/ended.h"
#include "daemon/spawner/guardadopt.h"
#include "daemon/spawner/job.h"
#include "daemon/spawner/jobfile.h"
#include "daemon/spawner/jobproc.h"
#include "daemon/spawner/jobtime.h"
#include "daemon/spawner/procfs.h"
#include "daemon/spawner/result.h"
#include "daemon/spawner/spawner.h"

/* How often a job that was being started is looked at. */
#define LOOK_AGAIN_MS 100

/* ---- while it is ours ---------------------------------------------------------------- */

static enum jobfile_state state_of(const struct job *job)
{
	if (job->told)
		return JOBFILE_ENDED;
	if (job->started)
		return JOBFILE_STARTED;
	return job->pid1 > 0 ? JOBFILE_UP : JOBFILE_MADE;
}

static void fill(const struct job *job, struct jobfile_record *ret_record)
{
	memset(ret_record, 0, sizeof(*ret_record));
	ret_record->job = job->id;
	ret_record->state = state_of(job);
	ret_record->pid = job->pid1;
	ret_record->birth = job->birth;
	ret_record->timed_out = job->timed_out;
	ret_record->killed = job->killed;
	ret_record->begun_ms = job->begun_ms != 0 ? job->begun_ms : loop_now_ms();
	ret_record->started_real_ms = job->started_real_ms;
	ret_record->guard_plan = job->guarded.plan_id;
	ret_record->guard_begun_ms = job->guarded.begun_ms;
	ret_record->repaired = job->guarded.repaired;
	ret_record->broker = job->broker->identity;
	ret_record->start = job->start;
	ret_record->ended = job->record;
	ret_record->ended_ms = job->told_ms;
}

static int write_down(struct job *job, struct error *err)
{
	struct jobfile_record record;
	int r = 0;

	fill(job, &record);
	r = jobfile_write(&job->spawner->jobfiles, job->file_fd, &record, err);
	/* Processes of others get a copy of this memory. */
	explicit_bzero(&record, sizeof(record));
	return r;
}

int adopt_note_start(struct job *job, struct error *err)
{
	struct jobfile_record record;
	int r = 0;

	fill(job, &record);
	r = jobfile_make(&job->spawner->jobfiles, &record, &job->file_fd, err);
	explicit_bzero(&record, sizeof(record));
	return r;
}

void adopt_note_ahead(struct job *job)
{
	struct jobfile_record record;

	fill(job, &record);
	(void)jobfile_prepare(&job->spawner->jobfiles, &record, &job->file_fd, NULL);
	explicit_bzero(&record, sizeof(record));
}

void adopt_note_claimed(struct job *job)
{
	if (job->file_fd < 0 || jobfile_name(&job->spawner->jobfiles, job->id, job->file_fd) == 0)
		return;
	auto_close(&job->file_fd);
	job->file_fd = -1;
}

int adopt_note_up(struct job *job, struct error *err)
{
	int r = birth_read(job->pid1, job->pid1_fd, &job->birth, err);

	return r < 0 ? r : write_down(job, err);
}

void adopt_note(struct job *job)
{
	struct error err = ERROR_INIT;

	if (job->file_fd >= 0 && write_down(job, &err) < 0)
		log_failure(&err, "job %llu", (unsigned long long)job->id);
}

void adopt_note_end(struct job *job)
{
	struct ended ended = {
		.job = job->id,
		.record = job->record,
		.repaired = job->guarded.repaired,
		.ended_ms = loop_now_ms(),
	};

	if (job->file_fd < 0)
		return;
	job->told_ms = ended.ended_ms;
	adopt_note(job);
	auto_close(&job->file_fd);
	job->file_fd = -1;
	memcpy(ended.cookie_hash, job->start.cookie_hash, sizeof(ended.cookie_hash));
	ended_add(job->broker, &ended);
}

void adopt_release(struct job *job)
{
	fdstore_job_over(job);
	if (job->file_fd < 0)
		return;
	auto_close(&job->file_fd);
	job->file_fd = -1;
	if (!job->spawner->ending)
		jobfile_remove(&job->spawner->jobfiles, job->id);
}

/* ---- taking over --------------------------------------------------------------------- */

/* The process RECORD means, if it still runs and is pid 1 of a namespace below ours; else -1. */
static int open_pid1(struct spawner *spawner, const struct jobfile_record *record)
{
	/* Of this process and of no other, whatever became of its number. */
	AUTO(auto_close) int stored_fd = fdstore_claim(&spawner->fdstore, record->job);
	AUTO(auto_close) int pidfd = birth_open(record->pid, &record->birth);
	AUTO(auto_close) int proc_fd = -1;
	struct proc_status status;

	if (pidfd < 0 || !pidfd_alive(pidfd) || (stored_fd >= 0 && !pidfd_alive(stored_fd)))
		return -1;
	proc_fd = proc_open(record->pid);
	if (proc_fd < 0 || proc_status_read(proc_fd, &status, NULL) < 0 || status.ns_depth < 2 ||
	    status.ns_pid != 1)
		return -1;
	return steal_fd(&pidfd);
}

/* From init's own word on when it began, as far as that can be true. */
static void begin_as_told(struct job *job, const struct result_page *page)
{
	uint64_t now_ms = loop_now_ms();

	if (page->started_ms >= job->begun_ms && page->started_ms <= now_ms)
		job->begun_ms = page->started_ms;
	job->started_real_ms = spawner_real_ms() - (now_ms - job->begun_ms);
	job->started = true;
	job->state = job->timed_out || job->killed ? JOB_ENDING : JOB_RUNNING;
	audit_record(job, EVENT_EXECUTION_STARTED);
}

void adopt_settle(struct job *job)
{
	static const char died[] = "fsboxd ended while the job was started";
	struct result_page page;

	result_read(job->file_fd, &page);
	if (!job->started && (page.state == RESULT_STARTED || page.state == RESULT_EXITED))
		begin_as_told(job, &page);
	if (job->started && page.state == RESULT_EXITED) {
		job->exited = true;
		job->record = page.record;
	}
	if (!job->started && !job->failed) {
		struct error err = { .kind = page.state == RESULT_FAILED
						     ? (enum error_kind)page.error_kind
						     : ERR_SETUP_FAILED };

		memcpy(err.message, died, sizeof(died));
		failure_set(&job->failure, &err, "restart");
		job->failed = true;
	}
}

/* It was being started when fsboxd ended; nobody reports what comes of that. */
static void look_again(void *arg)
{
	struct job *job = arg;
	struct result_page page;

	result_read(job->file_fd, &page);
	if (page.state == RESULT_STARTED || page.state == RESULT_EXITED) {
		begin_as_told(job, &page);
		adopt_note(job);
		jobtime_run(job);
		guardadopt_job(job);
	} else if (loop_now_ms() - job->begun_ms > LIMIT_SETUP_MS) {
		job_fail(job, ERR_TIMEOUT, "restart", "the job did not begin within %d seconds",
			 LIMIT_SETUP_MS / 1000);
		jobproc_kill(job);
	} else {
		loop_arm(&job->spawner->loop, &job->timer, LOOK_AGAIN_MS, look_again, job);
	}
}

static void go_on(struct job *job)
{
	if (!job->started) {
		look_again(job);
	} else if (job->killed) {
		jobproc_kill(job);
	} else {
		job->state = job->timed_out ? JOB_ENDING : JOB_RUNNING;
		jobtime_run(job);
		guardadopt_job(job);
	}
}

static int make_job(struct spawner *spawner, const struct jobfile_record *record, int *fd,
		    struct job **ret_job, struct error *err)
{
	struct brokerlink *link = NULL;
	struct job *job = NULL;
	int r = brokerlink_get(spawner, &record->broker, &link, err);

	if (r < 0 || (r = quota_note(&spawner->quota, record->broker.uid, QUOTA_JOBS, err)) < 0)
		return r;
	r = job_make(link, record->job, &job, err);
	if (r < 0) {
		quota_give(&spawner->quota, record->broker.uid, QUOTA_JOBS);
		return r;
	}
	job_enter(job);
	job->start = record->start;
	job->adopted = true;
	job->file_fd = steal_fd(fd);
	job->state = JOB_STARTING;
	job->started = record->state == JOBFILE_STARTED;
	job->timed_out = record->timed_out;
	job->killed = record->killed;
	job->begun_ms = record->begun_ms < loop_now_ms() ? record->begun_ms : loop_now_ms();
	job->started_real_ms = record->started_real_ms;
	job->birth = record->birth;
	job->pid1 = record->pid;
	guardadopt_note(job, record->guard_plan, record->guard_begun_ms, record->repaired);
	*ret_job = job;
	return 0;
}

static void take_over(struct spawner *spawner, const struct jobfile_record *record, int *fd)
{
	AUTO(auto_close) int pidfd = open_pid1(spawner, record);
	struct error err = ERROR_INIT;
	struct job *job = NULL;
	int r = make_job(spawner, record, fd, &job, &err);

	if (r == 0 && pidfd >= 0)
		r = jobproc_watch_pid1(job, record->pid, &pidfd, &err);
	if (r < 0) {
		/* What nobody can account for must not go on. */
		log_failure(&err, "job %llu of user %u cannot be taken over and ends",
			    (unsigned long long)record->job, record->broker.uid);
		if (pidfd >= 0)
			(void)pidfd_signal(pidfd, SIGKILL);
	}
	if (!job) {
		jobfile_remove(&spawner->jobfiles, record->job);
	} else if (job->pid1_fd >= 0) {
		spawner->adopted++;
		job->up = true;
		go_on(job);
	} else {
		adopt_settle(job);
		job_finish(job);
	}
}

static void keep_result(struct spawner *spawner, const struct jobfile_record *record)
{
	struct brokerlink *link = NULL;
	struct ended ended = {
		.job = record->job,
		.record = record->ended,
		.repaired = record->repaired,
		.ended_ms = record->ended_ms,
	};

	memcpy(ended.cookie_hash, record->start.cookie_hash, sizeof(ended.cookie_hash));
	if (brokerlink_get(spawner, &record->broker, &link, NULL) == 0)
		ended_add(link, &ended);
	else
		jobfile_remove(&spawner->jobfiles, record->job);
}

static void on_found(const struct jobfile_record *record, int *fd, void *arg)
{
	struct spawner *spawner = arg;

	switch ((enum jobfile_state)record->state) {
	case JOBFILE_MADE:
		jobfile_remove(&spawner->jobfiles, record->job);
		break;
	case JOBFILE_UP:
	case JOBFILE_STARTED:
		take_over(spawner, record, fd);
		break;
	case JOBFILE_ENDED:
		keep_result(spawner, record);
		break;
	}
}

int adopt_jobs(struct spawner *spawner, struct error *err)
{
	int r = 0;

	jobfiles_end_brokers(&spawner->jobfiles);
	if ((r = guardadopt_begin(spawner, err)) == 0 &&
	    (r = jobfiles_scan(&spawner->jobfiles, on_found, spawner, err)) == 0)
		r = guardadopt_end(spawner, err);
	fdstore_drop_rest(&spawner->fdstore);
	if (r == 0 && spawner->adopted > 0)
		log_write(LOG_INFO, "%zu jobs were taken over", spawner->adopted);
	return r;
}
