/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_DAEMON_SPAWNER_INITCONFINE_H
#define FSBOX_DAEMON_SPAWNER_INITCONFINE_H

/*
 * What pid 1 of a job gives up, each step for good, before it has anything of its client's.
 */

#include <stddef.h>

#include "common/error.h"

/*
 * The confinement alone, in the order of init.h.
 *
 * @writable   where writing stays allowed, see landlock.h
 * @ret_stage  what was being done; static; written on failure
 *
 * Fails with ERR_SYSTEM or ERR_SETUP_FAILED; the process must then exit.
 */
int init_confine(const char *const *writable, size_t count, int dev_fd, const char **ret_stage,
		 struct error *err);

/*
 * The same for the paths of checked SETUP (struct setup_header) that may be written to; or with RULESET_FD, of
 * landlock_prepare(), which was made for all of them but /proc; -1: there is none. Fails with ERR_NOMEM as well.
 */
int init_confine_setup(const void *setup, int dev_fd, int ruleset_fd, const char **ret_stage,
		       struct error *err);

#endif
