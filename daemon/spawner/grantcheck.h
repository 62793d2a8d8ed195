/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_DAEMON_SPAWNER_GRANTCHECK_H
#define FSBOX_DAEMON_SPAWNER_GRANTCHECK_H

/*
 * In pid 1 of a job with a grant: whether what is about to run is what the grant is for. fsboxd sees
 * neither arguments nor environment nor descriptors, and what the broker says about them is its user's
 * word; here they are.
 */

#include "common/error.h"
#include "daemon/spawner/command.h"
#include "proto/wire/spawnop.h"

/*
 * Hold COMMAND and ARGS, the checked args file that it was split from, against TERMS.
 *
 * @null_fd     what stands for a standard descriptor that was not given
 * @ret_program descriptor of the very file that was looked at, to be executed through it
 *
 * The program must be one that its user cannot change in place, and no script: the grant would be for
 * its interpreter. Fails with ERR_GRANT_INVALID, ERR_COMMAND_NOT_FOUND or ERR_SYSTEM.
 */
int grantcheck(const struct grant_terms *terms, const void *args, const struct command *command,
	       int null_fd, int *ret_program, struct error *err);

/* Which kind FD is. */
enum stdio_kind grantcheck_kind(int fd);

#endif
