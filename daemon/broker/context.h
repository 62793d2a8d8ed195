/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_DAEMON_BROKER_CONTEXT_H
#define FSBOX_DAEMON_BROKER_CONTEXT_H

/*
 * The botmux profile: a request's context completed with the frozen facts that no client may state,
 * and the candidates that follow from it.
 */

#include "common/context.h"
#include "common/error.h"
#include "daemon/broker/facts.h"

/*
 * Fill the members that are frozen: from host-env BOTMUX_HOME, SESSION_DATA_DIR, BOTS_CONFIG and
 * LARKSUITE_CLI_DATA_DIR where these are configured, else their defaults below the home directory.
 *
 * Fails with ERR_INVALID (a member that a path is made of is missing or is no name), ERR_NOMEM.
 */
int context_complete(struct policy_context *context, const struct facts *facts,
		     const char text[LINK_TEXT_BYTES], struct error *err);

/*
 * Build the context's policy and append its rules to CANDIDATES, as optional ones but for the user's;
 * RET_PLAIN (holding nothing before) keeps expressions, final read-only paths and what was suppressed.
 *
 * Fails as policy_context_build(), and with ERR_POLICY_INVALID for a path that can be no rule: here
 * nothing is dropped silently.
 */
int context_candidates(struct rule_list *candidates, struct policy *ret_plain,
		       const struct policy_context *context, struct error *err);

#endif
