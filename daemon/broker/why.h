/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_DAEMON_BROKER_WHY_H
#define FSBOX_DAEMON_BROKER_WHY_H

/*
 * Why a job may or may not do something with a path or reach a host: the deciding rule, what it
 * shadows, what is really there, how a deny is held, and which option would change it.
 */

#include "common/error.h"
#include "daemon/broker/policybuild.h"
#include "proto/json/message.h"

struct call;
struct job;

/*
 * Answer CALL (method `why`) from a finished build, which is taken, also when the client leaves
 * meanwhile.
 */
void why_answer_build_take(struct call *call, struct policy_build *build);

/* Answer CALL from the kept policy of JOB. */
void why_answer_job(struct call *call, struct job *job);

/*
 * The answer itself.
 *
 * @real, @type  what a look-up found at PATH
 * @cwd          where the job starts
 */
int why_explain_path(const struct policy *policy, const char *path, const char *real,
		     enum node_type type, const char *cwd, struct why_result *ret_result,
		     struct error *err);

#endif
