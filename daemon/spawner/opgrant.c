/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/spawner/opgrant.h"

#include <stdio.h>
#include <string.h>

#include "common/plan.h"
#include "common/plan_codec.h"
#include "common/policy.h"
#include "common/scope.h"
#include "common/sha256.h"
#include "daemon/spawner/brokerlink.h"
#include "daemon/spawner/grant.h"
#include "daemon/spawner/job.h"
#include "daemon/spawner/spawner.h"

/* An event about a grant; its uid is of whom it is for. */
static void record(struct spawner *spawner, enum event_kind kind, uint64_t id,
		   const struct grant_terms *terms, uint64_t job, const char *detail)
{
	struct event_message event = { .grant = id, .uid = terms->uid, .job = job };

	(void)snprintf(event.command, sizeof(event.command), "%s", terms->command);
	(void)snprintf(event.detail, sizeof(event.detail), "%s", detail);
	(void)recorderlink_send(&spawner->recorder, kind, &event);
}

/* By the identity that the kernel gave, in the mode in which anybody else than the user decides. */
static int check_admin(const struct spawner *spawner, const struct conn *conn, struct error *err)
{
	if (spawner->mode != MODE_SYSTEM)
		return error_set(err, ERR_NOT_AUTHORIZED, 0, "there are no grants in mode '%s'",
				 daemon_mode_name(spawner->mode));
	if (!config_is_admin(&spawner->config, &conn->peer.identity))
		return error_set(err, ERR_NOT_AUTHORIZED, 0, "grants are for administrators");
	return 0;
}

int opgrant_create(struct brokerlink *link, const struct conn *conn,
		   const struct op_message *message, struct error *err)
{
	struct spawner *spawner = link->spawner;
	const struct grant_terms *terms = &message->u.grant;
	struct link_message reply;
	char by[64];
	int r = check_admin(spawner, conn, err);

	if (r < 0)
		return r;
	if (terms->uid == FSBOX_RECORDER_UID || terms->uid == FSBOX_EGRESS_UID)
		return error_set(err, ERR_NOT_AUTHORIZED, 0, "fsbox's own users get no grants");
	link_message_init(&reply, LINK_GRANT, message->seq, message->conn, 0);
	r = grants_create(&spawner->grants, conn->peer.identity.uid, terms, spawner_real_ms(),
			  &reply.u.grant, err);
	if (r < 0)
		return r;
	(void)snprintf(by, sizeof(by), "by user %u, network '%s'", conn->peer.identity.uid,
		       net_mode_name((enum net_mode)terms->net));
	record(spawner, EVENT_GRANT_CREATED, reply.u.grant.id, terms, 0, by);
	brokerlink_send_take(link, &reply, NULL, 0);
	explicit_bzero(&reply.u.grant, sizeof(reply.u.grant));
	return 0;
}

int opgrant_list(struct brokerlink *link, const struct conn *conn, const struct op_message *message,
		 struct error *err)
{
	uint64_t now_ms = spawner_real_ms();
	struct link_message reply;
	int r = check_admin(link->spawner, conn, err);

	if (r < 0)
		return r;
	for (const struct grant *grant = link->spawner->grants.first; grant; grant = grant->next) {
		link_message_init(&reply, LINK_GRANT_ENTRY, message->seq, message->conn, 0);
		reply.u.grant_entry = (struct link_grant_entry){
			.id = grant->id,
			.created_ms = grant->created_ms,
			.creator = grant->creator,
			.state = grant_state_at(grant, now_ms),
			.used_by = grant->job,
			.terms = grant->terms,
		};
		brokerlink_send_take(link, &reply, NULL, 0);
	}
	return 0;
}

int opgrant_revoke(struct brokerlink *link, const struct conn *conn,
		   const struct op_message *message, struct error *err)
{
	struct spawner *spawner = link->spawner;
	const struct grant *grant = NULL;
	char by[64];
	int r = check_admin(spawner, conn, err);

	if (r < 0)
		return r;
	r = grants_revoke(&spawner->grants, message->u.grant_id.id, spawner_real_ms(), &grant, err);
	if (r < 0)
		return r;
	(void)snprintf(by, sizeof(by), "by user %u", conn->peer.identity.uid);
	record(spawner, EVENT_GRANT_REVOKED, grant->id, &grant->terms, grant->job, by);
	return 0;
}

static int spend(struct job *job, const void *bytes, size_t byte_count, enum net_mode net,
		 struct error *err)
{
	struct spawner *spawner = job->spawner;
	struct grant_terms nobody = { .uid = job->identity.uid };
	uint8_t plan_hash[HASH_BYTES];
	const struct grant *grant = NULL;
	struct grant_use use = {
		.uid = job->identity.uid,
		.job = job->id,
		.now_ms = spawner_real_ms(),
		.net = net,
		.plan_hash = plan_hash,
		.claim = &job->start.grant,
	};
	struct sha256 sha;
	int r = 0;

	sha256_init(&sha);
	sha256_add(&sha, bytes, byte_count);
	sha256_finish(&sha, plan_hash);
	r = grants_reserve(&spawner->grants, &use, &grant, err);
	explicit_bzero(job->start.grant.token, sizeof(job->start.grant.token));
	if (r < 0) {
		memcpy(nobody.command, job->start.command, sizeof(nobody.command));
		record(spawner, EVENT_GRANT_REFUSED, 0, &nobody, job->id, err ? err->message : "");
		return r;
	}
	job->grant = grant->id;
	job->terms = grant->terms;
	record(spawner, EVENT_GRANT_USED, grant->id, &grant->terms, job->id, "");
	return 0;
}

int opgrant_use(struct job *job, const void *bytes, size_t plan_bytes, size_t net_bytes,
		struct error *err)
{
	AUTO(plan_deinit) struct plan plan = PLAN_INIT;
	int r = 0;

	if (job->start.grant.has_grant == 0 || job->grant != 0)
		return 0;
	r = plan_decode(&plan, bytes, plan_bytes, err);
	return r < 0 ? r : spend(job, bytes, plan_bytes + net_bytes, plan.net, err);
}

enum net_mode opgrant_net(const struct job *job)
{
	return job->grant != 0 ? (enum net_mode)job->terms.net : NET_NONE;
}
