/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_DAEMON_SPAWNER_BROKERLINK_H
#define FSBOX_DAEMON_SPAWNER_BROKERLINK_H

/*
 * One identity that is served: its connections as fsboxd numbered them, its jobs' owner, and its
 * fsbox-broker, which runs entirely as that identity (R3).
 *
 * A broker that sends garbage, or does not read what it is sent, is killed; its connections end with
 * it, its jobs go on. The next connection starts another one, after a pause that grows with each
 * failure. One without connections and jobs ends after a while, and then this record too.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "daemon/identity.h"
#include "daemon/spawner/child.h"
#include "daemon/spawner/ended.h"
#include "daemon/spawner/loop.h"
#include "daemon/spawner/peer.h"
#include "proto/wire/spawnop.h"

struct spawner;
struct brokerlink_item;

/* One client's connection, as long as its broker has not closed it. */
struct conn {
	uint64_t id;
	struct peer peer;
	bool admin;
	struct conn *next; /* brokerlink.conns */
};

/*
 * @ready        the broker said OP_READY
 * @link_fd      ours of the socket pair, only for sending; -1: no broker runs
 * @request_fd   reading end of its pipe
 * @in, @in_used the beginning of a message that is not complete
 * @job_count    jobs of this identity that are not over; @ended: some that are
 *
 * Freed by its idle timer only, so that its functions may go on after a callee took the broker down.
 */
struct brokerlink {
	struct spawner *spawner;
	struct identity identity;
	bool ready;
	struct child child;
	int link_fd;
	int request_fd;
	struct loop_source link_source;
	struct loop_source request_source;
	struct loop_timer stall;
	struct loop_timer idle;
	struct loop_timer restart;
	uint64_t since_ms;
	unsigned failures;

	unsigned char in[sizeof(struct op_message)];
	size_t in_used;
	struct brokerlink_item *first;
	struct brokerlink_item *last;
	size_t queued_bytes;

	struct conn *conns;
	size_t conn_count;
	size_t job_count;
	struct job *ahead; /* jobopen.h */
	struct ended_list ended;
	struct brokerlink *next; /* spawner.brokers */
};

/*
 * The record for IDENTITY, made if there is none. Fails with ERR_QUOTA_EXCEEDED or ERR_NOMEM.
 */
int brokerlink_get(struct spawner *spawner, const struct identity *identity,
		   struct brokerlink **ret_link, struct error *err);

/*
 * A new connection: numbered, kept, and sent to the broker, which is started if need be. On success
 * *FD and *PEER are taken (-1 afterwards), else they stay the caller's. Fails with
 * ERR_QUOTA_EXCEEDED, ERR_NOMEM or ERR_SYSTEM.
 */
int brokerlink_add_conn(struct brokerlink *link, int *fd, struct peer *peer, bool admin,
			struct error *err);

struct conn *brokerlink_conn(const struct brokerlink *link, uint64_t id);
void brokerlink_close_conn(struct brokerlink *link, uint64_t id);

/* Zero MESSAGE and fill its header. */
void link_message_init(struct link_message *message, enum link_kind kind, uint64_t seq,
		       uint64_t conn, uint64_t job);

/*
 * Send MESSAGE with descriptors, which are consumed whatever happens. Without a broker, a message
 * that carries no connection is dropped. Never blocks, never fails: a broker that cannot be told
 * something is killed.
 */
void brokerlink_send_take(struct brokerlink *link, const struct link_message *message, int *fds,
			  size_t fd_count);

/* LINK_ERROR for SEQ. */
void brokerlink_send_error(struct brokerlink *link, uint64_t seq, uint64_t job,
			   const struct error *err);

/* A job of this identity is over. */
void brokerlink_job_over(struct brokerlink *link);

/* MESSAGE goes to every other broker that runs; one that does not know the job ignores it. */
void brokerlinks_tell_others(struct brokerlink *link, const struct link_message *message);

/* End of fsboxd: close everything, kill nothing. Frees all records. */
void brokerlinks_deinit(struct spawner *spawner);

size_t brokerlinks_count(const struct spawner *spawner); /* running brokers */
size_t brokerlinks_conn_count(const struct spawner *spawner);

#endif
