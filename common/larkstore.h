/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_COMMON_LARKSTORE_H
#define FSBOX_COMMON_LARKSTORE_H

/*
 * Where lark-cli keeps its keys on Linux. It holds the secrets of every bot of a user, so what the
 * policy locks must be the very directory that lark-cli opens.
 *
 * All three give a string that the caller frees, or NULL: errno 0 when there is no such path, ENOMEM
 * when memory is short.
 */

/*
 * The store to protect: OVERRIDE (may be NULL or empty: not given) or the default below HOME_DIR, as
 * a normal path. An override that does not normalise gives NULL and never the default.
 */
char *lark_store_path(const char *home_dir, const char *override);

/*
 * The directory to give the confined lark-cli as its data directory, so that it opens CANON_STORE
 * (may be NULL) again: the parent, provided that the store is still called `lark-cli`.
 */
char *lark_child_data_root(const char *canon_store);

/*
 * The store as lark-cli itself resolves it: below RAW_DATA_DIR (may be NULL or empty), cleaned as
 * text, when that is an absolute path without control characters; otherwise below HOME_DIR, which is
 * taken as it is.
 */
char *lark_store_dir(const char *raw_data_dir, const char *home_dir);

#endif
