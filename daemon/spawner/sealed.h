/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_DAEMON_SPAWNER_SEALED_H
#define FSBOX_DAEMON_SPAWNER_SEALED_H

/*
 * Sealed memfds: bytes that nobody can change any more, whoever else holds a descriptor. What was
 * checked once stays as it was.
 */

#include <stddef.h>
#include <sys/types.h>

#include "common/error.h"

/*
 * A memfd with SIZE bytes of DATA, sealed against everything.
 *
 * @name   shown in /proc/PID/maps
 * @mode   0400, or 0555 for a program to execute
 *
 * ERR_SYSTEM. @ret_fd is the caller's, closed on exec, at offset 0.
 */
int sealed_create(const char *name, const void *data, size_t size, mode_t mode, int *ret_fd,
		  struct error *err);

/*
 * Map FD, which somebody else made: a memfd sealed against writing and resizing, of 1 to MAX_BYTES.
 * Fails with ERR_BAD_FRAME when it is anything else. The caller unmaps with munmap().
 */
int sealed_map(int fd, size_t max_bytes, const void **ret_data, size_t *ret_size,
	       struct error *err);

#endif
