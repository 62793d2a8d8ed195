/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/broker/policybuild.h"

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
#include "daemon/broker/protected.h"

/* What is asked in one round, and where its answer goes. */
enum { PENDING_PATHS, PENDING_TREES, PENDING_DIRS };

/* ---- rounds ------------------------------------------------------------------------------ */

static void fail(struct policy_build *build, const struct error *err)
{
	if (build->failure.kind == ERR_NONE)
		build->failure = *err;
}

static void fail_path(struct policy_build *build, const char *path, const struct error *err)
{
	if (build->failure.kind == ERR_NONE && path != NULL) {
		free(build->failed_path);
		build->failed_path = strdup(path);
	}
	fail(build, err);
}

/* Answers came in: go on, or tell what failed. BUILD may be gone afterwards. */
static void proceed(struct policy_build *build)
{
	void (*next)(struct policy_build * build) = build->next;

	for (size_t i = 0; i < ARRAY_SIZE(build->pending); i++) {
		if (build->pending[i] != NULL)
			return;
	}
	if (build->starting)
		return; /* policy_build_start() says it */
	if (build->failure.kind == ERR_NONE && next != NULL) {
		build->next = NULL;
		next(build);
		return;
	}
	build->done(build->arg, build->failure.kind != ERR_NONE ? &build->failure : NULL);
}

static void ask(struct policy_build *build, int slot, enum lookup_kind kind, struct buf *values,
		lookup_done_fn *done)
{
	struct error err = ERROR_INIT;

	if (build->failure.kind == ERR_NONE &&
	    resolver_pool_ask(&build->broker->resolvers, kind, values, done, build,
			      &build->pending[slot], &err) < 0)
		fail(build, &err);
	buf_deinit(values);
}

static struct buf values_buf(void)
{
	return (struct buf)BUF_INIT(RESOLVER_MESSAGE_BYTES);
}

/* ---- the end: plan, digest, environment --------------------------------------------------- */

static int make_environment(struct policy_build *build, struct error *err)
{
	const struct broker *broker = build->broker;
	const struct profile *profile = &build->load.profile;
	const struct envscrub_input input = {
		.given = &build->params->env,
		.set = { &profile->env_set, &build->params->env_set },
		.pass = { &broker->hostconf.env_pass, &profile->env_pass,
			  &build->params->env_pass },
		.withhold = { &broker->hostconf.env_withhold, &profile->env_withhold },
		.home = broker->facts.home,
		.user = broker->facts.user,
		.shell = broker->facts.shell,
		.cwd = build->cwd,
	};

	return envscrub(&input, &build->env, &build->withheld, err);
}

static int make_digest(struct policy_build *build, struct error *err)
{
	/* A rule's line escapes each byte into four at most. */
	struct buf text = BUF_INIT(LIMIT_PLAN_BYTES * 4);
	struct sha256 sha;
	int r = policy_canonical_text(&build->policy, &text, err);

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
	if (r == 0)
		r = make_environment(build, &err);
	if (r < 0)
		fail(build, &err);
	proceed(build);
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
		fail(build, why);
	} else {
		r = matching_unpack(&deny, &write, values, size, &err);
		if (r == 0)
			r = policy_hold_expressions(&build->policy, &facts, &err);
		if (r < 0)
			fail(build, &err);
	}
	rule_list_deinit(&deny);
	rule_list_deinit(&write);
	proceed(build);
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
	struct buf values = values_buf();
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
		fail(build, &err);
	matching_ask(&values, &build->policy.deny_regexes, &build->policy.write_regexes, &trees);
	string_list_deinit(&trees);
	build->next = finish;
	ask(build, PENDING_TREES, LOOKUP_MATCHING, &values, on_matches);
	proceed(build);
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

static void settle(struct policy_build *build)
{
	const struct settle_options options = {
		.absent_deny = build->broker->hostconf.absent_deny,
		.cwd = build->cwd,
	};
	struct error err = ERROR_INIT;
	int r = policy_settle(&build->policy, &build->candidates, &options, &err);

	if (r == 0) {
		build->policy.net = build->settings.net;
		r = take_over_suppressed(build, &err);
	}
	if (r < 0) {
		fail(build, &err);
		proceed(build);
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
		fail(build, why);
		proceed(build);
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
		fail_path(build, path, &err);
	proceed(build);
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
		fail(build, why);
	else if (errnum != 0)
		fail_path(build, build->private_root, &err);
	proceed(build);
}

static void ask_for_private(struct policy_build *build)
{
	struct buf values = values_buf();
	uint32_t count = 0;

	for (size_t i = 0; i < build->candidates.count; i++)
		count += build->candidates.rules[i].bind_source != NULL;
	pack_u32(&values, count);
	for (size_t i = 0; i < build->candidates.count; i++) {
		if (build->candidates.rules[i].bind_source != NULL)
			pack_string(&values, build->candidates.rules[i].bind_source);
	}
	if (count > 0)
		ask(build, PENDING_DIRS, LOOKUP_MAKE_DIRS, &values, on_made);
	else
		buf_deinit(&values);
}

static void look_at_candidates(struct policy_build *build)
{
	struct buf values = values_buf();
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
	ask(build, PENDING_PATHS, LOOKUP_PATHS, &values, on_candidates);
	if (build->purpose == BUILD_RUN)
		ask_for_private(build);
	proceed(build);
}

/* ---- candidates --------------------------------------------------------------------------- */

static bool is_root(const struct policy_build *build)
{
	return build->broker->config.uid == 0;
}

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
		.root_peer = is_root(build),
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
	return r < 0 ? r : assemble_with(build, &input, err);
}

/* The working directory is known, and what protected names there are. */
static void on_places_known(struct policy_build *build)
{
	struct error err = ERROR_INIT;

	if (assemble(build, &err) < 0) {
		fail(build, &err);
		proceed(build);
		return;
	}
	look_at_candidates(build);
}

/* ---- first round: the working directory, links of the system, protected names --------------- */

static bool wants_link(const struct policy_build *build, const struct generic_link *link)
{
	return build->load.base == PROFILE_BASE_GENERIC &&
	       (!link->network || build->settings.net == NET_HOST);
}

static int take_cwd(struct policy_build *build, const struct lookup_path *found, struct error *err)
{
	free(build->cwd);
	build->cwd = strdup(found->real);
	if (build->cwd == NULL)
		return error_set(err, ERR_NOMEM, ENOMEM, "the working directory");
	if (found->type == NODE_DIRECTORY)
		return 0;
	return error_set(err, ERR_PATH_NOT_FOUND, found->errnum != 0 ? found->errnum : ENOTDIR,
			 "the working directory '%s'", build->params->cwd);
}

static int take_places(struct policy_build *build, struct unpack *in, struct error *err)
{
	size_t count;
	const struct generic_link *links = generic_link_names(&count);
	struct lookup_path found;
	int r;

	lookup_path_unpack(in, &found);
	r = take_cwd(build, &found, err);
	for (size_t i = 0; i < count && r == 0; i++) {
		if (!wants_link(build, &links[i]))
			continue;
		lookup_path_unpack(in, &found);
		if (!in->bad && found.link_count > 0 && found.type != NODE_ABSENT &&
		    found.type != NODE_UNKNOWN)
			r = string_list_add(&build->link_targets, found.real, err);
	}
	return r < 0 ? r : unpack_end(in, err);
}

static void on_places(void *arg, const void *values, size_t size, const struct error *why)
{
	struct policy_build *build = arg;
	struct unpack in = UNPACK_INIT(values, size);
	struct error err = ERROR_INIT;

	build->pending[PENDING_PATHS] = NULL;
	if (why != NULL)
		fail(build, why);
	else if (take_places(build, &in, &err) < 0)
		fail_path(build, build->params->cwd, &err);
	proceed(build);
}

static void on_protected(void *arg, const void *values, size_t size, const struct error *why)
{
	struct policy_build *build = arg;
	struct protected_facts facts;
	struct error err = ERROR_INIT;
	int r;

	build->pending[PENDING_TREES] = NULL;
	if (why != NULL) {
		fail(build, why);
		proceed(build);
		return;
	}
	r = protected_unpack(&facts, values, size, &err);
	facts.facts.allow_git_config = build->params->allow_git_config;
	if (r == 0)
		r = protect_rules(&build->asked, &facts.facts, NULL, NULL, &err);
	if (r == 0 && facts.incomplete)
		r = string_list_add(&build->warnings,
				    "too many directories: protected names deep in them were not"
				    " looked for",
				    &err);
	protected_deinit(&facts);
	if (r < 0)
		fail(build, &err);
	proceed(build);
}

static void look_for_protected(struct policy_build *build)
{
	struct buf values = values_buf();
	const char **trees = calloc(build->asked.count + 2, sizeof(*trees));
	struct error err = ERROR_INIT;
	size_t count = 0;

	if (trees == NULL) {
		(void)error_set(&err, ERR_NOMEM, ENOMEM, "protected names");
		fail(build, &err);
		return;
	}
	trees[count++] = build->params->cwd;
	if (build->params->allow_home)
		trees[count++] = build->broker->facts.home;
	for (size_t i = 0; i < build->asked.count; i++) {
		const struct rule *rule = &build->asked.rules[i];

		if (rule->access == ACCESS_READ_WRITE && strcmp(rule->path, "/") != 0)
			trees[count++] = rule->path;
	}
	protected_ask(&values, build->broker->facts.home, trees, count);
	free(trees);
	ask(build, PENDING_TREES, LOOKUP_PROTECTED, &values, on_protected);
}

static void look_at_places(struct policy_build *build)
{
	struct buf values = values_buf();
	size_t count;
	const struct generic_link *links = generic_link_names(&count);
	uint32_t asked = 1;

	for (size_t i = 0; i < count; i++)
		asked += wants_link(build, &links[i]);
	pack_u32(&values, asked);
	pack_string(&values, build->params->cwd);
	for (size_t i = 0; i < count; i++) {
		if (wants_link(build, &links[i]))
			pack_string(&values, links[i].path);
	}
	build->next = on_places_known;
	ask(build, PENDING_PATHS, LOOKUP_PATHS, &values, on_places);
	if (build->settings.protect)
		look_for_protected(build);
	proceed(build);
}

/* ---- the profile --------------------------------------------------------------------------- */

/* What the request and the profile ask for, as they wrote it. */
static int collect_asked(struct policy_build *build, struct error *err)
{
	const struct profile *profile = &build->load.profile;
	const struct spawn_params *params = build->params;
	char origin[LIMIT_NAME_BYTES + 16];
	int r;

	(void)snprintf(origin, sizeof(origin), "profile %s", build->profile_name);
	r = candidates_add_paths(&build->asked, &profile->paths, RULE_ADAPTER, origin,
				 "profile: paths", err);
	if (r == 0)
		r = candidates_add_sockets(&build->asked, &profile->sockets, RULE_ADAPTER, origin,
					   "profile: sockets", err);
	if (r == 0)
		r = candidates_add_paths(&build->asked, &params->paths, RULE_USER, "request",
					 "params.paths", err);
	if (r == 0)
		r = candidates_add_sockets(&build->asked, &params->socket_allow, RULE_USER,
					   "request", "params.socketAllow", err);
	return r;
}

static int check_base(struct policy_build *build, struct error *err)
{
	struct broker *broker = build->broker;
	struct policy_context *context = build->params->context;

	if (build->load.base == PROFILE_BASE_BOTMUX) {
		if (context == NULL)
			return error_set(err, ERR_INVALID, 0,
					 "params.context: profile 'botmux' needs it");
		return context_complete(context, &broker->facts, broker->config.text, err);
	}
	if (context != NULL)
		return error_set(err, ERR_INVALID, 0,
				 "params.context: only profile 'botmux' has one");
	if (build->load.base == PROFILE_BASE_HOST && is_root(build))
		return error_set(err, ERR_NOT_AUTHORIZED, 0,
				 "profile 'host' is not for jobs of root");
	return 0;
}

/* 0: the first round is under way. */
static int after_profile(struct policy_build *build, struct error *err)
{
	const struct profile_facts facts = { .home = build->broker->facts.home,
					     .cwd = build->params->cwd };
	const struct settings_input input = {
		.params = build->params,
		.profile = &build->load.profile,
		.base = build->load.base,
		.conf = &build->broker->hostconf,
		.config = &build->broker->config,
		.root_peer = is_root(build),
	};
	int r = check_base(build, err);

	if (r == 0)
		r = profile_expand(&build->load.profile, &facts, err);
	if (r == 0)
		r = settings_make(&build->settings, &input, err);
	if (r == 0)
		r = collect_asked(build, err);
	return r;
}

static void on_profile(void *arg, const struct error *why)
{
	struct policy_build *build = arg;
	struct error err = ERROR_INIT;

	if (why != NULL)
		fail(build, why);
	else if (after_profile(build, &err) < 0)
		fail(build, &err);
	if (build->failure.kind == ERR_NONE)
		look_at_places(build);
	else
		proceed(build);
}

/* A short name for lists and for the directory of its caches: of a file its own without `.json`. */
static void name_profile(struct policy_build *build, const char *asked)
{
	const char *leaf = asked[0] == '/' ? path_leaf(asked) : asked;
	size_t length = 0;

	for (; leaf[length] != '\0' && length < sizeof(build->profile_name) - 1; length++) {
		char c = leaf[length];
		bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
			     (c >= '0' && c <= '9') || c == '-' || c == '_' ||
			     (c == '.' && length > 0);

		build->profile_name[length] = plain ? c : '_';
	}
	build->profile_name[length] = '\0';
	if (asked[0] == '/' && length > 5 && strcmp(build->profile_name + length - 5, ".json") == 0)
		build->profile_name[length - 5] = '\0';
	if (length == 0)
		memcpy(build->profile_name, "file", sizeof("file"));
}

static int check_start(struct policy_build *build, struct error *err)
{
	const char *why;

	if (build->broker->refusal.kind != ERR_NONE) {
		if (err != NULL)
			*err = build->broker->refusal;
		return -(int)build->broker->refusal.kind;
	}
	if (build->params->cwd == NULL)
		return error_set(err, ERR_INVALID, 0, "params.cwd: missing");
	why = path_refusal(build->params->cwd);
	if (why != NULL)
		return error_set(err, ERR_INVALID, 0, "params.cwd: '%s' %s", build->params->cwd,
				 why);
	return settings_check(build->params, err);
}

int policy_build_start(struct policy_build *build, struct broker *broker,
		       struct spawn_params *params, enum build_purpose purpose,
		       policy_build_done_fn *done, void *arg, struct error *err)
{
	const struct profile_dirs dirs = { { broker->user_profiles, broker->host_profiles,
					     FSBOX_PROFILE_DIR } };
	const char *name = params->profile;
	int r;

	build->broker = broker;
	build->params = params;
	build->purpose = purpose;
	build->done = done;
	build->arg = arg;
	build->policy = (struct policy)POLICY_INIT;
	build->plan = (struct plan)PLAN_INIT;
	if (name == NULL)
		name = broker->hostconf.default_profile != NULL ? broker->hostconf.default_profile
								: "generic";
	r = check_start(build, err);
	if (r < 0)
		return r;
	name_profile(build, name);
	r = profiles_load(&build->load, &broker->resolvers, &dirs, name, on_profile, build, err);
	if (r <= 0)
		return r;
	r = after_profile(build, err);
	if (r < 0)
		return r;
	build->starting = true;
	look_at_places(build);
	build->starting = false;
	if (build->failure.kind == ERR_NONE || build->pending[PENDING_PATHS] != NULL ||
	    build->pending[PENDING_TREES] != NULL)
		return 0;
	if (err != NULL)
		*err = build->failure;
	return -(int)build->failure.kind;
}

void policy_build_deinit(struct policy_build *build)
{
	if (build == NULL)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(build->pending); i++)
		lookup_cancel(build->pending[i]);
	profiles_deinit(&build->load);
	free(build->cwd);
	policy_deinit(&build->policy);
	policy_deinit(&build->plain);
	plan_deinit(&build->plan);
	string_list_deinit(&build->env);
	string_list_deinit(&build->withheld);
	string_list_deinit(&build->warnings);
	string_list_deinit(&build->link_targets);
	rule_list_deinit(&build->asked);
	rule_list_deinit(&build->candidates);
	rule_list_deinit(&build->final_read_only);
	free(build->failed_path);
	free(build->private_root);
	memset(build, 0, sizeof(*build));
}
