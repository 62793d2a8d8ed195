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

/* The same for the first SIZE bytes of PATH. */
size_t path_depth_sized(const char *path, size_t size);

/*
 * Whether CHILD is PATH or lies below it, at component borders. Neither is normalised; an empty PATH
 * covers what "/" covers, and itself.
 */
bool path_covers(const char *path, const char *child);

/*
 * Lexical cleaning: `.`, `..` and empty segments are resolved as text, `..` stops at the root.
 * NULL (errno EINVAL) when PATH is empty, relative or has a control character (0x01-0x1f, 0x7f);
 * NULL (errno ENOMEM) when memory is short. The caller frees.
 */
char *path_clean(const char *path);

/*
 * Without empty and `.` segments; `..` stays, for only a look-up can tell where it leads. NULL (errno
 * EINVAL) when PATH is not absolute; NULL (errno ENOMEM) when memory is short. The caller frees.
 */
char *path_collapse(const char *path);

/*
 * Lexical cleaning of any path: `.`, `..` and empty segments are resolved as text. `..` stops at the
 * root of an absolute path and stays at the front of a relative one; a relative path that comes to
 * nothing is ".". NULL (errno ENOMEM) when memory is short. The caller frees.
 */
char *path_lexical(const char *path);

/*
 * DIR and NAME with one slash between, whatever slashes DIR ends and NAME begins with; DIR alone when
 * NAME is empty. NULL (errno ENOMEM) when memory is short. The caller frees.
 */
char *path_join(const char *dir, const char *name);

/* The parent of a normal path, "/" for first-level paths, NULL (errno 0) for "/". Caller frees. */
char *path_parent(const char *path);

/*
 * How many leading bytes of the first SIZE of PATH are its parent. 1 stands for "/", whatever byte
 * PATH has there.
 */
size_t path_parent_length(const char *path, size_t size);

/* The last component of a normal path, borrowed from it; "" for "/". */
const char *path_leaf(const char *path);

/* Relative, not empty, without `.`, `..` or empty segments: safe below a directory descriptor. */
bool path_is_relative(const char *rel);

/*
 * Why a path cannot be a rule: a text without subject ("is relative"), or NULL when it can. Empty and
 * `.` segments are refused too: rules are text, and no path that the kernel shows would ever meet
 * such a rule. Where people write paths, path_collapse() goes first. Trailing slashes are fine.
 */
const char *path_refusal(const char *path);

#endif
