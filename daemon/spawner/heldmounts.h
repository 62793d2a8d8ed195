/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_DAEMON_SPAWNER_HELDMOUNTS_H
#define FSBOX_DAEMON_SPAWNER_HELDMOUNTS_H

/*
 * Mounts that the host let go while jobs still have them (R12): a job has copies of all that was mounted
 * below what it may see, and keeps the file systems in use until it ends, although the host's own
 * unmounting succeeded. Whoever wonders why a disk is busy finds an event for each such job.
 */

#include <stdint.h>

#include "common/error.h"
#include "daemon/alias.h"

struct spawner;

/*
 * @table    the host's mounts as they were when looked at last
 * @seen_ms  of each: CLOCK_REALTIME when it was seen first; 0: it was there when fsboxd started
 */
struct heldmounts {
	struct mount_table table;
	uint64_t *seen_ms;
};

/* Look at the mounts there are. Fails with ERR_SYSTEM, ERR_NOMEM. */
int heldmounts_init(struct heldmounts *held, struct error *err);
void heldmounts_deinit(struct heldmounts *held);

/* They changed: record jobs that have what is gone. What cannot be read is looked at the next time. */
void heldmounts_changed(struct spawner *spawner);

#endif
