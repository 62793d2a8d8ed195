/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_DAEMON_SPAWNER_LISTENER_H
#define FSBOX_DAEMON_SPAWNER_LISTENER_H

/*
 * The listening socket: from the service manager, or made here. A path, never an abstract name (R1):
 * the kernel checks its mode at connect, and whoever may connect is decided by that alone.
 */

#include <sys/types.h>

#include "common/error.h"

/*
 * The socket among the COUNT descriptors that the service manager passed, starting with number 3.
 * The others are closed. Returns it, non-blocking; the caller's. Fails with ERR_CONFIG when there is
 * not exactly one Unix stream socket that listens on a path.
 */
int listener_adopt(int count, struct error *err);

/*
 * Make the socket PATH with MODE and group GID ((gid_t)-1: as it comes). The caller holds the lock
 * for it. One that is left over from a daemon that died is replaced; one that somebody serves, and
 * anything that is no socket, is not. Fails with ERR_CONFIG or ERR_SYSTEM.
 */
int listener_open(const char *path, mode_t mode, gid_t gid, struct error *err);

/* Remove the socket PATH that is left over from a daemon that is gone; any other thing there stays. */
void listener_remove_left_over(const char *path);

/*
 * Have the kernel note the sender with every byte written to FD from now on (R2). Connections take
 * this over from a listening socket; those that a service manager's socket had queued before it was
 * ours need it by themselves, before the first look at them. Fails with ERR_SYSTEM.
 */
int listener_note_senders(int fd, struct error *err);

#endif
