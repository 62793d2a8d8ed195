/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_DAEMON_BROKER_ADOPTED_H
#define FSBOX_DAEMON_BROKER_ADOPTED_H

/*
 * Jobs that another broker started, which has died, or a fsboxd before this one: fsboxd knows them and
 * says what it knows when somebody asks for one.
 */

#include <stdint.h>

struct call;

/*
 * CALL names JOB, which is not known here: fsboxd is asked, and CALL is run again once the job is in the
 * list, or answered with an error.
 */
void adopted_ask(struct call *call, uint64_t job);

#endif
