/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_DAEMON_BROKER_SPAWN_H
#define FSBOX_DAEMON_BROKER_SPAWN_H

/*
 * One `spawn` request on its way to a running job:
 *
 *	building	policy and plan are made (policybuild.h)
 *	opening		fsboxd checks quotas and gives a plan memfd and a job channel
 *	starting	plan, arguments and descriptors are handed over; fsboxd builds, init reports
 *	(running)	the request is answered, the job goes on without it (jobs.h)
 *
 * A client that leaves before "starting" takes the request along; after it, the job is killed as soon
 * as it runs, unless it is detached or hangs on a lifeline.
 */

#include <stdbool.h>

#include "proto/wire/spawnop.h"

struct call;
struct spawn;

/* Handler of the method. */
void spawn_begin(struct call *call);

/* What jobs.c hears about a job that is being started. PIDFD is the spawn's. */
void spawn_on_started(struct spawn *spawn, int pidfd);
void spawn_on_up(struct spawn *spawn);

/* It never ran: the job is dropped and the spawn gone afterwards. */
void spawn_on_failed(struct spawn *spawn, const struct failure *failure);

/* It ran and is over, as fsboxd says. The spawn is gone afterwards, the job is still there, and running. */
void spawn_on_ended(struct spawn *spawn);

#endif
