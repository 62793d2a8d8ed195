/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_DAEMON_SPAWNER_GUARDWORK_H
#define FSBOX_DAEMON_SPAWNER_GUARDWORK_H

/*
 * What the parts of a guard share: guard.c (orders, jobs, reports), guardnames.c (directories, names that
 * appear), guardscan.c (repositories made inside), guardgone.c (objects taken away), guardrepair.c
 * (children that look and repair). Private to them.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/error.h"
#include "common/plan.h"
#include "common/policy.h"
#include "daemon/spawner/guardmounts.h"
#include "daemon/spawner/guardplan.h"
#include "daemon/spawner/loop.h"
#include "proto/wire/spawnop.h"

struct guard_state;

/* Children that look at masks at the same time: one may hang on a dead file system. */
#define GUARD_REPAIRS 4

/* A child that is not through by then hangs: the jobs it looked at cannot be held. */
#define GUARD_REPAIR_MS 5000

/* How often jobs are looked at whose directories cannot all be watched. */
#define GUARD_RESCAN_MS 1000

/*
 * For so long a denied object must be gone before something takes its place: who replaces a file by removing it
 * first needs less. So many of a job are followed at once, and as often is told what stays gone.
 */
#define GUARD_GONE_MS 100
#define GUARD_GONE_MOST 64
#define GUARD_GONE_AGAIN_MS 2000

/* Reports that wait for fsboxd to read. */
#define GUARD_QUEUE 512

/*
 * @wds         of each of points.dirs; -1: not watched now
 * @entries     of each point with PLAN_ENTRIES, in order: what was there before; else empty
 * @jobs        that run with it
 * @begun_ns    CLOCK_REALTIME_COARSE: none of them had begun before
 * @mounts      a job that was found whole had as many; 0: none was yet
 * @forgotten   goes with its last job
 * @unwatched   not all directories could be watched
 * @hit, @look, @stale  something happened: masks must be looked at, names looked for, directories
 *              opened again
 */
struct guarded_plan {
	uint64_t id;
	struct plan plan;
	struct guard_points points;
	int *wds;
	struct string_list *entries;
	size_t jobs;
	uint64_t begun_ns;
	size_t mounts;
	bool forgotten;
	bool unwatched;
	bool hit;
	bool look;
	bool stale;
	struct guarded_plan *next; /* guard_state.plans */
};

/*
 * @end_fd       see struct guard_order
 * @dirty_ns     CLOCK_REALTIME since when it is to be looked at; 0: it is not
 * @begun_ns     CLOCK_REALTIME_COARSE, before its command ran
 * @verified_ns  it was whole then
 * @repairing    a child is at it; @patched: something was put back once
 * @told         names of its plan that were told, by point
 * @killed       we did
 * @handed       by fsboxd, which wants to know when it was looked at
 * @gone         points at which nothing is, and should be: since when, and when that is told (again); seen by
 *               the present look; @old: its time came at least once
 */
struct guarded_job {
	struct guard_state *state;
	uint64_t id;
	pid_t pid;
	uint32_t flags;
	struct guarded_plan *plan;
	int ns_fd;
	int end_fd;
	struct loop_source end_source;
	struct guardmounts_ns ns;
	struct loop_source info_source;
	uint64_t dirty_ns;
	uint64_t begun_ns;
	uint64_t verified_ns;
	bool repairing;
	bool patched;
	bool killed;
	bool handed;
	struct guard_gone {
		size_t point;
		uint64_t tell_ns;
		bool seen;
		bool makeable;
		bool old;
	} gone[GUARD_GONE_MOST];
	size_t gone_count;
	uint8_t *told;
	struct guarded_job *next; /* guard_state.jobs */
};

struct guard_report {
	struct report_message message;
	struct guard_report *next; /* guard_state.first_report, oldest first */
};

struct guard_state {
	struct loop loop;
	int order_fd;
	int report_fd;
	int masks_fd;
	int inotify_fd;
	struct guardmounts mounts;
	struct loop_source order_source;
	struct loop_source report_source;
	struct loop_source inotify_source;
	struct loop_source mounts_source;
	struct loop_source end_source;
	int end_fd;
	struct loop_timer rescan;
	struct loop_timer gone;
	struct guarded_plan *plans;
	struct guarded_job *jobs;
	struct guard_report *first_report;
	struct guard_report *last_report;
	size_t report_count;
	size_t report_written; /* bytes of the first that fsboxd has */
	size_t repairs;
	bool alone; /* fsboxd is gone */
};

uint64_t guard_now_ns(void); /* CLOCK_REALTIME */

/* ---- guard.c -------------------------------------------------------------------------- */

/* Tell fsboxd. Never blocks; what does not fit the queue any more is not told. */
void guard_tell(struct guard_state *state, const struct report_message *message);

/* Tell about PATH, as JOB sees it. */
void guard_tell_path(const struct guarded_job *job, enum report_kind kind, const char *path,
		     uint64_t exposure_us);

struct guarded_job *guard_find_job(const struct guard_state *state, uint64_t id);

/* Its masks are to be looked at; guard_repair() does so. */
void guard_mark(struct guarded_job *job);

/* It cannot be held: kill all of it. */
void guard_kill(struct guarded_job *job);

/* Tell about a plan or a job as a whole. */
void guard_tell_number(struct guard_state *state, enum report_kind kind, uint64_t number);

/* Everything that was ordered until now. */
void guard_take_orders(struct guard_state *state);

/* ---- guardnames.c --------------------------------------------------------------------- */

/* Begin to watch PLAN's directories. Fails with ERR_NOMEM. */
int guard_watch(struct guard_state *state, struct guarded_plan *plan, struct error *err);
void guard_unwatch(struct guard_state *state, struct guarded_plan *plan);

/* Everything that inotify has to tell: jobs are marked, names that appeared handled. */
void guard_read_names(struct guard_state *state);

/* JOB is over: a last look for what was planted. */
void guard_look_last(struct guard_state *state, struct guarded_job *job);

/* ---- guardscan.c ---------------------------------------------------------------------- */

/*
 * JOB is over: tell of each `.git` that came to be in its writable trees while it ran, besides those that
 * have names under watch. A look of bounded depth that takes a small part of the time that the job took.
 */
void guard_scan_last(struct guarded_job *job);

/* ---- guardgone.c ---------------------------------------------------------------------- */

/*
 * The look at JOB that is under way found nothing at POINT, where something should be. Only what is MAKEABLE is
 * told: what the user cannot make now his job cannot either.
 */
void guard_gone_found(struct guarded_job *job, size_t point, bool makeable);

/* That look is over: what is gone for long enough is told, the rest looked at again. */
void guard_gone_settle(struct guarded_job *job);

/* ---- guardrepair.c -------------------------------------------------------------------- */

/* Begin to look at the jobs that are marked. */
void guard_repair(struct guard_state *state);

#endif
