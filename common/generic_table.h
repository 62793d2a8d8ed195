/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_COMMON_GENERIC_TABLE_H
#define FSBOX_COMMON_GENERIC_TABLE_H

/*
 * What the profiles `generic` and `host` know about the machines people develop on. Data only.
 *
 * Paths of the home directory are relative to it; where an XDG directory is another than the default,
 * its entries move along (generic.c).
 */

#include <stddef.h>

struct name_list {
	const char *const *names;
	size_t count;
};

/* readOnly: the system, where it exists. Absolute. */
struct name_list generic_system(void);

/* Denied below the former. Absolute. */
struct name_list generic_system_secrets(void);

/* readOnly below the home directory: toolchains, and settings that tools read. */
struct name_list generic_toolchains(void);

/* Denied below the home directory: keys, tokens, sessions, histories. */
struct name_list generic_jewels(void);

/* Replaced by private directories of the same use. Relative to the home directory. */
struct name_list generic_caches(void);

/* Sockets that hand out rights of others: denied where "/" is shown (R21). Absolute. */
struct name_list generic_sockets(void);

/* The same below /run/user/UID; relative. */
struct name_list generic_runtime_sockets(void);

/* Of root's: denied for root peers besides. Absolute. */
struct name_list generic_root_secrets(void);

#endif
