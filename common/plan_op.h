/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_COMMON_PLAN_OP_H
#define FSBOX_COMMON_PLAN_OP_H

/* The operations of plans by themselves. plan_add() and plan_deinit() of common/plan.h live here. */

#include <stdbool.h>

#include "common/plan.h"

/* "bind", "mask-dir" ...: for messages and for showing plans. */
const char *plan_op_kind_name(enum plan_op_kind kind);

/* Absolute, without trailing slash, empty, `.` or `..` segments. */
bool plan_path_is_canonical(const char *path);

/*
 * What ordering by depth relies on: paths canonical, rules merged, none on what stays ours. policy.h
 * promises it, a caller in a hurry may forget it. Fails with ERR_POLICY_INVALID, naming the path.
 */
int plan_check_rules(const struct rule_list *rules, struct error *err);

#endif
