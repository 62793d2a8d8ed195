/* SPDX-License-Identifier: Apache-2.0 */
/*
 * policy_access() for a list of paths: the judge of the kernel tests.
 *
 * Standard input, each ended by a NUL: pairs access name, path; one empty string; then paths to answer
 * for. Standard output: one access name a line, or "fresh" where no rule decides and a job has a
 * directory of its own.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/policy.h"
#include "common/sysmount.h"

static const char *answer(const struct policy *policy, const char *path)
{
	struct sysmount_verdict verdict = sysmount_verdict(policy, path);

	if (verdict.mount && verdict.mount->kind == PLAN_TMPFS)
		return "fresh";
	return access_name(policy_access(policy, path).access);
}

int main(void)
{
	struct rule_list candidates = RULE_LIST_INIT;
	struct policy policy = POLICY_INIT;
	struct error err = ERROR_INIT;
	enum access access = ACCESS_NONE;
	char *text = NULL;
	size_t capacity = 0;

	while (getdelim(&text, &capacity, '\0', stdin) > 0 && text[0] != '\0') {
		if (!access_parse(text, &access) || getdelim(&text, &capacity, '\0', stdin) <= 0 ||
		    !rule_list_add(&candidates, text, access, RULE_USER, NULL, &err)) {
			fprintf(stderr, "answers: bad input\n");
			return 2;
		}
	}
	if (rule_list_merge(&policy.rules, &candidates, &err) < 0 ||
	    policy_index(&policy, &err) < 0) {
		fprintf(stderr, "answers: %s\n", err.message);
		return 2;
	}
	while (getdelim(&text, &capacity, '\0', stdin) > 0)
		puts(answer(&policy, text));
	free(text);
	policy_deinit(&policy);
	rule_list_deinit(&candidates);
	return 0;
}
