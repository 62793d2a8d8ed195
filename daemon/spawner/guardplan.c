/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/spawner/guardplan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/limits.h"
#include "common/path.h"
#include "common/pathtree.h"
#include "common/scope.h"

/* ---- points --------------------------------------------------------------------------- */

static bool puts_something(const struct plan_op *op)
{
	return op->kind != PLAN_SYMLINK && op->kind != PLAN_SEAL && op->kind != PLAN_PIN &&
	       op->kind != PLAN_NOTICE && !(op->flags & PLAN_WATCH);
}

/* Whether OP is something that may have to be put back, or looked for. */
static bool point_kind(const struct plan_op *op, enum guard_point_kind *ret_kind)
{
	switch (op->kind) {
	case PLAN_MASK_DIR:
	case PLAN_MASK_FILE:
	case PLAN_MASK_TREE:
		*ret_kind = GUARD_POINT_MASK;
		return !(op->flags & PLAN_SYSTEM);
	case PLAN_BIND:
		*ret_kind = GUARD_POINT_READ_ONLY;
		return (op->flags & PLAN_READ_ONLY) && !(op->flags & PLAN_PRIVATE_SOURCE);
	case PLAN_NOTICE:
		*ret_kind = GUARD_POINT_NOTICE;
		return true;
	case PLAN_ROOT:
	case PLAN_PROC:
	case PLAN_DEV:
	case PLAN_TMPFS:
	case PLAN_SYMLINK:
	case PLAN_SEAL:
	case PLAN_SYS:
	case PLAN_PIN:
	case PLAN_OP_KIND_COUNT:
		break;
	}
	return false;
}

/*
 * What is seen around the path of the operation at INDEX: the last one mounted on the nearest path above
 * it, or NULL.
 */
static const struct plan_op *seen_around(const struct plan *plan, const struct path_tree *tree,
					 size_t index)
{
	const struct path_tree_entry *entries = tree->entries;
	const char *path = plan->ops[index].path;
	uint32_t at = path_tree_cover(tree, path);
	uint32_t last = 0;

	if (at != PATH_TREE_NONE && strcmp(entries[at].path, path) == 0)
		at = entries[at].parent;
	if (at == PATH_TREE_NONE)
		return NULL;
	for (uint32_t i = at; i < entries[at].end && entries[i].first == at; i++)
		last = entries[i].item > last ? entries[i].item : last;
	return &plan->ops[last];
}

/* Whether OP, seen in AROUND, stands on an entry of the host's, and losing it would show something. */
static bool is_exposed(enum guard_point_kind kind, const struct plan_op *around)
{
	if (!around || around->kind != PLAN_BIND || around->flags & PLAN_PRIVATE_SOURCE)
		return false;
	return kind != GUARD_POINT_READ_ONLY || !(around->flags & PLAN_READ_ONLY);
}

/* What the user had there, or a placeholder; for which nothing was said against one. */
static bool wants_stand_in(enum guard_point_kind kind, const struct plan_op *op,
			   const struct plan_op *around)
{
	if (kind != GUARD_POINT_MASK || around->flags & PLAN_READ_ONLY ||
	    op->flags & (PLAN_WATCH | PLAN_NODE_LINK | PLAN_LET_GO))
		return false;
	return op->kind == PLAN_MASK_FILE || op->flags & PLAN_PLACEHOLDER;
}

static int index_mounts(const struct plan *plan, struct path_tree *ret_tree, struct error *err)
{
	int r = path_tree_init(ret_tree, plan->count, err);

	if (r < 0)
		return r;
	for (size_t i = 0; i < plan->count; i++)
		if (puts_something(&plan->ops[i]))
			path_tree_add(ret_tree, plan->ops[i].path, (uint32_t)i);
	path_tree_link(ret_tree);
	return 0;
}

/* The operation at INDEX as a point; false when it is none. */
static bool take_point(const struct plan *plan, const struct path_tree *tree, size_t index,
		       struct guard_point *ret_point)
{
	const struct plan_op *around = NULL;
	enum guard_point_kind kind;

	if (!point_kind(&plan->ops[index], &kind))
		return false;
	around = seen_around(plan, tree, index);
	if (!is_exposed(kind, around))
		return false;
	*ret_point = (struct guard_point){
		.kind = kind,
		.op = &plan->ops[index],
		.root = strcmp(around->path, "/") == 0 ? 0 : strlen(around->path),
		.stand_in = wants_stand_in(kind, &plan->ops[index], around),
	};
	return true;
}

int guard_points_needed(const struct plan *plan, bool *ret_needed, struct error *err)
{
	AUTO(path_tree_deinit) struct path_tree tree = PATH_TREE_INIT;
	struct guard_point point;
	bool needed = false;
	int r = index_mounts(plan, &tree, err);

	if (r < 0)
		return r;
	for (size_t i = 0; i < plan->count && !needed; i++)
		needed = take_point(plan, &tree, i, &point);
	*ret_needed = needed;
	return 0;
}

static int find_points(struct guard_points *points, const struct plan *plan, struct error *err)
{
	AUTO(path_tree_deinit) struct path_tree tree = PATH_TREE_INIT;
	int r = index_mounts(plan, &tree, err);

	if (r < 0)
		return r;
	points->points = calloc(plan->count + 1, sizeof(*points->points));
	if (!points->points)
		return error_set(err, ERR_NOMEM, 0, "points to guard");
	for (size_t i = 0; i < plan->count; i++)
		if (take_point(plan, &tree, i, &points->points[points->count]))
			points->count++;
	return 0;
}

/* ---- directories ---------------------------------------------------------------------- */

/*
 * One component below a bind: the first @length bytes of @path are the directory, the rest begins with
 * the name. @name NULL: every entry of the directory.
 */
struct step {
	const char *path;
	size_t length;
	const char *name;
};

static size_t name_length(const char *name)
{
	return strcspn(name, "/");
}

static int compare_names(const char *a, const char *b)
{
	size_t a_length = name_length(a);
	size_t b_length = name_length(b);
	int order = memcmp(a, b, a_length < b_length ? a_length : b_length);

	return order != 0 ? order : (a_length > b_length) - (a_length < b_length);
}

static int compare_dirs(const struct step *a, const struct step *b)
{
	size_t shorter = a->length < b->length ? a->length : b->length;
	int order = memcmp(a->path, b->path, shorter);

	return order != 0 ? order : (a->length > b->length) - (a->length < b->length);
}

static int compare_steps(const void *left, const void *right)
{
	const struct step *a = left;
	const struct step *b = right;
	int order = compare_dirs(a, b);

	if (order != 0)
		return order;
	if (!a->name || !b->name)
		return (a->name != NULL) - (b->name != NULL);
	return compare_names(a->name, b->name);
}

static size_t count_steps(const struct guard_point *point)
{
	size_t steps = point->kind == GUARD_POINT_NOTICE && point->op->flags & PLAN_ENTRIES ? 1 : 0;

	for (const char *at = point->op->path + point->root; *at; at++)
		steps += *at == '/';
	return steps;
}

static void add_steps(const struct guard_point *point, struct step *steps, size_t *count)
{
	const char *path = point->op->path;

	for (const char *at = path + point->root; at; at = strchr(at + 1, '/'))
		steps[(*count)++] = (struct step){
			.path = path,
			.length = (size_t)(at - path),
			.name = at + 1,
		};
	if (point->kind == GUARD_POINT_NOTICE && point->op->flags & PLAN_ENTRIES)
		steps[(*count)++] = (struct step){ .path = path, .length = strlen(path) };
}

static int add_dir(struct guard_points *points, const struct step *step, struct error *err)
{
	struct guard_dir *dir = &points->dirs[points->dir_count];

	dir->path = step->length > 0 ? strndup(step->path, step->length) : strdup("/");
	if (!dir->path)
		return error_set(err, ERR_NOMEM, 0, "directories to watch");
	dir->names = points->name_count;
	points->dir_count++;
	return 0;
}

static int group_steps(struct guard_points *points, const struct step *steps, size_t count,
		       struct error *err)
{
	for (size_t i = 0; i < count; i++) {
		const struct step *before = i > 0 ? &steps[i - 1] : NULL;
		struct guard_dir *dir = NULL;

		if (before && compare_steps(before, &steps[i]) == 0)
			continue;
		if ((!before || compare_dirs(before, &steps[i]) != 0) &&
		    add_dir(points, &steps[i], err) < 0)
			return -(int)ERR_NOMEM;
		dir = &points->dirs[points->dir_count - 1];
		if (!steps[i].name) {
			dir->all = true;
			continue;
		}
		points->names[points->name_count++] = steps[i].name;
		dir->name_count++;
	}
	return 0;
}

static int find_dirs(struct guard_points *points, struct error *err)
{
	AUTO(auto_free) struct step *steps = NULL;
	size_t most = 0;
	size_t count = 0;

	for (size_t i = 0; i < points->count; i++)
		most += count_steps(&points->points[i]);
	steps = calloc(most + 1, sizeof(*steps));
	points->dirs = calloc(most + 1, sizeof(*points->dirs));
	points->names = calloc(most + 1, sizeof(*points->names));
	if (!steps || !points->dirs || !points->names)
		return error_set(err, ERR_NOMEM, 0, "directories to watch");
	for (size_t i = 0; i < points->count; i++)
		add_steps(&points->points[i], steps, &count);
	qsort(steps, count, sizeof(*steps), compare_steps);
	return group_steps(points, steps, count, err);
}

int guard_points_init(struct guard_points *ret_points, const struct plan *plan, struct error *err)
{
	struct guard_points points = { 0 };
	int r = find_points(&points, plan, err);

	if (r == 0)
		r = find_dirs(&points, err);
	if (r < 0) {
		guard_points_deinit(&points);
		return r;
	}
	*ret_points = points;
	return 0;
}

void guard_points_deinit(struct guard_points *points)
{
	for (size_t i = 0; i < points->dir_count; i++)
		free(points->dirs[i].path);
	free(points->dirs);
	free(points->names);
	free(points->points);
	*points = (struct guard_points){ 0 };
}

bool guard_points_matters(const struct guard_points *points, const struct guard_dir *dir,
			  const char *name)
{
	size_t begin = dir->names;
	size_t end = dir->names + dir->name_count;

	if (dir->all)
		return true;
	while (begin < end) {
		size_t middle = begin + (end - begin) / 2;
		int order = compare_names(points->names[middle], name);

		if (order == 0)
			return true;
		if (order < 0)
			begin = middle + 1;
		else
			end = middle;
	}
	return false;
}

bool guard_points_is_dir(const struct guard_points *points, const struct guard_dir *dir,
			 const char *name)
{
	char path[LIMIT_PATH_BYTES + LIMIT_LEAF_BYTES + 2];
	size_t begin = 0;
	size_t end = points->dir_count;

	(void)snprintf(path, sizeof(path), "%s/%s", dir->path[1] ? dir->path : "", name);
	while (begin < end) {
		size_t middle = begin + (end - begin) / 2;
		int order = strcmp(points->dirs[middle].path, path);

		if (order == 0)
			return true;
		if (order < 0)
			begin = middle + 1;
		else
			end = middle;
	}
	return false;
}
