/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_DAEMON_SPAWNER_GUARDADOPT_H
#define FSBOX_DAEMON_SPAWNER_GUARDADOPT_H

/*
 * Jobs that were taken over (adopt.h) get a guard of the new fsboxd, which can tell what it did.
 *
 * The guard that they had goes on meanwhile, as guards without a fsboxd do. It is ended when the new one
 * has looked at all masks of all jobs of that identity and found or put them right: at each moment there
 * is one that watches. Where the new one cannot take a job the old one keeps it; with neither the job
 * ends.
 */

#include <stdint.h>

#include "common/error.h"
#include "daemon/spawner/nsfd.h"

struct job;
struct spawner;

/* Before jobs are taken over: which guards there are. Fails with ERR_SYSTEM. */
int guardadopt_begin(struct spawner *spawner, struct error *err);

/* All jobs are known: what was kept for others is removed. Fails with ERR_SYSTEM. */
int guardadopt_end(struct spawner *spawner, struct error *err);

/* JOB was taken over, with what its record says: PLAN_ID 0: it needs no guard. */
void guardadopt_note(struct job *job, uint64_t plan_id, uint64_t begun_ms, uint32_t repaired);

/* The command of JOB runs, so it stands in its own namespaces: give it a guard. May end it. */
void guardadopt_job(struct job *job);

/* The new guard has looked at JOB, or JOB is over. */
void guardadopt_held(struct job *job);

/* A job with PLAN_ID (0: none) is gone, perhaps without that a guard was told the plan again. */
void guardadopt_forget_plan(struct spawner *spawner, uint64_t plan_id);

/* Fewer jobs may need the old guards. */
void guardadopt_check(struct spawner *spawner);

/*
 * A namespace of JOB, which was taken over and whose command runs; never one of ours. The descriptor is
 * the caller's; -1 with errno.
 */
int guardadopt_open(const struct job *job, enum nsfd_kind kind);

/* End of fsboxd: old guards go on. */
void guardadopt_deinit(struct spawner *spawner);

#endif
