/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_DAEMON_SPAWNER_BIRTH_H
#define FSBOX_DAEMON_SPAWNER_BIRTH_H

/*
 * Which process a number meant: numbers are used again, births are not, as long as the machine runs.
 *
 * Where the kernel gives processes descriptors of a file system of their own (Linux 6.9), the inode of
 * one is never used twice and costs one system call to ask; elsewhere the start time is read from
 * /proc.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/error.h"

/* @pidfs_ino  0: not known on this kernel; @start_time  clock ticks since boot, 0 where the other is */
struct birth {
	uint64_t pidfs_ino;
	uint64_t start_time;
};

/*
 * Of process PID, whose descriptor PIDFD is: the caller makes sure that both are the same (it has just
 * cloned it, or looks whether PIDFD lives afterwards). Fails with ERR_SYSTEM.
 */
int birth_read(pid_t pid, int pidfd, struct birth *ret_birth, struct error *err);

/*
 * A descriptor of process PID if that is still the one born at BIRTH, the caller's; -1 with errno ESRCH
 * if it is gone or another one has its number.
 */
int birth_open(pid_t pid, const struct birth *birth);

#endif
