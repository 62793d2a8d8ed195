/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_DAEMON_BROKER_SENDER_H
#define FSBOX_DAEMON_BROKER_SENDER_H

/*
 * Who may speak on a connection: the process that connected, as long as it lives in our namespaces
 * (R2). A connection that leaked into a sandbox, or to any other process, is worth nothing there.
 *
 * fsboxd checked more (R6) once, when it accepted; this is repeated for each frame, since a process
 * may enter other namespaces later. Cost: one poll(2) and four stat(2).
 */

#include <stdint.h>
#include <sys/types.h>

#include "common/error.h"
#include "proto/wire/channel.h"

enum sender_place { PLACE_USER = 0, PLACE_MOUNT, PLACE_PID, PLACE_ROOT, PLACE_COUNT };

/* Where a process lives: its namespaces and its root directory, by device and inode. */
struct sender_places {
	struct {
		uint64_t dev;
		uint64_t ino;
	} place[PLACE_COUNT];
};

/*
 * @pid      of the process that connected
 * @pidfd    of it, owned
 * @proc_fd  its directory in /proc, owned: never another process's, also when the pid is used again
 */
struct sender {
	pid_t pid;
	uid_t uid;
	int pidfd;
	int proc_fd;
};

#define SENDER_INIT                        \
	{                                  \
		.pidfd = -1, .proc_fd = -1 \
	}

/* Our own places; read once at start. Fails with ERR_SYSTEM. */
int sender_own_places(struct sender_places *ret_places, struct error *err);

/* PIDFD is the sender's even when this fails. Fails with ERR_CONFINED_PEER (gone, or hidden). */
int sender_init_take(struct sender *sender, pid_t pid, uid_t uid, int pidfd, struct error *err);
void sender_deinit(struct sender *sender);

/*
 * Whether the frame that WHO sent is to be obeyed. Fails with ERR_CONFINED_PEER, saying why not.
 *
 * @ours  of this process
 */
int sender_check(const struct sender *sender, const struct channel_sender *who,
		 const struct sender_places *ours, struct error *err);

#endif
