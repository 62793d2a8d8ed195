/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_DAEMON_BROKER_GRANTREQ_H
#define FSBOX_DAEMON_BROKER_GRANTREQ_H

/*
 * Requests about records and grants, both kept by others: fsboxd decides who may do what, and reads of
 * each connection from the kernel who it is. Here words become numbers and back.
 */

#include "common/error.h"
#include "daemon/broker/policybuild.h"
#include "proto/json/message.h"
#include "proto/wire/spawnop.h"

struct call;

/* Answer the call, now or when fsboxd has answered. */
void grantreq_events(struct call *call);
void grantreq_create(struct call *call);
void grantreq_list(struct call *call);
void grantreq_revoke(struct call *call);

/*
 * Read the token out of the sealed memfd PARAMS->grant_fd, and say what it is to be used for.
 *
 * @cwd, @env  of the job
 *
 * Fails with ERR_GRANT_INVALID: what came is no token.
 */
int grantreq_claim(const struct spawn_params *params, const char *cwd,
		   const struct string_list *env, struct op_start_grant *ret_claim,
		   struct error *err);

/* What a grant for BUILD, which is done, would have to be for. Fails with ERR_NOMEM, ERR_POLICY_INVALID. */
int grantreq_hashes(const struct policy_build *build, struct policy_result *ret_result,
		    struct error *err);

#endif
