/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_DAEMON_SPAWNER_GUARDTELL_H
#define FSBOX_DAEMON_SPAWNER_GUARDTELL_H

/*
 * What a guard says about one of its user's jobs: recorded, told to the broker, and acted on.
 */

#include "proto/wire/spawnop.h"

struct job;

/* @kind  REPORT_MASK_REPAIRED, REPORT_MASK_LOST or REPORT_NAME_APPEARED */
void guardtell(struct job *job, enum report_kind kind, const struct report_guard *what);

#endif
