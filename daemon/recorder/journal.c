/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/recorder/journal.h"

#include <unistd.h>

#ifdef HAVE_LIBSYSTEMD

/* The location of the caller is of no use to readers: it would always be this file. */
#define SD_JOURNAL_SUPPRESS_LOCATION
#include <inttypes.h>
#include <syslog.h>

#include <systemd/sd-journal.h>

static int event_priority(enum event_kind kind)
{
	switch (kind) {
	case EVENT_DAEMON_STARTED:
	case EVENT_DAEMON_STOPPED:
	case EVENT_EXECUTION_STARTED:
	case EVENT_EXECUTION_FINISHED:
	case EVENT_EGRESS_ALLOWED:
	case EVENT_EGRESS_FAILED:
	case EVENT_EGRESS_CLOSED:
	case EVENT_POLICY_SUPPRESSED:
		return LOG_INFO;
	case EVENT_EXECUTION_FAILED:
	case EVENT_PEER_REFUSED:
	case EVENT_PLACEHOLDER_LEFT:
	case EVENT_EGRESS_DENIED:
	case EVENT_MASK_REPAIRED:
	case EVENT_MOUNT_HELD:
	case EVENT_NAME_PLANTED:
	case EVENT_LEDGER_REPLAYED:
	case EVENT_GRANT_CREATED:
	case EVENT_GRANT_USED:
	case EVENT_GRANT_REVOKED:
		return LOG_NOTICE;
	case EVENT_ROLE_DIED:
	case EVENT_STUCK:
	case EVENT_MASK_LOST:
	case EVENT_GUARD_DOWN:
	case EVENT_GRANT_REFUSED:
	case EVENT_KIND_COUNT:
		break;
	}
	return LOG_WARNING;
}

bool journal_available(void)
{
	return access("/run/systemd/journal/socket", F_OK) == 0;
}

void journal_send(const struct event_message *message, const char *line)
{
	enum event_kind kind = (enum event_kind)message->kind;

	(void)sd_journal_send("MESSAGE=%s", line, "PRIORITY=%d", event_priority(kind),
			      "SYSLOG_IDENTIFIER=fsbox", "FSBOX_EVENT=%s", event_kind_name(kind),
			      "FSBOX_JOB=%" PRIu64, message->job, "FSBOX_UID=%" PRIu32,
			      message->uid, NULL);
}

#else

bool journal_available(void)
{
	return false;
}

void journal_send(const struct event_message *message, const char *line)
{
	(void)message;
	(void)line;
}

#endif
