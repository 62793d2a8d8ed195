/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_DAEMON_BROKER_POLICYREQ_H
#define FSBOX_DAEMON_BROKER_POLICYREQ_H

/* The requests that show a policy and run nothing: `policy`, `why`, and the dry run of `spawn`. */

#include "common/error.h"
#include "daemon/broker/policybuild.h"
#include "proto/json/message.h"

struct call;

/* Handlers of the methods. */
void policyreq_policy(struct call *call);
void policyreq_why(struct call *call);

/* Everything that `policy` shows, from a finished build. RET_RESULT is the caller's, also half filled. */
int policyreq_fill(const struct policy_build *build, struct policy_result *ret_result,
		   struct error *err);
int policyreq_fill_dry_run(const struct policy_build *build, struct spawn_result *ret_result,
			   struct error *err);

/* The digest as text; what was suppressed or changed. The caller frees. */
int policyreq_digest(const struct policy_build *build, char **ret_text, struct error *err);
int policyreq_notes(const struct policy *policy, struct msg_note_list *ret_notes,
		    struct error *err);

/* RULE as a message shows it; owned copies. */
int policyreq_rule(const struct rule *rule, struct msg_rule *ret_rule, struct error *err);

#endif
