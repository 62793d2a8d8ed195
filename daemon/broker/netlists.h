/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_DAEMON_BROKER_NETLISTS_H
#define FSBOX_DAEMON_BROKER_NETLISTS_H

/*
 * Where a job with network `proxy` may go: the entries of its profile and of the request, together. A
 * request adds to both lists of its profile; a denial wins, whoever made it. Pure.
 */

#include <stddef.h>

#include "common/buf.h"
#include "common/error.h"
#include "common/netpolicy.h"
#include "proto/json/parts.h"

/* @profile_allow, @profile_deny  so many entries at the beginning are the profile's */
struct netlists {
	struct netpolicy policy;
	size_t profile_allow;
	size_t profile_deny;
};

/*
 * RET_LISTS is zeroed. @request's forwards are taken, too; a profile has none.
 *
 * Fails with ERR_INVALID (the member is named), ERR_QUOTA_EXCEEDED or ERR_NOMEM; RET_LISTS is to be
 * deinited also then.
 */
int netlists_make(struct netlists *ret_lists, const struct msg_net *profile,
		  const struct msg_net *request, struct error *err);
void netlists_deinit(struct netlists *lists);

/* Whether RULE, one of LISTS, is the profile's. */
bool netlists_of_profile(const struct netlists *lists, const struct hostpattern *rule);

/* What clients are shown of POLICY; *RET_NET is the caller's: NULL when there is nothing in it. ERR_NOMEM. */
int netlists_show(const struct netpolicy *policy, struct msg_net **ret_net, struct error *err);
void netlists_show_free(struct msg_net *net);

#endif
