/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_DAEMON_SPAWNER_PLACEHOLDERFILE_H
#define FSBOX_DAEMON_SPAWNER_PLACEHOLDERFILE_H

/*
 * Placeholders that are files (R26), for a denied path whose object the user took away while a job runs
 * (standin.h). A file, since that is what users can replace: a rename over it, or writing into it, does what
 * they expect, where a directory would swallow what is moved there. Like those of placeholder.h made and
 * removed as the peer.
 */

#include "daemon/spawner/placeholder.h"

/*
 * Make PATH, which is absent and whose parent exists, as an empty file. ANNOUNCE as for placeholder_make(); of
 * one that is there it is told that it was skipped.
 *
 * Returns 1 when something is there now, 0 when there is no such parent or this user cannot create there. Fails
 * with ERR_SETUP_FAILED.
 */
int placeholder_file_make(const char *path, placeholder_announce_fn *announce, void *arg,
			  struct error *err);

/* Whether STX, of a file, has all marks of one that this user made so. */
struct statx;
bool placeholder_file_looks_ours(const struct statx *stx);

/*
 * Remove NAME in PARENT_FD if it is still NODE, as it was made (its user neither wrote to it nor touched it nor
 * changed its mode), of one name, and nobody has it open for writing: by way of another name, so that what
 * somebody puts in its place meanwhile stays, and what somebody is about to write to it too. Takes a millisecond.
 * Returns its fate as placeholder_remove(), or fails with ERR_SYSTEM: later.
 */
int placeholder_file_remove(int parent_fd, const char *name, const struct node_identity *node,
			    struct error *err);

/* The same when NAME is not there: NODE may have that other name, since who removed it was ended. */
int placeholder_file_finish(int parent_fd, const char *name, const struct node_identity *node,
			    struct error *err);

/* That other name, if nobody else has it. */
#define PLACEHOLDER_ASIDE_BYTES 32
void placeholder_file_aside(const struct node_identity *node,
			    char ret_name[PLACEHOLDER_ASIDE_BYTES]);

#endif
