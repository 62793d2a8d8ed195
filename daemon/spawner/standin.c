/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/spawner/standin.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/limits.h"
#include "common/scope.h"
#include "daemon/log.h"
#include "daemon/spawner/child.h"
#include "daemon/spawner/job.h"
#include "daemon/spawner/placeholderfile.h"
#include "daemon/spawner/placing.h"
#include "daemon/spawner/report.h"
#include "daemon/spawner/reportin.h"
#include "daemon/spawner/spawner.h"
#include "daemon/spawner/stray.h"
#include "daemon/spawner/unshared.h"

/* So many are remembered while one is made; the guard says again what is forgotten. */
#define WAITING_MOST 256

struct waiting {
	struct waiting *next;
	char path[LIMIT_PATH_BYTES + 1];
};

/*
 * @waiting  what is to be made after it, in order
 * @go_fd    where the byte goes that lets the child make it
 * @refused  the child got none, and will end
 */
struct standin {
	struct job *job;
	struct waiting *waiting;
	struct child child;
	struct reportin report;
	struct loop_source source;
	struct loop_timer timer;
	int go_fd;
	bool refused;
};

/* ---- in the child -------------------------------------------------------------------- */

/* On the stack of the one that forks. */
struct standin_birth {
	struct identity identity;
	char path[LIMIT_PATH_BYTES + 1];
	int report_fd;
	int go_fd;
};

#define REPORT_FD CHILD_FIRST_FD
#define GO_FD (CHILD_FIRST_FD + 1)

static int announce(enum report_kind kind, const struct report_placeholder *what, void *arg,
		    struct error *err)
{
	struct report_message message;
	int r = 0;

	(void)arg;
	report_begin(&message, kind);
	message.u.placeholder = *what;
	r = report_write(REPORT_FD, &message, err);
	return r < 0 || kind != REPORT_PLACEHOLDER_INTENT ? r : report_wait_go(GO_FD, err);
}

static int standin_main(void *arg)
{
	const struct standin_birth *birth = arg;
	const int keep[] = { birth->report_fd, birth->go_fd };

	(void)signal(SIGPIPE, SIG_IGN);
	if (child_arrange_fds(keep, ARRAY_SIZE(keep), false, NULL) < 0 || chdir("/") < 0 ||
	    identity_become(&birth->identity, NULL) < 0)
		return 1;
	return placeholder_file_make(birth->path, announce, NULL, NULL) < 0;
}

/* ---- in fsboxd ----------------------------------------------------------------------- */

/* What is known of one user is nothing for children that are others (R15). */
static void wait_for_turn(struct standin *standin, const char *path)
{
	struct waiting **at = &standin->waiting;
	size_t count = 0;

	while (*at && count < WAITING_MOST && strcmp((*at)->path, path) != 0) {
		at = &(*at)->next;
		count++;
	}
	if (*at || count == WAITING_MOST)
		return;
	*at = unshared_new(sizeof(**at));
	if (*at)
		(void)snprintf((*at)->path, sizeof((*at)->path), "%s", path);
}

static struct waiting *waiting_free(struct waiting *waiting)
{
	struct waiting *next = waiting->next;

	unshared_free(waiting, sizeof(*waiting));
	return next;
}

static void release(struct standin *standin)
{
	struct spawner *spawner = standin->job->spawner;

	while (standin->waiting)
		standin->waiting = waiting_free(standin->waiting);
	loop_disarm(&spawner->loop, &standin->timer);
	loop_remove(&spawner->loop, &standin->source);
	reportin_deinit(&standin->report);
	auto_close(&standin->go_fd);
	stray_take(spawner, &standin->child, standin->job->identity.uid, "making of a placeholder",
		   0);
	standin->job->standin = NULL;
	unshared_free(standin, sizeof(*standin));
}

static void over(struct standin *standin)
{
	struct job *job = standin->job;
	struct waiting *waiting = standin->waiting;

	standin->waiting = NULL;
	release(standin);
	/* In vain for a job that is over. */
	while (waiting && !job->standin) {
		standin_begin(job, waiting->path);
		waiting = waiting_free(waiting);
	}
	if (job->standin)
		job->standin->waiting = waiting;
	else
		job_standin_over(job);
}

/* A job that is over stands on nothing: what is not announced yet is not made any more. */
static void on_message(const struct report_message *report, void *arg)
{
	struct standin *standin = arg;
	struct job *job = standin->job;
	struct error err = ERROR_INIT;
	bool is_intent = report->kind == REPORT_PLACEHOLDER_INTENT;
	int r = 0;

	if (standin->refused)
		return;
	if (is_intent && (job->exited || job->state != JOB_RUNNING))
		r = PLACING_WAIT;
	else
		r = placing_report(job, report, &err);
	if (r == 0 && is_intent && write(standin->go_fd, "G", 1) == 1)
		return;
	/* What is being removed there right now is looked at again by the guard. */
	standin->refused = r != 0;
	if (r < 0)
		log_failure(&err, "job %llu: in place of what was denied",
			    (unsigned long long)job->id);
	if (r != 0) {
		auto_close(&standin->go_fd);
		standin->go_fd = -1;
	}
}

static void on_report(uint32_t events, void *arg)
{
	struct standin *standin = arg;
	enum reportin_result result = REPORTIN_MORE;

	(void)events;
	while (result == REPORTIN_MORE)
		result = reportin_read(&standin->report, NULL);
	if (result == REPORTIN_END || result == REPORTIN_GARBAGE)
		over(standin);
}

/* The end of its pipe says the same, after everything that was reported. */
static void on_exit_of_child(int status, void *arg)
{
	(void)status;
	(void)arg;
}

static void on_timeout(void *arg)
{
	over(arg);
}

static int start(struct standin *standin, const char *path, struct error *err)
{
	struct job *job = standin->job;
	struct spawner *spawner = job->spawner;
	struct standin_birth birth = { .identity = job->identity };
	AUTO(auto_close) int report_read = -1;
	AUTO(auto_close) int report_write = -1;
	AUTO(auto_close) int go_read = -1;
	int r = 0;

	(void)snprintf(birth.path, sizeof(birth.path), "%s", path);
	if ((r = child_pipe(&report_read, &report_write, CHILD_PIPE_READ_OURS, err)) < 0 ||
	    (r = child_pipe(&go_read, &standin->go_fd, CHILD_PIPE_WRITE_OURS, err)) < 0)
		return r;
	reportin_init_take(&standin->report, steal_fd(&report_read), on_message, standin);
	birth.report_fd = report_write;
	birth.go_fd = go_read;
	r = loop_add(&spawner->loop, &standin->source, standin->report.fd, EPOLLIN, on_report,
		     standin, err);
	return r < 0 ? r
		     : child_start(&spawner->children, &standin->child, standin_main, &birth,
				   on_exit_of_child, standin, err);
}

void standin_begin(struct job *job, const char *path)
{
	struct error err = ERROR_INIT;
	struct standin *standin = NULL;

	if (job->exited || job->state != JOB_RUNNING)
		return;
	if (job->standin) {
		wait_for_turn(job->standin, path);
		return;
	}
	standin = unshared_new(sizeof(*standin));
	if (!standin)
		return;
	*standin = (struct standin){
		.job = job,
		.child = CHILD_INIT,
		.report = REPORTIN_INIT,
		.source = LOOP_SOURCE_INIT,
		.go_fd = -1,
	};
	job->standin = standin;
	if (start(standin, path, &err) == 0) {
		loop_arm(&job->spawner->loop, &standin->timer, LIMIT_TEARDOWN_MS, on_timeout,
			 standin);
		return;
	}
	log_failure(&err, "job %llu: in place of what was denied", (unsigned long long)job->id);
	release(standin);
}

bool standin_wait(const struct job *job)
{
	return job->standin != NULL;
}

void standin_drop(struct job *job)
{
	if (job->standin)
		release(job->standin);
}
