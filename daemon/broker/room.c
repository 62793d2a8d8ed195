/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/broker/room.h"

#include <stdio.h>

#include "common/posture.h"

/* fsboxd tried: this only repeats what it said. */
static struct detection detection_of(const struct link_config *config)
{
	struct detection detection = {
		.supported = true,
		.available = config->engines != 0,
		.mechanism = config->engines != 0 ? MECHANISM_NAMESPACE : MECHANISM_NONE,
	};

	(void)snprintf(detection.reason, sizeof(detection.reason), "%s", config->engine_reason);
	return detection;
}

static enum room_kind applied(enum net_mode net)
{
	return net == NET_PROXY ? ROOM_EGRESS_ALLOWLIST : ROOM_EGRESS_DENIED;
}

int room_choose(enum room_kind *ret_room, const struct room_input *input, struct error *err)
{
	const struct detection detection = detection_of(input->config);
	/* A profile that leaves the network open is as good a reason not to close it. */
	const struct posture_input question = {
		.opted_out = input->net == NET_HOST && !input->granted,
		.granted = input->granted,
		.detection = &detection,
	};
	const struct posture posture = posture_decide(&question);

	switch (posture.kind) {
	case POSTURE_REFUSE:
		return error_set(err, ERR_ENGINE_UNAVAILABLE, 0, "no room for the command: %s",
				 posture.reason);
	case POSTURE_APPLY:
		*ret_room = applied(input->net);
		return 0;
	case POSTURE_SKIP:
		break;
	}
	switch (posture.state) {
	case POSTURE_OPTED_OUT:
		*ret_room = input->asked && input->usual != NET_HOST ? ROOM_OPTED_OUT
								     : ROOM_EGRESS_OPEN;
		break;
	case POSTURE_GRANTED_EGRESS:
		*ret_room = ROOM_GRANTED_EGRESS;
		break;
	case POSTURE_EGRESS_DENIED:
	case POSTURE_UNSUPPORTED:
		*ret_room = ROOM_UNSUPPORTED;
		break;
	}
	return 0;
}
