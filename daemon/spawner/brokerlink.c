/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/spawner/brokerlink.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/scope.h"
#include "daemon/log.h"
#include "daemon/spawner/brokerproc.h"
#include "daemon/spawner/job.h"
#include "daemon/spawner/jobopen.h"
#include "daemon/spawner/op.h"
#include "daemon/spawner/spawner.h"
#include "daemon/spawner/stray.h"

#define RESTART_FIRST_MS 100
#define RESTART_LONGEST_MS 10000

/* A broker that lived so long has failed for a new reason. */
#define STEADY_MS 10000

/* Messages of one broker that are handled before the others have their turn. */
#define OPS_PER_TURN 32

/* With so much unread by it, a broker's requests wait: answers cannot pile up. */
#define QUEUE_PAUSE_BYTES 65536

/* A message that the broker has not taken yet. */
struct brokerlink_item {
	struct brokerlink_item *next; /* brokerlink.first, oldest first */
	int fds[LINK_MESSAGE_FDS];
	size_t fd_count;
	struct link_message message; /* only message.size bytes of it */
};

static void start(struct brokerlink *link);
static void down(struct brokerlink *link, bool failed, const char *why);
static void look_for_idleness(struct brokerlink *link);
static void on_request(uint32_t events, void *arg);

/* ---- records ------------------------------------------------------------------------- */

static void record_free(struct brokerlink *link)
{
	struct spawner *spawner = link->spawner;
	struct brokerlink **at = &spawner->brokers;

	while (*at != link)
		at = &(*at)->next;
	*at = link->next;
	loop_disarm(&spawner->loop, &link->idle);
	loop_disarm(&spawner->loop, &link->restart);
	ended_deinit(link);
	quota_give(&spawner->quota, link->identity.uid, QUOTA_BROKERS);
	free(link);
}

int brokerlink_get(struct spawner *spawner, const struct identity *identity,
		   struct brokerlink **ret_link, struct error *err)
{
	struct brokerlink *link = NULL;
	int r = 0;

	for (link = spawner->brokers; link; link = link->next) {
		if (identity_equal(&link->identity, identity)) {
			*ret_link = link;
			return 0;
		}
	}
	r = quota_take(&spawner->quota, identity->uid, QUOTA_BROKERS, err);
	if (r < 0)
		return r;
	link = calloc(1, sizeof(*link));
	if (!link) {
		quota_give(&spawner->quota, identity->uid, QUOTA_BROKERS);
		return error_set(err, ERR_NOMEM, 0, "serve another user");
	}
	link->spawner = spawner;
	link->identity = *identity;
	link->child = (struct child)CHILD_INIT;
	link->link_fd = -1;
	link->request_fd = -1;
	link->link_source = (struct loop_source)LOOP_SOURCE_INIT;
	link->request_source = (struct loop_source)LOOP_SOURCE_INIT;
	link->next = spawner->brokers;
	spawner->brokers = link;
	look_for_idleness(link);
	*ret_link = link;
	return 0;
}

/* ---- connections --------------------------------------------------------------------- */

struct conn *brokerlink_conn(const struct brokerlink *link, uint64_t id)
{
	for (struct conn *conn = link->conns; conn; conn = conn->next)
		if (conn->id == id)
			return conn;
	return NULL;
}

static void conn_free(struct brokerlink *link, struct conn **at)
{
	struct conn *conn = *at;

	*at = conn->next;
	link->conn_count--;
	quota_give(&link->spawner->quota, link->identity.uid, QUOTA_CONNECTIONS);
	peer_deinit(&conn->peer);
	free(conn);
}

void brokerlink_close_conn(struct brokerlink *link, uint64_t id)
{
	struct conn **at = &link->conns;

	while (*at && (*at)->id != id)
		at = &(*at)->next;
	if (*at)
		conn_free(link, at);
	look_for_idleness(link);
}

static int conn_new(struct brokerlink *link, struct conn **ret_conn, struct error *err)
{
	struct conn *conn = NULL;
	int r = quota_take(&link->spawner->quota, link->identity.uid, QUOTA_CONNECTIONS, err);

	if (r < 0)
		return r;
	conn = calloc(1, sizeof(*conn));
	if (!conn) {
		quota_give(&link->spawner->quota, link->identity.uid, QUOTA_CONNECTIONS);
		return error_set(err, ERR_NOMEM, 0, "keep a connection");
	}
	conn->id = ++link->spawner->last_conn;
	conn->next = link->conns;
	link->conns = conn;
	link->conn_count++;
	*ret_conn = conn;
	return 0;
}

int brokerlink_add_conn(struct brokerlink *link, int *fd, struct peer *peer, bool admin,
			struct error *err)
{
	AUTO(auto_close) int pidfd = fcntl(peer->pidfd, F_DUPFD_CLOEXEC, 0);
	struct link_message message;
	struct conn *conn = NULL;
	int r = 0;

	if (pidfd < 0)
		return error_set(err, ERR_SYSTEM, errno, "dup");
	if ((r = conn_new(link, &conn, err)) < 0)
		return r;
	conn->peer = *peer;
	conn->admin = admin;
	*peer = (struct peer)PEER_INIT;

	link_message_init(&message, LINK_CONN, 0, conn->id, 0);
	message.u.conn = (struct link_conn){
		.pid = conn->peer.pid,
		.uid = conn->peer.identity.uid,
		.gid = conn->peer.identity.gid,
		.admin = admin,
		.start_time = conn->peer.start_time,
	};
	loop_disarm(&link->spawner->loop, &link->idle);
	brokerlink_send_take(link, &message, (int[]){ steal_fd(fd), steal_fd(&pidfd) }, 2);

	/* Last: a broker that cannot be started takes what waits for it along. */
	if (link->link_fd < 0 && !link->restart.armed)
		start(link);
	return 0;
}

/* ---- sending ------------------------------------------------------------------------- */

void link_message_init(struct link_message *message, enum link_kind kind, uint64_t seq,
		       uint64_t conn, uint64_t job)
{
	memset(message, 0, sizeof(*message));
	message->size = (uint32_t)link_message_size(kind);
	message->kind = kind;
	message->seq = seq;
	message->conn = conn;
	message->job = job;
}

/* Descriptors that were not sent. A connection may hold what its client put into it. */
static void discard_fds(struct brokerlink *link, uint32_t kind, int *fds, size_t fd_count)
{
	size_t first = 0;

	if (kind == LINK_CONN && fd_count > 0) {
		closing_take_stream(&link->spawner->closing, fds[0], link->identity.uid);
		first = 1;
	}
	for (size_t i = first; i < fd_count; i++)
		(void)close(fds[i]);
}

static void item_drop(struct brokerlink *link, bool sent)
{
	struct brokerlink_item *item = link->first;

	link->first = item->next;
	if (!link->first)
		link->last = NULL;
	link->queued_bytes -= item->message.size;

	/*
	 * After sending these are no longer the only descriptors: a copy is on its way to the broker.
	 */
	if (sent)
		for (size_t i = 0; i < item->fd_count; i++)
			(void)close(item->fds[i]);
	else
		discard_fds(link, item->message.kind, item->fds, item->fd_count);
	free(item);
}

/* 1: sent; 0: not now; negative: never. */
static int item_send(const struct brokerlink *link, const struct brokerlink_item *item)
{
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(item->fds))];
	} control = { 0 };
	struct iovec bytes = { (void *)(uintptr_t)&item->message, item->message.size };
	struct msghdr header = { .msg_iov = &bytes, .msg_iovlen = 1 };

	if (item->fd_count > 0) {
		control.header.cmsg_level = SOL_SOCKET;
		control.header.cmsg_type = SCM_RIGHTS;
		control.header.cmsg_len = CMSG_LEN(item->fd_count * sizeof(int));
		memcpy(CMSG_DATA(&control.header), item->fds, item->fd_count * sizeof(int));
		header.msg_control = &control;
		header.msg_controllen = CMSG_SPACE(item->fd_count * sizeof(int));
	}
	if (sendmsg(link->link_fd, &header, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0)
		return 1;
	return errno == EAGAIN ? 0 : -errno;
}

static void on_stall(void *arg)
{
	down(arg, true, "does not read what it is sent");
}

/* Requests wait while answers do; the socket is watched for room while there is a queue. */
static void set_interest(struct brokerlink *link)
{
	bool pause = link->queued_bytes > QUEUE_PAUSE_BYTES;

	(void)loop_change(&link->spawner->loop, &link->link_source, link->first ? EPOLLOUT : 0,
			  NULL);
	(void)loop_change(&link->spawner->loop, &link->request_source, pause ? 0 : EPOLLIN, NULL);
}

static void flush(struct brokerlink *link)
{
	bool progress = false;
	int r = 1;

	while (link->first && link->link_fd >= 0 && r > 0) {
		r = item_send(link, link->first);
		if (r < 0) {
			down(link, true, "cannot be sent to");
			return;
		}
		if (r > 0) {
			item_drop(link, true);
			progress = true;
		}
	}
	if (link->link_fd < 0)
		return;
	if (!link->first)
		loop_disarm(&link->spawner->loop, &link->stall);
	else if (progress || !link->stall.armed)
		loop_arm(&link->spawner->loop, &link->stall, LIMIT_STALL_MS, on_stall, link);
	set_interest(link);
}

void brokerlink_send_take(struct brokerlink *link, const struct link_message *message, int *fds,
			  size_t fd_count)
{
	struct brokerlink_item *item = NULL;

	if ((link->link_fd < 0 && message->kind != LINK_CONN) || fd_count > LINK_MESSAGE_FDS) {
		discard_fds(link, message->kind, fds, fd_count);
		return;
	}
	item = malloc(offsetof(struct brokerlink_item, message) + message->size);
	if (!item || link->queued_bytes + message->size > LIMIT_LINK_QUEUE_BYTES) {
		free(item);
		discard_fds(link, message->kind, fds, fd_count);
		down(link, true, "leaves too much unread");
		return;
	}
	item->next = NULL;
	item->fd_count = fd_count;
	for (size_t i = 0; i < fd_count; i++)
		item->fds[i] = fds[i];
	memcpy(&item->message, message, message->size);
	if (link->last)
		link->last->next = item;
	else
		link->first = item;
	link->last = item;
	link->queued_bytes += message->size;
	if (link->link_fd >= 0)
		flush(link);
}

void brokerlinks_tell_others(struct brokerlink *link, const struct link_message *message)
{
	struct brokerlink *next = NULL;

	for (struct brokerlink *other = link->spawner->brokers; other; other = next) {
		next = other->next;
		if (other != link)
			brokerlink_send_take(other, message, NULL, 0);
	}
}

void brokerlink_send_error(struct brokerlink *link, uint64_t seq, uint64_t job,
			   const struct error *err)
{
	struct link_message message;

	link_message_init(&message, LINK_ERROR, seq, 0, job);
	failure_set(&message.u.failure, err, NULL);
	brokerlink_send_take(link, &message, NULL, 0);
}

/* ---- the process --------------------------------------------------------------------- */

static void on_restart(void *arg)
{
	struct brokerlink *link = arg;

	if (link->link_fd < 0 && link->first)
		start(link);
}

static void later(struct brokerlink *link)
{
	uint64_t pause_ms = RESTART_FIRST_MS;

	if (link->since_ms != 0 && loop_now_ms() - link->since_ms > STEADY_MS)
		link->failures = 0;
	for (unsigned i = 0; i < link->failures && pause_ms < RESTART_LONGEST_MS; i++)
		pause_ms *= 2;
	link->failures++;
	loop_arm(&link->spawner->loop, &link->restart, pause_ms, on_restart, link);
}

static void close_link(struct brokerlink *link)
{
	struct loop *loop = &link->spawner->loop;

	loop_remove(loop, &link->link_source);
	loop_remove(loop, &link->request_source);
	loop_disarm(loop, &link->stall);
	if (link->link_fd >= 0)
		(void)close(link->link_fd);
	if (link->request_fd >= 0)
		(void)close(link->request_fd);
	link->link_fd = -1;
	link->request_fd = -1;
	link->in_used = 0;
	link->ready = false;
	while (link->first)
		item_drop(link, false);
	while (link->conns)
		conn_free(link, &link->conns);
}

/* The broker is of no more use: everything that hangs on it ends, its jobs do not. */
static void down(struct brokerlink *link, bool failed, const char *why)
{
	struct event_message event = { .uid = link->identity.uid, .pid = link->child.pid };

	if (failed) {
		log_write(LOG_WARNING, "the broker of user %u %s", link->identity.uid, why);
		(void)snprintf(event.detail, sizeof(event.detail), "fsbox-broker: %s", why);
		recorderlink_send(&link->spawner->recorder, EVENT_ROLE_DIED, &event);
		later(link);
	}
	close_link(link);
	jobfiles_forget_broker(&link->spawner->jobfiles, link->child.pid);
	stray_take(link->spawner, &link->child, link->identity.uid, "fsbox-broker",
		   failed ? 0 : LIMIT_TEARDOWN_MS);
	jobs_broker_gone(link->spawner, link);
	zygotes_drop_user(link->spawner, link->identity.uid);
	jobopen_forget(link);
	look_for_idleness(link);
	spawner_touch(link->spawner);
}

static void on_exit_of_broker(int status, void *arg)
{
	char why[64];

	(void)snprintf(why, sizeof(why), "ended with wait status %d", status);
	down(arg, true, why);
}

static void on_link(uint32_t events, void *arg)
{
	struct brokerlink *link = arg;

	if ((events & (EPOLLHUP | EPOLLERR)) != 0)
		down(link, true, "closed its link");
	else
		flush(link);
}

static int send_config(struct brokerlink *link, struct error *err)
{
	struct brokerlink_item item = { .fd_count = 0 };
	int r = 0;

	link_message_init(&item.message, LINK_CONFIG, 0, 0, 0);
	r = brokerproc_config(link->spawner, &link->identity, &item.message.u.config, err);
	if (r < 0)
		return r;

	/* Before anything that waits, into a socket that is still empty. */
	if (item_send(link, &item) <= 0)
		return error_set(err, ERR_SYSTEM, 0, "the new broker's socket takes nothing");
	return 0;
}

static int start_process(struct brokerlink *link, struct error *err)
{
	struct loop *loop = &link->spawner->loop;
	int r = 0;

	r = brokerproc_start(link->spawner, &link->identity, &link->child, on_exit_of_broker, link,
			     &link->link_fd, &link->request_fd, err);
	if (r < 0)
		return r;
	jobfiles_note_broker(&link->spawner->jobfiles, link->child.pid, link->child.pidfd);
	link->since_ms = loop_now_ms();
	if ((r = loop_add(loop, &link->link_source, link->link_fd, 0, on_link, link, err)) < 0 ||
	    (r = loop_add(loop, &link->request_source, link->request_fd, EPOLLIN, on_request, link,
			  err)) < 0)
		return r;
	return send_config(link, err);
}

static void start(struct brokerlink *link)
{
	struct error err = ERROR_INIT;

	if (start_process(link, &err) == 0) {
		flush(link);
		return;
	}
	log_failure(&err, "start a broker for user %u", link->identity.uid);
	down(link, true, "could not be started");
}

/* ---- its requests -------------------------------------------------------------------- */

/* Take complete messages out of link->in. False: the link is down. */
static bool handle_messages(struct brokerlink *link)
{
	while (link->in_used >= 2 * sizeof(uint32_t)) {
		struct op_message message;
		struct error err = ERROR_INIT;
		uint32_t size = 0;
		uint32_t kind = 0;

		memcpy(&size, link->in, sizeof(size));
		memcpy(&kind, link->in + sizeof(size), sizeof(kind));
		if (size < 2 * sizeof(uint32_t) || size > sizeof(message) ||
		    size != op_message_size((enum op_kind)kind)) {
			down(link, true, "sent a message of impossible size");
			return false;
		}
		if (link->in_used < size)
			return true;
		memset(&message, 0, sizeof(message));
		memcpy(&message, link->in, size);
		link->in_used -= size;
		memmove(link->in, link->in + size, link->in_used);
		/* Processes of others get a copy of this memory. */
		explicit_bzero(link->in + link->in_used, size);
		if (op_message_check(&message, size, &err) < 0) {
			error_prefix(&err, "sent garbage");
			down(link, true, err.message);
			return false;
		}
		op_handle(link, &message);
		if (link->request_fd < 0)
			return false;
	}
	return true;
}

static void on_request(uint32_t events, void *arg)
{
	struct brokerlink *link = arg;

	(void)events;
	for (int turn = 0; turn < OPS_PER_TURN; turn++) {
		ssize_t got = read(link->request_fd, link->in + link->in_used,
				   sizeof(link->in) - link->in_used);

		if (got < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (got <= 0) {
			down(link, true, "closed its request pipe");
			return;
		}
		link->in_used += (size_t)got;
		if (!handle_messages(link))
			return;
		if (link->queued_bytes > QUEUE_PAUSE_BYTES)
			return;
	}
}

/* ---- idleness ------------------------------------------------------------------------ */

static void on_idle(void *arg)
{
	struct brokerlink *link = arg;

	if (link->link_fd >= 0)
		down(link, false, "idle");
	record_free(link);
}

static void look_for_idleness(struct brokerlink *link)
{
	struct loop *loop = &link->spawner->loop;

	if (link->conn_count > 0 || link->job_count > 0)
		loop_disarm(loop, &link->idle);
	else if (!link->idle.armed)
		loop_arm(loop, &link->idle, LIMIT_BROKER_IDLE_MS, on_idle, link);
}

void brokerlink_job_over(struct brokerlink *link)
{
	link->job_count--;
	look_for_idleness(link);
}

void brokerlinks_deinit(struct spawner *spawner)
{
	while (spawner->brokers) {
		struct brokerlink *link = spawner->brokers;

		jobopen_forget(link);
		close_link(link);
		child_forget(&spawner->children, &link->child);
		record_free(link);
	}
}

size_t brokerlinks_count(const struct spawner *spawner)
{
	size_t count = 0;

	for (const struct brokerlink *link = spawner->brokers; link; link = link->next)
		count += link->link_fd >= 0;
	return count;
}

size_t brokerlinks_conn_count(const struct spawner *spawner)
{
	size_t count = 0;

	for (const struct brokerlink *link = spawner->brokers; link; link = link->next)
		count += link->conn_count;
	return count;
}
