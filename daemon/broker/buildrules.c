/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/broker/buildround.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/context.h"
#include "common/expression.h"
#include "common/generic.h"
#include "common/path.h"
#include "common/scope.h"
#include "common/settle.h"
#include "daemon/broker/broker.h"
#include "daemon/broker/candidates.h"
#include "daemon/broker/context.h"
#include "daemon/broker/envscrub.h"
#include "daemon/broker/matching.h"
#include "daemon/broker/proxyenv.h"
#include "proto/wire/egressop.h"

/* ---- the end: plan, digest, environment --------------------------------------------------- */

int policy_build_environment(const struct policy_build *build, const struct spawn_params *params,
			     struct string_list *ret_env, struct string_list *ret_withheld,
			     struct error *err)
{
	const struct broker *broker = build->broker;
	const struct profile *profile = &build->load.profile;
	const bool proxied = build->settings.net == NET_PROXY;
	struct env_list proxy = { 0 };
	const struct envscrub_input input = {
		.given = &params->env,
		.set = { &proxy, &profile->env_set, &params->env_set },
		.pass = { &broker->hostconf.env_pass, &profile->env_pass, &params->env_pass },
		.withhold = { &broker->hostconf.env_withhold, &profile->env_withhold },
		.families_only = build->load.base == PROFILE_BASE_HOST ||
				 build->load.base == PROFILE_BASE_BOTMUX,
		.home = broker->facts.home,
		.user = broker->facts.user,
		.shell = broker->facts.shell,
		.cwd = build->cwd,
	};

	int r = proxied ? proxyenv_set(&proxy, EGRESS_HTTP_PORT, err) : 0;

	if (r == 0)
		r = envscrub(&input, ret_env, ret_withheld, err);
	if (r == 0 && proxied)
		r = proxyenv_merge(ret_env, EGRESS_HTTP_PORT, err);
	env_list_deinit(&proxy);
	return r;
}

static int make_digest(struct policy_build *build, struct error *err)
{
	/* A rule's line escapes each byte into four at most. */
	struct buf text = BUF_INIT((size_t)LIMIT_PLAN_BYTES * 4);
	struct sha256 sha;
	int r = policy_canonical_text(&build->policy, &text, err);

	/* Two jobs with different lists have different policies. */
	if (r == 0 && build->settings.net == NET_PROXY)
		r = netpolicy_encode(&build->net.policy, &text, err);
	if (r == 0) {
		sha256_init(&sha);
		sha256_add(&sha, buf_text(&text), text.size);
		sha256_finish(&sha, build->digest);
	}
	buf_deinit(&text);
	return r;
}

static int make_plan(struct policy_build *build, struct error *err)
{
	const struct facts *facts = &build->broker->facts;
	struct plan_symlink links[FACTS_LINKS];
	const struct plan_options options = {
		.harden = PLAN_HARDEN_ALL,
		.symlinks = links,
		.symlink_count = facts->link_count,
		.chdir = build->cwd,
	};

	for (size_t i = 0; i < facts->link_count; i++) {
		links[i].path = facts->links[i].path;
		links[i].target = facts->links[i].target;
	}
	return plan_build(&build->plan, &build->policy, &options, err);
}

static void finish(struct policy_build *build)
{
	struct error err = ERROR_INIT;
	int r = make_plan(build, &err);

	if (r == 0)
		r = make_digest(build, &err);
	if (r == 0 && build->purpose == BUILD_SHOW)
		r = policy_build_environment(build, build->params, &build->env, &build->withheld,
					     &err);
	if (r < 0)
		round_fail(build, &err);
	round_proceed(build);
}

/* ---- third round: expressions ------------------------------------------------------------- */

static void on_matches(void *arg, const void *values, size_t size, const struct error *why)
{
	struct policy_build *build = arg;
	struct rule_list deny = RULE_LIST_INIT;
	struct rule_list write = RULE_LIST_INIT;
	const struct expression_facts facts = {
		.deny_matches = &deny,
		.write_matches = &write,
		.final_read_only = &build->final_read_only,
	};
	struct error err = ERROR_INIT;
	int r = 0;

	build->pending[PENDING_TREES] = NULL;
	if (why != NULL) {
		round_fail(build, why);
	} else {
		r = matching_unpack(&deny, &write, values, size, &err);
		if (r == 0)
			r = policy_hold_expressions(&build->policy, &facts, &err);
		if (r < 0)
			round_fail(build, &err);
	}
	rule_list_deinit(&deny);
	rule_list_deinit(&write);
	round_proceed(build);
}

static void move_list(struct string_list *to, struct string_list *from)
{
	string_list_deinit(to);
	*to = *from;
	memset(from, 0, sizeof(*from));
}

static void look_for_matches(struct policy_build *build)
{
	struct string_list trees = { 0 };
	struct buf values = round_values();
	struct error err = ERROR_INIT;
	int r = 0;

	move_list(&build->policy.write_regexes, &build->plain.write_regexes);
	move_list(&build->policy.deny_regexes, &build->plain.deny_regexes);
	move_list(&build->policy.final_read_only, &build->plain.final_read_only);
	for (size_t i = 0; i < build->policy.rules.count && r == 0; i++) {
		const struct rule *rule = &build->policy.rules.rules[i];

		if (rule->access != ACCESS_DENY && rule->type != NODE_ABSENT)
			r = string_list_add(&trees, rule->path, &err);
	}
	if (r < 0)
		round_fail(build, &err);
	matching_ask(&values, &build->policy.deny_regexes, &build->policy.write_regexes, &trees);
	string_list_deinit(&trees);
	build->next = finish;
	round_ask(build, PENDING_TREES, LOOKUP_MATCHING, &values, on_matches);
	round_proceed(build);
}

/* ---- second round: what is at the candidates' paths ---------------------------------------- */

/* What the context left out counts as left out here too. */
static int take_over_suppressed(struct policy_build *build, struct error *err)
{
	const struct policy *plain = &build->plain;
	int r = 0;

	for (size_t i = 0; i < plain->suppressed.count && r == 0; i++)
		r = string_list_add(&build->policy.suppressed, plain->suppressed.items[i], err);
	for (size_t i = 0; i < plain->note_count && r == 0; i++)
		r = policy_add_note(&build->policy, plain->notes[i].path, plain->notes[i].reason,
				    err);
	string_list_sort_unique(&build->policy.suppressed);
	return r;
}

/* Each once, whatever trees it was found in. */
static void take_over_watch(struct policy_build *build)
{
	struct policy *policy = &build->policy;

	move_list(&policy->notice, &build->watch.report);
	move_list(&policy->quarantine, &build->watch.quarantine);
	move_list(&policy->quarantine_entries, &build->watch.entries);
	string_list_sort_unique(&policy->notice);
	string_list_sort_unique(&policy->quarantine);
	string_list_sort_unique(&policy->quarantine_entries);
}

static void settle(struct policy_build *build)
{
	const struct settle_options options = {
		.absent_deny = build->broker->hostconf.absent_deny,
		.cwd = build->cwd,
	};
	const struct generic_input input = {
		.home = build->broker->facts.home,
		.allow_home = build->params->allow_home,
	};
	struct error err = ERROR_INIT;
	int r = 0;

	candidates_keep_shown(&build->candidates, build->guards);
	if (build->load.base == PROFILE_BASE_GENERIC)
		r = generic_check_places(&build->candidates, &input, &err);
	if (r == 0)
		r = policy_settle(&build->policy, &build->candidates, &options, &err);
	if (r == 0) {
		build->policy.net = build->settings.net;
		take_over_watch(build);
		r = take_over_suppressed(build, &err);
	}
	if (r < 0) {
		round_fail(build, &err);
		round_proceed(build);
	} else if (build->plain.write_regexes.count > 0 || build->plain.deny_regexes.count > 0 ||
		   build->plain.final_read_only.count > 0) {
		look_for_matches(build);
	} else {
		finish(build);
	}
}

static void on_candidates(void *arg, const void *values, size_t size, const struct error *why)
{
	struct policy_build *build = arg;
	struct unpack in = UNPACK_INIT(values, size);
	struct error err = ERROR_INIT;
	const char *path = NULL;
	int r;

	build->pending[PENDING_PATHS] = NULL;
	if (why != NULL) {
		round_fail(build, why);
		round_proceed(build);
		return;
	}
	r = candidates_fill(&build->candidates, &in, &path, &err);
	for (size_t i = 0; r == 0 && i < build->plain.final_read_only.count; i++) {
		struct lookup_path found;
		struct rule *rule;

		lookup_path_unpack(&in, &found);
		rule = rule_list_add(&build->final_read_only, found.real, ACCESS_READ_ONLY,
				     RULE_MANDATORY, NULL, &err);
		if (rule == NULL)
			r = -(int)err.kind;
		else
			rule->type = found.type;
	}
	if (r == 0)
		r = unpack_end(&in, &err);
	if (r < 0)
		round_fail_path(build, path, &err);
	round_proceed(build);
}

static void on_made(void *arg, const void *values, size_t size, const struct error *why)
{
	struct policy_build *build = arg;
	struct unpack in = UNPACK_INIT(values, size);
	struct error err = ERROR_INIT;
	int errnum = 0;

	build->pending[PENDING_DIRS] = NULL;
	while (why == NULL && in.left > 0 && !in.bad && errnum == 0)
		errnum = (int)unpack_u32(&in);
	if (errnum != 0)
		(void)error_set(&err, ERR_SETUP_FAILED, errnum,
				"make private directories below '%s'", build->private_root);
	if (why != NULL)
		round_fail(build, why);
	else if (errnum != 0)
		round_fail_path(build, build->private_root, &err);
	round_proceed(build);
}

static void ask_for_private(struct policy_build *build)
{
	struct buf values = round_values();
	uint32_t count = 0;

	for (size_t i = 0; i < build->candidates.count; i++)
		count += build->candidates.rules[i].bind_source != NULL;
	pack_u32(&values, count);
	for (size_t i = 0; i < build->candidates.count; i++) {
		if (build->candidates.rules[i].bind_source != NULL)
			pack_string(&values, build->candidates.rules[i].bind_source);
	}
	if (count > 0)
		round_ask(build, PENDING_DIRS, LOOKUP_MAKE_DIRS, &values, on_made);
	else
		buf_deinit(&values);
}

static void look_at_candidates(struct policy_build *build)
{
	struct buf values = round_values();
	uint32_t count;

	candidates_ask(&build->candidates, &values);
	for (size_t i = 0; i < build->plain.final_read_only.count; i++)
		pack_string(&values, build->plain.final_read_only.items[i]);
	if (build->plain.final_read_only.count > 0 && !values.failed) {
		memcpy(&count, values.data, sizeof(count));
		count += (uint32_t)build->plain.final_read_only.count;
		memcpy(values.data, &count, sizeof(count));
	}
	build->next = settle;
	round_ask(build, PENDING_PATHS, LOOKUP_PATHS, &values, on_candidates);
	round_proceed(build);
}

/* First, so that what is found at the candidates' paths is the same the next time. */
static void make_private(struct policy_build *build)
{
	build->next = look_at_candidates;
	if (build->purpose == BUILD_RUN)
		ask_for_private(build);
	round_proceed(build);
}

/* ---- candidates --------------------------------------------------------------------------- */

/* fsboxd takes private directories only from where it expects them (R11). */
static int choose_private_root(struct policy_build *build, struct error *err)
{
	const struct broker *broker = build->broker;
	const char *cache = broker->facts.cache_home;
	const char *configured = facts_configured(broker->config.text, "XDG_CACHE_HOME");
	AUTO(auto_free) char *own = NULL;

	if (strcmp(path_leaf(cache), ".cache") != 0 &&
	    (configured == NULL || strcmp(configured, cache) != 0))
		return string_list_add(
			&build->warnings,
			"the cache directory is a link to elsewhere: no private caches", err);
	own = path_join(cache, "fsbox");
	build->private_root = own != NULL ? path_join(own, build->profile_name) : NULL;
	return build->private_root != NULL ? 0 : error_set(err, ERR_NOMEM, ENOMEM, "caches");
}

static int assemble_with(struct policy_build *build, const struct generic_input *input,
			 struct error *err)
{
	int r = 0;

	switch (build->load.base) {
	case PROFILE_BASE_GENERIC:
		return generic_assemble(&build->candidates, input, err);
	case PROFILE_BASE_HOST:
		return host_assemble(&build->candidates, input, err);
	case PROFILE_BASE_BOTMUX:
		r = context_candidates(&build->candidates, &build->plain, build->params->context,
				       err);
		break;
	case PROFILE_BASE_NONE:
		break;
	}
	for (size_t i = 0; r == 0 && i < build->asked.count; i++) {
		struct rule copy = { 0 };

		r = rule_copy(&copy, &build->asked.rules[i], err);
		if (r == 0)
			r = rule_list_add_take(&build->candidates, &copy, err);
	}
	return r < 0 ? r : generic_add_host_rules(&build->candidates, input, err);
}

/* By what other names something can be reached that must stay closed, or as it is (R11). */
static int find_aliases(struct broker *broker, struct error *err)
{
	const struct mount_table *table = &broker->kernelmounts.table;
	struct alias_list *deny = &broker->deny_aliases;
	struct alias_list *read_only = &broker->read_only_aliases;
	int r;

	if (broker->alias_generation == broker->kernelmounts.generation)
		return 0;
	broker->alias_generation = 0; /* until all are found */
	alias_list_deinit(deny);
	alias_list_deinit(read_only);
	if ((r = alias_list_find(deny, table, &broker->hostconf.mandatory_deny, err)) < 0 ||
	    (r = alias_list_find(deny, table, &broker->own_deny, err)) < 0 ||
	    (r = alias_list_find(deny, table, &broker->private_cache, err)) < 0 ||
	    (r = alias_list_find(read_only, table, &broker->hostconf.mandatory_read_only, err)) <
		    0 ||
	    (r = alias_list_find(read_only, table, &broker->own_read_only, err)) < 0)
		return r;
	broker->alias_generation = broker->kernelmounts.generation;
	return 0;
}

static int add_guards(struct policy_build *build, struct error *err)
{
	struct broker *broker = build->broker;
	struct rule_list *list = &build->candidates;
	const struct {
		const struct alias_list *aliases;
		enum access access;
	} kinds[] = { { &broker->deny_aliases, ACCESS_DENY },
		      { &broker->read_only_aliases, ACCESS_READ_ONLY } };
	int r = find_aliases(broker, err);

	build->guards = list->count;
	for (size_t i = 0; r == 0 && i < broker->private_cache.count; i++)
		r = candidates_add_guard(list, broker->private_cache.items[i], ACCESS_DENY,
					 "fsbox itself", NULL, err);
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		for (size_t j = 0; r == 0 && j < kinds[i].aliases->count; j++)
			r = candidates_add_guard(list, kinds[i].aliases->items[j].path,
						 kinds[i].access, "bind alias of",
						 kinds[i].aliases->items[j].of, err);
	}
	return r;
}

static int assemble(struct policy_build *build, struct error *err)
{
	struct broker *broker = build->broker;
	const struct facts *facts = &broker->facts;
	char runtime_dir[64];
	struct generic_input input = {
		.home = facts->home,
		.cwd = build->cwd,
		.cache_home = facts->cache_home,
		.config_home = facts->config_home,
		.data_home = facts->data_home,
		.state_home = facts->state_home,
		.runtime_dir = runtime_dir,
		.allow_home = build->params->allow_home,
		.root_peer = build->broker->config.uid == 0,
		.rules = &build->asked,
		.caches = &build->load.profile.cache,
		.link_targets = &build->link_targets,
		.conf = &broker->hostconf,
		.own_deny = &broker->own_deny,
		.own_read_only = &broker->own_read_only,
		.kernel_mounts = &broker->kernelmounts.paths,
	};
	int r = kernelmounts_refresh(&broker->kernelmounts, err);

	(void)snprintf(runtime_dir, sizeof(runtime_dir), "/run/user/%u", broker->config.uid);
	if (r == 0)
		r = choose_private_root(build, err);
	input.private_root = build->private_root;
	if (r == 0)
		r = assemble_with(build, &input, err);
	return r < 0 ? r : add_guards(build, err);
}

void rules_begin(struct policy_build *build)
{
	struct error err = ERROR_INIT;

	if (assemble(build, &err) < 0) {
		round_fail(build, &err);
		round_proceed(build);
		return;
	}
	make_private(build);
}
