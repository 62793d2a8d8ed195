/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/spawner/job.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/plan.h"
#include "common/scope.h"
#include "daemon/log.h"
#include "daemon/spawner/adopt.h"
#include "daemon/spawner/audit.h"
#include "daemon/spawner/brokerlink.h"
#include "daemon/spawner/jobproc.h"
#include "daemon/spawner/placing.h"
#include "daemon/spawner/opgrant.h"
#include "daemon/spawner/spawner.h"
#include "daemon/spawner/standin.h"
#include "daemon/spawner/sweep.h"
#include "daemon/spawner/template.h"
#include "daemon/spawner/unshared.h"
#include "daemon/spawner/verify.h"

/* ---- the table ----------------------------------------------------------------------- */

static struct job **bucket_of(struct spawner *spawner, uint64_t id)
{
	return &spawner->jobs[id % SPAWNER_JOB_BUCKETS];
}

struct job *job_find(const struct spawner *spawner, uint64_t id)
{
	for (struct job *job = spawner->jobs[id % SPAWNER_JOB_BUCKETS]; job; job = job->next)
		if (job->id == id)
			return job;
	return NULL;
}

void job_enter(struct job *job)
{
	struct spawner *spawner = job->spawner;
	struct job **bucket = bucket_of(spawner, job->id);

	job->next = *bucket;
	*bucket = job;
	spawner->job_count++;
	job->broker->job_count++;
}

/* Out of memory. A channel that init never got may hold the client's descriptors. */
static void release(struct job *job)
{
	struct spawner *spawner = job->spawner;

	loop_disarm(&spawner->loop, &job->timer);
	recorderlink_forget(&spawner->recorder, &job->audit);
	jobproc_release(job);
	template_leave(job);
	jobnet_deinit(job);
	guardlink_end(job);
	standin_drop(job);
	adopt_release(job);
	if (job->peer_pidfd >= 0)
		(void)close(job->peer_pidfd);
	if (job->plan_fd >= 0)
		(void)close(job->plan_fd);
	if (job->channel_fd >= 0)
		closing_take_channel(&spawner->closing, job->channel_fd, job->identity.uid);
	unshared_pool_free(&spawner->job_pool, job, sizeof(*job));
}

void job_discard(struct job *job)
{
	release(job);
}

/* Out of the table, too. */
static void job_free(struct job *job)
{
	struct spawner *spawner = job->spawner;
	struct brokerlink *broker = job->broker;
	struct job **at = bucket_of(spawner, job->id);

	while (*at != job)
		at = &(*at)->next;
	*at = job->next;
	spawner->job_count--;
	quota_give(&spawner->quota, job->identity.uid, QUOTA_JOBS);
	release(job);
	brokerlink_job_over(broker);
	spawner_touch(spawner);
}

/* ---- making ------------------------------------------------------------------------- */

static void auto_free_job(struct job **job)
{
	if (*job)
		unshared_pool_free(&(*job)->spawner->job_pool, *job, sizeof(**job));
}

int job_make(struct brokerlink *broker, uint64_t id, struct job **ret_job, struct error *err)
{
	/* What is known of a job is not for those of others, whose memory is a copy of ours (R15). */
	AUTO(auto_free_job)
	struct job *job = unshared_pool_new(&broker->spawner->job_pool, sizeof(*job));
	int r = 0;

	_Static_assert(sizeof(*job) <= UNSHARED_PIECE_MAX, "a job is a piece of the pool");
	if (!job)
		return error_set(err, ERR_NOMEM, 0, "keep a job");
	job->spawner = broker->spawner;
	r = config_job_identity(&broker->spawner->config, &broker->identity, &job->identity, err);
	if (r < 0)
		return r;
	job->broker = broker;
	job->id = id;
	job->state = JOB_OPEN;
	job->plan_fd = -1;
	job->channel_fd = -1;
	job->leader = (struct child)CHILD_INIT;
	job->go_fd = -1;
	job->stderr_fd = -1;
	job->pid1_fd = -1;
	job->report_source = (struct loop_source)LOOP_SOURCE_INIT;
	job->pid1_source = (struct loop_source)LOOP_SOURCE_INIT;
	job->report = (struct reportin)REPORTIN_INIT;
	job->peer_pidfd = -1;
	job->file_fd = -1;
	job->net = (struct jobnet)JOBNET_INIT;
	*ret_job = steal_ptr(&job);
	return 0;
}

void job_abandon(struct job *job)
{
	if (job->state == JOB_OPEN) {
		job_free(job);
		return;
	}
	job->unwanted = !job->failed || job->stale;
	/* One that has a template finds its channel closed and ends before it has run anything. */
	if (job->parked)
		job_fail(job, ERR_SETUP_FAILED, "plan", "it was made for a world that has changed");
}

static void on_open_too_long(void *arg)
{
	job_fail(arg, ERR_TIMEOUT, "plan", "no plan came within %d seconds", LIMIT_SETUP_MS / 1000);
}

void job_await_plan(struct job *job)
{
	loop_arm(&job->spawner->loop, &job->timer, LIMIT_SETUP_MS, on_open_too_long, job);
}

/* ---- starting ------------------------------------------------------------------------ */

static void park(struct job *job)
{
	job->parked = true;
	job_await_plan(job);
}

/* By bwrap: the plan is the leader's alone. */
static int start_once(struct job *job, const void *bytes, size_t byte_count, struct error *err)
{
	AUTO(plan_deinit) struct plan plan = PLAN_INIT;
	int r = 0;

	if (job->unconfirmed) {
		park(job);
		return 0;
	}
	if ((r = plan_decode(&plan, bytes, byte_count, err)) < 0 ||
	    (r = verify_plan(job->spawner, job->identity.uid, &plan, opgrant_net(job), err)) < 0 ||
	    (r = verify_room(job->spawner, &job->start, &plan, opgrant_net(job), err)) < 0)
		return r;
	r = placing_plan(job, &plan, err);
	if (r != 0 || (r = jobnet_begin(job, &plan, err)) < 0)
		return r;
	return jobproc_start(job, &plan, err);
}

/*
 * By our own mounts: with the template of exactly this plan, verified when it was made, or with a new
 * one. Everything after that begins in job_template_ready().
 */
static int start_prepared(struct job *job, const void *bytes, size_t byte_count, struct error *err)
{
	AUTO(plan_deinit) struct plan plan = PLAN_INIT;
	struct spawner *spawner = job->spawner;
	struct template *template =
		templates_find(&spawner->templates, &job->identity, bytes, byte_count);
	int r = 0;

	if (job->unconfirmed &&
	    (!template || template->state != TEMPLATE_READY || template->placeholders)) {
		park(job);
		return 0;
	}
	if (template) {
		r = placing_plan(job, &template->mem.plan, err);
		if (r == 0)
			template_wait(template, job);
		return r;
	}
	if ((r = plan_decode(&plan, bytes, byte_count, err)) < 0 ||
	    (r = verify_plan(spawner, job->identity.uid, &plan, opgrant_net(job), err)) < 0 ||
	    (r = placing_plan(job, &plan, err)) != 0)
		return r;
	return template_build(&spawner->templates, job, bytes, byte_count, &plan, err);
}

bool job_is_stale(const struct failure *failure)
{
	return failure->kind == ERR_PATH_NOT_FOUND &&
	       strcmp(failure->stage, NATIVE_STAGE_TEMPLATE) == 0;
}

void job_template_ready(struct job *job)
{
	struct error err = ERROR_INIT;

	if (verify_room(job->spawner, &job->start, &job->template->mem.plan, opgrant_net(job),
			&err) < 0 ||
	    jobnet_begin(job, &job->template->mem.plan, &err) < 0 ||
	    jobproc_start(job, &job->template->mem.plan, &err) < 0)
		job_fail(job, err.kind, "start", "%s", err.message);
}

static void job_begin(struct job *job)
{
	struct error err = ERROR_INIT;
	const uint8_t *bytes = NULL;
	size_t plan_bytes = job->start.plan_bytes;
	size_t net_bytes = job->start.net_bytes;
	int r = verify_map(job->plan_fd, plan_bytes + net_bytes, &bytes, &err);

	if (r == 0)
		r = jobnet_take(job, bytes + plan_bytes, net_bytes, &err);
	if (r == 0)
		r = opgrant_use(job, bytes, plan_bytes, net_bytes, &err);
	if (r == 0)
		r = job->start.engine == ENGINE_NATIVE
			    ? start_prepared(job, bytes, plan_bytes, &err)
			    : start_once(job, bytes, plan_bytes, &err);
	if (bytes)
		(void)munmap((void *)(uintptr_t)bytes, plan_bytes + net_bytes);
	if (r < 0)
		job_fail(job, err.kind, "verify", "%s", err.message);
}

void job_start(struct job *job, const struct conn *conn, const struct op_start *start)
{
	struct error err = ERROR_INIT;

	job->start = *start;
	job->unconfirmed = start->provisional != 0;
	job->state = JOB_STARTING;
	job->audited = job->spawner->config.host.audit == AUDIT_REQUIRED;
	loop_disarm(&job->spawner->loop, &job->timer);
	job->peer_pid = conn->peer.pid;
	job->peer_pidfd = fcntl(conn->peer.pidfd, F_DUPFD_CLOEXEC, 0);
	if (job->peer_pidfd < 0)
		(void)error_set(&err, ERR_SYSTEM, errno, "dup");
	if (job->peer_pidfd < 0 || verify_start(job->spawner, &job->start, &err) < 0 ||
	    (job->file_fd < 0 && adopt_note_start(job, &err) < 0))
		job_fail(job, err.kind, "verify", "%s", err.message);
	else
		job_begin(job);
}

void job_confirm(struct job *job)
{
	job->unconfirmed = false;
	if (!job->parked)
		return;
	job->parked = false;
	loop_disarm(&job->spawner->loop, &job->timer);
	job_begin(job);
}

void job_resume(struct job *job)
{
	job->waits = false;
	if (!job->over && !job->failed)
		job_begin(job);
}

void job_restart(struct job *job)
{
	struct template *template = job->template;

	/* Waiting for a template has a limit of its own. */
	loop_disarm(&job->spawner->loop, &job->timer);
	template_drop(template, "the host changed");
	template_leave(job);
	job->rebuilds++;
	job->stale = false;
	job->failed = false;
	job->leader_gone = false;
	job->state = JOB_STARTING;
	job_begin(job);
}

void job_template_failed(struct job *job, const struct failure *failure)
{
	if (job_is_stale(failure) && job->rebuilds < JOB_REBUILDS_MAX) {
		job->rebuilds++;
		job_begin(job);
		return;
	}
	job_fail(job, (enum error_kind)failure->kind, failure->stage, "%s", failure->message);
}

/* ---- signals ------------------------------------------------------------------------- */

int job_signal(struct job *job, int signo, struct error *err)
{
	/* Stopping pid 1 would stop nothing but its reaping; a terminal's stop can be sent. */
	if (signo < 1 || signo >= NSIG || signo == SIGSTOP)
		return error_set(err, ERR_INVALID, 0, "signal %d cannot be sent to a job", signo);
	if (job->over)
		return 0;
	if (job->started && signo != SIGKILL)
		return jobproc_signal(job, signo, err);
	if (signo == SIGKILL) {
		job->killed = true;
		adopt_note(job);
	}
	if (job->started)
		jobproc_kill(job);
	else
		job_fail(job, ERR_SETUP_FAILED, "signal",
			 "ended by signal %d before the command ran", signo);
	return 0;
}

/* ---- the end ------------------------------------------------------------------------- */

/* What init reported, unless fsboxd knows better (R24: what pid 1 could not say is lost). */
static void settle_record(struct job *job)
{
	uint64_t wall_ms = loop_now_ms() - job->begun_ms;

	if (!job->exited)
		job->record = (struct exit_record){ .reason = EXIT_LOST, .wall_ms = wall_ms };
	if (!job->exited && job->killed) {
		job->record.reason = EXIT_SIGNALED;
		job->record.signal = SIGKILL;
	}
	if (job->timed_out) {
		job->record.reason = EXIT_TIMEOUT;
		job->record.code = 0;
		job->record.signal = 0;
		job->record.core_dumped = 0;
	}
}

void job_tell_end(struct job *job)
{
	struct link_message message;

	if (job->told)
		return;
	job->told = true;
	if (job->unwanted && !job->started) {
		/* The record of its start, if there is one, does not stand alone. */
		if (job->audited)
			audit_record(job, EVENT_EXECUTION_FAILED);
		return;
	}
	if (job->started) {
		settle_record(job);
		link_message_init(&message, LINK_JOB_ENDED, 0, job->conn, job->id);
		message.u.ended = job->record;
	} else {
		link_message_init(&message, LINK_JOB_FAILED, 0, job->conn, job->id);
		message.u.failure = job->failure;
		job->spawner->failures++;
	}
	/* The client first: somebody waits. */
	brokerlink_send_take(job->broker, &message, NULL, 0);
	if (job->asked && job->started)
		brokerlinks_tell_others(job->broker, &message);
	audit_record(job, job->started ? EVENT_EXECUTION_FINISHED : EVENT_EXECUTION_FAILED);
	if (job->started)
		adopt_note_end(job);
}

/* The last step: nothing of the job is left on the host. */
static void job_done(void *arg)
{
	struct job *job = arg;

	job_tell_end(job);
	job_free(job);
}

/* The host changed each time: for the client that is no matter of a path that it named wrongly. */
static void explain_stale(struct failure *failure)
{
	struct error err = { .kind = ERR_SETUP_FAILED };

	if (!job_is_stale(failure))
		return;
	(void)snprintf(err.message, sizeof(err.message),
		       "the host changed each of %d times while the sandbox was made: %.400s",
		       JOB_REBUILDS_MAX + 1, failure->message);
	failure_set(failure, &err, NATIVE_STAGE_TEMPLATE);
}

void job_finish(struct job *job)
{
	struct spawner *spawner = job->spawner;
	uid_t uid = job->identity.uid;

	bool waits = job->started && guardlink_wait(job);

	if (waits || standin_wait(job)) {
		job->ended = true;
		return;
	}
	job->over = true;
	job->waits = false;
	job->state = JOB_ENDING;
	loop_disarm(&job->spawner->loop, &job->timer);
	jobproc_release(job);
	jobnet_end(job);
	template_leave(job);
	explain_stale(&job->failure);
	if (ledger_has_job(spawner->ledger, job->id))
		placing_starting(spawner);
	if (ledger_release(spawner->ledger, job->id)) {
		templates_drop_placeholders(&spawner->templates, uid);
		sweep_others(spawner, uid, false);
	}
	sweep_start(spawner, job->id, uid, false, job_done, job);
}

void job_guarded(struct job *job)
{
	if (!job->guarded.waiting)
		return;
	job->guarded.waiting = false;
	if (job->ended)
		job_finish(job);
	else if (job->exited && !ledger_has_job(job->spawner->ledger, job->id))
		job_tell_end(job);
}

void job_standin_over(struct job *job)
{
	if (job->ended && !job->guarded.waiting)
		job_finish(job);
}

void job_fail(struct job *job, enum error_kind kind, const char *stage, const char *format, ...)
{
	struct error err = { .kind = kind };
	va_list args;

	if (job->over)
		return;
	/* That the template did not fit is no reason any more when there is another one. */
	if (!job->started && (!job->failed || job->stale)) {
		va_start(args, format);
		(void)vsnprintf(err.message, sizeof(err.message), format, args);
		va_end(args);
		failure_set(&job->failure, &err, stage);
		job->failed = true;
		job->stale = false;
	}
	job->state = JOB_ENDING;

	/* Once there was a leader, its end or the pipe's leads to job_finish(), never we: our callers
	 * go on with the job. */
	if (job->leader.pid == 0 && !job->leader_gone)
		job_finish(job);
	else
		jobproc_kill(job);
}

void jobs_broker_gone(struct spawner *spawner, const struct brokerlink *broker)
{
	for (size_t i = 0; i < SPAWNER_JOB_BUCKETS; i++) {
		struct job *next = NULL;

		for (struct job *job = spawner->jobs[i]; job; job = next) {
			next = job->next;
			if (job->broker == broker && (job->state == JOB_OPEN || job->parked))
				job_abandon(job);
		}
	}
}

void jobs_deinit(struct spawner *spawner)
{
	for (size_t i = 0; i < SPAWNER_JOB_BUCKETS; i++) {
		while (spawner->jobs[i]) {
			struct job *job = spawner->jobs[i];

			child_forget(&spawner->children, &job->leader);
			job_free(job);
		}
	}
}
