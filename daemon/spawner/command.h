/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_DAEMON_SPAWNER_COMMAND_H
#define FSBOX_DAEMON_SPAWNER_COMMAND_H

/*
 * The command of a job: started so that a failure to execute it is told from the command's own exit,
 * whatever that is.
 */

#include <sys/types.h>

#include "common/error.h"

/*
 * @cwd       absolute, inside
 * @argv      at least argv[0]; looked up in PATH of @envp as execvp(3) does if it has no slash
 * @envp      all of the command's environment
 * @stdio     descriptors for 0, 1, 2; borrowed
 * @umask     the command's
 * @program   what to execute, in place of a file that argv[0] would lead to; -1: none; borrowed
 * @net_host  unused by the command itself
 */
struct command {
	const char *cwd;
	char *const *argv;
	char *const *envp;
	int stdio[3];
	mode_t umask;
	int program;
};

/*
 * Start the command: new session and process group, default signals, empty mask, nothing open but 0, 1, 2.
 * The caller handles no signal and ignores none but SIGPIPE; it waits until exec is over.
 *
 * @ret_pid    the child; also its process group
 * @ret_stage  "fork", "stdio", "chdir" or "exec"; static; written on failure
 *
 * 0: it runs. Otherwise nothing was run, and this fails with
 *
 *	ERR_COMMAND_NOT_FOUND       there is no such file, in no directory of PATH
 *	ERR_COMMAND_NOT_EXECUTABLE  there is, but it is no program for this user, or its interpreter
 *	                            is missing
 *	ERR_SETUP_FAILED            the working directory is gone ("chdir"), or the kernel could not
 */
int command_start(const struct command *command, pid_t *ret_pid, const char **ret_stage,
		  struct error *err);

#endif
