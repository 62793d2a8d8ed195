/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/wire/egressop.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "common/scope.h"

_Static_assert(sizeof(struct egress_event) <= PIPE_BUF, "egress_event is written atomically");

static int bad(struct error *err, const char *why)
{
	return error_set(err, ERR_BAD_FRAME, 0, "%s", why);
}

static bool is_terminated(const char *text, size_t size)
{
	return memchr(text, '\0', size) != NULL;
}

static int config_check(const struct egress_config *config, struct error *err)
{
	bool none = config->upstream == EGRESS_UPSTREAM_NONE;

	if (config->version != EGRESSOP_VERSION)
		return bad(err, "egress configuration of another version");
	if (config->required > 1 || config->upstream > EGRESS_UPSTREAM_SOCKS5 ||
	    config->upstream_port > UINT16_MAX ||
	    !is_terminated(config->upstream_host, sizeof(config->upstream_host)))
		return bad(err, "egress configuration: a value out of range");
	if (none != (config->upstream_port == 0) || none != (config->upstream_host[0] == '\0'))
		return bad(err, "egress configuration: half an upstream proxy");
	return 0;
}

static int job_check(const struct egress_job *job, struct error *err)
{
	if (job->max_connections == 0 || job->max_connections > LIMIT_EGRESS_CONNECTIONS_PER_JOB ||
	    job->reserved != 0)
		return bad(err, "egress job: a value out of range");
	return 0;
}

int egress_link_check(const struct egress_link_message *message, size_t size, size_t fd_count,
		      struct error *err)
{
	if (size != sizeof(*message) || message->size != sizeof(*message))
		return bad(err, "egress message of another size");
	if (message->kind < EGRESS_CONFIG || message->kind >= EGRESS_LINK_KIND_COUNT)
		return bad(err, "egress message of unknown kind");
	if (fd_count != (message->kind == EGRESS_JOB ? EGRESS_LINK_FDS : 0))
		return bad(err, "egress message with other descriptors than it must have");
	if ((message->kind == EGRESS_CONFIG) != (message->job == 0))
		return bad(err, "egress message about no job, or about one too many");
	switch ((enum egress_link_kind)message->kind) {
	case EGRESS_CONFIG:
		return config_check(&message->u.config, err);
	case EGRESS_JOB:
		return job_check(&message->u.job, err);
	case EGRESS_END:
	case EGRESS_LINK_KIND_COUNT:
		break;
	}
	return 0;
}

int egress_listener_check(const struct egress_listener *message, size_t size, size_t fd_count,
			  struct error *err)
{
	if (size != sizeof(*message) || message->size != sizeof(*message))
		return bad(err, "listener message of another size");
	if (fd_count != 1)
		return bad(err, "listener message without exactly one descriptor");
	if (message->via < EGRESS_VIA_HTTP || message->via >= EGRESS_VIA_COUNT ||
	    message->reserved != 0)
		return bad(err, "listener message: a value out of range");
	if (message->port > UINT16_MAX ||
	    (message->via == EGRESS_VIA_FORWARD) != (message->port != 0))
		return bad(err, "listener message: no such port");
	return 0;
}

int egress_event_check(const struct egress_event *event, size_t size, struct error *err)
{
	if (size != sizeof(*event) || event->size != sizeof(*event))
		return bad(err, "egress event of another size");
	if (event->kind < EGRESS_EVENT_READY || event->kind >= EGRESS_EVENT_KIND_COUNT)
		return bad(err, "egress event of unknown kind");
	if (event->via >= EGRESS_VIA_COUNT || event->port > UINT16_MAX ||
	    event->reason >= NET_REASON_COUNT ||
	    (event->flags & ~(uint32_t)EGRESS_EVENT_FLAGS_ALL) != 0 ||
	    (event->address_family != 0 && event->address_family != 4 &&
	     event->address_family != 6) ||
	    event->address_class >= NETADDR_CLASS_COUNT || event->reserved[0] != 0 ||
	    event->reserved[1] != 0)
		return bad(err, "egress event: a value out of range");
	if (!is_terminated(event->host, sizeof(event->host)) ||
	    !is_terminated(event->detail, sizeof(event->detail)))
		return bad(err, "egress event: a text is not terminated");
	return 0;
}

static const char *const vias[] = {
	[EGRESS_VIA_HTTP] = "http",
	[EGRESS_VIA_SOCKS] = "socks",
	[EGRESS_VIA_FORWARD] = "forward",
};

const char *egress_via_name(enum egress_via via)
{
	return (size_t)via < ARRAY_SIZE(vias) && vias[via] ? vias[via] : "unknown";
}

static const char *const events[] = {
	[EGRESS_EVENT_READY] = "egress.ready",
	[EGRESS_EVENT_JOB_REFUSED] = "egress.job-refused",
	[EGRESS_EVENT_LISTENER_REFUSED] = "egress.listener-refused",
	[EGRESS_EVENT_ALLOWED] = "egress.allowed",
	[EGRESS_EVENT_DENIED] = "egress.denied",
	[EGRESS_EVENT_FAILED] = "egress.failed",
	[EGRESS_EVENT_CLOSED] = "egress.closed",
	[EGRESS_EVENT_STATS] = "egress.stats",
};

const char *egress_event_name(enum egress_event_kind kind)
{
	return (size_t)kind < ARRAY_SIZE(events) && events[kind] ? events[kind] : "unknown";
}

int egress_upstream_parse(const char *url, struct egress_config *config, struct error *err)
{
	static const struct {
		const char *scheme;
		enum egress_upstream kind;
		uint16_t port;
	} schemes[] = {
		{ "http://", EGRESS_UPSTREAM_HTTP, 80 },
		{ "socks5://", EGRESS_UPSTREAM_SOCKS5, 1080 },
	};
	struct hostname host;
	uint16_t port = 0;

	config->upstream = EGRESS_UPSTREAM_NONE;
	config->upstream_port = 0;
	memset(config->upstream_host, 0, sizeof(config->upstream_host));
	if (!url)
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(schemes); i++) {
		size_t skip = strlen(schemes[i].scheme);
		size_t size = strlen(url);

		if (strncmp(url, schemes[i].scheme, skip) != 0)
			continue;
		if (url[size - 1] == '/')
			size--;
		if (size < skip ||
		    hostname_parse_authority(url + skip, size - skip, schemes[i].port, &host, &port,
					     err) < 0) {
			error_prefix(err, "upstream-proxy");
			if (err)
				err->kind = ERR_CONFIG;
			return -ERR_CONFIG;
		}
		config->upstream = schemes[i].kind;
		config->upstream_port = port;
		(void)snprintf(config->upstream_host, sizeof(config->upstream_host), "%s",
			       host.name);
		return 0;
	}
	return error_set(err, ERR_CONFIG, 0, "upstream-proxy: neither http:// nor socks5://");
}
