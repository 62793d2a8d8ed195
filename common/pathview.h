/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_COMMON_PATHVIEW_H
#define FSBOX_COMMON_PATHVIEW_H

/*
 * Questions about paths that only a file system can answer, asked through a view that the caller
 * brings: whoever may look does, and common/ stays without I/O.
 */

#include "common/error.h"
#include "common/policy.h"

/* What a path leads to, links followed. */
enum path_kind {
	PATH_KIND_ABSENT, /* nothing that could be seen */
	PATH_KIND_DIRECTORY,
	PATH_KIND_EXECUTABLE, /* a regular file with any of the three execute bits */
	PATH_KIND_OTHER,
};

/*
 * @cwd   absolute; where relative paths begin
 * @kind  of an absolute path
 * @real  an absolute path without links, on the heap; NULL when it does not resolve or (errno
 *        ENOMEM) memory is short
 */
struct path_view {
	const char *cwd;
	enum path_kind (*kind)(void *arg, const char *path);
	char *(*real)(void *arg, const char *path);
	void *arg;
};

/* What PATH, which may be relative, leads to. Fails with ERR_NOMEM. */
int path_view_kind(const struct path_view *view, const char *path, enum path_kind *ret_kind,
		   struct error *err);

/*
 * The file that running COMMAND would run: COMMAND itself when it has a slash and can be run, else
 * the first that can be run in a directory of SEARCH (the value of PATH; NULL is empty), as found,
 * links unresolved. *RET_PATH is on the heap, NULL when there is none: such a command must be started
 * without any wrapper, so that it fails as what it is. Fails with ERR_NOMEM.
 */
int path_find_executable(const struct path_view *view, const char *command, const char *search,
			 char **ret_path, struct error *err);

/*
 * PATH as the kernel will see it, on the heap: resolved; when it does not exist, its parent resolved
 * and its name; when that does not either, PATH as given. `.` and `..` are removed as text before
 * links are followed. Fails with ERR_NOMEM.
 */
int path_resolve_for_profile(const struct path_view *view, const char *path, char **ret_path,
			     struct error *err);

/*
 * The files with credentials that lie beside the log at LOG_PATH: vault, map of the environment,
 * directory of keys, in this order. Added to RET_PATHS. Text only. Fails with ERR_NOMEM.
 */
int path_credentials_of_log(const char *log_path, struct string_list *ret_paths, struct error *err);

#endif
