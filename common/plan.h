/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_COMMON_PLAN_H
#define FSBOX_COMMON_PLAN_H

/*
 * A policy as ordered mount operations: the one form between policies and engines.
 *
 * The broker makes it, as the user; it crosses to fsboxd as bytes (plan_encode), and fsboxd checks
 * it against the host configuration it read itself (plan_check) before anything acts on it. The
 * bwrap argument vector and the native engine's mounts both come from the same operations.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "common/policy.h"

struct buf;
struct hostconf;

/*
 * Operations are carried out in order; a later one covers an earlier one at the same place.
 *
 * In a hardened plan: PLAN_ROOT, links, then mounts by depth (rules and system places together), then
 * pins, then seals, that of "/" last. Notices may stand anywhere before the seals. An operation with PLAN_WATCH mounts nothing: whoever carries the
 * plan out must find its path absent, and fails otherwise.
 *
 * What is absent comes in three forms, for the guard (daemon/spawner/guard.h) to act on when it appears:
 *
 *	PLAN_PLACEHOLDER  something is made on the host first, and masked like anything else
 *	PLAN_WATCH        a mask of what appears, of its kind: a directory's or a file's
 *	PLAN_NOTICE       an operation that neither mounts nor demands anything: what appears is told, and
 *	                  with PLAN_QUARANTINE taken away (R28)
 *
 * The same path may be under notice in many plans, and may exist by the time one is carried out.
 */
enum plan_op_kind {
	PLAN_ROOT,      /* the tmpfs that becomes / */
	PLAN_PROC,      /* fresh procfs at path */
	PLAN_DEV,       /* fresh minimal /dev at path */
	PLAN_TMPFS,     /* fresh private writable tmpfs at path */
	PLAN_SYMLINK,   /* source = link text, path = the link */
	PLAN_BIND,      /* source shown at path; flags: read-only */
	PLAN_MASK_DIR,  /* empty unreadable directory over path */
	PLAN_MASK_FILE, /* empty unreadable file over path */
	PLAN_MASK_TREE, /* tmpfs over path that holds deeper mounts; sealed by a later PLAN_SEAL */
	PLAN_SEAL,      /* make the mount at path read-only, not what is mounted below */
	PLAN_SYS,       /* read-only sysfs without cgroup file systems, or nothing: "/" rules */
	PLAN_PIN,       /* source, which is seen at path, must keep its name (common/plan_pin.h) */
	PLAN_NOTICE,    /* path is absent in a writable tree: tell when it appears */
	PLAN_OP_KIND_COUNT,
};

enum plan_op_flags {
	PLAN_READ_ONLY = 1 << 0,
	PLAN_PLACEHOLDER = 1 << 1, /* path is absent: make an empty directory on the host first */
	PLAN_WATCH = 1 << 2,       /* path is absent: nothing to mount, the guard watches */
	PLAN_PRIVATE_SOURCE =
		1 << 3,          /* source is a private directory of fsbox's, not path itself */
	PLAN_NODE_FILE = 1 << 4, /* source and path are not directories */
	PLAN_SYSTEM = 1 << 5,    /* ours rather than a rule's */
	PLAN_NODE_LINK =
		1 << 6, /* path is itself a symbolic link: held where an engine can mount on one */
	PLAN_QUARANTINE = 1 << 7, /* PLAN_NOTICE: take away what appears */
	PLAN_ENTRIES =
		1
		<< 8, /* PLAN_NOTICE: path is a directory that stays; new entries of it are meant */
	PLAN_LET_GO =
		1
		<< 9, /* PLAN_MASK_FILE: when the user takes the file away nothing takes its place */
	PLAN_FLAGS_ALL = (1 << 10) - 1,
};

/*
 * @path    owned; normal, inside
 * @source  owned or NULL; a normal path outside (PLAN_BIND) or the link text (PLAN_SYMLINK)
 * @rule    index into the policy's rules, or -1
 */
struct plan_op {
	enum plan_op_kind kind;
	uint32_t flags;
	char *path;
	char *source;
	int32_t rule;
};

/*
 * Switches of the sandbox itself. All set is the only state fsboxd accepts, but for the network's,
 * which is set exactly when the network is not the host's.
 */
enum plan_unshare {
	PLAN_UNSHARE_USER = 1 << 0,
	PLAN_UNSHARE_PID = 1 << 1,
	PLAN_UNSHARE_IPC = 1 << 2,
	PLAN_UNSHARE_UTS = 1 << 3,
	PLAN_UNSHARE_CGROUP = 1 << 4,
	PLAN_UNSHARE_NET = 1 << 5,
	PLAN_UNSHARE_ALL = (1 << 6) - 1,
};

/*
 * What the compilers may do beyond the plain algorithm. With none set the output equals the shared
 * test vectors; the daemon sets all (PLAN_HARDEN_ALL). Each is described in fsbox-policy(5).
 */
enum plan_harden {
	PLAN_HARDEN_ORDER = 1 << 0,     /* system mounts after the rules they would vanish under */
	PLAN_HARDEN_SEAL_ROOT = 1 << 1, /* the tmpfs root read-only at the end */
	PLAN_HARDEN_ROOT_RULE =
		1 << 2, /* with a rule on "/": /proc /dev /sys ours, the rest the host's */
	PLAN_HARDEN_ABSENT =
		1 << 3, /* absent denies: placeholder or watch instead of a blind mask */
	PLAN_HARDEN_NODE_TYPE = 1 << 4, /* masks keep the type of what they hide */
	PLAN_HARDEN_PIN = 1 << 5,       /* what is above a mask in a writable tree keeps its name */
	PLAN_HARDEN_ALL = (1 << 6) - 1,
};

struct plan {
	struct plan_op *ops; /* heap, owned */
	size_t count;
	size_t capacity;
	uint32_t unshare; /* enum plan_unshare */
	enum net_mode net;
	char *chdir; /* owned; normal */
};

#define PLAN_INIT               \
	{                       \
		.net = NET_NONE \
	}

/*
 * @harden      enum plan_harden
 * @symlinks    pairs path, link text of top-level links to reproduce (merged /usr); may be NULL. For
 *              grants that were asked for through links the policy brings its own (aliases)
 * @chdir       where the command starts; normal
 * @skip_pid    plain algorithm only: leave the pid namespace out
 * @file_paths  plain algorithm only: rule paths that are regular files, else rule types decide
 */
struct plan_options {
	uint32_t harden;
	const struct plan_symlink {
		const char *path;
		const char *target;
	} * symlinks;
	size_t symlink_count;
	const char *chdir;
	bool skip_pid;
	const struct string_list *file_paths;
};

void plan_deinit(struct plan *plan);

/*
 * Append an operation; PATH and SOURCE (may be NULL) are copied. Fails with ERR_NOMEM, or with
 * ERR_POLICY_INVALID beyond LIMIT_RULES operations.
 */
int plan_add(struct plan *plan, const struct plan_op *op, struct error *err);

/*
 * The operations for POLICY. The cost grows with the number of rules times the depth of their
 * nesting, not with its square. The same rules always give the same plan.
 *
 * Without PLAN_HARDEN_ORDER the rules are taken in the order given; with it they must be merged, and
 * canonical as text.
 *
 * Fails with ERR_POLICY_INVALID (says which rule and why): nonsense such as a grant below a denied
 * file, rules on what stays ours (common/sysmount.h), a mount point that cannot be made;
 * ERR_PATH_NOT_FOUND: a grant that must exist does not; or ERR_NOMEM.
 */
int plan_build(struct plan *ret_plan, const struct policy *policy,
	       const struct plan_options *options, struct error *err);

/*
 * The bytes that cross to fsboxd: fixed little-endian header, then operations. The decoder takes
 * hostile bytes: every length is checked before it is used, the last byte must be consumed, paths
 * must be canonical as text without NUL, kinds and flags known, at most LIMIT_RULES operations.
 *
 * plan_encode() appends to OUT; fails with ERR_NOMEM beyond OUT's ceiling or LIMIT_PLAN_BYTES.
 * plan_decode() fails with ERR_BAD_FRAME or ERR_NOMEM.
 */
int plan_encode(const struct plan *plan, struct buf *out, struct error *err);
int plan_decode(struct plan *ret_plan, const void *data, size_t size, struct error *err);

/*
 * Whether PLAN may run on this host (R11, R25): every host-mandatory deny hidden and read-only kept,
 * nothing switched off, sources equal to their targets except private directories below one of
 * PRIVATE_ROOTS, network at most the configured cap, everything fresh and sealed that must be.
 *
 * Paths are compared as text: the caller adds to the lists what else names the same trees (bind
 * aliases). Whether a path leads through a link only the one who opens it can tell.
 *
 * @conf            the configuration as fsboxd read it
 * @own_deny        fsbox's own configuration, state, log and socket directories
 * @own_read_only   fsbox's own binaries
 * @private_roots   directories that may be bound elsewhere; may be NULL
 *
 * Fails with ERR_POLICY_INVALID or ERR_NOT_AUTHORIZED, naming the operation.
 */
int plan_check(const struct plan *plan, const struct hostconf *conf,
	       const struct string_list *own_deny, const struct string_list *own_read_only,
	       const struct string_list *private_roots, struct error *err);

/*
 * What the mounts of PLAN let through for PATH: the last operation that covers it decides. Nothing of
 * the host, the tmpfs root, is ACCESS_NONE; what is watched counts as denied. Looks at every
 * operation. Tests hold it against sysmount_verdict().
 */
enum access plan_access(const struct plan *plan, const char *path);

#endif
