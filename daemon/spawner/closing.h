/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_DAEMON_SPAWNER_CLOSING_H
#define FSBOX_DAEMON_SPAWNER_CLOSING_H

/*
 * Closing sockets into which somebody may have put descriptors that fsboxd has not received and
 * never will.
 *
 * Whoever closes the last descriptor of such a socket closes what waits in it, and closing a file on
 * a dead file system may block for ever, uninterruptibly (R7). So a child does it. One that hangs
 * counts against its user; beyond the limit the socket stays open until a child of that user comes
 * back. With too many such sockets fsboxd stops accepting (closing_full()).
 */

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "common/limits.h"
#include "daemon/spawner/child.h"
#include "daemon/spawner/loop.h"

struct quota;

/* As many as one child closes, and how long they are collected for it. */
#define CLOSING_BATCH 16
#define CLOSING_LATER_MS 1000

/*
 * @children, @quota, @loop  borrowed; QUOTA_CLOSERS while a child is at it
 * @batch                    of @batch_uid: to be closed by one child
 */
struct closing {
	struct loop *loop;
	struct children *children;
	struct quota *quota;
	int batch[CLOSING_BATCH];
	size_t batch_count;
	uid_t batch_uid;
	struct loop_timer batch_timer;
	struct closing_entry {
		int fd;
		uid_t uid;
		bool drain;
	} waiting[LIMIT_LINGERING];
	size_t waiting_count;
};

void closing_init(struct closing *closing, struct loop *loop, struct children *children,
		  struct quota *quota);

/* At the end of fsboxd: what was collected stays to the kernel. */
void closing_deinit(struct closing *closing);

/*
 * A connection that will not be served, or the channel of a job that is over; FD is consumed. UID is
 * whose it is. What waits in it goes even if somebody else has the socket as well: a job that hangs for
 * ever must not keep the client's pipes open.
 *
 * For a stream connection an empty queue is recognised and closed at once. Nothing can be added to
 * it meanwhile: receiving is shut down first.
 */
void closing_take_stream(struct closing *closing, int fd, uid_t uid);
void closing_take_channel(struct closing *closing, int fd, uid_t uid);

/*
 * The same for a channel that init has as well, or had: most likely ours is not the last descriptor, and
 * a child for each would be much. They are collected, and it does not matter when they go.
 */
void closing_take_later(struct closing *closing, int fd, uid_t uid);

/* No room to take another one. */
bool closing_full(const struct closing *closing);

#endif
