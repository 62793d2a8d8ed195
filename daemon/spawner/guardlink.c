/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/spawner/guardlink.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/scope.h"
#include "daemon/log.h"
#include "daemon/spawner/brokerlink.h"
#include "daemon/spawner/builder.h"
#include "daemon/spawner/guard.h"
#include "daemon/spawner/guardadopt.h"
#include "daemon/spawner/guardfile.h"
#include "daemon/spawner/guardtell.h"
#include "daemon/spawner/job.h"
#include "daemon/spawner/jobproc.h"
#include "daemon/spawner/nsfd.h"
#include "daemon/spawner/spawner.h"
#include "daemon/spawner/standin.h"
#include "daemon/spawner/stray.h"
#include "daemon/spawner/template.h"
#include "proto/wire/guardop.h"

#ifndef P_PIDFD
#define P_PIDFD 3 /* Linux 5.4 */
#endif

/* So many deaths in so long a time: somebody does not want to be guarded, and his jobs are ended. */
#define DEATHS_MAX 5
#define DEATHS_MS 60000

/* Reads of one guard's reports before others have their turn. */
#define READS_PER_TURN 16

/* More than the longest tick. */
#define COARSE_MS 20

#define REPORT_PIPE_BYTES (256 << 10)

static int start(struct guardlink *link, struct error *err);

/* ---- orders --------------------------------------------------------------------------- */

void guardlink_order(struct guardlink *link, const struct guard_order *message, const int *fds)
{
	struct error err = ERROR_INIT;

	if (link->order_fd < 0 || guard_order_send(link->order_fd, message, fds, false, &err) == 0)
		return;
	log_failure(&err, "guard of user %u", link->identity.uid);
	child_signal(&link->child, SIGKILL);
}

void guardlink_order_plan(struct guard_plan *plan)
{
	struct guard_order message;

	guard_order_init(&message, GUARD_ORDER_PLAN);
	message.plan = plan->id;
	message.plan_bytes = (uint32_t)plan->bytes;
	plan->generation = plan->link->generation;
	plan->watched = false;
	guardlink_order(plan->link, &message, &plan->fd);
}

static uint32_t flags_of(const struct spawner *spawner)
{
	const struct hostconf *conf = &spawner->config.host;

	return (conf->on_unmask == ON_UNMASK_KILL ? GUARD_KILL_UNMASKED : 0) |
	       (conf->on_plant == ON_PLANT_KILL ? GUARD_KILL_PLANTED : 0);
}

static bool is_guarded(const struct job *job, const struct guardlink *link)
{
	return job->guarded.plan && job->guarded.plan->link == link;
}

static int mount_ns_of(const struct job *job)
{
	if (job->adopted)
		return guardadopt_open(job, NSFD_MOUNT);
	/* In user mode pid 1 lets nobody look in; its parent stands in the same namespace. */
	return job->leader_is_pid1 ? nsfd_open(job->pid1_fd, job->pid1, NSFD_MOUNT)
				   : nsfd_open(job->leader.pidfd, job->leader.pid, NSFD_MOUNT);
}

int guardlink_hand(struct job *job, struct error *err)
{
	const struct guard_plan *plan = job->guarded.plan;
	AUTO(auto_close) int ns_fd = mount_ns_of(job);
	struct guard_order message;
	int fds[GUARD_ORDER_FDS];

	job->guarded.generation = plan->link->generation;
	if (ns_fd < 0)
		return error_set(err, ERR_SYSTEM, errno, "open the mounts of job %llu",
				 (unsigned long long)job->id);
	guard_order_init(&message, GUARD_ORDER_JOB);
	message.plan = plan->id;
	message.job = job->id;
	message.flags = flags_of(job->spawner);
	/* Before its command ran, but for the step of the clock that file systems tell time by. */
	message.begun_ns = (job->guarded.begun_ms - COARSE_MS) * 1000000u;
	message.pid = job->pid1;
	fds[0] = ns_fd;
	fds[1] = job->pid1_fd;
	guardlink_order(plan->link, &message, fds);
	return 0;
}

/* Whether pid 1 of JOB was there and is gone: then it is told how that ended, not that we ended it (R24). */
static bool is_over(const struct job *job)
{
	return job->pid1_fd >= 0 ? !pidfd_alive(job->pid1_fd) : job->up || job->adopted;
}

void guardlink_give_up(struct job *job)
{
	job->guarded.done = true;
	if (is_over(job))
		return;
	job->killed = true;
	jobproc_kill(job);
}

/* To the guard that is there now, or it ends. */
static void order_job(struct job *job)
{
	struct error err = ERROR_INIT;

	if (guardlink_hand(job, &err) == 0)
		return;
	log_failure(&err, "job %llu cannot be guarded any more", (unsigned long long)job->id);
	guardlink_give_up(job);
}

/* ---- reports -------------------------------------------------------------------------- */

static void job_is_held(struct job *job)
{
	if (job->guarded.by_old)
		guardadopt_held(job);
}

static void job_is_done(struct job *job)
{
	job_is_held(job);
	if (job->guarded.done)
		return;
	job->guarded.done = true;
	loop_disarm(&job->spawner->loop, &job->guarded.timer);
	job_guarded(job);
}

static void plan_is_watched(struct guardlink *link, uint64_t id)
{
	struct guardlinks *links = &link->spawner->guards;

	for (struct guard_plan *plan = links->plans; plan; plan = plan->next) {
		if (plan->link != link || plan->id != id || plan->generation != link->generation)
			continue;
		plan->watched = true;
		templates_guarded(&link->spawner->templates, plan);
		return;
	}
}

/* The job that LINK's guard means, if it is one of his. */
static struct job *job_meant(const struct guardlink *link, uint64_t id)
{
	struct job *job = job_find(link->spawner, id);

	/* Of a short job: what its pid 1 said before that is still unread. */
	if (job && is_guarded(job, link) && !job->started) {
		jobproc_catch_up(job);
		job = job_find(link->spawner, id);
	}
	return job && is_guarded(job, link) && job->up ? job : NULL;
}

static void on_message(const struct report_message *report, void *arg)
{
	struct guardlink *link = arg;
	struct job *job = NULL;

	switch ((enum report_kind)report->kind) {
	case REPORT_MASK_REPAIRED:
	case REPORT_MASK_LOST:
	case REPORT_NAME_APPEARED:
		job = job_meant(link, report->u.guard.job);
		if (job)
			guardtell(job, (enum report_kind)report->kind, &report->u.guard);
		return;
	case REPORT_MASK_GONE:
		job = job_meant(link, report->u.guard.job);
		if (job)
			standin_begin(job, report->u.guard.path);
		return;
	case REPORT_GUARD_WATCHES:
		plan_is_watched(link, report->u.number);
		return;
	case REPORT_GUARD_DONE:
		job = job_meant(link, report->u.number);
		if (job)
			job_is_done(job);
		return;
	case REPORT_GUARD_HOLDS:
		job = job_meant(link, report->u.number);
		if (job)
			job_is_held(job);
		return;
	case REPORT_PLACEHOLDER_INTENT:
	case REPORT_PLACEHOLDER_MADE:
	case REPORT_PLACEHOLDER_SKIPPED:
	case REPORT_PID1_UP:
	case REPORT_STARTED:
	case REPORT_FAILED:
	case REPORT_EXITED:
	case REPORT_BUILT:
	case REPORT_KIND_COUNT:
		break;
	}
	/* Not a guard's to say. */
	child_signal(&link->child, SIGKILL);
}

static void on_report(uint32_t events, void *arg)
{
	struct guardlink *link = arg;
	struct error err = ERROR_INIT;
	enum reportin_result result = REPORTIN_MORE;

	(void)events;
	for (int turn = 0; turn < READS_PER_TURN && result == REPORTIN_MORE; turn++)
		result = reportin_read(&link->report, &err);
	if (result != REPORTIN_GARBAGE && result != REPORTIN_END)
		return;
	/* Its end is noticed when it is reaped. */
	loop_remove(&link->spawner->loop, &link->report_source);
	reportin_deinit(&link->report);
	child_signal(&link->child, SIGKILL);
}

/* ---- life ----------------------------------------------------------------------------- */

static void close_link(struct guardlink *link)
{
	loop_remove(&link->spawner->loop, &link->report_source);
	reportin_deinit(&link->report);
	if (link->order_fd >= 0)
		(void)close(link->order_fd);
	link->order_fd = -1;
}

static void free_link(struct guardlink *link)
{
	struct guardlink **at = &link->spawner->guards.first;

	while (*at != link)
		at = &(*at)->next;
	*at = link->next;
	loop_disarm(&link->spawner->loop, &link->idle);
	close_link(link);
	auto_close(&link->user_ns_fd);
	if (!link->spawner->ending)
		guardfile_forget(&link->spawner->jobfiles, link->noted);
	stray_take(link->spawner, &link->child, link->identity.uid, "guard", LIMIT_TEARDOWN_MS);
	free(link);
}

/* Nothing was to be guarded for a while: it sees that nobody orders any more, and ends. */
static void on_idle(void *arg)
{
	free_link(arg);
}

static void record_down(const struct guardlink *link, const char *why)
{
	struct event_message event = { .uid = link->identity.uid };

	log_write(LOG_WARNING, "guard of user %u: %s", link->identity.uid, why);
	(void)snprintf(event.detail, sizeof(event.detail), "%s", why);
	recorderlink_send(&link->spawner->recorder, EVENT_GUARD_DOWN, &event);
}

static bool died_too_often(struct guardlink *link)
{
	uint64_t now_ms = loop_now_ms();

	if (link->deaths == 0 || now_ms - link->first_death_ms > DEATHS_MS) {
		link->deaths = 0;
		link->first_death_ms = now_ms;
	}
	return ++link->deaths > DEATHS_MAX;
}

/* What runs is nobody's now: the next guard's, or nothing may run. */
static void hand_over(struct guardlink *link, bool have_guard)
{
	struct spawner *spawner = link->spawner;

	for (struct guard_plan *plan = spawner->guards.plans; plan && have_guard; plan = plan->next)
		if (plan->link == link)
			guardlink_order_plan(plan);
	for (size_t i = 0; i < SPAWNER_JOB_BUCKETS; i++) {
		struct job *next = NULL;

		for (struct job *job = spawner->jobs[i]; job; job = next) {
			next = job->next;
			if (!is_guarded(job, link) || !job->up || job->guarded.done)
				continue;
			if (job->exited || job->guarded.waiting) {
				job_is_done(job);
			} else if (have_guard) {
				order_job(job);
			} else {
				guardlink_give_up(job);
			}
		}
	}
}

static void on_guard_exit(int status, void *arg)
{
	struct guardlink *link = arg;
	struct error err = ERROR_INIT;
	bool started = false;
	char why[64];

	/* What it said before counts. */
	while (reportin_read(&link->report, NULL) == REPORTIN_MORE)
		continue;
	close_link(link);
	guardfile_forget(&link->spawner->jobfiles, link->noted);
	link->noted = 0;
	(void)snprintf(why, sizeof(why),
		       WIFSIGNALED(status) ? "ended by signal %d" : "ended with status %d",
		       WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
	record_down(link, why);
	if (link->plan_count > 0 && !died_too_often(link)) {
		started = start(link, &err) == 0;
		if (!started)
			log_failure(&err, "start a guard");
	}
	hand_over(link, started);
	if (!started)
		templates_guard_lost(&link->spawner->templates, link);
	if (link->plan_count == 0 && !link->idle.armed)
		loop_arm(&link->spawner->loop, &link->idle, 0, on_idle, link);
}

static int guard_main(void *arg)
{
	guard_run(arg);
}

static int start(struct guardlink *link, struct error *err)
{
	struct spawner *spawner = link->spawner;
	int user_ns_fd = link->user_ns_fd >= 0 ? link->user_ns_fd : spawner->user_ns_fd;
	AUTO(auto_close) int report_read = -1;
	AUTO(auto_close) int report_write = -1;
	AUTO(auto_close) int ours = -1;
	AUTO(auto_close) int theirs = -1;
	struct guard_input input = {
		.identity = &link->identity,
		.switch_ids = spawner->mode != MODE_USER,
		.user_ns_fd = user_ns_fd,
	};
	const int on = 1;
	int ends[2];
	int r = 0;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return error_set(err, ERR_SYSTEM, errno, "socketpair");
	ours = ends[0];
	theirs = ends[1];
	/* Nothing comes from there, so nothing that somebody chose. */
	if (shutdown(ours, SHUT_RD) < 0 ||
	    setsockopt(theirs, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) < 0)
		return error_set(err, ERR_SYSTEM, errno, "prepare a guard's socket");
	r = child_pipe(&report_read, &report_write, CHILD_PIPE_READ_OURS, err);
	if (r < 0)
		return r;
	(void)fcntl(report_write, F_SETPIPE_SZ, REPORT_PIPE_BYTES);
	input.order_fd = theirs;
	input.report_fd = report_write;
	reportin_init_take(&link->report, steal_fd(&report_read), on_message, link);
	r = loop_add(&spawner->loop, &link->report_source, link->report.fd, EPOLLIN, on_report,
		     link, err);
	if (r == 0)
		r = child_start(&spawner->children, &link->child, guard_main, &input, on_guard_exit,
				link, err);
	if (r < 0) {
		close_link(link);
		return r;
	}
	link->order_fd = steal_fd(&ours);
	link->generation++;
	link->noted = link->child.pid;
	guardfile_note(&spawner->jobfiles, link->child.pid, link->child.pidfd, &link->identity);
	return 0;
}

static struct guardlink *find_link(struct spawner *spawner, const struct identity *identity,
				   int *user_ns_fd, uint64_t user_ns)
{
	struct guardlink *link = spawner->guards.first;

	while (link && (link->user_ns != user_ns || !identity_equal(&link->identity, identity)))
		link = link->next;
	if (link)
		return link;
	link = calloc(1, sizeof(*link));
	if (!link)
		return NULL;
	*link = (struct guardlink){
		.spawner = spawner,
		.identity = *identity,
		.user_ns_fd = steal_fd(user_ns_fd),
		.user_ns = user_ns,
		.child = CHILD_INIT,
		.order_fd = -1,
		.report = REPORTIN_INIT,
		.report_source = LOOP_SOURCE_INIT,
		.next = spawner->guards.first,
	};
	spawner->guards.first = link;
	return link;
}

int guardlink_get(struct spawner *spawner, const struct identity *identity, int *user_ns_fd,
		  uint64_t user_ns, struct guardlink **ret_link, struct error *err)
{
	struct guardlink *link = find_link(spawner, identity, user_ns_fd, user_ns);
	int r = 0;

	if (!link)
		return error_set(err, ERR_NOMEM, 0, "a guard");
	if (link->order_fd < 0)
		r = start(link, err);
	*ret_link = link;
	return r;
}

void guardlink_use(struct guardlink *link, bool more)
{
	link->plan_count += more ? 1 : (size_t)-1;
	if (link->plan_count > 0)
		loop_disarm(&link->spawner->loop, &link->idle);
	else
		loop_arm(&link->spawner->loop, &link->idle, LIMIT_GUARD_IDLE_MS, on_idle, link);
}

/* ---- jobs ----------------------------------------------------------------------------- */

void guardlink_begin(struct job *job, struct guard_plan *plan, struct builder_guard *ret_guard)
{
	*ret_guard = (struct builder_guard){ .order_fd = -1 };
	if (job->guarded.plan)
		guardlink_end(job); /* of an earlier try */
	if (!plan)
		return;
	plan->refs++;
	job->guarded = (struct guard_share){
		.plan = plan,
		.plan_id = plan->id,
		.generation = plan->link->generation,
		.begun_ms = spawner_real_ms(),
	};
	*ret_guard = (struct builder_guard){
		.order_fd = plan->link->order_fd,
		.plan = plan->id,
		.job = job->id,
		.flags = flags_of(job->spawner),
	};
}

void guardlink_up(struct job *job)
{
	struct guard_plan *plan = job->guarded.plan;

	if (plan && plan->link->order_fd >= 0 && job->guarded.generation != plan->link->generation)
		order_job(job);
}

static void on_no_answer(void *arg)
{
	struct job *job = arg;

	/* It is noticed as any other death; the others of its jobs are handed over then. */
	log_write(LOG_WARNING, "guard of user %u does not answer", job->identity.uid);
	child_signal(&job->guarded.plan->link->child, SIGKILL);
	job_is_done(job);
}

bool guardlink_wait(struct job *job)
{
	struct guard_share *share = &job->guarded;

	if (!share->plan || share->done || !job->up || share->plan->link->order_fd < 0)
		return false;
	share->waiting = true;
	if (!share->timer.armed)
		loop_arm(&job->spawner->loop, &share->timer, LIMIT_GUARD_ANSWER_MS, on_no_answer,
			 job);
	return true;
}

void guardlink_end(struct job *job)
{
	const uint64_t plan_id = job->guarded.plan_id;
	const bool was_old = job->guarded.by_old;

	loop_disarm(&job->spawner->loop, &job->guarded.timer);
	guardlink_plan_release(job->guarded.plan);
	job->guarded = (struct guard_share){ .plan = NULL };
	guardadopt_forget_plan(job->spawner, plan_id);
	if (was_old)
		guardadopt_check(job->spawner);
}

/* ---- all of them ---------------------------------------------------------------------- */

void guardlinks_check(struct spawner *spawner)
{
	for (struct guardlink *link = spawner->guards.first; link; link = link->next) {
		siginfo_t info = { .si_pid = 0 };

		/* Its user's doing; one that does not run is none. */
		if (link->child.pid > 0 &&
		    waitid(P_PIDFD, (id_t)link->child.pidfd, &info, WSTOPPED | WNOHANG) == 0 &&
		    info.si_pid != 0)
			child_signal(&link->child, SIGKILL);
	}
}

void guardlinks_deinit(struct spawner *spawner)
{
	while (spawner->guards.first) {
		struct guardlink *link = spawner->guards.first;

		child_forget(&spawner->children, &link->child);
		free_link(link);
	}
}
