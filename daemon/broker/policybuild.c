/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/broker/policybuild.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/generic.h"
#include "common/path.h"
#include "common/protect.h"
#include "common/scope.h"
#include "daemon/broker/broker.h"
#include "daemon/broker/buildround.h"
#include "daemon/broker/candidates.h"
#include "daemon/broker/context.h"
#include "daemon/broker/lookuprecord.h"
#include "daemon/broker/protected.h"

/* ---- rounds ------------------------------------------------------------------------------ */

void round_fail(struct policy_build *build, const struct error *err)
{
	if (build->failure.kind == ERR_NONE)
		build->failure = *err;
}

void round_fail_path(struct policy_build *build, const char *path, const struct error *err)
{
	if (build->failure.kind == ERR_NONE && path != NULL) {
		free(build->failed_path);
		build->failed_path = strdup(path);
	}
	round_fail(build, err);
}

/* Answers came in: go on, or tell what failed. BUILD may be gone afterwards. */
void round_proceed(struct policy_build *build)
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

static void on_answer(void *arg, const void *values, size_t size, const struct error *why)
{
	struct build_question *question = arg;
	struct policy_build *build = question->build;

	if (why == NULL && build->purpose == BUILD_RUN)
		lookup_record_add(&build->record, question->kind, &question->request, values, size);
	buf_deinit(&question->request);
	question->done(build, values, size, why);
}

void round_ask(struct policy_build *build, int slot, enum lookup_kind kind, struct buf *values,
	       lookup_done_fn *done)
{
	struct error err = ERROR_INIT;

	struct build_question *question = &build->questions[slot];

	*question = (struct build_question){ build, kind, *values, done };
	*values = round_values();
	if (build->failure.kind == ERR_NONE &&
	    resolver_pool_ask(&build->broker->resolvers, kind, &question->request, on_answer,
			      question, &build->pending[slot], &err) < 0)
		round_fail(build, &err);
	if (build->pending[slot] == NULL)
		buf_deinit(&question->request);
}

struct buf round_values(void)
{
	return (struct buf)BUF_INIT(RESOLVER_MESSAGE_BYTES);
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
		round_fail(build, why);
	else if (take_places(build, &in, &err) < 0)
		round_fail_path(build, build->params->cwd, &err);
	round_proceed(build);
}

static void on_protected(void *arg, const void *values, size_t size, const struct error *why)
{
	struct policy_build *build = arg;
	struct protected_facts facts;
	struct error err = ERROR_INIT;
	int r;

	build->pending[PENDING_TREES] = NULL;
	if (why != NULL) {
		round_fail(build, why);
		round_proceed(build);
		return;
	}
	r = protected_unpack(&facts, values, size, &err);
	facts.facts.allow_git_config = build->params->allow_git_config;
	if (r == 0)
		r = protect_rules(&build->asked, &facts.facts, &build->watch, &err);
	if (r == 0 && facts.incomplete)
		r = string_list_add(&build->warnings,
				    "too many directories: protected names deep in them were not"
				    " looked for",
				    &err);
	protected_deinit(&facts);
	if (r < 0)
		round_fail(build, &err);
	round_proceed(build);
}

static void look_for_protected(struct policy_build *build)
{
	struct buf values = round_values();
	const char **trees = calloc(build->asked.count + 2, sizeof(*trees));
	struct error err = ERROR_INIT;
	size_t count = 0;

	if (trees == NULL) {
		(void)error_set(&err, ERR_NOMEM, ENOMEM, "protected names");
		round_fail(build, &err);
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
	round_ask(build, PENDING_TREES, LOOKUP_PROTECTED, &values, on_protected);
}

static void look_at_places(struct policy_build *build)
{
	struct buf values = round_values();
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
	build->next = rules_begin;
	round_ask(build, PENDING_PATHS, LOOKUP_PATHS, &values, on_places);
	if (build->settings.protect)
		look_for_protected(build);
	round_proceed(build);
}

/* ---- the profile --------------------------------------------------------------------------- */

/* What decides about the next job is not for this one to write, wherever it lies (R25). */
static int keep_profile_files(struct policy_build *build, struct error *err)
{
	const struct string_list *files = &build->load.visited;
	int r = 0;

	for (size_t i = 0; r == 0 && i < files->count; i++) {
		r = rule_list_append(&build->asked, files->items[i], ACCESS_READ_ONLY, RULE_USER,
				     "profile file", err);
		if (r == 0) {
			build->asked.rules[build->asked.count - 1].lowers = true;
			build->asked.rules[build->asked.count - 1].optional = true;
		}
	}
	return r;
}

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
	return r < 0 ? r : keep_profile_files(build, err);
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
	if (build->load.base == PROFILE_BASE_HOST && build->broker->config.uid == 0)
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
		.root_peer = build->broker->config.uid == 0,
	};
	int r = check_base(build, err);

	if (r == 0)
		r = profile_expand(&build->load.profile, &facts, err);
	if (r == 0)
		r = settings_make(&build->settings, &input, err);
	if (r == 0 && build->settings.net == NET_PROXY)
		r = netlists_make(&build->net, &build->load.profile.net, &build->params->net, err);
	if (r == 0)
		r = collect_asked(build, err);
	return r;
}

static void on_profile(void *arg, const struct error *why)
{
	struct policy_build *build = arg;
	struct error err = ERROR_INIT;

	if (why != NULL)
		round_fail(build, why);
	else if (after_profile(build, &err) < 0)
		round_fail(build, &err);
	if (build->failure.kind == ERR_NONE)
		look_at_places(build);
	else
		round_proceed(build);
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

		build->profile_name[length] = c;
		if (!plain)
			build->profile_name[length] = '_';
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
	buf_init(&build->record, BUILD_RECORD_BYTES);
	if (purpose == BUILD_RUN)
		build->load.record = &build->record;
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

void policy_build_trim(struct policy_build *build)
{
	build->params = NULL;
	build->done = NULL;
	build->arg = NULL;
	policy_deinit(&build->plain);
	string_list_deinit(&build->link_targets);
	rule_list_deinit(&build->asked);
	protect_watch_deinit(&build->watch);
	rule_list_deinit(&build->candidates);
	rule_list_deinit(&build->final_read_only);
}

void policy_build_deinit(struct policy_build *build)
{
	if (build == NULL)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(build->pending); i++) {
		lookup_cancel(build->pending[i]);
		buf_deinit(&build->questions[i].request);
	}
	buf_deinit(&build->record);
	profiles_deinit(&build->load);
	free(build->cwd);
	netlists_deinit(&build->net);
	policy_deinit(&build->policy);
	policy_deinit(&build->plain);
	plan_deinit(&build->plan);
	string_list_deinit(&build->env);
	string_list_deinit(&build->withheld);
	string_list_deinit(&build->warnings);
	string_list_deinit(&build->link_targets);
	rule_list_deinit(&build->asked);
	protect_watch_deinit(&build->watch);
	rule_list_deinit(&build->candidates);
	rule_list_deinit(&build->final_read_only);
	free(build->failed_path);
	free(build->private_root);
	memset(build, 0, sizeof(*build));
}
