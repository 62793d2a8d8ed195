/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_DAEMON_SPAWNER_GUARDFIX_H
#define FSBOX_DAEMON_SPAWNER_GUARDFIX_H

/*
 * Looking at the masks of a job that runs, and putting back what is missing: inside its mount
 * namespace, so by a child that was forked for this and has nothing else (R27).
 *
 * What is judged is what the job would see at the path, not which mount is still there. No link is
 * followed anywhere.
 */

#include <stdint.h>

#include "common/error.h"
#include "daemon/spawner/guardplan.h"

enum guardfix_result {
	GUARDFIX_HELD,     /* hidden, or not writable, as it should be */
	GUARDFIX_ABSENT,   /* nothing is there */
	GUARDFIX_REPAIRED, /* it was open, and is not any more */
	GUARDFIX_WENT,     /* it was open for a moment, and nothing is there now */
	GUARDFIX_LOST,     /* it is open, and cannot be closed: err says why */
};

/*
 * A detached, sealed file system with an unreadable directory "d" and file "f", which can be cloned
 * into any mount namespace of the user namespace USER_NS_FD (-1: the present one). Made by a child, since
 * it takes a mount namespace there. The descriptor is the caller's. Fails with ERR_SETUP_FAILED.
 */
int guardfix_make_masks(int user_ns_fd, int *ret_fd, struct error *err);

/*
 * Whether the user that we are could make something at PATH, where nothing is. Where he cannot, his job cannot
 * either.
 */
bool guardfix_may_make(const char *path);

/* Stand in the mount namespace from now on. Fails with ERR_SETUP_FAILED. */
int guardfix_enter(int mount_ns_fd, struct error *err);

/*
 * Look at POINT and repair it. *RET_CHANGED_NS: CLOCK_REALTIME at which what was found there came to be
 * there, as far as the file system tells; only with GUARDFIX_REPAIRED.
 */
enum guardfix_result guardfix_point(const struct guard_point *point, int masks_fd,
				    uint64_t *ret_changed_ns, struct error *err);

#endif
