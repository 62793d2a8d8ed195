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
	char args_number[16];
};

/* A descriptor and the number it is to have; an fd of -1 leaves the number closed. */
struct builder_placed {
	int fd;
	int number;
};

/* The most that builder_keep_descriptors() takes. */
#define BUILDER_PLACED_MAX 16

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

/* The rest of a native job after builder_shut(): ends as its pid 1. */
_Noreturn void builder_run_native(struct builder *builder);

#endif
