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
#include "daemon/spawner/placing.h"
#include "daemon/spawner/spawner.h"
#include "daemon/spawner/stray.h"
#include "daemon/spawner/unshared.h"

/* As many as one child removes: its verdicts, a byte each, must fit a pipe that nobody reads meanwhile. */
#define BATCH 512

/* What cannot be removed is tried again: this much later, then twice as much, up to the most. */
#define RETRY_MS 30000
#define RETRY_MOST_MS 3600000
#define RETRY_MOUNTS_MS 1000

/*
 * @left     how many of those that were unneeded at the start are still to be tried
 * @taken    what the child removes now; the ledger's
 * @said_fd  reading end of the child's pipe
 */
struct sweep {
	struct spawner *spawner;
	uint64_t job;
	uid_t uid;
	bool again;
	size_t left;
	struct identity identity;
	struct placeholder *taken;
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

static void sweep_next(struct sweep *sweep);

/* In the child. Nothing of fsboxd's may reach the user's hands: it has become not dumpable. */
static int sweep_main(void *arg)
{
	const struct sweep_birth *birth = arg;
	const struct sweep *sweep = birth->sweep;

	if (child_arrange_fds(&birth->say_fd, 1, false, NULL) < 0 || chdir("/") < 0 ||
	    identity_become(&sweep->identity, NULL) < 0)
		return 1;
	for (size_t i = 0; i < sweep->count; i++) {
		int fate = placeholder_remove(&sweep->taken[i], NULL);
		uint8_t verdict = fate < 0 ? 0 : (uint8_t)fate; /* enum placeholder_fate */

		if (write(CHILD_FIRST_FD, &verdict, 1) != 1)
			return 1;
	}
	return 0;
}

static void record_left(const struct sweep *sweep, const char *path)
{
	struct event_message event = { .job = sweep->job, .uid = sweep->uid };

	(void)snprintf(event.detail, sizeof(event.detail), "%.*s", (int)sizeof(event.detail) - 1,
		       path);
	recorderlink_send(&sweep->spawner->recorder, EVENT_PLACEHOLDER_LEFT, &event);
}

/* What was said so far counts; what nothing was said about is kept for another time. */
static void settle(struct sweep *sweep)
{
	struct ledger *ledger = sweep->spawner->ledger;
	uint8_t verdicts[BATCH];
	ssize_t got = sweep->said_fd < 0 ? 0 : read(sweep->said_fd, verdicts, sizeof(verdicts));
	size_t said = got > 0 ? (size_t)got : 0;

	for (size_t i = 0; i < sweep->count; i++) {
		const char *path = sweep->taken[i].what.path;
		bool kept = i >= said || verdicts[i] == 0;

		/* Not empty, because what could not be removed yet is in it. */
		if (!kept && verdicts[i] == PLACEHOLDER_LEFT && ledger_has_below(ledger, path))
			kept = true;
		else if (!kept && verdicts[i] == PLACEHOLDER_LEFT)
			record_left(sweep, path);
		ledger_settled(ledger, sweep->uid, path, !kept);
	}
	ledger_taken_free(sweep->taken, sweep->count);
	sweep->taken = NULL;
}

static void child_over(struct sweep *sweep)
{
	settle(sweep);
	loop_disarm(&sweep->spawner->loop, &sweep->timer);
	stray_take(sweep->spawner, &sweep->child, sweep->uid, "removal of placeholders", 0);
	auto_close(&sweep->said_fd);
	sweep->said_fd = -1;
	placing_resume(sweep->spawner);
	sweep_next(sweep);
}

static void on_child_exit(int status, void *arg)
{
	(void)status;
	child_over(arg);
}

static void on_timeout(void *arg)
{
	child_over(arg);
}

static int start_child(struct sweep *sweep, struct error *err)
{
	AUTO(auto_close) int said_fd = -1;
	AUTO(auto_close) int say_fd = -1;
	struct sweep_birth birth = { .sweep = sweep };
	const size_t bytes = sweep->count * sizeof(*sweep->taken);
	int ends[2];
	int r = 0;

	if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
		return error_set(err, ERR_SYSTEM, errno, "pipe");
	said_fd = ends[0];
	say_fd = ends[1];
	birth.say_fd = say_fd;
	/* Only this child is to see whose paths these are. */
	if (!unshared_lend(sweep->taken, bytes, true))
		return error_set(err, ERR_SYSTEM, errno, "lend a list");
	r = child_start(&sweep->spawner->children, &sweep->child, sweep_main, &birth, on_child_exit,
			sweep, err);
	if (!unshared_lend(sweep->taken, bytes, false) && r == 0)
		r = error_set(err, ERR_SYSTEM, errno, "take back a list");
	if (r < 0)
		return r;
	sweep->said_fd = steal_fd(&said_fd);
	return 0;
}

static void sweep_end(struct sweep *sweep)
{
	struct spawner *spawner = sweep->spawner;
	sweep_done_fn *done = sweep->done;
	void *arg = sweep->arg;

	free(sweep);
	sweep_touch(spawner);
	if (done)
		done(arg);
}

/* The next batch, of one identity; the end when there is none, or when nothing can be begun. */
static void sweep_next(struct sweep *sweep)
{
	struct spawner *spawner = sweep->spawner;
	struct error err = ERROR_INIT;

	if (sweep->left == 0 ||
	    ledger_take(spawner->ledger, sweep->uid, sweep->again,
			sweep->left < BATCH ? sweep->left : BATCH, &sweep->identity, &sweep->taken,
			&sweep->count, &err) < 0 ||
	    sweep->count == 0) {
		if (err.kind != ERR_NONE)
			log_failure(&err, "placeholders of user %u stay", sweep->uid);
		sweep_end(sweep);
		return;
	}
	sweep->left -= sweep->count;
	if (start_child(sweep, &err) < 0) {
		log_failure(&err, "placeholders of user %u stay", sweep->uid);
		settle(sweep);
		placing_resume(spawner);
		sweep_end(sweep);
		return;
	}
	loop_arm(&spawner->loop, &sweep->timer, LIMIT_TEARDOWN_MS, on_timeout, sweep);
}

void sweep_start(struct spawner *spawner, uint64_t job, uid_t uid, bool again, sweep_done_fn *done,
		 void *arg)
{
	size_t left = ledger_unneeded(spawner->ledger, uid, again);
	struct sweep *sweep = left > 0 ? calloc(1, sizeof(*sweep)) : NULL;

	if (!sweep) {
		if (left > 0)
			log_write(LOG_ERROR, "placeholders of user %u stay: no memory", uid);
		sweep_touch(spawner);
		if (done)
			done(arg);
		return;
	}
	*sweep = (struct sweep){
		.spawner = spawner,
		.job = job,
		.uid = uid,
		.again = again,
		.left = left,
		.said_fd = -1,
		.child = CHILD_INIT,
		.done = done,
		.arg = arg,
	};
	sweep_next(sweep);
}

void sweep_others(struct spawner *spawner, uid_t uid, bool again)
{
	uid_t other = 0;

	for (size_t from = 0; ledger_next_unneeded(spawner->ledger, &from, again, &other);)
		if (other != uid)
			sweep_start(spawner, 0, other, again, NULL, NULL);
}

/* ---- timers ------------------------------------------------------------------------------ */

static void on_retry(void *arg)
{
	struct spawner *spawner = arg;

	sweep_others(spawner, (uid_t)-1, true);
}

static void on_tidy(void *arg)
{
	struct spawner *spawner = arg;

	(void)ledger_tidy(spawner->ledger);
	sweep_touch(spawner);
}

void sweep_touch(struct spawner *spawner)
{
	struct sweeps *sweeps = &spawner->sweeps;

	if (ledger_is_untidy(spawner->ledger) && !sweeps->tidy.armed)
		loop_arm(&spawner->loop, &sweeps->tidy, LEDGER_TIDY_MS, on_tidy, spawner);
	if (!ledger_has_kept(spawner->ledger)) {
		loop_disarm(&spawner->loop, &sweeps->retry);
		sweeps->retry_ms = 0;
	} else if (!sweeps->retry.armed) {
		sweeps->retry_ms = sweeps->retry_ms == 0 ? RETRY_MS : sweeps->retry_ms * 2;
		if (sweeps->retry_ms > RETRY_MOST_MS)
			sweeps->retry_ms = RETRY_MOST_MS;
		loop_arm(&spawner->loop, &sweeps->retry, sweeps->retry_ms, on_retry, spawner);
	}
}

void sweep_mounts_changed(struct spawner *spawner)
{
	if (ledger_has_kept(spawner->ledger))
		loop_arm(&spawner->loop, &spawner->sweeps.retry, RETRY_MOUNTS_MS, on_retry,
			 spawner);
}

void sweeps_deinit(struct spawner *spawner)
{
	loop_disarm(&spawner->loop, &spawner->sweeps.retry);
	loop_disarm(&spawner->loop, &spawner->sweeps.tidy);
}
