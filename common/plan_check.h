/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_COMMON_PLAN_CHECK_H
#define FSBOX_COMMON_PLAN_CHECK_H

/* plan_check() and plan_access() of common/plan.h live here. */

#include "common/plan.h"

#endif
