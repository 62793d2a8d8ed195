/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_COMMON_BWRAP_H
#define FSBOX_COMMON_BWRAP_H

/*
 * A plan as arguments of bubblewrap, in two forms: for the engine, and plain, as the shared test
 * vectors have it and `fsboxctl policy compile --plain` shows it.
 */

#include <stdbool.h>
#include <stddef.h>

#include "common/buf.h"
#include "common/error.h"
#include "common/plan.h"

/*
 * @mask_dir         host path of an empty directory of mode 000: source of directory masks
 * @mask_file        host path of an empty file of mode 000: source of file masks
 * @proc_masks       names below /proc to hide, those of bwrap_proc_masks() that exist; may be NULL
 * @root_peer        the job runs as uid 0: all of /proc read-only, no /sys at all (R19)
 * @own_network      who executes bwrap stands in the job's network already
 * @disable_userns   nested user namespaces off; bubblewrap 0.8 and later
 * @die_with_parent  jobs end with the process that started bwrap; the daemon's do not
 * @new_session      bwrap calls setsid(); our init does so itself
 */
struct bwrap_options {
	const char *mask_dir;
	const char *mask_file;
	const struct string_list *proc_masks;
	bool root_peer;
	bool own_network;
	bool disable_userns;
	bool die_with_parent;
	bool new_session;
};

/*
 * Append to OUT what `bwrap --args FD` reads: every argument followed by a NUL. Of options for the
 * command only --chdir is among them; --as-pid-1, descriptors and the command are the caller's.
 *
 * Always there, whatever the plan says: new user, pid, ipc, uts and (where the kernel has them) cgroup
 * namespaces, every capability dropped. The network is a new one unless the plan's mode is `host`
 * or the caller has made it.
 *
 * Left out, for bubblewrap cannot do it: masks on link nodes (PLAN_NODE_LINK), and what is watched.
 *
 * Fails with ERR_NOMEM when it does not fit into OUT, with ERR_ENGINE_UNAVAILABLE for a plan that has
 * more arguments than bubblewrap takes (BWRAP_ARGS_MAX).
 */
int bwrap_compile(const struct plan *plan, const struct bwrap_options *options, struct buf *out,
		  struct error *err);

/* MAX_ARGS of bubblewrap; its own argument vector counts too, so some are kept for the caller. */
#define BWRAP_ARGS_MAX 9000
#define BWRAP_ARGS_CALLER 64

/* Names below /proc that tell about the host or other jobs; the caller looks which ones exist. */
const char *const *bwrap_proc_masks(size_t *ret_count);

/*
 * @empty_dir      source of directory masks
 * @empties_dir    parent of the files that file masks come from: mask-0, mask-1 ...
 */
struct bwrap_plain_options {
	const char *empty_dir;
	const char *empties_dir;
};

/*
 * What the plain compiler says besides the arguments. All lists are parallel to their counterpart.
 *
 * @args             the argument vector's beginning
 * @empty_files      files of mode 000 to create, and what each masks
 * @mask_mounts      paths that masks are mounted on, and whether each is a directory
 */
struct bwrap_plain {
	struct string_list args;
	struct string_list empty_files;
	struct string_list empty_file_masks;
	struct string_list mask_mounts;
	bool *mask_mount_is_dir; /* heap, owned; mask_mounts.count of them */
};

/* For a plan built with no hardening flags (and the same policy's network). Fails with ERR_NOMEM. */
int bwrap_compile_plain(const struct plan *plan, const struct bwrap_plain_options *options,
			struct bwrap_plain *ret_plain, struct error *err);
void bwrap_plain_deinit(struct bwrap_plain *plain);

#endif
