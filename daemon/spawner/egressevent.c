/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/spawner/egressevent.h"

#include <stdio.h>
#include <string.h>

#include "daemon/log.h"
#include "daemon/spawner/job.h"
#include "daemon/spawner/quote.h"
#include "daemon/spawner/spawner.h"

_Static_assert(sizeof(((struct event_egress *)0)->host) == sizeof(((struct egress_event *)0)->host),
	       "host names are copied as they are");

/* 0: only for the log. */
static enum event_kind kind_of(const struct egress_event *event)
{
	switch ((enum egress_event_kind)event->kind) {
	case EGRESS_EVENT_ALLOWED:
		return EVENT_EGRESS_ALLOWED;
	case EGRESS_EVENT_DENIED:
		return EVENT_EGRESS_DENIED;
	case EGRESS_EVENT_FAILED:
		return EVENT_EGRESS_FAILED;
	case EGRESS_EVENT_CLOSED:
		return EVENT_EGRESS_CLOSED;
	case EGRESS_EVENT_READY:
	case EGRESS_EVENT_JOB_REFUSED:
	case EGRESS_EVENT_LISTENER_REFUSED:
	case EGRESS_EVENT_STATS:
	case EGRESS_EVENT_KIND_COUNT:
		break;
	}
	return (enum event_kind)0;
}

static void describe(const struct egress_event *event, struct event_message *record)
{
	const struct netaddr address = event->address_family == 6 ? netaddr_from_v6(event->address)
								  : netaddr_from_v4(event->address);
	struct event_egress *egress = &record->egress;

	egress->connection = event->connection;
	egress->sent_bytes = event->stats.sent_bytes;
	egress->received_bytes = event->stats.received_bytes;
	egress->duration_ms = event->duration_ms;
	egress->via = event->via;
	egress->reason = event->reason;
	egress->flags = event->flags;
	egress->port = event->port;
	memcpy(egress->host, event->host, sizeof(egress->host));
	if (event->address_family != 0)
		netaddr_format(&address, egress->address);
	(void)snprintf(record->detail, sizeof(record->detail), "%s", event->detail);
}

/* Whose job it is we know better, as long as it is there. */
static uid_t owner_of(const struct spawner *spawner, const struct egress_event *event)
{
	const struct job *job = job_find(spawner, event->job);

	return job ? job->identity.uid : event->uid;
}

void egressevent_record(const struct egress_event *event, void *arg)
{
	struct spawner *spawner = arg;
	struct event_message record = { .job = event->job, .uid = owner_of(spawner, event) };
	enum event_kind kind = kind_of(event);

	if (event->kind == EGRESS_EVENT_JOB_REFUSED || event->kind == EGRESS_EVENT_LISTENER_REFUSED)
		log_write(LOG_WARNING, "fsbox-egress does not serve job %llu as it should: %s",
			  (unsigned long long)event->job, quote(event->detail).text);
	if (event->kind == EGRESS_EVENT_STATS && event->job == 0)
		log_write(LOG_ERROR, "records of connections were lost while there was no fsboxd:"
				     " there was no room for more");
	else if (event->kind == EGRESS_EVENT_STATS && event->stats.lost_events > 0)
		log_write(LOG_WARNING, "%llu events of job %llu were lost in fsbox-egress",
			  (unsigned long long)event->stats.lost_events,
			  (unsigned long long)event->job);
	if (kind == 0)
		return;
	describe(event, &record);
	recorderlink_send(&spawner->recorder, kind, &record);
}

bool egressevent_may(void *arg)
{
	const struct spawner *spawner = arg;

	return spawner->recorder.exec_fd < 0 || recorderlink_ready(&spawner->recorder);
}

void egressevent_died(int status, void *arg)
{
	struct spawner *spawner = arg;
	struct event_message event = { .pid = 0 };

	(void)snprintf(event.detail, sizeof(event.detail), "fsbox-egress (wait status %d)", status);
	recorderlink_send(&spawner->recorder, EVENT_ROLE_DIED, &event);
}
