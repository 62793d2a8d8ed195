/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_TESTS_PLAN_TEXT_H
#define FSBOX_TESTS_PLAN_TEXT_H

/* Policies and plans as short text, so that tests can be read. Test code: short memory aborts. */

#include "common/buf.h"
#include "common/plan.h"
#include "common/policy.h"

/*
 * Append the rules of a text to LIST: "rw:/p deny:/p/.env=file ro:/q=absent?".
 *
 *	rw: ro: deny:	access; in front of it the source may stand, as in "mandatory/deny:"
 *	=dir =file =sock =absent	what is there (default: a directory)
 *	@SOURCE		bound from there
 *	?		optional
 *	!placeholder !watch !report !ignore	what a deny does when its path is absent
 *	~		stands on a link node
 *	*		the host's
 *	>LINK		how it was spelled, through links (rule.link)
 *	<REAL		where a look-up found it (rule.real)
 */
void rules_of(const char *text, struct rule_list *list);

/* The policy of such a text, merged and indexed. */
struct policy policy_of(const char *text);

/*
 * One operation a line, appended to OUT without the system mounts when RULES_ONLY: "bind /p",
 * "mask-file /p/.env", "mask-dir /x placeholder".
 */
void plan_text(const struct plan *plan, bool rules_only, struct buf *out);

#endif
