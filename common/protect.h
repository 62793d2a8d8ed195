/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_COMMON_PROTECT_H
#define FSBOX_COMMON_PROTECT_H

/*
 * Protected names: files in a writable tree that a later, unconfined program would execute or obey.
 * They are readOnly where they exist. This is the pure half: the table of names to look for, and the
 * rules for what was found. Looking is the broker's, in its resolver children.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "common/policy.h"

/* Where a name is looked for. */
enum protect_scope {
	PROTECT_TREE,       /* in the root of a writable tree, and in directories below it */
	PROTECT_HOME,       /* in the home directory, when that is writable */
	PROTECT_GIT_DIR,    /* in what a `.git` is or points to */
	PROTECT_GIT_COMMON, /* in what `commondir` there names, or in the git directory itself */
};

/*
 * @name        relative path
 * @git_config  lifted by --allow-git-config
 * @quarantine  gives execution by itself in an existing repository: taken away when it appears (R28);
 *              others are reported
 * @watch_only  what is there already must stay writable: only what appears at or below it is watched
 */
struct protected_name {
	enum protect_scope scope;
	const char *name;
	bool git_config;
	bool quarantine;
	bool watch_only;
};

const struct protected_name *protected_names(size_t *ret_count);

/*
 * One name looked up. Texts are borrowed.
 *
 * @name  index into protected_names()
 * @path  canonical but for its last component, which may be a link: then @real is its target
 * @type  of what is there at the end of all links; NODE_ABSENT: to be watched
 */
struct protect_found {
	size_t name;
	const char *path;
	const char *real; /* NULL: @path */
	enum node_type type;
};

/*
 * One `.git` in a writable tree. Texts are borrowed, canonical.
 *
 * @dot_git      the `.git` node
 * @is_file      it is a file that points elsewhere: a linked worktree or a submodule
 * @git_dir      what it is or points to
 * @common_dir   the repository's own directory; NULL when that is @git_dir
 * @hooks_dir    what core.hooksPath names, when it is set and exists; else NULL
 * @points_back  @git_dir names this very `.git` (its `gitdir` file or core.worktree): whoever made the
 *               repository meant this tree to use it
 */
struct protect_repository {
	const char *dot_git;
	bool is_file;
	const char *git_dir;
	const char *common_dir;
	const char *hooks_dir;
	bool points_back;
};

/*
 * @found, @repositories  what the look-up in all writable trees gave
 * @allow_git_config      leave the configuration files of repositories writable
 */
struct protect_facts {
	const struct protect_found *found;
	size_t found_count;
	const struct protect_repository *repositories;
	size_t repository_count;
	bool allow_git_config;
};

/*
 * Names that are not there. The lists are owned.
 *
 * @report      their appearing is told
 * @quarantine  what appears is taken away
 * @entries     directories that stay; what appears in them is taken away
 */
struct protect_watch {
	struct string_list report;
	struct string_list quarantine;
	struct string_list entries;
};

void protect_watch_deinit(struct protect_watch *watch);

/*
 * Append to CANDIDATES what FACTS ask for:
 *
 * - a readOnly rule for everything found (policy_settle() adds one for the link node where it is a
 *   link), but for what is only watched,
 * - for a `.git` file a readOnly rule on it, and a readWrite one on the directories it points to when
 *   they point back: without these git could not work in a linked worktree or a submodule. Nothing
 *   is granted on the word of the `.git` file alone, which is in the job's hands.
 *
 * Links and `.git` files lead where a job before this one wanted. So the readOnly rules show nothing that
 * nothing else grants (@lowers), and the readWrite ones follow no link (@exact).
 *
 * Rules have source RULE_USER, so that a user's own readWrite rule on the very path does not win.
 *
 * @ret_watch  gains what is to be watched for; may be NULL
 *
 * Fails with ERR_NOMEM or ERR_POLICY_INVALID beyond LIMIT_RULES.
 */
int protect_rules(struct rule_list *candidates, const struct protect_facts *facts,
		  struct protect_watch *ret_watch, struct error *err);

#endif
