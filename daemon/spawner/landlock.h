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
 * A rule set, which confines nobody yet.
 *
 * @writable  paths, as seen now, at and below which everything is allowed; a path that cannot be
 *            opened is left out, which only ever takes rights away
 * @dev_fd    O_PATH descriptor of the host's /dev, or -1: a terminal or /dev/null that the client passed
 *            lies there, and programs open it again through /dev/stderr; not reachable by path
 *
 * Returns 1, and *RET_FD is the caller's; 0 when this kernel cannot; or fails with ERR_SETUP_FAILED.
 */
int landlock_prepare(const char *const *writable, size_t count, int dev_fd, int *ret_fd,
		     struct error *err);

/*
 * Confine this process, and all it will ever start, for good. Needs no_new_privs. RULESET_FD is still the
 * caller's.
 *
 * @fresh  one more writable path, of what was mounted since the rule set was made, or NULL. A mount hides the
 *         rule of the directory that it is on (Linux, as of 6.18: only what is above it counts)
 *
 * Fails with ERR_SETUP_FAILED.
 */
int landlock_apply(int ruleset_fd, const char *fresh, struct error *err);

/* Both: 1 when confined, 0 when this kernel cannot (then nothing happened), or fails. */
int landlock_enter(const char *const *writable, size_t count, int dev_fd, struct error *err);

#endif
