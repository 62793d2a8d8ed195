/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_DAEMON_SPAWNER_LANDLOCK_H
#define FSBOX_DAEMON_SPAWNER_LANDLOCK_H

/*
 * Landlock as a second, coarser layer below the mounts: reading and executing anywhere in the job's
 * own tree, writing only where the policy says readWrite. It cannot say "deny below allow"; the
 * mounts do. It holds where they do not reach: a directory descriptor that leaked in, a detached
 * mount, abstract sockets and signals across the border.
 *
 * The TCP rules and the right to ioctl() devices are left alone: the network namespace and the minimal
 * /dev are exact where these are coarse.
 */

#include <stdbool.h>
#include <stddef.h>

#include "common/error.h"

/*
 * Confine this process, and all it will ever start, for good. Needs no_new_privs.
 *
 * @writable  paths, as seen now, at and below which everything is allowed; a path that cannot be
 *            opened is left out, which only ever takes rights away
 * @dev_fd    O_PATH descriptor of the host's /dev, or -1: a terminal or /dev/null that the client passed
 *            lies there, and programs open it again through /dev/stderr; not reachable by path
 *
 * Returns 1 when confined, 0 when this kernel cannot (then nothing happened), or fails with
 * ERR_SETUP_FAILED.
 */
int landlock_enter(const char *const *writable, size_t count, int dev_fd, struct error *err);

#endif
