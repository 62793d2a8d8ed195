/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_DAEMON_BROKER_GITFILES_H
#define FSBOX_DAEMON_BROKER_GITFILES_H

/*
 * What a `.git` leads to, read the way git reads it: the directory itself or the file that points to
 * one, `commondir`, `gitdir`, core.worktree and core.hooksPath.
 *
 * Touches files; called in resolver children only. What is there was written by whoever may write to
 * the tree: it is taken as a hint where to look, never as a grant.
 */

#include <stdbool.h>
#include <stddef.h>

#include "daemon/broker/walk.h"

/* See struct protect_repository; all owned, canonical. */
struct gitfiles {
	char *dot_git;
	bool is_file;
	char *git_dir;
	char *common_dir;
	char *hooks_dir;
	bool points_back;
};

/*
 * Look at DIR/.git (DIR canonical). False when it is nothing that git would take for a repository, or
 * memory is short.
 *
 * @home  the user's, for `~/` and the user's own configuration
 * @walk  scratch space
 */
bool gitfiles_find(struct gitfiles *ret_git, const char *dir, const char *home, struct walk *walk);
void gitfiles_deinit(struct gitfiles *git);

/* The directory that core.worktree of GIT_DIR names, canonical; NULL when there is none. The caller frees. */
char *gitfiles_worktree(const char *git_dir, struct walk *walk);

/*
 * The last value of SECTION.KEY (both lower case) in the configuration file TEXT, or NULL. The caller
 * frees. Includes are not followed.
 */
char *gitfiles_config_value(const char *text, const char *section, const char *key);

#endif
