/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_DAEMON_BROKER_CANDIDATES_H
#define FSBOX_DAEMON_BROKER_CANDIDATES_H

/*
 * Rules as people asked for them, and what a look-up found at their paths put into them, in the form
 * that policy_settle() takes.
 */

#include <stdbool.h>

#include "common/error.h"
#include "common/rule.h"
#include "daemon/broker/pack.h"
#include "proto/json/message.h"

/*
 * Append PATHS as rules. @origin is for people, "request" or "profile x"; @where names the member in
 * errors ("params.paths").
 *
 * Fails with ERR_POLICY_INVALID for a path that can be no rule (relative, `..`), ERR_NOMEM.
 */
int candidates_add_paths(struct rule_list *list, const struct msg_paths *paths,
			 enum rule_source source, const char *origin, const char *where,
			 struct error *err);

/* The same for sockets that stay reachable: readWrite, and no error when absent. */
int candidates_add_sockets(struct rule_list *list, const struct string_list *sockets,
			   enum rule_source source, const char *origin, const char *where,
			   struct error *err);

/*
 * What nothing lifts, but matters only where it is shown: append a rule of the machine's own for PATH,
 * @note and the path it is there for ("bind alias of /x") or @note alone (OF is NULL) as its origin.
 * When all facts are filled in, candidates_keep_shown() removes those rules at and behind FROM whose
 * places no grant before FROM shows: none is at, above or below it, or a private directory stands
 * there instead.
 */
int candidates_add_guard(struct rule_list *list, const char *path, enum access access,
			 const char *note, const char *of, struct error *err);
void candidates_keep_shown(struct rule_list *list, size_t from);

/* Values for LOOKUP_PATHS: every rule's path of which nothing is known yet. */
void candidates_ask(const struct rule_list *list, struct buf *out);

/*
 * Fill the facts in, from the answer to what candidates_ask() asked about the same list. IN is left
 * behind the last one. What cannot be looked at:
 *
 *	a grant		is an error when the request or a profile asks for it, else absent
 *	a deny		holds for the whole directory that this user cannot enter, since its owner
 *			could open it later; where a file system fails or links turn in a circle it
 *			is an error when asked for, else absent
 *
 * Fails with ERR_PATH_NOT_FOUND or ERR_POLICY_INVALID, *ret_path naming the path (borrowed from the
 * list), ERR_BAD_FRAME, ERR_NOMEM.
 */
int candidates_fill(struct rule_list *list, struct unpack *in, const char **ret_path,
		    struct error *err);

#endif
