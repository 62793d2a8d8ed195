/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_DAEMON_BROKER_CLOSER_H
#define FSBOX_DAEMON_BROKER_CLOSER_H

/*
 * Closing descriptors that clients chose, without ever waiting for a file system.
 *
 * close(2) writes a file's last data back: on a dead FUSE or NFS mount it hangs, and with it all that
 * the user's other clients asked for. So regular files, directories and whatever we cannot tell are
 * closed by a thread that shares our descriptors and touches nothing else; pipes, sockets, terminals
 * and the like are closed at once. A thread that hangs gets company, up to LIMIT_STUCK_PER_UID;
 * then nothing more is taken from clients until one comes back (closer_ready()).
 */

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include "common/error.h"
#include "common/limits.h"
#include "proto/wire/fdset.h"

/* Descriptors waiting for a thread; each is one that a client sent. */
#define CLOSER_QUEUE 512

struct closer {
	pthread_mutex_t lock;
	pthread_cond_t more;
	int queue[CLOSER_QUEUE];
	size_t first;
	size_t count;
	unsigned threads; /* running */
	unsigned idle;    /* of them, waiting for work */
	bool ended;
};

int closer_init(struct closer *closer, struct error *err);

/* Lets the threads end; those that hang keep CLOSER, which must therefore stay where it is. */
void closer_deinit(struct closer *closer);

/* FD is closed soon, or now; -1 is fine. Never blocks. */
void closer_take(struct closer *closer, int fd);

/* The same for what is left in SET, which is empty afterwards. */
void closer_take_set(struct closer *closer, struct fdset *set);

/* Whether more descriptors may be accepted. */
bool closer_ready(struct closer *closer);

#endif
