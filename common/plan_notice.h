/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_COMMON_PLAN_NOTICE_H
#define FSBOX_COMMON_PLAN_NOTICE_H

/*
 * Protected names that are not there yet (common/protect.h): what the guard is to tell about, or to take
 * away, when a job makes it.
 */

#include "common/plan.h"

/*
 * Append a PLAN_NOTICE for each of POLICY's absent names that lies where a job may write and that no rule
 * of its own says something about. POLICY must be indexed. Fails with ERR_NOMEM, or with
 * ERR_POLICY_INVALID beyond LIMIT_RULES operations.
 */
int plan_add_notices(struct plan *plan, const struct policy *policy, struct error *err);

#endif
