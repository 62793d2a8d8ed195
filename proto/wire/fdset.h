/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_PROTO_WIRE_FDSET_H
#define FSBOX_PROTO_WIRE_FDSET_H

/*
 * The descriptors of one frame, owned: add takes, claim gives, deinit closes the rest.
 *
 * A message names a descriptor by its index here. Every one must be claimed exactly once.
 */

#include <stddef.h>

#include "common/error.h"
#include "common/limits.h"

/* @fds  -1 where one was claimed */
struct fdset {
	int fds[LIMIT_FRAME_FDS];
	size_t count;
};

#define FDSET_INIT         \
	{                  \
		.count = 0 \
	}

/* Closes what is left and empties the set. NULL is fine. May block where close(2) may. */
void fdset_deinit(struct fdset *set);

/*
 * Append FD, which is the set's from now on, also when this fails (then it is closed), and marked
 * close-on-exec. Fails with ERR_BAD_FRAME when the set is full or FD is not a descriptor. The index
 * is set->count - 1.
 */
int fdset_add_take(struct fdset *set, int fd, struct error *err);

/* Append a close-on-exec duplicate of FD. Fails as fdset_add_take(), and with ERR_SYSTEM. */
int fdset_add_dup(struct fdset *set, int fd, struct error *err);

/*
 * Give the descriptor at INDEX away: *ret_fd is the caller's. Fails with ERR_BAD_FRAME when there is
 * no such index or it was claimed before.
 */
int fdset_claim(struct fdset *set, size_t index, int *ret_fd, struct error *err);

/* How many were not claimed. */
size_t fdset_unclaimed(const struct fdset *set);

/* Move everything from FROM to TO, which is emptied first. */
void fdset_move(struct fdset *to, struct fdset *from);

#endif
