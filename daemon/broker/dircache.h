/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_DAEMON_BROKER_DIRCACHE_H
#define FSBOX_DAEMON_BROKER_DIRCACHE_H

/*
 * Looking up many paths at once: a profile asks about hundreds that share few directories, most of
 * which do not exist. Directories that a batch went through are kept open, or known to be absent, so
 * that each path costs one system call or none. The answers are those of walk_path().
 *
 * For one batch only: what was seen is not looked at again.
 */

#include <stddef.h>

#include "common/error.h"
#include "daemon/broker/walk.h"

/* Directories kept; beyond that paths are walked one by one. Descriptors are 1,024 by default. */
#define DIRCACHE_MAX 256
#define DIRCACHE_SLOTS 1024 /* a power of two, well above DIRCACHE_MAX */

enum dircache_state {
	DIRCACHE_EMPTY = 0,
	DIRCACHE_OPEN,   /* a directory without a link in its path: @fd */
	DIRCACHE_ABSENT, /* not there; what is there of its path: @existing_bytes */
	DIRCACHE_ODD,    /* links, files, no permission: walk_path() knows how */
};

struct dircache_entry {
	enum dircache_state state;
	char *path; /* owned */
	size_t length;
	size_t existing_bytes;
	int fd;
};

struct dircache {
	struct dircache_entry entries[DIRCACHE_SLOTS];
	size_t count;
};

/* On the heap, for it is large. NULL when memory is short. */
struct dircache *dircache_new(void);
struct dircache *dircache_free(struct dircache *cache); /* returns NULL */

/* As walk_path(), but @dev and @ino of RET_WALK may stay 0. */
int dircache_walk(struct dircache *cache, struct walk *ret_walk, const char *path,
		  struct error *err);

#endif
