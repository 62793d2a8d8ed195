/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_DAEMON_BROKER_SPAWNLINK_H
#define FSBOX_DAEMON_BROKER_SPAWNLINK_H

/*
 * Our end of what fsboxd and we say to each other: messages to it over a pipe, messages from it over a
 * socket, with the descriptors that it made or accepted (proto/wire/spawnop.h).
 *
 * When fsboxd dies the link is down for good: every question is answered with an error, nothing more
 * can be asked. What fsboxd says is trusted to be well formed; if it is not, this process ends.
 */

#include <event2/event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/buf.h"
#include "common/error.h"
#include "proto/wire/spawnop.h"

/* Messages to fsboxd that the pipe did not take yet. */
#define SPAWNLINK_QUEUE_BYTES (4u << 20)

/*
 * An answer; of OP_JOB_LIST several: MESSAGE->kind tells whether more come. MESSAGE is NULL when the
 * link went down, ERR is then filled, as it is for LINK_ERROR.
 *
 * @fds  LINK_JOB_OPENED: plan memfd and job channel, to be taken (set to -1); what is left is closed
 */
typedef void spawnlink_answer_fn(void *arg, const struct link_message *message,
				 int fds[LINK_MESSAGE_FDS], const struct error *err);

/*
 * Something nobody asked for: LINK_CONN, LINK_JOB_OPENED of a job ahead of the request for one (both with
 * descriptors, as above), LINK_JOB_UP, _FAILED, _ENDED, _GUARD.
 */
typedef void spawnlink_news_fn(void *arg, const struct link_message *message,
			       int fds[LINK_MESSAGE_FDS]);

/* The link is down: fsboxd died, or (GARBAGE) sent what it must not. Called once. */
typedef void spawnlink_down_fn(void *arg, bool garbage, const struct error *err);

struct spawnlink_question {
	uint64_t seq;
	spawnlink_answer_fn *answer; /* NULL: nobody cares any more */
	void *arg;
	struct spawnlink_question *next; /* spawnlink.first, oldest first */
};

struct spawnlink {
	int link_fd;
	int request_fd;
	struct event *readable;
	struct event *writable;
	struct buf queue;
	struct spawnlink_question *first;
	uint64_t last_seq;
	bool down;
	spawnlink_news_fn *news;
	spawnlink_down_fn *on_down;
	void *arg;
};

#define SPAWNLINK_INIT                          \
	{                                       \
		.link_fd = -1, .request_fd = -1 \
	}

/* Both descriptors are the link's from now on. Fails with ERR_SYSTEM (not a socket, not a pipe). */
int spawnlink_init_take(struct spawnlink *link, int link_fd, int request_fd, struct error *err);
void spawnlink_deinit(struct spawnlink *link);

/* Before spawnlink_attach(): wait for the first message, which is LINK_CONFIG. */
int spawnlink_wait_config(struct spawnlink *link, struct link_config *ret_config,
			  struct error *err);

/* Work in BASE; callbacks come from its loop only. */
int spawnlink_attach(struct spawnlink *link, struct event_base *base, spawnlink_news_fn *news,
		     spawnlink_down_fn *on_down, void *arg, struct error *err);

/* Whether a message waits to be read. */
bool spawnlink_has_news(const struct spawnlink *link);

/* OP with everything but size, kind and seq zeroed. */
void spawnlink_op_init(struct op_message *op, enum op_kind kind);

/* Say something. Fails with ERR_UNREACHABLE (down), ERR_QUOTA_EXCEEDED (fsboxd does not read). */
int spawnlink_tell(struct spawnlink *link, struct op_message *op, struct error *err);

/*
 * Ask something: ANSWER is called from the event loop, exactly once (but for lists), unless this
 * fails. *ret_question may be used until then; RET_QUESTION may be NULL.
 */
int spawnlink_ask(struct spawnlink *link, struct op_message *op, spawnlink_answer_fn *answer,
		  void *arg, struct spawnlink_question **ret_question, struct error *err);

/*
 * No answer is waited for: what was asked showed otherwise that it is done, or is not wanted any more. That
 * fsboxd refused it may still come, and is then ignored. NULL is fine.
 */
void spawnlink_withdraw(struct spawnlink *link, struct spawnlink_question *question);

#endif
