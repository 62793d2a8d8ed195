/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_CLIENT_CTL_POLICYFILE_H
#define FSBOX_CLIENT_CTL_POLICYFILE_H

/* Policies from context files, without a daemon: nothing in them is looked up. */

#include "client/ctl/output.h"
#include "common/context.h"
#include "common/plan.h"
#include "common/policy.h"

struct json_writer;

/*
 * Read the context in FILE ("-": standard input) and build its policy, for the platform that --platform
 * names, else the context's own, else this one's.
 *
 * @ret_context, @ret_policy  hold nothing before; to be deinited, also after a failure
 *
 * Fails as file_read(), context_parse() and policy_context_build() do.
 */
int policyfile_load(const struct ctl *ctl, const char *file, struct policy_context *ret_context,
		    struct policy *ret_policy, struct error *err);

/* How one may write "[path, access, source]". */
void policyfile_rule_json(struct json_writer *writer, const struct rule *rule);

/* An answer that is "no": with --json {"error": ...} on standard output. Returns the exit status. */
int policyfile_refused(const struct ctl *ctl, const char *what, const struct error *err);

#endif
