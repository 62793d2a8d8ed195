/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/wire/eventop.h"

#include <limits.h>
#include <stdbool.h>
#include <string.h>

#include "common/scope.h"
#include "proto/wire/egressop.h"

_Static_assert(sizeof(struct event_message) <= PIPE_BUF, "event_message is written atomically");

static const char *const event_names[EVENT_KIND_COUNT] = {
	[EVENT_DAEMON_STARTED] = "daemon.started",
	[EVENT_DAEMON_STOPPED] = "daemon.stopped",
	[EVENT_EXECUTION_STARTED] = "execution.started",
	[EVENT_EXECUTION_FINISHED] = "execution.finished",
	[EVENT_EXECUTION_FAILED] = "execution.failed",
	[EVENT_PEER_REFUSED] = "peer.refused",
	[EVENT_ROLE_DIED] = "role.died",
	[EVENT_PLACEHOLDER_LEFT] = "placeholder.left",
	[EVENT_STUCK] = "helper.stuck",
	[EVENT_EGRESS_ALLOWED] = "egress.allowed",
	[EVENT_EGRESS_DENIED] = "egress.denied",
	[EVENT_EGRESS_FAILED] = "egress.failed",
	[EVENT_EGRESS_CLOSED] = "egress.closed",
	[EVENT_MASK_REPAIRED] = "mask.repaired",
	[EVENT_MASK_LOST] = "mask.lost",
	[EVENT_NAME_PLANTED] = "name.planted",
	[EVENT_GUARD_DOWN] = "guard.down",
	[EVENT_MOUNT_HELD] = "mount.held",
	[EVENT_LEDGER_REPLAYED] = "ledger.replayed",
	[EVENT_POLICY_SUPPRESSED] = "policy.suppressed",
	[EVENT_GRANT_CREATED] = "grant.created",
	[EVENT_GRANT_USED] = "grant.used",
	[EVENT_GRANT_REFUSED] = "grant.refused",
	[EVENT_GRANT_REVOKED] = "grant.revoked",
};

const char *event_kind_name(enum event_kind kind)
{
	if ((size_t)kind >= ARRAY_SIZE(event_names) || !event_names[kind])
		return "unknown";
	return event_names[kind];
}

static int texts_check(const struct event_message *message, struct error *err)
{
	const struct {
		const char *text;
		size_t size;
		const char *what;
	} texts[] = {
		{ message->profile, sizeof(message->profile), "profile" },
		{ message->command, sizeof(message->command), "command" },
		{ message->label, sizeof(message->label), "label" },
		{ message->kept_as, sizeof(message->kept_as), "kept_as" },
		{ message->detail, sizeof(message->detail), "detail" },
		{ message->egress.host, sizeof(message->egress.host), "host" },
		{ message->egress.address, sizeof(message->egress.address), "address" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		if (!memchr(texts[i].text, '\0', texts[i].size))
			return error_set(err, ERR_BAD_FRAME, 0, "event: %s is not terminated",
					 texts[i].what);
	return 0;
}

static bool egress_is_sound(const struct event_egress *egress)
{
	return egress->via < EGRESS_VIA_COUNT && egress->reason < NET_REASON_COUNT &&
	       (egress->flags & ~(uint32_t)EGRESS_EVENT_FLAGS_ALL) == 0 &&
	       egress->port <= UINT16_MAX;
}

int recorder_control_check(const struct recorder_control *control, size_t size, struct error *err)
{
	if (size != sizeof(*control) || control->size != sizeof(*control) ||
	    control->everybody > 1 || control->follow > 1)
		return error_set(err, ERR_BAD_FRAME, 0, "not an order for the recorder");
	return 0;
}

int recorder_ack_check(const struct recorder_ack *ack, struct error *err)
{
	if (ack->first == 0 || ack->last < ack->first || ack->durable > 1 || ack->reserved != 0)
		return error_set(err, ERR_BAD_FRAME, 0, "not an acknowledgement");
	return 0;
}

int event_message_check(const struct event_message *message, size_t size, struct error *err)
{
	if (size != sizeof(*message) || message->size != sizeof(*message))
		return error_set(err, ERR_BAD_FRAME, 0, "event of %zu bytes, must be %zu", size,
				 sizeof(*message));
	if (message->kind < EVENT_DAEMON_STARTED || message->kind >= EVENT_KIND_COUNT)
		return error_set(err, ERR_BAD_FRAME, 0, "event of unknown kind %u", message->kind);
	/* Not every event is about a job: zero stands for none in what follows. */
	if (message->engine > ENGINE_SEATBELT || message->room > ROOM_UNSUPPORTED ||
	    message->error_kind > ERROR_KIND_COUNT || message->exited.reason > EXIT_LOST ||
	    message->exited.core_dumped > 1 || !egress_is_sound(&message->egress) ||
	    message->guard_action > GUARD_KILLED || message->urgent > 1 || message->reserved != 0)
		return error_set(err, ERR_BAD_FRAME, 0, "event of kind %u: a value out of range",
				 message->kind);
	return texts_check(message, err);
}
