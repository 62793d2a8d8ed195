/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_DAEMON_SPAWNER_AUDIT_H
#define FSBOX_DAEMON_SPAWNER_AUDIT_H

/*
 * `audit = required`: a command does not run before the record that it was started is durable. Pid 1
 * is there and confined, but has no permission to go on until then.
 *
 * The record is written first, so it may be of a command that then could not be run: an
 * execution.failed follows.
 */

#include "proto/wire/eventop.h"

struct job;

/* An event about JOB, as every one describes it. */
void audit_record(const struct job *job, enum event_kind kind);

/* Pid 1 of JOB waits: record the start, and let it go on, or fail the job, when that is settled. */
void audit_start(struct job *job);

/* The command of JOB runs: record that, unless it was recorded before. */
void audit_started(const struct job *job);

#endif
