/* SPDX-License-Identifier: Apache-2.0 */
#include "common/bwrap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/limits.h"
#include "common/scope.h"

#define MASK_NAME_ROOM 32 /* "/mask-" and a number */

static const char *const proc_masks[] = {
	"kcore",      "kmsg",        "keys",          "key-users",   "kallsyms",     "timer_list",
	"slabinfo",   "vmallocinfo", "latency_stats", "sched_debug", "pagetypeinfo", "kpagecount",
	"kpageflags", "kpagecgroup", "iomem",         "ioports",
};

const char *const *bwrap_proc_masks(size_t *ret_count)
{
	*ret_count = ARRAY_SIZE(proc_masks);
	return proc_masks;
}

/* Where arguments go; failures are kept in the buffer. */
struct writer {
	struct buf *out;
	size_t count;
	size_t pins;
	bool pins_covered;
	const struct bwrap_options *options;
};

static void add(struct writer *writer, const char *argument)
{
	(void)buf_add(writer->out, argument, strlen(argument) + 1);
	writer->count++;
}

static void add2(struct writer *writer, const char *option, const char *value)
{
	add(writer, option);
	add(writer, value);
}

static void add3(struct writer *writer, const char *option, const char *first, const char *second)
{
	add2(writer, option, first);
	add(writer, second);
}

static void add_proc(struct writer *writer, const char *path)
{
	const struct string_list *masks = writer->options->proc_masks;
	char target[LIMIT_NAME_BYTES + 8];

	add2(writer, "--proc", path);
	for (size_t i = 0; masks && i < masks->count; i++) {
		(void)snprintf(target, sizeof(target), "%s/%s", path, masks->items[i]);
		add3(writer, "--ro-bind", writer->options->mask_file, target);
	}
	if (writer->options->root_peer)
		add2(writer, "--remount-ro", path);
}

static void add_sys(struct writer *writer, const char *path)
{
	if (writer->options->root_peer)
		add3(writer, "--ro-bind", writer->options->mask_dir, path);
	else
		add3(writer, "--ro-bind", path, path);
}

/* For root peers a mask covers all of /sys, and nothing can be mounted in it. */
static bool lies_in_hidden_sys(const struct writer *writer, const struct plan_op *op)
{
	return writer->options->root_peer && strncmp(op->path, "/sys/", strlen("/sys/")) == 0;
}

#define PINS_DIR "/dev/.fsbox-pins"

/* The directory once more, and a mask on that: a mountpoint that is in nobody's way. */
static void add_pin(struct writer *writer, const struct plan_op *op)
{
	bool file = (op->flags & PLAN_NODE_FILE) != 0;
	char place[sizeof(PINS_DIR) + 32];

	(void)snprintf(place, sizeof(place), "%s/%zu", PINS_DIR, writer->pins++);
	/* What is not there, or not for this user, cannot be renamed either. */
	add3(writer, "--ro-bind-try", op->source, place);
	add3(writer, "--ro-bind", file ? writer->options->mask_file : writer->options->mask_dir,
	     place);
}

/* After the last pin, before /dev is sealed: nobody looks in there. */
static void cover_pins(struct writer *writer)
{
	if (writer->pins > 0 && !writer->pins_covered)
		add3(writer, "--ro-bind", writer->options->mask_dir, PINS_DIR);
	writer->pins_covered = true;
}

static void add_op(struct writer *writer, const struct plan_op *op)
{
	const struct bwrap_options *options = writer->options;

	if (op->flags & (PLAN_WATCH | PLAN_NODE_LINK) || lies_in_hidden_sys(writer, op))
		return;

	switch (op->kind) {
	case PLAN_ROOT:
	case PLAN_TMPFS:
		add2(writer, "--tmpfs", op->path);
		return;
	case PLAN_PROC:
		add_proc(writer, op->path);
		return;
	case PLAN_DEV:
		add2(writer, "--dev", op->path);
		return;
	case PLAN_SYS:
		add_sys(writer, op->path);
		return;
	case PLAN_SYMLINK:
		add3(writer, "--symlink", op->source, op->path);
		return;
	case PLAN_BIND:
		add3(writer, op->flags & PLAN_READ_ONLY ? "--ro-bind" : "--bind", op->source,
		     op->path);
		return;
	case PLAN_MASK_DIR:
		add3(writer, "--ro-bind", options->mask_dir, op->path);
		return;
	case PLAN_MASK_FILE:
		add3(writer, "--ro-bind", options->mask_file, op->path);
		return;
	case PLAN_MASK_TREE: /* can be passed through to what is granted below, not listed */
		add2(writer, "--perms", "0111");
		add2(writer, "--tmpfs", op->path);
		return;
	case PLAN_PIN:
		add_pin(writer, op);
		return;
	case PLAN_NOTICE:
		return;
	case PLAN_SEAL:
		cover_pins(writer);
		add2(writer, "--remount-ro", op->path);
		return;
	case PLAN_OP_KIND_COUNT:
		return;
	}
}

static void add_switches(struct writer *writer, const struct plan *plan)
{
	add(writer, "--unshare-user");
	add(writer, "--unshare-pid");
	add(writer, "--unshare-ipc");
	add(writer, "--unshare-uts");
	add(writer, "--unshare-cgroup-try");
	if (plan->net != NET_HOST && !writer->options->own_network)
		add(writer, "--unshare-net");
	if (writer->options->disable_userns)
		add(writer, "--disable-userns");
	add2(writer, "--cap-drop", "ALL");
	if (writer->options->die_with_parent)
		add(writer, "--die-with-parent");
	if (writer->options->new_session)
		add(writer, "--new-session");
	add2(writer, "--chdir", plan->chdir);
}

int bwrap_compile(const struct plan *plan, const struct bwrap_options *options, struct buf *out,
		  struct error *err)
{
	struct writer writer = { .out = out, .options = options };

	for (size_t i = 0; i < plan->count; i++)
		add_op(&writer, &plan->ops[i]);
	add_switches(&writer, plan);
	if (writer.count > BWRAP_ARGS_MAX - BWRAP_ARGS_CALLER)
		return error_set(
			err, ERR_ENGINE_UNAVAILABLE, 0,
			"the policy needs %zu arguments and bubblewrap takes %d: use fewer "
			"rules or another engine",
			writer.count, BWRAP_ARGS_MAX - BWRAP_ARGS_CALLER);
	return buf_check(out, "the arguments of bubblewrap", err);
}

void bwrap_plain_deinit(struct bwrap_plain *plain)
{
	if (!plain)
		return;
	string_list_deinit(&plain->args);
	string_list_deinit(&plain->empty_files);
	string_list_deinit(&plain->empty_file_masks);
	string_list_deinit(&plain->mask_mounts);
	free(plain->mask_mount_is_dir);
	plain->mask_mount_is_dir = NULL;
}

/* Up to three arguments; NULL ends them. */
static int plain_add(struct bwrap_plain *plain, const char *option, const char *first,
		     const char *second, struct error *err)
{
	int r = string_list_add(&plain->args, option, err);

	if (r == 0 && first)
		r = string_list_add(&plain->args, first, err);
	if (r == 0 && second)
		r = string_list_add(&plain->args, second, err);
	return r;
}

static int plain_add_mask(struct bwrap_plain *plain, const struct plan_op *op, struct error *err)
{
	size_t count = plain->mask_mounts.count;
	bool *grown = realloc(plain->mask_mount_is_dir, (count + 1) * sizeof(*grown));

	if (!grown)
		return error_set(err, ERR_NOMEM, 0, "no memory for the masks");
	plain->mask_mount_is_dir = grown;
	grown[count] = op->kind != PLAN_MASK_FILE;
	return string_list_add(&plain->mask_mounts, op->path, err);
}

static int plain_add_file_mask(struct bwrap_plain *plain, const struct bwrap_plain_options *options,
			       const struct plan_op *op, struct error *err)
{
	AUTO(auto_free) char *source = NULL;
	size_t room = strlen(options->empties_dir) + MASK_NAME_ROOM;
	int r = 0;

	source = malloc(room);
	if (!source)
		return error_set(err, ERR_NOMEM, 0, "no memory for the masks");
	(void)snprintf(source, room, "%s/mask-%zu", options->empties_dir, plain->empty_files.count);
	r = plain_add(plain, "--ro-bind", source, op->path, err);
	if (r == 0)
		r = string_list_add(&plain->empty_files, source, err);
	if (r == 0)
		r = string_list_add(&plain->empty_file_masks, op->path, err);
	return r == 0 ? plain_add_mask(plain, op, err) : r;
}

static int plain_add_op(struct bwrap_plain *plain, const struct bwrap_plain_options *options,
			const struct plan_op *op, struct error *err)
{
	int r = 0;

	switch (op->kind) {
	case PLAN_ROOT:
	case PLAN_TMPFS:
		return plain_add(plain, "--tmpfs", op->path, NULL, err);
	case PLAN_PROC:
		return plain_add(plain, "--proc", op->path, NULL, err);
	case PLAN_DEV:
		return plain_add(plain, "--dev", op->path, NULL, err);
	case PLAN_SYMLINK:
		return plain_add(plain, "--symlink", op->source, op->path, err);
	case PLAN_BIND:
	case PLAN_SYS:
		return plain_add(plain, op->flags & PLAN_READ_ONLY ? "--ro-bind" : "--bind",
				 op->source ? op->source : op->path, op->path, err);
	case PLAN_MASK_DIR:
		r = plain_add(plain, "--ro-bind", options->empty_dir, op->path, err);
		return r == 0 ? plain_add_mask(plain, op, err) : r;
	case PLAN_MASK_FILE:
		return plain_add_file_mask(plain, options, op, err);
	case PLAN_MASK_TREE:
		r = plain_add(plain, "--tmpfs", op->path, NULL, err);
		return r == 0 ? plain_add_mask(plain, op, err) : r;
	case PLAN_SEAL:
		return plain_add(plain, "--remount-ro", op->path, NULL, err);
	case PLAN_PIN: /* hardened plans only */
	case PLAN_NOTICE:
	case PLAN_OP_KIND_COUNT:
		break;
	}
	return 0;
}

static int plain_add_switches(struct bwrap_plain *plain, const struct plan *plan, struct error *err)
{
	static const struct {
		uint32_t unshare;
		const char *option;
	} switches[] = {
		{ PLAN_UNSHARE_USER, "--unshare-user" },
		{ PLAN_UNSHARE_PID, "--unshare-pid" },
		{ PLAN_UNSHARE_IPC, "--unshare-ipc" },
		{ PLAN_UNSHARE_UTS, "--unshare-uts" },
		{ PLAN_UNSHARE_CGROUP, "--unshare-cgroup-try" },
		{ PLAN_UNSHARE_NET, "--unshare-net" },
	};
	int r = 0;

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(switches); i++)
		if (plan->unshare & switches[i].unshare)
			r = plain_add(plain, switches[i].option, NULL, NULL, err);
	if (r == 0)
		r = plain_add(plain, "--die-with-parent", "--new-session", NULL, err);
	return r == 0 ? plain_add(plain, "--chdir", plan->chdir, NULL, err) : r;
}

int bwrap_compile_plain(const struct plan *plan, const struct bwrap_plain_options *options,
			struct bwrap_plain *ret_plain, struct error *err)
{
	AUTO(bwrap_plain_deinit) struct bwrap_plain plain = { .mask_mount_is_dir = NULL };
	int r = 0;

	for (size_t i = 0; r == 0 && i < plan->count; i++)
		r = plain_add_op(&plain, options, &plan->ops[i], err);
	if (r == 0)
		r = plain_add_switches(&plain, plan, err);
	if (r < 0)
		return r;
	*ret_plain = plain;
	plain = (struct bwrap_plain){ .mask_mount_is_dir = NULL };
	return 0;
}
