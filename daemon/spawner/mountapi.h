/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_DAEMON_SPAWNER_MOUNTAPI_H
#define FSBOX_DAEMON_SPAWNER_MOUNTAPI_H

/*
 * The few ways in which we open and mount: no links followed, everything by descriptor, attributes
 * before anything is attached. Thin over the system calls: a result of -1 comes with errno.
 */

#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

/*
 * openat2(2) without following any link, not even a last one (with O_NOFOLLOW a last link would be
 * opened itself). @resolve: further RESOLVE_* flags.
 */
int mountapi_open(int dir_fd, const char *path, uint64_t flags, uint64_t resolve);

/* A new file system of TYPE, detached. @settings: pairs of key and value, ended by NULL. */
int mountapi_new(const char *type, const char *const settings[], uint64_t attributes);

/* A tmpfs owned by the caller's file system ids; nosuid, nodev and @attributes. */
int mountapi_new_tmpfs(const char *mode, uint64_t attributes);

/* Attach the detached tree TREE_FD at TARGET_FD, on top of what is there. */
int mountapi_attach(int tree_fd, int target_fd);

/* Set mount attributes and private propagation. @flags: AT_RECURSIVE or 0. */
int mountapi_restrict(int fd, const char *path, uint64_t attributes, unsigned int flags);

/*
 * How many mounts the calling process's namespace holds: by listmount(2) where there is one (6.8), else
 * from mountinfo, which must be found before the namespace that has a /proc is left.
 *
 * mountapi_count_begin() gives what mountapi_count() takes: a descriptor that is the caller's, or -1
 * where none is needed. Both fail with ERR_SYSTEM.
 */
int mountapi_count_begin(int *ret_fd, struct error *err);
int mountapi_count(int begun_fd, size_t *ret_count, struct error *err);

/*
 * The mounts of the namespace NS_FD: how many, and between which numbers (STATX_MNT_ID_UNIQUE) theirs
 * are. -1 with errno where the kernel cannot tell (before 6.11).
 */
int mountapi_list_of(int ns_fd, size_t *ret_count, uint64_t *ret_first, uint64_t *ret_last);

#endif
