/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/spawner/zygotejob.h"

#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>

#include "common/limits.h"
#include "common/scope.h"
#include "daemon/log.h"
#include "daemon/spawner/builder.h"
#include "daemon/spawner/job.h"
#include "daemon/spawner/jobproc.h"
#include "daemon/spawner/jobtime.h"
#include "daemon/spawner/quote.h"
#include "daemon/spawner/spawner.h"
#include "daemon/spawner/template.h"
#include "daemon/spawner/zygote.h"
#include "proto/wire/zygoteop.h"

/* What JOB has of its own goes to ZYGOTE. Fails with ERR_SYSTEM: it is no use. */
static int tell(const struct job *job, const struct zygote *zygote,
		const struct builder_guard *guard, struct error *err)
{
	struct builder_input net = { .egress_fd = -1 };
	struct zygote_message message = {
		.flags = (job->start.detached ? SETUP_DETACHED : 0) |
			 (job->grant != 0 ? SETUP_GRANTED : 0),
	};
	int fds[ZYGOTE_FD_COUNT] = { job->channel_fd, -1, guard->order_fd, job->file_fd };

	jobnet_lend(job, &net);
	if (builder_has_egress(&net))
		fds[1] = net.egress_fd;
	if (net.net.proxy)
		message.flags |= SETUP_PROXY;
	message.forward_count = net.net.forward_count;
	memcpy(message.forwards, net.net.forwards, sizeof(message.forwards));
	if (guard->order_fd >= 0) {
		message.guard_plan = guard->plan;
		message.job = guard->job;
		message.guard_flags = guard->flags;
	}
	if (job->grant != 0)
		message.grant = job->terms;
	return zygote_message_send(zygote->socket_fd, &message, fds, err);
}

/*
 * Not a moment longer than an ordinary start would take on a busy machine. It may be at work by now, and its end
 * shows that: all that it said is read before, and only one that had not taken the job up is replaced.
 */
static void on_no_answer(void *arg)
{
	struct job *job = arg;
	struct pollfd said = { .fd = job->report.fd, .events = POLLIN };

	if (poll(&said, 1, 0) > 0) { /* we are the ones who are late */
		loop_arm(&job->spawner->loop, &job->timer, LIMIT_ZYGOTE_ANSWER_MS, on_no_answer,
			 job);
		return;
	}
	log_write(LOG_WARNING, "a zygote of user %u does not answer", job->identity.uid);
	jobtime_setup(job);
	child_signal(&job->leader, SIGKILL);
}

int zygotejob_start(struct job *job, const struct inherit *inherit, struct error *err)
{
	struct spawner *spawner = job->spawner;
	struct builder_guard guard;
	struct zygote *zygote = NULL;
	int r = 0;

	if (spawner->config.host.zygotes == 0 || spawner->mode == MODE_USER)
		return 0;
	zygotes_note(job->template, inherit);
	zygote = job->no_zygote ? NULL : zygotes_take(job->template);
	if (!zygote)
		return 0;
	guardlink_begin(job, job->template->guard, &guard);
	if ((job->template->guard && guard.order_fd < 0) || tell(job, zygote, &guard, NULL) < 0) {
		spawner->zygotes.refused++;
		zygote_free(zygote);
		return 0;
	}
	jobnet_lent(job);
	job->zygote = true;
	r = jobproc_start_in(job, zygote, err);
	netpool_give_back(&spawner->netpool, &zygote->set);
	zygote_free(zygote);
	if (r < 0) {
		child_signal(&job->leader, SIGKILL);
		return r;
	}
	loop_arm(&spawner->loop, &job->timer, LIMIT_ZYGOTE_ANSWER_MS, on_no_answer, job);
	return 1;
}

void zygotejob_up(struct job *job)
{
	job->zygote = false;
	job->spawner->zygotes.used++;
	jobtime_setup(job);
}

void zygotejob_refused(struct job *job, const struct failure *why)
{
	log_write(LOG_DEBUG, "a zygote of user %u is of no use: %s", job->identity.uid,
		  quote(why->message).text);
	/* What it saw the others will see, too. */
	zygotes_drop(job->template);
}

void zygotejob_again(struct job *job)
{
	job->spawner->zygotes.refused++;
	job->zygote = false;
	job->no_zygote = true;
	loop_disarm(&job->spawner->loop, &job->timer);
	child_signal(&job->leader, SIGKILL);
	jobproc_release(job);
	job->leader_gone = false;
	job_template_ready(job);
}
