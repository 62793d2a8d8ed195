/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_DAEMON_SPAWNER_SECCOMP_H
#define FSBOX_DAEMON_SPAWNER_SECCOMP_H

/*
 * The system call filter of jobs, made at build time from seccomp_table.h, which says what it
 * refuses and why.
 */

#include <linux/filter.h>
#include <stddef.h>

#include "common/error.h"

/*
 * Put this process and all it will ever start under the filter, for good. Needs no_new_privs. Fails with
 * ERR_SETUP_FAILED where the kernel cannot filter: then nothing may be run.
 */
int seccomp_install(struct error *err);

/* The filter's instructions, for tests. */
const struct sock_filter *seccomp_instructions(size_t *ret_count);

#endif
