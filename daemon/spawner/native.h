/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_DAEMON_SPAWNER_NATIVE_H
#define FSBOX_DAEMON_SPAWNER_NATIVE_H

/*
 * The native engine, as seen by the processes that carry it out: one makes the mount namespace of a
 * policy once (the template), each job enters a copy of it.
 *
 * Both have the peer's ids. In system mode they keep CAP_SYS_ADMIN, CAP_SYS_CHROOT (to enter a mount
 * namespace) and CAP_SETPCAP (to empty the bounding set) over the host's user namespace, so that every path is opened with the peer's own rights; in user mode they get
 * all capabilities over a user namespace of their own, and none over the host's.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/error.h"
#include "common/plan.h"
#include "daemon/identity.h"

/*
 * What was at a path when the template was built: compared at each spawn (R10).
 *
 * @mode  file type and permissions are not compared, only the type; 0: nothing was there
 */
struct native_witness {
	uint64_t ino;
	uint64_t mnt_id;
	int64_t btime_sec;
	uint32_t btime_nsec;
	uint32_t dev_major;
	uint32_t dev_minor;
	uint32_t type;
};

/* More than there are copies at any time (templatecopy.h). */
#define NATIVE_RULESETS 4

/*
 * Shared between fsboxd's children of one template, written by the builder and by jobs before they
 * become init, never read by fsboxd: each child maps it.
 *
 * @mounts      how many mounts the namespace has when it is ready; @copied: and its copies
 * @proc_masks  see struct mount_options; 0 until a job has found out
 * @rulesets   for which copy (inode number of its mount namespace) the builder has a rule set of Landlock's; 0:
 *              for none (builderruleset.c)
 * @witnesses  one for each operation of the plan, in order
 */
struct native_shared {
	size_t mounts;
	size_t copied;
	uint32_t proc_masks;
	uint64_t rulesets[NATIVE_RULESETS];
	struct native_witness witnesses[];
};

/* The second address of a network of its own, 198.18.0.2 (RFC 2544: never anybody's). */
#define NATIVE_ALIAS_ADDRESS 0xc6120002u

/*
 * Namespaces that are empty and alike for all jobs, so that they can be made before they are needed: each
 * a descriptor, or all -1. Without @net_fd the job makes those that it needs itself.
 */
struct native_set {
	int net_fd;
	int ipc_fd;
	int uts_fd;
	int cgroup_fd;
};

#define NATIVE_SET_INIT                                                   \
	{                                                                 \
		.net_fd = -1, .ipc_fd = -1, .uts_fd = -1, .cgroup_fd = -1 \
	}

/* Close what is there; may be called twice. */
void native_set_deinit(struct native_set *set);

/* The stage of failures that say: not the job, the template is at fault. */
#define NATIVE_STAGE_TEMPLATE "template"

/*
 * @user_ns_fd   the daemon's user namespace; -1 in system mode
 * @mount_ns_fd  the template's, or, with @is_copy, one that native_copy() made for one job
 * @set          what was made in advance
 * @net_host     no network namespace: the host's
 */
struct native_namespaces {
	int user_ns_fd;
	int mount_ns_fd;
	bool is_copy;
	struct native_set set;
	bool net_host;
};

/*
 * @switch_ids  system mode: become @identity; user mode: already that user
 * @user_ns_fd  see struct native_namespaces
 * @shared      see above
 */
struct native_input {
	const struct plan *plan;
	const struct identity *identity;
	bool switch_ids;
	int user_ns_fd;
	struct native_shared *shared;
};

/* Bytes of the mapping for the jobs of PLAN. */
size_t native_shared_bytes(const struct plan *plan);

/*
 * User mode, once: a user namespace in which this user and group are what they are outside, and nobody
 * else is. The process stands in it afterwards. Fails with ERR_SETUP_FAILED.
 */
int native_new_user_namespace(const struct identity *identity, struct error *err);

/*
 * A network of its own with its loopback up, for those that make the rest by other means. As root, or
 * with every capability over the user namespace. Fails with ERR_SETUP_FAILED.
 */
int native_new_network(struct error *err);

/*
 * Leave the host's network (unless NET_HOST), its IPC, its names and its control groups: for SET, or
 * for new ones where that is empty. In system mode before native_become(), while still root. Fails
 * with ERR_SETUP_FAILED.
 */
int native_enter_set(const struct native_set *set, bool net_host, struct error *err);

/* System mode: become IDENTITY as described above. Fails with ERR_SYSTEM. */
int native_become(const struct identity *identity, struct error *err);

/*
 * Make the template in namespaces of this process, which has native_become()'d, and stand in it. Its
 * placeholders have been made. Fails with ERR_SETUP_FAILED or ERR_PATH_NOT_FOUND.
 */
int native_build(const struct native_input *input, struct error *err);

/*
 * By who made the template, whose mount namespace is TEMPLATE_FD: make a copy of it, with all that a job
 * has for itself but /proc, and stand in that. COUNT_FD is of mountapi_count_begin(), from before the
 * template was made. Fails with ERR_SETUP_FAILED.
 */
int native_copy(const struct native_input *input, int template_fd, int count_fd, struct error *err);

/*
 * After native_build() failed: whether that may be because the host changed while it worked, so that
 * another try makes sense. ERR, if not NULL, then names what changed.
 */
bool native_changed_meanwhile(const struct native_input *input, struct error *err);

/*
 * Whether the host still looks as it did when the template was built, for every path of the plan. ROOT_FD is
 * an O_PATH descriptor of the host's root directory for a process that has left the host's mounts, -1 for
 * one that stands there.
 * Returns 1, or 0 with ERR (if not NULL) naming the first that changed.
 */
int native_still_valid(const struct native_input *input, int root_fd, struct error *err);

/*
 * Enter a copy of the template with namespaces of our own and add the job's own mounts, those that are not
 * there yet. This process
 * has native_become()'d and is pid 1 of its pid namespace already in system mode; in user mode it
 * is not, and only the child that is returns: the process itself waits for it and exits with 0.
 *
 * Fails with ERR_SETUP_FAILED, or ERR_PATH_NOT_FOUND when a mount of the template was detached from
 * outside: the template must be dropped.
 */
int native_enter(const struct native_input *input, const struct native_namespaces *namespaces,
		 struct error *err);

#endif
