/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_DAEMON_SPAWNER_RECORDERLINK_H
#define FSBOX_DAEMON_SPAWNER_RECORDERLINK_H

/*
 * The way to fsbox-recorder: started when there is a first event, fed through a pipe that is never
 * waited for, started again with growing pauses when it dies. Back comes nothing but
 * acknowledgements of a fixed size, over a pipe of their own.
 *
 * Events that find the queue full are dropped and counted; with `audit = required` nothing is
 * started while that is so (recorderlink_ready()).
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/error.h"
#include "daemon/spawner/child.h"
#include "daemon/spawner/loop.h"
#include "proto/wire/eventop.h"

struct recorderlink_event;

/* Told once: whether an event is durable. May free the wait, and whatever holds it. */
typedef void recorder_wait_fn(void *arg, bool durable);

/* Somebody who waits for an event to be durable. Zeroed before. */
struct recorder_wait {
	uint64_t seq; /* 0: does not wait, or not for an event that exists */
	bool waits;
	uint64_t due_ms;
	recorder_wait_fn *fn;
	void *arg;
	struct recorder_wait *next; /* recorderlink.waits */
};

/*
 * @pipe_fd     where events go, from the first start on; @read_fd: its other end, which each recorder gets,
 *              so that what one that was killed did not read is there for the next
 * @exec_fd     O_PATH of fsbox-recorder; -1: there is none, every event is dropped
 * @uid, @gid   as whom it runs; -1: as ourselves
 * @events_path of events.jsonl, owned
 * @since_ms    when the process was started
 * @control_fd  where orders go; @ack_fd: where acknowledgements come from, @ack the beginning of one
 * @last_seq    number of the event that was sent last
 */
struct recorderlink {
	struct loop *loop;
	struct children *children;
	int exec_fd;
	uid_t uid;
	gid_t gid;
	char *events_path;
	uint64_t max_bytes;
	bool group_readable;

	int pipe_fd;
	int read_fd;
	int control_fd;
	int ack_fd;
	struct recorder_ack ack;
	size_t ack_used;
	struct loop_source ack_source;
	struct recorder_wait *waits;
	uint64_t last_seq;
	struct child child;
	struct loop_source source;
	struct loop_timer restart;
	struct loop_timer patience; /* of the one that waits longest */
	struct recorderlink_event *first;
	struct recorderlink_event *last;
	size_t queued;
	uint64_t dropped;
	uint64_t since_ms;
	unsigned failures;
};

#define RECORDERLINK_INIT                                                                        \
	{                                                                                        \
		.exec_fd = -1, .uid = (uid_t)-1, .gid = (gid_t)-1, .pipe_fd = -1, .read_fd = -1, \
		.child = CHILD_INIT, .source = LOOP_SOURCE_INIT, .control_fd = -1, .ack_fd = -1, \
		.ack_source = LOOP_SOURCE_INIT,                                                  \
	}

/*
 * @exec_fd  taken over
 * Fails with ERR_NOMEM.
 */
int recorderlink_init_take(struct recorderlink *link, struct loop *loop, struct children *children,
			   int exec_fd, const char *log_dir, uint64_t max_bytes, struct error *err);
void recorderlink_deinit(struct recorderlink *link);

/* Run it as UID and GID with files readable for the directory's group: system mode. */
void recorderlink_set_owner(struct recorderlink *link, uid_t uid, gid_t gid);

/*
 * Size, kind, number and time are filled in here. Never blocks, never fails. The number, or 0 when the
 * event was dropped.
 */
uint64_t recorderlink_send(struct recorderlink *link, enum event_kind kind,
			   struct event_message *event);

/*
 * The same, and FN is told once it is durable, or not: because it could not be written, because the
 * recorder died, because it does not answer within LIMIT_AUDIT_MS. Never from in here.
 */
void recorderlink_send_durable(struct recorderlink *link, enum event_kind kind,
			       struct event_message *event, struct recorder_wait *wait,
			       recorder_wait_fn *fn, void *arg);

/* Nobody wants to know any more. Harmless when nobody did. */
void recorderlink_forget(struct recorderlink *link, struct recorder_wait *wait);

/*
 * Let the recorder write the lines that CONTROL asks for into the pipe of which *RET_FD becomes the
 * reading end. Fails with ERR_SYSTEM: there is no recorder, or it does not take orders now.
 */
int recorderlink_read(struct recorderlink *link, const struct recorder_control *control,
		      int *ret_fd, struct error *err);

/* Whether an event sent now would reach a living recorder that keeps up. */
bool recorderlink_ready(const struct recorderlink *link);
bool recorderlink_up(const struct recorderlink *link);

#endif
