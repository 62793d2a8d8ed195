/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_DAEMON_BROKER_KERNELMOUNTS_H
#define FSBOX_DAEMON_BROKER_KERNELMOUNTS_H

/*
 * Where the host shows kernel file systems at unusual places: procfs, sysfs, control groups and the
 * like anywhere but at /proc, /sys and /dev (R19). A rule on a tree that holds such a mount would
 * bring it into a job.
 */

#include <stdint.h>

#include "common/error.h"
#include "common/policy.h"
#include "daemon/alias.h"

/*
 * @fd          /proc/self/mountinfo, which tells when it changed; -1: not open
 * @generation  counts how often it was read
 * @paths       of kernel file systems at unusual places
 * @table       all mounts
 */
struct kernelmounts {
	int fd;
	uint64_t generation;
	struct string_list paths;
	struct mount_table table;
};

#define KERNELMOUNTS_INIT \
	{                 \
		.fd = -1  \
	}

/* Bring all that up to date; cheap when nothing was mounted since. Fails with ERR_SYSTEM, ERR_NOMEM. */
int kernelmounts_refresh(struct kernelmounts *mounts, struct error *err);
void kernelmounts_deinit(struct kernelmounts *mounts);

/* The same for @paths alone, from TABLE, appended to PATHS. Fails with ERR_NOMEM. */
int kernelmounts_list(struct string_list *paths, const struct mount_table *table,
		      struct error *err);

#endif
