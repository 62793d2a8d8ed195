/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_DAEMON_SPAWNER_ZYGOTEJOB_H
#define FSBOX_DAEMON_SPAWNER_ZYGOTEJOB_H

/*
 * A job whose pid 1 was there before it (zygote.h). From the zygote's PID1_UP on it is a job like any other;
 * should that not come, whatever the reason, the job begins once more with an ordinary leader, and the client
 * does not notice. Nothing of the client's has been read by then.
 */

#include <stdbool.h>

#include "common/error.h"
#include "daemon/spawner/inherit.h"

struct failure;
struct job;

/*
 * Begin JOB, whose template is ready, in a zygote of that. INHERIT is its client's.
 *
 * Returns 1 when it has begun, 0 when it is to begin the ordinary way. Fails with ERR_SYSTEM; then it has not
 * begun, and what is half-begun is released by jobproc_release().
 */
int zygotejob_start(struct job *job, const struct inherit *inherit, struct error *err);

/* JOB's zygote is up: it is one no more. */
void zygotejob_up(struct job *job);

/* JOB's zygote said that it cannot be its pid 1. It ends now. */
void zygotejob_refused(struct job *job, const struct failure *why);

/* It is gone, or is given up on. */
void zygotejob_again(struct job *job);

#endif
