/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_COMMON_SEATBELT_H
#define FSBOX_COMMON_SEATBELT_H

/*
 * A policy as the text of a macOS Seatbelt profile.
 *
 * Seatbelt decides by the last matching line among those for one operation, and a line for one
 * operation goes before a line for its wildcard. Rules come shallow to deep; hardened text names the
 * same operations in every line, so that both readings of a profile ("last line", "most special
 * operation") give the same answers. tests/macos holds it to that.
 *
 * Nothing here knows the disk: that paths are canonical is the caller's work.
 */

#include <stdint.h>

#include "common/error.h"
#include "common/policy.h"

struct buf;

/*
 * What the compiler may do beyond the plain algorithm. With none set the text equals the shared test
 * vectors; the daemon sets all.
 */
enum seatbelt_harden {
	/*
	 * Paths are checked: control characters would add lines, and empty or `.` segments, trailing
	 * slashes and bytes that are no UTF-8 would make a rule that never meets anything. Paths
	 * below /etc, /tmp and /var are written with the /private that the kernel shows. Too many
	 * path bytes for a profile are an error here instead of one at start.
	 */
	SEATBELT_HARDEN_PATHS = 1 << 0,
	/* Each line names the wildcard and its operations, for the path by itself and all below. */
	SEATBELT_HARDEN_OPERATIONS = 1 << 1,
	/* A writable directory above a stricter rule cannot be renamed or removed. */
	SEATBELT_HARDEN_PINS = 1 << 2,
	/* No second name for a file under a stricter rule: neither hard link nor clone. */
	SEATBELT_HARDEN_LINKS = 1 << 3,
	/* Unix sockets are reachable only where the policy lets write; with net IP is, too. */
	SEATBELT_HARDEN_SOCKETS = 1 << 4,
	/* What is denied is denied below /System/Volumes/Data too, and nothing is allowed there. */
	SEATBELT_HARDEN_DATA_VOLUME = 1 << 5,
	/* Programs outside, other processes' arguments, set-id bits, devices: only what is needed. */
	SEATBELT_HARDEN_BASE = 1 << 6,
	/* Expressions that spell a path are written as filters on paths, all others refused. */
	SEATBELT_HARDEN_REGEXES = 1 << 7,
	SEATBELT_HARDEN_ALL = (1 << 8) - 1,
};

/*
 * Bytes of path filters that one operation may carry: sandbox-exec refuses more than 65,535 bytes of
 * serialised patterns, and how it counts them is not public.
 */
#define SEATBELT_PATH_BYTES 49152

/*
 * Append the profile of POLICY to OUT.
 *
 * @policy  rules in order; the index is not used; `net` other than NET_HOST means no network
 * @harden  enum seatbelt_harden
 *
 * Fails with ERR_POLICY_INVALID (a path, an expression or the size; names it) or ERR_NOMEM.
 */
int seatbelt_compile(struct buf *out, const struct policy *policy, uint32_t harden,
		     struct error *err);

#endif
