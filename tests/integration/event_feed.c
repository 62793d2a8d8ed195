/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes events as fsboxd does, for tests of fsbox-recorder.
 *
 * usage: event_feed COUNT [COMMAND]	COUNT started executions, jobs 1 to COUNT, as fast as it can
 *        event_feed each		one event of each kind
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proto/wire/eventop.h"

static int put(const struct event_message *message)
{
	/* Shorter than PIPE_BUF: all or nothing. */
	return write(STDOUT_FILENO, message, sizeof(*message)) == (ssize_t)sizeof(*message) ? 0
											    : -1;
}

static struct event_message event_make(enum event_kind kind, uint64_t job)
{
	struct event_message message = {
		.size = sizeof(message),
		.kind = kind,
		.time_ns = UINT64_C(1700000000123456789),
		.job = job,
		.uid = 61501,
		.pid = 4242,
		.engine = ENGINE_BWRAP,
		.room = ROOM_EGRESS_DENIED,
		.argc = 2,
		.rules = 43,
		.suppressed = 1,
		.withheld = 2,
		.exited = { .reason = EXIT_EXITED, .code = 7, .wall_ms = 12 },
	};

	memset(message.args_hash, 0x11, sizeof(message.args_hash));
	memset(message.policy_digest, 0x22, sizeof(message.policy_digest));
	(void)snprintf(message.profile, sizeof(message.profile), "generic");
	(void)snprintf(message.command, sizeof(message.command), "make");
	return message;
}

int main(int argc, char **argv)
{
	unsigned long count = 0;

	if (argc < 2)
		return 2;
	if (strcmp(argv[1], "each") == 0) {
		for (int kind = 1; kind < EVENT_KIND_COUNT; kind++) {
			struct event_message message = event_make((enum event_kind)kind, 1);

			message.error_kind = ERR_SETUP_FAILED;
			(void)snprintf(message.detail, sizeof(message.detail), "why \"%d\"\n",
				       kind);
			if (put(&message) < 0)
				return 1;
		}
		return 0;
	}
	errno = 0;
	count = strtoul(argv[1], NULL, 10);
	for (unsigned long job = 1; job <= count && errno == 0; job++) {
		struct event_message message = event_make(EVENT_EXECUTION_STARTED, job);

		if (argc > 2)
			(void)snprintf(message.command, sizeof(message.command), "%s", argv[2]);
		if (put(&message) < 0)
			return 1;
	}
	return 0;
}
