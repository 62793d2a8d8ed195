/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_DAEMON_SPAWNER_GUARDPLAN_H
#define FSBOX_DAEMON_SPAWNER_GUARDPLAN_H

/*
 * What of a plan somebody outside can undo while jobs run, and where that shows: pure, from the plan
 * alone.
 *
 * A mount stands on a directory entry. Where that entry is fsbox's own (the new root, a private
 * directory) nobody outside reaches it. Where it is the host's, seen through a bind, the host may
 * remove or replace it, and the kernel then takes the mount away in every sandbox; or it may move the
 * entry and put another in its place, which no mount covers.
 */

#include <stdbool.h>
#include <stddef.h>

#include "common/error.h"
#include "common/plan.h"

enum guard_point_kind {
	GUARD_POINT_MASK,      /* what is at the path must be hidden */
	GUARD_POINT_READ_ONLY, /* it must not be writable */
	GUARD_POINT_NOTICE,    /* nothing should be there, or with PLAN_ENTRIES no new entry */
};

/*
 * @op    borrowed from the plan
 * @root  bytes of its path that are the bind it is seen through: names above are not the host's
 * @stand_in  GUARD_POINT_MASK: the job could make it when it is gone, so something empty takes its place
 *        (daemon/spawner/standin.h)
 */
struct guard_point {
	enum guard_point_kind kind;
	const struct plan_op *op;
	size_t root;
	bool stand_in;
};

/*
 * A directory of the host's in which some names matter.
 *
 * @path         owned
 * @names        entries that matter, from here on: sorted in guard_points.names
 * @all          every entry does
 */
struct guard_dir {
	char *path;
	size_t names;
	size_t name_count;
	bool all;
};

/*
 * @points  in the order of the plan: what is mounted earlier comes first
 * @dirs    sorted by path, each once
 * @names   borrowed from the plan: the rest of a path from that component on
 */
struct guard_points {
	struct guard_point *points;
	size_t count;
	struct guard_dir *dirs;
	size_t dir_count;
	const char **names;
	size_t name_count;
};

/* Whether jobs with PLAN need a guard at all. Fails with ERR_NOMEM. */
int guard_points_needed(const struct plan *plan, bool *ret_needed, struct error *err);

/* All of it. PLAN stays while RET_POINTS is used. Fails with ERR_NOMEM; nothing is held then. */
int guard_points_init(struct guard_points *ret_points, const struct plan *plan, struct error *err);
void guard_points_deinit(struct guard_points *points);

/* Whether the entry NAME of DIR matters. */
bool guard_points_matters(const struct guard_points *points, const struct guard_dir *dir,
			  const char *name);

/* Whether the directory DIR/NAME is one of those in which names matter. */
bool guard_points_is_dir(const struct guard_points *points, const struct guard_dir *dir,
			 const char *name);

#endif
