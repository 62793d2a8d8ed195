/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_DAEMON_SPAWNER_MOUNT_H
#define FSBOX_DAEMON_SPAWNER_MOUNT_H

/*
 * A plan's mounts, carried out by descriptor with the new mount API (Linux 5.12).
 *
 * Twice: mount_build() makes what every job of the plan shares and leaves the calling process inside
 * it; mount_finish() adds, in a copy of that namespace, what each job has for itself: /proc,
 * terminals, the fresh directories, and the rules below them.
 *
 * Every source is opened as the calling user without following links, cloned with everything that
 * is mounted below it, and given its attributes before it is attached (R10). Mountpoints are made
 * only in file systems made here; where one is missing in a tree of the host's, the work stops.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/error.h"
#include "common/plan.h"

/*
 * @in_userns    the caller's mount namespace belongs to a user namespace of its own: device nodes are
 *               bound instead of made, and the host's /proc is kept under the fresh one, without which
 *               the kernel refuses to mount it
 * @root_peer    the job's user is uid 0: all of /proc read-only (R19)
 * @proc_masks   in and out: which files of /proc this kernel has and a job must not see, found out by the
 *               first mount_finish(), 0 before; NULL: found out each time
 */
struct mount_options {
	bool in_userns;
	bool root_peer;
	uint32_t *proc_masks;
};

/*
 * Make the file tree of PLAN and make it the root of this process. The caller has a mount namespace
 * of its own whose mounts are private, CAP_SYS_ADMIN over it, and the peer's file system ids.
 *
 * Fails with ERR_SETUP_FAILED (the message names the path) or ERR_PATH_NOT_FOUND (a source is gone
 * or is behind a link now). The namespace is then useless.
 */
int mount_build(const struct plan *plan, const struct mount_options *options, struct error *err);

/* What a job has for itself: all but /proc, which shows the pid namespace of who mounts it; and /proc. */
enum mount_part { MOUNT_AHEAD = 1 << 0, MOUNT_INSIDE = 1 << 1 };

/*
 * Add a job's own mounts. The caller is in a copy of the built namespace, for MOUNT_INSIDE with
 * MOUNT_AHEAD done and in the job's pid namespace.
 *
 * @parts  of enum mount_part
 *
 * Fails with ERR_SETUP_FAILED.
 */
int mount_finish(const struct plan *plan, const struct mount_options *options, unsigned int parts,
		 struct error *err);

#endif
