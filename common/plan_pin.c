/* SPDX-License-Identifier: Apache-2.0 */
#include "common/plan_pin.h"

#include <stdlib.h>
#include <string.h>

#include "common/path.h"
#include "common/pathtree.h"
#include "common/scope.h"

/*
 * One ancestor to be pinned: the first LENGTH bytes of an operation's path.
 *
 * @bind  index of the writable bind it is seen through
 */
struct pin {
	const char *path;
	size_t length;
	size_t bind;
};

/*
 * @mounts  every operation that mounts
 * @pins    heap; with repeats until they are sorted
 */
struct pinner {
	struct plan *plan;
	struct path_tree mounts;
	struct pin *pins;
	size_t count;
	size_t capacity;
};

static void pinner_deinit(struct pinner *pinner)
{
	path_tree_deinit(&pinner->mounts);
	free(pinner->pins);
}

/* Also of a file: a mask below it has nothing to stand on, until a directory takes the file's place. */
static bool is_writable_bind(const struct plan_op *op)
{
	return op->kind == PLAN_BIND && !(op->flags & PLAN_READ_ONLY);
}

/* Whether a job could get round OP by moving what is above it. */
static bool is_protection(const struct plan_op *op)
{
	if (op->flags & (PLAN_WATCH | PLAN_SYSTEM))
		return false;
	return op->kind == PLAN_MASK_DIR || op->kind == PLAN_MASK_FILE ||
	       op->kind == PLAN_MASK_TREE ||
	       (op->kind == PLAN_BIND && (op->flags & PLAN_READ_ONLY));
}

/* The last operation of those that stand deepest over PATH: what is seen there. */
static const struct plan_op *seen_at(const struct pinner *pinner, const char *path)
{
	uint32_t position = path_tree_cover(&pinner->mounts, path);
	const struct path_tree_entry *entries = pinner->mounts.entries;
	uint32_t last = 0;

	if (position == PATH_TREE_NONE)
		return NULL;
	for (uint32_t i = position; i < entries[position].end && entries[i].first == position; i++)
		last = entries[i].item > last ? entries[i].item : last;
	return &pinner->plan->ops[last];
}

static int add_pin(struct pinner *pinner, const struct pin *pin, struct error *err)
{
	if (pinner->count == pinner->capacity) {
		size_t capacity = pinner->capacity ? pinner->capacity * 2 : 64;
		struct pin *grown = reallocarray(pinner->pins, capacity, sizeof(*grown));

		if (!grown)
			return error_set(err, ERR_NOMEM, 0, "no memory for the pins");
		pinner->pins = grown;
		pinner->capacity = capacity;
	}
	pinner->pins[pinner->count++] = *pin;
	return 0;
}

/* Upwards from OP as long as what is seen is writable. A mountpoint of ours keeps its name by itself. */
static int pin_ancestors(struct pinner *pinner, const struct plan_op *op, struct error *err)
{
	AUTO(auto_free) char *path = strdup(op->path);

	if (!path)
		return error_set(err, ERR_NOMEM, 0, "no memory for the pins");
	for (char *slash = strrchr(path, '/'); slash && slash != path; slash = strrchr(path, '/')) {
		const struct plan_op *seen = NULL;
		struct pin pin = { .path = op->path, .length = (size_t)(slash - path) };

		*slash = '\0';
		seen = seen_at(pinner, path);
		if (!seen || !is_writable_bind(seen))
			return 0;
		if (strcmp(seen->path, path) == 0)
			continue;
		pin.bind = (size_t)(seen - pinner->plan->ops);
		if (add_pin(pinner, &pin, err) < 0)
			return -(int)ERR_NOMEM;
	}
	return 0;
}

/* Backwards by bytes: a directory comes after everything below it. */
static int compare_pins(const void *left, const void *right)
{
	const struct pin *a = left;
	const struct pin *b = right;
	size_t shorter = a->length < b->length ? a->length : b->length;
	int order = memcmp(b->path, a->path, shorter);

	if (order != 0)
		return order;
	return (b->length > a->length) - (b->length < a->length);
}

static int emit_pin(struct plan *plan, const struct pin *pin, struct error *err)
{
	AUTO(auto_free) char *path = strndup(pin->path, pin->length);
	AUTO(auto_free) char *source = NULL;
	const struct plan_op *bind = &plan->ops[pin->bind];
	size_t below = strcmp(bind->path, "/") == 0 ? 0 : strlen(bind->path);
	struct plan_op op = { .kind = PLAN_PIN, .rule = bind->rule };

	if (path)
		source = strcmp(bind->source, "/") == 0 ? strdup(path)
							: path_join(bind->source, path + below);
	if (!path || !source)
		return error_set(err, ERR_NOMEM, 0, "no memory for the pins");
	op.path = path;
	op.source = source;
	return plan_add(plan, &op, err);
}

int plan_add_pins(struct plan *plan, struct error *err)
{
	AUTO(pinner_deinit) struct pinner pinner = { .plan = plan };
	size_t count = plan->count;
	int r = path_tree_init(&pinner.mounts, count, err);

	if (r < 0)
		return r;
	for (size_t i = 0; i < count; i++)
		if (plan->ops[i].kind != PLAN_SYMLINK && plan->ops[i].kind != PLAN_SEAL &&
		    plan->ops[i].kind != PLAN_NOTICE && !(plan->ops[i].flags & PLAN_WATCH))
			path_tree_add(&pinner.mounts, plan->ops[i].path, (uint32_t)i);
	path_tree_link(&pinner.mounts);

	for (size_t i = 0; r == 0 && i < count; i++) {
		const char *before = i > 0 ? plan->ops[i - 1].path : "";
		const char *path = plan->ops[i].path;
		size_t parent = (size_t)(strrchr(path, '/') - path);

		if (!is_protection(&plan->ops[i]))
			continue;
		/* Neighbours mostly share their parent, and with it all ancestors. */
		if (i > 0 && is_protection(&plan->ops[i - 1]) &&
		    strncmp(before, path, parent + 1) == 0 && !strchr(before + parent + 1, '/'))
			continue;
		r = pin_ancestors(&pinner, &plan->ops[i], err);
	}
	if (pinner.count > 0)
		qsort(pinner.pins, pinner.count, sizeof(*pinner.pins), compare_pins);
	for (size_t i = 0; r == 0 && i < pinner.count; i++)
		if (i == 0 || compare_pins(&pinner.pins[i - 1], &pinner.pins[i]) != 0)
			r = emit_pin(plan, &pinner.pins[i], err);
	return r;
}
