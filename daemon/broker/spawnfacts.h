/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_DAEMON_BROKER_SPAWNFACTS_H
#define FSBOX_DAEMON_BROKER_SPAWNFACTS_H

/* What is told about a job: to fsboxd when it starts, and to clients. */

#include <stdint.h>

#include "common/error.h"
#include "daemon/broker/policybuild.h"
#include "proto/json/message.h"
#include "proto/wire/spawnop.h"

struct built;

/* All of START that is known from its policy and its request: everything but sizes and hashes. */
void spawnfacts_start(const struct policy_build *build, const struct spawn_params *params,
		      const struct string_list *withheld, struct op_start *start);

/* What `inspect` will show, and the reply of the request. Fails with ERR_NOMEM. */
int spawnfacts_inspect(const struct policy_build *build, uint64_t job,
		       const struct string_list *withheld, const struct op_start *start,
		       struct inspect_result *facts, struct error *err);

/* The same for a job of another broker, as far as fsboxd knows it. Fails with ERR_NOMEM. */
int spawnfacts_found(uint64_t job, const struct link_job_found *found, struct inspect_result *facts,
		     struct error *err);

/*
 * What of the plan of BUILT `inspect` shows of a job that runs: copies, the caller's to release. Fails with
 * ERR_NOMEM.
 */
int spawnfacts_mounts(const struct built *built, struct inspect_result *result, struct error *err);

/* The same of its lists of hosts: *RET_NET is for netlists_show_free(). */
int spawnfacts_hosts(const struct built *built, struct msg_net **ret_net, struct error *err);

#endif
