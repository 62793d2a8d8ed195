/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/spawner/jobproc.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "common/scope.h"
#include "daemon/log.h"
#include "daemon/spawner/adopt.h"
#include "daemon/spawner/audit.h"
#include "daemon/spawner/brokerlink.h"
#include "daemon/spawner/builder.h"
#include "daemon/spawner/enginewords.h"
#include "daemon/spawner/job.h"
#include "daemon/spawner/jobopen.h"
#include "daemon/spawner/jobpid1.h"
#include "daemon/spawner/jobtime.h"
#include "daemon/spawner/inherit.h"
#include "daemon/spawner/netpool.h"
#include "daemon/spawner/placing.h"
#include "daemon/spawner/quote.h"
#include "daemon/spawner/spawner.h"
#include "daemon/spawner/stray.h"
#include "daemon/spawner/template.h"
#include "daemon/spawner/zygotejob.h"

/* Reads of one job's reports before others have their turn. */
#define READS_PER_TURN 8

static void look_for_end(struct job *job);

/* ---- signalling ---------------------------------------------------------------------- */

/* What cannot be killed is reported, not waited for (R24). */
static void on_teardown_over(void *arg)
{
	struct job *job = arg;

	log_write(LOG_WARNING, "job %llu of user %u does not end", (unsigned long long)job->id,
		  job->identity.uid);
	job_finish(job);
}

void jobproc_kill(struct job *job)
{
	job->state = JOB_ENDING;
	if (job->pid1_fd >= 0)
		(void)pidfd_signal(job->pid1_fd, SIGKILL);
	if (!job->started && job->leader.pid > 0) {
		jobpid1_kill_children(job);
		child_signal(&job->leader, SIGKILL);
	}
	loop_arm(&job->spawner->loop, &job->timer, LIMIT_TEARDOWN_MS, on_teardown_over, job);
}

int jobproc_signal(struct job *job, int signo, struct error *err)
{
	if (job->pid1_fd < 0 || pidfd_signal(job->pid1_fd, signo) == 0 || errno == ESRCH)
		return 0;
	return error_set(err, ERR_SYSTEM, errno, "signal %d to job %llu", signo,
			 (unsigned long long)job->id);
}

/* ---- pid 1 --------------------------------------------------------------------------- */

static bool read_reports(struct job *job);

static void on_pid1_end(uint32_t events, void *arg)
{
	struct job *job = arg;

	(void)events;
	loop_remove(&job->spawner->loop, &job->pid1_source);

	/* All it said is in the pipe by now. */
	jobproc_catch_up(job);
	if (job->adopted)
		adopt_settle(job);
	if (job->started || job->adopted)
		job_finish(job);
	else
		look_for_end(job);
}

int jobproc_watch_pid1(struct job *job, pid_t pid, int *pidfd, struct error *err)
{
	int r = loop_add(&job->spawner->loop, &job->pid1_source, *pidfd, EPOLLIN, on_pid1_end, job,
			 err);

	if (r < 0)
		return r;
	job->pid1_fd = steal_fd(pidfd);
	job->pid1 = pid;
	return 0;
}

/* PIDFD is the job's pid 1, and the job's from now on, also if nobody but a successor knows. */
static int adopt_pid1(struct job *job, pid_t pid, int *pidfd, struct error *err)
{
	int r = jobproc_watch_pid1(job, pid, pidfd, err);

	return r < 0 ? r : adopt_note_up(job, err);
}

/*
 * Native, where fsboxd itself made the pid namespace: pid 1 is the leader. Known from the start, since it
 * may be over before its first report is read.
 */
static int adopt_leader(struct job *job, struct error *err)
{
	AUTO(auto_close) int pidfd = fcntl(job->leader.pidfd, F_DUPFD_CLOEXEC, 0);

	if (pidfd < 0)
		return error_set(err, ERR_SYSTEM, errno, "dup");
	return adopt_pid1(job, job->leader.pid, &pidfd, err);
}

static int find_pid1(struct job *job, struct error *err)
{
	AUTO(auto_close) int pidfd = -1;
	pid_t pid = 0;
	int r = jobpid1_find(job, &pid, &pidfd, err);

	return r < 0 ? r : adopt_pid1(job, pid, &pidfd, err);
}

void jobproc_go(struct job *job)
{
	/* One byte for each thing announced: more than a pipe holds is nothing we sent. */
	if (write(job->go_fd, "G", 1) != 1)
		job_fail(job, ERR_SETUP_FAILED, "go", "nobody waits for permission to go on");
}

/* ---- reports ------------------------------------------------------------------------- */

static void take_placeholder(struct job *job, const struct report_message *report)
{
	struct error err = ERROR_INIT;
	int r = placing_report(job, report, &err);

	if (r == 0 && placing_wants_go(report))
		jobproc_go(job);
	else if (r == PLACING_WAIT)
		r = placing_hold(&job->held, report, &err);
	if (r < 0)
		job_fail(job, err.kind, "placeholder", "%s", err.message);
}

/* Init has what it needs: nothing is kept for another try. */
static void settled(struct job *job)
{
	bool was_prepared = job->template != NULL;

	/* Who began in a zygote took no copy: the next one is for the next zygote, and made after that. */
	if (was_prepared && !job->zygote)
		templatecopy_more(job->template);
	if (was_prepared)
		zygotes_refill(job->template);
	template_leave(job);
	/* Without a template the leader is of today's making and still root: it has another one. */
	if (was_prepared && job->channel_fd >= 0)
		closing_take_later(&job->spawner->closing, job->channel_fd, job->identity.uid);
	else
		auto_close(&job->channel_fd);
	job->channel_fd = -1;
	/* By bubblewrap: for placing_again(). */
	if (job->up) {
		auto_close(&job->plan_fd);
		job->plan_fd = -1;
	}
	auto_close(&job->peer_pidfd);
	job->peer_pidfd = -1;
	jobnet_settled(job);
}

static void take_up(struct job *job)
{
	struct link_message message;
	struct error err = ERROR_INIT;

	/* What it stands on first: from find_pid1() on a successor of ours takes it over. */
	if ((!job->template && placing_again(job, &err) < 0) ||
	    (!job->leader_is_pid1 && find_pid1(job, &err) < 0)) {
		job_fail(job, err.kind, "init", "%s", err.message);
		return;
	}
	job->up = true;
	settled(job);
	if (job->zygote)
		zygotejob_up(job);
	guardlink_up(job);
	link_message_init(&message, LINK_JOB_UP, 0, job->conn, job->id);
	message.u.up.pid = job->pid1;
	brokerlink_send_take(job->broker, &message, NULL, 0);
	if (job->audited)
		audit_start(job);
	else if (!job->leader_is_pid1)
		jobproc_go(job);
}

static void take_started(struct job *job)
{
	job->started = true;
	job->begun_ms = loop_now_ms();
	job->started_real_ms = spawner_real_ms();
	job->spawner->spawns++;
	if (job->state == JOB_STARTING) {
		job->state = JOB_RUNNING;
		jobtime_run(job);
	} else {
		jobproc_kill(job); /* it was told to end while it began */
	}
	adopt_note(job);
	audit_started(job);
	jobopen_ahead(job->broker);
}

static void take_exited(struct job *job, const struct exit_record *record)
{
	job->exited = true;
	job->record = *record;
	job->state = JOB_ENDING;

	/*
	 * Everybody else is dead and reaped: how pid 1 and its namespaces go is of no interest to
	 * those who wait. Placeholders are: they go first.
	 */
	if (!ledger_has_job(job->spawner->ledger, job->id) && !guardlink_wait(job))
		job_tell_end(job);

	/* Pid 1 has nothing left to do but to go. */
	jobtime_grace(job, LIMIT_TEARDOWN_MS);
}

/* What may be said when: anything else ends the job. */
static bool may_report(const struct job *job, enum report_kind kind)
{
	switch (kind) {
	case REPORT_PLACEHOLDER_INTENT:
	case REPORT_PLACEHOLDER_MADE:
	case REPORT_PLACEHOLDER_SKIPPED:
	case REPORT_PID1_UP:
		return !job->up;
	case REPORT_STARTED:
		return job->up && !job->started;
	case REPORT_FAILED:
		return !job->started;
	case REPORT_EXITED:
		return job->started && !job->exited;
	case REPORT_BUILT:
	case REPORT_MASK_REPAIRED:
	case REPORT_MASK_LOST:
	case REPORT_NAME_APPEARED:
	case REPORT_GUARD_WATCHES:
	case REPORT_GUARD_DONE:
	case REPORT_GUARD_HOLDS:
	case REPORT_MASK_GONE:
	case REPORT_KIND_COUNT:
		break;
	}
	return false;
}

static void take_report(struct job *job, const struct report_message *report)
{
	enum report_kind kind = (enum report_kind)report->kind;

	/* Already given up on: only how it really ended still matters. */
	if (job->failed && kind != REPORT_STARTED && kind != REPORT_EXITED)
		return;
	if (!may_report(job, kind)) {
		job_fail(job, ERR_SETUP_FAILED, "report", "report %u came out of turn",
			 report->kind);
		return;
	}
	if (job->zygote && kind == REPORT_FAILED) {
		zygotejob_refused(job, &report->u.failure);
		return;
	}
	switch (kind) {
	case REPORT_PLACEHOLDER_INTENT:
	case REPORT_PLACEHOLDER_MADE:
	case REPORT_PLACEHOLDER_SKIPPED:
		take_placeholder(job, report);
		break;
	case REPORT_PID1_UP:
		take_up(job);
		break;
	case REPORT_STARTED:
		take_started(job);
		break;
	case REPORT_FAILED:
		job->failure = report->u.failure;
		job->failed = true;
		job_fail(job, ERR_SETUP_FAILED, NULL, "reported");
		job->stale = job->template && job_is_stale(&job->failure);
		break;
	case REPORT_EXITED:
		take_exited(job, &report->u.exited);
		break;
	case REPORT_BUILT: /* a template's or a guard's, see may_report() */
	case REPORT_MASK_REPAIRED:
	case REPORT_MASK_LOST:
	case REPORT_NAME_APPEARED:
	case REPORT_GUARD_WATCHES:
	case REPORT_GUARD_DONE:
	case REPORT_GUARD_HOLDS:
	case REPORT_MASK_GONE:
	case REPORT_KIND_COUNT:
		break;
	}
}

static void on_message(const struct report_message *report, void *arg)
{
	take_report(arg, report);
}

void jobproc_resume(struct job *job)
{
	struct report_message *held = job->held;

	job->held = NULL;
	take_report(job, held);
	placing_let_go(&held);
}

static void close_report(struct job *job)
{
	placing_let_go(&job->held);
	loop_remove(&job->spawner->loop, &job->report_source);
	reportin_deinit(&job->report);
}

/* False: nothing more to read now, or ever (then the pipe is closed). */
static bool read_reports(struct job *job)
{
	struct error err = ERROR_INIT;

	switch (reportin_read(&job->report, &err)) {
	case REPORTIN_MORE:
		return true;
	case REPORTIN_LATER:
		return false;
	case REPORTIN_GARBAGE:
		/* Whoever writes there is not init, or not any more: a job that runs is lost. */
		job_fail(job, ERR_SETUP_FAILED, "report", "a report is not one: %s", err.message);
		break;
	case REPORTIN_END:
		break;
	}
	close_report(job);
	return false;
}

void jobproc_catch_up(struct job *job)
{
	while (read_reports(job))
		continue;
}

static void on_report(uint32_t events, void *arg)
{
	struct job *job = arg;

	(void)events;
	for (int turn = 0; turn < READS_PER_TURN; turn++)
		if (!read_reports(job))
			break;
	look_for_end(job);
}

/* ---- the leader ---------------------------------------------------------------------- */

static int leader_main(void *arg)
{
	builder_run(arg);
}

static void fail_with_engine_words(struct job *job, int status)
{
	char words[ENGINEWORDS_BYTES];

	enginewords_read(job->stderr_fd, words);
	job_fail(job, ERR_SETUP_FAILED, engine_name((enum engine_kind)job->start.engine),
		 "ended with wait status %d, saying %s", status, quote(words).text);
}

static void on_leader_exit(int status, void *arg)
{
	struct job *job = arg;

	job->leader_gone = true;
	jobproc_catch_up(job);

	/* With pid 1 known the job goes on without it. */
	if (!job->up && !job->failed && !job->zygote)
		fail_with_engine_words(job, status);
	look_for_end(job);
}

/*
 * A job that runs ends with its pid 1. One that never came to that ends when the leader is reaped and
 * nobody holds the report pipe, which everything of the job does until its command runs.
 */
static void look_for_end(struct job *job)
{
	if (job->started || !job->leader_gone || job->report.fd >= 0)
		return;
	if (job->zygote && !job->failed) {
		zygotejob_again(job);
		return;
	}
	if (job->stale && !job->unwanted && job->rebuilds < JOB_REBUILDS_MAX) {
		jobproc_release(job);
		job_restart(job);
		return;
	}
	if (!job->failed)
		job_fail(job, ERR_SETUP_FAILED, "init", "ended before the command ran");
	job_finish(job);
}

/* In namespaces of SET, or new ones where it is empty. */
static int start_in_template(struct job *job, struct builder_input *input,
			     const struct native_set *set, struct error *err)
{
	struct spawner *spawner = job->spawner;
	AUTO(auto_close) int copy_fd = templatecopy_take(job->template);
	int r = 0;

	input->shared_fd = job->template->mem.shared_fd;
	input->builder_pidfd = job->template->builder.pidfd;
	input->namespaces = (struct native_namespaces){
		.user_ns_fd = spawner->user_ns_fd,
		.mount_ns_fd = copy_fd >= 0 ? copy_fd : job->template->mount_ns_fd,
		.is_copy = copy_fd >= 0,
		.set = *set,
		.net_host = input->plan->net == NET_HOST,
	};
	/*
	 * In user mode the user namespace must be entered first: pid 1 is then a child of the leader. Else
	 * it is the leader, and permission to go on is there long before it asks.
	 */
	job->leader_is_pid1 = spawner->mode != MODE_USER;
	if ((r = templatemem_lend(&job->template->mem, true, err)) < 0 ||
	    (r = child_clone(&spawner->children, &job->leader,
			     job->leader_is_pid1 ? CLONE_NEWPID : 0, leader_main, input,
			     on_leader_exit, job, err)) < 0 ||
	    (r = templatemem_lend(&job->template->mem, false, err)) < 0)
		return r;
	if (!job->leader_is_pid1)
		return 0;
	r = adopt_leader(job, err);
	if (r == 0 && !job->audited && write(job->go_fd, "G", 1) != 1)
		r = error_set(err, ERR_SYSTEM, errno, "let the job go");
	return r;
}

static int start_leader(struct job *job, struct builder_input *input, struct error *err)
{
	struct spawner *spawner = job->spawner;
	struct native_set set = NATIVE_SET_INIT;
	int r = 0;

	if (!job->template)
		return child_start(&spawner->children, &job->leader, leader_main, input,
				   on_leader_exit, job, err);

	guardlink_begin(job, job->template->guard, &input->guard);
	if (job->template->guard && input->guard.order_fd < 0)
		return error_set(err, ERR_SYSTEM, 0, "the user's guard does not run");
	if (input->plan->net != NET_HOST)
		(void)netpool_take(&spawner->netpool, &set);
	r = start_in_template(job, input, &set, err);
	netpool_give_back(&spawner->netpool, &set);
	return r;
}

static struct builder_input input_of(const struct job *job, const struct plan *plan,
				     const struct identity *identity)
{
	const struct spawner *spawner = job->spawner;

	return (struct builder_input){
		.plan = plan,
		.identity = identity,
		.mode = spawner->mode,
		.engine = (enum engine_kind)job->start.engine,
		.limits = job->start.limits,
		.peer_pid = job->peer_pid,
		.peer_pidfd = job->peer_pidfd,
		.mask_dir = spawner->paths.mask_dir,
		.mask_file = spawner->paths.mask_file,
		.init_fd = spawner->init_fd,
		.channel_fd = job->channel_fd,
		.stderr_fd = job->stderr_fd,
		.result_fd = job->file_fd,
		.switch_ids = spawner->mode != MODE_USER,
		.detached = job->start.detached != 0,
		.granted = job->grant != 0,
		.grant = job->terms,
	};
}

int jobproc_start_in(struct job *job, struct zygote *zygote, struct error *err)
{
	struct spawner *spawner = job->spawner;
	int r = 0;

	loop_remove(&spawner->loop, &zygote->report_source);
	reportin_init_take(&job->report, steal_fd(&zygote->report.fd), on_message, job);
	job->go_fd = steal_fd(&zygote->go_fd);
	child_move(&spawner->children, &zygote->child, &job->leader, on_leader_exit, job);
	job->leader_is_pid1 = true;
	r = loop_add(&spawner->loop, &job->report_source, job->report.fd, EPOLLIN, on_report, job,
		     err);
	if (r < 0 || (r = adopt_leader(job, err)) < 0)
		return r;
	/* One that does not wait for it has ended; that is noticed by itself. */
	if (!job->audited)
		(void)!write(job->go_fd, "G", 1);
	return 0;
}

/* With a new leader, in a template or not. */
static int start_new(struct job *job, const struct plan *plan, const struct inherit *inherit,
		     struct error *err)
{
	struct spawner *spawner = job->spawner;
	AUTO(auto_close) int their_report_fd = -1;
	AUTO(auto_close) int their_go_fd = -1;
	const struct identity identity = job->identity; /* the job itself is not in the child */
	struct builder_input input;
	int our_report_fd = -1;
	int r = child_pipe(&our_report_fd, &their_report_fd, CHILD_PIPE_READ_OURS, err);

	reportin_init_take(&job->report, our_report_fd, on_message, job);
	if (r < 0 || (r = child_pipe(&their_go_fd, &job->go_fd, CHILD_PIPE_WRITE_OURS, err)) < 0 ||
	    (!job->template && (r = job->stderr_fd = enginewords_new(err)) < 0))
		return r;
	r = loop_add(&spawner->loop, &job->report_source, job->report.fd, EPOLLIN, on_report, job,
		     err);
	if (r < 0)
		return r;

	input = input_of(job, plan, &identity);
	input.report_fd = their_report_fd;
	input.go_fd = their_go_fd;
	input.inherit = inherit;
	jobnet_lend(job, &input);
	r = start_leader(job, &input, err);
	jobnet_lent(job);
	if (r < 0)
		return r;

	/* With a template the channel may have to be given to another leader. */
	if (!job->template)
		settled(job);
	jobtime_setup(job);
	return 0;
}

int jobproc_start(struct job *job, const struct plan *plan, struct error *err)
{
	struct inherit inherit;
	int r = 0;

	if (job->template && (r = inherit_read(job->peer_pid, job->peer_pidfd, &inherit, err)) == 0)
		r = zygotejob_start(job, &inherit, err);
	if (r == 0)
		r = start_new(job, plan, job->template ? &inherit : NULL, err);
	if (r < 0)
		jobproc_release(job);
	return r < 0 ? r : 0;
}

void jobproc_release(struct job *job)
{
	struct loop *loop = &job->spawner->loop;

	close_report(job);
	loop_remove(loop, &job->pid1_source);
	if (job->go_fd >= 0)
		(void)close(job->go_fd);
	if (job->stderr_fd >= 0)
		(void)close(job->stderr_fd);
	if (job->pid1_fd >= 0)
		(void)close(job->pid1_fd);
	job->go_fd = -1;
	job->stderr_fd = -1;
	job->pid1_fd = -1;
	stray_take(job->spawner, &job->leader, job->identity.uid, "engine of a job",
		   LIMIT_TEARDOWN_MS);
}
