/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_COMMON_SYSMOUNT_H
#define FSBOX_COMMON_SYSMOUNT_H

/*
 * What every job gets besides its rules: /proc, /dev and the fresh directories, and how rules at and
 * below these places are taken. One table, which plan_build() mounts, plan_check() demands, and
 * sysmount_verdict() answers for.
 *
 * A rule at or below one of the places is honoured: it stands on top, and a rule exactly at a fresh
 * directory replaces it. An allow rule on "/" shows the host's /tmp, /run and /var/tmp instead of
 * fresh ones; /proc, /dev and /sys stay ours.
 */

#include <stdbool.h>
#include <stddef.h>

#include "common/error.h"
#include "common/plan.h"
#include "common/policy.h"

/*
 * @path        where
 * @kind        what is mounted there
 * @access      what it lets through, where no rule is deeper
 * @with_root   also with an allow rule on "/"
 * @shown       only where an allow rule shows the host's @path
 */
struct sysmount {
	const char *path;
	enum plan_op_kind kind;
	enum access access;
	bool with_root;
	bool shown;
};

/* The table, sorted as rules are: by depth, then by bytes. */
const struct sysmount *sysmounts(size_t *ret_count);

/* Where a rule for PATH stands to MOUNT in the order of merged rules: negative before, 0 at it. */
int sysmount_order(const char *path, const struct sysmount *mount);

/* Whether the policy shows the host's root: an allow rule on "/". RULES are merged. */
bool sysmount_root_shown(const struct rule_list *rules);

/* Whether a job of a policy with these merged RULES gets MOUNT, as far as no rule replaces it. */
bool sysmount_applies(const struct sysmount *mount, const struct rule_list *rules);

/*
 * Whether RULE can stand at or below the places that stay ours. Refused (ERR_POLICY_INVALID):
 *
 *	/proc		a deny or grant on it, grants below it, denies that name a process
 *	/dev		a deny or grant on it, grants below it but at and below /dev/shm
 *	/sys		write access at or below it; grants at or below /sys/fs/cgroup
 */
int sysmount_check_rule(const struct rule *rule, struct error *err);

/*
 * @access  what a job may do
 * @rule    the deciding rule, or NULL: then @mount decides, or nothing covers the path
 * @mount   the place that decides, or NULL
 */
struct sysmount_verdict {
	enum access access;
	const struct rule *rule;
	const struct sysmount *mount;
};

/*
 * What a job under POLICY (indexed) may do with PATH: policy_access(), and the places above taken into
 * account. This is what the mounts are held against.
 */
struct sysmount_verdict sysmount_verdict(const struct policy *policy, const char *path);

#endif
