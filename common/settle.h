/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_COMMON_SETTLE_H
#define FSBOX_COMMON_SETTLE_H

/*
 * From candidates, as people and profiles wrote them and a look-up as the peer found them, to the
 * policy of a job. Here is where fsbox is stricter than the plain functions; fsbox-policy(5) tells
 * the user each of these rules.
 *
 * The facts of a candidate that the caller fills in: `type`, `real` where the look-up went through
 * links (for an absent path: the real path of what exists and the rest as text), `link` where the
 * last component is a link itself.
 */

#include <stdbool.h>

#include "common/error.h"
#include "common/policy.h"

/*
 * @absent_deny  what denies that do not say so themselves do when their path is absent; ABSENT_DEFAULT
 *               is a placeholder
 * @cwd          the working directory, canonical: it must not end up denied; NULL: not checked
 */
struct settle_options {
	enum absent_mode absent_deny;
	const char *cwd;
};

/*
 * Settle CANDIDATES into RET_POLICY: rules merged, canonical and indexed; `aliases`, `suppressed`
 * and `notes` filled; the rest as in POLICY_INIT.
 *
 * 1. A path that is relative, has `..`, empty or `.` segments is an error, never dropped.
 * 2. Denies and grants are rewritten to where they really are. A deny on a link denies the target,
 *    and the link node too (`denied_link`); a readOnly rule on a link likewise keeps the node.
 * 3. A grant that leads through a link into a denied tree is suppressed, unless it was spelled as
 *    standing in that tree.
 * 4. A grant of the user's, a profile's or a baseline's at or below a mandatory deny is suppressed;
 *    what would write at or below a mandatory readOnly path becomes readOnly. Internal grants are the
 *    holes that a profile itself leaves, and stay; but nothing stays below a rule with `host` set. A
 *    readOnly rule of the host's only takes away: it shows nothing that no other rule shows.
 * 5. A grant below a denied file is an error, as is one whose path is absent unless it is optional:
 *    then it is dropped (and noted when a user asked for it).
 * 6. A mandatory readOnly path that is absent is denied, so that nothing can be made there.
 * 7. Denies whose path is absent get their mode; `report` leaves a note.
 *
 * `suppressed` lists what was not granted, or not as asked, by the path it was asked for.
 *
 * Fails with ERR_POLICY_INVALID, ERR_PATH_NOT_FOUND (both name the path and where it came from) or
 * ERR_NOMEM.
 */
int policy_settle(struct policy *ret_policy, const struct rule_list *candidates,
		  const struct settle_options *options, struct error *err);

#endif
