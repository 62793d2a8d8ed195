/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_DAEMON_SPAWNER_RECORDERLINK_H
#define FSBOX_DAEMON_SPAWNER_RECORDERLINK_H

/*
 * The way to fsbox-recorder: started when there is a first event, fed through a pipe that is never
 * waited for, started again with growing pauses when it dies.
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

/*
 * @exec_fd     O_PATH of fsbox-recorder; -1: there is none, every event is dropped
 * @uid, @gid   as whom it runs; -1: as ourselves
 * @events_path of events.jsonl, owned
 * @since_ms    when the process was started
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
	struct child child;
	struct loop_source source;
	struct loop_timer restart;
	struct recorderlink_event *first;
	struct recorderlink_event *last;
	size_t queued;
	uint64_t dropped;
	uint64_t since_ms;
	unsigned failures;
};

#define RECORDERLINK_INIT                                                         \
	{                                                                         \
		.exec_fd = -1, .uid = (uid_t)-1, .gid = (gid_t)-1, .pipe_fd = -1, \
		.child = CHILD_INIT, .source = LOOP_SOURCE_INIT,                  \
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

/* Size, kind and time are filled in here. Never blocks, never fails. */
void recorderlink_send(struct recorderlink *link, enum event_kind kind,
		       struct event_message *event);

/* Whether an event sent now would reach a living recorder that keeps up. */
bool recorderlink_ready(const struct recorderlink *link);
bool recorderlink_up(const struct recorderlink *link);

#endif
