/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_CLIENT_CTL_GRANTS_H
#define FSBOX_CLIENT_CTL_GRANTS_H

/* What an administrator is asked with for a grant. */

#include "client/ctl/command.h"
#include "proto/json/message.h"

/*
 * Print the request for what PARAMS would be with POLICY, the daemon's answer to them. Returns the exit
 * status.
 */
int grants_show_request(const struct ctl *ctl, const struct spawn_params *params,
			const struct policy_result *policy);

#endif
