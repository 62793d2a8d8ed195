/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_DAEMON_SPAWNER_TEMPLATE_H
#define FSBOX_DAEMON_SPAWNER_TEMPLATE_H

/*
 * Prepared mount namespaces: one for each plan and identity, made once by a builder that runs as the
 * peer, entered by every job of that plan.
 *
 *	building  the builder runs; jobs wait for it
 *	ready     the namespace is held by descriptor; the builder makes copies of it
 *
 * A template is dropped when nobody used it for a minute, when there are too many mounts in all (those below
 * a bound tree come with it and count), when the host's mounts changed, when a job found that the host looks different, or when its placeholders went.
 * Jobs that run have copies and do not notice.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "common/plan.h"
#include "daemon/identity.h"
#include "daemon/spawner/child.h"
#include "daemon/spawner/loop.h"
#include "daemon/spawner/reportin.h"
#include "daemon/spawner/templatecopy.h"
#include "daemon/spawner/templatemem.h"
#include "daemon/spawner/zygote.h"

struct guard_plan;
struct guardlink;
struct job;
struct spawner;

enum template_state { TEMPLATE_BUILDING = 1, TEMPLATE_READY, TEMPLATE_DROPPED };

/*
 * @mem          its plan and what builder and jobs share
 * @mounts       of its namespace; while it is built: those that its plan names
 * @users        jobs that hold on to it: waiting, or between fork and pid 1
 * @guard        what keeps its jobs' masks in place; NULL: nothing must
 * @built        the namespace is there; ready when the guard is too
 * @placeholders it masks at least one
 * @outdated     the host's mounts or the configuration changed while it was built: those that wait began
 *               before that, nobody else gets it. Or it masks a placeholder by another name (placing.h)
 * @first        for whose sake it is built: placeholders are announced as this job's in the ledger
 * @held         a report of the builder's that waits for a sweep; @resumes: not any more (placing.h)
 * @waiters      all that wait, the first among them: job.next_waiter
 */
struct template
{
	struct spawner *spawner;
	enum template_state state;
	struct identity identity;
	struct templatemem mem;
	int mount_ns_fd;
	size_t mounts;
	size_t users;
	uint64_t used_ms;
	struct guard_plan *guard;
	bool built;
	bool placeholders;
	bool outdated;

	struct job *first;
	struct job *waiters;
	struct report_message *held;
	bool resumes;
	struct child builder;
	struct reportin report;
	int go_fd;
	struct loop_source report_source;
	struct loop_timer timer;
	struct templatecopies copies;
	struct zygotes_of zygotes;

	struct template *next; /* templates.first: most recently used first */
};

/*
 * @first           most recently used first
 * @mounts          of all templates together
 * @mountinfo_fd    tells when the host's mounts change (Linux: poll on mountinfo, proc_pid_mountinfo(5))
 */
struct templates {
	struct spawner *spawner;
	struct template *first;
	size_t count;
	size_t mounts;
	struct loop_timer expiry;
	struct loop_source mountinfo_source;
	int mountinfo_fd;
};

#define TEMPLATES_INIT                                                    \
	{                                                                 \
		.mountinfo_fd = -1, .mountinfo_source = LOOP_SOURCE_INIT, \
	}

/* Watch the host's mounts (R12). Fails with ERR_SYSTEM. */
int templates_init(struct templates *templates, struct spawner *spawner, struct error *err);
void templates_deinit(struct templates *templates);

/* The usable template of exactly this plan for this identity, or NULL. */
struct template *templates_find(struct templates *templates, const struct identity *identity,
				const void *bytes, size_t byte_count);

/*
 * Begin to make a template for JOB, which then waits. PLAN is verified; BYTES are the same. Fails with
 * ERR_NOMEM, ERR_SYSTEM, or ERR_QUOTA_EXCEEDED: too much is being built for this user already.
 */
int template_build(struct templates *templates, struct job *job, const void *bytes,
		   size_t byte_count, const struct plan *plan, struct error *err);

/*
 * JOB wants TEMPLATE: called back by job_template_ready() or job_template_failed(), at once if it is
 * ready.
 */
void template_wait(struct template *template, struct job *job);

/*
 * JOB, which waits or holds on, does not any more. To be called before its placeholders are released:
 * if the template is built for its sake, another one that waits takes its place.
 */
void template_leave(struct job *job);

/* Not to be used for further jobs. Harmless when it is dropped already. */
void template_drop(struct template *template, const char *why);

/* Drop all of them: the configuration or the host's mounts changed. */
void templates_drop_all(struct templates *templates, const char *why);

/* Placeholders of this user are about to be removed: templates that mask any go first. */
void templates_drop_placeholders(struct templates *templates, uid_t uid);

/* PLAN's guard is ready: so is its template, once it is built. */
void templates_guarded(struct templates *templates, const struct guard_plan *plan);

/* A job of PLAN lost a mask to somebody outside, and so did the template. */
void templates_drop_guarded(struct templates *templates, const struct guard_plan *plan);

/* LINK's guard is gone for good: nothing can be started that needs it. */
void templates_guard_lost(struct templates *templates, const struct guardlink *link);

/* A sweep is through: builders that waited for it go on. */
void templates_resume(struct templates *templates);

#endif
