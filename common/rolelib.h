/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_COMMON_ROLELIB_H
#define FSBOX_COMMON_ROLELIB_H

/*
 * The role library of a bot: a directory that it may write, unless something else speaks against it.
 * A rule for it would be deeper than most, so what must win over it is looked at before it is made.
 *
 * One thing that speaks against it is a regular expression, written for macOS. Here it is read as a
 * POSIX extended one, without a locale. An expression that does not compile counts for nothing; one
 * that the two dialects may read differently, or longer than ROLE_REGEX_BYTES, counts as matching:
 * whoever wrote it wanted something kept away.
 */

#include "common/context.h"
#include "common/error.h"
#include "common/rule.h"

#define ROLE_REGEX_BYTES 4096

/*
 * What the role library of CONTEXT gets: ACCESS_READ_WRITE, ACCESS_READ_ONLY, or ACCESS_NONE for no
 * rule at all (also when there is no library). Fails with ERR_NOMEM.
 */
int role_library_access(enum access *ret_access, const struct policy_context *context,
			struct error *err);

#endif
