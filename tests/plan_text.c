/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/plan_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/plan_op.h"
#include "common/scope.h"

#define MARKS "=@?!~><*"

static _Noreturn void give_up(const char *what)
{
	(void)fprintf(stderr, "plan_text: %s\n", what);
	abort();
}

static void read_type(struct rule *rule, const char *name)
{
	static const struct {
		const char *name;
		enum node_type type;
	} types[] = {
		{ "dir", NODE_DIRECTORY }, { "file", NODE_FILE }, { "sock", NODE_SOCKET },
		{ "absent", NODE_ABSENT }, { "?", NODE_UNKNOWN },
	};

	for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
		if (strcmp(types[i].name, name) == 0) {
			rule->type = types[i].type;
			return;
		}
	}
	give_up(name);
}

/* What follows a path; each mark ends at the next one. */
static void read_marks(struct rule *rule, char *marks)
{
	while (*marks) {
		char mark = *marks;
		size_t size = strcspn(marks + 1, MARKS) + 1;
		char kept = marks[size];

		marks[size] = '\0';
		if (mark == '=')
			read_type(rule, marks + 1);
		else if (mark == '@')
			rule->bind_source = strdup(marks + 1);
		else if (mark == '<')
			rule->real = strdup(marks + 1);
		else if (mark == '>')
			rule->link = strdup(marks + 1);
		else if (mark == '?')
			rule->optional = true;
		else if (mark == '*')
			rule->host = true;
		else if (mark == '~')
			rule->denied_link = true;
		else if (!absent_mode_parse(marks + 1, &rule->absent))
			give_up(marks);
		marks[size] = kept;
		marks += size;
	}
}

static void read_rule(struct rule_list *list, char *word)
{
	enum rule_source source = RULE_USER;
	enum access access = ACCESS_DENY;
	char *colon = strchr(word, ':');
	char *slash = colon ? memchr(word, '/', (size_t)(colon - word)) : NULL;
	char *marks = colon ? colon + 1 + strcspn(colon + 1, MARKS) : NULL;
	char kept = marks ? *marks : '\0';
	struct rule *rule = NULL;

	if (!colon)
		give_up(word);
	*colon = '\0';
	if (slash) {
		*slash = '\0';
		if (!rule_source_parse(word, &source))
			give_up(word);
		word = slash + 1;
	}
	if (strcmp(word, "rw") == 0)
		access = ACCESS_READ_WRITE;
	else if (strcmp(word, "ro") == 0)
		access = ACCESS_READ_ONLY;
	*marks = '\0';
	rule = rule_list_add(list, colon + 1, access, source, "test", NULL);
	*marks = kept;
	if (!rule)
		give_up("no memory");
	rule->type = NODE_DIRECTORY;
	read_marks(rule, marks);
}

void rules_of(const char *text, struct rule_list *list)
{
	AUTO(auto_free) char *copy = strdup(text);
	char *rest = NULL;

	for (char *word = strtok_r(copy, " ", &rest); word; word = strtok_r(NULL, " ", &rest))
		read_rule(list, word);
}

struct policy policy_of(const char *text)
{
	AUTO(rule_list_deinit) struct rule_list candidates = RULE_LIST_INIT;
	struct policy policy = POLICY_INIT;

	rules_of(text, &candidates);
	if (rule_list_merge(&policy.rules, &candidates, NULL) < 0 ||
	    policy_index(&policy, NULL) < 0)
		give_up("no memory");
	for (size_t i = 0; i < candidates.count; i++) {
		const struct rule *rule = &candidates.rules[i];

		if (rule->link && (string_list_add(&policy.aliases, rule->link, NULL) < 0 ||
				   string_list_add(&policy.aliases, rule->path, NULL) < 0))
			give_up("no memory");
	}
	return policy;
}

void plan_text(const struct plan *plan, bool rules_only, struct buf *out)
{
	static const char *const flags[] = { "ro",      "placeholder", "watch", "private",
					     "file",    "system",      "link",  "quarantine",
					     "entries", "let-go" };

	for (size_t i = 0; i < plan->count; i++) {
		const struct plan_op *op = &plan->ops[i];

		if (rules_only && (op->flags & PLAN_SYSTEM))
			continue;
		(void)buf_printf(out, "%s %s", plan_op_kind_name(op->kind), op->path);
		if (op->source && strcmp(op->source, op->path) != 0)
			(void)buf_printf(out, " <- %s", op->source);
		for (size_t bit = 0; bit < ARRAY_SIZE(flags); bit++)
			if (op->flags & (1u << bit) && (1u << bit) != PLAN_SYSTEM)
				(void)buf_printf(out, " %s", flags[bit]);
		(void)buf_add_byte(out, '\n');
	}
}
