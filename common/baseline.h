/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_COMMON_BASELINE_H
#define FSBOX_COMMON_BASELINE_H

/* What the botmux context always grants and denies, for each platform: tables, nothing else. */

#include <stdbool.h>
#include <stddef.h>

#include "common/error.h"
#include "common/rule.h"

struct buf;

/* Whose paths are meant; a policy for one platform can be built on another one. */
enum platform {
	PLATFORM_LINUX = 0,
	PLATFORM_DARWIN,
};

const char *platform_name(enum platform platform); /* "linux", "darwin" */
bool platform_parse(const char *name, enum platform *ret_platform);

/* @path  absolute, or below the home directory with a `~` in its place */
struct baseline_entry {
	const char *path;
	enum access access;
};

/* Entry INDEX of the platform's baseline, NULL after the last. Entries may repeat. */
const struct baseline_entry *baseline_entry(enum platform platform, size_t index);

/*
 * The path of ENTRY, with HOME_DIR put in as it is, into OUT (cleared first). -ERR_NOMEM when OUT
 * does not take it.
 */
int baseline_path(const struct baseline_entry *entry, const char *home_dir, struct buf *out);

/* Append the whole baseline as rules. Fails as rule_list_add(). */
int baseline_add_rules(struct rule_list *list, enum platform platform, const char *home_dir,
		       struct error *err);

#endif
