/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/broker/policyreq.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/bwrap.h"
#include "common/plan_op.h"
#include "common/scope.h"
#include "daemon/broker/broker.h"
#include "daemon/broker/grantreq.h"
#include "daemon/broker/client.h"
#include "daemon/broker/why.h"

static int no_memory(struct error *err)
{
	return error_set(err, ERR_NOMEM, ENOMEM, "a reply");
}

static int dup_text(char **ret, const char *text, struct error *err)
{
	*ret = strdup(text);
	return *ret != NULL ? 0 : no_memory(err);
}

static int copy_list(struct string_list *to, const struct string_list *from, struct error *err)
{
	int r = 0;

	for (size_t i = 0; i < from->count && r == 0; i++)
		r = string_list_add(to, from->items[i], err);
	return r;
}

/* ---- parts of replies --------------------------------------------------------------------- */

int policyreq_rule(const struct rule *rule, struct msg_rule *ret_rule, struct error *err)
{
	int r = dup_text(&ret_rule->path, rule->path, err);

	ret_rule->access = rule->access;
	ret_rule->source = rule->source;
	if (r == 0 && rule->origin != NULL)
		r = dup_text(&ret_rule->origin, rule->origin, err);
	return r;
}

int policyreq_digest(const struct policy_build *build, char **ret_text, struct error *err)
{
	char *text = malloc(SHA256_HEX_BYTES);

	if (text == NULL)
		return no_memory(err);
	for (size_t i = 0; i < SHA256_BYTES; i++)
		(void)snprintf(text + 2 * i, 3, "%02x", build->digest[i]);
	*ret_text = text;
	return 0;
}

int policyreq_notes(const struct policy *policy, struct msg_note_list *ret_notes, struct error *err)
{
	int r = 0;

	if (policy->note_count == 0)
		return 0;
	ret_notes->items = calloc(policy->note_count, sizeof(*ret_notes->items));
	if (ret_notes->items == NULL)
		return no_memory(err);
	ret_notes->capacity = policy->note_count;
	for (size_t i = 0; i < policy->note_count && r == 0; i++) {
		struct msg_note *note = &ret_notes->items[ret_notes->count++];

		r = dup_text(&note->path, policy->notes[i].path, err);
		if (r == 0)
			r = dup_text(&note->reason, policy->notes[i].reason, err);
	}
	return r;
}

static int fill_rules(const struct policy *policy, struct msg_rule_list *ret_rules,
		      struct error *err)
{
	size_t count = policy->rules.count;
	int r = 0;

	ret_rules->items = calloc(count + 1, sizeof(*ret_rules->items));
	if (ret_rules->items == NULL)
		return no_memory(err);
	ret_rules->capacity = count + 1;
	for (size_t i = 0; i < count && r == 0; i++)
		r = policyreq_rule(&policy->rules.rules[i], &ret_rules->items[ret_rules->count++],
				   err);
	return r;
}

static int fill_flags(uint32_t flags, struct string_list *ret_names, struct error *err)
{
	static const struct {
		uint32_t flag;
		const char *name;
	} names[] = {
		{ PLAN_READ_ONLY, "read-only" }, { PLAN_PLACEHOLDER, "placeholder" },
		{ PLAN_WATCH, "watch" },         { PLAN_PRIVATE_SOURCE, "private" },
		{ PLAN_NODE_FILE, "file" },      { PLAN_SYSTEM, "system" },
		{ PLAN_NODE_LINK, "link" },      { PLAN_QUARANTINE, "quarantine" },
		{ PLAN_ENTRIES, "entries" },     { PLAN_LET_GO, "let-go" },
	};
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(names) && r == 0; i++) {
		if (flags & names[i].flag)
			r = string_list_add(ret_names, names[i].name, err);
	}
	return r;
}

static int fill_plan(const struct plan *plan, struct msg_plan_op_list *ret_ops, struct error *err)
{
	int r = 0;

	ret_ops->items = calloc(plan->count + 1, sizeof(*ret_ops->items));
	if (ret_ops->items == NULL)
		return no_memory(err);
	ret_ops->capacity = plan->count + 1;
	for (size_t i = 0; i < plan->count && r == 0; i++) {
		const struct plan_op *op = &plan->ops[i];
		struct msg_plan_op *shown = &ret_ops->items[ret_ops->count++];

		r = dup_text(&shown->op, plan_op_kind_name(op->kind), err);
		if (r == 0)
			r = dup_text(&shown->path, op->path, err);
		if (r == 0 && op->source != NULL)
			r = dup_text(&shown->source, op->source, err);
		if (r == 0)
			r = fill_flags(op->flags, &shown->flags, err);
	}
	return r;
}

/* The arguments that the builder would give to bubblewrap. */
static int fill_bwrap(const struct policy_build *build, struct string_list *ret_args,
		      struct error *err)
{
	const struct link_config *config = &build->broker->config;
	struct string_list masks = { 0 };
	struct buf out = BUF_INIT((size_t)LIMIT_PLAN_BYTES * 2);
	const struct bwrap_options options = {
		.mask_dir = config->mask_dir,
		.mask_file = config->mask_file,
		.proc_masks = &masks,
		.root_peer = config->uid == 0,
	};
	size_t count;
	const char *const *names = bwrap_proc_masks(&count);
	int r = 0;

	for (size_t i = 0; i < count && r == 0; i++) {
		char path[64];

		(void)snprintf(path, sizeof(path), "/proc/%s", names[i]);
		if (access(path, F_OK) == 0)
			r = string_list_add(&masks, names[i], err);
	}
	if (r == 0)
		r = bwrap_compile(&build->plan, &options, &out, err);
	for (size_t at = 0; r == 0 && at < out.size; at += strlen(out.data + at) + 1)
		r = string_list_add(ret_args, out.data + at, err);
	string_list_deinit(&masks);
	buf_deinit(&out);
	return r;
}

int policyreq_fill(const struct policy_build *build, struct policy_result *ret_result,
		   struct error *err)
{
	const struct policy *policy = &build->policy;
	int r;

	ret_result->net = policy->net;
	ret_result->engine = build->settings.engine;
	ret_result->room = build->settings.room;
	if ((r = fill_rules(policy, &ret_result->rules, err)) < 0 ||
	    (r = netlists_show(&build->net.policy, &ret_result->hosts, err)) < 0 ||
	    (r = policyreq_digest(build, &ret_result->policy_digest, err)) < 0 ||
	    (r = copy_list(&ret_result->suppressed_authority_paths, &policy->suppressed, err)) <
		    0 ||
	    (r = copy_list(&ret_result->write_regexes, &policy->write_regexes, err)) < 0 ||
	    (r = copy_list(&ret_result->deny_regexes, &policy->deny_regexes, err)) < 0 ||
	    (r = copy_list(&ret_result->final_read_only_paths, &policy->final_read_only, err)) <
		    0 ||
	    (r = policyreq_notes(policy, &ret_result->notes, err)) < 0 ||
	    (r = copy_list(&ret_result->withheld, &build->withheld, err)) < 0 ||
	    (r = copy_list(&ret_result->warnings, &build->warnings, err)) < 0 ||
	    (r = fill_plan(&build->plan, &ret_result->plan, err)) < 0)
		return r;
	if (build->params->argv.count > 0 && (r = grantreq_hashes(build, ret_result, err)) < 0)
		return r;
	return build->settings.engine == ENGINE_BWRAP ? fill_bwrap(build, &ret_result->bwrap, err)
						      : 0;
}

int policyreq_fill_dry_run(const struct policy_build *build, struct spawn_result *ret_result,
			   struct error *err)
{
	int r;

	ret_result->engine = build->settings.engine;
	ret_result->room = build->settings.room;
	ret_result->rules = (uint32_t)build->policy.rules.count;
	ret_result->policy = calloc(1, sizeof(*ret_result->policy));
	if (ret_result->policy == NULL)
		return no_memory(err);
	r = policyreq_fill(build, ret_result->policy, err);
	if (r == 0)
		r = policyreq_digest(build, &ret_result->policy_digest, err);
	if (r == 0)
		r = policyreq_notes(&build->policy, &ret_result->suppressed, err);
	if (r == 0)
		r = copy_list(&ret_result->withheld, &build->withheld, err);
	if (r == 0)
		r = copy_list(&ret_result->warnings, &build->warnings, err);
	return r;
}

/* ---- policy ------------------------------------------------------------------------------- */

static void release(struct policy_build *build)
{
	policy_build_deinit(build);
	free(build);
}

static void refuse(struct call *call, struct policy_build *build, const struct error *why)
{
	struct error err = *why;
	struct error_reply detail = { .path = build->failed_path };

	call->on_gone = NULL;
	call_error_detail(call, &err, &detail);
	release(build);
}

static void on_policy(void *arg, const struct error *why)
{
	struct call *call = arg;
	struct policy_build *build = call->work;
	struct error err = ERROR_INIT;
	union method_result result;
	int r;

	if (why != NULL) {
		refuse(call, build, why);
		return;
	}
	method_result_init(METHOD_POLICY, &result);
	r = policyreq_fill(build, &result.policy, &err);
	call->on_gone = NULL;
	if (r == 0)
		call_result(call, &result);
	else
		call_error(call, &err);
	method_result_deinit(METHOD_POLICY, &result);
	release(build);
}

static void on_gone(struct call *call)
{
	struct error err = ERROR_INIT;

	(void)error_set(&err, ERR_UNREACHABLE, 0, "the client is gone");
	refuse(call, call->work, &err);
}

/* Build what PARAMS ask for; DONE gets the call as its argument and the build as its work. */
static void begin(struct call *call, struct spawn_params *params, policy_build_done_fn *done)
{
	struct policy_build *build = calloc(1, sizeof(*build));
	struct error err = ERROR_INIT;

	if (build == NULL) {
		(void)no_memory(&err);
		call_error(call, &err);
		return;
	}
	call->work = build;
	call->on_gone = on_gone;
	if (policy_build_start(build, call->broker, params, BUILD_SHOW, done, call, &err) < 0)
		refuse(call, build, &err);
}

void policyreq_policy(struct call *call)
{
	begin(call, &call->params.policy.spawn, on_policy);
}

/* ---- why ---------------------------------------------------------------------------------- */

static void on_why_built(void *arg, const struct error *why)
{
	struct call *call = arg;
	struct policy_build *build = call->work;

	if (why != NULL)
		refuse(call, build, why);
	else
		why_answer_build_take(call, build);
}

void policyreq_why(struct call *call)
{
	const struct why_params *params = &call->params.why;
	struct error err = ERROR_INIT;
	struct job *job;

	if ((params->path == NULL) == (params->host == NULL)) {
		(void)error_set(&err, ERR_INVALID, 0, "params: either path or host");
		call_error(call, &err);
		return;
	}
	if (params->job == 0) {
		begin(call, &call->params.why.spawn, on_why_built);
		return;
	}
	if (jobs_find_for(call->broker, params->job, params->cookie, &job, &err) == 0 &&
	    job->policy == NULL)
		(void)error_set(&err, ERR_JOB_UNKNOWN, 0,
				"the policy of job %llu was not kept: it ended, or has too many"
				" rules",
				(unsigned long long)params->job);
	if (err.kind != ERR_NONE)
		call_error(call, &err);
	else
		why_answer_job(call, job);
}
