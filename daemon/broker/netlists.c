/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/broker/netlists.h"

#include <string.h>

#include "common/scope.h"
#include "proto/wire/egressop.h"

typedef int add_fn(struct netpolicy *policy, const char *text, size_t size, struct error *err);

static int add_all(struct netpolicy *policy, add_fn *add, const struct string_list *entries,
		   const char *member, struct error *err)
{
	for (size_t i = 0; i < entries->count; i++) {
		const char *text = entries->items[i];
		int r = add(policy, text, strlen(text), err);

		if (r < 0) {
			error_prefix(err, "%s", member);
			return r;
		}
	}
	return 0;
}

static int add_forwards(struct netpolicy *policy, const struct port_list *ports, struct error *err)
{
	for (size_t i = 0; i < ports->count; i++) {
		uint32_t port = ports->items[i];
		int r = 0;

		if (port == EGRESS_HTTP_PORT || port == EGRESS_SOCKS_PORT)
			r = error_set(err, ERR_INVALID, 0, "%u is a port of the job's own proxy",
				      port);
		else
			r = netpolicy_forward(policy, (uint16_t)port, err);
		if (r < 0) {
			error_prefix(err, "params.net.forward");
			return r;
		}
	}
	return 0;
}

int netlists_make(struct netlists *ret_lists, const struct msg_net *profile,
		  const struct msg_net *request, struct error *err)
{
	struct netpolicy *policy = &ret_lists->policy;
	int r = 0;

	if ((r = add_all(policy, netpolicy_allow, &profile->allow, "profile: net.allow", err)) <
		    0 ||
	    (r = add_all(policy, netpolicy_deny, &profile->deny, "profile: net.deny", err)) < 0)
		return r;
	ret_lists->profile_allow = policy->allow_count;
	ret_lists->profile_deny = policy->deny_count;
	if ((r = add_all(policy, netpolicy_allow, &request->allow, "params.net.allow", err)) < 0 ||
	    (r = add_all(policy, netpolicy_deny, &request->deny, "params.net.deny", err)) < 0)
		return r;
	return add_forwards(policy, &request->forward, err);
}

void netlists_deinit(struct netlists *lists)
{
	netpolicy_deinit(&lists->policy);
	lists->profile_allow = 0;
	lists->profile_deny = 0;
}

bool netlists_of_profile(const struct netlists *lists, const struct hostpattern *rule)
{
	const struct netpolicy *policy = &lists->policy;

	if (rule >= policy->allow && rule < policy->allow + policy->allow_count)
		return rule < policy->allow + lists->profile_allow;
	return rule < policy->deny + lists->profile_deny;
}
