/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_DAEMON_SPAWNER_MOUNTWORK_H
#define FSBOX_DAEMON_SPAWNER_MOUNTWORK_H

/*
 * What mount.c (the template) and mountjob.c (each job) share: which operations of a plan are fresh for
 * each job, which trees wait for them, and how a mountpoint is found or made. Private to the two.
 */

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "common/error.h"
#include "common/plan.h"
#include "daemon/spawner/mount.h"

/*
 * Rules below a fresh directory must stand on top of it, and the directory is made for each job. So
 * their trees wait here, each under a number, and mount_finish() attaches copies.
 */
#define MOUNT_STAGE_DIR "/dev/.fsbox-stage"

/* One waiting tree: the operation that begins it; the name below MOUNT_STAGE_DIR is its index. */
struct staged {
	const struct plan_op *op;
	size_t index;
};

/* The plan's fresh places: /proc and at most one tmpfs for each directory a job has for itself. */
#define FRESH_MAX 16

/*
 * @root_fd    the new root; -1 outside mount_build()
 * @stage_fd   MOUNT_STAGE_DIR; -1 outside mount_finish()
 * @masks_fd   detached tmpfs with an unreadable directory "d" and file "f"
 * @own_devs   file systems made here: only in them mountpoints are created
 * @fresh      operations that each job carries out for itself
 * @staged     in the order of the plan
 * @pins       how many directories are pinned so far
 */
struct mount_work {
	const struct plan *plan;
	const struct mount_options *options;
	int root_fd;
	int stage_fd;
	int masks_fd;
	dev_t *own_devs;
	size_t own_dev_count;
	const struct plan_op *fresh[FRESH_MAX];
	size_t fresh_count;
	struct staged *staged;
	size_t staged_count;
	size_t pins;
};

#define MOUNT_WORK_INIT(the_plan, the_options)                                               \
	{                                                                                    \
		.plan = (the_plan), .options = (the_options), .root_fd = -1, .stage_fd = -1, \
		.masks_fd = -1,                                                              \
	}

void mount_work_deinit(struct mount_work *work);

/*
 * A detached, read-only tmpfs with an unreadable directory "d" and an unreadable file "f". The descriptor
 * is the caller's. Fails with ERR_SETUP_FAILED.
 */
int mount_work_make_masks(int *ret_fd, struct error *err);

/* Carried out by each job for itself, not by the template. */
bool mount_work_is_fresh(const struct plan_op *op);

/*
 * Find out, from the plan alone, what is fresh and what waits: the same for template and job. Fails
 * with ERR_NOMEM or ERR_SETUP_FAILED.
 */
int mount_work_find_staged(struct mount_work *work, struct error *err);

/* FD is in a file system made here: mountpoints may be made in it. Fails with ERR_NOMEM. */
int mount_work_remember(struct mount_work *work, int fd, struct error *err);

/*
 * Descriptor (O_PATH) of REL below BASE_FD, missing components made where that is allowed; -1 with
 * errno otherwise.
 */
int mount_work_mountpoint(const struct mount_work *work, int base_fd, const char *rel,
			  bool directory);

/*
 * The mountpoint of OP: in the new root, or in a waiting tree. With PLAN_NODE_LINK it may be a link, on
 * which the kernel mounts like on a file. Fails with ERR_SETUP_FAILED.
 */
int mount_work_target(const struct mount_work *work, const struct plan_op *op, bool directory,
		      struct error *err);

#endif
