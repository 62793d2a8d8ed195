/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/broker/why.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/path.h"
#include "common/plan.h"
#include "common/plan_op.h"
#include "common/scope.h"
#include "common/sysmount.h"
#include "daemon/broker/broker.h"
#include "daemon/broker/built.h"
#include "daemon/broker/client.h"
#include "daemon/broker/policyreq.h"
#include "daemon/broker/whyhost.h"

#define HINT_BYTES (LIMIT_PATH_BYTES + 512)

/* Rules that one path can have at most: one for each of its components. */
#define COVERING_MAX (LIMIT_PATH_BYTES / 2 + 2)

static int dup_text(char **ret, const char *text, struct error *err)
{
	*ret = strdup(text);
	return *ret != NULL ? 0 : error_set(err, ERR_NOMEM, ENOMEM, "a reply");
}

/* ---- the answer ---------------------------------------------------------------------------- */

static bool is_origin(const struct rule *rule, const char *origin)
{
	return rule->origin != NULL && strcmp(rule->origin, origin) == 0;
}

static void hint_for_read_only(char *hint, size_t size, const struct rule *rule, const char *real)
{
	if (rule->host)
		(void)snprintf(hint, size,
			       "kept read-only by this host's configuration or because"
			       " it is fsbox's own; only fsboxd.conf can change the"
			       " former");
	else if (is_origin(rule, "protected name") &&
		 (strcmp(path_leaf(rule->path), "config") == 0 ||
		  strcmp(path_leaf(rule->path), "config.worktree") == 0 ||
		  strcmp(path_leaf(rule->path), ".gitconfig") == 0))
		(void)snprintf(hint, size,
			       "git would run programs it names; --allow-git-config"
			       " makes it writable");
	else if (is_origin(rule, "protected name"))
		(void)snprintf(hint, size,
			       "a program outside the sandbox would execute or obey it;"
			       " change it outside, or use a profile with"
			       " \"protect\": false");
	else if (rule->source == RULE_USER)
		(void)snprintf(hint, size,
			       "your own request makes '%s' readable only; --rw '%s'"
			       " instead of --ro makes it writable",
			       rule->path, real);
	else
		(void)snprintf(hint, size, "--rw '%s' makes it writable", real);
}

static void hint_for_deny(char *hint, size_t size, const struct rule *rule, const char *real)
{
	if (rule->host)
		(void)snprintf(hint, size,
			       "denied by this host's configuration or because it is"
			       " fsbox's own; only fsboxd.conf can change the former");
	else if (rule->source == RULE_MANDATORY)
		(void)snprintf(hint, size, "denied by the profile for good: no option lifts it");
	else if (rule->source == RULE_USER)
		(void)snprintf(hint, size, "your own request denies '%s'; leave --deny out",
			       rule->path);
	else
		(void)snprintf(hint, size,
			       "the profile denies '%s'; --ro '%s' makes it readable to"
			       " everything in the sandbox",
			       rule->path, real);
}

static void hint_for(char *hint, size_t size, const struct sysmount_verdict *verdict,
		     const char *real, enum node_type type, const char *cwd)
{
	const struct rule *rule = verdict->rule;

	hint[0] = '\0';
	if (verdict->mount != NULL && rule == NULL) {
		(void)snprintf(hint, size,
			       "'%s' is made new for each sandbox: what the host has"
			       " there is not seen",
			       verdict->mount->path);
	} else if (rule == NULL) {
		(void)snprintf(hint, size,
			       "nothing grants it: --ro '%s' to read, --rw '%s' to"
			       " write",
			       real, real);
	} else if (rule->access == ACCESS_DENY) {
		hint_for_deny(hint, size, rule, real);
	} else if (rule->access == ACCESS_READ_ONLY) {
		hint_for_read_only(hint, size, rule, real);
	} else if (rule->bind_source != NULL) {
		(void)snprintf(hint, size, "a private directory stands in its place: '%s'",
			       rule->bind_source);
	} else if (type == NODE_ABSENT) {
		(void)snprintf(hint, size, "it does not exist; it can be created");
	} else if (strcmp(rule->path, cwd) == 0) {
		(void)snprintf(hint, size, "it lies in the working directory");
	}
}

/* How the mounts hold the rule with this path. */
static const char *mask_of(const struct policy *policy, const struct rule *rule, const char *cwd,
			   struct plan *plan)
{
	const struct plan_options options = { .harden = PLAN_HARDEN_ALL, .chdir = cwd };
	const char *mask = NULL;

	if (rule->access != ACCESS_DENY || plan_build(plan, policy, &options, NULL) < 0)
		return NULL;
	for (size_t i = 0; i < plan->count; i++) {
		const struct plan_op *op = &plan->ops[i];

		if (op->kind == PLAN_SEAL || strcmp(op->path, rule->path) != 0)
			continue;
		mask = op->kind == PLAN_NOTICE        ? "report"
		       : op->flags & PLAN_WATCH       ? "watch"
		       : op->flags & PLAN_PLACEHOLDER ? "placeholder"
						      : plan_op_kind_name(op->kind);
	}
	return mask != NULL ? mask : "not shown";
}

static int fill_shadowed(const struct policy *policy, const struct rule *deciding, const char *real,
			 struct msg_rule_list *ret_list, struct error *err)
{
	AUTO(auto_free)
	const struct rule **covering = calloc(COVERING_MAX, sizeof(const struct rule *));
	size_t count;
	int r = 0;

	if (covering == NULL)
		return error_set(err, ERR_NOMEM, ENOMEM, "a reply");
	count = policy_covering(policy, real, covering, COVERING_MAX);
	if (count > COVERING_MAX)
		count = COVERING_MAX;
	ret_list->items = calloc(count + 1, sizeof(*ret_list->items));
	if (ret_list->items == NULL)
		return error_set(err, ERR_NOMEM, ENOMEM, "a reply");
	ret_list->capacity = count + 1;
	for (size_t i = 0; i < count && r == 0; i++) {
		if (covering[i] != deciding)
			r = policyreq_rule(covering[i], &ret_list->items[ret_list->count++], err);
	}
	return r;
}

int why_explain_path(const struct policy *policy, const char *path, const char *real,
		     enum node_type type, const char *cwd, struct why_result *ret_result,
		     struct error *err)
{
	AUTO(auto_free) char *hint = malloc(HINT_BYTES);
	AUTO(plan_deinit) struct plan plan = PLAN_INIT;
	const struct sysmount_verdict verdict = sysmount_verdict(policy, real);
	const char *mask;
	int r;

	if (hint == NULL)
		return error_set(err, ERR_NOMEM, ENOMEM, "a reply");
	r = dup_text(&ret_result->access, access_name(verdict.access), err);
	if (r == 0 && verdict.rule != NULL) {
		ret_result->rule = calloc(1, sizeof(*ret_result->rule));
		if (ret_result->rule == NULL)
			return error_set(err, ERR_NOMEM, ENOMEM, "a reply");
		r = policyreq_rule(verdict.rule, ret_result->rule, err);
	}
	if (r == 0)
		r = fill_shadowed(policy, verdict.rule, real, &ret_result->shadowed, err);
	if (r == 0 && strcmp(path, real) != 0)
		r = dup_text(&ret_result->real, real, err);
	if (r == 0)
		r = dup_text(&ret_result->type, node_type_name(type), err);
	mask = r == 0 && verdict.rule != NULL ? mask_of(policy, verdict.rule, cwd, &plan) : NULL;
	if (mask != NULL)
		r = dup_text(&ret_result->mask, mask, err);
	hint_for(hint, HINT_BYTES, &verdict, real, type, cwd);
	if (r == 0 && hint[0] != '\0')
		r = dup_text(&ret_result->hint, hint, err);
	return r;
}

/* ---- asking ---------------------------------------------------------------------------------- */

/*
 * One question under way.
 *
 * @build   owned, or NULL: about JOB, which may be over when the look-up answers
 */
struct why {
	struct call *call;
	struct policy_build *build;
	uint64_t job;
	struct lookup *lookup;
};

static void why_free(struct why *why)
{
	lookup_cancel(why->lookup);
	if (why->build != NULL)
		policy_build_deinit(why->build);
	free(why->build);
	free(why);
}

static void refuse(struct why *why, const struct error *err)
{
	struct call *call = why->call;

	call->on_gone = NULL;
	call_error(call, err);
	why_free(why);
}

static void on_gone(struct call *call)
{
	struct error err = ERROR_INIT;

	(void)error_set(&err, ERR_UNREACHABLE, 0, "the client is gone");
	refuse(call->work, &err);
}

static int explain_host(const struct broker *broker, const struct policy_build *build,
			const char *host, struct why_result *ret_result, struct error *err)
{
	const struct whyhost input = {
		.mode = build->settings.net,
		.max_net = broker->hostconf.max_net,
		.lists = &build->net,
	};

	return whyhost_explain(&input, host, ret_result, err);
}

static void answer(struct why *why, const char *real, enum node_type type)
{
	struct call *call = why->call;
	const struct why_params *params = &call->params.why;
	const struct job *job = why->build == NULL ? jobs_find(call->broker, why->job) : NULL;
	union method_result result;
	struct error err = ERROR_INIT;
	int r;

	method_result_init(METHOD_WHY, &result);
	if (why->build == NULL && (job == NULL || job->policy == NULL))
		r = error_set(&err, ERR_JOB_UNKNOWN, 0, "job %llu is over",
			      (unsigned long long)why->job);
	else if (params->host != NULL)
		r = explain_host(call->broker, job != NULL ? &job->built->build : why->build,
				 params->host, &result.why, &err);
	else
		r = why_explain_path(job != NULL ? job->policy : &why->build->policy, params->path,
				     real, type, job != NULL ? job->facts.cwd : why->build->cwd,
				     &result.why, &err);
	if (r < 0) {
		refuse(why, &err);
	} else {
		call->on_gone = NULL;
		call_result(call, &result);
		why_free(why);
	}
	method_result_deinit(METHOD_WHY, &result);
}

static void on_found(void *arg, const void *values, size_t size, const struct error *failed)
{
	struct why *why = arg;
	struct unpack in = UNPACK_INIT(values, size);
	struct lookup_path found;
	struct error err = ERROR_INIT;

	why->lookup = NULL;
	if (failed != NULL) {
		refuse(why, failed);
		return;
	}
	lookup_path_unpack(&in, &found);
	if (unpack_end(&in, &err) < 0)
		refuse(why, &err);
	else
		answer(why, found.real, found.type);
}

static void begin(struct call *call, struct policy_build *build, uint64_t job)
{
	struct buf values = BUF_INIT(2 * LIMIT_PATH_BYTES + 64);
	struct why *why = calloc(1, sizeof(*why));
	struct error err = ERROR_INIT;
	int r;

	if (why == NULL) {
		call->on_gone = NULL;
		(void)error_set(&err, ERR_NOMEM, ENOMEM, "why");
		call_error(call, &err);
		if (build != NULL)
			policy_build_deinit(build);
		free(build);
		return;
	}
	why->call = call;
	why->build = build;
	why->job = job;
	call->work = why;
	call->on_gone = on_gone;
	if (call->params.why.host != NULL) {
		answer(why, NULL, NODE_UNKNOWN);
		return;
	}
	pack_u32(&values, 1);
	pack_string(&values, call->params.why.path);
	r = resolver_pool_ask(&call->broker->resolvers, LOOKUP_PATHS, &values, on_found, why,
			      &why->lookup, &err);
	buf_deinit(&values);
	if (r < 0)
		refuse(why, &err);
}

void why_answer_build_take(struct call *call, struct policy_build *build)
{
	begin(call, build, 0);
}

void why_answer_job(struct call *call, struct job *job)
{
	begin(call, NULL, job->id);
}
