/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_DAEMON_SPAWNER_GUARDLINK_H
#define FSBOX_DAEMON_SPAWNER_GUARDLINK_H

/*
 * fsboxd's side of the guards (guard.h): one for each identity with jobs that need one, started with the
 * first template that does, ended a while after the last.
 *
 * To fsboxd a guard is as hostile as any process of a peer's: what it says is taken about that peer's own
 * jobs only, and bounded. One that dies, is stopped by its user or does not answer is replaced, with an
 * event each time; the jobs it had are handed to the next one, which begins by looking at all their
 * masks. When that cannot be done, or happens too often, they are killed.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "common/plan.h"
#include "daemon/identity.h"
#include "daemon/spawner/child.h"
#include "daemon/spawner/loop.h"
#include "daemon/spawner/reportin.h"

struct builder_guard;
struct guard_order;
struct guardlink;
struct old_guard;
struct job;
struct spawner;
struct template;

/*
 * A plan that a guard knows or is to know.
 *
 * @refs        templates and jobs
 * @generation  of the guard that was told
 * @watched     that one said that it is ready
 */
struct guard_plan {
	struct guardlink *link;
	uint64_t id;
	int fd;
	size_t bytes;
	size_t refs;
	uint64_t generation;
	bool watched;
	struct guard_plan *next; /* guardlinks.plans */
};

/*
 * @user_ns_fd  user mode, of jobs that a fsboxd before us started: their user namespace, @user_ns its
 *              number; else -1 and 0
 * @noted       the process that guardfile_note() knows; 0: none
 * @order_fd    our end of the order socket, which leaders inherit; -1: no guard runs
 * @generation  counts the guards of this identity
 * @deaths      since @first_death_ms
 */
struct guardlink {
	struct spawner *spawner;
	struct identity identity;
	int user_ns_fd;
	uint64_t user_ns;
	struct child child;
	pid_t noted;
	int order_fd;
	struct reportin report;
	struct loop_source report_source;
	uint64_t generation;
	unsigned int deaths;
	uint64_t first_death_ms;
	size_t plan_count;
	struct loop_timer idle;
	struct guardlink *next; /* guardlinks.first */
};

/*
 * @last_plan  numbers of plans given out so far
 * @old        see guardadopt.h; @found_all: all jobs of before are known
 */
struct guardlinks {
	struct guardlink *first;
	struct guard_plan *plans;
	uint64_t last_plan;
	struct old_guard *old;
	bool found_all;
};

/*
 * What a job has to do with its guard.
 *
 * @plan        NULL: it has none
 * @plan_id     its number, known before it where the job was taken over; 0: none
 * @by_old      a guard of the fsboxd before us may be all that it has
 * @generation  of the guard that knows it, or is told by the job itself
 * @begun_ms    CLOCK_REALTIME, before its leader was started
 * @done        nothing more will be told about it
 * @waiting     it is over but for that
 * @told        how much was told about it; @repaired: how often a mask was put back, or could not be
 */
struct guard_share {
	struct guard_plan *plan;
	uint64_t plan_id;
	bool by_old;
	uint64_t generation;
	uint64_t begun_ms;
	bool done;
	bool waiting;
	uint32_t told;
	uint32_t repaired;
	struct loop_timer timer;
};

/*
 * A template for IDENTITY with PLAN is about to be made. PLAN_FD is the sealed memfd it came in, borrowed.
 * *RET_PLAN: what guards it, NULL where nothing must; to be given back by guardlink_plan_release().
 * Fails with ERR_NOMEM or ERR_SYSTEM.
 */
int guardlink_plan(struct spawner *spawner, const struct identity *identity,
		   const struct plan *plan, int plan_fd, size_t plan_bytes,
		   struct guard_plan **ret_plan, struct error *err);
void guardlink_plan_release(struct guard_plan *plan);

/* Whether PLAN is guarded by LINK's guard; PLAN may be NULL. */
bool guardlink_owns(const struct guardlink *link, const struct guard_plan *plan);

/* The plan itself, the caller's. Fails with ERR_NOMEM, ERR_SYSTEM. */
int guardlink_plan_read(const struct guard_plan *plan, struct plan *ret_plan, struct error *err);

/* Whether its guard is ready for jobs. When it becomes so, templates_guarded() is called. */
bool guardlink_ready(const struct guard_plan *plan);

/*
 * JOB, which begins, is to be guarded by PLAN (NULL: not). *RET_GUARD is for its leader; its descriptor
 * is borrowed.
 */
void guardlink_begin(struct job *job, struct guard_plan *plan, struct builder_guard *ret_guard);

/* JOB's pid 1 is known: should its guard be another one than its leader told, that is told too. */
void guardlink_up(struct job *job);

/* Whether JOB, whose command has ended, must wait for its guard; job_guarded() is called then. */
bool guardlink_wait(struct job *job);

/* JOB goes. */
void guardlink_end(struct job *job);

/* SIGCHLD came: a guard may have been stopped. */
void guardlinks_check(struct spawner *spawner);

/* ---- between guardlink.c, guardlinkplan.c and guardadopt.c ---------------------------- */

/*
 * The guard of IDENTITY in user namespace USER_NS (0: the present one), which runs then; *USER_NS_FD is
 * taken when it is a new one. Fails with ERR_NOMEM, ERR_SYSTEM.
 */
int guardlink_get(struct spawner *spawner, const struct identity *identity, int *user_ns_fd,
		  uint64_t user_ns, struct guardlink **ret_link, struct error *err);

/* One plan more or less: without any it ends after a while. */
void guardlink_use(struct guardlink *link, bool more);

/* A guard that does not take its orders is none. */
void guardlink_order(struct guardlink *link, const struct guard_order *message, const int *fds);
void guardlink_order_plan(struct guard_plan *plan);

/* Plan ID in *FD, which is taken, is LINK's. With one reference. Fails with ERR_NOMEM. */
int guardlink_add_plan(struct guardlink *link, uint64_t id, int *fd, size_t bytes,
		       struct guard_plan **ret_plan, struct error *err);

/* Hand JOB, whose command runs, to its guard. Fails with ERR_SYSTEM. */
int guardlink_hand(struct job *job, struct error *err);

/* Nobody can guard JOB: it ends. */
void guardlink_give_up(struct job *job);

/* ---- all of them ---------------------------------------------------------------------- */

/* End of fsboxd: guards go on with the jobs that they have. */
void guardlinks_deinit(struct spawner *spawner);

#endif
