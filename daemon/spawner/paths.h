/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_DAEMON_SPAWNER_PATHS_H
#define FSBOX_DAEMON_SPAWNER_PATHS_H

/*
 * Where fsboxd's own things are, in each mode, and making sure that they are its own.
 *
 * Choosing is done by paths_choose() from options and environment; paths_prepare() makes what is
 * missing and checks owner, kind and mode of everything.
 */

#include <stdbool.h>
#include <sys/types.h>

#include "common/error.h"
#include "daemon/spawner/options.h"

#define PATHS_BYTES 256 /* as in struct link_config */

/*
 * @socket           what a sockaddr_un takes, with NUL
 * @user_config_dir  user mode; else ""
 * @cache_dir        user mode: where private caches are ("…/fsbox"); else ""
 * @exec_dir         where the roles are
 * @mask_dir         an empty directory of mode 000 below run_dir; @mask_file likewise a file
 */
struct paths {
	char run_dir[PATHS_BYTES];
	char socket[108];
	char state_dir[PATHS_BYTES];
	char log_dir[PATHS_BYTES];
	char config_dir[PATHS_BYTES];
	char user_config_dir[PATHS_BYTES];
	char cache_dir[PATHS_BYTES];
	char exec_dir[PATHS_BYTES];
	char mask_dir[PATHS_BYTES];
	char mask_file[PATHS_BYTES];
};

/*
 * @uid  whose daemon this is (user mode)
 *
 * Reads XDG_RUNTIME_DIR, XDG_STATE_HOME, XDG_CONFIG_HOME, XDG_CACHE_HOME and HOME in user mode; a
 * missing HOME is looked up in /etc/passwd, never through name services. Fails with ERR_INVALID: a
 * path that is too long, or no home.
 */
int paths_choose(struct paths *ret_paths, const struct options *options, enum daemon_mode mode,
		 uid_t uid, struct error *err);

/*
 * Make and check all directories and mask sources.
 *
 * @log_uid, @log_gid  owner of the log directory in system mode (the recorder, and the group that
 *                     may read); ignored else
 *
 * Fails with ERR_SYSTEM, or ERR_CONFIG when something there is not ours alone.
 */
int paths_prepare(const struct paths *paths, enum daemon_mode mode, uid_t log_uid, gid_t log_gid,
		  struct error *err);

/*
 * Take the lock that keeps a second fsboxd from using PATH (a directory's "lock" file, or a
 * socket's). Returns the descriptor: the lock
 * is held while it is open, by this process only. Fails with ERR_CONFIG
 * when another one holds it, ERR_SYSTEM.
 */
int paths_lock(const char *path, struct error *err);

/*
 * Whether FD is a directory that only UID can change: owner UID (or root), not writable for others.
 * Fails with ERR_CONFIG, saying what is wrong with NAME.
 */
int paths_check_dir(int fd, const char *name, uid_t uid, struct error *err);

/* The home directory of UID by the file /etc/passwd alone; false when it is not in there. */
bool paths_passwd_home(uid_t uid, char *home, size_t size);

#endif
