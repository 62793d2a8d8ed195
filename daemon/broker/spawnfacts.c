/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/broker/spawnfacts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/path.h"
#include "common/scope.h"
#include "common/sha256.h"
#include "daemon/broker/broker.h"
#include "daemon/broker/built.h"
#include "daemon/broker/netlists.h"
#include "daemon/broker/policyreq.h"

static int copy_list(struct string_list *to, const struct string_list *from, struct error *err)
{
	int r = 0;

	for (size_t i = 0; i < from->count && r == 0; i++)
		r = string_list_add(to, from->items[i], err);
	return r;
}

static int set_text(char **ret, const char *text, struct error *err)
{
	*ret = strdup(text);
	return *ret != NULL ? 0 : error_set(err, ERR_NOMEM, ENOMEM, "a job");
}

static int fill_limits(struct limits_result *ret, const struct job_limits *limits,
		       struct error *err)
{
	int r = 0;

	ret->memory_bytes = limits->memory_bytes;
	ret->wall_ms = limits->wall_ms;
	ret->pids = limits->pids;
	ret->cpus_milli = limits->cpus_milli;
	if (limits->memory_bytes != 0)
		r = string_list_add(&ret->unenforced, "memoryBytes", err);
	if (r == 0 && limits->pids != 0)
		r = string_list_add(&ret->unenforced, "pids", err);
	if (r == 0 && limits->cpus_milli != 0)
		r = string_list_add(&ret->unenforced, "cpus", err);
	return r;
}

int spawnfacts_inspect(const struct policy_build *build, uint64_t job,
		       const struct string_list *withheld, const struct op_start *start,
		       struct inspect_result *facts, struct error *err)
{
	struct timespec now;
	int r;

	(void)clock_gettime(CLOCK_REALTIME, &now);
	facts->job.job = job;
	facts->job.uid = build->broker->config.uid;
	facts->job.state = JOB_STARTING;
	facts->job.engine = build->settings.engine;
	facts->job.room = build->settings.room;
	facts->job.detached = start->detached != 0;
	facts->job.started_ms = (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
	facts->rules = start->rules;
	if ((r = set_text(&facts->job.profile, start->profile, err)) < 0 ||
	    (r = set_text(&facts->job.command, start->command, err)) < 0 ||
	    (start->label[0] != '\0' && (r = set_text(&facts->job.label, start->label, err)) < 0) ||
	    (r = set_text(&facts->cwd, build->cwd, err)) < 0 ||
	    (r = policyreq_digest(build, &facts->policy_digest, err)) < 0 ||
	    (r = policyreq_notes(&build->policy, &facts->suppressed, err)) < 0 ||
	    (r = copy_list(&facts->withheld, withheld, err)) < 0 ||
	    (r = copy_list(&facts->warnings, &build->warnings, err)) < 0)
		return r;
	return fill_limits(&facts->limits, &build->settings.limits, err);
}

int spawnfacts_found(uint64_t job, const struct link_job_found *found, struct inspect_result *facts,
		     struct error *err)
{
	const struct link_job_entry *entry = &found->entry;
	int r;

	facts->job.job = job;
	facts->job.uid = entry->uid;
	facts->job.pid = entry->pid;
	facts->job.state = (enum job_state)entry->state;
	facts->job.started_ms = entry->started_ms;
	facts->job.engine = (enum engine_kind)entry->engine;
	facts->job.room = (enum room_kind)entry->room;
	facts->job.detached = entry->detached != 0;
	facts->rules = found->rules;
	facts->policy_digest = malloc(SHA256_HEX_BYTES);
	if (facts->policy_digest == NULL)
		return error_set(err, ERR_NOMEM, ENOMEM, "a job");
	for (size_t i = 0; i < SHA256_BYTES; i++)
		(void)snprintf(facts->policy_digest + 2 * i, 3, "%02x", found->policy_digest[i]);
	if ((r = set_text(&facts->job.profile, entry->profile, err)) < 0 ||
	    (r = set_text(&facts->job.command, entry->command, err)) < 0 ||
	    (entry->label[0] != '\0' && (r = set_text(&facts->job.label, entry->label, err)) < 0))
		return r;
	return fill_limits(&facts->limits, &found->limits, err);
}

int spawnfacts_mounts(const struct built *built, struct inspect_result *result, struct error *err)
{
	AUTO(plan_deinit) struct plan plan = PLAN_INIT;
	int r = plan_decode(&plan, built->plan.data, built->plan_bytes, err);

	for (size_t i = 0; r == 0 && i < plan.count; i++) {
		const struct plan_op *op = &plan.ops[i];
		bool is_mask = op->kind == PLAN_MASK_DIR || op->kind == PLAN_MASK_FILE ||
			       op->kind == PLAN_MASK_TREE;

		if (op->kind == PLAN_NOTICE || (is_mask && op->flags & PLAN_WATCH))
			r = string_list_add(&result->watched, op->path, err);
		else if (is_mask)
			r = string_list_add(&result->masks, op->path, err);
		else if (op->kind == PLAN_PIN)
			r = string_list_add(&result->pins, op->path, err);
		if (r == 0 && op->flags & PLAN_PLACEHOLDER)
			r = string_list_add(&result->placeholders, op->path, err);
	}
	return r;
}

int spawnfacts_hosts(const struct built *built, struct msg_net **ret_net, struct error *err)
{
	struct netpolicy policy = NETPOLICY_INIT;
	size_t size = built->plan.size - built->plan_bytes;
	int r = 0;

	*ret_net = NULL;
	if (size == 0)
		return 0;
	r = netpolicy_decode(&policy, (const char *)built->plan.data + built->plan_bytes, size,
			     err);
	if (r == 0)
		r = netlists_show(&policy, ret_net, err);
	netpolicy_deinit(&policy);
	return r;
}

/* TEXT cut to SIZE, every byte that is not printable ASCII as `?`: for lists and records. */
static void put_plain(char *out, size_t size, const char *text)
{
	size_t length = strnlen(text, size - 1);

	for (size_t i = 0; i < length; i++) {
		out[i] = text[i];
		if (text[i] < 0x20 || text[i] == 0x7f)
			out[i] = '?';
	}
	out[length] = '\0';
}

/* A label is UTF-8 and may hold anything but control characters; cut between characters. */
static void put_label(char *out, size_t size, const char *text)
{
	size_t length = strnlen(text, size - 1);

	while (length > 0 && text[length] != '\0' && ((unsigned char)text[length] & 0xc0) == 0x80)
		length--;
	for (size_t i = 0; i < length; i++) {
		out[i] = text[i];
		if ((unsigned char)text[i] < 0x20 || text[i] == 0x7f)
			out[i] = '?';
	}
	out[length] = '\0';
}

void spawnfacts_start(const struct policy_build *build, const struct spawn_params *params,
		      const struct string_list *withheld, struct op_start *start)
{
	start->limits = build->settings.limits;
	start->engine = build->settings.engine;
	start->room = build->settings.room;
	start->detached = params->detach;
	start->argc = (uint32_t)params->argv.count;
	start->rules = (uint32_t)build->policy.rules.count;
	start->suppressed = (uint32_t)build->policy.suppressed.count;
	start->withheld = (uint32_t)withheld->count;
	memcpy(start->policy_digest, build->digest, sizeof(start->policy_digest));
	put_plain(start->profile, sizeof(start->profile), build->profile_name);
	put_plain(start->command, sizeof(start->command), path_leaf(params->argv.items[0]));
	if (params->label != NULL)
		put_label(start->label, sizeof(start->label), params->label);
}
