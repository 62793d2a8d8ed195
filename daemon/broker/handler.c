/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/broker/handler.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "common/scope.h"
#include "daemon/broker/adopted.h"
#include "daemon/broker/broker.h"
#include "daemon/broker/client.h"
#include "daemon/broker/grantreq.h"
#include "daemon/broker/leftovers.h"
#include "daemon/broker/policyreq.h"
#include "daemon/broker/spawn.h"
#include "daemon/broker/spawnfacts.h"
#include "daemon/log.h"

/* What a client may count on besides the methods of version 1. */
static const char *const features[] = {
	"absent", "allow-git-config", "allow-home", "cookies",  "detach", "dry-run", "events",
	"grants", "lifeline",         "params-fd",  "profiles", "policy", "why",
};

static uint64_t realtime_ms(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static int set_text(char **ret, const char *text, struct error *err)
{
	*ret = strdup(text);
	return *ret != NULL ? 0 : error_set(err, ERR_NOMEM, ENOMEM, "a reply");
}

/* Answer with RESULT, or with ERR when R is negative; RESULT is released. */
static void answer(struct call *call, union method_result *result, int r, const struct error *err)
{
	enum method method = call->method;

	if (r == 0)
		call_result(call, result);
	else
		call_error(call, err);
	method_result_deinit(method, result);
}

/* ---- hello, detect, status -------------------------------------------------------------- */

static void do_hello(struct call *call)
{
	struct broker *broker = call->broker;
	struct error err = ERROR_INIT;
	union method_result result;
	struct hello_result *hello = &result.hello;
	int r = 0;

	method_result_init(METHOD_HELLO, &result);
	if (call->params.hello.protocol != PROTOCOL_VERSION)
		r = error_set(&err, ERR_INVALID, 0, "protocol %u: only version %d is spoken here",
			      call->params.hello.protocol, PROTOCOL_VERSION);
	hello->protocol = PROTOCOL_VERSION;
	hello->mode = (enum daemon_mode)broker->config.mode;
	hello->uid = call->client->sender.uid;
	hello->limits.frame_bytes = LIMIT_FRAME_BYTES;
	hello->limits.params_bytes = LIMIT_PARAMS_BYTES;
	hello->limits.frame_fds = LIMIT_FRAME_FDS;
	hello->limits.requests = LIMIT_REQUESTS_PER_CONNECTION;
	if (r == 0)
		r = set_text(&hello->server, "fsbox " FSBOX_VERSION, &err);
	if (r == 0)
		r = broker_list_engines(broker, &hello->engines, &err);
	for (size_t i = 0; i < ARRAY_SIZE(features) && r == 0; i++)
		r = string_list_add(&hello->features, features[i], &err);
	if (r == 0)
		call->client->state = CLIENT_READY;
	answer(call, &result, r, &err);
}

static void do_detect(struct call *call)
{
	struct error err = ERROR_INIT;
	union method_result result;
	int r;

	method_result_init(METHOD_DETECT, &result);
	r = broker_list_engines(call->broker, &result.detect.engines, &err);
	if (r == 0)
		r = broker_list_unenforced(call->broker, &result.detect.unenforced, &err);
	answer(call, &result, r, &err);
}

/* What fsboxd knows, in STATUS; NULL when it is gone: then the rest is shown without. */
static void fill_status(struct status_result *result, const struct link_status *status)
{
	if (status == NULL)
		return;
	result->started_ms = status->started_ms;
	result->uptime_ms =
		realtime_ms() > status->started_ms ? realtime_ms() - status->started_ms : 0;
	result->recorder_up = status->recorder_up != 0;
	result->counters.brokers = status->brokers;
	result->counters.connections = status->connections;
	result->counters.jobs = status->jobs;
	result->counters.jobs_of_uid = status->jobs_of_uid;
	result->counters.spawns = status->spawns;
	result->counters.failures = status->failures;
	result->counters.refused_peers = status->refused_peers;
	result->counters.placeholders = status->placeholders;
	result->counters.stuck = status->stuck;
	result->counters.zygotes_ready = status->zygotes_ready;
	result->counters.zygotes_used = status->zygotes_used;
	result->counters.zygotes_refused = status->zygotes_refused;
	result->counters.zygotes_expired = status->zygotes_expired;
}

static void on_status(void *arg, const struct link_message *message, int fds[LINK_MESSAGE_FDS],
		      const struct error *why)
{
	struct call *call = arg;
	struct broker *broker = call->broker;
	const char *profile = broker->hostconf.default_profile;
	struct error err = ERROR_INIT;
	union method_result result;
	struct status_result *status = &result.status;
	int r = 0;

	(void)fds;
	method_result_init(METHOD_STATUS, &result);
	if (message != NULL && message->kind == LINK_STATUS) {
		fill_status(status, &message->u.status);
	} else if (message != NULL) {
		err = why != NULL ? *why : err;
		r = why != NULL ? -(int)why->kind
				: error_set(&err, ERR_SYSTEM, 0, "fsboxd answers something else");
	} else {
		r = string_list_add(&status->unenforced, why->message, &err);
	}
	status->mode = (enum daemon_mode)broker->config.mode;
	status->uid = call->client != NULL ? call->client->sender.uid : 0;
	status->max_net = broker->hostconf.max_net;
	if (r == 0)
		r = set_text(&status->version, FSBOX_VERSION, &err);
	if (r == 0)
		r = set_text(&status->default_profile, profile != NULL ? profile : "generic", &err);
	if (r == 0)
		r = facts_list(&broker->facts, &status->facts, &err);
	if (r == 0)
		r = broker_list_engines(broker, &status->engines, &err);
	if (r == 0)
		r = broker_list_unenforced(broker, &status->unenforced, &err);
	answer(call, &result, r, &err);
}

static void do_status(struct call *call)
{
	int none[LINK_MESSAGE_FDS] = { -1, -1 };
	struct error err = ERROR_INIT;
	struct op_message op;

	spawnlink_op_init(&op, OP_STATUS);
	op.conn = call->client->number;
	if (spawnlink_ask(&call->broker->link, &op, on_status, call, NULL, &err) < 0)
		on_status(call, NULL, none, &err);
}

/* ---- jobs ------------------------------------------------------------------------------- */

static void do_wait(struct call *call)
{
	struct error err = ERROR_INIT;
	struct job *job;

	if (jobs_find(call->broker, call->params.wait.job) == NULL)
		adopted_ask(call, call->params.wait.job);
	else if (jobs_find_for(call->broker, call->params.wait.job, call->params.wait.cookie, &job,
			       &err) < 0)
		call_error(call, &err);
	else
		job_wait(job, call);
}

static void on_signalled(void *arg, const struct link_message *message, int fds[LINK_MESSAGE_FDS],
			 const struct error *why)
{
	struct call *call = arg;
	union method_result result;

	(void)message;
	(void)fds;
	method_result_init(METHOD_SIGNAL, &result);
	answer(call, &result, why != NULL ? -(int)why->kind : 0, why);
}

/* fsboxd decides who may signal what: an administrator everything, others what is their uid's. */
static void do_signal(struct call *call)
{
	const struct signal_params *params = &call->params.signal;
	struct error err = ERROR_INIT;
	struct op_message op;
	struct job *job = jobs_find(call->broker, params->job);
	int r = 0;

	/* Only here the cookie can be compared; without one fsboxd alone decides. */
	if (job == NULL && params->cookie != NULL) {
		adopted_ask(call, params->job);
		return;
	}
	if (job != NULL && job->phase == JOB_PHASE_ENDED)
		r = error_set(&err, ERR_JOB_UNKNOWN, 0, "job %llu is over",
			      (unsigned long long)params->job);
	else if (job != NULL && params->cookie != NULL)
		r = jobs_find_for(call->broker, params->job, params->cookie, &job, &err);
	if (r == 0 && (params->signal < 1 || params->signal > 64))
		r = error_set(&err, ERR_INVALID, 0, "params.signal: %u is no signal",
			      params->signal);
	spawnlink_op_init(&op, OP_JOB_SIGNAL);
	op.conn = call->client->number;
	op.job = params->job;
	op.u.signal.signo = params->signal;
	if (r == 0)
		r = spawnlink_ask(&call->broker->link, &op, on_signalled, call, NULL, &err);
	if (r < 0)
		call_error(call, &err);
}

/* A list that fsboxd sends entry by entry; also used to find one job for `inspect`. */
struct listing {
	struct call *call;
	struct msg_job_list jobs;
	struct error err;
	int result;
};

static int add_job(struct msg_job_list *list, uint64_t id, const struct link_job_entry *entry,
		   struct error *err)
{
	struct msg_job *job;

	if (list->count == list->capacity) {
		size_t capacity = list->capacity > 0 ? 2 * list->capacity : 16;
		struct msg_job *items = reallocarray(list->items, capacity, sizeof(*items));

		if (items == NULL)
			return error_set(err, ERR_NOMEM, ENOMEM, "the list of jobs");
		list->items = items;
		list->capacity = capacity;
	}
	job = &list->items[list->count++];
	*job = (struct msg_job){
		.job = id,
		.uid = entry->uid,
		.pid = entry->pid,
		.state = (enum job_state)entry->state,
		.started_ms = entry->started_ms,
		.engine = (enum engine_kind)entry->engine,
		.room = (enum room_kind)entry->room,
		.detached = entry->detached != 0,
		.profile = strdup(entry->profile),
		.command = strdup(entry->command),
		.label = entry->label[0] != '\0' ? strdup(entry->label) : NULL,
	};
	if (job->profile == NULL || job->command == NULL ||
	    (entry->label[0] != '\0' && job->label == NULL))
		return error_set(err, ERR_NOMEM, ENOMEM, "the list of jobs");
	return 0;
}

static void listing_free(struct listing *listing)
{
	union method_result result;

	method_result_init(METHOD_LIST, &result);
	result.list.jobs = listing->jobs;
	method_result_deinit(METHOD_LIST, &result);
	free(listing);
}

static void answer_inspect(struct listing *listing)
{
	struct call *call = listing->call;
	union method_result result;

	method_result_init(METHOD_INSPECT, &result);
	if (listing->result == 0 && listing->jobs.count == 0)
		listing->result = error_set(&listing->err, ERR_JOB_UNKNOWN, 0, "job %llu",
					    (unsigned long long)call->params.inspect.job);
	/* Lent to the result. */
	if (listing->result == 0)
		result.inspect.job = listing->jobs.items[0];
	if (listing->result == 0)
		call_result(call, &result);
	else
		call_error(call, &listing->err);
}

static void on_listed(void *arg, const struct link_message *message, int fds[LINK_MESSAGE_FDS],
		      const struct error *why)
{
	struct listing *listing = arg;
	struct call *call = listing->call;

	(void)fds;
	if (message != NULL && message->kind == LINK_JOB_ENTRY) {
		bool wanted = call->method == METHOD_LIST
				      ? call->params.list.all ||
						message->u.entry.uid == call->broker->config.uid
				      : message->job == call->params.inspect.job;

		if (wanted && listing->result == 0)
			listing->result = add_job(&listing->jobs, message->job, &message->u.entry,
						  &listing->err);
		return;
	}
	if (why != NULL) {
		listing->err = *why;
		listing->result = -(int)why->kind;
	}
	if (call->method == METHOD_INSPECT) {
		answer_inspect(listing);
	} else if (listing->result == 0) {
		union method_result result;

		method_result_init(METHOD_LIST, &result);
		result.list.jobs = listing->jobs; /* lent */
		call_result(call, &result);
	} else {
		call_error(call, &listing->err);
	}
	listing_free(listing);
}

static void do_list(struct call *call)
{
	struct listing *listing = calloc(1, sizeof(*listing));
	struct error err = ERROR_INIT;
	struct op_message op;
	int r = 0;

	if (listing == NULL)
		r = error_set(&err, ERR_NOMEM, ENOMEM, "the list of jobs");
	else if (call->method == METHOD_LIST && call->params.list.all && !call->client->admin)
		r = error_set(&err, ERR_NOT_AUTHORIZED, 0,
			      "everybody's jobs are shown to administrators only");
	spawnlink_op_init(&op, OP_JOB_LIST);
	op.conn = call->client->number;
	if (r == 0) {
		listing->call = call;
		r = spawnlink_ask(&call->broker->link, &op, on_listed, listing, NULL, &err);
	}
	if (r < 0) {
		free(listing);
		call_error(call, &err);
	}
}

static void do_inspect(struct call *call)
{
	const struct inspect_params *params = &call->params.inspect;
	struct error err = ERROR_INIT;
	union method_result result;
	struct wait_result exited;
	struct job *job;

	if (jobs_find(call->broker, params->job) == NULL && params->cookie == NULL) {
		/* Not ours: fsboxd may know it, and shows what it knows to whom it may. */
		do_list(call);
		return;
	}
	if (jobs_find(call->broker, params->job) == NULL) {
		adopted_ask(call, params->job);
		return;
	}
	if (jobs_find_for(call->broker, params->job, params->cookie, &job, &err) < 0) {
		call_error(call, &err);
		return;
	}
	/* Lent to the reply, not released with it; but for what is made now. */
	result.inspect = job->facts;
	if (job->built != NULL && (spawnfacts_mounts(job->built, &result.inspect, &err) < 0 ||
				   spawnfacts_hosts(job->built, &result.inspect.hosts, &err) < 0))
		log_failure(&err, "inspect job %llu", (unsigned long long)job->id);
	result.inspect.planted = job->guard.planted;
	result.inspect.repaired = job->guard.repaired;
	if (job->phase == JOB_PHASE_ENDED) {
		memset(&exited, 0, sizeof(exited));
		wait_result_from_record(&exited, job->id, &job->exited);
		guardnews_fill(&job->guard, &exited);
		result.inspect.exited = &exited;
	}
	call_result(call, &result);
	string_list_deinit(&result.inspect.masks);
	string_list_deinit(&result.inspect.placeholders);
	string_list_deinit(&result.inspect.pins);
	string_list_deinit(&result.inspect.watched);
	netlists_show_free(result.inspect.hosts);
	if (job->phase == JOB_PHASE_ENDED)
		wait_result_deinit(&exited);
}

/* ---- the table -------------------------------------------------------------------------- */

static const struct {
	enum method method;
	unsigned states; /* enum client_state */
	void (*run)(struct call *call);
} handlers[METHOD_COUNT] = {
	[METHOD_HELLO] = { METHOD_HELLO, CLIENT_NEW, do_hello },
	[METHOD_SPAWN] = { METHOD_SPAWN, CLIENT_READY, spawn_begin },
	[METHOD_WAIT] = { METHOD_WAIT, CLIENT_READY, do_wait },
	[METHOD_SIGNAL] = { METHOD_SIGNAL, CLIENT_READY, do_signal },
	[METHOD_LIST] = { METHOD_LIST, CLIENT_READY, do_list },
	[METHOD_INSPECT] = { METHOD_INSPECT, CLIENT_READY, do_inspect },
	[METHOD_STATUS] = { METHOD_STATUS, CLIENT_READY, do_status },
	[METHOD_DETECT] = { METHOD_DETECT, CLIENT_READY, do_detect },
	[METHOD_POLICY] = { METHOD_POLICY, CLIENT_READY, policyreq_policy },
	[METHOD_WHY] = { METHOD_WHY, CLIENT_READY, policyreq_why },
	[METHOD_EVENTS] = { METHOD_EVENTS, CLIENT_READY, grantreq_events },
	[METHOD_GRANT_CREATE] = { METHOD_GRANT_CREATE, CLIENT_READY, grantreq_create },
	[METHOD_GRANT_LIST] = { METHOD_GRANT_LIST, CLIENT_READY, grantreq_list },
	[METHOD_GRANT_REVOKE] = { METHOD_GRANT_REVOKE, CLIENT_READY, grantreq_revoke },
	[METHOD_LEDGER] = { METHOD_LEDGER, CLIENT_READY, leftovers_begin },
};

int handler_check(const struct client *client, enum method method, struct error *err)
{
	if (method <= METHOD_NONE || method >= METHOD_COUNT || handlers[method].run == NULL)
		return error_set(err, ERR_UNKNOWN_METHOD, 0, "this method is not known here");
	if (handlers[method].states & (unsigned)client->state)
		return 0;
	if (client->state == CLIENT_NEW)
		return error_set(err, ERR_INVALID, 0, "'%s' before 'hello'", method_name(method));
	return error_set(err, ERR_INVALID, 0, "'%s' again", method_name(method));
}

void handler_run(struct call *call)
{
	handlers[call->method].run(call);
}
