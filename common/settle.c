/* SPDX-License-Identifier: Apache-2.0 */
#include "common/settle.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/limits.h"
#include "common/path.h"
#include "common/pathtree.h"
#include "common/scope.h"

#define REASON_BYTES (LIMIT_PATH_BYTES + 64)

/*
 * One candidate under way.
 *
 * @rule     borrowed
 * @spelled  owned; the normal form of what was asked for
 * @place    where that really is; borrowed from the rule or @spelled
 * @access   of the rule, or ACCESS_DENY for an absent path that must stay read-only
 * @dropped  takes no part any more
 */
struct claim {
	const struct rule *rule;
	char *spelled;
	const char *place;
	enum access access;
	bool dropped;
};

/*
 * @direct      places of denies, and of grants that no link leads to
 * @privileged  places of mandatory and internal rules
 * @host        places of rules with `host` set
 */
struct settler {
	const struct settle_options *options;
	struct claim *claims;
	size_t count;
	struct path_tree direct;
	struct path_tree privileged;
	struct path_tree host;
	struct rule_list settled;
	struct policy policy;
};

static void settler_deinit(struct settler *settler)
{
	for (size_t i = 0; i < settler->count; i++)
		free(settler->claims[i].spelled);
	free(settler->claims);
	path_tree_deinit(&settler->direct);
	path_tree_deinit(&settler->privileged);
	path_tree_deinit(&settler->host);
	rule_list_deinit(&settler->settled);
	policy_deinit(&settler->policy);
}

static const char *origin_of(const struct rule *rule)
{
	return rule->origin ? rule->origin : rule_source_name(rule->source);
}

static bool through_link(const struct claim *claim)
{
	return strcmp(claim->spelled, claim->place) != 0;
}

/* How much an access lets through, for comparisons. */
static int openness(enum access access)
{
	return access == ACCESS_READ_WRITE ? 2 : access == ACCESS_READ_ONLY ? 1 : 0;
}

static int refuse(const struct rule *rule, enum error_kind kind, struct error *err, const char *why)
{
	return error_set(err, kind, 0, "%s '%s' (%s): %s", access_name(rule->access), rule->path,
			 origin_of(rule), why);
}

static int read_claim(struct claim *claim, const struct rule *rule, struct error *err)
{
	const char *why = path_refusal(rule->path);

	if (!why && rule->bind_source)
		why = path_refusal(rule->bind_source);
	if (why)
		return refuse(rule, ERR_POLICY_INVALID, err, why);
	claim->rule = rule;
	claim->access = rule->access;
	claim->spelled = path_normalize(rule->path);
	if (!claim->spelled)
		return error_set(err, ERR_NOMEM, 0, "no memory for the policy");
	claim->place = rule->real ? rule->real : claim->spelled;
	/* What is not there yet would be writable once the job makes it. */
	if (rule->source == RULE_MANDATORY && rule->access == ACCESS_READ_ONLY &&
	    rule->type == NODE_ABSENT)
		claim->access = ACCESS_DENY;
	return 0;
}

static int settler_init(struct settler *settler, const struct rule_list *candidates,
			struct error *err)
{
	int r = 0;

	settler->claims = calloc(candidates->count + 1, sizeof(*settler->claims));
	if (!settler->claims)
		return error_set(err, ERR_NOMEM, 0, "no memory for the policy");
	for (; r == 0 && settler->count < candidates->count; settler->count++)
		r = read_claim(&settler->claims[settler->count], &candidates->rules[settler->count],
			       err);
	if (r == 0)
		r = path_tree_init(&settler->direct, candidates->count, err);
	if (r == 0)
		r = path_tree_init(&settler->privileged, candidates->count, err);
	if (r == 0)
		r = path_tree_init(&settler->host, candidates->count, err);
	if (r < 0)
		return r;

	for (uint32_t i = 0; i < settler->count; i++) {
		const struct claim *claim = &settler->claims[i];

		if (claim->access == ACCESS_DENY || !through_link(claim))
			path_tree_add(&settler->direct, claim->place, i);
		if (claim->rule->source == RULE_MANDATORY || claim->rule->source == RULE_INTERNAL)
			path_tree_add(&settler->privileged, claim->place, i);
		if (claim->rule->host)
			path_tree_add(&settler->host, claim->place, i);
	}
	path_tree_link(&settler->direct);
	path_tree_link(&settler->privileged);
	path_tree_link(&settler->host);
	return 0;
}

/* Of the claims at one position of TREE the one that a merge would keep. */
static const struct claim *winner_at(const struct settler *settler, const struct path_tree *tree,
				     uint32_t position)
{
	const struct claim *best = NULL;

	for (uint32_t i = position; i < tree->entries[position].end; i++) {
		const struct claim *claim = NULL;

		if (tree->entries[i].first != position)
			break;
		claim = &settler->claims[tree->entries[i].item];
		if (!best || claim->rule->source > best->rule->source ||
		    (claim->rule->source == best->rule->source && claim->access > best->access))
			best = claim;
	}
	return best;
}

/* The claim of TREE that decides for PLACE, or NULL. */
static const struct claim *decide(const struct settler *settler, const struct path_tree *tree,
				  const char *place)
{
	uint32_t position = path_tree_cover(tree, place);

	return position == PATH_TREE_NONE ? NULL : winner_at(settler, tree, position);
}

/* Whether a mandatory rule stands at or above PLACE. */
static bool is_under_mandatory(const struct settler *settler, const char *place)
{
	const struct path_tree *tree = &settler->privileged;

	for (uint32_t i = path_tree_cover(tree, place); i != PATH_TREE_NONE;
	     i = tree->entries[i].parent)
		if (winner_at(settler, tree, i)->rule->source == RULE_MANDATORY)
			return true;
	return false;
}

/* What keeps a grant from being given, or NULL. */
static const struct claim *find_obstacle(const struct settler *settler, const struct claim *claim)
{
	const struct claim *host = decide(settler, &settler->host, claim->place);
	const struct claim *privileged = NULL;
	const struct claim *denied = NULL;

	if (!claim->rule->host && host && openness(claim->access) > openness(host->access))
		return host;

	if (claim->rule->source != RULE_MANDATORY && claim->rule->source != RULE_INTERNAL &&
	    is_under_mandatory(settler, claim->place)) {
		privileged = decide(settler, &settler->privileged, claim->place);
		if (openness(claim->access) > openness(privileged->access))
			return privileged;
	}

	if (!through_link(claim))
		return NULL;
	denied = decide(settler, &settler->direct, claim->place);
	if (!denied || denied->access != ACCESS_DENY)
		return NULL;
	/* Spelled as standing in that tree: the link was not what led there. */
	return path_covers(denied->spelled, claim->spelled) ? NULL : denied;
}

static int __attribute__((format(printf, 4, 5)))
add_note(struct settler *settler, const char *path, struct error *err, const char *format, ...)
{
	char reason[REASON_BYTES];
	va_list args;

	va_start(args, format);
	(void)vsnprintf(reason, sizeof(reason), format, args);
	va_end(args);
	return policy_add_note(&settler->policy, path, reason, err);
}

static int suppress(struct settler *settler, struct claim *claim, const struct claim *obstacle,
		    struct error *err)
{
	int r = 0;

	/* What may not be written may still be read. */
	if (obstacle->access == ACCESS_READ_ONLY)
		claim->access = ACCESS_READ_ONLY;
	else
		claim->dropped = true;
	/* A baseline is written for every host: what does not apply to this one is no news. */
	if (claim->rule->source == RULE_BASELINE)
		return 0;
	r = string_list_add(&settler->policy.suppressed, claim->spelled, err);
	if (r == 0)
		r = add_note(settler, claim->spelled, err, "%s: it lies in what '%s' %s",
			     claim->dropped ? "not granted" : "readOnly", obstacle->spelled,
			     claim->dropped ? "denies" : "keeps read-only");
	return r;
}

/* The nearest deny of a file strictly above PLACE, or NULL. */
static const struct claim *find_denied_file(const struct settler *settler, const char *place)
{
	const struct path_tree *tree = &settler->direct;

	for (uint32_t i = path_tree_cover(tree, place); i != PATH_TREE_NONE;
	     i = tree->entries[i].parent) {
		const struct claim *claim = winner_at(settler, tree, i);

		if (claim->access == ACCESS_DENY && node_is_file(claim->rule->type) &&
		    strcmp(claim->place, place) != 0)
			return claim;
	}
	return NULL;
}

static int settle_grant(struct settler *settler, struct claim *claim, struct error *err)
{
	const struct rule *rule = claim->rule;
	const struct claim *obstacle = find_obstacle(settler, claim);
	const struct claim *file = NULL;
	int r = 0;

	if (rule->exact && through_link(claim))
		claim->dropped = true;
	else if (obstacle)
		r = suppress(settler, claim, obstacle, err);
	if (r < 0 || claim->dropped)
		return r;
	file = find_denied_file(settler, claim->place);
	if (file && !rule->optional)
		return error_set(err, ERR_POLICY_INVALID, 0,
				 "%s '%s' (%s): '%s' above it is denied and no directory",
				 access_name(rule->access), rule->path, origin_of(rule),
				 file->spelled);
	if (rule->type != NODE_ABSENT || rule->bind_source)
		return 0;
	if (!rule->optional)
		return refuse(rule, ERR_PATH_NOT_FOUND, err, "there is no such file or directory");
	claim->dropped = true;
	if (rule->source != RULE_USER)
		return 0;
	return add_note(settler, claim->spelled, err,
			"not granted: there is no such file or directory");
}

static enum absent_mode absent_mode_of(const struct settler *settler, const struct claim *claim)
{
	if (claim->rule->source == RULE_MANDATORY)
		return claim->rule->absent == ABSENT_WATCH && !claim->rule->host
			       ? ABSENT_WATCH
			       : ABSENT_PLACEHOLDER;
	if (claim->rule->absent != ABSENT_DEFAULT)
		return claim->rule->absent;
	if (settler->options->absent_deny != ABSENT_DEFAULT)
		return settler->options->absent_deny;
	return ABSENT_PLACEHOLDER;
}

/* The rule for the link node itself; its target has the rule proper. */
static int add_link_rule(struct settler *settler, const struct claim *claim, struct error *err)
{
	const struct rule *rule = claim->rule;
	struct rule *node = NULL;
	const struct claim *around = NULL;
	int r = 0;

	if (claim->access != ACCESS_DENY) {
		/* Worth keeping only where the link could be replaced. */
		around = decide(settler, &settler->direct, rule->link);
		if (claim->access != ACCESS_READ_ONLY || !around ||
		    around->access != ACCESS_READ_WRITE)
			return 0;
	}
	r = rule_list_append(&settler->settled, rule->link, claim->access, rule->source,
			     rule->origin, err);
	if (r < 0)
		return r;
	node = &settler->settled.rules[settler->settled.count - 1];
	node->type = NODE_OTHER;
	node->denied_link = true;
	node->host = rule->host;
	return 0;
}

/* COPY of the claim's rule now stands where it really is. */
static int move_to_place(struct rule *copy, const struct claim *claim, struct error *err)
{
	free(copy->path);
	free(copy->link);
	copy->link = NULL;
	copy->path = strdup(claim->place);
	if (copy->path)
		return 0;
	rule_deinit(copy);
	return error_set(err, ERR_NOMEM, 0, "no memory for the policy");
}

static int add_settled(struct settler *settler, const struct claim *claim, struct error *err)
{
	struct rule copy = { .path = NULL };
	int r = 0;

	if (claim->dropped)
		return 0;
	r = rule_copy(&copy, claim->rule, err);
	if (r < 0)
		return r;
	copy.access = claim->access;
	r = move_to_place(&copy, claim, err);
	if (r < 0)
		return r;
	if (copy.access == ACCESS_DENY && copy.type == NODE_ABSENT) {
		copy.absent = absent_mode_of(settler, claim);
		if (copy.absent == ABSENT_REPORT)
			r = add_note(settler, claim->spelled, err,
				     "not denied: it is absent, and what is made there later is "
				     "not held");
	}
	/* Of what is there it says what happens should it go; the usual needs no word. */
	if (copy.access == ACCESS_DENY && copy.type != NODE_ABSENT &&
	    absent_mode_of(settler, claim) != ABSENT_PLACEHOLDER)
		copy.absent = absent_mode_of(settler, claim);
	/* Consumed either way. */
	if (r == 0)
		r = rule_list_add_take(&settler->settled, &copy, err);
	else
		rule_deinit(&copy);
	if (r == 0 && claim->rule->link)
		r = add_link_rule(settler, claim, err);
	return r;
}

/* Such readOnly rules take away; what nothing else shows they do not show either. */
static bool only_lowers(const struct claim *claim)
{
	return (claim->rule->host || claim->rule->lowers) &&
	       claim->rule->access == ACCESS_READ_ONLY;
}

static int merge_settled(struct settler *settler, struct error *err)
{
	struct rule_list merged = RULE_LIST_INIT;
	int r = rule_list_merge(&merged, &settler->settled, err);

	if (r < 0)
		return r;
	rule_list_deinit(&settler->policy.rules);
	settler->policy.rules = merged;
	return policy_index(&settler->policy, err);
}

static int add_rules(struct settler *settler, struct error *err)
{
	size_t before = 0;
	int r = 0;

	for (size_t i = 0; r == 0 && i < settler->count; i++)
		if (!only_lowers(&settler->claims[i]))
			r = add_settled(settler, &settler->claims[i], err);
	if (r == 0)
		r = merge_settled(settler, err);

	before = settler->settled.count;
	for (size_t i = 0; r == 0 && i < settler->count; i++) {
		const struct claim *claim = &settler->claims[i];

		if (!only_lowers(claim) || claim->dropped)
			continue;
		if (policy_access(&settler->policy, claim->place).access == ACCESS_READ_WRITE)
			r = add_settled(settler, claim, err);
		else if (claim->rule->link)
			r = add_link_rule(settler, claim, err);
	}
	if (r == 0 && settler->settled.count > before)
		r = merge_settled(settler, err);
	return r;
}

/* By what names that lead through links the grants that stay were asked for. */
static int add_aliases(struct settler *settler, struct error *err)
{
	struct string_list *aliases = &settler->policy.aliases;
	int r = 0;

	for (size_t i = 0; r == 0 && i < settler->count; i++) {
		const struct claim *claim = &settler->claims[i];

		if (claim->dropped || claim->access == ACCESS_DENY || !through_link(claim) ||
		    openness(policy_access(&settler->policy, claim->place).access) == 0)
			continue;
		r = string_list_add(aliases, claim->spelled, err);
		if (r == 0)
			r = string_list_add(aliases, claim->place, err);
	}
	return r;
}

static int check_cwd(const struct settler *settler, struct error *err)
{
	const char *cwd = settler->options->cwd;
	struct verdict verdict = { .access = ACCESS_NONE };

	if (!cwd)
		return 0;
	verdict = policy_access(&settler->policy, cwd);
	if (verdict.access == ACCESS_NONE)
		return error_set(err, ERR_POLICY_INVALID, 0,
				 "the working directory '%s' is not granted", cwd);
	if (verdict.access == ACCESS_DENY)
		return error_set(err, ERR_POLICY_INVALID, 0,
				 "the working directory '%s' is denied by '%s' (%s)", cwd,
				 verdict.rule->path, origin_of(verdict.rule));
	return 0;
}

int policy_settle(struct policy *ret_policy, const struct rule_list *candidates,
		  const struct settle_options *options, struct error *err)
{
	AUTO(settler_deinit) struct settler settler = { .options = options };
	int r = 0;

	settler.policy = (struct policy)POLICY_INIT;
	r = settler_init(&settler, candidates, err);
	for (size_t i = 0; r == 0 && i < settler.count; i++)
		if (settler.claims[i].access != ACCESS_DENY)
			r = settle_grant(&settler, &settler.claims[i], err);
	if (r == 0)
		r = add_rules(&settler, err);
	if (r == 0)
		r = add_aliases(&settler, err);
	if (r == 0)
		r = check_cwd(&settler, err);
	if (r < 0)
		return r;
	string_list_sort_unique(&settler.policy.suppressed);
	*ret_policy = settler.policy;
	settler.policy = (struct policy)POLICY_INIT;
	return 0;
}
