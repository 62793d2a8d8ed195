/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/spawner/template.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "common/scope.h"
#include "daemon/log.h"
#include "daemon/spawner/builder.h"
#include "daemon/spawner/guardlink.h"
#include "daemon/spawner/job.h"
#include "daemon/spawner/jobproc.h"
#include "daemon/spawner/nsfd.h"
#include "daemon/spawner/placing.h"
#include "daemon/spawner/spawner.h"
#include "daemon/spawner/stray.h"
#include "daemon/spawner/templateroom.h"
#include "daemon/spawner/sweep.h"

/* ---- one template --------------------------------------------------------------------- */

static void template_free(struct template *template)
{
	struct spawner *spawner = template->spawner;

	loop_remove(&spawner->loop, &template->report_source);
	loop_disarm(&spawner->loop, &template->timer);
	reportin_deinit(&template->report);
	zygotes_deinit(template);
	templatecopy_deinit(template);
	auto_close(&template->mount_ns_fd);
	/* One that is not through by now hangs, or was given up; one that waited for us sees that we left. */
	stray_take(spawner, &template->builder, template->identity.uid, "builder of a template",
		   template->built ? LIMIT_TEARDOWN_MS : 0);
	placing_let_go(&template->held);
	templatemem_deinit(&template->mem);
	guardlink_plan_release(template->guard);
	free(template);
}

/* Out of the list; freed when nobody holds on to it any more. */
static void template_unlink(struct template *template)
{
	struct templates *templates = &template->spawner->templates;
	struct template **at = &templates->first;

	while (*at != template)
		at = &(*at)->next;
	*at = template->next;
	templates->count--;
	templates->mounts -= template->mounts;
	template->state = TEMPLATE_DROPPED;
	zygotes_drop(template);
	if (template->users == 0)
		template_free(template);
}

void template_drop(struct template *template, const char *why)
{
	if (template->state == TEMPLATE_DROPPED)
		return;
	log_write(LOG_DEBUG, "template of user %u dropped: %s", template->identity.uid, why);
	template_unlink(template);
}

static void template_unlink_waiter(struct template *template, struct job *job)
{
	struct job **at = &template->waiters;

	while (*at && *at != job)
		at = &(*at)->next_waiter;
	if (*at)
		*at = job->next_waiter;
	job->next_waiter = NULL;
}

void template_leave(struct job *job)
{
	struct template *template = job->template;

	if (!template)
		return;
	template_unlink_waiter(template, job);
	/* All that wait share what was announced so far. */
	if (template->first == job)
		template->first = template->waiters;
	job->template = NULL;
	if (--template->users == 0 && template->state == TEMPLATE_DROPPED)
		template_free(template);
}

void template_wait(struct template *template, struct job *job)
{
	struct template **at = &template->spawner->templates.first;

	/* Most recently used first. */
	while (*at && *at != template)
		at = &(*at)->next;
	if (*at) {
		*at = template->next;
		template->next = template->spawner->templates.first;
		template->spawner->templates.first = template;
	}
	job->template = template;
	template->users++;
	template->used_ms = loop_now_ms();
	if (template->state == TEMPLATE_READY) {
		job_template_ready(job);
		return;
	}
	job->next_waiter = template->waiters;
	template->waiters = job;
	if (!template->first)
		template->first = job;
}

/* It will never be ready: everybody who waits is told, and it is gone. */
static void template_fail(struct template *template, const struct failure *failure)
{
	template->users++; /* ours, while jobs leave */
	template_drop(template, failure->message);
	while (template->waiters) {
		struct job *job = template->waiters;

		template_leave(job);
		job_template_failed(job, failure);
	}
	if (--template->users == 0)
		template_free(template);
}

static void template_fail_text(struct template *template, enum error_kind kind, const char *text)
{
	struct error err = { .kind = kind };
	struct failure failure;

	(void)snprintf(err.message, sizeof(err.message), "%s", text);
	failure_set(&failure, &err, "template");
	template_fail(template, &failure);
}

/* ---- building ------------------------------------------------------------------------- */

static void send_go(struct template *template)
{
	/* A builder that does not wait has ended; that is noticed by itself. */
	(void)!write(template->go_fd, "G", 1);
}

/* What others made where its mounts are now, while they were made, is not counted yet. */
static void let_begin(struct job *job)
{
	struct template *template = job->template;
	struct error err = ERROR_INIT;
	int r = placing_plan(job, &template->mem.plan, &err);

	template->placeholders |= ledger_has_job(template->spawner->ledger, job->id);
	if (r == 0) {
		job_template_ready(job);
		return;
	}
	template_leave(job); /* PLACING_WAIT: it will come again */
	if (r < 0)
		job_fail(job, err.kind, "placeholder", "%s", err.message);
}

/* Its namespace is there and its guard watches: whoever waits may begin. */
static void become_ready(struct template *template)
{
	if (template->state != TEMPLATE_BUILDING || !template->built ||
	    (template->guard && !guardlink_ready(template->guard)))
		return;
	template->state = TEMPLATE_READY;
	template->used_ms = loop_now_ms();
	loop_disarm(&template->spawner->loop, &template->timer);
	template->users++; /* ours: a job's failure may drop the template */
	while (template->waiters) {
		struct job *job = template->waiters;

		template_unlink_waiter(template, job);
		let_begin(job);
	}
	template->first = NULL;
	templateroom_settle(template);
	if (--template->users == 0 && template->state == TEMPLATE_DROPPED)
		template_free(template);
}

static void take_built(struct template *template, size_t mounts)
{
	templateroom_count(template, mounts);
	template->copies.base = mounts;
	template->mount_ns_fd =
		nsfd_open(template->builder.pidfd, template->builder.pid, NSFD_MOUNT);
	if (template->mount_ns_fd < 0) {
		template_fail_text(template, ERR_SYSTEM, "the builder's mount namespace is gone");
		return;
	}
	template->built = true;
	become_ready(template);
}

/* What the first job announced, everybody who waits relies on as well. */
static int share_among_waiters(const struct template *template,
			       const struct report_placeholder *what, struct error *err)
{
	int r = 0;

	for (struct job *job = template->waiters; r >= 0 && job; job = job->next_waiter)
		if (job != template->first)
			r = placing_share(job, what, err);
	return r < 0 ? r : 0;
}

/* Placeholders are the first job's: they go when it and all that share them are over. */
static void take_placeholder(struct template *template, const struct report_message *report)
{
	struct error err = ERROR_INIT;
	int r = 0;

	if (!template->first) {
		template_fail_text(template, ERR_SETUP_FAILED, "the job it was made for is gone");
		return;
	}
	/* Also one that the plan did not ask for: a mask whose object has gone meanwhile. */
	template->placeholders = true;
	r = placing_report(template->first, report, &err);
	if (r == PLACING_WAIT)
		r = placing_hold(&template->held, report, &err);
	else if (r == 0 && placing_wants_go(report) &&
		 (r = share_among_waiters(template, &report->u.placeholder, &err)) == 0)
		send_go(template);
	if (r < 0)
		template_fail_text(template, err.kind, err.message);
}

static struct template *next_waiting(const struct templates *templates)
{
	for (struct template *at = templates->first; at; at = at->next)
		if (at->resumes)
			return at;
	return NULL;
}

void templates_resume(struct templates *templates)
{
	struct template *template = NULL;

	for (struct template *at = templates->first; at; at = at->next)
		at->resumes = at->held != NULL;
	while ((template = next_waiting(templates))) {
		struct report_message *held = template->held;

		template->resumes = false;
		template->held = NULL;
		take_placeholder(template, held);
		placing_let_go(&held);
	}
}

static void on_message(const struct report_message *report, void *arg)
{
	struct template *template = arg;

	if (template->built) {
		if (report->kind == REPORT_BUILT)
			templatecopy_made(template, report->u.built.mounts);
		else
			templatecopy_no_more(template);
		return;
	}
	if (template->state != TEMPLATE_BUILDING)
		return;
	switch ((enum report_kind)report->kind) {
	case REPORT_PLACEHOLDER_INTENT:
	case REPORT_PLACEHOLDER_MADE:
	case REPORT_PLACEHOLDER_SKIPPED:
		take_placeholder(template, report);
		return;
	case REPORT_BUILT:
		take_built(template, report->u.built.mounts);
		return;
	case REPORT_FAILED:
		template_fail(template, &report->u.failure);
		return;
	case REPORT_PID1_UP:
	case REPORT_STARTED:
	case REPORT_EXITED:
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
	template_fail_text(template, ERR_SETUP_FAILED, "a report came out of turn");
}

static void on_report(uint32_t events, void *arg)
{
	struct template *template = arg;
	struct error err = ERROR_INIT;
	enum reportin_result result = REPORTIN_MORE;

	(void)events;
	template->users++; /* ours: what is reported may drop the template */
	while (result == REPORTIN_MORE)
		result = reportin_read(&template->report, &err);
	if (result == REPORTIN_GARBAGE && template->state == TEMPLATE_BUILDING)
		template_fail_text(template, ERR_SETUP_FAILED, err.message);
	else if (result == REPORTIN_END && !template->built)
		template_fail_text(template, ERR_SETUP_FAILED, "the builder ended");
	if (result == REPORTIN_GARBAGE || result == REPORTIN_END) {
		templatecopy_no_more(template);
		loop_remove(&template->spawner->loop, &template->report_source);
		reportin_deinit(&template->report);
	}
	if (--template->users == 0 && template->state == TEMPLATE_DROPPED)
		template_free(template);
}

static void on_too_long(void *arg)
{
	template_fail_text(arg, ERR_TIMEOUT, "a file system did not answer in time");
}

/* The pipe's end says the same, after everything that was reported. */
static void on_builder_exit(int status, void *arg)
{
	(void)status;
	(void)arg;
}

static int builder_main(void *arg)
{
	builder_run_template(arg);
}

static int start_builder(struct template *template, struct error *err)
{
	struct spawner *spawner = template->spawner;
	AUTO(auto_close) int report_read = -1;
	AUTO(auto_close) int report_write = -1;
	AUTO(auto_close) int go_read = -1;
	struct builder_input input = {
		.plan = &template->mem.plan,
		.identity = &template->identity,
		.mode = spawner->mode,
		.engine = ENGINE_NATIVE,
		.switch_ids = spawner->mode != MODE_USER,
		.shared_fd = template->mem.shared_fd,
		.namespaces = { .user_ns_fd = spawner->user_ns_fd },
	};
	int r = 0;

	if ((r = child_pipe(&report_read, &report_write, CHILD_PIPE_READ_OURS, err)) < 0 ||
	    (r = child_pipe(&go_read, &template->go_fd, CHILD_PIPE_WRITE_OURS, err)) < 0)
		return r;
	reportin_init_take(&template->report, steal_fd(&report_read), on_message, template);
	r = loop_add(&spawner->loop, &template->report_source, template->report.fd, EPOLLIN,
		     on_report, template, err);
	if (r < 0)
		return r;
	input.report_fd = report_write;
	input.go_fd = go_read;
	r = templatemem_lend(&template->mem, true, err);
	if (r < 0)
		return r;
	r = child_start(&spawner->children, &template->builder, builder_main, &input,
			on_builder_exit, template, err);
	if (r == 0)
		r = templatemem_lend(&template->mem, false, err);
	if (r == 0)
		loop_arm(&spawner->loop, &template->timer, LIMIT_RESOLVE_MS, on_too_long, template);
	return r;
}

static void on_expiry(void *arg);

/* One timer for all: the oldest decides when. Nothing is armed while there is no template. */
static void arm_expiry(struct templates *templates)
{
	struct template *last = templates->first;
	uint64_t idle_ms = 0;

	if (!last) {
		loop_disarm(&templates->spawner->loop, &templates->expiry);
		return;
	}
	while (last->next)
		last = last->next;
	idle_ms = loop_now_ms() - last->used_ms;
	loop_arm(&templates->spawner->loop, &templates->expiry,
		 idle_ms < LIMIT_TEMPLATE_IDLE_MS ? LIMIT_TEMPLATE_IDLE_MS - idle_ms : 0, on_expiry,
		 templates);
}

static void on_expiry(void *arg)
{
	struct templates *templates = arg;
	uint64_t now_ms = loop_now_ms();
	struct template *next = NULL;

	for (struct template *at = templates->first; at; at = next) {
		next = at->next;
		if (at->state == TEMPLATE_READY && now_ms - at->used_ms >= LIMIT_TEMPLATE_IDLE_MS)
			template_drop(at, "idle");
		else if (at->state == TEMPLATE_BUILDING)
			at->used_ms = now_ms;
	}
	arm_expiry(templates);
}

static struct template *template_new(struct templates *templates, const struct identity *identity,
				     const void *bytes, size_t byte_count, const struct plan *plan,
				     struct error *err)
{
	struct template *template = calloc(1, sizeof(*template));

	if (!template) {
		(void)error_set(err, ERR_NOMEM, 0, "keep a template");
		return NULL;
	}
	template->spawner = templates->spawner;
	template->state = TEMPLATE_DROPPED;
	template->identity = *identity;
	template->mount_ns_fd = -1;
	template->go_fd = -1;
	template->copies = (struct templatecopies)TEMPLATECOPIES_INIT;
	template->builder = (struct child)CHILD_INIT;
	template->mem = (struct templatemem)TEMPLATEMEM_INIT;
	template->report = (struct reportin)REPORTIN_INIT;
	template->report_source = (struct loop_source)LOOP_SOURCE_INIT;
	for (size_t i = 0; i < plan->count; i++)
		if (plan->ops[i].flags & PLAN_PLACEHOLDER)
			template->placeholders = true;
	if (templatemem_init(&template->mem, bytes, byte_count, plan, err) < 0) {
		free(template);
		return NULL;
	}
	return template;
}

int template_build(struct templates *templates, struct job *job, const void *bytes,
		   size_t byte_count, const struct plan *plan, struct error *err)
{
	struct template *template = NULL;
	int r = templateroom_check(templates, job->identity.uid, plan->count, err);

	if (r < 0)
		return r;
	template = template_new(templates, &job->identity, bytes, byte_count, plan, err);
	if (!template)
		return -(int)ERR_NOMEM;
	r = guardlink_plan(templates->spawner, &job->identity, plan, job->plan_fd, byte_count,
			   &template->guard, err);
	if (r == 0)
		r = start_builder(template, err);
	if (r < 0) {
		template_free(template);
		return r;
	}
	templateroom_make(templates, plan->count);
	template->state = TEMPLATE_BUILDING;
	template->next = templates->first;
	templates->first = template;
	templates->count++;
	template->mounts = plan->count;
	templates->mounts += template->mounts;
	template_wait(template, job);
	arm_expiry(templates);
	return 0;
}

/* ---- all of them ---------------------------------------------------------------------- */

struct template *templates_find(struct templates *templates, const struct identity *identity,
				const void *bytes, size_t byte_count)
{
	for (struct template *at = templates->first; at; at = at->next)
		if (at->mem.byte_count == byte_count && !at->outdated &&
		    identity_equal(&at->identity, identity) &&
		    memcmp(at->mem.bytes, bytes, byte_count) == 0)
			return at;
	return NULL;
}

void templates_drop_all(struct templates *templates, const char *why)
{
	struct template *next = NULL;

	for (struct template *at = templates->first; at; at = next) {
		next = at->next;
		if (at->state == TEMPLATE_BUILDING)
			at->outdated = true;
		else
			template_drop(at, why);
	}
}

void templates_drop_placeholders(struct templates *templates, uid_t uid)
{
	struct template *next = NULL;

	for (struct template *at = templates->first; at; at = next) {
		next = at->next;
		if (at->placeholders && at->state == TEMPLATE_READY && at->identity.uid == uid)
			template_drop(at, "its placeholders go");
	}
}

void templates_guarded(struct templates *templates, const struct guard_plan *plan)
{
	for (struct template *at = templates->first; at; at = at->next) {
		if (at->guard != plan)
			continue;
		become_ready(at);
		return; /* plans are one template's, and that may be gone */
	}
}

void templates_drop_guarded(struct templates *templates, const struct guard_plan *plan)
{
	for (struct template *at = templates->first; at; at = at->next) {
		if (at->guard != plan || at->state != TEMPLATE_READY)
			continue;
		template_drop(at, "a mask was taken away from outside");
		return;
	}
}

void templates_guard_lost(struct templates *templates, const struct guardlink *link)
{
	struct template *at = templates->first;

	while (at) {
		if (!guardlink_owns(link, at->guard)) {
			at = at->next;
			continue;
		}
		if (at->state == TEMPLATE_READY)
			template_drop(at, "its guard is gone");
		else
			template_fail_text(at, ERR_SETUP_FAILED, "the guard of this user is gone");
		at = templates->first; /* what failed may have taken others along */
	}
}

static void on_mounts_changed(uint32_t events, void *arg)
{
	struct templates *templates = arg;

	(void)events;
	templates_drop_all(templates, "the host's mounts changed");
	heldmounts_changed(templates->spawner);
	sweep_mounts_changed(templates->spawner);
	/* Now rather than in the next job's time, which hears of a failure too. */
	(void)protected_paths_refresh(templates->spawner, NULL);
}

int templates_init(struct templates *templates, struct spawner *spawner, struct error *err)
{
	templates->spawner = spawner;
	if (heldmounts_init(&spawner->heldmounts, err) < 0)
		return -(int)err->kind;
	templates->mountinfo_fd = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
	if (templates->mountinfo_fd < 0)
		return error_set(err, ERR_SYSTEM, errno, "open /proc/self/mountinfo");
	return loop_add(&spawner->loop, &templates->mountinfo_source, templates->mountinfo_fd,
			EPOLLPRI, on_mounts_changed, templates, err);
}

void templates_deinit(struct templates *templates)
{
	if (!templates->spawner)
		return;
	while (templates->first) {
		child_forget(&templates->spawner->children, &templates->first->builder);
		template_drop(templates->first, "fsboxd ends");
	}
	heldmounts_deinit(&templates->spawner->heldmounts);
	loop_disarm(&templates->spawner->loop, &templates->expiry);
	loop_disarm(&templates->spawner->loop, &templates->spawner->zygotes.refill);
	loop_disarm(&templates->spawner->loop, &templates->spawner->zygotes.expiry);
	loop_remove(&templates->spawner->loop, &templates->mountinfo_source);
	auto_close(&templates->mountinfo_fd);
}
