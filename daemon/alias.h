/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_DAEMON_ALIAS_H
#define FSBOX_DAEMON_ALIAS_H

/*
 * By what other names a path can be reached: a file system, or a part of it, may be mounted at several
 * places (`mount --bind`), and what is closed at one of them must be closed at all (R11).
 *
 * Text only: the mounts as proc_pid_mountinfo(5) tells them, and paths without links in them. Not
 * found are other names of what is mounted below a path, and what an overlay is made of.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "common/policy.h"

/* More other names than this of what must stay closed are an error: nobody could look through them. */
#define ALIAS_MAX 512

/*
 * @root   what of the file system is mounted: a path in it
 * @point  where
 * @type   of the file system
 */
struct mount_entry {
	uint32_t id;
	uint32_t parent;
	uint32_t major;
	uint32_t minor;
	const char *root;
	const char *point;
	const char *type;
};

/* @text  owned; the entries point into it */
struct mount_table {
	struct mount_entry *entries;
	size_t count;
	char *text;
};

#define MOUNT_TABLE_INIT   \
	{                  \
		.count = 0 \
	}

void mount_table_deinit(struct mount_table *table);

/*
 * The mounts in TEXT, the content of a mountinfo file; lines that are none are left out. RET_TABLE must
 * hold nothing. Fails with ERR_NOMEM.
 */
int mount_table_parse(struct mount_table *ret_table, const char *text, struct error *err);

/* The same of FD, an open mountinfo file, from its beginning. Fails with ERR_SYSTEM, ERR_NOMEM. */
int mount_table_read(struct mount_table *ret_table, int fd, struct error *err);

/* /proc/self/mountinfo, close-on-exec; or -1 with ERR filled. */
int mountinfo_open(struct error *err);

/* Whether mounts changed since FD was opened or this was asked last: the kernel says so once. */
bool mountinfo_is_stale(int fd);

/* The mount that PATH leads into, what is stacked and covered considered; NULL when none is known. */
const struct mount_entry *mount_table_find(const struct mount_table *table, const char *path);

/* @path another name of @of, or of a part of it; both owned */
struct alias {
	char *path;
	char *of;
};

struct alias_list {
	struct alias *items;
	size_t count;
};

#define ALIAS_LIST_INIT    \
	{                  \
		.count = 0 \
	}

void alias_list_deinit(struct alias_list *list);

/*
 * Append the other names of PATHS, each once; names at or below the path itself are none. PATHS need
 * not exist. Fails with ERR_POLICY_INVALID beyond ALIAS_MAX, ERR_NOMEM.
 */
int alias_list_find(struct alias_list *list, const struct mount_table *table,
		    const struct string_list *paths, struct error *err);

#endif
