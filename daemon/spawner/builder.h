/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_DAEMON_SPAWNER_BUILDER_H
#define FSBOX_DAEMON_SPAWNER_BUILDER_H

/*
 * What fsboxd forks for a job: becomes the peer entirely and turns into the sandbox.
 *
 *	bwrap   makes the placeholders that the plan asks for and becomes bwrap with our init as pid 1
 *	native  enters the job's template and becomes its init; the template was made by another one,
 *	        which made the placeholders
 *
 * It runs in a child of fsboxd that it never returns from. It may hang on a dead file system; fsboxd
 * then kills and abandons it. What it still holds is said at each step in builder.c.
 */

#include <sys/types.h>

#include "common/plan.h"
#include "daemon/identity.h"
#include "daemon/spawner/inherit.h"
#include "daemon/spawner/native.h"
#include "proto/wire/spawnop.h"

/* @proxy: listeners for the proxies; @forwards: @forward_count ports, ascending, zeros behind. */
struct builder_net {
	bool proxy;
	uint32_t forward_count;
	uint16_t forwards[LIMIT_FORWARDS];
};

/*
 * What a native job tells its guard (guard.h) before it gives up what it takes: @order_fd -1: there is none.
 */
struct builder_guard {
	int order_fd;
	uint64_t plan;
	uint64_t job;
	uint32_t flags; /* enum guard_flags */
};

/*
 * All borrowed; the child owns its copies after fork.
 *
 * @plan          verified
 * @identity      groups already without those that jobs lose
 * @peer_pid      the requesting process, whose rlimits, nice, ioprio, scheduling, affinity and
 *                oom_score_adj the job gets, never more (R20); checked through @peer_pidfd
 * @mask_dir, @mask_file  sources of masks
 * @engine_path  the engine\'s program as engine_probe() found it; NULL: looked for again
 * @init_fd       sealed memfd of the static init program
 * @report_fd     pipe to fsboxd; @go_fd: pipe from fsboxd; @channel_fd: job channel
 * @stderr_fd     where the engine's own messages go (a memfd that fsboxd reads after a failure)
 * @result_fd     the job's file (jobfile.h), for the page that init writes; -1: none
 * @switch_ids    system and root mode: become @identity; user mode: already that user
 * @granted       @grant is what its pid 1 must find
 * @inherit       what was read from the peer already; native only: a job in a pid namespace of its own
 *                cannot ask about processes outside
 * @net           what init hands to fsbox-egress, through @egress_fd if it is anything
 * @builder_pidfd  native: the template's builder, perhaps gone; for what it prepared (builderruleset.c)
 * @shared_fd, @namespaces  native only: the template's; its user namespace is the daemon's own
 */
struct builder_input {
	const struct plan *plan;
	const struct identity *identity;
	enum daemon_mode mode;
	enum engine_kind engine;
	struct job_limits limits;
	pid_t peer_pid;
	int peer_pidfd;
	const char *mask_dir;
	const char *mask_file;
	const char *engine_path;
	int init_fd;
	int report_fd;
	int go_fd;
	int channel_fd;
	int stderr_fd;
	int egress_fd;
	struct builder_net net;
	int result_fd;
	bool switch_ids;
	bool detached;
	bool granted;
	struct grant_terms grant;
	const struct inherit *inherit;
	int builder_pidfd;
	int shared_fd;
	struct native_namespaces namespaces;
	struct builder_guard guard;
};

/* Whether init has anything to hand to fsbox-egress. */
bool builder_has_egress(const struct builder_input *input);

/* Does not return. Every failure is reported over report_fd as REPORT_FAILED before _exit(125). */
_Noreturn void builder_run(const struct builder_input *input);

/*
 * The same for a template: placeholders, then the mounts, REPORT_BUILT, and the end once fsboxd has
 * taken the namespace. Of @input only plan, identity, report_fd, go_fd, switch_ids, shared_fd and the user
 * namespace are looked at.
 */
_Noreturn void builder_run_template(const struct builder_input *input);

/*
 * The same for a pid 1 that is made before its job: it stands in the template, reports REPORT_BUILT, and becomes
 * the init of the job that it is told of over channel_fd (proto/wire/zygoteop.h). Of @input what depends on a job is
 * not looked at.
 */
_Noreturn void builder_run_zygote(const struct builder_input *input);

/*
 * Read the static init program found at PATH into a sealed, executable memfd, done once when fsboxd
 * starts. @ret_fd is the caller's.
 */
int builder_load_init(const char *path, int *ret_fd, struct error *err);

#endif
