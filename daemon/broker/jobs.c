/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/broker/jobs.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/scope.h"
#include "daemon/broker/broker.h"
#include "daemon/broker/client.h"
#include "daemon/broker/spawn.h"
#include "daemon/broker/spawnfacts.h"
#include "daemon/log.h"

static void arm(struct job *job, unsigned ms)
{
	struct timeval timeout = { .tv_sec = ms / 1000,
				   .tv_usec = (suseconds_t)(ms % 1000) * 1000 };

	(void)event_add(job->clock, &timeout);
}

static void close_channel(struct job *job)
{
	if (job->channel_event != NULL)
		event_free(job->channel_event);
	job->channel_event = NULL;
	auto_close(&job->channel);
	job->channel = -1;
}

void jobs_keep_policy(struct job *job, struct built *built)
{
	struct jobs *jobs = &job->broker->jobs;
	const struct policy *policy = &built->build.policy;

	if (jobs->rules_kept + policy->rules.count > JOBS_RULES_KEPT)
		return;
	job->built = built_ref(built);
	job->policy = policy;
	jobs->rules_kept += policy->rules.count;
}

static void drop_policy(struct job *job)
{
	if (job->policy == NULL)
		return;
	job->broker->jobs.rules_kept -= job->policy->rules.count;
	job->policy = NULL;
	job->built = built_unref(job->built);
}

/* Out of the list and gone; waiters must have been answered. */
static void job_free(struct job *job)
{
	struct jobs *jobs = &job->broker->jobs;
	struct job **at = &jobs->first;
	union method_result facts = { .inspect = job->facts };

	while (*at != NULL && *at != job)
		at = &(*at)->next;
	if (*at == job) {
		*at = job->next;
		if (job->phase == JOB_PHASE_ENDED)
			jobs->ended--;
		else
			jobs->active--;
	}
	close_channel(job);
	drop_policy(job);
	if (job->clock != NULL)
		event_free(job->clock);
	method_result_deinit(METHOD_INSPECT, &facts);
	guardnews_deinit(&job->guard);
	explicit_bzero(job->cookie, sizeof(job->cookie));
	free(job);
}

/* ---- the end ---------------------------------------------------------------------------- */

static void answer_waiter(struct job *job, struct call *call)
{
	union method_result result;

	method_result_init(METHOD_WAIT, &result);
	wait_result_from_record(&result.wait, job->id, &job->exited);
	guardnews_fill(&job->guard, &result.wait);
	call_result(call, &result);
	method_result_deinit(METHOD_WAIT, &result);
}

/* The one that ended first. */
static void forget_oldest(struct jobs *jobs)
{
	struct job *oldest = NULL;

	for (struct job *job = jobs->first; job != NULL; job = job->next) {
		if (job->phase == JOB_PHASE_ENDED &&
		    (oldest == NULL || job->ended_as < oldest->ended_as))
			oldest = job;
	}
	if (oldest != NULL)
		job_free(oldest);
}

/* Nothing of the job runs any more, and job->exited is how that came: tell everybody. */
static void finish(struct job *job)
{
	struct broker *broker = job->broker;
	struct wait_result exited = { 0 };

	job->phase = JOB_PHASE_ENDED;
	job->facts.job.state = JOB_ENDING;
	broker->jobs.active--;
	broker->jobs.ended++;
	job->ended_as = ++broker->jobs.last_ended;
	close_channel(job);
	drop_policy(job);
	wait_result_from_record(&exited, job->id, &job->exited);
	guardnews_fill(&job->guard, &exited);
	if (job->client != NULL)
		client_notify_exited(job->client, &exited);
	wait_result_deinit(&exited);
	job->client = NULL;
	while (job->waiters != NULL) {
		struct job_waiter *waiter = job->waiters;
		struct call *call = waiter->call;

		job->waiters = waiter->next;
		free(waiter);
		call->on_gone = NULL;
		answer_waiter(job, call);
	}
	arm(job, JOB_KEPT_MS);
	if (broker->jobs.ended > JOBS_KEPT)
		forget_oldest(&broker->jobs);
	broker_touch(broker);
}

/* Over, as RECORD says; RECORD of a job that is still being started waits for job_started(). */
static void job_over(struct job *job, const struct exit_record *record)
{
	/* fsboxd knows no better than "lost" what init told us exactly. */
	if (record != NULL && !(job->reported && record->reason == EXIT_LOST))
		job->exited = *record;
	job->over = true;
	if (job->phase == JOB_PHASE_RUNNING)
		finish(job);
}

static void clock_rings(evutil_socket_t fd, short what, void *arg)
{
	struct job *job = arg;

	(void)fd;
	(void)what;
	if (job->phase == JOB_PHASE_ENDED)
		job_free(job);
	else if (job->failed && job->spawn != NULL)
		spawn_on_failed(job->spawn, &job->failure);
	else if (job->reported)
		job_over(job, NULL);
}

/* ---- the channel to init ---------------------------------------------------------------- */

/* The size of a message, 0 at the end, -1 with errno (EAGAIN: nothing now). */
static ssize_t receive(struct job *job, struct report_message *report, int *ret_fd)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int) * 2)];
		struct cmsghdr align;
	} control;
	struct iovec iov = { .iov_base = report, .iov_len = sizeof(*report) };
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		.msg_controllen = sizeof(control.bytes),
	};
	ssize_t n;

	*ret_fd = -1;
	do
		n = recvmsg(job->channel, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n <= 0)
		return n;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&msg); c != NULL; c = CMSG_NXTHDR(&msg, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t i = 0; i < (c->cmsg_len - CMSG_LEN(0)) / sizeof(int); i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(int));
			if (*ret_fd < 0)
				*ret_fd = fd;
			else
				(void)close(fd);
		}
	}
	return n;
}

static void on_report(struct job *job, const struct report_message *report, int *fd)
{
	switch ((enum report_kind)report->kind) {
	case REPORT_STARTED:
		if (job->spawn != NULL)
			spawn_on_started(job->spawn, steal_fd(fd));
		break;
	case REPORT_FAILED:
		/* fsboxd says the same once nothing of the job is left. */
		if (job->phase != JOB_PHASE_STARTING || job->failed)
			break;
		job->failed = true;
		job->failure = report->u.failure;
		arm(job, job->broker->link.down ? 0 : LIMIT_TEARDOWN_MS);
		break;
	case REPORT_EXITED:
		if (job->reported || job->over)
			break;
		job->reported = true;
		job->exited = report->u.exited;
		if (job->broker->link.down)
			job_over(job, NULL);
		else
			arm(job, LIMIT_TEARDOWN_MS);
		break;
	case REPORT_PLACEHOLDER_INTENT:
	case REPORT_PLACEHOLDER_MADE:
	case REPORT_PLACEHOLDER_SKIPPED:
	case REPORT_PID1_UP:
	case REPORT_BUILT:
	case REPORT_MASK_REPAIRED:
	case REPORT_MASK_LOST:
	case REPORT_NAME_APPEARED:
	case REPORT_GUARD_WATCHES:
	case REPORT_GUARD_DONE:
	case REPORT_GUARD_HOLDS:
	case REPORT_MASK_GONE:
	case REPORT_KIND_COUNT:
		break; /* for fsboxd */
	}
}

static void channel_closed(struct job *job)
{
	static const struct exit_record lost = { .reason = EXIT_LOST };
	static const char died[] = "fsboxd died while the job was started";

	close_channel(job);
	if (!job->broker->link.down || job->over)
		return; /* fsboxd will say what became of it */
	if (job->phase == JOB_PHASE_STARTING && !job->failed) {
		job->failed = true;
		memset(&job->failure, 0, sizeof(job->failure));
		job->failure.kind = ERR_UNREACHABLE;
		memcpy(job->failure.message, died, sizeof(died));
		arm(job, 0);
	} else if (job->phase == JOB_PHASE_RUNNING && !job->reported) {
		job_over(job, &lost);
	}
}

/* Everything that init said until now. */
static void drain(struct job *job)
{
	while (job->channel >= 0) {
		struct report_message report;
		struct error err = ERROR_INIT;
		int fd = -1;
		ssize_t n = receive(job, &report, &fd);

		if (n < 0 && errno == EAGAIN)
			return;
		if (n > 0 && report_message_check(&report, (size_t)n, &err) == 0) {
			on_report(job, &report, &fd);
			auto_close(&fd);
			if (job->phase == JOB_PHASE_ENDED)
				return;
			continue;
		}
		auto_close(&fd);
		if (n > 0)
			log_failure(&err, "job %llu: its init", (unsigned long long)job->id);
		channel_closed(job);
	}
}

static void channel_readable(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	drain(arg);
}

/* ---- life ------------------------------------------------------------------------------- */

int job_new_take(struct broker *broker, uint64_t id, int channel, struct client *client,
		 struct spawn *spawn, struct job **ret_job, struct error *err)
{
	struct job *job = calloc(1, sizeof(*job));
	union method_result facts;
	int r;

	if (job == NULL) {
		(void)close(channel);
		return error_set(err, ERR_NOMEM, ENOMEM, "a job");
	}
	job->broker = broker;
	job->id = id;
	job->phase = JOB_PHASE_STARTING;
	job->client = client;
	job->spawn = spawn;
	job->channel = channel;
	method_result_init(METHOD_INSPECT, &facts);
	job->facts = facts.inspect;
	job->channel_event =
		event_new(broker->base, channel, EV_READ | EV_PERSIST, channel_readable, job);
	job->clock = event_new(broker->base, -1, 0, clock_rings, job);
	r = cookie_make(job->cookie, job->cookie_hash, err);
	if (r == 0 && (job->channel_event == NULL || job->clock == NULL ||
		       event_add(job->channel_event, NULL) < 0))
		r = error_set(err, ERR_NOMEM, ENOMEM, "a job");
	job->next = broker->jobs.first;
	broker->jobs.first = job;
	broker->jobs.active++;
	if (r < 0) {
		job_free(job);
		return r;
	}
	*ret_job = job;
	broker_touch(broker);
	return 0;
}

int jobs_adopt(struct broker *broker, uint64_t id, const struct link_job_found *found,
	       struct error *err)
{
	struct job *job = calloc(1, sizeof(*job));
	union method_result facts;
	int r;

	if (job == NULL)
		return error_set(err, ERR_NOMEM, ENOMEM, "a job");
	job->broker = broker;
	job->id = id;
	job->adopted = true;
	job->phase = JOB_PHASE_RUNNING;
	job->channel = -1;
	job->has_lifeline = true; /* init has it, or it was detached */
	job->guard.repaired = found->repaired;
	memcpy(job->cookie_hash, found->cookie_hash, sizeof(job->cookie_hash));
	method_result_init(METHOD_INSPECT, &facts);
	job->facts = facts.inspect;
	job->clock = event_new(broker->base, -1, 0, clock_rings, job);
	r = job->clock == NULL ? error_set(err, ERR_NOMEM, ENOMEM, "a job")
			       : spawnfacts_found(id, found, &job->facts, err);
	job->next = broker->jobs.first;
	broker->jobs.first = job;
	broker->jobs.active++;
	if (r < 0)
		job_free(job);
	else if (found->is_over)
		job_over(job, &found->ended);
	broker_touch(broker);
	return r;
}

void job_started(struct job *job)
{
	job->phase = JOB_PHASE_RUNNING;
	job->facts.job.state = JOB_RUNNING;
	job->spawn = NULL;
	if (job->over)
		finish(job);
	else if (job->client == NULL && !job->facts.job.detached && !job->has_lifeline)
		job_kill(job); /* whoever asked for it left while it was being started */
}

void job_drop(struct job *job)
{
	struct broker *broker = job->broker;

	job_free(job);
	broker_touch(broker);
}

struct job *jobs_find(struct broker *broker, uint64_t id)
{
	struct job *job = broker->jobs.first;

	while (job != NULL && job->id != id)
		job = job->next;
	return job;
}

int jobs_find_for(struct broker *broker, uint64_t id, const char *cookie, struct job **ret_job,
		  struct error *err)
{
	struct job *job = jobs_find(broker, id);

	if (job == NULL || job->phase == JOB_PHASE_STARTING ||
	    (cookie != NULL && !cookie_fits(job->cookie_hash, cookie)))
		return error_set(err, ERR_JOB_UNKNOWN, 0, "job %llu", (unsigned long long)id);
	*ret_job = job;
	return 0;
}

static void waiter_gone(struct call *call)
{
	struct job_waiter *gone = call->work;
	struct job_waiter **at = &gone->job->waiters;
	struct error err = ERROR_INIT;

	while (*at != gone)
		at = &(*at)->next;
	*at = gone->next;
	free(gone);
	(void)error_set(&err, ERR_UNREACHABLE, 0, "the client is gone");
	call_error(call, &err);
}

void job_wait(struct job *job, struct call *call)
{
	struct job_waiter *waiter;
	struct error err = ERROR_INIT;

	if (job->phase == JOB_PHASE_ENDED) {
		answer_waiter(job, call);
		return;
	}
	waiter = calloc(1, sizeof(*waiter));
	if (waiter == NULL) {
		(void)error_set(&err, ERR_NOMEM, ENOMEM, "wait");
		call_error(call, &err);
		return;
	}
	waiter->call = call;
	waiter->job = job;
	waiter->next = job->waiters;
	job->waiters = waiter;
	call->work = waiter;
	call->on_gone = waiter_gone;
}

void job_kill(struct job *job)
{
	struct op_message op;
	struct error err = ERROR_INIT;

	spawnlink_op_init(&op, OP_JOB_SIGNAL);
	op.job = job->id;
	op.conn = job->client != NULL ? job->client->number : 0;
	op.u.signal.signo = SIGKILL;
	if (spawnlink_ask(&job->broker->link, &op, NULL, NULL, NULL, &err) < 0)
		log_failure(&err, "kill job %llu", (unsigned long long)job->id);
}

/* ---- news ------------------------------------------------------------------------------- */

void jobs_on_link(struct broker *broker, const struct link_message *message)
{
	struct job *job = jobs_find(broker, message->job);

	/* Not ours: dropped meanwhile. */
	if (job == NULL || job->phase == JOB_PHASE_ENDED)
		return;
	switch ((enum link_kind)message->kind) {
	case LINK_JOB_UP:
		job->facts.job.pid = message->u.up.pid;
		if (job->spawn != NULL)
			spawn_on_up(job->spawn);
		break;
	case LINK_JOB_FAILED:
		drain(job);
		if (job->spawn != NULL)
			spawn_on_failed(job->spawn,
					job->failed ? &job->failure : &message->u.failure);
		break;
	case LINK_JOB_ENDED:
		/* What init said before counts: that it started, how it ended. */
		drain(job);
		if (job->phase == JOB_PHASE_STARTING && job->spawn != NULL)
			spawn_on_ended(job->spawn);
		job_over(job, &message->u.ended);
		break;
	case LINK_JOB_GUARD:
		guardnews_take(&job->guard, &message->u.guard);
		break;
	case LINK_CONFIG:
	case LINK_CONN:
	case LINK_JOB_OPENED:
	case LINK_JOB_ENTRY:
	case LINK_DONE:
	case LINK_ERROR:
	case LINK_STATUS:
	case LINK_JOB_FOUND:
	case LINK_EVENTS:
	case LINK_GRANT:
	case LINK_GRANT_ENTRY:
	case LINK_LEDGER_ENTRY:
	case LINK_LEDGER:
	case LINK_KIND_COUNT:
		break;
	}
}

/* Nobody here can say any more how JOB, which others started, ends: the next fsboxd can. */
static void let_go(struct job *job)
{
	struct error err = ERROR_INIT;

	(void)error_set(&err, ERR_UNREACHABLE, 0, "fsboxd is gone; ask the next one");
	while (job->waiters != NULL) {
		struct job_waiter *waiter = job->waiters;
		struct call *call = waiter->call;

		job->waiters = waiter->next;
		free(waiter);
		call->on_gone = NULL;
		call_error(call, &err);
	}
	job_free(job);
}

/* From now on only init can say anything about JOB. */
static void on_link_down(struct job *job)
{
	job->link_down = true;
	if (job->phase == JOB_PHASE_ENDED)
		return;
	if (job->adopted) {
		let_go(job);
		return;
	}
	drain(job);
	if (job->phase == JOB_PHASE_ENDED)
		return;
	if (job->failed || job->reported)
		arm(job, 0);
	/* Nobody else will say so; a short job may have said all that it ever will. */
	if (job->phase == JOB_PHASE_STARTING && job->spawn != NULL && !job->failed &&
	    (job->channel >= 0 || job->reported))
		spawn_on_up(job->spawn);
	else if (job->channel < 0 && !job->failed && !job->reported)
		channel_closed(job);
}

void jobs_on_link_down(struct broker *broker)
{
	struct job *job = broker->jobs.first;

	/* From the start after each, since what is told about one may release others. */
	while (job != NULL) {
		if (job->link_down) {
			job = job->next;
			continue;
		}
		on_link_down(job);
		job = broker->jobs.first;
	}
}

void jobs_on_client_gone(struct broker *broker, struct client *client)
{
	for (struct job *job = broker->jobs.first; job != NULL; job = job->next) {
		if (job->client != client)
			continue;
		if (job->phase == JOB_PHASE_RUNNING && !job->facts.job.detached &&
		    !job->has_lifeline)
			job_kill(job);
		job->client = NULL;
	}
}

void jobs_deinit(struct broker *broker)
{
	for (struct job *job = broker->jobs.first, *next; job != NULL; job = next) {
		next = job->next;
		while (job->waiters != NULL) {
			struct job_waiter *waiter = job->waiters;

			job->waiters = waiter->next;
			free(waiter);
		}
		job_free(job);
	}
}
