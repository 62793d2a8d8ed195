/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_DAEMON_MASKMOUNTS_H
#define FSBOX_DAEMON_MASKMOUNTS_H

/*
 * Mount points that a supervisor makes on the host for absent denied paths, the portable way: with nothing but
 * device and inode number to know them by, for systems and file systems that have no more. fsboxd has the
 * ledger (daemon/spawner/ledger.h), which is stricter; what a user sees of both is the same: every missing
 * level is made and goes again, what anybody wrote stays, nothing is recursive.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

struct buf;

/* @path  owned, absolute */
struct mask_mount {
	char *path;
	bool is_dir;
	uint64_t dev;
	uint64_t ino;
};

/* What was made, the latest first: so parents follow their children. */
struct mask_mount_list {
	struct mask_mount *items;
	size_t count;
	size_t capacity;
};

void mask_mounts_deinit(struct mask_mount_list *list);

/*
 * Make PATH and what is missing above it, as an empty file or directory; each is in LIST before the next is
 * tried. Nothing happens where something is at PATH, also behind a link. Fails with ERR_SETUP_FAILED or
 * ERR_NOMEM; LIST then holds what was made.
 */
int mask_mounts_create(struct mask_mount_list *list, const char *path, bool is_dir,
		       struct error *err);

/*
 * Remove what is in LIST, in order, each only if it is still that object, and empty. What cannot be
 * removed stays.
 */
void mask_mounts_reclaim(const struct mask_mount_list *list);

/*
 * LIST as `mask-mounts.json` in DIR, mode 0600, atomically; nothing is written when it is empty. Fails with
 * ERR_SYSTEM or ERR_NOMEM.
 */
int mask_mounts_save(const struct mask_mount_list *list, const char *dir, struct error *err);

/*
 * What mask_mounts_save() wrote, or somebody else: RET_LIST, which must be empty, gains the entries that can
 * be ones, and none of a file that is not there or no list. Fails with ERR_NOMEM.
 */
int mask_mounts_load(struct mask_mount_list *ret_list, const char *dir, struct error *err);

/* The same, of SIZE bytes of TEXT. */
int mask_mounts_read(struct mask_mount_list *ret_list, const char *text, size_t size,
		     struct error *err);
void mask_mounts_write(const struct mask_mount_list *list, struct buf *out);

#endif
