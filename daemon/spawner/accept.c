/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/spawner/accept.h"

#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/scope.h"
#include "daemon/log.h"
#include "daemon/spawner/brokerlink.h"
#include "daemon/spawner/listener.h"
#include "daemon/spawner/refusal.h"
#include "daemon/spawner/spawner.h"

#define ACCEPTS_PER_TURN 32

/* How long accepting rests when descriptors or memory are short. */
#define PAUSE_MS 200

/* Refusals that are recorded in a second; the rest is only counted. */
#define REFUSALS_RECORDED 20

static void on_connection(uint32_t events, void *arg);

/* Why a peer is not served. */
struct refusal {
	struct error why;
	const char *stage;
	char hint[512];
};

static void on_pause_over(void *arg)
{
	struct spawner *spawner = arg;

	if (closing_full(&spawner->closing)) {
		loop_arm(&spawner->loop, &spawner->accept_timer, PAUSE_MS, on_pause_over, spawner);
		return;
	}
	(void)loop_change(&spawner->loop, &spawner->listen_source, EPOLLIN, NULL);
}

/* Level-triggered: what we cannot accept would wake us without end. */
static void pause_accepting(struct spawner *spawner)
{
	(void)loop_change(&spawner->loop, &spawner->listen_source, 0, NULL);
	loop_arm(&spawner->loop, &spawner->accept_timer, PAUSE_MS, on_pause_over, spawner);
}

static bool may_record(struct spawner *spawner)
{
	uint64_t second = loop_now_ms() / 1000;

	if (second != spawner->refusal_second) {
		spawner->refusal_second = second;
		spawner->refusal_tokens = REFUSALS_RECORDED;
	}
	if (spawner->refusal_tokens == 0)
		return false;
	spawner->refusal_tokens--;
	return true;
}

static void record_refusal(struct spawner *spawner, uid_t uid, pid_t pid,
			   const struct refusal *refusal)
{
	struct event_message event = { .uid = uid, .pid = pid, .error_kind = refusal->why.kind };

	spawner->refused_peers++;
	if (!may_record(spawner))
		return;
	if (pid > 0)
		log_write(LOG_INFO, "refused process %d of user %u: %s", (int)pid, uid,
			  refusal->why.message);
	else
		log_write(LOG_INFO, "refused a connection: %s", refusal->why.message);
	(void)snprintf(event.detail, sizeof(event.detail), "%s", refusal->why.message);
	recorderlink_send(&spawner->recorder, EVENT_PEER_REFUSED, &event);
}

/* Say why and close; whoever does not read it in time never will. FD is consumed. */
static void refuse_take(struct spawner *spawner, int fd, uid_t uid, pid_t pid,
			const struct refusal *refusal)
{
	char frame[REFUSAL_BYTES];
	size_t size = refusal_frame(frame, refusal->why.kind, refusal->why.message, refusal->stage,
				    refusal->hint[0] ? refusal->hint : NULL);

	record_refusal(spawner, uid, pid, refusal);
	if (send(fd, frame, size, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 && errno != EPIPE)
		log_write(LOG_DEBUG, "a refusal could not be sent");
	closing_take_stream(&spawner->closing, fd, uid);
}

/* ---- may it? ------------------------------------------------------------------------- */

static int check_uid(const struct spawner *spawner, uid_t uid, struct refusal *refusal)
{
	struct error *err = &refusal->why;

	refusal->stage = "user";
	if (uid == FSBOX_RECORDER_UID || uid == FSBOX_EGRESS_UID)
		return error_set(err, ERR_NOT_AUTHORIZED, 0, "user %u is a role of fsbox's own",
				 uid);
	switch (spawner->mode) {
	case MODE_SYSTEM:
		if (uid != 0 || spawner->config.host.root_peers == ROOT_PEERS_SERVE)
			return 0;
		(void)snprintf(
			refusal->hint, sizeof(refusal->hint),
			"use an ordinary user, or set 'root-peers = serve' in %s/fsboxd.conf",
			spawner->paths.config_dir);
		return error_set(err, ERR_NOT_AUTHORIZED, 0, "root is not served here");
	case MODE_USER:
	case MODE_ROOT:
		if (uid == geteuid())
			return 0;
		return error_set(err, ERR_NOT_AUTHORIZED, 0,
				 "this fsboxd serves user %u alone, not user %u", geteuid(), uid);
	}
	return error_set(err, ERR_NOT_AUTHORIZED, 0, "not served");
}

static int check_confinement(const struct spawner *spawner, const struct peer *peer,
			     struct refusal *refusal)
{
	uid_t uid = peer->identity.uid;
	enum peer_check check =
		peer_confinement(peer, &spawner->home, config_admits(&spawner->config, uid));

	if (check == PEER_FREE)
		return 0;
	refusal->stage = peer_check_name(check);
	if (check == PEER_GONE)
		return error_set(&refusal->why, ERR_NOT_AUTHORIZED, 0,
				 "the connecting process is gone");
	if (peer_check_admissible(check))
		(void)snprintf(refusal->hint, sizeof(refusal->hint),
			       "'admit-confined-uid = %u' in %s/fsboxd.conf admits this user", uid,
			       spawner->mode == MODE_USER ? spawner->paths.user_config_dir
							  : spawner->paths.config_dir);
	else
		(void)snprintf(refusal->hint, sizeof(refusal->hint),
			       "run the client outside of its container or sandbox");
	return error_set(&refusal->why, ERR_CONFINED_PEER, 0, "the caller is confined: %s",
			 peer_check_name(check));
}

/* ---- accepting ----------------------------------------------------------------------- */

static int admit(struct spawner *spawner, int *fd, struct peer *peer, struct refusal *refusal)
{
	struct brokerlink *link = NULL;
	bool admin = false;
	int r = 0;

	if ((r = check_uid(spawner, peer->identity.uid, refusal)) < 0 ||
	    (r = check_confinement(spawner, peer, refusal)) < 0)
		return r;
	refusal->stage = NULL;
	admin = spawner->mode == MODE_SYSTEM && config_is_admin(&spawner->config, &peer->identity);
	if ((r = brokerlink_get(spawner, &peer->identity, &link, &refusal->why)) < 0)
		return r;
	return brokerlink_add_conn(link, fd, peer, admin, &refusal->why);
}

static void announce(struct spawner *spawner)
{
	struct event_message event = { .uid = geteuid(), .pid = getpid() };

	/* Not before there is anything to record: an unused fsboxd has no recorder. */
	if (spawner->announced)
		return;
	spawner->announced = true;
	recorderlink_send(&spawner->recorder, EVENT_DAEMON_STARTED, &event);
}

static void handle_connection(struct spawner *spawner, int accepted)
{
	AUTO(peer_deinit) struct peer peer = PEER_INIT;
	struct refusal refusal = { .why = ERROR_INIT };
	int fd = accepted;

	announce(spawner);
	if (peer_read(fd, &peer, &refusal.why) < 0) {
		refusal.stage = "credentials";
		refuse_take(spawner, fd, (uid_t)-1, 0, &refusal);
		return;
	}
	if (admit(spawner, &fd, &peer, &refusal) < 0)
		refuse_take(spawner, fd, peer.identity.uid, peer.pid, &refusal);
	spawner_touch(spawner);
}

static void on_connection(uint32_t events, void *arg)
{
	struct spawner *spawner = arg;

	(void)events;
	for (int turn = 0; turn < ACCEPTS_PER_TURN; turn++) {
		int fd = -1;

		if (closing_full(&spawner->closing)) {
			pause_accepting(spawner);
			return;
		}
		fd = accept4(spawner->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (fd >= 0) {
			(void)listener_note_senders(fd,
						    NULL); /* without it its frames are refused */
			handle_connection(spawner, fd);
			continue;
		}
		if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
			log_write(LOG_ERROR, "cannot accept: out of descriptors or memory");
			pause_accepting(spawner);
		}
		return;
	}
}

int accept_begin(struct spawner *spawner, struct error *err)
{
	return loop_add(&spawner->loop, &spawner->listen_source, spawner->listen_fd, EPOLLIN,
			on_connection, spawner, err);
}

void accept_end(struct spawner *spawner)
{
	loop_disarm(&spawner->loop, &spawner->accept_timer);
	loop_remove(&spawner->loop, &spawner->listen_source);
}
