/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/spawner/guard.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/limits.h"
#include "common/scope.h"
#include "daemon/spawner/child.h"
#include "daemon/spawner/guardfix.h"
#include "daemon/spawner/guardwork.h"
#include "daemon/spawner/native.h"
#include "daemon/spawner/report.h"
#include "daemon/spawner/sealed.h"
#include "proto/wire/guardop.h"

/* Where we may: system mode. */
#define GUARD_NICE (-5)

uint64_t guard_now_ns(void)
{
	struct timespec now = { 0 };

	(void)clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* ---- telling -------------------------------------------------------------------------- */

static void drop_first_report(struct guard_state *state)
{
	struct guard_report *report = state->first_report;

	state->first_report = report->next;
	if (!state->first_report)
		state->last_report = NULL;
	state->report_count--;
	state->report_written = 0;
	free(report);
}

static void flush_reports(struct guard_state *state)
{
	while (state->first_report && state->report_fd >= 0) {
		const struct report_message *message = &state->first_report->message;
		const char *at = (const char *)message + state->report_written;
		ssize_t n = write(state->report_fd, at, message->size - state->report_written);

		if (n < 0 && errno == EAGAIN)
			break;
		if (n < 0) {
			/* fsboxd is gone: nobody will ever be told. */
			loop_remove(&state->loop, &state->report_source);
			auto_close(&state->report_fd);
			state->report_fd = -1;
			return;
		}
		state->report_written += (size_t)n;
		if (state->report_written == message->size)
			drop_first_report(state);
	}
	if (state->report_fd >= 0)
		(void)loop_change(&state->loop, &state->report_source,
				  state->first_report ? EPOLLOUT : 0, NULL);
}

static void on_report_writable(uint32_t events, void *arg)
{
	(void)events;
	flush_reports(arg);
}

void guard_tell(struct guard_state *state, const struct report_message *message)
{
	struct guard_report *report = NULL;

	if (state->report_fd < 0 || state->report_count >= GUARD_QUEUE)
		return;
	report = malloc(sizeof(*report));
	if (!report)
		return;
	report->message = *message;
	report->next = NULL;
	if (state->last_report)
		state->last_report->next = report;
	else
		state->first_report = report;
	state->last_report = report;
	state->report_count++;
	flush_reports(state);
}

void guard_tell_path(const struct guarded_job *job, enum report_kind kind, const char *path,
		     uint64_t exposure_us)
{
	struct report_message message;

	report_begin(&message, kind);
	message.u.guard.job = job->id;
	message.u.guard.exposure_us = exposure_us;
	(void)snprintf(message.u.guard.path, sizeof(message.u.guard.path), "%s", path);
	guard_tell(job->state, &message);
}

void guard_tell_number(struct guard_state *state, enum report_kind kind, uint64_t number)
{
	struct report_message message;

	report_begin(&message, kind);
	message.u.number = number;
	guard_tell(state, &message);
}

/* ---- plans ---------------------------------------------------------------------------- */

static struct guarded_plan *find_plan(const struct guard_state *state, uint64_t id)
{
	struct guarded_plan *plan = state->plans;

	while (plan && plan->id != id)
		plan = plan->next;
	return plan;
}

static void free_plan(struct guarded_plan *plan)
{
	for (size_t i = 0; plan->entries && i < plan->points.count; i++)
		string_list_deinit(&plan->entries[i]);
	free(plan->entries);
	free(plan->wds);
	guard_points_deinit(&plan->points);
	plan_deinit(&plan->plan);
	free(plan);
}

static void release_plan(struct guard_state *state, struct guarded_plan *plan)
{
	struct guarded_plan **at = &state->plans;

	if (!plan->forgotten || plan->jobs > 0)
		return;
	while (*at != plan)
		at = &(*at)->next;
	*at = plan->next;
	guard_unwatch(state, plan);
	free_plan(plan);
}

static int decode_plan(struct guarded_plan *plan, int fd, size_t bytes, struct error *err)
{
	const void *data = NULL;
	size_t size = 0;
	int r = sealed_map(fd, LIMIT_PLAN_BYTES, &data, &size, err);

	if (r < 0)
		return r;
	if (bytes > size)
		r = error_set(err, ERR_BAD_FRAME, 0, "a plan of %zu bytes in %zu", bytes, size);
	if (r == 0)
		r = plan_decode(&plan->plan, data, bytes, err);
	(void)munmap((void *)(uintptr_t)data, size);
	return r < 0 ? r : guard_points_init(&plan->points, &plan->plan, err);
}

static int take_plan(struct guard_state *state, const struct guard_order *order, int fd,
		     struct error *err)
{
	struct guarded_plan *plan = NULL;
	int r = 0;

	if (find_plan(state, order->plan))
		return error_set(err, ERR_BAD_FRAME, 0, "a plan comes again");
	plan = calloc(1, sizeof(*plan));
	if (!plan)
		return error_set(err, ERR_NOMEM, 0, "a plan");
	plan->id = order->plan;
	r = decode_plan(plan, fd, order->plan_bytes, err);
	if (r == 0)
		r = guard_watch(state, plan, err);
	if (r < 0) {
		free_plan(plan);
		return r;
	}
	plan->next = state->plans;
	state->plans = plan;
	guard_tell_number(state, REPORT_GUARD_WATCHES, plan->id);
	return 0;
}

/* ---- jobs ----------------------------------------------------------------------------- */

struct guarded_job *guard_find_job(const struct guard_state *state, uint64_t id)
{
	struct guarded_job *job = state->jobs;

	while (job && job->id != id)
		job = job->next;
	return job;
}

void guard_mark(struct guarded_job *job)
{
	if (job->dirty_ns == 0)
		job->dirty_ns = guard_now_ns();
}

void guard_kill(struct guarded_job *job)
{
	AUTO(auto_close) int pidfd = -1;
	struct loop_source *end = &job->end_source;

	if (job->killed)
		return;
	job->killed = true;
	pidfd = pidfd_open_pid(job->pid);
	/* It had not ended when we opened it, so it was that process. */
	if (pidfd >= 0 && end->fd >= 0 && pidfd_alive(job->end_fd))
		(void)pidfd_signal(pidfd, SIGKILL);
}

static void drop_job(struct guarded_job *job)
{
	struct guard_state *state = job->state;
	struct guarded_job **at = &state->jobs;
	struct guarded_plan *plan = job->plan;

	while (*at != job)
		at = &(*at)->next;
	*at = job->next;
	loop_remove(&state->loop, &job->end_source);
	loop_remove(&state->loop, &job->info_source);
	guardmounts_remove(&state->mounts, job->ns_fd, &job->ns);
	auto_close(&job->ns_fd);
	auto_close(&job->end_fd);
	free(job->told);
	free(job);
	plan->jobs--;
	release_plan(state, plan);
	if (state->alone && !state->jobs)
		loop_stop(&state->loop);
}

/* Nothing of it runs any more. */
static void on_job_end(uint32_t events, void *arg)
{
	struct guarded_job *job = arg;
	struct guard_state *state = job->state;
	uint64_t id = job->id;

	(void)events;
	guard_read_names(state);
	guard_look_last(state, job);
	guard_scan_last(job);
	guard_tell_number(state, REPORT_GUARD_DONE, id);
	drop_job(job);
	guard_repair(state);
}

static void on_info(uint32_t events, void *arg)
{
	struct guarded_job *job = arg;

	(void)events;
	guardmounts_read_info(&job->ns);
	guard_mark(job);
	guard_repair(job->state);
}

/* Whether nothing had gone before we began to listen: as many mounts as a job that was found whole. */
static void check_whole(struct guarded_job *job)
{
	if (job->handed || job->ns.count == 0 || job->ns.count != job->plan->mounts)
		guard_mark(job);
}

static int begin_job(struct guarded_job *job, struct error *err)
{
	struct guard_state *state = job->state;
	struct error blind = ERROR_INIT;
	int r = 0;

	job->told = calloc(job->plan->points.count + 1, 1);
	if (!job->told)
		return error_set(err, ERR_NOMEM, 0, "a job");
	r = loop_add(&state->loop, &job->end_source, job->end_fd, EPOLLIN, on_job_end, job, err);
	if (r < 0)
		return r;
	/* Without that only names are heard of; then nothing is repaired (R27). */
	if (guardmounts_add(&state->mounts, job->ns_fd, job->pid, &job->ns, &blind) < 0)
		job->flags |= GUARD_KILL_UNMASKED;
	else if (job->ns.info_fd >= 0)
		r = loop_add(&state->loop, &job->info_source, job->ns.info_fd, EPOLLPRI, on_info,
			     job, err);
	check_whole(job);
	return r;
}

static int take_job(struct guard_state *state, const struct guard_order *order, int *fds,
		    int sender, struct error *err)
{
	struct guarded_job *job = guard_find_job(state, order->job);
	struct guarded_plan *plan = NULL;
	int r = 0;

	/* A pid 1 that was given up on before it had anything of the client's (zygotejob.h); here is another one. */
	if (job && order->pid == 0)
		drop_job(job);
	plan = find_plan(state, order->plan);
	if (!plan || (job && order->pid != 0))
		return error_set(err, ERR_BAD_FRAME, 0, "a job of no plan, or a second time");
	job = calloc(1, sizeof(*job));
	if (!job)
		return error_set(err, ERR_NOMEM, 0, "a job");
	*job = (struct guarded_job){
		.state = state,
		.id = order->job,
		.pid = order->pid != 0 ? order->pid : sender,
		.flags = order->flags,
		.plan = plan,
		.handed = order->pid != 0,
		.begun_ns = order->begun_ns,
		.ns_fd = steal_fd(&fds[0]),
		.end_fd = steal_fd(&fds[1]),
		.end_source = LOOP_SOURCE_INIT,
		.ns = GUARDMOUNTS_NS_INIT,
		.info_source = LOOP_SOURCE_INIT,
		.next = state->jobs,
	};
	state->jobs = job;
	if (plan->jobs++ == 0 || order->begun_ns < plan->begun_ns)
		plan->begun_ns = order->begun_ns;
	r = begin_job(job, err);
	if (r < 0)
		drop_job(job);
	return r;
}

/* ---- orders --------------------------------------------------------------------------- */

static int take_order(struct guard_state *state, const struct guard_order *order, int *fds,
		      int sender, struct error *err)
{
	struct guarded_plan *plan = NULL;

	switch ((enum guard_order_kind)order->kind) {
	case GUARD_ORDER_PLAN:
		return take_plan(state, order, fds[0], err);
	case GUARD_ORDER_JOB:
		return take_job(state, order, fds, sender, err);
	case GUARD_ORDER_FORGET:
		plan = find_plan(state, order->plan);
		if (plan) {
			plan->forgotten = true;
			release_plan(state, plan);
		}
		return 0;
	case GUARD_ORDER_KIND_COUNT:
		break;
	}
	return 0;
}

/* Nobody can order anything any more: what runs is guarded to its end. */
static void be_alone(struct guard_state *state)
{
	struct guarded_plan *next = NULL;

	loop_remove(&state->loop, &state->order_source);
	auto_close(&state->order_fd);
	state->order_fd = -1;
	state->alone = true;
	for (struct guarded_plan *plan = state->plans; plan; plan = next) {
		next = plan->next;
		plan->forgotten = true;
		release_plan(state, plan);
	}
	if (!state->jobs)
		loop_stop(&state->loop);
}

void guard_take_orders(struct guard_state *state)
{
	while (state->order_fd >= 0) {
		struct guard_order order;
		struct error err = ERROR_INIT;
		int fds[GUARD_ORDER_FDS];
		int sender = 0;
		int r = guard_order_receive(state->order_fd, &order, fds, &sender, &err);

		if (r < 0 && err.errnum == EAGAIN)
			return;
		if (r > 0)
			r = take_order(state, &order, fds, sender, &err) < 0 ? -1 : 1;
		for (size_t i = 0; i < GUARD_ORDER_FDS; i++)
			auto_close(&fds[i]);
		if (r == 0)
			be_alone(state);
		/* A guard that does not understand is none: fsboxd shall start another one. */
		if (r < 0)
			_exit(1);
	}
}

static void on_order(uint32_t events, void *arg)
{
	struct guard_state *state = arg;

	(void)events;
	guard_take_orders(state);
	guard_repair(state);
}

/* ---- what happens outside ------------------------------------------------------------- */

static void on_names(uint32_t events, void *arg)
{
	(void)events;
	guard_read_names(arg);
	guard_repair(arg);
}

static void mount_gone(uint64_t id, void *arg)
{
	struct guard_state *state = arg;

	for (struct guarded_job *job = state->jobs; job; job = job->next)
		/* What was put back is newer than all that was counted, until it is counted. */
		if (guardmounts_may_be(&job->ns, id) ||
		    ((job->repairing || job->patched) && id > job->ns.last))
			guard_mark(job);
}

static void on_mounts(uint32_t events, void *arg)
{
	struct guard_state *state = arg;

	(void)events;
	guardmounts_read(&state->mounts, mount_gone, state);
	guard_repair(state);
}

/* A guard of the next fsboxd has all our jobs: what is there by now is still ours to take away. */
static void on_replaced(uint32_t events, void *arg)
{
	struct guard_state *state = arg;

	(void)events;
	guard_read_names(state);
	for (struct guarded_job *job = state->jobs; job; job = job->next)
		guard_look_last(state, job);
	loop_stop(&state->loop);
}

/* ---- life ----------------------------------------------------------------------------- */

static int open_end(struct guard_state *state, struct error *err)
{
	sigset_t set;

	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGTERM);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0 ||
	    (state->end_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK)) < 0)
		return error_set(err, ERR_SYSTEM, errno, "signalfd");
	return loop_add(&state->loop, &state->end_source, state->end_fd, EPOLLIN, on_replaced,
			state, err);
}

static int open_sources(struct guard_state *state, struct error *err)
{
	int r = loop_init(&state->loop, err);

	if (r < 0)
		return r;
	state->inotify_fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (state->inotify_fd < 0)
		return error_set(err, ERR_SYSTEM, errno, "inotify");
	guardmounts_init(&state->mounts);
	if (fcntl(state->report_fd, F_SETFL, O_NONBLOCK) < 0)
		return error_set(err, ERR_SYSTEM, errno, "fcntl");
	if ((r = loop_add(&state->loop, &state->order_source, state->order_fd, EPOLLIN, on_order,
			  state, err)) < 0 ||
	    (r = loop_add(&state->loop, &state->inotify_source, state->inotify_fd, EPOLLIN,
			  on_names, state, err)) < 0 ||
	    (r = open_end(state, err)) < 0 ||
	    (r = loop_add(&state->loop, &state->report_source, state->report_fd, 0,
			  on_report_writable, state, err)) < 0)
		return r;
	return state->mounts.fd < 0 ? 0
				    : loop_add(&state->loop, &state->mounts_source,
					       state->mounts.fd, EPOLLIN, on_mounts, state, err);
}

/* What fsboxd was given or raised for itself is not the user's. */
static void lower_to_ordinary(void)
{
	AUTO(auto_close) int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

	if (fd >= 0 && write(fd, "0", 1) != 1)
		(void)fd; /* already lower than we may set */
}

/*
 * Holds first: all of fsboxd's descriptors and its ids. Then its own two, the peer's ids and what mounting
 * takes; in user mode that is inside the daemon's user namespace alone.
 */
static int become(const struct guard_input *input, int *ret_masks_fd, struct error *err)
{
	const int keep[] = { input->order_fd, input->report_fd, input->user_ns_fd };
	const int user_ns_fd = input->user_ns_fd < 0 ? -1 : CHILD_FIRST_FD + 2;
	int r = 0;

	(void)signal(SIGPIPE, SIG_IGN);
	(void)setsid();
	(void)umask(077);
	(void)prctl(PR_SET_NAME, "fsbox-guard", 0L, 0L, 0L);
	lower_to_ordinary();
	/* What it has not put right yet is open: before what the jobs themselves do. */
	(void)setpriority(PRIO_PROCESS, 0, GUARD_NICE);
	if (chdir("/") < 0)
		return error_set(err, ERR_SYSTEM, errno, "chdir /");
	r = child_arrange_fds(keep, user_ns_fd < 0 ? 2 : 3, false, err);
	if (r < 0)
		return r;
	if (prctl(PR_SET_DUMPABLE, 0L, 0L, 0L, 0L) < 0)
		return error_set(err, ERR_SYSTEM, errno, "PR_SET_DUMPABLE");
	if (input->switch_ids && (r = native_become(input->identity, err)) < 0)
		return r;
	if (prctl(PR_SET_DUMPABLE, 0L, 0L, 0L, 0L) < 0)
		return error_set(err, ERR_SYSTEM, errno, "PR_SET_DUMPABLE");
	r = guardfix_make_masks(user_ns_fd, ret_masks_fd, err);
	if (r < 0)
		return r;
	if (user_ns_fd >= 0 && setns(user_ns_fd, CLONE_NEWUSER) < 0)
		return error_set(err, ERR_SYSTEM, errno, "enter the user namespace");
	if (user_ns_fd >= 0)
		(void)close(user_ns_fd);
	/* Again: the peer's other processes shall not look in, nor steer us. */
	if (prctl(PR_SET_DUMPABLE, 0L, 0L, 0L, 0L) < 0)
		return error_set(err, ERR_SYSTEM, errno, "PR_SET_DUMPABLE");
	return 0;
}

_Noreturn void guard_run(const struct guard_input *input)
{
	struct guard_state state = {
		.loop = LOOP_INIT,
		.order_fd = CHILD_FIRST_FD,
		.report_fd = CHILD_FIRST_FD + 1,
		.masks_fd = -1,
		.inotify_fd = -1,
		.mounts = GUARDMOUNTS_INIT,
		.order_source = LOOP_SOURCE_INIT,
		.report_source = LOOP_SOURCE_INIT,
		.inotify_source = LOOP_SOURCE_INIT,
		.mounts_source = LOOP_SOURCE_INIT,
		.end_source = LOOP_SOURCE_INIT,
		.end_fd = -1,
	};

	if (become(input, &state.masks_fd, NULL) < 0 || open_sources(&state, NULL) < 0)
		_exit(1);
	_exit(loop_run(&state.loop, NULL) < 0);
}
