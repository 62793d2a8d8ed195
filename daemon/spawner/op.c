/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/spawner/op.h"

#include <string.h>

#include "common/scope.h"
#include "daemon/spawner/brokerlink.h"
#include "daemon/spawner/job.h"
#include "daemon/spawner/jobopen.h"
#include "daemon/spawner/jobproc.h"
#include "daemon/spawner/opgrant.h"
#include "daemon/spawner/spawner.h"

enum op_flags {
	OP_NEEDS_CONN = 1 << 0, /* names a living connection of this broker */
	OP_OWN_CONN = 1 << 1,   /* the one that the job was opened for */
	OP_ADMIN_TOO = 1 << 2,  /* an administrator's connection reaches everybody's jobs */
	OP_TELLS_ONLY = 1 << 3, /* never answered, not even by an error */
	OP_DONE_AFTER = 1 << 4, /* answered by LINK_DONE */
};

#define IN(state) (1u << (state))
#define IN_NONE 0u /* names no job */

/* One request: what it named, found and permitted. */
struct request {
	struct brokerlink *link;
	const struct op_message *message;
	const struct conn *conn;
	struct job *job;
};

typedef int op_fn(const struct request *request, struct error *err);

static int op_ready(const struct request *request, struct error *err)
{
	(void)err;
	request->link->ready = true;
	return 0;
}

static int op_conn_closed(const struct request *request, struct error *err)
{
	(void)err;
	brokerlink_close_conn(request->link, request->message->conn);
	spawner_touch(request->link->spawner);
	return 0;
}

static int op_job_open(const struct request *request, struct error *err)
{
	return jobopen(request->link, request->conn, request->message->seq, err);
}

static int op_job_start(const struct request *request, struct error *err)
{
	(void)err;
	job_start(request->job, request->conn, &request->message->u.start);
	return 0;
}

static int op_job_abandon(const struct request *request, struct error *err)
{
	(void)err;
	job_abandon(request->job);
	return 0;
}

static int op_job_confirm(const struct request *request, struct error *err)
{
	(void)err;
	job_confirm(request->job);
	return 0;
}

static int op_job_signal(const struct request *request, struct error *err)
{
	return job_signal(request->job, (int)request->message->u.signal.signo, err);
}

static void fill_entry(struct link_job_entry *entry, const struct job *job)
{
	entry->uid = job->identity.uid;
	entry->pid = job->pid1;
	entry->state = job->state;
	entry->engine = job->start.engine;
	entry->room = job->start.room;
	entry->detached = job->start.detached;
	entry->started_ms = job->started_real_ms;
	memcpy(entry->profile, job->start.profile, sizeof(entry->profile));
	memcpy(entry->command, job->start.command, sizeof(entry->command));
	memcpy(entry->label, job->start.label, sizeof(entry->label));
}

static void send_entry(const struct request *request, const struct job *job)
{
	struct link_message message;

	link_message_init(&message, LINK_JOB_ENTRY, request->message->seq, 0, job->id);
	fill_entry(&message.u.entry, job);
	brokerlink_send_take(request->link, &message, NULL, 0);
}

static int op_job_list(const struct request *request, struct error *err)
{
	const struct spawner *spawner = request->link->spawner;

	(void)err;
	for (size_t i = 0; i < SPAWNER_JOB_BUCKETS; i++)
		for (const struct job *job = spawner->jobs[i]; job; job = job->next)
			if (job->state != JOB_OPEN &&
			    (job->identity.uid == request->link->identity.uid ||
			     request->conn->admin))
				send_entry(request, job);
	return 0;
}

/* An ended job is found as well, for a while; only its own user's. */
static int op_job_find(const struct request *request, struct error *err)
{
	struct spawner *spawner = request->link->spawner;
	uid_t uid = request->link->identity.uid;
	uint64_t id = request->message->job;
	const struct ended *ended = ended_find(spawner, uid, id);
	struct job *job = job_find(spawner, id);
	struct link_message message;
	struct link_job_found *found = &message.u.found;

	if (job && job->identity.uid != uid && !request->conn->admin)
		job = NULL;
	/* Who asks for it was told that it runs: its page is about to say so to us. */
	if (job && !job->started && job->adopted)
		return error_set(err, ERR_UNREACHABLE, 0, "job %llu is being taken over; ask again",
				 (unsigned long long)id);
	if (job && !job->started) {
		jobproc_catch_up(job);
		job = job_find(spawner, id);
		ended = ended_find(spawner, uid, id);
	}
	if (job && !job->started)
		job = NULL;
	if (!job && !ended)
		return error_set(err, ERR_JOB_UNKNOWN, 0, "no job %llu of yours is known",
				 (unsigned long long)id);
	link_message_init(&message, LINK_JOB_FOUND, request->message->seq, 0, id);
	found->is_over = ended != NULL;
	if (ended) {
		found->entry.uid = uid;
		found->entry.state = JOB_ENDING;
		found->ended = ended->record;
		found->repaired = ended->repaired;
		memcpy(found->cookie_hash, ended->cookie_hash, sizeof(found->cookie_hash));
	} else {
		fill_entry(&found->entry, job);
		found->limits = job->start.limits;
		found->rules = job->start.rules;
		found->repaired = job->guarded.repaired;
		memcpy(found->policy_digest, job->start.policy_digest,
		       sizeof(found->policy_digest));
		memcpy(found->cookie_hash, job->start.cookie_hash, sizeof(found->cookie_hash));
		job->asked |= job->broker != request->link;
	}
	brokerlink_send_take(request->link, &message, NULL, 0);
	return 0;
}

static int op_status(const struct request *request, struct error *err)
{
	const struct spawner *spawner = request->link->spawner;
	uid_t uid = request->link->identity.uid;
	struct link_message message;

	(void)err;
	link_message_init(&message, LINK_STATUS, request->message->seq, 0, 0);
	message.u.status = (struct link_status){
		.started_ms = spawner->started_ms,
		.brokers = (uint32_t)brokerlinks_count(spawner),
		.connections = (uint32_t)brokerlinks_conn_count(spawner),
		.jobs = (uint32_t)spawner->job_count,
		.jobs_of_uid = quota_held(&spawner->quota, uid, QUOTA_JOBS),
		.spawns = spawner->spawns,
		.failures = spawner->failures,
		.refused_peers = spawner->refused_peers,
		.placeholders = (uint32_t)ledger_count(spawner->ledger),
		.stuck = quota_held(&spawner->quota, uid, QUOTA_STUCK),
		.recorder_up = recorderlink_up(&spawner->recorder),
		.engines = spawner->engines,
		.zygotes_ready = spawner->zygotes.ready,
		.zygotes_used = spawner->zygotes.used,
		.zygotes_refused = spawner->zygotes.refused,
		.zygotes_expired = spawner->zygotes.expired,
	};
	brokerlink_send_take(request->link, &message, NULL, 0);
	return 0;
}

static int op_events(const struct request *request, struct error *err)
{
	const struct op_events *wish = &request->message->u.events;
	const struct recorder_control control = {
		.size = sizeof(control),
		.uid = request->link->identity.uid,
		.job = wish->about_job,
		.everybody = wish->everybody,
		.follow = wish->follow,
	};
	struct link_message message;
	int fd = -1;
	int r = 0;

	if (wish->everybody != 0 && !request->conn->admin)
		return error_set(err, ERR_NOT_AUTHORIZED, 0,
				 "everybody's events are shown to administrators only");
	r = recorderlink_read(&request->link->spawner->recorder, &control, &fd, err);
	if (r < 0)
		return r;
	link_message_init(&message, LINK_EVENTS, request->message->seq, request->message->conn, 0);
	brokerlink_send_take(request->link, &message, &fd, 1);
	return 0;
}

static int op_grant_create(const struct request *request, struct error *err)
{
	return opgrant_create(request->link, request->conn, request->message, err);
}

static int op_grant_list(const struct request *request, struct error *err)
{
	return opgrant_list(request->link, request->conn, request->message, err);
}

static int op_grant_revoke(const struct request *request, struct error *err)
{
	return opgrant_revoke(request->link, request->conn, request->message, err);
}

/* What the ledger knows of the user's placeholders, or of everybody's; what is left over is tried again. */
static int op_ledger(const struct request *request, struct error *err)
{
	struct spawner *spawner = request->link->spawner;
	const struct ledger_replay *replay = ledger_replayed(spawner->ledger);
	const struct op_ledger *asked = &request->message->u.ledger;
	uid_t uid = request->link->identity.uid;
	uint32_t entries = 0;
	struct link_message message;

	if (asked->all && !request->conn->admin)
		return error_set(err, ERR_NOT_AUTHORIZED, 0,
				 "everybody's placeholders are for administrators");
	if (asked->repair && asked->all)
		sweep_others(spawner, (uid_t)-1, true);
	else if (asked->repair)
		sweep_start(spawner, 0, uid, true, NULL, NULL);
	for (size_t i = 0; i < ledger_count(spawner->ledger); i++) {
		struct ledger_view view = ledger_view(spawner->ledger, i);
		struct link_ledger_entry *entry = &message.u.placeholder;

		if ((view.uid != uid && !asked->all) || entries++ >= LIMIT_LEDGER_SHOWN)
			continue;
		link_message_init(&message, LINK_LEDGER_ENTRY, request->message->seq, 0, 0);
		entry->uid = view.uid;
		entry->made = view.made;
		entry->kept = view.kept;
		entry->jobs = (uint32_t)view.jobs;
		(void)snprintf(entry->path, sizeof(entry->path), "%s", view.path);
		brokerlink_send_take(request->link, &message, NULL, 0);
	}
	link_message_init(&message, LINK_LEDGER, request->message->seq, 0, 0);
	message.u.ledger.entries = entries;
	message.u.ledger.replayed = (uint32_t)replay->entries;
	message.u.ledger.damaged = (uint32_t)replay->damaged;
	memcpy(message.u.ledger.why, replay->why, sizeof(message.u.ledger.why));
	brokerlink_send_take(request->link, &message, NULL, 0);
	return 0;
}

/* @states  the job must be in one of them; IN_NONE: the operation names no job */
struct op_row {
	op_fn *fn;
	unsigned flags;
	unsigned states;
};

static const struct op_row op_rows[OP_KIND_COUNT] = {
	[OP_READY] = { op_ready, OP_TELLS_ONLY, IN_NONE },
	[OP_CONN_CLOSED] = { op_conn_closed, OP_TELLS_ONLY, IN_NONE },
	[OP_JOB_OPEN] = { op_job_open, OP_NEEDS_CONN, IN_NONE },
	[OP_JOB_START] = { op_job_start, OP_NEEDS_CONN | OP_OWN_CONN, IN(JOB_OPEN) },
	[OP_JOB_ABANDON] = { op_job_abandon, OP_TELLS_ONLY,
			     IN(JOB_OPEN) | IN(JOB_STARTING) | IN(JOB_ENDING) },
	[OP_JOB_SIGNAL] = { op_job_signal, OP_ADMIN_TOO | OP_DONE_AFTER,
			    IN(JOB_STARTING) | IN(JOB_RUNNING) | IN(JOB_ENDING) },
	[OP_JOB_LIST] = { op_job_list, OP_NEEDS_CONN | OP_DONE_AFTER, IN_NONE },
	[OP_STATUS] = { op_status, 0, IN_NONE },
	[OP_JOB_FIND] = { op_job_find, OP_NEEDS_CONN, IN_NONE },
	[OP_EVENTS] = { op_events, OP_NEEDS_CONN, IN_NONE },
	[OP_GRANT_CREATE] = { op_grant_create, OP_NEEDS_CONN, IN_NONE },
	[OP_GRANT_LIST] = { op_grant_list, OP_NEEDS_CONN | OP_DONE_AFTER, IN_NONE },
	[OP_GRANT_REVOKE] = { op_grant_revoke, OP_NEEDS_CONN | OP_DONE_AFTER, IN_NONE },
	/* Ending: its template did not fit, and it may begin again. */
	[OP_JOB_CONFIRM] = { op_job_confirm, OP_TELLS_ONLY, IN(JOB_STARTING) | IN(JOB_ENDING) },
	[OP_LEDGER] = { op_ledger, OP_NEEDS_CONN, IN_NONE },
};

/* Somebody else's job is as unknown as one that does not exist. */
static int find_job(struct request *request, const struct op_row *row, struct error *err)
{
	struct job *job = job_find(request->link->spawner, request->message->job);
	bool admin = (row->flags & OP_ADMIN_TOO) != 0 && request->conn && request->conn->admin;

	if (!job || (job->identity.uid != request->link->identity.uid && !admin))
		return error_set(err, ERR_JOB_UNKNOWN, 0, "no job %llu of yours runs",
				 (unsigned long long)request->message->job);
	if ((row->states & IN(job->state)) == 0)
		return error_set(err, ERR_INVALID, 0, "job %llu is %s", (unsigned long long)job->id,
				 job_state_name(job->state));
	if ((row->flags & OP_OWN_CONN) != 0 &&
	    (job->broker != request->link || job->conn != request->message->conn))
		return error_set(err, ERR_NOT_AUTHORIZED, 0,
				 "job %llu was opened for another connection",
				 (unsigned long long)job->id);
	request->job = job;
	return 0;
}

static int permit(struct request *request, const struct op_row *row, struct error *err)
{
	request->conn = brokerlink_conn(request->link, request->message->conn);
	if ((row->flags & OP_NEEDS_CONN) != 0 && !request->conn)
		return error_set(err, ERR_NOT_AUTHORIZED, 0, "no connection %llu of yours is open",
				 (unsigned long long)request->message->conn);
	return row->states == IN_NONE ? 0 : find_job(request, row, err);
}

void op_handle(struct brokerlink *link, const struct op_message *message)
{
	const struct op_row *row = &op_rows[message->kind];
	struct request request = { .link = link, .message = message };
	struct error err = ERROR_INIT;
	struct link_message done;
	int r = jobopen_claim(link, message->job, message->conn, &err);

	if (r == 0)
		r = permit(&request, row, &err);
	if (r == 0)
		r = row->fn(&request, &err);
	if ((row->flags & OP_TELLS_ONLY) != 0)
		return;
	if (r < 0) {
		brokerlink_send_error(link, message->seq, message->job, &err);
		return;
	}
	if ((row->flags & OP_DONE_AFTER) != 0) {
		link_message_init(&done, LINK_DONE, message->seq, 0, message->job);
		brokerlink_send_take(link, &done, NULL, 0);
	}
}
