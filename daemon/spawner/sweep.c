/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/spawner/sweep.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/scope.h"
#include "daemon/log.h"
#include "daemon/spawner/placeholder.h"
#include "daemon/spawner/spawner.h"
#include "daemon/spawner/stray.h"

/* What the child says about each placeholder: one byte, in order. */
enum sweep_verdict { SWEEP_REMOVED = 1, SWEEP_LEFT, SWEEP_KEEP };

/* One byte each must fit a pipe that nobody reads until the child has ended. */
#define SWEEP_MOST 4096

/* @said_fd  reading end of the child's pipe */
struct sweep {
	struct spawner *spawner;
	uint64_t job;
	struct identity identity;
	struct report_placeholder *placeholders;
	size_t count;
	int said_fd;
	struct child child;
	struct loop_timer timer;
	sweep_done_fn *done;
	void *arg;
};

struct sweep_birth {
	const struct sweep *sweep;
	int say_fd;
};

/* In the child. Nothing of fsboxd's may reach the user's hands: it has become not dumpable. */
static int sweep_main(void *arg)
{
	const struct sweep_birth *birth = arg;
	const struct sweep *sweep = birth->sweep;

	if (child_arrange_fds(&birth->say_fd, 1, false, NULL) < 0 || chdir("/") < 0 ||
	    identity_become(&sweep->identity, NULL) < 0)
		return 1;
	for (size_t i = 0; i < sweep->count && i < SWEEP_MOST; i++) {
		int r = placeholder_remove(&sweep->placeholders[i], NULL);
		uint8_t verdict = r > 0 ? SWEEP_REMOVED : r == 0 ? SWEEP_LEFT : SWEEP_KEEP;

		if (write(CHILD_FIRST_FD, &verdict, 1) != 1)
			return 1;
	}
	return 0;
}

static void keep(struct sweep *sweep, const struct report_placeholder *placeholder)
{
	struct error err = ERROR_INIT;

	if (ledger_keep(sweep->spawner->ledger, sweep->identity.uid, placeholder, &err) < 0)
		log_failure(&err, "placeholder '%s' stays", placeholder->path);
}

static void record_left(struct sweep *sweep, const struct report_placeholder *placeholder)
{
	struct event_message event = { .job = sweep->job, .uid = sweep->identity.uid };

	(void)snprintf(event.detail, sizeof(event.detail), "%.*s", (int)sizeof(event.detail) - 1,
		       placeholder->path);
	recorderlink_send(&sweep->spawner->recorder, EVENT_PLACEHOLDER_LEFT, &event);
}

/* Take what was said so far; what nothing was said about is kept for another time. */
static void settle(struct sweep *sweep)
{
	uint8_t verdicts[SWEEP_MOST];
	ssize_t got = read(sweep->said_fd, verdicts, sizeof(verdicts));
	size_t said = got > 0 ? (size_t)got : 0;

	for (size_t i = 0; i < sweep->count; i++) {
		if (i >= said || verdicts[i] == SWEEP_KEEP)
			keep(sweep, &sweep->placeholders[i]);
		else if (verdicts[i] == SWEEP_LEFT)
			record_left(sweep, &sweep->placeholders[i]);
	}
}

static void sweep_end(struct sweep *sweep)
{
	sweep_done_fn *done = sweep->done;
	void *arg = sweep->arg;

	settle(sweep);
	loop_disarm(&sweep->spawner->loop, &sweep->timer);
	stray_take(sweep->spawner, &sweep->child, sweep->identity.uid, "removal of placeholders",
		   0);
	if (sweep->said_fd >= 0)
		(void)close(sweep->said_fd);
	free(sweep->placeholders);
	free(sweep);
	done(arg);
}

static void on_exit_of_sweep(int status, void *arg)
{
	(void)status;
	sweep_end(arg);
}

static void on_timeout(void *arg)
{
	sweep_end(arg);
}

static int start_child(struct sweep *sweep, struct error *err)
{
	AUTO(auto_close) int said_fd = -1;
	AUTO(auto_close) int say_fd = -1;
	struct sweep_birth birth = { .sweep = sweep };
	int ends[2];
	int r = 0;

	if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
		return error_set(err, ERR_SYSTEM, errno, "pipe");
	said_fd = ends[0];
	say_fd = ends[1];
	birth.say_fd = say_fd;
	r = child_start(&sweep->spawner->children, &sweep->child, sweep_main, &birth,
			on_exit_of_sweep, sweep, err);
	if (r < 0)
		return r;
	sweep->said_fd = steal_fd(&said_fd);
	return 0;
}

void sweep_start_take(struct spawner *spawner, uint64_t job, const struct identity *identity,
		      struct report_placeholder *placeholders, size_t count, sweep_done_fn *done,
		      void *arg)
{
	struct error err = ERROR_INIT;
	struct sweep *sweep = calloc(1, sizeof(*sweep));

	if (!sweep) {
		log_write(LOG_ERROR, "%zu placeholders of job %llu stay: no memory", count,
			  (unsigned long long)job);
		free(placeholders);
		done(arg);
		return;
	}
	*sweep = (struct sweep){
		.spawner = spawner,
		.job = job,
		.identity = *identity,
		.placeholders = placeholders,
		.count = count,
		.said_fd = -1,
		.child = CHILD_INIT,
		.done = done,
		.arg = arg,
	};
	if (start_child(sweep, &err) < 0) {
		log_failure(&err, "remove the placeholders of job %llu", (unsigned long long)job);
		sweep_end(sweep);
		return;
	}
	loop_arm(&spawner->loop, &sweep->timer, LIMIT_TEARDOWN_MS, on_timeout, sweep);
}
