/* SPDX-License-Identifier: Apache-2.0 */
#include "common/expression.h"

#include <regex.h>
#include <stdlib.h>
#include <string.h>

#include "common/path.h"
#include "common/scope.h"

#define ORIGIN_WRITE "write expression"
#define ORIGIN_DENY "deny expression"
#define ORIGIN_FINAL "final read-only path"

static int compile(const char *regex, struct error *err)
{
	regex_t compiled;
	int failure = regcomp(&compiled, regex, REG_EXTENDED | REG_NOSUB);

	if (failure == REG_ESPACE)
		return error_set(err, ERR_NOMEM, 0, "no memory for '%s'", regex);
	if (failure != 0)
		return error_set(err, ERR_POLICY_INVALID, 0,
				 "'%s' is not an extended regular expression", regex);
	regfree(&compiled);
	return 0;
}

/* A `|` outside of everything that keeps it to a part: then there is no common beginning. */
static bool has_alternatives(const char *regex)
{
	int depth = 0;

	for (; *regex; regex++) {
		if (*regex == '\\' && regex[1] != '\0')
			regex++;
		else if (*regex == '[')
			regex += strcspn(regex + 2, "]") + 2;
		else if (*regex == '(')
			depth++;
		else if (*regex == ')')
			depth--;
		else if (*regex == '|' && depth <= 0)
			return true;
		if (*regex == '\0')
			break;
	}
	return false;
}

/* One character that stands for itself at *AT; moves on and returns it, or '\0'. */
static char take_literal(const char **at)
{
	const char *text = *at;

	if (text[0] == '\\') {
		/* Before a letter or digit a backslash may mean something of its own. */
		bool special =
			(text[1] >= 'a' && text[1] <= 'z') || (text[1] >= 'A' && text[1] <= 'Z') ||
			(text[1] >= '0' && text[1] <= '9') || text[1] == '<' || text[1] == '>' ||
			text[1] == '`' || text[1] == '\'' || text[1] == '\0';

		if (special)
			return '\0';
		*at += 2;
		return text[1];
	}
	if (text[0] == '[' && text[1] != '^' && text[1] != '[' && text[1] != ']' &&
	    text[1] != '\0' && text[2] == ']') {
		*at += 3;
		return text[1];
	}
	if (text[0] == '\0' || strchr("^$.|?*+()[]{}", text[0]))
		return '\0';
	*at += 1;
	return text[0];
}

/* Whether the quantifiers at AT let the character before them be absent. */
static bool may_be_missing(const char *at)
{
	while (*at == '+')
		at++;
	return *at == '*' || *at == '?' || *at == '{';
}

int expression_shape(const char *regex, struct expression_shape *ret_shape, struct error *err)
{
	const char *at = regex + 1;
	size_t used = 0;
	int r = compile(regex, err);

	if (r < 0)
		return r;
	*ret_shape = (struct expression_shape){ .exact = false };
	if (regex[0] != '^' || has_alternatives(regex))
		return 0;

	for (;;) {
		const char *next = at;
		char literal = take_literal(&next);

		/* What may be missing is not certain; nor is a repetition that may be (`a+?`). */
		if (literal == '\0' || used >= LIMIT_PATH_BYTES || may_be_missing(next))
			break;
		ret_shape->prefix[used++] = literal;
		at = next;
		if (*at == '+')
			break;
	}
	ret_shape->prefix[used] = '\0';
	ret_shape->exact = strcmp(at, "$") == 0 && path_refusal(ret_shape->prefix) == NULL;
	return 0;
}

bool expression_reaches(const struct expression_shape *shape, const char *tree)
{
	size_t prefix = strlen(shape->prefix);
	size_t size = strcmp(tree, "/") == 0 ? 0 : strlen(tree); /* then comes the slash */

	if (prefix <= size)
		return !shape->exact && strncmp(shape->prefix, tree, prefix) == 0;
	return strncmp(shape->prefix, tree, size) == 0 && shape->prefix[size] == '/';
}

/* Whether every match lies strictly below the normal path TREE. */
static bool lies_within(const struct expression_shape *shape, const char *tree)
{
	return strlen(shape->prefix) > strlen(tree) && expression_reaches(shape, tree);
}

/* Rules to be merged into the policy's. */
struct holder {
	struct policy *policy;
	const struct expression_facts *facts;
	struct rule_list rules;
};

static void holder_deinit(struct holder *holder)
{
	rule_list_deinit(&holder->rules);
}

static int hold(struct holder *holder, const struct rule *found, const char *path,
		enum access access, const char *origin, struct error *err)
{
	struct rule *rule =
		rule_list_add(&holder->rules, path, access, RULE_MANDATORY, origin, err);

	if (!rule)
		return err ? -(int)err->kind : -(int)ERR_NOMEM;
	rule->type = found ? found->type : NODE_ABSENT;
	if (access == ACCESS_DENY)
		rule->absent = ABSENT_PLACEHOLDER;
	return 0;
}

/* Merge what was collected over the policy's rules, and index again. */
static int merge(struct holder *holder, struct error *err)
{
	struct policy *policy = holder->policy;
	struct rule_list merged = RULE_LIST_INIT;
	int r = 0;

	for (size_t i = 0; r == 0 && i < policy->rules.count; i++)
		r = rule_list_add_take(&holder->rules, &policy->rules.rules[i], err);
	if (r == 0)
		r = rule_list_merge(&merged, &holder->rules, err);
	if (r < 0)
		return r;
	rule_list_deinit(&holder->rules);
	rule_list_deinit(&policy->rules);
	policy->rules = merged;
	return policy_index(policy, err);
}

static int refuse(const char *regex, struct error *err, const char *why, const char *path)
{
	return error_set(err, ERR_POLICY_INVALID, 0,
			 "the expression '%s' cannot be held here: %s '%s'", regex, why, path);
}

static const struct rule *find_path(const struct rule_list *list, const char *path)
{
	for (size_t i = 0; list && i < list->count; i++)
		if (strcmp(list->rules[i].path, path) == 0)
			return &list->rules[i];
	return NULL;
}

/*
 * What does not exist cannot be made writable by a mount. That makes no difference below a readWrite
 * tree, unless something there is less than that.
 */
static int check_future_writes(const struct holder *holder, const char *regex,
			       const struct expression_shape *shape, struct error *err)
{
	const struct rule_list *rules = &holder->policy->rules;
	bool within = false;

	for (size_t i = 0; i < rules->count; i++) {
		const struct rule *rule = &rules->rules[i];

		/* Rules come by depth: a deeper readWrite tree has the last word. */
		if (rule->access == ACCESS_READ_WRITE && lies_within(shape, rule->path))
			within = true;
		else if (expression_reaches(shape, rule->path) && rule->access != ACCESS_READ_WRITE)
			within = false;
	}
	if (within || (shape->exact && find_path(holder->facts->write_matches, shape->prefix)))
		return 0;
	return refuse(regex, err,
		      "it can match what does not exist outside of a readWrite tree, below",
		      shape->prefix[0] ? shape->prefix : "/");
}

/* Whether a rule of the host's covers PATH. Deeper nesting than anybody makes counts as one. */
static bool is_the_hosts(const struct policy *policy, const char *path)
{
	const struct rule *covering[64];
	size_t count = policy_covering(policy, path, covering, ARRAY_SIZE(covering));

	for (size_t i = 0; i < count && i < ARRAY_SIZE(covering); i++)
		if (covering[i]->host)
			return true;
	return count > ARRAY_SIZE(covering);
}

static int hold_writes(struct holder *holder, struct error *err)
{
	const struct policy *policy = holder->policy;
	const struct rule_list *matches = holder->facts->write_matches;
	int r = 0;

	for (size_t i = 0; r == 0 && i < policy->write_regexes.count; i++) {
		struct expression_shape shape;

		r = expression_shape(policy->write_regexes.items[i], &shape, err);
		if (r == 0)
			r = check_future_writes(holder, policy->write_regexes.items[i], &shape,
						err);
	}
	for (size_t i = 0; r == 0 && matches && i < matches->count; i++) {
		const struct rule *found = &matches->rules[i];
		enum access access = policy_access(policy, found->path).access;

		if (access == ACCESS_READ_WRITE)
			continue;
		if (access != ACCESS_READ_ONLY || is_the_hosts(policy, found->path))
			r = error_set(err, ERR_POLICY_INVALID, 0,
				      "a write expression matches '%s', which %s", found->path,
				      access == ACCESS_READ_ONLY
					      ? "is read-only on this host"
					      : "may not be read, and write access alone is not "
						"possible");
		else
			r = hold(holder, found, found->path, ACCESS_READ_WRITE, ORIGIN_WRITE, err);
	}
	return r;
}

/* Denying what does not exist yet needs somebody to watch, where a job could make it. */
static int check_future_denies(const struct holder *holder, const char *regex,
			       const struct expression_shape *shape, struct error *err)
{
	const struct rule_list *rules = &holder->policy->rules;

	for (size_t i = 0; !holder->facts->watched && i < rules->count; i++) {
		const struct rule *rule = &rules->rules[i];

		if (rule->access == ACCESS_READ_WRITE && expression_reaches(shape, rule->path))
			return refuse(regex, err,
				      "nothing watches what may be made in the readWrite tree",
				      rule->path);
	}
	return 0;
}

static int hold_denies(struct holder *holder, struct error *err)
{
	const struct policy *policy = holder->policy;
	const struct rule_list *matches = holder->facts->deny_matches;
	int r = 0;

	for (size_t i = 0; r == 0 && i < policy->deny_regexes.count; i++) {
		const char *regex = policy->deny_regexes.items[i];
		struct expression_shape shape;

		r = expression_shape(regex, &shape, err);
		if (r == 0 && !shape.exact)
			r = check_future_denies(holder, regex, &shape, err);
		else if (r == 0 && !find_path(matches, shape.prefix))
			r = hold(holder, NULL, shape.prefix, ACCESS_DENY, ORIGIN_DENY, err);
	}
	for (size_t i = 0; r == 0 && matches && i < matches->count; i++)
		r = hold(holder, &matches->rules[i], matches->rules[i].path, ACCESS_DENY,
			 ORIGIN_DENY, err);
	return r;
}

/* Everything that is readWrite at or below PATH becomes readOnly; at PATH itself a rule says so. */
static int hold_final(struct holder *holder, const struct rule *final, struct error *err)
{
	struct policy *policy = holder->policy;
	enum access access = policy_access(policy, final->path).access;
	int r = 0;

	for (size_t i = 0; i < policy->rules.count; i++) {
		struct rule *rule = &policy->rules.rules[i];

		if (rule->access == ACCESS_READ_WRITE && path_covers(final->path, rule->path))
			rule->access = ACCESS_READ_ONLY;
	}
	if (access == ACCESS_READ_WRITE)
		r = hold(holder, final, final->path,
			 final->type == NODE_ABSENT ? ACCESS_DENY : ACCESS_READ_ONLY, ORIGIN_FINAL,
			 err);
	return r;
}

static int hold_finals(struct holder *holder, struct error *err)
{
	const struct policy *policy = holder->policy;
	const struct rule_list *finals = holder->facts->final_read_only;
	int r = 0;

	for (size_t i = 0; r == 0 && i < policy->final_read_only.count; i++) {
		const char *why = path_refusal(policy->final_read_only.items[i]);

		if (why)
			r = error_set(err, ERR_POLICY_INVALID, 0,
				      "the final read-only path '%s' %s",
				      policy->final_read_only.items[i], why);
	}
	for (size_t i = 0; r == 0 && finals && i < finals->count; i++)
		r = hold_final(holder, &finals->rules[i], err);
	return r;
}

int policy_hold_expressions(struct policy *policy, const struct expression_facts *facts,
			    struct error *err)
{
	static int (*const steps[])(struct holder * holder, struct error * err) = {
		hold_writes,
		hold_denies,
		hold_finals,
	};
	int r = 0;

	if (policy->write_regexes.count > LIMIT_EXPRESSIONS ||
	    policy->deny_regexes.count > LIMIT_EXPRESSIONS ||
	    policy->final_read_only.count > LIMIT_EXPRESSIONS)
		return error_set(err, ERR_POLICY_INVALID, 0, "more than %d expressions of a kind",
				 LIMIT_EXPRESSIONS);
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(steps); i++) {
		AUTO(holder_deinit) struct holder holder = { .policy = policy, .facts = facts };

		r = steps[i](&holder, err);
		if (r == 0)
			r = merge(&holder, err);
	}
	return r;
}
