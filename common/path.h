/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_COMMON_PATH_H
#define FSBOX_COMMON_PATH_H

/*
 * Paths as text: absolute, `/`-separated bytes, never looked up. No locale, no encoding.
 *
 * A *normal* path begins with `/`, has no trailing `/` (but "/" itself) and no `..` segment; that
 * is what path_normalize() gives and what rules hold. A *canonical* path has besides no empty and
 * no `.` segment and no symbolic link in it; whether that last part holds only a look-up can tell.
 */

#include <stdbool.h>
#include <stddef.h>

/*
 * The normal form of PATH, or NULL when it is empty, relative or has a `..` segment (errno 0) or
 * when memory is short (errno ENOMEM). Only trailing slashes are removed: repeated slashes inside
 * and `.` segments stay. The caller frees.
 */
char *path_normalize(const char *path);

/* As path_normalize() without memory: true, and how many leading bytes of PATH are the normal form. */
bool path_normal_length(const char *path, size_t *ret_length);

/* How deep a normal path is: 0 for "/", else the number of slashes. */
size_t path_depth(const char *path);

/* Whether CHILD is PATH or lies below it, at component borders. Neither is normalised. */
bool path_covers(const char *path, const char *child);

/*
 * Lexical cleaning: `.`, `..` and empty segments are resolved as text, `..` stops at the root.
 * NULL (errno EINVAL) when PATH is empty, relative or has a control character (0x01-0x1f, 0x7f);
 * NULL (errno ENOMEM) when memory is short. The caller frees.
 */
char *path_clean(const char *path);

/* DIR and NAME with one slash between; NAME may be relative or begin with one. The caller frees. */
char *path_join(const char *dir, const char *name);

/* The parent of a normal path, "/" for first-level paths, NULL (errno 0) for "/". Caller frees. */
char *path_parent(const char *path);

/* The last component of a normal path, borrowed from it; "" for "/". */
const char *path_leaf(const char *path);

/* Relative, not empty, without `.`, `..` or empty segments: safe below a directory descriptor. */
bool path_is_relative(const char *rel);

/* Why a path cannot be a rule: a text without subject ("is relative"), or NULL when it can. */
const char *path_refusal(const char *path);

#endif
