/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_COMMON_EGRESSPROFILE_H
#define FSBOX_COMMON_EGRESSPROFILE_H

/*
 * The Seatbelt profile that takes the network and nothing else: everything is allowed, connecting
 * outwards is not, but to Unix sockets, without which no name server, no logging and soon no program
 * works. The last matching line counts, so exceptions follow what they except.
 */

#include <stdbool.h>

#include "common/buf.h"
#include "common/error.h"
#include "common/pathview.h"
#include "common/policy.h"

/* Where sandbox-exec is on every macOS. */
#define EGRESS_WRAPPER "/usr/bin/sandbox-exec"

/*
 * What the profile lets through. Borrowed; lists may be NULL.
 *
 * @loopback       connections to this machine's loopback
 * @deny_read      paths whose content may not be read, trees for directories
 * @allow_read     when not empty: nothing but these trees and what programs need can be read
 * @runtime_roots  what programs need; NULL: egress_runtime_roots
 */
struct egress_allowance {
	bool loopback;
	const struct string_list *deny_read;
	const struct string_list *allow_read;
	const struct string_list *runtime_roots;
};

/* What a program on macOS reads before its first line; ends with NULL. */
extern const char *const egress_runtime_roots[];

/*
 * Append the profile's text to OUT. Paths are resolved by VIEW: one that is not as the kernel sees it
 * would deny nothing. Fails with ERR_NOMEM.
 */
int egress_profile(struct buf *out, const struct egress_allowance *allowance,
		   const struct path_view *view, struct error *err);

#endif
