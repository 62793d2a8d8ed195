/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/broker/whyhost.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/scope.h"

#define DEFAULT_PORT 443
#define HINT_BYTES (HOSTNAME_BYTES + 256)

static int set_text(char **ret, const char *text, struct error *err)
{
	*ret = strdup(text);
	return *ret != NULL ? 0 : error_set(err, ERR_NOMEM, ENOMEM, "a reply");
}

static int parse(const char *text, struct hostname *ret_host, uint16_t *ret_port, struct error *err)
{
	size_t size = strlen(text);

	*ret_port = DEFAULT_PORT;
	/* "2001:db8::1" as people write it, without brackets. */
	if (hostname_parse(text, size, true, ret_host, NULL) == 0)
		return 0;
	if (hostname_parse_authority(text, size, DEFAULT_PORT, ret_host, ret_port, err) == 0)
		return 0;
	error_prefix(err, "params.host");
	return -(int)ERR_INVALID;
}

static bool is_loopback(const struct hostname *host)
{
	return host->address.family != 0 ? netaddr_classify(&host->address) == NETADDR_LOOPBACK
					 : strcmp(host->name, "localhost") == 0;
}

/* 127.0.0.1 is the job's own, but for single ports. */
static void explain_loopback(const struct whyhost *input, uint16_t port, char *hint, bool *ret_ok)
{
	const struct netpolicy *policy = input->mode == NET_PROXY ? &input->lists->policy : NULL;

	*ret_ok = policy != NULL && netpolicy_forwards(policy, port);
	if (*ret_ok)
		(void)snprintf(hint, HINT_BYTES, "port %" PRIu16 " of this host is forwarded",
			       port);
	else
		(void)snprintf(hint, HINT_BYTES,
			       "the loopback inside is the job's own; --forward %" PRIu16
			       " makes this port of the host's reachable",
			       port);
}

static int set_entry(const struct netlists *lists, const struct hostpattern *rule,
		     struct why_result *ret_result, struct error *err)
{
	struct buf text = BUF_INIT(LIMIT_HOST_PATTERN_BYTES + 1);
	bool profile = netlists_of_profile(lists, rule);
	int r = hostpattern_format(rule, &text);

	if (r == 0)
		r = set_text(&ret_result->entry, buf_text(&text), err);
	buf_deinit(&text);
	return r < 0 ? r : set_text(&ret_result->origin, profile ? "profile" : "request", err);
}

static int explain_proxy(const struct whyhost *input, const struct hostname *host, uint16_t port,
			 const char *text, char *hint, struct why_result *ret_result,
			 struct error *err)
{
	const struct net_verdict verdict = netpolicy_decide(&input->lists->policy, host, port);
	const char *whose = "the request's";

	if (verdict.rule != NULL && netlists_of_profile(input->lists, verdict.rule))
		whose = "the profile's";
	if (verdict.reason == NET_ALLOWED)
		(void)snprintf(
			hint, HINT_BYTES,
			"through the proxy on 127.0.0.1 alone: programs that do not use it fail"
			" at once%s",
			verdict.private_too || host->address.family != 0
				? ""
				: "; leads the name to a private address, the entry needs"
				  " '+private'");
	else if (verdict.reason == NET_DENIED)
		(void)snprintf(hint, HINT_BYTES, "%s deny list wins over every entry that allows",
			       whose);
	else
		(void)snprintf(hint, HINT_BYTES, "no entry fits: --allow-host '%s' allows it",
			       text);
	return verdict.rule != NULL ? set_entry(input->lists, verdict.rule, ret_result, err) : 0;
}

static void explain_none(const struct whyhost *input, const char *text, char *hint)
{
	if (input->max_net == NET_NONE)
		(void)snprintf(hint, HINT_BYTES,
			       "the job has no network, and this host allows none: max-net = none");
	else
		(void)snprintf(
			hint, HINT_BYTES,
			"the job has no network: --allow-host '%s' opens the way to this host%s",
			text, input->max_net == NET_HOST ? ", --net host to every one" : "");
}

int whyhost_explain(const struct whyhost *input, const char *host, struct why_result *ret_result,
		    struct error *err)
{
	char hint[HINT_BYTES] = "the job uses the host's network: every host is reachable";
	bool allowed = input->mode == NET_HOST;
	struct hostname name;
	uint16_t port = 0;
	int r = parse(host, &name, &port, err);

	if (r < 0)
		return r;
	if (input->mode != NET_HOST && is_loopback(&name)) {
		explain_loopback(input, port, hint, &allowed);
	} else if (input->mode == NET_NONE) {
		explain_none(input, host, hint);
	} else if (input->mode == NET_PROXY) {
		allowed =
			netpolicy_decide(&input->lists->policy, &name, port).reason == NET_ALLOWED;
		r = explain_proxy(input, &name, port, host, hint, ret_result, err);
	}
	if (r == 0)
		r = set_text(&ret_result->access, allowed ? "allowed" : "denied", err);
	return r < 0 ? r : set_text(&ret_result->hint, hint, err);
}
