/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_DAEMON_BROKER_BUILDROUND_H
#define FSBOX_DAEMON_BROKER_BUILDROUND_H

/*
 * The two halves of policybuild.h: what is asked for (policybuild.c), then the rules that follow
 * (buildrules.c); and the rounds of look-ups that both go by.
 */

#include "common/buf.h"
#include "daemon/broker/policybuild.h"

/* What is asked in one round, and where its answer goes: an index into build->pending. */
enum { PENDING_PATHS, PENDING_TREES, PENDING_DIRS };

/* Remember the first failure; it is told once nothing is under way any more. PATH may be NULL. */
void round_fail(struct policy_build *build, const struct error *err);
void round_fail_path(struct policy_build *build, const char *path, const struct error *err);

/* An answer came in: go on with build->next when it was the last. BUILD may be gone afterwards. */
void round_proceed(struct policy_build *build);

/* Ask; VALUES is released. A failure is remembered. */
void round_ask(struct policy_build *build, int slot, enum lookup_kind kind, struct buf *values,
	       lookup_done_fn *done);
struct buf round_values(void);

/* The working directory is known, and what protected names there are: make the candidates, look at
 * their paths, settle, plan. */
void rules_begin(struct policy_build *build);

#endif
