/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/broker/spawn.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/scope.h"
#include "daemon/broker/broker.h"
#include "daemon/broker/built.h"
#include "daemon/broker/grantreq.h"
#include "daemon/broker/client.h"
#include "daemon/broker/handover.h"
#include "daemon/broker/policybuild.h"
#include "daemon/broker/policyreq.h"
#include "daemon/broker/settings.h"
#include "daemon/broker/spawnfacts.h"
#include "daemon/broker/spawnhint.h"
#include "daemon/log.h"

/*
 * @built      policy and plan; also what `inspect` will show
 * @unsure     @built was kept, and whether it is still right is not known yet
 * @repeat     under way: finding that out
 * @stale      it is not
 * @question   to fsboxd, under way: OP_JOB_OPEN, if no job was open yet, then OP_JOB_START
 * @opening    the former
 * @opened     the job that fsboxd opened, until it has a struct job; 0: none
 * @fds        of @opened: plan memfd, channel
 * @op         what fsboxd will be told, and @args_fd what init will get, once ready()
 * @failure    of what was under way at the same time
 * @job        from "starting" on: fsboxd makes its sandbox. It gets nothing of the client's before
 *             that is known
 * @broken     @job failed before that: whose fault it is depends on what @repeat says
 * @started    the command ran
 * @pidfd      of pid 1, which init sends when it reports that; -1 when it was killed before it could
 * @up         fsboxd knows pid 1
 */
struct spawn {
	struct broker *broker;
	struct call *call;
	struct built *built;
	struct string_list env;
	struct string_list withheld;
	bool unsure;
	struct lookup *repeat;
	bool stale;
	struct spawnlink_question *question;
	bool opening;
	uint64_t opened;
	int fds[2];
	struct op_message op;
	int args_fd;
	struct error failure;
	struct job *job;
	bool broken;
	struct failure breakage;
	bool started;
	int pidfd;
	bool up;
};

static void spawn_free(struct spawn *spawn)
{
	lookup_cancel(spawn->repeat);
	(void)built_unref(spawn->built);
	string_list_deinit(&spawn->env);
	string_list_deinit(&spawn->withheld);
	auto_close(&spawn->fds[0]);
	auto_close(&spawn->fds[1]);
	auto_close(&spawn->args_fd);
	auto_close(&spawn->pidfd);
	free(spawn);
}

static void abandon(struct broker *broker, uint64_t job)
{
	struct op_message op;

	spawnlink_op_init(&op, OP_JOB_ABANDON);
	op.job = job;
	(void)spawnlink_tell(&broker->link, &op, NULL);
}

/* The job that fsboxd opened is not wanted. */
static void give_up_opened(struct spawn *spawn)
{
	if (spawn->opened != 0)
		abandon(spawn->broker, spawn->opened);
	spawn->opened = 0;
	for (size_t i = 0; i < ARRAY_SIZE(spawn->fds); i++) {
		auto_close(&spawn->fds[i]);
		spawn->fds[i] = -1;
	}
}

/* Answer with an error and forget everything; DETAIL may be NULL. */
static void fail_with(struct spawn *spawn, const struct error *err,
		      const struct error_reply *detail)
{
	struct call *call = spawn->call;
	struct job *job = spawn->job;

	spawnlink_withdraw(&spawn->broker->link, spawn->question);
	call->on_gone = NULL;
	call_error_detail(call, err, detail);
	if (job != NULL)
		job_drop(job);
	give_up_opened(spawn);
	spawn_free(spawn);
}

static void fail(struct spawn *spawn, const struct error *err)
{
	struct error_reply detail = { 0 };

	if (spawn->built != NULL)
		detail.path = spawn->built->build.failed_path;

	if (spawnhint(err->kind) != NULL)
		detail.hint = (char *)(uintptr_t)spawnhint(err->kind);
	fail_with(spawn, err, &detail);
}

/* ---- running ------------------------------------------------------------------------------ */

static void fill_result(const struct spawn *spawn, union method_result *ret_result)
{
	const struct inspect_result *facts = &spawn->job->facts;
	struct spawn_result *result = &ret_result->spawn;

	/* All lent: nothing of it is released with the reply. */
	method_result_init(METHOD_SPAWN, ret_result);
	result->job = spawn->job->id;
	result->cookie = spawn->job->cookie;
	result->pid = facts->job.pid;
	result->pidfd_fd = spawn->pidfd;
	result->engine = facts->job.engine;
	result->room = facts->job.room;
	result->policy_digest = facts->policy_digest;
	result->rules = facts->rules;
	result->suppressed = facts->suppressed;
	result->withheld = facts->withheld;
	result->warnings = facts->warnings;
	result->limits = facts->limits;
}

/* Started, and fsboxd knows it: answer, and leave the job to itself. */
static void complete(struct spawn *spawn)
{
	struct call *call = spawn->call;
	struct job *job = spawn->job;
	union method_result result;

	if (!spawn->up || !spawn->started)
		return;
	spawnlink_withdraw(&spawn->broker->link, spawn->question);
	fill_result(spawn, &result);
	call->on_gone = NULL;
	call_result(call, &result);
	jobs_keep_policy(job, spawn->built);
	spawn_free(spawn);
	job_started(job);
}

void spawn_on_started(struct spawn *spawn, int pidfd)
{
	auto_close(&spawn->pidfd);
	spawn->pidfd = pidfd;
	spawn->started = true;
	complete(spawn);
}

void spawn_on_up(struct spawn *spawn)
{
	spawn->up = true;
	complete(spawn);
}

void spawn_on_failed(struct spawn *spawn, const struct failure *failure)
{
	struct error_reply detail = { 0 };
	struct error err = ERROR_INIT;
	struct failure copy = *failure;

	if (spawn->unsure) {
		spawn->broken = true;
		spawn->breakage = copy;
		return; /* go_on() */
	}
	(void)failure_to_error(&copy, &err);
	detail.stage = copy.stage[0] != '\0' ? copy.stage : NULL;
	fail_with(spawn, &err, &detail);
}

void spawn_on_ended(struct spawn *spawn)
{
	/* Init tells fsboxd first that the command runs; who is killed at once does not tell us any more. */
	spawn->started = true;
	spawn_on_up(spawn);
}

/* ---- starting ----------------------------------------------------------------------------- */

/* fsboxd refused; when it only answers later, jobs.c hears that. */
static void on_start_refused(void *arg, const struct link_message *message,
			     int fds[LINK_MESSAGE_FDS], const struct error *why)
{
	struct spawn *spawn = arg;

	(void)fds;
	spawn->question = NULL;
	if (message != NULL && why != NULL && spawn->unsure)
		spawn->failure = *why; /* go_on() */
	else if (message != NULL && why != NULL)
		fail(spawn, why);
	/* Down: what became of the job, init tells (jobs_on_link_down()). */
}

/* All that can be made ready before fsboxd has opened a job. */
static int ready(struct spawn *spawn, struct error *err)
{
	struct spawn_params *params = &spawn->call->params.spawn;
	const struct built *built = spawn->built;
	struct op_message *op = &spawn->op;
	int r = policy_build_environment(&built->build, params, &spawn->env, &spawn->withheld, err);

	if (r < 0)
		return r;
	spawnlink_op_init(op, OP_JOB_START);
	op->conn = spawn->call->client->number;
	op->u.start.plan_bytes = (uint32_t)built->plan_bytes;
	op->u.start.net_bytes = (uint32_t)(built->plan.size - built->plan_bytes);
	spawnfacts_start(&built->build, params, &spawn->withheld, &op->u.start);
	if (params->grant_fd >= 0 && (r = grantreq_claim(params, built->build.cwd, &spawn->env,
							 &op->u.start.grant, err)) < 0)
		return r;
	return handover_args(built->build.cwd, &params->argv, &spawn->env, &spawn->args_fd,
			     op->u.start.args_hash, err);
}

/* Have fsboxd make the sandbox. */
static int start(struct spawn *spawn, struct error *err)
{
	struct broker *broker = spawn->broker;
	struct call *call = spawn->call;
	int r = job_new_take(broker, spawn->opened, steal_fd(&spawn->fds[1]), call->client, spawn,
			     &spawn->job, err);

	if (r < 0)
		return r;
	spawn->op.job = spawn->opened;
	memcpy(spawn->op.u.start.cookie_hash, spawn->job->cookie_hash,
	       sizeof(spawn->op.u.start.cookie_hash));
	spawn->op.u.start.provisional = spawn->unsure;
	spawn->job->has_lifeline = call->params.spawn.lifeline_fd >= 0;
	if ((r = handover_plan(&spawn->built->plan, spawn->fds[0], err)) < 0 ||
	    (r = spawnlink_ask(&broker->link, &spawn->op, on_start_refused, spawn, &spawn->question,
			       err)) < 0)
		return r;
	spawn->opened = 0;
	auto_close(&spawn->fds[0]);
	spawn->fds[0] = -1;
	return spawnfacts_inspect(&spawn->built->build, spawn->job->id, &spawn->withheld,
				  &spawn->op.u.start, &spawn->job->facts, err);
}

/* The policy is right: init may have what the client sent, and run it. */
static int release(struct spawn *spawn, struct error *err)
{
	struct spawn_params *params = &spawn->call->params.spawn;
	struct op_message op;
	int r = 0;

	/* What is up already did not wait for that. */
	if (spawn->op.u.start.provisional && !spawn->up) {
		spawnlink_op_init(&op, OP_JOB_CONFIRM);
		op.job = spawn->job->id;
		r = spawnlink_tell(&spawn->broker->link, &op, err);
	}
	if (r == 0)
		r = handover_start(spawn->job->channel, params, spawn->args_fd,
				   &spawn->broker->closer, err);

	auto_close(&spawn->args_fd);
	spawn->args_fd = -1;
	/* Nobody is there to take it: why, fsboxd is about to say. */
	if (r == 0 || (err->errnum != EPIPE && err->errnum != ECONNRESET))
		return r;
	error_clear(err);
	return 0;
}

/* The sandbox that fsboxd makes, if it does, is not the right one. */
static void withdraw(struct spawn *spawn)
{
	if (spawn->job == NULL || spawn->opened != 0)
		give_up_opened(spawn);
	else
		abandon(spawn->broker, spawn->job->id);
	if (spawn->job == NULL)
		return;
	spawnlink_withdraw(&spawn->broker->link, spawn->question);
	spawn->question = NULL;
	job_drop(spawn->job);
	spawn->job = NULL;
	spawn->broken = false;
	spawn->up = false;
}

static void build_anew(struct spawn *spawn, struct buf *key);

static void start_over(struct spawn *spawn)
{
	struct buf key = spawn->built->key;

	/* Building may take long, and a job is not open for ever. */
	withdraw(spawn);
	auto_close(&spawn->args_fd);
	spawn->args_fd = -1;
	string_list_deinit(&spawn->env);
	string_list_deinit(&spawn->withheld);
	spawn->stale = false;
	spawn->failure = (struct error)ERROR_INIT;
	buf_init(&spawn->built->key, key.ceiling);
	spawn->built = built_unref(spawn->built);
	build_anew(spawn, &key);
}

/* Go on as far as what is known by now allows: with a job, then with a policy known to be right. */
static void go_on(struct spawn *spawn)
{
	struct error err = spawn->failure; /* fail() releases it */

	if (spawn->opening || (spawn->unsure && (err.kind != ERR_NONE || spawn->job != NULL)))
		return;
	if (!call_connected(spawn->call)) {
		(void)error_set(&err, ERR_UNREACHABLE, 0, "the client is gone");
	} else if (spawn->stale) {
		start_over(spawn);
		return;
	}
	if (err.kind == ERR_NONE && spawn->broken) {
		spawn_on_failed(spawn, &spawn->breakage);
		return;
	}
	if (err.kind == ERR_NONE && spawn->job == NULL)
		(void)start(spawn, &err);
	if (err.kind == ERR_NONE && !spawn->unsure)
		(void)release(spawn, &err);
	if (err.kind == ERR_NONE)
		return;
	if (spawn->unsure) {
		spawn->failure = err; /* it may be stale, too */
		return;
	}
	withdraw(spawn);
	fail(spawn, &err);
}

static void on_opened(void *arg, const struct link_message *message, int fds[LINK_MESSAGE_FDS],
		      const struct error *why)
{
	struct spawn *spawn = arg;

	spawn->question = NULL;
	spawn->opening = false;
	if (why != NULL) {
		spawn->failure = *why;
	} else if (message->kind != LINK_JOB_OPENED) {
		(void)error_set(&spawn->failure, ERR_SYSTEM, 0, "fsboxd answers something else");
	} else {
		spawn->opened = message->job;
		spawn->fds[0] = steal_fd(&fds[0]);
		spawn->fds[1] = steal_fd(&fds[1]);
	}
	go_on(spawn);
}

/* On success SPAWN may be over. */
static int open_job(struct spawn *spawn, struct error *err)
{
	struct op_message op;
	struct error why = ERROR_INIT;
	int r = 0;

	spawn->opened = broker_take_ahead(spawn->broker, spawn->fds);
	if (spawn->opened == 0) {
		spawnlink_op_init(&op, OP_JOB_OPEN);
		op.conn = spawn->call->client->number;
		r = spawnlink_ask(&spawn->broker->link, &op, on_opened, spawn, &spawn->question,
				  err);
		spawn->opening = r == 0;
	}
	if (r == 0 && ready(spawn, &why) < 0)
		spawn->failure = why;
	if (r == 0)
		go_on(spawn);
	return r;
}

/* ---- building ----------------------------------------------------------------------------- */

static void answer_dry_run(struct spawn *spawn)
{
	struct call *call = spawn->call;
	union method_result result;
	struct error err = ERROR_INIT;
	int r;

	method_result_init(METHOD_SPAWN, &result);
	r = policyreq_fill_dry_run(&spawn->built->build, &result.spawn, &err);
	call->on_gone = NULL;
	if (r == 0)
		call_result(call, &result);
	else
		call_error(call, &err);
	method_result_deinit(METHOD_SPAWN, &result);
	spawn_free(spawn);
}

/* Regular files that the job could reopen beyond what it may: the client has to relay them (R8). */
static bool refuse_stdio(struct spawn *spawn)
{
	struct error_reply detail = { 0 };
	struct error err = ERROR_INIT;
	int r = handover_check_stdio(spawn->call, &spawn->built->build.policy, &detail.indexes,
				     &err);

	if (r == 0 && detail.indexes.count > 0) {
		(void)error_set(&err, ERR_STDIO_RELAY, 0,
				"a regular file outside readWrite was passed as standard input or"
				" output");
		detail.hint = (char *)(uintptr_t)spawnhint(ERR_STDIO_RELAY);
		r = -ERR_STDIO_RELAY;
	}
	if (r < 0)
		fail_with(spawn, &err, &detail);
	free(detail.indexes.items);
	return r < 0;
}

static void on_built(void *arg, const struct error *why)
{
	struct spawn *spawn = arg;
	struct error err = ERROR_INIT;

	if (why != NULL) {
		err = *why; /* WHY is in what fail() releases */
		fail(spawn, &err);
		return;
	}
	if (spawn->call->params.spawn.dry_run) {
		answer_dry_run(spawn);
		return;
	}
	if (built_finish(spawn->built, &err) < 0) {
		fail(spawn, &err);
		return;
	}
	/* Of one with a grant the policy is no other's. */
	if (spawn->call->params.spawn.grant_fd < 0)
		built_keep(spawn->broker, spawn->built);
	if (!refuse_stdio(spawn) && open_job(spawn, &err) < 0)
		fail(spawn, &err);
}

/* KEY is released. */
static void build_anew(struct spawn *spawn, struct buf *key)
{
	struct spawn_params *params = &spawn->call->params.spawn;
	enum build_purpose purpose = params->dry_run ? BUILD_SHOW : BUILD_RUN;
	struct error err = ERROR_INIT;
	int r = 0;

	spawn->built = built_new_take(spawn->broker, key);
	if (spawn->built == NULL)
		r = error_set(&err, ERR_NOMEM, ENOMEM, "a policy");
	if (r == 0)
		r = policy_build_start(&spawn->built->build, spawn->broker, params, purpose,
				       on_built, spawn, &err);
	if (r < 0)
		fail(spawn, &err);
}

static void on_repeated(void *arg, const void *values, size_t size, const struct error *why)
{
	struct spawn *spawn = arg;
	struct unpack in = UNPACK_INIT(values, size);

	spawn->repeat = NULL;
	spawn->unsure = false;
	if (why != NULL) {
		spawn->failure = *why;
	} else if (unpack_u32(&in) != 1 || unpack_end(&in, NULL) < 0) {
		spawn->stale = true;
		built_forget(spawn->broker, spawn->built);
	}
	go_on(spawn);
}

/*
 * A policy was built for a request like this one: have the sandbox made, which takes longer, and see meanwhile
 * whether it still holds.
 */
static void use_kept(struct spawn *spawn)
{
	struct error err = ERROR_INIT;

	if (refuse_stdio(spawn))
		return;
	spawn->unsure = true;
	if (open_job(spawn, &err) == 0 &&
	    resolver_pool_ask(&spawn->broker->resolvers, LOOKUP_REPEAT, &spawn->built->build.record,
			      on_repeated, spawn, &spawn->repeat, &err) == 0)
		return;
	spawn->unsure = false;
	if (spawn->opening) {
		spawn->failure = err; /* fsboxd is about to answer; go_on() */
		return;
	}
	withdraw(spawn);
	fail(spawn, &err);
}

/* The client left. What fsboxd was already told about goes on; everything else ends here. */
static void on_gone(struct call *call)
{
	struct spawn *spawn = call->work;
	struct error err = ERROR_INIT;

	if (spawn->opening || spawn->unsure || spawn->job != NULL)
		return; /* go_on() sees it */
	(void)error_set(&err, ERR_UNREACHABLE, 0, "the client is gone");
	fail(spawn, &err);
}

static int begin(struct spawn *spawn, struct buf *key, struct error *err)
{
	const struct spawn_params *params = &spawn->call->params.spawn;
	int r;

	if (params->argv.count == 0 || params->argv.items[0][0] == '\0')
		return error_set(err, ERR_INVALID, 0, "params.argv: a command is needed");
	if (params->grant_request && !params->dry_run)
		return error_set(err, ERR_INVALID, 0, "params.grantRequest: for dry runs only");
	if (params->dry_run)
		return 0;
	r = settings_check(params, err);
	if (r == 0)
		r = built_key(params, key, err);
	if (r == 0 && params->grant_fd < 0)
		spawn->built = built_find(spawn->broker, key);
	return r;
}

void spawn_begin(struct call *call)
{
	struct spawn *spawn = calloc(1, sizeof(*spawn));
	struct buf key = BUF_INIT(LIMIT_PARAMS_BYTES);
	struct error err = ERROR_INIT;

	if (spawn == NULL) {
		(void)error_set(&err, ERR_NOMEM, ENOMEM, "a job");
		call_error(call, &err);
		return;
	}
	spawn->broker = call->broker;
	spawn->call = call;
	spawn->pidfd = -1;
	spawn->fds[0] = -1;
	spawn->fds[1] = -1;
	spawn->args_fd = -1;
	call->work = spawn;
	call->on_gone = on_gone;
	if (begin(spawn, &key, &err) < 0) {
		buf_deinit(&key);
		fail(spawn, &err);
	} else if (spawn->built != NULL) {
		buf_deinit(&key);
		use_kept(spawn);
	} else {
		build_anew(spawn, &key);
	}
}
