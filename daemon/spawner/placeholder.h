/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_DAEMON_SPAWNER_PLACEHOLDER_H
#define FSBOX_DAEMON_SPAWNER_PLACEHOLDER_H

/*
 * Empty directories made on the host so that an absent denied path has something to mount on, and
 * their removal (also of files: placeholderfile.h). Both run as the peer, in children of fsboxd: fsboxd itself never walks these paths.
 *
 * One is removed only if it is still the very object that was made, still empty, never recursively.
 */

#include <stdbool.h>

#include "common/error.h"
#include "proto/wire/spawnop.h"

/*
 * Make every missing level of PATH (absolute, canonical as far as it exists), the outermost first.
 * Before each level ANNOUNCE is called with an intent and after it with what was made, or that it was
 * skipped, since somebody else was faster or it cannot be made; a negative result of ANNOUNCE
 * stops the work.
 *
 * Returns 1 when PATH exists now, 0 when this user cannot create it (EACCES, EPERM, a read-only file system: then nobody
 * inside can either), or fails with ERR_SETUP_FAILED, for want of room of any kind ERR_LEDGER_FAILED.
 */
typedef int placeholder_announce_fn(enum report_kind kind, const struct report_placeholder *what,
				    void *arg, struct error *err);
int placeholder_make(const char *path, placeholder_announce_fn *announce, void *arg,
		     struct error *err);

/*
 * What is recorded of one.
 *
 * @what                   node.ino 0: nobody said that it was made
 * @since_sec, @since_nsec its maker may have died before he could say so: then it is an empty directory with
 *                         all marks of ours that was born from then on, within a builder's life. 0: no
 */
struct placeholder {
	struct report_placeholder what;
	int64_t since_sec;
	uint32_t since_nsec;
};

enum placeholder_fate {
	PLACEHOLDER_REMOVED = 1,
	PLACEHOLDER_GONE, /* there is nothing at its path */
	PLACEHOLDER_LEFT, /* what is there is not ours, or not empty, and stays */
};

/*
 * Remove one placeholder, also where a directory above it was renamed. Returns its fate (enum placeholder_fate): with each it may be forgotten. Fails
 * with ERR_SYSTEM when it must be tried again later (file system not mounted, I/O error).
 */
int placeholder_remove(const struct placeholder *placeholder, struct error *err);

/* Who NODE is, by descriptor (O_PATH is enough). Fails with ERR_SYSTEM. */
int node_identity_read(int fd, struct node_identity *ret_identity, struct error *err);
bool node_identity_equal(const struct node_identity *a, const struct node_identity *b);

#endif
