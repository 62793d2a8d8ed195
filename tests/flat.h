/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_TESTS_FLAT_H
#define FSBOX_TESTS_FLAT_H

/*
 * What a policy means, written as plainly as it is said: of the rules that cover a path the deepest,
 * the first in the list on equal depth. It looks at every rule; policy_access() is held against it.
 */

#include <stddef.h>

#include "common/rule.h"

/* The deciding rule, or NULL where none covers PATH or PATH does not normalise. */
const struct rule *flat_access(const struct rule_list *rules, const char *path);

#endif
