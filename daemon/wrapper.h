/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_DAEMON_WRAPPER_H
#define FSBOX_DAEMON_WRAPPER_H

/*
 * A command under sandbox-exec: its profile lies in a file of mode 0600 in a new directory of mode
 * 0700, so that nobody can change it between here and the exec, and both go when the child is gone.
 */

#include <stddef.h>

#include "common/error.h"
#include "common/policy.h"

/* @dir, @profile  on the heap; NULL: nothing to remove */
struct wrapper {
	char *dir;
	char *profile;
};

#define WRAPPER_INIT        \
	{                   \
		NULL, NULL, \
	}

/*
 * Write TEXT as a new profile below BASE, an existing directory. WRAPPER holds nothing before, and
 * nothing after a failure. Fails with ERR_NOMEM or ERR_SYSTEM.
 */
int wrapper_init(struct wrapper *wrapper, const char *base, const char *text, size_t size,
		 struct error *err);

/* Remove file and directory: the child is gone. */
void wrapper_deinit(struct wrapper *wrapper);

/*
 * What to exec in place of COMMAND (found: path_find_executable()) with ARGS, which may be NULL.
 * Added to RET_ARGV. Fails with ERR_NOMEM.
 */
int wrapper_argv(const struct wrapper *wrapper, const char *command, const struct string_list *args,
		 struct string_list *ret_argv, struct error *err);

#endif
