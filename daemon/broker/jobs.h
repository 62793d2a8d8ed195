/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_DAEMON_BROKER_JOBS_H
#define FSBOX_DAEMON_BROKER_JOBS_H

/*
 * The jobs that this broker started: running ones with their channel to init, and ended ones with
 * their result, for as long as somebody may still ask.
 *
 * How a job ended comes from two sides: init reports it on the job channel, fsboxd says it over the
 * link, after it has cleaned up. fsboxd's word is waited for, since it alone knows of time limits
 * and lost jobs; if it is dead or silent, init's counts.
 */

#include <event2/event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "common/policy.h"
#include "daemon/broker/cookie.h"
#include "daemon/broker/guardnews.h"
#include "proto/json/message.h"
#include "proto/wire/spawnop.h"

struct broker;
struct client;
struct call;
struct spawn;

/* Results are kept so long and so many after the end. */
#define JOBS_KEPT 1024
#define JOB_KEPT_MS (10u * 60 * 1000)

/* Rules of all kept policies together; `why` needs them while a job runs. */
#define JOBS_RULES_KEPT 200000

enum job_phase { JOB_PHASE_STARTING = 1, JOB_PHASE_RUNNING, JOB_PHASE_ENDED };

struct job_waiter {
	struct call *call;
	struct job *job;
	struct job_waiter *next; /* job.waiters */
};

/*
 * @cookie    "" where only its hash is known
 * @adopted   another broker started it: no channel, only fsboxd tells
 * @client    the connection that started it, NULL once that is gone
 * @spawn     while it is being started: who is told how that goes
 * @channel   to init, -1 when closed
 * @facts     what `inspect` shows beyond the job itself: everything but job and exited
 * @reported  init said how it ended, in @exited
 * @clock     of an ended job: when it is forgotten; of one whose end only init reported: how long
 *            fsboxd's word is waited for
 */
struct job {
	struct broker *broker;
	uint64_t id;
	char cookie[COOKIE_TEXT];
	uint8_t cookie_hash[COOKIE_HASH_BYTES];
	bool adopted;
	enum job_phase phase;
	struct client *client;
	struct spawn *spawn;
	int channel;
	struct event *channel_event;
	struct event *clock;
	struct inspect_result facts;
	struct built *built;         /* what it runs with; NULL when that is not kept */
	const struct policy *policy; /* of @built, or NULL */
	bool has_lifeline;
	bool reported;
	bool over;      /* fsboxd said so, or nobody else will */
	bool link_down; /* it was told that */
	bool failed;
	struct failure failure; /* init's, when failed */
	struct exit_record exited;
	struct guardnews guard;
	uint64_t ended_as; /* how many ended before it */
	struct job_waiter *waiters;
	struct job *next; /* jobs.first, newest first */
};

struct jobs {
	struct job *first;
	size_t active; /* not ended */
	size_t ended;
	size_t rules_kept;
	uint64_t last_ended;
};

/*
 * A job fsboxd opened for CLIENT. @channel is the job's even when this fails.
 * Fails with ERR_NOMEM, ERR_SYSTEM.
 */
int job_new_take(struct broker *broker, uint64_t id, int channel, struct client *client,
		 struct spawn *spawn, struct job **ret_job, struct error *err);

/*
 * A job that fsboxd knows and we do not; it has no channel, and nobody's connection. Fails with
 * ERR_NOMEM.
 */
int jobs_adopt(struct broker *broker, uint64_t id, const struct link_job_found *found,
	       struct error *err);

/* The job runs: SPAWN is not told anything any more, waiting for the end begins. */
void job_started(struct job *job);

/* Keep the policy of BUILT for `why` as long as JOB runs, if there is room. */
void jobs_keep_policy(struct job *job, struct built *built);

/* It never ran: forget it. */
void job_drop(struct job *job);

struct job *jobs_find(struct broker *broker, uint64_t id);

/*
 * The job ID if CLIENT may ask about it: its own uid's, which all jobs here are, with the right
 * COOKIE if one is given. Fails with ERR_JOB_UNKNOWN.
 */
int jobs_find_for(struct broker *broker, uint64_t id, const char *cookie, struct job **ret_job,
		  struct error *err);

/* Answer CALL when JOB has ended; at once if it has. */
void job_wait(struct job *job, struct call *call);

/* fsboxd said so. */
void jobs_on_link(struct broker *broker, const struct link_message *message);

/* The link is down: what init reported counts from now on. */
void jobs_on_link_down(struct broker *broker);

/* CLIENT is gone: jobs that hang on it are killed. */
void jobs_on_client_gone(struct broker *broker, struct client *client);

/* SIGKILL to all of it, through fsboxd. */
void job_kill(struct job *job);

void jobs_deinit(struct broker *broker);

#endif
