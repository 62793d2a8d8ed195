/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_DAEMON_SPAWNER_STRAY_H
#define FSBOX_DAEMON_SPAWNER_STRAY_H

/*
 * Processes whose work is over and that should be gone soon: an idle broker, a broker that was
 * thrown out, the outer process of an engine. One that stays is killed; one that cannot even be
 * killed counts as stuck for its user, is recorded, and is not waited for (R24).
 */

#include <stdint.h>
#include <sys/types.h>

#include "daemon/spawner/child.h"

struct spawner;

/*
 * Take over CHILD's process, which is empty afterwards (nothing happens if it already is).
 *
 * @what      for the records; a string that stays
 * @grace_ms  how long it may still take; 0: it is killed at once
 */
void stray_take(struct spawner *spawner, struct child *child, uid_t uid, const char *what,
		uint64_t grace_ms);

#endif
