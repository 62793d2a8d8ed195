/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_TESTS_VECTOR_INPUT_H
#define FSBOX_TESTS_VECTOR_INPUT_H

/*
 * Values of vector files to structs of common/, and back. What a file holds in an unexpected form is
 * ERR_INVALID; a member that is absent (NULL) is an empty list.
 */

#include "common/context.h"
#include "common/error.h"
#include "common/policy.h"
#include "common/rule.h"
#include "tests/json_lite.h"

int input_strings(struct string_list *list, const struct json_value *value, struct error *err);
int input_rules(struct rule_list *rules, const struct json_value *value, struct error *err);
int input_platform(enum platform *ret_platform, const struct json_value *object, struct error *err);
int input_policy(struct policy *policy, const struct json_value *value, struct error *err);
int input_context(struct policy_context *context, const struct json_value *value,
		  struct error *err);

struct json_value *output_strings(const struct string_list *list);
struct json_value *output_rule(const struct rule *rule); /* [path, access, source] */
struct json_value *output_rules(const struct rule_list *rules);
struct json_value *output_policy(const struct policy *policy);

#endif
