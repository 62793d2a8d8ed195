/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Bytes as each of the messages to and from fsbox-egress; the first byte says which, and how many descriptors
 * ride with it. What passes its check is then read to the end as its receiver reads it.
 */

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/scope.h"
#include "proto/wire/egressop.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
	if (!holds)
		abort();
}

static void read_link(const struct egress_link_message *message, size_t fd_count)
{
	must((message->kind == EGRESS_JOB) == (fd_count == EGRESS_LINK_FDS));
	if (message->kind == EGRESS_CONFIG) {
		must(strlen(message->u.config.upstream_host) <
		     sizeof(message->u.config.upstream_host));
		must(message->u.config.upstream_port <= UINT16_MAX);
	}
	if (message->kind == EGRESS_JOB)
		must(message->u.job.max_connections <= LIMIT_EGRESS_CONNECTIONS_PER_JOB);
}

static void read_event(const struct egress_event *event)
{
	struct netaddr address = event->address_family == 6 ? netaddr_from_v6(event->address)
							    : netaddr_from_v4(event->address);
	char text[NETADDR_TEXT_BYTES];

	must(strlen(event->host) < sizeof(event->host));
	must(strlen(event->detail) < sizeof(event->detail));
	netaddr_format(&address, text);
	must(strlen(text) < sizeof(text));
	must(strlen(net_reason_name((enum net_reason)event->reason)) > 0);
	must(event->kind != EGRESS_EVENT_ALLOWED ||
	     strcmp(egress_event_name((enum egress_event_kind)event->kind), "egress.allowed") == 0);
	(void)egress_via_name((enum egress_via)event->via);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO(auto_free) void *bytes = NULL;
	size_t fd_count = 0;

	if (size < 1)
		return 0;
	/* Memory of exactly this size and aligned for every message. */
	bytes = malloc(size > 1 ? size - 1 : 1);
	if (!bytes)
		return 0;
	memcpy(bytes, data + 1, size - 1);
	fd_count = data[0] / 3 % 4;
	if (data[0] % 3 == 0 && egress_link_check(bytes, size - 1, fd_count, NULL) == 0)
		read_link(bytes, fd_count);
	if (data[0] % 3 == 1 && egress_listener_check(bytes, size - 1, fd_count, NULL) == 0)
		must(fd_count == 1 && ((const struct egress_listener *)bytes)->port <= UINT16_MAX);
	if (data[0] % 3 == 2 && egress_event_check(bytes, size - 1, NULL) == 0)
		read_event(bytes);
	return 0;
}
