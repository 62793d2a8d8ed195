/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_DAEMON_BROKER_WHYHOST_H
#define FSBOX_DAEMON_BROKER_WHYHOST_H

/*
 * Why a job may or may not reach a host: the deciding entry, whose it is, and what would change it. Pure:
 * nothing is looked up, so what a name leads to is not known here.
 */

#include "common/error.h"
#include "common/policy.h"
#include "daemon/broker/netlists.h"
#include "proto/json/message.h"

/*
 * @mode     of the job
 * @max_net  of the host
 * @lists    for network `proxy`
 */
struct whyhost {
	enum net_mode mode;
	enum net_mode max_net;
	const struct netlists *lists;
};

/* @host: "name", "name:port", an address; without a port 443 is meant. ERR_INVALID, ERR_NOMEM. */
int whyhost_explain(const struct whyhost *input, const char *host, struct why_result *ret_result,
		    struct error *err);

#endif
