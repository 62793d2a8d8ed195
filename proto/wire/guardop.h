/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_PROTO_WIRE_GUARDOP_H
#define FSBOX_PROTO_WIRE_GUARDOP_H

/*
 * What a guard is told, over its order socket:
 *
 *	fsboxd      --socket-->  guard	plans; jobs whose guard died
 *	job's pid 1 --socket-->  guard	itself, before it gives up what it takes to tell
 *
 * All senders share one end of the socket, whose reverse direction is shut down. What the guard says
 * comes to fsboxd through a pipe, as struct report_message (proto/wire/spawnop.h).
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

enum guard_order_kind {
	GUARD_ORDER_PLAN = 1, /* + [sealed plan memfd]: jobs with it will come */
	GUARD_ORDER_FORGET,   /* no further job of plan will come */
	GUARD_ORDER_JOB,      /* + [mount namespace, end]: keep the masks of job in place */
	GUARD_ORDER_KIND_COUNT,
};

enum guard_flags {
	GUARD_KILL_UNMASKED = 1 << 0, /* a job that lost a mask is killed, not repaired */
	GUARD_KILL_PLANTED = 1 << 1,  /* so is one under which a quarantined name appeared */
	GUARD_FLAGS_ALL = (1 << 2) - 1,
};

/*
 * @plan        fsboxd's number of the plan
 * @job         GUARD_ORDER_JOB: fsboxd's number of the job, else 0
 * @plan_bytes  GUARD_ORDER_PLAN: size of the plan in the memfd, else 0
 * @flags       GUARD_ORDER_JOB: enum guard_flags, else 0
 * @begun_ns    GUARD_ORDER_JOB: CLOCK_REALTIME_COARSE, as file systems tell time, before the command ran:
 *              what is older is not the job's doing; else 0
 * @pid         GUARD_ORDER_JOB: the job's pid 1 as the host sees it; 0: the sender is
 *
 * The end descriptor of a job becomes readable or hangs up when nothing of it runs any more: a pipe
 * that pid 1 alone holds open, or pid 1's pidfd.
 */
struct guard_order {
	uint32_t size; /* sizeof(struct guard_order) */
	uint32_t kind; /* enum guard_order_kind */
	uint64_t plan;
	uint64_t job;
	uint64_t begun_ns;
	uint32_t plan_bytes;
	uint32_t flags;
	int32_t pid;
	uint32_t reserved;
};

#define GUARD_ORDER_FDS 2

/* How many descriptors ride with an order of this kind. */
size_t guard_order_fd_count(enum guard_order_kind kind);

/* Zero ORDER and fill its header. */
void guard_order_init(struct guard_order *order, enum guard_order_kind kind);

/* Whether SIZE bytes with FD_COUNT descriptors are one well-formed order. Fails with ERR_BAD_FRAME. */
int guard_order_check(const struct guard_order *order, size_t size, size_t fd_count,
		      struct error *err);

/*
 * Send ORDER with its descriptors, all borrowed. @block: wait while the guard does not read. Fails with
 * ERR_SYSTEM.
 */
int guard_order_send(int socket_fd, const struct guard_order *order, const int *fds, bool block,
		     struct error *err);

/*
 * Receive one order that is well-formed. The descriptors are the caller's. *ret_sender is the sender's
 * process where the socket has SO_PASSCRED, else 0.
 *
 * Returns 1, or 0 when nobody can send any more. Fails with ERR_SYSTEM (EAGAIN: nothing now) or
 * ERR_BAD_FRAME; nothing is held then.
 */
int guard_order_receive(int socket_fd, struct guard_order *ret_order, int *ret_fds, int *ret_sender,
			struct error *err);

#endif
