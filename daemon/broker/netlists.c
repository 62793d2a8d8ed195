/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/broker/netlists.h"

#include <errno.h>
#include <stdlib.h>
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

static int show_entries(const struct hostpattern *patterns, size_t count,
			struct string_list *ret_texts, struct error *err)
{
	AUTO(buf_deinit) struct buf text = BUF_INIT(LIMIT_HOST_PATTERN_BYTES + 1);
	int r = 0;

	for (size_t i = 0; i < count && r == 0; i++) {
		text.size = 0;
		if (hostpattern_format(&patterns[i], &text) < 0 || buf_add(&text, "", 1) < 0)
			return error_set(err, ERR_NOMEM, ENOMEM, "a list of hosts");
		r = string_list_add(ret_texts, text.data, err);
	}
	return r;
}

void netlists_show_free(struct msg_net *net)
{
	if (net == NULL)
		return;
	string_list_deinit(&net->allow);
	string_list_deinit(&net->deny);
	free(net->forward.items);
	free(net);
}

int netlists_show(const struct netpolicy *policy, struct msg_net **ret_net, struct error *err)
{
	struct msg_net *net = NULL;
	int r = 0;

	*ret_net = NULL;
	if (policy->allow_count + policy->deny_count + policy->forward_count == 0)
		return 0;
	net = calloc(1, sizeof(*net));
	if (net != NULL)
		net->forward.items = calloc(policy->forward_count + 1, sizeof(*net->forward.items));
	if (net == NULL || net->forward.items == NULL) {
		netlists_show_free(net);
		return error_set(err, ERR_NOMEM, ENOMEM, "a list of hosts");
	}
	for (size_t i = 0; i < policy->forward_count; i++)
		net->forward.items[net->forward.count++] = policy->forwards[i];
	net->forward.capacity = policy->forward_count + 1;
	r = show_entries(policy->allow, policy->allow_count, &net->allow, err);
	if (r == 0)
		r = show_entries(policy->deny, policy->deny_count, &net->deny, err);
	if (r == 0)
		*ret_net = net;
	else
		netlists_show_free(net);
	return r;
}
