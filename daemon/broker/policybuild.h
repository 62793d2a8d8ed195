/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_DAEMON_BROKER_POLICYBUILD_H
#define FSBOX_DAEMON_BROKER_POLICYBUILD_H

/*
 * From a request to its policy and plan: profile files, look-ups as the user, candidates, settling.
 * Shared by `spawn`, `policy` and `why`; nothing is run here, and nothing changed on the host but for
 * private cache directories that are missing (BUILD_RUN).
 *
 * Each turn is one round of look-ups; several go out at once. Whatever fails first is what the
 * caller hears, once nothing is under way any more.
 */

#include "common/error.h"
#include "common/plan.h"
#include "common/policy.h"
#include "common/protect.h"
#include "common/sha256.h"
#include "daemon/broker/netlists.h"
#include "daemon/broker/profiles.h"
#include "daemon/broker/resolve.h"
#include "daemon/broker/settings.h"
#include "proto/json/message.h"

struct broker;

enum build_purpose {
	BUILD_RUN,  /* a job will be started */
	BUILD_SHOW, /* dry run, `policy`, `why` */
};

/* ERR is NULL when everything is there. The build may be deinited from here. */
typedef void policy_build_done_fn(void *arg, const struct error *err);

/* What was asked for one policy is remembered up to this size: some 20,000 rules. */
#define BUILD_RECORD_BYTES (4u << 20)

/* Asked, not answered: index as in build->pending. */
struct build_question {
	struct policy_build *build;
	enum lookup_kind kind;
	struct buf request;
	lookup_done_fn *done;
};

/*
 * Zeroed before policy_build_start().
 *
 * What comes out: @profile_name, @settings, @cwd (canonical), @policy, @plan, @warnings, @digest;
 * with BUILD_SHOW @env (NAME=VALUE) and @withheld, with BUILD_RUN @record, all that was looked up
 * (lookuprecord.h), failed if it was too much. After a failure @failed_path may name what it was about.
 */
struct policy_build {
	struct broker *broker;
	struct spawn_params *params; /* borrowed; its context is completed */
	enum build_purpose purpose;
	policy_build_done_fn *done;
	void *arg;

	struct profile_load load;
	char profile_name[LIMIT_NAME_BYTES];
	struct settings settings;
	struct netlists net; /* network `proxy` */
	char *cwd;
	struct policy policy;
	struct plan plan;
	struct string_list env;
	struct string_list withheld;
	struct string_list warnings;
	uint8_t digest[SHA256_BYTES];
	char *failed_path;
	struct buf record;

	/* under way */
	void (*next)(struct policy_build *build); /* when all of @pending have answered */
	struct lookup *pending[3];
	struct build_question questions[3];
	bool starting;
	struct error failure;
	struct string_list link_targets;
	struct rule_list asked;
	struct protect_watch watch;
	struct rule_list candidates;
	size_t guards;       /* of them, from here on */
	struct policy plain; /* botmux: what the context gave besides rules */
	struct rule_list final_read_only;
	char *private_root;
};

/* Start. DONE is called exactly once from the event loop, unless this fails. */
int policy_build_start(struct policy_build *build, struct broker *broker,
		       struct spawn_params *params, enum build_purpose purpose,
		       policy_build_done_fn *done, void *arg, struct error *err);

/*
 * The environment of a job with PARAMS' variables and the policy of BUILD, which is done: NAME=VALUE, and
 * the names that were left out. Fails with ERR_INVALID, ERR_NOMEM.
 */
int policy_build_environment(const struct policy_build *build, const struct spawn_params *params,
			     struct string_list *ret_env, struct string_list *ret_withheld,
			     struct error *err);

/* It is done, and only what comes out is still wanted. */
void policy_build_trim(struct policy_build *build);

/* Also while it is under way: then DONE is not called. */
void policy_build_deinit(struct policy_build *build);

#endif
