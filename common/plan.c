/* SPDX-License-Identifier: Apache-2.0 */
#include "common/plan.h"

#include <stdlib.h>
#include <string.h>

#include "common/limits.h"
#include "common/path.h"
#include "common/pathtree.h"
#include "common/plan_notice.h"
#include "common/plan_op.h"
#include "common/plan_pin.h"
#include "common/scope.h"
#include "common/sysmount.h"

/* What a job sees at a path, once the operations so far were carried out. */
enum shown {
	SHOWN_NOTHING = 0,
	SHOWN_WRITABLE, /* the host's, readWrite */
	SHOWN_READABLE, /* the host's, readOnly */
	SHOWN_PRIVATE,  /* a fresh or private directory: mount points can be made in it */
	SHOWN_KERNEL,   /* /proc: no mount points can be made */
	SHOWN_MASK,
};

/*
 * What is known about one path of the tree, at the position of its first entry.
 *
 * @shown       by an allow rule or a system place that stands exactly here; SHOWN_NOTHING before
 * @allow_below an allow rule that counts stands strictly below
 */
struct node {
	enum shown shown;
	bool allow_below;
};

/* Items of the tree: the rules by index, then the system places by index. */
struct builder {
	struct plan *plan;
	const struct rule_list *rules;
	const struct plan_options *options;
	struct path_tree tree;
	struct node *nodes;
	uint32_t *position;     /* of each item: where its path stands in the tree */
	struct path_tree files; /* options->file_paths */
};

static void builder_deinit(struct builder *builder)
{
	path_tree_deinit(&builder->tree);
	path_tree_deinit(&builder->files);
	free(builder->nodes);
	free(builder->position);
}

static bool hardened(const struct builder *builder, enum plan_harden flag)
{
	return (builder->options->harden & flag) != 0;
}

static int refuse(const struct rule *rule, struct error *err, const char *why)
{
	return error_set(err, ERR_POLICY_INVALID, 0, "%s '%s' (%s): %s", access_name(rule->access),
			 rule->path, rule->origin ? rule->origin : rule_source_name(rule->source),
			 why);
}

static int add_op(struct builder *builder, enum plan_op_kind kind, uint32_t flags, const char *path,
		  const char *source, int32_t rule, struct error *err)
{
	const struct plan_op op = {
		.kind = kind,
		.flags = flags,
		.path = (char *)path, /* copied */
		.source = (char *)source,
		.rule = rule,
	};

	return plan_add(builder->plan, &op, err);
}

static bool is_absent(const struct builder *builder, const struct rule *rule)
{
	return hardened(builder, PLAN_HARDEN_ABSENT) && rule->type == NODE_ABSENT;
}

/* An optional grant whose path is not there takes no part in anything. */
static bool is_dropped(const struct builder *builder, const struct rule *rule)
{
	return is_absent(builder, rule) && rule->access != ACCESS_DENY && rule->optional &&
	       !rule->bind_source;
}

static bool is_file(const struct builder *builder, const struct rule *rule)
{
	if (hardened(builder, PLAN_HARDEN_NODE_TYPE) && rule->type != NODE_UNKNOWN)
		return node_is_file(rule->type);
	return path_tree_find(&builder->files, rule->path) != PATH_TREE_NONE;
}

static bool has_rule(const struct builder *builder, const struct path_tree_entry *entry)
{
	return entry->item < builder->rules->count;
}

/* Whether the rule or system place of ENTRY hides what is there. */
static bool is_deny(const struct builder *builder, const struct path_tree_entry *entry)
{
	size_t mount_count = 0;

	if (has_rule(builder, entry))
		return builder->rules->rules[entry->item].access == ACCESS_DENY;
	return sysmounts(&mount_count)[entry->item - builder->rules->count].access == ACCESS_DENY;
}

/* A deny that makes nothing where nothing is does not either when that comes to be so. */
static bool is_let_go(const struct rule *rule)
{
	return rule->absent != ABSENT_DEFAULT && rule->absent != ABSENT_PLACEHOLDER;
}

/* An absent deny that is to be no more than watched or reported: nothing will be mounted there. */
static bool is_only_watched(const struct builder *builder, const struct rule *rule)
{
	return is_absent(builder, rule) && rule->access == ACCESS_DENY && is_let_go(rule);
}

/* Whether ENTRY hides what is there by a mask. */
static bool is_masking(const struct builder *builder, const struct path_tree_entry *entry)
{
	return is_deny(builder, entry) &&
	       !(has_rule(builder, entry) &&
		 is_only_watched(builder, &builder->rules->rules[entry->item]));
}

static bool gets_mount(const struct builder *builder, const struct sysmount *mount)
{
	if (!hardened(builder, PLAN_HARDEN_ROOT_RULE))
		return !mount->shown;
	return sysmount_applies(mount, builder->rules);
}

/* Which paths have a grant strictly below them. From the end of the walk: children come first. */
static void find_allows_below(struct builder *builder)
{
	for (uint32_t i = builder->tree.count; i-- > 0;) {
		const struct path_tree_entry *entry = &builder->tree.entries[i];
		const struct rule *rule = NULL;
		bool allow = builder->nodes[entry->first].allow_below;

		if (has_rule(builder, entry)) {
			rule = &builder->rules->rules[entry->item];
			allow |= rule->access != ACCESS_DENY && !is_dropped(builder, rule);
		}
		if (allow && entry->parent != PATH_TREE_NONE)
			builder->nodes[entry->parent].allow_below = true;
	}
}

/*
 * What a deny or grant at POSITION stands in, by the nearest path above that counts: an allow counts
 * once it is shown, a deny where something that is shown covers it. SHOWN_NOTHING: nothing of the
 * host is visible here.
 *
 * @ret_covered  whether anything at or above POSITION is shown at all
 */
static enum shown surroundings(const struct builder *builder, uint32_t position, bool *ret_covered)
{
	const struct path_tree_entry *entries = builder->tree.entries;
	uint32_t top = PATH_TREE_NONE; /* the outermost path that is shown */

	for (uint32_t i = position; i != PATH_TREE_NONE; i = entries[i].parent)
		if (builder->nodes[i].shown != SHOWN_NOTHING)
			top = i;
	*ret_covered = top != PATH_TREE_NONE;
	if (!*ret_covered)
		return SHOWN_NOTHING;

	for (uint32_t i = entries[position].parent; i != PATH_TREE_NONE; i = entries[i].parent) {
		/* Several rules for one path: the first in the list that counts. */
		for (uint32_t j = i; j < entries[i].end && entries[j].first == i; j++) {
			bool deny = is_deny(builder, &entries[j]);

			if (is_masking(builder, &entries[j]) &&
			    entries[i].size >= entries[top].size)
				return SHOWN_MASK;
			if (!deny && builder->nodes[i].shown != SHOWN_NOTHING)
				return builder->nodes[i].shown;
		}
	}
	return SHOWN_NOTHING;
}

/* A mount point at RULE's absent path, standing in AROUND: how it comes to be, as flags. */
static int mount_point_flags(const struct rule *rule, enum shown around, uint32_t *ret_flags,
			     struct error *err)
{
	switch (around) {
	case SHOWN_NOTHING: /* the tmpfs root, fresh directories, masks: made inside */
	case SHOWN_PRIVATE:
	case SHOWN_MASK:
		*ret_flags = 0;
		return 0;
	case SHOWN_WRITABLE:
		*ret_flags = PLAN_PLACEHOLDER;
		return 0;
	case SHOWN_READABLE:
	case SHOWN_KERNEL:
		break;
	}
	return refuse(rule, err,
		      "the path does not exist, and nothing can be mounted there because what is "
		      "above it is read-only");
}

static int build_grant(struct builder *builder, uint32_t index, struct error *err)
{
	const struct rule *rule = &builder->rules->rules[index];
	uint32_t position = builder->position[index];
	uint32_t flags = rule->access == ACCESS_READ_ONLY ? PLAN_READ_ONLY : 0;
	enum plan_op_kind kind = PLAN_BIND;
	enum shown around = SHOWN_NOTHING;
	const char *source = rule->path;
	bool covered = false;
	int r = 0;

	if (is_dropped(builder, rule))
		return 0;
	around = surroundings(builder, position, &covered);
	builder->nodes[position].shown = flags ? SHOWN_READABLE : SHOWN_WRITABLE;

	if (hardened(builder, PLAN_HARDEN_ORDER) && rule->bind_source) {
		source = rule->bind_source;
		flags |= PLAN_PRIVATE_SOURCE;
		if (rule->access == ACCESS_READ_WRITE)
			builder->nodes[position].shown = SHOWN_PRIVATE;
	}
	if (is_absent(builder, rule)) {
		uint32_t point = 0;

		if (!rule->bind_source)
			return error_set(err, ERR_PATH_NOT_FOUND, 0, "%s '%s' (%s): does not exist",
					 access_name(rule->access), rule->path,
					 rule->origin ? rule->origin
						      : rule_source_name(rule->source));
		r = mount_point_flags(rule, around, &point, err);
		flags |= point;
	}
	if (hardened(builder, PLAN_HARDEN_NODE_TYPE) && node_is_file(rule->type))
		flags |= PLAN_NODE_FILE;
	if (rule->denied_link && hardened(builder, PLAN_HARDEN_NODE_TYPE))
		flags |= PLAN_NODE_FILE | PLAN_NODE_LINK;
	if (hardened(builder, PLAN_HARDEN_ORDER) && strcmp(rule->path, "/sys") == 0) {
		kind = PLAN_SYS; /* never as it is: without control groups */
		source = NULL;
	}
	return r < 0 ? r : add_op(builder, kind, flags, rule->path, source, (int32_t)index, err);
}

/* A deny whose path is absent. */
static int build_absent_deny(struct builder *builder, uint32_t index, enum shown around,
			     struct error *err)
{
	const struct rule *rule = &builder->rules->rules[index];
	bool is_notice = rule->absent == ABSENT_REPORT;
	uint32_t flags = 0;

	if (rule->absent == ABSENT_IGNORE ||
	    (is_notice && (around == SHOWN_NOTHING || around == SHOWN_PRIVATE)))
		return 0;
	if (!is_notice && around == SHOWN_WRITABLE)
		flags = rule->absent == ABSENT_WATCH ? PLAN_WATCH : PLAN_PLACEHOLDER;
	else if (!is_notice && (around == SHOWN_READABLE || around == SHOWN_KERNEL))
		flags = PLAN_WATCH; /* never a placeholder in a readOnly tree (R26) */
	return add_op(builder, is_notice ? PLAN_NOTICE : PLAN_MASK_DIR, flags, rule->path, NULL,
		      (int32_t)index, err);
}

/* A deny with a grant below it: a tree that can hold the mount points, sealed when they are made. */
static int build_mask_tree(struct builder *builder, uint32_t index, enum shown around,
			   struct error *err)
{
	const struct rule *rule = &builder->rules->rules[index];
	uint32_t flags = 0;
	int r = 0;

	if (hardened(builder, PLAN_HARDEN_NODE_TYPE) &&
	    (node_is_file(rule->type) || rule->denied_link))
		return refuse(rule, err, "it is no directory, so nothing below it can be granted");
	if (is_absent(builder, rule))
		r = mount_point_flags(rule, around, &flags, err);
	return r < 0 ? r
		     : add_op(builder, PLAN_MASK_TREE, flags, rule->path, NULL, (int32_t)index,
			      err);
}

static int build_deny(struct builder *builder, uint32_t index, struct error *err)
{
	const struct rule *rule = &builder->rules->rules[index];
	uint32_t position = builder->position[index];
	enum plan_op_kind kind = PLAN_MASK_DIR;
	uint32_t flags = 0;
	bool covered = false;
	enum shown around = surroundings(builder, position, &covered);

	if (!covered)
		return 0; /* nothing of the host is visible there */
	if (builder->nodes[position].allow_below && !is_only_watched(builder, rule))
		return build_mask_tree(builder, index, around, err);
	if (around == SHOWN_MASK)
		return 0; /* hidden already, and no mount point could be made in that mask */
	if (is_absent(builder, rule))
		return build_absent_deny(builder, index, around, err);

	if (rule->denied_link && hardened(builder, PLAN_HARDEN_NODE_TYPE)) {
		kind = PLAN_MASK_FILE;
		flags = PLAN_NODE_LINK;
	} else if (is_file(builder, rule)) {
		kind = PLAN_MASK_FILE;
		if (hardened(builder, PLAN_HARDEN_ABSENT) && is_let_go(rule))
			flags = PLAN_LET_GO;
	}
	return add_op(builder, kind, flags, rule->path, NULL, (int32_t)index, err);
}

static int build_rule(struct builder *builder, uint32_t index, struct error *err)
{
	if (builder->rules->rules[index].access == ACCESS_DENY)
		return build_deny(builder, index, err);
	return build_grant(builder, index, err);
}

static int build_system(struct builder *builder, const struct sysmount *mount, uint32_t item,
			struct error *err)
{
	uint32_t position = builder->position[item];
	struct node *node = &builder->nodes[position];
	uint32_t flags = PLAN_SYSTEM;
	bool covered = false;

	switch (mount->kind) {
	case PLAN_PROC:
		node->shown = SHOWN_KERNEL;
		break;
	case PLAN_DEV:
	case PLAN_TMPFS:
		node->shown = SHOWN_PRIVATE;
		break;
	case PLAN_SYS:
		node->shown = SHOWN_READABLE;
		flags |= PLAN_READ_ONLY;
		break;
	case PLAN_MASK_DIR: /* the control groups, unless a deny above hides them already */
		if (surroundings(builder, position, &covered) == SHOWN_MASK || !covered)
			return 0;
		break;
	case PLAN_ROOT:
	case PLAN_SYMLINK:
	case PLAN_BIND:
	case PLAN_MASK_FILE:
	case PLAN_MASK_TREE:
	case PLAN_SEAL:
	case PLAN_PIN:
	case PLAN_NOTICE:
	case PLAN_OP_KIND_COUNT:
		break;
	}
	return add_op(builder, mount->kind, flags, mount->path, NULL, -1, err);
}

static int add_symlink(struct builder *builder, const char *path, const char *text, int32_t rule,
		       struct error *err)
{
	return add_op(builder, PLAN_SYMLINK, rule < 0 ? PLAN_SYSTEM : 0, path, text, rule, err);
}

/* Nothing of the host, no place of ours, no mount point is at, above or below PATH. */
static bool is_bare(const struct builder *builder, const char *path)
{
	uint32_t begin = 0;
	uint32_t end = 0;

	path_tree_below(&builder->tree, path, &begin, &end);
	for (uint32_t i = path_tree_cover(&builder->tree, path); i != PATH_TREE_NONE;
	     i = builder->tree.entries[i].parent)
		if (!is_deny(builder, &builder->tree.entries[i]))
			return false;
	return begin == end;
}

/* The grant that stands exactly at PATH, as an index; -1 where there is none. */
static int32_t grant_at(const struct builder *builder, const char *path)
{
	const struct rule_list *rules = builder->rules;
	uint32_t at = path_tree_find(&builder->tree, path);
	size_t item = at == PATH_TREE_NONE ? SIZE_MAX : builder->tree.entries[at].item;

	if (item >= rules->count || rules->rules[item].access == ACCESS_DENY ||
	    is_dropped(builder, &rules->rules[item]))
		return -1;
	return (int32_t)item;
}

/*
 * The host's links at the top level, and names through links that grants were asked for by, where nothing
 * else is. Not below another one, which already leads there.
 */
static int build_symlinks(struct builder *builder, const struct string_list *names,
			  struct error *err)
{
	const struct plan_symlink *hosts = builder->options->symlinks;
	size_t host_count = builder->options->symlink_count;
	AUTO(path_tree_deinit) struct path_tree links = PATH_TREE_INIT;
	int r = path_tree_init(&links, host_count + names->count / 2, err);

	for (size_t i = 0; r == 0 && i < host_count; i++)
		if (is_bare(builder, hosts[i].path))
			path_tree_add(&links, hosts[i].path, (uint32_t)i);
	for (size_t i = 0; r == 0 && i + 1 < names->count; i += 2)
		if (is_bare(builder, names->items[i]) &&
		    grant_at(builder, names->items[i + 1]) >= 0)
			path_tree_add(&links, names->items[i], (uint32_t)(host_count + i));
	path_tree_link(&links);

	for (uint32_t i = 0; r == 0 && i < links.count; i++) {
		const struct path_tree_entry *entry = &links.entries[i];
		uint32_t item = entry->item;
		const char *place = item < host_count ? NULL : names->items[item - host_count + 1];

		if (entry->parent != PATH_TREE_NONE || entry->first != i)
			continue;
		r = place ? add_symlink(builder, entry->path, place, grant_at(builder, place), err)
			  : add_symlink(builder, entry->path, hosts[item].target, -1, err);
	}
	return r;
}

/* The plain frame: every system mount first, whatever rules later put over it. */
static int build_plain(struct builder *builder, struct error *err)
{
	static const struct {
		enum plan_op_kind kind;
		const char *path;
	} frame[] = {
		{ PLAN_PROC, "/proc" }, { PLAN_DEV, "/dev" },       { PLAN_TMPFS, "/tmp" },
		{ PLAN_TMPFS, "/run" }, { PLAN_TMPFS, "/var/tmp" }, { PLAN_TMPFS, "/dev/shm" },
	};
	int r = 0;

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(frame); i++)
		r = add_op(builder, frame[i].kind, PLAN_SYSTEM, frame[i].path, NULL, -1, err);
	for (size_t i = 0; r == 0 && i < builder->options->symlink_count; i++)
		r = add_symlink(builder, builder->options->symlinks[i].path,
				builder->options->symlinks[i].target, -1, err);
	for (uint32_t i = 0; r == 0 && i < builder->rules->count; i++)
		r = build_rule(builder, i, err);
	return r;
}

/*
 * Rules and system places together by depth: each place after what it would otherwise vanish under,
 * and before the rules that stand on it. A rule exactly at a place replaces it.
 */
static int build_ordered(struct builder *builder, const struct string_list *aliases,
			 struct error *err)
{
	size_t mount_count = 0;
	const struct sysmount *mounts = sysmounts(&mount_count);
	uint32_t next = 0;
	int r = 0;

	if (!sysmount_root_shown(builder->rules))
		r = build_symlinks(builder, aliases, err);
	for (size_t i = 0; r == 0 && i < mount_count; i++) {
		uint32_t item = (uint32_t)(builder->rules->count + i);
		int order = -1;

		while (r == 0 && next < builder->rules->count &&
		       (order = sysmount_order(builder->rules->rules[next].path, &mounts[i])) < 0)
			r = build_rule(builder, next++, err);
		if (r == 0 && builder->position[item] != PATH_TREE_NONE &&
		    !(next < builder->rules->count && order == 0))
			r = build_system(builder, &mounts[i], item, err);
	}
	for (; r == 0 && next < builder->rules->count; next++)
		r = build_rule(builder, next, err);
	return r;
}

static int build_seals(struct builder *builder, struct error *err)
{
	size_t mounts = builder->plan->count;
	int r = 0;

	for (size_t i = 0; r == 0 && i < mounts; i++) {
		const struct plan_op *op = &builder->plan->ops[i];

		if (op->kind == PLAN_MASK_TREE)
			r = add_op(builder, PLAN_SEAL, 0, op->path, NULL, op->rule, err);
	}
	if (r < 0 || !hardened(builder, PLAN_HARDEN_SEAL_ROOT))
		return r;
	r = add_op(builder, PLAN_SEAL, PLAN_SYSTEM, "/dev", NULL, -1, err);
	/* A rule on "/" puts the host's root there, which has its own permissions. */
	if (r == 0 && !sysmount_root_shown(builder->rules))
		r = add_op(builder, PLAN_SEAL, PLAN_SYSTEM, "/", NULL, -1, err);
	return r;
}

/* Put rules, and with them in order the system places, into the tree. */
static int builder_init(struct builder *builder, struct error *err)
{
	const struct rule_list *rules = builder->rules;
	bool ordered = hardened(builder, PLAN_HARDEN_ORDER);
	size_t mount_count = 0;
	const struct sysmount *mounts = sysmounts(&mount_count);
	size_t items = rules->count + mount_count;
	size_t files = builder->options->file_paths ? builder->options->file_paths->count : 0;
	int r = 0;

	r = path_tree_init(&builder->tree, items, err);
	if (r == 0)
		r = path_tree_init(&builder->files, files, err);
	if (r < 0)
		return r;
	builder->nodes = calloc(items, sizeof(*builder->nodes));
	builder->position = malloc(items * sizeof(*builder->position));
	if (!builder->nodes || !builder->position)
		return error_set(err, ERR_NOMEM, 0, "no memory for the plan");

	for (size_t i = 0; i < items; i++)
		builder->position[i] = PATH_TREE_NONE;
	for (size_t i = 0; i < rules->count; i++)
		path_tree_add(&builder->tree, rules->rules[i].path, (uint32_t)i);
	for (size_t i = 0; ordered && i < mount_count; i++)
		if (gets_mount(builder, &mounts[i]))
			path_tree_add(&builder->tree, mounts[i].path, (uint32_t)(rules->count + i));
	for (size_t i = 0; i < files; i++)
		path_tree_add(&builder->files, builder->options->file_paths->items[i], (uint32_t)i);
	path_tree_link(&builder->tree);
	path_tree_link(&builder->files);
	for (uint32_t i = 0; i < builder->tree.count; i++)
		builder->position[builder->tree.entries[i].item] = builder->tree.entries[i].first;
	find_allows_below(builder);
	return 0;
}

int plan_build(struct plan *ret_plan, const struct policy *policy,
	       const struct plan_options *options, struct error *err)
{
	AUTO(plan_deinit) struct plan plan = PLAN_INIT;
	AUTO(builder_deinit) struct builder builder = { .plan = &plan };
	bool ordered = (options->harden & PLAN_HARDEN_ORDER) != 0;
	int r = 0;

	builder.rules = &policy->rules;
	builder.options = options;
	plan.net = policy->net;
	plan.unshare = PLAN_UNSHARE_ALL;
	if (policy->net == NET_HOST)
		plan.unshare &= ~(uint32_t)PLAN_UNSHARE_NET;
	if (options->skip_pid && options->harden == 0)
		plan.unshare &= ~(uint32_t)PLAN_UNSHARE_PID;
	plan.chdir = strdup(options->chdir ? options->chdir : "/");
	if (!plan.chdir)
		return error_set(err, ERR_NOMEM, 0, "no memory for the plan");

	if (ordered)
		r = plan_check_rules(&policy->rules, err);
	if (r == 0)
		r = builder_init(&builder, err);
	if (r == 0)
		r = add_op(&builder, PLAN_ROOT, PLAN_SYSTEM, "/", NULL, -1, err);
	if (r == 0)
		r = ordered ? build_ordered(&builder, &policy->aliases, err)
			    : build_plain(&builder, err);
	if (r == 0 && hardened(&builder, PLAN_HARDEN_PIN))
		r = plan_add_pins(&plan, err);
	if (r == 0 && hardened(&builder, PLAN_HARDEN_ABSENT))
		r = plan_add_notices(&plan, policy, err);
	if (r == 0)
		r = build_seals(&builder, err);
	if (r < 0)
		return r;
	*ret_plan = plan;
	plan = (struct plan)PLAN_INIT;
	return 0;
}
