/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/spawner/stray.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "common/limits.h"
#include "daemon/log.h"
#include "daemon/spawner/spawner.h"

struct stray {
	struct spawner *spawner;
	struct child child;
	struct loop_timer timer;
	uid_t uid;
	const char *what;
	bool stuck;
};

static void stray_on_exit(int status, void *arg)
{
	struct stray *stray = arg;
	struct spawner *spawner = stray->spawner;

	/* Not what our own signal did, but what it had to say: a role that cannot even be executed. */
	if (WIFEXITED(status) && WEXITSTATUS(status) != 0)
		log_write(LOG_WARNING, "%s of user %u ended with status %d", stray->what,
			  stray->uid, WEXITSTATUS(status));
	loop_disarm(&spawner->loop, &stray->timer);
	if (stray->stuck)
		quota_give(&spawner->quota, stray->uid, QUOTA_STUCK);
	free(stray);
}

static void on_unkillable(void *arg)
{
	struct stray *stray = arg;
	struct event_message event = { .uid = stray->uid, .pid = stray->child.pid };

	stray->stuck = quota_note(&stray->spawner->quota, stray->uid, QUOTA_STUCK, NULL) == 0;
	log_write(LOG_WARNING, "%s of user %u (process %d) cannot be killed", stray->what,
		  stray->uid, (int)stray->child.pid);
	(void)snprintf(event.detail, sizeof(event.detail), "%s", stray->what);
	recorderlink_send(&stray->spawner->recorder, EVENT_STUCK, &event);
}

static void on_grace_over(void *arg)
{
	struct stray *stray = arg;

	child_signal(&stray->child, SIGKILL);
	loop_arm(&stray->spawner->loop, &stray->timer, LIMIT_TEARDOWN_MS, on_unkillable, stray);
}

void stray_take(struct spawner *spawner, struct child *child, uid_t uid, const char *what,
		uint64_t grace_ms)
{
	struct stray *stray = NULL;

	if (child->pid == 0)
		return;
	stray = calloc(1, sizeof(*stray));
	if (!stray) {
		child_signal(child, SIGKILL);
		child_forget(&spawner->children, child);
		return;
	}
	stray->spawner = spawner;
	stray->uid = uid;
	stray->what = what;
	child_move(&spawner->children, child, &stray->child, stray_on_exit, stray);
	if (grace_ms == 0)
		on_grace_over(stray);
	else
		loop_arm(&spawner->loop, &stray->timer, grace_ms, on_grace_over, stray);
}
