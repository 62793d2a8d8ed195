/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_DAEMON_SPAWNER_JOB_H
#define FSBOX_DAEMON_SPAWNER_JOB_H

/*
 * One job, from the broker's wish to the result.
 *
 *	open      plan memfd and channel were handed out; the broker writes the plan
 *	starting  the leader runs: becomes the peer, makes placeholders, turns into the engine
 *	running   the command runs; only pid 1 of the job counts from here on
 *	ending    told to end, or over and being cleaned up
 *
 * A job outlives its broker and its leader. Quotas, timeouts and signals are held here, so they hold
 * while a broker is dead (R13).
 *
 * Nothing unaccounted goes on: before fsboxd knows pid 1, that waits for a GO byte and ends by itself
 * when the pipe closes instead; afterwards killing it ends everything in the job.
 */

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"
#include "daemon/identity.h"
#include "daemon/spawner/birth.h"
#include "daemon/spawner/child.h"
#include "daemon/spawner/guardlink.h"
#include "daemon/spawner/jobnet.h"
#include "daemon/spawner/loop.h"
#include "daemon/spawner/recorderlink.h"
#include "daemon/spawner/reportin.h"
#include "proto/wire/eventop.h"
#include "proto/wire/spawnop.h"

struct brokerlink;
struct conn;
struct plan;
struct spawner;
struct standin;
struct template;

/*
 * @broker        whose it is; kept while the job is
 * @identity      as whom it runs: the broker's without the groups that jobs lose
 * @plan_fd       open: the plan memfd; @channel_fd: init's end of the job channel
 * @report        starting and later: what builder and init report
 * @go_fd         where GO bytes go
 * @stderr_fd     the engine's own words, for the message when it fails
 * @leader        the process we started
 * @pid1, @pid1_fd  of the job's init, once it is known
 * @timer         of the present state: set-up, run time, grace, teardown
 * @up, @started, @exited  PID1_UP, STARTED, EXITED were reported
 * @over          finished but for its placeholders
 * @told          the broker knows how it ended, since @told_ms (CLOCK_MONOTONIC)
 * @failed        it will not run: @failure says why
 * @timed_out, @killed  why it is ending; killed: by request, with SIGKILL
 * @record        as reported, later as told
 * @peer_pid, @peer_pidfd  the process that asked for it, while it starts
 * @template      native: waited for, or entered by a leader that is not pid 1 yet
 * @grant, @terms the grant that was spent on it; 0: none
 * @audited       its command may not run before the record of its start is durable
 * @audit         while it waits for that
 * @leader_is_pid1  native, but in user mode
 * @net           what fsbox-egress serves it
 * @guarded      native: what its guard has to do with it
 * @ended        over but for what its guard has to say, or @standin
 * @standin      what is being made in place of a denied object that is gone; or NULL
 * @waits         for a sweep, before it begins; @held: a report of its builder's that waits for one
 * @resumes       will go on now that the sweep is through (placing.c)
 * @file_fd       what a successor of fsboxd must know, from its start to its end (adopt.h); else -1
 * @birth         of pid 1
 * @adopted       a fsboxd before us started it: nobody reports, the file tells how it ended
 * @stored        the service manager has its pidfd
 * @asked         brokers of others want to hear of its end too
 * @zygote        its leader was there before it, and has not taken it up yet (zygotejob.h)
 * @no_zygote     one did not: there is no second try
 * @stale, @rebuilds  native: the template did not fit the host any more; how often that was so
 */
struct job {
	struct spawner *spawner;
	struct brokerlink *broker;
	uint64_t id;
	uint64_t conn;
	enum job_state state;
	struct identity identity;
	struct op_start start;
	int plan_fd;
	int channel_fd;

	struct child leader;
	bool leader_gone;
	struct reportin report;
	int go_fd;
	int stderr_fd;
	struct loop_source report_source;
	pid_t pid1;
	int pid1_fd;
	struct loop_source pid1_source;
	struct loop_timer timer;

	bool up;
	bool started;
	bool exited;
	bool over;
	bool told;
	bool unconfirmed;
	bool parked;
	bool unwanted;
	bool failed;
	bool timed_out;
	bool killed;
	uint32_t placeholders;
	uint64_t told_ms;
	uint64_t begun_ms;        /* CLOCK_MONOTONIC, when the command started */
	uint64_t started_real_ms; /* CLOCK_REALTIME */
	struct failure failure;
	struct exit_record record;
	pid_t peer_pid;
	int peer_pidfd;
	struct jobnet net;
	struct template *template;
	struct job *next_waiter; /* template.waiters */
	uint64_t grant;
	struct grant_terms terms;
	bool audited;
	struct recorder_wait audit;
	bool leader_is_pid1;
	struct guard_share guarded;
	struct standin *standin;
	bool ended;
	bool stale;
	bool zygote;
	bool no_zygote;
	unsigned int rebuilds;
	bool waits;
	bool resumes;
	struct report_message *held;
	int file_fd;
	struct birth birth;
	bool adopted;
	bool asked;
	bool stored;
	struct job *next; /* spawner.jobs[] */
};

/* It ends if no plan comes within LIMIT_SETUP_MS. */
void job_await_plan(struct job *job);

/*
 * The plan is in its memfd: verify it and start the leader. CONN is the connection that the job was
 * opened for. A failure ends the job; the broker is told by LINK_JOB_FAILED.
 */
void job_start(struct job *job, const struct conn *conn, const struct op_start *start);

/* How often a job begins again because the host changed under its template (R10). */
#define JOB_REBUILDS_MAX 3

/* Native: the job's template is ready; its leader is started. A failure ends the job. */
void job_template_ready(struct job *job);

/* Native: it will never be, and the job has left it. Begins again where that makes sense. */
void job_template_failed(struct job *job, const struct failure *failure);

/* Whether FAILURE says that the host looks different from what the template was made for. */
bool job_is_stale(const struct failure *failure);

/* What it would stand on is not being removed any more: begin. A failure ends the job. */
void job_resume(struct job *job);

/* Native: nothing is left of a start that found its template stale; begin again with a new one. */
void job_restart(struct job *job);

/* Its guard has said all that there is to say. */
void job_guarded(struct job *job);

/* What was being made for it is made, or is not. */
void job_standin_over(struct job *job);

/*
 * The plan of a provisional JOB is right. Until then nothing is made for its sake: it enters a template that
 * is ready and has no placeholders, or is parked.
 */
void job_confirm(struct job *job);

/* Not wanted any more: it has not been started, or not got anything of the client's. Tells nobody. */
void job_abandon(struct job *job);

/* Send SIGNO to the job. Fails with ERR_INVALID (this one cannot be sent) or ERR_SYSTEM. */
int job_signal(struct job *job, int signo, struct error *err);

/*
 * Will not run, for this reason; the first one counts. Everything of it is killed; when nothing is
 * left the broker is told. Without a leader that is now, and the job is gone on return.
 */
void job_fail(struct job *job, enum error_kind kind, const char *stage, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

struct job *job_find(const struct spawner *spawner, uint64_t id);

/* BROKER's process is gone: jobs that it only opened go with it. */
void jobs_broker_gone(struct spawner *spawner, const struct brokerlink *broker);

/* End of fsboxd: forget all, kill none. */
void jobs_deinit(struct spawner *spawner);

/*
 * An empty job of BROKER's with this number: known to nobody before job_enter(), and until then to be
 * discarded. Fails with ERR_NOMEM or ERR_NOT_AUTHORIZED.
 */
int job_make(struct brokerlink *broker, uint64_t id, struct job **ret_job, struct error *err);
void job_discard(struct job *job);

/* Into the table. The caller has taken QUOTA_JOBS, which the job gives back. */
void job_enter(struct job *job);

/* ---- between job.c and jobproc.c ----------------------------------------------------- */

/* Settle the result and tell the broker, once. */
void job_tell_end(struct job *job);

/* The job is over: clean up, tell the broker, free. */
void job_finish(struct job *job);

#endif
