/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_COMMON_AUTHORITY_H
#define FSBOX_COMMON_AUTHORITY_H

/*
 * Sessions without lark transport: the directories that hold everybody's secrets (authority roots)
 * are closed as a whole, what a caller asks for inside them is left out, and a layout in which that
 * cannot be kept is refused.
 *
 * A bot's own home directory usually lies in such a root; grants in it are fine.
 */

#include <stdbool.h>

#include "common/baseline.h"
#include "common/error.h"
#include "common/policy.h"

/* Borrowed strings; NULL and empty are "not given" where it says so. */
struct authority_input {
	enum platform platform;
	const char *home_dir;
	const char *botmux_home;
	const char *default_botmux_home;  /* may be not given */
	const char *loaded_bots_config;   /* may be not given */
	const char *lark_cli_linux_store; /* may be not given; Linux only */
};

/*
 * The roots, normal, in a fixed order. RET_ROOTS holds nothing before.
 *
 * Fails with ERR_EXTERNAL_BOTS_CONFIG when the loaded configuration lies in none of them, or with
 * ERR_NOMEM.
 */
int authority_roots(struct string_list *ret_roots, const struct authority_input *input,
		    struct error *err);

/*
 * Whether a root takes NORMAL_PATH away from callers. BOT_HOME, compared as it is, is the exception:
 * what lies in it is free as far as roots strictly above it are concerned.
 */
bool authority_restricts(const struct string_list *roots, const char *bot_home,
			 const char *normal_path);

/*
 * Append to RET_KEPT those PATHS that normalise and are not restricted, as they are written, and to
 * SUPPRESSED the normal form of those that are. Fails with ERR_NOMEM.
 */
int authority_filter(struct string_list *ret_kept, struct string_list *suppressed,
		     const struct string_list *paths, const struct string_list *roots,
		     const char *bot_home, struct error *err);

/*
 * Refuse a working directory that is restricted (ERR_WORKING_DIR_IS_AUTHORITY). One that does not
 * normalise is nobody's business here.
 */
int authority_check_working_dir(const struct string_list *roots, const char *bot_home,
				const char *working_dir, struct error *err);

/*
 * Refuse a policy (indexed) under which the loaded configuration (may be NULL or empty) or its
 * directory is anything but denied (ERR_BOTS_CONFIG_IN_CARVEOUT): a deeper grant opened it again.
 */
int authority_check_config(const struct policy *policy, const char *loaded_bots_config,
			   struct error *err);

#endif
