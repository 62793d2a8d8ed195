/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_PROTO_WIRE_ZYGOTEOP_H
#define FSBOX_PROTO_WIRE_ZYGOTEOP_H

/*
 * What fsboxd tells a pid 1 that was made before its job:
 *
 *	fsboxd  --socket-->  zygote	struct zygote_message, once; the reverse direction is shut down
 *
 * What the zygote says comes through its report pipe, as struct report_message (proto/wire/spawnop.h).
 */

#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "proto/wire/spawnop.h"

/* Which descriptors ride with it, in this order, lowest bit first. */
enum zygote_fds {
	ZYGOTE_FD_CHANNEL = 1 << 0, /* always: the job channel */
	ZYGOTE_FD_EGRESS = 1 << 1,  /* to fsbox-egress */
	ZYGOTE_FD_GUARD = 1 << 2,   /* the guard's order socket */
	ZYGOTE_FD_RESULT = 1 << 3,  /* the job's file, of which one page is mapped */
	ZYGOTE_FD_ALL = (1 << 4) - 1,
};

#define ZYGOTE_FD_COUNT 4

/*
 * What a job has of its own beside its template and identity. The rest is in its channel, as for every
 * init.
 *
 * @fds            enum zygote_fds
 * @flags          enum setup_flags, never SETUP_NET_HOST
 * @forward_count  and @forwards: as in struct setup_header
 * @guard_plan, @job, @guard_flags  what its guard is told; 0 without ZYGOTE_FD_GUARD
 * @grant          zeroed without SETUP_GRANTED
 */
struct zygote_message {
	uint32_t size; /* sizeof(struct zygote_message) */
	uint32_t fds;
	uint32_t flags;
	uint32_t forward_count;
	uint16_t forwards[LIMIT_FORWARDS];
	uint64_t guard_plan;
	uint64_t job;
	uint32_t guard_flags; /* enum guard_flags */
	uint32_t reserved;
	struct grant_terms grant;
};

/* Whether SIZE bytes with FD_COUNT descriptors are one well-formed message. Fails with ERR_BAD_FRAME. */
int zygote_message_check(const struct zygote_message *message, size_t size, size_t fd_count,
			 struct error *err);

/*
 * Send MESSAGE, whose fds and size are filled in here from FDS (by bit, -1: none; all borrowed). Never
 * blocks. Fails with ERR_SYSTEM.
 */
int zygote_message_send(int socket_fd, struct zygote_message *message,
			const int fds[ZYGOTE_FD_COUNT], struct error *err);

/*
 * Wait for one message that is well-formed; RET_FDS by bit, -1 where there is none, the caller's.
 *
 * Returns 1, or 0 when nobody can send any more. Fails with ERR_SYSTEM or ERR_BAD_FRAME; nothing is held
 * then.
 */
int zygote_message_receive(int socket_fd, struct zygote_message *ret_message,
			   int ret_fds[ZYGOTE_FD_COUNT], struct error *err);

#endif
