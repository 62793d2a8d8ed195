/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_DAEMON_SPAWNER_EGRESSEVENT_H
#define FSBOX_DAEMON_SPAWNER_EGRESSEVENT_H

/* What fsbox-egress tells, as records of the recorder. */

#include <stdbool.h>

#include "proto/wire/egressop.h"

struct spawner;

/* egresslink_event_fn, egressfiles_may_fn and egresslink_died_fn; ARG is the spawner. */
void egressevent_record(const struct egress_event *event, void *arg);
bool egressevent_may(void *arg);
void egressevent_died(int status, void *arg);

#endif
