/* SPDX-License-Identifier: Apache-2.0 */
#include "common/plan_check.h"

#include <stdlib.h>
#include <string.h>

#include "common/hostconf.h"
#include "common/path.h"
#include "common/pathtree.h"
#include "common/plan_op.h"
#include "common/scope.h"
#include "common/sysmount.h"

/*
 * @ops       every operation that mounts or is watched. Links, seals, pins and notices show nothing; nor are
 *            masks on link nodes relied on, for not every engine can make them
 * @links     the links
 * @sealed    for each operation whether a later seal makes it read-only
 * @denied    host-mandatory denies and fsbox's own
 * @read_only likewise
 */
struct checker {
	const struct plan *plan;
	struct path_tree ops;
	struct path_tree links;
	bool *sealed;
	struct path_tree denied;
	struct path_tree read_only;
	const struct string_list *private_roots;
	bool root_bound;
};

static void checker_deinit(struct checker *checker)
{
	path_tree_deinit(&checker->ops);
	path_tree_deinit(&checker->links);
	path_tree_deinit(&checker->denied);
	path_tree_deinit(&checker->read_only);
	free(checker->sealed);
}

static int refuse_op(const struct checker *checker, const struct plan_op *op, struct error *err,
		     const char *why)
{
	return error_set(err, ERR_POLICY_INVALID, 0, "operation %td (%s '%s'): %s",
			 op - checker->plan->ops, plan_op_kind_name(op->kind), op->path, why);
}

static bool is_mask(const struct plan_op *op)
{
	return op->kind == PLAN_MASK_DIR || op->kind == PLAN_MASK_FILE ||
	       op->kind == PLAN_MASK_TREE;
}

static bool is_private(const struct plan_op *op)
{
	return op->kind == PLAN_BIND && (op->flags & PLAN_PRIVATE_SOURCE);
}

/* A mount that shows something of the host's as it is. */
static bool shows_host(const struct plan_op *op)
{
	return op->kind == PLAN_SYS || (op->kind == PLAN_BIND && !is_private(op));
}

/*
 * The operation that decides for PATH: the last one that covers it, leaving out those from LIMIT on.
 * The tmpfs root covers everything, so there always is one.
 */
static const struct plan_op *deciding_op(const struct checker *checker, const char *path,
					 uint32_t limit)
{
	const struct path_tree_entry *entries = checker->ops.entries;
	uint32_t last = 0;

	for (uint32_t i = path_tree_cover(&checker->ops, path); i != PATH_TREE_NONE;
	     i = entries[i].parent)
		for (uint32_t j = i; j < entries[i].end && entries[j].first == i; j++)
			if (entries[j].item < limit && entries[j].item > last)
				last = entries[j].item;
	return &checker->plan->ops[last];
}

static bool is_fresh_place(const char *path)
{
	size_t count = 0;
	const struct sysmount *mounts = sysmounts(&count);

	for (size_t i = 0; i < count; i++)
		if (mounts[i].kind == PLAN_TMPFS && strcmp(mounts[i].path, path) == 0)
			return true;
	return false;
}

/* Flags that an operation of each kind may carry; PLAN_SYSTEM always. */
static uint32_t allowed_flags(enum plan_op_kind kind)
{
	switch (kind) {
	case PLAN_BIND:
		return PLAN_READ_ONLY | PLAN_PLACEHOLDER | PLAN_PRIVATE_SOURCE | PLAN_NODE_FILE |
		       PLAN_NODE_LINK;
	case PLAN_MASK_DIR:
		return PLAN_PLACEHOLDER | PLAN_WATCH;
	case PLAN_MASK_FILE:
		return PLAN_NODE_LINK | PLAN_LET_GO;
	case PLAN_MASK_TREE:
		return PLAN_PLACEHOLDER;
	case PLAN_SYS:
		return PLAN_READ_ONLY;
	case PLAN_ROOT:
	case PLAN_PROC:
	case PLAN_DEV:
	case PLAN_TMPFS:
	case PLAN_SYMLINK:
	case PLAN_SEAL:
	case PLAN_PIN:
	case PLAN_OP_KIND_COUNT:
		break;
	case PLAN_NOTICE:
		return PLAN_QUARANTINE | PLAN_ENTRIES;
	}
	return 0;
}

/* Strictly below one of the private roots. */
static bool is_private_path(const struct checker *checker, const char *path)
{
	for (size_t i = 0; checker->private_roots && i < checker->private_roots->count; i++)
		if (path_covers(checker->private_roots->items[i], path) &&
		    strcmp(checker->private_roots->items[i], path) != 0)
			return true;
	return false;
}

static bool is_own_source(const struct checker *checker, const struct plan_op *op)
{
	return strcmp(op->path, op->source) == 0 || is_private_path(checker, op->source);
}

/* What is wrong with a bind by itself, or NULL. */
static const char *bind_refusal(const struct checker *checker, const struct plan_op *op)
{
	bool writable = !(op->flags & PLAN_READ_ONLY);

	if (path_covers("/proc", op->path))
		return "nothing is shown below /proc";
	if (path_covers("/dev", op->path) && !path_covers("/dev/shm", op->path))
		return "nothing is shown below /dev";
	if (strcmp(op->path, "/sys") == 0 || path_covers("/sys/fs/cgroup", op->path) ||
	    (writable && path_covers("/sys", op->path)))
		return "the host's /sys is not shown like this";
	if (!is_private(op)) {
		if (strcmp(op->path, op->source) != 0)
			return "the source is not the target";
		return op->flags & PLAN_PLACEHOLDER ? "a placeholder for what is shown" : NULL;
	}
	if (strcmp(op->path, "/") == 0)
		return "a private directory in place of /";
	return is_private_path(checker, op->source) ? NULL : "the source is no private directory";
}

/*
 * What is taken away is taken by the user's own hands where his job could write. All others were better
 * left out than wrong.
 */
static const char *notice_refusal(const struct checker *checker, const struct plan_op *op)
{
	uint32_t all = (uint32_t)checker->plan->count;
	const struct plan_op *seen = deciding_op(checker, op->path, all);

	if ((op->flags & PLAN_ENTRIES) && !(op->flags & PLAN_QUARANTINE))
		return "flags that do not belong together";
	if (!(op->flags & PLAN_QUARANTINE))
		return NULL;
	if (seen->kind != PLAN_BIND || is_private(seen) || (seen->flags & PLAN_READ_ONLY) ||
	    strcmp(seen->path, op->path) == 0)
		return "it is in no tree of the host's that a job may write";
	return NULL;
}

/* What is wrong with an operation by itself, or NULL. */
static const char *op_refusal(const struct checker *checker, const struct plan_op *op)
{
	if (op->flags & ~(allowed_flags(op->kind) | PLAN_SYSTEM))
		return "flags that do not belong to it";

	switch (op->kind) {
	case PLAN_ROOT:
		return op == checker->plan->ops && strcmp(op->path, "/") == 0 ? NULL : "misplaced";
	case PLAN_PROC:
		return strcmp(op->path, "/proc") == 0 ? NULL : "misplaced";
	case PLAN_DEV:
		return strcmp(op->path, "/dev") == 0 ? NULL : "misplaced";
	case PLAN_TMPFS:
		return is_fresh_place(op->path) ? NULL : "misplaced";
	case PLAN_SYS:
		return strcmp(op->path, "/sys") == 0 && (op->flags & PLAN_READ_ONLY) ? NULL
										     : "misplaced";
	case PLAN_BIND:
		return bind_refusal(checker, op);
	case PLAN_MASK_DIR:
	case PLAN_MASK_FILE:
	case PLAN_MASK_TREE:
		return strcmp(op->path, "/") == 0 ? "nothing would be left" : NULL;
	case PLAN_SYMLINK:
	case PLAN_SEAL: /* these depend on the others */
		return NULL;
	case PLAN_PIN: /* shows nothing, but is a mount all the same */
		return is_own_source(checker, op) ? NULL : "the source is not the target";
	case PLAN_NOTICE:
		return notice_refusal(checker, op);
	case PLAN_OP_KIND_COUNT:
		break;
	}
	return "unknown";
}

/*
 * Links stand in the tmpfs root where nothing else does, and not below each other: else a later mount
 * or link would follow them.
 */
static int check_link(const struct checker *checker, const struct plan_op *op, struct error *err)
{
	uint32_t all = (uint32_t)checker->plan->count;
	uint32_t begin = 0;
	uint32_t end = 0;

	path_tree_below(&checker->ops, op->path, &begin, &end);
	if (begin != end)
		return refuse_op(checker, op, err, "something is mounted at or below the link");
	if (deciding_op(checker, op->path, all)->kind != PLAN_ROOT)
		return refuse_op(checker, op, err, "the link is not in the root's own directories");
	path_tree_below(&checker->links, op->path, &begin, &end);
	if (end - begin != 1)
		return refuse_op(checker, op, err, "another link is at or below the link");
	return 0;
}

/* A link kept as it is shows nothing that is not shown anyway, and nothing stands on it. */
static int check_link_node(const struct checker *checker, const struct plan_op *op,
			   struct error *err)
{
	uint32_t begin = 0;
	uint32_t end = 0;

	path_tree_below(&checker->ops, op->path, &begin, &end);
	if (begin != end || !(op->flags & PLAN_READ_ONLY) ||
	    deciding_op(checker, op->path, (uint32_t)checker->plan->count)->kind != PLAN_BIND)
		return refuse_op(checker, op, err, "it is no link in a tree that is shown");
	return 0;
}

/* A seal closes what stands exactly at its path at that moment, and only what is ours. */
static int check_seal(struct checker *checker, const struct plan_op *op, struct error *err)
{
	const struct plan_op *target =
		deciding_op(checker, op->path, (uint32_t)(op - checker->plan->ops));

	if (strcmp(target->path, op->path) != 0 ||
	    (target->kind != PLAN_MASK_TREE && target->kind != PLAN_DEV &&
	     target->kind != PLAN_ROOT))
		return refuse_op(checker, op, err, "there is nothing to seal");
	checker->sealed[target - checker->plan->ops] = true;
	return 0;
}

static int check_ops(const struct checker *checker, struct error *err)
{
	const struct plan *plan = checker->plan;
	int r = 0;

	for (size_t i = 0; r == 0 && i < plan->count; i++) {
		const struct plan_op *op = &plan->ops[i];
		const char *why = op_refusal(checker, op);

		if (why)
			r = refuse_op(checker, op, err, why);
	}
	return r;
}

static int check_links_and_seals(struct checker *checker, struct error *err)
{
	const struct plan *plan = checker->plan;
	int r = 0;

	for (size_t i = 0; r == 0 && i < plan->count; i++) {
		const struct plan_op *op = &plan->ops[i];

		if (op->kind == PLAN_SYMLINK)
			r = check_link(checker, op, err);
		else if (op->kind == PLAN_BIND && (op->flags & PLAN_NODE_LINK))
			r = check_link_node(checker, op, err);
		else if (op->kind == PLAN_SEAL)
			r = check_seal(checker, op, err);
	}
	for (size_t i = 0; r == 0 && i < plan->count; i++) {
		const struct plan_op *op = &plan->ops[i];
		bool needed = op->kind == PLAN_MASK_TREE || op->kind == PLAN_DEV ||
			      (op->kind == PLAN_ROOT && !checker->root_bound);

		if (needed && !checker->sealed[i])
			r = refuse_op(checker, op, err, "it is not sealed");
	}
	return r;
}

/* The places that stay ours whatever the rules say. */
static int check_places(const struct checker *checker, struct error *err)
{
	uint32_t all = (uint32_t)checker->plan->count;
	const struct plan_op *sys = deciding_op(checker, "/sys", all);
	const struct plan_op *cgroup = deciding_op(checker, "/sys/fs/cgroup", all);

	if (deciding_op(checker, "/proc", all)->kind != PLAN_PROC)
		return error_set(err, ERR_POLICY_INVALID, 0, "the plan has no /proc of its own");
	if (deciding_op(checker, "/dev", all)->kind != PLAN_DEV)
		return error_set(err, ERR_POLICY_INVALID, 0, "the plan has no /dev of its own");
	if (sys->kind == PLAN_BIND)
		return refuse_op(checker, sys, err, "it shows the host's /sys");
	if (shows_host(cgroup))
		return refuse_op(checker, cgroup, err, "it shows the host's control groups");
	return 0;
}

/*
 * Whether nothing of the host can be seen at PATH. A path that is watched is absent, and stays so as
 * far as the job is concerned where it could not create it.
 */
static bool is_hidden(const struct checker *checker, const char *path)
{
	const struct plan_op *op = deciding_op(checker, path, (uint32_t)checker->plan->count);

	while (op->flags & PLAN_WATCH) {
		op = deciding_op(checker, path, (uint32_t)(op - checker->plan->ops));
		if (op->kind == PLAN_PROC || op->kind == PLAN_SYS ||
		    (op->kind == PLAN_BIND && (op->flags & PLAN_READ_ONLY)))
			return true;
	}
	return op->kind != PLAN_PROC && !shows_host(op);
}

static int refuse_path(struct error *err, const char *path, const char *why)
{
	return error_set(err, ERR_POLICY_INVALID, 0, "'%s' %s", path, why);
}

/* The first bind of the host's at or below PATH that writes, or any with READS; NULL without one. */
static const struct plan_op *find_bind_below(const struct checker *checker, const char *path,
					     bool reads)
{
	uint32_t begin = 0;
	uint32_t end = 0;

	path_tree_below(&checker->ops, path, &begin, &end);
	for (uint32_t i = begin; i < end; i++) {
		const struct plan_op *op = &checker->plan->ops[checker->ops.entries[i].item];

		if (shows_host(op) && (reads || !(op->flags & PLAN_READ_ONLY)))
			return op;
	}
	return NULL;
}

static int check_denied(const struct checker *checker, struct error *err)
{
	for (uint32_t i = 0; i < checker->denied.count; i++) {
		const char *path = checker->denied.entries[i].path;
		const struct plan_op *op = NULL;

		if (checker->denied.entries[i].first != i)
			continue;
		if (!is_hidden(checker, path))
			return refuse_path(err, path, "must be denied on this host");
		op = find_bind_below(checker, path, true);
		if (op)
			return refuse_op(checker, op, err,
					 "what is above it must be denied on this host");
	}
	return 0;
}

static int check_read_only(const struct checker *checker, struct error *err)
{
	for (uint32_t i = 0; i < checker->read_only.count; i++) {
		const char *path = checker->read_only.entries[i].path;
		const struct plan_op *op = NULL;

		if (checker->read_only.entries[i].first != i)
			continue;
		op = deciding_op(checker, path, (uint32_t)checker->plan->count);
		if ((shows_host(op) && !(op->flags & PLAN_READ_ONLY)) ||
		    ((op->flags & PLAN_WATCH) && !is_hidden(checker, path)))
			return refuse_path(err, path, "must be read-only on this host");
		op = find_bind_below(checker, path, false);
		if (op)
			return refuse_op(checker, op, err,
					 "what is above it must be read-only on this host");
	}
	return 0;
}

/* A private directory shown elsewhere must not be, hold, or lie in something protected. */
static int check_source(const struct checker *checker, const struct plan_op *op, struct error *err)
{
	uint32_t position = path_tree_cover(&checker->denied, op->source);
	uint32_t begin = 0;
	uint32_t end = 0;
	bool excused = true;

	path_tree_below(&checker->denied, op->source, &begin, &end);
	if (begin == end)
		path_tree_below(&checker->read_only, op->source, &begin, &end);
	if (begin != end || path_tree_cover(&checker->read_only, op->source) != PATH_TREE_NONE)
		return refuse_op(checker, op, err, "its source holds what is protected");

	/* fsbox's own state is denied, and private directories are in it: they are named as roots. */
	for (; position != PATH_TREE_NONE; position = checker->denied.entries[position].parent) {
		bool rooted = false;

		for (size_t i = 0; i < checker->private_roots->count; i++) {
			const char *root = checker->private_roots->items[i];

			rooted |= path_covers(root, op->source) &&
				  path_covers(checker->denied.entries[position].path, root);
		}
		excused &= rooted;
	}
	return excused ? 0 : refuse_op(checker, op, err, "its source is denied on this host");
}

static int check_switches(const struct plan *plan, const struct hostconf *conf, struct error *err)
{
	uint32_t expected = PLAN_UNSHARE_ALL;

	if (plan->net > conf->max_net)
		return error_set(err, ERR_NOT_AUTHORIZED, 0,
				 "network '%s' is above this host's max-net '%s'",
				 net_mode_name(plan->net), net_mode_name(conf->max_net));
	if (plan->net == NET_HOST)
		expected &= ~(uint32_t)PLAN_UNSHARE_NET;
	if (plan->unshare != expected)
		return error_set(err, ERR_POLICY_INVALID, 0, "the plan switches a protection off");
	if (!plan->chdir || !plan_path_is_canonical(plan->chdir))
		return error_set(err, ERR_POLICY_INVALID, 0, "the plan has no working directory");
	return 0;
}

static int add_lists(struct path_tree *tree, const struct string_list *first,
		     const struct string_list *second, struct error *err)
{
	size_t count = second ? second->count : 0;
	int r = path_tree_init(tree, first->count + count, err);

	if (r < 0)
		return r;
	for (size_t i = 0; i < first->count; i++)
		path_tree_add(tree, first->items[i], (uint32_t)i);
	for (size_t i = 0; i < count; i++)
		path_tree_add(tree, second->items[i], (uint32_t)(first->count + i));
	path_tree_link(tree);
	return 0;
}

static int checker_init(struct checker *checker, struct error *err)
{
	const struct plan *plan = checker->plan;
	int r = path_tree_init(&checker->ops, plan->count, err);

	if (r == 0)
		r = path_tree_init(&checker->links, plan->count, err);
	if (r < 0)
		return r;
	checker->sealed = calloc(plan->count, sizeof(*checker->sealed));
	if (!checker->sealed)
		return error_set(err, ERR_NOMEM, 0, "no memory to check the plan");
	for (size_t i = 0; i < plan->count; i++) {
		const struct plan_op *op = &plan->ops[i];

		if (op->kind == PLAN_SYMLINK)
			path_tree_add(&checker->links, op->path, (uint32_t)i);
		else if (op->kind != PLAN_SEAL && op->kind != PLAN_PIN && op->kind != PLAN_NOTICE &&
			 !(op->flags & PLAN_NODE_LINK))
			path_tree_add(&checker->ops, op->path, (uint32_t)i);
		checker->root_bound |= op->kind == PLAN_BIND && strcmp(op->path, "/") == 0 &&
				       !(op->flags & PLAN_NODE_LINK);
	}
	path_tree_link(&checker->ops);
	path_tree_link(&checker->links);
	return 0;
}

int plan_check(const struct plan *plan, const struct hostconf *conf,
	       const struct string_list *own_deny, const struct string_list *own_read_only,
	       const struct string_list *private_roots, struct error *err)
{
	AUTO(checker_deinit)
	struct checker checker = {
		.plan = plan,
		.private_roots = private_roots,
	};
	int r = check_switches(plan, conf, err);

	if (r == 0 && (plan->count == 0 || plan->ops[0].kind != PLAN_ROOT))
		r = error_set(err, ERR_POLICY_INVALID, 0, "the plan has no root");
	if (r == 0)
		r = checker_init(&checker, err);
	if (r == 0)
		r = add_lists(&checker.denied, &conf->mandatory_deny, own_deny, err);
	if (r == 0)
		r = add_lists(&checker.read_only, &conf->mandatory_read_only, own_read_only, err);
	if (r == 0)
		r = check_ops(&checker, err);
	if (r == 0)
		r = check_places(&checker, err);
	if (r == 0)
		r = check_links_and_seals(&checker, err);
	if (r == 0)
		r = check_denied(&checker, err);
	if (r == 0)
		r = check_read_only(&checker, err);
	for (size_t i = 0; r == 0 && i < plan->count; i++)
		if (is_private(&plan->ops[i]))
			r = check_source(&checker, &plan->ops[i], err);
	return r;
}

enum access plan_access(const struct plan *plan, const char *path)
{
	for (size_t i = plan->count; i-- > 0;) {
		const struct plan_op *op = &plan->ops[i];

		if (op->kind == PLAN_SYMLINK || op->kind == PLAN_SEAL || op->kind == PLAN_PIN ||
		    op->kind == PLAN_NOTICE || !path_covers(op->path, path))
			continue;
		if (is_mask(op))
			return ACCESS_DENY;
		if (op->kind == PLAN_ROOT)
			return ACCESS_NONE;
		if (op->kind == PLAN_DEV || op->kind == PLAN_SYS || (op->flags & PLAN_READ_ONLY))
			return ACCESS_READ_ONLY;
		return ACCESS_READ_WRITE;
	}
	return ACCESS_NONE;
}
