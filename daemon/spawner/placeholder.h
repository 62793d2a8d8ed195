/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_DAEMON_SPAWNER_PLACEHOLDER_H
#define FSBOX_DAEMON_SPAWNER_PLACEHOLDER_H

/*
 * Empty directories made on the host so that an absent denied path has something to mount on, and
 * their removal. Both run as the peer, in children of fsboxd: fsboxd itself never walks these paths.
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
 * Returns 1 when PATH exists now, 0 when this user cannot create it (EACCES, EPERM, EROFS: then nobody
 * inside can either), or fails with ERR_SETUP_FAILED.
 */
typedef int placeholder_announce_fn(enum report_kind kind, const struct report_placeholder *what,
				    void *arg, struct error *err);
int placeholder_make(const char *path, placeholder_announce_fn *announce, void *arg,
		     struct error *err);

/*
 * Remove one placeholder. One without inode (an intent whose maker died before it could say more) is
 * removed if it is an empty directory with all marks of ours that was born after node.btime_*.
 *
 * Returns 1 when it was removed, 0 when it was already gone or is not ours
 * any more (replaced, not empty): then it is forgotten. Fails with ERR_SYSTEM when it must be tried
 * again later (file system not mounted, I/O error).
 */
int placeholder_remove(const struct report_placeholder *placeholder, struct error *err);

/* Who NODE is, by descriptor (O_PATH is enough). Fails with ERR_SYSTEM. */
int node_identity_read(int fd, struct node_identity *ret_identity, struct error *err);
bool node_identity_equal(const struct node_identity *a, const struct node_identity *b);

#endif
