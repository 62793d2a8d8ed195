/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_DAEMON_SPAWNER_TEMPLATEROOM_H
#define FSBOX_DAEMON_SPAWNER_TEMPLATEROOM_H

/*
 * How many mounts templates may hold: template-cache-mounts for those that are kept, a bound for each
 * user for what is being built. A template counts as many as its plan names until its builder has told how
 * many there really are.
 */

#include <stddef.h>
#include <sys/types.h>

#include "common/error.h"

struct template;
struct templates;

/* Whether MORE may be built for this user now. Fails with ERR_QUOTA_EXCEEDED. */
int templateroom_check(const struct templates *templates, uid_t uid, size_t more,
		       struct error *err);

/* Make room for MORE: the least recently used go, but not those that somebody waits for. */
void templateroom_make(struct templates *templates, size_t more);

/* TEMPLATE has that many. */
void templateroom_count(struct template *template, size_t mounts);

/* TEMPLATE is ready and nobody waits any more: it or others go, if that is too much now. */
void templateroom_settle(struct template *template);

#endif
