/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_DAEMON_BROKER_WALK_H
#define FSBOX_DAEMON_BROKER_WALK_H

/*
 * Where a path leads, seen with the rights of this process: through every symbolic link, with every
 * link it went through, and how much of it exists.
 *
 * Blocks as long as the file systems on the way do; called in resolver children only.
 */

#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "common/limits.h"
#include "common/policy.h"
#include "common/rule.h"

/* As many links as the kernel follows in one look-up. */
#define WALK_LINKS_MAX 40

/*
 * @real            canonical: no link, no `.`, no `..`; what does not exist is kept as text
 * @existing_bytes  how much of @real exists; at least 1, for "/" does
 * @type            of what is at @real; NODE_ABSENT when something is missing
 * @errnum          why the walk stopped before the end: ENOENT, ENOTDIR, EACCES, ELOOP ...; 0 when
 *                  @real was reached. With EACCES nobody of this user's can tell what is there.
 * @dev, @ino       of what is at @real, else 0
 * @links           the link nodes visited, as canonical paths, in order
 * @link            the one of @links that is the path's own last component, or NULL
 */
struct walk {
	char real[LIMIT_PATH_BYTES + 1];
	size_t existing_bytes;
	enum node_type type;
	int errnum;
	uint64_t dev;
	uint64_t ino;
	struct string_list links;
	const char *link;
};

/* May be called on a zeroed struct; @walk may be used again for another path afterwards. */
void walk_deinit(struct walk *walk);

/*
 * Follow PATH (absolute). What is found is in RET_WALK whatever it is: a missing node is no failure.
 * Below /proc nothing is followed, since the links there mean something else inside a sandbox.
 *
 * Fails with ERR_INVALID (not absolute), ERR_NOMEM, or ERR_SYSTEM (no descriptors left). RET_WALK
 * must be zeroed or have been used before, and is to be deinited in any case.
 */
int walk_path(struct walk *ret_walk, const char *path, struct error *err);

/*
 * Open PATH for reading, or with FLAGS, when no part of it is a symbolic link: what walk_path()
 * gave. -1 with errno otherwise. The caller closes.
 */
int walk_open(const char *path, int flags);

/* What kind of node st_mode MODE is. */
enum node_type walk_node_type(uint32_t mode);

#endif
