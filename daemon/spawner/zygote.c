/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/spawner/zygote.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/limits.h"
#include "common/scope.h"
#include "daemon/log.h"
#include "daemon/spawner/builder.h"
#include "daemon/spawner/job.h"
#include "daemon/spawner/quote.h"
#include "daemon/spawner/spawner.h"
#include "daemon/spawner/stray.h"
#include "daemon/spawner/template.h"
#include "daemon/spawner/unshared.h"

/* How near to each other two uses must be. */
#define HOT_MS 10000

/* So long nothing must have begun before one is made. */
#define QUIET_MS 5
#define NEXT_MS 1 /* after another, if it still is */

/* What has been under way for longer than this keeps nobody else from getting a zygote. */
#define PUT_OFF_MS 1000

/* After so many births in a row that came to nothing a template gets no more. */
#define FAILURES_MAX 3

static void arm_refill(struct spawner *spawner, uint64_t after_ms);

/* ---- one ------------------------------------------------------------------------------ */

void zygote_free(struct zygote *zygote)
{
	struct spawner *spawner = zygote->template->spawner;

	loop_remove(&spawner->loop, &zygote->report_source);
	reportin_deinit(&zygote->report);
	auto_close(&zygote->socket_fd);
	auto_close(&zygote->go_fd);
	native_set_deinit(&zygote->set);
	if (spawner->ending) {
		child_signal(&zygote->child, SIGKILL);
		child_forget(&spawner->children, &zygote->child);
	}
	stray_take(spawner, &zygote->child, zygote->template->identity.uid, "zygote", 0);
	free(zygote);
}

/* Out of the pool, the caller's. */
static void zygote_unlink(struct zygote *zygote)
{
	struct template *template = zygote->template;
	struct zygotes *zygotes = &template->spawner->zygotes;
	struct zygote **at = &template->zygotes.first;

	while (*at != zygote)
		at = &(*at)->next;
	*at = zygote->next;
	template->zygotes.count--;
	zygotes->count--;
	zygotes->ready -= zygote->ready;
	templatecopy_count(template);
}

static void zygote_drop(struct zygote *zygote)
{
	zygote_unlink(zygote);
	zygote_free(zygote);
}

/* It came to nothing, or somebody killed it: no other one before there is a job again. */
static void zygote_lost(struct zygote *zygote)
{
	struct zygotes_of *of = &zygote->template->zygotes;

	if (!zygote->ready)
		of->failures++;
	of->hot = false;
	zygote_drop(zygote);
}

static void on_zygote_exit(int status, void *arg)
{
	struct zygote *zygote = arg;

	(void)status;
	zygote_lost(zygote);
}

static void on_zygote_report(const struct report_message *report, void *arg)
{
	struct zygote *zygote = arg;

	if (report->kind != REPORT_BUILT || zygote->ready) {
		if (report->kind == REPORT_FAILED)
			/* That the host changed meanwhile is what its jobs will find, too. */
			log_write(job_is_stale(&report->u.failure) ? LOG_DEBUG : LOG_WARNING,
				  "a zygote of user %u cannot be made: %s: %s",
				  zygote->template->identity.uid, report->u.failure.stage,
				  quote(report->u.failure.message).text);
		/* It ends, or pretends to be another: it is dropped by who reads. */
		reportin_deinit(&zygote->report);
		return;
	}
	zygote->ready = true;
	templatecopy_more(zygote->template);
	zygote->template->zygotes.failures = 0;
	zygote->template->spawner->zygotes.ready++;
}

static void on_zygote_readable(uint32_t events, void *arg)
{
	struct zygote *zygote = arg;
	struct spawner *spawner = zygote->template->spawner;
	struct error err = ERROR_INIT;
	enum reportin_result result = reportin_read(&zygote->report, &err);

	(void)events;
	if (zygote->report.fd < 0 || result == REPORTIN_END || result == REPORTIN_GARBAGE)
		zygote_lost(zygote);
	arm_refill(spawner, NEXT_MS);
}

/* ---- making them ---------------------------------------------------------------------- */

static size_t count_of_user(const struct spawner *spawner, uid_t uid)
{
	size_t count = 0;

	for (const struct template *at = spawner->templates.first; at; at = at->next)
		if (at->identity.uid == uid)
			count += at->zygotes.count;
	return count;
}

static bool may_have_more(const struct template *template)
{
	const struct spawner *spawner = template->spawner;
	const struct zygotes_of *of = &template->zygotes;

	return template->state == TEMPLATE_READY && of->hot && of->inherit &&
	       of->failures < FAILURES_MAX && of->count < spawner->config.host.zygotes &&
	       spawner->zygotes.count < LIMIT_ZYGOTES && template->mem.plan.net != NET_HOST &&
	       template->copies.base <= TEMPLATE_COPY_MOUNTS_MAX &&
	       spawner->templates.mounts + template->copies.base <=
		       spawner->config.host.template_cache_mounts &&
	       count_of_user(spawner, template->identity.uid) < LIMIT_ZYGOTES_PER_UID;
}

static int zygote_main(void *arg)
{
	builder_run_zygote(arg);
}

/* The process, from INPUT, which lacks what is made here. */
static int zygote_fork(struct zygote *zygote, struct builder_input *input, struct error *err)
{
	struct template *template = zygote->template;
	struct spawner *spawner = template->spawner;
	AUTO(auto_close) int copy_fd = templatecopy_take(template);
	int r = 0;

	(void)netpool_take(&spawner->netpool, &zygote->set);
	input->shared_fd = template->mem.shared_fd;
	input->builder_pidfd = template->builder.pidfd;
	input->namespaces = (struct native_namespaces){
		.user_ns_fd = -1,
		.mount_ns_fd = copy_fd >= 0 ? copy_fd : template->mount_ns_fd,
		.is_copy = copy_fd >= 0,
		.set = zygote->set,
	};
	if ((r = templatemem_lend(&template->mem, true, err)) < 0 ||
	    (r = child_clone(&spawner->children, &zygote->child, CLONE_NEWPID, zygote_main, input,
			     on_zygote_exit, zygote, err)) < 0)
		return r;
	return templatemem_lend(&template->mem, false, err);
}

static int zygote_start(struct zygote *zygote, struct error *err)
{
	struct template *template = zygote->template;
	struct spawner *spawner = template->spawner;
	const struct inherit inherit = *template->zygotes.inherit; /* not shared with the child */
	AUTO(auto_close) int their_socket_fd = -1;
	AUTO(auto_close) int their_report_fd = -1;
	AUTO(auto_close) int their_go_fd = -1;
	struct builder_input input = {
		.plan = &template->mem.plan,
		.identity = &template->identity,
		.mode = spawner->mode,
		.engine = ENGINE_NATIVE,
		.egress_fd = -1,
		.result_fd = -1,
		.switch_ids = true,
		.inherit = &inherit,
		.guard = { .order_fd = -1 },
	};
	int report_fd = -1;
	int ends[2];
	int r = 0;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return error_set(err, ERR_SYSTEM, errno, "socketpair");
	zygote->socket_fd = ends[0];
	their_socket_fd = ends[1];
	if (shutdown(ends[0], SHUT_RD) < 0)
		return error_set(err, ERR_SYSTEM, errno, "shutdown");
	r = child_pipe(&report_fd, &their_report_fd, CHILD_PIPE_READ_OURS, err);
	reportin_init_take(&zygote->report, report_fd, on_zygote_report, zygote);
	if (r < 0 ||
	    (r = child_pipe(&their_go_fd, &zygote->go_fd, CHILD_PIPE_WRITE_OURS, err)) < 0 ||
	    (r = loop_add(&spawner->loop, &zygote->report_source, report_fd, EPOLLIN,
			  on_zygote_readable, zygote, err)) < 0)
		return r;
	input.channel_fd = their_socket_fd;
	input.report_fd = their_report_fd;
	input.go_fd = their_go_fd;
	return zygote_fork(zygote, &input, err);
}

static void zygote_make(struct template *template)
{
	struct zygote *zygote = calloc(1, sizeof(*zygote));
	struct zygote **last = &template->zygotes.first;
	struct error err = ERROR_INIT;

	if (!zygote)
		return;
	*zygote = (struct zygote){ .template = template,
				   .child = CHILD_INIT,
				   .socket_fd = -1,
				   .go_fd = -1,
				   .set = NATIVE_SET_INIT,
				   .report = REPORTIN_INIT,
				   .report_source = LOOP_SOURCE_INIT,
				   .born_ms = loop_now_ms() };
	if (zygote_start(zygote, &err) < 0) {
		log_failure(&err, "a zygote for user %u", template->identity.uid);
		template->zygotes.failures++;
		zygote_free(zygote);
		return;
	}
	/* Behind the others: the oldest is taken first. */
	while (*last)
		last = &(*last)->next;
	*last = zygote;
	template->zygotes.count++;
	template->spawner->zygotes.count++;
	templatecopy_count(template);
}

/* ---- when ----------------------------------------------------------------------------- */

/* Whether a job is under way to its command. */
static bool somebody_waits(const struct spawner *spawner)
{
	for (size_t i = 0; i < SPAWNER_JOB_BUCKETS; i++)
		for (const struct job *job = spawner->jobs[i]; job; job = job->next)
			if (job->state == JOB_OPEN || job->state == JOB_STARTING)
				return true;
	return false;
}

static void on_expiry(void *arg);

static void arm_expiry(struct spawner *spawner)
{
	uint64_t oldest_ms = UINT64_MAX;
	uint64_t age_ms = 0;

	for (const struct template *at = spawner->templates.first; at; at = at->next)
		for (const struct zygote *zygote = at->zygotes.first; zygote; zygote = zygote->next)
			if (zygote->born_ms < oldest_ms)
				oldest_ms = zygote->born_ms;
	if (oldest_ms == UINT64_MAX)
		return;
	age_ms = loop_now_ms() - oldest_ms;
	loop_arm(&spawner->loop, &spawner->zygotes.expiry,
		 age_ms < LIMIT_ZYGOTE_IDLE_MS ? LIMIT_ZYGOTE_IDLE_MS - age_ms : 0, on_expiry,
		 spawner);
}

/* One that is not ready by then has been hanging. */
static void on_expiry(void *arg)
{
	struct spawner *spawner = arg;
	const uint64_t now_ms = loop_now_ms();

	for (struct template *at = spawner->templates.first; at; at = at->next) {
		struct zygote *next = NULL;

		for (struct zygote *zygote = at->zygotes.first; zygote; zygote = next) {
			next = zygote->next;
			if (now_ms - zygote->born_ms < LIMIT_ZYGOTE_IDLE_MS)
				continue;
			spawner->zygotes.expired++;
			zygote_drop(zygote);
			at->zygotes.hot = false;
		}
	}
	arm_expiry(spawner);
}

static void on_quiet(void *arg)
{
	struct spawner *spawner = arg;
	struct zygotes *zygotes = &spawner->zygotes;
	const uint64_t now_ms = loop_now_ms();
	if (zygotes->count > zygotes->ready)
		return; /* the one that is being born comes back here */
	if (zygotes->put_off_ms == 0)
		zygotes->put_off_ms = now_ms;
	if (now_ms - zygotes->put_off_ms < PUT_OFF_MS && somebody_waits(spawner)) {
		arm_refill(spawner, QUIET_MS);
		return;
	}
	zygotes->put_off_ms = 0;
	for (struct template *at = spawner->templates.first; at; at = at->next) {
		if (!may_have_more(at))
			continue;
		zygote_make(at);
		if (!zygotes->expiry.armed)
			arm_expiry(spawner);
		return;
	}
}

static void arm_refill(struct spawner *spawner, uint64_t after_ms)
{
	loop_arm(&spawner->loop, &spawner->zygotes.refill, after_ms, on_quiet, spawner);
}

/* ---- for templates and jobs ----------------------------------------------------------- */

static bool remember(struct zygotes_of *of, const struct inherit *inherit)
{
	/* It is one user's, and no child's but its own zygotes'. */
	if (!of->inherit)
		of->inherit = unshared_new(sizeof(*of->inherit));
	if (of->inherit)
		*of->inherit = *inherit;
	return of->inherit != NULL;
}

void zygotes_note(struct template *template, const struct inherit *inherit)
{
	struct zygotes_of *of = &template->zygotes;
	const uint64_t now_ms = loop_now_ms();
	of->hot = of->inherit && now_ms - of->used_ms < HOT_MS;
	of->used_ms = now_ms;
	if (of->inherit && inherit_equal(of->inherit, inherit))
		return;
	template->spawner->zygotes.refused += of->count;
	zygotes_drop(template);
	if (!remember(of, inherit))
		of->hot = false;
}

void zygotes_refill(struct template *template)
{
	if (template->zygotes.hot)
		arm_refill(template->spawner, QUIET_MS);
}

/* By its user, whose process it is: SIGCONT may come, or never. */
static bool is_stopped(const struct zygote *zygote)
{
	siginfo_t info = { .si_pid = 0 };

	return waitid(P_PIDFD, (id_t)zygote->child.pidfd, &info, WSTOPPED | WNOHANG | WNOWAIT) ==
		       0 &&
	       info.si_pid != 0;
}

struct zygote *zygotes_take(struct template *template)
{
	struct zygote *next = NULL;

	for (struct zygote *zygote = template->zygotes.first; zygote; zygote = next) {
		next = zygote->next;
		if (!zygote->ready)
			continue;
		zygote_unlink(zygote);
		if (pidfd_alive(zygote->child.pidfd) && !is_stopped(zygote))
			return zygote;
		template->spawner->zygotes.refused++;
		zygote_free(zygote);
	}
	return NULL;
}

void zygotes_drop(struct template *template)
{
	while (template->zygotes.first)
		zygote_drop(template->zygotes.first);
}

void zygotes_drop_user(struct spawner *spawner, uid_t uid)
{
	for (struct template *at = spawner->templates.first; at; at = at->next)
		if (at->identity.uid == uid)
			zygotes_drop(at);
}

void zygotes_deinit(struct template *template)
{
	zygotes_drop(template);
	unshared_free(template->zygotes.inherit, sizeof(*template->zygotes.inherit));
	template->zygotes.inherit = NULL;
}
