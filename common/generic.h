/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_COMMON_GENERIC_H
#define FSBOX_COMMON_GENERIC_H

/*
 * The profiles `generic` and `host`: which rules a request starts with, before anything is looked up.
 * Pure: the tables are in generic_table.c, the facts of the user come from the caller.
 */

#include <stdbool.h>
#include <stddef.h>

#include "common/error.h"
#include "common/hostconf.h"
#include "common/policy.h"

/*
 * All borrowed; directories are canonical, or NULL where there is none.
 *
 * @home           of the passwd entry
 * @cwd            where the command starts
 * @cache_home, @config_home, @data_home, @state_home  XDG directories that differ from the defaults
 *                 below @home; NULL: the default
 * @runtime_dir    /run/user/UID
 * @allow_home     the home directory itself is readWrite
 * @root_peer      the job is uid 0's
 * @rules          what the user and a profile file ask for, and what protect_rules() gave, as they are
 * @private_root   where private directories are: PRIVATE_ROOT/NAME; NULL: no private directories
 * @caches         further directories to replace by private ones (a profile's `cache`); may be NULL
 * @link_targets   files outside of what is shown that links of generic_link_names() lead to; or NULL
 * @conf           the host's configuration
 * @own_deny, @own_read_only  fsbox's own directories and binaries (R25)
 * @kernel_mounts  procfs, sysfs, devtmpfs and cgroup mounts of the host at unusual places (R19)
 */
struct generic_input {
	const char *home;
	const char *cwd;
	const char *cache_home;
	const char *config_home;
	const char *data_home;
	const char *state_home;
	const char *runtime_dir;
	bool allow_home;
	bool root_peer;
	const struct rule_list *rules;
	const char *private_root;
	const struct string_list *caches;
	const struct string_list *link_targets;
	const struct hostconf *conf;
	const struct string_list *own_deny;
	const struct string_list *own_read_only;
	const struct string_list *kernel_mounts;
};

/*
 * Append the candidates of the profile to CANDIDATES: system and toolchains readOnly, the working
 * directory readWrite, private directories in place of caches, crown jewels denied, INPUT's rules, and
 * what generic_add_host_rules() adds. Private directories have `bind_source` set; the caller makes
 * those that do not exist.
 *
 * Fails with ERR_POLICY_INVALID: no home or a home of "/"; a working directory that is "/", or that
 * lies among what is denied; without allow_home a working directory or readWrite rule that is the home
 * directory or above it; or ERR_NOMEM.
 */
int generic_assemble(struct rule_list *candidates, const struct generic_input *input,
		     struct error *err);

/*
 * Once it is known where CANDIDATES really are: no readWrite rule may lead through a link to the home
 * directory or above it without allow_home. A link is easily planted where a job could write, and
 * the next request names it in good faith. Of INPUT home and allow_home are read. Fails with
 * ERR_POLICY_INVALID.
 */
int generic_check_places(const struct rule_list *candidates, const struct generic_input *input,
			 struct error *err);

/*
 * The profile `host`: "/" readWrite, dangerous sockets denied, INPUT's rules, the host's rules. Fails
 * with ERR_NOT_AUTHORIZED for a root peer (R19), else as generic_assemble().
 */
int host_assemble(struct rule_list *candidates, const struct generic_input *input,
		  struct error *err);

/*
 * What holds in every profile, `botmux` included, and nothing lifts: the host's mandatory-deny and
 * mandatory-read-only, fsbox's own directories and binaries, kernel file systems at unusual places.
 * Rules have source RULE_MANDATORY and `host` set.
 */
int generic_add_host_rules(struct rule_list *candidates, const struct generic_input *input,
			   struct error *err);

/*
 * Links below /etc whose targets must stay readable although they may lie elsewhere (name service, CA
 * bundles, time zone); the caller follows them and gives what it finds as `link_targets`.
 */
struct generic_link {
	const char *path;
	bool network; /* only with network `host` */
};
const struct generic_link *generic_link_names(size_t *ret_count);

#endif
