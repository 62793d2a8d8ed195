/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_COMMON_PLAN_PIN_H
#define FSBOX_COMMON_PLAN_PIN_H

/*
 * Directories that must keep their names.
 *
 * A mask or a read-only bind stands on one directory entry. Where a job may rename what is above it, the
 * protected object moves away together with the mount: this job still cannot reach it, but the next
 * one, whose mask stands at the old path, can, and something else can be put in its place. So every
 * ancestor of such a mount inside a writable tree gets a PLAN_PIN. That may be a file, below which
 * something is denied: who carries the plan out sees it, and sets PLAN_NODE_FILE.
 *
 * How a pin holds (Linux, since 3.18): the kernel refuses to rename or remove a directory that is a
 * mountpoint in the caller's mount namespace, whatever path leads to it. An engine mounts the
 * directory a second time in a hidden place, and an empty mask on that; in the visible tree nothing is
 * mounted, so renames and links across it go on working.
 */

#include "common/plan.h"

/*
 * Append a PLAN_PIN for each directory, deepest first, given the mounts that PLAN has so far. Fails
 * with ERR_NOMEM, or with ERR_POLICY_INVALID beyond LIMIT_RULES operations.
 */
int plan_add_pins(struct plan *plan, struct error *err);

#endif
