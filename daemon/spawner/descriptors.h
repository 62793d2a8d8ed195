/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_DAEMON_SPAWNER_DESCRIPTORS_H
#define FSBOX_DAEMON_SPAWNER_DESCRIPTORS_H

/*
 * Which descriptors may enter a job (R7). What comes in is a list of what is known to be harmless, not of what
 * is known to be dangerous:
 *
 *	regular files       on a real file system; not /proc, /sys, control groups, namespaces, pidfds
 *	pipes and FIFOs
 *	devices             terminals but not their master side; null, zero, full, random, urandom
 *	sockets             connected Unix stream or seqpacket sockets; where the job shares the
 *	                    host's network also internet sockets and unconnected ones; never listening
 *	                    ones, never one that leads to fsbox itself
 *
 * Nothing is read, and nothing but metadata is asked for, so a descriptor cannot make us hang.
 */

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "common/error.h"

enum descriptor_use {
	DESCRIPTOR_STDIO = 1,
	DESCRIPTOR_LIFELINE, /* pipes, FIFOs and sockets only: its far end going away must show */
};

/* One of our own files, refused wherever it turns up. */
struct descriptor_own {
	dev_t dev;
	ino_t ino;
};

/* Remember the file behind FD. ERR_SYSTEM. */
int descriptor_own_read(int fd, struct descriptor_own *ret_own, struct error *err);

/*
 * @use       what FD is to be
 * @own       our own files; may be NULL with @own_count 0
 * @net_host  the job shares the host's network
 *
 * Fails with ERR_DESCRIPTOR_REFUSED, saying what it is.
 */
int descriptor_check(int fd, enum descriptor_use use, const struct descriptor_own *own,
		     size_t own_count, bool net_host, struct error *err);

#endif
