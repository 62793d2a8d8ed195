/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_DAEMON_BROKER_PROFILES_H
#define FSBOX_DAEMON_BROKER_PROFILES_H

/*
 * Finding a profile by name or path and everything it extends.
 *
 * `generic`, `host` and `botmux` are built in: no file can take their names. Other names are looked for
 * as NAME.json, in user mode first among the user's own profiles, then in the host's configuration,
 * then among the installed ones. A path is a file of the user's choice. All are read by a resolver
 * child, as the user.
 */

#include "common/error.h"
#include "daemon/broker/resolve.h"
#include "proto/json/profile.h"

/* How many files may extend one another. */
#define PROFILE_DEPTH_MAX 8

#define PROFILE_DIRS 3

enum profile_base {
	PROFILE_BASE_NONE = 0, /* a file that extends nothing */
	PROFILE_BASE_GENERIC,
	PROFILE_BASE_HOST,
	PROFILE_BASE_BOTMUX,
};

/* Where to look. Borrowed; NULL entries are skipped. */
struct profile_dirs {
	const char *dirs[PROFILE_DIRS];
};

typedef void profiles_done_fn(void *arg, const struct error *err);

/*
 * One search. Zeroed before profiles_load(); profiles_deinit() at any time.
 *
 * @base     what it comes down to
 * @profile  of all files together, paths not expanded; empty when the built-in one was asked for
 * @asked    name or path of the file being read
 * @dir      index of the directory being tried
 * @visited  the files read so far
 * @record   borrowed; what was asked and answered is appended (lookuprecord.h); NULL: is not
 */
struct profile_load {
	enum profile_base base;
	struct profile profile;
	struct resolver_pool *pool;
	struct profile_dirs dirs;
	struct lookup *lookup;
	char *asked;
	char *path;
	size_t dir;
	struct string_list visited;
	struct buf *record;
	profiles_done_fn *done;
	void *arg;
};

/* The built-in profile called NAME, or PROFILE_BASE_NONE. */
enum profile_base profiles_builtin(const char *name);
const char *profile_base_name(enum profile_base base);

/*
 * Start. @name and @dirs' strings are borrowed until done. Returns 1 when everything is known already
 * (DONE is not called), 0 when DONE will be called from the event loop, or fails.
 *
 * Errors, here or in DONE: ERR_CONFIG (not found, not a profile, a loop, too deep: names the file),
 * ERR_INVALID (a name that cannot be one), ERR_NOMEM, those of look-ups.
 */
int profiles_load(struct profile_load *load, struct resolver_pool *pool,
		  const struct profile_dirs *dirs, const char *name, profiles_done_fn *done,
		  void *arg, struct error *err);
void profiles_deinit(struct profile_load *load);

#endif
