/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_DAEMON_SPAWNER_BUILDERWORK_H
#define FSBOX_DAEMON_SPAWNER_BUILDERWORK_H

/*
 * What builder.c (the common steps, and bwrap) and buildernative.c (templates and the jobs that enter
 * them) share. Private to the two.
 *
 * Each step says what the process still holds when it is taken; a step that fails is the last one
 * before builder_fail().
 */

#include <stdbool.h>
#include <stddef.h>

#include "common/buf.h"
#include "common/error.h"
#include "common/plan.h"
#include "daemon/spawner/builder.h"
#include "daemon/spawner/inherit.h"

/*
 * @stage      what is being done, for the report of a failure; static
 * @plan       a copy whose strings are the input's
 * @report_fd  out of everybody's way until INIT_FD_REPORT is it
 * @args_fd    bwrap: its arguments
 * @result     mapped as long as the file could be reached, or NULL
 * @own_network  bwrap: we stand in the job's network already
 * @shared     native: see native.h; NULL when it was forgotten
 * @ruleset_fd  native: what builder_find_ruleset() found, for init; -1: nothing
 * @root_fd    native: the host's root directory, for one that looks at it later on; else -1
 */
struct builder {
	const struct builder_input *input;
	const char *stage;
	struct inherit inherit;
	struct plan plan;
	int report_fd;
	int args_fd;
	struct result_page *result;
	bool own_network;
	struct native_shared *shared;
	int ruleset_fd;
	int root_fd;
	char args_number[16];
};

#define BUILDER_INIT(from)                                                                        \
	{                                                                                         \
		.input = (from), .report_fd = (from)->report_fd, .args_fd = -1, .ruleset_fd = -1, \
		.root_fd = -1,                                                                    \
	}

/* A descriptor and the number it is to have; an fd of -1 leaves the number closed. */
struct builder_placed {
	int fd;
	int number;
};

/* The most that builder_keep_descriptors() takes. */
#define BUILDER_PLACED_MAX 17

/* Report what went wrong in the present stage and end. */
_Noreturn void builder_fail(const struct builder *builder, const struct error *err);

/* First: out of fsboxd's session and folder. Fails with ERR_SYSTEM. */
int builder_shut(struct builder *builder, struct error *err);

/*
 * Keep WANTED at their numbers (ascending), without close-on-exec, and close all others. The numbers
 * given may be any, also those of each other. Fails with ERR_SYSTEM.
 */
int builder_keep_descriptors(const struct builder_placed *wanted, size_t count, struct error *err);

/* Before descriptors are closed: the page for the result. Fails with ERR_SYSTEM. */
int builder_map_result(struct builder *builder, struct error *err);

/* Become the peer for good; nobody can look in, before or after. Fails with ERR_SYSTEM. */
int builder_become(struct builder *builder, struct error *err);

/* As the peer: what masks need to stand on, announced and recorded first. May hang for ever. */
int builder_make_placeholders(struct builder *builder, struct error *err);

/* Append to OUT what init must do before it runs anything (struct setup_header). */
int builder_encode_setup(struct builder *builder, struct buf *out, struct error *err);

/* Descriptors of native jobs besides INIT_FD_*: their guard's orders, and builder.root_fd. */
#define BUILDER_FD_GUARD (INIT_FD_EGRESS + 1)
#define BUILDER_FD_ROOT (INIT_FD_EGRESS + 2)
#define BUILDER_FD_RULESET (INIT_FD_EGRESS + 3)

/*
 * Native. Holds all of fsboxd's. Where leaving the host's network takes being root it is done now: namespaces
 * with no way out are nobody's gain. Afterwards descriptors are INIT_FD_* and those above.
 */
int builder_leave_host(struct builder *builder, struct error *err);

/*
 * Holds: our own descriptors; in system mode the peer's ids and what mounting takes, in user mode nothing
 * outside and everything inside a user namespace. Looks at the host and enters the template.
 */
int builder_enter_template(struct builder *builder, struct error *err);

/*
 * Tell the guard where this job's mounts are. *RET_END_FD, to be closed when nothing runs any more, is how
 * it knows of the end; -1 where there is no guard. Takes the descriptor of GUARD and MOUNT_NS_FD, our mount
 * namespace (-1: opened here).
 */
int builder_enrol_take(const struct builder_guard *guard, int mount_ns_fd, int *ret_end_fd,
		       struct error *err);

/* Native, before descriptors are closed: what the template's processes share. Fails with ERR_SYSTEM. */
int builder_map_shared(struct builder *builder, struct error *err);

/* Init, if it were ever taken over, could make other jobs of this template believe it. */
int builder_forget_shared(struct builder *builder, struct error *err);

/* Whether Landlock is to allow writing at and below the place of OP. */
bool builder_is_writable(const struct plan_op *op);

/*
 * A template's builder, in the copy that it stands in: all of Landlock's rules that this copy's job will need, but
 * for its /proc, kept for builder_find_ruleset(). NS_DIR_FD is our own /proc/self/ns, DEV_FD the host's /dev. Where it
 * fails the job makes its own.
 */
void builder_keep_ruleset(struct builder *builder, int ns_dir_fd, int dev_fd);

/*
 * Native, after builder_map_shared(), with what looking into the builder takes: the rule set for the copy that
 * this job was given, the caller's; or -1.
 */
int builder_find_ruleset(const struct builder *builder);

/* The rest of a native job after builder_shut(): ends as its pid 1. */
_Noreturn void builder_run_native(struct builder *builder);

/*
 * What the mask OP is to hide may have become a file, or a directory, or have come to be, since the plan was
 * made: it is hidden as what it is. Links and what is gone are others' matter.
 */
void builder_settle_mask(struct plan_op *op);

/* Whether at PATH there is nothing, or what a placeholder looks like (placeholder.h). */
bool builder_may_be_placeholder(const char *path);

/*
 * Above a placeholder that this user cannot make there may be nothing, which needs no pin; or a file, in
 * whose place a directory could be put.
 */
void builder_settle_pin(struct plan_op *op);

#endif
