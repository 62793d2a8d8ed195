/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_DAEMON_SPAWNER_ENDJOBS_H
#define FSBOX_DAEMON_SPAWNER_ENDJOBS_H

/*
 * fsboxd --end-jobs: the other half of a stop. fsboxd leaves its jobs alone when it ends, since it cannot
 * know whether another one follows; whoever knows that none does runs this.
 */

#include "common/error.h"

struct spawner;

/*
 * Kill all jobs that were taken over, and serve until nothing of them is left, but not for ever. Fails with
 * ERR_SYSTEM.
 */
int endjobs_run(struct spawner *spawner, struct error *err);

#endif
