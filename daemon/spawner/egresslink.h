/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_DAEMON_SPAWNER_EGRESSLINK_H
#define FSBOX_DAEMON_SPAWNER_EGRESSLINK_H

/*
 * The way to fsbox-egress, which serves the network of jobs that have some through it: started when a
 * job first needs it, ended when none has for a while, started again when it dies, with growing
 * pauses if it keeps dying.
 *
 * It parses what comes out of sandboxes, so it is taken for hostile: what it says comes over a pipe,
 * garbage there is its end. With it its listeners die: jobs that run stay without network.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/error.h"
#include "daemon/spawner/child.h"
#include "daemon/spawner/loop.h"
#include "proto/wire/egressop.h"

struct egresslink_item;
struct jobfiles;

#define EGRESSFILE_NAME_BYTES 24

/* An event that was checked. */
typedef void egresslink_event_fn(const struct egress_event *event, void *arg);

/* The process ended with this wait status, or was ended, although nobody asked it to. */
typedef void egresslink_died_fn(int status, void *arg);

/*
 * @exec_fd     O_PATH of fsbox-egress; -1: there is none, jobs that need it are refused
 * @uid, @gid   as whom it runs; -1: as ourselves
 * @config      what it is told first
 * @jobfiles    where its file for records without us is made; NULL: it has none
 * @file        its name there; "": none
 * @jobs        how many that it serves
 * @since_ms    when the process was started; @failures: how often in a row it did not last
 * @retry_ms    not before; 0: at once
 */
struct egresslink {
	struct loop *loop;
	struct children *children;
	int exec_fd;
	uid_t uid;
	gid_t gid;
	struct egress_config config;
	const struct jobfiles *jobfiles;
	char file[EGRESSFILE_NAME_BYTES];
	egresslink_event_fn *on_event;
	egresslink_died_fn *on_died;
	void *arg;

	struct child child;
	int link_fd;
	int event_fd;
	struct loop_source link_source;
	struct loop_source event_source;
	struct loop_timer idle;
	struct loop_timer stall;
	struct egresslink_item *first;
	struct egresslink_item *last;
	size_t queued;
	size_t jobs;
	bool ready;
	uint64_t since_ms;
	uint64_t retry_ms;
	unsigned failures;
};

#define EGRESSLINK_INIT                                                                 \
	{                                                                               \
		.exec_fd = -1, .uid = (uid_t)-1, .gid = (gid_t)-1, .child = CHILD_INIT, \
		.link_fd = -1, .event_fd = -1, .link_source = LOOP_SOURCE_INIT,         \
		.event_source = LOOP_SOURCE_INIT,                                       \
	}

/* @exec_fd: taken over. Nothing is started. */
void egresslink_init_take(struct egresslink *link, struct loop *loop, struct children *children,
			  int exec_fd, const struct egress_config *config,
			  egresslink_event_fn *on_event, egresslink_died_fn *on_died, void *arg);
void egresslink_deinit(struct egresslink *link);

/* Run it as UID and GID: system mode and root's own. */
void egresslink_set_owner(struct egresslink *link, uid_t uid, gid_t gid);

/* Let it write down in JOBFILES, borrowed, what it decides while we are gone (egressfile.h). */
void egresslink_set_files(struct egresslink *link, const struct jobfiles *jobfiles);

/*
 * A job begins that it is to serve; egresslink_end() must follow.
 *
 * @policy_fd   borrowed: the sealed memfd with the policy, verified
 * @ret_job_fd  the caller's, for the job's init
 *
 * Fails with ERR_ENGINE_UNAVAILABLE (no such program, or it does not last) or ERR_SYSTEM.
 */
int egresslink_job(struct egresslink *link, uint64_t job, uid_t uid, int policy_fd, int *ret_job_fd,
		   struct error *err);
void egresslink_end(struct egresslink *link, uint64_t job);

/* Whether it runs and has said that it serves. */
bool egresslink_up(const struct egresslink *link);

#endif
