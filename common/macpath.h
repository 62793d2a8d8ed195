/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_COMMON_MACPATH_H
#define FSBOX_COMMON_MACPATH_H

/*
 * Paths as the macOS kernel shows them to a sandbox profile, as far as text can tell: names are
 * UTF-8, /etc, /tmp and /var are links into /private, and /System/Volumes/Data is a second way to
 * most of the disk. A filter that spells a path otherwise never matches, and a deny that never
 * matches lets everything through.
 */

#include <stdbool.h>

#include "common/error.h"

#define MACPATH_DATA_VOLUME "/System/Volumes/Data"

/*
 * Whether PATH may stand in a profile: as path_refusal(), and UTF-8 without control characters. Fails
 * with ERR_POLICY_INVALID.
 */
int macpath_check(const char *path, struct error *err);

/* The same for text that paths begin with: what is behind its last slash may be anything. */
int macpath_check_prefix(const char *prefix, struct error *err);

/* PATH without trailing slashes, links of the system resolved. NULL when memory is short. */
char *macpath_physical(const char *path);

/* Whether macpath_physical() would change the beginning of PATH. */
bool macpath_is_linked(const char *path);

/* Whether PATH is the Data volume or lies on it by name. */
bool macpath_on_data_volume(const char *path);

#endif
