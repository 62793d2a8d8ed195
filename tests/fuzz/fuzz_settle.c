/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Lines of a text as candidates with what a look-up found: settled, held by expressions, planned,
 * encoded, decoded, checked. Whatever comes in, a rule of the host's holds at the end, and the plan
 * says what the policy says.
 *
 * A line: five bytes choose access, source, type, absent mode and marks; then the path, and after a
 * tab where it really is.
 */

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/buf.h"
#include "common/expression.h"
#include "common/limits.h"
#include "common/path.h"
#include "common/plan.h"
#include "common/plan_op.h"
#include "common/scope.h"
#include "common/settle.h"
#include "common/sysmount.h"

#define HEAD_BYTES 5

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
	if (!holds)
		abort();
}

static void add_candidate(struct rule_list *list, struct policy *expressions, char *line)
{
	const uint8_t *head = (const uint8_t *)line;
	char *path = line + HEAD_BYTES;
	char *real = NULL;
	struct rule *rule = NULL;

	if (strlen(line) <= HEAD_BYTES)
		return;
	if (head[0] == '^') {
		must(string_list_add(&expressions->deny_regexes, path, NULL) == 0);
		return;
	}
	real = strchr(path, '\t');
	if (real)
		*real++ = '\0';
	rule = rule_list_add(list, path, ACCESS_READ_WRITE + head[0] % 3, head[1] % 5, "fuzz",
			     NULL);
	must(rule != NULL);
	rule->type = head[2] % 6;
	rule->absent = head[3] % 5;
	rule->optional = head[4] & 1;
	rule->host = (head[4] & 2) && rule->source == RULE_MANDATORY;
	/* What a look-up gives is canonical. */
	if (real && plan_path_is_canonical(real)) {
		rule->real = strdup(real);
		if (head[4] & 4 && plan_path_is_canonical(path))
			rule->link = strdup(path);
	}
	if (head[4] & 8 && rule->access != ACCESS_DENY)
		rule->bind_source = strdup("/priv/x");
}

static bool is_open(enum access access)
{
	return access == ACCESS_READ_ONLY || access == ACCESS_READ_WRITE;
}

static void check_plan(const struct policy *policy)
{
	const struct plan_options options = { .harden = PLAN_HARDEN_ALL, .chdir = "/" };
	AUTO(plan_deinit) struct plan plan = PLAN_INIT;
	AUTO(plan_deinit) struct plan back = PLAN_INIT;
	AUTO(buf_deinit) struct buf bytes = BUF_INIT(2 * LIMIT_PLAN_BYTES);

	if (plan_build(&plan, policy, &options, NULL) < 0)
		return;
	must(plan_encode(&plan, &bytes, NULL) == 0);
	must(plan_decode(&back, bytes.data, bytes.size, NULL) == 0);
	for (size_t i = 0; i < policy->rules.count; i++) {
		const struct rule *rule = &policy->rules.rules[i];
		struct sysmount_verdict verdict = sysmount_verdict(policy, rule->path);
		enum access seen = plan_access(&back, rule->path);

		/* What is absent and only reported is left open. */
		if (rule->type == NODE_ABSENT && rule->access == ACCESS_DENY &&
		    (rule->absent == ABSENT_REPORT || rule->absent == ABSENT_IGNORE))
			continue;
		must(is_open(seen) == is_open(verdict.access));
		must(!is_open(seen) || seen == verdict.access);
	}
}

static void check_policy(const struct policy *policy, const struct rule_list *candidates)
{
	for (size_t i = 0; i < candidates->count; i++) {
		const struct rule *rule = &candidates->rules[i];
		AUTO(auto_free) char *path = path_normalize(rule->real ? rule->real : rule->path);
		bool lowered = false;

		if (!rule->host || !path)
			continue;
		/* Another rule of the host's may stand at or below it; depth decides between them. */
		for (size_t j = 0; j < candidates->count; j++)
			lowered |= j != i && candidates->rules[j].host;
		if (rule->access == ACCESS_DENY && !lowered)
			must(!is_open(policy_access(policy, path).access));
		if (rule->access == ACCESS_READ_ONLY && !lowered)
			must(policy_access(policy, path).access != ACCESS_READ_WRITE);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO(rule_list_deinit) struct rule_list candidates = RULE_LIST_INIT;
	AUTO(policy_deinit) struct policy policy = POLICY_INIT;
	AUTO(policy_deinit) struct policy expressions = POLICY_INIT;
	AUTO(auto_free) char *text = malloc(size + 1);
	const struct settle_options options = { .absent_deny = ABSENT_DEFAULT };
	const struct expression_facts facts = { .watched = size % 2 == 0 };
	char *next = text;
	char *line = NULL;

	if (!text || size > (64u << 10))
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	while ((line = strsep(&next, "\n")))
		add_candidate(&candidates, &expressions, line);
	if (policy_settle(&policy, &candidates, &options, NULL) < 0)
		return 0;
	check_policy(&policy, &candidates);
	check_plan(&policy);

	policy.deny_regexes = expressions.deny_regexes;
	expressions.deny_regexes = (struct string_list){ .items = NULL };
	if (policy_hold_expressions(&policy, &facts, NULL) == 0) {
		check_policy(&policy, &candidates);
		check_plan(&policy);
	}
	return 0;
}
