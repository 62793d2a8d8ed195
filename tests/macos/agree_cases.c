/* SPDX-License-Identifier: Apache-2.0 */

/*
 * agree_cases COUNT SEED
 *
 * Random policies, one JSON object a line, for test_agree.py: the rules, what policy_access() says
 * about paths near them, the plain and the hardened Seatbelt text.
 */

#include <stdio.h>
#include <stdlib.h>

#include "common/buf.h"
#include "common/scope.h"
#include "common/seatbelt.h"
#include "tests/gen_policy.h"
#include "tests/json_lite.h"

#define PROBES 12

static const struct gen_options options = { .max_rules = 9, .max_depth = 6, .root = true };

static struct json_value *rules_value(const struct rule_list *rules)
{
	struct json_value *object = json_new(JSON_OBJECT);

	for (size_t i = 0; i < rules->count; i++)
		(void)json_set(object, rules->rules[i].path,
			       json_new_string(access_name(rules->rules[i].access)));
	return object;
}

static struct json_value *probes_value(struct gen *gen, const struct policy *policy)
{
	struct json_value *object = json_new(JSON_OBJECT);

	for (int i = 0; i < PROBES; i++) {
		AUTO(auto_free) char *path = gen_probe(gen, &policy->rules, &options);

		if (!json_get(object, path))
			(void)json_set(object, path,
				       json_new_string(
					       access_name(policy_access(policy, path).access)));
	}
	return object;
}

static struct json_value *text_value(const struct policy *policy, uint32_t harden)
{
	AUTO(buf_deinit) struct buf out = BUF_INIT(1u << 20);
	struct error err = ERROR_INIT;

	if (seatbelt_compile(&out, policy, harden, &err) < 0) {
		(void)fprintf(stderr, "agree_cases: %s\n", err.message);
		exit(1);
	}
	return json_new_string(buf_text(&out));
}

static void write_case(struct gen *gen)
{
	AUTO(policy_deinit) struct policy policy = POLICY_INIT;
	AUTO(json_release) struct json_value *line = json_new(JSON_OBJECT);

	policy.net = gen_below(gen, 2) ? NET_HOST : NET_NONE;
	gen_rules(gen, &policy.rules, &options);
	if (policy_index(&policy, NULL) < 0)
		exit(1);
	(void)json_set(line, "rules", rules_value(&policy.rules));
	(void)json_set(line, "probes", probes_value(gen, &policy));
	(void)json_set(line, "plain", text_value(&policy, 0));
	(void)json_set(line, "hard", text_value(&policy, SEATBELT_HARDEN_ALL));
	json_print(line, stdout);
	(void)putchar('\n');
}

int main(int argc, char **argv)
{
	struct gen gen;

	if (argc != 3) {
		(void)fputs("usage: agree_cases COUNT SEED\n", stderr);
		return 2;
	}
	gen = gen_start(strtoull(argv[2], NULL, 10));
	for (unsigned long i = strtoul(argv[1], NULL, 10); i > 0; i--)
		write_case(&gen);
	return 0;
}
