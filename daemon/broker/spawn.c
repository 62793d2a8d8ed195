/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/broker/spawn.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/path.h"
#include "common/scope.h"
#include "daemon/broker/broker.h"
#include "daemon/broker/client.h"
#include "daemon/broker/handover.h"
#include "daemon/broker/policybuild.h"
#include "daemon/broker/policyreq.h"
#include "daemon/log.h"

/*
 * @build      policy and plan; also what `inspect` will show
 * @question   to fsboxd, under way: OP_JOB_OPEN, then OP_JOB_START
 * @job        from "starting" on
 * @pidfd      of pid 1, once init reported STARTED
 * @up         fsboxd knows pid 1
 */
struct spawn {
	struct broker *broker;
	struct call *call;
	struct policy_build build;
	struct spawnlink_question *question;
	struct job *job;
	int pidfd;
	bool up;
	bool opening;
};

static void spawn_free(struct spawn *spawn)
{
	policy_build_deinit(&spawn->build);
	auto_close(&spawn->pidfd);
	free(spawn);
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
	spawn_free(spawn);
}

/* What to do about it, where that is not plain from the message. */
static const char *hint_for(enum error_kind kind)
{
	static const struct {
		enum error_kind kind;
		const char *hint;
	} hints[] = {
		{ ERR_STDIO_RELAY,
		  "pass a pipe and copy, or grant the file's directory readWrite" },
		{ ERR_NOT_AUTHORIZED, "an administrator can raise it in fsboxd.conf" },
		{ ERR_CONFIG, "correct the file, then reload fsboxd" },
		{ ERR_RESOLVER_BUSY, "look for a mount that does not answer" },
		{ ERR_TIMEOUT, "look for a mount that does not answer" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(hints); i++) {
		if (hints[i].kind == kind)
			return hints[i].hint;
	}
	return NULL;
}

static void fail(struct spawn *spawn, const struct error *err)
{
	struct error_reply detail = { .path = spawn->build.failed_path };

	if (hint_for(err->kind) != NULL)
		detail.hint = (char *)(uintptr_t)hint_for(err->kind);
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

	if (!spawn->up || spawn->pidfd < 0)
		return;
	spawnlink_withdraw(&spawn->broker->link, spawn->question);
	fill_result(spawn, &result);
	call->on_gone = NULL;
	call_result(call, &result);
	jobs_keep_policy(job, &spawn->build.policy);
	spawn_free(spawn);
	job_started(job);
}

void spawn_on_started(struct spawn *spawn, int pidfd)
{
	auto_close(&spawn->pidfd);
	spawn->pidfd = pidfd;
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

	(void)failure_to_error(&copy, &err);
	detail.stage = copy.stage[0] != '\0' ? copy.stage : NULL;
	fail_with(spawn, &err, &detail);
}

bool spawn_on_ended(struct spawn *spawn)
{
	struct error err = ERROR_INIT;

	if (spawn->pidfd >= 0) {
		spawn_on_up(spawn);
		return true;
	}
	(void)error_set(&err, ERR_SETUP_FAILED, 0, "the job ended before its command ran");
	fail_with(spawn, &err, NULL);
	return false;
}

/* ---- starting ----------------------------------------------------------------------------- */

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

/* What `inspect` will show, and the reply of this request. */
static int fill_facts(struct spawn *spawn, const struct op_start *start, struct error *err)
{
	struct policy_build *build = &spawn->build;
	struct inspect_result *facts = &spawn->job->facts;
	struct timespec now;
	int r;

	(void)clock_gettime(CLOCK_REALTIME, &now);
	facts->job.job = spawn->job->id;
	facts->job.uid = spawn->broker->config.uid;
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
	    (r = copy_list(&facts->withheld, &build->withheld, err)) < 0 ||
	    (r = copy_list(&facts->warnings, &build->warnings, err)) < 0)
		return r;
	return fill_limits(&facts->limits, &build->settings.limits, err);
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

static void fill_start(const struct spawn *spawn, struct op_start *start)
{
	const struct policy_build *build = &spawn->build;
	const struct spawn_params *params = &spawn->call->params.spawn;

	start->limits = build->settings.limits;
	start->engine = build->settings.engine;
	start->room = build->settings.room;
	start->detached = params->detach;
	start->argc = (uint32_t)params->argv.count;
	start->rules = (uint32_t)build->policy.rules.count;
	start->suppressed = (uint32_t)build->policy.suppressed.count;
	start->withheld = (uint32_t)build->withheld.count;
	memcpy(start->policy_digest, build->digest, sizeof(start->policy_digest));
	put_plain(start->profile, sizeof(start->profile), build->profile_name);
	put_plain(start->command, sizeof(start->command), path_leaf(params->argv.items[0]));
	if (params->label != NULL)
		put_label(start->label, sizeof(start->label), params->label);
}

/* fsboxd refused; when it only answers later, jobs.c hears that. */
static void on_start_refused(void *arg, const struct link_message *message,
			     int fds[LINK_MESSAGE_FDS], const struct error *why)
{
	struct spawn *spawn = arg;

	(void)fds;
	spawn->question = NULL;
	if (message != NULL && why != NULL)
		fail(spawn, why);
	/* Down: what became of the job, init tells (jobs_on_link_down()). */
}

static int hand_over(struct spawn *spawn, int plan_fd, struct op_message *op, struct error *err)
{
	struct spawn_params *params = &spawn->call->params.spawn;
	AUTO(auto_close) int args_fd = -1;
	int r;

	fill_start(spawn, &op->u.start);
	spawn->job->has_lifeline = params->lifeline_fd >= 0;
	r = handover_plan(&spawn->build.plan, plan_fd, &op->u.start.plan_bytes, err);
	if (r == 0)
		r = handover_args(spawn->build.cwd, &params->argv, &spawn->build.env, &args_fd,
				  op->u.start.args_hash, err);
	if (r == 0)
		r = fill_facts(spawn, &op->u.start, err);
	if (r == 0)
		r = handover_start(spawn->job->channel, params, args_fd, &spawn->broker->closer,
				   err);
	return r;
}

static void abandon(struct broker *broker, uint64_t job)
{
	struct op_message op;

	spawnlink_op_init(&op, OP_JOB_ABANDON);
	op.job = job;
	(void)spawnlink_tell(&broker->link, &op, NULL);
}

static void on_opened(void *arg, const struct link_message *message, int fds[LINK_MESSAGE_FDS],
		      const struct error *why)
{
	struct spawn *spawn = arg;
	struct broker *broker = spawn->broker;
	struct error err = ERROR_INIT;
	struct op_message op;
	int r;

	spawn->question = NULL;
	spawn->opening = false;
	if (why != NULL || message->kind != LINK_JOB_OPENED) {
		if (why == NULL)
			(void)error_set(&err, ERR_SYSTEM, 0, "fsboxd answers something else");
		fail(spawn, why != NULL ? why : &err);
		return;
	}
	if (!call_connected(spawn->call)) {
		abandon(broker, message->job);
		(void)error_set(&err, ERR_UNREACHABLE, 0, "the client is gone");
		fail(spawn, &err);
		return;
	}
	spawnlink_op_init(&op, OP_JOB_START);
	op.conn = spawn->call->client->number;
	op.job = message->job;
	r = job_new_take(broker, message->job, steal_fd(&fds[1]), spawn->call->client, spawn,
			 &spawn->job, &err);
	if (r == 0)
		r = hand_over(spawn, fds[0], &op, &err);
	if (r == 0)
		r = spawnlink_ask(&broker->link, &op, on_start_refused, spawn, &spawn->question,
				  &err);
	if (r < 0) {
		abandon(broker, message->job);
		fail(spawn, &err);
	}
}

/* ---- building ----------------------------------------------------------------------------- */

static void answer_dry_run(struct spawn *spawn)
{
	struct call *call = spawn->call;
	union method_result result;
	struct error err = ERROR_INIT;
	int r;

	method_result_init(METHOD_SPAWN, &result);
	r = policyreq_fill_dry_run(&spawn->build, &result.spawn, &err);
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
	int r = handover_check_stdio(spawn->call, &spawn->build.policy, &detail.indexes, &err);

	if (r == 0 && detail.indexes.count > 0) {
		(void)error_set(&err, ERR_STDIO_RELAY, 0,
				"a regular file outside readWrite was passed as standard input or"
				" output");
		detail.hint = (char *)(uintptr_t)hint_for(ERR_STDIO_RELAY);
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
	struct op_message op;

	if (why != NULL) {
		err = *why; /* WHY is in what fail() releases */
		fail(spawn, &err);
		return;
	}
	if (spawn->call->params.spawn.dry_run) {
		answer_dry_run(spawn);
		return;
	}
	if (refuse_stdio(spawn))
		return;
	spawnlink_op_init(&op, OP_JOB_OPEN);
	op.conn = spawn->call->client->number;
	spawn->opening = true;
	if (spawnlink_ask(&spawn->broker->link, &op, on_opened, spawn, &spawn->question, &err) < 0)
		fail(spawn, &err);
}

/* The client left. What fsboxd was already told about goes on; everything else ends here. */
static void on_gone(struct call *call)
{
	struct spawn *spawn = call->work;
	struct error err = ERROR_INIT;

	if (spawn->opening || spawn->job != NULL)
		return;
	(void)error_set(&err, ERR_UNREACHABLE, 0, "the client is gone");
	fail(spawn, &err);
}

void spawn_begin(struct call *call)
{
	struct spawn *spawn = calloc(1, sizeof(*spawn));
	struct spawn_params *params = &call->params.spawn;
	enum build_purpose purpose = params->dry_run ? BUILD_SHOW : BUILD_RUN;
	struct error err = ERROR_INIT;
	int r = 0;

	if (spawn == NULL) {
		(void)error_set(&err, ERR_NOMEM, ENOMEM, "a job");
		call_error(call, &err);
		return;
	}
	spawn->broker = call->broker;
	spawn->call = call;
	spawn->pidfd = -1;
	call->work = spawn;
	call->on_gone = on_gone;
	if (params->argv.count == 0 || params->argv.items[0][0] == '\0')
		r = error_set(&err, ERR_INVALID, 0, "params.argv: a command is needed");
	if (r == 0)
		r = policy_build_start(&spawn->build, spawn->broker, params, purpose, on_built,
				       spawn, &err);
	if (r < 0)
		fail(spawn, &err);
}
