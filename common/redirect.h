/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_COMMON_REDIRECT_H
#define FSBOX_COMMON_REDIRECT_H

/*
 * Which log-in paths of an adapter stay exposed when a program's data directory is moved elsewhere:
 * what lies in a directory that was moved would show the original again, what lies outside of all of
 * them is still the only place where the log-in is.
 */

#include <stdbool.h>

#include "common/error.h"
#include "common/policy.h"

/*
 * Append to RET_PATHS, in order and byte for byte, those AUTH_PATHS that normalise and lie in none
 * of REHOMED_ROOTS. Roots that do not normalise are ignored. Fails with ERR_NOMEM.
 */
int redirect_surviving(struct string_list *ret_paths, const struct string_list *auth_paths,
		       const struct string_list *rehomed_roots, struct error *err);

/* All of DECLARED as it is when nothing is redirected; otherwise redirect_surviving(). */
int redirect_auth_paths(struct string_list *ret_paths, const struct string_list *declared,
			bool will_redirect, const struct string_list *rehomed_roots,
			struct error *err);

#endif
